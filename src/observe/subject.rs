//! The device and the filesystem that a trial works on, as observers of events need to know them.
//!
//! Enters: the path that a trial works on. Leaves: device numbers, the filesystem with the place of its journal, and what the
//! queue says of its device's cache. The first page of the device is read for the journal's place, before the trial begins.

use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, FileTypeExt};
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags, fstat};

use super::journal_place;
use crate::host::{BlockDevice, device_or_part_under};
use crate::sys::mountinfo::{mount_of, table};
use crate::trace::{Device, Filesystem, JournalRange, WriteCache};

/// Superblocks lie within the first so many bytes.
const HEAD: usize = 4096;

/// What a trial works on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Subject {
    /// The disk's name, `loop3`.
    pub(super) name: String,
    /// The disk, which requests name.
    pub(super) disk: Device,
    /// What the filesystem is on, and which bios and the filesystem's events name: a partition, else the disk.
    pub(super) part: Device,
    /// The filesystem as mount tables call it; `None`: the device itself is worked on.
    pub(super) kind: Option<String>,
    /// Where its journal lies on the disk, where that is known.
    pub(super) journal: Option<JournalRange>,
    /// Its journal lies on another device.
    pub(super) journal_is_elsewhere: bool,
    /// The sector of the disk at which the partition begins; 0 for the disk.
    pub(super) starts_at: u64,
    /// What the queue says of the device's cache.
    pub(super) write_cache: Option<WriteCache>,
    /// Its hardware queues, where it has such.
    pub(super) queues: Option<u32>,
}

impl Subject {
    /// What lies under this path.
    ///
    /// # Errors
    /// Why there is no block device (tmpfs, network filesystems), as a clause.
    pub(super) fn under(path: &Path) -> Result<Subject, String> {
        let part = device_or_part_under(path)?;
        let disk = part.clone().whole();
        let number = |device: &BlockDevice| {
            text(device, "dev")
                .and_then(|text| text.parse().ok())
                .ok_or(format!("{} has no number", device.name))
        };
        let (part_number, disk_number) = (number(&part)?, number(&disk)?);
        let is_device = path.metadata().is_ok_and(|meta| meta.file_type().is_block_device());
        let mount =
            path.canonicalize().ok().filter(|_| !is_device).and_then(|path| mount_of(&table(), &path));
        let kind = mount.map(|mount| mount.kind);
        let starts_at = text(&part, "start").and_then(|text| text.parse().ok()).unwrap_or(0);
        let head = kind.as_deref().and_then(|kind| Some((kind, head_of(&part, part_number)?)));
        let head = head.as_ref();
        let journal = head.and_then(|(kind, head)| journal_place::read(kind, head, starts_at));
        let journal_is_elsewhere = head.is_some_and(|(kind, head)| journal_place::is_elsewhere(kind, head));
        let write_cache = text(&disk, "queue/write_cache").and_then(|says| match says.as_str() {
            "write back" => Some(WriteCache::Back),
            "write through" => Some(WriteCache::Through),
            _ => None,
        });
        let queues =
            disk.sys.join("mq").read_dir().ok().and_then(|queues| u32::try_from(queues.count()).ok());
        let (disk, name) = (disk_number, disk.name);
        let part = part_number;
        Ok(Subject { name, disk, part, kind, journal, journal_is_elsewhere, starts_at, write_cache, queues })
    }

    /// The filesystem, if the audit of flushes knows its rules. It knows none for a journal on another device, which is not seen.
    pub(super) fn filesystem(&self) -> Option<Filesystem> {
        let known = Filesystem::ALL.into_iter().find(|known| Some(known.name()) == self.kind.as_deref());
        known.filter(|_| !self.journal_is_elsewhere)
    }

    /// The kernel's filter for events of bios and requests.
    pub(super) fn filter(&self) -> String {
        if self.part == self.disk {
            format!("dev == {}", self.disk.0)
        } else {
            format!("dev == {} || dev == {}", self.disk.0, self.part.0)
        }
    }
}

fn text(device: &BlockDevice, file: &str) -> Option<String> {
    std::fs::read_to_string(device.sys.join(file)).ok().map(|text| text.trim().to_owned())
}

/// The first page of a device, if this user may read it and its node is the device's.
fn head_of(device: &BlockDevice, number: Device) -> Option<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let node = rustix::fs::open(Path::new("/dev").join(&device.name), flags, Mode::empty()).ok()?;
    let found = fstat(node.as_fd()).ok()?;
    let is = Device::new(rustix::fs::major(found.st_rdev), rustix::fs::minor(found.st_rdev))?;
    if FileType::from_raw_mode(found.st_mode) != FileType::BlockDevice || is != number {
        return None;
    }
    let mut head = vec![0; HEAD];
    File::from(node).read_exact_at(&mut head, 0).ok()?;
    Some(head)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_there_is_no_device_the_reason_is_said() {
        let reason = Subject::under(Path::new("/proc")).unwrap_err();
        assert!(reason.contains("/proc is on proc"), "{reason}");
    }

    #[test]
    fn a_partitions_bios_and_its_disks_requests_pass_the_filter() {
        let subject = |disk: &str, part: &str| Subject {
            name: "sda".to_owned(),
            disk: disk.parse().unwrap(),
            part: part.parse().unwrap(),
            kind: Some("ext4".to_owned()),
            journal: None,
            journal_is_elsewhere: false,
            starts_at: 0,
            write_cache: None,
            queues: None,
        };
        assert_eq!(subject("8:0", "8:1").filter(), "dev == 8388608 || dev == 8388609");
        assert_eq!(subject("7:3", "7:3").filter(), "dev == 7340035");
        let mut whole = subject("7:3", "7:3");
        assert_eq!(whole.filesystem(), Some(Filesystem::Ext4));
        whole.journal_is_elsewhere = true;
        assert_eq!(whole.filesystem(), None, "what is not seen is not judged");
    }
}
