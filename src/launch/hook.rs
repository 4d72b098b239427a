//! The hooks around a trial: shell commands that make something ready or clean up, and may give metrics back.
//!
//! Enters: a hook's command and the request it belongs to. Leaves: what it gave back, or the answer that it failed. What the
//! command does is its own affair.

use std::io::ErrorKind;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::PoisonError;

use rustix::process::Signal;

use super::endings::signal_name;
use super::last_duty::STARTS;
use super::{Answer, Request, local};
use crate::host::{end_children, own_children};
use crate::record::{FailureKind, Outcome, Sample, Unit};
use crate::sys::regular_file;

/// Names the file in which a hook may leave metrics.
const METRICS_VARIABLE: &str = "ASSAY_METRICS";
/// Its name in the work directory.
const METRICS_FILE: &str = ".assay-hook-metrics";
/// What the metrics of hooks begin with.
const PREFIX: &str = "hook.";
/// Bytes of that file.
const MOST_BYTES: u64 = 64 << 10;
/// Metrics that one hook may leave.
const MOST_METRICS: usize = 64;
/// Lines without a metric that are told one by one, and letters of each.
const MOST_TOLD: usize = 5;
const MOST_LETTERS: usize = 60;

/// What hooks gave back.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Given {
    samples: Vec<Sample>,
    notes: Vec<String>,
}

impl Given {
    /// Adds what another hook of the same trial gave; where both name a metric, the later one counts.
    pub(super) fn add(&mut self, other: Given) {
        self.notes.extend(other.notes);
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
    }

    /// Puts all of it into what came of the trial.
    pub(super) fn join(self, outcome: &mut Outcome) {
        outcome.samples.extend(self.samples);
        outcome.notes.extend(self.notes);
    }
}

/// Runs a hook and reads the metrics it leaves.
///
/// # Errors
/// [`Answer::Failed`] with its output. Metrics that cannot be read are notes.
pub(super) fn run(which: &str, script: &str, request: &Request) -> Result<Given, Answer> {
    let setup = request.target.setup.as_ref();
    let place = setup.map_or(&request.target.directory, |setup| &setup.work).join(METRICS_FILE);
    // Where it cannot be made the variable is not set, and that is said if nothing else is wrong.
    let made = fresh(&place);
    let done = execute(which, script, request, made.is_ok().then_some(&place));
    let given = match &made {
        Ok(()) => read(which, &place),
        Err(error) => {
            let note = format!("the {which} hook has no {METRICS_VARIABLE}: {}: {error}", place.display());
            Given { samples: Vec::new(), notes: vec![note] }
        }
    };
    // The directory is assay's own and emptied before the next trial in any case.
    let _ = std::fs::remove_file(&place);
    done.map(|()| given)
}

/// Makes an empty file that was not there.
fn fresh(place: &Path) -> std::io::Result<()> {
    match std::fs::remove_file(place) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    std::fs::File::create_new(place).map(drop)
}

fn execute(which: &str, script: &str, request: &Request, metrics: Option<&PathBuf>) -> Result<(), Answer> {
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
        .envs(request.target.device().map(|device| ("ASSAY_DEVICE", device)))
        .envs(metrics.map(|place| (METRICS_VARIABLE, place)))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    local::dies_with_its_parent(&mut command, Signal::KILL);
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
    // What it has left in the background may hold its output open, and is waited for.
    let words: Vec<u8> = output.iter().chain(errors.iter()).flatten().collect();
    let words = String::from_utf8_lossy(&words).into_owned();
    match status.signal() {
        None if status.success() => Ok(()),
        None => Err(failed(format!("the {which} hook failed: {status}"), words)),
        Some(signal) => {
            let by = signal_name(signal);
            Err(failed(format!("the shell of the {which} hook was ended by {by}"), words))
        }
    }
}

/// The metrics in a hook's file. A hook that removed the file gives none.
fn read(which: &str, place: &Path) -> Given {
    if std::fs::symlink_metadata(place).is_err() {
        return Given::default();
    }
    match regular_file::read_text(place, MOST_BYTES) {
        Ok(text) => parse(which, &text),
        Err(error) => {
            let note = format!("the {which} hook's {METRICS_VARIABLE} is not read: {error}");
            Given { samples: Vec::new(), notes: vec![note] }
        }
    }
}

