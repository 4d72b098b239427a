//! How long a command's trials wait for an idle device.
//!
//! Enters: the run so far. Leaves: milliseconds. A command of 30 ms must not wait two seconds for a device that others keep busy.

use crate::catalog::EngineKind;
use crate::record::Run;

/// Times the longest trial so far.
const TIMES: f64 = 4.0;
/// Enough for the 50 ms of rest, with one disturbance in it.
const SHORTEST_MS: f64 = 100.0;
/// The wait of other engines.
const LONGEST_MS: f64 = 2000.0;

/// The longest wait before the next trial, the same for all cells; `None`: that of other engines.
pub(super) fn settle_ms(engine: EngineKind, run: &Run) -> Option<u64> {
    if engine != EngineKind::Command {
        return None;
    }
    let runtime = run.metrics.iter().position(|metric| metric.job.is_empty() && metric.name == "runtime")?;
    let of_trials = run.trials.iter().map(|trial| &trial.values);
    let all = of_trials.chain(run.lead_ins.iter().map(|lead_in| &lead_in.values)).flatten();
    let longest = all.filter(|(metric, _)| *metric as usize == runtime).map(|(_, seconds)| *seconds);
    let longest_ms = longest.reduce(f64::max)? * 1e3;
    Some((TIMES * longest_ms).clamp(SHORTEST_MS, LONGEST_MS) as u64)
}
