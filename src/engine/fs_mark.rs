//! The fs_mark engine: files made, written, synced and unlinked in the trial's directory; with phases, given an attribute,
//! their owner changed and they unlinked by assay, each phase timed.
//!
//! Enters: [`Task::settings`]: `files` a thread and loop (1000), `size` in bytes (51200), `threads` (1), `loops` (1), `sync`
//! 0 to 6 (1: fsync before close), `directory_per_thread`, `subdirectories`, `per_directory`, `write_size`, `name_length`,
//! `random_name`, `keep`; `phases` (`create,xattr,chown,unlink`), `phase_sync` (1), `xattr_size` (64). Leaves: files a second, the
//! times of each system call, what the whole command used, and for each phase its time and what the device did. It must not know how
//! fs_mark prints them (that is the catalog's).

use std::ffi::OsStr;
use std::fs::File;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::child::Program;
use super::file_changes::{Change, Files, Stopped};
use super::phase::{Begun, Phase};
use super::tool::{find_tool, is_set, program, run, setting, unsupported};
use super::{Engine, EngineError, EngineKind, Probe, Task};
use crate::catalog::outcomes_from_fs_mark;
use crate::record::{Outcome, Sample, Unit};

/// Where the files go, below the trial's directory: fs_mark writes its log beside it.
const FILES: &str = "fs_mark";
/// Bytes of an attribute where nothing else is asked for.
const ATTRIBUTE_BYTES: usize = 64;

/// The fs_mark engine.
#[derive(Clone, Copy, Debug, Default)]
pub struct FsMark;

impl Engine for FsMark {
    fn probe(&self) -> Result<Probe, EngineError> {
        probe_in(std::env::var_os("PATH").as_deref())
    }

    fn run(&self, task: &Task) -> Result<Outcome, EngineError> {
        let tool = find_tool(EngineKind::FsMark, std::env::var_os("PATH").as_deref())?;
        let program = program(&tool, arguments(task), Some(&task.directory), task.timeout_s);
        match setting(task, "phases") {
            Some(phases) => run_phases(task, &program, phases),
            None => {
                let (mut outcome, usage) = run_tool(&program)?;
                outcome.samples.extend(usage);
                Ok(outcome)
            }
        }
    }
}

/// fs_mark itself: what it printed, and what it used.
fn run_tool(program: &Program<'_>) -> Result<(Outcome, Vec<Sample>), EngineError> {
    let (trials, usage) = run("fs_mark", program)?.read(program, outcomes_from_fs_mark)?;
    Ok((trials.into_iter().next_back().unwrap_or_default().outcome, usage))
}

/// fs_mark, then what else is to be done to its files. Processor time and context switches are left to those who watch this
/// process: fs_mark's alone would not be those of the trial.
fn run_phases(task: &Task, program: &Program<'_>, phases: &str) -> Result<Outcome, EngineError> {
    let wanted = |change: &Change| phases.split(',').any(|phase| phase == change.name());
    let bytes = setting(task, "xattr_size").and_then(|bytes| bytes.parse().ok()).unwrap_or(ATTRIBUTE_BYTES);
    let all = [Change::Attribute(bytes), Change::Owner, Change::Unlink];
    let changes: Vec<Change> = all.into_iter().filter(wanted).collect();
    if changes.contains(&Change::Owner) && !rustix::process::geteuid().is_root() {
        return unsupported("the phase chown needs root: nobody else may give files away".to_owned());
    }
    let deadline = task.timeout_s.and_then(|limit_s| {
        Instant::now().checked_add(Duration::try_from_secs_f64(limit_s).unwrap_or(Duration::MAX))
    });
    let failed = |reason: String| program.failed(reason, String::new());
    let place = File::open(&task.directory)
        .map_err(|error| failed(format!("cannot open {}: {error}", task.directory.display())))?;
    let sync = (setting(task, "phase_sync") != Some("0")).then_some(&place);
    let ended = |phase: std::io::Result<Phase>| phase.map_err(|error| failed(format!("syncfs: {error}")));

    let begun = Begun::now(task);
    let (mut outcome, usage) = run_tool(program)?;
    let value = |samples: &[Sample], name: &str| {
        samples.iter().find(|sample| sample.metric.name == name).map(|sample| sample.value)
    };
    let made = value(&outcome.samples, "files").unwrap_or_default() as u64;
    let mut done = vec![ended(begun.end("create", made, value(&usage, "runtime"), sync))?];

    let roots: Vec<PathBuf> = directories(task).iter().map(|name| task.directory.join(name)).collect();
    let files = Files::below(&roots).map_err(failed)?;
    if files.count() != made {
        outcome.notes.push(format!("fs_mark made {made} files, {} of them are there", files.count()).into());
    }
    for change in changes {
        let begun = Begun::now(task);
        let latencies = files.change(change, threads(task), deadline).map_err(|stopped| match stopped {
            Stopped::Failed(reason) => failed(reason),
            Stopped::TooLong => failed(format!(
                "the {} phase did not end within the limit of {} s",
                change.name(),
                task.timeout_s.unwrap_or_default()
            )),
        })?;
        let mut phase = ended(begun.end(change.name(), latencies.count, None, sync))?;
        phase.latencies = Some(latencies);
        done.push(phase);
    }
    outcome.samples.push(Sample::new("", "runtime", Unit::Seconds, done.iter().map(|p| p.runtime_s).sum()));
    // Nobody else sees the memory of an ended child; what assay itself takes to list the files is not the tool's.
    outcome.samples.extend(usage.into_iter().filter(|sample| sample.metric.name == "max_rss"));
    outcome.samples.extend(done.iter().flat_map(Phase::samples));
    Ok(outcome)
}

