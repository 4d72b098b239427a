//! The same start for every trial: dirty pages written, page cache dropped where that is asked and allowed, device idle.

use std::path::Path;
use std::time::{Duration, Instant};

use super::device::{BlockDevice, DeviceCounters};
use super::disks::{Disks, counters_of};
use crate::units::pretty_duration;

/// The device must do nothing for this long.
const QUIET: Duration = Duration::from_millis(50);
/// How often it is looked at.
const STEP: Duration = Duration::from_millis(5);
/// Longest wait for it, unless said otherwise.
const PATIENCE: Duration = Duration::from_secs(2);
/// What is written to drop the caches of the whole machine.
const DROP_CACHES: &str = "/proc/sys/vm/drop_caches";

/// What became of the page cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PageCache {
    /// Clean pages, dentries and inodes were dropped.
    Dropped,
    /// Nobody asked for it.
    Kept,
    /// It was asked for but could not be done, and why (usually: not root).
    NotDropped(String),
}

/// Whether the device came to rest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Idle {
    /// It did nothing for 50 ms.
    Idle,
    /// It was still busy when the wait was over: somebody else uses it.
    Busy {
        /// Its name.
        device: String,
        /// I/Os that it completed meanwhile.
        ios: u64,
        /// How long it was waited for.
        waited_ms: u64,
    },
    /// Nobody wants to wait for it.
    NotWaited,
    /// It does not count its I/O, so nobody can say; it was left alone for 50 ms. The observer of its counters tells that.
    NotCounted,
    /// There is no block device under the path.
    NoDevice,
}

/// What was done before a trial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quiet {
    /// The page cache.
    pub page_cache: PageCache,
    /// The device.
    pub idle: Idle,
}

impl Quiet {
    /// What a reader of the results must know, one sentence each; empty when all was as it should be.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if let PageCache::NotDropped(why) = &self.page_cache {
            notes.push(format!("the page cache was not dropped before the trial: {why}"));
        }
        if let Idle::Busy { device, ios, waited_ms } = &self.idle {
            let waited = pretty_duration(*waited_ms as f64 / 1e3);
            notes.push(format!("{device} did not come to rest before the trial: {ios} I/Os in {waited}"));
        }
        notes
    }
}

/// Writes all dirty pages of the machine (sync(2): pages of another filesystem would be written during the trial), drops
/// the caches when `drop_caches`, then waits until the devices under `path`, with the disks below
/// them, have been idle for 50 ms: at most for `patience`, two
/// seconds by default; with a patience of 0 not at all.
#[must_use]
pub fn quiesce(path: &Path, drop_caches: bool, patience: Option<Duration>) -> Quiet {
    rustix::fs::sync();
    let page_cache = if drop_caches {
        match std::fs::write(DROP_CACHES, "3") {
            Ok(()) => PageCache::Dropped,
            Err(error) => PageCache::NotDropped(why_not(&error)),
        }
    } else {
        PageCache::Kept
    };
    let idle = match (patience.unwrap_or(PATIENCE), Disks::under(path)) {
        (Duration::ZERO, _) => Idle::NotWaited,
        (patience, Ok(disks)) => wait_until_idle(&disks.resting(), patience),
        (_, Err(_)) => Idle::NoDevice,
    };
    Quiet { page_cache, idle }
}

/// Why this process cannot drop the machine's caches; `None`: it can. Nothing is dropped.
#[must_use]
pub fn caches_are_kept() -> Option<String> {
    let opened = std::fs::OpenOptions::new().write(true).open(DROP_CACHES);
    opened.err().map(|error| why_not(&error))
}

fn why_not(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::PermissionDenied => "only root may".to_owned(),
        _ => error.to_string(),
    }
}

