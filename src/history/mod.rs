//! Many runs of one experiment in time: where its level changed, and whether the newest run is as those before it.
//!
//! Enters: a run whose arms are the runs, in the order of time, and its analysis, which has each arm's values. Leaves: a [`History`]. A run
//! is one value, its median: what differs from night to night is not what differs from trial to trial, and only whole runs can
//! show it. It must not know stores or words.

use std::ops::Range;

use crate::analyse::{Analysis, ArmSummary, Comparison, FactDifference, Interval, Role, RowKey, Verdict};
use crate::record::{Better, Metric};
use crate::stats::change_point::{self, ChangePoint};
use crate::stats::{Estimate, descriptive, student_t};

/// Fewest runs that say how much runs differ.
pub const FEWEST_BEFORE: usize = 4;

/// Share of α at which a run stands so far apart that later ones are not compared with it.
const STANDS_APART: f64 = 0.1;

/// What the runs show.
#[derive(Clone, Debug, PartialEq)]
pub struct History {
    /// One for each row and deciding metric, in the order of the runs' own reports.
    pub series: Vec<Series>,
    /// Facts that changed with runs, the oldest run first, without those that a series names with a change or with the newest run.
    pub facts: Vec<ChangedFacts>,
    /// The smallest difference that matters, as a ratio − 1.
    pub delta: f64,
}

/// Facts of host and job that are others in a run than in the run before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedFacts {
    /// The run's label.
    pub run: String,
    /// Name, before, now.
    pub facts: Vec<(String, String, String)>,
}

/// One metric of one row over the runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// The row.
    pub row: RowKey,
    /// The metric.
    pub metric: Metric,
    /// δ of the metric, as a ratio − 1.
    pub delta: f64,
    /// A point for each run that has values of it, the oldest first.
    pub points: Vec<Point>,
    /// Where the level is another one from then on.
    pub changes: Vec<Change>,
    /// The newest run against those before it, back to the last change.
    pub newest: Newest,
}

/// A run in a series.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Its label.
    pub run: String,
    /// When its first trial began; 0: unknown.
    pub started_unix_ns: u64,
    /// Trials with a value.
    pub n: usize,
    /// Median of its trials.
    pub median: f64,
}

impl Point {
    /// `run 12` is 12 where all are runs.
    #[must_use]
    pub fn label(&self) -> &str {
        self.run.strip_prefix("run ").unwrap_or(&self.run)
    }
}

/// The level is another one from a run on.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// Index of the first point of the new level.
    pub at: usize,
    /// Mean of the runs from there to the next change against those back to the change before.
    pub effect: Interval,
    /// Chance of so large a step somewhere in a series without any.
    pub p: f64,
    /// What it is to who uses it.
    pub verdict: Verdict,
    /// Facts that changed with the run, too: (name, before, after).
    pub facts: Vec<(String, String, String)>,
}

/// The newest run beside those before it.
#[derive(Clone, Debug, PartialEq)]
pub struct Newest {
    /// Runs that it is compared with.
    pub before: usize,
    /// Runs before it that are not among these: each stood apart from those before it, and would hide the next one that does.
    pub set_aside: usize,
    /// Its median against their mean; the interval is where a further run of the same level lies. `None`: too few runs.
    pub effect: Option<Interval>,
    /// What it is.
    pub verdict: Verdict,
    /// Facts of host and job that are others than in the runs before it: name, before, now.
    pub facts: Vec<(String, String, String)>,
}

