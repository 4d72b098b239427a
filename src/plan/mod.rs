//! What will be run: factors × levels → cells → rounds in random order, each led into by a trial that is not judged.
//!
//! Enters: an [`Experiment`], a seed, the directory for files. Leaves: a [`Plan`]: every cell resolved so far that an agent
//! needs nothing else, the order of every round, what is written and how long it can take. Pure and seeded: the same
//! input gives the same plan, which `--resume` relies on. It must not know engines' insides, records or the host.

mod bind;
mod cell;
mod cell_spec;
mod cell_target;
mod chosen;
mod deciding;
mod directions;
mod duration;
mod error;
mod few_operations;
mod metric_names;
mod observed_names;
mod order;
mod outlook;
mod same_levels;
mod two_meanings;

pub use cell_spec::{CellSpec, SimulatedSpec};
pub use duration::Expected;
pub use error::PlanError;
pub use few_operations::TooFewOperations;
pub use metric_names::MetricNames;
pub use outlook::{PlannedFile, Writes};
pub use same_levels::{SameLevels, ignored_depths};

use std::path::Path;

use crate::catalog::{MetricDelta, StopRule};
use crate::experiment::Experiment;
use crate::workload::FioEffects;

/// A factor with its levels' labels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedFactor {
    /// Its name.
    pub name: String,
    /// Labels, the baseline first.
    pub levels: Vec<String>,
    /// The keys that its levels set, where they are others than its name.
    pub sets: Vec<String>,
}

/// All that will be run.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Seed of every random choice.
    pub seed: u64,
    /// What varies; under `--aa` the one factor `a/a`.
    pub factors: Vec<PlannedFactor>,
    /// Index of the compared factor.
    pub compare: usize,
    /// Every combination of levels, the last factor varying fastest.
    pub cells: Vec<CellSpec>,
    /// When it ends.
    pub stop: StopRule,
    /// The smallest difference that matters in some metrics.
    pub deltas: Vec<MetricDelta>,
    /// Whether the baseline is compared with itself.
    pub aa: bool,
    /// A trial of the cell that goes first, which is not judged, leads into each round.
    pub lead_in: bool,
    /// The metric that decides, if one is named.
    pub primary: Option<String>,
    /// Somebody named it.
    pub asked: bool,
    /// Metrics shown besides.
    pub show: Vec<String>,
    /// Sections with a rate or pauses in any cell.
    pub paced: Vec<String>,
    /// All jobs of all cells ask for direct I/O.
    pub direct: bool,
    /// Files the trials use; empty when `files_known` is false and nothing could be told.
    pub files: Vec<PlannedFile>,
    /// Whether `files` is complete: false for commands and for jobs that only fio understands.
    pub files_known: bool,
    /// What fio writes to, deletes and executes besides `files`.
    pub fio: FioEffects,
    /// Programs that must be found: `fio`, `sh`, a command's.
    pub tools: Vec<String>,
}

/// Fewest rounds that are ever judged: fewer need no lead-in.
const FEWEST_JUDGED: u32 = 4;

impl Plan {
    /// Binds every key, crosses the levels and resolves every cell. Each works in a directory of its own called `own`,
    /// below the one it names, else the experiment's, else `base`; below that last one are relative paths of jobs.
    ///
    /// # Errors
    /// Keys that name nothing, values that cannot be, jobs the engine cannot take: all at once.
    pub fn new(experiment: &Experiment, seed: u64, base: &Path, own: &str) -> Result<Plan, PlanError> {
        let cells = cell::resolve(experiment, base, own)?;
        let outlook = outlook::Outlook::of(experiment, &cells);
        let factors = if experiment.aa {
            let levels = vec!["A".to_owned(), "A'".to_owned()];
            vec![PlannedFactor { name: "a/a".to_owned(), levels, sets: Vec::new() }]
        } else {
            let labels = |factor: &crate::experiment::Factor| PlannedFactor {
                name: factor.name.clone(),
                levels: factor.levels.iter().map(|level| level.label.clone()).collect(),
                sets: set_besides_its_name(factor),
            };
            experiment.factors.iter().map(labels).collect()
        };
        let names = MetricNames::of(experiment, &cells);
        let in_results = |asked: &String| {
            names.as_ref().map_or_else(|| asked.clone(), |names| names.without_the_only_section(asked))
        };
        let asked = experiment.primary.as_ref().map(in_results);
        let own = |own: &MetricDelta| MetricDelta { metric: in_results(&own.metric), ..*own };
        let deltas = experiment.deltas.iter().map(own).collect();
        let primary = asked.or_else(|| deciding::primary(&cells));
        let (paced, direct) = (deciding::paced(&cells), deciding::direct(&cells));
        let lead_in = leads_in(experiment, &cells);
        Ok(Plan {
            seed,
            factors,
            compare: if experiment.aa { 0 } else { experiment.compare },
            cells,
            stop: experiment.stop,
            deltas,
            aa: experiment.aa,
            lead_in,
            primary,
            asked: experiment.primary.is_some(),
            show: experiment.show.clone(),
            paced,
            direct,
            files: outlook.files,
            files_known: outlook.files_known,
            fio: outlook.fio,
            tools: outlook.tools,
        })
    }

