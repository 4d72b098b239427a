//! The scale on which a comparison is judged: logarithms, or the values themselves where a logarithm does not exist.
//!
//! Enters: the values of both arms. Leaves: a [`Scale`] that places values on it and reads effects back. Values on the
//! raw scale are divided by a power of two, so that none is above 1: that rounds nothing, equal differences stay equal, and none comes
//! near what stands for a failed trial (`failing.rs`). δ and effects are shares of the baseline's magnitude, the median of
//! |value|; where that is 0 effects have the metric's unit alone, and no share and no "no difference" exist. Where no value is
//! below 0, no share is below −1: what cannot be negative loses all it has at most.

use super::comparison::Interval;
use super::summary::as_ratio;
use super::table::Point;
use crate::stats::{Estimate, descriptive};

/// Beyond any difference of measured values on the raw scale, and below any average with a failed trial.
const FAR: f64 = 1e3;

/// Logarithms, or the values as they are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Scale {
    /// Every value is above 0: ln(value), effects are ratios.
    Log,
    /// A value is 0 or below: value/unit, effects are differences.
    Raw {
        /// One on this scale, in the metric's unit: a power of two that no |value| is above.
        unit: f64,
        /// Median |value| of the baseline.
        magnitude: f64,
        /// The least share an effect can be: −1 where no value is below 0, else −∞.
        least: f64,
    },
}

impl Scale {
    /// The scale of two arms' values.
    pub(super) fn of<'a>(
        baseline: impl Iterator<Item = &'a Point> + Clone,
        candidate: impl Iterator<Item = &'a Point> + Clone,
    ) -> Scale {
        let positive = |point: &Point| point.value > 0.0;
        if baseline.clone().all(positive) && candidate.clone().all(positive) {
            return Scale::Log;
        }
        let negative = baseline.clone().chain(candidate.clone()).any(|point| point.value < 0.0);
        let all = baseline.clone().chain(candidate);
        let largest = all.map(|point| point.value.abs()).fold(0.0, f64::max);
        let sizes: Vec<f64> = baseline.map(|point| point.value.abs()).collect();
        Scale::Raw {
            unit: power_of_two_above(largest),
            magnitude: descriptive::median(&sizes),
            least: if negative { f64::NEG_INFINITY } else { -1.0 },
        }
    }

    /// The scale of paired values.
    pub(super) fn of_pairs(pairs: &[(Point, Point)]) -> Scale {
        Scale::of(pairs.iter().map(|(base, _)| base), pairs.iter().map(|(_, cand)| cand))
    }

    /// The place of a value.
    pub(super) fn place(self, value: f64) -> f64 {
        match self {
            Scale::Log => value.ln(),
            Scale::Raw { unit, .. } => value / unit,
        }
    }

    /// Candidate − baseline of each pair. Places are subtracted, so that exchanged values give exactly −D.
    pub(super) fn differences(self, pairs: &[(Point, Point)]) -> Vec<f64> {
        pairs.iter().map(|(base, cand)| self.place(cand.value) - self.place(base.value)).collect()
    }

    /// δ, a ratio − 1, on this scale; 0 where there is nothing to be a share of.
    pub(super) fn delta(self, ratio: f64) -> f64 {
        match self {
            Scale::Log => ratio.ln_1p(),
            Scale::Raw { unit, magnitude, .. } => ratio * magnitude / unit,
        }
    }

    /// A step of the values, of which `typical` is a usual one, on this scale.
    pub(super) fn step(self, step: f64, typical: f64) -> f64 {
        match self {
            Scale::Log => (step / typical).ln_1p(),
            Scale::Raw { unit, .. } => step / unit,
        }
    }

    /// A size on this scale, or an effect, as a ratio − 1, or as a share of the baseline's magnitude; infinite where there is none.
    pub(super) fn share_of(self, size: f64) -> f64 {
        match self {
            Scale::Log => size.exp_m1(),
            Scale::Raw { unit, magnitude, least } if magnitude > 0.0 => (size * unit / magnitude).max(least),
            Scale::Raw { .. } => f64::INFINITY,
        }
    }

    /// An effect as ratio − 1, or as a share of the baseline's magnitude where that is not 0.
    pub(super) fn share(self, effect: Estimate) -> Option<Interval> {
        match self {
            Scale::Log => Some(as_ratio(effect)),
            Scale::Raw { unit, magnitude, least } if magnitude > 0.0 => {
                Some(at_least(least, times(effect, unit / magnitude)))
            }
            Scale::Raw { .. } => None,
        }
    }

    /// An effect in the metric's unit; `None` on the log scale.
    pub(super) fn in_unit(self, effect: Estimate) -> Option<Interval> {
        match self {
            Scale::Log => None,
            Scale::Raw { unit, .. } => Some(times(effect, unit)),
        }
    }
}

/// Cuts effect and interval off at the least share. The cut keeps the order: an interval that holds an effect holds the cut effect
/// when it is cut itself.
fn at_least(least: f64, effect: Interval) -> Interval {
    let cut = |share: f64| share.max(least);
    Interval { estimate: cut(effect.estimate), low: cut(effect.low), high: cut(effect.high) }
}

/// The power of two that is next above a size, or the size itself where it is one; 1 for 0.
fn power_of_two_above(size: f64) -> f64 {
    if size > 0.0 { 2.0_f64.powi(size.log2().ceil().clamp(-1000.0, 1000.0) as i32) } else { 1.0 }
}

