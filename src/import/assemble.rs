//! Observations → a [`Run`]: names of arms and levels become indices, repeats of a cell become rounds.

use std::collections::{BTreeSet, HashMap, HashSet};

use crate::record::{
    Cell, Design, Factor, Metric, MetricDelta, Note, Run, RunState, Source, StopRule, Trial, deciding_metrics,
};

use super::clusters::{self, Clusters};
use super::error::{ImportError, Problem};
use super::go_benchmark::{self, PACKAGE};
use super::observation::{Batch, Observation};
use super::{hyperfine, option_rows, pace, starved};

/// What the request says about the run itself.
#[derive(Default)]
pub(super) struct Frame {
    /// A short name, where one input stands alone.
    pub(super) name: String,
    pub(super) labels: Vec<String>,
    pub(super) baseline: Option<String>,
    pub(super) source: String,
    pub(super) command_line: Vec<String>,
    pub(super) stop: StopRule,
    /// The smallest difference that matters in some metrics.
    pub(super) deltas: Vec<MetricDelta>,
    pub(super) primary: Option<String>,
    /// Somebody named it.
    pub(super) asked: bool,
    pub(super) clusters: Clusters,
    /// Runs of assay are among the inputs.
    pub(super) own_runs: bool,
    /// Some inputs are hyperfine's.
    pub(super) has_hyperfine: bool,
}

pub(super) fn assemble(mut batch: Batch, frame: Frame) -> Result<Run, ImportError> {
    starved::fill(&mut batch);
    let mut only = std::mem::take(&mut batch.only_sections);
    only.append(&mut drop_single_job_names(&mut batch, &frame.labels));
    let asked = frame.primary.as_deref().map(|text| without_sections(text, &only, &batch.metrics));
    let primary = asked.or_else(|| pace::primary(&batch));
    option_rows::settle(&mut batch, &frame.labels);
    go_benchmark::settle(&mut batch, &frame.clusters);
    if frame.has_hyperfine {
        hyperfine::settle(&mut batch);
    }
    let origin = frame.labels.join(", ");
    if batch.observations.iter().all(|observation| observation.values.is_empty()) {
        let why = match batch.observations.iter().find_map(|o| failure(o)) {
            Some(reason) => format!("every trial in it failed, the first with: {reason}"),
            None => "no value was found in it".to_owned(),
        };
        return Err(ImportError::new(origin, Problem::NoResults(why)));
    }
    let arms = arms(&batch, &frame)?;
    let arm = |observation: &Observation| arm_of(observation, &frame.labels).to_owned();
    clusters::settle(&mut batch, &frame.clusters, arm, frame.own_runs)
        .map_err(|problem| ImportError::new("--cluster", problem))?;
    let factors = factors(&batch, arms);
    let (cells, cell_of) = cells(&batch, &factors, &frame.labels);
    let mut repeats: Vec<u32> = vec![0; cells.len()];
    let mut trials = Vec::with_capacity(batch.observations.len());
    let mut started_unix_ns = u64::MAX;
    for (observation, cell) in batch.observations.into_iter().zip(cell_of) {
        let rounds = &mut repeats[cell as usize];
        if observation.started_unix_ns > 0 {
            started_unix_ns = started_unix_ns.min(observation.started_unix_ns);
        }
        *rounds += u32::from(observation.attempt == 0);
        trials.push(trial(observation, cell, rounds.saturating_sub(1)));
    }
    // Of a run that had not all its rounds there is no verdict, whatever it is compared with.
    let state = batch.so_far.map_or(RunState::Finished, |_| RunState::Interrupted);
    let stop = StopRule { rounds: batch.so_far.map(|so_far| so_far.of), ..frame.stop };
    let design = Design { primary, asked: frame.asked, stop, deltas: frame.deltas, ..Design::new(factors) };
    Ok(Run {
        started_unix_ns: if started_unix_ns == u64::MAX { 0 } else { started_unix_ns },
        command_line: frame.command_line,
        facts: batch.facts,
        metrics: batch.metrics,
        cells,
        trials,
        notes: batch.notes.into_iter().map(Note::from).collect(),
        ..Run::new(frame.name, Source::Imported(frame.source), state, design)
    })
}

fn failure(observation: &Observation) -> Option<&str> {
    match &observation.status {
        crate::record::Status::Failed { reason, .. } => Some(reason),
        _ => None,
    }
}

fn trial(observation: Observation, cell: u32, round: u32) -> Trial {
    Trial {
        cell,
        round,
        attempt: observation.attempt,
        started_unix_ns: observation.started_unix_ns,
        elapsed_s: observation.elapsed_s,
        facts: observation.facts,
        status: observation.status,
        excluded: observation.excluded,
        values: observation.values,
        histograms: observation.histograms,
        series: observation.series,
        notes: observation.notes,
        ..Trial::default()
    }
}

/// The arm's label of an observation.
fn arm_of<'a>(observation: &'a Observation, labels: &'a [String]) -> &'a str {
    observation.arm.as_deref().unwrap_or_else(|| labels.get(observation.side).map_or("", String::as_str))
}

/// Labels of the arms in the order met (inputs in the order given), the baseline moved to the front.
fn arms(batch: &Batch, frame: &Frame) -> Result<Vec<String>, ImportError> {
    let mut arms: Vec<String> = Vec::new();
    let mut seen: HashSet<&str> = HashSet::new();
    for observation in &batch.observations {
        let arm = arm_of(observation, &frame.labels);
        if seen.insert(arm) {
            arms.push(arm.to_owned());
        }
    }
    let place = |arm: &String| batch.ordered.iter().position(|known| known == arm);
    arms.sort_by_key(|arm| place(arm).unwrap_or(batch.ordered.len()));
    let origin = || frame.labels.join(", ");
    if let [only] = arms.as_slice() {
        return Err(ImportError::new(origin(), Problem::OneArm { arm: only.clone() }));
    }
    if let Some(label) = &frame.baseline {
        match arms.iter().position(|arm| arm == label) {
            Some(at) => arms[..=at].rotate_right(1),
            None => {
                return Err(ImportError::new(
                    "--baseline",
                    Problem::NoSuchArm { label: label.clone(), arms },
                ));
            }
        }
    }
    Ok(arms)
}

