//! Which two arms of a row are compared: each candidate with the baseline, and on request every pair.
//!
//! Enters: a layout. Leaves: pairs of arms and their number, which is the size of the family that shares α. It must not know values.

use super::layout::{Layout, Row};

impl Layout {
    /// The pairs of a row, (baseline, candidate). Those with the first arm come first; with `all` the others stand behind them, of
    /// arms that the row has.
    pub(super) fn pairs(&self, row: &Row, all: bool) -> Vec<(usize, usize)> {
        let mut pairs: Vec<(usize, usize)> = self.candidates(row).into_iter().map(|arm| (0, arm)).collect();
        if all {
            let there: Vec<usize> = (1..self.arms.len()).filter(|arm| row.cells[*arm].is_some()).collect();
            for (at, first) in there.iter().enumerate() {
                pairs.extend(there[at + 1..].iter().map(|second| (*first, *second)));
            }
        }
        pairs
    }

    /// Those of the pairs that can be judged: no machine can do what a skipped cell asks for, so nothing will be claimed of it.
    pub(super) fn possible_pairs(&self, row: &Row, all: bool) -> Vec<(usize, usize)> {
        let is_skipped = |arm: usize| row.cells[arm].is_some_and(|cell| self.skipped.contains(&cell));
        let pairs = self.pairs(row, all).into_iter();
        pairs.filter(|(base, arm)| !is_skipped(*base) && !is_skipped(*arm)).collect()
    }

    /// Comparisons that decide: the primary metrics of each row × its pairs. They share α.
    pub(super) fn family(&self, all_pairs: bool) -> usize {
        let deciding = self.rows.iter().filter(|row| !row.primaries.is_empty());
        deciding.map(|row| row.primaries.len() * self.possible_pairs(row, all_pairs).len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::super::comparison::RowKey;
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn pairs_with_the_baseline_come_first() {
        let key = RowKey { levels: Vec::new(), job: String::new() };
        let row = |cells: [Option<u32>; 4]| Row {
            key: key.clone(),
            cells: cells.to_vec(),
            metrics: vec![0],
            primaries: vec![0],
        };
        let arms = ["a", "b", "c", "d"].map(str::to_owned).to_vec();
        let rows = vec![row([Some(0), Some(1), Some(2), Some(3)]), row([Some(4), Some(5), None, Some(6)])];
        let mut layout =
            Layout { factor: "x".to_owned(), arms, rows, deltas: Vec::new(), skipped: BTreeSet::new() };
        assert_eq!(layout.pairs(&layout.rows[0], false), [(0, 1), (0, 2), (0, 3)]);
        assert_eq!(layout.pairs(&layout.rows[0], true), [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]);
        assert_eq!(layout.pairs(&layout.rows[1], true), [(0, 1), (0, 3), (1, 3)]);
        assert_eq!((layout.family(false), layout.family(true)), (5, 9));
        // The second candidate of the first row; then the baseline of the other, where only candidates can be compared.
        layout.skipped = BTreeSet::from([2]);
        assert_eq!(layout.possible_pairs(&layout.rows[0], false), [(0, 1), (0, 3)]);
        assert_eq!((layout.family(false), layout.family(true)), (4, 6));
        layout.skipped = BTreeSet::from([2, 4]);
        assert_eq!((layout.family(false), layout.family(true)), (2, 4));
    }
}
