//! Where all instances of a wave wait for each other, threads and processes alike; how one that failed ends the others,
//! and how one that is done does (`exitall`).
//!
//! Enters: who takes part, and which of them end together. Leaves: one moment of the clock at which all begin. Waiting
//! is done in the kernel (futex(2), then a sleep to that moment), so that nobody who waits takes the processor from one
//! who is still on the way.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use rustix::thread::futex;
use rustix::time::{ClockId, Timespec};

use super::clock::Clock;

/// How long somebody waits for the others.
const PATIENCE_S: u32 = 60;
/// From the last arrival to the start: what it takes to wake one sleeper, with some to spare, for each.
const HEADWAY_NS: u64 = 100_000;
const HEADWAY_A_RUNNER_NS: u64 = 25_000;

const CLOSED: u32 = 0;
const OPEN: u32 = 1;

/// Values of a group's word.
const GOING: u32 = 0;
const ENDED: u32 = 1;

/// A wave in memory that processes share.
pub(super) struct Wave {
    shared: *mut Shared,
    groups: usize,
    runners: u32,
}

/// What one instance has of its wave.
#[derive(Clone, Copy)]
pub(super) struct StartLine<'w> {
    wave: &'w Wave,
    /// Its group's word, which is looked at once an I/O.
    word: &'w AtomicU32,
}

/// Followed by the groups' words.
#[repr(C, align(64))]
struct Shared {
    arrived: AtomicU32,
    gate: AtomicU32,
    start_ns: AtomicU64,
}

/// Alone in its cache line: it is read all the time and written once.
#[repr(C, align(64))]
struct Word(AtomicU32);

#[expect(unsafe_code, reason = "atomics in shared memory")]
// SAFETY: only atomics are reached through the pointer, and the mapping lives as long as the value.
unsafe impl Sync for Wave {}

impl Wave {
    /// For so many runners in so many groups.
    ///
    /// # Errors
    /// The kernel's, when there is no memory.
    pub(super) fn new(runners: u32, groups: usize) -> std::io::Result<Wave> {
        let size = size(groups);
        #[expect(unsafe_code, reason = "memory shared with forked processes comes from mmap")]
        // SAFETY: a new mapping at an address of the kernel's choice; zeroed memory is a valid Shared and valid Words.
        let shared = unsafe {
            mmap_anonymous(std::ptr::null_mut(), size, ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED)
        }?;
        Ok(Wave { shared: shared.cast(), groups, runners })
    }

    /// The start line as an instance of `group` sees it.
    pub(super) fn line(&self, group: usize) -> StartLine<'_> {
        StartLine { wave: self, word: self.word(group.min(self.groups - 1)) }
    }

    /// Tells everybody to stop: something failed.
    pub(super) fn stop_all(&self) {
        (0..self.groups).for_each(|group| self.word(group).store(ENDED, Ordering::Release));
        (0..self.groups).for_each(|group| wake_all(self.word(group)));
        // Nobody needs to be waited for any more.
        if self.shared().gate.swap(OPEN, Ordering::AcqRel) == CLOSED {
            wake_all(&self.shared().gate);
        }
    }

    fn shared(&self) -> &Shared {
        #[expect(unsafe_code, reason = "the mapping made in new")]
        // SAFETY: mapped, aligned and initialised (zero) as long as self lives.
        unsafe {
            &*self.shared
        }
    }

    fn word(&self, group: usize) -> &AtomicU32 {
        debug_assert!(group < self.groups);
        #[expect(unsafe_code, reason = "the mapping made in new")]
        // SAFETY: the words follow the header, which is as aligned as they are; mapped and zero as long as self lives.
        unsafe {
            &(*self.shared.add(1).cast::<Word>().add(group)).0
        }
    }
}

fn size(groups: usize) -> usize {
    size_of::<Shared>() + groups * size_of::<Word>()
}

impl Drop for Wave {
    fn drop(&mut self) {
        #[expect(unsafe_code, reason = "gives back the mapping made in new")]
        // SAFETY: exactly the mapping made in new; borrows of it end with self.
        let _ = unsafe { munmap(self.shared.cast(), size(self.groups)) };
    }
}

