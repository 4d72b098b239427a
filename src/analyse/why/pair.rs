//! One compared pair, with all that rules look at.
//!
//! Enters: a run, its analysis and a comparison that claims a difference; a run that watched the same cells. Leaves: a [`Pair`]. Cells of
//! the two runs are the same where all their levels but those of the factor that says whether a trial is watched are.
//!
//! Watched sleep ends when the thread runs again; the kernel's count of it ends when the thread is woken, and what it then waits for a
//! processor is waiting to run. So that causes are pieces of the parts they belong to, a pair counts that wait with the sleep it ended.

use std::collections::BTreeSet;

use super::super::budget::{Budget, BudgetLine, BudgetPart, Operation};
use super::super::comparison::{Analysis, Comparison, FactDifference, Interval};
use super::super::table::Table;
use super::super::watching::{WatchingPrice, watching_prices};
use super::cause::{Cause, Evidence, Grade, Watching, What};
use super::moved::has_moved;
use super::names::{PREEMPTED, RUN_WAIT, WAITS_LOST, WATCHED};
use super::source::Source;
use crate::record::{Direction, Factor, NoteKind, Run, Unit};

/// Counts whose arms differ by less than this share of the larger one explain nothing.
const LEAST_CHANGE: f64 = 0.05;
/// The kernel that ran a trial.
const RELEASE: &str = "kernel.release";
/// Times below this share of the whole difference explain nothing of it.
const TRIFLE: f64 = 0.02;

/// One compared pair.
pub(super) struct Pair<'a> {
    /// The metric whose difference is explained.
    pub(super) metric: String,
    /// Labels of baseline and candidate.
    pub(super) arms: [&'a str; 2],
    /// Which of them is worse.
    pub(super) worse: usize,
    /// Where the time went; `None`: nobody counted it, or nobody knows what for.
    pub(super) budget: Option<&'a Budget>,
    /// Counts of every trial.
    pub(super) own: Source<'a>,
    /// Counts of trials that were watched.
    pub(super) watched: Option<Watched<'a>>,
    /// What threads that were woken waited for a processor, which counts with the sleep; `None`: too little, or nobody knows.
    pub(super) woken: Option<BudgetLine>,
    /// Facts in which the arms differ undeclared.
    pub(super) facts: &'a [FactDifference],
    /// What the arms differ in by design.
    pub(super) factor: Option<&'a Factor>,
    /// The arms' kernels have functions of different names.
    other_kernels: bool,
    run: &'a Run,
}

/// A run that watched the cells of another one, each beside its unwatched twin.
pub(super) struct WatchedRun<'a> {
    run: &'a Run,
    table: Table<'a>,
    prices: Vec<WatchingPrice>,
}

/// Trials that were watched.
pub(super) struct Watched<'a> {
    pub(super) source: Source<'a>,
    watching: Watching,
    /// What was counted is of all that the budget's workers did and of nothing else: not of a job beside others, of threads of the kernel that
    /// work for them, or of the time before they are counted. It was of the machine whose difference is explained.
    whole: bool,
    /// Watching made the trials in which the block layer was watched so slow that the times of requests are too long.
    pub(super) requests_distorted: bool,
}

