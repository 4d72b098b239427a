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
use super::{follows, setting_pair};
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

/// Whether a setting does its work where requests are queued: a device of the device mapper hands them on. Files are read ahead by what the
/// device says that they are on.
fn is_of_the_disk(knob: &Knob) -> bool {
    !knob.path.starts_with('/') && knob.path != "queue/read_ahead_kb"
}

/// Sets all; what they were is in the journal before the first is changed. `below`: the disk under a device of the device mapper.
pub(super) fn turn(
    journal: &mut Journal,
    knobs: &[Knob],
    (watched, below): (&Path, Option<&Path>),
) -> Result<(Vec<String>, BTreeMap<String, String>), TargetError> {
    let (mut notes, mut facts) = (Vec::new(), BTreeMap::new());
    let mut placed: Vec<(&Knob, PathBuf)> = Vec::new();
    for knob in knobs {
        let on = below.filter(|_| is_of_the_disk(knob)).unwrap_or(watched);
        placed.push((knob, place(knob, on)?));
    }
    placed.sort_by_key(|(_, path)| follows::rank(path));
    let followers = noted(journal, &placed)?;
    for (knob, path) in &placed {
        crate::host::write_knob(path, &knob.value).map_err(TargetError::setting)?;
    }
    // Nobody asked for another read-ahead. What a scheduler begins with is its own.
    for (path, before) in followers.iter().filter(|(path, _)| follows::is_read_ahead(path)) {
        if crate::host::read_knob(path).is_ok_and(|now| now != *before) {
            crate::host::write_knob(path, before).map_err(TargetError::setting)?;
        }
    }
    for (knob, path) in &placed {
        let now = crate::host::read_knob(path).map_err(TargetError::io("cannot read", path))?;
        if now != knob.value {
            notes.push(format!("{} was set to {}; the kernel made it {now}", knob.path, knob.value));
        }
        notes.extend(without_effect(path));
        facts.insert(format!("sysfs.{}", knob.path), now);
    }
    journal.reached("knobs");
    Ok((notes, facts))
}

/// Writes down what the settings are, and what those are that change with them; gives the latter. All are read before any is written, were
/// it only to see whether it takes its own value: that alone changes others. Those that others change come first, for the same reason.
fn noted(journal: &mut Journal, placed: &[(&Knob, PathBuf)]) -> Result<Vec<(PathBuf, String)>, TargetError> {
    let mut before = Vec::new();
    for (_, path) in placed {
        let value = match setting_pair::of(path) {
            Some(_) => String::new(),
            None => crate::host::read_knob(path).map_err(TargetError::io("cannot read", path))?,
        };
        before.push((path.clone(), value));
    }
    let mut followers: Vec<(PathBuf, String)> = Vec::new();
    for path in placed.iter().flat_map(|(_, path)| follows::changed_with(path)) {
        let is_known = |known: &[(PathBuf, String)]| known.iter().any(|(other, _)| *other == path);
        if is_known(&before) || is_known(&followers) {
            continue;
        }
        // Some of a queue without a scheduler cannot be read.
        if let Ok(value) = crate::host::read_knob(&path) {
            followers.push((path, value));
        }
    }
    followers.sort_by_key(|(path, _)| std::cmp::Reverse(follows::rank(path)));
    // Nor written.
    followers
        .retain(|(path, value)| follows::is_read_ahead(path) || crate::host::write_knob(path, value).is_ok());
    for (path, value) in &followers {
        note_down(journal, path, value)?;
    }
    before.sort_by_key(|(path, _)| std::cmp::Reverse(follows::rank(path)));
    for (path, value) in &before {
        if let Some(paths) = setting_pair::of(path) {
            let before = setting_pair::read(&paths)?;
            journal.begin(None, Made::Pair { paths, before })?;
            continue;
        }
        note_down(journal, path, value)?;
        crate::host::write_knob(path, value).map_err(|error| {
            let reason = format!("{} could not be put back afterwards: {error}", path.display());
            TargetError::unavailable(reason, "set it yourself before the run, or in a hook: --before")
        })?;
    }
    Ok(followers)
}

fn note_down(journal: &mut Journal, path: &Path, before: &str) -> Result<(), TargetError> {
    let sequence = DeviceIdentity::sequence_of_setting(path);
    journal.begin(None, Made::Knob { path: path.to_owned(), before: before.to_owned(), sequence })
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