impl History {
    /// Reads the runs that are arms of `analysis`, the last of which is the newest; changes are claimed at its α, shared among the series of
    /// this history and of so many that are judged together.
    #[must_use]
    pub fn of(analysis: &Analysis, together: usize) -> History {
        let alpha = analysis.alpha;
        let mut rows: Vec<(&RowKey, &Metric)> = Vec::new();
        for comparison in primary(analysis) {
            let row = (&comparison.row, &comparison.metric);
            if !rows.contains(&row) {
                rows.push(row);
            }
        }
        let share = alpha / (rows.len() * together).max(1) as f64;
        let of_row = |(row, metric): (&RowKey, &Metric)| series(analysis, row, metric, share);
        let series: Vec<Series> =
            rows.into_iter().map(of_row).filter(|series| !series.points.is_empty()).collect();
        let facts = changed_facts(&analysis.arms, &analysis.differences, &series);
        History { series, facts, delta: analysis.delta }
    }
}

impl Series {
    /// Where its levels lie among its points.
    #[must_use]
    pub fn levels(&self) -> Vec<Range<usize>> {
        let starts = || self.changes.iter().map(|change| change.at);
        let ends = starts().chain([self.points.len()]);
        [0].into_iter().chain(starts()).zip(ends).map(|(start, end)| start..end).collect()
    }

    /// Where the newest run lies with probability 1 − α if its level is that of the runs it is compared with; `None`: they are too few.
    #[must_use]
    pub fn expected(&self) -> Option<[f64; 2]> {
        let (effect, newest) = (self.newest.effect?, self.points.last()?.median);
        Some([newest / (1.0 + effect.high), newest / (1.0 + effect.low)])
    }

    /// Whether a change is for the better or for the worse, by however little; `None`: it may be none.
    #[must_use]
    pub fn is_better(&self, effect: Interval) -> Option<bool> {
        let is_real = effect.low > 0.0 || effect.high < 0.0;
        is_real.then_some((effect.low > 0.0) == (self.metric.better == Better::Higher))
    }

    /// Whether it names the fact with a change at this run, or with the newest run where that is judged.
    fn names(&self, run: &str, fact: &str) -> bool {
        let at_changes =
            self.changes.iter().filter(|change| self.points[change.at].run == run).flat_map(|c| &c.facts);
        let is_newest = self.points.last().is_some_and(|point| point.run == run);
        let of_newest = self.newest.facts.iter().filter(|_| is_newest && self.newest.effect.is_some());
        at_changes.chain(of_newest).any(|(name, _, _)| name == fact)
    }
}

fn primary(analysis: &Analysis) -> impl Iterator<Item = &Comparison> {
    analysis.comparisons.iter().filter(|comparison| comparison.role == Role::Primary)
}

fn series(analysis: &Analysis, row: &RowKey, metric: &Metric, alpha: f64) -> Series {
    let newest_run = analysis.arms.last().map_or("", String::as_str);
    let of_it: Vec<&Comparison> = primary(analysis)
        .filter(|comparison| comparison.row == *row && comparison.metric == *metric)
        .collect();
    let delta = of_it.first().map_or(analysis.delta, |comparison| comparison.delta);
    let baseline = of_it.first().map(|comparison| &comparison.baseline);
    let arms = baseline.into_iter().chain(of_it.iter().map(|comparison| &comparison.candidate));
    let points: Vec<Point> = arms.filter(|arm| arm.n > 0).map(point).collect();
    if let Some(why) = not_judged(&points, newest_run) {
        let verdict = Verdict::NotMeasured(why);
        let newest = Newest { before: 0, set_aside: 0, effect: None, verdict, facts: Vec::new() };
        return Series {
            row: row.clone(),
            metric: metric.clone(),
            delta,
            points,
            changes: Vec::new(),
            newest,
        };
    }
    let logs: Vec<f64> = points.iter().map(|point| point.median.ln()).collect();
    let mut found = change_point::change_points(&logs, alpha);
    let mut steps = steps(&logs, &found, alpha);
    // What the levels on both sides do not show, now that they end at other changes, is none.
    while let Some(at) = steps.iter().position(|step| step.is_none_or(|step| !step.excludes(0.0))) {
        found.remove(at);
        steps = self::steps(&logs, &found, alpha);
    }
    let changes = found.iter().zip(steps.into_iter().flatten()).map(|(change, step)| Change {
        at: change.at,
        effect: ratio(step),
        p: change.p,
        verdict: verdict(step, delta, metric.better),
        facts: facts_at(&analysis.differences, &points, change.at),
    });
    let changes: Vec<Change> = changes.collect();
    let last = changes.last().map_or(0, |change| change.at);
    let mut newest = newest(&logs[last..], alpha, delta, metric.better);
    // Those of a change that is told are told with it.
    if last + 1 < points.len() {
        newest.facts = facts_at(&analysis.differences, &points, points.len() - 1);
    }
    Series { row: row.clone(), metric: metric.clone(), delta, points, changes, newest }
}

