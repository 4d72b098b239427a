//! A trial that waits in the kernel for I/O which does not come.
//!
//! Enters: the processes of a trial, looked at again and again. Leaves: which of their threads has waited too long in one
//! go, and for what. It must not know engines or jobs.
//!
//! The rule is that of the kernel's own khungtaskd: a thread that waits for I/O and has made no progress for
//! [`LONGEST_WAIT`]. It does not depend on how long a trial takes. A thread that sleeps, computes or waits for another
//! process is never meant, and neither is one whose I/O is slow: each completion is progress.
//!
//! What progress is depends on the system call. Where the kernel waits for a single request (block/bio.c:
//! `blk_wait_io`, block/blk.h: `blk_io_schedule`) it wakes up after half of hung_task_timeout_secs, to keep its own
//! watch quiet, and goes on waiting. So a read or write has made progress when the thread's counters of I/O move, one that
//! syncs when it is woken up more often than that; any other (discards of whole devices take long) whenever it is woken up.

use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::sys::task::{number_of, tasks_of};

/// What a single wait for I/O may take: the kernel's default, too (/proc/sys/kernel/hung_task_timeout_secs).
pub(super) const LONGEST_WAIT: Duration = Duration::from_secs(120);
/// Lines of a kernel stack that are told.
const STACK_LINES: usize = 4;

const TRANSFERS: [libc::c_long; 10] = [
    libc::SYS_read,
    libc::SYS_pread64,
    libc::SYS_readv,
    libc::SYS_preadv,
    libc::SYS_preadv2,
    libc::SYS_write,
    libc::SYS_pwrite64,
    libc::SYS_writev,
    libc::SYS_pwritev,
    libc::SYS_pwritev2,
];
const SYNCS: [libc::c_long; 6] = [
    libc::SYS_fsync,
    libc::SYS_fdatasync,
    libc::SYS_sync_file_range,
    libc::SYS_syncfs,
    libc::SYS_sync,
    libc::SYS_msync,
];
/// Asynchronous methods can be interrupted while they wait for a completion.
const COMPLETIONS: [libc::c_long; 2] = [libc::SYS_io_getevents, libc::SYS_io_uring_enter];

/// What the trial's programs use asynchronous methods for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rings {
    /// I/O on storage alone: who waits for a completion waits for I/O.
    OnlyIo,
    /// Also for what may never come, as a server waits for its clients.
    Anything,
}

/// The threads that were waiting for I/O when last looked at.
pub(super) struct Waits {
    longest: Duration,
    rings: Rings,
    /// After how long the kernel wakes up who waits for a request; `None`: it does not.
    timer: Option<Duration>,
    /// (process, thread) → what it was like when it last made progress, and when that was.
    known: HashMap<(i32, i32), (Reading, Instant)>,
}

/// One look at a thread that waits for I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Reading {
    /// The system call it is in; `None`: in none, or that may not be read.
    call: Option<libc::c_long>,
    /// How often it has been switched to.
    switches: u64,
    /// The sum of its counters of I/O; `None`: the kernel does not tell.
    counted: Option<u64>,
}

impl Waits {
    /// Nobody waits yet; `longest`: one wait.
    pub(super) fn new(longest: Duration, rings: Rings) -> Waits {
        let text = std::fs::read_to_string("/proc/sys/kernel/hung_task_timeout_secs").unwrap_or_default();
        let half = text.trim().parse().ok().map(|seconds: u32| Duration::from_secs(seconds.into()) / 2);
        let timer = half.filter(|half| !half.is_zero());
        Waits { longest, rings, timer, known: HashMap::new() }
    }

    /// Looks at all threads of `processes`: one that has waited too long, in words.
    pub(super) fn look(&mut self, processes: &[i32], now: Instant) -> Option<String> {
        let place = |(process, thread): (i32, i32)| format!("/proc/{process}/task/{thread}");
        let threads = processes.iter().flat_map(|process| threads(*process));
        let readings: Vec<_> =
            threads.filter_map(|id| Some((id, read(Path::new(&place(id)), self.rings)?))).collect();
        let stuck = self.judge(&readings, now)?;
        Some(words(stuck.0, Path::new(&place(stuck)), self.longest))
    }

