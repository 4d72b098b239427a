//! The settings of a target: its device, the filesystem on it, how both are set.
//!
//! Enters: `key = value` pairs from `[target]`, `--target` and levels. Leaves: one [`TargetSettings`]. What exists on this
//! machine is not known here.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::device_spec::Device;
use super::filesystem_options;
use super::guest_settings::{GUEST_KEYS, GuestSettings};
use super::mapping::Mapping;
use super::target_names::{of_one_filesystem, target_key, unknown_target_key};
pub use crate::catalog::Filesystem;
use crate::catalog::LauncherKind;
use crate::units::parse_bytes;

/// The name, in the directory of a device made for a run, under which the job finds the device.
pub const DEVICE_LINK: &str = "device";
/// The name, in the same directory, under which the filesystem on it is mounted.
pub const MOUNT_POINT: &str = "mnt";
/// The name, in the same directory, of the link to the device of the filesystem's log.
pub const LOG_LINK: &str = "log";

/// The name, in the same directory, of the link to the device below the one that the device mapper makes.
pub const BELOW_LINK: &str = "below";

/// How often devices and filesystems are made anew.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fresh {
    /// For each trial.
    #[default]
    Trial,
    /// For each round.
    Round,
    /// Once a run; in a guest, which lasts a round, for each of them.
    Run,
}

/// What the job's files are when the timed part begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileState {
    /// Not there, or empty: every write extends the file.
    New,
    /// All blocks allocated, none written.
    Allocate,
    /// Written in full: every write overwrites.
    Overwrite,
}

/// A file of sysfs (or `/proc/sys`) and what is written into it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Knob {
    /// Absolute, or below the device's directory in sysfs, e.g. `queue/scheduler`.
    pub path: String,
    /// The value.
    pub value: String,
}

/// What a trial works on, complete.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct TargetSettings {
    /// The device; `None`: a directory of the run.
    pub device: Option<Device>,
    /// What the device mapper puts above it; `None`: nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dm: Option<Mapping>,
    /// The filesystem to make; `None`: the job works on the device itself.
    pub fs: Option<Filesystem>,
    /// Arguments of mkfs.
    pub mkfs: Vec<String>,
    /// Options of mount.
    pub mount: Vec<String>,
    /// What takes the place of these two with one filesystem: words by key (`mkfs.xfs`); empty in a cell, whose filesystem is known.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub per_fs: BTreeMap<String, Vec<String>>,
    /// The device of the filesystem's log; `None`: it is with the filesystem.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log: Option<Device>,
    /// What the files start as; `None`: what the job says.
    pub state: Option<FileState>,
    /// XFS's extent-size hint in bytes, inherited by every file; `None`: none.
    pub extsize: Option<u64>,
    /// How often all this is made anew.
    pub fresh: Option<Fresh>,
    /// Settings of queue and kernel, in the order they are applied.
    pub knobs: Vec<Knob>,
    /// The machine all this is in.
    pub guest: GuestSettings,
}

/// The level of a setting of queue or kernel that leaves it as the machine has it.
const AS_IT_IS: &str = "now";

