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
    Err(TargetError::unavailable(
        format!("there is no {}", path.display()),
        "ls /sys/block/*/queue/ /sys/fs/*/*/ shows what can be set; `assay help targets`",
    ))
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
    fn a_setting_that_a_driver_does_not_ask_is_told() {
        let said = without_effect(Path::new("/sys/devices/virtual/block/zram1/queue/iostats")).unwrap();
        assert!(said.starts_with("queue/iostats has no effect on zram,"), "{said}");
        assert_eq!(without_effect(Path::new("/sys/devices/virtual/block/loop1/queue/iostats")), None);
        assert_eq!(without_effect(Path::new("/sys/devices/virtual/block/zram1/queue/read_ahead_kb")), None);
    }
}
