//! Go's benchmark text (`go test -bench`, benchstat's input): a row a benchmark, a metric a unit. The package becomes a
//! row where there are several (in `assemble`), and is a fact besides.
//!
//! Format: golang.org/design/14313-benchmark-format. `Unit` lines with `better=` are from
//! golang.org/x/perf/benchfmt.

use std::collections::BTreeMap;

use crate::record::{FailureKind, HostFacts, Metric, Status};
use crate::units::{Better, Unit};

use super::columns::ValueColumn;
use super::error::{ImportError, Problem};
use super::observation::{Batch, Observation};
use super::recognise::is_go_result;

/// The row's factor that is left out when all benchmarks are of one package.
pub(super) const PACKAGE: &str = "pkg";
/// Lines `key: value` that are kept; Go writes four.
const MOST_FACTS: usize = 64;

/// `said` are the units of which a person says what is better.
pub(super) fn read(
    text: &str,
    origin: &str,
    side: usize,
    said: &[ValueColumn],
    batch: &mut Batch,
) -> Result<(), ImportError> {
    let mut facts = HostFacts::default();
    let mut package = String::new();
    let mut betters: BTreeMap<String, Better> = said
        .iter()
        .filter(|column| column.better_is_said())
        .map(|column| (column.column.clone(), column.better))
        .collect();
    let suffix = common_procs(text);
    // A larger number belongs to the name of a benchmark.
    let procs = suffix.as_deref().map(|procs| procs.trim_start_matches('-')).filter(|procs| procs.len() < 4);
    if let Some(procs) = procs {
        facts.set("gomaxprocs", procs);
    }
    let is_parent = |name: &str| {
        let below = format!("{name}/");
        text.lines().any(|line| line.trim_start().trim_start_matches("--- FAIL: ").starts_with(&below))
    };
    for (index, line) in text.lines().enumerate() {
        if is_go_result(line) {
            let row = (&*package, suffix.as_deref());
            let mut observation = result(line, row, &betters, batch)
                .map_err(|problem| ImportError::at(origin, index + 1, problem))?;
            observation.side = side;
            observation.facts = Some(batch.facts(facts.clone()));
            batch.observe(observation).map_err(|problem| ImportError::new(origin, problem))?;
        } else if let Some(name) =
            line.trim_start().strip_prefix("--- FAIL: ").filter(|name| name.starts_with("Benchmark"))
        {
            let name = name.split_whitespace().next().unwrap_or_default();
            // Go says FAIL of the benchmark that has it below itself, too.
            if is_parent(name) {
                continue;
            }
            let mut observation = named(name, (&*package, suffix.as_deref()));
            observation.side = side;
            observation.status = Status::Failed {
                kind: FailureKind::Passing,
                reason: "go test says FAIL".to_owned(),
                command: String::new(),
                output: String::new(),
            };
            batch.observe(observation).map_err(|problem| ImportError::new(origin, problem))?;
        } else if let Some((key, value)) = configuration(line) {
            if key == "pkg" {
                value.clone_into(&mut package);
            }
            // Each result carries all of them.
            if facts.0.len() < MOST_FACTS {
                facts.set(key, value);
            }
        } else if let Some((unit, better)) = unit_line(line) {
            // What a person says comes first.
            betters.entry(unit.to_owned()).or_insert(better);
        }
    }
    Ok(())
}

/// `-8` when every benchmark of the text has it: then it tells nothing apart.
fn common_procs(text: &str) -> Option<String> {
    let mut names =
        text.lines().filter(|line| is_go_result(line)).filter_map(|line| line.split_whitespace().next());
    let procs = |name: &str| {
        let (_, number) = name.rsplit_once('-')?;
        number.bytes().all(|byte| byte.is_ascii_digit()).then(|| format!("-{number}"))
    };
    let first = procs(names.next()?)?;
    names.all(|name| procs(name).as_deref() == Some(&*first)).then_some(first)
}

/// `key: value`, the key lower case and without spaces.
fn configuration(line: &str) -> Option<(&str, &str)> {
    let (key, value) = line.split_once(':')?;
    let good = key.chars().next().is_some_and(char::is_lowercase)
        && !key.chars().any(|c| c.is_whitespace() || c.is_uppercase());
    good.then(|| (key, value.trim()))
}

/// `Unit allocs/op better=lower`.
fn unit_line(line: &str) -> Option<(&str, Better)> {
    let mut fields = line.strip_prefix("Unit ")?.split_whitespace();
    let unit = fields.next()?;
    fields.find_map(|field| match field {
        "better=higher" => Some((unit, Better::Higher)),
        "better=lower" => Some((unit, Better::Lower)),
        _ => None,
    })
}

/// A result, or a failure, of the benchmark of this name.
fn named(name: &str, (package, suffix): (&str, Option<&str>)) -> Observation {
    let bare = name.strip_prefix("Benchmark").unwrap_or(name);
    let bare = suffix.and_then(|suffix| bare.strip_suffix(suffix)).unwrap_or(bare);
    let mut observation = Observation::new(0);
    if !package.is_empty() {
        observation.rows.push((PACKAGE.to_owned(), package.to_owned()));
    }
    observation.rows.push(("benchmark".to_owned(), bare.to_owned()));
    observation
}