/// At each change the mean from there to the next one against the mean back to the one before.
fn steps(logs: &[f64], found: &[ChangePoint], alpha: f64) -> Vec<Option<Estimate>> {
    let places = || found.iter().map(|change| change.at);
    let ends: Vec<usize> = [0].into_iter().chain(places()).chain([logs.len()]).collect();
    let step = |ends: &[usize]| student_t::pooled(&logs[ends[0]..ends[1]], &logs[ends[1]..ends[2]], alpha);
    ends.windows(3).map(|ends| step(ends).map(|test| test.interval)).collect()
}

/// Why a series says nothing of its newest run.
fn not_judged(points: &[Point], newest_run: &str) -> Option<String> {
    if points.last().is_none_or(|point| point.run != newest_run) {
        return Some(format!("{newest_run} has no value of it"));
    }
    let without_ratio = points.iter().find(|point| point.median.is_nan() || point.median <= 0.0)?;
    Some(format!("{} has the value {}, to which there is no ratio", without_ratio.run, without_ratio.median))
}

fn point(arm: &ArmSummary) -> Point {
    let starts = arm.values.iter().map(|(_, _, started, _)| *started);
    Point { run: arm.arm.clone(), started_unix_ns: starts.min().unwrap_or(0), n: arm.n, median: arm.median }
}

/// The last of these against the others, but for those that stood apart: where a further value of their level lies.
fn newest(logs: &[f64], alpha: f64, delta: f64, better: Better) -> Newest {
    let (last, before) = logs.split_last().unwrap_or((&0.0, &[]));
    let mut calm: Vec<f64> = Vec::new();
    for value in before {
        let log = further(&calm, *value, alpha * STANDS_APART);
        let beyond = |log: Estimate| log.low > delta.ln_1p() || log.high < -delta.ln_1p();
        if !log.is_some_and(beyond) {
            calm.push(*value);
        }
    }
    let (n, set_aside) = (calm.len(), before.len() - calm.len());
    match further(&calm, *last, alpha) {
        None => {
            Newest { before: n, set_aside, effect: None, verdict: Verdict::TooFew { n }, facts: Vec::new() }
        }
        Some(log) => {
            let verdict = verdict(log, delta, better);
            Newest { before: n, set_aside, effect: Some(ratio(log)), verdict, facts: Vec::new() }
        }
    }
}

/// A further value against those before it, with where it may lie if it is of their level: Student's t with √(1 + 1/n).
fn further(before: &[f64], value: f64, alpha: f64) -> Option<Estimate> {
    let n = before.len();
    if n < FEWEST_BEFORE {
        return None;
    }
    let estimate = value - descriptive::mean(before);
    let spread = descriptive::stddev(before) * (1.0 + 1.0 / n as f64).sqrt();
    let half = student_t::upper_quantile(alpha / 2.0, n as f64 - 1.0) * spread;
    Some(Estimate { estimate, low: estimate - half, high: estimate + half })
}

