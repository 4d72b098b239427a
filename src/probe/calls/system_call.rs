//! A system call that does next to nothing: getppid(2), which no library answers from memory.

use std::hint::black_box;
use std::time::Duration;

use super::super::timed;

/// Calls between two looks at the clock.
const BATCH: u32 = 1000;

/// Nanoseconds for a call.
pub(super) fn sample(slice: Duration) -> std::io::Result<f64> {
    timed::whole(slice, BATCH, || {
        for _ in 0..BATCH {
            black_box(rustix::process::getppid());
        }
        Ok(())
    })
}
