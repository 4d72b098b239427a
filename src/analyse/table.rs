//! Trials → columns: the values of one metric in one cell, by round.
//!
//! Enters: a [`Run`]. Leaves: a [`Table`]. Of several attempts at one cell of one round the last counts; trials
//! that failed or whose round was thrown out give no values. Behind the run's own metrics stand those made of them.

use std::cell::OnceCell;
use std::collections::{BTreeSet, HashMap};

use super::order::Order;
use super::per_operation::forms;
use super::watched_places;
use crate::record::{Metric, Run, Status, Trial};

/// The rounds of a cell that the run does not have.
const NO_ROUNDS: &BTreeSet<u32> = &BTreeSet::new();

/// One value with its place in the run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Point {
    pub round: u32,
    pub position: u32,
    pub started_unix_ns: u64,
    pub value: f64,
}

/// All values of a run, by cell and metric.
pub(super) struct Table<'a> {
    /// The run's metrics, then those made of them.
    metrics: Vec<Metric>,
    /// `columns[cell * metrics + metric]`, each by ascending round.
    columns: Vec<Vec<Point>>,
    /// The attempts that count for their cell and round, in trial order, failed ones included.
    latest: Vec<&'a Trial>,
    /// Made when it is asked for: most runs never do.
    order: OnceCell<Order>,
    /// By cell: rounds in which an attempt failed by itself.
    failed: Vec<BTreeSet<u32>>,
    /// By cell: rounds in which it worked or failed by itself.
    tried: Vec<BTreeSet<u32>>,
}