/// Lines of `NAME=VALUE[UNIT]`; of a name that comes twice the last one counts.
fn parse(which: &str, text: &str) -> Given {
    let (mut given, mut wrong) = (Given::default(), Vec::new());
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        match sample(line) {
            Ok(sample) => {
                given.samples.retain(|known| known.metric.name != sample.metric.name);
                given.samples.push(sample);
            }
            Err(why) => {
                let shown: String = line.chars().take(MOST_LETTERS).collect();
                wrong.push(format!(
                    "line {} of the {which} hook's {METRICS_VARIABLE} gives no metric: {why}: {shown}",
                    number + 1
                ));
            }
        }
    }
    if given.samples.len() > MOST_METRICS {
        let extra = given.samples.len() - MOST_METRICS;
        given.samples.truncate(MOST_METRICS);
        wrong.insert(
            0,
            format!("the {which} hook gives more than {MOST_METRICS} metrics: {extra} are left out"),
        );
    }
    let untold = wrong.len().saturating_sub(MOST_TOLD);
    given.notes.extend(wrong.into_iter().take(MOST_TOLD));
    if untold > 0 {
        given
            .notes
            .push(format!("{untold} more lines of the {which} hook's {METRICS_VARIABLE} give no metric"));
    }
    given
}

/// `commit_ms=12.5ms` as the metric `hook.commit_ms`.
fn sample(line: &str) -> Result<Sample, &'static str> {
    let (name, rest) = line.split_once('=').ok_or("write NAME=VALUE[UNIT]")?;
    let (name, rest) = (name.trim(), rest.trim());
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
    if name.is_empty() || name.len() > MOST_LETTERS || !name.chars().all(plain) {
        return Err("a name has letters, digits, '.', '_' and '-', 60 at most");
    }
    let end = rest.find(|letter: char| !letter.is_ascii_digit() && !"+-.eE".contains(letter));
    // `5e` is no number, and no unit begins like this.
    let (number, unit) = rest.split_at(end.unwrap_or(rest.len()));
    let value: f64 = number.parse().map_err(|_| "the value is no number")?;
    let value = if value.is_finite() { value } else { return Err("the value is no number") };
    match Unit::parse(unit.trim()) {
        (Unit::Other(_), _) => Err("the unit is not known"),
        (unit, factor) => Ok(Sample::new("", &format!("{PREFIX}{name}"), unit, value * factor)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_become_metrics_with_base_units() {
        let given =
            parse("after", "# a comment\n\nfrag=3\n frag = 4 \ncommit.max=1.5ms\nrate=2e3 MiB/s\nx=-1%\n");
        let told: Vec<(&str, f64, &Unit)> =
            given.samples.iter().map(|s| (s.metric.name.as_str(), s.value, &s.metric.unit)).collect();
        let expected = [
            ("hook.frag", 4.0, &Unit::Count),
            ("hook.commit.max", 1.5e6, &Unit::Nanoseconds),
            ("hook.rate", 2e3 * 1_048_576.0, &Unit::BytesPerSecond),
            ("hook.x", -1.0, &Unit::Percent),
        ];
        assert_eq!(told, expected);
        assert_eq!(given.notes, Vec::<String>::new());
    }

    #[test]
    fn a_line_that_is_not_understood_is_a_note() {
        for (line, why) in [
            ("hello", "write NAME=VALUE[UNIT]"),
            ("=3", "a name has letters"),
            ("a b=3", "a name has letters"),
            ("a=", "the value is no number"),
            ("a=nan", "the value is no number"),
            ("a=1e999", "the value is no number"),
            ("a=3 parsecs", "the unit is not known"),
        ] {
            let given = parse("before", &format!("{line}\n"));
            assert!(given.samples.is_empty(), "{line}");
            let start = "line 1 of the before hook's ASSAY_METRICS gives no metric: ";
            assert!(given.notes[0].starts_with(&format!("{start}{why}")), "{line}: {:?}", given.notes);
        }
        let given = parse("before", &"nothing\n".repeat(20));
        assert_eq!(given.notes.len(), MOST_TOLD + 1);
        assert!(given.notes[MOST_TOLD].starts_with("15 more lines"), "{:?}", given.notes);
        let many: String = (0..70).map(|n| format!("m{n}=1\n")).collect();
        let given = parse("before", &many);
        assert_eq!((given.samples.len(), given.notes.len()), (MOST_METRICS, 1));
    }

    #[test]
    fn of_both_hooks_the_later_value_counts() {
        let mut given = parse("before", "a=1\nb=1\n");
        given.add(parse("after", "a=2\n"));
        let values: Vec<f64> = given.samples.iter().map(|sample| sample.value).collect();
        assert_eq!((values, given.notes.len()), (vec![2.0, 1.0], 1));
    }

    #[test]
    fn a_hook_that_replaced_its_file_gives_none() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().join(METRICS_FILE);
        assert_eq!(read("after", &place), Given::default());
        std::os::unix::fs::symlink("/dev/zero", &place).unwrap();
        let given = read("after", &place);
        assert!(given.samples.is_empty() && given.notes[0].contains("is not read"), "{given:?}");
        fresh(&place).unwrap();
        assert_eq!(std::fs::read(&place).unwrap(), b"");
    }
}
