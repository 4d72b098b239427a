//! A trial that waits in the kernel for I/O which does not come.
//!
//! Enters: the processes of a trial, looked at again and again. Leaves: which of their threads has waited too long in one
//! go, and for what. It must not know engines or jobs.
//!
//! The rule is that of the kernel's own khungtaskd: a thread that waits for I/O and has not once been woken up for
//! [`LONGEST_WAIT`]. It does not depend on how long a trial takes. A thread that sleeps, computes or waits for another
//! process is never meant, and neither is one whose I/O is slow: each completion wakes it up. What takes long in one wait
//! without any sign of life (discards of whole devices) is woken up by the kernel for this very reason.

use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, Instant};

/// What a single wait for I/O may take: the kernel's default, too (/proc/sys/kernel/hung_task_timeout_secs).
pub(super) const LONGEST_WAIT: Duration = Duration::from_secs(120);
/// Lines of a kernel stack that are told.
const STACK_LINES: usize = 4;

/// The threads that were waiting for I/O when last looked at.
pub(super) struct Waits {
    longest: Duration,
    /// (process, thread) → how often it had been switched to, and since when that is so.
    known: HashMap<(i32, i32), (u64, Instant)>,
}

impl Waits {
    /// Nobody waits yet; `longest`: one wait.
    pub(super) fn new(longest: Duration) -> Waits {
        Waits { longest, known: HashMap::new() }
    }

    /// Looks at all threads of `processes`: one that has waited too long, in words.
    pub(super) fn look(&mut self, processes: &[i32], now: Instant) -> Option<String> {
        let mut seen = HashMap::new();
        let mut stuck = None;
        for (process, thread) in processes.iter().flat_map(|process| threads(*process)) {
            let place = format!("/proc/{process}/task/{thread}");
            let Some(switches) = waits_for_io(Path::new(&place)) else { continue };
            let since = match self.known.get(&(process, thread)) {
                Some((before, since)) if *before == switches => *since,
                _ => now,
            };
            if now.saturating_duration_since(since) >= self.longest && stuck.is_none() {
                stuck = Some(words(process, Path::new(&place), self.longest));
            }
            seen.insert((process, thread), (switches, since));
        }
        self.known = seen;
        stuck
    }
}

fn threads(process: i32) -> Vec<(i32, i32)> {
    let entries = std::fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .map(|thread| (process, thread))
        .collect()
}

/// How often a thread that waits for I/O has been switched to; `None`: it does not.
fn waits_for_io(thread: &Path) -> Option<u64> {
    let status = std::fs::read_to_string(thread.join("status")).ok()?;
    let line = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let waits = match line("State:")?.chars().next()? {
        // Uninterruptible: what storage makes others do.
        'D' => true,
        'S' => waits_for_completions(thread),
        _ => false,
    };
    let switches: u64 = line("voluntary_ctxt_switches:")?.parse().ok()?;
    let forced: u64 = line("nonvoluntary_ctxt_switches:")?.parse().ok()?;
    waits.then_some(switches + forced)
}

/// Asynchronous methods can be interrupted while they wait for a completion.
fn waits_for_completions(thread: &Path) -> bool {
    let calls = [libc::SYS_io_getevents, libc::SYS_io_uring_enter];
    // `208 0x7f… …`, or `running`.
    let call = std::fs::read_to_string(thread.join("syscall")).unwrap_or_default();
    let number = call.split_whitespace().next().and_then(|word| word.parse::<libc::c_long>().ok());
    number.is_some_and(|number| calls.contains(&number))
}

fn words(process: i32, thread: &Path, longest: Duration) -> String {
    let read = |name: &str| std::fs::read_to_string(thread.join(name)).unwrap_or_default();
    let comm = read("comm");
    let mut place = read("wchan").trim().to_owned();
    // Only root may read it.
    let stack: Vec<String> = read("stack")
        .lines()
        .filter_map(|line| line.split_whitespace().nth(1)?.split('+').next().map(str::to_owned))
        .take(STACK_LINES)
        .collect();
    if !stack.is_empty() {
        place = stack.join(" < ");
    }
    if place.is_empty() || place == "0" {
        "the kernel does not tell where".clone_into(&mut place);
    }
    format!(
        "no progress: process {process} ({}) has waited for I/O for {} s without being woken up, in {place}; the trial \
         was ended (--timeout sets a limit of its own instead)",
        comm.trim(),
        longest.as_secs()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Waits for a completion that never comes, at most 3 s.
    #[expect(unsafe_code, reason = "libc has no wrapper for the calls of aio")]
    fn wait_in_vain() {
        let mut context: libc::c_ulong = 0;
        let mut event = [0_u64; 4];
        let limit = libc::timespec { tv_sec: 3, tv_nsec: 0 };
        // SAFETY: the kernel writes a word to `context` and at most one event of 32 bytes; both outlive the calls.
        unsafe {
            assert_eq!(libc::syscall(libc::SYS_io_setup, 1, &raw mut context), 0);
            libc::syscall(libc::SYS_io_getevents, context, 1, 1, event.as_mut_ptr(), &raw const limit);
            libc::syscall(libc::SYS_io_destroy, context);
        }
    }

    #[test]
    fn who_waits_for_io_is_told_from_who_sleeps_or_works() {
        let me = rustix::process::getpid().as_raw_nonzero().get();
        std::thread::scope(|scope| {
            scope.spawn(|| std::thread::sleep(Duration::from_millis(900)));
            let mut waits = Waits::new(Duration::from_millis(400));
            let begun = Instant::now();
            while begun.elapsed() < Duration::from_millis(800) {
                assert_eq!(waits.look(&[me], Instant::now()), None, "nobody waits for I/O");
                std::thread::sleep(Duration::from_millis(50));
            }
            scope.spawn(wait_in_vain);
            let mut found = None;
            while found.is_none() && begun.elapsed() < Duration::from_secs(3) {
                std::thread::sleep(Duration::from_millis(50));
                found = waits.look(&[me], Instant::now());
            }
            let found = found.unwrap();
            assert!(begun.elapsed() >= Duration::from_millis(1200), "not before it has waited that long");
            assert!(found.contains("no progress") && found.contains(&format!("process {me}")), "{found}");
        });
    }
}
