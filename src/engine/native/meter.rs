//! What one instance counts while it runs: transfers, bytes, latencies and throughput over time.

use serde::{Deserialize, Serialize};

use super::latencies::Latencies;
use super::until_durable::UntilDurable;
use crate::record::{Direction, LatencyHistogram, LatencyKind};
use crate::workload::Durability;

/// Nanoseconds a value of the throughput series covers.
pub(super) const SERIES_INTERVAL_NS: u64 = 1_000_000_000;
/// Longest series kept, a day of seconds: a bound on memory, not on the job.
const SERIES_MAX: usize = 86_400;

/// Counts of one direction.
pub(super) struct DirectionMeter {
    pub(super) ios: u64,
    pub(super) bytes: u64,
    pub(super) slat: Latencies,
    pub(super) clat: Latencies,
    pub(super) lat: Latencies,
    /// Writes that a sync follows.
    pub(super) until_durable: Option<Box<UntilDurable>>,
    /// Bytes completed in each interval since the start; the last is the current one.
    pub(super) series: Vec<u64>,
    /// When the current interval ends.
    pub(super) interval_end_ns: u64,
}

impl DirectionMeter {
    fn new() -> DirectionMeter {
        DirectionMeter {
            ios: 0,
            bytes: 0,
            slat: Latencies::new(),
            clat: Latencies::new(),
            lat: Latencies::new(),
            until_durable: None,
            series: Vec::with_capacity(4096),
            interval_end_ns: u64::MAX,
        }
    }

    fn restart(&mut self, now_ns: u64) {
        // At the start nothing was counted, and time is short.
        if self.ios > 0 {
            for latencies in [&mut self.slat, &mut self.clat, &mut self.lat] {
                // New pages rather than zeroes in all the old ones.
                *latencies = Latencies::new();
            }
            if let Some(until_durable) = &mut self.until_durable {
                **until_durable = UntilDurable::new();
            }
        }
        (self.ios, self.bytes) = (0, 0);
        self.series.clear();
        self.series.push(0);
        self.interval_end_ns = now_ns + SERIES_INTERVAL_NS;
    }

    /// Counts transfers of `length` bytes each that ended by `complete_ns`. Completions come in the order of their times,
    /// so that only the current interval of the series is ever added to.
    #[inline]
    pub(super) fn add(&mut self, ios: u64, length: u32, complete_ns: u64) {
        let bytes = ios * u64::from(length);
        self.ios += ios;
        self.bytes += bytes;
        while complete_ns >= self.interval_end_ns && self.series.len() < SERIES_MAX {
            self.series.push(0);
            self.interval_end_ns += SERIES_INTERVAL_NS;
        }
        if let Some(current) = self.series.last_mut() {
            *current += bytes;
        }
    }
}

/// When one transfer was made ready (with a rate: was meant to start), handed to the kernel and seen complete;
/// nanoseconds of the job's clock.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Moments {
    pub(super) start_ns: u64,
    pub(super) issue_ns: u64,
    pub(super) complete_ns: u64,
}

/// All counts of one instance.
pub(super) struct Meter {
    directions: [Option<DirectionMeter>; 3],
    pub(super) sync: Latencies,
    /// When counting began: the start, or the end of the ramp.
    pub(super) since_ns: u64,
    asynchronous: bool,
    /// The start is not the issue: lat is not clat.
    total: bool,
    durability: Option<Durability>,
}

impl Meter {
    /// Meters for the `directions` that the job uses; slat is kept for asynchronous methods only, lat for them and for
    /// `paced` jobs, whose transfers are meant to start at times of their own.
    pub(super) fn new(
        directions: &[Direction],
        asynchronous: bool,
        paced: bool,
        durability: Option<Durability>,
    ) -> Meter {
        let mut meter = Meter {
            directions: [None, None, None],
            sync: Latencies::new(),
            since_ns: 0,
            asynchronous,
            total: asynchronous || paced,
            durability,
        };
        for direction in directions {
            meter.directions[*direction as usize] = Some(DirectionMeter::new());
        }
        if let (Some(Durability::Sync), Some(writes)) = (durability, meter.of(Direction::Write)) {
            writes.until_durable = Some(Box::new(UntilDurable::new()));
        }
        meter
    }

    /// Forgets everything counted: the ramp is over.
    pub(super) fn restart(&mut self, now_ns: u64) {
        // Syncs follow transfers.
        if self.directions.iter().flatten().any(|meter| meter.ios > 0) {
            self.sync = Latencies::new();
        }
        self.directions.iter_mut().flatten().for_each(|meter| meter.restart(now_ns));
        self.since_ns = now_ns;
    }

    /// Nothing was counted.
    pub(super) fn is_empty(&self) -> bool {
        self.directions.iter().flatten().all(|meter| meter.ios == 0)
    }

    /// The meter of one direction, if the job has it.
    #[inline]
    pub(super) fn of(&mut self, direction: Direction) -> Option<&mut DirectionMeter> {
        self.directions[direction as usize].as_mut()
    }

    /// Counts one transfer.
    #[inline]
    pub(super) fn transfer(&mut self, direction: Direction, length: u32, moments: &Moments) {
        self.transfers(direction, length, std::slice::from_ref(moments));
    }

