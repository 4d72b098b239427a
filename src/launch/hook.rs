//! The hooks around a trial: shell commands that make something ready or clean up, and may give metrics and files back.
//!
//! Enters: a hook's command and the request it belongs to. Leaves: what it gave back and what it printed, or the answer that it
//! failed. What the command does is its own affair.

use std::io::ErrorKind;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::PoisonError;

use rustix::process::Signal;

use super::endings::signal_name;
use super::hook_files::{FILES_VARIABLE, FilesPlace, output_file};
use super::hook_metrics::{self, METRICS_VARIABLE};
use super::last_duty::STARTS;
use super::{Answer, Request, local};
use crate::catalog::Patterns;
use crate::catalog::Runs;
use crate::host::{end_children, own_children};
use crate::record::{FailureKind, KeptFile, Note, Outcome, Sample};

/// Its name in the work directory.
const METRICS_FILE: &str = ".assay-hook-metrics";

/// What hooks gave back.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Given {
    samples: Vec<Sample>,
    notes: Vec<String>,
    files: Vec<KeptFile>,
    /// What they printed, one after another.
    output: String,
}

impl Given {
    /// Adds what another hook of the same trial gave; where both name a metric or a file, the later one counts.
    pub(super) fn add(&mut self, other: Given) {
        self.notes.extend(other.notes);
        self.output.push_str(&other.output);
        for sample in other.samples {
            match self.samples.iter_mut().find(|known| known.metric.name == sample.metric.name) {
                Some(known) => {
                    self.notes
                        .push(format!("both hooks give {}: the later value counts", sample.metric.name));
                    *known = sample;
                }
                None => self.samples.push(sample),
            }
        }
        for file in other.files {
            match self.files.iter_mut().find(|known| known.name == file.name) {
                Some(known) => {
                    self.notes.push(format!("both hooks give the file {}: the later one is kept", file.name));
                    *known = file;
                }
                None => self.files.push(file),
            }
        }
    }

    /// The files, which are kept whatever came of the trial.
    pub(super) fn take_files(&mut self) -> Vec<KeptFile> {
        std::mem::take(&mut self.files)
    }

    /// Puts the rest into what came of the trial, with the metrics that `--metric` finds in what hooks printed. A metric that the trial has
    /// already stays as it is.
    ///
    /// # Errors
    /// [`Answer::Failed`]: one was not found.
    pub(super) fn join(self, request: &Request, outcome: &mut Outcome) -> Result<(), Answer> {
        outcome.samples.extend(self.samples);
        outcome.notes.extend(self.notes.into_iter().map(Note::from));
        // A command's own output is what its patterns are for.
        if request.engine.descriptor().runs == Runs::Command || request.task.patterns.is_empty() {
            return Ok(());
        }
        let failed = |reason: String| Answer::Failed {
            kind: FailureKind::Passing,
            reason,
            command: String::new(),
            output: self.output.clone(),
            so_far: outcome.samples.clone(),
        };
        let mut patterns = Patterns::of(&request.task.patterns).map_err(&failed)?;
        self.output.lines().for_each(|line| patterns.look_at(line));
        let (found, missing) = patterns.samples("the hooks' output");
        if let Some(reason) = missing {
            return Err(failed(reason));
        }
        for sample in found {
            let name = &sample.metric.name;
            if outcome.samples.iter().any(|known| known.metric.name == *name) {
                let told = format!("the trial has a metric {name}: the one of --metric is left out");
                outcome.notes.push(told.into());
            } else {
                outcome.samples.push(sample);
            }
        }
        Ok(())
    }
}

