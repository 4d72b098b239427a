//! null_blk, a device that completes I/O without doing it, set up through configfs
//! (Linux's Documentation/block/null_blk.rst, drivers/block/null_blk/main.c).
//!
//! Enters: a size and attributes of configfs. Leaves: a block device. With a filesystem on it, it keeps what is written
//! (`memory_backed=1`) unless told otherwise, as no filesystem can be mounted from a device that forgets.

use std::path::{Path, PathBuf};

use rustix::mount::{MountFlags, mount};

use super::busy::while_busy;
use super::error::TargetError;
use super::journal::Journal;
use super::made::Made;
use super::module;
use crate::host::Driver;

const CONFIGFS: &str = "/sys/kernel/config";

fn place() -> PathBuf {
    Path::new(CONFIGFS).join("nullb")
}

/// Whether null_blk devices can be made here.
pub(super) fn obstacle() -> Option<TargetError> {
    if place().exists() {
        return None;
    }
    let instead = "boot a kernel that has it: Debian's have null_blk as a module";
    if let Some(missing) = module::obstacle("null_blk", instead) {
        return Some(missing);
    }
    (!crate::host::has_filesystem("configfs")).then(|| {
        let reason = format!("null_blk is set up in configfs: {}", crate::host::missing_driver("configfs"));
        TargetError::unavailable(reason, instead)
    })
}

/// Makes and powers up a device called `name`.
pub(super) fn make(
    journal: &mut Journal,
    stack: &str,
    name: &str,
    bytes: u64,
    options: &[(String, String)],
    keeps: bool,
    notes: &mut Vec<String>,
) -> Result<PathBuf, TargetError> {
    if crate::host::driver("null_blk") == Driver::Loadable {
        module::load(journal, stack, "null_blk", &["nr_devices=0".to_owned()])?;
    }
    if !place().exists() {
        let point = PathBuf::from(CONFIGFS);
        journal.begin(Some(stack), Made::Mount { point: point.clone(), mount: None })?;
        mount("configfs", &point, "configfs", MountFlags::empty(), None)
            .map_err(|e| TargetError::io("cannot mount configfs at", &point)(e.into()))?;
        let mount = crate::host::mounted_at(&point);
        journal.now_known(Made::Mount { point, mount })?;
    }
    journal.begin(Some(stack), Made::NullBlk { name: name.to_owned() })?;
    let directory = place().join(name);
    std::fs::create_dir(&directory).map_err(TargetError::io("cannot make", &directory))?;
    let usual = [("size", (bytes >> 20).to_string()), ("memory_backed", u8::from(keeps).to_string())];
    let given = |name: &str| options.iter().any(|(option, _)| option == name);
    for (attribute, value) in usual.iter().filter(|(name, _)| !given(name)) {
        set(&directory, attribute, value, notes)?;
    }
    for (attribute, value) in options {
        set(&directory, attribute, value, notes)?;
    }
    set(&directory, "power", "1", notes)?;
    device_of(&directory, name).ok_or_else(|| {
        TargetError::failed(format!("null_blk has made no device for {}", directory.display()))
    })
}

fn set(directory: &Path, attribute: &str, value: &str, notes: &mut Vec<String>) -> Result<(), TargetError> {
    let path = directory.join(attribute);
    if !path.exists() {
        let mut names: Vec<String> = std::fs::read_dir(directory)
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        return Err(TargetError::unavailable(
            format!("null_blk of this kernel has no option '{attribute}'"),
            format!("it has {}", names.join(", ")),
        ));
    }
    let now = crate::host::write_knob(&path, value).map_err(TargetError::setting)?;
    if now != value {
        notes.push(format!("null_blk: {attribute} was set to {value}; the kernel made it {now}"));
    }
    Ok(())
}

/// Since Linux 6.8 the disk is called as its directory in configfs is; before, `nullb` and its index.
fn device_of(directory: &Path, name: &str) -> Option<PathBuf> {
    let index = std::fs::read_to_string(directory.join("index")).unwrap_or_default();
    let candidates = [format!("/dev/{name}"), format!("/dev/nullb{}", index.trim())];
    candidates.into_iter().map(PathBuf::from).find(|path| path.exists())
}

/// Whether there is one in configfs, whoever made it.
pub(super) fn any() -> bool {
    let entries = std::fs::read_dir(place()).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).any(|path| path.is_dir())
}

/// Whether a mount is the one through which others made theirs.
pub(super) fn needs(point: &Path) -> bool {
    point == Path::new(CONFIGFS) && any()
}

/// Powers a device down and removes it.
pub(super) fn remove(name: &str) -> Result<(), TargetError> {
    // A name that leads elsewhere was never given.
    if name.contains('/') {
        return Ok(());
    }
    let directory = place().join(name);
    if !directory.exists() {
        return Ok(());
    }
    // rmdir alone powers down, too, but not while somebody has it open.
    let _ = std::fs::write(directory.join("power"), "0");
    while_busy(|| std::fs::remove_dir(&directory)).map_err(TargetError::io("cannot remove", directory))
}
