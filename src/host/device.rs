//! The block device under a path, its queue and its counters.

use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use super::machine_id::disk_digits;
use super::roots::{Roots, chosen, names, text};
use crate::record::HostFacts;
pub use crate::sys::block_stat::DeviceCounters;
use crate::sys::mountinfo::mount_of;

/// A whole block device (for a partition: the device it is on).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockDevice {
    /// Its kernel name, e.g. `nvme0n1`.
    pub name: String,
    /// Its directory in sysfs.
    pub sys: PathBuf,
}

impl BlockDevice {
    /// The device with these numbers, or the partition.
    fn by_number(roots: &Roots, device: u64) -> Option<BlockDevice> {
        let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
        let sys = roots.sys.join(format!("dev/block/{major}:{minor}")).canonicalize().ok()?;
        let name = sys.file_name()?.to_string_lossy().into_owned();
        Some(BlockDevice { name, sys })
    }

    /// The disk that a partition is part of; any other device is itself.
    #[must_use]
    pub fn whole(mut self) -> BlockDevice {
        if self.sys.join("partition").exists() && self.sys.pop() {
            self.name = self.sys.file_name().unwrap_or_default().to_string_lossy().into_owned();
        }
        self
    }

    /// Its counters now; `None` when it is gone.
    #[must_use]
    pub fn counters(&self) -> Option<DeviceCounters> {
        DeviceCounters::parse(&text(&self.sys.join("stat"))?)
    }

    /// Whether `queue/iostats` decides if it counts reads, writes and discards. zram's driver counts each of them whatever
    /// that says (`bio_start_io_acct` in drivers/block/zram); request queues, dm, md and pmem ask it.
    #[must_use]
    pub fn heeds_iostats(&self) -> bool {
        !self.name.starts_with("zram")
    }

    /// Whether its counters of reads, writes and discards move at all. Those of flushes do in any case
    /// (`blk_account_io_flush` in block/blk-flush.c).
    #[must_use]
    pub fn counts_transfers(&self) -> bool {
        !self.heeds_iostats() || text(&self.sys.join("queue/iostats")).is_none_or(|value| value != "0")
    }

    /// Digits that are this disk's, array's or volume's alone, whatever the kernel calls it today; `None`: it has no number of its own.
    #[must_use]
    pub(super) fn id(&self) -> Option<String> {
        let numbers = ["wwid", "device/wwid", "serial", "device/serial", "dm/uuid", "md/uuid"];
        disk_digits(&numbers.iter().find_map(|path| text(&self.sys.join(path)))?)
    }

    /// Adds what it is and how its queue is set: `device.*`, `queue.*`.
    pub(super) fn add(&self, facts: &mut HostFacts) {
        facts.set("device", self.name.clone());
        facts.set("device.kind", self.kind());
        let read = |path: &str| text(&self.sys.join(path));
        if let Some(sectors) = read("size").and_then(|size| size.parse::<u64>().ok()) {
            facts.set("device.size", sectors.saturating_mul(512).to_string());
        }
        let named = [
            ("device.model", "device/model"),
            ("device.firmware", "device/firmware_rev"),
            ("device.firmware", "device/rev"),
            ("device.numa_node", "device/numa_node"),
            ("device.loop_file", "loop/backing_file"),
            ("device.dm_name", "dm/name"),
            ("device.md_level", "md/level"),
            ("device.md_degraded", "md/degraded"),
        ];
        for (name, path) in named {
            facts.set_known(name, read(path));
        }
        // `LVM-…`, `CRYPT-LUKS2-…`, `mpath-…`
        if let Some(uuid) = read("dm/uuid") {
            facts.set("device.dm_kind", uuid.split('-').next().unwrap_or_default().to_ascii_lowercase());
        }
        facts.set_known("device.id", self.id());
        let below = names(&self.sys.join("slaves"));
        if !below.is_empty() {
            facts.set("device.on", below.join(", "));
        }
        let queue = [
            "scheduler", "nr_requests", "read_ahead_kb", "max_sectors_kb", "rotational", "write_cache",
            "fua", "wbt_lat_usec", "logical_block_size", "physical_block_size", "nomerges", "rq_affinity",
            "io_poll", "iostats",
        ];
        for name in queue {
            if let Some(value) = read(&format!("queue/{name}")) {
                facts.set(format!("queue.{name}"), chosen(&value));
            }
        }
    }

