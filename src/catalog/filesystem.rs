//! The table of filesystems that assay makes: one row says what experiment, target, guests and recipes ask about one.
//!
//! Enters: a name. Leaves: a [`Filesystem`] and its [`FilesystemDescriptor`]. What the running kernel has is not known here.

use serde::{Deserialize, Serialize};

use super::program::Program;
use super::table::table;

/// One row of the table.
#[derive(Clone, Copy, Debug)]
pub struct FilesystemDescriptor {
    /// The kernel's name.
    pub name: &'static str,
    /// What sentences call it.
    pub title: &'static str,
    /// How it is made on a device; `None`: it lies in memory, has no device and needs no mkfs.
    pub mkfs: Option<Mkfs>,
    /// Mount options that say how large it is, where it has no device: `NAME=BYTES` of the first is assay's own choice.
    pub sized_by: &'static [&'static str],
    /// Modules that a guest's kernel may need beside the one of its name.
    pub guest_modules: &'static [&'static str],
    /// How it is given a log on a device of its own; `None`: it has none.
    pub log_device: Option<LogDevice>,
    /// Whether it knows extent-size hints (`FS_XFLAG_EXTSIZE` of ioctl_xfs_fsgetxattr(2)).
    pub has_extent_size_hint: bool,
}

/// How a filesystem is made and known again.
#[derive(Clone, Copy, Debug)]
pub struct Mkfs {
    /// The program.
    pub program: Program,
    /// Where the 16 bytes of its identity lie on the device.
    pub identity_at: u64,
    /// The smallest device it takes; `None`: not known.
    pub smallest: Option<Smallest>,
    /// The option with which it looks at everything and writes nothing; `None`: it has none.
    pub dry_run: Option<&'static str>,
}

/// How mkfs and mount are told that the log is on another device: the device's path follows what stands here.
#[derive(Clone, Copy, Debug)]
pub struct LogDevice {
    /// An option of mkfs, and how its argument begins.
    pub mkfs: [&'static str; 2],
    /// How the option of mount begins; `None`: the filesystem knows it by itself.
    pub mount: Option<&'static str>,
    /// Arguments with which mkfs makes the log first, on its device; the size of the filesystem's blocks follows. None: it does both at once.
    pub made_first: &'static [&'static str],
}

/// The smallest device that a filesystem is made on.
#[derive(Clone, Copy, Debug)]
pub struct Smallest {
    /// Its bytes.
    pub bytes: u64,
    /// The options of mkfs that lift the limit; none: whatever is asked of it may.
    pub unless: &'static [&'static str],
    /// The first release of mkfs that has the limit: its major and minor number.
    pub since: (u32, u32),
}

/// A filesystem on a device, with nothing special.
const ON_A_DEVICE: FilesystemDescriptor = FilesystemDescriptor {
    name: "",
    title: "",
    mkfs: None,
    sized_by: &[],
    guest_modules: &[],
    log_device: None,
    has_extent_size_hint: false,
};

/// Source: mkfs.xfs(8), `-l logdev=`, and xfs(5).
const LOG_OF_XFS: LogDevice = LogDevice { mkfs: ["-l", "logdev="], mount: Some("logdev="), made_first: &[] };
/// Source: mke2fs(8), `-J device=`: its journal is made with `-O journal_dev` and blocks of the same size.
const LOG_OF_EXT4: LogDevice =
    LogDevice { mkfs: ["-J", "device="], mount: None, made_first: &["-O", "journal_dev", "-b"] };

/// mkfs.xfs refuses smaller devices since xfsprogs 5.19. Source: mkfs.xfs(8), `--unsupported`.
const SMALLEST_XFS: Smallest = Smallest { bytes: 300 << 20, unless: &["--unsupported"], since: (5, 19) };
/// mkfs.btrfs keeps metadata twice on every device since btrfs-progs 5.15. Source: its own message, "minimum size for each btrfs device".
const SMALLEST_BTRFS: Smallest = Smallest { bytes: 109 << 20, unless: &[], since: (5, 15) };

const fn mkfs(name: &'static str, package: &'static str, identity_at: u64) -> Mkfs {
    Mkfs { program: Program { name, package }, identity_at, smallest: None, dry_run: None }
}