/// The arm first, then the rows' factors, levels in the order met.
fn factors(batch: &Batch, arms: Vec<String>) -> Vec<Factor> {
    let mut factors = vec![Factor::new(batch.factor.clone().unwrap_or_else(|| "arm".to_owned()), arms)];
    let mut seen: Vec<HashSet<&str>> = vec![HashSet::new()];
    for observation in &batch.observations {
        for (name, level) in &observation.rows {
            let at = factors.iter().skip(1).position(|factor| factor.name == *name).map_or_else(
                || {
                    factors.push(Factor::new(name.clone(), Vec::new()));
                    seen.push(HashSet::new());
                    factors.len() - 1
                },
                |at| at + 1,
            );
            if seen[at].insert(level) {
                factors[at].levels.push(level.clone());
            }
        }
    }
    factors.retain(|factor| factor.name != PACKAGE || factor.levels.len() > 1);
    // An observation that lacks a factor that others have stands at a level of its own.
    for factor in factors.iter_mut().skip(1) {
        let lacks =
            |observation: &Observation| !observation.rows.iter().any(|(known, _)| *known == factor.name);
        if batch.observations.iter().any(lacks) && !factor.levels.iter().any(String::is_empty) {
            factor.levels.push(String::new());
        }
    }
    factors
}

/// The cells that occur, and the cell of every observation.
fn cells(batch: &Batch, factors: &[Factor], labels: &[String]) -> (Vec<Cell>, Vec<u32>) {
    let level_at: Vec<HashMap<&str, u32>> = factors
        .iter()
        .map(|factor| {
            factor.levels.iter().enumerate().map(|(at, level)| (level.as_str(), at as u32)).collect()
        })
        .collect();
    let mut cells: Vec<Cell> = Vec::new();
    let mut cell_at: HashMap<Vec<u32>, u32> = HashMap::new();
    let cell_of = batch.observations.iter().map(|observation| {
        let mut levels = Vec::with_capacity(factors.len());
        for (at, factor) in factors.iter().enumerate() {
            let level = if at == 0 {
                arm_of(observation, labels)
            } else {
                observation.rows.iter().find(|(name, _)| *name == factor.name).map_or("", |(_, level)| level)
            };
            levels.push(level_at[at].get(level).copied().unwrap_or(0));
        }
        *cell_at.entry(levels).or_insert_with_key(|levels| {
            cells.push(Cell { levels: levels.clone() });
            (cells.len() - 1) as u32
        })
    });
    let cell_of = cell_of.collect();
    (cells, cell_of)
}

/// When no input has more than one job, its name tells nothing apart: the values belong to the whole trial. Jobs that
/// are named differently in each input are compared all the same, and the names are noted. Returns the names.
fn drop_single_job_names(batch: &mut Batch, labels: &[String]) -> BTreeSet<String> {
    let mut jobs: Vec<BTreeSet<&str>> = vec![BTreeSet::new(); labels.len()];
    let mut met: HashSet<(usize, u32)> = HashSet::new();
    for observation in &batch.observations {
        for (metric, _) in &observation.values {
            if met.insert((observation.side, *metric)) {
                jobs[observation.side].insert(&batch.metrics[*metric as usize].job);
            }
        }
    }
    if jobs.iter().any(|of_side| of_side.len() > 1)
        || jobs.iter().all(|of_side| of_side.iter().all(|job| job.is_empty()))
    {
        return BTreeSet::new();
    }
    let names: BTreeSet<String> = jobs.iter().flatten().map(|job| (*job).to_owned()).collect();
    if names.len() > 1 {
        let list: Vec<String> = jobs
            .iter()
            .zip(labels)
            .map(|(of_side, label)| format!("'{}' in {label}", of_side.iter().copied().collect::<String>()))
            .collect();
        let note = format!(
            "the jobs have different names and are compared as each input's only one: {}",
            list.join(", ")
        );
        batch.notes.push(note);
    }
    let at = batch.without_jobs();
    for observation in &mut batch.observations {
        for (metric, _) in &mut observation.values {
            *metric = at[*metric as usize];
        }
        for histogram in &mut observation.histograms {
            histogram.job.clear();
        }
        for series in &mut observation.series {
            series.job.clear();
        }
    }
    names
}

/// `sync.lat_ns.p99` of `wal:sync.lat_ns.p99` where wal was the only section, by whose name no metric goes.
pub(super) fn without_sections(primary: &str, only: &BTreeSet<String>, metrics: &[Metric]) -> String {
    let is_metric = |name: &str| metrics.iter().any(|metric| metric.name == name);
    let has_metrics = |section: &str| metrics.iter().any(|metric| metric.job == section);
    let wish = |(section, metric): (Option<&str>, &str)| match section {
        Some(section) if !only.contains(section) || has_metrics(section) => format!("{section}:{metric}"),
        _ => metric.to_owned(),
    };
    let mut wishes: Vec<String> = Vec::new();
    for wish in deciding_metrics(primary, is_metric).into_iter().map(wish) {
        if !wishes.contains(&wish) {
            wishes.push(wish);
        }
    }
    wishes.join(",")
}