impl<'a> Table<'a> {
    pub(super) fn new(run: &'a Run) -> Table<'a> {
        Table::with(run, &[])
    }

    /// Also with the forms of metrics that `wishes` name.
    pub(super) fn with(run: &'a Run, wishes: &[&str]) -> Table<'a> {
        let latest = latest_attempts(run);
        let forms = forms(run, wishes);
        let places = watched_places::of(run);
        let all: Vec<Metric> =
            run.metrics.iter().chain(forms.iter().map(|form| &form.metric)).cloned().collect();
        let metrics = all.len();
        let mut columns: Vec<Vec<Point>> = vec![Vec::new(); run.cells.len() * metrics];
        for trial in latest.iter().filter(|trial| trial.counts()) {
            let mut own: HashMap<u32, f64> = HashMap::new();
            if !(forms.is_empty() && places.is_empty()) {
                own.extend(trial.values.iter().copied());
            }
            let unnamed: Vec<(u32, f64)> = places
                .iter()
                .filter(|place| place.is_unnamed(&own))
                .map(|place| (place.metric, 0.0))
                .collect();
            own.extend(unnamed.iter().copied());
            let made = (run.metrics.len() as u32..).zip(&forms);
            let made = made.filter_map(|(metric, form)| Some((metric, form.value(&own)?)));
            for (metric, value) in trial.values.iter().copied().chain(unnamed).chain(made) {
                let place = trial.cell as usize * metrics + metric as usize;
                if let Some(column) = columns.get_mut(place).filter(|_| value.is_finite()) {
                    column.push(Point {
                        round: trial.round,
                        position: trial.position,
                        started_unix_ns: trial.started_unix_ns,
                        value,
                    });
                }
            }
        }
        for column in &mut columns {
            // A metric may be given twice in one trial; the last value counts.
            column.sort_by_key(|point| point.round);
            column.dedup_by(|later, earlier| {
                let same = later.round == earlier.round;
                if same {
                    *earlier = *later;
                }
                same
            });
        }
        let mut failed = vec![BTreeSet::new(); run.cells.len()];
        let mut tried = failed.clone();
        for trial in run.trials.iter().filter(|trial| trial.excluded.is_none()) {
            let Some(cell) = failed.get_mut(trial.cell as usize) else { continue };
            let failed = trial.failed_itself() && !run.was_mended(trial);
            if failed {
                cell.insert(trial.round);
            }
            if failed || trial.status == Status::Done {
                tried[trial.cell as usize].insert(trial.round);
            }
        }
        Table { metrics: all, columns, latest, failed, tried, order: OnceCell::new() }
    }

    /// The run's metrics, then those made of them.
    pub(super) fn metrics(&self) -> &[Metric] {
        &self.metrics
    }

    /// The values of one metric in one cell, by round.
    pub(super) fn column(&self, cell: u32, metric: u32) -> &[Point] {
        self.columns.get(cell as usize * self.metrics.len() + metric as usize).map_or(&[], Vec::as_slice)
    }

    /// The time that a rate was divided by, where the job tells it (`write.runtime` of `write.bw`), or that a run time is itself.
    pub(super) fn clock(&self, metric: u32) -> Option<u32> {
        let Metric { job, name, .. } = &self.metrics[metric as usize];
        let (head, tail) = name.rsplit_once('.').map_or(("", name.as_str()), |(head, tail)| (head, tail));
        if !["bw", "iops", "runtime"].contains(&tail) {
            return None;
        }
        let own = if head.is_empty() { "runtime".to_owned() } else { format!("{head}.runtime") };
        let of = |clock: &str| self.metrics.iter().position(|m| m.job == *job && m.name == clock);
        of(&own).or_else(|| of("runtime")).map(|at| at as u32)
    }

    /// Rounds in which an attempt at the cell failed by itself, whatever came of the next one, unless the next one belongs to a resumed
    /// run that found the cause gone. Rounds that were thrown out are not
    /// among them.
    pub(super) fn failed_rounds(&self, cell: u32) -> &BTreeSet<u32> {
        self.failed.get(cell as usize).unwrap_or(NO_ROUNDS)
    }

    /// Rounds in which the cell worked or failed by itself; those that were thrown out are not among them.
    pub(super) fn tried_rounds(&self, cell: u32) -> &BTreeSet<u32> {
        self.tried.get(cell as usize).unwrap_or(NO_ROUNDS)
    }

    /// Which cell ran before each trial.
    pub(super) fn order(&self) -> &Order {
        self.order.get_or_init(|| Order::of(&self.latest))
    }

    /// The attempts that count, in trial order, failed ones included.
    pub(super) fn latest(&self) -> &[&'a Trial] {
        &self.latest
    }
}

/// Pairs of two columns by round: (baseline, candidate).
pub(super) fn pairs(baseline: &[Point], candidate: &[Point]) -> Vec<(Point, Point)> {
    let mut others = candidate.iter().peekable();
    let mut found = Vec::with_capacity(baseline.len());
    for point in baseline {
        while others.next_if(|other| other.round < point.round).is_some() {}
        if let Some(other) = others.next_if(|other| other.round == point.round) {
            found.push((*point, *other));
        }
    }
    found
}

fn latest_attempts(run: &Run) -> Vec<&Trial> {
    let mut best: HashMap<(u32, u32), usize> = HashMap::with_capacity(run.trials.len());
    for (at, trial) in run.trials.iter().enumerate() {
        best.entry((trial.cell, trial.round))
            .and_modify(|known| {
                if run.trials[*known].attempt <= trial.attempt {
                    *known = at;
                }
            })
            .or_insert(at);
    }
    let mut order: Vec<usize> = best.into_values().collect();
    order.sort_unstable();
    order.into_iter().map(|at| &run.trials[at]).collect()
}

#[cfg(test)]
mod tests {
    use super::super::made_up::{Made, run_of};
    use super::*;
    use crate::record::FailureKind;

    fn failed() -> Status {
        Status::failed(FailureKind::Passing, "no space")
    }

    #[test]
    fn the_last_attempt_counts_and_thrown_out_rounds_do_not() {
        let mut run = run_of(&Made::default(), 5);
        // Round 1, cell 0 failed first and was retried; round 2, cell 1 failed for good; round 3 was thrown out.
        let mut first = run.trials[2].clone();
        (first.cell, first.status, first.values[0].1) = (0, failed(), 1.0);
        let at = run.trials.iter().position(|t| t.round == 1 && t.cell == 0).unwrap();
        run.trials[at].attempt = 1;
        run.trials.insert(at, Trial { round: 1, ..first });
        for trial in &mut run.trials {
            if trial.round == 2 && trial.cell == 1 {
                trial.status = failed();
            }
            if trial.round == 3 {
                trial.excluded = Some("steal above 5 %".to_owned());
            }
        }
        let table = Table::new(&run);
        let rounds = |cell| table.column(cell, 0).iter().map(|point| point.round).collect::<Vec<_>>();
        assert_eq!((rounds(0), rounds(1)), (vec![0, 1, 2, 4], vec![0, 1, 4]));
        assert!(table.column(0, 0)[1].value > 1.0, "the retry's value, not the failed attempt's");
        let paired = pairs(table.column(0, 0), table.column(1, 0));
        assert_eq!(paired.iter().map(|(b, _)| b.round).collect::<Vec<_>>(), [0, 1, 4]);
        assert_eq!(table.latest().len(), 10);
    }
}
