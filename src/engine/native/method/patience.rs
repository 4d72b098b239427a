//! How long a wait for completions may look for them before the thread sleeps.
//!
//! Enters: completions that were taken, and waits that begin and end. Leaves: whether to look again. It must not know
//! what is waited for.
//!
//! Where completions come faster than a thread is put to sleep and woken, a sleep is what takes the time: until a halted
//! processor is back, a fast device has run dry. How much is spent on looking is bounded by the number of I/Os, whatever
//! the device: each earns 40 ns of it, less than the reading of its clock and the counting of its latency take. A device that
//! has run dry needs longer for its first completion than a few I/Os earn, so nothing is spent before that much is saved up.

use std::hint::spin_loop;
use std::time::{Duration, Instant};

/// What one completion earns.
pub(super) const EARNED_NS: u64 = 40;
/// Looking begins when so much is saved up, and ends when all is spent: the time in which a thread is woken.
const BEGIN_NS: u64 = 32_000;
/// Most that is saved up.
const MOST_NS: u64 = 2 * BEGIN_NS;

/// Time that may be spent on looking.
#[derive(Debug)]
pub(super) struct Patience {
    saved_ns: u64,
    /// Since enough was saved up something is left.
    looking: bool,
    /// What a look takes, so that no clock is read between them.
    look_ns: u64,
}

impl Patience {
    /// Nothing is earned yet.
    pub(super) fn new() -> Patience {
        Patience { saved_ns: 0, looking: false, look_ns: look_ns() }
    }

    /// So many completions were taken.
    #[inline]
    pub(super) fn earn(&mut self, completions: usize) {
        self.saved_ns = (self.saved_ns + EARNED_NS * completions as u64).min(MOST_NS);
    }

    /// Looks until `there` says so or nothing is left to spend; whether it was there.
    pub(super) fn look(&mut self, mut there: impl FnMut() -> bool) -> bool {
        self.looking |= self.saved_ns >= BEGIN_NS;
        while self.looking {
            spin_loop();
            self.saved_ns = self.saved_ns.saturating_sub(self.look_ns);
            self.looking = self.saved_ns > 0;
            if there() {
                return true;
            }
        }
        false
    }
}

/// Nanoseconds of a look: the least of several measurements, as others may take the processor meanwhile.
fn look_ns() -> u64 {
    const LOOKS: u32 = 64;
    let measured = (0..8).map(|_| {
        let begun = Instant::now();
        (0..LOOKS).for_each(|_| spin_loop());
        begun.elapsed()
    });
    let least = measured.min().unwrap_or(Duration::ZERO);
    (least / LOOKS).as_nanos().max(1) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many looks it takes until all is spent.
    fn looks(patience: &mut Patience) -> u64 {
        let mut looks = 0;
        let found = patience.look(|| {
            looks += 1;
            false
        });
        assert!(!found);
        looks
    }

    #[test]
    fn looking_costs_what_was_earned_and_no_more() {
        let mut patience = Patience { look_ns: 50, ..Patience::new() };
        patience.earn(799);
        assert_eq!(looks(&mut patience), 0, "31.96 µs are too few to begin with");
        patience.earn(1);
        assert_eq!(looks(&mut patience), 640);
        patience.earn(100);
        assert_eq!(looks(&mut patience), 0, "all was spent, so that it is saved up anew");
        patience.earn(1_000_000);
        assert_eq!(patience.saved_ns, MOST_NS);
        assert_eq!(looks(&mut patience), MOST_NS / 50);
    }

    #[test]
    fn what_comes_in_time_is_found_and_the_rest_is_for_the_next_wait() {
        let mut patience = Patience { look_ns: 50, ..Patience::new() };
        patience.earn(1000);
        let mut looks = 0;
        let found = patience.look(|| {
            looks += 1;
            looks == 700
        });
        assert!(found);
        assert_eq!(patience.saved_ns, 5_000);
        assert!(patience.look(|| true), "though it is less than to begin with");
    }

    #[test]
    fn a_look_is_as_long_as_it_was_measured() {
        let look_ns = look_ns();
        let begun = Instant::now();
        (0..1_000_000).for_each(|_| spin_loop());
        let whole = begun.elapsed().as_nanos() as u64;
        // The least of several, so that it is never said to be much longer than it is.
        assert!(look_ns <= whole / 1_000_000 + whole / 4_000_000 + 1, "{look_ns} {whole}");
    }
}
