//! What a metric's step does to its interval and to "no difference".
//!
//! Enters: the values of both arms and the interval that a test gave. Leaves: the interval as it can be said, and
//! whether the step is too coarse to say "no difference". How a step is found: [`crate::stats::step`].
//!
//! A value read as v stands for anything within half a step of v, so a difference of two arms is off by up to a whole
//! step. Where the noise is smaller than the step, every round is off by the same amount, and no number of rounds
//! averages it out. So each end is at least a whole step away from the estimate: with half a step the interval would
//! hold the truth in three of four cases only (the error is the sum of two uniform ones).
//!
//! A rate is an amount by a time, and is no finer than the clock which that time was read from: fio's `runtime` has
//! milliseconds, so that a trial of 2 ms has rates that are known within half of them, however many digits they have.
//!
//! What the kernel or an engine counts one by one (I/Os, flushes, extents, context switches) is exact and has no step, however
//! few different values it has.
//!
//! Steps cannot make a difference out of nothing: rounding keeps the order of values, and arms that are exchangeable
//! stay so. So what the test excluded stays excluded: an end that would cross 0 stops beside it.

use super::scale::Scale;
use super::table::Point;
use crate::stats::{Estimate, descriptive, step};
use crate::units::Unit;

/// Beside 0: an end that is only known to lie on one side of it.
pub(super) const BESIDE_ZERO: f64 = 1e-9;

/// Seconds: fio tells times of a job in milliseconds.
const TICK_S: f64 = 1e-3;

/// The step of a comparison's values on the scale of its interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Steps {
    /// On the scale of the interval.
    size: f64,
    /// As a ratio − 1.
    share: f64,
    /// It is more than half of δ: "no difference" cannot be said.
    coarse: bool,
}

impl Steps {
    /// The step on `scale`, of ratios relative to the smaller median of the two arms; `delta` is a ratio − 1, and `tick` the share
    /// of a value that a tick of its clock is.
    pub(super) fn on(scale: Scale, unit: &Unit, arms: [&[Point]; 2], tick: f64, delta: f64) -> Steps {
        let (all, typical) = values(arms);
        let own = of_constants(unit, arms).unwrap_or_else(|| step::step(&all));
        let size = scale.step(own.max(tick * typical.abs()), typical);
        let share = scale.share_of(size);
        // A step of exactly δ/2 is fine, however it is rounded.
        Steps { size, share, coarse: share > 0.5 * delta * (1.0 + 1e-9) }
    }

    /// The larger of two.
    pub(super) fn larger(self, other: Steps) -> Steps {
        if other.size > self.size { other } else { self }
    }

    /// Twice the step: that of a difference of two differences.
    pub(super) fn doubled(self, delta: f64) -> Steps {
        let share = (1.0 + self.share) * (1.0 + self.share) - 1.0;
        Steps { size: 2.0 * self.size, share, coarse: share > 0.5 * delta * (1.0 + 1e-9) }
    }

    /// The step as a ratio − 1.
    pub(super) fn share(self) -> f64 {
        self.share
    }

    /// Whether "no difference" cannot be said: the step is more than half of δ.
    pub(super) fn too_coarse(self) -> bool {
        self.coarse
    }

    /// The interval with each end at least a step from the estimate; it excludes 0 exactly when `plain` does.
    pub(super) fn widen(self, plain: Estimate) -> Estimate {
        let (mut low, mut high) =
            (plain.low.min(plain.estimate - self.size), plain.high.max(plain.estimate + self.size));
        if plain.low > 0.0 {
            low = low.max(BESIDE_ZERO.min(plain.low));
        }
        if plain.high < 0.0 {
            high = high.min((-BESIDE_ZERO).max(plain.high));
        }
        Estimate { low, high, ..plain }
    }
}

/// The step where neither arm ever moves, and they differ: what lies between them is the effect, and no step. Amounts show their last
/// decimal. A clock shows a multiple of its tick, so that the step of times is their common divisor. Nothing like that is known of rates:
/// `None`.
fn of_constants(unit: &Unit, arms: [&[Point]; 2]) -> Option<f64> {
    let constant = |points: &[Point]| {
        let first = points.first()?.value;
        points.iter().all(|point| point.value == first).then_some(first)
    };
    let (base, cand) = (constant(arms[0])?, constant(arms[1])?);
    match unit {
        _ if base == cand => None,
        Unit::BytesPerSecond | Unit::PerSecond => None,
        Unit::Seconds | Unit::Nanoseconds => Some(step::step(&[0.0, base, cand])),
        _ => Some(step::step(&[base]).max(step::step(&[cand]))),
    }
}

/// The share that a tick of a clock is of the shorter times of two arms.
///
/// A clock of which all readings are equal shows no more than its last decimal; no clock of an engine is coarser than [`TICK_S`].
pub(super) fn tick_share(times: [&[Point]; 2]) -> f64 {
    let (all, typical) = values(times);
    if all.is_empty() {
        return 0.0;
    }
    let tick = step::step(&all).min(TICK_S);
    if tick > 0.0 { tick / typical.max(tick) } else { 0.0 }
}

