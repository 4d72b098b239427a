//! The law of each curve, or why there is none; and in what two laws differ.
//!
//! Enters: groups of series. Leaves: [`Scaling`]s. The intervals of a law are those of a bootstrap over rounds; results without rounds draw
//! the repeats of each cell on their own. What two laws differ in is judged by Student's t over the jackknife's pseudo-values, of the same
//! rounds in both where there are rounds, so that what both share cancels.

use super::super::comparison::Interval;
use super::super::draft::Setting;
use super::super::table::Point;
use super::series::{Group, Series};
use super::{NoLaw, Scaling, ScalingCurve, ScalingDifference, ScalingLaw, ScalingPoint};
use crate::stats::Estimate;
use crate::stats::descriptive::mean;
use crate::stats::scalability_law::{self, Law};
use crate::stats::sequential::FEWEST_ROUNDS;
use crate::stats::student_t;

/// Fewer levels are not fitted.
const FEWEST_LEVELS: usize = 6;
/// The largest level must be this many times the smallest.
const LEAST_RANGE: f64 = 4.0;
/// A law that misses the points by more is none.
const MOST_RESIDUAL: f64 = 0.1;
/// How well the peak must be known.
const PEAK_WITHIN: f64 = 2.0;
/// Nothing is said beyond this many times the last level.
pub(super) const HORIZON: f64 = 2.0;
/// Samples of a bootstrap.
const REPLICATES: usize = 1_000;
/// What the intervals of a curve leave out.
const OUTSIDE: f64 = 0.05;
/// γ, α and β.
const PARAMETERS: f64 = 3.0;

/// What a curve's law is made from.
struct Drawn {
    law: Law,
    /// Pseudo-values of ln γ, α and β; by round, where there are rounds.
    pseudo: Option<[Vec<f64>; 3]>,
}

/// Fits all curves of a group.
pub(super) fn fitted(setting: &Setting, group: Group) -> Scaling {
    let paired = setting.run.design.paired;
    let usable: Vec<Vec<(u32, &[Point])>> =
        group.series.iter().map(|series| within(series, group.processors)).collect();
    let rounds = common_rounds(&usable);
    let (mut curves, mut drawn): (Vec<ScalingCurve>, Vec<Option<Drawn>>) = (Vec::new(), Vec::new());
    for (series, columns) in group.series.iter().zip(&usable) {
        let values = |(_, points): &(u32, &[Point])| -> Vec<f64> {
            let counts = |point: &&Point| !paired || rounds.binary_search(&point.round).is_ok();
            points.iter().filter(counts).map(|point| point.value).collect()
        };
        let columns: Vec<(u32, Vec<f64>)> = columns.iter().map(|column| (column.0, values(column))).collect();
        let found = law(series, &columns, paired);
        let (law, refused, own) = match found {
            Ok((law, drawn)) => (Some(law), None, Some(drawn)),
            Err(reason) => (None, Some(reason), None),
        };
        let fitted = |level: u32| law.is_some() && columns.iter().any(|(known, _)| *known == level);
        let points =
            series.columns.iter().map(|(level, points)| point(*level, points, fitted(*level))).collect();
        curves.push(ScalingCurve {
            of: series.of.clone(),
            metric: series.metric.clone(),
            points,
            law,
            refused,
        });
        drawn.push(own);
    }
    let differences = differences(&curves, &drawn, paired);
    let Group { factor, row, job, processors, .. } = group;
    Scaling { factor, row, job, processors, curves, differences }
}

/// The levels that have a processor for each worker.
fn within<'a>(series: &Series<'a>, processors: Option<u32>) -> Vec<(u32, &'a [Point])> {
    let has_its_own = |level: u32| processors.is_none_or(|processors| level <= processors);
    series.columns.iter().filter(|(level, _)| has_its_own(*level)).copied().collect()
}

/// Rounds in which every level of every curve has a value.
fn common_rounds(series: &[Vec<(u32, &[Point])>]) -> Vec<u32> {
    let mut columns = series.iter().flatten().map(|(_, points)| points);
    let Some(first) = columns.next() else { return Vec::new() };
    let mut rounds: Vec<u32> = first.iter().map(|point| point.round).collect();
    for points in columns {
        rounds.retain(|round| points.binary_search_by_key(round, |point| point.round).is_ok());
    }
    rounds
}

fn point(level: u32, points: &[Point], fitted: bool) -> ScalingPoint {
    let values: Vec<f64> = points.iter().map(|point| point.value).collect();
    ScalingPoint {
        level,
        n: values.len(),
        mean: mean(&values),
        min: values.iter().copied().fold(f64::INFINITY, f64::min),
        max: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        fitted,
    }
}