    /// Pairs of cells that differ in one factor alone, with that factor and its two levels.
    pub(crate) fn neighbours(&self) -> impl Iterator<Item = (usize, [u32; 2], [&CellSpec; 2])> {
        let pairs = self
            .cells
            .iter()
            .enumerate()
            .flat_map(|(at, one)| self.cells[at + 1..].iter().map(move |other| [one, other]));
        pairs.filter_map(|[one, other]| {
            let mut differ = (0..one.levels.len()).filter(|f| one.levels[*f] != other.levels[*f]);
            let factor = differ.next().filter(|_| differ.next().is_none())?;
            Some((factor, [one.levels[factor], other.levels[factor]], [one, other]))
        })
    }

    /// The cells of a round (from 0) in the order they run, as indices into `cells`: a random order, drawn for each round.
    #[must_use]
    pub fn order(&self, round: u32) -> Vec<usize> {
        order::order(self.seed, self.cells.len(), round)
    }

    /// The cell of the trial that leads into a round, which is the cell that goes first, and that trial's seed. What the trial
    /// before left behind then falls on nothing that is judged, and every cell follows each with the same chance. Source:
    /// docs/METHODOLOGY.md, "What the trial before leaves behind".
    #[must_use]
    pub fn lead_in(&self, round: u32) -> Option<(usize, u64)> {
        let first = *self.order(round).first().filter(|_| self.lead_in)?;
        Some((first, order::lead_in_seed(self.seed, round)))
    }

    /// Seed of one trial: another for every round, cell and attempt.
    #[must_use]
    pub fn trial_seed(&self, round: u32, cell: usize, attempt: u32) -> u64 {
        order::trial_seed(self.seed, round, cell, attempt)
    }

    /// Rounds after which the run ends in any case.
    #[must_use]
    pub fn rounds_at_most(&self) -> u32 {
        self.stop.rounds.unwrap_or(self.stop.max_rounds)
    }

    /// Trials after which the run ends in any case, retries and lead-ins aside.
    #[must_use]
    pub fn trials_at_most(&self) -> u64 {
        u64::from(self.rounds_at_most()) * self.cells.len() as u64
    }
}

/// The keys that a factor's levels set; none where they only set what it is called.
fn set_besides_its_name(factor: &crate::experiment::Factor) -> Vec<String> {
    let mut keys: Vec<String> = Vec::new();
    for assignment in factor.levels.iter().flat_map(|level| &level.set) {
        let is_its_name =
            factor.name == assignment.key || factor.name.ends_with(&format!(".{}", assignment.key));
        if !is_its_name && !keys.contains(&assignment.key) {
            keys.push(assignment.key.clone());
        }
    }
    keys
}

/// Whether a trial leads into each round: not where it was declined, where nothing will be judged, and where the cells have
/// machines of their own, which are booted for each round.
fn leads_in(experiment: &Experiment, cells: &[CellSpec]) -> bool {
    let judged = experiment.stop.rounds.is_none_or(|rounds| rounds >= FEWEST_JUDGED);
    let one_machine = cells.windows(2).all(|pair| pair[0].target.guest == pair[1].target.guest);
    !experiment.no_lead_in && judged && one_machine && cells.len() > 1
}

#[cfg(test)]
mod tests;
