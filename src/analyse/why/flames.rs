//! Where the time of an operation goes, by stack of functions, in both arms of a pair: what a differential flame graph is drawn of.
//!
//! Enters: a run with its [`Analysis`], and where there is one a run that watched the same cells; their trials have the stacks of observers. Leaves:
//! a [`Flame`] for each pair that decides and each kind of stacks, whatever the verdict. It must not know pictures.
//!
//! The time of a stack is its sum over the rounds in which both arms have stacks, divided by the operations of these rounds: arms that do different
//! amounts of work can be compared. Where nobody counts operations it is the time of a trial. Observers cannot tell the jobs of a trial
//! apart, so that stacks and operations are those of the whole trial.

use std::collections::BTreeMap;

use serde::Serialize;

use super::super::budget::Operation;
use super::super::comparison::{Analysis, RowKey};
use super::super::table::Table;
use super::pair::{Pair, WatchedRun};
use super::source::Source;
use super::standing::pairs;
use crate::record::{Folded, Run, StackKind, Trial};

/// The stacks of two arms.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Flame {
    /// What the time was.
    pub kind: StackKind,
    /// The row, without a job.
    pub row: RowKey,
    /// The baseline's label.
    pub baseline: String,
    /// The candidate's label.
    pub candidate: String,
    /// What the time is for.
    pub operation: Operation,
    /// Rounds in which both arms have stacks.
    pub rounds: usize,
    /// All stacks, sorted by name.
    pub stacks: Vec<Stack>,
}

/// A stack of functions with its time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Stack {
    /// Functions, the outermost first.
    pub frames: Vec<String>,
    /// Time of an operation with baseline and candidate, in ns.
    pub ns: [f64; 2],
}

/// The stacks of the pairs that decide.
#[must_use]
pub fn flames(run: &Run, analysis: &Analysis, watched: Option<&Run>) -> Vec<Flame> {
    let has_stacks = |run: &Run| run.trials.iter().any(|trial| !trial.files.is_empty());
    if !run.design.paired || !(has_stacks(run) || watched.is_some_and(has_stacks)) {
        return Vec::new();
    }
    let (own, other) = (Table::new(run), watched.map(WatchedRun::new));
    let mut all: Vec<Flame> = Vec::new();
    for kind in StackKind::ALL {
        for (comparisons, _) in pairs(run, analysis) {
            let of = comparisons[0];
            let row = RowKey { levels: of.row.levels.clone(), job: String::new() };
            let (baseline, candidate) = (&of.baseline.arm, &of.candidate.arm);
            // Jobs of one trial have the same stacks.
            let is_there =
                |known: &Flame| known.kind == kind && known.row == row && known.candidate == *candidate;
            if all.iter().any(is_there) {
                continue;
            }
            let pair = Pair::new((run, &own), other.as_ref(), analysis, of);
            let Some(source) = pair.and_then(|pair| pair.watched).map(|watched| watched.source) else {
                continue;
            };
            all.extend(time(&source, kind).map(|Time { operation, rounds, stacks }| Flame {
                kind,
                row,
                baseline: baseline.clone(),
                candidate: candidate.clone(),
                operation,
                rounds,
                stacks,
            }));
        }
    }
    all
}

/// Stacks with what their times are for.
struct Time {
    operation: Operation,
    rounds: usize,
    stacks: Vec<Stack>,
}

/// `None`: no round has stacks of both arms, or only one arm counts operations.
fn time(source: &Source<'_>, kind: StackKind) -> Option<Time> {
    let folded = source.cells.map(|cell| by_round(source.table, cell, kind));
    let done = match [0, 1].map(|arm| source.operations(arm, true)) {
        [Some(baseline), Some(candidate)] => Some([baseline, candidate]),
        [None, None] => None,
        _ => return None,
    };
    let operations = |arm: usize, round: &u32| match &done {
        None => 1.0,
        Some(done) => done[arm].get(round).map_or(0.0, |point| point.value),
    };
    let counts = |round: &&u32| {
        folded[1].contains_key(*round) && operations(0, round) > 0.0 && operations(1, round) > 0.0
    };
    let rounds: Vec<u32> = folded[0].keys().filter(counts).copied().collect();
    let mut sums: BTreeMap<&str, [f64; 2]> = BTreeMap::new();
    for arm in [0, 1] {
        let all: f64 = rounds.iter().map(|round| operations(arm, round)).sum();
        for (stack, ns) in rounds.iter().filter_map(|round| folded[arm].get(round)).flat_map(Folded::stacks) {
            sums.entry(stack).or_default()[arm] += ns as f64 / all;
        }
    }
    let stack =
        |(stack, ns): (&str, [f64; 2])| Stack { frames: stack.split(';').map(str::to_owned).collect(), ns };
    let operation = if done.is_some() { Operation::Counted } else { Operation::Trial };
    let found = Time { operation, rounds: rounds.len(), stacks: sums.into_iter().map(stack).collect() };
    (!found.stacks.is_empty()).then_some(found)
}

