//! Paired comparisons: D of each round through the sequential boundary, or through one look at the end.
//!
//! Enters: a [`Case`]. Leaves: a [`Draft`] with effect, interval and p where one exists. Effects are those of
//! ln(candidate/baseline) in the metric's own direction; the procedures are symmetric, so turning the sign so
//! that larger is worse, as METHODOLOGY does, gives the same intervals mirrored.

use super::anytime;
use super::carry_over;
use super::comparison::{Caveat, Method, Role, Verdict};
use super::draft::{Case, Draft, EXPLORATORY_Q, Setting};
use super::drift;
use super::failing::is_beyond;
use super::scale::Scale;
use super::summary::mean_change_paired;
use super::table::{Point, pairs};
use super::ties;
use super::verdict::{delta_of, verdict};
use crate::record::FailureRule;
use crate::stats::crossover::Crossover;
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
    let mut pairs = pairs(&baseline, &candidate);
    if let Some(asked) = setting.stop.rounds.filter(|_| !setting.stop.anytime && case.role == Role::Primary) {
        // α pays for one look, at so many rounds: further ones were run for another pair of the row.
        pairs.truncate(asked as usize);
    }
    let mut draft = setting.start(case);
    if let Some(reason) = draft.missing_arm() {
        return draft.not_measured(reason);
    }
    if pairs.is_empty() {
        return draft.not_measured("no round has a value of both arms".to_owned());
    }
    draft.comparison.mean_change = mean_change_paired(&pairs);
    let scale = Scale::of_pairs(&pairs);
    draft.set_scale(scale, setting.steps(case, scale, &baseline, &candidate));
    let worked = scale.differences(&pairs);
    let rounds = judged(setting, case, &pairs, &worked);
    let differences = rounds.differences();
    draft.comparison.n = differences.len();
    // Also rounds of which a trial failed: the run has had them.
    draft.tried = setting.tried_together(case).max(differences.len());
    if differences.len() < FEWEST_ROUNDS {
        return draft.too_few(differences.len());
    }
    draft.spread = descriptive::stddev(&worked);
    let decides = case.role == Role::Primary;
    let sequential = decides && setting.stop.rounds.is_none();
    let adjusted =
        decides.then(|| carry_over::adjusted(setting, case, &pairs, &worked, draft.share)).flatten();
    if let Some(line) = adjusted {
        draft.comparison.method = Method::CarryOverAdjusted;
        draft.theta = line.intercept.estimate;
        draft.spread = line.residual;
        // Looked at once: its error rate has no shares for looks on the way.
        if !sequential || draft.tried >= setting.stop.max_rounds as usize {
            draft.comparison.p = Some(line.intercept_p);
            draft.set_effect(line.intercept);
        }
    } else if sequential {
        look(&mut draft, setting, &rounds);
    } else {
        let (level, comparisons) = match case.role {
            Role::Primary => (setting.stop.alpha, setting.family),
            Role::Exploratory => (EXPLORATORY_Q, setting.exploratory),
        };
        let exact = decides && setting.stop.exact;
        let once = Once { level, comparisons, outside: setting.outside(case.role), exact };
        look_once(&mut draft, &rounds, once);
    }
    match (case.role, scale) {
        (Role::Primary, Scale::Log) => draft.comparison.caveats.extend(drift::caveats(&pairs, &worked)),
        (Role::Primary, Scale::Raw { .. }) => draft.comparison.caveats.extend(drift::memory(&worked)),
        (Role::Exploratory, _) => {}
    }
    draft
}