/// The values of both arms, and the smaller median of the two.
fn values(arms: [&[Point]; 2]) -> (Vec<f64>, f64) {
    let [base, cand] = arms.map(|points| points.iter().map(|point| point.value).collect::<Vec<f64>>());
    let typical = descriptive::median(&base).min(descriptive::median(&cand));
    (base.into_iter().chain(cand).collect(), typical)
}

#[cfg(test)]
mod tests {
    use super::super::comparison::{Caveat, Comparison, Role, Verdict};
    use super::super::made_up::{Made, run_of};
    use super::super::{Options, analyse, decided};
    use super::*;
    use crate::record::{Run, StopRule};

    /// A run of `write.bw` only, read with steps of `step` of the baseline's level; `phase` of a step moves the level.
    fn stepped(made: &Made, rounds: u32, step: f64, phase: f64) -> Run {
        let mut run = run_of(made, rounds);
        run.metrics.truncate(1);
        let size = step * 4096.0 * 20_000.0;
        for trial in &mut run.trials {
            trial.values.truncate(1);
            trial.values[0].1 = (trial.values[0].1 / size + phase).round();
        }
        run
    }

    fn primary(run: &Run) -> Comparison {
        analyse(run, &Options::default()).comparisons.into_iter().find(|c| c.role == Role::Primary).unwrap()
    }

    fn no_difference(found: &Comparison) -> bool {
        matches!(found.verdict, Verdict::NoDifference { .. })
    }

    #[test]
    fn steps_of_ten_percent_never_say_no_difference() {
        let (mut said, mut covered, mut judged) = (0, 0, 0);
        for seed in 0..1_000_u32 {
            let cv = [0.002, 0.01, 0.03, 0.08][seed as usize % 4];
            let phase = f64::from(seed) * 0.618_034 % 1.0 - 0.5;
            let made = Made { effect: 0.03, cv, seed: u64::from(seed), ..Made::default() };
            let mut run = stepped(&made, 30, 0.1, phase);
            for rounds in [30, 12, 6, 4] {
                run.trials.truncate(2 * rounds);
                let found = primary(&run);
                said += u32::from(no_difference(&found));
                if rounds == 30 {
                    let effect = found.effect.unwrap();
                    judged += 1;
                    covered += u32::from(effect.low <= 0.03 && effect.high >= 0.03);
                }
            }
        }
        assert_eq!(said, 0);
        println!("covered {covered} of {judged}");
        assert!(covered >= 950, "{covered}");
    }

    #[test]
    fn steps_make_no_false_claims() {
        let mut claims = 0;
        for seed in 0..300_u32 {
            let phase = f64::from(seed) * 0.618_034 % 1.0 - 0.5;
            let made = Made { effect: 0.0, cv: 0.03, seed: u64::from(seed), ..Made::default() };
            let whole = stepped(&made, 30, 0.1, phase);
            let mut run = whole.clone();
            for rounds in 4..=30 {
                run.trials = whole.trials[..2 * rounds].to_vec();
                if decided(&run, &Options::default()) {
                    break;
                }
            }
            claims +=
                u32::from(matches!(primary(&run).verdict, Verdict::Faster { .. } | Verdict::Slower { .. }));
        }
        println!("{claims} of 300 claims");
        assert!(claims <= 15, "{claims}");
    }

    #[test]
    fn one_step_apart_in_every_round_is_a_claim_of_unknown_size() {
        let fixed = StopRule { rounds: Some(10), ..StopRule::default() };
        let made = Made { effect: 0.1, cv: 0.001, stop: fixed, ..Made::default() };
        let found = primary(&stepped(&made, 10, 0.1, 0.0));
        assert_eq!(found.verdict, Verdict::Faster { beyond_delta: false });
        let effect = found.effect.unwrap();
        assert!(effect.low > 0.0 && effect.low < 1e-6 && (effect.high - 0.21).abs() < 1e-9, "{effect:?}");
        let told = found
            .caveats
            .iter()
            .any(|c| matches!(c, Caveat::Steps { refused: false, step } if (step - 0.1).abs() < 1e-9));
        assert!(told, "{:?}", found.caveats);
    }

    #[test]
    fn fine_steps_change_nothing() {
        // 0.1 % steps under 1 % noise: the interval is the same as without steps but for the rounding.
        let made = Made { effect: 0.0, cv: 0.002, ..Made::default() };
        let (fine, coarse) = (primary(&run_of(&made, 30)), primary(&stepped(&made, 30, 1e-5, 0.0)));
        assert!(no_difference(&fine) && no_difference(&coarse));
        let (a, b) = (fine.effect.unwrap(), coarse.effect.unwrap());
        assert!((a.low - b.low).abs() < 2e-5 && (a.high - b.high).abs() < 2e-5, "{a:?} {b:?}");
        assert!(!coarse.caveats.iter().any(|c| matches!(c, Caveat::Steps { .. })));
    }