impl<'a> Pair<'a> {
    /// `None`: the run lacks a cell of the pair.
    pub(super) fn new(
        (run, table): (&'a Run, &'a Table<'a>),
        by: Option<&'a WatchedRun<'a>>,
        analysis: &'a Analysis,
        of: &'a Comparison,
    ) -> Option<Pair<'a>> {
        let arms = [of.baseline.arm.as_str(), of.candidate.arm.as_str()];
        let levels = arms.map(|arm| {
            let mut levels: Vec<(&str, &str)> =
                of.row.levels.iter().map(|(factor, level)| (factor.as_str(), level.as_str())).collect();
            levels.push((&analysis.factor, arm));
            levels
        });
        let [Some(base), Some(cand)] = levels.each_ref().map(|levels| cell(run, levels)) else { return None };
        let job = of.row.job.as_str();
        let budget = analysis
            .budgets
            .iter()
            .find(|budget| budget.row == of.row && budget.baseline == arms[0] && budget.candidate == arms[1]);
        let operation = budget.map_or(Operation::Counted, |budget| budget.operation);
        let rate = budget.and_then(|budget| budget.rate.as_deref());
        let ramp = [base, cand].iter().any(|cell| share_with_note(run, *cell, NoteKind::Ramp) > 0.0);
        let own = Source { table, cells: [base, cand], beside: None, job, operation, rate, ramp };
        let watched =
            by.and_then(|by| Watched::of(by, (own, budget), &levels)).or_else(|| Watched::own(run, own));
        let mut pair = Pair {
            metric: of.metric.name.clone(),
            arms,
            worse: usize::from(of.is_better() == Some(false)),
            budget: budget.filter(|budget| budget.operation != Operation::Unknown),
            own,
            watched,
            woken: None,
            facts: &analysis.differences,
            factor: run.design.factors.iter().find(|factor| factor.name == analysis.factor),
            other_kernels: false,
            run,
        };
        pair.other_kernels = pair.have_other_kernels();
        pair.woken = pair.woken_wait().filter(|woken| pair.matters(woken) && pair.has_waited(woken));
        Some(pair)
    }

    /// Whether unwatched workers waited for a processor as long as that: watching may have made it longer.
    fn has_waited(&self, woken: &BudgetLine) -> bool {
        let all = self.part(BudgetPart::WaitingToRun).zip(self.budget);
        all.is_some_and(|(all, budget)| {
            let left = all.minus(woken);
            left.baseline_ns.min(left.candidate_ns) >= -budget.least_ns
        })
    }

    /// All that workers waited for a processor, without what they did in the middle of their work; `None` where some of that was not seen.
    /// Where waiting for storage is a part by itself nobody knows which sleep it was behind.
    fn woken_wait(&self) -> Option<BudgetLine> {
        let is_simple =
            |budget: &&Budget| !budget.asleep.with_waiting_to_run && budget.asleep.with_waiting_for_storage;
        self.budget.filter(is_simple)?;
        let watched = self.watched.as_ref().filter(|watched| watched.whole && !watched.watching.distorted)?;
        let lost = watched.source.plain(WAITS_LOST, Unit::Count)?;
        (lost.baseline == 0.0 && lost.candidate == 0.0).then_some(())?;
        Some(watched.source.time(RUN_WAIT)?.minus(&watched.source.time(PREEMPTED)?))
    }

    /// What the watched trials were.
    pub(super) fn watching(&self) -> Option<Watching> {
        self.watched.as_ref().map(|watched| watched.watching.clone())
    }

    /// A cause that is a part of the budget, as it was measured in every trial.
    pub(super) fn part_cause(
        &self,
        rule: &'static str,
        what: What,
        part: BudgetPart,
        time: BudgetLine,
    ) -> Cause {
        let share = self.share(time.difference_ns.estimate);
        Cause {
            part: Some(part),
            time: Some(time),
            share,
            ..Cause::new(rule, Grade::AccountsFor, what, Vec::new())
        }
    }

    /// Causes made of the watched places below a beginning: `cause` says what a place is and to which part of the budget it belongs, if to
    /// any.
    pub(super) fn places(
        &self,
        rule: &'static str,
        beginning: &str,
        cause: impl Fn(&str) -> Option<(What, Option<BudgetPart>)>,
    ) -> Vec<Cause> {
        self.places_where(rule, beginning, cause, |cause, time| self.is_told(cause, time))
    }

    /// The same of places whose times surely differ, but are not told as causes.
    pub(super) fn smaller_places(
        &self,
        rule: &'static str,
        beginning: &str,
        cause: impl Fn(&str) -> Option<(What, Option<BudgetPart>)>,
    ) -> Vec<Cause> {
        self.places_where(rule, beginning, cause, |cause, time| {
            shows(&time.difference_ns) && !self.is_told(cause, time)
        })
    }

