//! One timed part of a trial that has several: how long it took, and what the device did meanwhile.
//!
//! Enters: a name, what was done, the file with the device's counters. Leaves: samples whose job is the phase. It must not
//! know what the phase does.

use std::fs::File;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use super::Task;
use crate::record::{Sample, Unit};
use crate::sys::block_stat::DeviceCounters;
use crate::units::Better;

/// What the device did in a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Done {
    write_ios: u64,
    write_bytes: u64,
    /// `None` before Linux 5.5.
    flushes: Option<u64>,
}

impl Done {
    /// What was added since `before`; the kernel's counters may start over.
    fn between(before: &DeviceCounters, after: &DeviceCounters) -> Done {
        Done {
            write_ios: after.write_ios.wrapping_sub(before.write_ios),
            write_bytes: after.write_bytes.wrapping_sub(before.write_bytes),
            flushes: after.flushes.zip(before.flushes).map(|(now, then)| now.wrapping_sub(then)),
        }
    }
}

fn counters(file: &Path) -> Option<DeviceCounters> {
    DeviceCounters::parse(&std::fs::read_to_string(file).ok()?)
}

/// A phase that runs.
pub(super) struct Begun<'t> {
    at: Instant,
    device_stat: Option<&'t Path>,
    before: Option<DeviceCounters>,
}

/// A phase that has ended.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Phase {
    name: &'static str,
    pub(super) runtime_s: f64,
    pub(super) operations: u64,
    device: Option<Done>,
    /// Of single operations; `None` where they were not timed.
    pub(super) latencies: Option<Latencies>,
}

/// How long single operations took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Latencies {
    pub(super) count: u64,
    pub(super) total_ns: u64,
    pub(super) min_ns: u64,
    pub(super) max_ns: u64,
}

impl Default for Latencies {
    fn default() -> Latencies {
        Latencies { count: 0, total_ns: 0, min_ns: u64::MAX, max_ns: 0 }
    }
}

impl Latencies {
    pub(super) fn add(&mut self, took: Duration) {
        let ns = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.count += 1;
        self.total_ns = self.total_ns.saturating_add(ns);
        self.min_ns = self.min_ns.min(ns);
        self.max_ns = self.max_ns.max(ns);
    }

    pub(super) fn merge(&mut self, other: &Latencies) {
        self.count += other.count;
        self.total_ns = self.total_ns.saturating_add(other.total_ns);
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
    }
}

impl<'t> Begun<'t> {
    pub(super) fn now(task: &'t Task) -> Begun<'t> {
        let device_stat = task.device_stat.as_deref();
        // The clock last: reading the counters is no part of the phase.
        Begun { device_stat, before: device_stat.and_then(counters), at: Instant::now() }
    }

    /// Ends it, with what is dirty written back where `sync` is a file of the filesystem. `worked_s` is how long the work took
    /// where somebody else timed it.
    ///
    /// # Errors
    /// What syncfs(2) said.
    pub(super) fn end(
        self,
        name: &'static str,
        operations: u64,
        worked_s: Option<f64>,
        sync: Option<&File>,
    ) -> io::Result<Phase> {
        let worked_s = worked_s.unwrap_or_else(|| self.at.elapsed().as_secs_f64());
        let syncing = Instant::now();
        sync.map_or(Ok(()), |file| rustix::fs::syncfs(file).map_err(io::Error::from))?;
        let synced_s = sync.map_or(0.0, |_| syncing.elapsed().as_secs_f64());
        let after = self.device_stat.and_then(counters);
        let device = after.zip(self.before).map(|(after, before)| Done::between(&before, &after));
        Ok(Phase { name, runtime_s: worked_s + synced_s, operations, device, latencies: None })
    }
}

impl Phase {
    /// Its values, the time first, which decides.
    pub(super) fn samples(&self) -> Vec<Sample> {
        let sample = |name: &str, unit: Unit, value: f64| Sample::new(self.name, name, unit, value);
        let operations = self.operations as f64;
        let mut samples = vec![sample("runtime", Unit::Seconds, self.runtime_s)];
        if self.runtime_s > 0.0 {
            samples.push(sample("iops", Unit::PerSecond, operations / self.runtime_s));
        }
        let mut total = sample("total_ios", Unit::Count, operations);
        total.metric.better = Better::Higher;
        samples.push(total);
        if let Some(of) = self.latencies.filter(|of| of.count > 0) {
            samples.push(sample("lat_ns.mean", Unit::Nanoseconds, of.total_ns as f64 / of.count as f64));
            samples.push(sample("lat_ns.min", Unit::Nanoseconds, of.min_ns as f64));
            samples.push(sample("lat_ns.max", Unit::Nanoseconds, of.max_ns as f64));
        }
        if let Some(device) = self.device {
            samples.push(sample("dev.write_ios", Unit::Count, device.write_ios as f64));
            samples.push(sample("dev.write_bytes", Unit::Bytes, device.write_bytes as f64));
        }
        if let Some(flushes) = self.device.and_then(|device| device.flushes) {
            samples.push(sample("dev.flushes", Unit::Count, flushes as f64));
            let per_operation = (operations > 0.0).then(|| flushes as f64 / operations);
            samples.extend(per_operation.map(|n| sample("dev.flushes_per_op", Unit::Count, n)));
        }
        samples
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phase_has_its_time_and_what_the_device_did_in_it() {
        let stat = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(stat.path(), "1 0 8 0 10 0 100 0 0 0 0 0 0 0 0 5 0").unwrap();
        let task = Task { device_stat: Some(stat.path().to_owned()), ..Task::default() };
        let begun = Begun::now(&task);
        std::fs::write(stat.path(), "1 0 8 0 13 0 108 0 0 0 0 0 0 0 0 9 0").unwrap();
        let mut phase = begun.end("chown", 8, Some(2.0), None).unwrap();
        let mut latencies = Latencies::default();
        latencies.add(Duration::from_nanos(100));
        latencies.merge(&Latencies { count: 3, total_ns: 500, min_ns: 50, max_ns: 300 });
        phase.latencies = Some(latencies);
        let samples = phase.samples();
        assert!(samples.iter().all(|s| s.metric.job == "chown"));
        let value = |name: &str| samples.iter().find(|s| s.metric.name == name).unwrap().value;
        for (name, expected) in [
            ("runtime", 2.0),
            ("iops", 4.0),
            ("total_ios", 8.0),
            ("lat_ns.mean", 150.0),
            ("lat_ns.min", 50.0),
            ("lat_ns.max", 300.0),
            ("dev.write_ios", 3.0),
            ("dev.write_bytes", 4096.0),
            ("dev.flushes", 4.0),
            ("dev.flushes_per_op", 0.5),
        ] {
            assert_eq!(value(name), expected, "{name}");
        }
        assert_eq!(samples[0].metric.name, "runtime");
    }

    #[test]
    fn what_the_kernel_does_not_count_is_left_out() {
        assert_eq!(DeviceCounters::parse("1 2 3 4 5 6"), None);
        assert_eq!(DeviceCounters::parse("1 2 3 4 5 6 7 8 9 10 11").unwrap().flushes, None);
        let phase = Begun::now(&Task::default()).end("create", 1, None, None).unwrap();
        assert!(phase.samples().iter().all(|s| !s.metric.name.starts_with("dev.")));
    }
}
