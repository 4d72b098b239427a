//! Why two arms differ: a list of causes for each compared pair, with the time of an operation that each accounts for.
//!
//! Enters: a run with its [`Analysis`], and where there is one a run that watched the same cells. Leaves: a [`Why`] for each pair of
//! the rows that decide. It reads records only and must not know how a cause is worded.
//!
//! The budget of an operation (`budget.rs`) is a sum, and its difference a sum of differences. A rule names what a part of that sum is
//! (copying, a lock at one place), or a count that differs together with it, or applies a rule of thumb: [`Grade`] says which. What the
//! rules leave of a part stays in the list as the rest of that part. So the causes that account for time, changes too small or unclear to
//! name, and what is unexplained add up to the whole difference.

mod cause;
mod flames;
mod latency;
#[cfg(test)]
mod made_pair;
mod moved;
mod names;
mod pair;
mod rules;
mod slowest;
mod source;
mod stages;
mod standing;
#[cfg(test)]
mod tests;

pub use cause::{
    Cause, Evidence, Grade, LatencyPart, OfRequests, RequestStage, SlowPart, Slowest, Standing, Unsure,
    Watching, What, Why,
};
pub use flames::{Flame, Stack, flames};
pub use stages::{RequestTimes, request_times};

use std::cell::OnceCell;

use pair::{Pair, WatchedRun};
use standing::{pairs, standing as standing_of};

use super::budget::{Budget, Operation};
use super::comparison::{Analysis, Comparison, RowKey};
use super::table::Table;
use crate::record::Run;

/// A part of the difference that no cause names is named itself from this share on.
const LARGE: f64 = 0.1;

/// Why each candidate differs from the baseline, one for each row that decides.
///
/// `watched` explains this run: it has the same cells with one factor more, of an unwatched level and one or two watched ones. Where there is none, what
/// the trials of the run itself were watched for is taken. Nothing is explained of results that were not measured in
/// rounds.
#[must_use]
pub fn why(run: &Run, analysis: &Analysis, watched: Option<&Run>) -> Vec<Why> {
    if !run.design.paired {
        return Vec::new();
    }
    // Most reports have a pair that differs, long runs without one need no table.
    let (own, other) = (OnceCell::new(), OnceCell::new());
    let table = || own.get_or_init(|| Table::new(run));
    let by = || watched.map(|watched| other.get_or_init(|| WatchedRun::new(watched)));
    let explained = |(comparisons, standing): (Vec<&Comparison>, Standing)| {
        let nothing = nothing(analysis, comparisons[0], standing);
        if standing != Standing::Differs {
            return nothing;
        }
        let decides = comparisons.iter().find(|c| standing_of(run, c) == Standing::Differs);
        match decides.and_then(|decides| Pair::new((run, table()), by(), analysis, decides)) {
            Some(pair) => explain(&pair, nothing),
            None => nothing,
        }
    };
    pairs(run, analysis).into_iter().map(explained).collect()
}

fn nothing(analysis: &Analysis, of: &Comparison, standing: Standing) -> Why {
    let is_its = |budget: &Budget| {
        budget.row == of.row && budget.baseline == of.baseline.arm && budget.candidate == of.candidate.arm
    };
    let budget = analysis.budgets.iter().position(is_its);
    let is_known = |at: &usize| analysis.budgets[*at].operation != Operation::Unknown;
    Why {
        row: RowKey { levels: of.row.levels.clone(), job: of.row.job.clone() },
        metric: of.metric.name.clone(),
        baseline: of.baseline.arm.clone(),
        candidate: of.candidate.arm.clone(),
        standing,
        is_better: of.is_better() == Some(true),
        judged: None,
        latency: Vec::new(),
        requests: OfRequests::default(),
        slowest: None,
        budget: budget.filter(is_known),
        of_mean: latency::is_of_the_tail(&of.metric.name),
        uncounted: budget.is_some_and(|at| !is_known(&at)),
        watching: None,
        causes: Vec::new(),
        unnamed_ns: 0.0,
        unsure: Vec::new(),
        smaller: Vec::new(),
        storage: None,
        perhaps_served: false,
        woken: None,
        unexplained_ns: None,
    }
}

fn explain(pair: &Pair<'_>, nothing: Why) -> Why {
    let mut causes: Vec<Cause> = Vec::new();
    for rule in rules::ALL {
        let found = (rule.find)(pair, &causes);
        causes.extend(found);
    }
    // How long something took, or how much of it there was, says nothing where one arm may have done more.
    if nothing.uncounted {
        let of_a_trial = |cause: &Cause| cause.evidence.iter().any(|seen| seen.metric.ends_with(" a trial"));
        causes.retain(|cause| cause.time.is_none() && !of_a_trial(cause));
    }
    let nothing = Why { of_mean: latency::is_of_the_tail(&pair.metric), ..nothing };
    let judged = latency::judged(pair);
    // The time between operations is the pace's: what is longer within it takes from the pauses, and is no part of a sum.
    let goes_with = nothing.of_mean || judged.is_some();
    if goes_with {
        causes.retain(|cause| cause.time.is_none_or(|time| pair.is_longer_in_the_worse(&time)));
    }
    let unsure = match &judged {
        Some(_) => Vec::new(),
        None => pair.budget.map_or_else(Vec::new, |budget| unsure(pair, budget, &causes)),
    };
    if goes_with {
        causes.iter_mut().for_each(Cause::only_goes_with);
    }
    causes.sort_by(|a, b| a.rank().cmp(&b.rank()).then(b.size_ns().total_cmp(&a.size_ns())));
    let named: f64 =
        causes.iter().filter(|cause| cause.grade == Grade::AccountsFor).filter_map(Cause::estimate_ns).sum();
    let sum = pair.budget.filter(|_| !goes_with).map(|budget| {
        let whole = budget.total.difference_ns.estimate;
        (whole - named - budget.unexplained_ns.estimate, budget.unexplained_ns)
    });
    Why {
        metric: pair.metric.clone(),
        is_better: pair.worse == 0,
        judged,
        latency: latency::latency(pair),
        requests: latency::requests(pair),
        slowest: slowest::slowest(pair),
        unsure,
        smaller: if nothing.uncounted { Vec::new() } else { rules::smaller(pair) },
        watching: pair.watching(),
        storage: rules::storage(pair),
        perhaps_served: pair.is_perhaps_served(),
        woken: pair.woken,
        causes,
        unnamed_ns: sum.map_or(0.0, |(unnamed, _)| unnamed),
        unexplained_ns: sum.map(|(_, unexplained)| unexplained),
        ..nothing
    }
}

/// The large parts of the difference that no cause names, or what causes leave of them.
fn unsure(pair: &Pair<'_>, budget: &Budget, causes: &[Cause]) -> Vec<Unsure> {
    let least = LARGE * budget.total.difference_ns.estimate.abs();
    let of = |(part, line)| {
        let (left, rest) = rules::rest(part, line, causes);
        let difference_ns = left.difference_ns;
        (difference_ns.estimate.abs() > least).then_some(Unsure { part, rest, difference_ns })
    };
    pair.parts().filter_map(of).collect()
}
