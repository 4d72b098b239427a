//! What the programs of engines print: one observation a run of the tool. What it says it was asked for (clients,
//! threads, size) is a row, so that different loads are never taken for repeats; its version is a fact.

use crate::catalog::EngineKind;
use crate::record::HostFacts;

use super::error::{ImportError, Problem};
use super::observation::{Batch, Observation};

pub(super) fn read(
    engine: EngineKind,
    text: &str,
    origin: &str,
    side: usize,
    batch: &mut Batch,
) -> Result<(), ImportError> {
    let Some(output) = engine.descriptor().output else {
        let looks_like = format!("engine {} prints nothing that is read", engine.name());
        return Err(ImportError::new(origin, Problem::UnknownFormat { looks_like }));
    };
    let trials = (output.read)(text).map_err(|error| ImportError {
        origin: origin.to_owned(),
        line: error.line,
        problem: Problem::Tool(error.message),
    })?;
    for trial in trials {
        let mut observation = Observation::new(side);
        if !trial.version.is_empty() {
            let mut facts = HostFacts::default();
            facts.set("tool.version", trial.version);
            observation.facts = Some(batch.facts(facts));
        }
        observation.rows = trial.settings;
        let samples = &trial.outcome.samples;
        observation.values =
            samples.iter().map(|sample| (batch.metric(&sample.metric), sample.value)).collect();
        observation.series = trial.outcome.series;
        observation.notes = trial.outcome.notes;
        batch.observe(observation).map_err(|problem| ImportError::new(origin, problem))?;
    }
    Ok(())
}
