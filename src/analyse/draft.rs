//! A comparison before its verdict: the figures, and what the judge still needs.
//!
//! Enters: figures of one comparison. Leaves: a [`Draft`] for [`super::verdict`].

use std::borrow::Cow;

use super::clusters::Clusters;
use super::comparison::{Caveat, Comparison, Method, Role, RowKey, Verdict};
use super::layout::{Layout, Row};
use super::options::Options;
use super::scale::Scale;
use super::steps::{Steps, tick_share};
use super::summary::{stall_threshold, summarise};
use super::table::{Point, Table};
use crate::record::{FailureRule, Run, SoFar, StopRule};
use crate::stats::Estimate;

/// α of exploratory metrics: q of Benjamini–Hochberg, and their intervals' error.
pub(super) const EXPLORATORY_Q: f64 = 0.05;

/// A comparison whose verdict is open, or settled before any test could run.
pub(super) struct Draft {
    pub comparison: Comparison,
    /// The scale of all figures here.
    pub scale: Scale,
    /// Effect on it, in the metric's own direction (positive: more).
    pub log: Option<Estimate>,
    /// The step of the values on the scale of `log`.
    pub steps: Steps,
    /// The interval was widened to it.
    pub widened: bool,
    /// Typical effect and spread of D for the rounds still needed.
    pub theta: f64,
    pub spread: f64,
    /// The side that p is of, by its sign: a typical difference may be 0 where most trials tie, and the mean may lie on the other side.
    pub lean: f64,
    /// The comparison's share of α, or of q.
    pub share: f64,
    /// Rounds that were run of it, also where a trial failed.
    pub tried: usize,
    /// The estimate corrected for an early stop, on the scale.
    pub corrected: f64,
    /// The interval leaves out all of the level, not its share: it does not hold together with those of the other comparisons, and
    /// is not printed unless a difference is claimed.
    pub alone: bool,
    /// It was asked for beside the family of exploratory metrics, whose verdicts do not know of it.
    pub beside: bool,
    /// The verdict needs no judge: too few, not measured.
    pub settled: bool,
    /// Rounds are missing: there is no verdict yet.
    pub so_far: Option<SoFar>,
    /// Only where the failures of the arms are unequal and their rule is to compare them.
    pub worst: Option<Worst>,
}

/// What the comparison would be with failed trials as the worst values.
pub(super) struct Worst {
    pub log: Option<Estimate>,
    pub p: Option<f64>,
}

/// What all comparisons of an analysis share.
#[derive(Clone, Copy)]
pub(super) struct Setting<'a> {
    pub run: &'a Run,
    pub table: &'a Table<'a>,
    pub layout: &'a Layout,
    pub stop: StopRule,
    /// Comparisons that share α.
    pub family: usize,
    /// Exploratory comparisons, which share q.
    pub exploratory: usize,
    /// What the interval of an exploratory metric leaves out. With R claims among m it is q·R/m, so that at most a share q of the
    /// claimed ones is expected to miss the truth, and an interval excludes 0 exactly where a difference is claimed
    /// (Benjamini & Yekutieli 2005, J. Am. Stat. Assoc. 100:71).
    pub exploratory_outside: f64,
    /// What failed trials mean.
    pub rule: FailureRule,
    /// Which imported trials belong together.
    pub clusters: Option<&'a Clusters>,
}

/// One comparison to make.
pub(super) struct Case<'a> {
    pub row: &'a Row,
    pub metric: u32,
    pub role: Role,
    /// The arm it is compared with: the baseline, or of all pairs another one.
    pub base: usize,
    /// The candidate's arm.
    pub arm: usize,
    /// It accompanies only because it was asked for: what never changes in the row, or is there for the budget.
    pub beside: bool,
}

impl<'a> Case<'a> {
    /// A row's deciding metric, of these two arms.
    pub(super) fn deciding(row: &'a Row, metric: u32, (base, arm): (usize, usize)) -> Case<'a> {
        Case { row, metric, role: Role::Primary, base, arm, beside: false }
    }

    /// The cells of both arms.
    pub(super) fn cells(&self) -> [Option<u32>; 2] {
        [self.row.cells[self.base], self.row.cells[self.arm]]
    }
}

impl<'a> Setting<'a> {
    /// For the deciding metrics of a run compared with the baseline; an analysis adds what concerns the others.
    pub(super) fn deciding(
        run: &'a Run,
        options: &Options,
        table: &'a Table<'a>,
        layout: &'a Layout,
    ) -> Setting<'a> {
        Setting {
            run,
            table,
            layout,
            stop: options.stop(run),
            family: layout.family(false),
            exploratory: 0,
            exploratory_outside: EXPLORATORY_Q,
            rule: options.failures(run),
            clusters: None,
        }
    }
}

