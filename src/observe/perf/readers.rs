//! The threads of assay that read events. They are started while others watch already, and what they do is no part of the load.
//!
//! Enters: a thread that begins to read, and from time to time what it has used. Leaves: which threads read, and what all of them used.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::observe::usage::Usage;

/// Readers of this process, with what each had used when it last said so.
static READERS: Mutex<BTreeMap<u32, Usage>> = Mutex::new(BTreeMap::new());

fn readers() -> MutexGuard<'static, BTreeMap<u32, Usage>> {
    READERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A thread that reads; it says what it used when this is dropped, too.
pub(super) struct Reading {
    thread: u32,
}

impl Reading {
    /// Says what this thread has used until now.
    pub(super) fn tell(&self) {
        readers().insert(self.thread, Usage::of(libc::RUSAGE_THREAD));
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        self.tell();
    }
}

/// This thread reads events from now on, and is known to for as long as the process lives: others may still have events of it when it has
/// ended.
pub(super) fn join() -> Reading {
    let thread = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
    readers().insert(thread, Usage::default());
    Reading { thread }
}

/// Whether this thread does.
pub(super) fn has(thread: u32) -> bool {
    readers().contains_key(&thread)
}

/// What all of them have used, but for what they did since they last looked for events.
pub(in crate::observe) fn used() -> Usage {
    readers().values().fold(Usage::default(), |sum, usage| sum.plus(usage))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_stays_known_when_it_has_ended() {
        let own = || rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
        let reader = std::thread::spawn(move || {
            let _reading = join();
            let begun = std::time::Instant::now();
            while begun.elapsed().as_millis() < 50 {}
            own()
        });
        assert!(has(reader.join().unwrap()) && !has(own()));
        // Of other tests, too.
        let used = used();
        assert!(used.usr_us + used.sys_us > 5_000, "{used:?}");
    }
}
