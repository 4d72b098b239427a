//! What may be written to: nothing that exists unless it was named for it, and no device that anyone uses.
//!
//! Everything here is looked up before anything is touched.

use std::fs::{File, Metadata};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Component, Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::loop_users::lies_on;
use crate::sys::find_system_program;
use crate::sys::mountinfo::{self, mounts};

/// How long a device may still be held that nobody uses any more.
const PATIENCE: Duration = Duration::from_secs(1);

/// Why a path is not written to.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// It exists and was not named.
    #[error("{0} exists, and the job would overwrite it")]
    ExistingFile(PathBuf),
    /// A block device that was not named.
    #[error("{0} is a block device, and the job would overwrite it")]
    DeviceNotNamed(PathBuf),
    /// A block device, or a file that serves as one, in use.
    #[error("{path} is in use: {by}")]
    InUse {
        /// The device or file.
        path: PathBuf,
        /// By what.
        by: String,
    },
    /// A block device that another run works on.
    #[error("{0} is another run's: it is locked")]
    Claimed(PathBuf),
    /// A setting of the host that another run sets.
    #[error("{} is being set by {run} (process {pid})", setting.display())]
    Held {
        /// Where the setting is.
        setting: PathBuf,
        /// What people call that run.
        run: String,
        /// Its process.
        pid: u32,
    },
    /// A setting of the host that a killed run has changed and nobody has put back.
    #[error("{} was left changed by {run}, which was killed", setting.display())]
    LeftChanged {
        /// Where the setting is.
        setting: PathBuf,
        /// What people call that run.
        run: String,
    },
    /// A block device with something on it.
    #[error("{path} is not empty: it carries {found}")]
    Signature {
        /// The device.
        path: PathBuf,
        /// What was found on it.
        found: String,
    },
    /// No file and no block device.
    #[error("{path} is {kind}, not a file or a block device")]
    Kind {
        /// The path.
        path: PathBuf,
        /// What it is.
        kind: &'static str,
    },
    /// Nothing was there when the run was announced.
    #[error("{0} appeared since the run was announced, and is not assay's")]
    Appeared(PathBuf),
    /// It is another disk than the one that was named.
    #[error("{0}")]
    Exchanged(String),
    /// It climbs out of a directory that is not there yet.
    #[error("{0} cannot be followed before the run: it goes up with '..' from a directory that is not there")]
    Unresolved(PathBuf),
    /// The system's words.
    #[error("cannot look at {path}: {source}")]
    Io {
        /// The path.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
}

impl Refusal {
    /// What to type, or do, instead.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Refusal::ExistingFile(path) | Refusal::DeviceNotNamed(path) => {
                format!("if everything on it may be lost: --destroy {}", path.display())
            }
            Refusal::InUse { path, .. } => {
                format!("unmount or release {} first, or name another one", path.display())
            }
            Refusal::Claimed(path) => {
                format!(
                    "wait until that run has ended (fuser -v {} shows it), or name another device",
                    path.display()
                )
            }
            Refusal::Held { pid, .. } => {
                format!(
                    "only one run at a time can put it back: wait until that one has ended, or end it with kill -INT {pid}"
                )
            }
            Refusal::LeftChanged { .. } => {
                "`assay cleanup` puts it back; `assay cleanup --dry-run` lists all that it would do"
                    .to_owned()
            }
            Refusal::Signature { path, .. } => {
                format!("if it may be lost, clear it yourself first: wipefs -a {}", path.display())
            }
            Refusal::Appeared(path) => {
                format!("move it away; if it may be lost: --destroy {}", path.display())
            }
            Refusal::Exchanged(_) => "run it anew on the disk that is there now".to_owned(),
            Refusal::Unresolved(_) => "write the absolute path in the job".to_owned(),
            Refusal::Kind { .. } | Refusal::Io { .. } => {
                "name a file, or a block device with --destroy".to_owned()
            }
        }
    }
}

