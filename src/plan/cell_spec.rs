//! One cell with its job, command and settings filled in, as `cell.rs` makes it.

use std::path::PathBuf;

use crate::catalog::EngineKind;
use crate::experiment::TargetSettings;
use crate::workload::{JobFile, Workload};

/// What the simulated engine makes up for a cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SimulatedSpec {
    /// Median of `write.bw`, bytes a second.
    pub bw: f64,
    /// Effect of the cell as a ratio − 1.
    pub effect: f64,
    /// Coefficient of variation of the noise.
    pub cv: f64,
    /// Milliseconds each trial really sleeps.
    pub sleep_ms: u64,
    /// Share of trials that fail.
    pub fail: f64,
}

/// One cell, complete: what an agent is told.
#[derive(Clone, Debug, PartialEq)]
pub struct CellSpec {
    /// One level index a planned factor.
    pub levels: Vec<u32>,
    /// `factor=label` of every factor, for messages; under `--aa` A or A'.
    pub label: String,
    /// Which engine.
    pub engine: EngineKind,
    /// Where files go that the job does not place itself: a directory of assay's own, or the filesystem made for it.
    pub directory: PathBuf,
    /// The directory of assay's own that is made before the first trial and removed after the last; `directory` or above.
    pub work: PathBuf,
    /// What it works on.
    pub target: TargetSettings,
    /// Directory below `work` that holds all of the device and filesystem made for it; `None`: none is made.
    pub stack: Option<PathBuf>,
    /// The job text with overrides applied and variables replaced.
    pub job_text: Option<String>,
    /// That text, read; `None`: there is none, or fio alone can read it.
    pub job: Option<JobFile>,
    /// What that job is to assay; `None`: there is none, or it has a meaning only to fio.
    pub workload: Option<Workload>,
    /// What messages call the job.
    pub job_origin: String,
    /// argv with variables replaced.
    pub command: Vec<String>,
    /// For the environment of command and hooks: constants, variables, and every factor whose name can be one.
    pub variables: Vec<(String, String)>,
    /// What an engine with settings of its own is asked to do: settings by name, in base units.
    pub settings: Vec<(String, String)>,
    /// What the simulated engine makes up.
    pub simulated: Option<SimulatedSpec>,
    /// Observers asked for by name.
    pub observe: Vec<String>,
    /// Most seconds a trial may take before it is stopped as failed.
    pub timeout_s: Option<f64>,
    /// Bytes of files, or of a device, that are filled before each trial.
    pub laid_out_bytes: u64,
    /// Longest time of a trial by the job's own runtimes, in seconds; `None`: unknown.
    pub longest_s: Option<f64>,
}