table! {
    /// A filesystem that assay makes.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    Filesystem of FilesystemDescriptor {
        /// XFS.
        Xfs = FilesystemDescriptor {
            name: "xfs",
            title: "XFS",
            mkfs: Some(Mkfs { smallest: Some(SMALLEST_XFS), dry_run: Some("-N"), ..mkfs("mkfs.xfs", "xfsprogs", 32) }),
            guest_modules: &["crc32c_generic", "crc32c_intel"],
            log_device: Some(LOG_OF_XFS),
            has_extent_size_hint: true,
            ..ON_A_DEVICE
        },
        /// ext4.
        Ext4 = FilesystemDescriptor {
            name: "ext4",
            title: "ext4",
            mkfs: Some(Mkfs { dry_run: Some("-n"), ..mkfs("mkfs.ext4", "e2fsprogs", 0x468) }),
            guest_modules: &["crc32c_generic", "crc32c_intel"],
            log_device: Some(LOG_OF_EXT4),
            ..ON_A_DEVICE
        },
        /// btrfs.
        Btrfs = FilesystemDescriptor {
            name: "btrfs",
            title: "btrfs",
            mkfs: Some(Mkfs { smallest: Some(SMALLEST_BTRFS), ..mkfs("mkfs.btrfs", "btrfs-progs", 0x1_0020) }),
            guest_modules: &["crc32c_generic", "crc32c_intel", "xxhash_generic", "sha256_generic", "blake2b_generic"],
            ..ON_A_DEVICE
        },
        /// f2fs.
        F2fs = FilesystemDescriptor {
            name: "f2fs",
            title: "f2fs",
            mkfs: Some(mkfs("mkfs.f2fs", "f2fs-tools", 0x46c)),
            guest_modules: &["crc32_generic", "crc32_pclmul"],
            ..ON_A_DEVICE
        },
        /// Memory; it has no device.
        Tmpfs = FilesystemDescriptor {
            name: "tmpfs",
            title: "tmpfs",
            sized_by: &["size", "nr_blocks"],
            ..ON_A_DEVICE
        },
    }
}

impl Filesystem {
    /// The kernel's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.descriptor().name
    }

    /// The filesystem of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Filesystem> {
        Filesystem::ALL.iter().copied().find(|fs| fs.name() == name)
    }

    /// The names of all, in the order of the table.
    #[must_use]
    pub fn names() -> Vec<&'static str> {
        Filesystem::ALL.iter().map(|fs| fs.name()).collect()
    }

    /// The program that makes it, and how it is known again; `None`: it lies in memory.
    #[must_use]
    pub const fn mkfs(self) -> Option<Mkfs> {
        self.descriptor().mkfs
    }

    /// Whether it lies in memory, so that a device would not be used.
    #[must_use]
    pub const fn is_in_memory(self) -> bool {
        self.mkfs().is_none()
    }

    /// Those that know extent-size hints, in words.
    #[must_use]
    pub fn with_extent_size_hints() -> Vec<&'static str> {
        let knows = |fs: &&Filesystem| fs.descriptor().has_extent_size_hint;
        Filesystem::ALL.iter().filter(knows).map(|fs| fs.descriptor().title).collect()
    }

    /// Those that may have their log on another device, in words.
    #[must_use]
    pub fn with_log_devices() -> Vec<&'static str> {
        let knows = |fs: &&Filesystem| fs.descriptor().log_device.is_some();
        Filesystem::ALL.iter().filter(knows).map(|fs| fs.descriptor().title).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_row_means_itself_and_is_complete() {
        for fs in Filesystem::ALL {
            assert_eq!(Filesystem::named(fs.name()), Some(*fs));
            assert_eq!(serde_json::to_value(fs).unwrap(), fs.name());
            let row = fs.descriptor();
            assert!(row.title.eq_ignore_ascii_case(row.name), "{}", row.name);
            assert_eq!(row.sized_by.is_empty(), row.mkfs.is_some(), "{}: memory needs a size", row.name);
            if let Some(mkfs) = row.mkfs {
                assert_eq!(mkfs.program.name, format!("mkfs.{}", row.name));
                assert!(!mkfs.program.package.is_empty() && mkfs.identity_at > 0, "{}", row.name);
                // The size of its blocks is asked of mkfs.
                let made_first = row.log_device.is_some_and(|log| !log.made_first.is_empty());
                assert!(!made_first || mkfs.dry_run.is_some(), "{}", row.name);
            }
        }
        assert_eq!(Filesystem::named("none"), None);
    }
}
