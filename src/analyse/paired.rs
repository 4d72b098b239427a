//! Paired comparisons: D of each round through the sequential boundary, or through one look at the end.
//!
//! Enters: a [`Case`]. Leaves: a [`Draft`] with effect, interval and p where one exists. Effects are those of
//! ln(candidate/baseline) in the metric's own direction; the procedures are symmetric, so turning the sign so
//! that larger is worse, as METHODOLOGY does, gives the same intervals mirrored.

use super::comparison::{Caveat, Method, Role};
use super::draft::{Case, Draft, EXPLORATORY_Q, Setting};
use super::drift;
use super::summary::mean_change_paired;
use super::table::{Point, pairs};
use crate::stats::sequential::{Boundary, FEWEST_ROUNDS, LookKind};
use crate::stats::walsh::Walsh;
use crate::stats::{Precision, descriptive, signed_rank, student_t};

/// Fewest differences judged by rank in a single look; below it Student's t.
const FEWEST_BY_RANK: usize = 6;

/// ln(candidate/baseline) a round; `None` when a value is not positive.
pub(super) fn log_ratios(pairs: &[(Point, Point)]) -> Option<Vec<f64>> {
    let ratio = |(base, cand): &(Point, Point)| {
        (base.value > 0.0 && cand.value > 0.0).then(|| (cand.value / base.value).ln())
    };
    pairs.iter().map(ratio).collect()
}

pub(super) fn compare(setting: &Setting, case: &Case) -> Draft {
    let (baseline, candidate) = setting.columns(case);
    let pairs = pairs(baseline, candidate);
    let mut draft = setting.start(case);
    if let Some(reason) = draft.missing_arm() {
        return draft.not_measured(reason);
    }
    if pairs.is_empty() {
        return draft.not_measured("no round has a value of both arms".to_owned());
    }
    draft.comparison.n = pairs.len();
    draft.comparison.mean_change = mean_change_paired(&pairs, setting.seed(case));
    let Some(differences) = log_ratios(&pairs) else { return draft.not_positive() };
    if differences.len() < FEWEST_ROUNDS {
        return draft.too_few(pairs.len());
    }
    draft.spread = descriptive::stddev(&differences);
    let sequential = case.role == Role::Primary && setting.stop.rounds.is_none();
    if sequential {
        look(&mut draft, setting, &differences);
    } else {
        let alpha = if case.role == Role::Primary { setting.stop.alpha } else { EXPLORATORY_Q };
        look_once(&mut draft, &differences, alpha);
    }
    if case.role == Role::Primary {
        draft.comparison.caveats.extend(drift::caveats(&pairs, &differences));
    }
    draft
}

/// The boundary of a run's primary comparisons: each of the family stops at its share of α.
pub(super) fn boundary(setting: &Setting) -> std::sync::Arc<Boundary> {
    let stop = &setting.stop;
    Boundary::new(stop.max_rounds as usize, stop.alpha / setting.family.max(1) as f64, stop.exact)
}

fn look(draft: &mut Draft, setting: &Setting, differences: &[f64]) {
    draft.comparison.method = Method::SequentialSignedRank;
    let Some(look) = boundary(setting).look(differences) else {
        draft.theta = Walsh::new(differences).map_or(f64::NAN, |walsh| walsh.hodges_lehmann());
        return;
    };
    if look.kind == LookKind::StudentT {
        draft.comparison.method = Method::SequentialT;
    }
    draft.comparison.n = look.n;
    draft.theta = look.interval.estimate;
    draft.set_effect(look.interval);
}

/// One look: signed rank, or t for fewer than six differences.
fn look_once(draft: &mut Draft, differences: &[f64], alpha: f64) {
    let n = differences.len();
    let Some(walsh) = Walsh::new(differences) else { return };
    if n >= FEWEST_BY_RANK {
        draft.comparison.method = Method::FixedSignedRank;
        draft.comparison.p = Some(walsh.signed_rank_p());
        draft.theta = walsh.hodges_lehmann();
        if signed_rank::precision(n) == Precision::Normal {
            draft.comparison.caveats.push(Caveat::LargeSampleApproximation);
        }
        if let Some(interval) = signed_rank::critical(n, alpha).and_then(|k| walsh.interval(k)) {
            draft.set_effect(interval);
        }
    } else if let Some(test) = student_t::paired(differences, alpha) {
        draft.comparison.method = Method::FixedT;
        draft.comparison.p = Some(test.p);
        draft.theta = test.interval.estimate;
        draft.set_effect(test.interval);
    }
}