    /// What kind of device, from its kernel name.
    fn kind(&self) -> &'static str {
        let kinds = [
            ("nvme", "nvme"),
            ("sd", "scsi or sata"),
            ("vd", "virtio"),
            ("xvd", "xen"),
            ("loop", "loop"),
            ("zram", "zram"),
            ("ram", "memory"),
            ("pmem", "persistent memory"),
            ("dm-", "device mapper"),
            ("md", "md raid"),
            ("nbd", "network"),
            ("rbd", "network"),
            ("mmcblk", "mmc"),
            ("nullb", "null"),
            ("ublkb", "ublk"),
        ];
        let known = kinds.iter().find(|(prefix, _)| self.name.starts_with(prefix));
        known.map_or("unknown", |(_, kind)| kind)
    }
}

/// The block device under a path: the device itself, or the one that holds the file or directory.
///
/// # Errors
/// One sentence that says why there is none (tmpfs, network and stacked filesystems).
pub fn device_under(path: &Path) -> Result<BlockDevice, String> {
    device_under_in(&Roots::default(), path)
}

/// The same with other roots.
///
/// # Errors
/// As [`device_under`].
pub fn device_under_in(roots: &Roots, path: &Path) -> Result<BlockDevice, String> {
    device_or_part_under_in(roots, path).map(BlockDevice::whole)
}

/// The same, but a partition stays one: `/sys/fs` has its name.
///
/// # Errors
/// As [`device_under`].
pub fn device_or_part_under(path: &Path) -> Result<BlockDevice, String> {
    device_or_part_under_in(&Roots::default(), path)
}

