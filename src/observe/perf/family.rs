//! Whose events are handed on, where the whole machine is watched.
//!
//! Enters: whose are wanted, what is watched, and each event in the order of time, with those that say which threads are started. Leaves: whether a sink gets
//! it. It must not know what an event means.

use std::collections::HashSet;

use super::event::Event;
use super::{Watched, readers};
use crate::sys::task::{children_of, number_of, tasks_of};

/// Whose events are wanted, with those of all threads that are started by them from then on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::observe) enum Whose {
    /// The thread that begins to watch.
    Own,
    /// Processes that run already, with all that they have started.
    Others(Vec<i32>),
}

impl Whose {
    /// A server's, or this thread's.
    pub(in crate::observe) fn of(server: Option<&[i32]>) -> Whose {
        server.map_or(Whose::Own, |processes| Whose::Others(processes.to_vec()))
    }

    /// Whether the whole machine has to be watched for them.
    pub(in crate::observe) fn are_others(&self) -> bool {
        matches!(self, Whose::Others(_))
    }

    /// Their threads now.
    pub(super) fn threads(&self) -> HashSet<u32> {
        let mut threads = HashSet::new();
        let mut processes = match self {
            Whose::Own => return HashSet::from([own_thread()]),
            Whose::Others(processes) => processes.clone(),
        };
        while let Some(process) = processes.pop() {
            for task in tasks_of(process) {
                let thread = number_of(&task).and_then(|number| u32::try_from(number).ok());
                if thread.is_some_and(|thread| threads.insert(thread)) {
                    processes.extend(children_of(&task));
                }
            }
        }
        threads
    }
}

fn own_thread() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs()
}

/// The threads whose events are wanted, of which alone those of the whole machine are handed on; but for threads that read events.
pub(super) struct Family {
    threads: HashSet<u32>,
    /// The places of what watches the whole machine for their sake in the list of what is watched.
    filtered: Vec<usize>,
}

impl Family {
    /// That of these; of this thread, until it is told with which it begins.
    pub(super) fn new(whose: &Whose, watched: &[Watched]) -> Family {
        let of_machine = |what: &Watched| match what {
            Watched::Clock { of_machine: true, .. } => true,
            // What tells of everybody is meant so.
            Watched::OfMachine { .. } | Watched::Starts => false,
            _ => whose.are_others(),
        };
        let filtered = (0..watched.len()).filter(|at| of_machine(&watched[*at])).collect();
        Family { threads: HashSet::from([own_thread()]), filtered }
    }

    /// It begins with these threads.
    pub(super) fn begins_with(&mut self, threads: HashSet<u32>) {
        self.threads = threads;
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
        let filtered = self.filtered.contains(&event.watched);
        (!filtered || self.threads.contains(&event.thread)) && !readers::has(event.thread)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_others_all_is_filtered_but_what_tells_of_everybody() {
        let own = std::process::id();
        let whose = Whose::of(Some(&[i32::try_from(own).unwrap()]));
        let watched = [Watched::Switches { id: 1 }, Watched::OfMachine { id: 2 }, Watched::Starts];
        let mut family = Family::new(&whose, &watched);
        family.begins_with(whose.threads());
        // All threads of a process, and not only its first.
        assert!(whose.threads().contains(&own) && whose.threads().contains(&own_thread()));
        let stranger = Event { watched: 0, thread: 2, ..Event::default() };
        assert!(!family.has(&stranger) && family.has(&Event { watched: 1, ..stranger.clone() }));
        assert!(family.has(&Event { thread: own, ..stranger }));
    }

    #[test]
    fn of_the_machines_samples_only_the_familys_are_handed_on() {
        let clock = Watched::Clock { hertz: 1, kernel: true, user_stacks: false, of_machine: true };
        let mut family = Family::new(&Whose::Own, &[Watched::OfMachine { id: 1 }, clock]);
        let own = own_thread();
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
