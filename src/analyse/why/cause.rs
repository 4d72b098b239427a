//! What explains a difference, as values. No text is made here; reports word them.

use serde::Serialize;

use super::super::budget::{Asleep, BudgetLine, BudgetPart};
use super::super::comparison::{Interval, RowKey};
use crate::record::{Direction, Unit};
use crate::stats::sequential::FEWEST_ROUNDS;

/// Why one candidate differs from the baseline.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Why {
    /// The row.
    pub row: RowKey,
    /// The metric whose difference is explained; where nothing differs, the first that decides.
    pub metric: String,
    /// The baseline's label.
    pub baseline: String,
    /// The candidate's label.
    pub candidate: String,
    /// Whether there is anything to explain.
    pub standing: Standing,
    /// The candidate is the better arm in that metric; the comparison says so, too.
    #[serde(skip)]
    pub is_better: bool,
    /// The judged latency, where a pace sets the time between operations, of which the budget is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub judged: Option<BudgetLine>,
    /// The place of the pair's sum among `analysis.budgets`; `None`: its workers were not counted.
    pub budget: Option<usize>,
    /// Trials take as long in both arms, and nothing tells how much they do: no time or count is known for what was done.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub uncounted: bool,
    /// A quantile or the longest decides, while sum and causes are of the mean operation: these only go with it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub of_mean: bool,
    /// What the judged latency is made of, where a pace sets the time between operations or a quantile decides, so that the budget does not
    /// tell it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub latency: Vec<(LatencyPart, BudgetLine)>,
    /// What else is true of the times of requests among these.
    #[serde(skip_serializing_if = "OfRequests::is_plain")]
    pub requests: OfRequests,
    /// What the slowest calls waited for, where a quantile or the longest decides and calls were watched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slowest: Option<Slowest>,
    /// What the trials were watched for; `None`: for what every trial counts only.
    pub watching: Option<Watching>,
    /// The causes: those that account for time first, the longest first, then what goes with the difference, then what may be.
    pub causes: Vec<Cause>,
    /// What the parts make together that are too small for a cause of their own, or not told from 0, in ns an operation.
    pub unnamed_ns: f64,
    /// Parts of that which are large all the same.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unsure: Vec<Unsure>,
    /// Pieces of the kernel's processor time that surely differ, but are no cause: too small, or distorted by watching and against
    /// the difference. The largest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub smaller: Vec<Cause>,
    /// How much of the sleep was waiting for storage, as watched trials saw it; `None`: none did, or the budget has it as a part.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage: Option<Evidence>,
    /// Nobody watched whether another process, a server, works for the command.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub perhaps_served: bool,
    /// What threads that were woken waited for a processor, as watched trials saw it: causes count it with the sleep that it ended, the
    /// budget with waiting to run. `None`: too little to matter, or nobody knows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub woken: Option<BudgetLine>,
    /// What no part accounts for, in ns an operation; `None`: there is no sum.
    pub unexplained_ns: Option<Interval>,
}

named! {
    /// A stage of a request.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
    #[serde(rename_all = "snake_case")]
    pub enum RequestStage {
        /// From the bio to the request (Q2I, as blktrace calls it): splits, merges, waiting for a free request.
        Queued = "q2i",
        /// From the request to the driver (I2D): the scheduler.
        Waiting = "i2d",
        /// From the bio to the driver (Q2D): both of these, where not all requests waited.
        Issued = "q2d",
        /// At the driver and the device (D2C).
        Device = "d2c",
    }
}

/// A part of a latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LatencyPart {
    /// From its issue to its end, which fio calls clat: the mean, or the same quantile.
    Service,
    /// Until it is issued: waiting for its turn behind others, and its submission. Only means have one.
    BeforeIssue,
    /// From the end of a write until the sync behind it had ended; nothing with `sync=`. Only means have one.
    UntilDurable,
    /// A sync that follows writes, and is no part of their latency.
    Sync,
    /// The 99th percentile of a stage of the requests of its direction, which stands beside a quantile.
    Requests(RequestStage),
}

