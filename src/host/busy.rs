//! Whether others use this machine at this moment, while assay itself does nothing.
//!
//! Enters: `/proc`, and a path on the device that will be measured. Leaves: a [`Moment`], and in words what makes the machine
//! busy. The limits are round figures, fixed before any result: they warn, and never throw a trial out.

use std::path::Path;
use std::time::{Duration, Instant};

use super::device::{BlockDevice, device_under};
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
    /// Name of the device, I/Os and bytes a second.
    pub device: Option<(String, f64, f64)>,
    /// Of these, bytes a second that were read.
    pub read_bytes_per_s: f64,
}

impl Moment {
    /// Looks for a quarter of a second at the machine and at the device under `path`.
    #[must_use]
    pub fn look(path: &Path) -> Moment {
        Moment::look_in(&Roots::default(), device_under(path).ok(), LOOK)
    }

    /// The same for a second, where the first look found something.
    #[must_use]
    pub fn look_longer(path: &Path) -> Moment {
        Moment::look_in(&Roots::default(), device_under(path).ok(), LONGER)
    }

    fn look_in(roots: &Roots, device: Option<BlockDevice>, during: Duration) -> Moment {
        let transferred = |device: &BlockDevice| {
            let counters = device.counters()?;
            Some((counters.read_ios + counters.write_ios, counters.read_bytes, counters.write_bytes))
        };
        let before = (processor_ticks(roots), device.as_ref().and_then(transferred), Instant::now());
        std::thread::sleep(during);
        let after = (processor_ticks(roots), device.as_ref().and_then(transferred));
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
        let rate = |of: fn((u64, u64, u64)) -> u64| {
            before
                .1
                .zip(after.1)
                .map(|(before, after)| of(after).saturating_sub(of(before)) as f64 / elapsed_s)
        };
        let rates = rate(|counts| counts.0).zip(rate(|counts| counts.1 + counts.2));
        let load = roots.proc("loadavg").and_then(|text| text.split(' ').next()?.parse().ok());
        Moment {
            load: load.unwrap_or(0.0),
            processors,
            in_use: (busy_s / (elapsed_s * processors as f64)).min(1.0),
            steal: if steal_s >= STEAL_S { steal_s / (busy_s + steal_s) } else { 0.0 },
            pressure: ["cpu", "io", "memory"].map(|what| pressure(roots, what).map(|(percent, _)| percent)),
            device: device
                .map(|device| device.name)
                .zip(rates)
                .map(|(name, (ios, bytes))| (name, ios, bytes)),
            read_bytes_per_s: rate(|counts| counts.1).unwrap_or(0.0),
        }
    }

    /// How long a trial will probably wait for its device, which is given up after `patience_s`: others leave it alone for
    /// less than 50 ms when they do this much.
    #[must_use]
    pub fn expected_wait_s(&self, patience_s: f64) -> f64 {
        let ios = self.device.as_ref().map_or(0.0, |(_, ios, _)| *ios);
        // The chance that nothing happens in 50 ms, where I/Os come in bursts of ten.
        let quiet = (-ios / 10.0 * 0.05).exp();
        (patience_s / 2.0).min(0.05 * (1.0 - quiet) / quiet)
    }

    /// Whether trials that begin now will be thrown out, if it stays so. `reads`: also for what others read from the device.
    #[must_use]
    pub fn disturbs(&self, limits: &Limits, reads: bool) -> bool {
        self.steal > limits.steal_share || (reads && self.read_bytes_per_s > limits.foreign_read_bytes_per_s)
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
        if let Some((name, ios, bytes)) = &self.device
            && (*ios >= IOS_PER_S || *bytes >= BYTES_PER_S)
        {
            let bytes = format_number(&Unit::BytesPerSecond, *bytes);
            reasons.push(format!("others' I/O on {name}: {ios:.0} a second, {bytes}"));
        }
        let (load, processors) = (self.load, self.processors);
        (!reasons.is_empty()).then(|| {
            let word = if processors == 1 { "processor" } else { "processors" };
            reasons.push(format!("load {load:.1} on {processors} {word}"));
            reasons.join(", ")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quiet_machine_has_no_reason() {
        let quiet = Moment { load: 7.0, processors: 2, ..Moment::default() };
        assert_eq!(quiet.busy(), None, "the load average alone may be of what assay did a moment ago");
        let psi = Moment { pressure: [Some(3.0), Some(9.9), Some(0.0)], ..quiet.clone() };
        assert_eq!(psi.busy(), None);
        let little = Moment { device: Some(("vda".to_owned(), 49.0, 1e5)), in_use: 0.2, ..quiet };
        assert_eq!(little.busy(), None);
        let read = Moment { read_bytes_per_s: 1e8, ..little };
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
            device: Some(("vda".to_owned(), 800.0, 2e6)),
            read_bytes_per_s: 0.0,
        };
        assert!(busy.disturbs(&Limits::default(), false), "too much is stolen");
        assert_eq!(
            busy.busy().unwrap(),
            "97 % of the processor time in use, 10 % of the processor time that was wanted was stolen, tasks wait for a processor 92 % of the time, tasks wait \
             for I/O 22 % of the time, others' I/O on vda: 800 a second, 2.00 MB/s, load 13.0 on 2 processors"
                .replace("2.00 MB/s", &format_number(&Unit::BytesPerSecond, 2e6))
        );
    }

    #[test]
    fn a_device_that_others_use_is_waited_for() {
        let wait = |ios| {
            Moment { device: Some(("vda".to_owned(), ios, 0.0)), ..Moment::default() }.expected_wait_s(2.0)
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
        let moment = Moment::look_in(&Roots::under(root.path()), None, Duration::from_millis(5));
        assert_eq!((moment.load, moment.in_use, moment.steal), (0.42, 0.0, 0.0));
        assert_eq!((moment.pressure, moment.device), ([None; 3], None));
    }
}
