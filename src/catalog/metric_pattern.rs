//! `--metric`: a number that a regular expression finds in what a program prints.
//!
//! Enters: patterns as written, then lines. Leaves: a sample for each pattern, or why there is none. A pattern that matches several
//! times gives the last match: tools print their summary last. It must not know whose lines they are.

use regex::{Captures, Regex};
use serde::{Deserialize, Serialize};

use crate::record::{Metric, Sample};
use crate::units::{Better, Unit};

/// Most characters of a number that are shown.
const MOST_SHOWN: usize = 40;

/// `--metric name=REGEX[:unit][:higher|lower]`: the first capture group is the value. `name?=…`: it may be missing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MetricPattern {
    /// Definition; `job` is empty.
    pub metric: Metric,
    /// Factor that takes a printed value to the base unit.
    pub factor: f64,
    /// The regular expression.
    pub regex: String,
    /// Nothing says which direction is the good one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_guess: bool,
    /// A program that does not print it has not failed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub may_be_missing: bool,
}

/// Patterns at work.
pub struct Patterns<'a>(Vec<Wanted<'a>>);

impl<'a> Patterns<'a> {
    /// Compiles them.
    ///
    /// # Errors
    /// A sentence: one is not a regular expression, or has no group.
    pub fn of(patterns: &'a [MetricPattern]) -> Result<Patterns<'a>, String> {
        let compiled = patterns.iter().map(|pattern| match Regex::new(&pattern.regex) {
            Ok(regex) if regex.captures_len() >= 2 => Ok(Wanted { pattern, regex, last: None }),
            Ok(_) => Err(no_group(&pattern.metric.name, &pattern.regex)),
            Err(error) => Err(bad_regex(&pattern.metric.name, &pattern.regex, &error)),
        });
        compiled.collect::<Result<_, String>>().map(Patterns)
    }

    /// Looks at one more line.
    pub fn look_at(&mut self, line: &str) {
        self.0.iter_mut().for_each(|wanted| wanted.look_at(line));
    }

    /// What was found, up to the first pattern that found no number, and why that one did not; `whose` lines they were, for the
    /// message.
    #[must_use]
    pub fn samples(&self, whose: &str) -> (Vec<Sample>, Option<String>) {
        let mut samples = Vec::new();
        let is_there = |wanted: &&Wanted<'_>| wanted.last.is_some() || !wanted.pattern.may_be_missing;
        for wanted in self.0.iter().filter(is_there) {
            match wanted.sample(whose) {
                Ok(sample) => samples.push(sample),
                Err(reason) => return (samples, Some(reason)),
            }
        }
        (samples, None)
    }
}

/// A pattern at work: its last match so far.
struct Wanted<'a> {
    pattern: &'a MetricPattern,
    regex: Regex,
    /// Its text, or that it was cut short.
    last: Option<Result<String, String>>,
}

/// The number that a pattern finds in a line.
///
/// # Errors
/// A sentence: it took the beginning of a longer number.
pub(crate) fn number_in<'l>(
    pattern: &MetricPattern,
    found: &Captures<'l>,
    line: &'l str,
) -> Option<Result<&'l str, String>> {
    let group = found.get(1)?;
    let behind = &line[group.end()..];
    let mut next = behind.chars();
    let first = next.next();
    let is_digit = |c: Option<char>| c.is_some_and(|c| c.is_ascii_digit());
    let goes_on = match first {
        // A pattern that has commas itself knows them.
        Some(',') => !pattern.regex.contains(',') && is_digit(next.next()),
        Some('e' | 'E') => {
            let digits = next.as_str();
            is_digit(digits.strip_prefix(['+', '-']).unwrap_or(digits).chars().next())
        }
        _ => is_digit(first),
    };
    if !goes_on || !group.as_str().ends_with(|c: char| c.is_ascii_digit() || c == '.') {
        return Some(Ok(group.as_str()));
    }
    let number = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '.' | ',' | '+' | '-');
    let all: String = line[group.start()..].chars().take_while(number).take(MOST_SHOWN).collect();
    let (name, taken) = (&pattern.metric.name, group.as_str());
    Some(Err(format!("metric '{name}': the pattern took '{taken}' of '{all}'")))
}

fn no_group(name: &str, regex: &str) -> String {
    format!(
        "the pattern '{regex}' of metric '{name}' has no group; put parentheses around the number, e.g. ([0-9.]+)"
    )
}

fn bad_regex(name: &str, regex: &str, error: &regex::Error) -> String {
    // The last line of a regex error says what is wrong; those before it draw where.
    let why = error.to_string();
    let why = why.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
    format!("the pattern '{regex}' of metric '{name}' is not a regular expression: {why}")
}

