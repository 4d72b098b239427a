//! Imported trials that come in clusters (boots, hosts, sessions): the cluster is the unit, not the trial. Where clusters hold both
//! arms, each gives one difference; where they hold one, each gives one mean.
//!
//! Enters: a [`Case`] and the cluster of each trial. Leaves: a [`Draft`]. What made the clusters is for import.
//! Source: Donner & Klar, *Design and Analysis of Cluster Randomization Trials* (2000) §6–7; the effect of an analysis by
//! trials: Kish (1965), a design effect of 1 + (n − 1)·ICC.

use std::collections::BTreeMap;

use super::clusters::Clusters;
use super::comparison::{Caveat, Interval, Method, Role, Verdict};
use super::draft::{Case, Draft, EXPLORATORY_Q, Setting};
use super::paired::{Once, look_once};
use super::scale::Scale;
use super::summary::{mean_change_paired, mean_change_unpaired};
use super::table::Point;
use super::ties;
use crate::stats::crossover::Crossover;
use crate::stats::descriptive::{mean, stddev, variance};
use crate::stats::sequential::FEWEST_ROUNDS;
use crate::stats::{Precision, cluster_means, variance_components};

/// A new boot is taken to last as long as this many trials, for the repeats that serve best.
const COST: f64 = 10.0;

/// Both arms' values by cluster.
struct Arms {
    baseline: BTreeMap<u32, Vec<f64>>,
    candidate: BTreeMap<u32, Vec<f64>>,
}

impl Arms {
    /// The clusters that hold both arms: (baseline's values, candidate's).
    fn both(&self) -> Vec<(&Vec<f64>, &Vec<f64>)> {
        self.baseline.iter().filter_map(|(at, base)| Some((base, self.candidate.get(at)?))).collect()
    }

    /// With every value at its place on the scale.
    fn on(&self, scale: Scale) -> Arms {
        let placed = |arm: &BTreeMap<u32, Vec<f64>>| {
            let places = |values: &Vec<f64>| values.iter().map(|value| scale.place(*value)).collect();
            arm.iter().map(|(at, values)| (*at, places(values))).collect()
        };
        Arms { baseline: placed(&self.baseline), candidate: placed(&self.candidate) }
    }
}

fn means(arm: &BTreeMap<u32, Vec<f64>>) -> Vec<f64> {
    arm.values().map(|values| mean(values)).collect()
}

pub(super) fn compare(setting: &Setting, case: &Case, clusters: &Clusters) -> Draft {
    let (baseline, candidate) = setting.columns(case);
    let mut draft = setting.start(case);
    if let Some(reason) = draft.missing_arm() {
        return draft.not_measured(reason);
    }
    let arms = Arms {
        baseline: clusters.split(case.row.cells[case.base], &baseline),
        candidate: clusters.split(case.row.cells[case.arm], &candidate),
    };
    let both = arms.both().len();
    let alone = arms.baseline.len() + arms.candidate.len() - 2 * both;
    // Clusters with one arm are left out where most hold both. Elsewhere all are judged by their means: what those with both arms
    // share makes that interval wider than need be, never narrower.
    let paired = both >= alone && (both >= FEWEST_ROUNDS || alone == 0);
    let n = if paired { both } else { arms.baseline.len().min(arms.candidate.len()) };
    draft.comparison.n = n;
    draft.comparison.mean_change = mean_change(&arms, paired);
    let scale = Scale::of(baseline.iter(), candidate.iter());
    draft.set_scale(scale, setting.steps(case, scale, &baseline, &candidate));
    let placed = arms.on(scale);
    if n >= FEWEST_ROUNDS {
        let (level, comparisons) = match case.role {
            Role::Primary => (setting.stop.alpha, setting.family),
            Role::Exploratory => (EXPLORATORY_Q, setting.exploratory),
        };
        let outside = setting.outside(case.role);
        if paired {
            judge_pairs(&mut draft, &placed, level, comparisons, outside);
        } else {
            judge_means(&mut draft, &placed, level, comparisons, outside);
        }
    } else {
        draft.comparison.verdict = Verdict::TooFew { n };
        draft.settled = true;
    }
    draft.comparison.caveats.push(Caveat::Clustered {
        kind: clusters.kind.clone(),
        baseline: arms.baseline.len() as u32,
        candidate: arms.candidate.len() as u32,
        both: both as u32,
        method: draft.comparison.method,
    });
    if case.role == Role::Primary && scale == Scale::Log {
        draft.comparison.caveats.extend(variance_caveat(&placed, paired, &clusters.kind));
    }
    draft
}

