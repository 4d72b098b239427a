//! All devices that I/O of a path meets: those of its filesystem, the disks below them, and what shares those disks.
//!
//! Enters: a path, `/sys`. Leaves: [`Disks`]. Device mapper (LVM, LUKS) and md put devices on others, whose other users are seen in no
//! counter of the upper one; btrfs and bcachefs are on several devices, of which the mount names one, and XFS may have its log and the data
//! of files on others, as ext4 its journal.

use std::fs::File;
use std::os::unix::fs::{FileExt, FileTypeExt};
use std::path::{Path, PathBuf};

use super::device::{BlockDevice, DeviceCounters, device_or_part_under_in};
use super::roots::{Roots, chosen, names, text};
use crate::record::HostFacts;
use crate::sys::mountinfo::{mount_of, table};

/// Filesystems of several devices, with the directory that the kernel lists the devices of each in.
const SEVERAL: [(&str, &str); 2] = [("fs/btrfs", "devices"), ("fs/bcachefs", "")];
/// What is told of the disks below, and where it is read.
const TOLD: [(&str, &str); 8] = [
    ("below.model", "device/model"),
    ("below.firmware", "device/firmware_rev"),
    ("below.firmware", "device/rev"),
    ("below.scheduler", "queue/scheduler"),
    ("below.nr_requests", "queue/nr_requests"),
    ("below.write_cache", "queue/write_cache"),
    ("below.rotational", "queue/rotational"),
    ("below.wbt_lat_usec", "queue/wbt_lat_usec"),
];

/// The devices that I/O of a path meets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Disks {
    /// What the filesystem is on, whole devices: one, but for filesystems of several.
    pub own: Vec<BlockDevice>,
    /// The disks at the bottom of those; none for a device that lies on no other.
    pub below: Vec<BlockDevice>,
    /// Other devices on the disks below: their I/O is not in the counters of the own ones.
    pub beside: Vec<BlockDevice>,
    /// All of them, from the own ones down, with what lies between.
    pub all: Vec<BlockDevice>,
    /// Arrays among them that are being rebuilt or checked, with the kernel's word for it: `md0 (resync)`.
    pub rebuilding: Vec<String>,
}

impl Disks {
    /// Those of a path.
    ///
    /// # Errors
    /// One sentence that says why there is no block device.
    pub fn under(path: &Path) -> Result<Disks, String> {
        Disks::under_in(&Roots::default(), path)
    }

    /// The same with other roots.
    ///
    /// # Errors
    /// As [`Disks::under`].
    pub(super) fn under_in(roots: &Roots, path: &Path) -> Result<Disks, String> {
        let part = device_or_part_under_in(roots, path)?;
        let is_device = path.metadata().is_ok_and(|meta| meta.file_type().is_block_device());
        let members = if is_device { Vec::new() } else { members(roots, &part) };
        let mut own = if members.is_empty() { vec![part.clone()] } else { members };
        if !is_device {
            let mut others: Vec<BlockDevice> = Vec::new();
            others
                .extend(named_by_mount(path).iter().filter_map(|at| device_or_part_under_in(roots, at).ok()));
            others.extend(journal_of_ext4(roots, path, &part));
            others.retain(|device| !own.contains(device));
            own.append(&mut others);
        }
        Ok(Disks::on(own))
    }

    /// Of a filesystem on these devices or partitions.
    fn on(devices: Vec<BlockDevice>) -> Disks {
        let mut own = Vec::new();
        devices.into_iter().for_each(|device| add(&mut own, device.whole()));
        // From the top down.
        let mut passed = own.clone();
        let mut disks = Disks::default();
        let mut at = 0;
        while let Some(device) = passed.get(at).cloned() {
            let disk = device.clone().whole();
            let lower = if disk == device { linked(&device.sys.join("slaves")) } else { vec![disk] };
            if lower.is_empty() && at >= own.len() {
                add(&mut disks.below, device);
            }
            lower.into_iter().for_each(|lower| add(&mut passed, lower));
            at += 1;
        }
        for device in &passed {
            if let Some(action) = text(&device.sys.join("md/sync_action"))
                .filter(|action| !matches!(action.as_str(), "idle" | "frozen"))
            {
                disks.rebuilding.push(format!("{} ({action})", device.name));
            }
        }
        for device in &passed[own.len()..] {
            let sharing = linked(&device.sys.join("holders")).into_iter().chain(parts(device, &passed));
            for other in sharing.filter(|other| !passed.contains(other)) {
                add(&mut disks.beside, other);
            }
        }
        Disks { own, all: passed, ..disks }
    }

