//! Which disk a path leads to: the name of a device node is given out again, the disk behind it is not.
//!
//! Enters: a path. Leaves: what tells this disk from every other, to be compared before each trial and when a run goes on.

use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// What tells one disk, or one partition of it, from every other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceIdentity {
    /// The start of the machine in which `sequence` and `number` hold.
    boot: String,
    /// The kernel's number for this disk and no other since the machine started (`diskseq`, since Linux 5.15).
    sequence: Option<u64>,
    /// Major and minor.
    number: String,
    /// Bytes.
    bytes: u64,
    /// World-wide name or serial number, where the disk has one.
    serial: Option<String>,
    /// Where it begins on its disk, in sectors of 512 bytes; `None`: it is the whole disk.
    partition_start: Option<u64>,
}

/// A device that a run may overwrite, and which one that was when the run was begun.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClaimedDevice {
    /// As it was named.
    pub path: PathBuf,
    /// Which disk that was.
    pub identity: DeviceIdentity,
}

impl ClaimedDevice {
    /// Those of these paths that are block devices now.
    #[must_use]
    pub fn of(paths: &[PathBuf]) -> Vec<ClaimedDevice> {
        let one =
            |path: &PathBuf| Some(ClaimedDevice { path: path.clone(), identity: DeviceIdentity::of(path)? });
        paths.iter().filter_map(one).collect()
    }

    /// Whether the path still leads to it.
    ///
    /// # Errors
    /// One clause that says what is there instead.
    pub fn check(&self) -> Result<(), String> {
        let path = self.path.display();
        match DeviceIdentity::of(&self.path) {
            None => Err(format!("{path} is gone; the run was begun on {}", self.identity)),
            Some(now) if self.identity.is(&now) => Ok(()),
            Some(now) => Err(format!(
                "{path} is another disk now ({now}) than the one that the run was begun on ({})",
                self.identity
            )),
        }
    }
}

impl DeviceIdentity {
    /// Of the block device a path leads to; `None`: it leads to none.
    #[must_use]
    pub fn of(path: &Path) -> Option<DeviceIdentity> {
        let found = std::fs::metadata(path).ok()?;
        if !found.file_type().is_block_device() {
            return None;
        }
        let number = format!("{}:{}", rustix::fs::major(found.rdev()), rustix::fs::minor(found.rdev()));
        let sys = Path::new("/sys/dev/block").join(&number).canonicalize().ok()?;
        let read = |directory: &Path, name: &str| {
            let text = std::fs::read_to_string(directory.join(name)).ok()?;
            Some(text.trim().to_owned()).filter(|text| !text.is_empty())
        };
        let partition_start = read(&sys, "partition").and_then(|_| read(&sys, "start")?.parse().ok());
        let disk = if partition_start.is_some() { sys.parent()? } else { &sys };
        let serial =
            ["wwid", "device/wwid", "serial", "device/serial"].iter().find_map(|name| read(disk, name));
        Some(DeviceIdentity {
            boot: crate::host::boot_id(),
            sequence: read(disk, "diskseq").and_then(|text| text.parse().ok()),
            number,
            bytes: read(&sys, "size")?.parse::<u64>().ok()? * 512,
            serial,
            partition_start,
        })
    }

    /// Whether both are certainly one disk. After a restart only a serial number can tell.
    #[must_use]
    pub fn is(&self, now: &DeviceIdentity) -> bool {
        let alike = self.bytes == now.bytes
            && self.serial == now.serial
            && self.partition_start == now.partition_start;
        let known = if self.boot == now.boot {
            self.number == now.number && self.sequence == now.sequence
        } else {
            self.serial.is_some()
        };
        alike && known
    }

    /// The kernel's number of the disk whose directory in sysfs holds `path`.
    pub(super) fn sequence_of_setting(path: &Path) -> Option<u64> {
        let disk_above = |path: &Path| {
            path.ancestors().map(|part| part.join("diskseq")).find(|sequence| sequence.exists())
        };
        // Below /sys/fs the disk is known by its name alone, or by that of its partition: `/sys/fs/xfs/vda1/error`.
        let named = || {
            let name = path.strip_prefix("/sys/fs").ok()?.iter().nth(1)?;
            disk_above(&Path::new("/sys/class/block").join(name).canonicalize().ok()?)
        };
        let sequence = disk_above(path).or_else(named)?;
        std::fs::read_to_string(sequence).ok()?.trim().parse().ok()
    }
}

impl std::fmt::Display for DeviceIdentity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes", self.bytes)?;
        if let Some(serial) = &self.serial {
            write!(f, ", serial {serial}")?;
        }
        if let Some(sequence) = self.sequence {
            write!(f, ", diskseq {sequence}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disk() -> DeviceIdentity {
        DeviceIdentity {
            boot: "b".to_owned(),
            sequence: Some(7),
            number: "7:1".to_owned(),
            bytes: 4096,
            serial: None,
            partition_start: None,
        }
    }

    #[test]
    fn another_disk_of_the_same_name_and_size_is_another() {
        assert!(disk().is(&disk()));
        assert!(!disk().is(&DeviceIdentity { sequence: Some(8), ..disk() }));
        assert!(!disk().is(&DeviceIdentity { bytes: 8192, ..disk() }));
        assert!(!disk().is(&DeviceIdentity { partition_start: Some(2048), ..disk() }));
    }

    #[test]
    fn after_a_restart_only_a_serial_number_tells() {
        let restarted = |serial: Option<&str>| DeviceIdentity {
            boot: "c".to_owned(),
            sequence: Some(2),
            number: "8:16".to_owned(),
            serial: serial.map(str::to_owned),
            ..disk()
        };
        assert!(!disk().is(&restarted(None)));
        let known = DeviceIdentity { serial: Some("S1".to_owned()), ..disk() };
        assert!(known.is(&restarted(Some("S1"))));
        assert!(!known.is(&restarted(Some("S2"))));
    }

    #[test]
    fn only_block_devices_have_one() {
        assert_eq!(DeviceIdentity::of(Path::new("/dev/null")), None);
        assert_eq!(DeviceIdentity::of(Path::new("/")), None);
    }
}
