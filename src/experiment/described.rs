//! A validated experiment: plain data that is stored with the run and read back for `--resume`.
//!
//! Enters: nothing. Leaves: the structs. Times are seconds, ratios fractions.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::target_settings::TargetSettings;
use super::tool_settings::ToolSettings;
use crate::catalog::{EngineKind, MetricDelta, Runs, StopRule, metrics_of_tracepoint};

/// The metrics that stand for an observer in reports; only jobs do operations that are counted.
pub(super) fn headlines(observer: &str, engine: EngineKind) -> Vec<String> {
    if let Some([count, per_op]) = metrics_of_tracepoint(observer) {
        return vec![if engine.descriptor().runs == Runs::Job { per_op } else { count }];
    }
    let named: &[&str] = match observer {
        "extents" => &["extents.per_file", "extents.owner_changes_per_mib"],
        "cpu" => &["cpu.kernel_time_per_op", "cpu.user_time_per_op"],
        "locks" => &["locks.wait_time_per_op", "locks.at_per_op"],
        "waits" => &["waits.sleep_time_per_op", "waits.at_per_op"],
        "calls" => &["calls.slow"],
        "blocks" => &["blocks.read.q2c.mean", "blocks.write.q2c.mean", "blocks.flushes_per_op"],
        "fs" => &["fs.time_per_op.commit", "fs.time_per_op.log_write", "fs.time_per_op.sync"],
        _ => &[],
    };
    named.iter().map(|metric| (*metric).to_owned()).collect()
}

/// A job file's text with what is needed to read it again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobSource {
    /// The text; includes are written out in it.
    pub text: String,
    /// What messages call it.
    pub origin: String,
    /// Where its includes were looked up.
    pub base_dir: PathBuf,
}

/// Which kind of thing a key may name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Namespace {
    /// A variable, then a fio option, then a setting.
    Any,
    /// `job.KEY`: a variable or a fio option.
    Job,
    /// `target.KEY`: a setting of target or launch.
    Target,
}

/// One key set to one value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assignment {
    /// Which kinds of thing the key may name.
    pub namespace: Namespace,
    /// The key without its namespace.
    pub key: String,
    /// The value as text.
    pub value: String,
}

/// One level of a factor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Level {
    /// What reports call it.
    pub label: String,
    /// What it sets.
    pub set: Vec<Assignment>,
}

/// One thing varied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Factor {
    /// Its name.
    pub name: String,
    /// Its levels, the baseline first; at least one.
    pub levels: Vec<Level>,
}

/// What the simulated engine makes up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Simulated {
    /// Median of `write.bw`, bytes a second.
    pub bw: f64,
    /// Coefficient of variation of the noise.
    pub cv: f64,
    /// Milliseconds each trial really sleeps.
    pub sleep_ms: u64,
    /// Share of trials that fail.
    pub fail: f64,
    /// Effect of a level as a ratio − 1, keyed `factor=label`; those of a cell multiply.
    pub effects: Vec<(String, f64)>,
}

impl Default for Simulated {
    fn default() -> Self {
        Simulated { bw: 100e6, cv: 0.02, sleep_ms: 0, fail: 0.0, effects: Vec::new() }
    }
}

/// Everything a user asked for, validated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Experiment {
    /// A short name: the experiment's or the file's.
    pub name: String,
    /// The job; `None` for the command engine and possibly the simulated one.
    pub job: Option<JobSource>,
    /// argv of the command engine, variables not replaced.
    pub command: Vec<String>,
    /// Which engine.
    pub engine: EngineKind,
    /// Where files go that the job does not place itself; absolute. `None`: a directory made for the run.
    pub directory: Option<PathBuf>,
    /// The current directory in which a run of it was begun, which relative paths are below.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begun_in: Option<PathBuf>,
    /// What the trials work on, where no level says otherwise.
    #[serde(default)]
    pub target: TargetSettings,
    /// What varies, in the order given.
    pub factors: Vec<Factor>,
    /// Index of the factor whose levels are the arms.
    pub compare: usize,
    /// Constants for `${NAME}`.
    pub variables: Vec<(String, String)>,
    /// The metric that decides; `None`: chosen from what is measured.
    pub primary: Option<String>,
    /// Metrics that reports have tables of besides, whatever they show.
    #[serde(default)]
    pub show: Vec<String>,
    /// Shell command before each trial.
    pub before: Option<String>,
    /// Shell command after each trial.
    pub after: Option<String>,
    /// What is watched besides what always is: names out of [`OBSERVERS`](crate::catalog::OBSERVERS) and tracepoints, each once.
    #[serde(default)]
    pub observe: Vec<String>,
    /// The events that `blocks` watches are kept with each trial, as files.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keep_traces: bool,
    /// What is read from the output of the command, or of hooks where there is none, in the syntax of `--metric`.
    pub metrics: Vec<String>,
    /// What the simulated engine makes up.
    pub simulated: Option<Simulated>,
    /// What engines with settings of their own are asked to do, where no level says otherwise.
    #[serde(default)]
    pub tools: ToolSettings,
    /// Most seconds a trial may take.
    pub trial_timeout_s: Option<f64>,
    /// Longest wait for an idle device before each trial, in seconds; `None`: the default, 0: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settle_s: Option<f64>,
    /// When it ends.
    pub stop: StopRule,
    /// The smallest difference that matters in some metrics; in the others the rule's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deltas: Vec<MetricDelta>,
    /// Compare the baseline with itself.
    pub aa: bool,
    /// No trial leads into a round: what a trial leaves behind is not kept from the next one.
    #[serde(default)]
    pub no_lead_in: bool,
    /// Count every round, also those in which others disturbed the machine.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keep_disturbed: bool,
}