/// Differences of the raw scale are 2 at most: what is far beyond stands for failed trials, which are worse than any value.
fn times(effect: Estimate, factor: f64) -> Interval {
    let sized = |size: f64| if size.abs() >= FAR { size.signum() * f64::INFINITY } else { size * factor };
    Interval { estimate: sized(effect.estimate), low: sized(effect.low), high: sized(effect.high) }
}

#[cfg(test)]
mod tests {
    use super::super::made_up::{Made, run_of};
    use super::super::{Comparison, Method, Options, Verdict, analyse, decided};
    use super::power_of_two_above;
    use crate::record::{Run, Sample, Unit};

    /// A run whose `write.bw` is `value(cell, round, made-up ratio to the level)`.
    fn with(made: &Made, rounds: u32, value: impl Fn(u32, u32, f64) -> f64) -> Run {
        let mut run = run_of(made, rounds);
        for trial in &mut run.trials {
            trial.values[0].1 = value(trial.cell, trial.round, trial.values[0].1 / 81_920_000.0);
        }
        run
    }

    fn primary(run: &Run) -> Comparison {
        analyse(run, &Options::default()).comparisons.remove(0)
    }

    #[test]
    fn a_zero_among_the_values_takes_no_verdict_away() {
        for paired in [true, false] {
            let made = Made { effect: 0.2, paired, ..Made::default() };
            let run = with(
                &made,
                10,
                |cell, round, ratio| if (cell, round) == (0, 3) { 0.0 } else { 50.0 * ratio },
            );
            let found = primary(&run);
            assert!(matches!(found.verdict, Verdict::Faster { .. }), "{found:?}");
            let (share, unit) = (found.effect.unwrap(), found.difference.unwrap());
            assert!((share.estimate - 0.2).abs() < 0.02, "{share:?}");
            assert!((unit.estimate - 10.0).abs() < 1.0 && unit.low > 0.0, "{unit:?}");
        }
    }

    #[test]
    fn delta_is_a_share_of_the_baseline() {
        // Both arms around −40, equal but for the noise.
        let made = Made { effect: 0.0, cv: 0.003, ..Made::default() };
        let run = with(&made, 20, |_, _, ratio| -40.0 * ratio);
        assert!(matches!(primary(&run).verdict, Verdict::NoDifference { .. }));
        assert!(decided(&run, &Options::default()));
        assert!(primary(&with(&made, 20, |_, _, ratio| 40.0 * ratio)).difference.is_none());
    }

    #[test]
    fn no_share_of_what_cannot_be_negative_is_below_minus_one() {
        for paired in [true, false] {
            let made = Made { effect: 0.0, cv: 0.05, paired, ..Made::default() };
            let run = with(&made, 20, |cell, _, ratio| if cell == 0 { 50.0 * ratio } else { 0.0 });
            let found = primary(&run);
            assert_eq!(found.verdict, Verdict::Slower { beyond_delta: true }, "paired {paired}");
            let share = found.effect.unwrap();
            // The typical round loses less than the baseline's median, and all the same all it has.
            assert!(share.low == -1.0 && share.estimate == -1.0 && share.high < -0.3, "{share:?}");
            // Below 0 there is no such end.
            let run = with(&made, 20, |cell, _, ratio| if cell == 0 { 50.0 * ratio } else { -50.0 * ratio });
            let share = primary(&run).effect.unwrap();
            assert!((share.estimate + 2.0).abs() < 0.3, "{share:?}");
        }
    }

    #[test]
    fn no_measured_difference_is_taken_for_a_failure() {
        // 1 against 50,000, with a zero so that there is no logarithm: four rounds are judged by Student's t.
        let made = Made { effect: 0.0, cv: 0.05, ..Made::default() };
        let value = |cell: u32, round: u32, ratio: f64| match (cell, round) {
            (0, 2) => 0.0,
            (0, _) => ratio,
            _ => 50_000.0 * ratio,
        };
        let found = primary(&with(&made, 4, value));
        assert_eq!(found.method, Method::SequentialT);
        let share = found.effect.unwrap();
        assert!((share.estimate - 50_000.0).abs() < 10_000.0, "{share:?}");
    }

    #[test]
    fn the_unit_is_a_power_of_two() {
        let sizes = [0.0, 0.3, 0.5, 1.0, 3.0, 50_000.0];
        assert_eq!(sizes.map(power_of_two_above), [1.0, 0.5, 0.5, 1.0, 4.0, 65_536.0]);
    }

    #[test]
    fn a_baseline_of_zero_has_a_difference_and_no_share() {
        let made = Made { effect: 0.0, cv: 0.05, ..Made::default() };
        let found = primary(&with(&made, 12, |cell, _, ratio| if cell == 0 { 0.0 } else { 7.0 * ratio }));
        assert_eq!((found.verdict, found.effect), (Verdict::Faster { beyond_delta: true }, None));
        assert!((found.difference.unwrap().estimate - 7.0).abs() < 0.4, "{:?}", found.difference);
        let same = primary(&with(&made, 12, |_, _, _| 0.0));
        assert!(matches!(same.verdict, Verdict::Undecided { .. }), "nothing to be a share of");
        let mut counted = with(&made, 12, |_, _, _| 0.0);
        counted.metrics[0] = Sample::new("", "dev.flushes", Unit::Count, 0.0).metric;
        let options = Options { primary: Some("dev.flushes".to_owned()), ..Options::default() };
        let none = analyse(&counted, &options).comparisons.remove(0);
        assert_eq!(none.verdict, Verdict::NoDifference { real_but_below_delta: false });
    }
}
