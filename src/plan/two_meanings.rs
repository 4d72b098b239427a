//! A deciding latency that the engines of a pair begin to count at different moments: its difference would say nothing of the storage.
//!
//! Enters: a plan. Leaves: the metric. Where a rate makes I/Os due, native counts `lat_ns` from that time, fio from the issue.

use std::path::Path;

use super::Plan;
use super::cell_spec::CellSpec;
use crate::catalog::EngineKind;
use crate::workload::deciding_metrics;

/// As [`crate::workload::Rate`] has them.
const DIRECTIONS: [&str; 3] = ["read", "write", "trim"];

impl Plan {
    /// The first deciding metric that the native engine alone has, where a cell is fio's.
    #[must_use]
    pub fn latency_that_fio_lacks(&self) -> Option<&str> {
        let is_fio = self.cells.iter().any(|cell| cell.engine == EngineKind::Fio);
        let wishes = deciding_metrics(self.primary.as_deref().filter(|_| is_fio)?, |_| false);
        wishes.into_iter().map(|(_, metric)| metric).find(|metric| metric.starts_with("durable."))
    }

    /// The first deciding metric that means something else to the engine of another arm.
    #[must_use]
    pub fn latency_of_two_meanings(&self) -> Option<&str> {
        let wishes = deciding_metrics(self.primary.as_deref()?, |_| false);
        let differ = |section: Option<&str>, direction: usize| {
            self.neighbours().any(|(_, _, pair)| {
                let fio = pair.map(|cell| cell.engine == EngineKind::Fio);
                let is_due =
                    |cell: &&CellSpec| cell.engine != EngineKind::Fio && has_a_rate(cell, section, direction);
                fio[0] != fio[1] && pair.iter().any(is_due)
            })
        };
        let mut found = wishes.into_iter().filter(|(section, metric)| {
            // No rate makes a sync due.
            let direction = DIRECTIONS
                .iter()
                .position(|name| metric.strip_prefix(name).is_some_and(|rest| rest.starts_with(".lat_ns.")));
            direction.is_some_and(|direction| differ(*section, direction))
        });
        found.next().map(|(_, metric)| metric)
    }
}

/// Whether the section has a rate in this direction; any, where none is named.
fn has_a_rate(cell: &CellSpec, section: Option<&str>, direction: usize) -> bool {
    let Some(workload) = &cell.workload else { return false };
    let instances = workload.instances(Path::new("/"));
    instances.iter().enumerate().any(|(at, instance)| {
        let job = &workload.jobs[instance.job];
        let mix = job.pattern.mix;
        let goes = [mix.reads(), mix.writes(), mix.trims()][direction];
        let is_asked = section.is_none_or(|section| section == workload.section_of(&instances, at));
        is_asked && goes && job.rate.limits[direction].is_some()
    })
}
