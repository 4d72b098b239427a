//! Where the time of an operation went, and which parts of it differ between two arms.
//!
//! Enters: what the workers of each trial were counted for. Leaves: a [`Budget`] a row and candidate: for each part its time an
//! operation in both arms, and the difference with its interval over rounds. It must not know how it is worded.
//!
//! A worker is a thread or process that does the load. The time of all of them is a sum: user + kernel + waiting to run + waiting for
//! storage + asleep otherwise, where the last is what the others leave of it. So the difference of two arms is a sum of differences, in
//! each round exactly; their estimates, which do not follow single rounds that are far off, add up to the estimate of the whole but for what
//! is called unexplained. Time that the kernel takes out of a running thread's (stolen, with `CONFIG_PARAVIRT_TIME_ACCOUNTING`; that of
//! interrupts, with `CONFIG_IRQ_TIME_ACCOUNTING`) no part has: it is in the last. Each interval holds 95 % by itself. The counters that cost nothing are those of getrusage(2), `/proc/PID/schedstat` and
//! delay accounting (Documentation/accounting/delay-accounting.rst).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::comparison::{Interval, RowKey};
use super::layout::{Layout, Row};
use super::rounds_difference::{Both, difference};
use super::table::{Point, Table};
use crate::record::{Metric, Run};
use crate::stats::descriptive::median;
use crate::stats::sequential::FEWEST_ROUNDS;
use crate::units::{Better, Unit};

/// More than so many operations of a worker in flight are no noise of the clocks.
const ONE_AT_A_TIME: f64 = 1.05;
/// User and kernel time are told apart by ticks of up to 10 ms: of less processor time than ten of them a trial only the sum is known.
const TOLD_APART_S: f64 = 0.1;
/// Operations whose sizes differ by more than this factor are others.
const OTHER_SIZE: f64 = 1.2;
/// How long a trial took.
pub(super) const RUNTIME: &str = "runtime";
/// What is counted as operations, the first that is there: as in `observe/per_operation.rs`.
pub(super) const OPERATIONS: [&[&str]; 3] =
    [&["operations"], &["files"], &["read.total_ios", "write.total_ios", "trim.total_ios"]];
const DIRECTIONS: [&str; 3] = ["read", "write", "trim"];

/// Whether a metric is there for the budget, and no row of a report unless it is asked for.
pub(super) fn is_kept_for(metric: &str) -> bool {
    metric.starts_with("workers.")
}

/// One part of the time of all workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BudgetPart {
    /// On a processor, outside the kernel.
    User,
    /// On a processor, in the kernel.
    Kernel,
    /// Both together, where trials have too little of them to tell one from the other.
    Processor,
    /// Ready to run, without a processor.
    WaitingToRun,
    /// Waiting for block I/O.
    WaitingForStorage,
    /// Everything else.
    Asleep,
}

/// What the rest of the time holds besides sleep of other causes, because nobody counted it apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asleep {
    /// Waiting for a processor.
    pub with_waiting_to_run: bool,
    /// Waiting for storage.
    pub with_waiting_for_storage: bool,
    /// Pauses that the job asks for, by a rate or `thinktime`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub with_pauses: bool,
}

/// What is called an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// What the engine counts as one.
    Counted,
    /// The whole trial: nobody counts operations.
    Trial,
    /// The whole trial, of which nobody knows how much it did: trials take as long in both arms, as where a program runs for a time that it
    /// is told, and no rate decides.
    Unknown,
}

/// One line: a time an operation in both arms.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct BudgetLine {
    /// Median over the rounds, in ns.
    pub baseline_ns: f64,
    /// Median over the rounds, in ns.
    pub candidate_ns: f64,
    /// Candidate − baseline in ns.
    pub difference_ns: Interval,
}

impl BudgetLine {
    /// Both together. The interval holds wherever both do: ends are added up as if both were off at once.
    pub(super) fn plus(&self, other: &BudgetLine) -> BudgetLine {
        let (a, b) = (self.difference_ns, other.difference_ns);
        let difference_ns =
            Interval { estimate: a.estimate + b.estimate, low: a.low + b.low, high: a.high + b.high };
        BudgetLine {
            baseline_ns: self.baseline_ns + other.baseline_ns,
            candidate_ns: self.candidate_ns + other.candidate_ns,
            difference_ns,
        }
    }

