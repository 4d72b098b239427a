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

/// Sends `signal` to all descendants of `pid`, deepest first; returns how many there were.
pub(super) fn signal_all(pid: i32, signal: Signal) -> usize {
    let mut count = 0;
    for child in children(pid) {
        count += 1 + signal_all(child, signal);
        if let Some(child) = Pid::from_raw(child) {
            // A process that ended meanwhile is what was wanted.
            let _ = kill_process(child, signal);
        }
    }
    count
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
