//! For which rows a round is thrown out.
//!
//! Enters: a [`Run`] whose disturbed trials are marked. Leaves: the cells that are compared with one of those. It must not know
//! results.

use std::collections::BTreeMap;

use crate::record::Run;

/// The rules by which a round is thrown out, each with the cells of the rows it holds for.
pub(super) fn disturbed_rows(run: &Run, round: u32) -> Vec<(String, Vec<u32>)> {
    let rows = run.row_of_cells();
    // Of a row that was disturbed twice the first rule holds.
    let mut rule_of: BTreeMap<u32, &str> = BTreeMap::new();
    for trial in run.trials.iter().filter(|trial| trial.round == round) {
        if let Some(rule) = &trial.excluded {
            rule_of.entry(rows[trial.cell as usize]).or_insert(rule);
        }
    }
    let mut found: Vec<(String, Vec<u32>)> = Vec::new();
    for (row, rule) in rule_of {
        let cells = (0..).zip(&rows).filter(|(_, of)| **of == row).map(|(cell, _)| cell);
        match found.iter_mut().find(|(known, _)| known == rule) {
            Some((_, known)) => known.extend(cells),
            None => found.push((rule.to_owned(), cells.collect())),
        }
    }
    found
}

/// Whether some trials of a row are marked and others are not: the round did not come to its end.
pub(super) fn is_half_excluded(run: &Run, round: u32) -> bool {
    let disturbed: Vec<u32> = disturbed_rows(run, round).into_iter().flat_map(|(_, cells)| cells).collect();
    let mut of_round = run.trials.iter().filter(|trial| trial.round == round);
    of_round.any(|trial| trial.excluded.is_none() && disturbed.contains(&trial.cell))
}