    /// What a piece leaves of it, likewise.
    pub(super) fn minus(&self, piece: &BudgetLine) -> BudgetLine {
        let of = piece.difference_ns;
        self.plus(&BudgetLine {
            baseline_ns: -piece.baseline_ns,
            candidate_ns: -piece.candidate_ns,
            difference_ns: Interval { estimate: -of.estimate, low: -of.high, high: -of.low },
        })
    }
}

/// Operations that a worker has under way at once. Then the latency of one is more than its share of the worker's time, and the
/// processor time stands beside it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct InFlight {
    /// How many, with the baseline.
    pub baseline: f64,
    /// How many, with the candidate.
    pub candidate: f64,
    /// The mean latency of an operation.
    pub latency: BudgetLine,
}

/// Where the time of an operation went.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Budget {
    /// The row.
    pub row: RowKey,
    /// The baseline's label.
    pub baseline: String,
    /// The candidate's label.
    pub candidate: String,
    /// What is called an operation.
    pub operation: Operation,
    /// The rate of which operations are made, by the run time of each trial: trials take as long in both arms, so that it tells what they did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<String>,
    /// Rounds with all counts of both arms.
    pub rounds: usize,
    /// The time of all workers.
    pub total: BudgetLine,
    /// Its parts, the largest difference first.
    pub parts: Vec<(BudgetPart, BudgetLine)>,
    /// What the sum of the parts' differences leaves of that of the total, in ns.
    pub unexplained_ns: Interval,
    /// What the last part holds.
    pub asleep: Asleep,
    /// A part whose difference is smaller, in ns, is too small to matter: δ of the baseline's total.
    pub least_ns: f64,
    /// Where a worker has more than one operation under way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_flight: Option<InFlight>,
    /// Bytes of an operation with baseline and candidate, medians over rounds; `None`: not every round knows them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<[f64; 2]>,
}

impl Budget {
    /// How many times as large the candidate's operations are, where the arms differ in that by more than a fifth: then the time of one does
    /// not say which arm is better.
    #[must_use]
    pub fn times_as_large(&self) -> Option<f64> {
        let [baseline, candidate] = self.bytes?;
        let times = candidate / baseline;
        (times.is_finite() && times > 0.0 && times.ln().abs() > OTHER_SIZE.ln()).then_some(times)
    }
}

/// The budgets of a run in rounds: one for each deciding row and candidate whose workers were counted in enough rounds.
pub(super) fn budgets(run: &Run, layout: &Layout, table: &Table, delta: f64) -> Vec<Budget> {
    if !run.design.paired {
        return Vec::new();
    }
    let of_row = |row| layout.candidates(row).into_iter().map(move |arm| (row, arm));
    let deciding = layout.rows.iter().filter(|row| !row.primaries.is_empty());
    deciding
        .flat_map(of_row)
        .filter_map(|(row, arm)| {
            let job = &row.key.job;
            let pauses = run.design.paced.iter().any(|section| job.is_empty() || section == job);
            budget((layout, table), row, arm, pauses, delta)
        })
        .collect()
}

