//! The judge: interval, adjusted p and δ → a verdict.
//!
//! Enters: drafts. Leaves: comparisons. Intervals of primaries hold together: each leaves out its share of α. Those judged once
//! may claim a difference at a later step of Holm's procedure; then the interval ends at 0 (Guilbaud 2008, Biom. J. 50:678).
//! Exploratory metrics share q by Benjamini and Hochberg.

use super::comparison::{Caveat, Comparison, FailureCounts, Interval, Method, Role, Verdict};
use super::draft::{Draft, EXPLORATORY_Q};
use super::failing::{SHARE_OF_ALPHA, what_stands};
use super::scale::Scale;
use super::steps::{BESIDE_ZERO, Steps};
use crate::record::{Metric, SoFar, StopRule};
use crate::stats::sequential::FEWEST_ROUNDS;
use crate::stats::{Estimate, benjamini_hochberg, holm, rounds_needed};
use crate::units::Better;

/// Rounds beyond which an estimate of rounds needed is no help.
const MOST_ROUNDS_NAMED: f64 = 100_000.0;
/// Difference of the arms' stall rates beyond which a mean that differs is told, however wide its interval.
const STALLS_DIFFER: f64 = 0.1;
/// A mean that differs from the typical trial by less than this share of it tells the same story.
const SAME_STORY: f64 = 0.1;
/// One that is so many times the other tells another, however wide both intervals are.
const MANY_TIMES: f64 = 2.0;
/// Medians whose ratio is more than so many times that of the change, or less than its part, show another size beside it.
const MEDIANS_APART: f64 = 1.5;

/// Judges all drafts of an analysis together.
pub(super) fn judge(mut drafts: Vec<Draft>, stop: &StopRule) -> Vec<Comparison> {
    adjust(&mut drafts, Role::Primary, holm::adjust_beside_equivalence);
    adjust(&mut drafts, Role::Exploratory, benjamini_hochberg::adjust);
    let primary = drafts.iter().filter(|d| d.comparison.role == Role::Primary && !d.settled).count();
    drafts.into_iter().map(|draft| conclude(draft, stop, primary)).collect()
}

/// What intervals of exploratory metrics leave out: q·R/m of m metrics with R claims, and of one where there is none.
pub(super) fn exploratory_outside(drafts: &[Draft]) -> f64 {
    let open = drafts.iter().filter(|d| d.comparison.role == Role::Exploratory && !d.settled && !d.beside);
    let p: Vec<f64> = open
        .filter_map(|draft| if draft.so_far.is_some() { Some(1.0) } else { draft.comparison.p })
        .collect();
    let claims = benjamini_hochberg::adjust(&p).into_iter().filter(|p| *p <= EXPLORATORY_Q).count();
    EXPLORATORY_Q * claims.max(1) as f64 / p.len().max(1) as f64
}

fn adjust(drafts: &mut [Draft], role: Role, method: fn(&[f64]) -> Vec<f64>) {
    let mut open: Vec<&mut Draft> = drafts
        .iter_mut()
        .filter(|d| d.comparison.role == role && !d.beside)
        .filter(|d| d.so_far.is_some() || !d.settled && d.comparison.p.is_some())
        .collect();
    // One whose rounds are missing has no p yet, and its share of α is kept for it.
    let p_of = |draft: &&mut Draft| match draft.so_far {
        Some(_) => Some(1.0),
        None => draft.comparison.p,
    };
    let p: Vec<f64> = open.iter().filter_map(p_of).collect();
    let all = method(&p);
    let claims = all.iter().filter(|p| **p <= EXPLORATORY_Q).count().max(1);
    for (draft, adjusted) in open.iter_mut().zip(&all) {
        draft.comparison.p_adjusted = Some(*adjusted);
    }
    // What was asked for beside the family is claimed where its interval, which leaves out q·R/m, excludes 0.
    let times = all.len().max(1) as f64 / claims as f64;
    for draft in drafts.iter_mut().filter(|d| d.comparison.role == role && d.beside && !d.settled) {
        draft.comparison.p_adjusted = draft.comparison.p.map(|p| (p * times).min(1.0));
    }
}

