//! One arm's values of one metric in figures, and the change of its mean.
//!
//! Enters: points in trial order. Leaves: an [`ArmSummary`], an [`Interval`]. No verdicts here.

use super::comparison::{ArmSummary, Interval};
use super::table::Point;
use crate::stats::descriptive::{harmonic_mean, mean, median, quantile_of_sorted, stddev};
use crate::stats::{Estimate, ratio_of_means};
use crate::units::Better;

/// How far beyond its arm's median a trial must be to count as stalled.
const STALL: f64 = 1.5;

/// Beyond which value a trial of an arm stalled, and on which side.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct StallThreshold {
    value: f64,
    better: Better,
}

/// 1.5 × the arm's own median: an arm whose every trial is slow does not stall, it is slow. `None` where the median is not above 0.
pub(super) fn stall_threshold(points: &[Point], better: Better) -> Option<StallThreshold> {
    let middle = median(&points.iter().map(|point| point.value).collect::<Vec<_>>());
    let value = match better {
        Better::Lower => middle * STALL,
        Better::Higher => middle / STALL,
    };
    (value > 0.0).then_some(StallThreshold { value, better })
}

pub(super) fn summarise(arm: &str, points: &[Point], threshold: Option<StallThreshold>) -> ArmSummary {
    let values: Vec<f64> = points.iter().map(|point| point.value).collect();
    let mut sorted = values.clone();
    sorted.sort_by(f64::total_cmp);
    let median = quantile_of_sorted(&sorted, 0.5);
    let stalled = |value: &&f64| {
        threshold.is_some_and(|beyond| match beyond.better {
            Better::Lower => **value > beyond.value,
            Better::Higher => **value < beyond.value,
        })
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
pub(super) fn mean_change_paired(pairs: &[(Point, Point)]) -> Interval {
    let side = |of: fn(&(Point, Point)) -> f64| pairs.iter().map(of).collect::<Vec<_>>();
    less_one(ratio_of_means::paired(&side(|p| p.0.value), &side(|p| p.1.value)))
}

/// Ratio of means − 1 of independent arms.
pub(super) fn mean_change_unpaired(baseline: &[f64], candidate: &[f64]) -> Interval {
    less_one(ratio_of_means::unpaired(baseline, candidate))
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
        let alone = |values: &[Point], better| summarise("a", values, stall_threshold(values, better));
        let values = points(&[10.0, 10.0, 10.0, 16.0, 6.0]);
        assert_eq!(alone(&values, Better::Lower).stall_rate, 0.2);
        assert_eq!(alone(&values, Better::Higher).stall_rate, 0.2);
        assert_eq!(alone(&points(&[10.0, 10.0, 16.0]), Better::Higher).stall_rate, 0.0);
        let empty = alone(&[], Better::Lower);
        assert!(empty.n == 0 && empty.mean.is_nan() && empty.stall_rate == 0.0);
    }

    #[test]
    fn an_arm_that_is_slow_in_every_trial_does_not_stall() {
        let rate = |values: &[f64]| {
            let values = points(values);
            summarise("a", &values, stall_threshold(&values, Better::Lower)).stall_rate
        };
        let mut slow = [25.0; 30];
        assert_eq!((rate(&[10.0; 30]), rate(&slow)), (0.0, 0.0));
        slow[..3].fill(50.0);
        assert_eq!(rate(&slow), 0.1);
        assert_eq!(stall_threshold(&points(&[0.0]), Better::Lower), None);
    }

    #[test]
    fn means_change_as_a_ratio() {
        let change = mean_change_unpaired(&[10.0, 12.0, 11.0, 11.0], &[22.0, 22.0, 21.0, 23.0]);
        assert!((change.estimate - 1.0).abs() < 1e-12 && change.low < 1.0 && change.high > 1.0);
    }
}