impl TargetSettings {
    /// Sets one key (a name [`target_key`] knows), over what it was; relative paths are below `base`.
    ///
    /// # Errors
    /// A clause that says what would be right.
    pub fn set(&mut self, key: &str, value: &str, base: &Path) -> Result<(), String> {
        let value = value.trim();
        let named = target_key(key).ok_or_else(|| unknown_target_key(key))?;
        match named.as_str() {
            "device" => self.device = Some(Device::parse(value, base)?),
            "dm" => self.dm = Mapping::parse(value)?,
            "fs" => {
                self.fs = match value {
                    "none" => None,
                    _ => Some(Filesystem::named(value).ok_or_else(|| {
                        format!("fs={value}: write one of {}, or none", Filesystem::names().join(", "))
                    })?),
                };
            }
            "mkfs" => self.mkfs = filesystem_options::words("mkfs", value)?,
            "mount" => self.mount = filesystem_options::words("mount", value)?,
            own if of_one_filesystem(own).is_some() => self.set_for_one(own, value)?,
            "log" => self.log = Device::parse_log(value, base)?,
            "extsize" => self.extsize = hint_bytes(value)?,
            "state" => {
                self.state = match value {
                    "new" => Some(FileState::New),
                    "allocate" => Some(FileState::Allocate),
                    "overwrite" => Some(FileState::Overwrite),
                    _ if is_default(value) => None,
                    _ => return Err(format!("state={value}: write new, allocate, overwrite or default")),
                };
            }
            "fresh" => {
                self.fresh = Some(match value {
                    "trial" => Fresh::Trial,
                    "round" => Fresh::Round,
                    "run" => Fresh::Run,
                    _ => return Err(format!("fresh={value}: write trial, round or run")),
                });
            }
            guest if GUEST_KEYS.contains(&guest) => self.guest.set(guest, value, base)?,
            _ => self.turn(&named, value)?,
        }
        Ok(())
    }

    fn turn(&mut self, key: &str, value: &str) -> Result<(), String> {
        let path = match key {
            "scheduler" => "queue/scheduler",
            "nr_requests" => "queue/nr_requests",
            "read_ahead" => "queue/read_ahead_kb",
            other => other.strip_prefix("sysfs:").unwrap_or(other),
        };
        let inside = !path.split('/').any(|part| part == "..");
        let known = !path.starts_with('/') || path.starts_with("/sys/") || path.starts_with("/proc/sys/");
        if path.is_empty() || !inside || !known {
            return Err(format!(
                "{key}: write sysfs:queue/NAME for the device's queue, vm.NAME, or a path below /sys or /proc/sys"
            ));
        }
        self.knobs.retain(|knob| knob.path != path);
        if value == AS_IT_IS {
            return Ok(());
        }
        let knob = Knob { path: path.to_owned(), value: value.to_owned() };
        // A new scheduler resets the queue's other settings, so it comes first.
        let at = if path == "queue/scheduler" { 0 } else { self.knobs.len() };
        self.knobs.insert(at, knob);
        Ok(())
    }

    /// Whether a device or filesystem has to be made, or one that is there is handed to the job.
    #[must_use]
    pub fn makes(&self) -> bool {
        self.fs.is_some() || matches!(self.device, Some(Device::Block(_) | Device::Made { .. }))
    }

    /// Bytes of a device that are written before each trial.
    #[must_use]
    pub fn filled_bytes(&self) -> u64 {
        let each = self.fresh.unwrap_or_default() == Fresh::Trial && self.fs.is_none();
        match self.device {
            Some(Device::Made { bytes, .. }) if each && self.state == Some(FileState::Overwrite) => bytes,
            _ => 0,
        }
    }

    /// Where trials on it run.
    #[must_use]
    pub fn launcher(&self) -> LauncherKind {
        LauncherKind::of(&|key| self.guest.has(key))
    }

    /// Whether that is another machine, on which nothing of this one is.
    #[must_use]
    pub fn is_elsewhere(&self) -> bool {
        self.launcher().descriptor().elsewhere
    }

    /// Whether its filesystem lies in memory: a device would not be used.
    #[must_use]
    pub fn is_in_memory(&self) -> bool {
        self.fs.is_some_and(Filesystem::is_in_memory)
    }

    /// What is made: everything but the knobs and the files' state, which are set for each trial, and the machine.
    #[must_use]
    pub fn stack(&self) -> TargetSettings {
        // Without a filesystem it is the device itself that is written before the trial.
        let state = self.state.filter(|_| self.fs.is_none());
        TargetSettings { knobs: Vec::new(), state, guest: GuestSettings::default(), ..self.clone() }
    }

    /// Trials of the same epoch share what is made, unless it is made anew for each.
    #[must_use]
    pub fn epoch(&self, round: u32) -> String {
        let each = match self.fresh.unwrap_or_default() {
            Fresh::Round => true,
            Fresh::Run => self.launcher().descriptor().made_for_the_run,
            Fresh::Trial => false,
        };
        if each { format!("round {round}") } else { String::new() }
    }

