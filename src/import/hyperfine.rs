//! `hyperfine --export-json`: every element of `times` is a trial of `runtime` in seconds.
//!
//! Commands are the arms when the file stands alone, rows when several files are compared.

use serde::Deserialize;

use crate::record::{FailureKind, Metric, Status};
use crate::units::{Better, Unit};

use super::error::{ImportError, Problem, json_error};
use super::observation::{Batch, Observation};

#[derive(Deserialize)]
struct Export {
    results: Vec<Benchmark>,
}

#[derive(Deserialize)]
struct Benchmark {
    command: String,
    #[serde(default)]
    times: Option<Vec<f64>>,
    #[serde(default)]
    exit_codes: Vec<Option<i64>>,
    #[serde(default)]
    memory_usage_byte: Vec<f64>,
}

pub(super) fn read(
    text: &str,
    origin: &str,
    side: usize,
    alone: bool,
    batch: &mut Batch,
) -> Result<(), ImportError> {
    let export: Export =
        serde_json::from_str(text).map_err(|error| json_error(origin, "hyperfine JSON", &error))?;
    let runtime =
        Metric { job: String::new(), name: "runtime".to_owned(), unit: Unit::Seconds, better: Better::Lower };
    let memory =
        Metric { job: String::new(), name: "memory".to_owned(), unit: Unit::Bytes, better: Better::Lower };
    let several = export.results.len() > 1;
    for benchmark in export.results {
        let Some(times) = benchmark.times.filter(|times| !times.is_empty()) else {
            let message = format!("'{}' has no 'times': only the averages were kept", benchmark.command);
            return Err(ImportError::new(origin, Problem::Json { format: "hyperfine JSON", message }));
        };
        for (index, seconds) in times.into_iter().enumerate() {
            if seconds < 0.0 || !seconds.is_finite() {
                let (what, text) =
                    (format!("times[{index}] of '{}'", benchmark.command), seconds.to_string());
                return Err(ImportError::new(
                    origin,
                    Problem::Value { what, text, reason: "which no run time can be" },
                ));
            }
            let mut observation = Observation::new(side);
            if alone {
                observation.arm = Some(benchmark.command.clone());
            } else if several {
                observation.rows.push(("command".to_owned(), benchmark.command.clone()));
            }
            observation.elapsed_s = seconds;
            observation.values.push((batch.metric(&runtime), seconds));
            if let Some(bytes) = benchmark.memory_usage_byte.get(index).filter(|bytes| bytes.is_finite()) {
                observation.values.push((batch.metric(&memory), *bytes));
            }
            if let Some(Some(code)) = benchmark.exit_codes.get(index).filter(|code| **code != Some(0)) {
                observation.status = Status::Failed {
                    kind: FailureKind::Passing,
                    reason: format!("exit code {code}"),
                    command: benchmark.command.clone(),
                    output: String::new(),
                };
            }
            batch.observe(observation).map_err(|problem| ImportError::new(origin, problem))?;
        }
    }
    if batch.observations.is_empty() {
        return Err(ImportError::new(origin, Problem::NoResults("'results' is empty".to_owned())));
    }
    batch.factor = alone.then(|| "command".to_owned());
    Ok(())
}
