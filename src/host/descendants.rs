//! The processes that one has started, also those that left its process group (fio's jobs call setsid): found, and ended.
//!
//! Enters: a process number. Leaves: nothing of its family alive, or who hangs in the kernel. It must not know trials.

use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

use crate::sys::task::{TaskStat, children_of, tasks_of};

/// How long killed processes may take to end: who waits for a slow disk ends when it has answered; only what hangs in the kernel takes
/// longer.
pub const AFTER_KILL: Duration = Duration::from_secs(10);
/// Between two looks at what is left.
const STEP: Duration = Duration::from_millis(5);

/// Children of a process, zombies too, from /proc.
#[must_use]
pub fn children(pid: i32) -> Vec<i32> {
    tasks_of(pid).iter().flat_map(|task| children_of(task)).collect()
}

/// Children of this process.
#[must_use]
pub fn own_children() -> Vec<i32> {
    children(rustix::process::getpid().as_raw_nonzero().get())
}

/// All descendants of a process, parents before their children.
#[must_use]
pub fn descendants(pid: i32) -> Vec<i32> {
    let mut found = children(pid);
    let mut at = 0;
    while at < found.len() {
        found.extend(children(found[at]));
        at += 1;
    }
    found
}

/// `None`: there is no process of this number.
fn stat(pid: i32) -> Option<TaskStat> {
    TaskStat::of(Path::new(&format!("/proc/{pid}")))
}

/// Whether a process still runs: a zombie does not, it only waits for its parent to notice.
fn lives(pid: i32) -> bool {
    stat(pid).is_some_and(|stat| !stat.is_zombie)
}

/// The signal that ended a process whose parent has not noticed yet.
#[must_use]
pub fn unnoticed_death(pid: i32) -> Option<i32> {
    let ended = stat(pid).filter(|stat| stat.is_zombie)?;
    Some(ended.exit_code & 0x7f).filter(|signal| *signal != 0)
}

/// Sends a signal to all descendants of a process; returns how many of them lived.
///
/// Parents first: a shell whose child ended before it would go on with its next command.
pub fn signal_descendants(pid: i32, signal: Signal) -> usize {
    let family: Vec<i32> = descendants(pid).into_iter().filter(|pid| lives(*pid)).collect();
    for child in family.iter().copied().filter_map(Pid::from_raw) {
        // A process that ended meanwhile is what was wanted.
        let _ = kill_process(child, signal);
    }
    family.len()
}

/// Kills all descendants of a process until none lives (new ones may be born meanwhile), for [`AFTER_KILL`] at most.
pub fn kill_descendants(pid: i32) {
    let begun = Instant::now();
    while signal_descendants(pid, Signal::KILL) > 0 && begun.elapsed() < AFTER_KILL {
        std::thread::sleep(STEP);
    }
}

/// Kills and reaps the children of this process with all their descendants, but those of `keep`; returns who is left, which
/// hangs in the kernel. For a child subreaper, whose children are also the orphans of those that were killed.
pub fn end_children(keep: &[i32]) -> Vec<i32> {
    let begun = Instant::now();
    loop {
        let mut left = Vec::new();
        for child in own_children().into_iter().filter(|child| !keep.contains(child)) {
            left.extend(Pid::from_raw(child).filter(|pid| !reaped(*pid)).map(|_| child));
        }
        for child in &left {
            let _ = Pid::from_raw(*child).map(|pid| kill_process(pid, Signal::KILL));
            signal_descendants(*child, Signal::KILL);
        }
        if left.is_empty() || begun.elapsed() > AFTER_KILL {
            return left;
        }
        std::thread::sleep(STEP);
    }
}

/// Reaps a child of this process that has ended; false while it lives.
#[must_use]
pub fn reaped(child: Pid) -> bool {
    !matches!(waitpid(Some(child), WaitOptions::NOHANG), Ok(None))
}

/// Those of `pids` of which a thread waits uninterruptibly: after SIGKILL they hang in the kernel.
#[must_use]
pub fn that_hang(pids: &[i32]) -> Vec<i32> {
    let uninterruptible =
        |pid: &i32| tasks_of(*pid).iter().filter_map(|task| TaskStat::of(task)).any(|stat| stat.is_waiting);
    pids.iter().copied().filter(uninterruptible).collect()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_shell_that_is_ended_does_not_begin_its_next_command() {
        // So many that are ended between a shell and what it waits for: time enough for a next command.
        const OTHERS: usize = 300;
        let place = tempfile::tempdir().unwrap();
        for round in 0..3 {
            let mark = place.path().join(round.to_string());
            let shell = format!("sh -c 'sleep 60; touch {}' &", mark.display());
            let script = format!("{shell} for i in $(seq {OTHERS}); do sleep 60 & done; wait");
            let mut outer = Command::new("sh").args(["-c", &script]).spawn().unwrap();
            let pid = outer.id() as i32;
            let begun = Instant::now();
            while descendants(pid).len() < OTHERS + 2 {
                assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", descendants(pid));
                std::thread::sleep(Duration::from_millis(1));
            }
            assert_eq!(signal_descendants(pid, Signal::TERM), OTHERS + 2);
            // It waits for all of them.
            outer.wait().unwrap();
            assert!(!mark.exists(), "round {round}");
        }
    }
}