/// Whether `path` may be overwritten; `named` are the paths given with `--destroy`.
///
/// # Errors
/// [`Refusal`], with what was found.
pub fn may_overwrite(path: &Path, named: &[PathBuf]) -> Result<(), Refusal> {
    let io = |source| Refusal::Io { path: path.to_owned(), source };
    let found = match std::fs::metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return nothing_there(path),
        other => other.map_err(io)?,
    };
    let real = path.canonicalize().map_err(io)?;
    let is_named = named.iter().any(|name| name.canonicalize().is_ok_and(|name| name == real));
    let kind = found.file_type();
    if kind.is_file() {
        // As with a device: what is in use is refused whether it is named or not.
        if let Some(by) = user_of_file(&real, &found) {
            return Err(Refusal::InUse { path: path.to_owned(), by });
        }
        return if is_named { Ok(()) } else { Err(Refusal::ExistingFile(path.to_owned())) };
    }
    if !kind.is_block_device() {
        let kind = if kind.is_dir() { "a directory" } else { "a special file" };
        return Err(Refusal::Kind { path: path.to_owned(), kind });
    }
    // First of all: what is in use is refused whether it is named or not.
    let (major, minor) = (rustix::fs::major(found.rdev()), rustix::fs::minor(found.rdev()));
    if let Some(by) = user_of(&real, major, minor) {
        return Err(Refusal::InUse { path: path.to_owned(), by });
    }
    if !is_named {
        return Err(Refusal::DeviceNotNamed(path.to_owned()));
    }
    let mut device = File::open(&real).map_err(io)?;
    let found = signature(&mut device).map_err(io)?.map(str::to_owned).or_else(|| probed(&real));
    match found {
        Some(found) => Err(Refusal::Signature { path: path.to_owned(), found }),
        None => Ok(()),
    }
}

/// What blkid finds, which knows many more signatures, also at the end of a device; `None`: nothing, or there is no blkid.
fn probed(device: &Path) -> Option<String> {
    let mut blkid = Command::new(find_system_program("blkid")?);
    blkid.args(["--probe", "--output", "value", "--match-tag", "TYPE", "--match-tag", "PTTYPE"]).arg(device);
    let output = blkid.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    // It says 2 where nothing is known, and 8 where several things are.
    let found = String::from_utf8_lossy(&output.stdout);
    match (output.status.code(), found.lines().next()) {
        (Some(0), Some(kind)) => Some(format!("what blkid calls {kind}")),
        (Some(0), None) => Some("something that blkid knows".to_owned()),
        (Some(8), _) => Some("several things that blkid knows".to_owned()),
        _ => None,
    }
}

/// Nothing is lost where nothing is; but what `missing/../x` names is known only when `missing` has been made.
fn nothing_there(path: &Path) -> Result<(), Refusal> {
    let climbs = path.components().any(|part| part == Component::ParentDir);
    if climbs && path.parent().is_none_or(|parent| parent.canonicalize().is_err()) {
        return Err(Refusal::Unresolved(path.to_owned()));
    }
    Ok(())
}

/// What device a file serves as: a loop device lies on it, or it is swap. A filesystem on the loop device would be written to below itself.
fn user_of_file(real: &Path, found: &Metadata) -> Option<String> {
    let on_it = lies_on(found.dev(), found.ino());
    let on_it = on_it.map(|device| format!("{} lies on it", device.display()));
    on_it.or_else(|| is_swap(real).then(|| "swap".to_owned()))
}

/// Whether the kernel swaps to a file or device. It writes blanks in names as `\040`.
fn is_swap(real: &Path) -> bool {
    let swaps = std::fs::read_to_string("/proc/swaps").unwrap_or_default();
    let named = |line: &str| line.split_whitespace().next().map(mountinfo::unescape);
    swaps.lines().skip(1).any(|line| named(line).as_deref() == real.to_str())
}

/// Who uses a block device; `None`: nobody does, or the path leads to none. The kernel may hold one for a moment longer than its last
/// user, so that is waited for.
pub(super) fn user_of_device(path: &Path) -> Option<String> {
    let found = std::fs::metadata(path).ok().filter(|found| found.file_type().is_block_device())?;
    let real = path.canonicalize().ok()?;
    let (major, minor) = (rustix::fs::major(found.rdev()), rustix::fs::minor(found.rdev()));
    let begun = Instant::now();
    loop {
        let by = user_of(&real, major, minor)?;
        if begun.elapsed() >= PATIENCE {
            return Some(by);
        }
        std::thread::sleep(PATIENCE / 20);
    }
}

