//! Whether others use this machine at this moment, while assay itself does nothing.
//!
//! Enters: `/proc`, and a path on each device that will be measured. Leaves: a [`Moment`], and in words what makes the machine
//! busy. The limits are round figures, fixed before any result: they warn, and never throw a trial out.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::DeviceCounters;
use super::device::BlockDevice;
use super::disks::Disks;
use super::interference::{Limits, TICKS_PER_S, pressure, processor_ticks};
use super::roots::Roots;
use crate::units::{Unit, format_number};

/// How long one look takes.
const LOOK: Duration = Duration::from_millis(250);
/// A burst of less than this says little of the minutes to come.
const LONGER: Duration = Duration::from_secs(1);
/// Share of the processors in use from which the machine is busy.
const PROCESSORS: f64 = 0.25;
/// Share of stolen time, as in the rule that throws rounds out.
const STEAL: f64 = 0.05;
/// Stolen time that is more than the grain of the counter.
const STEAL_S: f64 = 0.03;
/// Percent of the last ten seconds in which some task waited for a processor, for I/O, for memory.
const PRESSURE: [f64; 3] = [20.0, 10.0, 1.0];
/// I/Os of the device a second.
const IOS_PER_S: f64 = 50.0;
/// Bytes of the device a second.
const BYTES_PER_S: f64 = 4e6;

/// What the machine did while assay looked.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Moment {
    /// Load average of the last minute.
    pub load: f64,
    /// Processors that are online.
    pub processors: usize,
    /// Share of them that ran something.
    pub in_use: f64,
    /// Share of the processor time that the hypervisor gave to others.
    pub steal: f64,
    /// Percent of the last ten seconds in which some task waited for a processor, for I/O, for memory; `None` without PSI.
    pub pressure: [Option<f64>; 3],
    /// What others did on each device.
    pub devices: Vec<Traffic>,
    /// Arrays under them that are being rebuilt or checked: `md0 (resync)`.
    pub rebuilding: Vec<String>,
}

/// What a device did in a second.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Traffic {
    /// Its kernel name.
    pub device: String,
    /// I/Os.
    pub ios: f64,
    /// Bytes that were read.
    pub read_bytes: f64,
    /// Bytes that were written.
    pub written_bytes: f64,
}

impl Traffic {
    /// What the counters say has happened since `earlier`.
    fn between(device: &BlockDevice, earlier: &DeviceCounters, later: &DeviceCounters, s: f64) -> Traffic {
        let rate = |of: fn(&DeviceCounters) -> u64| of(later).saturating_sub(of(earlier)) as f64 / s;
        Traffic {
            device: device.name.clone(),
            ios: rate(|counted| counted.read_ios + counted.write_ios),
            read_bytes: rate(|counted| counted.read_bytes),
            written_bytes: rate(|counted| counted.write_bytes),
        }
    }

    fn bytes(&self) -> f64 {
        self.read_bytes + self.written_bytes
    }
}

impl Moment {
    /// Looks for a quarter of a second at the machine and at the devices under these paths.
    #[must_use]
    pub fn look(paths: &[PathBuf]) -> Moment {
        Moment::look_under(paths, LOOK)
    }

    /// The same for a second, where the first look found something.
    #[must_use]
    pub fn look_longer(paths: &[PathBuf]) -> Moment {
        Moment::look_under(paths, LONGER)
    }

    fn look_under(paths: &[PathBuf], during: Duration) -> Moment {
        let (devices, rebuilding) = devices_under(paths);
        Moment { rebuilding, ..Moment::look_in(&Roots::default(), &devices, during) }
    }

