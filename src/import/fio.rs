//! fio JSON: one observation a document; the options it was run with become facts, so that arms that differ in one
//! undeclared are named, and options that vary inside an arm become rows (in `assemble`).

use crate::record::{FailureKind, FioJsonError, HostFacts, Status, outcome_from_fio_json};

use super::error::{ImportError, Problem};
use super::observation::{Batch, Observation};

/// Prefix of facts that are fio options.
pub(super) const OPTION: &str = "fio.";

/// Options that name outputs: they may differ from file to file without being a row or a difference.
const OUTPUTS: [&str; 11] = [
    "name", "randseed", "output", "output-format", "write_bw_log", "write_lat_log", "write_iops_log",
    "write_hist_log", "write_iolog", "description", "filename_format",
];
/// Where it was done: files of several places may be repeats, and arms that differ in it are told.
pub(super) const PLACES: [&str; 2] = ["filename", "directory"];

pub(super) fn read(text: &str, origin: &str, side: usize, batch: &mut Batch) -> Result<(), ImportError> {
    let trials = outcome_from_fio_json(text).map_err(|error| {
        let line = match &error {
            FioJsonError::Truncated { line } => Some(*line),
            _ => None,
        };
        ImportError { origin: origin.to_owned(), line, problem: Problem::Fio(error) }
    })?;
    for trial in trials {
        let mut facts = HostFacts::default();
        if !trial.version.is_empty() {
            facts.set("fio.version", trial.version.clone());
        }
        for (job, option, value) in &trial.options {
            if OUTPUTS.contains(&option.as_str()) {
                continue;
            }
            if PLACES.contains(&option.as_str()) {
                facts.set(option.clone(), value);
                continue;
            }
            // A flag without a value is set.
            let value = if value.is_empty() { "1" } else { value };
            if job.is_empty() || trial.jobs.len() == 1 {
                facts.set(format!("{OPTION}{option}"), value);
            } else {
                facts.set(format!("{OPTION}{option}[{job}]"), value);
            }
        }
        let mut observation = Observation::new(side);
        observation.facts = Some(batch.facts(facts));
        observation.started_unix_ns = trial.started_unix_ns;
        observation.elapsed_s = trial.elapsed_s;
        if let Some(reason) = trial.error {
            observation.status = Status::failed(FailureKind::Passing, reason);
        }
        observation.values =
            trial.outcome.samples.iter().map(|sample| (batch.metric(&sample.metric), sample.value)).collect();
        observation.values.shrink_to_fit();
        observation.histograms = trial.outcome.histograms;
        observation.notes = trial.outcome.notes;
        batch.observe(observation).map_err(|problem| ImportError::new(origin, problem))?;
    }
    Ok(())
}
