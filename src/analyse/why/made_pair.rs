//! Made-up runs for the tests of rules: a candidate that takes twice as long. A trial has 100,000 operations, so that a second of its
//! workers is 10 µs of each.

use super::super::made_up::{Made, run_of};
use super::super::{Options, analyse};
use super::{Cause, Why, why};
use crate::record::{Metric, Run};
use crate::units::{Better, Unit};

const ROUNDS: u32 = 8;
/// What the workers of a trial are counted for unless a test says otherwise: 2 of 10 µs more go to the kernel, 8 to sleep.
const COUNTED: [(&str, f64, f64); 4] = [
    ("workers.wall", 1.0, 2.0),
    ("usr_cpu", 0.1, 0.1),
    ("sys_cpu", 0.3, 0.5),
    ("workers.run_wait", 0.05, 0.05),
];

/// A run in whose trials these metrics have these values with the baseline and with the candidate, and a little noise.
pub(super) fn run_with(metrics: &[(&str, f64, f64)]) -> Run {
    let mut run = run_of(&Made { effect: -0.5, ..Made::default() }, ROUNDS);
    let others = COUNTED.iter().filter(|(name, ..)| !metrics.iter().any(|(own, ..)| own == name));
    for (name, baseline, candidate) in others.chain(metrics) {
        add(&mut run, name, |cell| if cell == 0 { *baseline } else { *candidate });
    }
    run
}

/// Gives all trials a metric, by their cell.
pub(super) fn add(run: &mut Run, name: &str, value: impl Fn(u32) -> f64) {
    let metric = Metric::new("", name, Unit::Count, Better::Lower);
    let at = run.metric_index(&metric);
    for trial in &mut run.trials {
        let noise = 1.0 + 0.001 * f64::from(trial.round);
        trial.values.retain(|(known, _)| *known != at);
        trial.values.push((at, value(trial.cell) * noise));
    }
}

/// What is found of a run with one pair.
pub(super) fn explained(run: &Run) -> Why {
    let mut all = why(run, &analyse(run, &Options::default()), None);
    assert_eq!(all.len(), 1);
    all.remove(0)
}

/// What one rule finds.
pub(super) fn found(metrics: &[(&str, f64, f64)], rule: &str) -> Vec<Cause> {
    explained(&run_with(metrics)).causes.into_iter().filter(|cause| cause.rule == rule).collect()
}

/// The time of a cause in ns an operation, rounded.
pub(super) fn ns(cause: &Cause) -> i64 {
    cause.estimate_ns().map_or(0, |ns| ns.round() as i64)
}