    fn look_in(roots: &Roots, devices: &[BlockDevice], during: Duration) -> Moment {
        let counted = || devices.iter().map(BlockDevice::counters).collect::<Vec<_>>();
        let before = (processor_ticks(roots), counted(), Instant::now());
        std::thread::sleep(during);
        let after = (processor_ticks(roots), counted());
        let elapsed_s = before.2.elapsed().as_secs_f64().max(1e-3);
        // All of them, as the ticks are of all: the affinity of this process has no part in it.
        let stat = roots.proc("stat").unwrap_or_default();
        let is_one = |line: &&str| {
            line.strip_prefix("cpu").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        };
        let processors = stat.lines().filter(is_one).count().max(1);
        let ticks = |of: fn((u64, u64)) -> u64| {
            let [before, after] = [before.0, after.0].map(|ticks| ticks.map_or(0, of));
            after.saturating_sub(before) as f64 / TICKS_PER_S
        };
        let (busy_s, steal_s) = (ticks(|ticks| ticks.0), ticks(|ticks| ticks.1));
        let traffic = devices.iter().zip(before.1.iter().zip(&after.1)).filter_map(|(device, counted)| {
            Some(Traffic::between(device, counted.0.as_ref()?, counted.1.as_ref()?, elapsed_s))
        });
        let load = roots.proc("loadavg").and_then(|text| text.split(' ').next()?.parse().ok());
        Moment {
            load: load.unwrap_or(0.0),
            processors,
            in_use: (busy_s / (elapsed_s * processors as f64)).min(1.0),
            steal: if steal_s >= STEAL_S { steal_s / (busy_s + steal_s) } else { 0.0 },
            pressure: ["cpu", "io", "memory"].map(|what| pressure(roots, what).map(|(percent, _)| percent)),
            devices: traffic.collect(),
            rebuilding: Vec::new(),
        }
    }

    /// How long a trial will probably wait for its device, which is given up after `patience_s`: others leave it alone for
    /// less than 50 ms when they do this much.
    #[must_use]
    pub fn expected_wait_s(&self, patience_s: f64) -> f64 {
        let ios = self.devices.iter().map(|device| device.ios).fold(0.0, f64::max);
        // The chance that nothing happens in 50 ms, where I/Os come in bursts of ten.
        let quiet = (-ios / 10.0 * 0.05).exp();
        (patience_s / 2.0).min(0.05 * (1.0 - quiet) / quiet)
    }

    /// Whether trials that begin now will be thrown out, if it stays so. `reads`: also for what others read from the device.
    #[must_use]
    pub fn disturbs(&self, limits: &Limits, reads: bool) -> bool {
        let read = self.devices.iter().any(|device| device.read_bytes > limits.foreign_read_bytes_per_s);
        self.steal > limits.steal_share || (reads && read)
    }

    /// What makes the machine busy, in words; `None`: it is quiet. The load average is told and decides nothing: it remembers
    /// a minute, and with it what assay has just done.
    #[must_use]
    pub fn busy(&self) -> Option<String> {
        let mut reasons = Vec::new();
        if self.in_use >= PROCESSORS {
            reasons.push(format!("{:.0} % of the processor time in use", self.in_use * 100.0));
        }
        if self.steal > STEAL {
            let steal = self.steal * 100.0;
            reasons.push(format!("{steal:.0} % of the processor time that was wanted was stolen"));
        }
        let waits = ["a processor", "I/O", "memory"].into_iter().zip(self.pressure).zip(PRESSURE);
        for ((what, percent), limit) in waits {
            if let Some(percent) = percent.filter(|percent| *percent >= limit) {
                reasons.push(format!("tasks wait for {what} {percent:.0} % of the time"));
            }
        }
        let is_busy = |device: &&Traffic| device.ios >= IOS_PER_S || device.bytes() >= BYTES_PER_S;
        for device in self.devices.iter().filter(is_busy) {
            let bytes = format_number(&Unit::BytesPerSecond, device.bytes());
            reasons.push(format!("others' I/O on {}: {:.0} a second, {bytes}", device.device, device.ios));
        }
        reasons.extend(self.rebuilding.iter().map(|array| format!("the array {array} uses its disks")));
        let (load, processors) = (self.load, self.processors);
        (!reasons.is_empty()).then(|| {
            let word = if processors == 1 { "processor" } else { "processors" };
            reasons.push(format!("load {load:.1} on {processors} {word}"));
            reasons.join(", ")
        })
    }
}

