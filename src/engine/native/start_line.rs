//! Where all instances of a wave wait for each other, threads and processes alike; and how one that failed
//! ends the others.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

/// About a minute of 50 µs sleeps.
const GIVE_UP_TURNS: u32 = 1_200_000;

/// Counters in memory that processes share.
pub(super) struct StartLine {
    shared: *mut Shared,
    runners: u32,
}

struct Shared {
    arrived: AtomicU32,
    stopped: AtomicU32,
}

#[expect(unsafe_code, reason = "atomics in shared memory")]
// SAFETY: only atomics are reached through the pointer, and the mapping lives as long as the value.
unsafe impl Sync for StartLine {}

impl StartLine {
    /// A line for so many runners.
    pub(super) fn new(runners: u32) -> std::io::Result<StartLine> {
        let size = size_of::<Shared>();
        #[expect(unsafe_code, reason = "memory shared with forked processes comes from mmap")]
        // SAFETY: a new mapping at an address of the kernel's choice; zeroed memory is a valid Shared.
        let shared = unsafe {
            mmap_anonymous(std::ptr::null_mut(), size, ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED)
        }?;
        Ok(StartLine { shared: shared.cast(), runners })
    }

    fn shared(&self) -> &Shared {
        #[expect(unsafe_code, reason = "the mapping made in new")]
        // SAFETY: mapped, aligned and initialised (zero) as long as self lives.
        unsafe {
            &*self.shared
        }
    }

    /// Returns when all have arrived, or when one has failed before it could; false when the others took too long.
    #[must_use]
    pub(super) fn wait(&self) -> bool {
        let shared = self.shared();
        shared.arrived.fetch_add(1, Ordering::AcqRel);
        let mut turns = 0_u32;
        while shared.arrived.load(Ordering::Acquire) < self.runners && !self.stopped() {
            turns += 1;
            if turns > GIVE_UP_TURNS {
                // One was killed on its way here: nobody must wait for it for ever.
                self.stop_all();
                return false;
            }
            // Yield first, then sleep: with more runners than CPUs the others must get to arrive.
            if turns < 64 { std::thread::yield_now() } else { std::thread::sleep(Duration::from_micros(50)) }
        }
        true
    }

    /// Tells everybody to stop.
    pub(super) fn stop_all(&self) {
        self.shared().stopped.store(1, Ordering::Release);
    }

    /// Whether somebody told everybody to stop.
    pub(super) fn stopped(&self) -> bool {
        self.shared().stopped.load(Ordering::Relaxed) != 0
    }
}

impl Drop for StartLine {
    fn drop(&mut self) {
        #[expect(unsafe_code, reason = "gives back the mapping made in new")]
        // SAFETY: exactly the mapping made in new; borrows of it end with self.
        let _ = unsafe { munmap(self.shared.cast(), size_of::<Shared>()) };
    }
}