fn budget(
    (layout, table): (&Layout, &Table),
    row: &Row,
    arm: usize,
    with_pauses: bool,
    delta: f64,
) -> Option<Budget> {
    let cells = [row.cells[0]?, row.cells[arm]?];
    let done = cells.map(|cell| Counts { table, row, cell, done: Done::Trial });
    let done = Done::of(&done, delta);
    let counts = cells.map(|cell| Counts { table, row, cell, done }.by_round());
    let both: Vec<(&Spent, &Spent)> =
        counts[0].iter().filter_map(|(round, base)| Some((base, counts[1].get(round)?))).collect();
    if both.len() < FEWEST_ROUNDS {
        return None;
    }
    let unit_ns = median(&both.iter().map(|(base, _)| base.wall_ns).collect::<Vec<_>>());
    let rounds = Rounds { both, unit_ns };
    let is_counted =
        |of: fn(&Spent) -> Option<f64>| rounds.both.iter().all(|(a, b)| of(a).and(of(b)).is_some());
    let told_apart = rounds.least_cpu_s() >= TOLD_APART_S;
    let to_run = is_counted(|spent| spent.run_wait_ns);
    let for_storage = is_counted(|spent| spent.storage_ns);
    let part = |part: BudgetPart| move |spent: &Spent| spent.part(part, to_run, for_storage);
    let all = [
        (BudgetPart::User, told_apart),
        (BudgetPart::Kernel, told_apart),
        (BudgetPart::Processor, !told_apart),
        (BudgetPart::WaitingToRun, to_run),
        (BudgetPart::WaitingForStorage, for_storage),
        (BudgetPart::Asleep, true),
    ];
    let known = all.into_iter().filter(|(_, known)| *known).map(|(part, _)| part);
    let parts: Option<Vec<(BudgetPart, BudgetLine)>> =
        known.map(|kind| Some((kind, rounds.line(part(kind))?))).collect();
    let mut parts = parts?;
    let total = rounds.line(|spent| spent.wall_ns)?;
    let named: f64 = parts.iter().map(|(_, line)| line.difference_ns.estimate).sum();
    // More processor time than the workers lived is charged to helpers, or lost between two clocks: nobody's part.
    let beyond = rounds.line(|spent| spent.beyond(to_run, for_storage))?.difference_ns;
    let left = total.difference_ns.estimate - named;
    let moved = left - beyond.estimate;
    let unexplained_ns = Interval { estimate: left, low: beyond.low + moved, high: beyond.high + moved };
    parts.sort_by(|(_, a), (_, b)| b.difference_ns.estimate.abs().total_cmp(&a.difference_ns.estimate.abs()));
    let arms = &layout.arms;
    Some(Budget {
        row: RowKey { levels: row.key.levels.clone(), job: row.key.job.clone() },
        baseline: arms[0].clone(),
        candidate: arms[arm].clone(),
        operation: done.operation(),
        rate: done.rate().map(str::to_owned),
        rounds: rounds.both.len(),
        parts,
        unexplained_ns,
        asleep: Asleep { with_waiting_to_run: !to_run, with_waiting_for_storage: !for_storage, with_pauses },
        least_ns: delta * total.baseline_ns,
        in_flight: rounds.in_flight(),
        bytes: rounds.bytes(),
        total,
    })
}

/// What an operation took in one trial, in ns.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Spent {
    position: u32,
    wall_ns: f64,
    user_ns: f64,
    kernel_ns: f64,
    /// Processor time of the whole trial.
    cpu_s: f64,
    run_wait_ns: Option<f64>,
    storage_ns: Option<f64>,
    /// Mean from its submission to its completion.
    latency_ns: Option<f64>,
    /// How much it read or wrote.
    bytes: Option<f64>,
}

impl Spent {
    fn counted(&self, to_run: bool, for_storage: bool) -> f64 {
        let waits = self.run_wait_ns.filter(|_| to_run).unwrap_or(0.0)
            + self.storage_ns.filter(|_| for_storage).unwrap_or(0.0);
        self.user_ns + self.kernel_ns + waits
    }

    fn part(&self, part: BudgetPart, to_run: bool, for_storage: bool) -> f64 {
        match part {
            BudgetPart::User => self.user_ns,
            BudgetPart::Kernel => self.kernel_ns,
            BudgetPart::Processor => self.user_ns + self.kernel_ns,
            BudgetPart::WaitingToRun => self.run_wait_ns.unwrap_or(0.0),
            BudgetPart::WaitingForStorage => self.storage_ns.unwrap_or(0.0),
            BudgetPart::Asleep => (self.wall_ns - self.counted(to_run, for_storage)).max(0.0),
        }
    }

    /// What the counted parts are more than the whole, as a negative time.
    fn beyond(&self, to_run: bool, for_storage: bool) -> f64 {
        (self.wall_ns - self.counted(to_run, for_storage)).min(0.0)
    }
}

/// What tells how much a trial did.
#[derive(Clone, Copy)]
enum Done<'a> {
    /// Somebody counts it.
    Counted,
    /// The rate of this name.
    Rate(&'a str),
    /// Trials are taken to do the same.
    Trial,
    /// Nothing does.
    Unknown,
}