    /// Whether a watched place is a cause: a part of the sum may work against the difference, what only goes with it may not.
    fn is_told(&self, cause: &Cause, time: &BudgetLine) -> bool {
        let fits = cause.grade == Grade::AccountsFor || self.is_longer_in_the_worse(time);
        fits && self.matters(time)
    }

    /// Whether a difference is more than all the time of an operation.
    fn is_longer_than_an_operation(&self, time: &BudgetLine) -> bool {
        let longest = |budget: &Budget| budget.total.baseline_ns.max(budget.total.candidate_ns);
        self.budget.is_some_and(|budget| time.difference_ns.estimate.abs() > longest(budget))
    }

    fn places_where(
        &self,
        rule: &'static str,
        beginning: &str,
        cause: impl Fn(&str) -> Option<(What, Option<BudgetPart>)>,
        wanted: impl Fn(&Cause, &BudgetLine) -> bool,
    ) -> Vec<Cause> {
        let Some(watched) = &self.watched else { return Vec::new() };
        let of_place = |place: String| {
            let (what, part) = cause(&place)?;
            let metric = format!("{beginning}{place}");
            let time = watched.source.time(&metric)?;
            // Of a trial of several jobs, what takes longer than an operation of this one is work of others.
            let is_of_others =
                watched.source.is_of_all_jobs(&[&metric]) && self.is_longer_than_an_operation(&time);
            if is_of_others {
                return None;
            }
            let cause = self.watched_cause(rule, what, part, &metric, time);
            wanted(&cause, &time).then_some(cause)
        };
        watched.source.below(beginning).into_iter().filter_map(of_place).collect()
    }

    /// A cause that was watched: a part of the budget's sum, unless watching distorted it or nobody counted the sum.
    fn watched_cause(
        &self,
        rule: &'static str,
        what: What,
        part: Option<BudgetPart>,
        metric: &str,
        time: BudgetLine,
    ) -> Cause {
        let distorted = self.watched.as_ref().is_some_and(|watched| watched.watching.distorted);
        let source = self.watched.as_ref().map_or(self.own, |watched| watched.source);
        let whole = self.watched.as_ref().is_some_and(|watched| watched.whole);
        let counted = |part: &BudgetPart| self.part(*part).is_some();
        let whole = whole && !loses_events(source, metric);
        let renamed = self.other_kernels && (time.baseline_ns == 0.0) != (time.candidate_ns == 0.0);
        let part = part.map(|part| self.counted_in(part)).filter(counted);
        let part = part.filter(|_| whole && !distorted && !renamed);
        let seconds = |ns: f64| ns / 1e9;
        let of = time.difference_ns;
        let evidence = Evidence {
            metric: format!("{metric} {}", source.one(&[metric])),
            unit: Unit::Seconds,
            baseline: seconds(time.baseline_ns),
            candidate: seconds(time.candidate_ns),
            difference: Some(Interval {
                estimate: seconds(of.estimate),
                low: seconds(of.low),
                high: seconds(of.high),
            }),
        };
        let grade = if part.is_some() { Grade::AccountsFor } else { Grade::GoesWith };
        let share = part.and_then(|_| self.share(of.estimate));
        let of_all_jobs = source.is_of_all_jobs(&[metric]);
        let cause = Cause::new(rule, grade, what, vec![evidence]);
        Cause { part, time: Some(time), of_all_jobs, share, distorted, renamed, ..cause }
    }

    /// Whether a fact of a trial of either arm is so.
    pub(super) fn has_fact(&self, name: &str, is_so: impl Fn(&str) -> bool) -> bool {
        self.own.cells.iter().any(|cell| self.values_of(*cell, name).any(&is_so))
    }

