//! Go's benchmark text (`go test -bench`, benchstat's input): a row a benchmark, a metric a unit. The package becomes a
//! row where there are several (in `assemble`), and is a fact besides.
//!
//! Format: golang.org/design/14313-benchmark-format. `Unit` lines with `better=` are from
//! golang.org/x/perf/benchfmt.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::record::{FailureKind, HostFacts, Metric, Status};
use crate::units::{Better, Unit};

use super::clusters::Clusters;
use super::columns::ValueColumn;
use super::error::{ImportError, Problem};
use super::go_keys;
use super::observation::{Batch, Observation};
use super::recognise::is_go_result;

/// The row's factor that is left out when all benchmarks are of one package.
pub(super) const PACKAGE: &str = "pkg";
/// The row's factor that names a benchmark.
pub(super) const BENCHMARK: &str = "benchmark";
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
    batch.processors.extend(processors(text).map(|suffix| (side, suffix)));
    let is_parent = |name: &str| {
        let below = format!("{name}/");
        text.lines().any(|line| line.trim_start().trim_start_matches("--- FAIL: ").starts_with(&below))
    };
    for (index, line) in text.lines().enumerate() {
        if is_go_result(line) {
            let mut observation = result(line, &package, (said, &betters), batch)
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
            let mut observation = named(name, &package);
            observation.side = side;
            observation.facts = Some(batch.facts(facts.clone()));
            observation.status = Status::failed(FailureKind::Passing, "go test says FAIL");
            batch.observe(observation).map_err(|problem| ImportError::new(origin, problem))?;
        } else if let Some((key, value)) = configuration(line) {
            if key == "pkg" {
                value.clone_into(&mut package);
            }
            // Each result carries all of them.
            if facts.count() < MOST_FACTS {
                facts.set(key, value);
                batch.configuration.insert(key.to_owned());
            }
        } else if let Some((unit, better)) = unit_line(line) {
            // What a person says comes first.
            betters.entry(unit.to_owned()).or_insert(better);
        }
    }
    Ok(())
}

/// What can be said only when all files are read: which numbers of processors and which keys tell benchmarks apart.
pub(super) fn settle(batch: &mut Batch, clusters: &Clusters) {
    without_processors(batch);
    go_keys::settle(batch, clusters);
}

/// Takes the number of processors off the names, where every side has one of its own; with several in a side it tells benchmarks apart,
/// those of the other sides with it.
fn without_processors(batch: &mut Batch) {
    let of_sides = std::mem::take(&mut batch.processors);
    let mut sides = BTreeSet::new();
    if !of_sides.iter().all(|(side, _)| sides.insert(*side)) {
        return;
    }
    let Some(suffixes) = of_sides.into_iter().map(|(_, suffix)| suffix).collect::<Option<BTreeSet<String>>>()
    else {
        return;
    };
    let suffixes: Vec<String> = suffixes.into_iter().filter(|suffix| !suffix.is_empty()).collect();
    let mut with_fact: HashMap<(Option<u32>, usize), u32> = HashMap::new();
    let mut observations = std::mem::take(&mut batch.observations);
    for observation in &mut observations {
        let Some((_, name)) = observation.rows.iter_mut().find(|(factor, _)| factor == BENCHMARK) else {
            continue;
        };
        let Some(which) = suffixes.iter().position(|suffix| name.ends_with(suffix)) else { continue };
        name.truncate(name.len() - suffixes[which].len());
        // A larger number belongs to the name of a benchmark.
        let processors = suffixes[which].trim_start_matches('-');
        if processors.len() < 4 {
            let known = observation.facts;
            let facts = *with_fact.entry((known, which)).or_insert_with(|| {
                let mut facts = known.map_or_else(HostFacts::default, |at| batch.facts[at as usize].clone());
                facts.set("gomaxprocs", processors);
                batch.facts(facts)
            });
            observation.facts = Some(facts);
        }
    }
    batch.observations = observations;
}

