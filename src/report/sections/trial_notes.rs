//! What engines and targets said of single trials, as notes to the whole: each text once, with where it holds.
//!
//! Enters: a [`Run`]. Leaves: sentences. It must not know what any of them means.

use crate::record::{AUDIT_NOTE, Run, Trial};
use crate::report::counts::Counted;
use crate::report::words::{Names, count};

/// More different texts than this are counted only: `assay show` lists them all.
const MOST: usize = 8;

/// The notes of the trials whose values count, but for those of the audit, which have a section of their own.
pub(super) fn trial_notes(run: &Run, names: &Names<'_>) -> Vec<String> {
    notes_where(run, names, |note| !note.starts_with(AUDIT_NOTE))
}

/// What the audit of flushes says.
pub(super) fn audits(run: &Run, names: &Names<'_>) -> Vec<String> {
    notes_where(run, names, |note| note.starts_with(AUDIT_NOTE))
}

fn notes_where(run: &Run, names: &Names<'_>, told: impl Fn(&str) -> bool) -> Vec<String> {
    let trials: Vec<&Trial> = run.trials.iter().filter(|trial| trial.counts()).collect();
    let mut texts: Vec<&str> = Vec::new();
    for trial in &trials {
        for text in trial.notes.iter().map(String::as_str).filter(|note| told(note)) {
            if !texts.contains(&text) {
                texts.push(text);
            }
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
            let (text, place) = (text.text(), place(run, &trials, names, members));
            if place.is_empty() { text } else { format!("{text} ({place})") }
        })
        .collect();
    if let Some(more) = groups.len().checked_sub(MOST).filter(|more| *more > 0) {
        let list = run.id.map_or_else(|| "assay show".to_owned(), |id| format!("assay show {id}"));
        notes.push(format!("{} of single trials; {list} lists them", count(more as u64, "other note")));
    }
    notes
}

/// Where a text holds: nothing when in all trials, an arm when in all of its trials and no others, else how many.
fn place(run: &Run, trials: &[&Trial], names: &Names<'_>, texts: &[&str]) -> String {
    let has = |trial: &Trial| trial.notes.iter().any(|note| texts.contains(&note.as_str()));
    let bearing = trials.iter().filter(|trial| has(trial)).count();
    if bearing == trials.len() {
        return String::new();
    }
    let arm_of = |trial: &Trial| {
        let levels =
            run.cells.get(trial.cell as usize).map(|cell| cell.levels.as_slice()).unwrap_or_default();
        levels.get(run.design.compare).copied()
    };
    let factor = run.design.factors.get(run.design.compare);
    for (at, label) in factor.iter().flat_map(|factor| &factor.levels).enumerate() {
        let of_arm = trials.iter().filter(|trial| arm_of(trial) == Some(at as u32));
        if of_arm.clone().all(|trial| has(trial)) && of_arm.count() == bearing {
            return names.arm(label);
        }
    }
    format!("{bearing} of {}", count(trials.len() as u64, "trial"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

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
    fn each_text_is_told_once_with_where_it_holds() {
        let notes = noted([&["all", "arm"], &["all"], &["all", "arm", "one"], &["all"]]);
        assert_eq!(notes, ["all", "arm (cache=on)", "one (1 of 4\u{a0}trials)"]);
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
        let run = run_of([&[passed], &[said, "arm"], &[passed], &[said]]);
        let names = Names::new(&run, "cache");
        let told = [format!("{passed} (cache=on)"), format!("{said} (cache=off)")];
        assert_eq!(audits(&run, &names), told);
        assert_eq!(trial_notes(&run, &names), ["arm (1 of 4\u{a0}trials)"]);
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
