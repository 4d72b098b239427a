//! Options of pace: rates, pauses, the latency that is kept.
//!
//! Enters: an option and its value. Leaves: what it says, in the draft.

use std::time::Duration;

use super::Draft;
use crate::workload::named_values::choose;
use crate::workload::pace::{LatencyTarget, Rate, RateLimit, RateProcess};
use crate::workload::values::{BARE_MICROSECONDS, Value, bad, boolean, decimal, directions, number, time};

/// What was said of pace; limits of 0 are none.
pub(super) struct PaceDraft {
    bytes: [u64; 3],
    ios: [u64; 3],
    process: RateProcess,
    target: Duration,
    window: Duration,
    percentile: f64,
    goes_on: bool,
}

impl Default for PaceDraft {
    fn default() -> PaceDraft {
        PaceDraft {
            bytes: [0; 3],
            ios: [0; 3],
            process: RateProcess::Linear,
            target: Duration::ZERO,
            window: Duration::ZERO,
            percentile: 100.0,
            goes_on: false,
        }
    }
}

impl Draft {
    pub(super) fn apply_pace(&mut self, name: &str, text: &str) -> Option<Value<()>> {
        let kb = self.kb_base;
        let pace = &mut self.pace;
        let think = &mut self.job.thinktime;
        let microseconds = |text: &str| time(text, BARE_MICROSECONDS);
        Some(match name {
            "thinktime" => microseconds(text).map(|time| think.pause = time),
            "thinktime_spin" => microseconds(text).map(|time| think.spin = time),
            // fio divides by it.
            "thinktime_blocks" => {
                number(text, kb, 1, u64::from(u32::MAX)).map(|every| think.every_ios = every as u32)
            }
            "rate" => directions(text, pace.bytes, |part| number(part, kb, 0, u64::MAX))
                .map(|limits| pace.bytes = limits),
            "rate_iops" => directions(text, pace.ios, |part| number(part, kb, 0, u64::from(u32::MAX)))
                .map(|limits| pace.ios = limits),
            "rate_process" => {
                choose(text, &[("linear", RateProcess::Linear), ("poisson", RateProcess::Poisson)])
                    .map(|process| pace.process = process)
            }
            "latency_target" => microseconds(text).map(|time| pace.target = time),
            "latency_window" => microseconds(text).map(|time| pace.window = time),
            "latency_run" => boolean(Some(text)).map(|on| pace.goes_on = on),
            "latency_percentile" => match decimal(text) {
                Ok(percent) if percent > 0.0 && percent <= 100.0 => {
                    pace.percentile = percent;
                    Ok(())
                }
                Ok(_) => bad(format!("{text} is not a percentile; write above 0, up to 100")),
                Err(fault) => Err(fault),
            },
            _ => return None,
        })
    }

    /// Puts the pace into the job; what does not fit together.
    pub(super) fn finish_pace(&mut self) -> Vec<String> {
        let mut wrong = Vec::new();
        let (pace, job) = (&self.pace, &mut self.job);
        // fio cuts the spin to the pause without a word; there is nothing else it could mean.
        // Without a pause it has no effect, which the engine says.
        if !job.thinktime.pause.is_zero() {
            job.thinktime.spin = job.thinktime.spin.min(job.thinktime.pause);
        }
        let limited = |limits: &[u64; 3]| limits.iter().any(|limit| *limit > 0);
        if limited(&pace.bytes) && limited(&pace.ios) {
            wrong.push("has both rate and rate_iops; leave one of them out".to_owned());
        }
        let limit = |at: usize| match (pace.bytes[at], pace.ios[at]) {
            (0, 0) => None,
            (0, ios) => Some(RateLimit::IosPerSecond(ios)),
            (bytes, _) => Some(RateLimit::BytesPerSecond(bytes)),
        };
        job.rate = Rate { limits: [limit(0), limit(1), limit(2)], process: pace.process };
        if !pace.target.is_zero() {
            if pace.window.is_zero() {
                wrong.push("latency_target needs latency_window=, e.g. latency_window=500ms".to_owned());
            }
            job.latency_target = Some(LatencyTarget {
                target: pace.target,
                window: pace.window,
                percentile: pace.percentile,
                goes_on: pace.goes_on,
            });
        }
        wrong
    }
}
