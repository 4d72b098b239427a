//! How long a wait for completions may look for them before the thread sleeps.
//!
//! Enters: completions that were taken, and waits that begin and end. Leaves: whether to look again. It must not know
//! what is waited for.
//!
//! Where completions come faster than a thread is put to sleep and woken, a sleep is what takes the time: until a halted
//! processor is back, a fast device has run dry. How much is spent on looking is bounded by the number of I/Os, whatever
//! the device: each earns 40 ns of it, less than the reading of its clock and the counting of its latency take.

use std::hint::spin_loop;
use std::time::{Duration, Instant};

/// What one completion earns.
pub(super) const EARNED_NS: u64 = 40;
const EARNED: Duration = Duration::from_nanos(EARNED_NS);
/// Most that is saved up: the time of a few sleeps.
const MOST: Duration = Duration::from_micros(64);
/// Less is not worth beginning.
const LEAST: Duration = Duration::from_micros(1);
/// Looks between two readings of the clock.
const LOOKS: u32 = 8;

/// Time that may be spent on looking.
#[derive(Debug, Default)]
pub(super) struct Patience {
    saved: Duration,
}

impl Patience {
    /// So many completions were taken.
    #[inline]
    pub(super) fn earn(&mut self, completions: usize) {
        self.saved = (self.saved + EARNED * completions as u32).min(MOST);
    }

    /// Looks until `there` says so or nothing is left to spend; whether it was there.
    pub(super) fn look(&mut self, mut there: impl FnMut() -> bool) -> bool {
        if self.saved < LEAST {
            return false;
        }
        let begun = Instant::now();
        let found = loop {
            let found = (0..LOOKS).any(|_| {
                spin_loop();
                there()
            });
            if found || begun.elapsed() >= self.saved {
                break found;
            }
        };
        self.saved = self.saved.saturating_sub(begun.elapsed());
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looking_costs_what_was_earned_and_no_more() {
        let mut patience = Patience::default();
        assert!(!patience.look(|| true), "nothing was earned");
        patience.earn(1000);
        assert_eq!(patience.saved, Duration::from_micros(40));
        assert!(!patience.look(|| false));
        assert_eq!(patience.saved, Duration::ZERO);
        patience.earn(1_000_000);
        assert_eq!(patience.saved, MOST);
    }

    #[test]
    fn what_comes_in_time_is_found_and_the_rest_stays() {
        let mut patience = Patience { saved: Duration::from_secs(60) };
        let mut looks = 0;
        let found = patience.look(|| {
            looks += 1;
            looks == 100
        });
        assert!(found && looks == 100);
        assert!(patience.saved > Duration::ZERO && patience.saved < Duration::from_secs(60));
    }
}
