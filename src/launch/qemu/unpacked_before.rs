//! What packages, images and modules have left in the cache: unpacked packages, decompressed kernels, packed initramfs.
//!
//! Enters: names in the cache. Leaves: directories that stay while this process lives; the rest goes, the oldest first or all of it.
//! Beside unpacked packages lie those that people put there, which are nobody's to remove.

use std::collections::BTreeMap;
use std::fs::{File, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use rustix::fs::{FlockOperation, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, flock, futimens};

use crate::sys::cache;

/// Unpacked packages that are kept, those used last; each is some hundred MiB. Others that are in use stay, too.
const KEPT: usize = 8;
/// Digits of the digest that is the name of an unpacked package.
const DIGITS: usize = 16;
/// Files that are made anew where they are missing.
const FILES: [&str; 2] = ["initramfs", "vmlinux"];

/// The directories that this process uses: nobody removes them.
static USED: Mutex<BTreeMap<PathBuf, File>> = Mutex::new(BTreeMap::new());

/// Holds an unpacked package; false: there is none.
pub(super) fn used(root: &Path) -> bool {
    let mut used = USED.lock().unwrap_or_else(PoisonError::into_inner);
    if used.contains_key(root) && root.is_dir() {
        return true;
    }
    let Ok(held) = File::open(root) else { return false };
    // Who is removing it holds it alone; then it is gone, or unpacked anew by a third.
    let identity = |found: std::io::Result<Metadata>| found.ok().map(|found| (found.dev(), found.ino()));
    let is_held = flock(&held, FlockOperation::LockShared).is_ok();
    if !is_held || identity(held.metadata()) != identity(root.metadata()) {
        return false;
    }
    let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
    let same = Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT };
    // One whose time cannot be set only goes sooner.
    let _ = futimens(&held, &Timestamps { last_access: same, last_modification: now });
    used.insert(root.to_owned(), held);
    true
}

/// Removes the packages that were not used for the longest time; what is held stays.
pub(super) fn prune(place: &Path) {
    let mut all = packages(place);
    all.sort();
    let surplus = all.len().saturating_sub(KEPT);
    for (_, path) in all.into_iter().take(surplus) {
        removed(&path);
    }
}

/// Unpacked packages with the time of their last use.
fn packages(place: &Path) -> Vec<(SystemTime, PathBuf)> {
    let entries = std::fs::read_dir(place).into_iter().flatten().flatten();
    let is_digest = |name: &str| name.len() == DIGITS && name.bytes().all(|byte| byte.is_ascii_hexdigit());
    let ours = entries.filter(|entry| {
        is_digest(&entry.file_name().to_string_lossy()) && entry.file_type().is_ok_and(|kind| kind.is_dir())
    });
    ours.filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path()))).collect()
}

/// Removes one that nobody uses. It loses its name first: nobody finds half of it.
fn removed(root: &Path) -> bool {
    let Ok(_held) = cache::hold(root) else { return false };
    let gone =
        root.with_file_name(format!(".gone-{}", root.file_name().unwrap_or_default().to_string_lossy()));
    std::fs::rename(root, &gone).is_ok() && std::fs::remove_dir_all(gone).is_ok()
}

/// What lies in the cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unpacked {
    /// Packages and files.
    pub entries: usize,
    /// Of all of them.
    pub bytes: u64,
}

impl Unpacked {
    fn with(self, path: &Path) -> Unpacked {
        Unpacked { entries: self.entries + 1, bytes: self.bytes + cache::bytes_below(path) }
    }
}

/// What guests have left in the cache.
#[must_use]
pub fn unpacked_in_cache() -> Unpacked {
    everything().iter().fold(Unpacked::default(), |sum, path| sum.with(path))
}

/// Removes everything that guests have left in the cache and nobody uses, and says what went.
pub fn remove_unpacked() -> Unpacked {
    everything().iter().fold(Unpacked::default(), |sum, path| {
        let with = sum.with(path);
        let is_gone = if path.is_dir() { removed(path) } else { std::fs::remove_file(path).is_ok() };
        if is_gone { with } else { sum }
    })
}

fn everything() -> Vec<PathBuf> {
    let packages = cache::place("kernels").map(|place| packages(&place)).unwrap_or_default();
    let files = FILES.into_iter().filter_map(cache::place).filter_map(|place| std::fs::read_dir(place).ok());
    let files = files.flatten().flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()));
    packages.into_iter().map(|(_, path)| path).chain(files.map(|entry| entry.path())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_and_what_people_put_there_stays() {
        let place = tempfile::tempdir().unwrap();
        let path = |name: &str| place.path().join(name);
        for at in 0..KEPT + 3 {
            std::fs::create_dir_all(path(&format!("{at:016x}")).join("boot")).unwrap();
        }
        std::fs::create_dir(path("my-kernels")).unwrap();
        std::fs::write(path("0123456789abcdef"), "a file").unwrap();
        assert!(!used(&path("ffffffffffffffff")));
        // The oldest three, of which one is used.
        for at in 0..3 {
            let directory = File::open(path(&format!("{at:016x}"))).unwrap();
            directory.set_modified(SystemTime::UNIX_EPOCH).unwrap();
        }
        let held = File::open(path(&format!("{:016x}", 1))).unwrap();
        flock(&held, FlockOperation::LockShared).unwrap();
        prune(place.path());
        let left: Vec<bool> = (0..4).map(|at| path(&format!("{at:016x}")).exists()).collect();
        assert_eq!(left, [false, true, false, true]);
        assert!(path("my-kernels").exists() && path("0123456789abcdef").exists());
        drop(held);
        // A process that another test is starting may have it open until it executes its program.
        let is_removed = |_| {
            std::thread::sleep(std::time::Duration::from_millis(10));
            removed(&path(&format!("{:016x}", 1)))
        };
        assert!((0..1000).any(is_removed) && !path(&format!("{:016x}", 1)).exists());
    }
}