impl Wanted<'_> {
    /// What a terminal would show of a line that `\r` overwrites are its pieces: a pattern with `^` or `$` means these.
    fn look_at(&mut self, line: &str) {
        self.look_at_piece(line);
        if line.contains('\r') {
            line.split('\r').for_each(|piece| self.look_at_piece(piece));
        }
    }

    fn look_at_piece(&mut self, line: &str) {
        let number = |found: Captures<'_>| {
            number_in(self.pattern, &found, line).map(|number| number.map(str::to_owned))
        };
        if let Some(number) = self.regex.captures_iter(line).filter_map(number).last() {
            self.last = Some(number);
        }
    }

    fn sample(&self, whose: &str) -> Result<Sample, String> {
        let (name, regex) = (&self.pattern.metric.name, &self.pattern.regex);
        let Some(text) = &self.last else {
            return Err(format!("metric '{name}' was not found: no line of {whose} matches '{regex}'"));
        };
        let value = self.pattern.value(text.as_ref().map_err(Clone::clone)?)?;
        Ok(Sample { metric: self.pattern.metric.clone(), value })
    }
}

impl MetricPattern {
    /// Reads `name=REGEX[:unit][:higher|lower]`. The regular expression may contain colons: what follows the last
    /// ones is taken off only when it is a direction or a unit assay knows (`s`, `ms`, `MiB/s`, `ops/s`, `%` …).
    /// Without a unit the values are plain counts; without a direction rates, and what is called like one, are better higher
    /// and everything else is better lower.
    ///
    /// # Errors
    /// One sentence that says what would be right.
    pub fn parse(text: &str) -> Result<MetricPattern, String> {
        let Some((name, rest)) = text.split_once('=') else {
            return Err(format!("'{text}' is not a metric; write name=REGEX[:unit][:higher|lower]"));
        };
        let name = name.trim();
        let required = name.strip_suffix('?');
        let (name, may_be_missing) = (required.unwrap_or(name), required.is_some());
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '/' | '%');
        if name.is_empty() || !name.chars().all(fits) {
            return Err(format!("'{name}' is not a metric's name; use letters, digits and . _ - / %"));
        }
        let (rest, better) = match rest.rsplit_once(':') {
            Some((before, "higher")) => (before, Some(Better::Higher)),
            Some((before, "lower")) => (before, Some(Better::Lower)),
            _ => (rest, None),
        };
        let (regex, unit, factor) = match rest
            .rsplit_once(':')
            .map(|(before, last)| (before, Unit::parse(last), last))
        {
            Some((before, (unit, factor), last)) if !last.is_empty() && !matches!(unit, Unit::Other(_)) => {
                (before, unit, factor)
            }
            _ => (rest, Unit::Count, 1.0),
        };
        if regex.is_empty() {
            return Err(format!("metric '{name}' has no regular expression; write {name}=REGEX"));
        }
        match Regex::new(regex) {
            Ok(compiled) if compiled.captures_len() < 2 => return Err(no_group(name, regex)),
            Ok(_) => {}
            Err(error) => return Err(bad_regex(name, regex, &error)),
        }
        let of_unit = (unit != Unit::Count).then(|| unit.usual_better());
        let known = better.or(of_unit).or_else(|| Better::implied(name));
        let better = known.unwrap_or(Better::Lower);
        let metric = Metric { job: String::new(), name: name.to_owned(), unit, better };
        Ok(MetricPattern {
            metric,
            factor,
            regex: regex.to_owned(),
            is_guess: known.is_none(),
            may_be_missing,
        })
    }

    /// What the group's text comes to, in the base unit.
    ///
    /// # Errors
    /// One sentence: it is no number.
    pub fn value(&self, text: &str) -> Result<f64, String> {
        let number = text.trim().parse::<f64>().ok().filter(|value| value.is_finite());
        let (name, regex) = (&self.metric.name, &self.regex);
        let reason = || format!("metric '{name}': '{text}', found by '{regex}', is not a finite number");
        number.map(|value| value * self.factor).ok_or_else(reason)
    }

    /// The name in a pattern as written, right or wrong otherwise.
    #[must_use]
    pub fn name_in(text: &str) -> &str {
        text.split('=').next().unwrap_or_default().trim().trim_end_matches('?')
    }

    /// That nothing says whether more or less of it is better; `None`: something does.
    #[must_use]
    pub fn guess(&self) -> Option<String> {
        let name = &self.metric.name;
        self.is_guess.then(|| {
            format!(
                "metric {name}: less is taken as better; {name}=REGEX:higher or {name}=REGEX:lower says it"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> (String, Unit, f64, Better) {
        let pattern = MetricPattern::parse(text).unwrap();
        (pattern.regex, pattern.metric.unit, pattern.factor, pattern.metric.better)
    }

    #[test]
    fn a_name_tells_the_direction_and_a_guess_is_said() {
        let of = |text: &str| {
            let pattern = MetricPattern::parse(text).unwrap();
            (pattern.metric.better, pattern.guess().is_some())
        };
        assert_eq!(of("tps=(.)"), (Better::Higher, false));
        assert_eq!(of("read.throughput=(.)"), (Better::Higher, false));
        assert_eq!(of("ops_per_ms=(.)"), (Better::Higher, false));
        assert_eq!(of("p99_latency=(.)"), (Better::Lower, false));
        assert_eq!(of("score=(.)"), (Better::Lower, true));
        assert_eq!(of("score=(.):higher"), (Better::Higher, false));
        assert_eq!(of("lag=(.):ms"), (Better::Lower, false));
    }

    #[test]
    fn units_and_directions_are_taken_from_the_right() {
        let regex = |text: &str| text.to_owned();
        assert_eq!(parsed("a=x (.)"), (regex("x (.)"), Unit::Count, 1.0, Better::Lower));
        assert_eq!(parsed("a=x: (.)"), (regex("x: (.)"), Unit::Count, 1.0, Better::Lower));
        assert_eq!(parsed("a=x: (.):ops/s"), (regex("x: (.)"), Unit::PerSecond, 1.0, Better::Higher));
        assert_eq!(parsed("a=t (.):ms:higher"), (regex("t (.)"), Unit::Nanoseconds, 1e6, Better::Higher));
        assert_eq!(parsed("a=(.):higher"), (regex("(.)"), Unit::Count, 1.0, Better::Higher));
        assert_eq!(parsed("a=(?:s|ms) (.):x"), (regex("(?:s|ms) (.):x"), Unit::Count, 1.0, Better::Lower));
        assert_eq!(parsed("a=k=(.)"), (regex("k=(.)"), Unit::Count, 1.0, Better::Lower));
    }

    #[test]
    fn a_line_that_is_overwritten_is_looked_at_piece_by_piece() {
        let patterns =
            ["a=^done: ([0-9]+)", "b=([0-9]+) ops$"].map(|text| MetricPattern::parse(text).unwrap());
        let mut wanted = Patterns::of(&patterns).unwrap();
        wanted.look_at("10 %: 5 ops\r100 %: 7 ops\rdone: 3 in all");
        let (samples, missing) = wanted.samples("the output");
        assert_eq!((samples.iter().map(|s| s.value).collect::<Vec<_>>(), missing), (vec![3.0, 7.0], None));
        wanted.look_at("done: 4");
        assert_eq!(wanted.samples("the output").0[0].value, 4.0, "the last line counts");
    }

    #[test]
    fn a_number_is_not_cut_short() {
        let taken = |pattern: &str, line: &str| {
            let patterns = [MetricPattern::parse(&format!("x={pattern}")).unwrap()];
            let mut wanted = Patterns::of(&patterns).unwrap();
            wanted.look_at(line);
            let (samples, missing) = wanted.samples("the output");
            samples.first().map(|sample| sample.value).ok_or(missing.unwrap_or_default())
        };
        for (pattern, line, all) in [
            ("tps ([0-9.]+)", "tps 1,234.5", "'1' of '1,234.5'"),
            ("tps ([0-9.]+)", "tps 12,5 s", "'12' of '12,5'"),
            ("tps ([0-9.]+)", "tps 1.5e+06", "'1.5' of '1.5e+06'"),
            ("tps ([0-9.]+)", "tps 3E9", "'3' of '3E9'"),
            ("tps ([0-9])", "tps 17", "'1' of '17'"),
            ("tps ([0-9.]+).*ms", "tps 1,234.5 in 7 ms", "'1' of '1,234.5'"),
        ] {
            let error = taken(pattern, line).unwrap_err();
            assert_eq!(error, format!("metric 'x': the pattern took {all}"), "{line}");
        }
        for (pattern, line, value) in [
            ("tps ([0-9.]+)", "tps 12, 5 s", 12.0),
            ("tps ([0-9.]+)", "tps 12ms", 12.0),
            ("tps ([0-9.]+)", "tps 12each", 12.0),
            ("tps ([0-9]+),", "tps 12,15", 12.0),
            ("^(?:[^,]*,){5}([0-9.]+)", "a,b,c,d,e,12,13", 12.0),
            ("tps ([0-9.e+]+)", "tps 1.5e+06", 1.5e6),
        ] {
            assert_eq!(taken(pattern, line), Ok(value), "{line}");
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (text, part) in [
            ("tps", "write name=REGEX"),
            ("=(.)", "not a metric's name"),
            ("a b=(.)", "not a metric's name"),
            ("a=", "no regular expression"),
            ("a=:s", "no regular expression"),
            ("a=tps [0-9]+", "no group"),
            ("a=([0-9]+", "unclosed group"),
        ] {
            let message = MetricPattern::parse(text).unwrap_err();
            assert!(message.contains(part), "{text}: {message}");
        }
    }
}