fn result(
    line: &str,
    row: (&str, Option<&str>),
    betters: &BTreeMap<String, Better>,
    batch: &mut Batch,
) -> Result<Observation, Problem> {
    let mut fields = line.split_whitespace();
    let name = fields.next().unwrap_or_default();
    fields.next();
    let mut observation = named(name, row);
    let bare = observation.rows.last().map_or_else(String::new, |(_, bare)| bare.clone());
    while let Some(text) = fields.next() {
        let Some(unit) = fields.next() else {
            return Err(Problem::Value {
                what: bare.clone(),
                text: text.to_owned(),
                reason: "a value without a unit",
            });
        };
        let bad = |reason| Problem::Value { what: format!("{bare} {unit}"), text: text.to_owned(), reason };
        let value: f64 = text.parse().map_err(|_| bad("which is not a number"))?;
        let (metric, factor) = metric(unit, betters, batch);
        let value = value * factor;
        if !value.is_finite() {
            return Err(bad("which is not a number that can be compared"));
        }
        if value < 0.0 && !matches!(metric.unit, Unit::Other(_)) {
            return Err(bad("which cannot be negative"));
        }
        observation.values.push((batch.metric(&metric), value));
    }
    Ok(observation)
}

/// A Go unit as a metric: its name stays the Go unit, its values go to the base unit.
fn metric(go_unit: &str, betters: &BTreeMap<String, Better>, batch: &mut Batch) -> (Metric, f64) {
    let (unit, factor) = match go_unit {
        "ns/op" => (Unit::Nanoseconds, 1.0),
        "sec/op" | "s/op" => (Unit::Seconds, 1.0),
        "MB/s" => (Unit::BytesPerSecond, 1e6),
        "B/s" => (Unit::BytesPerSecond, 1.0),
        "B/op" => (Unit::Bytes, 1.0),
        "allocs/op" => (Unit::Count, 1.0),
        other => (Unit::Other(other.to_owned()), 1.0),
    };
    let better = betters.get(go_unit).copied().unwrap_or_else(|| match &unit {
        Unit::Other(_) if unit.usual_better() == Better::Lower => {
            let guessed = ValueColumn::guessed(go_unit);
            if !guessed.better_is_said() {
                batch.note(format!(
                    "unit {go_unit}: less is taken as better; a line `Unit {go_unit} better=higher`, or --value {go_unit}:higher, \
                     says otherwise"
                ));
            }
            guessed.better
        }
        known => known.usual_better(),
    });
    (Metric { job: String::new(), name: go_unit.to_owned(), unit, better }, factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_benchmarks_and_units_are_metrics() {
        let text = "goos: linux\npkg: a/b\nUnit probes/op better=higher\n\
                    BenchmarkX/size=4k-8 \t 10 \t 123 ns/op\t 2.5 MB/s\t 8 B/op\t 3 probes/op\nPASS\nok a/b 1.2s\n";
        let mut batch = Batch::default();
        read(text, "f", 0, &[], &mut batch).unwrap();
        let [only] = batch.observations.as_slice() else { panic!("one result") };
        assert_eq!(only.rows[1], ("benchmark".to_owned(), "X/size=4k".to_owned()));
        assert_eq!(only.values.iter().map(|(_, value)| *value).collect::<Vec<_>>(), [123.0, 2.5e6, 8.0, 3.0]);
        assert_eq!(batch.metrics[1].better, Better::Higher);
        assert_eq!(batch.metrics[3].better, Better::Higher);
        assert_eq!(batch.facts[0].get("goos"), Some("linux"));
    }

    #[test]
    fn a_value_without_a_unit_is_refused_with_its_line() {
        let mut batch = Batch::default();
        let error = read("\nBenchmarkX 1 5 ns/op 7\n", "f", 0, &[], &mut batch).unwrap_err();
        assert_eq!(error.to_string(), "f, line 2: X is '7', a value without a unit");
    }

    #[test]
    fn a_failed_benchmark_is_a_failed_trial_and_units_have_directions() {
        let text = "BenchmarkScan-8 10 5 rows\n--- FAIL: BenchmarkScan-8\n    x_test.go:9: no\nBenchmarkTx-8 10 7 tps\nFAIL\n";
        let mut batch = Batch::default();
        let said = [ValueColumn::parse_spec("rows:higher").unwrap()];
        read(text, "f", 0, &said, &mut batch).unwrap();
        let failed: Vec<bool> =
            batch.observations.iter().map(|found| matches!(found.status, Status::Failed { .. })).collect();
        assert_eq!(failed, [false, true, false]);
        assert_eq!(batch.observations[1].rows, [("benchmark".to_owned(), "Scan".to_owned())]);
        assert!(batch.metrics.iter().all(|metric| metric.better == Better::Higher), "{:?}", batch.metrics);
        assert_eq!((batch.facts[0].get("gomaxprocs"), batch.notes.len()), (Some("8"), 0));
        let mut batch = Batch::default();
        read("BenchmarkScan-8 10 5 rows\n", "f", 0, &[], &mut batch).unwrap();
        assert!(batch.notes[0].contains("unit rows: less is taken as better"), "{:?}", batch.notes);
    }
}
