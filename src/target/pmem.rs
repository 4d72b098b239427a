//! Persistent memory that is none: memory the kernel was told to set aside (`memmap=SIZE!OFFSET`,
//! Documentation/admin-guide/kernel-parameters.txt; drivers/nvdimm/e820.c).
//!
//! Enters: a size. Leaves: an unused `/dev/pmemN` at least that large. It was there before assay was, so that outside of a
//! guest it is one that was named with `--destroy /dev/pmemN`; real persistent memory is named as the device itself.

use std::path::{Path, PathBuf};

use super::error::TargetError;
use super::ramdisk::{Taken, free_device};

/// Whether there is one.
pub(super) fn obstacle(bytes: u64, taken: Taken<'_>) -> Option<TargetError> {
    free(bytes, taken).is_none().then(|| not_named(bytes))
}

/// Takes one.
pub(super) fn take(bytes: u64, taken: Taken<'_>) -> Result<PathBuf, TargetError> {
    free(bytes, taken).ok_or_else(|| not_named(bytes))
}

fn not_named(bytes: u64) -> TargetError {
    if let Some(device) = free(bytes, Taken::Any) {
        return TargetError::unavailable(
            format!("{} was there before, and may hold somebody's data", device.display()),
            format!("if everything on it may be lost: --destroy {}", device.display()),
        );
    }
    let reason = if any() {
        format!("no unused /dev/pmem* made by memmap= is {bytes} bytes large or more")
    } else {
        "there is no /dev/pmem*: the kernel was started without memmap=".to_owned()
    };
    let whole = bytes.div_ceil(1 << 20);
    TargetError::unavailable(
        reason,
        format!(
            "start the kernel with memmap={whole}M!4G; real persistent memory is named: --destroy /dev/pmem0"
        ),
    )
}

fn any() -> bool {
    std::fs::read_dir("/sys/block")
        .into_iter()
        .flatten()
        .flatten()
        .any(|entry| entry.file_name().to_string_lossy().starts_with("pmem"))
}

fn free(bytes: u64, taken: Taken<'_>) -> Option<PathBuf> {
    let device = free_device("pmem", taken, |size| size >= bytes)?;
    is_set_aside(&device).then_some(device)
}

/// The bus of regions that came from the kernel's command line calls its provider `e820`.
fn is_set_aside(device: &Path) -> bool {
    let Some(name) = device.file_name() else { return false };
    let Ok(place) = Path::new("/sys/block").join(name).canonicalize() else { return false };
    place.ancestors().any(|directory| {
        std::fs::read_to_string(directory.join("provider")).is_ok_and(|provider| provider.trim() == "e820")
    })
}