fn conclude(mut draft: Draft, stop: &StopRule, primary: usize) -> Comparison {
    let mut comparison = draft.comparison;
    if let Some(SoFar { rounds, of }) = draft.so_far {
        comparison.verdict = Verdict::SoFar { rounds, of };
        (comparison.p, comparison.p_adjusted) = (None, None);
        comparison.failures = comparison.failures.map(|counts| FailureCounts { p: None, ..counts });
        return comparison;
    }
    if draft.settled {
        return comparison;
    }
    let level = if comparison.role == Role::Primary { stop.alpha } else { EXPLORATORY_Q };
    let sequential =
        matches!(comparison.method, Method::SequentialT | Method::SequentialSignedRank | Method::Anytime);
    // Its interval leaves out its share of α; among rows that have no p a step of Holm's would be given all of it.
    let by_interval = sequential || comparison.method == Method::CarryOverAdjusted;
    let claim_allowed = by_interval || comparison.p_adjusted.is_some_and(|p| p <= level);
    if comparison.method == Method::CarryOverAdjusted {
        // p is judged as its interval is: by its share of α.
        comparison.p_adjusted = comparison.p.map(|p| (p * level / draft.share).min(1.0));
    }
    if draft.alone && !claim_allowed {
        // One that excludes 0 would tell another story than the verdict.
        comparison.typical = comparison.effect.map(|effect| effect.estimate);
        (comparison.effect, comparison.difference) = (None, None);
        comparison.caveats.push(Caveat::NoIntervalTogether);
    }
    let delta = delta_of(&comparison.metric, draft.scale, comparison.delta);
    if claim_allowed && !by_interval && comparison.role == Role::Primary {
        let claimed = draft.log.map(|log| one_sided(log, draft.lean));
        comparison.effect = claimed.and_then(|log| draft.scale.share(log)).or(comparison.effect);
        comparison.difference = claimed.and_then(|log| draft.scale.in_unit(log)).or(comparison.difference);
        draft.log = claimed;
    }
    comparison.verdict = match draft.log {
        Some(log) => verdict(log, draft.steps, delta, claim_allowed, comparison.metric.better),
        None => None,
    }
    .filter(|verdict| !(draft.alone && matches!(verdict, Verdict::NoDifference { .. })))
    .unwrap_or_else(|| undecided(draft.theta, draft.spread, delta, draft.share, comparison.n));
    if let (Some(worst), Some(counts)) = (draft.worst, comparison.failures) {
        // Bonferroni is never less strict than Holm.
        let family = if comparison.role == Role::Primary { primary as f64 } else { 1.0 };
        let allowed = sequential || worst.p.is_some_and(|p| p * family <= level * SHARE_OF_ALPHA);
        let steps = draft.steps;
        let with_worst =
            || worst.log.and_then(|log| verdict(log, steps, delta, allowed, comparison.metric.better));
        match what_stands(&counts, stop.alpha, comparison.verdict.clone(), with_worst) {
            Some(verdict) if verdict != comparison.verdict => {
                // The interval is as weak as the verdict.
                let both = draft.log.zip(worst.log).map(|(log, worst)| hull(log, steps.widen(worst)));
                comparison.effect = both.and_then(|log| draft.scale.share(log)).or(comparison.effect);
                comparison.difference =
                    both.and_then(|log| draft.scale.in_unit(log)).or(comparison.difference);
                comparison.verdict = verdict;
            }
            Some(_) => {}
            None => return not_comparable(comparison),
        }
    }
    let decided = !matches!(comparison.verdict, Verdict::Undecided { .. });
    let refused = !decided && draft.log.is_some() && draft.steps.too_coarse();
    if let Verdict::Undecided { rounds_for_no_difference, .. } = &mut comparison.verdict
        && refused
    {
        *rounds_for_no_difference = None;
    }
    if refused || draft.widened {
        comparison.caveats.push(Caveat::Steps { step: draft.steps.share(), refused });
    }
    if sequential && decided && draft.tried < stop.max_rounds as usize {
        let claimed = !matches!(comparison.verdict, Verdict::NoDifference { .. });
        comparison.caveats.push(if claimed { Caveat::StoppedEarly } else { Caveat::StoppedAlike });
        let corrected = Some(draft.corrected).filter(|size| claimed && size.is_finite());
        comparison.corrected =
            corrected.map(|size| draft.scale.share_of(size)).filter(|share| share.is_finite());
    }
    comparison.effect = comparison.effect.map(|effect| all_of_it(&comparison, effect));
    comparison.caveats.extend(mean_disagrees(&comparison));
    comparison.caveats.extend(medians_disagree(&comparison));
    comparison
}