    /// The devices whose counters have all I/O of others once: the own ones and those beside, without those that lie on an own one.
    #[must_use]
    pub fn counted(&self) -> Vec<BlockDevice> {
        let lies_on_another = |device: &BlockDevice| {
            let passed = Disks::on(vec![device.clone()]).all;
            self.own.iter().any(|own| own != device && passed.contains(own))
        };
        let all = self.own.iter().chain(&self.beside);
        all.filter(|device| self.own.len() == 1 || !lies_on_another(device)).cloned().collect()
    }

    /// The devices that are at rest when nobody does I/O.
    #[must_use]
    pub fn resting(&self) -> Vec<BlockDevice> {
        self.own.iter().chain(&self.below).cloned().collect()
    }

    /// The devices that count the flushes which I/O of the path brings: the own ones or, as device mapper and md count none
    /// (`blk_account_io_flush` in block/blk-flush.c is of request queues), the disks below. None: nothing counts them.
    #[must_use]
    pub fn counting_flushes(&self) -> &[BlockDevice] {
        let all = |devices: &[BlockDevice]| !devices.is_empty() && devices.iter().all(counts_flushes);
        match self {
            Disks { own, .. } if all(own) => own,
            Disks { below, .. } if all(below) => below,
            _ => &[],
        }
    }

    /// Adds what is below and how it is set: `below.*`, `device.members`, `now.rebuilding`. Values of several disks are told once each.
    pub(super) fn add_facts(&self, facts: &mut HostFacts) {
        if self.own.len() > 1 {
            facts.set("device.members", self.own.len().to_string());
        }
        if !self.rebuilding.is_empty() {
            facts.set("now.rebuilding", self.rebuilding.join(", "));
        }
        // Those of one device are in its own facts.
        let told = match (&self.below[..], &self.own[..]) {
            ([], [_] | []) => return,
            ([], members) => members,
            (below, _) => below,
        };
        let names: Vec<&str> = told.iter().map(|disk| disk.name.as_str()).collect();
        facts.set("now.below", names.join(", "));
        facts.set("below.count", told.len().to_string());
        for (name, path) in TOLD {
            let read = told.iter().filter_map(|disk| text(&disk.sys.join(path)));
            let mut values: Vec<String> = read.map(|value| chosen(&value).to_owned()).collect();
            values.sort();
            values.dedup();
            if !values.is_empty() {
                facts.set(name, values.join(", "));
            }
        }
        let mut ids: Vec<String> = told.iter().filter_map(BlockDevice::id).collect();
        // Their names change with a restart, and with them their order.
        ids.sort();
        if ids.len() == told.len() {
            facts.set("below.id", ids.join(", "));
        }
    }
}

/// The counters of each; `None`: one of them is gone.
pub(super) fn counters_of(devices: &[BlockDevice]) -> Option<Vec<DeviceCounters>> {
    devices.iter().map(BlockDevice::counters).collect()
}

/// Whether a device counts the flushes that it is sent. One without a volatile cache is sent none.
fn counts_flushes(device: &BlockDevice) -> bool {
    device.sys.join("mq").exists()
        || text(&device.sys.join("queue/write_cache")).is_some_and(|cache| cache != "write back")
}

fn add(devices: &mut Vec<BlockDevice>, device: BlockDevice) {
    if !devices.contains(&device) {
        devices.push(device);
    }
}

