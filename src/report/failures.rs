//! Trials without values: failed or skipped, those with one reason told together.
//!
//! Enters: a run's trials. Leaves: a list with the command to repeat and the last output.

use std::collections::{BTreeSet, HashMap};

use super::words::Names;
use crate::record::{Run, Status, Trial};

/// Trials that ended the same way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// `failed`, `skipped`, or `left out` for a round thrown out by rule.
    pub what: &'static str,
    /// What came of the next attempt at the same trials: `failed` (otherwise than at first), `done`, `skipped`; `None`
    /// when there was none, or when it failed alike and is told in its place.
    pub then: Option<&'static str>,
    /// The cell, `direct=1, bs=4k`; of several that ended for one reason their number and the levels they share, of skipped ones the
    /// latter.
    pub cell: String,
    /// How many trials.
    pub count: usize,
    /// Their rounds, counted from 1; at most ten are kept.
    pub rounds: Vec<u32>,
    /// The reason, one line.
    pub reason: String,
    /// The command that failed; may be empty.
    pub command: String,
    /// Its last output; may be empty.
    pub output: String,
}

impl Failure {
    /// `2 trials of direct=1 failed (rounds 3, 7): no space left on device`.
    #[must_use]
    pub fn sentence(&self) -> String {
        let what = match self.then {
            None => self.what,
            Some("failed") => "failed at first, and then otherwise",
            Some(_) => "failed at first, and not when tried again",
        };
        let trials = super::document::count(self.count as u64, "trial");
        let of = if self.cell.is_empty() { String::new() } else { format!(" of {}", self.cell) };
        let rounds: Vec<String> = self.rounds.iter().map(u32::to_string).collect();
        let cut = self.rounds.len() == MOST_ROUNDS && self.count > MOST_ROUNDS;
        let more = if cut { ", …" } else { "" };
        let word = if self.rounds.len() == 1 { "round" } else { "rounds" };
        format!("{trials}{of} {what} ({word} {}{more}): {}", rounds.join(", "), self.reason)
    }
}

/// Kinds of failure told apart; with more, the rest is counted in the last.
const MOST_KINDS: usize = 20;
/// Rounds named for each.
const MOST_ROUNDS: usize = 10;

/// All trials of a run without values that count, grouped by reason: what cannot be, or what is thrown out,
/// is rarely one cell's affair. Of two attempts at a trial the second one counts; the first is told when it failed
/// otherwise, or when the second did not.
pub(super) fn failures(run: &Run, names: &Names<'_>) -> Vec<Failure> {
    let mut groups: Vec<(BTreeSet<u32>, Failure)> = Vec::new();
    let mut untold = 0;
    let place = |trial: &Trial| (trial.round, trial.position, trial.cell);
    let mut last: HashMap<_, &Trial> = HashMap::new();
    for trial in run.trials.iter().filter(|trial| trial.attempt > 0) {
        last.insert(place(trial), trial);
    }
    for trial in &run.trials {
        let later = last.get(&place(trial)).filter(|last| last.attempt > trial.attempt);
        let (what, then, reason, command, output) = match (&trial.status, &trial.excluded) {
            (Status::Failed { reason, command, output, .. }, _) => {
                let then = match later.map(|later| &later.status) {
                    None => None,
                    Some(Status::Failed { reason: again, .. }) if again == reason => continue,
                    Some(Status::Failed { .. }) => Some("failed"),
                    Some(Status::Skipped { .. }) => Some("skipped"),
                    Some(Status::Done) => Some("done"),
                };
                ("failed", then, reason, command.as_str(), output.as_str())
            }
            (Status::Skipped { reason }, _) => ("skipped", None, reason, "", ""),
            (Status::Done, Some(rule)) => ("left out", None, rule, "", ""),
            (Status::Done, None) => continue,
        };
        let known = groups
            .iter_mut()
            .find(|(_, group)| group.what == what && group.then == then && group.reason == *reason);
        if let Some((cells, group)) = known {
            group.count += 1;
            cells.insert(trial.cell);
            if group.rounds.len() < MOST_ROUNDS && !group.rounds.contains(&(trial.round + 1)) {
                group.rounds.push(trial.round + 1);
            }
        } else if groups.len() < MOST_KINDS {
            let failure = Failure {
                what,
                then,
                cell: String::new(),
                count: 1,
                rounds: vec![trial.round + 1],
                reason: reason.clone(),
                command: command.to_owned(),
                output: output.to_owned(),
            };
            groups.push((BTreeSet::from([trial.cell]), failure));
        } else {
            untold += 1;
        }
    }
    let told = |(cells, failure): (BTreeSet<u32>, Failure)| {
        let shared = shared_levels(run, &cells, names);
        let cell = match cells.len() {
            2.. if failure.what != "skipped" && shared.is_empty() => format!("{} cells", cells.len()),
            2.. if failure.what != "skipped" => format!("{} cells of {shared}", cells.len()),
            _ => shared,
        };
        Failure { cell, ..failure }
    };
    let mut failures: Vec<Failure> = groups.into_iter().map(told).collect();
    if untold > 0
        && let Some(last) = failures.last_mut()
    {
        last.reason.push_str(&format!(" (and {untold} more without values, of other kinds)"));
    }
    failures
}

/// `direct=1, bs=4k`: the levels of a cell, or those that all cells share.
fn shared_levels(run: &Run, cells: &BTreeSet<u32>, names: &Names<'_>) -> String {
    let levels: Vec<&Vec<u32>> =
        cells.iter().filter_map(|cell| run.cells.get(*cell as usize)).map(|cell| &cell.levels).collect();
    let Some(first) = levels.first() else { return String::new() };
    let parts: Vec<String> = run
        .design
        .factors
        .iter()
        .zip(*first)
        .enumerate()
        .filter(|(at, (_, level))| levels.iter().all(|other| other.get(*at) == Some(*level)))
        .filter_map(|(at, (factor, level))| {
            let level = factor.levels.get(*level as usize)?;
            Some(if at == run.design.compare { names.arm(level) } else { format!("{}={level}", factor.name) })
        })
        .collect();
    parts.join(", ")
}