impl Setting<'_> {
    /// What the interval of one of several comparisons leaves out: of those that decide its share of α, so that all of them hold
    /// together.
    pub(super) fn outside(&self, role: Role) -> f64 {
        match role {
            Role::Primary => self.stop.alpha / self.family.max(1) as f64,
            Role::Exploratory => self.exploratory_outside,
        }
    }

    /// The columns of baseline and candidate. Values of trials that failed before they worked stay only where both arms failed
    /// equally often.
    pub(super) fn columns(&self, case: &Case) -> (Cow<'_, [Point]>, Cow<'_, [Point]>) {
        let without_failed = match self.failures(case) {
            None => false,
            Some(counts) => self.rule == FailureRule::Worst || counts.are_unequal(),
        };
        let column = |arm: usize| {
            let Some(cell) = case.row.cells[arm] else { return Cow::Borrowed(&[][..]) };
            let all = self.table.column(cell, case.metric);
            if !without_failed {
                return Cow::Borrowed(all);
            }
            let failed = self.table.failed_rounds(cell);
            Cow::Owned(all.iter().filter(|point| !failed.contains(&point.round)).copied().collect())
        };
        (column(case.base), column(case.arm))
    }

    /// The step of the values of a comparison; none where they are exact counts.
    pub(super) fn steps(&self, case: &Case, scale: Scale, baseline: &[Point], candidate: &[Point]) -> Steps {
        let metric = &self.table.metrics()[case.metric as usize];
        match metric.is_exact_count() {
            true => Steps::default(),
            false => {
                let tick = self.tick_share(case.metric, case.cells());
                let delta = self.layout.deltas[case.metric as usize];
                Steps::on(scale, &metric.unit, [baseline, candidate], tick, delta)
            }
        }
    }

    /// The share of a metric's values that a tick of its clock is in these cells; 0 where it has none.
    pub(super) fn tick_share(&self, metric: u32, cells: [Option<u32>; 2]) -> f64 {
        let Some(clock) = self.table.clock(metric) else { return 0.0 };
        tick_share(cells.map(|cell| cell.map_or(&[][..], |cell| self.table.column(cell, clock))))
    }

    /// A draft without effect: both arms in figures, nothing judged.
    pub(super) fn start(&self, case: &Case) -> Draft {
        let (baseline, candidate) = self.columns(case);
        let metric = self.table.metrics()[case.metric as usize].clone();
        let arms = &self.layout.arms;
        let summary = |arm: usize, points: &[Point]| {
            summarise(&arms[arm], points, stall_threshold(points, metric.better))
        };
        let (base, cand) = (summary(case.base, &baseline), summary(case.arm, &candidate));
        let comparison = Comparison {
            row: RowKey { levels: case.row.key.levels.clone(), job: case.row.key.job.clone() },
            role: case.role,
            baseline: base,
            candidate: cand,
            metric,
            method: Method::ChangeOnly,
            n: 0,
            effect: None,
            difference: None,
            delta: self.layout.deltas[case.metric as usize],
            typical: None,
            alone: None,
            unlisted: None,
            corrected: None,
            mean_change: super::comparison::Interval { estimate: f64::NAN, low: f64::NAN, high: f64::NAN },
            p: None,
            p_adjusted: None,
            failures: None,
            verdict: Verdict::Undecided { rounds_to_claim: None, rounds_for_no_difference: None },
            caveats: Vec::new(),
        };
        let steps = Steps::default();
        let share = match case.role {
            Role::Primary => self.outside(Role::Primary),
            Role::Exploratory => EXPLORATORY_Q / self.exploratory.max(1) as f64,
        };
        Draft {
            comparison,
            scale: Scale::Log,
            log: None,
            steps,
            widened: false,
            theta: f64::NAN,
            spread: f64::NAN,
            lean: 0.0,
            share,
            corrected: f64::NAN,
            tried: 0,
            alone: false,
            beside: case.beside,
            settled: false,
            so_far: None,
            worst: None,
        }
    }
}

impl Draft {
    /// Settles it: nothing to compare, with the reason.
    pub(super) fn not_measured(mut self, reason: String) -> Draft {
        self.comparison.verdict = Verdict::NotMeasured(reason);
        self.settled = true;
        self
    }

    /// Settles it: what worked is no fair sample of an arm, and its test cannot rank what did not.
    pub(super) fn not_comparable(mut self) -> Draft {
        self.comparison.verdict = Verdict::NotComparable;
        (self.comparison.effect, self.comparison.difference) = (None, None);
        (self.comparison.p, self.comparison.p_adjusted) = (None, None);
        self.comparison.caveats.push(Caveat::UnequalFailures);
        self.settled = true;
        self
    }

    /// Settles it: too few repeats for any interval.
    pub(super) fn too_few(mut self, n: usize) -> Draft {
        self.comparison.verdict = Verdict::TooFew { n };
        self.comparison.caveats.push(Caveat::TooFewRepeats { n });
        self.settled = true;
        self
    }

    /// Rounds are missing: whatever the figures are, they get no verdict before the last. What was not measured stays so.
    pub(super) fn not_before_the_last(&mut self, so_far: Option<SoFar>) {
        let none = matches!(self.comparison.verdict, Verdict::NotMeasured(_));
        self.so_far = so_far.filter(|_| !none);
        if self.so_far.is_some() {
            // Nor has any other test a p before the last.
            self.comparison.caveats.retain(|caveat| {
                !matches!(
                    caveat,
                    Caveat::TooFewRepeats { .. }
                        | Caveat::OrderEffect { .. }
                        | Caveat::BaselineDrift { .. }
                        | Caveat::EffectDrift { .. }
                )
            });
        }
    }

    /// Sets the scale of all figures, and the step of the values on it.
    pub(super) fn set_scale(&mut self, scale: Scale, steps: Steps) {
        (self.scale, self.steps) = (scale, steps);
        if scale != Scale::Log {
            self.comparison.caveats.push(Caveat::NotPositive);
        }
    }

    /// Sets the effect from the interval that a test gave, no narrower than the metric's step allows.
    pub(super) fn set_effect(&mut self, plain: Estimate) {
        let log = self.steps.widen(plain);
        self.widened = log != plain;
        self.log = Some(log);
        self.comparison.effect = self.scale.share(log);
        self.comparison.difference = self.scale.in_unit(log);
    }

    /// An arm without values, in words; `None` when both have some.
    pub(super) fn missing_arm(&self) -> Option<String> {
        let empty =
            [&self.comparison.baseline, &self.comparison.candidate].into_iter().find(|arm| arm.n == 0)?;
        Some(format!("arm '{}' has no value", empty.arm))
    }
}