    /// The same of a trial of the worse arm.
    pub(super) fn worse_has_fact(&self, name: &str, is_so: impl Fn(&str) -> bool) -> bool {
        self.values_of(self.own.cells[self.worse], name).any(is_so)
    }

    /// A fact of a cell's trials.
    fn values_of<'f>(&'f self, cell: u32, fact: &'f str) -> impl Iterator<Item = &'a str> + 'f {
        let mine = self.run.trials.iter().filter(move |trial| trial.cell == cell);
        mine.filter_map(move |trial| self.run.facts.get(trial.facts? as usize)?.get(fact))
    }

    /// Whether no kernel ran trials of both arms.
    fn have_other_kernels(&self) -> bool {
        let [base, cand] = self.own.cells.map(|cell| self.values_of(cell, RELEASE).collect::<BTreeSet<_>>());
        !base.is_empty() && !cand.is_empty() && base.is_disjoint(&cand)
    }

    /// Whether all jobs of the run ask for direct I/O.
    pub(super) fn is_direct(&self) -> bool {
        self.run.design.direct
    }

    /// Whether it is a command's, of which a server may do the work that nobody watched.
    pub(super) fn is_perhaps_served(&self) -> bool {
        self.run.engine.starts_with("command ") && !self.own.has("client.workers.wall")
    }

    /// Whether the job does I/O in a direction: the device's counters also count others, and what a filesystem reads to write. Of
    /// commands nobody knows.
    pub(super) fn does(&self, direction: Direction) -> bool {
        let counts = |direction: &Direction| {
            ["io_bytes", "total_ios", "bw"]
                .iter()
                .any(|what| self.own.has(&format!("{}.{what}", direction.name())))
        };
        counts(&direction) || ![Direction::Read, Direction::Write, Direction::Trim].iter().any(counts)
    }

    /// The part that a piece of this one is counted in: the program's and the kernel's time are in all processor time where they are not told
    /// apart.
    fn counted_in(&self, part: BudgetPart) -> BudgetPart {
        let is_known = |part: BudgetPart| self.part(part).is_some();
        match part {
            BudgetPart::User | BudgetPart::Kernel if !is_known(part) && is_known(BudgetPart::Processor) => {
                BudgetPart::Processor
            }
            part => part,
        }
    }

    /// A part of the budget.
    pub(super) fn part(&self, part: BudgetPart) -> Option<BudgetLine> {
        self.parts().find(|(known, _)| *known == part).map(|(_, line)| line)
    }

    /// The parts of the budget, with the wait of woken threads in their sleep.
    pub(super) fn parts(&self) -> impl Iterator<Item = (BudgetPart, BudgetLine)> {
        let parts = self.budget.map_or(&[][..], |budget| &budget.parts);
        parts.iter().map(|(part, line)| match (part, &self.woken) {
            (BudgetPart::WaitingToRun, Some(woken)) => (*part, line.minus(woken)),
            (BudgetPart::Asleep, Some(woken)) => (*part, line.plus(woken)),
            _ => (*part, *line),
        })
    }

    /// Whether a difference of time is proven and large enough for a cause of its own: δ of an operation, and no trifle of the difference.
    pub(super) fn matters(&self, time: &BudgetLine) -> bool {
        let least_of =
            |budget: &Budget| budget.least_ns.max(TRIFLE * budget.total.difference_ns.estimate.abs());
        let least = self.budget.map_or(0.0, least_of);
        shows(&time.difference_ns) && time.difference_ns.estimate.abs() >= least
    }

    /// The share of the whole difference; `None`: the whole is not told from 0.
    fn share(&self, ns: f64) -> Option<f64> {
        let whole = self.budget?.total.difference_ns;
        shows(&whole).then(|| ns / whole.estimate)
    }

    /// The share of the whole difference that a part's is; `None`: the whole is not told from 0.
    pub(super) fn share_of(&self, part: &BudgetLine) -> Option<f64> {
        self.share(part.difference_ns.estimate)
    }

    pub(super) fn is_longer_in_the_worse(&self, time: &BudgetLine) -> bool {
        (time.difference_ns.estimate > 0.0) == (self.worse == 1)
    }

    /// Whether a count differs so that it may be why: more of it in the worse arm.
    pub(super) fn costs(&self, found: &Evidence) -> bool {
        let worse =
            if self.worse == 1 { found.candidate - found.baseline } else { found.baseline - found.candidate };
        self.differs(found) && worse > 0.0
    }

    /// The same of what is good: less of it in the worse arm.
    pub(super) fn lacks(&self, found: &Evidence) -> bool {
        self.differs(found) && !self.costs(found)
    }

    /// Whether a count clearly differs.
    pub(super) fn differs(&self, found: &Evidence) -> bool {
        let larger = found.baseline.abs().max(found.candidate.abs());
        let proven = found.difference.is_none_or(|difference| shows(&difference));
        proven && (found.candidate - found.baseline).abs() > LEAST_CHANGE * larger
    }

    /// Whether a count is the same in both arms, as far as can be told: neither arm may have this share more.
    pub(super) fn is_alike(found: &Evidence, share: f64) -> bool {
        let most = share * found.baseline.abs().max(found.candidate.abs());
        found.difference.is_some_and(|difference| difference.low >= -most && difference.high <= most)
    }

    /// How many of the trials of each arm that worked have such a note, as a share.
    pub(super) fn share_with_note(&self, kind: NoteKind) -> [f64; 2] {
        self.own.cells.map(|cell| share_with_note(self.run, cell, kind))
    }
}

