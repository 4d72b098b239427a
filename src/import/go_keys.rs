//! Lines `key: value` of Go's benchmark text that vary within an input: which of them tell benchmarks apart.
//!
//! Enters: the observations of all files, with what each text had told before each result. Leaves: rows, or notes of what counts as
//! repeats.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::clusters::{self, Clusters};
use super::go_benchmark::{BENCHMARK, PACKAGE};
use super::observation::{Batch, Observation};
use super::time_stamps;

/// Keys that are no configuration, but of a log.
const LOG: [&str; 9] = ["warning", "warn", "error", "info", "note", "debug", "panic", "fatal", "trace"];

/// Keys that vary within a side are rows, as what was run on XFS is no repeat of what was run on ext4: but those that tell which trials
/// belong together or when they were, those that number the repeats, lines of a log, and those with which hardly a row would have all
/// sides.
pub(super) fn settle(batch: &mut Batch, clusters: &Clusters) {
    let no_row = |key: &str| {
        let tells_else = key == PACKAGE || is_of_log(key) || time_stamps::may_be(key);
        tells_else || clusters.wants(key, false) || clusters::passes(key)
    };
    let sides = batch.observations.iter().map(|one| one.side).collect::<BTreeSet<usize>>().len();
    for key in std::mem::take(&mut batch.configuration).into_iter().filter(|key| !no_row(key)) {
        let trials = told(batch, &key);
        let mut of_side: BTreeMap<usize, BTreeSet<&str>> = BTreeMap::new();
        for (one, value) in &trials {
            of_side.entry(one.side).or_default().insert(value);
        }
        let varying = of_side.values().find(|values| values.len() > 1);
        let Some(values) = varying.filter(|_| !numbers_trials(&trials)) else { continue };
        let shown = values.iter().take(4).copied().collect::<Vec<&str>>().join(", ");
        let more = if values.len() > 4 { ", …" } else { "" };
        if numbers_files(&trials) || !are_rows(&trials, sides) {
            let note = format!(
                "key '{key}' varies within an input ({shown}{more}): its results count as repeats of each other"
            );
            batch.note(note);
            continue;
        }
        let note = format!(
            "key '{key}' varies within an input ({shown}{more}) and makes rows; --cluster {key} would judge by its values"
        );
        let value = |one: &Observation| value_in(batch, one, &key).map(str::to_owned);
        let rows: Vec<Option<String>> = batch.observations.iter().map(value).collect();
        for (one, value) in batch.observations.iter_mut().zip(rows) {
            one.rows.extend(value.map(|value| (key.clone(), value)));
        }
        batch.facts.iter_mut().for_each(|facts| facts.retain(|name| name != key));
        batch.note(note);
    }
}

/// A trial of Go's text, and the value that a key has for it.
type Told<'a> = (&'a Observation, &'a str);

/// Empty: the text has not told the key by then; `None`: it is no trial of Go's text.
fn value_in<'a>(batch: &'a Batch, one: &Observation, key: &str) -> Option<&'a str> {
    if !one.rows.iter().any(|(factor, _)| factor == BENCHMARK) {
        return None;
    }
    let facts = one.facts.map(|at| &batch.facts[at as usize]);
    Some(facts.and_then(|facts| facts.get(key)).unwrap_or_default())
}

fn told<'a>(batch: &'a Batch, key: &str) -> Vec<Told<'a>> {
    batch.observations.iter().filter_map(|one| Some((one, value_in(batch, one, key)?))).collect()
}

/// Whether a line `key: value` is what a program has to say, and not what it was run with.
fn is_of_log(key: &str) -> bool {
    LOG.contains(&key) || key.ends_with(".go")
}

