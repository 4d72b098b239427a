//! One thing made, undone; what is gone already is no error.
//!
//! Enters: an entry of the journal. Leaves: nothing of it, a note about what others need meanwhile, or why it is still there. What is undone is recognised by what
//! makes it assay's own (its backing file, its place), never by a number alone.

use std::path::Path;
use std::time::{Duration, Instant};

use super::error::TargetError;
use super::journal::Made;
use super::{loop_device, mkfs, module, mount, null_blk, setting_pair, zram};

/// Others (udev, a dying agent) may hold a device or a mount for a moment.
const PATIENCE: Duration = Duration::from_secs(10);

/// The note is about something that stays, as others use it.
pub(super) fn undo(made: &Made) -> Result<Option<String>, TargetError> {
    match made {
        Made::Loop { image } => loop_device::detach_all(image).and_then(|()| remove_file(image)),
        Made::Zram { before, number, added, bytes, sequence } => {
            zram::remove(before, *number, *added, *bytes, *sequence)
        }
        Made::NullBlk { name } => null_blk::remove(name),
        Made::Module { name } => return module::unload(name),
        Made::Filesystem { device, identity } => mkfs::wipe(device, identity.as_deref()),
        Made::Mount { point } if null_blk::needs(point) => {
            return Ok(Some(format!(
                "{} was mounted for this run and stays: others use it now",
                point.display()
            )));
        }
        Made::Mount { point } => mount::unmount_below(point),
        Made::Knob { path, before } => put_back(path, before),
        Made::Pair { paths, before } => setting_pair::put_back(paths, before),
    }
    .map(|()| None)
}

/// Tries until it works, the error is not "busy", or ten seconds are over.
pub(super) fn while_busy(mut act: impl FnMut() -> std::io::Result<()>) -> std::io::Result<()> {
    let begun = Instant::now();
    loop {
        match act() {
            Err(error) if error.kind() == std::io::ErrorKind::ResourceBusy && begun.elapsed() < PATIENCE => {
                std::thread::sleep(Duration::from_millis(20));
            }
            other => return other,
        }
    }
}

fn remove_file(path: &Path) -> Result<(), TargetError> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(TargetError::io("cannot remove", path)(error))
        }
        _ => Ok(()),
    }
}

/// A device that is gone has no settings left to put back.
fn put_back(path: &Path, before: &str) -> Result<(), TargetError> {
    if !path.exists() || crate::host::read_knob(path).is_ok_and(|now| now == before) {
        return Ok(());
    }
    let failed = |why: &str| setting_pair::not_put_back(path, before, why);
    match crate::host::write_knob(path, before) {
        Ok(now) if now != before => Err(failed(&format!("it says {now}"))),
        Ok(_) => Ok(()),
        Err(error) => Err(failed(&error)),
    }
}
