//! The threads of assay that read events. They are started while others watch already, and what they do is no part of the load.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

static READERS: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

/// This thread reads events from now on, for as long as the process lives: others may still have events of it when it has ended.
pub(super) fn join() {
    let own = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
    READERS.lock().unwrap_or_else(PoisonError::into_inner).insert(own);
}

/// Whether this thread does.
pub(super) fn has(thread: u32) -> bool {
    READERS.lock().unwrap_or_else(PoisonError::into_inner).contains(&thread)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_stays_known_when_it_has_ended() {
        let own = || rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
        let reader = std::thread::spawn(move || {
            join();
            own()
        });
        assert!(has(reader.join().unwrap()) && !has(own()));
    }
}