/// As many as fs_mark has.
fn threads(task: &Task) -> usize {
    setting(task, "threads").and_then(|n| n.parse().ok()).unwrap_or(1)
}

/// Relative: fs_mark refuses a directory with a long name.
fn directories(task: &Task) -> Vec<String> {
    if is_set(task, "directory_per_thread") {
        (0..threads(task)).map(|at| format!("{FILES}-{at}")).collect()
    } else {
        vec![FILES.to_owned()]
    }
}

/// fs_mark tells its version only when it works: it writes one empty file.
fn probe_in(path: Option<&OsStr>) -> Result<Probe, EngineError> {
    let tool = find_tool(EngineKind::FsMark, path)?;
    let place = match tempfile::tempdir() {
        Ok(place) => place,
        Err(error) => return unsupported(format!("no temporary directory to try fs_mark in: {error}")),
    };
    let words = ["-d", FILES, "-n", "1", "-s", "0", "-S", "0"].map(str::to_owned).to_vec();
    let program = program(&tool, words, Some(place.path()), Some(10.0));
    let (trials, _) = run("fs_mark", &program)?.read(&program, outcomes_from_fs_mark)?;
    match trials.first().filter(|trial| !trial.version.is_empty()) {
        Some(trial) => Ok(Probe { version: format!("fs_mark {}", trial.version), path: Some(tool) }),
        None => unsupported(format!("{} does not say its version; install the real fs_mark", tool.display())),
    }
}

fn arguments(task: &Task) -> Vec<String> {
    let mut words: Vec<String> =
        directories(task).into_iter().flat_map(|name| ["-d".to_owned(), name]).collect();
    words.push("-v".to_owned());
    let options = [
        ("files", "-n"),
        ("size", "-s"),
        ("threads", "-t"),
        ("loops", "-L"),
        ("sync", "-S"),
        ("subdirectories", "-D"),
        ("per_directory", "-N"),
        ("write_size", "-w"),
        ("name_length", "-p"),
        ("random_name", "-r"),
    ];
    for (key, flag) in options {
        words.extend(setting(task, key).into_iter().flat_map(|value| [flag.to_owned(), value.to_owned()]));
    }
    let kept = is_set(task, "keep") || setting(task, "phases").is_some();
    words.extend(kept.then(|| "-k".to_owned()));
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_fs_marks_options() {
        let settings = [("files", "10"), ("threads", "2"), ("sync", "0"), ("keep", "1")];
        let settings = settings.map(|(key, value)| (key.to_owned(), value.to_owned())).to_vec();
        let task = Task { settings, directory: "/d".into(), ..Task::default() };
        assert_eq!(arguments(&task).join(" "), "-d fs_mark -v -n 10 -t 2 -S 0 -k");
        let settings = [("threads", "2"), ("directory_per_thread", "1"), ("phases", "create,unlink")];
        let settings = settings.map(|(key, value)| (key.to_owned(), value.to_owned())).to_vec();
        let task = Task { settings, ..Task::default() };
        assert_eq!(arguments(&task).join(" "), "-d fs_mark-0 -d fs_mark-1 -v -t 2 -k");
    }
}