/// Refuses devices that somebody began to use since the run was announced.
pub(super) fn unused<'p>(devices: impl IntoIterator<Item = &'p PathBuf>) -> Result<(), Refusal> {
    devices.into_iter().try_for_each(|path| match user_of_device(path) {
        Some(by) => Err(Refusal::InUse { path: path.clone(), by }),
        None => Ok(()),
    })
}

/// Who uses the device or a part of it: a mount, swap, or a device on top of it.
fn user_of(real: &Path, major: u32, minor: u32) -> Option<String> {
    let sys = PathBuf::from(format!("/sys/dev/block/{major}:{minor}"));
    let mut numbers = vec![(format!("{major}:{minor}"), sys.clone())];
    // Partitions are directories below the disk with a file `partition`.
    for entry in std::fs::read_dir(&sys).into_iter().flatten().flatten() {
        if entry.path().join("partition").exists() {
            let number = std::fs::read_to_string(entry.path().join("dev")).unwrap_or_default();
            numbers.push((number.trim().to_owned(), entry.path()));
        }
    }
    let mounts = mounts(&mountinfo::table());
    for (number, directory) in &numbers {
        if let Some(mount) = mounts.iter().find(|mount| mount.device == *number) {
            return Some(format!("mounted at {}", mount.point.display()));
        }
        let mut holders = std::fs::read_dir(directory.join("holders")).into_iter().flatten().flatten();
        if let Some(holder) = holders.next() {
            return Some(format!("held by {}", holder.file_name().to_string_lossy()));
        }
    }
    if is_swap(real) {
        return Some("swap".to_owned());
    }
    // Btrfs members and others that show no mount of their own number refuse an exclusive open.
    let exclusive = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::EXCL | rustix::fs::OFlags::CLOEXEC;
    match rustix::fs::open(real, exclusive, rustix::fs::Mode::empty()) {
        Err(rustix::io::Errno::BUSY) => {
            Some(mounted_for_others(real).unwrap_or_else(|| "the kernel holds it exclusively".to_owned()))
        }
        _ => None,
    }
}

/// The processes in mount namespaces of their own for which it is mounted, in one clause.
pub(super) fn mounted_for_others(device: &Path) -> Option<String> {
    let others = crate::host::mounted_for_others(device);
    (!others.is_empty()).then(|| format!("{}, in a mount namespace of its own", others.join(", ")))
}

/// (offset, magic, what): where filesystems, partition tables and volume managers sign a device.
const SIGNATURES: [(u64, &[u8], &str); 23] = [
    (0, b"XFSB", "an XFS filesystem"),
    (0x438, b"\x53\xef", "an ext2/3/4 filesystem"),
    (0x1_0040, b"_BHRfS_M", "a btrfs filesystem"),
    (0x400, b"\x10\x20\xf5\xf2", "an f2fs filesystem"),
    (0x400, b"\xe2\xe1\xf5\xe0", "an erofs filesystem"),
    (0, b"hsqs", "a squashfs filesystem"),
    (0x1018, b"\xc6\x85\x73\xf6\x4e\x1a\x45\xca", "a bcachefs filesystem"),
    (0x1018, b"\xc6\x85\x73\xf6\x66\xce\x90\xa9", "a bcache or bcachefs device"),
    (0x406, b"\x34\x34", "a nilfs2 filesystem"),
    (0x1_0034, b"ReIsEr", "a reiserfs filesystem"),
    (3, b"NTFS    ", "an NTFS filesystem"),
    (3, b"EXFAT   ", "an exFAT filesystem"),
    (0x36, b"FAT", "a FAT filesystem"),
    (0x52, b"FAT32", "a FAT filesystem"),
    (0x8001, b"CD001", "an ISO 9660 filesystem"),
    (0xff6, b"SWAPSPACE2", "swap space"),
    (0xff6, b"SWAP-SPACE", "swap space"),
    (0, b"LUKS\xba\xbe", "a LUKS volume"),
    (0x218, b"LVM2 001", "an LVM physical volume"),
    (0, b"\xfc\x4e\x2b\xa9", "a member of an MD array"),
    (0x1000, b"\xfc\x4e\x2b\xa9", "a member of an MD array"),
    (0x200, b"EFI PART", "a GPT partition table"),
    (0x1fe, b"\x55\xaa", "a DOS partition table or boot sector"),
];

