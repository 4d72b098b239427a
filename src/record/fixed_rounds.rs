//! How far a run with a fixed number of rounds has come.
//!
//! Enters: a [`Run`]. Leaves: for any of its cells the rounds that are there and those that were asked for, while some are
//! missing. Such a run is judged once, with all its rounds, so that nobody can look early and stop. It must not know results.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::{Run, RunState, Status, Trial};

/// Rounds that are there, of those that a run was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SoFar {
    /// Rounds that count.
    pub rounds: u32,
    /// Rounds asked for.
    pub of: u32,
}

/// The rounds of a run that was asked for a fixed number of them.
#[derive(Clone, Debug)]
pub struct FixedRounds {
    of: u32,
    /// By cell, how many rounds were thrown out for its row.
    excluded: Vec<u32>,
    /// By cell, the rounds that nothing can change any more.
    ended: Vec<BTreeSet<u32>>,
    /// Trials of a run that had not ended were taken out of it.
    torn_out: bool,
}

impl FixedRounds {
    /// The rounds of a run; `None` for one that may be judged after each of its rounds.
    #[must_use]
    pub fn of(run: &Run) -> Option<FixedRounds> {
        let of = run.design.stop.rounds?;
        let rows = run.row_of_cells();
        let thrown_out = run.excluded_rounds();
        let excluded = |cell: u32| &thrown_out[rows[cell as usize] as usize];
        let mut ended = vec![BTreeSet::new(); run.cells.len()];
        let mut lost = BTreeSet::new();
        for trial in latest(run) {
            if matches!(trial.status, Status::Skipped { .. })
                || (trial.is_lasting() && !run.was_mended(trial))
            {
                lost.insert(trial.cell);
            }
            // `--resume` tries again what failed lastingly: that round, or one instead of it, may still get its value.
            if !excluded(trial.cell).contains(&trial.round) && trial.is_final() && !trial.is_lasting() {
                ended[trial.cell as usize].insert(trial.round);
            }
        }
        // Until the last cell of a row has ended, the round may be thrown out for it.
        let mut cells_of: BTreeMap<(u32, u32), usize> = BTreeMap::new();
        let mut all = vec![0; thrown_out.len()];
        for (cell, rounds) in ended.iter().enumerate().filter(|(cell, _)| !lost.contains(&(*cell as u32))) {
            all[rows[cell] as usize] += 1;
            rounds.iter().for_each(|round| *cells_of.entry((rows[cell], *round)).or_default() += 1);
        }
        for (row, rounds) in rows.iter().zip(&mut ended) {
            let all = all[*row as usize];
            rounds.retain(|round| all == 0 || cells_of.get(&(*row, *round)) == Some(&all));
        }
        let excluded = rows.iter().map(|row| thrown_out[*row as usize].len() as u32).collect();
        let torn_out = !run.design.paired && run.state != RunState::Finished;
        Some(FixedRounds { of, excluded, ended, torn_out })
    }

    /// How far these cells are together; `None` when all rounds are there, or as many were thrown out as a run makes up for.
    #[must_use]
    pub fn so_far(&self, cells: &[u32]) -> Option<SoFar> {
        let (first, others) = cells.split_first()?;
        let all_have = |round: &&u32| others.iter().all(|cell| self.ended[*cell as usize].contains(round));
        let rounds = self.ended[*first as usize].iter().filter(all_have).count() as u32;
        let excluded = cells.iter().map(|cell| self.excluded[*cell as usize]).max().unwrap_or(0);
        let over = rounds >= self.of || rounds.saturating_add(excluded) / 2 >= self.of;
        (!over || self.torn_out).then_some(SoFar { rounds: rounds.min(self.of), of: self.of })
    }
}

impl Run {
    /// How far a run with a fixed number of rounds is with the cell that is furthest behind; `None`: it has them all.
    #[must_use]
    pub fn so_far(&self) -> Option<SoFar> {
        let rounds = FixedRounds::of(self)?;
        let behind = (0..self.cells.len() as u32).filter_map(|cell| rounds.so_far(&[cell]));
        behind.min_by_key(|so_far| so_far.rounds)
    }
}

/// The latest attempt at each cell of each round.
fn latest(run: &Run) -> impl Iterator<Item = &Trial> {
    let mut latest: HashMap<(u32, u32), &Trial> = HashMap::with_capacity(run.trials.len());
    for trial in &run.trials {
        let known = latest.entry((trial.cell, trial.round)).or_insert(trial);
        if known.attempt <= trial.attempt {
            *known = trial;
        }
    }
    latest.into_values()
}
