//! What the engines that run a tool of another's making share: where the tool is, and how it is run and judged.
//!
//! Enters: a tool's name, its arguments, a [`Task`]. Leaves: its whole output, and what wait4(2) counted as samples. It
//! must not know what a tool's output means.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::child::{Ended, Program};
use super::{EngineError, Task};
use crate::catalog::{EngineKind, ToolOutputError};
use crate::record::{FailureKind, Sample, Unit};
use crate::sys::program::find_system_in;

/// More output than this is no result of a benchmark.
const MOST_BYTES: usize = 64 << 20;
pub(super) fn unsupported<T>(reason: String) -> Result<T, EngineError> {
    Err(EngineError::Unsupported { reason })
}

/// Where the program of an engine is, on `path` or among the system's programs.
///
/// # Errors
/// [`EngineError::Unsupported`] that names the Debian package.
pub(super) fn find_tool(engine: EngineKind, path: Option<&OsStr>) -> Result<PathBuf, EngineError> {
    match engine.descriptor().program {
        Some(program) => find_in(program.name, program.package, path),
        None => unsupported(format!("engine {} has no program", engine.name())),
    }
}

/// Where a tool is, on `path` or among the system's programs.
///
/// # Errors
/// [`EngineError::Unsupported`] that names the Debian package.
fn find_in(name: &str, package: &str, path: Option<&OsStr>) -> Result<PathBuf, EngineError> {
    find_system_in(name, path).map_or_else(
        || {
            unsupported(format!(
                "{name} is not on PATH; install it (Debian, Ubuntu: apt-get install {package})"
            ))
        },
        Ok,
    )
}

/// A tool with its arguments, in `directory`. Its numbers are printed with a point, whatever the locale.
pub(super) fn program<'a>(
    tool: &Path,
    arguments: Vec<String>,
    directory: Option<&'a Path>,
    timeout_s: Option<f64>,
) -> Program<'a> {
    let argv = std::iter::once(tool.to_string_lossy().into_owned()).chain(arguments).collect();
    let variables = vec![("LC_ALL".to_owned(), "C".to_owned())];
    Program { argv, directory, variables, timeout_s }
}

/// The value of a setting; `None`: the engine's default.
pub(super) fn setting<'t>(task: &'t Task, key: &str) -> Option<&'t str> {
    task.settings.iter().find(|(known, _)| known == key).map(|(_, value)| value.as_str())
}

/// Whether a truth value is set.
pub(super) fn is_set(task: &Task, key: &str) -> bool {
    setting(task, key) == Some("1")
}

/// What a tool printed, and what it used.
pub(super) struct Ran {
    pub(super) output: String,
    pub(super) usage: Vec<Sample>,
    tail: String,
}

/// Runs a tool to its end.
///
/// # Errors
/// [`EngineError::Failed`] when it cannot be run or ends with anything but 0; its own words are in the reason.
pub(super) fn run(name: &str, program: &Program<'_>) -> Result<Ran, EngineError> {
    run_until(name, program, |_| None)
}

/// The same, or until `hopeless` says of a line why no good end can come any more.
///
/// # Errors
/// As [`run`], with that reason.
pub(super) fn run_until(
    name: &str,
    program: &Program<'_>,
    mut hopeless: impl FnMut(&str) -> Option<String>,
) -> Result<Ran, EngineError> {
    let mut output = String::new();
    let ended = program.run_until(&mut |line| {
        if output.len() < MOST_BYTES {
            output.push_str(line);
            output.push('\n');
        }
        hopeless(line)
    })?;
    let usage = usage(&ended);
    match ended.end.trouble(name) {
        None => Ok(Ran { output, usage, tail: ended.tail }),
        Some(trouble) => {
            let reason = with_own_words(trouble, &ended.tail);
            let (command, output) = (program.shell_line(), ended.tail);
            Err(EngineError::Failed { kind: FailureKind::Passing, reason, command, output, so_far: usage })
        }
    }
}

impl Ran {
    /// An [`EngineError::Failed`] about an end that looked well.
    pub(super) fn failed(self, program: &Program<'_>, reason: String) -> EngineError {
        let kind = FailureKind::Passing;
        EngineError::Failed {
            kind,
            reason,
            command: program.shell_line(),
            output: self.tail,
            so_far: self.usage,
        }
    }

