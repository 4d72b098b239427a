//! `hyperfine --export-json`: every element of `times` is a trial of `runtime` in seconds.
//!
//! Commands are the arms when the file stands alone, rows when several files are compared; a parameter of which a command has several
//! values is a row.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use serde::Deserialize;
use serde_json::Value;

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
    exit_codes: Option<Vec<Option<i64>>>,
    memory_usage_byte: Option<Vec<Option<f64>>>,
    parameters: Option<BTreeMap<String, Value>>,
}

impl Benchmark {
    /// Parameters and their values, as they were written.
    fn parameters(&self) -> Vec<(String, String)> {
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        self.parameters.iter().flatten().map(|(name, value)| (name.clone(), text(value))).collect()
    }
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
        let Some(times) = benchmark.times.as_ref().filter(|times| !times.is_empty()) else {
            let message = format!("'{}' has no 'times': only the averages were kept", benchmark.command);
            return Err(ImportError::new(origin, Problem::Json { format: "hyperfine JSON", message }));
        };
        let codes = benchmark.exit_codes.as_deref().unwrap_or_default();
        let memories = benchmark.memory_usage_byte.as_deref().unwrap_or_default();
        let parameters = benchmark.parameters();
        batch.parameters.extend(parameters.iter().map(|(name, _)| name.clone()));
        let usual = usual_code(codes);
        for (index, seconds) in times.iter().copied().enumerate() {
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
            observation.rows.extend_from_slice(&parameters);
            observation.elapsed_s = seconds;
            observation.values.push((batch.metric(&runtime), seconds));
            let bytes = memories.get(index).copied().flatten();
            if let Some(bytes) = bytes.filter(|bytes| bytes.is_finite()) {
                observation.values.push((batch.metric(&memory), bytes));
            }
            let code = codes.get(index).copied();
            if let Some(code) = code.filter(|code| *code != Some(0) && (code.is_none() || *code != usual)) {
                let reason = code.map_or("a signal ended it".to_owned(), |code| format!("exit code {code}"));
                observation.status = failed(&benchmark.command, reason);
            }
            observation.exit_code = code.flatten();
            batch.observe(observation).map_err(|problem| ImportError::new(origin, problem))?;
        }
    }
    if batch.observations.is_empty() {
        return Err(ImportError::new(origin, Problem::NoResults("'results' is empty".to_owned())));
    }
    batch.factor = alone.then(|| COMMAND.to_owned());
    Ok(())
}

fn failed(command: &str, reason: String) -> Status {
    let (command, output) = (command.to_owned(), String::new());
    Status::Failed { kind: FailureKind::Passing, reason, command, output }
}

/// The exit code of all runs of a command that no signal ended: hyperfine ends at the first other one than 0 unless it was told to go
/// on (`-i`), and a command of which some runs end with 0 fails in the others.
fn usual_code(codes: &[Option<i64>]) -> Option<i64> {
    // What a signal ended did not do its work, whatever hyperfine was told.
    let mut done = codes.iter().flatten().copied().filter(|code| (0..128).contains(code));
    let first = done.next()?;
    done.all(|code| code == first).then_some(first)
}

/// What can be said only when all inputs are read: which parameters and commands make rows, and whose exit codes are failures.
pub(super) fn settle(batch: &mut Batch) {
    let commands: Vec<String> = batch.observations.iter().map(command).collect();
    parameter_rows(batch);
    without_single_commands(batch);
    let mut done: HashSet<Vec<(String, String)>> = HashSet::new();
    let counts = |observation: &Observation| matches!(observation.status, Status::Done);
    for observation in batch.observations.iter().filter(|one| counts(one) && one.exit_code == Some(0)) {
        done.insert(observation.rows.clone());
    }
    let (mut ignored, mut others) = (BTreeSet::new(), BTreeSet::new());
    for (observation, command) in batch.observations.iter_mut().zip(&commands) {
        let Some(code) = observation.exit_code.filter(|code| *code != 0 && counts(observation)) else {
            continue;
        };
        if done.contains(&observation.rows) {
            let reason = format!("exit code {code}, where other runs of the same row ended with 0");
            observation.status = failed(command, reason);
            others.insert((command.clone(), code));
        } else {
            ignored.insert((command.clone(), code));
        }
    }
    for (command, code) in ignored {
        batch.note(format!(
            "'{command}' ended with exit code {code} as a rule, which hyperfine was told to ignore: its times count"
        ));
    }
    for (command, code) in others {
        batch.note(format!(
            "'{command}' ended with exit code {code} as a rule where what it is compared with ended with 0: it failed, and its times do \
             not count"
        ));
    }
}