impl<'a> WatchedRun<'a> {
    pub(super) fn new(run: &'a Run) -> WatchedRun<'a> {
        WatchedRun { run, table: Table::new(run), prices: watching_prices(run) }
    }

    /// What watching by a level cost in one of the two cells with these levels: a price that distorts, else the one that is furthest from 0.
    fn price(&self, by: &str, levels: &[Vec<(&str, &str)>; 2]) -> Option<&WatchingPrice> {
        let is_arm = |price: &WatchingPrice, levels: &[(&str, &str)]| {
            let has =
                |(factor, level): &(String, String)| levels.contains(&(factor.as_str(), level.as_str()));
            price.row.levels.len() == levels.len() && price.row.levels.iter().all(has)
        };
        let of_level = self.prices.iter().filter(|price| price.by.is_empty() || price.by == by);
        let of_pair = of_level.filter(|price| levels.iter().any(|levels| is_arm(price, levels)));
        let size = |price: &WatchingPrice| price.estimate.abs();
        of_pair.max_by(|a, b| a.is_distorted.cmp(&b.is_distorted).then(size(a).total_cmp(&size(b))))
    }
}

impl<'a> Watched<'a> {
    /// The watched twins of these two cells in another run; `own` are the cells of the run itself, with the sum that is explained.
    fn of(
        by: &'a WatchedRun<'a>,
        (own, sum): (Source<'a>, Option<&Budget>),
        levels: &[Vec<(&str, &str)>; 2],
    ) -> Option<Watched<'a>> {
        let named = &by.run.design.explains.as_ref()?.factor;
        let factor = by.run.design.factors.iter().find(|factor| factor.name == *named)?;
        let cells = |watched: &str| {
            let cells = levels.each_ref().map(|levels| {
                let with = levels.iter().copied().chain([(factor.name.as_str(), watched)]);
                cell(by.run, &with.collect::<Vec<_>>())
            });
            Some([cells[0]?, cells[1]?])
        };
        let first = factor.levels.get(1)?;
        let beside = factor.levels.get(2).and_then(|watched| cells(watched));
        let alone = Source { table: &by.table, cells: cells(first)?, beside: None, ..own };
        let of_requests = match factor.levels.get(2) {
            Some(second) if alone.below("blocks.").is_empty() => second,
            _ => first,
        };
        let source = Source { beside, ..alone };
        let rounds = source.rounds_with(&WATCHED);
        // Times of places are those of the first level.
        let price = by.price(first, levels);
        let watching = Watching {
            rounds,
            run: by.run.id,
            price: price.map(|price| price.estimate),
            distorted: price.is_some_and(|price| price.is_distorted),
        };
        let requests_distorted = by.price(of_requests, levels).is_some_and(|price| price.is_distorted);
        let unwatched = factor.levels.first().and_then(|level| cells(level));
        let unwatched = unwatched.map(|cells| Source { table: &by.table, cells, beside: None, ..own });
        let moved = sum.zip(unwatched).is_some_and(|(sum, again)| has_moved(&sum.total, &again));
        let whole = is_whole(by.run, source) && !moved;
        (rounds > 0).then_some(Watched { source, watching, whole, requests_distorted })
    }

