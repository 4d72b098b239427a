//! What the rounds of a plan can show: refused where it is nothing, told in `--plan`.
//!
//! Enters: a plan with its experiment. Leaves: how many comparisons share the error rate, and the change that the last round
//! will probably show. How a run is judged: docs/METHODOLOGY.md.

use crate::cli::Failure;
use crate::experiment::{Experiment, MAX_ROUNDS};
use crate::plan::{MetricNames, Plan};
use crate::record::StopRule;
use crate::stats::rounds_needed;
use crate::stats::sequential::{Boundary, FEWEST_ROUNDS};
use crate::workload::deciding_metrics;

/// How much the change scatters from round to round in the example.
const SCATTER: f64 = 0.05;

/// What is judged in the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reach {
    /// Rows × candidates × the metrics that decide.
    comparisons: u32,
    /// Whether a trial may report more rows than could be foreseen.
    at_least: bool,
}

impl Reach {
    pub(super) fn of(experiment: &Experiment, plan: &Plan) -> Reach {
        let names = MetricNames::of(experiment, &plan.cells);
        let mut sections: Vec<&str> =
            names.iter().flat_map(MetricNames::iter).map(|(section, _)| section).collect();
        sections.retain(|section| !section.is_empty());
        sections.sort_unstable();
        sections.dedup();
        let wishes =
            plan.primary.as_deref().map(|text| deciding_metrics(text, |_| false)).unwrap_or_default();
        let deciding = |section: Option<&str>| wishes.iter().filter(|(of, _)| *of == section).count();
        let of_section = |section: &&str| match deciding(Some(section)) {
            0 => deciding(None).max(1),
            own => own,
        };
        let rows = match sections.is_empty() {
            true => deciding(None).max(1),
            false => sections.iter().map(of_section).sum(),
        };
        let candidates = plan.cells.iter().filter(|cell| cell.levels[plan.compare] > 0).count();
        let candidates = if plan.aa { 1 } else { candidates };
        Reach { comparisons: (rows * candidates) as u32, at_least: names.is_none() }
    }

    /// Refuses rounds that can claim nothing whatever they measure.
    ///
    /// # Errors
    /// `--exact` with too few rounds for so many comparisons.
    pub(super) fn check(self, stop: &StopRule) -> Result<(), Failure> {
        if !stop.exact || stop.rounds.is_some() || self.looks(stop.max_rounds, stop.alpha) {
            return Ok(());
        }
        let enough = (stop.max_rounds..=MAX_ROUNDS as u32)
            .find(|rounds| self.looks(*rounds, stop.alpha))
            .map_or_else(String::new, |rounds| format!("--max-rounds {rounds}, "));
        Err(Failure::request(format!(
            "{} can show nothing by ranks in {} rounds, however large a difference is",
            counted(self.comparisons, "comparison"),
            stop.max_rounds
        ))
        .hint(format!(
            "{enough}fewer levels, or without --exact, which looks by Student's t where ranks cannot"
        )))
    }

    /// Whether a look at ranks can claim anything.
    fn looks(self, rounds: u32, alpha: f64) -> bool {
        let share = alpha / f64::from(self.comparisons.max(1));
        !Boundary::new(rounds as usize, share, true).rank_looks().is_empty()
    }

    /// What the last round will probably show, for `--plan`.
    pub(super) fn words(self, plan: &Plan, stop: &StopRule) -> Option<String> {
        let StopRule { alpha, anytime, .. } = *stop;
        let rounds = plan.rounds_at_most();
        if (rounds as usize) < FEWEST_ROUNDS {
            return Some(format!(
                "{} can show nothing: a verdict takes {FEWEST_ROUNDS}",
                counted(rounds, "round")
            ));
        }
        if anytime || plan.aa {
            return None;
        }
        let spreads =
            rounds_needed::smallest_shown(rounds as usize, alpha / f64::from(self.comparisons.max(1)));
        let least = if self.at_least { "at least " } else { "" };
        Some(format!(
            "{least}{}: where a change scatters by {} from round to round, {rounds} rounds probably show one of {}",
            counted(self.comparisons, "comparison"),
            percent(SCATTER),
            percent((spreads * SCATTER.ln_1p()).exp_m1())
        ))
    }
}

/// Two digits are all that such a forecast knows.
fn percent(ratio: f64) -> String {
    let digits = usize::from(ratio < 0.0995);
    let number = format!("{:.digits$}", ratio * 100.0);
    format!("{} %", number.strip_suffix(".0").unwrap_or(&number))
}

fn counted(n: u32, what: &str) -> String {
    if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") }
}
