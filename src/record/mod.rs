//! What was measured: the narrow waist between those that measure and those that judge.
//!
//! Enters: outcomes of trials, or other tools' results. Leaves: a [`Run`] that analyse and report can read
//! with no device at hand. It must not know statistics, the terminal or SQLite.

mod deltas;
mod design;
mod facts;
mod failure_kind;
mod fio_json;
mod fixed_rounds;
mod folded;
mod form;
mod histogram;
mod kept_file;
mod lead_in;
mod metric;
mod note;
mod probe;
mod rows;
mod trial;

pub use deltas::{Deltas, MetricDelta, delta_of, deltas_in_words};
pub use design::{
    Bisects, Cell, Design, Explains, Factor, FailureRule, LeftOut, Order, StopRule, Together, without_syncs,
};
pub use facts::HostFacts;
pub use failure_kind::FailureKind;
pub use fio_json::{FioJsonError, FioTrial, outcome_from_fio_json};
pub use fixed_rounds::{FixedRounds, SoFar};
pub use folded::{Folded, StackKind};
pub use form::{Form, Listed, OF_ANY, forms_of, includes_a_ramp};
pub use histogram::{HistogramError, LatencyHistogram, LatencyKind};
pub use kept_file::KeptFile;
pub use lead_in::LeadIn;
pub use metric::{Direction, Metric, Sample};
pub use note::{Note, NoteKind};
pub use probe::{PROBE_ENGINE, is_probe};
// Part of a metric's definition, so that those who make samples need no other layer.
pub use crate::units::{Better, Unit};
pub use crate::workload::{deciding_metrics, metric_advice, operations_for, other_direction, quantile_of};
pub use trial::{Outcome, Series, Status, Trial};

use std::collections::{BTreeSet, HashMap};

use serde::{Deserialize, Serialize};

/// Version of the JSON form of a [`Run`] (`assay export --format json`). A newer one is refused.
pub const RECORD_VERSION: u32 = 1;

/// The fact that says what made the machine busy when a run began.
pub const BUSY: &str = "now.busy";

/// Rounds, places and attempts end far below: one more never overflows.
const LARGEST_NUMBER: u32 = i32::MAX as u32;

/// Where a run's numbers come from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// Measured by assay, in rounds.
    Measured,
    /// Read from another tool's output; the text names the format, e.g. `fio json`.
    Imported(String),
}

/// How far a run came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// Being executed, or killed without a word.
    Running,
    /// Ended by its own rule.
    Finished,
    /// Ended by Ctrl-C or SIGTERM; everything was put back.
    Interrupted,
    /// Ended by an error; `notes` says which.
    Failed,
}

/// All of one invocation: the design, the facts and every trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// [`RECORD_VERSION`] of this record.
    pub version: u32,
    /// Its number in the store; `None` for imported results.
    pub id: Option<i64>,
    /// A short name: the job's or experiment's file name.
    pub name: String,
    /// Measured or imported.
    pub source: Source,
    /// How far it came.
    pub state: RunState,
    /// The assay that wrote it.
    pub assay_version: String,
    /// Start, nanoseconds since the Unix epoch; 0 when unknown.
    pub started_unix_ns: u64,
    /// The command line to repeat it.
    pub command_line: Vec<String>,
    /// Seed of every random choice.
    pub seed: u64,
    /// Engine and version, e.g. `native 0.1.0`, `fio-3.33`.
    pub engine: String,
    /// The job text as given (before overrides), when there is one.
    pub job_text: Option<String>,
    /// The resolved experiment, opaque here: `plan` reads it back for `--resume`.
    pub experiment: serde_json::Value,
    /// Factors, arms and the stop rule.
    pub design: Design,
    /// Whether this run compares the baseline with itself (`--aa`).
    pub aa: bool,
    /// Facts of the host: entry 0 is the run's own, taken at its start; trials point at others.
    pub facts: Vec<HostFacts>,
    /// Definitions of the metrics that trials refer to by index.
    pub metrics: Vec<Metric>,
    /// The cells; `Trial::cell` indexes this.
    pub cells: Vec<Cell>,
    /// The trials in the order they were run (imported: in file order).
    pub trials: Vec<Trial>,
    /// The trials that led into rounds, in the order they were run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lead_ins: Vec<LeadIn>,
    /// Things a reader must know, one sentence each.
    pub notes: Vec<Note>,
}

