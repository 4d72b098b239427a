//! The command engine: any program as a trial.
//!
//! Enters: [`Task::command`], run without a shell in the user's own directory. Leaves: its wall time, CPU time,
//! context switches and memory, and what `--metric` patterns read from its output. It must not know what the
//! program does. A pattern that matches several times gives the last match: tools print their summary last.

use regex::Regex;

use super::child::{self, Program};
use super::tool;
use super::{Engine, EngineError, MetricPattern, Probe, Task};
use crate::record::{FailureKind, Metric, Outcome, Sample};
use crate::units::{Better, Unit};

/// The command engine.
#[derive(Clone, Copy, Debug, Default)]
pub struct Command;

impl Engine for Command {
    fn probe(&self) -> Result<Probe, EngineError> {
        Ok(Probe { version: concat!("command ", env!("CARGO_PKG_VERSION")).to_owned(), path: None })
    }

    /// Runs the command with the task's variables and `ASSAY_DIRECTORY` in its environment. The largest resident
    /// set, `max_rss`, is at least that of the assay process that started it: Linux counts it across exec.
    fn run(&self, task: &Task) -> Result<Outcome, EngineError> {
        if task.command.is_empty() {
            return Err(EngineError::Unsupported {
                reason: "the command engine was given no command; write it behind '--'".to_owned(),
            });
        }
        let mut wanted = compile(&task.patterns)?;
        let program = Program {
            argv: task.command.clone(),
            directory: None,
            variables: child::environment(task),
            timeout_s: task.timeout_s,
        };
        let ended = program.run(&mut |line| wanted.iter_mut().for_each(|w| w.look_at(line)))?;
        let mut samples = tool::usage(&ended);
        if let Some(reason) = ended.end.trouble(&task.command[0]) {
            return Err(EngineError::Failed {
                kind: FailureKind::Passing,
                reason,
                command: program.shell_line(),
                output: ended.tail,
                so_far: samples,
            });
        }
        for want in &wanted {
            match want.sample() {
                Ok(sample) => samples.push(sample),
                Err(reason) => {
                    let command = program.shell_line();
                    return Err(EngineError::Failed {
                        kind: FailureKind::Passing,
                        reason,
                        command,
                        output: ended.tail,
                        so_far: samples,
                    });
                }
            }
        }
        Ok(Outcome { samples, ..Outcome::default() })
    }
}

/// A pattern at work: its last match so far.
struct Wanted<'a> {
    pattern: &'a MetricPattern,
    regex: Regex,
    last: Option<String>,
}

fn compile(patterns: &[MetricPattern]) -> Result<Vec<Wanted<'_>>, EngineError> {
    let compiled = patterns.iter().map(|pattern| match Regex::new(&pattern.regex) {
        Ok(regex) if regex.captures_len() >= 2 => Ok(Wanted { pattern, regex, last: None }),
        Ok(_) => Err(no_group(&pattern.metric.name, &pattern.regex)),
        Err(error) => Err(bad_regex(&pattern.metric.name, &pattern.regex, &error)),
    });
    compiled.collect::<Result<_, String>>().map_err(|reason| EngineError::Unsupported { reason })
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
    format!("the pattern '{regex}' of metric '{name}' is no regular expression: {why}")
}

impl Wanted<'_> {
    fn look_at(&mut self, line: &str) {
        if let Some(group) = self.regex.captures_iter(line).filter_map(|found| found.get(1)).last() {
            self.last = Some(group.as_str().to_owned());
        }
    }

    fn sample(&self) -> Result<Sample, String> {
        let (name, regex) = (&self.pattern.metric.name, &self.pattern.regex);
        let Some(text) = &self.last else {
            return Err(format!("metric '{name}' was not found: no line of the output matches '{regex}'"));
        };
        match text.trim().parse::<f64>() {
            Ok(value) if value.is_finite() => {
                Ok(Sample { metric: self.pattern.metric.clone(), value: value * self.pattern.factor })
            }
            _ => Err(format!("metric '{name}': '{text}', found by '{regex}', is not a finite number")),
        }
    }
}

impl MetricPattern {
    /// Reads `name=REGEX[:unit][:higher|lower]`. The regular expression may contain colons: what follows the last
    /// ones is taken off only when it is a direction or a unit assay knows (`s`, `ms`, `MiB/s`, `ops/s`, `%` …).
    /// Without a unit the values are plain counts; without a direction rates are better higher and everything
    /// else is better lower.
    ///
    /// # Errors
    /// One sentence that says what would be right.
    pub fn parse(text: &str) -> Result<MetricPattern, String> {
        let Some((name, rest)) = text.split_once('=') else {
            return Err(format!("'{text}' is not a metric; write name=REGEX[:unit][:higher|lower]"));
        };
        let name = name.trim();
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
        let better = better.unwrap_or_else(|| unit.usual_better());
        let metric = Metric { job: String::new(), name: name.to_owned(), unit, better };
        Ok(MetricPattern { metric, factor, regex: regex.to_owned() })
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

    fn trial(script: &str, patterns: &[&str]) -> Result<Outcome, EngineError> {
        let command = ["sh", "-c", script].map(str::to_owned).to_vec();
        let patterns = patterns.iter().map(|text| MetricPattern::parse(text).unwrap()).collect();
        let variables = vec![("clients".to_owned(), "8".to_owned())];
        Command.run(&Task { command, patterns, variables, directory: "/tmp/d".into(), ..Task::default() })
    }

    fn value(outcome: &Outcome, name: &str) -> f64 {
        outcome.samples.iter().find(|s| s.metric.name == name).unwrap().value
    }

    #[test]
    fn the_last_match_counts_and_units_are_converted() {
        let script =
            "echo 'lat 1 ms lat 2 ms'; echo 'lat 3.5 ms' >&2; echo done $clients in $ASSAY_DIRECTORY";
        let patterns = ["lat=lat ([0-9.]+):ms", "n=done ([0-9]+) in /tmp/d$"];
        let outcome = trial(script, &patterns).unwrap();
        assert_eq!((value(&outcome, "lat"), value(&outcome, "n")), (3.5e6, 8.0));
        assert!(value(&outcome, "runtime") > 0.0 && value(&outcome, "max_rss") > 500_000.0);
        assert_eq!(value(&trial("echo 1 2 3", &["x=([0-9])"]).unwrap(), "x"), 3.0);
    }

    #[test]
    fn failures_name_the_command_and_show_its_output() {
        let Err(EngineError::Failed { reason, command, output, so_far, .. }) =
            trial("echo 'no space'; exit 3", &[])
        else {
            panic!("it succeeded")
        };
        assert_eq!(reason, "'sh' ended with exit code 3");
        assert_eq!(command, "env clients=8 ASSAY_DIRECTORY=/tmp/d sh -c \"echo 'no space'; exit 3\"");
        assert_eq!(output, "no space");
        assert_eq!(so_far[0].metric.name, "runtime");
    }

    #[test]
    fn a_pattern_without_a_number_is_a_failure_that_names_it() {
        for (script, part) in
            [("echo b", "metric 'x' was not found"), ("echo a nan", "'nan'"), ("echo a z", "'z'")]
        {
            match trial(script, &["x=a ([a-z]+)"]) {
                Err(EngineError::Failed { reason, .. }) => assert!(reason.contains(part), "{reason}"),
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn no_command_is_unsupported() {
        assert!(matches!(Command.run(&Task::default()), Err(EngineError::Unsupported { .. })));
    }
}
