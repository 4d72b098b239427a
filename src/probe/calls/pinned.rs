//! Threads that stay on one processor.
//!
//! Enters: a processor. Leaves: the calling thread on it. Only threads that a probe has started are moved.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Processors that this process may run on, by number.
pub(super) fn allowed() -> Vec<usize> {
    let Ok(set) = sched_getaffinity(None) else { return Vec::new() };
    (0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect()
}

/// Keeps the calling thread on this processor.
///
/// # Errors
/// EINVAL: the processor has gone.
pub(super) fn stay_on(cpu: usize) -> std::io::Result<()> {
    let mut set = CpuSet::new();
    set.set(cpu);
    Ok(sched_setaffinity(None, &set)?)
}
