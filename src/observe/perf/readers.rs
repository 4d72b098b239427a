//! The threads of assay that read events. They are started while others watch already, and what they do is no part of the load.
//!
//! Enters: a thread that begins to read, and from time to time what it has used. Leaves: which threads read, and what all of them used.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use crate::observe::usage::Usage;

/// Readers of this process.
struct Readers {
    /// What each had used when it last said so.
    known: BTreeMap<u32, Usage>,
    /// What those had used whose number another thread has now.
    replaced: Usage,
}

static READERS: Mutex<Option<Readers>> = Mutex::new(None);

fn with_readers<T>(look: impl FnOnce(&mut Readers) -> T) -> T {
    let mut readers = READERS.lock().unwrap_or_else(PoisonError::into_inner);
    look(readers.get_or_insert_with(|| Readers { known: BTreeMap::new(), replaced: Usage::default() }))
}

/// A thread that reads; it says what it used when this is dropped, too.
pub(super) struct Reading {
    thread: u32,
}

impl Reading {
    /// Says what this thread has used until now.
    pub(super) fn tell(&self) {
        with_readers(|readers| readers.known.insert(self.thread, Usage::of(libc::RUSAGE_THREAD)));
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
    with_readers(|readers| {
        if let Some(ended) = readers.known.insert(thread, Usage::default()) {
            readers.replaced = readers.replaced.plus(&ended);
        }
    });
    Reading { thread }
}

/// Whether this thread does.
pub(super) fn has(thread: u32) -> bool {
    with_readers(|readers| readers.known.contains_key(&thread))
}

/// What all of them have used, but for what they did since they last looked for events.
pub(in crate::observe) fn used() -> Usage {
    with_readers(|readers| readers.known.values().fold(readers.replaced, |sum, usage| sum.plus(usage)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_stays_known_when_it_has_ended() {
        let own = || rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
        let reader = std::thread::spawn(move || {
            let _reading = join();
            let ran = || rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime).tv_nsec;
            while ran() < 10_000_000 {}
            own()
        });
        assert!(has(reader.join().unwrap()) && !has(own()));
        // Of other tests, too.
        let used = used();
        assert!(used.usr_us + used.sys_us > 5_000, "{used:?}");
    }
}
