//! A stored search read again: which step has the change, and what to ask next.
//!
//! Enters: a [`Run`] with [`crate::record::Bisects`]. Leaves: a [`Bisected`]. Rounds are taken in as they were when each question was asked,
//! so that a search that was killed goes on with the questions that it would have asked, and a stored one can be judged with nothing
//! at hand. How it is searched is [`crate::stats::bisection`]'s to know.

use std::collections::BTreeSet;

use super::layout::deciding_metric;
use crate::record::{Better, Bisects, FailureKind, Metric, Run, Status, Trial};
use crate::stats::anytime;
use crate::stats::bisection::{Bisection, Round, Rules};
use crate::stats::descriptive::mean;
// Parts of what is found, so that those who word it need no other layer.
pub use crate::stats::Estimate;
pub use crate::stats::bisection::{Found, Next, Outcome};
pub use crate::stats::bisection_ends::Ends;
pub use crate::stats::sequential::{Look, LookKind};

/// What a search compares where nothing else is named.
const RUNTIME: &str = "runtime";

/// A search, as far as its trials went.
#[derive(Clone, Debug, PartialEq)]
pub struct Bisected {
    /// What decides; `None`: no trial has reported it.
    pub metric: Option<Metric>,
    /// What comes next, or how it ended.
    pub next: Next,
    /// The verdict on the ends, while they were compared alone.
    pub ends: Ends,
    /// The steps that may have the change, best first.
    pub likeliest: Vec<Found>,
    /// The shortest row of steps that has it with probability 1 − α or more.
    pub range: Found,
    /// Steps between the ends that could not be run, with why.
    pub skipped: Vec<(usize, String)>,
    /// An end that cannot be run any more, with why: nothing can be compared.
    pub lost_end: Option<(usize, String)>,
    /// On which sides of the step that was found there is another change.
    pub others: Vec<Another>,
    /// Every round, in order.
    pub rounds: Vec<BisectedRound>,
    /// The bad side beside the good side, as a ratio − 1 of the metric: over all rounds, at any number of looks. Where no step was found, of
    /// the ends.
    pub effect: Option<Estimate>,
    /// Rounds behind it.
    pub pairs: usize,
    /// Steps from the good end on; the last one is the bad end.
    pub steps: usize,
    /// Values that are not above 0, of which there is no ratio.
    pub not_positive: usize,
    /// −1 where what is searched for makes the metric smaller, else 1: times this, logarithms go up with what is searched for.
    pub sign: f64,
}

/// Where another change is than the one that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Another {
    /// Steps before it differ from the first.
    Before,
    /// Steps from it on differ from the last.
    Behind,
}

/// What a round asked, and what came of it.
#[derive(Clone, Debug, PartialEq)]
pub struct BisectedRound {
    /// From 0.
    pub round: u32,
    /// Steps between the ends.
    pub asked: Vec<usize>,
    /// Steps and their values, in the order they were run.
    pub values: Vec<(usize, f64)>,
    /// It was thrown out for what others did to the machine.
    pub excluded: bool,
    /// Each of its trials has ended.
    pub whole: bool,
}

impl Bisected {
    /// Reads the search; `None`: the run is none.
    #[must_use]
    pub fn of(run: &Run) -> Option<Bisected> {
        let bisects = run.design.bisects.as_ref()?;
        let steps = run.cells.len().checked_sub(1).filter(|steps| *steps >= 1)?;
        let mut reading = Reading::begin(run, bisects, steps);
        let begun = run.trials.iter().map(|trial| trial.round + 1).max().unwrap_or(0);
        for round in 0..begun {
            reading.take(round, round + 1 == begun);
        }
        Some(reading.end())
    }

    /// The steps that were run in at least one round, the ends left out.
    #[must_use]
    pub fn asked(&self) -> BTreeSet<usize> {
        self.rounds.iter().flat_map(|round| &round.asked).copied().collect()
    }

    /// The steps that a round runs, the ends with them: those it was begun with, or those that come next.
    #[must_use]
    pub fn of_round(&self, round: u32) -> BTreeSet<usize> {
        let begun = self.rounds.iter().find(|known| known.round == round).map(|known| known.asked.clone());
        let asked = begun.unwrap_or_else(|| match &self.next {
            Next::Ask(asked) => asked.clone(),
            Next::Ends | Next::Stop(_) => Vec::new(),
        });
        asked.into_iter().chain([0, self.steps]).collect()
    }
}

