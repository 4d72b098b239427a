//! The values of a pair of cells, for each operation.
//!
//! Enters: the table of a run, and the cells of baseline and candidate. Leaves: differences of what was counted, with intervals over the
//! rounds in which both arms have it. What a named job does not count is looked for in the whole trial, and divided by what that did.

use std::collections::BTreeMap;

use super::super::budget::{BudgetLine, OPERATIONS, Operation, RUNTIME};
use super::super::comparison::Interval;
use super::super::rounds_difference::{Both, difference};
use super::super::table::{Point, Table};
use super::cause::Evidence;
use crate::record::Unit;
use crate::stats::descriptive::median;
use crate::stats::sequential::FEWEST_ROUNDS;

/// The cells of baseline and candidate in one run, or two of each that count different things.
#[derive(Clone, Copy)]
pub(super) struct Source<'a> {
    pub(super) table: &'a Table<'a>,
    pub(super) cells: [u32; 2],
    /// Cells that count what those do not.
    pub(super) beside: Option<[u32; 2]>,
    pub(super) job: &'a str,
    /// What counts and times are for, as in the budget of the pair.
    pub(super) operation: Operation,
    /// The rate of which operations are made, as there.
    pub(super) rate: Option<&'a str>,
    /// Trials have a ramp, which the counters of the device include, and what the job did does not.
    pub(super) ramp: bool,
}

/// Values of one cell by round.
type ByRound = BTreeMap<u32, Point>;

