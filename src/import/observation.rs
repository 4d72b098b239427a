//! What every format is read into before the run is built: one observation a trial, definitions kept once.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::decided::Judged;
use super::error::Problem;
use crate::record::{HostFacts, LatencyHistogram, Metric, Note, Series, SoFar, Status};

/// One trial as a file tells it, its arm and row still as names.
#[derive(Debug, Default)]
pub(super) struct Observation {
    /// Which of the inputs it came from.
    pub(super) side: usize,
    /// The number of its file among all.
    pub(super) file: usize,
    /// The arm, when the file itself names it.
    pub(super) arm: Option<String>,
    /// (factor, level) of the row.
    pub(super) rows: Vec<(String, String)>,
    /// What columns that may be clusters call it: (column, label).
    pub(super) marks: Vec<(Arc<str>, String)>,
    /// Above 0: a further attempt at the trial before it, in the same round.
    pub(super) attempt: u32,
    pub(super) started_unix_ns: u64,
    pub(super) elapsed_s: f64,
    pub(super) status: Status,
    pub(super) excluded: Option<String>,
    /// What its command ended with, if a file says it.
    pub(super) exit_code: Option<i64>,
    /// Index into [`Batch::facts`].
    pub(super) facts: Option<u32>,
    /// Index into [`Batch::metrics`], value.
    pub(super) values: Vec<(u32, f64)>,
    pub(super) histograms: Vec<LatencyHistogram>,
    pub(super) series: Vec<Series>,
    pub(super) notes: Vec<Note>,
}

impl Observation {
    pub(super) fn new(side: usize) -> Observation {
        Observation { side, ..Observation::default() }
    }
}

/// Most trials of a comparison; together they take a few hundred MB.
pub(super) const MOST_TRIALS: usize = 400_000;

/// The observations of some files, in their order, and the definitions they refer to.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) metrics: Vec<Metric>,
    metric_at: HashMap<Metric, u32>,
    pub(super) facts: Vec<HostFacts>,
    facts_at: HashMap<HostFacts, u32>,
    pub(super) observations: Vec<Observation>,
    /// Sentences about the files.
    pub(super) notes: Vec<String>,
    /// How far a run with a fixed number of rounds had come that was taken before its last.
    pub(super) so_far: Option<SoFar>,
    /// How the runs of assay were judged that became arms; each way once.
    pub(super) judged: Vec<Judged>,
    /// Names of the only sections of runs whose metrics have none.
    pub(super) only_sections: BTreeSet<String>,
    /// The name of what tells the arms apart, when a table's column does.
    pub(super) factor: Option<String>,
    /// Arms whose order the request says.
    pub(super) ordered: Vec<String>,
    /// Metrics of which nobody said what is better.
    pub(super) guessed: BTreeSet<String>,
    /// By side, what all benchmarks of a file of Go's text have behind their names; `None` for one in which they differ.
    pub(super) processors: BTreeSet<(usize, Option<String>)>,
    /// Keys of Go's text.
    pub(super) configuration: BTreeSet<String>,
    /// Names of rows that are parameters of a command.
    pub(super) parameters: BTreeSet<String>,
    /// Trials of all batches that are read for the same comparison.
    taken: Arc<AtomicUsize>,
}

impl Batch {
    /// One of several that share the room for trials.
    pub(super) fn beside(taken: &Arc<AtomicUsize>) -> Batch {
        Batch { taken: Arc::clone(taken), ..Batch::default() }
    }

    /// Adds a trial.
    pub(super) fn observe(&mut self, observation: Observation) -> Result<(), Problem> {
        if self.taken.fetch_add(1, Ordering::Relaxed) >= MOST_TRIALS {
            return Err(Problem::TooMany { limit: MOST_TRIALS });
        }
        self.observations.push(observation);
        Ok(())
    }

    pub(super) fn metric(&mut self, metric: &Metric) -> u32 {
        if let Some(at) = self.metric_at.get(metric) {
            return *at;
        }
        let at = self.metrics.len() as u32;
        self.metrics.push(metric.clone());
        self.metric_at.insert(metric.clone(), at);
        at
    }

    /// Takes the job off every metric. Returns the new index of each.
    pub(super) fn without_jobs(&mut self) -> Vec<u32> {
        self.metric_at.clear();
        let named = std::mem::take(&mut self.metrics);
        named.into_iter().map(|metric| self.metric(&Metric { job: String::new(), ..metric })).collect()
    }

    pub(super) fn facts(&mut self, facts: HostFacts) -> u32 {
        if let Some(at) = self.facts_at.get(&facts) {
            return *at;
        }
        let at = self.facts.len() as u32;
        self.facts.push(facts.clone());
        self.facts_at.insert(facts, at);
        at
    }

    pub(super) fn note(&mut self, note: String) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// Arms in the order of the request, before those that are only met.
    pub(super) fn in_order(&mut self, labels: &[String]) {
        for label in labels {
            if !self.ordered.contains(label) {
                self.ordered.push(label.clone());
            }
        }
    }

    /// What is better of this metric was guessed.
    pub(super) fn guessed(&mut self, metric: &str) {
        self.guessed.insert(metric.to_owned());
    }

    pub(super) fn judged(&mut self, way: Judged) {
        if !self.judged.contains(&way) {
            self.judged.push(way);
        }
    }

    /// Puts `later` behind this batch.
    pub(super) fn append(&mut self, later: Batch) {
        let metrics: Vec<u32> = later.metrics.iter().map(|metric| self.metric(metric)).collect();
        let facts: Vec<u32> = later.facts.into_iter().map(|facts| self.facts(facts)).collect();
        self.observations.reserve(later.observations.len());
        for mut observation in later.observations {
            for (index, _) in &mut observation.values {
                *index = metrics[*index as usize];
            }
            observation.facts = observation.facts.map(|index| facts[index as usize]);
            self.observations.push(observation);
        }
        for note in later.notes {
            self.note(note);
        }
        later.judged.into_iter().for_each(|way| self.judged(way));
        self.only_sections.extend(later.only_sections);
        self.so_far = self.so_far.or(later.so_far);
        self.factor = self.factor.take().or(later.factor);
        self.in_order(&later.ordered);
        self.guessed.extend(later.guessed);
        self.processors.extend(later.processors);
        self.parameters.extend(later.parameters);
        self.configuration.extend(later.configuration);
    }
}
