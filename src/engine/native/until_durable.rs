//! How long writes take until they are durable: from when each began, or with a rate was due, until the sync behind it has ended.
//!
//! Enters: when writes began and ended, and when syncs did. Leaves: latencies. A sync covers the writes that had ended when it began;
//! what none came after is not counted. It is for one file: with several, a sync goes to the file whose turn it is.

use super::latencies::Latencies;
use super::meter::Moments;

/// Writes that wait for a sync, and how long others waited.
pub(super) struct UntilDurable {
    /// When each began and ended, in the order in which they ended.
    written: Vec<(u64, u64)>,
    pub(super) latencies: Latencies,
}

impl UntilDurable {
    pub(super) fn new() -> UntilDurable {
        UntilDurable { written: Vec::with_capacity(4096), latencies: Latencies::new() }
    }

    /// A write ended.
    #[inline]
    pub(super) fn wrote(&mut self, start_ns: u64, complete_ns: u64) {
        self.written.push((start_ns, complete_ns));
    }

    /// A sync ended.
    pub(super) fn synced(&mut self, sync: &Moments) {
        // Of one in flight the start is read before it is submitted, the issue behind that.
        let covered = self.written.partition_point(|(_, complete_ns)| *complete_ns <= sync.start_ns);
        for (start_ns, _) in self.written.drain(..covered) {
            self.latencies.record(sync.complete_ns.saturating_sub(start_ns));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sync_covers_what_had_ended_when_it_began() {
        let mut until = UntilDurable::new();
        let sync = |start_ns, complete_ns| Moments { start_ns, issue_ns: start_ns + 2, complete_ns };
        until.synced(&sync(1, 5));
        assert!(until.latencies.is_empty(), "nothing was written");
        until.wrote(10, 20);
        until.wrote(12, 30);
        until.wrote(14, 41);
        until.synced(&sync(40, 100));
        let found = until.latencies.histogram();
        assert_eq!((found.len(), found.min(), found.max()), (2, 88, 90), "the third was in flight");
        until.synced(&sync(120, 214));
        let found = until.latencies.histogram();
        assert_eq!((found.len(), found.max()), (3, 200));
    }
}
