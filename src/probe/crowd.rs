//! Several threads doing the same work for a slice of time.
//!
//! Enters: what each thread works with, and the work. Leaves: how much all of them did in a second. It must not know what the work is.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{PoisonError, RwLock};
use std::time::{Duration, Instant};

/// Work done in a second by all threads together, one for each of `states`. `work` goes on until it sees the flag, and returns how
/// much it did. The time is that from the common start to the end of the last thread, so that threads which had to wait for a
/// processor make the figure smaller, never larger.
///
/// # Errors
/// A thread cannot be started.
pub(super) fn rate<State: Send>(
    states: impl IntoIterator<Item = State>,
    slice: Duration,
    work: impl Fn(State, &AtomicBool) -> u64 + Sync,
) -> std::io::Result<f64> {
    let (gate, stop) = (RwLock::new(()), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let (gate, stop, work) = (&gate, &stop, &work);
        let closed = gate.write().unwrap_or_else(PoisonError::into_inner);
        let mut workers = Vec::new();
        for state in states {
            let worker = std::thread::Builder::new().spawn_scoped(scope, move || {
                drop(gate.read().unwrap_or_else(PoisonError::into_inner));
                work(state, stop)
            });
            // Those that were started end by themselves when the gate opens.
            workers.push(worker.inspect_err(|_| stop.store(true, Ordering::Relaxed))?);
        }
        let begun = Instant::now();
        drop(closed);
        std::thread::sleep(slice);
        stop.store(true, Ordering::Relaxed);
        let mut done = 0;
        for worker in workers {
            done += worker.join().map_err(|_| std::io::Error::other("a thread of the probe ended"))?;
        }
        Ok(done as f64 / begun.elapsed().as_secs_f64())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_work_of_all_threads_is_added_up() {
        let slice = Duration::from_millis(20);
        let begun = Instant::now();
        let rate = rate([3_u64, 4], slice, |amount, stop| {
            while !stop.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
            amount
        })
        .unwrap();
        // 7 in the time it took: at least the slice, at most all that passed here.
        assert!(rate <= 7.0 / slice.as_secs_f64() && rate >= 7.0 / begun.elapsed().as_secs_f64(), "{rate}");
    }
}