/// The command of an observation of hyperfine's; empty of another one.
fn command(observation: &Observation) -> String {
    let row = observation.rows.iter().find(|(factor, _)| factor == COMMAND).map(|(_, command)| command);
    row.or(observation.arm.as_ref()).cloned().unwrap_or_default()
}

/// Takes away parameters that tell nothing apart: those of which each command, under which an arm is known or a row, has one value.
fn parameter_rows(batch: &mut Batch) {
    let parameters = std::mem::take(&mut batch.parameters);
    let mut values: HashMap<(usize, String, &str), &str> = HashMap::new();
    let mut varying: BTreeSet<String> = BTreeSet::new();
    for observation in &batch.observations {
        for (name, value) in observation.rows.iter().filter(|(name, _)| parameters.contains(name)) {
            let key = (observation.side, command(observation), name.as_str());
            if *values.entry(key).or_insert(value) != value {
                varying.insert(name.clone());
            }
        }
    }
    for observation in &mut batch.observations {
        observation.rows.retain(|(name, _)| !parameters.contains(name) || varying.contains(name));
    }
}

/// Commands tell nothing apart where no input has more than one.
fn without_single_commands(batch: &mut Batch) {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(texts: &[&str]) -> Batch {
        let mut batch = Batch::default();
        for (side, text) in texts.iter().enumerate() {
            read(text, "h", side, texts.len() == 1, &mut batch).unwrap();
        }
        settle(&mut batch);
        batch
    }

    fn counts(batch: &Batch) -> Vec<bool> {
        batch.observations.iter().map(|one| matches!(one.status, Status::Done)).collect()
    }

    #[test]
    fn a_command_that_fails_more_often_is_not_the_faster_one() {
        let fails = r#"{"results":[{"command":"new","times":[1,1,1,2],"exit_codes":[1,1,1,0]}]}"#;
        assert_eq!(counts(&batch(&[fails, fails])), [false, false, false, true, false, false, false, true]);
        let two = r#"{"results":[{"command":"old","times":[2,2],"exit_codes":[0,0]},
            {"command":"new","times":[1,1],"exit_codes":[1,1]}]}"#;
        let both = batch(&[two]);
        assert_eq!(counts(&both), [true, true, false, false]);
        assert!(both.notes[0].starts_with("'new' ended with exit code 1"), "{:?}", both.notes);
        // A command that ends so in both arms was meant to.
        let meant = r#"{"results":[{"command":"grep","times":[1,2],"exit_codes":[1,1]}]}"#;
        let both = batch(&[meant, meant]);
        assert_eq!(counts(&both), [true; 4]);
        assert!(both.notes[0].ends_with("its times count"), "{:?}", both.notes);
    }

    #[test]
    fn parameters_of_one_name_are_rows() {
        let text = r#"{"results":[
            {"command":"old","times":[1],"parameters":{"t":"1","size":"1m"},"memory_usage_byte":null,"exit_codes":null},
            {"command":"old","times":[2],"parameters":{"t":"8","size":"1m"},"memory_usage_byte":[null]},
            {"command":"new","times":[1],"parameters":{"t":"1","size":"1m"},"memory_usage_byte":[7]},
            {"command":"new","times":[2],"parameters":{"t":8,"size":"1m"}}]}"#;
        let rows = |batch: &Batch| -> Vec<Vec<String>> {
            let of =
                |one: &Observation| one.rows.iter().map(|(name, level)| format!("{name}={level}")).collect();
            batch.observations.iter().map(of).collect()
        };
        assert_eq!(rows(&batch(&[text])), [["t=1"], ["t=8"], ["t=1"], ["t=8"]]);
        // A command that says its parameter is told apart by its name.
        let said = r#"{"results":[{"command":"sleep 1","times":[1],"parameters":{"t":"1"}},
            {"command":"sleep 2","times":[1],"parameters":{"t":"2"}}]}"#;
        assert_eq!(rows(&batch(&[said])), [Vec::<String>::new(), Vec::new()]);
        assert_eq!(rows(&batch(&[said, said]))[1], ["command=sleep 2"]);
        let alone = r#"{"results":[{"command":"x","times":[1],"parameters":{"t":"1"}},
            {"command":"x","times":[1],"parameters":{"t":"2"}}]}"#;
        assert_eq!(rows(&batch(&[alone, alone])), [["t=1"], ["t=2"], ["t=1"], ["t=2"]]);
    }
}
