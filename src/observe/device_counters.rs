//! The counters of the block device under the path (`/sys/block/*/stat`), with flushes and their time.
//!
//! They count the whole device and whoever uses it. Pages that are written back after the trial are not in them:
//! compare `dev.write_bytes` with what the trial wrote before saying that a device wrote less.

use std::path::{Path, PathBuf};

use super::{Observer, Unseen};
use crate::host::{BlockDevice, DeviceCounters, Disks, device_under};
use crate::record::{Outcome, Sample, Unit};

/// The file with the counters of the device that holds `path` or that `path` is; `None`: there is no such device, or its
/// counters stand still.
#[must_use]
pub fn device_stat(path: &Path) -> Option<PathBuf> {
    let device = device_under(path).ok().filter(BlockDevice::counts_transfers);
    device.map(|device| device.sys.join("stat"))
}

/// What there is where it saw nothing.
const NOTHING: &str = "no device counters";

/// Watches the device of a filesystem, or all of them where it has several.
#[derive(Clone, Debug)]
pub struct DeviceObserver {
    disks: Result<Disks, String>,
    before: Option<Counted>,
    /// Whether they counted anything but flushes when the trial began.
    counting: bool,
}

/// The counters at one moment.
#[derive(Clone, Debug)]
struct Counted {
    own: Vec<DeviceCounters>,
    /// Of the devices that count the flushes.
    flushing: Vec<DeviceCounters>,
}

impl Counted {
    fn now(disks: &Disks) -> Option<Counted> {
        let of =
            |devices: &[BlockDevice]| devices.iter().map(BlockDevice::counters).collect::<Option<Vec<_>>>();
        Some(Counted { own: of(&disks.own)?, flushing: of(disks.counting_flushes())? })
    }
}

impl DeviceObserver {
    /// The observer of the devices of the filesystem that holds `path`, or of the device that `path` is.
    #[must_use]
    pub fn under(path: &Path) -> DeviceObserver {
        DeviceObserver { disks: Disks::under(path), before: None, counting: true }
    }
}

impl Observer for DeviceObserver {
    fn start(&mut self) {
        let Ok(disks) = &self.disks else { return };
        self.before = Counted::now(disks);
        self.counting = disks.own.iter().all(BlockDevice::counts_transfers);
    }

    /// `dev.{read,write}_{ios,merges,bytes,time}`, `dev.discards`, `dev.discard_bytes`, `dev.flushes`, `dev.flush_time`,
    /// `dev.busy`, `dev.queue_time` (times in s), and `dev.in_flight` as it is at the end. Several devices are added up; `dev.busy` is
    /// that of the busiest. With `queue/iostats` at 0 only those of flushes, which the kernel counts in any case: the others would be
    /// zeros that nobody measured. Flushes of device mapper and md are those of the disks below.
    fn stop(&mut self) -> Result<Outcome, Unseen> {
        let disks = self.disks.as_ref().map_err(|reason| Unseen::new(NOTHING, reason.clone()))?;
        let names = disks.own.iter().map(|device| device.name.as_str()).collect::<Vec<_>>().join(", ");
        let (Some(before), Some(after)) = (&self.before, Counted::now(disks)) else {
            return Err(Unseen::new(NOTHING, format!("{names} has none, or went away")));
        };
        let mut samples = added(&before.own, &after.own, differences);
        samples.extend(added(&before.flushing, &after.flushing, flushes));
        let mut seen = Outcome { samples, ..Outcome::default() };
        if !self.counting {
            seen.samples.retain(|sample| sample.metric.name.starts_with("dev.flush"));
            let blind = format!(
                "queue/iostats is 0: {names} counts flushes and nothing else, so there is no other dev.* here, and whether it was \
                 at rest before the trial is not known"
            );
            seen.notes.push(blind.into());
        }
        Ok(seen)
    }
}