    #[test]
    fn equal_values_are_no_difference_only_where_fine_enough() {
        let constant = |value: f64| {
            let mut run = run_of(&Made::default(), 8);
            run.trials.iter_mut().for_each(|trial| trial.values[0].1 = value);
            primary(&run)
        };
        let coarse = constant(5.0);
        assert!(matches!(coarse.verdict, Verdict::Undecided { rounds_for_no_difference: None, .. }));
        let told =
            |c: &Caveat| matches!(c, Caveat::Steps { step, refused: true } if (step - 0.2).abs() < 1e-9);
        assert!(coarse.caveats.iter().any(told), "{:?}", coarse.caveats);
        assert!(no_difference(&constant(100.0)), "a step of exactly half of δ");
        assert!(no_difference(&constant(81_920_000.0)) && no_difference(&constant(5.125)));
    }

    #[test]
    fn arms_that_never_move_are_apart_by_an_effect_and_not_by_a_step() {
        let found = |unit: Unit, values: [f64; 2]| {
            let mut run = run_of(&Made::default(), 8);
            run.metrics.truncate(1);
            run.metrics[0].unit = unit;
            run.trials.iter_mut().for_each(|trial| trial.values = vec![(0, values[trial.cell as usize])]);
            let found = primary(&run);
            let effect = found.effect.unwrap();
            (matches!(found.verdict, Verdict::Faster { beyond_delta: true }), effect.low, effect.high)
        };
        let (beyond, low, high) = found(Unit::Count, [100.0, 200.0]);
        assert!(beyond && low > 0.97 && high < 1.03, "{low} {high}");
        assert!(found(Unit::Bytes, [64.0, 512.0]).0 && found(Unit::Other("allocs".to_owned()), [5.0, 9.0]).0);
        assert!(found(Unit::Seconds, [0.003, 1.001]).0);
        // What is counted one by one is what it is, however few of it there are.
        assert!(!found(Unit::Count, [1.0, 2.0]).0);
        let mut run = run_of(&Made::default(), 8);
        run.metrics.truncate(1);
        run.metrics[0] = crate::record::Sample::new("", "allocs/op", Unit::Count, 0.0).metric;
        run.design.primary = Some("allocs/op".to_owned());
        run.trials.iter_mut().for_each(|trial| trial.values = vec![(0, [1.0, 2.0][trial.cell as usize])]);
        assert!(matches!(primary(&run).verdict, Verdict::Slower { beyond_delta: true }));
        // One tick and two may be nearly the same time, and so may two rates be.
        assert!(!found(Unit::Seconds, [0.01, 0.02]).0 && !found(Unit::PerSecond, [100.0, 200.0]).0);
    }

    /// A run whose job took `runtimes` seconds in turn, as fio tells them, for one MiB each.
    fn told_in_milliseconds(runtimes: &[f64]) -> Run {
        let mut run = run_of(&Made::default(), 8);
        let time = crate::record::Sample::new("", "write.runtime", Unit::Seconds, 0.0).metric;
        run.metrics = vec![run.metrics[0].clone(), time];
        for (trial, runtime) in run.trials.iter_mut().zip(runtimes.iter().cycle()) {
            trial.values = vec![(0, 1_048_576.0 / runtime), (1, *runtime)];
        }
        run
    }

    #[test]
    fn a_rate_is_no_finer_than_the_clock_it_was_divided_by() {
        let step_of = |runtimes: &[f64]| {
            let found = primary(&told_in_milliseconds(runtimes));
            let told = found.caveats.iter().find_map(|c| match c {
                Caveat::Steps { step, refused } => Some((*step, *refused)),
                _ => None,
            });
            (no_difference(&found), told.map(|(step, refused)| ((step * 1e4).round() / 1e4, refused)))
        };
        assert_eq!(step_of(&[0.001]), (false, Some((1.0, true))), "1 ms of 1 ms");
        assert_eq!(step_of(&[0.004, 0.004, 0.005, 0.005]), (false, Some((0.2222, true))), "1 ms of 4.5 ms");
        assert_eq!(step_of(&[0.05]), (false, Some((0.02, true))), "above half of δ");
        assert_eq!(step_of(&[0.125]), (true, Some((0.008, false))), "no test is needed where all are equal");
        // Long runs of a fixed time end at the same millisecond.
        assert!(step_of(&[5.0]).0 && step_of(&[30.001, 30.0]).0);
    }

    #[test]
    fn widening_keeps_what_was_excluded() {
        let steps = Steps { size: 0.1, ..Steps::default() };
        let plain = Estimate { estimate: 0.05, low: 0.04, high: 0.06 };
        let wide = steps.widen(plain);
        assert_eq!((wide.low, wide.estimate), (BESIDE_ZERO, 0.05));
        assert!((wide.high - 0.15).abs() < 1e-12);
        let touching = steps.widen(Estimate { estimate: 0.0, low: 0.0, high: 0.0 });
        assert_eq!((touching.low, touching.high), (-0.1, 0.1));
        assert!(steps.widen(Estimate { estimate: -0.02, low: -0.03, high: -0.01 }).high < 0.0);
        assert_eq!(Steps::default().widen(plain), plain);
    }
}
