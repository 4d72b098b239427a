//! A deciding latency that the engines of a pair begin to count at different moments: its difference would say nothing of the storage.
//!
//! Enters: a plan. Leaves: the metric. Where a rate makes I/Os due, native counts `lat_ns` from that time, fio from the issue.

use std::path::Path;

use super::Plan;
use super::cell_spec::CellSpec;
use crate::catalog::EngineKind;
use crate::workload::deciding_metrics;

impl Plan {
    /// The first deciding metric that means something else to the engine of another arm.
    #[must_use]
    pub fn latency_of_two_meanings(&self) -> Option<&str> {
        let wishes = deciding_metrics(self.primary.as_deref()?, |_| false);
        let mut of_lat = wishes.into_iter().filter(|(_, metric)| metric.split('.').nth(1) == Some("lat_ns"));
        let differ = |section: Option<&str>| {
            self.neighbours().any(|(_, _, pair)| {
                let fio = pair.map(|cell| cell.engine == EngineKind::Fio);
                fio[0] != fio[1]
                    && pair.iter().any(|cell| cell.engine != EngineKind::Fio && has_a_rate(cell, section))
            })
        };
        of_lat.find(|(section, _)| differ(*section)).map(|(_, metric)| metric)
    }
}

/// Whether the section has a rate; any, where none is named.
fn has_a_rate(cell: &CellSpec, section: Option<&str>) -> bool {
    let Some(workload) = &cell.workload else { return false };
    let instances = workload.instances(Path::new("/"));
    instances.iter().enumerate().any(|(at, instance)| {
        let is_asked = section.is_none_or(|section| section == workload.section_of(&instances, at));
        is_asked && workload.jobs[instance.job].rate.is_limited()
    })
}
