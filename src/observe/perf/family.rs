//! Whose events are handed on, where the whole machine is watched.
//!
//! Enters: what is watched, and each event in the order of time, with those that say which threads are started. Leaves: whether a sink gets
//! it. It must not know what an event means.

use std::collections::HashSet;

use super::event::Event;
use super::{Watched, readers};

/// The thread that began to watch, and all that it has started since, of which alone samples of the whole machine are handed on; but for
/// those that read events.
pub(super) struct Family {
    threads: HashSet<u32>,
    /// The places of what samples the whole machine in the list of what is watched.
    sampled: Vec<usize>,
}

impl Family {
    /// That of this thread.
    pub(super) fn new(watched: &[Watched]) -> Family {
        let of_machine = |what: &Watched| matches!(what, Watched::Clock { of_machine: true, .. });
        let sampled = (0..watched.len()).filter(|at| of_machine(&watched[*at])).collect();
        let own = rustix::thread::gettid().as_raw_nonzero().get();
        Family { threads: HashSet::from([own.unsigned_abs()]), sampled }
    }

    /// Whether an event is handed on.
    pub(super) fn has(&mut self, event: &Event) -> bool {
        if let Some(parent) = event.started_by {
            // The number of a thread that has ended may be another's.
            match self.threads.contains(&parent) {
                true => self.threads.insert(event.thread),
                false => self.threads.remove(&event.thread),
            };
            return false;
        }
        let sampled = self.sampled.contains(&event.watched);
        (!sampled || self.threads.contains(&event.thread)) && !readers::has(event.thread)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_the_machines_samples_only_the_familys_are_handed_on() {
        let clock = Watched::Clock { hertz: 1, kernel: true, user_stacks: false, of_machine: true };
        let mut family = Family::new(&[Watched::OfMachine { id: 1 }, clock]);
        let own = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
        let sample = |thread: u32| Event { watched: 1, thread, ..Event::default() };
        let starts = |parent: u32, thread: u32| Event { started_by: Some(parent), ..sample(thread) };
        let (child, other) = (own + 1, own + 2);
        for (event, handed_on) in [
            (sample(own), true),
            (sample(child), false),
            (starts(own, child), false),
            (sample(child), true),
            (starts(child, child + 9), false),
            (sample(child + 9), true),
            (sample(other), false),
            (Event { watched: 0, ..sample(other) }, true),
            // The child has ended, and another process has its number.
            (starts(other, child), false),
            (sample(child), false),
        ] {
            assert_eq!(family.has(&event), handed_on, "{event:?}");
        }
    }
}
