//! What will be run: factors × levels → cells → rounds in balanced random order.
//!
//! Enters: an [`Experiment`], a seed, the directory for files. Leaves: a [`Plan`]: every cell resolved so far that an agent
//! needs nothing else, the order of every round, what is written and how long it can take. Pure and seeded: the same
//! input gives the same plan, which `--resume` relies on. It must not know engines' insides, records or the host.

mod bind;
mod cell;
mod cell_target;
mod chosen;
mod deciding;
mod error;
mod order;
mod outlook;

pub use cell::{CellSpec, SimulatedSpec};
pub use error::PlanError;
pub use outlook::{PlannedFile, Writes};

use std::path::Path;

use crate::experiment::{Experiment, StopRule};
use crate::workload::FioEffects;

/// A factor with its levels' labels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedFactor {
    /// Its name.
    pub name: String,
    /// Labels, the baseline first.
    pub levels: Vec<String>,
}

/// All that will be run.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Seed of every random choice.
    pub seed: u64,
    /// What varies; under `--aa` the one factor `a/a`.
    pub factors: Vec<PlannedFactor>,
    /// Index of the compared factor.
    pub compare: usize,
    /// Every combination of levels, the last factor varying fastest.
    pub cells: Vec<CellSpec>,
    /// When it ends.
    pub stop: StopRule,
    /// Whether the baseline is compared with itself.
    pub aa: bool,
    /// The metric that decides, if one is named.
    pub primary: Option<String>,
    /// Metrics shown besides.
    pub show: Vec<String>,
    /// Files the trials use; empty when `files_known` is false and nothing could be told.
    pub files: Vec<PlannedFile>,
    /// Whether `files` is complete: false for commands and for jobs that only fio understands.
    pub files_known: bool,
    /// What fio writes to, deletes and executes besides `files`.
    pub fio: FioEffects,
    /// Programs that must be found: `fio`, `sh`, a command's.
    pub tools: Vec<String>,
}

/// More cells than this are taken for a mistake.
const MOST_CELLS: usize = 1000;

impl Plan {
    /// Binds every key, crosses the levels and resolves every cell. Each works in a directory of its own called `own`,
    /// below the one it names, else the experiment's, else `base`; below that last one are relative paths of jobs.
    ///
    /// # Errors
    /// Keys that name nothing, values that cannot be, jobs the engine cannot take: all at once.
    pub fn new(experiment: &Experiment, seed: u64, base: &Path, own: &str) -> Result<Plan, PlanError> {
        let cells = cell::resolve(experiment, base, own)?;
        let outlook = outlook::Outlook::of(experiment, &cells);
        let factors = if experiment.aa {
            vec![PlannedFactor { name: "a/a".to_owned(), levels: vec!["A".to_owned(), "A'".to_owned()] }]
        } else {
            let labels = |factor: &crate::experiment::Factor| PlannedFactor {
                name: factor.name.clone(),
                levels: factor.levels.iter().map(|level| level.label.clone()).collect(),
            };
            experiment.factors.iter().map(labels).collect()
        };
        let primary = experiment.primary.clone().or_else(|| deciding::primary(&cells));
        Ok(Plan {
            seed,
            factors,
            compare: if experiment.aa { 0 } else { experiment.compare },
            cells,
            stop: experiment.stop,
            aa: experiment.aa,
            primary,
            show: experiment.show.clone(),
            files: outlook.files,
            files_known: outlook.files_known,
            fio: outlook.fio,
            tools: outlook.tools,
        })
    }

    /// The cells of a round (from 0) in the order they run, as indices into `cells`. Rounds come in blocks of two: a
    /// random order, then its reverse.
    #[must_use]
    pub fn order(&self, round: u32) -> Vec<usize> {
        order::order(self.seed, self.cells.len(), round)
    }

    /// Seed of one trial: another for every round, cell and attempt.
    #[must_use]
    pub fn trial_seed(&self, round: u32, cell: usize, attempt: u32) -> u64 {
        order::trial_seed(self.seed, round, cell, attempt)
    }

    /// Rounds after which the run ends in any case.
    #[must_use]
    pub fn rounds_at_most(&self) -> u32 {
        self.stop.rounds.unwrap_or(self.stop.max_rounds)
    }

    /// Trials after which the run ends in any case, retries aside.
    #[must_use]
    pub fn trials_at_most(&self) -> u64 {
        u64::from(self.rounds_at_most()) * self.cells.len() as u64
    }

    /// Longest time of one round in seconds; `None`: some cell runs until its amount of I/O is done.
    #[must_use]
    pub fn longest_round_s(&self) -> Option<f64> {
        self.cells.iter().map(|cell| cell.longest_s).sum()
    }

    /// Longest time of the whole run in seconds: a time budget ends it with the round that passes it. `None`: unknown.
    /// Layout of files, hooks and waiting for an idle device come on top.
    #[must_use]
    pub fn longest_s(&self) -> Option<f64> {
        let round = self.longest_round_s()?;
        let all = round * f64::from(self.rounds_at_most());
        Some(self.stop.time_budget_s.map_or(all, |budget| all.min(budget + round)))
    }
}

#[cfg(test)]
mod tests;
