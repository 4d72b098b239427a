//! Whether a running experiment has its answer: asked after every round.
//!
//! Enters: the run so far. Leaves: how many primary comparisons are decided, and whether to stop. Only the
//! primary metrics are touched.

use std::collections::BTreeSet;

use super::draft::{Case, Setting};
use super::failing::what_stands;
use super::layout::Layout;
use super::options::Options;
use super::paired::latest_verdict;
use super::table::Table;
use crate::record::{FailureRule, Run};

/// How far a run has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Rounds begun so far, without those thrown out for the row that lost most.
    pub rounds: u32,
    /// Rounds it may take at most: N_max, or the fixed number.
    pub limit: u32,
    /// Primary comparisons that have a verdict.
    pub decided: u32,
    /// Primary comparisons in all.
    pub of: u32,
}

impl Progress {
    /// Whether the run may stop: everything is decided or the limit is reached.
    #[must_use]
    pub fn finished(&self) -> bool {
        self.rounds >= self.limit || (self.of > 0 && self.decided == self.of)
    }
}

/// Whether the run may stop after the rounds it has.
#[must_use]
pub fn decided(run: &Run, options: &Options) -> bool {
    progress(run, options).finished()
}

/// The metrics that decide in a row or another, as far as can be told from the trials so far: indices into the run's.
#[must_use]
pub fn deciding(run: &Run) -> BTreeSet<u32> {
    let table = Table::new(run);
    let layout = Layout::new(run, &Options::default(), &table);
    layout.rows.into_iter().flat_map(|row| row.primaries).collect()
}

/// How far the run has come. With a fixed number of rounds nothing is decided before the last: looking early
/// would spend α that the single look needs.
#[must_use]
pub fn progress(run: &Run, options: &Options) -> Progress {
    let stop = options.stop(run);
    let begun = run.trials.iter().map(|trial| trial.round + 1).max().unwrap_or(0);
    let made_up_for = run.rounds_made_up_for().iter().map(BTreeSet::len).max().unwrap_or(0);
    let rounds = begun - made_up_for as u32;
    let table = Table::new(run);
    let layout = Layout::new(run, options, &table);
    let of = layout.family(false) as u32;
    if let Some(limit) = stop.rounds {
        return Progress { rounds, limit, decided: 0, of };
    }
    let setting = Setting::deciding(run, options, &table, &layout);
    let is_decided = |case: &Case| {
        let Some(found) = latest_verdict(&setting, case) else { return false };
        let failures = setting.failures(case).filter(|counts| counts.are_unequal());
        let stands = match failures.filter(|_| setting.rule == FailureRule::Compare) {
            None => Some(found),
            Some(counts) => {
                let with_worst = || latest_verdict(&setting.strict_with_worst(), case);
                what_stands(&counts, stop.alpha, found, with_worst)
            }
        };
        stands.is_some_and(|verdict| !options.beyond_delta.is_open(&verdict))
    };
    let mut decided = 0;
    for row in &layout.rows {
        for pair in layout.possible_pairs(row, false) {
            let cases = row.primaries.iter().map(|metric| Case::deciding(row, *metric, pair));
            decided += cases.filter(is_decided).count() as u32;
        }
    }
    Progress { rounds, limit: stop.max_rounds, decided, of }
}

#[cfg(test)]
mod tests {
    use super::super::made_up::{Made, run_of};
    use super::*;
    use crate::record::{Cell, Status};

    #[test]
    fn what_decides_is_known_from_the_first_trial() {
        let mut run = run_of(&Made::default(), 1);
        run.trials.truncate(1);
        assert_eq!(deciding(&run), [0].into());
        run.design.primary = Some("write.clat_ns.p99".to_owned());
        assert_eq!(deciding(&run), [3].into());
    }

    #[test]
    fn what_no_machine_can_do_holds_no_run_up() {
        let mut run = run_of(&Made::default(), 6);
        run.design.factors[0].levels.push("2".to_owned());
        run.cells.push(Cell { levels: vec![2] });
        let mut skipped = run.trials[0].clone();
        skipped.cell = 2;
        skipped.values.clear();
        skipped.status = Status::Skipped { reason: "no machine can".to_owned() };
        run.trials.push(skipped);
        let found = progress(&run, &Options::default());
        assert_eq!((found.decided, found.of), (1, 1));
        assert!(found.finished());
        // What was tried once may be compared yet.
        run.trials.last_mut().unwrap().status = Status::Done;
        let found = progress(&run, &Options::default());
        assert_eq!(found.of, 2);
        assert!(!found.finished());
    }
}