/// The samples of each device, added up by name.
fn added(
    before: &[DeviceCounters],
    after: &[DeviceCounters],
    samples: fn(&DeviceCounters, &DeviceCounters) -> Vec<Sample>,
) -> Vec<Sample> {
    let add = |mut sum: Vec<Sample>, of_one: Vec<Sample>| {
        sum.retain(|sample| of_one.iter().any(|other| other.metric.name == sample.metric.name));
        for sample in &mut sum {
            let values = of_one.iter().filter(|other| other.metric.name == sample.metric.name);
            let value = values.map(|other| other.value).sum::<f64>();
            let is_share = sample.metric.name == "dev.busy";
            sample.value = if is_share { sample.value.max(value) } else { sample.value + value };
        }
        sum
    };
    before.iter().zip(after).map(|(before, after)| samples(before, after)).reduce(add).unwrap_or_default()
}

fn differences(before: &DeviceCounters, after: &DeviceCounters) -> Vec<Sample> {
    let count = |name: &str, a: u64, b: u64| sample(name, Unit::Count, difference(a, b));
    let bytes = |name: &str, a: u64, b: u64| sample(name, Unit::Bytes, difference(a, b));
    vec![
        count("read_ios", after.read_ios, before.read_ios),
        count("read_merges", after.read_merges, before.read_merges),
        bytes("read_bytes", after.read_bytes, before.read_bytes),
        time("read_time", after.read_ms, before.read_ms),
        count("write_ios", after.write_ios, before.write_ios),
        count("write_merges", after.write_merges, before.write_merges),
        bytes("write_bytes", after.write_bytes, before.write_bytes),
        time("write_time", after.write_ms, before.write_ms),
        count("discards", after.discards, before.discards),
        bytes("discard_bytes", after.discard_bytes, before.discard_bytes),
        time("busy", after.busy_ms, before.busy_ms),
        time("queue_time", after.queue_ms, before.queue_ms),
        sample("in_flight", Unit::Count, after.in_flight as f64),
    ]
}

fn flushes(before: &DeviceCounters, after: &DeviceCounters) -> Vec<Sample> {
    let number = after.flushes.zip(before.flushes);
    let number = number.map(|(after, before)| sample("flushes", Unit::Count, difference(after, before)));
    let times = after.flush_ms.zip(before.flush_ms).map(|(after, before)| time("flush_time", after, before));
    number.into_iter().chain(times).collect()
}

fn sample(name: &str, unit: Unit, value: f64) -> Sample {
    Sample::new("", &format!("dev.{name}"), unit, value)
}

/// The kernel keeps counts in unsigned longs that may start over.
fn difference(after: u64, before: u64) -> f64 {
    after.wrapping_sub(before) as f64
}

