//! One arm's values of one metric in figures, and the change of its mean.
//!
//! Enters: points in trial order. Leaves: an [`ArmSummary`], an [`Interval`]. No verdicts here.

use super::comparison::{ArmSummary, Interval};
use super::table::Point;
use crate::stats::descriptive::{harmonic_mean, mean, quantile_of_sorted, stddev};
use crate::stats::{Estimate, bootstrap};
use crate::units::Better;

/// How far beyond the arm's median a trial must be to count as stalled.
const STALL: f64 = 1.5;

pub(super) fn summarise(arm: &str, points: &[Point], better: Better) -> ArmSummary {
    let values: Vec<f64> = points.iter().map(|point| point.value).collect();
    let mut sorted = values.clone();
    sorted.sort_by(f64::total_cmp);
    let median = quantile_of_sorted(&sorted, 0.5);
    let stalled = |value: &&f64| match better {
        Better::Lower => **value > STALL * median,
        Better::Higher => **value < median / STALL,
    };
    let stalls = values.iter().filter(stalled).count();
    ArmSummary {
        arm: arm.to_owned(),
        n: values.len(),
        mean: mean(&values),
        harmonic_mean: harmonic_mean(&values),
        median,
        min: sorted.first().copied().unwrap_or(f64::NAN),
        max: sorted.last().copied().unwrap_or(f64::NAN),
        stddev: stddev(&values),
        stall_rate: if values.is_empty() { 0.0 } else { stalls as f64 / values.len() as f64 },
        values: points.iter().map(|p| (p.round, p.position, p.started_unix_ns, p.value)).collect(),
    }
}

/// Ratio of means − 1 over rounds.
pub(super) fn mean_change_paired(pairs: &[(Point, Point)], seed: u64) -> Interval {
    let side = |of: fn(&(Point, Point)) -> f64| pairs.iter().map(of).collect::<Vec<_>>();
    less_one(bootstrap::ratio_of_means_paired(&side(|p| p.0.value), &side(|p| p.1.value), seed))
}

/// Ratio of means − 1 of independent arms.
pub(super) fn mean_change_unpaired(baseline: &[f64], candidate: &[f64], seed: u64) -> Interval {
    less_one(bootstrap::ratio_of_means_unpaired(baseline, candidate, seed))
}

fn less_one(ratio: Estimate) -> Interval {
    Interval { estimate: ratio.estimate - 1.0, low: ratio.low - 1.0, high: ratio.high - 1.0 }
}

/// A log-scale estimate as ratio − 1.
pub(super) fn as_ratio(log: Estimate) -> Interval {
    Interval { estimate: log.estimate.exp_m1(), low: log.low.exp_m1(), high: log.high.exp_m1() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(values: &[f64]) -> Vec<Point> {
        let point = |(at, value): (usize, &f64)| Point {
            round: at as u32,
            position: 0,
            started_unix_ns: 0,
            value: *value,
        };
        values.iter().enumerate().map(point).collect()
    }

    #[test]
    fn stalls_are_counted_on_the_bad_side_only() {
        let values = points(&[10.0, 10.0, 10.0, 16.0, 6.0]);
        assert_eq!(summarise("a", &values, Better::Lower).stall_rate, 0.2);
        assert_eq!(summarise("a", &values, Better::Higher).stall_rate, 0.2);
        assert_eq!(summarise("a", &points(&[10.0, 10.0, 16.0]), Better::Higher).stall_rate, 0.0);
        let empty = summarise("a", &[], Better::Lower);
        assert!(empty.n == 0 && empty.mean.is_nan() && empty.stall_rate == 0.0);
    }

    #[test]
    fn means_change_as_a_ratio() {
        let change = mean_change_unpaired(&[10.0, 12.0, 11.0, 11.0], &[22.0, 22.0, 21.0, 23.0], 1);
        assert!((change.estimate - 1.0).abs() < 1e-12 && change.low < 1.0 && change.high > 1.0);
    }
}
