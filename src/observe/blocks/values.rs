//! What the analysis of a device's events says, as samples of a trial.
//!
//! Enters: the summary of a device, and how long it was watched. Leaves: samples. It must not know where the events come from.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::observe::waited::{count, seconds};
use crate::record::{Better, Metric, Sample, Unit};
use crate::trace::{Class, DeviceSummary, Quantiles, Stage};

const SECTOR: u64 = 512;
/// Stages that are named, with what they are called.
const STAGES: [(Stage, &str); 5] =
    [(Stage::Q2i, "q2i"), (Stage::I2d, "i2d"), (Stage::Q2d, "q2d"), (Stage::D2c, "d2c"), (Stage::Q2c, "q2c")];

type Stages = BTreeMap<Stage, Quantiles>;

/// All values; `device` is missing where it had no event.
pub(super) fn samples(
    device: Option<&DeviceSummary>,
    elapsed: Duration,
    lost: u64,
    events: u64,
) -> Vec<Sample> {
    let counts = device.map(|device| device.counts.clone()).unwrap_or_default();
    let mut samples = vec![
        count("blocks.read_bios", counts.reads_queued),
        count("blocks.write_bios", counts.writes_queued),
        count("blocks.read_requests", counts.reads_issued),
        count("blocks.write_requests", counts.writes_issued),
        count("blocks.discards", counts.discards_queued),
        count("blocks.merges", counts.merges),
        count("blocks.splits", counts.splits),
        count("blocks.flushes", counts.flush_commands),
        count("blocks.flush_bios", counts.flush_bios + counts.preflush_writes),
        count("blocks.fua_writes", counts.fua_writes),
        bytes(
            "blocks.metadata_bytes",
            (counts.metadata_sectors + counts.journal_sectors) as f64 * SECTOR as f64,
        ),
        bytes("blocks.journal_bytes", counts.journal_sectors as f64 * SECTOR as f64),
        count("blocks.errors", counts.errors),
        count("blocks.events", events),
        count("blocks.lost", lost),
    ];
    for (name, requests, sectors) in [
        ("read", counts.reads_issued, counts.read_sectors_issued),
        ("write", counts.writes_issued, counts.write_sectors_issued),
    ] {
        if requests > 0 {
            let size = (SECTOR * sectors) as f64 / requests as f64;
            samples.push(bytes(&format!("blocks.{name}_request_size"), size));
        }
    }
    let Some(device) = device else {
        samples.extend(audited([0; 3]));
        samples.push(seconds("blocks.flush_time", 0));
        samples.push(number("blocks.depth", 0.0));
        return samples;
    };
    samples.extend(device.merge_ratio.map(|ratio| more_is_better("blocks.merge_ratio", ratio)));
    samples.extend(device.sequential_share.map(|share| more_is_better("blocks.sequential_share", share)));
    let of_flushes = device.latencies.get(&Class::FlushCommand).and_then(|stages| stages.get(&Stage::D2c));
    samples.push(seconds("blocks.flush_time", of_flushes.map_or(0, |times| times.sum_ns)));
    samples.extend(of_stages("read", &device.reads));
    samples.extend(of_stages("write", &device.writes));
    samples.push(number("blocks.depth", depth(device, elapsed)));
    let sum = |calls: &BTreeMap<_, u64>| calls.values().sum();
    samples.extend(audited([
        device.audit.passed,
        sum(&device.audit.violations),
        sum(&device.audit.undecided),
    ]));
    let first = device.audit.first_violation.as_ref();
    samples.extend(first.map(|first| seconds("blocks.audit_first_violation", first.returned_ns)));
    samples
}

/// Mean and 99th percentile of each stage, and the share of the requests that were inserted. A queue without a scheduler mostly gives requests
/// to the driver at once, without that: they have no Q2I and I2D, which count as 0 in these means. Percentiles are of those that have them.
fn of_stages(direction: &str, stages: &Stages) -> Vec<Sample> {
    let count = |stage: Stage| stages.get(&stage).map_or(0, |times| times.count);
    let requests = count(Stage::D2c).max(count(Stage::I2d));
    let known = STAGES.iter().filter_map(|(stage, name)| Some((*stage, stages.get(stage)?, name)));
    let both = |(stage, times, name): (Stage, &Quantiles, &&str)| {
        let named = |what: &str, ns: f64| {
            Sample::new("", &format!("blocks.{direction}.{name}.{what}"), Unit::Seconds, ns / 1e9)
        };
        let of = match stage {
            Stage::Q2i => times.count.max(count(Stage::Q2d)),
            Stage::I2d => requests,
            _ => times.count,
        };
        [named("mean", times.sum_ns as f64 / of as f64), named("p99", times.p99_ns as f64)]
    };
    let inserted = (requests > 0).then(|| {
        let share = count(Stage::I2d) as f64 / requests as f64;
        number(&format!("blocks.{direction}.inserted_share"), share)
    });
    known.flat_map(both).chain(inserted).collect()
}

/// How many requests the device worked on, on average (Little's law: the sum of their times by the time watched). Of a device
/// without requests, how many bios.
fn depth(device: &DeviceSummary, elapsed: Duration) -> f64 {
    let has_requests =
        device.counts.reads_issued + device.counts.writes_issued + device.counts.flush_commands > 0;
    let stage = if has_requests { Stage::D2c } else { Stage::Q2c };
    let sums = device.latencies.values().filter_map(|stages| stages.get(&stage)).map(|times| times.sum_ns);
    sums.sum::<u64>() as f64 / 1e9 / elapsed.as_secs_f64().max(1e-9)
}