    /// The device, and that of the log.
    pub fn devices(&self) -> impl Iterator<Item = &Device> {
        self.device.iter().chain(&self.log)
    }
}

/// The kernel keeps it as 32 bits.
fn hint_bytes(value: &str) -> Result<Option<u64>, String> {
    if is_default(value) || value == "none" {
        return Ok(None);
    }
    match parse_bytes(value, 1024) {
        Ok(0) => Ok(None),
        Ok(bytes) if bytes.is_multiple_of(512) && u32::try_from(bytes).is_ok() => Ok(Some(bytes)),
        Ok(_) => Err(format!("extsize={value}: write whole blocks below 4 GiB, e.g. 1m")),
        Err(error) => Err(format!("extsize: {error}")),
    }
}

/// A level that adds nothing; an empty one cannot be written.
pub(super) fn is_default(value: &str) -> bool {
    matches!(value, "default" | "defaults" | "")
}

/// The settings of these keys and values, in a directory `/`.
#[cfg(test)]
pub(super) fn of_pairs(pairs: &[(&str, &str)]) -> Result<TargetSettings, String> {
    let mut settings = TargetSettings::default();
    pairs.iter().try_for_each(|(key, value)| settings.set(key, value, Path::new("/")))?;
    Ok(settings)
}

#[cfg(test)]
mod tests {
    use super::of_pairs as of;

    #[test]
    fn later_values_take_the_place_of_earlier_ones() {
        let settings = of(&[
            ("mount", "noatime, discard"),
            ("mkfs", "-m 'crc=1, x'"),
            ("nr_requests", "64"),
            ("sysfs:queue/rq_affinity", "2"),
            ("scheduler", "none"),
            ("sysfs:queue/scheduler", "bfq"),
        ])
        .unwrap();
        assert_eq!(settings.mount, ["noatime", "discard"]);
        assert_eq!(settings.mkfs, ["-m", "crc=1, x"]);
        let knobs: Vec<(&str, &str)> =
            settings.knobs.iter().map(|knob| (knob.path.as_str(), knob.value.as_str())).collect();
        assert_eq!(
            knobs,
            [("queue/scheduler", "bfq"), ("queue/nr_requests", "64"), ("queue/rq_affinity", "2")]
        );
        let as_it_is = of(&[("nr_requests", "64"), ("vm.swappiness", "1"), ("nr_requests", "now")]).unwrap();
        assert!(matches!(as_it_is.knobs.as_slice(), [knob] if knob.path == "/proc/sys/vm/swappiness"));
        assert_eq!(of(&[("mount", "noatime"), ("mount", "defaults")]).unwrap().mount, Vec::<String>::new());
        assert_eq!(of(&[("fs", "xfs"), ("fs", "none")]).unwrap().fs, None);
    }

    #[test]
    fn values_that_cannot_be_are_named() {
        for (key, value, expected) in [
            ("fs", "zfs", "write one of xfs, ext4, btrfs, f2fs, tmpfs, or none"),
            ("fresh", "never", "write trial, round or run"),
            ("state", "full", "write new, allocate, overwrite or default"),
            ("mkfs", "-L 'x", "a quote is not closed"),
            ("mkfs", "lazy_journal_init=0", "a level with a comma stands in double quotes"),
            ("sysfs:/etc/passwd", "x", "a path below /sys or /proc/sys"),
            ("sysfs:queue/../../x", "x", "a path below /sys or /proc/sys"),
            ("extsize", "1000", "whole blocks below 4 GiB"),
            ("extsize", "4g", "whole blocks below 4 GiB"),
            ("colour", "x", "no setting of a target is called colour"),
        ] {
            let message = of(&[(key, value)]).unwrap_err();
            assert!(message.contains(expected), "{key}={value}: {message}");
        }
    }
}
