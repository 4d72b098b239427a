//! The processes of a run by their part in it, for tests that kill one.

use std::collections::BTreeMap;
use std::path::PathBuf;

use rustix::process::{Pid, Signal, kill_process};

/// A process as /proc shows it.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) pid: i32,
    pub(crate) line: String,
}

pub(crate) fn seen(pid: i32) -> Option<Seen> {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let line = String::from_utf8_lossy(&line).replace('\0', " ").trim().to_owned();
    (!line.is_empty()).then_some(Seen { pid, line })
}

fn children(pid: i32) -> Vec<Seen> {
    assay::host::children(pid).into_iter().filter_map(seen).collect()
}

/// Living processes of a run by their part in it.
pub(crate) fn parts(run: i32) -> BTreeMap<&'static str, Vec<Seen>> {
    let mut found: BTreeMap<&'static str, Vec<Seen>> = BTreeMap::new();
    found.entry("assay").or_default().extend(seen(run));
    for agent in children(run).into_iter().filter(|child| child.line.ends_with(" agent")) {
        for child in children(agent.pid) {
            let below = children(child.pid);
            let role = match child.line.starts_with("sh -c") {
                true => "hook",
                // A guard and a worker of the native engine are both copies of the agent.
                false if !child.line.ends_with(" agent") => "tool",
                false if below.is_empty() => "worker",
                false => "guard",
            };
            // Before what it has started: a shell's child has the shell's words until it begins.
            found.entry(role).or_default().push(child);
            for program in below {
                let workers = assay::host::descendants(program.pid).into_iter().filter_map(seen);
                found.entry("worker").or_default().extend(workers);
                found.entry(if role == "hook" { "hook" } else { "engine" }).or_default().push(program);
            }
        }
        found.entry("agent").or_default().push(agent);
    }
    found
}

pub(crate) fn kill(pid: i32) {
    let _ = kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL);
}

/// The token that processes of the run carry, once there is an agent.
pub(crate) fn token(run: i32) -> Option<String> {
    let agent = children(run).into_iter().find(|child| child.line.ends_with(" agent"))?;
    let environment = std::fs::read(format!("/proc/{}/environ", agent.pid)).ok()?;
    let begins = format!("{}=", assay::host::MARK_VARIABLE);
    let words = String::from_utf8_lossy(&environment).into_owned();
    words.split('\0').find_map(|word| word.strip_prefix(&begins)).map(str::to_owned)
}

pub(crate) fn group_of(token: &str) -> Option<PathBuf> {
    let mut level = vec![PathBuf::from("/sys/fs/cgroup")];
    while !level.is_empty() {
        let below = level.iter().filter_map(|path| std::fs::read_dir(path).ok()).flatten().flatten();
        level = below
            .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
            .map(|entry| entry.path())
            .collect();
        if let Some(found) = level.iter().find(|path| path.ends_with(format!("assay-{token}"))) {
            return Some(found.clone());
        }
    }
    None
}
