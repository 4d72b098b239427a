//! A run judged with what its store knows besides: the noise floor of A/A runs, the limits that a probe has measured.
//!
//! Enters: a run, wishes, the store. Leaves: its analysis; or the run that watched its cells.

use std::collections::BTreeSet;

use super::probe;
use crate::analyse::{self, Analysis, NoiseFloor};
use crate::import;
use crate::record::{Run, RunState, Source};
use crate::store::{RunSummary, Store};

/// A/A runs looked at for a noise floor, the latest first.
const MOST_AA_RUNS: usize = 20;
/// Facts that make a host the same one for a noise floor.
const SAME_HOST: [&str; 10] = [
    "cpu.model", "cpu.count", "cpu.governor", "device", "device.kind", "device.size", "fs.type",
    "kernel.release", "queue.scheduler", "virt",
];

/// The run of the store that watched the cells of `run` with the most observers and came to its end, of several the newest. What cannot
/// be read is none.
pub(super) fn watched_run_of(store: &Store, run: &Run) -> Option<Run> {
    let runs = store.list().ok()?;
    let explains = |summary: &&RunSummary| {
        summary.state == RunState::Finished
            && summary.explains.as_ref().is_some_and(|explains| explains.is(run))
    };
    let observers = |summary: &RunSummary| summary.explains.as_ref().map_or(0, |by| by.observers.len());
    let best = runs.iter().filter(explains).max_by_key(|summary| (observers(summary), summary.id))?;
    store.load_for_report(best.id).ok()
}

/// What is wished, in the run's own names.
pub(super) fn fitted(wishes: &analyse::Options, run: &Run) -> analyse::Options {
    let primary = wishes.primary.as_ref().map(|primary| import::primary_of(run, primary));
    let mut delta = wishes.delta.clone();
    delta.of_metrics.iter_mut().for_each(|own| own.metric = import::primary_of(run, &own.metric));
    analyse::Options { primary, delta, ..wishes.clone() }
}

/// Analyses a run, with the noise floor where the store has an A/A run of the same host and job, and with limits where it has a probe.
pub(super) fn judge(run: &Run, wishes: &analyse::Options, store: Option<&Store>) -> Analysis {
    let wishes = &fitted(wishes, run);
    let mut analysis = analyse::analyse(run, wishes);
    if run.aa {
        analysis.noise_floor = analyse::noise_floor(run, wishes);
        if let Some((floor, store)) = analysis.noise_floor.as_mut().zip(store) {
            floor.count_all(analyse::aa_claims(&aa_runs(store)));
        }
    } else if run.source == Source::Measured {
        let primary = analysis.comparisons.iter().find(|c| c.role == analyse::Role::Primary);
        let metric = primary.map(|comparison| comparison.metric.name.clone());
        let stop = run.design.stop;
        let floor = store.zip(metric).and_then(|(store, metric)| noise_floor(run, store, &metric));
        analysis.noise_floor = floor.map(|floor| floor.of_rounds(stop.rounds.unwrap_or(stop.max_rounds)));
    }
    if run.source == Source::Measured {
        analysis.limits = analyse::limits(run, wishes, &store.map(probe::stored).unwrap_or_default());
    }
    analysis
}

/// The noise floor of the A/A runs of the same host and job, the latest first; what cannot be read is not one.
fn noise_floor(run: &Run, store: &Store, metric: &str) -> Option<NoiseFloor> {
    let runs = aa_runs(store);
    let wishes = analyse::Options { primary: Some(metric.to_owned()), ..analyse::Options::default() };
    let same = runs.iter().filter(|aa| same_host_and_job(run, aa));
    let mut floor = analyse::pooled_noise_floor(same, &wishes).filter(|f| f.metric.name == metric)?;
    floor.count_all(analyse::aa_claims(&runs));
    Some(floor)
}

/// The A/A runs of a store, the latest first; what cannot be read is left out.
fn aa_runs(store: &Store) -> Vec<Run> {
    let summaries: Vec<RunSummary> =
        store.list().unwrap_or_default().into_iter().filter(|summary| summary.aa).collect();
    let latest = summaries.iter().rev().take(MOST_AA_RUNS);
    latest.filter_map(|summary| store.load_run(summary.id).ok()).collect()
}

fn same_host_and_job(run: &Run, aa: &Run) -> bool {
    let (Some(facts), Some(others)) = (run.facts.first(), aa.facts.first()) else { return false };
    run.engine == aa.engine
        && run.job_text == aa.job_text
        && command(run) == command(aa)
        && baseline(run) == baseline(aa)
        && SAME_HOST.iter().all(|name| facts.get(name) == others.get(name))
}

/// The command that a run measures instead of a job: then it is the job.
fn command(run: &Run) -> Option<&serde_json::Value> {
    run.experiment.get("command")
}

/// What trials of the baseline set, in any order: what all cells have, and the first level of each factor. That is all an A/A run knows of.
fn baseline(run: &Run) -> BTreeSet<String> {
    let of_all =
        ["target", "variables", "tools"].into_iter().filter_map(|name| run.experiment.get(name)).cloned();
    let factors = run.experiment.get("factors").and_then(serde_json::Value::as_array);
    let set = |factor: &serde_json::Value| factor.pointer("/levels/0/set")?.as_array().cloned();
    let of_factors = factors.into_iter().flatten().filter_map(set).flatten();
    of_all.chain(of_factors).map(|value| value.to_string()).collect()
}
