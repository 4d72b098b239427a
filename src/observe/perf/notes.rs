//! What is said of events that were lost, that have no record, and of what watching takes.
//!
//! Enters: counts. Leaves: sentences for a trial's notes. It must not know what events mean.

use std::time::Duration;

use crate::record::{Note, NoteKind};
use crate::units::counted;

/// What is said where the kernel hides its addresses.
pub(in crate::observe) const HIDDEN: &str = "the kernel does not show the addresses of its functions to this user, so that places have no names: run as root, \
     with kernel.kptr_restrict at 0 or 1";

/// What is said of lost events.
pub(in crate::observe) fn lost_note(observer: &str, lost: u64) -> Option<String> {
    let events = if lost == 1 { "event" } else { "events" };
    (lost > 0).then(|| {
        format!("{observer}: {lost} {events} were lost, because they came faster than they could be read")
    })
}

/// What is said of events without a record, which these figures do not have.
pub(in crate::observe) fn unwritten_note(observer: &str, figures: &str, unwritten: u64) -> Option<String> {
    (unwritten > 0).then(|| {
        let events = counted(unwritten, "event");
        format!(
            "{observer}: the kernel counted {events} of which it wrote no record; {figures} are those of the rest"
        )
    })
}

/// What an event of the whole machine takes of the processor it happens on, and of the one that reads it, rather too much than too little:
/// `make bench-observers` measures it (600 to 620 ns on an AMD EPYC).
const PRICE: Duration = Duration::from_nanos(800);
/// One with the kernel's stack: an estimate, as following some 20 functions takes more than the rest.
const PRICE_WITH_STACK: Duration = Duration::from_nanos(2_000);
/// Watching distorts from here on: the share of one processor's time.
const DISTORTS: f64 = 0.05;

/// Events that were read, whosever they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::observe) struct Read {
    /// Without a stack.
    pub(in crate::observe) plain: u64,
    /// With the kernel's stack.
    pub(in crate::observe) with_stack: u64,
}

impl Read {
    /// So many without a stack.
    pub(in crate::observe) fn plain(events: u64) -> Read {
        Read { plain: events, with_stack: 0 }
    }

    fn price_s(self) -> f64 {
        self.plain as f64 * PRICE.as_secs_f64() + self.with_stack as f64 * PRICE_WITH_STACK.as_secs_f64()
    }
}

/// What is said where so many events must have changed what was measured.
pub(in crate::observe) fn distortion_note(observer: &str, events: Read, elapsed: Duration) -> Option<Note> {
    let share = events.price_s() / elapsed.as_secs_f64().max(1e-9);
    (share > DISTORTS).then(|| Note {
        text: format!(
            "{observer}: watching distorts this trial: its events took about {:.0} % of a processor's time, so that its times are \
             too long; it does not change counts",
            (share * 100.0).min(100.0)
        ),
        kind: NoteKind::Distorting,
    })
}

/// Of the times of an observer more than this share is of io_uring's own threads, or they play no part.
const LEAST_OF_IO_URING: f64 = 0.01;

/// Whether a function is what a thread of io_uring's own runs: one that is handed what would wait, or that polls the queue.
pub(in crate::observe) fn is_io_urings_thread(function: &str) -> bool {
    // The second is the first of Linux 5.12 to 6.3.
    matches!(function, "io_wq_worker" | "io_wqe_worker" | "io_sq_thread")
}

/// What is said where times of them are in an observer's figures: they are none of the workers'.
pub(in crate::observe) fn io_uring_note(observer: &str, theirs: f64, all: f64) -> Option<Note> {
    let share = theirs / all;
    (share > LEAST_OF_IO_URING).then(|| Note {
        text: format!(
            "{observer}: {:.0} % of its time is of io_uring's own threads, which are none of the workers whose time is explained",
            share * 100.0
        ),
        kind: NoteKind::Beside,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_events_are_said_to_distort() {
        let second = Duration::from_secs(1);
        assert_eq!(distortion_note("blocks", Read::plain(60_000), second), None);
        assert!(distortion_note("waits", Read { plain: 0, with_stack: 60_000 }, second).is_some());
        let note = distortion_note("blocks", Read::plain(250_000), second).unwrap();
        assert_eq!(note.kind, NoteKind::Distorting);
        assert!(note.text.contains("about 20 % of a processor's time"), "{note}");
    }
}
