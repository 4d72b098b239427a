//! io_uring gave I/Os to worker threads of the kernel.
//!
//! Needs: the native engine, whose trials say in a note when the kernel made such threads. Concludes: in most trials of the worse arm it
//! did, in few of the other. The hand-over from thread to thread is then part of an operation. Silent where both arms or none have them.

use super::super::cause::{Cause, Evidence, Grade, What};
use super::super::pair::Pair;
use super::rule::Rule;
use crate::record::{NoteKind, Unit};

/// Shares of the trials that are most of them, and few.
const MOST: f64 = 0.75;
const FEW: f64 = 0.25;

pub(super) const RULE: Rule = Rule { name: "worker_threads", find };

fn find(pair: &Pair<'_>, _: &[Cause]) -> Vec<Cause> {
    let shares = pair.share_with_note(NoteKind::WorkerThreads);
    if shares[pair.worse] < MOST || shares[1 - pair.worse] > FEW {
        return Vec::new();
    }
    let evidence = Evidence {
        metric: "share of trials with worker threads of io_uring".to_owned(),
        unit: Unit::Count,
        baseline: shares[0],
        candidate: shares[1],
        difference: None,
    };
    let what = What::WorkerThreads { arm: pair.arms[pair.worse].to_owned() };
    vec![Cause::new(RULE.name, Grade::GoesWith, what, vec![evidence])]
}

#[cfg(test)]
mod tests {
    use super::super::super::made_pair::{explained, run_with};
    use super::*;
    use crate::record::Note;

    /// What is found where these cells have the note.
    fn with_note(cells: &[u32]) -> Vec<Cause> {
        let mut run = run_with(&[]);
        for trial in run.trials.iter_mut().filter(|trial| cells.contains(&trial.cell)) {
            trial.notes.push(Note { text: "threads".to_owned(), kind: NoteKind::WorkerThreads });
        }
        explained(&run).causes.into_iter().filter(|cause| cause.rule == RULE.name).collect()
    }

    #[test]
    fn worker_threads_of_the_worse_arm_are_named() {
        let causes = with_note(&[1]);
        assert_eq!((causes.len(), &causes[0].what), (1, &What::WorkerThreads { arm: "1".to_owned() }));
        assert_eq!((causes[0].evidence[0].baseline, causes[0].evidence[0].candidate), (0.0, 1.0));
    }

    #[test]
    fn threads_in_both_arms_or_the_better_one_are_silent() {
        assert!(with_note(&[0, 1]).is_empty() && with_note(&[0]).is_empty() && with_note(&[]).is_empty());
    }
}