/// Where the candidate has none of it in any trial, all of the baseline's is gone, whatever share of its median the typical one is.
fn all_of_it(comparison: &Comparison, effect: Interval) -> Interval {
    let is_gone = comparison.difference.is_some()
        && comparison.candidate.values.iter().all(|(.., value)| *value == 0.0)
        && comparison.baseline.values.iter().all(|(.., value)| *value >= 0.0)
        && effect.estimate < 0.0;
    if is_gone { Interval { estimate: -1.0, low: effect.low.min(-1.0), ..effect } } else { effect }
}

/// An interval with the end nearest to 0 of another one on the same side of it, or with both where they hold 0.
fn hull(log: Estimate, other: Estimate) -> Estimate {
    match log.estimate > 0.0 {
        _ if !other.excludes(0.0) => {
            Estimate { low: log.low.min(other.low), high: log.high.max(other.high), ..log }
        }
        true => Estimate { low: log.low.min(other.low), ..log },
        false => Estimate { high: log.high.max(other.high), ..log },
    }
}

/// What worked is no fair sample of an arm: its interval would mislead like a verdict.
fn not_comparable(mut comparison: Comparison) -> Comparison {
    comparison.verdict = Verdict::NotComparable;
    (comparison.effect, comparison.difference) = (None, None);
    (comparison.p, comparison.p_adjusted) = (None, None);
    comparison.caveats.push(Caveat::UnequalFailures);
    comparison
}

/// The smallest difference that matters, on the scale of the values.
pub(super) fn delta_of(metric: &Metric, scale: Scale, delta: f64) -> f64 {
    // Of nothing there is no share, but what is counted one by one and is not there in either arm does not differ.
    let least = if metric.is_exact_count() { f64::MIN_POSITIVE } else { 0.0 };
    scale.delta(delta).max(least)
}

/// The interval of a difference that was claimed: on one side of 0, that of its test.
fn one_sided(log: Estimate, lean: f64) -> Estimate {
    let side = if lean == 0.0 { log.estimate } else { lean };
    if side > 0.0 && log.low <= 0.0 {
        let above = |end: f64| end.max(BESIDE_ZERO);
        return Estimate { estimate: above(log.estimate), low: BESIDE_ZERO, high: above(log.high) };
    }
    if side < 0.0 && log.high >= 0.0 {
        let below = |end: f64| end.min(-BESIDE_ZERO);
        return Estimate { estimate: below(log.estimate), low: below(log.low), high: -BESIDE_ZERO };
    }
    log
}

/// The verdict of a log-scale interval of values with these steps; `None` when it shows neither.
pub(super) fn verdict(
    log: Estimate,
    steps: Steps,
    delta: f64,
    claim_allowed: bool,
    better: Better,
) -> Option<Verdict> {
    let log = steps.widen(log);
    let real = claim_allowed && log.excludes(0.0);
    if log.within(delta) && !steps.too_coarse() {
        return Some(Verdict::NoDifference { real_but_below_delta: real });
    }
    let more = log.low > 0.0;
    let good = more == (better == Better::Higher);
    let beyond_delta = log.low > delta || log.high < -delta;
    real.then_some(if good { Verdict::Faster { beyond_delta } } else { Verdict::Slower { beyond_delta } })
}

