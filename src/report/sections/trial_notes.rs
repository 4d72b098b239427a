//! What engines and targets said of single trials, as notes to the whole: each text once, with where it holds.
//!
//! Enters: a [`Run`]. Leaves: sentences. It must not know what any of them means.

use crate::record::{Note, NoteKind, Run, Trial};
use crate::report::counts::Counted;
use crate::report::words::{Names, count};

/// More different texts than this are counted only: `assay show` lists them all.
const MOST: usize = 8;

/// The notes of the trials whose values count, but for those of the audit, which have a section of their own.
pub(super) fn trial_notes(run: &Run, names: &Names<'_>) -> Vec<String> {
    notes_where(run, &counted(run), names.compared(run), names, |kind| kind != NoteKind::Audit)
}

/// What the audit of flushes says.
pub(super) fn audits(run: &Run, names: &Names<'_>) -> Vec<String> {
    notes_where(run, &counted(run), names.compared(run), names, |kind| kind == NoteKind::Audit)
}

/// What it says of the trials of a run that watched the cells of another one, whose arms are called after `factor`.
pub(super) fn watched_audits(watched: &Run, factor: &str, names: &Names<'_>) -> Vec<String> {
    let at = |name: &str| watched.design.factors.iter().position(|factor| factor.name == name);
    let watching = watched.design.explains.as_ref().and_then(|explains| at(&explains.factor));
    let (Some(watching), Some(arms)) = (watching, at(factor)) else { return Vec::new() };
    let level = |trial: &Trial| watched.cells.get(trial.cell as usize)?.levels.get(watching).copied();
    let has_audit = |trial: &&&Trial| trial.notes.iter().any(|note| note.kind == NoteKind::Audit);
    // Of several groups of observers, those that audit.
    let all = counted(watched);
    let auditing: Vec<u32> = all.iter().filter(has_audit).filter_map(|trial| level(trial)).collect();
    let is_audited = |trial: &&Trial| level(trial).is_some_and(|level| auditing.contains(&level));
    let trials: Vec<&Trial> = all.into_iter().filter(is_audited).collect();
    notes_where(watched, &trials, arms, names, |kind| kind == NoteKind::Audit)
}

fn counted(run: &Run) -> Vec<&Trial> {
    run.trials.iter().filter(|trial| trial.counts()).collect()
}