pub(super) fn device_or_part_under_in(roots: &Roots, path: &Path) -> Result<BlockDevice, String> {
    let shown = path.display();
    let meta = path.metadata().map_err(|error| format!("cannot look at {shown}: {error}"))?;
    let number = if meta.file_type().is_block_device() { meta.rdev() } else { meta.dev() };
    if let Some(device) = BlockDevice::by_number(roots, number) {
        return Ok(device);
    }
    // btrfs, and others with several devices, give files a number of their own; the mount names one real device.
    let mount = path.canonicalize().ok().and_then(|path| mount_of(&roots.mountinfo(), &path));
    let source = mount.as_ref().filter(|m| m.source.starts_with("/dev/"));
    let source = source.and_then(|m| Path::new(&m.source).metadata().ok());
    match source.and_then(|meta| BlockDevice::by_number(roots, meta.rdev())) {
        Some(device) => Ok(device),
        None => {
            let kind = mount.map_or_else(|| "a filesystem unknown here".to_owned(), |m| m.kind);
            Err(format!("{shown} is on {kind}, which has no block device of its own"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "  10 1 16 5 20 2 32 7 3 11 12 4 0 64 9 6 8\n";

    #[test]
    fn counters_are_read_by_position_and_old_kernels_have_fewer() {
        let counters = DeviceCounters::parse(STAT).unwrap();
        assert_eq!((counters.read_ios, counters.read_bytes, counters.write_ios), (10, 8192, 20));
        assert_eq!((counters.write_bytes, counters.in_flight, counters.busy_ms), (16384, 3, 11));
        assert_eq!((counters.discards, counters.discard_bytes), (4, 32768));
        assert_eq!((counters.flushes, counters.flush_ms), (Some(6), Some(8)));
        let old = DeviceCounters::parse("1 2 3 4 5 6 7 8 9 10 11").unwrap();
        assert_eq!((old.queue_ms, old.discards, old.flushes), (11, 0, None));
        assert_eq!(DeviceCounters::parse("1 2 3"), None);
    }

    #[test]
    fn a_partition_keeps_its_name_until_the_disk_is_asked_for() {
        let sys = tempfile::tempdir().unwrap();
        let part = sys.path().join("devices/sdb/sdb1");
        std::fs::create_dir_all(&part).unwrap();
        std::fs::write(part.join("partition"), "1\n").unwrap();
        let number = sys.path().metadata().unwrap().dev();
        let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
        std::fs::create_dir_all(sys.path().join("dev/block")).unwrap();
        std::os::unix::fs::symlink(&part, sys.path().join(format!("dev/block/{major}:{minor}"))).unwrap();
        let roots = Roots { sys: sys.path().to_owned(), ..Roots::default() };
        let found = device_or_part_under_in(&roots, sys.path()).unwrap();
        assert_eq!((found.name.clone(), found.whole().name), ("sdb1".to_owned(), "sdb".to_owned()));
        assert_eq!(device_under_in(&roots, sys.path()).unwrap().name, "sdb");
    }

    #[test]
    fn a_queue_without_accounting_counts_nothing_zram_always_does() {
        let sys = tempfile::tempdir().unwrap();
        let named = |name: &str| BlockDevice { name: name.to_owned(), sys: sys.path().to_owned() };
        assert!(named("vda").counts_transfers(), "an old kernel has no such setting");
        std::fs::create_dir(sys.path().join("queue")).unwrap();
        for (value, counts) in [("0\n", false), ("1\n", true)] {
            std::fs::write(sys.path().join("queue/iostats"), value).unwrap();
            assert_eq!(named("loop3").counts_transfers(), counts);
            assert!(named("zram1").counts_transfers());
        }
    }

    /// A fake disk with a partition that has the number of the temporary directory's filesystem.
    #[test]
    fn a_partition_leads_to_its_disk() {
        let root = tempfile::tempdir().unwrap();
        let number = root.path().metadata().unwrap().dev();
        let disk = root.path().join("sys/devices/pci/block/sdx");
        let partition = disk.join("sdx1");
        std::fs::create_dir_all(disk.join("queue")).unwrap();
        std::fs::create_dir_all(disk.join("device")).unwrap();
        std::fs::create_dir_all(&partition).unwrap();
        std::fs::create_dir_all(root.path().join("sys/dev/block")).unwrap();
        for (path, value) in [
            ("stat", STAT),
            ("size", "2048\n"),
            ("queue/scheduler", "none [bfq]\n"),
            ("queue/write_cache", "write back\n"),
            ("device/model", "Disk 1 \n"),
            ("sdx1/partition", "1\n"),
        ] {
            std::fs::write(disk.join(path), value).unwrap();
        }
        let link = format!("sys/dev/block/{}:{}", rustix::fs::major(number), rustix::fs::minor(number));
        std::os::unix::fs::symlink(&partition, root.path().join(link)).unwrap();
        let device = device_under_in(&Roots::under(root.path()), root.path()).unwrap();
        assert_eq!(device.name, "sdx");
        assert_eq!(device.counters().unwrap().read_ios, 10);
        let mut facts = HostFacts::default();
        device.add(&mut facts);
        for (name, value) in [
            ("device", "sdx"),
            ("device.kind", "scsi or sata"),
            ("device.size", "1048576"),
            ("device.model", "Disk 1"),
            ("queue.scheduler", "bfq"),
            ("queue.write_cache", "write back"),
        ] {
            assert_eq!(facts.get(name), Some(value), "{name}");
        }
    }

    #[test]
    fn no_device_says_why() {
        let proc_error = device_under(Path::new("/proc")).unwrap_err();
        assert_eq!(proc_error, "/proc is on proc, which has no block device of its own");
        assert!(device_under(Path::new("/no/such/path")).unwrap_err().contains("No such file"));
    }
}