/// Undecided after `n`, with the rounds it would probably take at its `share` of α: 14·(s_D/θ)² to claim what is seen
/// and 20·(s_D/δ)² for no difference where it has all of it; never fewer than one more.
fn undecided(theta: f64, spread: f64, delta: f64, share: f64, n: usize) -> Verdict {
    let rounds = |factor: f64, size: f64| {
        let needed = (factor * (spread / size).powi(2)).ceil();
        (needed <= MOST_ROUNDS_NAMED).then(|| (needed as u32).max(FEWEST_ROUNDS as u32).max(n as u32 + 1))
    };
    Verdict::Undecided {
        rounds_to_claim: rounds(rounds_needed::claim_factor(share), theta),
        // A typical effect of δ or more will never be shown to be less than δ.
        rounds_for_no_difference: rounds(rounds_needed::no_difference_factor(share), delta)
            .filter(|_| theta.abs() < delta),
    }
}

/// The mean tells another story than the typical trial: it has the other sign, one is many times the other or lies outside the other's
/// interval, or the arms stall differently often, each against its own median; and by more than δ. It is told where the story has another
/// end: where one of them is beyond δ and the other is not, or on the other side.
fn mean_disagrees(comparison: &Comparison) -> Option<Caveat> {
    let delta = comparison.delta;
    // A share of the baseline's size and a ratio of means are not the same thing.
    let effect = comparison.effect.filter(|_| comparison.difference.is_none())?;
    let change = comparison.mean_change;
    let (typical, mean) = (effect.estimate, change.estimate);
    let outside = mean < effect.low || mean > effect.high || typical < change.low || typical > change.high;
    let turned = mean * typical < 0.0;
    let [less, more] = [mean.abs().min(typical.abs()), mean.abs().max(typical.abs())];
    let many_times = more > MANY_TIMES * less;
    let notable = (mean - typical).abs() > delta.max(SAME_STORY * typical.abs());
    let side = |change: f64| i8::from(change > delta) - i8::from(change < -delta / (1.0 + delta));
    let other_end = turned || side(mean) != side(typical);
    let stalls = (comparison.candidate.stall_rate - comparison.baseline.stall_rate).abs() > STALLS_DIFFER;
    ((outside || turned || many_times || stalls) && notable && other_end && comparison.role == Role::Primary)
        .then_some(Caveat::MeanDisagrees { typical, mean })
}

/// The medians that stand beside the change differ the other way, or by what its interval excludes, and not by a trifle, or by a ratio that
/// is far from that of the change, however wide the interval.
fn medians_disagree(comparison: &Comparison) -> Option<Caveat> {
    let delta = comparison.delta;
    // Failed trials are in the change as worse than any value, and not in the medians.
    let comparable =
        comparison.difference.is_none() && !comparison.caveats.contains(&Caveat::FailuresAsWorst);
    let effect = comparison.effect.filter(|_| comparable)?;
    let medians = comparison.candidate.median / comparison.baseline.median - 1.0;
    let apart = (medians - effect.estimate).abs();
    let turned = medians * effect.estimate < 0.0 && apart > delta;
    let outside = medians < effect.low || medians > effect.high;
    let notable = apart > delta.max(SAME_STORY * medians.abs().max(effect.estimate.abs()));
    ((turned || outside && notable || are_far_apart(medians, effect.estimate))
        && comparison.role == Role::Primary)
        .then_some(Caveat::MediansDisagree { medians })
}