    /// The trials of the run itself, where they were watched. What that cost nobody measured; an observer may have said that it was much.
    fn own(run: &Run, source: Source<'a>) -> Option<Watched<'a>> {
        let rounds = source.rounds_with(&WATCHED);
        let distorted =
            source.cells.iter().any(|cell| share_with_note(run, *cell, NoteKind::Distorting) >= 0.5);
        let watching = Watching { rounds, run: None, price: None, distorted };
        let whole = is_whole(run, source);
        (rounds > 0).then_some(Watched { source, watching, whole, requests_distorted: distorted })
    }
}

/// Of an observer's events, or of its time, more than this share lost, and its times are no parts of a sum: the arm with more events loses
/// more, and one lost event forgets all waits that are under way.
const MOST_LOST: f64 = 0.01;

/// Whether the observer of a metric lost too many events in either arm.
fn loses_events(source: Source<'_>, metric: &str) -> bool {
    let observer = metric.split('.').next().unwrap_or_default();
    let (seen, time) = match observer {
        "waits" => ("waits.sleeps", "waits.sleep_time"),
        "locks" => ("locks.waits", "locks.wait_time"),
        "cpu" => ("cpu.samples", "cpu.kernel_time"),
        _ => return false,
    };
    let loses = |(lost, of): (&str, &str)| {
        let lost = source.ratio(&[&format!("{observer}.{lost}")], &[of], lost, Unit::Count);
        lost.is_some_and(|lost| lost.baseline.max(lost.candidate) > MOST_LOST)
    };
    [("lost", seen), ("lost_time", time)].into_iter().any(loses)
}

/// Whether observers counted what the budget counts.
fn is_whole(run: &Run, source: Source<'_>) -> bool {
    let has = |kind: NoteKind| source.cells.iter().any(|cell| share_with_note(run, *cell, kind) > 0.0);
    let others = [NoteKind::WorkerThreads, NoteKind::Ramp, NoteKind::Beside];
    source.job.is_empty() && !others.into_iter().any(has)
}

/// The share of the trials of a cell that have a note of this kind.
fn share_with_note(run: &Run, cell: u32, kind: NoteKind) -> f64 {
    let worked = || run.trials.iter().filter(|trial| trial.cell == cell && trial.counts());
    let with = worked().filter(|trial| trial.notes.iter().any(|note| note.kind == kind));
    with.count() as f64 / worked().count().max(1) as f64
}

/// The cell with these levels of these factors, which are all that the run has.
fn cell(run: &Run, levels: &[(&str, &str)]) -> Option<u32> {
    let factors = &run.design.factors;
    let wanted = |factor: &Factor| {
        let (_, level) = levels.iter().find(|(name, _)| *name == factor.name)?;
        factor.levels.iter().position(|known| known == level).map(|at| at as u32)
    };
    let wanted: Vec<u32> = factors.iter().map(wanted).collect::<Option<_>>()?;
    run.cells.iter().position(|cell| cell.levels == wanted).map(|at| at as u32)
}

/// Whether an interval shows a difference.
fn shows(interval: &Interval) -> bool {
    interval.low > 0.0 || interval.high < 0.0
}