fn signature(device: &mut (impl Read + Seek)) -> std::io::Result<Option<&'static str>> {
    let size = device.seek(SeekFrom::End(0))?;
    let mut start = vec![0; size.min(0x4_0000) as usize];
    device.seek(SeekFrom::Start(0))?;
    device.read_exact(&mut start)?;
    let at =
        |offset: u64, magic: &[u8]| start.get(offset as usize..).is_some_and(|rest| rest.starts_with(magic));
    if let Some((_, _, what)) = SIGNATURES.iter().find(|(offset, magic, _)| at(*offset, magic)) {
        return Ok(Some(what));
    }
    // ZFS: the uberblock that is in use is anywhere in its ring at 128 KiB of the label, in the pool's byte order.
    let ring = start.get(0x2_0000..).unwrap_or_default();
    let uberblock = |slot: &[u8]| {
        slot.starts_with(&0x00ba_b10c_u64.to_le_bytes()) || slot.starts_with(&0x00ba_b10c_u64.to_be_bytes())
    };
    if ring.chunks(1024).any(uberblock) {
        return Ok(Some("a member of a ZFS pool"));
    }
    // MD 0.90 and 1.0 sign the end of the device: 64 KiB blocks, and 8 KiB before the end rounded to 4 KiB.
    for offset in [(size & !0xffff).checked_sub(0x1_0000), size.checked_sub(0x2000).map(|o| o & !0xfff)] {
        let mut magic = [0; 4];
        let Some(offset) = offset else { continue };
        device.seek(SeekFrom::Start(offset))?;
        if device.read_exact(&mut magic).is_ok() && magic == *b"\xfc\x4e\x2b\xa9" {
            return Ok(Some("a member of an MD array"));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_must_be_named() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("data");
        assert!(may_overwrite(&file, &[]).is_ok(), "nothing there, nothing lost");
        std::fs::write(&file, "x").unwrap();
        assert!(matches!(may_overwrite(&file, &[]), Err(Refusal::ExistingFile(_))));
        assert!(may_overwrite(&file, std::slice::from_ref(&file)).is_ok());
        assert!(matches!(may_overwrite(directory.path(), &[]), Err(Refusal::Kind { .. })));
    }

    #[test]
    fn a_way_up_from_nowhere_is_not_followed() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("data"), "x").unwrap();
        let blind = directory.path().join("not-yet/../data");
        assert!(matches!(may_overwrite(&blind, &[]), Err(Refusal::Unresolved(_))));
        std::fs::create_dir(directory.path().join("not-yet")).unwrap();
        assert!(matches!(may_overwrite(&blind, &[]), Err(Refusal::ExistingFile(_))));
        assert!(may_overwrite(&directory.path().join("not-yet/../new"), &[]).is_ok());
    }

    #[test]
    fn signatures_are_seen() {
        let look = |offset: usize, magic: &[u8]| {
            let mut bytes = vec![0; 1 << 20];
            bytes[offset..offset + magic.len()].copy_from_slice(magic);
            signature(&mut std::io::Cursor::new(bytes)).unwrap()
        };
        assert_eq!(look(0, b"\0"), None);
        for (offset, magic, what) in SIGNATURES {
            assert_eq!(look(offset as usize, magic), Some(what));
        }
        assert_eq!(look(0x2_0400, b"\x0c\xb1\xba\0\0\0\0\0"), Some("a member of a ZFS pool"));
        assert!(look((1 << 20) - 0x1_0000, b"\xfc\x4e\x2b\xa9").is_some());
        assert_eq!(signature(&mut std::io::Cursor::new(Vec::new())).unwrap(), None, "an empty device");
    }

    #[test]
    fn the_root_device_is_in_use() {
        // Whatever is mounted at / may have no device of its own (overlay); then there is nothing to check.
        let table = mountinfo::table();
        for mount in mounts(&table) {
            let (major, minor) = mount.device.split_once(':').unwrap();
            let (major, minor) = (major.parse().unwrap(), minor.parse().unwrap());
            assert!(
                user_of(Path::new("/nonexistent"), major, minor).is_some_and(|by| by.contains("mounted at"))
            );
            // That it is used comes before that it was not named.
            let node = PathBuf::from(format!("/dev/block/{major}:{minor}"));
            let refused = may_overwrite(&node, &[]);
            assert!(!node.exists() || matches!(refused, Err(Refusal::InUse { .. })), "{refused:?}");
        }
    }
}