/// `-8` when every benchmark of the text has it, and an empty one when none has any, as with one processor; nothing in it where they
/// differ.
fn processors(text: &str) -> Option<Option<String>> {
    let names =
        text.lines().filter(|line| is_go_result(line)).filter_map(|line| line.split_whitespace().next());
    let suffix = |name: &str| {
        let number = name.rsplit_once('-').map(|(_, number)| number);
        let is_number = |number: &&str| number.bytes().all(|byte| byte.is_ascii_digit());
        number.filter(is_number).map_or_else(String::new, |number| format!("-{number}"))
    };
    let mut all: BTreeSet<String> = names.map(suffix).collect();
    let first = all.pop_first()?;
    Some(all.is_empty().then_some(first))
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
fn named(name: &str, package: &str) -> Observation {
    let bare = name.strip_prefix("Benchmark").unwrap_or(name);
    let mut observation = Observation::new(0);
    if !package.is_empty() {
        observation.rows.push((PACKAGE.to_owned(), package.to_owned()));
    }
    observation.rows.push((BENCHMARK.to_owned(), bare.to_owned()));
    observation
}

fn result(
    line: &str,
    package: &str,
    units: (&[ValueColumn], &BTreeMap<String, Better>),
    batch: &mut Batch,
) -> Result<Observation, Problem> {
    let mut fields = line.split_whitespace();
    let name = fields.next().unwrap_or_default();
    fields.next();
    let mut observation = named(name, package);
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
        let (metric, factor) = metric(unit, units, batch);
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

/// A Go unit as a metric: its name stays the Go unit, its values go to the base unit. `said` is what a person says of units.
fn metric(
    go_unit: &str,
    (said, betters): (&[ValueColumn], &BTreeMap<String, Better>),
    batch: &mut Batch,
) -> (Metric, f64) {
    let of_person = said.iter().find(|column| column.column == go_unit && column.has_unit());
    if let Some(column) = of_person {
        return (Metric { name: go_unit.to_owned(), ..column.metric() }, column.factor);
    }
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
                batch.guessed(go_unit);
                batch.note(format!(
                    "unit {go_unit}: less is taken as better; a line `Unit {go_unit} better=higher`, or --value {go_unit}:higher, \
                     says otherwise"
                ));
            }
            guessed.better
        }
        known => known.usual_better(),
    });
    (Metric::new("", go_unit, unit, better), factor)
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
        without_processors(&mut batch);
        let [only] = batch.observations.as_slice() else { panic!("one result") };
        assert_eq!(only.rows[1], ("benchmark".to_owned(), "X/size=4k".to_owned()));
        assert_eq!(only.values.iter().map(|(_, value)| *value).collect::<Vec<_>>(), [123.0, 2.5e6, 8.0, 3.0]);
        assert_eq!(batch.metrics[1].better, Better::Higher);
        assert_eq!(batch.metrics[3].better, Better::Higher);
        let facts = &batch.facts[only.facts.unwrap() as usize];
        assert_eq!((facts.get("goos"), facts.get("gomaxprocs")), (Some("linux"), Some("8")));
    }

    #[test]
    fn numbers_of_processors_stay_where_a_file_has_several() {
        let mut batch = Batch::default();
        read("BenchmarkA-8 1 5 ns/op\n", "f", 0, &[], &mut batch).unwrap();
        read("BenchmarkA-4 1 5 ns/op\nBenchmarkA-8 1 5 ns/op\n", "f", 1, &[], &mut batch).unwrap();
        without_processors(&mut batch);
        let names: Vec<&str> = batch.observations.iter().map(|found| found.rows[0].1.as_str()).collect();
        assert_eq!(names, ["A-8", "A-4", "A-8"]);
        // With one processor there is no number.
        let mut batch = Batch::default();
        read("BenchmarkA 1 5 ns/op\n", "f", 0, &[], &mut batch).unwrap();
        read("BenchmarkA-8 1 5 ns/op\n", "f", 1, &[], &mut batch).unwrap();
        without_processors(&mut batch);
        assert!(batch.observations.iter().all(|found| found.rows[0].1 == "A"), "{:?}", batch.observations);
    }

    #[test]
    fn numbers_of_processors_stay_where_a_side_has_several() {
        for (other, names) in [
            ("BenchmarkA-8 1 5 ns/op\n", ["A-4", "A-8", "A-4", "A-8"]),
            ("BenchmarkA 1 5 ns/op\n", ["A-4", "A", "A-4", "A"]),
            ("BenchmarkA-4 1 6 ns/op\n", ["A"; 4]),
        ] {
            let mut batch = Batch::default();
            for side in 0..2 {
                read("BenchmarkA-4 1 5 ns/op\n", "f", side, &[], &mut batch).unwrap();
                read(other, "f", side, &[], &mut batch).unwrap();
            }
            without_processors(&mut batch);
            let found: Vec<&str> = batch.observations.iter().map(|found| found.rows[0].1.as_str()).collect();
            assert_eq!(found, names);
        }
    }

    #[test]
    fn keys_that_vary_within_a_side_are_rows() {
        let rows = |keys: [&str; 2], clusters: &Clusters| {
            let mut batch = Batch::default();
            for side in 0..2 {
                for key in keys {
                    let text =
                        format!("{key}\nside: {side}\nBenchmarkA-8 1 5 ns/op\nBenchmarkA-8 1 6 ns/op\n");
                    read(&text, "f", side, &[], &mut batch).unwrap();
                }
            }
            settle(&mut batch, clusters);
            let of = |one: &Observation| {
                one.rows.iter().map(|(_, level)| level.clone()).collect::<Vec<_>>().join(" ")
            };
            (
                batch
                    .observations
                    .iter()
                    .map(of)
                    .collect::<BTreeSet<String>>()
                    .into_iter()
                    .collect::<Vec<_>>(),
                batch.notes,
            )
        };
        let (found, notes) = rows(["fs: ext4", "fs: xfs"], &Clusters::Automatic);
        assert_eq!(found, ["A ext4", "A xfs"]);
        assert!(
            notes[0].starts_with("key 'fs' varies within an input (ext4, xfs) and makes rows"),
            "{notes:?}"
        );
        assert_eq!(rows(["fs: xfs", "fs: xfs"], &Clusters::Automatic).0, ["A"]);
        for (keys, clusters) in [
            (["boot: 1", "boot: 2"], Clusters::Automatic),
            (["boot: 1", "boot: 2"], Clusters::Never),
            (["fs: ext4", "fs: xfs"], Clusters::By("fs".to_owned())),
            (["date: 2026-01-02", "date: 2026-01-03"], Clusters::Never),
        ] {
            assert_eq!(rows(keys, &clusters).0, ["A"], "{keys:?}");
        }
        // One that is another one in each trial numbers them.
        let mut batch = Batch::default();
        for run in 0..4 {
            read(&format!("run: {run}\nBenchmarkA 1 5 ns/op\n"), "f", 0, &[], &mut batch).unwrap();
        }
        settle(&mut batch, &Clusters::Automatic);
        assert!(batch.observations.iter().all(|one| one.rows.len() == 1) && batch.notes.is_empty());
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
        without_processors(&mut batch);
        let failed: Vec<bool> =
            batch.observations.iter().map(|found| matches!(found.status, Status::Failed { .. })).collect();
        assert_eq!(failed, [false, true, false]);
        assert_eq!(batch.observations[1].rows, [("benchmark".to_owned(), "Scan".to_owned())]);
        assert!(batch.metrics.iter().all(|metric| metric.better == Better::Higher), "{:?}", batch.metrics);
        let facts = &batch.facts[batch.observations[0].facts.unwrap() as usize];
        assert_eq!((facts.get("gomaxprocs"), batch.notes.len()), (Some("8"), 0));
        let mut batch = Batch::default();
        read("BenchmarkScan-8 10 5 rows\n", "f", 0, &[], &mut batch).unwrap();
        assert!(batch.notes[0].contains("unit rows: less is taken as better"), "{:?}", batch.notes);
    }
}
