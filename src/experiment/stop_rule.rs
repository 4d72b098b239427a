//! When a run stops, as written: rounds, the smallest difference that matters, error rate, times.
//!
//! Enters: `[stop]` and the command line's options over it. Leaves: a [`StopRule`], and mistakes with their places.

use super::assemble::Check;
use super::placed::Placed;
use super::written::Written;
use crate::catalog::{Deltas, MetricDelta, StopRule};
use crate::units::{parse_duration_s, parse_ratio};

/// Most rounds of a run that stops by itself.
pub const MAX_ROUNDS: u64 = StopRule::MOST_ROUNDS as u64;
/// No trial and no run takes longer: a year.
const LONGEST_S: f64 = 365.0 * 86_400.0;
/// Nobody waits longer than this before each trial.
const LONGEST_SETTLE_S: f64 = 3600.0;
/// Rounds of an A/A run unless said otherwise.
const AA_ROUNDS: u32 = 10;

impl Check<'_> {
    /// The rule, and the smallest differences that matter in some metrics.
    pub(super) fn stop(&mut self, written: &Written) -> (StopRule, Vec<MetricDelta>) {
        let (mut stop, mut deltas) = (StopRule::default(), Vec::new());
        if let Some(rounds) = &written.max_rounds {
            match rounds.value {
                4..=MAX_ROUNDS => stop.max_rounds = rounds.value as u32,
                other => {
                    self.mistake(&rounds.place, format!("max_rounds is {other}; write 4 to {MAX_ROUNDS}"));
                }
            }
        }
        if written.aa {
            stop.rounds = Some(AA_ROUNDS.min(stop.max_rounds));
        }
        if let Some(rounds) = &written.rounds {
            match rounds.value {
                1..=100_000 => stop.rounds = Some(rounds.value as u32),
                other => self.mistake(&rounds.place, format!("rounds is {other}; write 1 to 100000")),
            }
        }
        if let Some(delta) = &written.delta {
            match delta.value.parse::<Deltas>() {
                Ok(said) => {
                    stop.delta = said.others.unwrap_or(stop.delta);
                    deltas = said.of_metrics;
                }
                Err(message) => self.mistake(&delta.place, format!("delta: {message}")),
            }
        }
        if let Some(alpha) = &written.alpha {
            match parse_ratio(&alpha.value) {
                Ok(alpha) if (1e-4..=0.5).contains(&alpha) => stop.alpha = alpha,
                Ok(_) => self.mistake(&alpha.place, format!("alpha is {}; write 0.01% to 50%", alpha.value)),
                Err(message) => self.mistake(&alpha.place, format!("alpha: {message}")),
            }
        }
        stop.exact = written.exact;
        if let Some(place) = &written.anytime {
            stop.anytime = true;
            if stop.rounds.is_some() || stop.exact {
                let other = if stop.exact { "exact" } else { "a fixed number of rounds" };
                self.mistake(place, format!("anytime and {other} exclude each other; leave one out"));
            }
        }
        stop.time_budget_s = written.time_budget.as_ref().and_then(|text| self.seconds(text));
        (stop, deltas)
    }

    /// How long a device is waited for, which may be not at all.
    pub(super) fn settle(&mut self, text: &Placed<String>) -> Option<f64> {
        match parse_duration_s(&text.value, 1.0) {
            Ok(seconds) if (0.0..=LONGEST_SETTLE_S).contains(&seconds) => return Some(seconds),
            Ok(_) => self.mistake(&text.place, "settle is over an hour; write e.g. 2s, or 0 for no wait"),
            Err(message) => self.mistake(&text.place, message),
        }
        None
    }

    pub(super) fn seconds(&mut self, text: &Placed<String>) -> Option<f64> {
        match parse_duration_s(&text.value, 1.0) {
            Ok(seconds) if seconds > 0.0 && seconds <= LONGEST_S => Some(seconds),
            Ok(seconds) => {
                let what = if seconds > 0.0 { "a time over a year" } else { "a time of 0" };
                self.mistake(&text.place, format!("{what}; write e.g. 10m"));
                None
            }
            Err(message) => {
                self.mistake(&text.place, message);
                None
            }
        }
    }
}
