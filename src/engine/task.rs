//! What an engine is asked, what it answers, and the contract that all of them fulfil.
//!
//! It knows no engine, so that each can import it; [`super::of`] knows them all.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::catalog::MetricPattern;
use crate::record::{FailureKind, Outcome, Sample};

/// What an engine is asked to do in one trial.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// The job text with this cell's overrides applied (native, null, fio, simulated).
    pub job: Option<String>,
    /// Where the job text came from, for messages.
    pub job_origin: String,
    /// Values of `${VAR}`; also set in the environment of commands.
    pub variables: Vec<(String, String)>,
    /// Where files go that the job does not place itself.
    pub directory: PathBuf,
    /// argv of the command engine, variables already substituted.
    pub command: Vec<String>,
    /// What is read from the output of the command, or of the hooks where the engine runs none.
    pub patterns: Vec<MetricPattern>,
    /// What an engine with settings of its own is asked to do: settings by name; sizes are bytes, times seconds, truth values 0 or 1.
    #[serde(default)]
    pub settings: Vec<(String, String)>,
    /// The file with the counters of the device below `directory` (`/sys/block/X/stat`), for engines that measure parts of a
    /// trial; `None`: it has none.
    pub device_stat: Option<PathBuf>,
    /// What the simulated engine makes up.
    pub simulated: Option<SimulatedCell>,
    /// Seed of this trial's random choices (randrepeat=0, simulated).
    pub seed: u64,
    /// Most seconds the trial may take before it is stopped as failed; `None`: no limit.
    pub timeout_s: Option<f64>,
    /// Seconds after which its guest is given up with all that was to be done before and after it: far longer than it may take;
    /// `None`: not known. No engine looks at it.
    pub given_up_after_s: Option<f64>,
}

impl Task {
    /// Whether any section of the job runs before it counts. Read as fio writes it: the job may mean something to fio only.
    #[must_use]
    pub fn has_a_ramp(&self) -> bool {
        let lines = self.job.iter().flat_map(|job| job.lines()).filter_map(|line| line.split_once('='));
        lines
            .filter(|(key, _)| key.trim() == "ramp_time")
            .any(|(_, time)| time.contains(|digit: char| ('1'..='9').contains(&digit)))
    }
}

/// What the simulated engine makes up for one cell.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SimulatedCell {
    /// Median of `write.bw`, bytes a second.
    pub bw: f64,
    /// Effect of the cell as a ratio − 1.
    pub effect: f64,
    /// Coefficient of variation of the noise.
    pub cv: f64,
    /// Milliseconds each trial really sleeps.
    pub sleep_ms: u64,
    /// Share of trials that fail, to test retries.
    pub fail: f64,
}

/// Why an engine has no outcome.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// It cannot do what the task asks; the trial is skipped with this reason.
    #[error("{reason}")]
    Unsupported {
        /// One sentence.
        reason: String,
    },
    /// It tried and failed.
    #[error("{reason}")]
    Failed {
        /// Whether it may be tried again.
        kind: FailureKind,
        /// One line: what, where, errno's name.
        reason: String,
        /// The command to repeat it by hand; empty when there is none.
        command: String,
        /// Its last output.
        output: String,
        /// What was counted until then.
        so_far: Vec<Sample>,
    },
}

/// Name, version and place of an engine on this machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Probe {
    /// e.g. `fio-3.33`, `native 0.1.0`.
    pub version: String,
    /// Where the program is; `None` for built-in engines.
    pub path: Option<PathBuf>,
}

/// The contract of an engine.
pub trait Engine {
    /// Whether it can be used here, and its version.
    ///
    /// # Errors
    /// [`EngineError::Unsupported`] when the tool is missing or too old; the reason says how to get it.
    fn probe(&self) -> Result<Probe, EngineError>;

    /// Looks for what must fail here, and touches nothing; with `files_are_there` also at the files and devices that the
    /// task names, which are then what the trial will find. Finds nothing by default.
    ///
    /// # Errors
    /// [`EngineError::Failed`] as the trial would end; [`EngineError::Unsupported`] when the task cannot be read yet.
    fn look_ahead(&self, _task: &Task, _files_are_there: bool) -> Result<(), EngineError> {
        Ok(())
    }

    /// Files besides the tool's own that a trial reads and that must be where it runs. None by default.
    ///
    /// # Errors
    /// As [`Engine::probe`].
    fn reads(&self, _task: &Task) -> Result<Vec<PathBuf>, EngineError> {
        Ok(Vec::new())
    }

    /// Lays out what the trial will work on, so that observers do not see it. Nothing by default.
    ///
    /// # Errors
    /// As [`Engine::run`].
    fn prepare(&self, _task: &Task) -> Result<(), EngineError> {
        Ok(())
    }

    /// Files the task writes outside its directory; none where the engine cannot tell.
    fn written_elsewhere(&self, _task: &Task) -> Vec<PathBuf> {
        Vec::new()
    }

    /// Runs one trial. Called once, in a process of its own; must be killable at any point.
    ///
    /// # Errors
    /// [`EngineError::Unsupported`] before anything was touched, [`EngineError::Failed`] afterwards.
    fn run(&self, task: &Task) -> Result<Outcome, EngineError>;
}