impl<'a> Done<'a> {
    /// Where nobody counts and trials take as long in both arms as no difference of δ, they may have run for a time that was asked for.
    fn of(arms: &[Counts<'a>; 2], delta: f64) -> Done<'a> {
        if arms.iter().any(|counts| counts.operations().is_some()) {
            return Done::Counted;
        }
        let took = arms.each_ref().map(|counts| {
            let column = counts.values(RUNTIME).or_else(|| counts.values("workers.wall")).unwrap_or_default();
            median(&column.values().map(|point| point.value).collect::<Vec<_>>())
        });
        let as_long = (took[1] / took[0]).ln().abs() <= delta;
        if !as_long {
            return Done::Trial;
        }
        let [counts @ Counts { table, row, .. }, _] = arms;
        let decides = row.primary().and_then(|metric| table.metrics().get(metric as usize));
        let rate = decides.filter(|metric| is_rate(metric) && counts.values(RUNTIME).is_some());
        rate.map_or(Done::Unknown, |metric| Done::Rate(&metric.name))
    }

    fn operation(self) -> Operation {
        match self {
            Done::Counted | Done::Rate(_) => Operation::Counted,
            Done::Trial => Operation::Trial,
            Done::Unknown => Operation::Unknown,
        }
    }

    fn rate(self) -> Option<&'a str> {
        if let Done::Rate(name) = self { Some(name) } else { None }
    }
}

/// Whether a metric is a number of operations a second: by its unit, or where it has none by the last word of its name.
fn is_rate(metric: &Metric) -> bool {
    let last = metric.name.rsplit(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    let is_named_so = ["tps", "qps", "rps", "iops", "ops"].contains(&last.to_lowercase().as_str());
    metric.better == Better::Higher
        && (metric.unit == Unit::PerSecond || metric.unit == Unit::Count && is_named_so)
}

/// The counts of a cell's trials.
struct Counts<'a> {
    table: &'a Table<'a>,
    row: &'a Row,
    cell: u32,
    done: Done<'a>,
}

impl Counts<'_> {
    /// What an operation took, by round; rounds that lack a count that no budget can do without are left out.
    fn by_round(&self) -> BTreeMap<u32, Spent> {
        let seconds = |name: &str| self.values(name).unwrap_or_default();
        let (wall, user, kernel) = (seconds("workers.wall"), seconds("usr_cpu"), seconds("sys_cpu"));
        let (run_wait, storage) = (seconds("workers.run_wait"), seconds("workers.storage_wait"));
        let operations = match self.done {
            Done::Counted => Some(self.operations().unwrap_or_default()),
            Done::Rate(rate) => Some(self.by_rate(rate)),
            Done::Trial | Done::Unknown => None,
        };
        let latencies = self.latencies();
        let bytes = self.bytes();
        let of_round = |(round, point): (&u32, &Point)| {
            let done = operations.as_ref().map_or(Some(1.0), |counted| counted.get(round).copied())?;
            let each = |seconds: f64| seconds * 1e9 / done;
            let of = |column: &BTreeMap<u32, Point>| column.get(round).map(|point| each(point.value));
            let spent = Spent {
                position: point.position,
                wall_ns: each(point.value),
                user_ns: of(&user)?,
                kernel_ns: of(&kernel)?,
                cpu_s: user.get(round)?.value + kernel.get(round)?.value,
                run_wait_ns: of(&run_wait),
                storage_ns: of(&storage),
                latency_ns: latencies.get(round).map(|sum| sum / done),
                bytes: bytes.get(round).map(|sum| sum / done),
            };
            (done > 0.0 && point.value > 0.0).then_some((*round, spent))
        };
        wall.iter().filter_map(of_round).collect()
    }

    /// The values of one of the row's metrics by round; `None`: the row has no such metric.
    fn values(&self, name: &str) -> Option<BTreeMap<u32, Point>> {
        let named = |metric: &u32| self.table.metrics()[*metric as usize].name == name;
        let metric = self.row.metrics.iter().copied().find(named)?;
        let column = self.table.column(self.cell, metric);
        Some(column.iter().map(|point| (point.round, *point)).collect())
    }

    /// Operations by round; `None`: nobody counts them.
    fn operations(&self) -> Option<BTreeMap<u32, f64>> {
        let sum = |names: &&[&str]| {
            let columns: Vec<_> = names.iter().filter_map(|name| self.values(name)).collect();
            let mut sums = BTreeMap::new();
            for (round, point) in columns.iter().flatten() {
                *sums.entry(*round).or_insert(0.0) += point.value;
            }
            (!columns.is_empty()).then_some(sums)
        };
        OPERATIONS.iter().find_map(sum)
    }