/// What a guest's processor is, in its facts.
const ACCELERATOR: &str = "guest.accelerator";

fn is_emulated(facts: &HostFacts) -> bool {
    facts.get(ACCELERATOR).is_some_and(|accelerator| accelerator.starts_with("tcg"))
}

impl Run {
    /// A run of which nothing is measured yet, begun at an unknown time.
    #[must_use]
    pub fn new(name: impl Into<String>, source: Source, state: RunState, design: Design) -> Run {
        Run {
            version: RECORD_VERSION,
            id: None,
            name: name.into(),
            source,
            state,
            assay_version: env!("CARGO_PKG_VERSION").to_owned(),
            started_unix_ns: 0,
            command_line: Vec::new(),
            seed: 0,
            engine: String::new(),
            job_text: None,
            experiment: serde_json::Value::Null,
            design,
            aa: false,
            facts: Vec::new(),
            metrics: Vec::new(),
            cells: Vec::new(),
            trials: Vec::new(),
            lead_ins: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// The index of `metric` in [`Run::metrics`], added when it is new.
    pub fn metric_index(&mut self, metric: &Metric) -> u32 {
        if let Some(at) = self.metrics.iter().position(|known| known == metric) {
            return at as u32;
        }
        self.metrics.push(metric.clone());
        (self.metrics.len() - 1) as u32
    }

    /// The index of `facts` in [`Run::facts`], added when they are new.
    pub fn facts_index(&mut self, facts: &HostFacts) -> u32 {
        if let Some(at) = self.facts.iter().position(|known| known == facts) {
            return at as u32;
        }
        let mut facts = facts.clone();
        facts.share(&self.facts);
        self.facts.push(facts);
        (self.facts.len() - 1) as u32
    }

    /// Checks that every index points at something and that counts can be counted on, so that nobody later has to doubt one.
    ///
    /// # Errors
    /// What is wrong, as a clause.
    pub fn check(&self) -> Result<(), String> {
        let design = &self.design;
        let Some(compared) = design.factors.get(design.compare) else {
            return Err("it compares a factor that it does not have".to_owned());
        };
        if compared.levels.is_empty() {
            return Err(format!("factor '{}' has no levels", compared.name));
        }
        for (number, cell) in self.cells.iter().enumerate() {
            let in_range = |(level, factor): (&u32, &Factor)| (*level as usize) < factor.levels.len();
            if cell.levels.len() != design.factors.len()
                || !cell.levels.iter().zip(&design.factors).all(in_range)
            {
                return Err(format!("cell {number} does not fit the factors"));
            }
        }
        let stop = &design.stop;
        let ratio = |value: f64| value.is_finite() && value >= 0.0;
        let own = |one: &MetricDelta| ratio(one.delta);
        if !design.deltas.iter().all(own) {
            return Err("its smallest differences that matter have numbers that mean nothing".to_owned());
        }
        if !ratio(stop.delta) || !ratio(stop.alpha) || stop.alpha >= 1.0 || stop.max_rounds > LARGEST_NUMBER {
            return Err("its stop rule has numbers that mean nothing".to_owned());
        }
        for (number, trial) in self.trials.iter().enumerate() {
            if trial.round.max(trial.position).max(trial.attempt) > LARGEST_NUMBER {
                return Err(format!("trial {number} is of a round that no run reaches"));
            }
            let lasted = trial.series.iter().map(|series| series.interval_s).chain([trial.elapsed_s]);
            if !lasted.into_iter().all(ratio) {
                return Err(format!("trial {number} has a time that is none"));
            }
            if trial.cell as usize >= self.cells.len() {
                return Err(format!("trial {number} is of cell {}, which does not exist", trial.cell));
            }
            if trial.values.iter().any(|(metric, _)| *metric as usize >= self.metrics.len()) {
                return Err(format!("trial {number} has a value of a metric that does not exist"));
            }
            let names: BTreeSet<&str> = trial.files.iter().map(|file| file.name.as_str()).collect();
            if names.len() < trial.files.len() || !names.into_iter().all(KeptFile::is_name) {
                return Err(format!("trial {number} has a file whose name is none, or two of one name"));
            }
            if trial.facts.is_some_and(|facts| facts as usize >= self.facts.len()) {
                return Err(format!("trial {number} has facts that do not exist"));
            }
        }
        for (number, lead_in) in self.lead_ins.iter().enumerate() {
            let known = (lead_in.cell as usize) < self.cells.len()
                && lead_in.values.iter().all(|(metric, _)| (*metric as usize) < self.metrics.len());
            if !known || lead_in.round > LARGEST_NUMBER || !ratio(lead_in.elapsed_s) {
                return Err(format!(
                    "lead-in {number} is of a cell, metric, round or time that does not exist"
                ));
            }
        }
        Ok(())
    }

    /// What made the machine busy when the run began, if anything did.
    #[must_use]
    pub fn busy_machine(&self) -> Option<&str> {
        self.facts.iter().find_map(|facts| facts.get(BUSY))
    }

    /// Whether guests of it ran in an emulated processor.
    #[must_use]
    pub fn was_emulated(&self) -> bool {
        self.facts.iter().any(is_emulated)
    }

    /// Whether some trials of it ran in such guests and some did not.
    #[must_use]
    pub fn was_partly_emulated(&self) -> bool {
        let of_trials = self.trials.iter().filter(|trial| trial.counts());
        let of_trials = of_trials.filter_map(|trial| self.facts.get(trial.facts? as usize));
        let (emulated, others): (Vec<&HostFacts>, Vec<&HostFacts>) =
            of_trials.partition(|facts| is_emulated(facts));
        !emulated.is_empty() && !others.is_empty()
    }

    /// Whether a trial failed in a way that would have come again, and its cause was gone when a resumed run tried its cell again: only
    /// such a run does. What failed was the machine as it was then, not the arm.
    #[must_use]
    pub fn was_mended(&self, failed: &Trial) -> bool {
        let later = || self.trials.iter().skip_while(|trial| !std::ptr::eq(*trial, failed));
        failed.is_lasting() && later().any(|trial| trial.cell == failed.cell && trial.status == Status::Done)
    }

    /// The trials that failed for good: at their latest attempt, which no further one follows, and of a cause that was not mended.
    pub fn failures(&self) -> impl Iterator<Item = &Trial> {
        let place = |trial: &Trial| (trial.round, trial.position, trial.cell);
        let latest: HashMap<_, _> = self.trials.iter().map(|trial| (place(trial), trial.attempt)).collect();
        self.trials.iter().filter(move |trial| {
            let is_latest = latest.get(&place(trial)) == Some(&trial.attempt);
            let has_failed = trial.is_final() && matches!(trial.status, Status::Failed { .. });
            is_latest && has_failed && !self.was_mended(trial)
        })
    }

    /// Labels of the compared factor's levels, the baseline first.
    #[must_use]
    pub fn arms(&self) -> &[String] {
        &self.design.factors[self.design.compare].levels
    }

    /// The arm (index into [`Run::arms`]) of a cell.
    #[must_use]
    pub fn arm_of(&self, cell: u32) -> usize {
        self.cells[cell as usize].levels[self.design.compare] as usize
    }
}
