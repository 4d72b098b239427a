//! Up to when completed writes are on stable storage, as the flushes of a device say.
//!
//! Enters: flush commands as they are issued and complete. Leaves: two times. A completed flush makes durable what was complete
//! when it was issued. A hardware queue has one command in flight (block/blk-flush.c): where there is one queue, the next command says
//! that the one before has ended. Commands carry no number: with several in flight, the one that completed may be the oldest or the newest, so
//! there is a time up to which all is surely stable and one beyond which nothing is. Between the two the block layer is believed: it issues
//! a write that asks for a flush before it, and ends one that needs a flush behind it, when a command has completed that was issued later
//! than it was asked for.

use std::collections::VecDeque;

/// More commands than any device holds.
const MOST: usize = 1 << 16;

/// What is stable on one device.
#[derive(Debug, Default)]
pub(super) struct Stable {
    /// Issues not matched by a completion, the oldest being taken first.
    oldest_first: VecDeque<u64>,
    /// The same, the newest being taken first.
    newest_first: Vec<u64>,
    surely_ns: u64,
    at_most_ns: u64,
    /// The device has one hardware queue.
    one_queue: bool,
    /// It is known how many it has.
    queues_known: bool,
}

/// Whether a write is stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Yes,
    Unclear,
    No,
}

impl Stable {
    pub(super) fn of_queues(queues: Option<u32>) -> Stable {
        Stable { one_queue: queues == Some(1), queues_known: queues.is_some(), ..Stable::default() }
    }

    pub(super) fn issued(&mut self, time_ns: u64) {
        // Without its end nobody knows what the one before has made durable.
        if self.one_queue || self.newest_first.len() >= MOST {
            self.forget();
        }
        self.oldest_first.push_back(time_ns);
        self.newest_first.push(time_ns);
    }

    /// A command was given back and will be issued again.
    pub(super) fn requeued(&mut self) {
        self.take_back();
    }

    /// A command leaves that made nothing durable. It may be any of those in flight; the bounds hold whichever it was, as the newest leaves the
    /// one list and the oldest the other.
    fn take_back(&mut self) -> Option<u64> {
        if !self.newest_first.is_empty() {
            self.newest_first.remove(0);
        }
        self.oldest_first.pop_back()
    }

    /// A command completed. Returns how long it took if it was the only one. Of several the oldest is taken to have ended, whose sum is right
    /// whichever it was; but where the queues are not known one of them may have ended unseen long ago.
    pub(super) fn completed(&mut self, time_ns: u64, success: bool) -> Option<u64> {
        let is_certain = self.newest_first.len() == 1 || self.queues_known;
        let issued_ns = if success {
            let oldest = self.oldest_first.pop_front();
            self.surely_ns = self.surely_ns.max(oldest.unwrap_or(0));
            // Without its issue it may have been issued just now.
            self.at_most_ns = self.at_most_ns.max(self.newest_first.pop().unwrap_or(time_ns));
            oldest
        } else {
            self.take_back()
        };
        issued_ns.filter(|_| is_certain).map(|issued| time_ns.saturating_sub(issued))
    }

    /// A bio with a flush before it has ended on a device without requests; it was queued between these times.
    pub(super) fn bio_flushed(&mut self, queued_ns: u64, latest_ns: u64) {
        self.surely_ns = self.surely_ns.max(queued_ns);
        self.at_most_ns = self.at_most_ns.max(latest_ns);
    }

    /// The block layer took the next step with a write that had asked at this time for a flush. If a command may have completed that was
    /// issued later, one has; if none may have, this proves nothing.
    pub(super) fn waited_for(&mut self, asked_ns: u64) {
        if self.holds(asked_ns) == Answer::Unclear {
            self.surely_ns = asked_ns;
        }
    }

    /// Events are missing: commands in flight are not known any more. What was stable stays so.
    pub(super) fn forget(&mut self) {
        self.oldest_first.clear();
        self.newest_first.clear();
    }

    /// Whether what had completed at this time is stable.
    pub(super) fn holds(&self, completed_ns: u64) -> Answer {
        if completed_ns <= self.surely_ns {
            Answer::Yes
        } else if completed_ns <= self.at_most_ns {
            Answer::Unclear
        } else {
            Answer::No
        }
    }

    /// Whether some flush may have been issued after this time and have completed.
    pub(super) fn flushed_since(&self, time_ns: u64) -> bool {
        self.at_most_ns >= time_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flush_covers_what_was_complete_when_it_was_issued() {
        let mut stable = Stable::default();
        stable.issued(10);
        assert_eq!(stable.holds(5), Answer::No);
        assert_eq!(stable.completed(20, true), Some(10));
        assert_eq!((stable.holds(10), stable.holds(11)), (Answer::Yes, Answer::No));
        stable.issued(30);
        assert_eq!(stable.completed(40, false), Some(10));
        assert_eq!(stable.holds(25), Answer::No);
    }

    #[test]
    fn of_one_queue_the_next_command_ends_the_one_before() {
        let mut stable = Stable::of_queues(Some(1));
        stable.issued(10);
        stable.issued(30);
        assert_eq!(stable.completed(40, true), Some(10));
        assert_eq!((stable.holds(30), stable.holds(31)), (Answer::Yes, Answer::No));
        let mut several = Stable::of_queues(Some(2));
        several.issued(10);
        several.issued(30);
        assert_eq!(several.completed(40, true), Some(30));
        assert_eq!(several.holds(30), Answer::Unclear);
    }

    #[test]
    fn with_several_in_flight_there_is_a_doubt() {
        let mut stable = Stable::default();
        stable.issued(10);
        stable.issued(20);
        assert_eq!(stable.completed(30, true), None);
        assert_eq!(
            (stable.holds(10), stable.holds(15), stable.holds(21)),
            (Answer::Yes, Answer::Unclear, Answer::No)
        );
        stable.completed(31, true);
        assert_eq!(stable.holds(20), Answer::Yes);
        // A completion without its issue.
        stable.completed(50, true);
        assert_eq!(stable.holds(45), Answer::Unclear);
    }

    #[test]
    fn of_several_in_flight_one_that_fails_makes_nothing_stable() {
        let mut stable = Stable::of_queues(Some(2));
        stable.issued(10);
        stable.issued(16);
        stable.completed(20, false);
        stable.completed(21, true);
        assert_eq!((stable.holds(10), stable.holds(16)), (Answer::Yes, Answer::Unclear));
        stable.issued(30);
        stable.issued(36);
        stable.requeued();
        stable.completed(40, true);
        assert_eq!((stable.holds(30), stable.holds(36)), (Answer::Yes, Answer::Unclear));
    }

    #[test]
    fn of_several_in_flight_the_write_that_waited_says_whether_a_later_one_ended() {
        let mut stable = Stable::of_queues(Some(2));
        stable.issued(10);
        stable.issued(20);
        stable.completed(30, true);
        stable.waited_for(15);
        assert_eq!((stable.holds(15), stable.holds(16)), (Answer::Yes, Answer::Unclear));
        // No command that was issued after it can have completed.
        stable.waited_for(25);
        assert_eq!((stable.holds(20), stable.holds(25)), (Answer::Unclear, Answer::No));
        stable.waited_for(5);
        assert_eq!(stable.holds(15), Answer::Yes);
    }
}