/// Whether a key is another number in each trial.
fn numbers_trials(told: &[Told<'_>]) -> bool {
    let mut met = HashSet::new();
    told.iter().all(|(one, value)| value.parse::<f64>().is_ok() && met.insert((one.side, &one.rows, *value)))
}

/// Whether a key counts the files, of which each may have several trials: `run: 1` to `run: 10`.
fn numbers_files(told: &[Told<'_>]) -> bool {
    let mut of_file: BTreeMap<(usize, usize), &str> = BTreeMap::new();
    for (one, value) in told {
        if *of_file.entry((one.side, one.file)).or_insert(value) != *value {
            return false;
        }
    }
    let mut met = HashSet::new();
    let is_another = of_file.iter().all(|((side, _), value)| met.insert((*side, *value)));
    let numbers: Option<BTreeSet<u64>> = of_file.values().map(|value| value.parse::<u64>().ok()).collect();
    let numbers = numbers.unwrap_or_default();
    let span = numbers.last().zip(numbers.first()).map(|(last, first)| last - first);
    is_another && span.is_some_and(|span| span == numbers.len() as u64 - 1)
}

/// Whether the values of a key tell rows apart: the sides have the same ones, or share those of at least half of the trials. A value that
/// each has only one trial of, as a line of a log in front of each result, tells nothing apart.
fn are_rows(told: &[Told<'_>], sides: usize) -> bool {
    let mut of_side: BTreeMap<usize, BTreeSet<&str>> = BTreeMap::new();
    let (mut met, mut is_repeated) = (HashSet::new(), false);
    for (one, value) in told {
        of_side.entry(one.side).or_default().insert(value);
        is_repeated |= !met.insert((one.side, *value));
    }
    if of_side.len() < sides {
        return false;
    }
    let mut sets = of_side.values();
    let first = sets.next();
    let are_equal = sides > 1 && sets.all(|others| Some(others) == first);
    let is_shared = |value: &str| of_side.values().all(|values| values.contains(value));
    let shared = told.iter().filter(|(_, value)| is_shared(value)).count();
    are_equal || is_repeated && shared * 2 >= told.len()
}

#[cfg(test)]
mod tests {
    use super::super::go_benchmark;
    use super::*;

    /// The rows of texts, each a (side, text) and a file, and the notes.
    fn settled(texts: &[(usize, String)]) -> (BTreeSet<String>, Vec<String>) {
        let mut whole = Batch::default();
        for (file, (side, text)) in texts.iter().enumerate() {
            let mut batch = Batch::default();
            go_benchmark::read(text, "f", *side, &[], &mut batch).unwrap();
            batch.observations.iter_mut().for_each(|one| one.file = file);
            whole.append(batch);
        }
        go_benchmark::settle(&mut whole, &Clusters::Automatic);
        let of = |one: &Observation| {
            one.rows.iter().map(|(_, level)| level.as_str()).collect::<Vec<_>>().join(" ")
        };
        (whole.observations.iter().map(of).collect(), whole.notes)
    }

    #[test]
    fn keys_with_which_no_row_has_both_sides_are_none() {
        let of = |side: usize, value: &str| {
            (side, format!("commit: {value}\nBenchmarkA 1 5 ns/op\nBenchmarkA 1 6 ns/op\n"))
        };
        let (rows, notes) = settled(&[of(0, "a1"), of(0, "b2"), of(1, "c3"), of(1, "d4")]);
        assert_eq!(rows, BTreeSet::from(["A".to_owned()]));
        let told = "key 'commit' varies within an input (a1, b2): its results count as repeats of each other";
        assert_eq!(notes, [told]);
        let (rows, _) = settled(&[of(0, "a1"), of(0, "b2"), of(1, "b2"), of(1, "a1")]);
        assert_eq!(rows, BTreeSet::from(["A a1".to_owned(), "A b2".to_owned()]));
    }

    #[test]
    fn a_number_a_file_numbers_the_repeats() {
        let results = "BenchmarkA 1 5 ns/op\nBenchmarkA 1 6 ns/op\n";
        let of = |side: usize, number: usize| (side, format!("run: {number}\n{results}"));
        let texts: Vec<_> = (1..=10).flat_map(|number| [of(0, number), of(1, number)]).collect();
        let (rows, notes) = settled(&texts);
        assert_eq!(rows, BTreeSet::from(["A".to_owned()]));
        assert!(notes[0].starts_with("key 'run' varies within an input (1, "), "{notes:?}");
        // Sizes are not counted.
        let sizes: Vec<_> = [4, 64].into_iter().flat_map(|size| [of(0, size), of(1, size)]).collect();
        assert_eq!(settled(&sizes).0, BTreeSet::from(["A 4".to_owned(), "A 64".to_owned()]));
    }

    #[test]
    fn lines_of_a_log_are_no_rows() {
        for key in ["warning", "skew", "a_test.go"] {
            let of = |side: usize| {
                let line = |at: usize| format!("{key}: skew 0.01{}s\nBenchmarkA 1 5 ns/op\n", at + 2 * side);
                (side, (0..4).map(line).collect::<String>())
            };
            assert_eq!(settled(&[of(0), of(1)]).0, BTreeSet::from(["A".to_owned()]), "{key}");
        }
    }
}