/// The verdict on a difference of logarithms, by the rule of all reports.
fn verdict(log: Estimate, delta: f64, better: Better) -> Verdict {
    let band = delta.ln_1p();
    let beyond_delta = log.low > band || log.high < -band;
    let real = log.low > 0.0 || log.high < 0.0;
    if log.low > -band && log.high < band {
        return Verdict::NoDifference { real_but_below_delta: real };
    }
    match (log.low > 0.0) == (better == Better::Higher) {
        _ if !real => Verdict::Undecided { rounds_to_claim: None, rounds_for_no_difference: None },
        true => Verdict::Faster { beyond_delta },
        false => Verdict::Slower { beyond_delta },
    }
}

fn ratio(log: Estimate) -> Interval {
    Interval { estimate: log.estimate.exp_m1(), low: log.low.exp_m1(), high: log.high.exp_m1() }
}

/// Facts that have another value from the run at `at` on: in two runs before and in two from there on, where there are as many.
fn facts_at(differences: &[FactDifference], points: &[Point], at: usize) -> Vec<(String, String, String)> {
    let value = |difference: &FactDifference, at: usize| {
        let run = &points.get(at)?.run;
        difference.values.iter().find(|(arm, _)| arm == run).map(|(_, value)| value.clone())
    };
    let of = |difference: &FactDifference| {
        let (before, after) = (value(difference, at.checked_sub(1)?)?, value(difference, at)?);
        // What comes and goes with a single run does not go with a level that stays.
        let stayed = at.checked_sub(2).and_then(|at| value(difference, at)).is_none_or(|past| past == before);
        let stays = value(difference, at + 1).is_none_or(|next| next == after);
        (before != after && stayed && stays).then(|| (difference.fact.clone(), before, after))
    };
    differences.iter().filter_map(of).collect()
}