/// Ratio of means − 1, where a cluster's mean is one value.
fn mean_change(arms: &Arms, paired: bool) -> Interval {
    if !paired {
        return mean_change_unpaired(&means(&arms.baseline), &means(&arms.candidate));
    }
    let point = |values: &[f64]| Point { round: 0, position: 0, started_unix_ns: 0, value: mean(values) };
    let pairs: Vec<(Point, Point)> =
        arms.both().into_iter().map(|(base, cand)| (point(base), point(cand))).collect();
    mean_change_paired(&pairs)
}

/// One difference a cluster, judged as a round's is when there is one look.
fn judge_pairs(draft: &mut Draft, logs: &Arms, level: f64, comparisons: usize, outside: f64) {
    let differences: Vec<f64> = logs.both().into_iter().map(|(base, cand)| mean(cand) - mean(base)).collect();
    draft.spread = stddev(&differences);
    let once = Once { level, comparisons, outside, exact: false };
    look_once(draft, &Crossover::of_unknown_order(&differences), once);
    draft.comparison.method = match draft.comparison.method {
        Method::FixedSignedRank => Method::ClusterSignedRank,
        Method::FixedT => Method::ClusterT,
        other => other,
    };
}

/// One mean a cluster.
fn judge_means(draft: &mut Draft, logs: &Arms, level: f64, comparisons: usize, outside: f64) {
    let (base, cand) = (means(&logs.baseline), means(&logs.candidate));
    draft.spread = (variance(&base) + variance(&cand)).sqrt();
    let Some(judged) = cluster_means::judge(&base, &cand, outside, level, comparisons) else { return };
    draft.comparison.method = if judged.by_rank { Method::ClusterMannWhitney } else { Method::ClusterWelch };
    draft.comparison.p = Some(judged.p);
    (draft.theta, draft.lean) = (judged.shift, judged.lean);
    if let Some(interval) = judged.interval {
        // Welch's p and interval agree of themselves.
        draft.set_effect(match judged.by_rank {
            true => ties::follow(interval, judged.p, outside, judged.lean),
            false => interval,
        });
    }
    if judged.precision == Precision::Normal {
        draft.comparison.caveats.push(Caveat::LargeSampleApproximation);
    }
}

/// How much clusters and trials differ, and what to repeat more often next time; `None` where it cannot be told.
fn variance_caveat(logs: &Arms, paired: bool, kind: &str) -> Option<Caveat> {
    let both: [Vec<Vec<f64>>; 2] = if paired {
        let pairs = logs.both();
        [pairs.iter().map(|pair| pair.0.clone()).collect(), pairs.iter().map(|pair| pair.1.clone()).collect()]
    } else {
        [&logs.baseline, &logs.candidate].map(|arm| arm.values().cloned().collect())
    };
    let found = variance_components::one_way(&both)?;
    let trials: usize = both.iter().flatten().map(Vec::len).sum();
    let repeats = trials as f64 / (both[0].len() + both[1].len()) as f64;
    let (mut between, mut error, mut cancelled) = (found.between, found.within / repeats, None);
    if paired {
        let sizes = both[0].iter().zip(&both[1]);
        // What repeats alone would make the differences vary by.
        let inverse: Vec<f64> =
            sizes.clone().map(|(a, b)| 1.0 / a.len() as f64 + 1.0 / b.len() as f64).collect();
        error = found.within * mean(&inverse);
        let differences: Vec<f64> = sizes.map(|(a, b)| mean(b) - mean(a)).collect();
        between = (variance(&differences) - error).max(0.0);
        // The difference holds what two arms add to a cluster, each half of its variance.
        cancelled = Some((found.between - between / 2.0).max(0.0).sqrt());
    }
    let share = if between + error > 0.0 { between / (between + error) } else { 0.0 };
    Some(Caveat::ClusterVariance {
        kind: kind.to_owned(),
        between: between.sqrt(),
        within: found.within.sqrt(),
        cancelled,
        share,
        repeats,
        best_repeats: variance_components::best_repeats(between, found.within, COST),
    })
}