/// The stacks of a cell's trials.
fn by_round(table: &Table<'_>, cell: u32, kind: StackKind) -> BTreeMap<u32, Folded> {
    let trials = table.latest().iter().filter(|trial| trial.cell == cell && trial.counts());
    let of = |trial: &&Trial| Some((trial.round, trial.files.iter().find_map(|file| kind.of_file(file))?));
    trials.filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::super::super::{Options, analyse};
    use super::super::made_pair::{add, run_with};
    use super::*;
    use crate::record::KeptFile;

    /// The made-up pair, whose trials have these stacks: 100,000 operations each with the baseline, twice as many with the candidate.
    fn watched(baseline: &str, candidate: &str) -> Run {
        let mut run = run_with(&[("cpu.samples", 400.0, 400.0)]);
        add(&mut run, "operations", |cell| f64::from(cell + 1) * 1e5);
        for trial in &mut run.trials {
            let text = if trial.cell == 0 { baseline } else { candidate };
            trial.files = vec![KeptFile { name: "cpu.folded".to_owned(), bytes: text.into() }];
        }
        run
    }

    fn of(run: &Run) -> Vec<Flame> {
        flames(run, &analyse(run, &Options::default()), None)
    }

    /// Stacks with their times in ns, rounded: operations of the made-up run have a little noise.
    fn times(flame: &Flame) -> Vec<(String, [f64; 2])> {
        flame.stacks.iter().map(|stack| (stack.frames.join(";"), stack.ns.map(f64::round))).collect()
    }

    #[test]
    fn times_are_those_of_an_operation_in_both_arms() {
        let run = watched("a;b 100000000\na;c 50000000\n", "a;b 200000000\na;d 20000000\n");
        let flames = of(&run);
        assert_eq!(flames.len(), 1);
        let flame = &flames[0];
        assert_eq!((flame.kind, flame.operation, flame.rounds), (StackKind::Cpu, Operation::Counted, 8));
        assert_eq!((flame.baseline.as_str(), flame.candidate.as_str()), ("0", "1"));
        // Of 100 ms for 100,000 operations each has 1000 ns, and of 200 ms for 200,000.
        let expected = [("a;b", [996.0, 996.0]), ("a;c", [498.0, 0.0]), ("a;d", [0.0, 100.0])];
        let near = |a: f64, b: f64| (a - b).abs() <= 5.0;
        for ((stack, ns), (wanted, expected)) in times(flame).into_iter().zip(expected) {
            assert!(
                stack == wanted && near(ns[0], expected[0]) && near(ns[1], expected[1]),
                "{stack} {ns:?}"
            );
        }
        assert_eq!(flame.stacks.len(), 3);
    }

    #[test]
    fn only_rounds_with_stacks_of_both_arms_count() {
        let mut run = watched("a 100000000\n", "a 100000000\n");
        for trial in &mut run.trials {
            match (trial.round, trial.cell) {
                (0, 0) => trial.files.clear(),
                (1, 1) => trial.excluded = Some("steal".to_owned()),
                (2, 0) => trial.files[0].name = "waits.folded".to_owned(),
                _ => {}
            }
        }
        let flames = of(&run);
        assert_eq!((flames.len(), flames[0].rounds), (1, 5));
        assert!((flames[0].stacks[0].ns[0] / flames[0].stacks[0].ns[1] - 2.0).abs() < 0.01, "{flames:?}");
    }

    #[test]
    fn an_arm_in_which_nothing_was_seen_has_no_time() {
        let flames = of(&watched("", "a 2000\n"));
        assert!(flames[0].stacks[0].ns[0] == 0.0 && flames[0].stacks[0].ns[1] > 0.0);
        assert_eq!(of(&watched("", "")), []);
    }

    #[test]
    fn without_operations_times_are_those_of_a_trial() {
        let mut run = watched("a 3000\n", "a 5000\n");
        for metric in &mut run.metrics {
            if ["operations", "write.total_ios"].contains(&metric.name.as_str()) {
                metric.name.push_str(".of.something");
            }
        }
        let flames = of(&run);
        assert_eq!(
            (flames[0].operation, times(&flames[0])),
            (Operation::Trial, vec![("a".to_owned(), [3000.0, 5000.0])])
        );
    }
}