/// The law of one curve with its intervals.
fn law(series: &Series, columns: &[(u32, Vec<f64>)], paired: bool) -> Result<(ScalingLaw, Drawn), NoLaw> {
    if !series.is_throughput {
        return Err(NoLaw::NoThroughput { metric: series.metric.name.clone() });
    }
    if columns.len() < FEWEST_LEVELS {
        return Err(NoLaw::FewLevels { levels: columns.len(), of: series.columns.len() });
    }
    let (from, to) = (columns[0].0, columns[columns.len() - 1].0);
    if f64::from(to) < LEAST_RANGE * f64::from(from) {
        return Err(NoLaw::NarrowRange { from, to });
    }
    let n = columns.iter().map(|(_, values)| values.len()).min().unwrap_or(0);
    if n < FEWEST_ROUNDS {
        return Err(NoLaw::FewRounds { rounds: n });
    }
    let levels: Vec<f64> = columns.iter().map(|(level, _)| f64::from(*level)).collect();
    let values: Vec<Vec<f64>> = columns.iter().map(|(_, values)| values.clone()).collect();
    let means: Vec<(f64, f64)> =
        levels.iter().zip(&values).map(|(level, values)| (*level, mean(values))).collect();
    let law = scalability_law::fit(&means).ok_or(NoLaw::NotPositive)?;
    let residual = law.residual(&means);
    if residual > MOST_RESIDUAL {
        return Err(NoLaw::Misses { residual });
    }
    let replicates = scalability_law::bootstrap(&levels, &values, paired, REPLICATES);
    let interval = |of: fn(&Law) -> f64| {
        let replicates: Vec<f64> = replicates.iter().flatten().map(of).collect();
        plain(scalability_law::percentiles(of(&law), &replicates, n, OUTSIDE))
    };
    let peak = interval(Law::peak);
    if !is_known(peak, f64::from(to)) {
        let end = |end: f64| end.is_finite().then_some(end);
        return Err(NoLaw::PeakUnknown { low: end(peak.low), high: end(peak.high) });
    }
    let ceiling = Some(law.ceiling()).filter(|ceiling| ceiling.is_finite());
    let found = ScalingLaw {
        gamma: interval(|law| law.gamma),
        alpha: interval(|law| law.alpha),
        beta: interval(|law| law.beta),
        peak,
        ceiling,
        residual,
        n,
        last: to,
    };
    Ok((found, Drawn { law, pseudo: scalability_law::pseudo_values(&law, &levels, &values) }))
}

/// Whether the peak is known within a factor 2, or to be so far away that nothing is said of it.
fn is_known(peak: Interval, last: f64) -> bool {
    let near = peak.high <= PEAK_WITHIN * peak.estimate && peak.estimate <= PEAK_WITHIN * peak.low;
    near || peak.low >= HORIZON * last
}

/// Each later curve against the first, where both have a law. All of them leave out 5 % together.
fn differences(curves: &[ScalingCurve], drawn: &[Option<Drawn>], paired: bool) -> Vec<ScalingDifference> {
    let Some((Some(first), others)) = drawn.split_first() else { return Vec::new() };
    let with_a_law = others.iter().flatten().count();
    let outside = OUTSIDE / (PARAMETERS * with_a_law.max(1) as f64);
    let mut found = Vec::new();
    for (at, other) in others.iter().enumerate().filter_map(|(at, other)| Some((at + 1, other.as_ref()?))) {
        let (one, two) = (&first.law, &other.law);
        let interval = |parameter: usize, estimate: f64| {
            let found = first.pseudo.as_ref().zip(other.pseudo.as_ref()).and_then(|(one, two)| {
                let (one, two) = (&one[parameter], &two[parameter]);
                if !paired {
                    return student_t::welch(one, two, outside);
                }
                let differences: Vec<f64> = one.iter().zip(two).map(|(one, two)| two - one).collect();
                student_t::paired(&differences, outside)
            });
            let (low, high) = found.map_or((f64::NEG_INFINITY, f64::INFINITY), |test| {
                (test.interval.low.min(estimate), test.interval.high.max(estimate))
            });
            Interval { estimate, low, high }
        };
        // γ of other units has no ratio that means something.
        let same_unit = curves[0].metric.unit == curves[at].metric.unit;
        let log = interval(0, (two.gamma / one.gamma).ln());
        let gamma =
            Interval { estimate: log.estimate.exp_m1(), low: log.low.exp_m1(), high: log.high.exp_m1() };
        let (alpha, beta) = (interval(1, two.alpha - one.alpha), interval(2, two.beta - one.beta));
        let named = [("gamma", gamma), ("alpha", alpha), ("beta", beta)];
        let differs =
            named.iter().filter(|(name, i)| (i.low > 0.0 || i.high < 0.0) && (*name != "gamma" || same_unit));
        let differs = differs.map(|(name, _)| (*name).to_owned()).collect();
        found.push(ScalingDifference { curves: [0, at], gamma, alpha, beta, differs });
    }
    found
}

fn plain(estimate: Estimate) -> Interval {
    Interval { estimate: estimate.estimate, low: estimate.low, high: estimate.high }
}
