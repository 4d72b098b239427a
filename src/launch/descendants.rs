//! Ending everything a process has started, also what left its process group (fio's jobs call setsid).

use rustix::process::{Pid, Signal, kill_process};

/// Children of `pid`, from /proc.
fn children(pid: i32) -> Vec<i32> {
    let mut found = Vec::new();
    let Ok(tasks) = std::fs::read_dir(format!("/proc/{pid}/task")) else {
        return found;
    };
    for task in tasks.flatten() {
        let text = std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
        found.extend(text.split_whitespace().filter_map(|word| word.parse::<i32>().ok()));
    }
    found
}

/// All descendants of `pid`.
pub(super) fn all(pid: i32) -> Vec<i32> {
    let mut found = children(pid);
    let mut at = 0;
    while at < found.len() {
        found.extend(children(found[at]));
        at += 1;
    }
    found
}

/// Sends `signal` to all descendants of `pid`; returns how many there were.
///
/// Parents first: a shell whose child ended before it would go on with its next command.
pub(super) fn signal_all(pid: i32, signal: Signal) -> usize {
    let family = all(pid);
    for child in family.iter().copied().filter_map(Pid::from_raw) {
        // A process that ended meanwhile is what was wanted.
        let _ = kill_process(child, signal);
    }
    family.len()
}

/// Kills all descendants of `pid` until none is left (new ones may be born meanwhile), at most 200 times.
pub(super) fn kill_all(pid: i32) {
    for _ in 0..200 {
        if signal_all(pid, Signal::KILL) == 0 {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

/// Those of `pids` of which a thread waits uninterruptibly: after SIGKILL they hang in the kernel.
pub(super) fn that_hang(pids: &[i32]) -> Vec<i32> {
    let uninterruptible = |pid: &i32| {
        let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
        tasks
            .filter_map(|task| std::fs::read_to_string(task.path().join("stat")).ok())
            // `12 (name, which may hold anything) D …`
            .any(|stat| stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('D')))
    };
    pids.iter().copied().filter(uninterruptible).collect()
}

/// Words that [`cannot_be_ended`] always has.
pub(super) const CANNOT_BE_ENDED: &str = "cannot be ended";

/// Says that these processes are left.
pub(super) fn cannot_be_ended(pids: &[i32]) -> String {
    let numbers = pids.iter().map(i32::to_string).collect::<Vec<_>>().join(", ");
    match pids {
        [_] => format!("process {numbers} {CANNOT_BE_ENDED}: it hangs in the kernel"),
        _ => format!("processes {numbers} {CANNOT_BE_ENDED}: they hang in the kernel"),
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::time::{Duration, Instant};

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
            while all(pid).len() < OTHERS + 2 {
                assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", all(pid));
                std::thread::sleep(Duration::from_millis(1));
            }
            assert_eq!(signal_all(pid, Signal::TERM), OTHERS + 2);
            // It waits for all of them.
            outer.wait().unwrap();
            assert!(!mark.exists(), "round {round}");
        }
    }
}
