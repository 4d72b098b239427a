//! How long a plan takes at most.
//!
//! Enters: the cells with the longest times of their jobs. Leaves: seconds, with what each trial takes besides its job: round
//! figures of a machine with two processors, which the time left of a run soon replaces by its own.

use super::Plan;
use super::cell::CellSpec;
use crate::catalog::{EngineKind, Reaches};

/// A fresh agent, facts of the host, sync and 50 ms of rest.
const TRIAL_S: f64 = 0.2;
/// fio starts its jobs, and collects them.
const FIO_S: f64 = 0.6;
/// A device, a filesystem, a mount, and all that undone.
const TARGET_S: f64 = 0.15;
/// Files that are only read are written in full before.
const LAYOUT_BYTES_PER_S: f64 = 400e6;
/// The first look, the store, the report.
const RUN_S: f64 = 0.7;

impl Plan {
    /// Longest time of one trial of each cell in seconds, when each waits so long for its device; `None`: it runs until its
    /// amount of I/O is done.
    #[must_use]
    pub fn longest_trials_s(&self, wait_s: f64) -> Vec<Option<f64>> {
        let besides = |cell: &CellSpec| match cell.engine {
            engine if engine.descriptor().reaches == Reaches::Nothing => TRIAL_S,
            EngineKind::Fio => TRIAL_S + FIO_S + wait_s,
            _ => TRIAL_S + wait_s,
        };
        let makes = |cell: &CellSpec| if cell.target.makes() { TARGET_S } else { 0.0 };
        let layout = |cell: &CellSpec| cell.laid_out_bytes as f64 / LAYOUT_BYTES_PER_S;
        let all = self.cells.iter();
        all.map(|cell| Some(cell.longest_s? + besides(cell) + makes(cell) + layout(cell))).collect()
    }

    /// Longest time of one round in seconds, its lead-in being of a cell as long as their mean: each leads in as often.
    #[must_use]
    pub fn longest_round_s(&self, wait_s: f64) -> Option<f64> {
        let trials = self.longest_trials_s(wait_s).into_iter().sum::<Option<f64>>()?;
        Some(if self.lead_in { trials + trials / self.cells.len() as f64 } else { trials })
    }

    /// Longest time of the whole run in seconds: a time budget ends it with the trial that passes it. `None`: unknown.
    /// Hooks come on top, and rounds that are made up for.
    #[must_use]
    pub fn longest_s(&self, wait_s: f64) -> Option<f64> {
        let all = self.longest_round_s(wait_s)? * f64::from(self.rounds_at_most());
        let trial = self.longest_trials_s(wait_s).into_iter().flatten().fold(0.0, f64::max);
        Some(RUN_S + self.stop.time_budget_s.map_or(all, |budget| all.min(budget + trial)))
    }
}
