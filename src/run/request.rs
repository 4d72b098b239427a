//! From a planned cell to what the agent is asked.

use crate::launch::{KEEPS_TRACES, PROTOCOL, Request, SimulatedCell, TargetSpec, Task};
use crate::plan::{CellSpec, Plan};

/// What the agent needs besides the cell.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    /// Where each cell works, in the order of the plan's cells.
    pub targets: Vec<TargetSpec>,
    /// Shell hook before each trial.
    pub before: Option<String>,
    /// Shell hook after each trial.
    pub after: Option<String>,
    /// Whether what `blocks` sees is kept as files of the trial.
    pub keep_traces: bool,
    /// What is read from the output of the command or of hooks.
    pub patterns: Vec<crate::catalog::MetricPattern>,
}

/// The request for one trial of a cell.
#[must_use]
pub fn request(plan: &Plan, surroundings: &Surroundings, cell: usize, round: u32) -> Request {
    let spec = &plan.cells[cell];
    let mut target = surroundings.targets[cell].clone();
    if let Some(setup) = &mut target.setup {
        setup.epoch = setup.settings.epoch(round);
    }
    let task = Task {
        job: spec.job_text.clone(),
        job_origin: spec.job_origin.clone(),
        variables: spec.variables.clone(),
        directory: target.directory.clone(),
        command: spec.command.clone(),
        patterns: surroundings.patterns.clone(),
        settings: spec.settings.clone(),
        device_stat: None,
        simulated: simulated(spec),
        seed: plan.trial_seed(round, cell, 0),
        timeout_s: spec.timeout_s,
        given_up_after_s: given_up_after_s(spec, surroundings),
    };
    let observer = |name: &String| match name.as_str() {
        "blocks" if surroundings.keep_traces => KEEPS_TRACES.to_owned(),
        _ => name.clone(),
    };
    Request {
        protocol: PROTOCOL,
        engine: spec.engine,
        task,
        target,
        rehearsal: false,
        observe: spec.observe.iter().map(observer).collect(),
        before: surroundings.before.clone(),
        after: surroundings.after.clone(),
    }
}

/// A guest whose kernel spins cannot end its trial, so one of known length is given up when it takes far longer. How long hooks take is
/// not known.
fn given_up_after_s(spec: &CellSpec, surroundings: &Surroundings) -> Option<f64> {
    const TIMES: f64 = 10.0;
    const AND_S: f64 = 120.0;
    /// Files are filled no slower than this, emulated or not.
    const LAYOUT_BYTES_PER_S: f64 = 4e6;
    let has_hooks = surroundings.before.is_some() || surroundings.after.is_some();
    let longest_s = spec.longest_s.filter(|_| spec.target.is_elsewhere() && !has_hooks)?;
    Some(TIMES * longest_s + AND_S + spec.laid_out_bytes as f64 / LAYOUT_BYTES_PER_S)
}

fn simulated(spec: &CellSpec) -> Option<SimulatedCell> {
    spec.simulated.map(|made_up| SimulatedCell {
        bw: made_up.bw,
        effect: made_up.effect,
        cv: made_up.cv,
        sleep_ms: made_up.sleep_ms,
        fail: made_up.fail,
    })
}