    /// The first thread that has waited too long.
    fn judge(&mut self, readings: &[((i32, i32), Reading)], now: Instant) -> Option<(i32, i32)> {
        let mut seen = HashMap::new();
        let mut stuck = None;
        for (id, reading) in readings {
            let kept = self.known.get(id).copied();
            let kept = kept.filter(|(before, since)| {
                !before.progress(reading, now.saturating_duration_since(*since), self.timer)
            });
            let (before, since) = kept.unwrap_or((*reading, now));
            if now.saturating_duration_since(since) >= self.longest {
                stuck = stuck.or(Some(*id));
            }
            seen.insert(*id, (before, since));
        }
        self.known = seen;
        stuck
    }
}

impl Reading {
    /// Whether the thread got on from here to `later`.
    fn progress(&self, later: &Reading, elapsed: Duration, timer: Option<Duration>) -> bool {
        if self.call != later.call {
            return true;
        }
        let woken = later.switches.saturating_sub(self.switches);
        let counted = self.counted != later.counted;
        let is_in = |calls: &[libc::c_long]| self.call.is_some_and(|call| calls.contains(&call));
        if is_in(&TRANSFERS) && self.counted.is_some() {
            return counted;
        }
        if is_in(&SYNCS) {
            // One more than fit: two sounds of a clock may be nearer than they should.
            let by_timer =
                timer.map_or(0.0, |timer| (elapsed.as_secs_f64() / timer.as_secs_f64()).ceil() + 1.0);
            return counted || woken as f64 > by_timer;
        }
        woken > 0
    }
}

fn threads(process: i32) -> Vec<(i32, i32)> {
    tasks_of(process).iter().filter_map(|task| Some((process, number_of(task)?))).collect()
}