/// An end that cannot be run any more, and why.
#[must_use]
pub fn lost_end(run: &Run) -> Option<(usize, String)> {
    let last = run.cells.len().checked_sub(1)?;
    // Its newest trial says so: a resumed search may run again what could not be run before.
    [0, last].into_iter().find_map(|end| {
        let trial = run.trials.iter().rev().find(|trial| trial.cell as usize == end)?;
        match &trial.status {
            Status::Skipped { reason } => Some((end, reason.clone())),
            Status::Failed { reason, .. } if trial.is_lasting() => Some((end, reason.clone())),
            _ => None,
        }
    })
}

/// A run that is being read.
struct Reading<'r> {
    run: &'r Run,
    metric: Option<u32>,
    steps: usize,
    search: Bisection,
    skipped: Vec<(usize, String)>,
    rounds: Vec<BisectedRound>,
    not_positive: usize,
    /// As in [`Bisected`].
    sign: f64,
}

impl<'r> Reading<'r> {
    fn begin(run: &'r Run, bisects: &Bisects, steps: usize) -> Reading<'r> {
        let stop = &run.design.stop;
        let rules = Rules {
            steps,
            alpha: stop.alpha,
            delta: stop.delta.ln_1p(),
            per_round: bisects.per_round as usize,
            ends_rounds: bisects.ends_rounds as usize,
            max_rounds: stop.max_rounds as usize,
        };
        let wanted = run.design.primary.as_deref().unwrap_or(RUNTIME);
        let named = |metric: &&Metric| match wanted.split_once(':') {
            Some((job, name)) => metric.job == job && metric.name == name,
            None => metric.job.is_empty() && metric.name == wanted,
        };
        let metric = match bisects.kernels {
            // What decides a job is a metric of one of its sections.
            true => deciding_metric(run),
            false => run.metrics.iter().zip(0..).find(|(metric, _)| named(metric)).map(|(_, index)| index),
        };
        let higher_is_better = metric
            .and_then(|index| run.metrics.get(index as usize))
            .is_some_and(|metric| metric.better == Better::Higher);
        Reading {
            run,
            metric,
            steps,
            search: Bisection::new(rules),
            skipped: Vec::new(),
            rounds: Vec::new(),
            not_positive: 0,
            sign: if higher_is_better == bisects.for_better { 1.0 } else { -1.0 },
        }
    }

    fn take(&mut self, round: u32, is_last: bool) {
        let trials: Vec<&Trial> = self.run.trials.iter().filter(|trial| trial.round == round).collect();
        let between = |step: &usize| (1..self.steps).contains(step);
        let run: BTreeSet<usize> = trials.iter().map(|trial| trial.cell as usize).filter(between).collect();
        let planned = match self.search.next() {
            Next::Ask(asked) => asked,
            Next::Ends | Next::Stop(_) => Vec::new(),
        };
        // What was asked then is what was run; only the latest round may have trials to come.
        let goes_on = is_last && run.iter().all(|step| planned.contains(step));
        let asked: Vec<usize> = if goes_on { planned } else { run.into_iter().collect() };
        let ended = |step: usize| {
            let is_lost = self.skipped.iter().any(|(known, _)| *known == step);
            is_lost || trials.iter().any(|trial| trial.cell as usize == step && trial.is_final())
        };
        let whole = asked.iter().copied().chain([0, self.steps]).all(ended);
        let excluded = trials.iter().any(|trial| trial.excluded.is_some());
        let values: Vec<(usize, f64)> = trials
            .iter()
            .filter(|trial| trial.status == Status::Done)
            .filter_map(|trial| Some((trial.cell as usize, trial.value(self.metric?)?)))
            .collect();
        if whole && excluded {
            self.search.lost();
        } else if whole {
            let of_round = self.round(&asked, &values);
            self.search.add(of_round);
        }
        for trial in trials.iter().filter(|trial| trial.is_final()) {
            let why = match &trial.status {
                Status::Done => continue,
                Status::Skipped { reason } | Status::Failed { reason, .. } => reason.clone(),
            };
            let step = trial.cell as usize;
            if !self.fails_for_good(step, round, trial) {
                continue;
            }
            if !self.skipped.iter().any(|(known, _)| *known == step) {
                self.skipped.push((step, why));
                self.search.skip(step);
            }
        }
        self.rounds.push(BisectedRound { round, asked, values, excluded, whole });
    }

    /// Whether a step that failed is not asked any more: what mostly runs lacks a value of this round alone.
    fn fails_for_good(&self, step: usize, round: u32, failed: &Trial) -> bool {
        let so_far =
            self.run.trials.iter().filter(|trial| trial.cell as usize == step && trial.round <= round);
        let (done, not_done): (Vec<&Trial>, Vec<&Trial>) =
            so_far.filter(|trial| trial.is_final()).partition(|trial| trial.status == Status::Done);
        let may_pass =
            matches!(failed.status, Status::Failed { kind: FailureKind::Passing | FailureKind::Outside, .. });
        !may_pass || not_done.len() > done.len()
    }

    /// The values of a round on the log scale, what is searched for being higher.
    fn round(&mut self, asked: &[usize], values: &[(usize, f64)]) -> Round {
        self.not_positive += values.iter().filter(|(_, value)| !is_positive(*value)).count();
        let logs = self.logs(values);
        let of = |step: usize| logs.iter().find(|(known, _)| *known == step).map(|(_, log)| *log);
        let place = |step: usize| logs.iter().position(|(known, _)| *known == step);
        Round {
            good: of(0),
            bad: of(self.steps),
            asked: asked.iter().filter_map(|step| Some((*step, of(*step)?))).collect(),
            bad_second: place(0) < place(self.steps),
        }
    }

    fn logs(&self, values: &[(usize, f64)]) -> Vec<(usize, f64)> {
        let usable = values.iter().filter(|(_, value)| is_positive(*value));
        usable.map(|(step, value)| (*step, self.sign * value.ln())).collect()
    }

    fn end(self) -> Bisected {
        let next = self.search.next();
        let sides = match next {
            Next::Stop(Outcome::Found(found) | Outcome::Among(found)) => (found.first, found.last),
            _ => (1, self.steps),
        };
        let differences = self.differences(sides);
        let others = match next {
            Next::Stop(Outcome::Found(found)) => self.others(&found),
            _ => Vec::new(),
        };
        let metric = self.metric.and_then(|index| self.run.metrics.get(index as usize)).cloned();
        let ratio = |log: f64| (self.sign * log).exp_m1();
        let effect = anytime::interval(&differences, self.run.design.stop.alpha).map(|logs| {
            let (one, other) = (ratio(logs.low), ratio(logs.high));
            Estimate { estimate: ratio(logs.estimate), low: one.min(other), high: one.max(other) }
        });
        Bisected {
            metric,
            next,
            ends: self.search.ends(),
            likeliest: self.search.likeliest(),
            range: self.search.range(),
            skipped: self.skipped.into_iter().filter(|(step, _)| (1..self.steps).contains(step)).collect(),
            lost_end: lost_end(self.run),
            others,
            rounds: self.rounds,
            effect,
            pairs: differences.len(),
            steps: self.steps,
            not_positive: self.not_positive,
            sign: self.sign,
        }
    }

    /// Whether the steps on a side of what was found are as the end there, which a search for one change takes them to be: both answers
    /// hold with probability 1 − α, and a difference below δ is none.
    fn others(&self, found: &Found) -> Vec<Another> {
        let stop = &self.run.design.stop;
        let counted = self.rounds.iter().filter(|round| round.whole && !round.excluded);
        let logs: Vec<Vec<(usize, f64)>> = counted.map(|round| self.logs(&round.values)).collect();
        let above = |end: usize, side: std::ops::Range<usize>| {
            let difference = |round: &Vec<(usize, f64)>| {
                let of_end = round.iter().find(|(step, _)| *step == end)?.1;
                let of_side: Vec<f64> =
                    round.iter().filter(|(step, _)| side.contains(step)).map(|(_, log)| *log).collect();
                (!of_side.is_empty()).then(|| mean(&of_side) - of_end)
            };
            let differences: Vec<f64> = logs.iter().filter_map(difference).collect();
            let matters = |found: &Estimate| found.estimate.abs() >= stop.delta.ln_1p();
            anytime::interval(&differences, stop.alpha / 2.0).filter(matters)
        };
        let before = above(0, 1..found.first).is_some_and(|good| good.low > 0.0);
        let behind = above(self.steps, found.last..self.steps).is_some_and(|bad| bad.high < 0.0);
        let sides = [(before, Another::Before), (behind, Another::Behind)];
        sides.into_iter().filter(|(is, _)| *is).map(|(_, side)| side).collect()
    }

    /// For each round that counts the mean of its steps from `last` on less that of its steps before `first`.
    fn differences(&self, (first, last): (usize, usize)) -> Vec<f64> {
        let counted = self.rounds.iter().filter(|round| round.whole && !round.excluded);
        let difference = |round: &BisectedRound| {
            let logs = self.logs(&round.values);
            let side = |is_in: &dyn Fn(usize) -> bool| {
                let of_side: Vec<f64> =
                    logs.iter().filter(|(step, _)| is_in(*step)).map(|(_, log)| *log).collect();
                (!of_side.is_empty()).then(|| mean(&of_side))
            };
            Some(side(&|step| step >= last)? - side(&|step| step < first)?)
        };
        counted.filter_map(difference).collect()
    }
}

fn is_positive(value: f64) -> bool {
    value.is_finite() && value > 0.0
}

#[cfg(test)]
mod tests;
