//! What lies below a directory, removed; never what is mounted there.
//!
//! Enters: a directory, and the mounts below it that are assay's own. Leaves: it empty, or a refusal that names the mount.
//! A bind mount has the device number of where it comes from, so that it is the mount a file lies on that counts.

use std::ffi::{CString, OsStr};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Statx, StatxFlags, openat, statx, unlinkat};
use rustix::io::Errno;

use super::error::TargetError;

const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Whether nothing is mounted at or below a directory (absolute, without links) but `own`, and that only once.
///
/// # Errors
/// [`TargetError::Mounted`]: what others have mounted there.
pub(super) fn only_own_mounts(directory: &Path, own: Option<&Path>) -> Result<(), TargetError> {
    let mut points = crate::host::mounts_below(directory);
    if let Some(at) = points.iter().position(|point| own == Some(point)) {
        points.remove(at);
    }
    match points.pop() {
        Some(point) => Err(TargetError::Mounted { point }),
        None => Ok(()),
    }
}

/// Opens a directory itself, not what a link leads to.
///
/// # Errors
/// The system's words; also when it is a link.
pub fn open(directory: &Path) -> std::io::Result<OwnedFd> {
    Ok(rustix::fs::open(directory, DIRECTORY, Mode::empty())?)
}

/// Removes all in an open directory but the names that are kept there, and nothing that lies on another mount; `path` is for
/// messages.
///
/// # Errors
/// The first thing that cannot be removed, or what is mounted there.
pub fn empty(opened: &OwnedFd, path: &Path, keeps: impl Fn(&OsStr) -> bool) -> std::io::Result<()> {
    clear(opened, path, mount_of(opened)?, &keeps)
}

fn clear(
    opened: &OwnedFd,
    path: &Path,
    home: (u64, u64),
    keeps: &dyn Fn(&OsStr) -> bool,
) -> std::io::Result<()> {
    // All names first: what readdir says of a directory that is changed meanwhile is undefined.
    let mut names: Vec<(CString, FileType)> = Vec::new();
    for entry in Dir::read_from(opened)? {
        let entry = entry?;
        let name = entry.file_name();
        if !matches!(name.to_bytes(), b"." | b"..") && !keeps(OsStr::from_bytes(name.to_bytes())) {
            names.push((name.to_owned(), entry.file_type()));
        }
    }
    for (name, kind) in names {
        let below = path.join(OsStr::from_bytes(name.to_bytes()));
        let inside = match kind {
            FileType::Directory | FileType::Unknown => openat(opened, &name, DIRECTORY, Mode::empty()),
            _ => Err(Errno::NOTDIR),
        };
        let removed = match inside {
            Ok(inside) => {
                if mount_of(&inside)? != home {
                    let mounted = TargetError::Mounted { point: below };
                    return Err(std::io::Error::other(mounted));
                }
                clear(&inside, &below, home, &|_| false)?;
                unlinkat(opened, &name, AtFlags::REMOVEDIR)
            }
            Err(Errno::NOTDIR | Errno::LOOP) => unlinkat(opened, &name, AtFlags::empty()),
            other => other.map(drop),
        };
        match removed {
            // Somebody else was faster.
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(named(error, &below)),
        }
    }
    Ok(())
}

fn named(error: Errno, path: &Path) -> std::io::Error {
    let error = std::io::Error::from(error);
    std::io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// Which mount a directory lies on. Before Linux 5.8 only its device is known, where each subvolume of btrfs has its own.
fn mount_of(directory: &OwnedFd) -> std::io::Result<(u64, u64)> {
    let found: Statx =
        statx(directory, c"", AtFlags::EMPTY_PATH, StatxFlags::BASIC_STATS | StatxFlags::MNT_ID)?;
    let device = u64::from(found.stx_dev_major) << 32 | u64::from(found.stx_dev_minor);
    let knows = found.stx_mask & StatxFlags::MNT_ID.bits() != 0;
    Ok(if knows { (found.stx_mnt_id, 0) } else { (0, device) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_is_removed_and_what_a_link_leads_to_is_not() {
        let base = tempfile::tempdir().unwrap();
        let (tree, foreign) = (base.path().join("tree"), base.path().join("foreign"));
        std::fs::create_dir_all(tree.join("a/b")).unwrap();
        std::fs::create_dir(&foreign).unwrap();
        for file in [tree.join("a/b/file"), tree.join("kept"), foreign.join("precious")] {
            std::fs::write(file, "x").unwrap();
        }
        std::os::unix::fs::symlink(&foreign, tree.join("link")).unwrap();
        std::os::unix::fs::symlink(&foreign, tree.join("a/link")).unwrap();
        empty(&open(&tree).unwrap(), &tree, |name| name == "kept").unwrap();
        let left: Vec<_> =
            std::fs::read_dir(&tree).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["kept"]);
        assert!(foreign.join("precious").exists());
    }

    #[test]
    fn another_mount_is_not_entered() {
        // The kernel's own filesystems are mounted everywhere, and nothing of them could be removed.
        let root = rustix::fs::open("/", DIRECTORY, Mode::empty()).unwrap();
        let proc = rustix::fs::open("/proc", DIRECTORY, Mode::empty()).unwrap();
        assert_ne!(mount_of(&root).unwrap(), mount_of(&proc).unwrap());
        assert_eq!(mount_of(&root).unwrap(), mount_of(&root).unwrap());
        let refused = only_own_mounts(Path::new("/proc"), None).unwrap_err();
        assert!(refused.to_string().contains("is mounted"), "{refused}");
    }
}
