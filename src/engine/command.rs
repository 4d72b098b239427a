//! The command engine: any program as a trial.
//!
//! Enters: [`Task::command`], run without a shell in the user's own directory. Leaves: its wall time, CPU time,
//! context switches and memory, and what `--metric` patterns read from its output. It must not know what the
//! program does, nor how a pattern is read.

use super::child::{self, Program};
use super::tool;
use super::{Engine, EngineError, Probe, Task};
use crate::catalog::Patterns;
use crate::record::{FailureKind, Outcome};

/// The command engine.
#[derive(Clone, Copy, Debug, Default)]
pub struct Command;

impl Engine for Command {
    fn probe(&self) -> Result<Probe, EngineError> {
        Ok(Probe { version: concat!("command ", env!("CARGO_PKG_VERSION")).to_owned(), path: None })
    }

    /// Runs the command with the task's variables and `ASSAY_DIRECTORY` in its environment. The largest resident
    /// set, `max_rss`, is at least that of the assay process that started it: Linux counts it across exec.
    fn run(&self, task: &Task) -> Result<Outcome, EngineError> {
        if task.command.is_empty() {
            return Err(EngineError::Unsupported {
                reason: "the command engine was given no command; write it behind '--'".to_owned(),
            });
        }
        let mut wanted =
            Patterns::of(&task.patterns).map_err(|reason| EngineError::Unsupported { reason })?;
        let program = Program {
            argv: task.command.clone(),
            directory: None,
            variables: child::environment(task),
            timeout_s: task.timeout_s,
        };
        let ended = program.run(&mut |line| wanted.look_at(line))?;
        let mut samples = tool::usage(&ended);
        // What a person reads from the output under such a name is what they mean by it.
        samples.retain(|own| !task.patterns.iter().any(|pattern| pattern.metric.name == own.metric.name));
        if let Some(reason) = ended.end.trouble(&task.command[0]) {
            return Err(EngineError::Failed {
                kind: FailureKind::Passing,
                reason,
                command: program.shell_line(),
                output: ended.tail,
                so_far: samples,
            });
        }
        let (found, missing) = wanted.samples("the output");
        samples.extend(found);
        if let Some(reason) = missing {
            let (kind, command) = (FailureKind::Passing, program.shell_line());
            return Err(EngineError::Failed { kind, reason, command, output: ended.tail, so_far: samples });
        }
        Ok(Outcome { samples, ..Outcome::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::MetricPattern;

    fn trial(script: &str, patterns: &[&str]) -> Result<Outcome, EngineError> {
        let command = ["sh", "-c", script].map(str::to_owned).to_vec();
        let patterns = patterns.iter().map(|text| MetricPattern::parse(text).unwrap()).collect();
        let variables = vec![("clients".to_owned(), "8".to_owned())];
        Command.run(&Task { command, patterns, variables, directory: "/tmp/d".into(), ..Task::default() })
    }

    fn value(outcome: &Outcome, name: &str) -> f64 {
        outcome.samples.iter().find(|s| s.metric.name == name).unwrap().value
    }

    #[test]
    fn the_last_match_counts_and_units_are_converted() {
        let script =
            "echo 'lat 1 ms lat 2 ms'; echo 'lat 3.5 ms' >&2; echo done $clients in $ASSAY_DIRECTORY";
        let patterns = ["lat=lat ([0-9.]+):ms", "n=done ([0-9]+) in /tmp/d$"];
        let outcome = trial(script, &patterns).unwrap();
        assert_eq!((value(&outcome, "lat"), value(&outcome, "n")), (3.5e6, 8.0));
        assert!(value(&outcome, "runtime") > 0.0 && value(&outcome, "max_rss") > 500_000.0);
        assert_eq!(value(&trial("echo 1 2 3", &["x=([0-9])"]).unwrap(), "x"), 3.0);
    }

    /// What a program says of itself under a name that is counted, too.
    #[test]
    fn a_metric_that_a_person_names_is_the_one_of_that_name() {
        let outcome = trial("echo took 5", &["runtime=took ([0-9]+):s"]).unwrap();
        let named: Vec<f64> =
            outcome.samples.iter().filter(|s| s.metric.name == "runtime").map(|s| s.value).collect();
        assert_eq!(named, [5.0]);
    }

    #[test]
    fn failures_name_the_command_and_show_its_output() {
        let Err(EngineError::Failed { reason, command, output, so_far, .. }) =
            trial("echo 'no space'; exit 3", &[])
        else {
            panic!("it succeeded")
        };
        assert_eq!(reason, "'sh' ended with exit code 3");
        assert_eq!(command, "env clients=8 ASSAY_DIRECTORY=/tmp/d sh -c \"echo 'no space'; exit 3\"");
        assert_eq!(output, "no space");
        assert_eq!(so_far[0].metric.name, "runtime");
    }

    #[test]
    fn a_pattern_without_a_number_is_a_failure_that_names_it() {
        for (script, part) in
            [("echo b", "metric 'x' was not found"), ("echo a nan", "'nan'"), ("echo a z", "'z'")]
        {
            match trial(script, &["x=a ([a-z]+)"]) {
                Err(EngineError::Failed { reason, .. }) => assert!(reason.contains(part), "{reason}"),
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn no_command_is_unsupported() {
        assert!(matches!(Command.run(&Task::default()), Err(EngineError::Unsupported { .. })));
    }
}
