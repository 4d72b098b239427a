//! assay's own exports (`assay export --format json`): the record as it is, its indices checked so that nobody behind
//! has to; or, beside other inputs, its trials as one arm.

use serde::Deserialize;

use crate::record::{HostFacts, RECORD_VERSION, Run, SoFar};

use super::clusters::OWN_RUN;
use super::decided::Judged;
use super::error::{ImportError, Problem, json_error};
use super::observation::{Batch, Observation};
use super::what_was_run;

const FORMAT: &str = "assay export";

#[derive(Deserialize)]
struct Version {
    version: u64,
}

pub(super) fn read(text: &str, origin: &str) -> Result<Run, ImportError> {
    let version: Version = serde_json::from_str(text).map_err(|error| json_error(origin, FORMAT, &error))?;
    if version.version > u64::from(RECORD_VERSION) {
        let problem = Problem::NewerVersion { found: version.version, known: RECORD_VERSION };
        return Err(ImportError::new(origin, problem));
    }
    let run: Run = serde_json::from_str(text).map_err(|error| json_error(origin, FORMAT, &error))?;
    match run.check() {
        Ok(()) => Ok(run),
        Err(message) => Err(ImportError::new(origin, Problem::Json { format: FORMAT, message })),
    }
}

/// The trials of a run as one arm: every factor with more than one level becomes part of the row. Where a baseline was compared with
/// itself (`--aa`), both of its arms are one: what was measured today, for the comparison with the same after a change.
pub(super) fn as_arm(mut run: Run, origin: &str, side: usize, batch: &mut Batch) -> Result<(), Problem> {
    if run.design.bisects.is_some() {
        return Err(Problem::Search);
    }
    if let Some(so_far) = run.so_far() {
        let name = run.id.map_or_else(|| "a run".to_owned(), |id| format!("run {id}"));
        let SoFar { rounds, of } = so_far;
        batch.note(format!("{name} has {rounds} of its {of} rounds so far: no verdict before the last"));
        // Both arms of an A/A run are one here, with twice as many repeats.
        let repeats = if run.aa { 2 } else { 1 };
        batch.so_far = batch
            .so_far
            .or(Some(SoFar { rounds: rounds.saturating_mul(repeats), of: of.saturating_mul(repeats) }));
    }
    if let Some(why) = run.busy_machine() {
        let name = run.id.map_or_else(|| origin.to_owned(), |id| format!("run {id}"));
        batch.note(format!("{name} began on a busy machine: {why}"));
    }
    batch.judged(Judged::of(&run.design));
    batch.only_sections.extend(what_was_run::only_section(&run.experiment));
    let metrics: Vec<u32> = run.metrics.iter().map(|metric| batch.metric(metric)).collect();
    // What was run is a difference of two runs, as far as no factor says it.
    let what = what_was_run::facts(&run.experiment, &run.design.factors);
    let with_what = |mut facts: HostFacts| {
        for (name, value) in what.iter() {
            if facts.get(name).is_none() {
                facts.set(name, value);
            }
        }
        facts
    };
    let facts: Vec<u32> = run.facts.into_iter().map(|facts| batch.facts(with_what(facts))).collect();
    for note in run.notes {
        batch.note(note.text);
    }
    // Rows in the order of the design, not in that of the random rounds; time stamps keep the real order. A resumed run may have
    // tried again long after the first attempt.
    run.trials.sort_by_key(|trial| (trial.cell, trial.round, trial.attempt));
    // A table says neither number nor start.
    let identity = match run.id {
        Some(id) => format!("{id} of {}", run.started_unix_ns / 1_000_000_000),
        None => origin.to_owned(),
    };
    let mut last = None;
    for trial in run.trials {
        let cell = &run.cells[trial.cell as usize];
        let mut observation = Observation::new(side);
        let place = Some((trial.cell, trial.round));
        observation.attempt = if place == last { trial.attempt } else { 0 };
        last = place;
        for (factor, level) in run.design.factors.iter().zip(&cell.levels) {
            if factor.levels.len() > 1 && !run.aa {
                observation.rows.push((factor.name.clone(), factor.levels[*level as usize].clone()));
            }
        }
        observation.marks = vec![(OWN_RUN.into(), identity.clone())];
        observation.started_unix_ns = trial.started_unix_ns;
        observation.elapsed_s = trial.elapsed_s;
        observation.status = trial.status;
        observation.excluded = trial.excluded;
        observation.facts = trial.facts.or(Some(0)).and_then(|index| facts.get(index as usize).copied());
        observation.values =
            trial.values.into_iter().map(|(metric, value)| (metrics[metric as usize], value)).collect();
        observation.histograms = trial.histograms;
        observation.series = trial.series;
        observation.notes = trial.notes;
        batch.observe(observation)?;
    }
    Ok(())
}
