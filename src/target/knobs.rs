//! Settings of queue and kernel, set for a trial and put back after it.
//!
//! Enters: the settings and what the trial works on. Leaves: notes about values the kernel rounded, and facts. A setting
//! that does not take back what it says is not changed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::error::TargetError;
use super::identity::DeviceIdentity;
use super::journal::Journal;
use super::made::Made;
use super::setting_pair;
use crate::experiment::{Filesystem, Knob, TargetSettings};
use crate::host::BlockDevice;

/// Stands for the name of the filesystem's device in paths below `/sys/fs`, as the kernel numbers the devices that it makes.
const DEVICE: &str = "DEVICE";

/// Whether a setting belongs to a filesystem that is made for the trial: it is there from the mount on.
pub(super) fn comes_with_the_mount(knob: &Knob, settings: &TargetSettings) -> bool {
    let below = knob.path.strip_prefix("/sys/fs/").and_then(|path| path.split('/').next());
    below.is_some() && below == settings.fs.map(Filesystem::name)
}

/// Where a setting is: absolute, or below the device's directory in sysfs.
pub(super) fn place(knob: &Knob, watched: &Path) -> Result<PathBuf, TargetError> {
    let of_mount =
        knob.path.strip_prefix("/sys/fs/").is_some_and(|path| path.split('/').any(|part| part == DEVICE));
    let path = if knob.path.starts_with('/') && !of_mount {
        PathBuf::from(&knob.path)
    } else {
        let device = crate::host::device_or_part_under(watched).map_err(|reason| {
            TargetError::unavailable(
                format!("{} cannot be set: {reason}", knob.path),
                "a setting of a queue needs a block device below: --target loop:1g, --destroy /dev/X",
            )
        })?;
        if of_mount {
            let part = |part| if part == DEVICE { device.name.as_str() } else { part };
            PathBuf::from(knob.path.split('/').map(part).collect::<Vec<_>>().join("/"))
        } else {
            device.whole().sys.join(&knob.path)
        }
    };
    if crate::host::is_setting(&path) {
        return Ok(path);
    }
    if path.exists() {
        return Err(TargetError::unavailable(
            format!("{} is not a setting of the kernel", path.display()),
            "a setting is a file below /sys or /proc/sys; `assay help targets`",
        ));
    }
    let hint = match path.starts_with("/proc/sys") {
        true => "`sysctl -a` shows what can be set; `assay help targets`",
        false => "ls /sys/block/*/queue/ /sys/fs/*/*/ shows what can be set; `assay help targets`",
    };
    Err(TargetError::unavailable(format!("there is no {}", path.display()), hint))
}

/// Sets all; what they were is in the journal before the first is changed.
pub(super) fn turn(
    journal: &mut Journal,
    knobs: &[Knob],
    watched: &Path,
) -> Result<(Vec<String>, BTreeMap<String, String>), TargetError> {
    let (mut notes, mut facts) = (Vec::new(), BTreeMap::new());
    let mut paths = Vec::new();
    // Read before any is written: a scheduler changes the queue's other settings.
    for knob in knobs {
        let path = place(knob, watched)?;
        note_down(journal, &path)?;
        // Behind it, as they are put back in this order.
        for other in changed_by_a_scheduler(&path).iter().filter(|other| takes_its_own_value(other)) {
            note_down(journal, other)?;
        }
        paths.push(path);
    }
    for (knob, path) in knobs.iter().zip(paths) {
        let now = crate::host::write_knob(&path, &knob.value).map_err(TargetError::setting)?;
        if now != knob.value {
            notes.push(format!("{} was set to {}; the kernel made it {now}", knob.path, knob.value));
        }
        notes.extend(without_effect(&path));
        facts.insert(format!("sysfs.{}", knob.path), now);
    }
    journal.reached("knobs");
    Ok((notes, facts))
}

