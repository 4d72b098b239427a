//! One number a line (ministat's input): each is a trial of the metric `value`. `#` starts a comment.

use crate::record::Metric;

use super::columns::ValueColumn;
use super::error::{ImportError, Problem};
use super::observation::{Batch, Observation};

pub(super) fn read(
    text: &str,
    origin: &str,
    side: usize,
    value: Option<&ValueColumn>,
    batch: &mut Batch,
) -> Result<(), ImportError> {
    let column = value.cloned().unwrap_or_else(|| ValueColumn::guessed("value"));
    if !column.better_is_said() {
        batch.note("plain numbers: less is taken as better; --value value:higher turns it round".to_owned());
    }
    let metric = batch.metric(&Metric {
        job: String::new(),
        name: column.metric_name(),
        unit: column.unit.clone(),
        better: column.better,
    });
    for (index, line) in text.lines().enumerate() {
        let bare = line.split('#').next().unwrap_or("").trim();
        if bare.is_empty() {
            continue;
        }
        let value = column.parse(bare).map_err(|problem| ImportError::at(origin, index + 1, problem))?;
        let mut observation = Observation::new(side);
        observation.values.push((metric, value));
        batch.observe(observation).map_err(|problem| ImportError::new(origin, problem))?;
    }
    if batch.observations.is_empty() {
        return Err(ImportError::new(origin, Problem::Empty));
    }
    Ok(())
}