/// Waits for all of them: a disk below is used by others, too.
fn wait_until_idle(devices: &[BlockDevice], patience: Duration) -> Idle {
    let completed = |c: &DeviceCounters| c.read_ios + c.write_ios + c.discards + c.flushes.unwrap_or(0);
    let start = Instant::now();
    let Some(first) = counters_of(devices) else { return Idle::NoDevice };
    if !devices.iter().all(BlockDevice::counts_transfers) {
        // Counters that stand still look like rest.
        std::thread::sleep(QUIET);
        return Idle::NotCounted;
    }
    let (mut last, mut quiet_since, mut busy) = (first.clone(), start, 0);
    loop {
        std::thread::sleep(STEP);
        let Some(now) = counters_of(devices) else { return Idle::NoDevice };
        let mut moved =
            now.iter().zip(&last).map(|(now, last)| now.in_flight > 0 || completed(now) != completed(last));
        // The disk below where both moved: it has the I/O of everyone.
        if let Some(at) = moved.rposition(|moved| moved) {
            (quiet_since, busy) = (Instant::now(), at);
        }
        last = now;
        // A shorter wait than that is rest, too, when nothing happened in it.
        if quiet_since.elapsed() >= QUIET.min(patience) {
            return Idle::Idle;
        }
        if start.elapsed() >= patience {
            let ios = completed(&last[busy]).saturating_sub(completed(&first[busy]));
            let waited_ms = start.elapsed().as_millis() as u64;
            return Idle::Busy { device: devices[busy].name.clone(), ios, waited_ms };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(stat: &str) -> (tempfile::TempDir, BlockDevice) {
        let sys = tempfile::tempdir().unwrap();
        std::fs::write(sys.path().join("stat"), stat).unwrap();
        let device = BlockDevice { name: "fake".to_owned(), sys: sys.path().to_owned() };
        (sys, device)
    }

    #[test]
    fn a_device_at_rest_takes_the_quiet_time_only() {
        let (_sys, device) = device("1 0 8 0 1 0 8 0 0 0 0");
        let start = Instant::now();
        assert_eq!(wait_until_idle(&[device], PATIENCE), Idle::Idle);
        assert!(start.elapsed() >= QUIET && start.elapsed() < PATIENCE);
    }

    #[test]
    fn a_busy_device_is_given_up_and_named() {
        let (_sys, device) = device("1 0 8 0 1 0 8 0 3 0 0");
        let busy = wait_until_idle(&[device], Duration::from_millis(120));
        assert!(
            matches!(&busy, Idle::Busy { device, ios: 0, waited_ms: 120.. } if device == "fake"),
            "{busy:?}"
        );
        let quiet = Quiet { page_cache: PageCache::NotDropped("only root may".to_owned()), idle: busy };
        assert_eq!(quiet.notes().len(), 2);
        assert_eq!(Quiet { page_cache: PageCache::Kept, idle: Idle::Idle }.notes(), Vec::<String>::new());
    }

    #[test]
    fn a_volume_at_rest_waits_for_its_disk() {
        let ((_volume, volume), (_disk, mut disk)) =
            (device("1 0 8 0 1 0 8 0 0 0 0"), device("1 0 8 0 1 0 8 0 2 0 0"));
        disk.name = "disk".to_owned();
        let idle = wait_until_idle(&[volume, disk], Duration::from_millis(60));
        assert!(matches!(&idle, Idle::Busy { device, .. } if device == "disk"), "{idle:?}");
    }

    #[test]
    fn frozen_counters_are_not_taken_for_rest() {
        let (sys, device) = device("1 0 8 0 1 0 8 0 0 0 0");
        std::fs::create_dir(sys.path().join("queue")).unwrap();
        std::fs::write(sys.path().join("queue/iostats"), "0\n").unwrap();
        let start = Instant::now();
        assert_eq!(wait_until_idle(&[device], PATIENCE), Idle::NotCounted);
        assert!(start.elapsed() >= QUIET, "both arms of an experiment wait as long");
    }

    #[test]
    fn a_device_that_goes_away_is_no_device() {
        let (sys, device) = device("1 0 8 0 1 0 8 0 3 0 0");
        drop(sys);
        assert_eq!(wait_until_idle(&[device], PATIENCE), Idle::NoDevice);
    }

    #[test]
    fn a_path_without_a_device_does_not_wait() {
        let quiet = |idle| Quiet { page_cache: PageCache::Kept, idle };
        assert_eq!(quiesce(Path::new("/proc"), false, None), quiet(Idle::NoDevice));
        assert_eq!(quiesce(Path::new("/"), false, Some(Duration::ZERO)), quiet(Idle::NotWaited));
    }
}