impl StartLine<'_> {
    /// Waits until all have arrived, or somebody has failed: the moment at which all begin, which is now; `None` when
    /// the others took too long.
    #[must_use]
    pub(super) fn wait(&self, clock: &Clock) -> Option<u64> {
        let shared = self.wave.shared();
        if shared.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.wave.runners {
            let runners = u64::from(self.wave.runners);
            let headway = if runners > 1 { HEADWAY_NS + runners * HEADWAY_A_RUNNER_NS } else { 0 };
            shared.start_ns.store(clock.now_ns() + headway, Ordering::Relaxed);
            shared.gate.store(OPEN, Ordering::Release);
            wake_all(&shared.gate);
        }
        let mut seconds = 0;
        while shared.gate.load(Ordering::Acquire) == CLOSED {
            if wait_on(&shared.gate, CLOSED, Duration::from_secs(1)) {
                continue;
            }
            seconds += 1;
            if seconds > PATIENCE_S {
                // One was killed on its way here: nobody must wait for it for ever.
                self.stop_all();
                return None;
            }
        }
        match shared.start_ns.load(Ordering::Relaxed) {
            // It was opened because somebody failed.
            0 => Some(clock.now_ns()),
            start_ns => {
                sleep_until(start_ns);
                Some(start_ns)
            }
        }
    }

    /// Sleeps until `until_ns` of the clock, or until it is told to stop.
    pub(super) fn sleep_until(&self, clock: &Clock, until_ns: u64) {
        while !self.stopped() {
            let left_ns = until_ns.saturating_sub(clock.now_ns());
            if left_ns == 0 {
                return;
            }
            if !wait_on(self.word, GOING, Duration::from_nanos(left_ns)) {
                // By the kernel's clock, which may be some nanoseconds ahead: not worth another sleep.
                return;
            }
        }
    }

    /// Tells everybody to stop: something failed.
    pub(super) fn stop_all(&self) {
        self.wave.stop_all();
    }

    /// Tells those of its group to end with what they have (`exitall`).
    pub(super) fn finish_group(&self) {
        self.word.store(ENDED, Ordering::Release);
        wake_all(self.word);
    }

    /// Whether somebody told it to stop.
    #[inline]
    pub(super) fn stopped(&self) -> bool {
        self.word.load(Ordering::Relaxed) != GOING
    }
}

/// Sleeps while `word` is `value`; false when the time was up.
fn wait_on(word: &AtomicU32, value: u32, at_most: Duration) -> bool {
    let timeout = Timespec { tv_sec: at_most.as_secs() as i64, tv_nsec: i64::from(at_most.subsec_nanos()) };
    // Not FUTEX_PRIVATE: other processes wake it.
    !matches!(futex::wait(word, futex::Flags::empty(), value, Some(&timeout)), Err(Errno::TIMEDOUT))
}

fn wake_all(word: &AtomicU32) {
    let _ = futex::wake(word, futex::Flags::empty(), i32::MAX as u32);
}

/// The clock is `CLOCK_MONOTONIC`'s, so that all timers run out at one moment.
fn sleep_until(moment_ns: u64) {
    let request =
        Timespec { tv_sec: (moment_ns / 1_000_000_000) as i64, tv_nsec: (moment_ns % 1_000_000_000) as i64 };
    while rustix::thread::clock_nanosleep_absolute(ClockId::Monotonic, &request) == Err(Errno::INTR) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn all_begin_at_one_moment() {
        let (wave, clock) = (Wave::new(8, 1).unwrap(), Clock::new());
        let moments: Vec<(u64, u64)> = std::thread::scope(|scope| {
            let runners: Vec<_> = (0..8)
                .map(|number| {
                    let (line, clock) = (wave.line(0), &clock);
                    scope.spawn(move || {
                        std::thread::sleep(Duration::from_millis(3 * number));
                        let start_ns = line.wait(clock).unwrap();
                        (start_ns, clock.now_ns())
                    })
                })
                .collect();
            runners.into_iter().map(|runner| runner.join().unwrap()).collect()
        });
        assert!(moments.iter().all(|(start_ns, _)| *start_ns == moments[0].0), "{moments:?}");
        // 5 µs: the counter and the kernel's clock are two clocks.
        assert!(moments.iter().all(|(start_ns, now_ns)| *now_ns + 5_000 >= *start_ns), "{moments:?}");
    }

    #[test]
    fn one_alone_waits_for_nobody() {
        let (wave, clock) = (Wave::new(1, 1).unwrap(), Clock::new());
        let before = clock.now_ns();
        assert!((before..before + 5_000_000_000).contains(&wave.line(0).wait(&clock).unwrap()));
    }

    #[test]
    fn a_failure_opens_the_gate_and_wakes_sleepers() {
        let (wave, clock) = (Wave::new(3, 2).unwrap(), Clock::new());
        let begun = Instant::now();
        std::thread::scope(|scope| {
            scope.spawn(|| assert!(wave.line(0).wait(&clock).is_some()));
            scope.spawn(|| wave.line(1).sleep_until(&clock, clock.now_ns() + 60_000_000_000));
            std::thread::sleep(Duration::from_millis(20));
            wave.line(1).stop_all();
        });
        assert!(begun.elapsed() < Duration::from_secs(30));
        assert!(wave.line(0).stopped() && wave.line(1).stopped());
    }

    #[test]
    fn a_group_that_finishes_leaves_the_others() {
        let wave = Wave::new(3, 2).unwrap();
        wave.line(1).finish_group();
        assert!(wave.line(1).stopped() && !wave.line(0).stopped());
        let clock = Clock::new();
        let begun = Instant::now();
        wave.line(0).sleep_until(&clock, clock.now_ns() + 2_000_000);
        assert!(begun.elapsed() >= Duration::from_millis(2));
    }
}
