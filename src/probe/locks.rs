//! How often a second a lock is taken: by kind, by how long it is held, by number of threads.
//!
//! Enters: nothing. Leaves: probes. These are stand-ins outside the kernel, with the instructions and the sleep of the kernel's own: a
//! mutex for what one owner has at a time, a reader-writer lock for what readers share in one word, a counter of each thread for what the
//! kernel keeps for each processor, and epochs for read-copy-update. The grabs of all threads are added up; nobody does anything between
//! two grabs, which is the most that a lock can be asked for.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use super::crowd;
use super::{Group, Probe, processors, thread_counts};
use crate::units::Unit;

/// How long a lock is held, by name, in ns.
const HELD: [(&str, u64); 3] = [("0", 0), ("200ns", 200), ("2us", 2000)];

named! {
    /// A kind of lock.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Kind {
        Exclusive = "exclusive",
        Shared = "shared",
        PerThread = "per_thread",
        Epoch = "epoch",
    }
}

/// A number with cache lines of its own: two, because processors fetch pairs.
#[derive(Default)]
#[repr(align(128))]
struct Apart(AtomicU64);

/// All locks, shared by the probes.
struct Locks {
    exclusive: Mutex<()>,
    shared: RwLock<()>,
    epoch: Apart,
    own: Vec<Apart>,
}

/// All probes of locks.
pub(super) fn probes() -> Vec<Probe> {
    let own = (0..processors()).map(|_| Apart::default()).collect();
    let epoch = Apart(AtomicU64::new(2));
    let locks = Arc::new(Locks { exclusive: Mutex::new(()), shared: RwLock::new(()), epoch, own });
    let mut probes = Vec::new();
    for kind in Kind::ALL {
        for (held, ns) in HELD {
            for threads in thread_counts(processors()) {
                let locks = Arc::clone(&locks);
                let sample = move |slice| {
                    crowd::rate(0..threads, slice, |thread, stop| {
                        grabs(kind, Duration::from_nanos(ns), &locks, &locks.own[thread].0, stop)
                    })
                };
                let name = format!("{}.held_{held}.t{threads}", kind.name());
                probes.push(Probe::new(Group::Locks, name, Unit::PerSecond, sample));
            }
        }
    }
    probes
}

/// Takes and leaves the lock until it is stopped; grabs.
fn grabs(kind: Kind, held: Duration, locks: &Locks, own: &AtomicU64, stop: &AtomicBool) -> u64 {
    let mut grabs = 0;
    loop {
        match kind {
            Kind::Exclusive => {
                let _owner = locks.exclusive.lock().unwrap_or_else(PoisonError::into_inner);
                hold(held);
            }
            Kind::Shared => {
                let _reader = locks.shared.read().unwrap_or_else(PoisonError::into_inner);
                hold(held);
            }
            Kind::PerThread => {
                own.fetch_add(1, Ordering::Acquire);
                hold(held);
                own.fetch_sub(1, Ordering::Release);
            }
            Kind::Epoch => {
                // A reader announces the epoch it has seen, and only then looks at what is protected.
                own.store(locks.epoch.0.load(Ordering::Relaxed) | 1, Ordering::Relaxed);
                fence(Ordering::SeqCst);
                hold(held);
                own.store(0, Ordering::Release);
            }
        }
        grabs += 1;
        if stop.load(Ordering::Relaxed) {
            return grabs;
        }
    }
}

/// Keeps the processor busy for so long.
#[inline]
fn hold(held: Duration) {
    if held.is_zero() {
        return;
    }
    let begun = Instant::now();
    while begun.elapsed() < held {
        std::hint::spin_loop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_left_as_it_was_taken() {
        for kind in Kind::ALL {
            for mut probe in probes().into_iter().filter(|probe| probe.name.starts_with(kind.name())) {
                let rate = (probe.sample)(Duration::from_millis(1)).unwrap();
                assert!(rate > 0.0 && rate.is_finite(), "{}", probe.name);
            }
        }
        let locks = Locks {
            exclusive: Mutex::new(()),
            shared: RwLock::new(()),
            epoch: Apart::default(),
            own: vec![Apart::default()],
        };
        let stopped = AtomicBool::new(true);
        for kind in Kind::ALL {
            assert_eq!(grabs(kind, Duration::from_nanos(200), &locks, &locks.own[0].0, &stopped), 1);
            assert_eq!(locks.own[0].0.load(Ordering::Relaxed), 0, "{kind:?}");
        }
        assert!(locks.exclusive.try_lock().is_ok() && locks.shared.try_write().is_ok());
    }

    #[test]
    fn a_lock_is_never_held_shorter_than_asked() {
        let begun = Instant::now();
        hold(Duration::from_micros(300));
        assert!(begun.elapsed() >= Duration::from_micros(300));
    }
}
