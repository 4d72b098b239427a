//! Paired comparisons: D of each round through the sequential boundary, or through one look at the end.
//!
//! Enters: a [`Case`]. Leaves: a [`Draft`] with effect, interval and p where one exists. Effects are those of
//! ln(candidate/baseline) in the metric's own direction; the procedures are symmetric, so turning the sign so
//! that larger is worse, as METHODOLOGY does, gives the same intervals mirrored.

use super::anytime;
use super::comparison::{Caveat, Method, Role, Verdict};
use super::draft::{Case, Draft, EXPLORATORY_Q, Setting};
use super::drift;
use super::failing::is_beyond;
use super::scale::Scale;
use super::steps::Steps;
use super::summary::mean_change_paired;
use super::table::{Point, pairs};
use super::ties;
use super::verdict::verdict;
use crate::record::FailureRule;
use crate::stats::sequential::{Boundary, FEWEST_ROUNDS, Look, LookKind};
use crate::stats::walsh::Walsh;
use crate::stats::{Estimate, Precision, descriptive, early_stop, signed_rank, signed_rank_ties, student_t};

/// The signed-rank test's smallest p must be this many times below the level that decides, or t is used.
const RESOLUTION: f64 = 4.0;

/// ln(candidate/baseline) a round; `None` when a value is not positive.
pub(super) fn log_ratios(pairs: &[(Point, Point)]) -> Option<Vec<f64>> {
    (Scale::of_pairs(pairs) == Scale::Log).then(|| Scale::Log.differences(pairs))
}

pub(super) fn compare(setting: &Setting, case: &Case) -> Draft {
    let (baseline, candidate) = setting.columns(case);
    let pairs = pairs(&baseline, &candidate);
    let mut draft = setting.start(case);
    if let Some(reason) = draft.missing_arm() {
        return draft.not_measured(reason);
    }
    if pairs.is_empty() {
        return draft.not_measured("no round has a value of both arms".to_owned());
    }
    draft.comparison.mean_change = mean_change_paired(&pairs);
    let scale = Scale::of_pairs(&pairs);
    draft.set_scale(scale, Steps::on(scale, &baseline, &candidate, setting.stop.delta));
    let worked = scale.differences(&pairs);
    let differences = judged(setting, case, &pairs, &worked);
    draft.comparison.n = differences.len();
    if differences.len() < FEWEST_ROUNDS {
        return draft.too_few(differences.len());
    }
    draft.spread = descriptive::stddev(&worked);
    let sequential = case.role == Role::Primary && setting.stop.rounds.is_none();
    if sequential {
        look(&mut draft, setting, &differences);
    } else {
        let (level, comparisons) = match case.role {
            Role::Primary => (setting.stop.alpha, setting.family),
            Role::Exploratory => (EXPLORATORY_Q, setting.exploratory),
        };
        look_once(&mut draft, &differences, level, comparisons);
    }
    match (case.role, scale) {
        (Role::Primary, Scale::Log) => draft.comparison.caveats.extend(drift::caveats(&pairs, &worked)),
        (Role::Primary, Scale::Raw { .. }) => draft.comparison.caveats.extend(drift::memory(&worked)),
        (Role::Exploratory, _) => {}
    }
    draft
}

/// The differences that are judged: those of the pairs, and where failures rank as the worst those of failed trials.
fn judged(setting: &Setting, case: &Case, pairs: &[(Point, Point)], worked: &[f64]) -> Vec<f64> {
    match setting.rule {
        FailureRule::Compare => worked.to_vec(),
        FailureRule::Worst => setting.with_worst(case, pairs.iter().map(|(base, _)| base.round), worked),
    }
}

/// What a sequential run's latest look at a case says; `None`: nothing yet.
pub(super) fn latest_verdict(setting: &Setting, case: &Case) -> Option<Verdict> {
    let (baseline, candidate) = setting.columns(case);
    let pairs = pairs(&baseline, &candidate);
    if pairs.is_empty() {
        return None;
    }
    let scale = Scale::of_pairs(&pairs);
    let differences = judged(setting, case, &pairs, &scale.differences(&pairs));
    let interval = if setting.stop.anytime {
        anytime::interval(setting, &differences)?
    } else {
        look_at(&boundary(setting), &differences)?.interval
    };
    let delta = setting.stop.delta;
    let steps = Steps::on(scale, &baseline, &candidate, delta);
    verdict(interval, steps, scale.delta(delta), true, setting.run.metrics[case.metric as usize].better)
}