/// The differences that are judged, with the order of their rounds. Where failures rank as the worst, those of failed trials are
/// among them, and the order is left out of it.
fn judged(setting: &Setting, case: &Case, pairs: &[(Point, Point)], worked: &[f64]) -> Crossover {
    match setting.rule {
        FailureRule::Compare => {
            let second: Vec<bool> = pairs.iter().map(|(base, cand)| cand.position > base.position).collect();
            Crossover::new(worked, &second)
        }
        FailureRule::Worst => {
            let rounds = pairs.iter().map(|(base, _)| base.round);
            Crossover::of_unknown_order(&setting.with_worst(case, rounds, worked))
        }
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
    let worked = scale.differences(&pairs);
    // What is adjusted for a carry-over is judged at the end only.
    if carry_over::adjusted(setting, case, &pairs, &worked, setting.stop.alpha).is_some() {
        return None;
    }
    let rounds = judged(setting, case, &pairs, &worked);
    let interval = if setting.stop.anytime {
        anytime::interval(setting, rounds.differences())?
    } else {
        look_at(&boundary(setting), &rounds)?.interval
    };
    let metric = &setting.table.metrics()[case.metric as usize];
    let steps = setting.steps(case, scale, &baseline, &candidate);
    verdict(
        interval,
        steps,
        delta_of(metric, scale, setting.layout.deltas[case.metric as usize]),
        true,
        metric.better,
    )
}

/// A look. Student's t has no value for a failed trial: none of its looks has one among its differences.
fn look_at(boundary: &Boundary, rounds: &Crossover) -> Option<Look> {
    let complete = rounds.differences().iter().position(|difference| is_beyond(*difference));
    boundary.look_with(rounds, complete.unwrap_or(usize::MAX))
}

/// The boundary of a run's primary comparisons: each of the family stops at its share of α.
fn boundary(setting: &Setting) -> std::sync::Arc<Boundary> {
    let stop = &setting.stop;
    Boundary::new(stop.max_rounds as usize, stop.alpha / setting.family.max(1) as f64, stop.exact)
}

/// The looks of a sequential run, or of one that may be extended.
pub(super) fn look(draft: &mut Draft, setting: &Setting, rounds: &Crossover) {
    let differences = rounds.differences();
    if setting.stop.anytime {
        return anytime::look(draft, setting, differences);
    }
    draft.comparison.method = Method::SequentialSignedRank;
    let Some(look) = look_at(&boundary(setting), rounds) else {
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

/// What one look at differences says.
pub(super) struct OneLook {
    method: Method,
    p: Option<f64>,
    /// The side that p is of.
    lean: f64,
    theta: f64,
    /// `None`: too few differences for it.
    pub(super) interval: Option<Estimate>,
}

/// How one look judges.
#[derive(Clone, Copy, Debug)]
pub(super) struct Once {
    /// What `comparisons` share.
    pub(super) level: f64,
    pub(super) comparisons: usize,
    /// What the interval leaves out.
    pub(super) outside: f64,
    /// By ranks in any case, whether they can claim anything or not.
    pub(super) exact: bool,
}

/// One look: signed rank, or Student's t where ranks cannot resolve the level. t has no value for a failed trial: with one among
/// the differences ranks decide, whether they can claim anything or not.
pub(super) fn one_look(rounds: &Crossover, once: Once) -> Option<OneLook> {
    let Once { level, comparisons, outside, exact } = once;
    let differences = rounds.differences();
    let n = differences.len();
    let walsh = Walsh::new(differences)?;
    if exact || by_rank(n, level, comparisons) || differences.iter().copied().any(is_beyond) {
        // The exact test of ties knows no position effect.
        let tied = signed_rank_ties::test(differences).filter(|_| !rounds.position_shows(0.0));
        let p = tied.map_or_else(|| rounds.p(), |test| Some(test.p));
        let found = signed_rank::critical(n, outside).and_then(|k| rounds.interval(k));
        let theta = found.map_or_else(|| walsh.hodges_lehmann(), |interval| interval.estimate);
        let lean = tied.map_or(theta, |test| test.lean);
        let followed = |interval: Estimate| p.map_or(interval, |p| ties::follow(interval, p, outside, lean));
        let interval = found.map(followed);
        return Some(OneLook { method: Method::FixedSignedRank, p, lean, theta, interval });
    }
    let test = student_t::paired(differences, outside)?;
    // The interval is around the mean; the estimate is Hodges and Lehmann's at every n.
    let estimate = walsh.hodges_lehmann().clamp(test.interval.low, test.interval.high);
    let interval = Some(Estimate { estimate, ..test.interval });
    let lean = test.interval.estimate;
    Some(OneLook { method: Method::FixedT, p: Some(test.p), lean, theta: estimate, interval })
}

/// The same as a draft's figures.
pub(super) fn look_once(draft: &mut Draft, rounds: &Crossover, once: Once) {
    let Some(found) = one_look(rounds, once) else { return };
    let n = rounds.differences().len();
    if found.method == Method::FixedSignedRank && signed_rank::precision(n) == Precision::Normal {
        draft.comparison.caveats.push(Caveat::LargeSampleApproximation);
    }
    draft.comparison.method = found.method;
    draft.comparison.p = found.p;
    (draft.theta, draft.lean) = (found.theta, found.lean);
    if let Some(interval) = found.interval {
        draft.set_effect(interval);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exact_never_judges_by_students_t() {
        let rounds = Crossover::of_unknown_order(&[0.101, 0.1, 0.102, 0.099, 0.103]);
        let usual = Once { level: 0.05, comparisons: 1, outside: 0.05, exact: false };
        let by_t = one_look(&rounds, usual).unwrap();
        assert!(by_t.method == Method::FixedT && by_t.p.is_some_and(|p| p < 0.001));
        let exact = one_look(&rounds, Once { exact: true, ..usual }).unwrap();
        // Five signs out of 2^5, in either direction; no interval at 95 %.
        assert_eq!((exact.method, exact.p, exact.interval), (Method::FixedSignedRank, Some(0.0625), None));
    }

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
