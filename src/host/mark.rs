//! The mark of a run: a random token in the environment of every process that is started for it, so that processes which
//! outlived assay, its agents and their guards are still known to be that run's.
//!
//! Enters: nothing, or the token of a run that is dead. Leaves: this run's token; no process that carries the other.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::descendants::{AFTER_KILL, descendants};
use super::run_group;
use crate::sys::task::own_line;

/// The environment variable that holds the token.
pub const MARK_VARIABLE: &str = "ASSAY_TRIAL";
/// Hexadecimal digits of a token.
const DIGITS: usize = 32;
static MARK: OnceLock<String> = OnceLock::new();

/// The token of the run that this process belongs to: 32 hexadecimal digits, drawn at the first call, but in an agent, which has
/// its run's.
#[must_use]
pub fn run_mark() -> &'static str {
    // Without random bytes there is no token, and an empty one matches nobody.
    MARK.get_or_init(|| crate::sys::random_digits().unwrap_or_default())
}

/// Makes the token from the environment this process's own: an agent belongs to the run that started it. Any other process
/// that has one was started by a run, and is none of it.
pub fn inherit_run_mark() {
    let inherited = std::env::var(MARK_VARIABLE).ok().filter(|token| is_token(token));
    if let Some(token) = inherited {
        let _ = MARK.set(token);
    }
}

/// An empty or short token would be anybody's.
pub(super) fn is_token(text: &str) -> bool {
    text.len() == DIGITS
        && text.bytes().all(|byte| byte.is_ascii_hexdigit())
        && text.bytes().any(|byte| byte != b'0')
}

/// Kills every process of the run with this token, with its descendants, and removes the run's control group; returns who is
/// left after [`AFTER_KILL`]. Nobody may call it for a run that lives.
pub fn kill_marked(token: &str) -> Vec<i32> {
    if !is_token(token) {
        return Vec::new();
    }
    run_group::kill(token);
    let begun = Instant::now();
    loop {
        let left = marked(token);
        for process in &left {
            let _ = pidfd_send_signal(&process.handle, Signal::KILL);
        }
        if left.is_empty() || begun.elapsed() > AFTER_KILL {
            run_group::remove(token);
            return left.iter().map(|process| process.pid).collect();
        }
        drop(left);
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Whether a process of the run with this token lives.
#[must_use]
pub fn marked_lives(token: &str) -> bool {
    is_token(token) && !marked(token).is_empty()
}

/// A process that cannot be mistaken for a later one of the same number.
struct Process {
    pid: i32,
    handle: std::os::fd::OwnedFd,
}

/// Living processes of a run, and what they have started.
fn marked(token: &str) -> Vec<Process> {
    // Whoever cleans up may have been started by the run itself.
    let spared = own_line();
    let mut found: Vec<Process> = Vec::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else {
            continue;
        };
        if let Some(process) = held(pid, |pid| carries(pid, token)) {
            // Parents first: one whose child ends goes on with what comes next.
            found.push(process);
            // A program may have been given another environment.
            found.extend(descendants(pid).into_iter().filter_map(|below| held(below, |_| true)));
        }
    }
    found.retain(|process| !spared.contains(&process.pid));
    found
}

/// A handle on a process of which `belongs` holds; what is read from /proc in between is of the same process, as it still runs
/// afterwards.
fn held(pid: i32, belongs: impl Fn(i32) -> bool) -> Option<Process> {
    let handle = pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()?;
    let belongs = belongs(pid);
    let runs = {
        let mut ended = [PollFd::new(&handle, PollFlags::IN)];
        poll(&mut ended, Some(&Timespec::default())) == Ok(0)
    };
    (belongs && runs).then_some(Process { pid, handle })
}

/// Whether a process has the token, and is wholly one user's: in a program that changes its user, the environment can be
/// somebody else's.
fn carries(pid: i32, token: &str) -> bool {
    let wanted = format!("{MARK_VARIABLE}={token}");
    let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let users = status.lines().find_map(|line| line.strip_prefix("Uid:")).unwrap_or_default();
    let mut users = users.split_whitespace();
    let first = users.next();
    first.is_some()
        && users.all(|user| Some(user) == first)
        && environment.split(|byte| *byte == 0).any(|word| word == wanted.as_bytes())
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt;
    use std::process::{Child, Command};

    use super::*;

    fn sleeper(token: &str) -> Child {
        // Nothing has the mark yet between fork and exec; spawn returns after exec.
        Command::new("sleep").arg("60").env(MARK_VARIABLE, token).process_group(0).spawn().unwrap()
    }

    #[test]
    fn only_processes_with_the_very_token_are_killed() {
        let (token, other) = ("0123456789abcdef0123456789abc001", "0123456789abcdef0123456789abc002");
        let (mut mine, mut foreign) = (sleeper(token), sleeper(other));
        // One that is given no environment is known by its parent.
        let script = "env -i sleep 61 & echo $! >\"$0\"; wait";
        let told = tempfile::NamedTempFile::new().unwrap();
        let mut shell = Command::new("sh")
            .args(["-c", script])
            .arg(told.path())
            .env(MARK_VARIABLE, token)
            .spawn()
            .unwrap();
        let begun = Instant::now();
        while std::fs::read_to_string(told.path()).unwrap().trim().is_empty() {
            assert!(begun.elapsed() < Duration::from_secs(30));
            std::thread::sleep(Duration::from_millis(5));
        }
        for nobody in ["", "0", "0123", "00000000000000000000000000000000", "*"] {
            assert_eq!(kill_marked(nobody), Vec::<i32>::new());
        }
        assert!(mine.try_wait().unwrap().is_none());
        assert_eq!(kill_marked(token), Vec::<i32>::new());
        assert!(!mine.wait().unwrap().success() && !shell.wait().unwrap().success());
        let below: i32 = std::fs::read_to_string(told.path()).unwrap().trim().parse().unwrap();
        // It is nobody's child here that could be waited for: what was killed takes a moment to be gone.
        let sleeps =
            || std::fs::read(format!("/proc/{below}/cmdline")).is_ok_and(|line| line.starts_with(b"sleep"));
        while sleeps() {
            assert!(begun.elapsed() < Duration::from_secs(30), "{below} lives on");
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(foreign.try_wait().unwrap().is_none(), "another run's");
        foreign.kill().unwrap();
        foreign.wait().unwrap();
    }

    #[test]
    fn a_run_has_one_token_and_it_is_its_own() {
        assert_eq!(run_mark(), run_mark());
        assert!(is_token(run_mark()));
    }
}
