//! The largest queue depth that keeps a latency: fio's `latency_target`.
//!
//! Enters: the latency of each I/O and readings of the clock. Leaves: how many I/Os may be in flight, and when to drain,
//! to begin counting anew, to end. Pure; the loops do what it says.

use crate::workload::LatencyTarget;

/// The search: the depth is doubled while the target holds, halved towards the last good one when it does not, until a
/// window passes without a change; then one more window at that depth is what is reported.
#[derive(Clone, Debug)]
pub(super) struct Search {
    target_ns: u64,
    window_ns: u64,
    percentile: f64,
    iodepth: u32,
    goes_on: bool,
    /// Now tried.
    depth: u32,
    /// The largest that held.
    low: u32,
    /// The smallest that did not, or `iodepth`.
    high: u32,
    /// Windows in a row that held right below `high`.
    stable: u32,
    /// The last window, whose counts are the result.
    last_window: bool,
    since_ns: u64,
    ios: u64,
    too_slow: u64,
}

/// What the search wants of the loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Nothing: go on.
    GoOn,
    /// Wait for all that is in flight, then go on at the new depth.
    Drain,
    /// Wait for all that is in flight, forget what was counted: what follows is the result.
    CountAnew,
    /// The result is there.
    Done,
    /// Not even one I/O at a time keeps the target (only where every I/O must: percentile 100).
    GiveUp,
}

impl Search {
    /// Begins with one I/O in flight; at most `iodepth` are tried.
    pub(super) fn new(target: LatencyTarget, iodepth: u32, now_ns: u64) -> Search {
        Search {
            target_ns: u64::try_from(target.target.as_nanos()).unwrap_or(u64::MAX),
            window_ns: u64::try_from(target.window.as_nanos()).unwrap_or(u64::MAX),
            percentile: target.percentile,
            iodepth,
            goes_on: target.goes_on,
            depth: 1,
            low: 1,
            high: iodepth,
            stable: 0,
            last_window: false,
            since_ns: now_ns,
            ios: 0,
            too_slow: 0,
        }
    }

    /// How many I/Os may be in flight.
    pub(super) fn depth(&self) -> u32 {
        self.depth
    }

    /// Whether the depth was found: the last window has begun, or there is none.
    pub(super) fn found(&self) -> bool {
        self.last_window || self.goes_on
    }

    /// Counts an I/O.
    pub(super) fn completed(&mut self, latency_ns: u64) {
        self.ios += 1;
        self.too_slow += u64::from(latency_ns > self.target_ns);
    }

    /// What to do now; asked after each batch of completions.
    pub(super) fn step(&mut self, now_ns: u64) -> Step {
        // Where every I/O must be in time, one that is not ends the window.
        if self.percentile >= 100.0 && self.too_slow > 0 {
            return if self.depth == 1 { Step::GiveUp } else { self.lower(now_ns) };
        }
        // A window in which nothing ended says nothing of the depth: it goes on until something has.
        if self.ios == 0 || now_ns.saturating_sub(self.since_ns) < self.window_ns {
            return Step::GoOn;
        }
        let in_time = 100.0 * (self.ios - self.too_slow) as f64 / self.ios as f64;
        if in_time >= self.percentile {
            self.raise(now_ns)
        } else if self.depth == 1 {
            // Nothing lower to try; as in fio the window goes on until enough are in time.
            Step::GoOn
        } else {
            self.lower(now_ns)
        }
    }

    fn raise(&mut self, now_ns: u64) -> Step {
        let before = self.depth;
        self.low = before;
        if before + 1 == self.high {
            // A single bad window must not be the limit for ever.
            self.stable += 1;
            if self.stable >= 3 {
                self.high += 1;
                self.stable = 0;
            }
        }
        let wanted =
            if self.high == self.iodepth { before.saturating_mul(2) } else { before.midpoint(self.high) };
        self.depth = wanted.min(self.iodepth);
        self.new_window(now_ns);
        match (self.depth == before && !self.goes_on, self.last_window) {
            (false, _) => Step::GoOn,
            (true, true) => Step::Done,
            (true, false) => {
                self.last_window = true;
                Step::CountAnew
            }
        }
    }

    fn lower(&mut self, now_ns: u64) -> Step {
        self.high = self.depth;
        if self.depth == self.low {
            self.low -= 1;
        }
        self.depth = self.depth.midpoint(self.low).max(1);
        self.stable = 0;
        self.new_window(now_ns);
        Step::Drain
    }