/// The devices that the links in a directory of sysfs lead to.
fn linked(directory: &Path) -> Vec<BlockDevice> {
    let lead_to = |name: String| {
        let sys = directory.join(&name).canonicalize().ok()?;
        Some(BlockDevice { name, sys })
    };
    names(directory).into_iter().filter_map(lead_to).collect()
}

/// The partitions of a disk of which one is passed; of a disk that is used whole there are none.
fn parts(disk: &BlockDevice, passed: &[BlockDevice]) -> Vec<BlockDevice> {
    let is_part = |device: &BlockDevice| {
        device.sys.parent() == Some(&disk.sys) && device.sys.join("partition").exists()
    };
    if !passed.iter().any(is_part) {
        return Vec::new();
    }
    let all = names(&disk.sys).into_iter().map(|name| BlockDevice { sys: disk.sys.join(&name), name });
    all.filter(is_part).collect()
}

/// The devices of XFS's log and of its realtime section, where they are others.
fn named_by_mount(path: &Path) -> Vec<PathBuf> {
    let mount = path.canonicalize().ok().and_then(|path| mount_of(&table(), &path));
    let mount = mount.filter(|mount| mount.kind == "xfs");
    let options = mount.map(|mount| mount.options).unwrap_or_default();
    let named = |option: &str| {
        let (key, device) = option.split_once('=')?;
        let is_device = matches!(key, "logdev" | "rtdev") && device.starts_with("/dev/");
        is_device.then(|| PathBuf::from(device))
    };
    options.split(',').filter_map(named).collect()
}

/// The device of ext4's journal, where it is another one. No mount option tells it: the superblock does, which only root can read.
fn journal_of_ext4(roots: &Roots, path: &Path, part: &BlockDevice) -> Option<BlockDevice> {
    let path = path.canonicalize().ok()?;
    mount_of(&table(), &path).filter(|mount| mount.kind == "ext4")?;
    // The kernel writes a slash in a name as `!`.
    let device = File::open(Path::new("/dev").join(part.name.replace('!', "/"))).ok()?;
    let mut superblock = [0; 1024];
    device.read_exact_at(&mut superblock, 1024).ok()?;
    let sys = roots.sys.join("dev/block").join(journal_in(&superblock)?).canonicalize().ok()?;
    Some(BlockDevice { name: sys.file_name()?.to_string_lossy().into_owned(), sys })
}

/// `major:minor` of the journal's device in an ext4 superblock (fs/ext4/ext4.h: `s_magic`, `s_feature_compat`, `s_journal_inum`,
/// `s_journal_dev`, which is as `new_decode_dev` of include/linux/kdev_t.h reads it).
fn journal_in(superblock: &[u8; 1024]) -> Option<String> {
    const HAS_JOURNAL: u32 = 4;
    let number = |at: usize| superblock[at..].first_chunk().copied().map(u32::from_le_bytes);
    let (compat, inode, device) = (number(0x5c)?, number(0xe0)?, number(0xe4)?);
    let is_elsewhere = superblock[0x38..0x3a] == [0x53, 0xef] && compat & HAS_JOURNAL != 0 && inode == 0;
    let (major, minor) = ((device >> 8) & 0xfff, (device & 0xff) | ((device >> 12) & 0xf_ff00));
    (is_elsewhere && device != 0).then(|| format!("{major}:{minor}"))
}