    /// Counts transfers of one length, in the order in which they ended.
    #[inline]
    pub(super) fn transfers(&mut self, direction: Direction, length: u32, ended: &[Moments]) {
        let (asynchronous, total) = (self.asynchronous, self.total);
        let (Some(meter), [.., last]) = (self.of(direction), ended) else { return };
        for moments in ended {
            if total {
                meter.lat.record(moments.complete_ns.saturating_sub(moments.start_ns));
                if asynchronous {
                    meter.slat.record(moments.issue_ns.saturating_sub(moments.start_ns));
                }
            }
            meter.clat.record(moments.complete_ns.saturating_sub(moments.issue_ns));
        }
        if let Some(until_durable) = &mut meter.until_durable {
            let begun = |moments: &Moments| if total { moments.start_ns } else { moments.issue_ns };
            ended.iter().for_each(|moments| until_durable.wrote(begun(moments), moments.complete_ns));
        }
        if last.complete_ns < meter.interval_end_ns {
            meter.add(ended.len() as u64, length, last.complete_ns);
        } else {
            ended.iter().for_each(|moments| meter.add(1, length, moments.complete_ns));
        }
    }

    /// Counts one fsync or fdatasync.
    pub(super) fn sync(&mut self, moments: &Moments) {
        self.sync.record(moments.complete_ns.saturating_sub(moments.start_ns));
    }

    /// An fsync or fdatasync made the writes durable that had ended before it.
    pub(super) fn synced(&mut self, moments: &Moments) {
        let writes = self.of(Direction::Write);
        if let Some(until_durable) = writes.and_then(|meter| meter.until_durable.as_mut()) {
            until_durable.synced(moments);
        }
    }

    /// How long writes took until they were durable, where that is known of any.
    pub(super) fn durable(&self) -> Option<&Latencies> {
        let writes = self.directions[Direction::Write as usize].as_ref()?;
        let latencies = match self.durability? {
            Durability::EachWrite if self.total => &writes.lat,
            Durability::EachWrite => &writes.clat,
            Durability::Sync => &writes.until_durable.as_ref()?.latencies,
        };
        (!latencies.is_empty()).then_some(latencies)
    }

    /// The counts as they cross the process boundary.
    pub(super) fn finish(&self, job: &str) -> Vec<DirectionCounts> {
        let mut counts = Vec::new();
        for direction in Direction::ALL {
            let Some(meter) = &self.directions[direction as usize] else { continue };
            let kinds = [
                (LatencyKind::Slat, &meter.slat),
                (LatencyKind::Clat, &meter.clat),
                (LatencyKind::Lat, &meter.lat),
            ];
            counts.push(DirectionCounts {
                direction,
                ios: meter.ios,
                bytes: meter.bytes,
                histograms: kinds
                    .into_iter()
                    .filter(|(_, latencies)| !latencies.is_empty())
                    .map(|(kind, latencies)| {
                        LatencyHistogram::pack(job, direction, kind, &latencies.histogram())
                    })
                    .collect(),
                series: whole_intervals(&meter.series),
            });
        }
        counts
    }
}

/// The series without the interval that was cut short, unless there is no other.
fn whole_intervals(series: &[u64]) -> Vec<u64> {
    match series {
        [] | [_] => series.to_vec(),
        [whole @ .., _] => whole.to_vec(),
    }
}

/// Counts of one direction of one instance.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct DirectionCounts {
    pub(super) direction: Direction,
    pub(super) ios: u64,
    pub(super) bytes: u64,
    pub(super) histograms: Vec<LatencyHistogram>,
    pub(super) series: Vec<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lot_counts_as_its_transfers_one_by_one_also_over_the_end_of_a_second() {
        let moments = |number: u64| {
            let start_ns = number * 300_000_000;
            Moments {
                start_ns,
                issue_ns: start_ns + number,
                complete_ns: start_ns + 1_000_000 * (number + 1),
            }
        };
        let ended: Vec<_> = (0..12).map(moments).collect();
        let meter = || {
            let mut meter = Meter::new(&[Direction::Read], true, false, None);
            meter.restart(0);
            meter
        };
        let (mut lots, mut singly) = (meter(), meter());
        for lot in [&ended[..2], &[], &ended[2..9], &ended[9..]] {
            lots.transfers(Direction::Read, 4096, lot);
        }
        ended.iter().for_each(|moments| singly.transfer(Direction::Read, 4096, moments));
        let (lots, singly) = (&lots.finish("job")[0], &singly.finish("job")[0]);
        assert_eq!((lots.ios, lots.bytes), (12, 12 * 4096));
        // 3.3 s and 12 ms: those that ended in the fourth second are cut off.
        assert_eq!(lots.series, [4 * 4096, 3 * 4096, 3 * 4096]);
        assert_eq!((singly.ios, &singly.series), (12, &lots.series));
        let histograms = |counts: &DirectionCounts| serde_json::to_string(&counts.histograms).unwrap();
        assert_eq!(histograms(lots), histograms(singly));
        assert_eq!(lots.histograms.len(), 3);
    }
}
