//! A disk that the machine of a guest was given: taken, not made.
//!
//! Enters: a kind and a size. Leaves: an unused disk of that size.

use std::path::{Path, PathBuf};

use super::error::TargetError;
use super::overwrite::may_overwrite;
use crate::experiment::DeviceKind;

/// Whether there is one.
pub(super) fn obstacle(kind: DeviceKind, bytes: u64) -> Option<TargetError> {
    free(kind, bytes).is_none().then(|| {
        let reason = format!("there is no unused {} disk of {bytes} bytes", kind.name());
        TargetError::unavailable(reason, "guests have such disks: --target kernel=FILE boots one")
    })
}

/// Takes one.
pub(super) fn take(kind: DeviceKind, bytes: u64) -> Result<PathBuf, TargetError> {
    free(kind, bytes)
        .ok_or_else(|| TargetError::failed(format!("there is no unused {} disk left", kind.name())))
}

fn free(kind: DeviceKind, bytes: u64) -> Option<PathBuf> {
    let fits = |name: &str| match kind {
        DeviceKind::VirtioBlk => is_numbered(name, "vd", |rest| rest.bytes().all(|b| b.is_ascii_lowercase())),
        _ => is_numbered(name, "nvme", |rest| rest.contains('n') && !rest.contains('c')),
    };
    let entries = std::fs::read_dir("/sys/block").into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).filter(|n| fits(n)).collect();
    names.sort();
    names.into_iter().find_map(|name| {
        let sectors = std::fs::read_to_string(Path::new("/sys/block").join(&name).join("size")).ok()?;
        let device = Path::new("/dev").join(&name);
        let free = sectors.trim().parse::<u64>().ok()? * 512 == bytes
            && may_overwrite(&device, std::slice::from_ref(&device)).is_ok();
        free.then_some(device)
    })
}

fn is_numbered(name: &str, prefix: &str, rest: impl Fn(&str) -> bool) -> bool {
    name.strip_prefix(prefix).is_some_and(|tail| !tail.is_empty() && rest(tail))
}
