//! An event of one kind on one processor, with its ring buffer.
//!
//! Enters: what is watched, a processor, sizes. Leaves: a sampler that is not enabled yet.

use std::os::fd::AsRawFd;

use perf_event::events::{self, Software};
use perf_event::{Builder, Clock, ReadFormat, SampleFlag, Sampler};
use rustix::io::Errno;

use super::filter::set_filter;
use super::{Watched, errno_of};

/// Bytes of a ring buffer: some 4000 events with stacks; fewer where a user may lock no more (kernel.perf_event_mlock_kb, RLIMIT_MEMLOCK), or
/// where there are many processors.
const RING_BYTES: [usize; 3] = [1 << 20, 1 << 18, 1 << 16];
/// Of all ring buffers of a watch.
const MOST_RING_BYTES: usize = 256 << 20;
/// Frames of a stack.
const MOST_FRAMES: u16 = 48;

/// The sizes that so many rings may have, the largest first.
pub(super) fn ring_sizes(rings: usize) -> &'static [usize] {
    let fits = |bytes: &usize| rings.saturating_mul(*bytes) <= MOST_RING_BYTES;
    let first = RING_BYTES.iter().position(fits).unwrap_or(RING_BYTES.len() - 1);
    &RING_BYTES[first..]
}

/// Opens the events of one kind on one processor: of this thread and all that it starts, or of all threads there are.
///
/// # Errors
/// The kernel's.
pub(super) fn open(what: Watched, of_all: bool, processor: usize, bytes: usize) -> Result<Sampler, Errno> {
    let build = |read: ReadFormat| {
        let mut builder = match what {
            Watched::Clock { .. } => Builder::new(Software::CPU_CLOCK),
            Watched::Starts => Builder::new(Software::DUMMY),
            Watched::Tracepoint { id, .. }
            | Watched::Filtered { id, .. }
            | Watched::OfMachine { id }
            | Watched::Switches { id } => Builder::new(events::Tracepoint::with_id(id)),
        };
        match what {
            Watched::OfMachine { .. } => builder.any_pid(),
            Watched::Clock { of_machine: true, .. } => builder.any_pid().exclude_idle(true),
            Watched::Starts => builder.any_pid().task(true),
            _ if of_all => builder.any_pid(),
            _ => builder.observe_self().inherit(true),
        };
        builder.one_cpu(processor).clockid(Clock::MONOTONIC);
        builder.sample(SampleFlag::TID).sample(SampleFlag::TIME).read_format(read);
        let user_stacks = matches!(what, Watched::Clock { user_stacks: true, .. });
        builder.exclude_callchain_user(!user_stacks).include_kernel();
        match what {
            Watched::Clock { hertz, kernel, .. } => {
                builder.sample_frequency(hertz).exclude_kernel(!kernel).sample(SampleFlag::IP);
                builder.sample(SampleFlag::CALLCHAIN).sample_max_stack(MOST_FRAMES);
            }
            Watched::Starts => {}
            Watched::Tracepoint { .. }
            | Watched::Filtered { .. }
            | Watched::OfMachine { .. }
            | Watched::Switches { .. } => {
                builder.sample_period(1).sample(SampleFlag::RAW);
                if what.parts().stack {
                    builder.sample(SampleFlag::CALLCHAIN).sample_max_stack(MOST_FRAMES);
                }
            }
        }
        // Then what tells of lost events tells when and of which thread. A lost event of others, who ended a sleep, is no hole.
        let is_of_the_load =
            matches!(what, Watched::Tracepoint { .. } | Watched::Filtered { .. } | Watched::Switches { .. });
        builder.sample_id_all(is_of_the_load);
        if matches!(what, Watched::Switches { .. }) {
            builder.context_switch(true);
        }
        let sampler =
            builder.build().and_then(|counter| counter.sampled(bytes)).map_err(|error| errno_of(&error))?;
        if let Watched::Filtered { filter, .. } = what {
            set_filter(sampler.as_raw_fd(), filter)?;
        }
        if of_all && matches!(what, Watched::Switches { .. }) {
            // Half of all switches are from the idle task.
            set_filter(sampler.as_raw_fd(), "prev_pid != 0")?;
        }
        Ok(sampler)
    };
    // Linux 6.0 counts what was lost even where no later event tells it.
    match build(ReadFormat::LOST) {
        Err(Errno::INVAL) => build(ReadFormat::empty()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_rings_are_small_ones() {
        assert_eq!(ring_sizes(8), RING_BYTES);
        assert_eq!(ring_sizes(7 * 128), [1 << 18, 1 << 16]);
        assert_eq!(ring_sizes(7 * 4096), [1 << 16]);
    }
}