impl Source<'_> {
    /// A count for each operation.
    pub(super) fn each(&self, name: &str, unit: Unit) -> Option<Evidence> {
        self.each_of(&[name], name, unit)
    }

    /// The sum of some counts for each operation.
    pub(super) fn each_of(&self, names: &[&str], called: &str, unit: Unit) -> Option<Evidence> {
        self.divided(names, None, &format!("{called} {}", self.one(names)), unit)
    }

    /// What one of that is called which these counts or times are for.
    pub(super) fn one(&self, names: &[&str]) -> &'static str {
        match self.operation {
            Operation::Counted if self.is_of_all_jobs(names) => "an operation of all jobs",
            Operation::Counted => "an operation",
            Operation::Trial | Operation::Unknown => "a trial",
        }
    }

    /// Whether one job is asked for, and these are known of the whole trial only.
    pub(super) fn is_of_all_jobs(&self, names: &[&str]) -> bool {
        let counting = self.counting(names);
        let first = |arm: usize| names.iter().find_map(|name| counting.column(arm, name));
        !self.job.is_empty() && (0..2).find_map(first).is_some_and(|(whole, _)| whole)
    }

    /// Whether the job itself, not others beside it, counts this in any trial, and more than nothing of it.
    pub(super) fn has(&self, name: &str) -> bool {
        let own = self.table.metrics().iter().position(|m| m.job == self.job && m.name == name);
        let some = |at: usize| {
            let of = |cell: u32| self.table.column(cell, at as u32).iter().any(|point| point.value > 0.0);
            self.all_cells().any(of)
        };
        own.is_some_and(some)
    }

    /// A time for each operation.
    pub(super) fn time(&self, name: &str) -> Option<BudgetLine> {
        let found = self.divided(&[name], None, name, Unit::Seconds)?;
        let ns = |seconds: f64| seconds * 1e9;
        let of = found.difference?;
        let difference_ns = Interval { estimate: ns(of.estimate), low: ns(of.low), high: ns(of.high) };
        Some(BudgetLine { baseline_ns: ns(found.baseline), candidate_ns: ns(found.candidate), difference_ns })
    }

    /// The sum of some metrics by that of others.
    pub(super) fn ratio(&self, of: &[&str], by: &[&str], called: &str, unit: Unit) -> Option<Evidence> {
        self.divided(of, Some(by), called, unit)
    }

    /// A metric as it is.
    pub(super) fn plain(&self, name: &str, unit: Unit) -> Option<Evidence> {
        self.divided(&[name], Some(&[]), name, unit)
    }

    /// The names of metrics below a beginning that ends with a point, without it.
    pub(super) fn below(&self, beginning: &str) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for (metric, at) in self.table.metrics().iter().zip(0..) {
            let Some(rest) = metric.name.strip_prefix(beginning) else { continue };
            let has = |cell: u32| !self.table.column(cell, at).is_empty();
            let mine = metric.job == self.job || metric.job.is_empty();
            if mine && self.all_cells().any(has) && !names.iter().any(|known| known == rest) {
                names.push(rest.to_owned());
            }
        }
        names
    }

    /// Rounds in which both arms have one of these metrics.
    pub(super) fn rounds_with(&self, names: &[&str]) -> usize {
        let rounds = |name: &&str| {
            let counting = self.counting(&[name]);
            let [base, cand] = [0, 1].map(|arm| counting.column(arm, name));
            base.zip(cand).map_or(0, |((_, base), (_, cand))| {
                base.keys().filter(|round| cand.contains_key(round)).count()
            })
        };
        names.iter().map(rounds).max().unwrap_or(0)
    }

    /// `by`: `None` for operations, nothing in it for 1.
    fn divided(&self, of: &[&str], by: Option<&[&str]>, called: &str, unit: Unit) -> Option<Evidence> {
        if self.ramp && of.iter().any(|name| is_of_device(name)) && !is_plain(of, by) {
            return None;
        }
        let counting = self.counting(of);
        let arm = |arm: usize| {
            let (whole, values) = counting.sum(arm, of)?;
            let amounts = match by {
                None if self.operation == Operation::Counted => Some(counting.operations(arm, whole)?),
                None | Some([]) => None,
                Some(by) if whole => Some(counting.of_all_jobs(arm, by)?),
                Some(by) => Some(counting.sum(arm, by)?.1),
            };
            let each = |(round, point): (u32, Point)| match &amounts {
                None => Some((round, point)),
                Some(amounts) => {
                    let amount = amounts.get(&round)?.value;
                    (amount > 0.0).then_some((round, Point { value: point.value / amount, ..point }))
                }
            };
            Some(values.into_iter().filter_map(each).collect::<ByRound>())
        };
        let (base, cand) = (arm(0)?, arm(1)?);
        let both = |(round, base): (&u32, &Point)| {
            let cand = cand.get(round)?;
            Some(Both { baseline: base.value, candidate: cand.value, second: cand.position > base.position })
        };
        let rounds: Vec<Both> = base.iter().filter_map(both).collect();
        if rounds.len() < FEWEST_ROUNDS {
            return None;
        }
        let middle = |value: fn(&Both) -> f64| median(&rounds.iter().map(value).collect::<Vec<_>>());
        let (baseline, candidate) = (middle(|both| both.baseline), middle(|both| both.candidate));
        let size = baseline.abs().max(candidate.abs());
        let found = difference(&rounds, if size > 0.0 { size } else { 1.0 })?;
        Some(Evidence { metric: called.to_owned(), unit, baseline, candidate, difference: Some(found) })
    }

    fn all_cells(&self) -> impl Iterator<Item = u32> {
        self.cells.into_iter().chain(self.beside.into_iter().flatten())
    }

    /// The cells that count these metrics, so that a value and what it is divided by are of one trial.
    fn counting(&self, names: &[&str]) -> Self {
        let beside = self.beside.map(|cells| Source { cells, beside: None, ..*self });
        let counts = |source: &Self| {
            names.iter().any(|name| [0, 1].into_iter().any(|arm| source.column(arm, name).is_some()))
        };
        beside.filter(|beside| !counts(self) && counts(beside)).unwrap_or(*self)
    }

    /// The sum of those of these metrics that the cell has, and whether they are the whole trial's.
    fn sum(&self, arm: usize, names: &[&str]) -> Option<(bool, ByRound)> {
        let columns: Vec<(bool, ByRound)> = names.iter().filter_map(|name| self.column(arm, name)).collect();
        let whole = columns.first()?.0;
        Some((whole, add(columns.into_iter().map(|(_, column)| column))))
    }

    /// The sum of these metrics over all that the trial did: where it has no sum of its own, over its jobs.
    fn of_all_jobs(&self, arm: usize, names: &[&str]) -> Option<ByRound> {
        let of = |job: Option<&str>| {
            let metrics = self.table.metrics().iter().zip(0_u32..);
            let named = metrics.filter(|(metric, _)| {
                names.contains(&metric.name.as_str()) && job.is_none_or(|job| job == metric.job)
            });
            let columns = named.map(|(_, at)| self.table.column(self.cells[arm], at));
            let sum =
                add(columns
                    .map(|column| column.iter().map(|point| (point.round, *point)).collect::<ByRound>()));
            (!sum.is_empty()).then_some(sum)
        };
        of(Some("")).or_else(|| of(None))
    }

    /// A column of the job, else of the whole trial.
    fn column(&self, arm: usize, name: &str) -> Option<(bool, ByRound)> {
        let of = |job: &str| {
            let at = self.table.metrics().iter().position(|m| m.job == job && m.name == name)?;
            let column = self.table.column(self.cells[arm], at as u32);
            let by_round: ByRound = column.iter().map(|point| (point.round, *point)).collect();
            (!by_round.is_empty()).then_some((job.is_empty(), by_round))
        };
        of(self.job).or_else(|| of(""))
    }

    /// What was done, by round; the whole trial did what its jobs did, where it has no sum of its own.
    pub(super) fn operations(&self, arm: usize, whole: bool) -> Option<ByRound> {
        if let Some(rate) = self.rate {
            let [(_, rates), (_, took)] = [self.column(arm, rate)?, self.column(arm, RUNTIME)?];
            let of = |(round, rate): (u32, Point)| {
                Some((round, Point { value: rate.value * took.get(&round)?.value, ..rate }))
            };
            return Some(rates.into_iter().filter_map(of).collect());
        }
        let metrics = || self.table.metrics().iter().zip(0_u32..);
        let own = if whole { "" } else { self.job };
        let of = |names: &&[&str], job: Option<&str>| {
            let fits =
                |job_of: &str, name: &str| names.contains(&name) && job.is_none_or(|job| job == job_of);
            let columns = metrics()
                .filter(|(metric, _)| fits(&metric.job, &metric.name))
                .map(|(_, at)| self.table.column(self.cells[arm], at))
                .map(|column| column.iter().map(|point| (point.round, *point)).collect::<ByRound>());
            let sum = add(columns);
            (!sum.is_empty()).then_some(sum)
        };
        let counted = OPERATIONS.iter().find_map(|names| of(names, Some(own)));
        counted.or_else(|| OPERATIONS.iter().find_map(|names| of(names, None)).filter(|_| whole))
    }
}

/// Whether the device's counters, the machine's or the block layer's events count it.
fn is_of_device(metric: &str) -> bool {
    ["dev.", "machine.", "blocks."].iter().any(|beginning| metric.starts_with(beginning))
}

/// Whether such metrics are not divided by what the job did.
fn is_plain(of: &[&str], by: Option<&[&str]>) -> bool {
    let is_form = |name: &&str| name.contains("_per_op") || name.contains("_per_sync");
    !of.iter().any(is_form) && by.is_some_and(|by| by.iter().all(|name| is_of_device(name)))
}

/// The sum of columns, by round.
fn add(columns: impl Iterator<Item = ByRound>) -> ByRound {
    let mut sums = ByRound::new();
    for (round, point) in columns.flatten() {
        sums.entry(round).and_modify(|sum| sum.value += point.value).or_insert(point);
    }
    sums
}
