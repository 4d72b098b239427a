//! Which cells are compared with each other.
//!
//! Enters: a [`Run`]. Leaves: the row of each cell: cells of one row differ in the compared factor alone. It must not know
//! results.

use std::collections::{BTreeMap, BTreeSet};

use super::{Run, Trial};

impl Run {
    /// For each cell the number of its row, rows counted in the order of their first cells.
    #[must_use]
    pub fn row_of_cells(&self) -> Vec<u32> {
        let mut known: BTreeMap<Vec<u32>, u32> = BTreeMap::new();
        let others = |cell: &super::Cell| -> Vec<u32> {
            let levels = cell.levels.iter().enumerate();
            levels.filter(|(factor, _)| *factor != self.design.compare).map(|(_, level)| *level).collect()
        };
        let number = |cell| {
            let next = known.len() as u32;
            *known.entry(others(cell)).or_insert(next)
        };
        self.cells.iter().map(number).collect()
    }

    /// For each row the rounds that were thrown out for it.
    #[must_use]
    pub fn excluded_rounds(&self) -> Vec<BTreeSet<u32>> {
        let rows = self.row_of_cells();
        let mut excluded = vec![BTreeSet::new(); rows.iter().max().map_or(0, |last| *last as usize + 1)];
        for trial in self.trials.iter().filter(|trial| trial.excluded.is_some()) {
            if let Some(row) = rows.get(trial.cell as usize) {
                excluded[*row as usize].insert(trial.round);
            }
        }
        excluded
    }

    /// For each row the rounds that were thrown out for it, and those without a trial of a cell that could not be run then and was tried
    /// again since, with another end: other rounds are run instead of them.
    #[must_use]
    pub fn rounds_made_up_for(&self) -> Vec<BTreeSet<u32>> {
        let (rows, mut of_rows) = (self.row_of_cells(), self.excluded_rounds());
        // Of several of a cell the last.
        let latest: BTreeMap<u32, &Trial> = self.trials.iter().map(|trial| (trial.cell, trial)).collect();
        let failed = self.trials.iter().filter(|trial| trial.is_lasting()).map(|trial| trial.cell);
        let mended: BTreeSet<u32> =
            failed.filter(|cell| latest.get(cell).is_some_and(|trial| !trial.is_lasting())).collect();
        let last = self.trials.iter().map(|trial| trial.round).max().unwrap_or(0);
        for cell in mended {
            let of_cell = self.trials.iter().filter(|trial| trial.cell == cell);
            let there: BTreeSet<u32> = of_cell
                .filter(|trial| trial.is_final() && !trial.is_lasting())
                .map(|trial| trial.round)
                .collect();
            of_rows[rows[cell as usize] as usize].extend((0..last).filter(|round| !there.contains(round)));
        }
        of_rows
    }
}
