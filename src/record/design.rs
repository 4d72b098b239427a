//! How a run was designed: factors, levels, cells and the rule that ends it.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{MetricDelta, Run};

/// One thing varied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Factor {
    /// What varies, e.g. `direct`.
    pub name: String,
    /// Labels of its levels; the first is the baseline when the factor is compared.
    pub levels: Vec<String>,
    /// The keys that its levels set, where they are others than its name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sets: Vec<String>,
}

impl Factor {
    /// A factor whose name is what it sets.
    #[must_use]
    pub fn new(name: impl Into<String>, levels: Vec<String>) -> Factor {
        Factor { name: name.into(), levels, sets: Vec::new() }
    }
}

/// One combination of levels.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cell {
    /// One level index a factor, in the order of [`Design::factors`].
    pub levels: Vec<u32>,
}

/// The factors, which one makes the arms, and what decides.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Design {
    /// All factors, as given.
    pub factors: Vec<Factor>,
    /// Index of the compared factor: its levels are the arms, the others make the rows.
    pub compare: usize,
    /// Trials of one round belong together (true for assay's own runs, false for imported results).
    pub paired: bool,
    /// Name of the primary metric, e.g. `write.bw`; `None`: analyse chooses per row.
    pub primary: Option<String>,
    /// Somebody named that metric: where it is one of certain sections, nothing of the others decides.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub asked: bool,
    /// Metrics that reports have tables of besides, whatever they show; a name means itself and all below it
    /// (`dev` means `dev.flushes`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub show: Vec<String>,
    /// Sections with a rate or pauses in any cell: some of their sleep is asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paced: Vec<String>,
    /// All jobs of all cells ask for direct I/O.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub direct: bool,
    /// How the cells of a round are ordered.
    #[serde(default)]
    pub order: Order,
    /// A trial that is not judged leads into each round.
    #[serde(default)]
    pub lead_in: bool,
    /// When it ends and what counts as a difference.
    pub stop: StopRule,
    /// The smallest difference that matters in some metrics, where it is another than that of the rule.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deltas: Vec<MetricDelta>,
    /// What failed trials mean for the verdict.
    #[serde(default, skip_serializing_if = "FailureRule::is_compare")]
    pub failures: FailureRule,
    /// Rounds were added after its end (`--more`): they are all done, whatever is decided meanwhile.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub extended: bool,
    /// The run whose cells this one runs again, unwatched and watched; `None`: it explains none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explains: Option<Explains>,
    /// What a search needs besides; `None`: it is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bisects: Option<Bisects>,
    /// It is one of several runs of one command; `None`: it is run alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub together: Option<Together>,
}

/// What several runs of one command have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Together {
    /// When the command was begun, in nanoseconds since the epoch.
    pub begun_unix_ns: u64,
    /// So many of them share α: the run's own is that part of it.
    pub sharing_alpha: u32,
}

/// A run that searches the step at which something became worse: its arms are the steps, the good end first and the bad end last, and most
/// rounds run only a few of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bisects {
    /// The git repository whose commits the steps are; `None`: they were named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<PathBuf>,
    /// Shell command that makes a step ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build: Option<String>,
    /// What each step is about, in the order of the arms; empty where nothing is known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub titles: Vec<String>,
    /// Steps that are merges of a branch.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub merges: Vec<u32>,
    /// Files and directories of the repository: only commits that change one of them were searched; empty: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    /// Commits that are no steps.
    #[serde(default, skip_serializing_if = "LeftOut::is_none")]
    pub left_out: LeftOut,
    /// Steps asked in one round.
    pub per_round: u32,
    /// Most rounds of the ends alone.
    pub ends_rounds: u32,
    /// The steps are kernels, and what runs is the same in each.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub kernels: bool,
    /// What made it better is searched for: the first step is the bad end, the last one the good end.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub for_better: bool,
}

/// Commits between the ends of a search that are no steps of it, as nothing that is compared can have come with them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// They change none of the paths that the search was limited to.
    #[serde(default)]
    pub beside_paths: u32,
    /// They change nothing that the kernels of the ends were made of.
    #[serde(default)]
    pub not_compiled: u32,
}

impl LeftOut {
    /// Whether each commit is a step.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == LeftOut::default()
    }
}

/// Which run a watched run explains: its number alone would mean another run in another store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Explains {
    /// Its number in the store.
    pub run: i64,
    /// Its start, nanoseconds since the Unix epoch.
    pub started_unix_ns: u64,
    /// Its seed.
    pub seed: u64,
    /// Name of the factor whose levels are unwatched and watched, in this order.
    pub factor: String,
    /// The observers that watch; empty in a store of an earlier version.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub observers: Vec<String>,
}

impl Explains {
    /// Whether this is the run that it means.
    #[must_use]
    pub fn is(&self, run: &Run) -> bool {
        (Some(self.run), self.started_unix_ns, self.seed) == (run.id, run.started_unix_ns, run.seed)
    }
}

/// What trials that failed mean for the verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureRule {
    /// Their numbers are compared; unequal ones may leave no verdict.
    #[default]
    Compare,
    /// Each is worse than any value.
    Worst,
}

impl FailureRule {
    fn is_compare(&self) -> bool {
        *self == FailureRule::Compare
    }
}

/// How the cells of a round are ordered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// A random order, then its reverse: runs of early assays, and imported results, whose order is not assay's.
    #[default]
    Blocks,
    /// A random order drawn for each round.
    Independent,
}

impl Design {
    /// Arms by the first factor, unpaired, with the usual rule of when a run ends.
    #[must_use]
    pub fn new(factors: Vec<Factor>) -> Design {
        Design { factors, ..Design::default() }
    }

    /// Whether a table of this metric is wanted besides that of the one that decides.
    #[must_use]
    pub fn shows(&self, metric: &str) -> bool {
        let below = |name: &String| {
            metric.strip_prefix(name.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        self.show.iter().any(below)
    }
}

/// When a run ends and what counts as a difference.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct StopRule {
    /// Most rounds under sequential stopping.
    pub max_rounds: u32,
    /// A fixed number of rounds: one look at the end instead of sequential stopping.
    pub rounds: Option<u32>,
    /// The smallest difference that matters in metrics without one of their own ([`Design::deltas`]), as a ratio minus 1
    /// (0.02: δ = ln 1.02).
    pub delta: f64,
    /// Family-wise error rate over all looks and rows.
    pub alpha: f64,
    /// Rank looks only (`--exact`): no t interval for n = 4…7, first possible stop at 7.
    pub exact: bool,
    /// Longest time in seconds; the run ends with the trial that passes it.
    pub time_budget_s: Option<f64>,
    /// The interval holds at any number of looks (`--anytime`), so that the run may be extended.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub anytime: bool,
}

impl StopRule {
    /// The sequential boundary is computed up to here: more rounds are a fixed number.
    pub const MOST_ROUNDS: u32 = 120;
}

impl Default for StopRule {
    fn default() -> Self {
        StopRule {
            max_rounds: 30,
            rounds: None,
            delta: 0.02,
            alpha: 0.05,
            exact: false,
            time_budget_s: None,
            anytime: false,
        }
    }
}

/// The metrics that decide, with the latency of writes in place of the time until they are durable: what earlier versions of assay took, and
/// what runs have in common of which one syncs each write and another does not.
#[must_use]
pub fn without_syncs(primary: &str) -> String {
    primary.replace("durable.lat_ns.", "write.lat_ns.")
}
