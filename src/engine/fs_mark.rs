//! The fs_mark engine: files made, written, synced and unlinked in the trial's directory.
//!
//! Enters: [`Task::settings`]: `files` a thread and loop (1000), `size` in bytes (51200), `threads` (1), `loops` (1), `sync`
//! 0 to 6 (1: fsync before close), `subdirectories`, `per_directory`, `write_size`, `name_length`, `random_name`, `keep`.
//! Leaves: files a second, the times of each system call, and what the whole command used. It must not know how fs_mark
//! prints them (that is record's).

use std::ffi::OsStr;

use super::tool::{find_tool, is_set, program, run, setting, unsupported};
use super::{Engine, EngineError, Probe, Task};
use crate::record::{Outcome, outcomes_from_fs_mark};

/// Where the files go, below the trial's directory: fs_mark writes its log beside it.
const FILES: &str = "fs_mark";

/// The fs_mark engine.
#[derive(Clone, Copy, Debug, Default)]
pub struct FsMark;

impl Engine for FsMark {
    fn probe(&self) -> Result<Probe, EngineError> {
        probe_in(std::env::var_os("PATH").as_deref())
    }

    fn run(&self, task: &Task) -> Result<Outcome, EngineError> {
        let tool = find_tool("fs_mark", "fsmark", std::env::var_os("PATH").as_deref())?;
        let program = program(&tool, arguments(task), Some(&task.directory), task.timeout_s);
        let (trials, usage) = run("fs_mark", &program)?.read(&program, outcomes_from_fs_mark)?;
        let mut outcome = trials.into_iter().next_back().unwrap_or_default().outcome;
        outcome.samples.extend(usage);
        Ok(outcome)
    }
}

/// fs_mark tells its version only when it works: it writes one empty file.
fn probe_in(path: Option<&OsStr>) -> Result<Probe, EngineError> {
    let tool = find_tool("fs_mark", "fsmark", path)?;
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
    // Relative: fs_mark refuses a directory with a long name.
    let mut words = ["-d", FILES, "-v"].map(str::to_owned).to_vec();
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
    words.extend(is_set(task, "keep").then(|| "-k".to_owned()));
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
    }
}