/// What a reader must know of times of requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct OfRequests {
    /// They were measured while watching the block layer cost too much.
    pub distorted: bool,
    /// They are of all jobs of the trial, and the row is one of them.
    pub of_all_jobs: bool,
}

impl OfRequests {
    /// Whether there is nothing to know.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        *self == OfRequests::default()
    }
}

/// The slowest hundredth of the calls of one kind.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Slowest {
    /// As the kernel calls it; `read` and `write` are all of their like.
    pub call: String,
    /// Time a call.
    pub whole: BudgetLine,
    /// Of that, what differs most.
    pub parts: Vec<(SlowPart, BudgetLine)>,
    /// They are of all jobs of the trial, and the row is one of them.
    pub of_all_jobs: bool,
}

/// Where a slow call was.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SlowPart {
    /// Asleep at this function of the kernel.
    At(String),
    /// Ready to run, while another thread ran.
    Ready,
    /// On a processor.
    Processor,
}

/// A large part of the difference that no cause names: it is not told from 0, or less than matters.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Unsure {
    /// The part of the budget.
    pub part: BudgetPart,
    /// Causes name pieces of the part; this is what they leave.
    pub rest: bool,
    /// Candidate − baseline in ns an operation.
    pub difference_ns: Interval,
}

/// Whether there is anything to explain. Where several metrics decide a pair, the first of these holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// The arms differ.
    Differs,
    /// That is not decided yet.
    NotDecided,
    /// They do not differ, or by less than matters.
    NothingDiffers,
    /// They were not judged.
    NotJudged,
}

/// What the trials were watched for, and what that cost.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Watching {
    /// Rounds that were watched.
    pub rounds: usize,
    /// Number of the run that watched; `None`: the run itself did, or that one has no number.
    pub run: Option<i64>,
    /// What watching cost, as the [`super::super::WatchingPrice`] of the pair's cells that distorts, else that is furthest from 0; `None`: there
    /// is nothing to compare it with.
    pub price: Option<f64>,
    /// It surely cost so much that times are those of another load. Counts stay.
    pub distorted: bool,
}

impl Watching {
    /// Whether so many rounds can show a difference.
    #[must_use]
    pub fn can_tell(&self) -> bool {
        self.rounds >= FEWEST_ROUNDS
    }

    /// The fewest that can.
    pub const FEWEST: usize = FEWEST_ROUNDS;
}

/// How far a cause can be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Grade {
    /// A part of a sum that was measured on both arms.
    AccountsFor,
    /// It differs together with what is explained, and is no part of the sum.
    GoesWith,
    /// A rule of thumb.
    May,
}

/// One cause.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cause {
    /// The rule that found it.
    pub rule: &'static str,
    /// How far it can be trusted.
    pub grade: Grade,
    /// What it is.
    pub what: What,
    /// The part of the budget it belongs to.
    pub part: Option<BudgetPart>,
    /// The time an operation, where it is one.
    pub time: Option<BudgetLine>,
    /// That time is the whole trial's for each operation of all its jobs, while the budget is one job's.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub of_all_jobs: bool,
    /// Its share of the whole difference; below 0 it works against it. `None`: no part of the sum, or the whole is not told from 0.
    pub share: Option<f64>,
    /// Measured while watching cost too much.
    pub distorted: bool,
    /// Only one arm has the place, and the arms have different kernels: the other may call it otherwise, or have it within its caller.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub renamed: bool,
    /// What shows it.
    pub evidence: Vec<Evidence>,
}

impl Cause {
    /// A cause without time.
    pub(super) fn new(rule: &'static str, grade: Grade, what: What, evidence: Vec<Evidence>) -> Cause {
        Cause {
            rule,
            grade,
            what,
            part: None,
            time: None,
            of_all_jobs: false,
            share: None,
            distorted: false,
            renamed: false,
            evidence,
        }
    }