/// The devices under these paths and others on their disks, each once; and the arrays among them that are being rebuilt.
fn devices_under(paths: &[PathBuf]) -> (Vec<BlockDevice>, Vec<String>) {
    let (mut devices, mut rebuilding) = (Vec::new(), BTreeSet::new());
    for disks in paths.iter().filter_map(|path| Disks::under(path).ok()) {
        for device in disks.counted() {
            if !devices.contains(&device) {
                devices.push(device);
            }
        }
        rebuilding.extend(disks.rebuilding);
    }
    (devices, rebuilding.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn traffic(device: &str, ios: f64, read_bytes: f64, written_bytes: f64) -> Traffic {
        Traffic { device: device.to_owned(), ios, read_bytes, written_bytes }
    }

    #[test]
    fn a_quiet_machine_has_no_reason() {
        let quiet = Moment { load: 7.0, processors: 2, ..Moment::default() };
        assert_eq!(quiet.busy(), None, "the load average alone may be of what assay did a moment ago");
        let psi = Moment { pressure: [Some(3.0), Some(9.9), Some(0.0)], ..quiet.clone() };
        assert_eq!(psi.busy(), None);
        let little = Moment { devices: vec![traffic("vda", 49.0, 1e5, 0.0)], in_use: 0.2, ..quiet };
        assert_eq!(little.busy(), None);
        let read = Moment { devices: vec![traffic("vda", 49.0, 1e8, 0.0)], ..little };
        assert_eq!([true, false].map(|reads| read.disturbs(&Limits::default(), reads)), [true, false]);
    }

    #[test]
    fn each_reason_is_said_with_the_load() {
        let busy = Moment {
            load: 13.04,
            processors: 2,
            in_use: 0.97,
            steal: 0.1,
            pressure: [Some(92.0), Some(22.4), None],
            devices: vec![
                traffic("vda", 800.0, 1e6, 1e6),
                traffic("vdb", 1.0, 0.0, 4096.0),
                traffic("vdc", 3.0, 5e6, 0.0),
            ],
            rebuilding: vec!["md0 (resync)".to_owned()],
        };
        assert!(busy.disturbs(&Limits::default(), false), "too much is stolen");
        assert_eq!(
            busy.busy().unwrap(),
            "97 % of the processor time in use, 10 % of the processor time that was wanted was stolen, tasks wait for a processor 92 % of the time, tasks wait \
             for I/O 22 % of the time, others' I/O on vda: 800 a second, 2.00 MB/s, others' I/O on vdc: 3 a second, 5.00 MB/s, \
             the array md0 (resync) uses its disks, load 13.0 on 2 processors"
                .replace("2.00 MB/s", &format_number(&Unit::BytesPerSecond, 2e6))
                .replace("5.00 MB/s", &format_number(&Unit::BytesPerSecond, 5e6))
        );
    }

    #[test]
    fn a_device_that_others_use_is_waited_for() {
        let wait = |ios| {
            Moment { devices: vec![traffic("vda", ios, 0.0, 0.0)], ..Moment::default() }.expected_wait_s(2.0)
        };
        assert_eq!((wait(0.0), Moment::default().expected_wait_s(2.0)), (0.0, 0.0));
        assert!(wait(50.0) < 0.05 && wait(500.0) > 0.5, "{} {}", wait(50.0), wait(500.0));
        assert_eq!(wait(1e6), 1.0);
    }

    #[test]
    fn two_looks_make_shares_of_the_processors() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("proc/pressure")).unwrap();
        std::fs::write(root.path().join("proc/stat"), "cpu  100 0 100 9000 50 0 0 50 0 0\n").unwrap();
        std::fs::write(root.path().join("proc/loadavg"), "0.42 0.10 0.05 1/100 99\n").unwrap();
        let moment = Moment::look_in(&Roots::under(root.path()), &[], Duration::from_millis(5));
        assert_eq!((moment.load, moment.in_use, moment.steal), (0.42, 0.0, 0.0));
        assert_eq!((moment.pressure, moment.devices), ([None; 3], Vec::new()));
    }
}