/// Whether the ratios of two changes, each a ratio − 1, are far from each other.
fn are_far_apart(one: f64, other: f64) -> bool {
    // Two changes of −100 % give no number, which is not more than any: they agree.
    ((1.0 + one).ln() - (1.0 + other).ln()).abs() > MEDIANS_APART.ln()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn interval(low: f64, high: f64) -> Estimate {
        Estimate { estimate: f64::midpoint(low, high), low, high }
    }

    #[test]
    fn a_claim_lies_on_the_side_of_its_test() {
        let all_ties = Estimate { estimate: 0.0, low: -0.01, high: 0.0 };
        let above = one_sided(all_ties, 3.0);
        assert!(above.low > 0.0 && above.low <= above.estimate && above.estimate <= above.high, "{above:?}");
        let below = one_sided(Estimate { low: 0.0, high: 0.01, ..all_ties }, -3.0);
        assert_eq!((below.low, below.high), (-above.high, -above.low));
        // The mean, which Student's t judges, may lie on the other side of 0 than the typical difference.
        let turned = one_sided(Estimate { estimate: -0.001, low: -0.002, high: 0.02 }, 0.01);
        assert!(turned.low > 0.0 && turned.estimate > 0.0 && turned.high == 0.02, "{turned:?}");
        assert_eq!(one_sided(all_ties, 0.0), all_ties, "no side, no claim");
    }

    #[test]
    fn an_interval_says_whether_and_by_how_much() {
        let of = |low, high| verdict(interval(low, high), Steps::default(), 0.02, true, Better::Higher);
        let faster = |beyond_delta| Some(Verdict::Faster { beyond_delta });
        let slower = |beyond_delta| Some(Verdict::Slower { beyond_delta });
        assert_eq!((of(0.021, 0.05), of(-0.05, -0.021)), (faster(true), slower(true)));
        assert_eq!((of(0.01, 0.05), of(-0.05, -0.01)), (faster(false), slower(false)));
        assert_eq!(
            (of(0.02, 0.05), of(-0.05, -0.02)),
            (faster(false), slower(false)),
            "δ itself is not beyond"
        );
        assert_eq!(of(-0.01, 0.015), Some(Verdict::NoDifference { real_but_below_delta: false }));
        assert_eq!(of(0.005, 0.015), Some(Verdict::NoDifference { real_but_below_delta: true }));
        assert_eq!(of(-0.01, 0.03), None);
        assert_eq!(of(0.0, 0.03), None, "an interval that touches 0 claims nothing");
        assert_eq!(verdict(interval(0.03, 0.05), Steps::default(), 0.02, false, Better::Higher), None);
        assert_eq!(verdict(interval(0.03, 0.05), Steps::default(), 0.02, true, Better::Lower), slower(true));
    }

    #[test]
    fn ratios_more_than_half_as_large_again_are_far_apart() {
        assert!(are_far_apart(106.48 / 5.89 - 1.0, 1.769) && are_far_apart(-0.6, 0.0));
        assert!(!are_far_apart(0.49, 0.0) && !are_far_apart(0.0, -0.33) && !are_far_apart(-1.0, -1.0));
    }

    #[test]
    fn rounds_still_needed() {
        let Verdict::Undecided { rounds_to_claim, rounds_for_no_difference } =
            undecided(0.03, 0.06, 0.02, 0.05, 30)
        else {
            unreachable!("undecided() gives nothing else")
        };
        assert_eq!((rounds_to_claim, rounds_for_no_difference), (Some(56), None));
        let near = Verdict::Undecided { rounds_to_claim: None, rounds_for_no_difference: Some(180) };
        assert_eq!(undecided(0.0, 0.06, 0.02, 0.05, 30), near);
    }

    proptest! {
        #[test]
        fn a_larger_delta_never_takes_no_difference_away(low in -0.1_f64..0.1, width in 0.0_f64..0.1, a in 0.001_f64..0.1, b in 0.001_f64..0.1) {
            let interval = interval(low, low + width);
            let (small, large) = (a.min(b), a.max(b));
            let no_difference = |delta| matches!(verdict(interval, Steps::default(), delta, true, Better::Lower), Some(Verdict::NoDifference { .. }));
            prop_assert!(!no_difference(small) || no_difference(large));
        }
    }
}