    /// Makes it no part of a sum.
    pub(super) fn only_goes_with(&mut self) {
        self.grade = self.grade.max(Grade::GoesWith);
        (self.part, self.share) = (None, None);
    }

    /// Its difference of time, in ns an operation.
    pub(super) fn estimate_ns(&self) -> Option<f64> {
        self.time.map(|time| time.difference_ns.estimate)
    }

    pub(super) fn size_ns(&self) -> f64 {
        self.estimate_ns().unwrap_or(0.0).abs()
    }

    /// Its place among others: what has no time stands behind what has one.
    pub(super) fn rank(&self) -> (Grade, bool) {
        (self.grade, self.time.is_none())
    }
}

/// A metric that shows a cause.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Evidence {
    /// Its name, or the formula.
    pub metric: String,
    /// The unit of the figures.
    pub unit: Unit,
    /// The baseline's median.
    pub baseline: f64,
    /// The candidate's median.
    pub candidate: f64,
    /// Candidate − baseline over rounds; `None`: a fact, which has no interval.
    pub difference: Option<Interval>,
}

/// What a cause is.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// Processor time in copying.
    Copying,
    /// Processor time in another part of the kernel.
    Subsystem(String),
    /// Waits for a lock.
    Lock {
        /// `mutex`, `rwsem_W` …
        kind: String,
        /// The function that wants it.
        caller: String,
        /// Waiters spin on a processor: it is part of the processor time.
        spins: bool,
    },
    /// Waits for a flush of the device's cache.
    Flush {
        /// The function that waits.
        at: String,
    },
    /// Waits for a commit of the filesystem's journal.
    Commit {
        /// The function that waits.
        at: String,
    },
    /// Sleeps at another place.
    Sleep {
        /// The function that sleeps.
        at: String,
    },
    /// Processor time in a function of the program.
    UserFunction(String),
    /// Processor time outside the kernel; `rest`: what is left of it behind causes that name functions.
    UserTime {
        /// Parts of it have causes of their own.
        rest: bool,
    },
    /// Processor time in the kernel; `rest`: what is left of it behind causes that name parts of it.
    KernelTime {
        /// Parts of it have causes of their own.
        rest: bool,
    },
    /// Processor time in and outside the kernel, where nobody can tell them apart; `rest` as above.
    ProcessorTime {
        /// Parts of it have causes of their own.
        rest: bool,
    },
    /// Ready to run without a processor.
    WaitingToRun,
    /// Waiting for storage.
    Storage {
        /// Parts of it have causes of their own.
        rest: bool,
    },
    /// Asleep for other reasons.
    Asleep {
        /// Parts of it have causes of their own.
        rest: bool,
        /// What else may be in it.
        with: Asleep,
    },
    /// The worse arm has more flushes an operation.
    MoreFlushes,
    /// The device moves more bytes for what was asked.
    DeviceBytes {
        /// Of reads or writes.
        direction: Direction,
    },
    /// Requests of the device are smaller.
    SmallerRequests {
        /// Of reads or writes.
        direction: Direction,
    },
    /// Along the device the owner changes more often.
    OwnerChanges,
    /// Fewer requests are under way at the device.
    QueueDepth,
    /// io_uring gave I/Os to worker threads of the kernel.
    WorkerThreads {
        /// The arm in which it did.
        arm: String,
    },
    /// The page cache takes what the device gets in the other arm.
    PageCache {
        /// The arm that the page cache serves.
        arm: String,
        /// Of reads or writes.
        direction: Direction,
    },
    /// The same requests take the device longer.
    SlowerDevice {
        /// Of reads or writes.
        direction: Direction,
    },
    /// A setting of the machine's processors differs.
    MachineSetting {
        /// The fact.
        fact: String,
        /// (arm, value).
        values: Vec<(String, String)>,
    },
    /// The hypervisor took more processor time for each operation of the worse arm.
    StolenTime,
    /// All processor time grew alike.
    SlowerProcessor,
}