/// Runs a hook and reads what it leaves.
///
/// # Errors
/// [`Answer::Failed`] with its output. Metrics and files that cannot be read are notes.
pub(super) fn run(which: &str, script: &str, request: &Request) -> Result<Given, Answer> {
    let setup = request.target.setup.as_ref();
    let work = setup.map_or(&request.target.directory, |setup| &setup.work);
    let place = work.join(METRICS_FILE);
    // Where one cannot be made its variable is not set, and that is said if nothing else is wrong.
    let made = fresh(&place);
    let files = FilesPlace::make(work, which);
    let mut variables = Vec::new();
    variables.extend(made.is_ok().then_some((METRICS_VARIABLE, place.as_path())));
    variables.extend(files.iter().map(|files| (FILES_VARIABLE, files.path())));
    let done = execute(which, script, request, &variables);
    let (samples, mut notes) = match &made {
        Ok(()) => hook_metrics::read(which, &place),
        Err(error) => {
            let note = format!("the {which} hook has no {METRICS_VARIABLE}: {}: {error}", place.display());
            (Vec::new(), vec![note])
        }
    };
    // What stays is in the way of the next hook, which says so.
    let _ = std::fs::remove_file(&place).or_else(|_| std::fs::remove_dir_all(&place));
    let mut kept = Vec::new();
    match files {
        Ok(files) => {
            let (left, told) = files.take(which);
            kept = left;
            notes.extend(told);
        }
        Err(error) => notes.push(format!("the {which} hook has no {FILES_VARIABLE}: {error}")),
    }
    let output = done?;
    kept.extend(output_file(which, &output));
    Ok(Given { samples, notes, files: kept, output })
}

/// Makes an empty file that was not there.
fn fresh(place: &Path) -> std::io::Result<()> {
    match std::fs::remove_file(place) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    std::fs::File::create_new(place).map(drop)
}

/// Runs it to its end; leaves what it printed.
fn execute(
    which: &str,
    script: &str,
    request: &Request,
    variables: &[(&str, &Path)],
) -> Result<String, Answer> {
    let failed = |reason: String, output: String| Answer::Failed {
        kind: FailureKind::Passing,
        reason,
        command: format!("sh -c {}", shlex::try_quote(script).unwrap_or_default()),
        output,
        so_far: Vec::new(),
    };
    let before = own_children();
    let mut command = Command::new("sh");
    command
        .arg("-c")
        .arg(script)
        .envs(request.task.variables.iter().cloned())
        .env("ASSAY_DIRECTORY", &request.target.directory)
        .envs(request.target.device_of_hooks().map(|device| ("ASSAY_DEVICE", device)))
        .envs(variables.iter().copied())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    crate::sys::dies_with_its_parent(&mut command, Signal::KILL);
    let started = {
        let _may = STARTS.lock().unwrap_or_else(PoisonError::into_inner);
        command.spawn()
    };
    let mut shell =
        started.map_err(|e| failed(format!("cannot start the {which} hook: {e}"), String::new()))?;
    let output = local::chunks(shell.stdout.take());
    let errors = local::chunks(shell.stderr.take());
    let status =
        shell.wait().map_err(|e| failed(format!("cannot wait for the {which} hook: {e}"), String::new()))?;
    if status.signal().is_some() {
        // Nobody waits any more for what it was doing.
        end_children(&before);
    }
    // A monitor that it has left in the background may hold its output open: the hook is over with its shell.
    let words = local::words(&output) + &local::words(&errors);
    match status.signal() {
        None if status.success() => Ok(words),
        None => Err(failed(format!("the {which} hook failed: {status}"), words)),
        Some(signal) => {
            let by = signal_name(signal);
            Err(failed(format!("the shell of the {which} hook was ended by {by}"), words))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(metrics: &str, files: &[(&str, &str)]) -> Given {
        let (samples, notes) = hook_metrics::parse("before", metrics);
        let file = |(name, text): &(&str, &str)| KeptFile {
            name: (*name).to_owned(),
            bytes: text.as_bytes().to_vec(),
        };
        Given { samples, notes, files: files.iter().map(file).collect(), output: String::new() }
    }

    #[test]
    fn of_both_hooks_the_later_value_and_file_count() {
        let mut both = given("a=1\nb=1\n", &[("x", "1"), ("y", "1")]);
        both.add(given("a=2\n", &[("y", "2")]));
        let values: Vec<f64> = both.samples.iter().map(|sample| sample.value).collect();
        assert_eq!((values, both.notes.len()), (vec![2.0, 1.0], 2));
        let files = both.take_files();
        assert_eq!(files.iter().map(|file| file.bytes.as_slice()).collect::<Vec<_>>(), [b"1", b"2"]);
    }

    #[test]
    fn a_fresh_file_is_empty_whatever_was_there() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().join(METRICS_FILE);
        std::os::unix::fs::symlink("/dev/zero", &place).unwrap();
        fresh(&place).unwrap();
        assert_eq!(std::fs::read(&place).unwrap(), b"");
    }
}
