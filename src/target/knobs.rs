//! Settings of queue and kernel, set for a trial and put back after it.
//!
//! Enters: the settings and what the trial works on. Leaves: notes about values the kernel rounded, and facts.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::error::TargetError;
use super::journal::{Journal, Made};
use crate::experiment::Knob;

/// Where a setting is: absolute, or below the device's directory in sysfs.
pub(super) fn place(knob: &Knob, watched: &Path) -> Result<PathBuf, TargetError> {
    let path = if knob.path.starts_with('/') {
        PathBuf::from(&knob.path)
    } else {
        let device = crate::host::device_under(watched).map_err(|reason| {
            TargetError::unavailable(
                format!("{} cannot be set: {reason}", knob.path),
                "a setting of a queue needs a block device below: --target loop:1g, --destroy /dev/X",
            )
        })?;
        device.sys.join(&knob.path)
    };
    if path.exists() {
        return Ok(path);
    }
    Err(TargetError::unavailable(
        format!("there is no {}", path.display()),
        "ls /sys/block/*/queue/ shows what can be set; docs/targets.md",
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
        let before = crate::host::read_knob(&path).map_err(TargetError::io("cannot read", &path))?;
        journal.begin(None, Made::Knob { path: path.clone(), before })?;
        paths.push(path);
    }
    for (knob, path) in knobs.iter().zip(paths) {
        let now = crate::host::write_knob(&path, &knob.value).map_err(TargetError::setting)?;
        if now != knob.value {
            notes.push(format!("{} was set to {}; the kernel made it {now}", knob.path, knob.value));
        }
        facts.insert(format!("sysfs.{}", knob.path), now);
    }
    journal.reached("knobs");
    Ok((notes, facts))
}
