//! Unpaired comparisons: Mann–Whitney and the Hodges–Lehmann shift.
//!
//! Enters: a [`Case`]. Leaves: a [`Draft`]. Also here: what timestamps tell about the order of imported trials.

use super::comparison::{Caveat, Method, Role};
use super::draft::{Case, Draft, EXPLORATORY_Q, Setting};
use super::failing::worst_log;
use super::scale::Scale;
use super::summary::mean_change_unpaired;
use super::table::Point;
use super::ties;
use crate::record::FailureRule;
use crate::stats::sequential::FEWEST_ROUNDS;
use crate::stats::shift::Shift;
use crate::stats::{Precision, descriptive, mann_whitney};

pub(super) fn compare(setting: &Setting, case: &Case) -> Draft {
    let (baseline, candidate) = setting.columns(case);
    let mut draft = setting.start(case);
    if let Some(reason) = draft.missing_arm() {
        return draft.not_measured(reason);
    }
    let values = |points: &[Point]| points.iter().map(|point| point.value).collect::<Vec<_>>();
    let (base, cand) = (values(&baseline), values(&candidate));
    let n = base.len().min(cand.len());
    draft.comparison.n = n;
    draft.comparison.mean_change = mean_change_unpaired(&base, &cand);
    let scale = Scale::of(baseline.iter(), candidate.iter());
    draft.set_scale(scale, setting.steps(case, scale, &baseline, &candidate));
    if n < FEWEST_ROUNDS {
        return draft.too_few(n);
    }
    let placed = |values: &[f64]| values.iter().map(|value| scale.place(*value)).collect::<Vec<_>>();
    let (mut base, mut cand) = (placed(&base), placed(&cand));
    let level = if case.role == Role::Primary { setting.stop.alpha } else { EXPLORATORY_Q };
    let share = setting.outside(case.role);
    draft.comparison.method = Method::MannWhitney;
    draft.spread = (descriptive::variance(&base) + descriptive::variance(&cand)).sqrt();
    let better = draft.comparison.metric.better;
    if let Some(counts) = setting.failures(case).filter(|_| setting.rule == FailureRule::Worst) {
        base.resize(base.len() + counts.baseline_failed as usize, worst_log(better));
        cand.resize(cand.len() + counts.candidate_failed as usize, worst_log(better));
    }
    let mut approximated = false;
    let test = mann_whitney::test(&base, &cand);
    if let Some(test) = test {
        draft.comparison.p = Some(test.p);
        approximated |= test.precision == Precision::Normal;
    }
    if let Some(shift) = Shift::new(&base, &cand) {
        draft.theta = shift.hodges_lehmann();
        // Few repeats may have no interval for a share of α. Theirs does not hold together with the others, and cannot show
        // that there is no difference.
        let together = shift.interval(share);
        draft.alone = together.is_none();
        let alpha = if draft.alone { level } else { share };
        if let Some((interval, precision)) = together.or_else(|| shift.interval(level)) {
            // U counts pairs in which the baseline is larger.
            draft.lean = test.map_or(0.0, |t| 0.5 * (base.len() * cand.len()) as f64 - t.u);
            let lean = draft.lean;
            draft.set_effect(test.map_or(interval, |t| ties::follow(interval, t.p, alpha, lean)));
            approximated |= precision == Precision::Normal;
        }
    }
    if approximated {
        draft.comparison.caveats.push(Caveat::LargeSampleApproximation);
    }
    draft
}

/// What is known about the order of two arms' trials.
pub(super) fn order_known(baseline: &[Point], candidate: &[Point]) -> Caveat {
    let mut times: Vec<(u64, bool)> = baseline.iter().map(|p| (p.started_unix_ns, true)).collect();
    times.extend(candidate.iter().map(|p| (p.started_unix_ns, false)));
    if times.iter().any(|(time, _)| *time == 0) {
        return Caveat::OrderUnknown;
    }
    times.sort_unstable();
    let switches = times.windows(2).filter(|pair| pair[0].1 != pair[1].1).count();
    let all = times.len() as f64;
    // Random order has 2·n·m/(n + m) switches on average (Wald & Wolfowitz 1940); half of them is interleaved.
    let expected = 2.0 * baseline.len() as f64 * candidate.len() as f64 / all;
    match switches {
        1 => Caveat::Sequential,
        _ if switches >= 3 && switches as f64 >= 0.5 * expected => Caveat::Interleaved,
        _ => Caveat::OrderUnknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(times: &[u64]) -> Vec<Point> {
        times.iter().map(|t| Point { round: 0, position: 0, started_unix_ns: *t, value: 1.0 }).collect()
    }

    #[test]
    fn timestamps_tell_the_order() {
        assert_eq!(order_known(&at(&[1, 2, 3]), &at(&[4, 5, 6])), Caveat::Sequential);
        assert_eq!(order_known(&at(&[1, 3, 5]), &at(&[2, 4, 6])), Caveat::Interleaved);
        assert_eq!(order_known(&at(&[1, 2, 0]), &at(&[4, 5, 6])), Caveat::OrderUnknown);
        assert_eq!(order_known(&at(&[1, 2, 8, 9]), &at(&[4, 5, 6, 7])), Caveat::OrderUnknown);
    }
}