/// A look. Student's t has no value for a failed trial: with one among its differences it says nothing.
fn look_at(boundary: &Boundary, differences: &[f64]) -> Option<Look> {
    let by_rank_or_complete = |look: &Look| {
        look.kind == LookKind::SignedRank || !differences[..look.n].iter().copied().any(is_beyond)
    };
    boundary.look(differences).filter(by_rank_or_complete)
}

/// The boundary of a run's primary comparisons: each of the family stops at its share of α.
fn boundary(setting: &Setting) -> std::sync::Arc<Boundary> {
    let stop = &setting.stop;
    Boundary::new(stop.max_rounds as usize, stop.alpha / setting.family.max(1) as f64, stop.exact)
}

fn look(draft: &mut Draft, setting: &Setting, differences: &[f64]) {
    if setting.stop.anytime {
        return anytime::look(draft, setting, differences);
    }
    draft.comparison.method = Method::SequentialSignedRank;
    let Some(look) = look_at(&boundary(setting), differences) else {
        draft.theta = Walsh::new(differences).map_or(f64::NAN, |walsh| walsh.hodges_lehmann());
        return;
    };
    if look.kind == LookKind::StudentT {
        draft.comparison.method = Method::SequentialT;
    }
    draft.comparison.n = look.n;
    draft.theta = look.interval.estimate;
    draft.corrected = early_stop::corrected(look.interval.estimate, &differences[..look.n]);
    draft.set_effect(look.interval);
}

/// Whether n differences are judged by rank where `comparisons` share `level`. The smallest p of the signed-rank
/// test is 2^(1−n). Where that is not well below the level of the strictest step of Holm's or Benjamini and
/// Hochberg's procedure, level/comparisons, the test can hardly claim anything, and one more round would find less.
fn by_rank(n: usize, level: f64, comparisons: usize) -> bool {
    0.5_f64.powf(n as f64 - 1.0) <= level / (RESOLUTION * comparisons.max(1) as f64)
}

/// One look: signed rank, or Student's t where ranks cannot resolve the level. t has no value for a failed trial: with one among
/// the differences ranks decide, whether they can claim anything or not.
pub(super) fn look_once(draft: &mut Draft, differences: &[f64], alpha: f64, comparisons: usize) {
    let n = differences.len();
    let Some(walsh) = Walsh::new(differences) else { return };
    if by_rank(n, alpha, comparisons) || differences.iter().copied().any(is_beyond) {
        draft.comparison.method = Method::FixedSignedRank;
        let tied = signed_rank_ties::test(differences);
        let p = tied.map_or_else(|| walsh.signed_rank_p(), |test| test.p);
        draft.comparison.p = Some(p);
        draft.theta = walsh.hodges_lehmann();
        if signed_rank::precision(n) == Precision::Normal {
            draft.comparison.caveats.push(Caveat::LargeSampleApproximation);
        }
        if let Some(interval) = signed_rank::critical(n, alpha).and_then(|k| walsh.interval(k)) {
            draft.set_effect(tied.map_or(interval, |test| ties::follow(interval, p, alpha, test.lean)));
        }
    } else if let Some(test) = student_t::paired(differences, alpha) {
        draft.comparison.method = Method::FixedT;
        draft.comparison.p = Some(test.p);
        // The interval is around the mean; the estimate is Hodges and Lehmann's at every n.
        let estimate = walsh.hodges_lehmann().clamp(test.interval.low, test.interval.high);
        draft.theta = estimate;
        draft.set_effect(Estimate { estimate, ..test.interval });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_decide_where_they_resolve_the_level() {
        // 2^(1−n) ≤ α/(4m), worked out by hand: the first n for m = 1, 2, 6, 12, 24 at α = 0.05.
        for (comparisons, first) in [(1, 8), (2, 9), (6, 10), (12, 11), (24, 12)] {
            assert!(by_rank(first, 0.05, comparisons), "m {comparisons}");
            assert!(!by_rank(first - 1, 0.05, comparisons), "m {comparisons}");
        }
        assert!(by_rank(5_000, 1e-4, 1_000) && !by_rank(10, 0.001, 1) && by_rank(0, 8.0, 0));
    }
}
