//! Files of stores that this process has open besides SQLite.
//!
//! Enters: a file that was opened to look at it. Leaves: its closing when no store of this process needs the inode any more. POSIX
//! locks go with the first descriptor that is closed, whoever opened it: closing one here would take the locks of SQLite on the
//! same file. It must not know what a store is.

use std::collections::BTreeMap;
use std::fs::{File, Metadata};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Device and inode.
type Inode = (u64, u64);

/// Open files of an inode, and by how many they are held.
#[derive(Default)]
struct Entry {
    holders: usize,
    files: Vec<File>,
}

static OPEN: Mutex<BTreeMap<Inode, Entry>> = Mutex::new(BTreeMap::new());

/// An inode that stays open until its last holder in this process has gone.
pub(super) struct Held {
    inode: Inode,
}

impl Held {
    /// Holds `file`.
    pub(super) fn new(file: File) -> std::io::Result<Held> {
        let inode = inode_of(&file.metadata()?);
        let mut open = table();
        let entry = open.entry(inode).or_default();
        entry.holders += 1;
        entry.files.push(file);
        Ok(Held { inode })
    }

    /// Fills `bytes` from the beginning of the file.
    pub(super) fn read(&self, bytes: &mut [u8]) -> std::io::Result<()> {
        self.with(|file| file.read_exact_at(bytes, 0))
    }

    pub(super) fn metadata(&self) -> std::io::Result<Metadata> {
        self.with(File::metadata)
    }

    /// Whether `found` is of this very file.
    pub(super) fn is(&self, found: &Metadata) -> bool {
        inode_of(found) == self.inode
    }

    fn with<T>(&self, look: impl FnOnce(&File) -> std::io::Result<T>) -> std::io::Result<T> {
        let open = table();
        let file = open.get(&self.inode).and_then(|entry| entry.files.first());
        file.map_or_else(|| Err(std::io::ErrorKind::NotFound.into()), look)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut open = table();
        if let Some(entry) = open.get_mut(&self.inode) {
            entry.holders -= 1;
            if entry.holders == 0 {
                open.remove(&self.inode);
            }
        }
    }
}

fn table() -> MutexGuard<'static, BTreeMap<Inode, Entry>> {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn inode_of(found: &Metadata) -> Inode {
    (found.dev(), found.ino())
}
