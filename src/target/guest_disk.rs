//! A disk that the machine of a guest was given: taken, not made.
//!
//! Enters: a kind, a size, how the emulator caches it. Leaves: an unused disk of just these, known by its serial number.

use std::path::{Path, PathBuf};

use super::error::TargetError;
use super::overwrite::may_overwrite;
use crate::experiment::DeviceKind;

const BLOCKS: &str = "/sys/block";

/// The serial number of a disk of this size that the emulator uses with this `cache=`: disks that differ in nothing else are told
/// apart by it. The kernel keeps 20 letters (VIRTIO_BLK_ID_BYTES; NVMe's field SN), which this never exceeds.
#[must_use]
pub fn guest_disk_serial(bytes: u64, cache: &str) -> String {
    let cache = match cache {
        "writeback" => "wb",
        "writethrough" => "wt",
        "directsync" => "ds",
        other => other,
    };
    format!("{:x}-{cache}", bytes / 4096)
}

/// Whether there is one.
pub(super) fn obstacle(kind: DeviceKind, bytes: u64, cache: &str) -> Option<TargetError> {
    free(kind, bytes, cache).is_none().then(|| {
        let reason = format!("there is no unused {} disk of {bytes} bytes with cache={cache}", kind.name());
        TargetError::unavailable(reason, "guests have such disks: --target kernel=FILE boots one")
    })
}

/// Takes one.
pub(super) fn take(kind: DeviceKind, bytes: u64, cache: &str) -> Result<PathBuf, TargetError> {
    free(kind, bytes, cache)
        .ok_or_else(|| TargetError::failed(format!("there is no unused {} disk left", kind.name())))
}

fn free(kind: DeviceKind, bytes: u64, cache: &str) -> Option<PathBuf> {
    let names = alike(Path::new(BLOCKS), kind, bytes, cache);
    let devices = names.into_iter().map(|name| Path::new("/dev").join(name));
    devices.into_iter().find(|device| may_overwrite(device, std::slice::from_ref(device)).is_ok())
}

/// Names of all such disks below a directory that is like `/sys/block`, used or not.
fn alike(blocks: &Path, kind: DeviceKind, bytes: u64, cache: &str) -> Vec<String> {
    let (prefix, serial) = match kind {
        DeviceKind::VirtioBlk => ("vd", "serial"),
        _ => ("nvme", "device/serial"),
    };
    let wanted = guest_disk_serial(bytes, cache);
    let entries = std::fs::read_dir(blocks).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.retain(|name| {
        let says = |file: &str| std::fs::read_to_string(blocks.join(name).join(file)).unwrap_or_default();
        let sectors = says("size").trim().parse::<u64>().ok();
        // nvme0c0n1 is one of several ways to nvme0n1.
        let tail = name.strip_prefix(prefix).filter(|tail| prefix == "vd" || !tail.contains('c'));
        tail.is_some()
            && sectors.and_then(|sectors| sectors.checked_mul(512)) == Some(bytes)
            && says(serial).trim() == wanted
    });
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{CACHES, Device};

    #[test]
    fn disks_that_differ_in_their_cache_alone_are_told_apart() {
        let blocks = tempfile::tempdir().unwrap();
        let disk = |name: &str, sectors: u64, file: &str, serial: &str| {
            let directory = blocks.path().join(name);
            std::fs::create_dir_all(directory.join(file).parent().unwrap()).unwrap();
            std::fs::write(directory.join("size"), format!("{sectors}\n")).unwrap();
            std::fs::write(directory.join(file), serial).unwrap();
        };
        // virtio_blk ends the number without a line's end, nvme pads it with blanks.
        disk("vda", 131_072, "serial", "4000-none");
        disk("vdb", 131_072, "serial", "4000-unsafe");
        disk("vdc", 262_144, "serial", "8000-unsafe");
        disk("nvme0n1", 131_072, "device/serial", "4000-wb             \n");
        disk("sda", 131_072, "serial", "4000-unsafe");
        let found = |kind, bytes, cache| alike(blocks.path(), kind, bytes, cache).join(" ");
        assert_eq!(found(DeviceKind::VirtioBlk, 64 << 20, "none"), "vda");
        assert_eq!(found(DeviceKind::VirtioBlk, 64 << 20, "unsafe"), "vdb");
        assert_eq!(found(DeviceKind::VirtioBlk, 128 << 20, "unsafe"), "vdc");
        assert_eq!(found(DeviceKind::VirtioBlk, 64 << 20, "writeback"), "");
        assert_eq!(found(DeviceKind::Nvme, 64 << 20, "writeback"), "nvme0n1");
    }

    #[test]
    fn serial_numbers_fit_and_differ() {
        let numbers = CACHES.map(|cache| guest_disk_serial(u64::MAX, cache));
        assert!(numbers.iter().all(|number| number.len() <= 20), "{numbers:?}");
        assert_eq!(std::collections::BTreeSet::from(numbers).len(), CACHES.len());
        let device = Device::parse("nvme:1g", Path::new("/")).unwrap();
        assert_eq!(device.cache(), Some("none"));
    }
}
