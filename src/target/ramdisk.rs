//! brd, the kernel's ramdisk (Linux's drivers/block/brd.c, Documentation/admin-guide/blockdev/ramdisk.rst).
//!
//! Enters: a size. Leaves: a block device: the module is loaded for it; where brd is there already, one of its unused
//! devices of just this size is taken, as its size cannot be changed, and only one that was named: it may hold anything.

use std::path::{Path, PathBuf};

use super::error::TargetError;
use super::journal::Journal;
use super::module;
use super::overwrite::may_overwrite;
use crate::host::Driver;

/// Which devices that assay did not make may be taken.
#[derive(Clone, Copy)]
pub(super) enum Taken<'n> {
    /// All: they belong to a guest, which was made for this, or to a module that was loaded for this.
    Any,
    /// Those named with `--destroy`.
    Named(&'n [PathBuf]),
}

/// Whether a ramdisk of this size can be had here.
pub(super) fn obstacle(bytes: u64, taken: Taken<'_>) -> Option<TargetError> {
    match crate::host::driver("brd") {
        Driver::Loadable => None,
        Driver::Missing => module::obstacle("brd", "zram:SIZE, loop:SIZE or fs=tmpfs need no brd"),
        Driver::Loaded | Driver::BuiltIn => free(bytes, taken).is_none().then(|| not_named(bytes)),
    }
}

/// Loads brd with one device, or takes one.
pub(super) fn make(
    journal: &mut Journal,
    stack: &str,
    bytes: u64,
    taken: Taken<'_>,
) -> Result<PathBuf, TargetError> {
    if crate::host::driver("brd") == Driver::Loadable {
        let parameters = ["rd_nr=1".to_owned(), format!("rd_size={}", bytes / 1024), "max_part=1".to_owned()];
        module::load(journal, stack, "brd", &parameters)?;
        let failed = || TargetError::failed("brd was loaded, but there is no /dev/ram0 of this size");
        return free(bytes, Taken::Any).ok_or_else(failed);
    }
    free(bytes, taken).ok_or_else(|| not_named(bytes))
}

fn not_named(bytes: u64) -> TargetError {
    match free(bytes, Taken::Any) {
        Some(device) => TargetError::unavailable(
            format!("brd is there already, and {} may hold somebody's data", device.display()),
            format!("if everything on it may be lost: --destroy {}", device.display()),
        ),
        None => TargetError::unavailable(
            format!("brd is there already, and no unused /dev/ram* is {bytes} bytes large"),
            format!("unload it (modprobe -r brd), or start the kernel with brd.rd_size={}", bytes / 1024),
        ),
    }
}

fn free(bytes: u64, taken: Taken<'_>) -> Option<PathBuf> {
    free_device("ram", taken, |size| size == bytes)
}

/// A block device `/dev/PREFIX<n>` of a size that `fits`, that nobody uses and that carries nothing.
pub(super) fn free_device(prefix: &str, taken: Taken<'_>, fits: impl Fn(u64) -> bool) -> Option<PathBuf> {
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
        let itself = std::slice::from_ref(&device);
        let named = match taken {
            Taken::Any => itself,
            Taken::Named(named) => named,
        };
        (fits(size) && may_overwrite(&device, named).is_ok()).then_some(device)
    })
}
