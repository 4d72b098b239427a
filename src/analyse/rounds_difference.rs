//! The difference of two arms over rounds, in the unit of the values, looked at once.
//!
//! Enters: a value of both arms for each round. Leaves: an interval of candidate − baseline that holds 95 % by itself. It is for finding
//! out why; claims are made elsewhere. It must not know what the values are.

use super::comparison::Interval;
use super::paired::{Once, one_look};
use crate::stats::crossover::Crossover;

/// What an interval leaves out; each holds by itself.
const OUTSIDE: f64 = 0.05;

/// The values of one round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Both {
    pub baseline: f64,
    pub candidate: f64,
    /// The candidate ran second.
    pub second: bool,
}

/// Candidate − baseline, judged as any other paired difference that is looked at once. Differences are judged as shares of `unit`,
/// which must not be 0. `None`: too few rounds.
pub(super) fn difference(rounds: &[Both], unit: f64) -> Option<Interval> {
    let shares: Vec<f64> = rounds.iter().map(|both| (both.candidate - both.baseline) / unit).collect();
    let second: Vec<bool> = rounds.iter().map(|both| both.second).collect();
    let found = one_look(
        &Crossover::new(&shares, &second),
        Once { level: OUTSIDE, comparisons: 1, outside: OUTSIDE, exact: false },
    )?
    .interval?;
    let [estimate, low, high] = [found.estimate, found.low, found.high].map(|share| share * unit);
    Some(Interval { estimate, low, high })
}