    /// A window begins: at a new depth, or after the loop has drained.
    pub(super) fn new_window(&mut self, now_ns: u64) {
        (self.since_ns, self.ios, self.too_slow) = (now_ns, 0, 0);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const WINDOW_NS: u64 = 10_000_000;

    fn target(us: u64, percentile: f64, goes_on: bool) -> LatencyTarget {
        let window = Duration::from_nanos(WINDOW_NS);
        LatencyTarget { target: Duration::from_micros(us), window, percentile, goes_on }
    }

    /// Runs the search on a device whose latency is `ns_an_io` times the depth; the depths in the order tried.
    fn depths(iodepth: u32, ns_an_io: u64, target_us: u64, percentile: f64) -> (Vec<u32>, Step) {
        let mut search = Search::new(target(target_us, percentile, false), iodepth, 0);
        let mut tried = vec![1];
        let mut now = 0;
        for _ in 0..200_000 {
            let latency = ns_an_io * u64::from(search.depth());
            now += latency;
            (0..search.depth()).for_each(|_| search.completed(latency));
            let step = search.step(now);
            if search.depth() != tried[tried.len() - 1] {
                tried.push(search.depth());
            }
            if matches!(step, Step::Done | Step::GiveUp) {
                return (tried, step);
            }
        }
        (tried, Step::GoOn)
    }

    #[test]
    fn it_doubles_then_closes_in_on_the_largest_depth_that_holds() {
        // 100 µs an I/O in flight and a target of 1 ms: 10.
        let ten = (vec![1, 2, 4, 8, 16, 12, 10, 11, 10], Step::Done);
        assert_eq!(depths(64, 100_000, 1000, 100.0), ten);
        assert_eq!(depths(64, 100_000, 1000, 99.0), ten);
    }

    #[test]
    fn it_ends_at_iodepth_when_that_still_holds() {
        assert_eq!(depths(24, 1000, 1000, 100.0), (vec![1, 2, 4, 8, 16, 24], Step::Done));
        assert_eq!(depths(1, 1000, 1000, 100.0), (vec![1], Step::Done));
    }

    #[test]
    fn it_gives_up_when_one_in_flight_is_too_many() {
        assert_eq!(depths(8, 2_000_000, 1000, 100.0), (vec![1], Step::GiveUp));
        // As in fio, with a share allowed to be late the job goes on until its amount or time is up.
        assert_eq!(depths(8, 2_000_000, 1000, 90.0), (vec![1], Step::GoOn));
    }

    #[test]
    fn a_share_may_be_late() {
        let mut search = Search::new(target(100, 90.0, false), 4, 0);
        (0..90).for_each(|_| search.completed(50_000));
        (0..10).for_each(|_| search.completed(5_000_000));
        assert_eq!((search.step(WINDOW_NS - 1), search.depth()), (Step::GoOn, 1));
        assert_eq!((search.step(WINDOW_NS), search.depth()), (Step::GoOn, 2));
        (0..89).for_each(|_| search.completed(50_000));
        (0..11).for_each(|_| search.completed(5_000_000));
        assert_eq!((search.step(2 * WINDOW_NS), search.depth()), (Step::Drain, 1));
    }

    #[test]
    fn a_window_without_an_io_says_nothing() {
        let mut search = Search::new(target(100, 99.0, false), 4, 0);
        search.completed(50_000);
        assert_eq!((search.step(WINDOW_NS), search.depth()), (Step::GoOn, 2));
        // Now five windows pass before the next one ends.
        assert_eq!((search.step(3 * WINDOW_NS), search.depth()), (Step::GoOn, 2));
        search.completed(50_000);
        assert_eq!((search.step(6 * WINDOW_NS), search.depth()), (Step::GoOn, 4));
    }

    #[test]
    fn the_last_window_counts_anew() {
        let mut search = Search::new(target(100, 100.0, false), 1, 0);
        search.completed(1);
        assert_eq!((search.step(WINDOW_NS), search.found()), (Step::CountAnew, true));
        search.completed(1);
        assert_eq!(search.step(WINDOW_NS + 1), Step::GoOn);
        assert_eq!(search.step(2 * WINDOW_NS), Step::Done);
    }

    #[test]
    fn with_latency_run_it_never_ends_and_goes_up_again() {
        let mut search = Search::new(target(100, 100.0, true), 8, 0);
        let mut now = 0;
        let mut window = |search: &mut Search, latency_ns| {
            now += WINDOW_NS;
            search.completed(latency_ns);
            search.step(now)
        };
        let steps: Vec<Step> = (0..6).map(|_| window(&mut search, 1)).collect();
        assert_eq!((steps, search.depth()), (vec![Step::GoOn; 6], 8));
        assert_eq!((window(&mut search, 200_000), search.depth()), (Step::Drain, 7));
        let steps: Vec<Step> = (0..6).map(|_| window(&mut search, 1)).collect();
        assert_eq!((steps, search.depth()), (vec![Step::GoOn; 6], 8));
    }
}
