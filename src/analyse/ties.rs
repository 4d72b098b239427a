//! Interval and p made to agree where ties, or a position effect that just shows, part them.
//!
//! Enters: an interval, the exact tie-aware p, its α and the side the data lean to. Leaves: the interval that
//! excludes 0 exactly when p ≤ α.
//!
//! Interval ends come from the distribution without ties, which counts every tie against a claim, so an end may touch
//! 0 where the exact p is small. Test inversion explains it: 0 itself is rejected and its neighbours are not, as the
//! ties are broken there. So the interval is open at 0: its end stops beside it. The other way round 0 alone is not
//! rejected, and the interval is stretched to it.

use super::steps::BESIDE_ZERO;
use crate::stats::Estimate;

/// `plain` with 0 excluded exactly when `p` ≤ `alpha`; `lean` tells the side.
pub(super) fn follow(plain: Estimate, p: f64, alpha: f64, lean: f64) -> Estimate {
    match (p <= alpha, plain.excludes(0.0)) {
        (true, false) if lean > 0.0 => Estimate {
            estimate: plain.estimate.max(BESIDE_ZERO),
            low: plain.low.max(BESIDE_ZERO),
            high: plain.high.max(BESIDE_ZERO),
        },
        (true, false) if lean < 0.0 => Estimate {
            estimate: plain.estimate.min(-BESIDE_ZERO),
            low: plain.low.min(-BESIDE_ZERO),
            high: plain.high.min(-BESIDE_ZERO),
        },
        (false, true) => Estimate { low: plain.low.min(0.0), high: plain.high.max(0.0), ..plain },
        _ => plain,
    }
}

#[cfg(test)]
mod tests {
    use super::super::made_up::{Made, run_of};
    use super::super::{Options, Role, Verdict, analyse};
    use crate::record::{Run, StopRule};
    use proptest::prelude::*;

    /// A run whose arms have these values of `write.bw`, in steps of a thousandth of the level.
    fn with(values: &[(i32, i32)], paired: bool) -> Run {
        let rounds = values.len() as u32;
        let stop = StopRule { rounds: Some(rounds), ..StopRule::default() };
        let mut run = run_of(&Made { stop, paired, ..Made::default() }, rounds);
        for trial in &mut run.trials {
            let (base, cand) = values[trial.round as usize];
            trial.values[0].1 = 10_000.0 + 10.0 * f64::from(if trial.cell == 0 { base } else { cand });
        }
        run
    }

    #[test]
    fn nine_of_ten_of_one_size_are_a_difference() {
        // Nine rounds up and one down by the same: the Walsh averages of up and down are 0 and the plain interval touches
        // it; the exact p is 22/1024.
        let mut values = vec![(0, 1); 9];
        values.push((1, 0));
        let analysis = analyse(&with(&values, true), &Options::default());
        let found = &analysis.comparisons[0];
        assert!((found.p.unwrap() - 22.0 / 1024.0).abs() < 1e-12, "{:?}", found.p);
        assert_eq!(found.verdict, Verdict::NoDifference { real_but_below_delta: true });
        assert!(found.effect.unwrap().low > 0.0);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]

        #[test]
        fn p_and_interval_agree_with_ties(values in prop::collection::vec((0_i32..4, 0_i32..6), 8..20), paired: bool) {
            let analysis = analyse(&with(&values, paired), &Options::default());
            let found = analysis.comparisons.iter().find(|c| c.role == Role::Primary).unwrap();
            if let Some(effect) = found.effect {
                let excluded = effect.low > 0.0 || effect.high < 0.0;
                prop_assert_eq!(found.p.unwrap() <= 0.05, excluded, "{:?} {:?}", found.p, effect);
                prop_assert!(effect.low <= effect.estimate && effect.estimate <= effect.high);
            }
        }
    }
}
