//! What a program prints for people, read line by line with patterns: those of a program that is known, or those of `--metric`. A pattern that
//! matches once more begins the next observation, so that a file may hold several runs one behind the other.

use regex::Regex;

use super::error::{ImportError, Problem};
use super::observation::{Batch, Observation};
use crate::catalog::{KnownProgram, MetricPattern, number_in};
use crate::record::{HostFacts, Metric};

/// What the names of facts begin with that say what the program was asked for.
pub(super) const ASKED: &str = "asked.";

/// Reads what the patterns find.
pub(super) fn read(
    text: &str,
    origin: &str,
    side: usize,
    known: Option<&KnownProgram>,
    patterns: &[MetricPattern],
    batch: &mut Batch,
) -> Result<(), ImportError> {
    let reader =
        Reader::new(known, patterns).map_err(|reason| ImportError::new(origin, Problem::Tool(reason)))?;
    let found = reader.read(text).map_err(|(line, reason)| ImportError {
        origin: origin.to_owned(),
        line: Some(line),
        problem: Problem::Tool(reason),
    })?;
    if found.is_empty() {
        let names: Vec<&str> = patterns.iter().map(|pattern| pattern.metric.name.as_str()).collect();
        let reason = format!("no line matches what --metric gives for {}", names.join(", "));
        return Err(ImportError::new(origin, Problem::Tool(reason)));
    }
    // What is named first decides, whatever is printed first.
    let place = |metric: &Metric| patterns.iter().position(|pattern| pattern.metric == *metric);
    for mut one in found {
        one.values.sort_by_key(|(metric, _)| place(metric));
        let mut observation = Observation::new(side);
        let mut facts = HostFacts::default();
        facts.extend(one.asked.into_iter().map(|(name, value)| (format!("{ASKED}{name}"), value)));
        observation.facts = Some(batch.facts(facts));
        observation.values =
            one.values.iter().map(|(metric, value)| (batch.metric(metric), *value)).collect();
        batch.observe(observation).map_err(|problem| ImportError::new(origin, problem))?;
    }
    batch
        .guessed
        .extend(patterns.iter().filter(|one| one.guess().is_some()).map(|one| one.metric.name.clone()));
    Ok(())
}

/// What one run of the program was asked for, and its values.
#[derive(Clone, Debug, Default)]
struct Found<'p> {
    asked: Vec<(String, String)>,
    values: Vec<(&'p Metric, f64)>,
}

struct Reader<'p> {
    asked: Vec<(&'static str, Regex)>,
    wanted: Vec<(&'p MetricPattern, Regex)>,
}

impl<'p> Reader<'p> {
    fn new(known: Option<&KnownProgram>, patterns: &'p [MetricPattern]) -> Result<Reader<'p>, String> {
        let compiled = |regex: &str| Regex::new(regex).map_err(|error| error.to_string());
        let asked = known.map_or(&[][..], |known| known.asked);
        Ok(Reader {
            asked: asked
                .iter()
                .map(|(name, regex)| Ok((*name, compiled(regex)?)))
                .collect::<Result<_, String>>()?,
            wanted: patterns
                .iter()
                .map(|pattern| Ok((pattern, compiled(&pattern.regex)?)))
                .collect::<Result<_, String>>()?,
        })
    }

    fn read(&self, text: &str) -> Result<Vec<Found<'p>>, (usize, String)> {
        let mut all = Vec::new();
        let mut now = Found::default();
        for (at, line) in text.lines().enumerate() {
            // What overwrites itself on a terminal.
            for piece in line.split('\r') {
                self.look_at(piece, &mut now, &mut all).map_err(|reason| (at + 1, reason))?;
            }
        }
        all.push(now);
        all.retain(|found| !found.values.is_empty());
        Ok(all)
    }

    fn look_at(&self, line: &str, now: &mut Found<'p>, all: &mut Vec<Found<'p>>) -> Result<(), String> {
        for (name, regex) in &self.asked {
            let Some(value) = regex.captures(line).and_then(|groups| groups.get(1)) else { continue };
            if let Some(at) = now.asked.iter().position(|(known, _)| known == name) {
                // What was said before it holds on: a program says its size once, and each of its tests begins with a name.
                let asked = now.asked[..at].to_vec();
                all.push(std::mem::replace(now, Found { asked, values: Vec::new() }));
            }
            now.asked.push(((*name).to_owned(), value.as_str().to_owned()));
        }
        for (pattern, regex) in &self.wanted {
            let found = regex.captures(line).and_then(|found| number_in(pattern, &found, line));
            let Some(text) = found else { continue };
            let value = pattern.value(text?)?;
            if now.values.iter().any(|(known, _)| known.name == pattern.metric.name) {
                // What was asked of the program once holds for all that it prints.
                let asked = now.asked.clone();
                all.push(std::mem::replace(now, Found { asked, values: Vec::new() }));
            }
            now.values.push((&pattern.metric, value));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found<'p>(text: &str, patterns: &'p [MetricPattern], known: Option<&KnownProgram>) -> Vec<Found<'p>> {
        Reader::new(known, patterns).unwrap().read(text).unwrap()
    }

    #[test]
    fn runs_one_behind_the_other_are_told_apart() {
        let patterns =
            ["tps=tps ([0-9]+):/s", "lat=lat ([0-9]+):ms"].map(|text| MetricPattern::parse(text).unwrap());
        let all = found("lat 1\ntps 10\nlat 2\ntps 20\ntps 30\n", &patterns, None);
        let values: Vec<Vec<f64>> =
            all.iter().map(|found| found.values.iter().map(|(_, value)| *value).collect()).collect();
        assert_eq!(values, [vec![1e6, 10.0], vec![2e6, 20.0], vec![30.0]]);
    }

    #[test]
    fn what_a_known_program_was_asked_for_is_read() {
        let text = include_str!("../../tests/data/printed/db_bench.txt");
        let known = KnownProgram::named("db_bench").unwrap();
        let patterns = known.patterns();
        let all = found(text, &patterns, Some(known));
        let benchmark = |found: &Found<'_>| {
            found.asked.iter().find(|(name, _)| name == "benchmark").map(|(_, value)| value.clone())
        };
        let benchmarks: Vec<String> = all.iter().filter_map(benchmark).collect();
        assert_eq!(benchmarks, ["fillseq", "readrandom"]);
        assert_eq!(all[0].values[0], (&patterns[0].metric, 334_604.0));
    }

    #[test]
    fn a_value_that_is_no_number_names_its_line() {
        let patterns = [MetricPattern::parse("x=x is (.*)").unwrap()];
        let error = Reader::new(None, &patterns).unwrap().read("a\nx is slow\n").unwrap_err();
        assert_eq!(error.0, 2);
        assert!(error.1.contains("'slow'"), "{}", error.1);
        let patterns = [MetricPattern::parse("tps=tps ([0-9.]+)").unwrap()];
        let error = Reader::new(None, &patterns).unwrap().read("tps 7\ntps 1,234.5\n").unwrap_err();
        assert_eq!(error, (2, "metric 'tps': the pattern took '1' of '1,234.5'".to_owned()));
    }
}
