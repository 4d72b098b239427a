//! Which cluster (boot, host, session) each imported trial belongs to.
//!
//! Enters: a run's facts. Leaves: [`Clusters`], which divide the values of a column. What made the clusters is for import.

use std::collections::{BTreeMap, HashMap};

use super::table::Point;
use crate::record::{HostFacts, Run};

/// The cluster of each trial.
pub(super) struct Clusters {
    /// What one is called.
    pub(super) kind: String,
    /// By (cell, round).
    of: HashMap<(u32, u32), u32>,
}

impl Clusters {
    /// Clusters that the facts of trials name; `None` where they name none, and in assay's own runs, which pair by round.
    pub(super) fn of(run: &Run) -> Option<Clusters> {
        if run.design.paired {
            return None;
        }
        let clusters: Vec<Option<(&str, &str)>> = run.facts.iter().map(HostFacts::cluster).collect();
        let kind = clusters.iter().flatten().next()?.0.to_owned();
        let mut numbers: HashMap<&str, u32> = HashMap::new();
        let of = run.trials.iter().map(|trial| {
            let facts = trial.facts.and_then(|at| clusters.get(at as usize).copied().flatten());
            // Trials that do not say theirs are one.
            let label = facts.map_or("", |(_, label)| label);
            let next = numbers.len() as u32;
            ((trial.cell, trial.round), *numbers.entry(label).or_insert(next))
        });
        Some(Clusters { of: of.collect(), kind })
    }

    /// The values of a column by cluster.
    pub(super) fn split(&self, cell: Option<u32>, column: &[Point]) -> BTreeMap<u32, Vec<f64>> {
        let mut found: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
        for point in column {
            let cluster = cell.and_then(|cell| self.of.get(&(cell, point.round)));
            found.entry(cluster.copied().unwrap_or(u32::MAX)).or_default().push(point.value);
        }
        found
    }
}
