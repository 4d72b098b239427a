//! Latencies counted in the hot path: HDR buckets at three significant digits, two shifts and an addition a value.
//!
//! Enters: nanoseconds. Leaves: a [`Histogram`] with the bounds of every stored one. The buckets are those of
//! HdrHistogram with a lowest value of 1, so that nothing is rounded twice when they are handed over.

use hdrhistogram::Histogram;

use crate::record::LatencyHistogram;

/// Three significant digits need 2 × 10^3 sub-buckets, rounded up to a power of two (HdrHistogram's own rule).
const SUB_BUCKETS: u64 = 2048;
const HALF_BITS: u32 = 10;
/// Up to 2^40 ns, about 18 minutes: what took longer counts in the last one.
const BUCKETS: usize = (40 - HALF_BITS as usize + 1) << HALF_BITS;

/// How many latencies fell into each bucket.
pub(super) struct Latencies {
    /// Zeroed pages that nobody touched take no memory.
    counts: Box<[u64; BUCKETS]>,
}

impl Latencies {
    /// None yet.
    pub(super) fn new() -> Latencies {
        let counts = vec![0; BUCKETS].into_boxed_slice();
        // It has that length, which the compiler is told so that no value is checked against it.
        Latencies { counts: counts.try_into().unwrap_or_else(|_| Box::new([0; BUCKETS])) }
    }

    /// Counts one latency; 0 counts as 1.
    #[inline]
    pub(super) fn record(&mut self, ns: u64) {
        self.counts[bucket(ns).min(BUCKETS - 1)] += 1;
    }

    /// Whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.counts.iter().all(|count| *count == 0)
    }

    /// The same counts as a histogram that can be stored and merged.
    pub(super) fn histogram(&self) -> Histogram<u64> {
        let mut histogram = LatencyHistogram::empty();
        for (bucket, count) in self.counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            // The bounds are wide enough for every bucket, so that nothing saturates.
            histogram.saturating_record_n(lowest(bucket).max(1), *count);
        }
        histogram
    }
}

/// Values below 2048 have a bucket each; above, every doubling has 1024.
#[inline]
fn bucket(ns: u64) -> usize {
    let shift = (ns | (SUB_BUCKETS - 1)).ilog2() - HALF_BITS;
    (u64::from(shift) << HALF_BITS).wrapping_add(ns >> shift) as usize
}

/// The smallest value of a bucket.
fn lowest(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < SUB_BUCKETS {
        return bucket;
    }
    let shift = (bucket >> HALF_BITS) - 1;
    (bucket - (shift << HALF_BITS)) << shift
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONGEST_NS: u64 = (1 << 40) - 1;

    #[test]
    fn the_buckets_are_those_of_hdr_histogram() {
        let mut ours = Latencies::new();
        let mut theirs = LatencyHistogram::empty();
        let mut value = 1_u64;
        while value < LONGEST_NS {
            for near in [value - 1, value, value + 1] {
                ours.record(near);
                theirs.saturating_record(near.max(1));
            }
            value += value / 7 + 1;
        }
        let ours = ours.histogram();
        assert_eq!(ours.len(), theirs.len());
        for value in theirs.iter_recorded() {
            let at = value.value_iterated_to();
            assert_eq!(ours.count_at(at), theirs.count_at(at), "{at}");
        }
    }

    #[test]
    fn every_bucket_begins_where_the_one_before_ends() {
        for number in 1..BUCKETS {
            assert_eq!(bucket(lowest(number)), number);
            assert_eq!(bucket(lowest(number) - 1), number - 1);
        }
        assert_eq!(bucket(LONGEST_NS), BUCKETS - 1);
    }

    #[test]
    fn what_is_too_long_counts_as_the_longest() {
        let mut latencies = Latencies::new();
        assert!(latencies.is_empty());
        latencies.record(u64::MAX);
        let histogram = latencies.histogram();
        assert_eq!((histogram.len(), histogram.max() >> 39), (1, 1));
    }
}