/// It prints times as unsigned ints of milliseconds: a queue of 256 is through with those in five hours.
fn time(name: &str, after: u64, before: u64) -> Sample {
    sample(name, Unit::Seconds, f64::from((after as u32).wrapping_sub(before as u32)) / 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fake(stat: &str) -> (tempfile::TempDir, DeviceObserver) {
        let sys = tempfile::tempdir().unwrap();
        std::fs::write(sys.path().join("stat"), stat).unwrap();
        std::fs::create_dir(sys.path().join("mq")).unwrap();
        let own = vec![BlockDevice { name: "fake".to_owned(), sys: sys.path().to_owned() }];
        (sys, DeviceObserver { disks: Ok(Disks { own, ..Disks::default() }), before: None, counting: true })
    }

    #[test]
    fn differences_are_in_base_units() {
        let (sys, mut observer) = fake("10 1 16 5 20 2 32 7 3 1000 12 4 0 64 9 6 8");
        observer.start();
        std::fs::write(sys.path().join("stat"), "11 1 24 9 25 2 72 8 2 1500 20 5 0 72 9 9 2008").unwrap();
        let Outcome { samples, notes, .. } = observer.stop().unwrap();
        let value = |name: &str| samples.iter().find(|s| s.metric.name == name).unwrap().value;
        for (name, expected) in [
            ("dev.read_ios", 1.0),
            ("dev.read_bytes", 4096.0),
            ("dev.write_ios", 5.0),
            ("dev.write_bytes", 20480.0),
            ("dev.discards", 1.0),
            ("dev.flushes", 3.0),
            ("dev.flush_time", 2.0),
            ("dev.busy", 0.5),
            ("dev.in_flight", 2.0),
        ] {
            assert_eq!(value(name), expected, "{name}");
        }
        assert_eq!(notes, []);
        // Milliseconds are printed as 32 bits.
        std::fs::write(sys.path().join("stat"), "11 1 24 9 25 2 72 8 2 1500 4294967290 5 0 72 9 9 2008")
            .unwrap();
        observer.start();
        std::fs::write(sys.path().join("stat"), "11 1 24 9 25 2 72 8 2 1500 1994 5 0 72 9 9 2008").unwrap();
        let samples = observer.stop().unwrap().samples;
        let queue = samples.iter().find(|s| s.metric.name == "dev.queue_time").unwrap();
        assert_eq!(queue.value, 2.0);
    }

    #[test]
    fn several_devices_are_added_up_and_flushes_are_those_of_the_disks_below() {
        let (volume, mut observer) = fake("10 1 16 5 20 2 32 7 3 1000 12 4 0 64 9 0 0");
        let (second, other) = fake("0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0");
        let (disk, below) = fake("0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 5 8");
        std::fs::remove_dir(volume.path().join("mq")).unwrap();
        std::fs::create_dir(volume.path().join("queue")).unwrap();
        std::fs::write(volume.path().join("queue/write_cache"), "write back\n").unwrap();
        let disks = observer.disks.as_mut().unwrap();
        disks.own.extend(other.disks.unwrap().own);
        observer.start();
        assert!(
            observer.stop().unwrap().samples.iter().all(|sample| sample.metric.name != "dev.flushes"),
            "nobody counts them"
        );
        observer.disks.as_mut().unwrap().below = below.disks.unwrap().own;
        observer.start();
        std::fs::write(volume.path().join("stat"), "11 1 24 5 20 2 32 7 3 1500 12 4 0 64 9 0 0").unwrap();
        std::fs::write(second.path().join("stat"), "2 0 16 0 0 0 0 0 0 100 0 0 0 0 0 0 0").unwrap();
        std::fs::write(disk.path().join("stat"), "0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 9 8").unwrap();
        let samples = observer.stop().unwrap().samples;
        let value = |name: &str| samples.iter().find(|sample| sample.metric.name == name).unwrap().value;
        assert_eq!((value("dev.read_ios"), value("dev.read_bytes")), (3.0, 4096.0 + 8192.0));
        assert_eq!((value("dev.busy"), value("dev.flushes")), (0.5, 4.0));
    }

    #[test]
    fn a_device_that_does_not_count_gives_no_zeros() {
        let (sys, mut observer) = fake("10 1 16 5 20 2 32 7 3 1000 12 4 0 64 9 6 8");
        std::fs::create_dir(sys.path().join("queue")).unwrap();
        std::fs::write(sys.path().join("queue/iostats"), "0\n").unwrap();
        observer.start();
        std::fs::write(sys.path().join("stat"), "10 1 16 5 20 2 32 7 3 1000 12 4 0 64 9 9 2008").unwrap();
        let seen = observer.stop().unwrap();
        let names: Vec<String> = seen.samples.into_iter().map(|sample| sample.metric.name).collect();
        assert_eq!(names, ["dev.flushes", "dev.flush_time"]);
        assert!(seen.notes[0].text.starts_with("queue/iostats is 0: fake counts flushes and nothing else"));
    }

    #[test]
    fn an_old_kernels_device_has_no_flushes() {
        let (_sys, mut observer) = fake("10 1 16 5 20 2 32 7 3 1000 12");
        observer.start();
        let samples = observer.stop().unwrap().samples;
        assert_eq!(samples.len(), 13);
        assert!(samples.iter().all(|s| s.metric.name != "dev.flushes"));
    }

    #[test]
    fn why_there_are_no_counters_is_said() {
        let mut none = DeviceObserver::under(Path::new("/proc"));
        none.start();
        let reason = none.stop().unwrap_err();
        assert!(reason.why.contains("/proc is on proc"), "{reason}");
        let (sys, mut gone) = fake("1 2 3 4 5 6 7 8 9 10 11");
        gone.start();
        drop(sys);
        assert!(gone.stop().unwrap_err().why.contains("went away"));
    }
}