/// The notes of these trials; `arms` is the factor whose levels are.
fn notes_where(
    run: &Run,
    trials: &[&Trial],
    arms: usize,
    names: &Names<'_>,
    told: impl Fn(NoteKind) -> bool,
) -> Vec<String> {
    let mut texts: Vec<&str> = Vec::new();
    let all = trials.iter().flat_map(|trial| &trial.notes).filter(|note| told(note.kind));
    // Faults of the kernel first: there are never too many of the others for them.
    let (faults, others): (Vec<&Note>, Vec<&Note>) = all.partition(|note| note.kind == NoteKind::Fault);
    for text in faults.into_iter().chain(others).map(|note| note.text.as_str()) {
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    // What differs in a count is one text, which holds wherever one of them does.
    let mut groups: Vec<(Counted, Vec<&str>)> = Vec::new();
    for text in texts {
        match groups.iter_mut().find_map(|(known, members)| known.takes(text).then_some(members)) {
            Some(members) => members.push(text),
            None => groups.push((Counted::new(text), vec![text])),
        }
    }
    let mut notes: Vec<String> = groups
        .iter()
        .take(MOST)
        .map(|(text, members)| {
            let (text, place) = (text.text(), place(run, trials, arms, names, members));
            if place.is_empty() { text } else { format!("{text} ({place})") }
        })
        .collect();
    if let Some(more) = groups.len().checked_sub(MOST).filter(|more| *more > 0) {
        let list = run.id.map_or_else(|| "assay show".to_owned(), |id| format!("assay show {id}"));
        notes.push(format!("{} of single trials; {list} lists them", count(more as u64, "other note")));
    }
    notes
}

/// Where a text holds: nothing when in all trials; a level when in all of its trials and no others, first of the arms; else how many, and of
/// which levels if no other has it.
fn place(run: &Run, trials: &[&Trial], arms: usize, names: &Names<'_>, texts: &[&str]) -> String {
    let has = |trial: &Trial| trial.notes.iter().any(|note| texts.contains(&note.text.as_str()));
    let bearing: Vec<&Trial> = trials.iter().copied().filter(|trial| has(trial)).collect();
    if bearing.len() == trials.len() {
        return String::new();
    }
    let level =
        |trial: &Trial, factor: usize| run.cells.get(trial.cell as usize)?.levels.get(factor).copied();
    let with =
        |(factor, at): (usize, u32)| trials.iter().filter(|trial| level(trial, factor) == Some(at)).count();
    // Levels that all of these trials have, and others have not.
    let factors = std::iter::once(arms).chain((0..run.design.factors.len()).filter(|factor| *factor != arms));
    let shared: Vec<(usize, u32)> = factors
        .filter_map(|factor| Some((factor, level(bearing.first()?, factor)?)))
        .filter(|(factor, at)| bearing.iter().all(|trial| level(trial, *factor) == Some(*at)))
        .filter(|shared| with(*shared) < trials.len())
        .collect();
    let name = |(factor, at): (usize, u32)| {
        let of = run.design.factors.get(factor);
        let label = of.and_then(|factor| factor.levels.get(at as usize)).map_or("", String::as_str);
        let called = of.map_or("", |factor| factor.name.as_str());
        if factor == arms { names.arm(label) } else { format!("{called}={label}") }
    };
    if let Some(alone) = shared.iter().copied().find(|shared| with(*shared) == bearing.len()) {
        return name(alone);
    }
    let is_there = |trial: &&&Trial| shared.iter().all(|(factor, at)| level(trial, *factor) == Some(*at));
    let all = trials.iter().filter(is_there).count();
    let of = shared.iter().copied().map(name).collect::<Vec<_>>().join(" with ");
    match of.is_empty() {
        true => format!("{} of {}", bearing.len(), count(all as u64, "trial")),
        false if all == bearing.len() => of,
        false => format!("{} of {} of {of}", bearing.len(), count(all as u64, "trial")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::record::{Cell, Explains, Factor};

    /// Four trials, two arms; each with its notes.
    fn noted(notes: [&[&str]; 4]) -> Vec<String> {
        let run = run_of(notes);
        trial_notes(&run, &Names::new(&run, "cache"))
    }

    fn run_of(notes: [&[&str]; 4]) -> Run {
        let trial = |(at, notes): (usize, &&[&str])| {
            json!({"cell": at % 2, "round": at / 2, "position": 0, "attempt": 0, "started_unix_ns": 0, "elapsed_s": 1.0,
                "facts": null, "status": "done", "excluded": null, "values": [], "histograms": [], "series": [],
                "notes": notes})
        };
        let trials: Vec<_> = notes.iter().enumerate().map(trial).collect();
        let stop = json!({"max_rounds": 30, "rounds": null, "delta": 0.02, "alpha": 0.05, "exact": false,
            "time_budget_s": null});
        let factors = json!([{"name": "cache", "levels": ["on", "off"]}]);
        let design = json!({"factors": factors, "compare": 0, "paired": true, "primary": null, "stop": stop});
        let run = json!({"version": 1, "id": 7, "name": "r", "source": "measured", "state": "finished",
            "assay_version": "0", "started_unix_ns": 0, "command_line": [], "seed": 1, "engine": "e", "job_text": null,
            "experiment": null, "design": design, "aa": false, "facts": [], "metrics": [],
            "cells": [{"levels": [0]}, {"levels": [1]}], "trials": trials, "notes": []});
        serde_json::from_value(run).unwrap()
    }

    #[test]
    fn a_level_of_any_factor_is_where_a_text_holds() {
        // Four cells of two factors, a trial of each.
        let placed = |notes: [&[&str]; 4]| {
            let mut run = run_of(notes);
            run.design.factors.push(Factor::new("mount", vec!["default".to_owned(), "nobarrier".to_owned()]));
            run.cells =
                [[0, 0], [1, 0], [0, 1], [1, 1]].map(|levels| Cell { levels: levels.to_vec() }).to_vec();
            run.trials.iter_mut().zip(0..).for_each(|(trial, at)| trial.cell = at);
            trial_notes(&run, &Names::new(&run, "cache"))
        };
        assert_eq!(placed([&[], &[], &["x"], &["x"]]), ["x (mount=nobarrier)"]);
        assert_eq!(placed([&[], &["x"], &[], &["x"]]), ["x (cache=off)"]);
        assert_eq!(placed([&[], &[], &[], &["x"]]), ["x (cache=off with mount=nobarrier)"]);
        assert_eq!(placed([&["x"], &[], &[], &["x"]]), ["x (2 of 4\u{a0}trials)"]);
    }

    /// The run whose notes about an audit are of that kind.
    fn with_audits(mut run: Run) -> Run {
        let notes = run.trials.iter_mut().flat_map(|trial| &mut trial.notes);
        notes.filter(|note| note.text.starts_with("audit")).for_each(|note| note.kind = NoteKind::Audit);
        run
    }

    #[test]
    fn each_text_is_told_once_with_where_it_holds() {
        let notes = noted([&["all", "arm"], &["all"], &["all", "arm", "one"], &["all"]]);
        assert_eq!(notes, ["all", "arm (cache=on)", "one (1 of 2\u{a0}trials of cache=on)"]);
        assert_eq!(noted([&[], &[], &[], &[]]), Vec::<String>::new());
    }

    #[test]
    fn notes_that_differ_in_a_count_are_one() {
        let notes = noted([&["sda: 12 I/Os"], &["sda: 40 I/Os"], &["sda: 7 I/Os"], &[]]);
        assert_eq!(notes, ["sda: 7 to 40 I/Os (3 of 4\u{a0}trials)"]);
    }

    #[test]
    fn the_audit_is_told_by_itself() {
        let said = "audit of flushes (ext4): VIOLATION (first the fsync of inode 12)";
        let passed = "audit of flushes (ext4): PASS";
        let run = with_audits(run_of([&[passed], &[said, "arm"], &[passed], &[said]]));
        let names = Names::new(&run, "cache");
        let told = [format!("{passed} (cache=on)"), format!("{said} (cache=off)")];
        assert_eq!(audits(&run, &names), told);
        assert_eq!(trial_notes(&run, &names), ["arm (1 of 2\u{a0}trials of cache=off)"]);
    }

    #[test]
    fn of_a_run_that_watched_only_the_watched_trials_are_told() {
        // Two arms, each unwatched and watched; the arms are those of the explained run.
        let passed = "audit of flushes (ext4): PASS";
        let said = "audit of flushes (ext4): VIOLATION (first the fsync of inode 12)";
        let mut watched = with_audits(run_of([&["unwatched"], &[passed], &["unwatched"], &[said]]));
        let factor = |name: &str, levels: [&str; 2]| Factor::new(name, levels.map(str::to_owned).to_vec());
        watched.design.factors = vec![factor("watched", ["no", "yes"]), factor("cache", ["on", "off"])];
        watched.cells =
            [[0, 0], [1, 0], [0, 1], [1, 1]].map(|levels| Cell { levels: levels.to_vec() }).to_vec();
        for (trial, cell) in watched.trials.iter_mut().zip(0..) {
            trial.cell = cell;
        }
        assert_eq!(watched_audits(&watched, "cache", &Names::of_factor("cache")), Vec::<String>::new());
        let factor = "watched".to_owned();
        watched.design.explains =
            Some(Explains { run: 3, started_unix_ns: 5, seed: 7, factor, observers: Vec::new() });
        let told = [format!("{passed} (cache=on)"), format!("{said} (cache=off)")];
        assert_eq!(watched_audits(&watched, "cache", &Names::of_factor("cache")), told);
        // Another group of observers, which does not audit.
        watched.design.factors[0].levels.insert(1, "cpu".to_owned());
        for cell in watched.cells.iter_mut().filter(|cell| cell.levels[0] == 1) {
            cell.levels[0] = 2;
        }
        watched.cells.push(Cell { levels: vec![1, 1] });
        let mut beside = watched.trials[0].clone();
        beside.cell = 4;
        watched.trials.push(beside);
        assert_eq!(watched_audits(&watched, "cache", &Names::of_factor("cache")), told);
    }

    #[test]
    fn many_are_counted() {
        let many: Vec<String> = (0..10).map(|n| format!("note n{n}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let notes = noted([&many, &[], &[], &[]]);
        assert_eq!(notes.len(), 9);
        assert_eq!(notes[8], "2\u{a0}other notes of single trials; assay show 7 lists them");
    }
}
