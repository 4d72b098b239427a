//! What of a run is still to be done, by the trials there are and by which of them are this session's.
//!
//! Enters: a [`Run`], the number of trials it had when the session began. Leaves: which trials, cells and rows are left. It must
//! not know who executes them.

use std::collections::BTreeSet;

use crate::record::{FailureKind, FailureRule, Run, Status, Trial};

/// A run as one session sees it.
#[derive(Clone, Copy)]
pub(super) struct Remaining<'r> {
    /// The run.
    pub(super) run: &'r Run,
    /// Trials of earlier sessions; those from here on are this one's.
    pub(super) session: usize,
}

impl Remaining<'_> {
    /// How often a trial was tried, in any session.
    pub(super) fn attempts(&self, round: u32, position: u32) -> u32 {
        self.of(round, position).count() as u32
    }

    /// Whether a trial is not tried any more. What failed in an earlier session in a way that would come again may have been
    /// mended since then: a resumed run tries it once in the round that session broke off in. What earlier rounds lack is not
    /// filled in: those trials would stand one behind the other, on another day than what they are compared with. New rounds of the
    /// whole row make up for them.
    pub(super) fn settled(&self, round: u32, position: u32) -> bool {
        self.is_closed(round) || self.of(round, position).any(|(at, trial)| self.settles(at, trial))
    }

    /// Whether an earlier session went on after the round.
    fn is_closed(&self, round: u32) -> bool {
        self.run.trials[..self.session].iter().any(|trial| trial.round > round)
    }

    /// The rounds of earlier sessions in which a cell that is not lost has no trial, for each row.
    fn not_whole(&self, rows: &[u32], lost: &BTreeSet<u32>) -> Vec<BTreeSet<u32>> {
        let mut of_rows = vec![BTreeSet::new(); rows.iter().max().map_or(0, |last| *last as usize + 1)];
        let closed = self.run.trials[..self.session].iter().map(|trial| trial.round).max().unwrap_or(0);
        if closed == 0 {
            return of_rows;
        }
        let trials = self.run.trials.iter().enumerate();
        let there: BTreeSet<(u32, u32)> = trials
            .filter(|(at, trial)| self.settles(*at, trial))
            .map(|(_, trial)| (trial.cell, trial.round))
            .collect();
        for (cell, row) in (0..).zip(rows).filter(|(cell, _)| !lost.contains(cell)) {
            let missing = (0..closed).filter(|round| !there.contains(&(cell, *round)));
            of_rows[*row as usize].extend(missing);
        }
        of_rows
    }

    /// Most rounds of earlier sessions that a row must make up for.
    pub(super) fn most_not_whole(&self) -> u32 {
        let of_rows = self.not_whole(&self.run.row_of_cells(), &self.all_lost());
        of_rows.iter().map(BTreeSet::len).max().unwrap_or(0) as u32
    }

    fn of(&self, round: u32, position: u32) -> impl Iterator<Item = (usize, &Trial)> {
        let all = self.run.trials.iter().enumerate();
        all.filter(move |(_, trial)| trial.round == round && trial.position == position)
    }

    fn settles(&self, at: usize, trial: &Trial) -> bool {
        trial.is_final() && !(at < self.session && trial.is_lasting())
    }

    /// Whether a cell has no more trials: it cannot be run here, or failed in this session for a reason that lasts.
    pub(super) fn lost(&self, cell: usize) -> bool {
        let of_cell = self.run.trials.iter().enumerate().filter(|(_, trial)| trial.cell as usize == cell);
        of_cell.into_iter().any(|(at, trial)| self.loses(at, trial))
    }

    fn loses(&self, at: usize, trial: &Trial) -> bool {
        matches!(trial.status, Status::Skipped { .. }) || (at >= self.session && trial.is_lasting())
    }

    fn all_lost(&self) -> BTreeSet<u32> {
        let trials = self.run.trials.iter().enumerate();
        trials.filter(|(at, trial)| self.loses(*at, trial)).map(|(_, trial)| trial.cell).collect()
    }

    /// Whether cells were lost, and no row has its baseline and a candidate left.
    pub(super) fn nothing_to_compare(&self) -> bool {
        let lost = self.all_lost();
        let compare = self.run.design.compare;
        let left = |baseline: bool| {
            let cells = self.run.cells.iter().zip(0..).filter(|(_, number)| !lost.contains(number));
            let of_arm = cells.filter(move |(cell, _)| (cell.levels[compare] == 0) == baseline);
            of_arm.map(|(cell, _)| {
                let others = cell.levels.iter().enumerate().filter(|(factor, _)| *factor != compare);
                others.map(|(_, level)| *level).collect::<Vec<u32>>()
            })
        };
        let baselines: BTreeSet<Vec<u32>> = left(true).collect();
        !lost.is_empty() && !left(false).any(|row| baselines.contains(&row))
    }

    /// Whether a cell was lost because it failed, not because it cannot be run here.
    pub(super) fn any_given_up(&self) -> bool {
        self.run.trials[self.session..].iter().any(Trial::is_lasting)
    }

    /// For each cell, how many of the first `rounds` rounds were not thrown out for its row and have all that is left of it. Rows of
    /// which no cell is left lack none.
    pub(super) fn rounds_that_count(&self, rounds: u32) -> Vec<u32> {
        let (rows, excluded, lost) = (self.run.row_of_cells(), self.run.excluded_rounds(), self.all_lost());
        let left: BTreeSet<u32> =
            (0..).zip(&rows).filter(|(cell, _)| !lost.contains(cell)).map(|(_, row)| *row).collect();
        let not_whole = self.not_whole(&rows, &lost);
        let counted = |row: &u32| match left.contains(row) || left.is_empty() {
            true => {
                let (excluded, not_whole) = (&excluded[*row as usize], &not_whole[*row as usize]);
                rounds - excluded.union(not_whole).filter(|round| **round < rounds).count() as u32
            }
            false => rounds,
        };
        rows.iter().map(counted).collect()
    }

    /// Most trials that are still to come in so many rounds.
    pub(super) fn trials_left(&self, rounds: u32) -> u64 {
        let lost = self.all_lost();
        let planned = u64::from(rounds) * (self.run.cells.len() - lost.len()) as u64;
        let rows = self.run.row_of_cells();
        let not_whole = self.not_whole(&rows, &lost);
        let is_made_up_for =
            |trial: &Trial| not_whole[rows[trial.cell as usize] as usize].contains(&trial.round);
        let done = self.run.trials.iter().enumerate().filter(|(at, trial)| {
            let counts = trial.excluded.is_none() && !is_made_up_for(trial);
            counts && !lost.contains(&trial.cell) && self.settles(*at, trial)
        });
        planned.saturating_sub(done.count() as u64)
    }

    /// In how many rounds running up to this one the latest attempts at a cell failed, where that is enough to give it up: two where
    /// it never worked, four where it did; where failures are what is compared, one that has worked is not given up. Wrong data twice are
    /// enough in any case.
    pub(super) fn keeps_failing(&self, cell: usize, round: u32) -> Option<u32> {
        let of_cell = || self.run.trials.iter().rev().filter(|trial| trial.cell as usize == cell);
        let failed = |round: u32| {
            let latest = of_cell().find(|trial| trial.round == round);
            latest.is_some_and(|trial| trial.is_final() && matches!(trial.status, Status::Failed { .. }))
        };
        let has_worked = of_cell().any(|trial| trial.status == Status::Done);
        let wrong = of_cell().any(|trial| {
            trial.round + 1 >= round
                && matches!(trial.status, Status::Failed { kind: FailureKind::WrongData, .. })
        });
        let enough = match (has_worked && !wrong, self.run.design.failures) {
            (false, _) => 2,
            (true, FailureRule::Compare) => 4,
            (true, FailureRule::Worst) => return None,
        };
        (round + 1 >= enough && (round + 1 - enough..=round).all(failed)).then_some(enough)
    }
}
