//! What was asked of fio, and of other programs that say it, and varies within an input: rows, as files of different block sizes are no
//! repeats of each other.
//!
//! Enters: observations whose facts have the options. Leaves: observations with rows, and facts without what became one.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::fio::{OPTION, PLACES};
use super::observation::Batch;
use super::printed::ASKED;
use crate::record::HostFacts;

/// The rest of the name of a fact that says what a program was asked for.
fn asked_for(name: &str) -> Option<&str> {
    name.strip_prefix(OPTION).or_else(|| name.strip_prefix(ASKED)).filter(|_| name != "fio.version")
}

/// fio options, and what another program says it was asked for, that vary inside an input become rows: files of different block sizes are not repeats of each other.
pub(super) fn settle(batch: &mut Batch, labels: &[String]) {
    let mut used: BTreeSet<(usize, u32)> = BTreeSet::new();
    for observation in &batch.observations {
        if let Some(facts) = observation.facts {
            used.insert((observation.side, facts));
        }
    }
    let names: BTreeSet<&str> =
        batch.facts.iter().flat_map(HostFacts::names).filter(|name| asked_for(name).is_some()).collect();
    let varies = |name: &str| {
        let mut first: BTreeMap<usize, Option<&str>> = BTreeMap::new();
        used.iter().any(|(side, facts)| {
            let value = batch.facts[*facts as usize].get(name);
            *first.entry(*side).or_insert(value) != value
        })
    };
    let mut varying: Vec<String> = names.into_iter().filter(|name| varies(name)).map(str::to_owned).collect();
    let places = PLACES.into_iter().filter_map(|place| Some((place, several_places(batch, place)?)));
    for (place, of_sides) in places.collect::<Vec<_>>() {
        if are_rows(batch, &of_sides) {
            varying.push(place.to_owned());
        } else {
            note_repeats(batch, place, &of_sides, labels);
        }
    }
    if varying.is_empty() {
        return;
    }
    for observation in &mut batch.observations {
        let facts = observation.facts.map(|facts| &batch.facts[facts as usize]);
        for name in &varying {
            let value = facts.and_then(|facts| facts.get(name)).unwrap_or("");
            observation.rows.push((asked_for(name).unwrap_or(name).to_owned(), value.to_owned()));
        }
    }
    for facts in &mut batch.facts {
        facts.retain(|name| !varying.iter().any(|one| one == name));
    }
}

/// The values of a place by side, where fio had several in one.
fn several_places(batch: &Batch, place: &str) -> Option<BTreeMap<usize, BTreeSet<String>>> {
    let mut of_sides: BTreeMap<usize, BTreeSet<String>> = BTreeMap::new();
    for observation in &batch.observations {
        let facts = observation.facts.map(|at| &batch.facts[at as usize]);
        let of_fio = facts.filter(|facts| facts.get("fio.version").is_some());
        if let Some(value) = of_fio.and_then(|facts| facts.get(place)) {
            of_sides.entry(observation.side).or_default().insert(value.to_owned());
        }
    }
    of_sides.values().any(|values| values.len() > 1).then_some(of_sides)
}

/// Whether every side has the same places, and several trials on one of them: a file for each trial tells nothing apart.
fn are_rows(batch: &Batch, of_sides: &BTreeMap<usize, BTreeSet<String>>) -> bool {
    let (mut met, mut repeated) = (HashSet::new(), HashSet::new());
    for observation in &batch.observations {
        if !met.insert((observation.side, observation.facts)) {
            repeated.insert(observation.side);
        }
    }
    let mut values = of_sides.values();
    let first = values.next();
    of_sides.len() > 1
        && values.all(|others| Some(others) == first)
        && of_sides.keys().all(|side| repeated.contains(side))
}

/// That results of several places count as repeats.
fn note_repeats(
    batch: &mut Batch,
    place: &str,
    of_sides: &BTreeMap<usize, BTreeSet<String>>,
    labels: &[String],
) {
    let several = of_sides.iter().filter(|(_, values)| values.len() > 1);
    let sentences: Vec<String> = several
        .map(|(side, values)| {
            let shown = values.iter().take(4).cloned().collect::<Vec<String>>().join(", ");
            let more = if values.len() > 4 { ", …" } else { "" };
            let label = labels.get(*side).map_or("", String::as_str);
            format!("{label}: results of {place}={shown}{more} count as repeats of each other")
        })
        .collect();
    sentences.into_iter().for_each(|sentence| batch.note(sentence));
}

#[cfg(test)]
mod tests {
    use super::super::observation::Observation;
    use super::*;

    /// (side, device) of each trial → the rows of each, and the notes.
    fn settled(trials: &[(usize, &str)]) -> (Vec<String>, Vec<String>) {
        let mut batch = Batch::default();
        for (side, device) in trials {
            let mut facts = HostFacts::default();
            facts.set("fio.version", "fio-3.36");
            facts.set("filename", *device);
            let mut observation = Observation::new(*side);
            observation.facts = Some(batch.facts(facts));
            batch.observe(observation).unwrap();
        }
        settle(&mut batch, &["old".to_owned(), "new".to_owned()]);
        let of = |one: &Observation| one.rows.iter().map(|(name, level)| format!("{name}={level}")).collect();
        (batch.observations.iter().map(of).collect(), batch.notes)
    }

    #[test]
    fn devices_of_both_sides_are_rows() {
        let two = [(0, "a"), (0, "a"), (0, "b"), (1, "b"), (1, "a"), (1, "a")];
        let (rows, notes) = settled(&two);
        assert_eq!(rows[1..4], ["filename=a", "filename=b", "filename=b"]);
        assert!(notes.is_empty(), "{notes:?}");
    }

    #[test]
    fn other_places_count_as_repeats_with_a_note() {
        let told = "old: results of filename=a, b count as repeats of each other";
        let one_more = settled(&[(0, "a"), (0, "a"), (0, "b"), (1, "a"), (1, "a")]);
        assert_eq!((one_more.0[2].as_str(), one_more.1), ("", vec![told.to_owned()]));
        let file_a_trial = settled(&[(0, "a"), (0, "b"), (1, "a"), (1, "b")]);
        assert_eq!((file_a_trial.0[1].as_str(), file_a_trial.1[0].as_str()), ("", told));
        assert_eq!(settled(&[(0, "a"), (0, "a"), (1, "b")]).1, Vec::<String>::new());
    }
}
