//! Times of an operation that observers tell, and which of them matter beside the others.
//!
//! Enters: comparisons that accompany, and how long an operation took. Leaves: those worth a line, in the order of their differences
//! in seconds. A percentage says nothing here: what grew from 0 to a nanosecond grew without bound. It must not judge.

use super::words::printed_alike;
use crate::analyse::{Analysis, Comparison, Operation};
use crate::record::Metric;
use crate::units::Unit;

/// How names of what observers measure begin.
const OBSERVED: [&str; 5] = ["cpu.", "locks.", "waits.", "blocks.", "fs."];
/// A smaller share of an operation's time is not worth a line.
const LEAST: f64 = 0.005;

/// Whether an observer measured it.
pub(super) fn is_observed(metric: &Metric) -> bool {
    OBSERVED.iter().any(|head| metric.name.starts_with(head))
}

/// Whether it is a time for each operation.
pub(super) fn is_time(metric: &Metric) -> bool {
    let in_time = matches!(metric.unit, Unit::Seconds | Unit::Nanoseconds);
    in_time && metric.name.contains("_per_op") && is_observed(metric)
}

/// Whether it is of one place in the kernel, of which an observer may name a dozen.
pub(super) fn is_place(metric: &Metric) -> bool {
    metric.name.contains(".at.") || metric.name.contains(".at_per_op.")
}

/// How far apart the arms are, in seconds an operation.
pub(super) fn difference_s(c: &Comparison) -> f64 {
    let difference = (c.candidate.median - c.baseline.median).abs();
    seconds(&c.metric, if difference.is_finite() { difference } else { 0.0 })
}

fn seconds(metric: &Metric, value: f64) -> f64 {
    if metric.unit == Unit::Nanoseconds { value * 1e-9 } else { value }
}

/// Whether one that is no time of an operation is there in any arm, and one that is matters beside the whole of it: of a place the
/// difference, of all places together the time itself.
pub(super) fn matters(c: &Comparison, analysis: &Analysis) -> bool {
    let medians = [c.baseline.median, c.candidate.median];
    if !is_time(&c.metric) {
        return !is_observed(&c.metric) || medians.iter().any(|median| *median != 0.0);
    }
    let own = medians.into_iter().map(|median| seconds(&c.metric, median)).fold(0.0, f64::max);
    let size = if is_place(&c.metric) { difference_s(c) } else { own };
    !printed_alike(c) && size > 0.0 && size >= LEAST * operation_s(c, analysis)
}

/// How long an operation took in the slower arm: as its workers spent it, or else the longest of the times that were observed.
fn operation_s(c: &Comparison, analysis: &Analysis) -> f64 {
    let is_its = |baseline: &str, candidate: &str| c.baseline.arm == baseline && c.candidate.arm == candidate;
    let summed = analysis.budgets.iter().filter(|budget| {
        let counted = matches!(budget.operation, Operation::Counted);
        counted && budget.row.levels == c.row.levels && is_its(&budget.baseline, &budget.candidate)
    });
    let summed = summed.map(|budget| budget.total.baseline_ns.max(budget.total.candidate_ns) * 1e-9);
    let known = summed.filter(|time| time.is_finite()).fold(0.0, f64::max);
    if known > 0.0 {
        return known;
    }
    let beside = analysis.comparisons.iter().filter(|other| {
        is_time(&other.metric) && other.row == c.row && is_its(&other.baseline.arm, &other.candidate.arm)
    });
    let times = beside.flat_map(|other| {
        [other.baseline.median, other.candidate.median].map(|median| seconds(&other.metric, median))
    });
    times.fold(0.0, f64::max)
}

/// The same comparisons with times of an operation in the order of their differences, the largest first, where the first of them
/// stood.
pub(super) fn ranked(comparisons: Vec<&Comparison>) -> Vec<&Comparison> {
    let Some(at) = comparisons.iter().position(|c| is_time(&c.metric)) else { return comparisons };
    let (mut times, mut others): (Vec<&Comparison>, Vec<&Comparison>) =
        comparisons.into_iter().partition(|c| is_time(&c.metric));
    times.sort_by(|a, b| difference_s(b).total_cmp(&difference_s(a)));
    others.splice(at..at, times);
    others
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::section_tests::made_up;
    use super::*;
    use crate::analyse::Role;

    /// What an observer tells of the made-up pair: a name and the medians of both arms in seconds.
    pub(in crate::report) fn observed(name: &str, medians: [f64; 2]) -> Comparison {
        let mut c = made_up().1.comparisons.remove(0);
        c.role = Role::Exploratory;
        c.metric = Metric { name: name.to_owned(), unit: Unit::Seconds, ..c.metric };
        [c.baseline.median, c.candidate.median] = medians;
        for arm in [&mut c.baseline, &mut c.candidate] {
            arm.values.iter_mut().for_each(|value| value.3 = arm.median);
        }
        c
    }

    #[test]
    fn times_are_ranked_by_what_they_take_and_not_by_percent() {
        let mut analysis = made_up().1;
        let told = [
            observed("locks.wait_time_per_op", [0.562e-9, 1746e-9]),
            observed("locks.at_per_op.spinlock.exit_to_user_mode_loop", [0.371e-9, 0.0]),
            observed("locks.at_per_op.spinlock.irqentry_exit_to_user_mode", [0.0, 0.0]),
            observed("blocks.flushes", [0.0, 0.0]),
            observed("locks.at_per_op.rwsem_W.ext4_buffered_write_iter", [0.0, 1481.5e-9]),
            observed("waits.sleep_time_per_op", [2e-9, 1730e-9]),
        ];
        analysis.comparisons.extend(told);
        let all: Vec<&Comparison> = analysis.comparisons.iter().collect();
        let names: Vec<&str> = ranked(all)
            .into_iter()
            .filter(|c| matters(c, &analysis))
            .map(|c| c.metric.name.as_str())
            .collect();
        let expected = [
            "bw",
            "locks.wait_time_per_op",
            "waits.sleep_time_per_op",
            "locks.at_per_op.rwsem_W.ext4_buffered_write_iter",
        ];
        assert_eq!(names, expected);
    }

    #[test]
    fn a_place_alike_in_both_arms_tells_nothing_and_a_sum_does() {
        let analysis = made_up().1;
        let place = observed("locks.at_per_op.mutex.f", [800e-9, 801e-9]);
        let sum = observed("locks.wait_time_per_op", [800e-9, 801e-9]);
        let mut with_both = analysis.clone();
        with_both.comparisons.extend([place.clone(), sum.clone()]);
        assert!(!matters(&place, &with_both) && matters(&sum, &with_both));
    }
}
