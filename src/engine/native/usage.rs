//! What the kernel charged to a thread.

use std::fs::File;
use std::path::Path;

use rustix::io::pread;
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use crate::sys::task::{Scheduled, TaskStat, can_be_waited, delays_are_counted, seconds_of_ticks};

/// What the kernel charged to the instance's thread.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Usage {
    pub(super) user_s: f64,
    pub(super) system_s: f64,
    pub(super) voluntary: u64,
    pub(super) involuntary: u64,
    pub(super) minor_faults: u64,
    pub(super) major_faults: u64,
}

impl Usage {
    /// Of the calling thread, since it began.
    pub(super) fn now() -> Usage {
        // Has the kernel add up what it charged to this thread: its sum is otherwise as old as the last tick.
        let _ = clock_gettime(ClockId::ThreadCPUTime);
        let usage = crate::sys::usage(libc::RUSAGE_THREAD);
        let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
        Usage {
            user_s: seconds(usage.ru_utime),
            system_s: seconds(usage.ru_stime),
            voluntary: usage.ru_nvcsw as u64,
            involuntary: usage.ru_nivcsw as u64,
            minor_faults: usage.ru_minflt as u64,
            major_faults: usage.ru_majflt as u64,
        }
    }

    /// What was added since `earlier`.
    pub(super) fn since(self, earlier: Usage) -> Usage {
        Usage {
            user_s: self.user_s - earlier.user_s,
            system_s: self.system_s - earlier.system_s,
            voluntary: self.voluntary - earlier.voluntary,
            involuntary: self.involuntary - earlier.involuntary,
            minor_faults: self.minor_faults - earlier.minor_faults,
            major_faults: self.major_faults - earlier.major_faults,
        }
    }
}

/// What the instance's thread waited for.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Waits {
    /// Ready to run, without a processor; `None`: the kernel does not count it.
    pub(super) run_wait_s: Option<f64>,
    /// Waiting for block I/O; `None`: the kernel does not count it.
    pub(super) storage_s: Option<f64>,
}

impl Waits {
    /// What was added since `earlier`.
    pub(super) fn since(self, earlier: Waits) -> Waits {
        let added = |now: Option<f64>, then: Option<f64>| now.zip(then).map(|(now, then)| now - then);
        Waits {
            run_wait_s: added(self.run_wait_s, earlier.run_wait_s),
            storage_s: added(self.storage_s, earlier.storage_s),
        }
    }

    /// Without what cannot be, of a thread that lived so long.
    pub(super) fn within(self, lived_s: f64) -> Waits {
        Waits { storage_s: self.storage_s.filter(|waited_s| can_be_waited(*waited_s, lived_s)), ..self }
    }
}

/// The kernel's counts of what one thread waits for, opened beforehand: reading them then takes some 1 µs, which may lie behind a common
/// start. What was waited before the start belongs to no transfer.
#[derive(Debug, Default)]
pub(super) struct WaitCounts {
    scheduled: Option<File>,
    stat: Option<File>,
}

impl WaitCounts {
    /// Of the calling thread.
    pub(super) fn of_this_thread() -> WaitCounts {
        let own = |name: &str| File::open(Path::new("/proc/thread-self").join(name)).ok();
        WaitCounts { scheduled: own("schedstat"), stat: delays_are_counted().then(|| own("stat")).flatten() }
    }

    /// Since the thread began.
    pub(super) fn now(&self) -> Waits {
        let mut text = [0; 1024];
        let scheduled = self.scheduled.as_ref().and_then(|file| Scheduled::parse(read(file, &mut text)?));
        let stat = self.stat.as_ref().and_then(|file| TaskStat::parse(read(file, &mut text)?));
        Waits {
            run_wait_s: scheduled.map(|counted| counted.waited_ns as f64 / 1e9),
            storage_s: stat.map(|stat| seconds_of_ticks(stat.storage_ticks)),
        }
    }
}

/// What a file of `/proc` says now.
fn read<'t>(file: &File, text: &'t mut [u8]) -> Option<&'t str> {
    let length = pread(file, &mut *text, 0).ok()?;
    std::str::from_utf8(&text[..length]).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_working_thread_is_charged_at_once_a_sleeping_one_not() {
        let spin = |ms: u64| {
            let begun = std::time::Instant::now();
            while begun.elapsed().as_millis() < u128::from(ms) {
                std::hint::black_box(0);
            }
        };
        // Shorter than a tick of any kernel: sums that were not brought up to date would be 0 or a whole tick.
        let counts = WaitCounts::of_this_thread();
        let walls = [(); 5].map(|()| {
            let (before, waited) = (Usage::now(), counts.now());
            spin(2);
            let (after, waited) = (Usage::now().since(before), counts.now().since(waited));
            after.user_s + after.system_s + waited.run_wait_s.unwrap()
        });
        // What the host of a virtual machine steals meanwhile is in no count.
        assert!(walls.iter().any(|wall| *wall > 0.0015), "{walls:?}");
        let before = Usage::now();
        std::thread::sleep(std::time::Duration::from_millis(20));
        let asleep = Usage::now().since(before);
        assert!(asleep.user_s + asleep.system_s < 0.01, "{asleep:?}");
    }
}