/// The settings that a change of scheduler sets to the kernel's defaults: what is asked of the queue, and the scheduler's own.
fn changed_by_a_scheduler(path: &Path) -> Vec<PathBuf> {
    let Some(queue) = path.parent().filter(|_| path.ends_with("queue/scheduler")) else { return Vec::new() };
    let own = std::fs::read_dir(queue.join("iosched")).into_iter().flatten().flatten();
    // Where the kernel has switched throttling of writes off, writing that 0 would switch it off for good.
    let throttles = crate::host::read_knob(&queue.join("wbt_lat_usec")).is_ok_and(|value| value != "0");
    let of_queue = ["nr_requests"].into_iter().chain(throttles.then_some("wbt_lat_usec"));
    let of_queue = of_queue.map(|name| queue.join(name));
    let mut own: Vec<PathBuf> = own.map(|entry| entry.path()).collect();
    own.sort();
    of_queue.chain(own).filter(|path| path.is_file()).collect()
}

/// Whether a setting can be put back: some of a queue without a scheduler cannot be read or written.
fn takes_its_own_value(path: &Path) -> bool {
    crate::host::read_knob(path).is_ok_and(|now| crate::host::write_knob(path, &now).is_ok())
}

/// Why a setting changes nothing, where that is known.
fn without_effect(path: &Path) -> Option<String> {
    let sys = path.to_str()?.strip_suffix("/queue/iostats").map(PathBuf::from)?;
    let name = sys.file_name()?.to_str()?.to_owned();
    let kind = name.trim_end_matches(|c: char| c.is_ascii_digit()).to_owned();
    (!BlockDevice { name, sys }.heeds_iostats()).then(|| {
        format!("queue/iostats has no effect on {kind}, which counts each I/O whatever it is set to")
    })
}

/// Writes down the value of a setting. First it is set to that very value, to see whether it can be put back at all.
fn note_down(journal: &mut Journal, path: &Path) -> Result<(), TargetError> {
    if let Some(paths) = setting_pair::of(path) {
        let before = setting_pair::read(&paths)?;
        return journal.begin(None, Made::Pair { paths, before });
    }
    let before = crate::host::read_knob(path).map_err(TargetError::io("cannot read", path))?;
    crate::host::write_knob(path, &before).map_err(|error| {
        let reason = format!("{} could not be put back afterwards: {error}", path.display());
        TargetError::unavailable(reason, "set it yourself before the run, or in a hook: --before")
    })?;
    let sequence = DeviceIdentity::sequence_of_setting(path);
    journal.begin(None, Made::Knob { path: path.to_owned(), before, sequence })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_scheduler_resets_is_noted_behind_it() {
        let sys = tempfile::tempdir().unwrap();
        let queue = sys.path().join("queue");
        std::fs::create_dir_all(queue.join("iosched")).unwrap();
        for name in ["scheduler", "nr_requests", "read_ahead_kb", "iosched/read_expire", "iosched/fifo_batch"]
        {
            std::fs::write(queue.join(name), "1\n").unwrap();
        }
        let found = |with: &[&str]| {
            let expected: Vec<PathBuf> = with.iter().map(|name| queue.join(name)).collect();
            assert_eq!(changed_by_a_scheduler(&queue.join("scheduler")), expected);
        };
        found(&["nr_requests", "iosched/fifo_batch", "iosched/read_expire"]);
        std::fs::write(queue.join("wbt_lat_usec"), "0\n").unwrap();
        found(&["nr_requests", "iosched/fifo_batch", "iosched/read_expire"]);
        std::fs::write(queue.join("wbt_lat_usec"), "2000\n").unwrap();
        found(&["nr_requests", "wbt_lat_usec", "iosched/fifo_batch", "iosched/read_expire"]);
        assert!(changed_by_a_scheduler(&queue.join("nr_requests")).is_empty());
    }

    #[test]
    fn a_setting_that_a_driver_does_not_ask_is_told() {
        let said = without_effect(Path::new("/sys/devices/virtual/block/zram1/queue/iostats")).unwrap();
        assert!(said.starts_with("queue/iostats has no effect on zram,"), "{said}");
        assert_eq!(without_effect(Path::new("/sys/devices/virtual/block/loop1/queue/iostats")), None);
        assert_eq!(without_effect(Path::new("/sys/devices/virtual/block/zram1/queue/read_ahead_kb")), None);
    }
}
