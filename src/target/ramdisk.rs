//! brd, the kernel's ramdisk (Linux's drivers/block/brd.c, Documentation/admin-guide/blockdev/ramdisk.rst).
//!
//! Enters: a size. Leaves: a block device: the module is loaded for it; where brd is there already, one of its unused
//! devices of just this size is taken, as its size cannot be changed.

use std::path::{Path, PathBuf};

use super::error::TargetError;
use super::journal::Journal;
use super::module;
use super::overwrite::may_overwrite;
use crate::host::Driver;

/// Whether a ramdisk of this size can be had here.
pub(super) fn obstacle(bytes: u64) -> Option<TargetError> {
    match crate::host::driver("brd") {
        Driver::Loadable => None,
        Driver::Missing => module::obstacle("brd", "zram:SIZE, loop:SIZE or fs=tmpfs need no brd"),
        Driver::Loaded | Driver::BuiltIn => free(bytes).is_none().then(|| {
            TargetError::unavailable(
                format!("brd is there already, and no unused /dev/ram* is {bytes} bytes large"),
                format!("unload it (modprobe -r brd), or start the kernel with brd.rd_size={}", bytes / 1024),
            )
        }),
    }
}

/// Loads brd with one device, or takes one.
pub(super) fn make(journal: &mut Journal, stack: &str, bytes: u64) -> Result<PathBuf, TargetError> {
    if crate::host::driver("brd") == Driver::Loadable {
        let parameters = ["rd_nr=1".to_owned(), format!("rd_size={}", bytes / 1024), "max_part=1".to_owned()];
        module::load(journal, stack, "brd", &parameters)?;
    }
    free(bytes).ok_or_else(|| TargetError::failed("brd was loaded, but there is no /dev/ram0 of this size"))
}

fn free(bytes: u64) -> Option<PathBuf> {
    free_device("ram", |size| size == bytes)
}

/// A block device `/dev/PREFIX<n>` of a size that `fits`, that nobody uses and that carries nothing.
pub(super) fn free_device(prefix: &str, fits: impl Fn(u64) -> bool) -> Option<PathBuf> {
    let entries = std::fs::read_dir("/sys/block").into_iter().flatten().flatten();
    let numbered = |name: &str| {
        name.strip_prefix(prefix)
            .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit()))
    };
    let mut names: Vec<String> = entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|n| numbered(n))
        .collect();
    names.sort();
    names.into_iter().find_map(|name| {
        let sectors = std::fs::read_to_string(Path::new("/sys/block").join(&name).join("size")).ok()?;
        let size = sectors.trim().parse::<u64>().ok()? * 512;
        let device = Path::new("/dev").join(&name);
        (fits(size) && may_overwrite(&device, std::slice::from_ref(&device)).is_ok()).then_some(device)
    })
}