    /// What its output says, read by `parse`.
    pub(super) fn read<T>(
        self,
        program: &Program<'_>,
        parse: impl FnOnce(&str) -> Result<T, ToolOutputError>,
    ) -> Result<(T, Vec<Sample>), EngineError> {
        match parse(&self.output) {
            Ok(read) => Ok((read, self.usage)),
            Err(error) => Err(self.failed(program, error.to_string())),
        }
    }
}

/// The last line that sounds like an error behind a reason.
fn with_own_words(reason: String, tail: &str) -> String {
    let sounds = |line: &&str| {
        let lower = line.to_ascii_lowercase();
        [
            "no space", "error", "no such", "denied", "not permitted", "insufficient", "invalid", "bad ",
            "failed", "too long", "not ",
        ]
        .iter()
        .any(|word| lower.contains(word))
    };
    let lines = || tail.lines().map(str::trim).filter(|line| !line.is_empty());
    match lines().find(sounds).or_else(|| lines().next_back()) {
        Some(words) => format!("{reason}: {words}"),
        None => reason,
    }
}

/// Of the processor time that wait4(2) counted, the share that must have been seen at workers for their lives to be known.
const SEEN: f64 = 0.8;
/// Seconds of processor time that need not have been seen.
const UNSEEN_S: f64 = 0.02;

/// What wait4(2) counted, and what is known of the workers, as samples. Where most of the work was done by processes too short to be
/// followed, the program is taken for one worker, which lived as long as it did.
pub(super) fn usage(ended: &Ended) -> Vec<Sample> {
    let sample = |name: &str, unit: Unit, value: f64| Sample::new("", name, unit, value);
    let (report, lives) = (&ended.report, &ended.lives);
    let runtime_s = report.elapsed_ns as f64 / 1e9;
    let ran_s = (report.usr_us + report.sys_us) as f64 / 1e6;
    let are_known = lives.wall_s > 0.0 && lives.ran_s >= SEEN * ran_s - UNSEEN_S;
    let mut samples = vec![
        sample("runtime", Unit::Seconds, runtime_s),
        sample("usr_cpu", Unit::Seconds, report.usr_us as f64 / 1e6),
        sample("sys_cpu", Unit::Seconds, report.sys_us as f64 / 1e6),
        sample("ctx.voluntary", Unit::Count, report.voluntary as f64),
        sample("ctx.involuntary", Unit::Count, report.involuntary as f64),
        sample("max_rss", Unit::Bytes, report.max_rss_kib as f64 * 1024.0),
        sample("workers.wall", Unit::Seconds, if are_known { lives.wall_s } else { runtime_s }),
    ];
    if are_known {
        samples.extend(waits(ended));
    }
    samples
}

/// What the workers waited for.
pub(super) fn waits(ended: &Ended) -> impl Iterator<Item = Sample> {
    let lives = &ended.lives;
    let waits = [("workers.run_wait", Some(lives.run_wait_s)), ("workers.storage_wait", lives.storage_s)];
    waits.into_iter().filter_map(|(name, value)| Some(Sample::new("", name, Unit::Seconds, value?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_tool_names_its_package() {
        let nowhere = tempfile::tempdir().unwrap();
        match find_in("assay-no-such-tool", "some-package", Some(nowhere.path().as_os_str())) {
            Err(EngineError::Unsupported { reason }) => {
                assert!(reason.contains("apt-get install some-package"), "{reason}");
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_tools_own_words_are_in_the_reason() {
        let script = "echo starting; echo 'write failed (No space left on device)' >&2; echo bye; exit 3";
        let shell = program(Path::new("/bin/sh"), vec!["-c".to_owned(), script.to_owned()], None, None);
        match run("sh", &shell) {
            Err(EngineError::Failed { reason, so_far, .. }) => {
                assert_eq!(reason, "'sh' ended with exit code 3: write failed (No space left on device)");
                assert_eq!(so_far[0].metric.name, "runtime");
            }
            Err(other) => panic!("{other:?}"),
            Ok(ran) => panic!("{}", ran.output),
        }
    }
}