fn audited(counts: [u64; 3]) -> impl Iterator<Item = Sample> {
    let names = ["blocks.audit_passed", "blocks.audit_violations", "blocks.audit_undecided"];
    names.into_iter().zip(counts).map(|(name, calls)| count(name, calls))
}

fn bytes(name: &str, bytes: f64) -> Sample {
    Sample::new("", name, Unit::Bytes, bytes)
}

fn more_is_better(name: &str, value: f64) -> Sample {
    let sample = number(name, value);
    Sample { metric: Metric { better: Better::Higher, ..sample.metric }, ..sample }
}

fn number(name: &str, number: f64) -> Sample {
    Sample::new("", name, Unit::Count, number)
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::*;
    use crate::trace::{
        Action, Analysis, Device, Event, Filesystem, Flags, Item, JournalRange, Names, Settings, analyse,
        open,
    };

    fn value(samples: &[Sample], name: &str) -> Option<f64> {
        samples.iter().find(|sample| sample.metric.name == name).map(|sample| sample.value)
    }

    #[test]
    fn a_captured_trace_has_the_values_that_other_tools_saw_in_it() {
        let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/traces");
        let files: Vec<PathBuf> = (0..2).map(|cpu| data.join(format!("xfs_fsync.cpu{cpu}.raw"))).collect();
        let settings = Settings {
            filesystem: Some(Filesystem::Xfs),
            journal: JournalRange::new(3_145_776, 3_276_848),
            ..Settings::default()
        };
        let summary = analyse(open(&files, None).unwrap(), settings).unwrap();
        let device = &summary.device;
        let samples = samples(Some(device), Duration::from_secs(2), 3, summary.totals.events);
        let is = |name: &str, expected: f64| assert_eq!(value(&samples, name), Some(expected), "{name}");
        is("blocks.write_requests", device.counts.writes_issued as f64);
        is("blocks.flushes", device.counts.flush_commands as f64);
        is("blocks.audit_passed", device.audit.calls as f64);
        is("blocks.audit_violations", 0.0);
        is("blocks.lost", 3.0);
        assert!(device.counts.flush_commands > 0 && device.counts.journal_sectors > 0, "{device:?}");
        is("blocks.journal_bytes", (device.counts.journal_sectors * 512) as f64);
        // All writes together: of each class the sum.
        let of_classes: u64 = Class::WRITES
            .iter()
            .filter_map(|class| device.latencies.get(class)?.get(&Stage::D2c))
            .map(|times| times.sum_ns)
            .sum();
        let times = &device.writes[&Stage::D2c];
        assert_eq!(times.sum_ns, of_classes);
        is("blocks.write.d2c.mean", times.mean_ns / 1e9);
        assert!(
            value(&samples, "blocks.write.d2c.p99")
                >= value(&samples, "blocks.write.d2c.mean").map(|mean| mean / 2.0)
        );
        let all: u64 =
            device.latencies.values().filter_map(|stages| stages.get(&Stage::D2c)).map(|t| t.sum_ns).sum();
        is("blocks.depth", all as f64 / 2e9);
    }

    #[test]
    fn requests_that_are_issued_at_once_are_not_told_from_the_few_that_wait() {
        let event = |time_ns: u64, action: Action, sector: u64| {
            let (flags, sectors) = (Flags::from_letters(b"R"), 8);
            let device = Device::new(8, 0).unwrap();
            Item::Event(Event { device, flags, sector, sectors, ..Event::at(time_ns, 0, 7, action) })
        };
        let mut analysis = Analysis::new(Settings::default());
        // Of four reads one waits in the queue: 40 ns until it is there, and 400 until it is issued; the others need 20 ns.
        for (number, inserted) in [false, true, false, false].into_iter().enumerate() {
            let (at, sector) = (10_000 * (number as u64 + 1), 100 * number as u64);
            analysis.feed(&event(at, Action::Queue, sector));
            if inserted {
                analysis.feed(&event(at + 40, Action::Insert, sector));
            }
            let issued = at + if inserted { 440 } else { 20 };
            analysis.feed(&event(issued, Action::Issue, sector));
            analysis.feed(&event(issued + 1000, Action::Complete, sector));
        }
        let summary = analysis.finish(&Names::default()).unwrap();
        let samples = samples(Some(&summary.device), Duration::from_secs(1), 0, 13);
        for (name, expected) in [
            ("q2i.mean", 10e-9),
            ("i2d.mean", 100e-9),
            ("q2d.mean", 125e-9),
            ("d2c.mean", 1000e-9),
            ("q2c.mean", 1125e-9),
            ("i2d.p99", 400e-9),
            ("inserted_share", 0.25),
        ] {
            let found = value(&samples, &format!("blocks.read.{name}")).unwrap();
            assert!((found - expected).abs() < 1e-12, "{name}: {found}");
        }
    }

    #[test]
    fn a_device_without_events_has_counts_of_zero_and_no_times() {
        let samples = samples(None, Duration::from_secs(1), 0, 0);
        for name in [
            "blocks.read_requests", "blocks.flushes", "blocks.flush_time", "blocks.audit_passed",
            "blocks.depth",
        ] {
            assert_eq!(value(&samples, name), Some(0.0), "{name}");
        }
        assert_eq!(
            (value(&samples, "blocks.read.d2c.mean"), value(&samples, "blocks.merge_ratio")),
            (None, None)
        );
    }
}
