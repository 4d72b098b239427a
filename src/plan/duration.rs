//! How long a plan takes at most.
//!
//! Enters: the cells with the longest times of their jobs, and what is expected of the machine. Leaves: seconds, with what each trial
//! takes besides its job. The figures are those of an idle machine with two processors (`scripts/promised-time.sh` compares them with
//! real runs); the time left of a run soon replaces them by its own.

use super::Plan;
use super::cell_spec::CellSpec;
use crate::catalog::{EngineKind, OBSERVERS, Reaches};

/// A fresh agent, facts of the host, sync and 50 ms of rest.
const TRIAL_S: f64 = 0.15;
/// fio starts its jobs, and collects them.
const FIO_S: f64 = 0.4;
/// A device, a filesystem, a mount, and all that undone.
const TARGET_S: f64 = 0.1;
/// The same where each instruction is interpreted.
const EMULATED: f64 = 6.0;
/// Files are filled before the trials that read them.
const LAYOUT_BYTES_PER_S: f64 = 400e6;
/// The first look, the store, the report.
const RUN_S: f64 = 0.7;

/// What is known of the machine before the first trial.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Expected {
    /// How long each trial probably waits for its device.
    pub wait_s: f64,
    /// Rounds that are run for each one that counts: the others are thrown out for what else runs here.
    pub rounds_for_one: f64,
    /// What booting a guest takes that all trials share.
    pub first_boots_s: f64,
    /// What booting the guests of one round takes, where each round has its own.
    pub boots_s: f64,
    /// What a trial in a guest takes besides its job; `None`: no trial is run in one.
    pub in_guest_s: Option<f64>,
    /// Whether guests are emulated.
    pub emulated: bool,
}

impl Default for Expected {
    /// An idle machine, and no guests.
    fn default() -> Self {
        Expected {
            wait_s: 0.0,
            rounds_for_one: 1.0,
            first_boots_s: 0.0,
            boots_s: 0.0,
            in_guest_s: None,
            emulated: false,
        }
    }
}

impl Plan {
    /// Longest time of one trial of each cell in seconds, boots aside; `None`: it runs until its amount of I/O is done.
    #[must_use]
    pub fn longest_trials_s(&self, expected: &Expected) -> Vec<Option<f64>> {
        self.cells.iter().map(|cell| Some(cell.longest_s? + besides_s(cell, expected))).collect()
    }

    /// Longest time of one round in seconds, its lead-in being of a cell as long as their mean: each leads in as often.
    #[must_use]
    pub fn longest_round_s(&self, expected: &Expected) -> Option<f64> {
        let trials = self.longest_trials_s(expected).into_iter().sum::<Option<f64>>()?;
        let led = if self.lead_in { trials / self.cells.len() as f64 } else { 0.0 };
        Some(trials + led + expected.boots_s)
    }

    /// Longest time in seconds of a run that ends after so many rounds that count: a time budget ends it with the trial that passes
    /// it. `None`: unknown. Hooks come on top.
    #[must_use]
    pub fn longest_s(&self, rounds: u32, expected: &Expected) -> Option<f64> {
        let all = self.longest_round_s(expected)? * f64::from(rounds) * expected.rounds_for_one;
        let trial = self.longest_trials_s(expected).into_iter().flatten().fold(0.0, f64::max);
        let all = RUN_S + expected.first_boots_s + self.rehearsals_s(expected) + all;
        Some(self.stop.time_budget_s.map_or(all, |budget| all.min(budget + trial)))
    }

    /// What making the target of a cell once, and putting it back, takes.
    #[must_use]
    pub fn rehearsal_s(&self, cell: usize, expected: &Expected) -> f64 {
        self.cells.get(cell).map_or(0.0, |cell| target_s(cell, expected))
    }

    /// Every target is made once before the first trial. What the guests of the first round are booted for is this.
    fn rehearsals_s(&self, expected: &Expected) -> f64 {
        let mut seen: Vec<&CellSpec> = Vec::new();
        for cell in self.cells.iter().filter(|cell| cell.target.makes() || cell.target.is_elsewhere()) {
            if !seen.iter().any(|known| known.target == cell.target && known.work == cell.work) {
                seen.push(cell);
            }
        }
        seen.into_iter().map(|cell| target_s(cell, expected)).sum()
    }
}

/// What a trial takes besides its job.
fn besides_s(cell: &CellSpec, expected: &Expected) -> f64 {
    let slow = slowness(cell, expected);
    let agent = match expected.in_guest_s.filter(|_| cell.target.is_elsewhere()) {
        // As a trial took there before, with its target.
        Some(in_guest_s) => in_guest_s,
        None => TRIAL_S + if cell.target.makes() { TARGET_S } else { 0.0 },
    };
    let engine = if cell.engine == EngineKind::Fio { FIO_S * slow } else { 0.0 };
    let wait = if cell.engine.descriptor().reaches == Reaches::Nothing { 0.0 } else { expected.wait_s };
    let observers = OBSERVERS.iter().filter(|row| cell.observe.iter().any(|name| name == row.name));
    let observing = observers.map(|row| row.trial_s * slow).sum::<f64>();
    agent + engine + wait + observing + cell.laid_out_bytes as f64 / LAYOUT_BYTES_PER_S * slow
}

/// What making a target and putting it back takes.
fn target_s(cell: &CellSpec, expected: &Expected) -> f64 {
    (TRIAL_S + TARGET_S) * slowness(cell, expected)
}

/// How much longer everything takes where the cell's trials are run.
fn slowness(cell: &CellSpec, expected: &Expected) -> f64 {
    if cell.target.is_elsewhere() && expected.emulated { EMULATED } else { 1.0 }
}
