//! Trials without values: failed, skipped or left out, those with one reason told together.
//!
//! Enters: a run's trials. Leaves: a list with the command to repeat and the last output.

use std::collections::{BTreeSet, HashMap};

use serde::Serialize;

use super::Material;
use crate::record::{Run, Status, Trial};
use crate::report::document::Document;
use crate::report::section::{Block, GivesWay, Heading, Section, Transcript, Transcripts};
use crate::report::words::{Names, count};

/// Where a report is to fit one screen.
const WAY: GivesWay = GivesWay {
    turn: Some(4),
    called: "trials that do not count",
    most: [4, 2],
    items: ["kind of failure", "kinds of failure"],
};

/// The section.
pub(super) fn section(material: &mut Material<'_>) -> Section {
    let all = failures(material.run, &material.names);
    let transcript = |failure: Failure| Transcript {
        sentence: failure.sentence(),
        command: failure.command,
        output: failure.output,
    };
    let mut blocks = vec![Block::Raw { name: "failures", json }];
    if !all.is_empty() {
        let all = all.into_iter().map(transcript).collect();
        blocks.push(Block::Transcripts(Transcripts { all, called: "what failed, with its output" }));
    }
    Section::new("failures", Heading::shown("trials that do not count"), blocks).gives_way(WAY)
}

fn json(document: &Document<'_>) -> String {
    crate::report::json::written(&failures(document.run, &document.names()))
}

/// How an attempt ended that gave no values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Ended {
    Failed,
    Skipped,
    /// In a round thrown out by a rule.
    #[serde(rename = "left out")]
    LeftOut,
}

/// What came of the next attempt at the same trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Then {
    /// It failed otherwise than at first.
    Failed,
    Skipped,
    Done,
}

/// Trials that ended the same way, as the JSON report has them, too.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Failure {
    what: Ended,
    /// `None` when there was no further attempt, or when it failed alike and is told in its place.
    then: Option<Then>,
    /// The cell, `direct=1, bs=4k`; of several that ended for one reason their number and the levels they share, of skipped ones the
    /// latter.
    cell: String,
    /// All of them, as indices of the run's cells.
    cells: BTreeSet<u32>,
    /// How many trials.
    #[serde(rename = "trials")]
    count: usize,
    /// Their rounds, counted from 1; at most ten are kept.
    rounds: Vec<u32>,
    /// Whether there were others.
    #[serde(skip)]
    has_more_rounds: bool,
    /// The reason, one line.
    reason: String,
    /// The command that failed; may be empty.
    command: String,
    /// Its last output; may be empty.
    output: String,
}

impl Failure {
    /// `2 trials of direct=1 failed (rounds 3, 7): no space left on device`.
    fn sentence(&self) -> String {
        let what = match (self.then, self.what) {
            (None, Ended::Failed) => "failed",
            (None, Ended::Skipped) => "skipped",
            (None, Ended::LeftOut) => "left out",
            (Some(Then::Failed), _) => "failed at first, and then otherwise",
            (Some(Then::Skipped | Then::Done), _) => "failed at first, and not when tried again",
        };
        let trials = count(self.count as u64, "trial");
        let of = if self.cell.is_empty() { String::new() } else { format!(" of {}", self.cell) };
        let rounds: Vec<String> = self.rounds.iter().map(u32::to_string).collect();
        let more = if self.has_more_rounds { ", …" } else { "" };
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
fn failures(run: &Run, names: &Names<'_>) -> Vec<Failure> {
    let mut groups: Vec<Failure> = Vec::new();
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
                    Some(Status::Failed { .. }) => Some(Then::Failed),
                    Some(Status::Skipped { .. }) => Some(Then::Skipped),
                    Some(Status::Done) => Some(Then::Done),
                };
                (Ended::Failed, then, reason, command.as_str(), output.as_str())
            }
            (Status::Skipped { reason }, _) => (Ended::Skipped, None, reason, "", ""),
            (Status::Done, Some(rule)) => (Ended::LeftOut, None, rule, "", ""),
            (Status::Done, None) => continue,
        };
        let known = groups
            .iter_mut()
            .find(|group| group.what == what && group.then == then && group.reason == *reason);
        if let Some(group) = known {
            group.count += 1;
            group.cells.insert(trial.cell);
            let round = trial.round + 1;
            if !group.rounds.contains(&round) {
                match group.rounds.len() < MOST_ROUNDS {
                    true => group.rounds.push(round),
                    false => group.has_more_rounds = true,
                }
            }
        } else if groups.len() < MOST_KINDS {
            let failure = Failure {
                what,
                then,
                cell: String::new(),
                cells: BTreeSet::from([trial.cell]),
                count: 1,
                rounds: vec![trial.round + 1],
                has_more_rounds: false,
                reason: reason.clone(),
                command: command.to_owned(),
                output: output.to_owned(),
            };
            groups.push(failure);
        } else {
            untold += 1;
        }
    }
    let told = |failure: Failure| {
        let shared = shared_levels(run, &failure.cells, names);
        let cells = failure.cells.len();
        let cell = match cells {
            2.. if failure.what != Ended::Skipped && shared.is_empty() => format!("{cells} cells"),
            2.. if failure.what != Ended::Skipped => format!("{cells} cells of {shared}"),
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
        .filter(|(_, (factor, _))| !names.is_fixed(&factor.name))
        .filter(|(at, (_, level))| levels.iter().all(|other| other.get(*at) == Some(*level)))
        .filter_map(|(at, (factor, level))| {
            let level = factor.levels.get(*level as usize)?;
            Some(if at == names.compared(run) {
                names.arm(level)
            } else {
                format!("{}={level}", factor.name)
            })
        })
        .collect();
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::FailureKind;
    use crate::report::section_tests::made_up;

    /// The sentence of failures of both arms in so many rounds.
    fn told(rounds: u32) -> String {
        let (mut run, _) = made_up();
        run.trials.clear();
        for at in 0..2 * rounds {
            let status = Status::failed(FailureKind::Passing, "r");
            run.trials.push(Trial {
                cell: at % 2,
                round: at / 2,
                position: at % 2,
                status,
                ..Trial::default()
            });
        }
        failures(&run, &Names::of_factor("cache"))[0].sentence()
    }

    #[test]
    fn only_rounds_that_are_not_named_are_hinted_at() {
        assert!(told(10).ends_with("(rounds 1, 2, 3, 4, 5, 6, 7, 8, 9, 10): r"), "{}", told(10));
        assert!(told(11).ends_with(", 9, 10, …): r"), "{}", told(11));
    }
}
