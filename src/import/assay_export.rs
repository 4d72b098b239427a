//! assay's own exports (`assay export --format json`): the record as it is, its indices checked so that nobody behind
//! has to; or, beside other inputs, its trials as one arm.

use serde::Deserialize;

use crate::record::{RECORD_VERSION, Run, SoFar};

use super::error::{ImportError, Problem, json_error};
use super::observation::{Batch, Observation};

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
    match fault(&run) {
        None => Ok(run),
        Some(message) => Err(ImportError::new(origin, Problem::Json { format: FORMAT, message })),
    }
}

/// The first index that points nowhere.
fn fault(run: &Run) -> Option<String> {
    let design = &run.design;
    let Some(compared) = design.factors.get(design.compare) else {
        return Some(format!(
            "design.compare is {}, but there are {} factors",
            design.compare,
            design.factors.len()
        ));
    };
    if compared.levels.is_empty() {
        return Some(format!("factor '{}' has no levels", compared.name));
    }
    for (index, cell) in run.cells.iter().enumerate() {
        let fits = cell.levels.len() == design.factors.len()
            && cell
                .levels
                .iter()
                .zip(&design.factors)
                .all(|(level, factor)| (*level as usize) < factor.levels.len());
        if !fits {
            return Some(format!("cell {index} has levels that its factors do not have"));
        }
    }
    for (index, trial) in run.trials.iter().enumerate() {
        if trial.cell as usize >= run.cells.len() {
            return Some(format!("trial {index} belongs to cell {}, which is not there", trial.cell));
        }
        if trial.facts.is_some_and(|facts| facts as usize >= run.facts.len()) {
            return Some(format!("trial {index} points at facts that are not there"));
        }
        if let Some((metric, _)) =
            trial.values.iter().find(|(metric, _)| *metric as usize >= run.metrics.len())
        {
            return Some(format!("trial {index} has a value of metric {metric}, which is not there"));
        }
    }
    None
}

/// The trials of a run as one arm: every factor with more than one level becomes part of the row.
pub(super) fn as_arm(mut run: Run, side: usize, batch: &mut Batch) -> Result<(), Problem> {
    if let Some(so_far) = run.so_far() {
        let name = run.id.map_or_else(|| "a run".to_owned(), |id| format!("run {id}"));
        let SoFar { rounds, of } = so_far;
        batch.note(format!("{name} has {rounds} of its {of} rounds so far: no verdict before the last"));
        batch.so_far = batch.so_far.or(Some(so_far));
    }
    let metrics: Vec<u32> = run.metrics.iter().map(|metric| batch.metric(metric)).collect();
    let facts: Vec<u32> = run.facts.into_iter().map(|facts| batch.facts(facts)).collect();
    for note in run.notes {
        batch.note(note.text);
    }
    // Rows in the order of the design, not in that of the random rounds; time stamps keep the real order.
    run.trials.sort_by_key(|trial| trial.cell);
    for trial in run.trials {
        let cell = &run.cells[trial.cell as usize];
        let mut observation = Observation::new(side);
        for (factor, level) in run.design.factors.iter().zip(&cell.levels) {
            if factor.levels.len() > 1 {
                observation.rows.push((factor.name.clone(), factor.levels[*level as usize].clone()));
            }
        }
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