/// All devices of the filesystem that is on this one, where it is of a kind with several; else none.
fn members(roots: &Roots, part: &BlockDevice) -> Vec<BlockDevice> {
    for (kind, below) in SEVERAL {
        let kind = roots.sys.join(kind);
        for filesystem in names(&kind) {
            let devices = linked(&kind.join(filesystem).join(below));
            // bcachefs has a link `block` in a directory for each; btrfs has the links themselves.
            let real = |device: BlockDevice| {
                let sys = device.sys.join("block").canonicalize().ok().filter(|_| below.is_empty());
                let sys = sys.unwrap_or(device.sys);
                let name = sys.file_name().unwrap_or_default().to_string_lossy().into_owned();
                sys.join("stat").exists().then_some(BlockDevice { name, sys })
            };
            let devices: Vec<BlockDevice> = devices.into_iter().filter_map(real).collect();
            if devices.contains(part) {
                return devices;
            }
        }
    }
    Vec::new()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt, symlink};

    use super::*;

    /// A machine with its devices in a temporary directory.
    struct Machine {
        root: tempfile::TempDir,
    }

    impl Machine {
        fn new() -> Machine {
            let root = tempfile::tempdir().unwrap();
            std::fs::create_dir_all(root.path().join("sys/dev/block")).unwrap();
            Machine { root }
        }

        /// A disk, or a partition as `sda/sda1`.
        fn device(&self, path: &str, files: &[(&str, &str)]) -> &Machine {
            let sys = self.sys(path);
            for (file, value) in [("stat", "1 0 8 0 1 0 8 0 0 0 0")].iter().chain(files) {
                std::fs::create_dir_all(sys.join(file).parent().unwrap()).unwrap();
                std::fs::write(sys.join(file), value).unwrap();
            }
            if path.contains('/') {
                std::fs::write(sys.join("partition"), "1\n").unwrap();
            }
            self
        }

        fn on(&self, upper: &str, lower: &[&str]) -> &Machine {
            for lower in lower {
                for (device, other, side) in [(upper, lower, "slaves"), (lower, &upper, "holders")] {
                    let side = self.sys(device).join(side);
                    std::fs::create_dir_all(&side).unwrap();
                    symlink(self.sys(other), side.join(other.rsplit('/').next().unwrap())).unwrap();
                }
            }
            self
        }

        fn sys(&self, path: &str) -> PathBuf {
            self.root.path().join("sys/devices").join(path)
        }

        /// What a filesystem on this device meets.
        fn under(&self, device: &str) -> Disks {
            let number = self.root.path().metadata().unwrap().dev();
            let number = format!("{}:{}", rustix::fs::major(number), rustix::fs::minor(number));
            let link = self.root.path().join("sys/dev/block").join(number);
            let _ = std::fs::remove_file(&link);
            symlink(self.sys(device), link).unwrap();
            Disks::under_in(&Roots::under(self.root.path()), self.root.path()).unwrap()
        }
    }

    fn names_of(devices: &[BlockDevice]) -> String {
        devices.iter().map(|device| device.name.as_str()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_disk_or_its_partition_is_alone() {
        let machine = Machine::new();
        machine
            .device("sda", &[("queue/write_cache", "write back\n"), ("mq/0/x", "")])
            .device("sda/sda1", &[]);
        let disks = machine.under("sda/sda1");
        assert_eq!(
            (names_of(&disks.own), names_of(&disks.below), names_of(&disks.beside)),
            ("sda".into(), "".into(), "".into())
        );
        assert_eq!(names_of(disks.counting_flushes()), "sda");
        let mut facts = HostFacts::default();
        disks.add_facts(&mut facts);
        assert_eq!(facts, HostFacts::default(), "its own facts say all");
    }

    #[test]
    fn the_journal_of_ext4_is_on_the_device_that_the_superblock_names() {
        let superblock = |compat: u32, inode: u32, device: u32| {
            let mut bytes = [0; 1024];
            bytes[0x38..0x3a].copy_from_slice(&[0x53, 0xef]);
            for (at, number) in [(0x5c, compat), (0xe0, inode), (0xe4, device)] {
                bytes[at..at + 4].copy_from_slice(&number.to_le_bytes());
            }
            journal_in(&bytes)
        };
        assert_eq!(superblock(0x3c, 0, 0x0703).as_deref(), Some("7:3"));
        // 259:300, as new_encode_dev writes it.
        assert_eq!(
            superblock(0x3c, 0, (300 & 0xff) | 259 << 8 | (300 & !0xff) << 12).as_deref(),
            Some("259:300")
        );
        assert_eq!((superblock(0x3c, 8, 0x0703), superblock(0x38, 0, 0x0703)), (None, None));
        assert_eq!((superblock(0x3c, 0, 0), journal_in(&[0; 1024])), (None, None));
    }

    #[test]
    fn a_logical_volume_shares_its_disk_with_others() {
        let machine = Machine::new();
        let disk = [
            ("queue/write_cache", "write back\n"),
            ("queue/scheduler", "[mq-deadline] none\n"),
            ("mq/0/x", ""),
        ];
        machine.device("sda", &disk);
        ["sda/sda1", "sda/sda2", "dm-1"].iter().for_each(|name| _ = machine.device(name, &[]));
        machine.device("dm-0", &[("queue/write_cache", "write back\n")]);
        machine.on("dm-0", &["sda/sda2"]).on("dm-1", &["sda/sda2"]);
        let disks = machine.under("dm-0");
        assert_eq!((names_of(&disks.own), names_of(&disks.below)), ("dm-0".into(), "sda".into()));
        assert_eq!(names_of(&disks.beside), "dm-1 sda1", "the root's volume and the boot partition");
        assert_eq!(names_of(disks.counting_flushes()), "sda", "device mapper counts none");
        assert_eq!(
            (names_of(&disks.counted()), names_of(&disks.resting())),
            ("dm-0 dm-1 sda1".into(), "dm-0 sda".into())
        );
        let mut facts = HostFacts::default();
        disks.add_facts(&mut facts);
        assert_eq!(
            (facts.get("below.scheduler"), facts.get("now.below")),
            (Some("mq-deadline"), Some("sda"))
        );
    }

    #[test]
    fn the_parts_of_an_array_are_no_strangers() {
        let machine = Machine::new();
        for disk in ["sda", "sdb"] {
            machine.device(disk, &[("device/model", "Disk")]).device(&format!("{disk}/{disk}1"), &[]);
        }
        machine.device("md0", &[("md/sync_action", "resync\n")]).device("dm-0", &[]);
        machine.on("md0", &["sda/sda1", "sdb/sdb1"]).on("dm-0", &["md0"]);
        let disks = machine.under("dm-0");
        assert_eq!((names_of(&disks.below), names_of(&disks.beside)), ("sda sdb".into(), "".into()));
        assert_eq!(disks.rebuilding, ["md0 (resync)"]);
        let mut facts = HostFacts::default();
        disks.add_facts(&mut facts);
        assert_eq!((facts.get("below.model"), facts.get("below.count")), (Some("Disk"), Some("2")));
        // On the array itself.
        assert_eq!(names_of(&machine.under("md0").own), "md0");
    }

    #[test]
    fn a_filesystem_of_several_devices_has_them_all() {
        let machine = Machine::new();
        machine.device("sda", &[]).device("sda/sda3", &[]).device("sdb", &[]).device("sdc", &[]);
        let listed = machine.root.path().join("sys/fs/btrfs/1234-5678/devices");
        std::fs::create_dir_all(&listed).unwrap();
        std::fs::create_dir_all(machine.root.path().join("sys/fs/btrfs/features")).unwrap();
        for device in ["sda/sda3", "sdb"] {
            symlink(machine.sys(device), listed.join(device.rsplit('/').next().unwrap())).unwrap();
        }
        assert_eq!(names_of(&machine.under("sda/sda3").own), "sda sdb");
        assert_eq!(names_of(&machine.under("sdc").own), "sdc");
        // Another member is a volume on the first one's disk, whose counters have its I/O already.
        machine.device("dm-0", &[]).device("sda/sda4", &[]).on("dm-0", &["sda/sda4"]);
        symlink(machine.sys("dm-0"), listed.join("dm-0")).unwrap();
        let disks = machine.under("sda/sda3");
        assert_eq!(
            (names_of(&disks.own), names_of(&disks.counted())),
            ("dm-0 sda sdb".into(), "sda sdb".into())
        );
    }
}