/// Facts that are others in a run than in the run before it. One that changes with many runs is a measurement, not a setting, as it is
/// for trials (`analyse::facts`).
fn changed_facts(runs: &[String], differences: &[FactDifference], series: &[Series]) -> Vec<ChangedFacts> {
    let mut found: Vec<ChangedFacts> =
        runs.iter().map(|run| ChangedFacts { run: run.clone(), facts: Vec::new() }).collect();
    for FactDifference { fact, values } in differences {
        let steps: Vec<_> = values.windows(2).filter(|two| two[0].1 != two[1].1).collect();
        let is_new_in_each = values.len() > 2 && steps.len() == values.len() - 1;
        if is_new_in_each || steps.len() > (values.len() / 3).max(2) {
            continue;
        }
        for two in steps {
            let (before, (run, now)) = (&two[0].1, &two[1]);
            if series.iter().any(|one| one.names(run, fact)) {
                continue;
            }
            if let Some(of_run) = found.iter_mut().find(|one| one.run == *run) {
                of_run.facts.push((fact.clone(), before.clone(), now.clone()));
            }
        }
    }
    found.retain(|one| !one.facts.is_empty());
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_that_changed_are_named_once_and_measurements_never() {
        let runs: Vec<String> = (1..=6).map(|number| format!("run {number}")).collect();
        let difference = |fact: &str, values: [&str; 6]| FactDifference {
            fact: fact.to_owned(),
            values: runs.iter().cloned().zip(values.map(str::to_owned)).collect(),
        };
        let differences = [
            difference("job.bs", ["4k", "4k", "1k", "1k", "1k", "1k"]),
            difference("cpu.boost", ["on", "on", "on", "off", "on", "on"]),
            difference("fs.uuid", ["a", "b", "c", "d", "e", "f"]),
        ];
        let found = changed_facts(&runs, &differences, &[]);
        let said: Vec<(&str, &str, &str)> = found
            .iter()
            .flat_map(|one| {
                one.facts.iter().map(move |(fact, _, now)| (one.run.as_str(), fact.as_str(), now.as_str()))
            })
            .collect();
        assert_eq!(
            said,
            [("run 3", "job.bs", "1k"), ("run 4", "cpu.boost", "off"), ("run 5", "cpu.boost", "on")]
        );
        let few = FactDifference { values: differences[2].values[..3].to_vec(), ..differences[2].clone() };
        assert_eq!(changed_facts(&runs, &[few], &[]), [], "a measurement in three runs, too");
        let point = |run: &String| Point { run: run.clone(), started_unix_ns: 0, n: 1, median: 1.0 };
        let interval = Interval { estimate: 0.0, low: -0.1, high: 0.1 };
        let verdict = Verdict::TooFew { n: 1 };
        let facts = vec![("job.bs".to_owned(), "4k".to_owned(), "1k".to_owned())];
        let change = Change { at: 2, effect: interval, p: 0.01, verdict: verdict.clone(), facts };
        let series = Series {
            delta: 0.02,
            row: RowKey { levels: Vec::new(), job: String::new() },
            metric: serde_json::from_value(serde_json::json!(
                {"job": "", "name": "write.bw", "unit": "bytes_per_second", "better": "higher"}
            ))
            .unwrap(),
            points: runs.iter().map(point).collect(),
            changes: vec![change],
            newest: Newest { before: 1, set_aside: 0, effect: None, verdict, facts: Vec::new() },
        };
        let found = changed_facts(&runs, &differences, &[series]);
        let of: Vec<&str> = found.iter().map(|one| one.run.as_str()).collect();
        assert_eq!(of, ["run 4", "run 5"], "run 3 is a change that names it");
    }

    fn levels(values: &[f64]) -> (Vec<usize>, Newest) {
        let logs: Vec<f64> = values.iter().map(|value| value.ln()).collect();
        let found = change_point::change_points(&logs, 0.05);
        let places: Vec<usize> = found.iter().map(|change| change.at).collect();
        let last = places.last().copied().unwrap_or(0);
        (places, newest(&logs[last..], 0.05, 0.02, Better::Higher))
    }

    #[test]
    fn the_newest_is_judged_by_what_runs_differ_in() {
        let (changes, newest) = levels(&[100.0, 101.0, 99.0, 100.5, 99.5, 100.2]);
        assert_eq!((changes, newest.before), (vec![], 5));
        assert_eq!(
            newest.verdict,
            Verdict::Undecided { rounds_to_claim: None, rounds_for_no_difference: None }
        );
        let (_, newest) = levels(&[100.0, 101.0, 99.0, 100.5, 99.5, 80.0]);
        assert_eq!(newest.verdict, Verdict::Slower { beyond_delta: true });
        let (_, newest) = levels(&[100.0, 100.1, 99.9, 100.05, 99.95, 100.02]);
        assert_eq!(newest.verdict, Verdict::NoDifference { real_but_below_delta: false });
        // By hand: logarithms 0, ±0.01; s = √(2/3)·0.01, t(0.975; 3) = 3.182, √(1 + 1/4).
        let (_, newest) = levels(&[1.0, 0.01_f64.exp(), 1.0, (-0.01_f64).exp(), 1.0]);
        let half = 3.1824 * (2.0_f64 / 3.0).sqrt() * 0.01 * 1.25_f64.sqrt();
        assert!((newest.effect.unwrap().high - half.exp_m1()).abs() < 1e-5, "{newest:?} {half}");
    }

    /// The second bad night is as bad as the first.
    #[test]
    fn a_run_that_stood_apart_hides_no_other() {
        let (_, newest) = levels(&[100.0, 100.3, 99.8, 100.1, 99.9, 100.2, 90.0, 90.2]);
        assert_eq!((newest.before, newest.set_aside), (6, 1));
        assert_eq!(newest.verdict, Verdict::Slower { beyond_delta: true });
    }

    #[test]
    fn after_a_change_the_newest_has_few_runs_before_it() {
        let (changes, newest) = levels(&[100.0, 101.0, 99.0, 100.5, 99.5, 80.0, 80.5, 79.5]);
        assert_eq!((changes, newest.before), (vec![5], 2));
        assert_eq!((newest.effect, newest.verdict), (None, Verdict::TooFew { n: 2 }));
    }
}