/// A look at a thread that waits for I/O; `None`: it does not.
fn read(thread: &Path, rings: Rings) -> Option<Reading> {
    let file = |name: &str| std::fs::read_to_string(thread.join(name)).ok();
    let status = file("status")?;
    let line = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let state = line("State:")?.chars().next()?;
    if !['D', 'S'].contains(&state) {
        return None;
    }
    // `208 0x7f… …`, or `running`.
    let call = file("syscall").and_then(|text| text.split_whitespace().next()?.parse().ok());
    let for_completion = call.is_some_and(|call| COMPLETIONS.contains(&call)) && rings == Rings::OnlyIo;
    // Uninterruptible: what storage makes others do.
    if state == 'S' && !for_completion {
        return None;
    }
    let switches: u64 = line("voluntary_ctxt_switches:")?.parse().ok()?;
    let forced: u64 = line("nonvoluntary_ctxt_switches:")?.parse().ok()?;
    let sum = |text: String| -> u64 {
        text.lines().filter_map(|line| line.split(' ').nth(1)?.parse::<u64>().ok()).fold(0, u64::wrapping_add)
    };
    Some(Reading { call, switches: switches + forced, counted: file("io").map(sum) })
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
        "no progress: process {process} ({}) has waited for I/O for {} s in one go, in {place}; the trial \
         was ended (--timeout sets a limit of its own instead)",
        comm.trim(),
        longest.as_secs()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Waits for a completion that never comes, at most a minute.
    #[expect(unsafe_code, reason = "libc has no wrapper for the calls of aio")]
    fn wait_in_vain() {
        let mut context: libc::c_ulong = 0;
        let mut event = [0_u64; 4];
        let limit = libc::timespec { tv_sec: 60, tv_nsec: 0 };
        // SAFETY: the kernel writes a word to `context` and at most one event of 32 bytes; both outlive the calls.
        unsafe {
            assert_eq!(libc::syscall(libc::SYS_io_setup, 1, &raw mut context), 0);
            libc::syscall(libc::SYS_io_getevents, context, 1, 1, event.as_mut_ptr(), &raw const limit);
            libc::syscall(libc::SYS_io_destroy, context);
        }
    }

    const WAITS: &str = "ASSAY_TEST_WAITS_IN_VAIN";

    /// Started by the test below, as other tests' threads may wait for I/O as well.
    #[test]
    fn one_that_waits() {
        if std::env::var_os(WAITS).is_some() {
            std::thread::sleep(Duration::from_secs(2));
            wait_in_vain();
        }
    }

    #[test]
    fn who_waits_for_io_is_told_from_who_sleeps_or_works() {
        let mut waiting = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "launch::stall::tests::one_that_waits"])
            .env(WAITS, "1")
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let it = waiting.id() as i32;
        let mut waits = Waits::new(Duration::from_millis(400), Rings::OnlyIo);
        let mut of_a_server = Waits::new(Duration::from_millis(400), Rings::Anything);
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_millis(1200) {
            assert_eq!(waits.look(&[it], Instant::now()), None, "it does not wait for I/O yet");
            std::thread::sleep(Duration::from_millis(50));
        }
        let mut found = None;
        while found.is_none() && begun.elapsed() < Duration::from_secs(50) {
            std::thread::sleep(Duration::from_millis(50));
            found = waits.look(&[it], Instant::now());
            // Who may wait for anything is not meant.
            assert_eq!(of_a_server.look(&[it], Instant::now()), None);
        }
        waiting.kill().unwrap();
        waiting.wait().unwrap();
        let found = found.unwrap();
        assert!(found.contains("no progress") && found.contains(&format!("process {it}")), "{found}");
    }

    /// Seconds until a thread is found stuck of which one reading a second is given by `at`.
    fn stuck_after(at: impl Fn(u64) -> Reading, timer: Option<u64>) -> Option<u64> {
        let mut waits = Waits::new(Duration::from_secs(120), Rings::OnlyIo);
        waits.timer = timer.map(Duration::from_secs);
        let begun = Instant::now();
        (0..600).find(|second| {
            let now = begun + Duration::from_secs(*second);
            waits.judge(&[((1, 1), at(*second))], now).is_some()
        })
    }

    #[test]
    fn who_is_woken_only_to_wait_on_has_made_no_progress() {
        let reading =
            |call, switches, counted| Reading { call: Some(call), switches, counted: Some(counted) };
        // A direct write that never comes: woken up every 60 s, no call ended.
        let hangs = |second| reading(libc::SYS_pwrite64, second / 60, 7);
        assert_eq!(stuck_after(hangs, Some(60)), Some(120));
        // One that does every 100 s.
        let slow = |second| reading(libc::SYS_pwrite64, second / 60, 7 + second / 100);
        assert_eq!(stuck_after(slow, Some(60)), None);
        // A flush that never comes, and a sync that writes a page each 10 s.
        let flush = |second| reading(libc::SYS_fsync, second / 60, 7);
        assert_eq!(stuck_after(flush, Some(60)), Some(120));
        assert_eq!(stuck_after(flush, None), None, "here nobody but a completion wakes up");
        let pages = |second| reading(libc::SYS_fsync, second / 10, 7);
        assert_eq!(stuck_after(pages, Some(60)), None);
        // A discard of a whole device is a wait of many minutes.
        let discard = |second| reading(libc::SYS_ioctl, second / 60, 7);
        assert_eq!(stuck_after(discard, Some(60)), None);
        // Where the kernel does not count I/O, being woken up is all there is to go by.
        let uncounted = |second| Reading { counted: None, ..hangs(second) };
        assert_eq!(stuck_after(uncounted, Some(60)), None);
        // The same call begun again is another one where anything was counted in between, another call always.
        let turns = |second: u64| {
            let call = if (second / 50).is_multiple_of(2) { libc::SYS_fsync } else { libc::SYS_pwrite64 };
            reading(call, second / 50, 7)
        };
        assert_eq!(stuck_after(turns, Some(60)), None);
    }
}
