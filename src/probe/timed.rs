//! What a piece of work takes, done again and again for a slice of time.
//!
//! Enters: the work. Leaves: nanoseconds for one piece. It must not know what the work is.

use std::time::{Duration, Instant};

/// Nanoseconds for each of the `pieces` that a step consists of; the steps follow each other at once.
///
/// # Errors
/// Those of the step.
pub(super) fn whole(
    slice: Duration,
    pieces: u32,
    mut step: impl FnMut() -> std::io::Result<()>,
) -> std::io::Result<f64> {
    let (begun, mut done) = (Instant::now(), 0_u64);
    loop {
        step()?;
        done += u64::from(pieces);
        let took = begun.elapsed();
        if took >= slice {
            return Ok(took.as_nanos() as f64 / done as f64);
        }
    }
}

/// The same where only a part of a step counts: `step` returns how long that took.
///
/// # Errors
/// Those of the step.
pub(super) fn part(
    slice: Duration,
    pieces: u32,
    mut step: impl FnMut() -> std::io::Result<Duration>,
) -> std::io::Result<f64> {
    let begun = Instant::now();
    let (mut took, mut done) = (Duration::ZERO, 0_u64);
    while done == 0 || begun.elapsed() < slice {
        took += step()?;
        done += u64::from(pieces);
    }
    Ok(took.as_nanos() as f64 / done as f64)
}
