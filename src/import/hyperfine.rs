//! `hyperfine --export-json`: every element of `times` is a trial of `runtime` in seconds.
//!
//! Commands are the arms when the file stands alone, rows when several files are compared.

use std::collections::{HashMap, HashSet};

use serde::Deserialize;

use crate::record::{FailureKind, Metric, Status};
use crate::units::{Better, Unit};

use super::error::{ImportError, Problem, json_error};
use super::observation::{Batch, Observation};

/// The factor of the commands.
const COMMAND: &str = "command";

#[derive(Deserialize)]
struct Export {
    results: Vec<Benchmark>,
}

#[derive(Deserialize)]
struct Benchmark {
    command: String,
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
    let runtime = Metric::new("", "runtime", Unit::Seconds, Better::Lower);
    let memory = Metric::new("", "memory", Unit::Bytes, Better::Lower);
    for benchmark in export.results {
        let Some(times) = benchmark.times.filter(|times| !times.is_empty()) else {
            let message = format!("'{}' has no 'times': only the averages were kept", benchmark.command);
            return Err(ImportError::new(origin, Problem::Json { format: "hyperfine JSON", message }));
        };
        let usual = usual_code(&benchmark.exit_codes);
        if let Some(code) = usual.filter(|code| *code != 0) {
            batch.note(format!(
                "'{}' ended with exit code {code} as a rule, which hyperfine was told to ignore: its times count",
                benchmark.command
            ));
        }
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
            match alone {
                true => observation.arm = Some(benchmark.command.clone()),
                false => observation.rows.push((COMMAND.to_owned(), benchmark.command.clone())),
            }
            observation.elapsed_s = seconds;
            observation.values.push((batch.metric(&runtime), seconds));
            if let Some(bytes) = benchmark.memory_usage_byte.get(index).filter(|bytes| bytes.is_finite()) {
                observation.values.push((batch.metric(&memory), *bytes));
            }
            let code = benchmark.exit_codes.get(index).copied();
            if let Some(code) = code.filter(|code| *code != Some(0) && (code.is_none() || *code != usual)) {
                observation.status = Status::Failed {
                    kind: FailureKind::Passing,
                    reason: code
                        .map_or_else(|| "a signal ended it".to_owned(), |code| format!("exit code {code}")),
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
    batch.factor = alone.then(|| COMMAND.to_owned());
    Ok(())
}

/// The exit code of most runs of a command: hyperfine ends at the first other one than 0 unless it was told to go on (`-i`).
fn usual_code(codes: &[Option<i64>]) -> Option<i64> {
    let times = |code: &i64| codes.iter().filter(|other| **other == Some(*code)).count();
    // What a signal ended did not do its work, whatever hyperfine was told.
    let done = codes.iter().flatten().copied().filter(|code| (0..128).contains(code));
    done.max_by_key(times).filter(|code| 2 * times(code) > codes.len())
}

/// Commands tell nothing apart where no input has more than one.
pub(super) fn without_single_commands(batch: &mut Batch) {
    let mut of_side: HashMap<usize, HashSet<&str>> = HashMap::new();
    for observation in &batch.observations {
        let command = observation.rows.iter().find(|(factor, _)| factor == COMMAND);
        of_side.entry(observation.side).or_default().extend(command.map(|(_, command)| &**command));
    }
    if of_side.values().all(|commands| commands.len() < 2) {
        for observation in &mut batch.observations {
            observation.rows.retain(|(factor, _)| factor != COMMAND);
        }
    }
}