    /// A rate by the run time, by round.
    fn by_rate(&self, rate: &str) -> BTreeMap<u32, f64> {
        let (rates, took) = [rate, RUNTIME].map(|name| self.values(name).unwrap_or_default()).into();
        let of = |(round, rate): (&u32, &Point)| Some((*round, rate.value * took.get(round)?.value));
        rates.iter().filter_map(of).collect()
    }

    /// What was read, written and trimmed, by round; nothing where operations are not those of an engine.
    fn bytes(&self) -> BTreeMap<u32, f64> {
        let mut sums = BTreeMap::new();
        for direction in DIRECTIONS.iter().filter(|_| matches!(self.done, Done::Counted)) {
            for (round, point) in self.values(&format!("{direction}.io_bytes")).unwrap_or_default() {
                *sums.entry(round).or_insert(0.0) += point.value;
            }
        }
        sums
    }

    /// The latencies of all operations added up, by round; only where every direction has them.
    fn latencies(&self) -> BTreeMap<u32, f64> {
        let mut sums: BTreeMap<u32, f64> = BTreeMap::new();
        for direction in DIRECTIONS {
            let Some(done) = self.values(&format!("{direction}.total_ios")) else { continue };
            let mean = self.values(&format!("{direction}.clat_ns.mean"));
            let Some(mean) = mean else { return BTreeMap::new() };
            for (round, point) in &done {
                let sum = mean.get(round).map_or(f64::NAN, |mean| mean.value * point.value);
                *sums.entry(*round).or_insert(0.0) += sum;
            }
        }
        sums.retain(|_, sum| sum.is_finite());
        sums
    }
}

/// What an operation took with baseline and candidate, by round.
struct Rounds<'a> {
    both: Vec<(&'a Spent, &'a Spent)>,
    /// The baseline's time of all workers: differences are judged as shares of it, as those of other metrics are.
    unit_ns: f64,
}

impl Rounds<'_> {
    /// One part of it. The difference is judged as any other paired difference is that is looked at once.
    fn line(&self, of: impl Fn(&Spent) -> f64) -> Option<BudgetLine> {
        let both = |(a, b): &(&Spent, &Spent)| Both {
            baseline: of(a),
            candidate: of(b),
            second: b.position > a.position,
        };
        let rounds: Vec<Both> = self.both.iter().map(both).collect();
        let middle = |value: fn(&Both) -> f64| median(&rounds.iter().map(value).collect::<Vec<_>>());
        Some(BudgetLine {
            baseline_ns: middle(|both| both.baseline),
            candidate_ns: middle(|both| both.candidate),
            difference_ns: difference(&rounds, self.unit_ns)?,
        })
    }

    /// The processor time of a typical trial, of the arm that has less.
    fn least_cpu_s(&self) -> f64 {
        let (base, cand): (Vec<f64>, Vec<f64>) = self.both.iter().map(|(a, b)| (a.cpu_s, b.cpu_s)).unzip();
        median(&base).min(median(&cand))
    }

    /// Bytes of an operation in both arms, where every round knows them.
    fn bytes(&self) -> Option<[f64; 2]> {
        let of = |spent: fn(&(&Spent, &Spent)) -> Option<f64>| {
            let all: Option<Vec<f64>> = self.both.iter().map(spent).collect();
            all.map(|all| median(&all)).filter(|bytes| *bytes > 0.0)
        };
        Some([of(|both| both.0.bytes)?, of(|both| both.1.bytes)?])
    }

    fn in_flight(&self) -> Option<InFlight> {
        let known = self.both.iter().all(|(a, b)| a.latency_ns.and(b.latency_ns).is_some());
        let latency_of = |spent: &Spent| spent.latency_ns.unwrap_or(f64::NAN);
        let share = |spent: &Spent| latency_of(spent) / spent.wall_ns;
        let (base, cand): (Vec<f64>, Vec<f64>) = self.both.iter().map(|(a, b)| (share(a), share(b))).unzip();
        let (baseline, candidate) = (median(&base), median(&cand));
        if !known || baseline.max(candidate) <= ONE_AT_A_TIME {
            return None;
        }
        Some(InFlight { baseline, candidate, latency: self.line(latency_of)? })
    }
}
