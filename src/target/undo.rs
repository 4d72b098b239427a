//! One thing made, undone; what is gone already is no error.
//!
//! Enters: an entry of the record. Removes what the entry names. Leaves: a note if something stays, or why it could not be undone. A thing is undone only
//! when it is recognised by what nobody else's has: the inode behind a loop device, a disk's `diskseq`, the number of a mount, the
//! identity of a filesystem. Settings are written only to files of the kernel's own filesystems.

use std::path::{Path, PathBuf};

use super::error::TargetError;
use super::identity::DeviceIdentity;
use super::made::{Inode, Made, Seen};
use super::overwrite::{Refusal, may_overwrite, user_of_device};
use super::{device_mapper, loop_device, mkfs, mount, null_blk, setting_pair, unload, zram};

/// `inside`: the work directory, if it is still the one that was made. The note is about something that stays.
pub(super) fn undo(made: &Made, inside: Option<&Path>) -> Result<Option<String>, TargetError> {
    match made {
        Made::Loop { image, inode } => return detach(image, *inode),
        Made::Zram { before, number, added, bytes, sequence } => {
            zram::remove(before, *number, *added, *bytes, *sequence)
        }
        Made::NullBlk { name } => null_blk::remove(name),
        Made::Mapped { name, below } => return device_mapper::remove(name, below.as_ref()),
        Made::Module { name, loaded } => return unload::unload(name, *loaded),
        Made::Filesystem { device, disk, identity } => {
            return wipe(device, disk.as_ref(), identity.as_deref());
        }
        Made::Mount { point, mount } => return unmount(point, mount.as_ref(), inside),
        Made::Knob { path, before, sequence } => return put_back(path, before, *sequence),
        Made::Pair { paths, before } => match paths.iter().find_map(|path| no_setting(path)) {
            Some(note) => return Ok(Some(note)),
            None => setting_pair::put_back(paths, before),
        },
    }
    .map(|()| None)
}

/// Without an inode nothing was attached, and the file goes with the work directory.
fn detach(image: &Path, inode: Option<Inode>) -> Result<Option<String>, TargetError> {
    let Some(inode) = inode else { return Ok(None) };
    loop_device::detach_all(image, inode)?;
    match Seen::of(image) {
        Ok(seen) if seen.inode == inode => match std::fs::remove_file(image) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(TargetError::io("cannot remove", image)(error))
            }
            _ => Ok(None),
        },
        Ok(_) => {
            Ok(Some(format!("{} is another file now than the one that was made: it stays", image.display())))
        }
        Err(_) => Ok(None),
    }
}

fn wipe(
    device: &Path,
    disk: Option<&DeviceIdentity>,
    identity: Option<&str>,
) -> Result<Option<String>, TargetError> {
    let same = disk.zip(DeviceIdentity::of(device)).is_some_and(|(then, now)| then.is(&now));
    let shown = device.display();
    match identity {
        Some(_) if !same => Ok(Some(format!("{shown} is another disk now: the filesystem on it stays"))),
        Some(identity) => match user_of_device(device) {
            Some(by) => Ok(Some(format!(
                "{shown} is in use now ({by}): the filesystem on it stays; wipefs -a {shown} clears it once it is free"
            ))),
            None => mkfs::wipe(device, Some(identity)).map(|wiped| {
                let carries = |refusal| match refusal {
                    Refusal::Signature { found, .. } => {
                        Some(format!("{shown} carries {found}, which is not the one that was made: it stays"))
                    }
                    _ => None,
                };
                may_overwrite(device, &[device.to_owned()]).err().filter(|_| !wiped).and_then(carries)
            }),
        },
        // mkfs, or whoever was to note its end, was killed: whose it is cannot be known any more.
        None => Ok(match may_overwrite(device, &[device.to_owned()]) {
            Err(Refusal::Signature { found, .. }) => Some(format!(
                "{shown} carries {found}, perhaps of a mkfs that was killed: it stays; wipefs -a {shown} clears it"
            )),
            _ => None,
        }),
    }
}

fn unmount(
    point: &Path,
    mount: Option<&(u64, String)>,
    inside: Option<&Path>,
) -> Result<Option<String>, TargetError> {
    let stays =
        |why: &str| Ok(Some(format!("{} was mounted for this run and stays: {why}", point.display())));
    if null_blk::needs(point) {
        return stays("others use it now");
    }
    match mount {
        // Wherever it is now: a directory above it may have been renamed.
        Some(known) => match crate::host::point_of(known) {
            // Before Linux 6.8 the number is given out again: elsewhere it may be another mount of another such device.
            Some(now)
                if now != point
                    && !crate::host::is_unique(known)
                    && !inside.is_some_and(|work| now.starts_with(work)) =>
            {
                stays(&format!("its number is now that of the mount at {}", now.display()))
            }
            Some(now) => mount::unmount_below(&now).map(|()| None),
            None => Ok(None),
        },
        // Killed before its number was known. In the run's own directory nobody else mounts at this very place.
        None if inside.is_some_and(|work| point.starts_with(work)) => {
            mount::unmount_below(point).map(|()| None)
        }
        None if crate::host::mounted_at(point).is_some() => stays("it is not known whose it is"),
        None => Ok(None),
    }
}

/// A device that is gone has no settings left to put back, nor has another one in its place.
fn put_back(path: &Path, before: &str, sequence: Option<u64>) -> Result<Option<String>, TargetError> {
    if !path.exists() || crate::host::read_knob(path).is_ok_and(|now| now == before) {
        return Ok(None);
    }
    if let Some(note) = no_setting(path) {
        return Ok(Some(note));
    }
    if sequence.is_some() && DeviceIdentity::sequence_of_setting(path) != sequence {
        let path = path.display();
        return Ok(Some(format!("{path} is a setting of another disk now and stays as it is")));
    }
    let failed = |why: &str| setting_pair::not_put_back(path, before, why);
    match crate::host::write_knob(path, before) {
        Ok(now) if now != before => Err(failed(&format!("it says {now}"))),
        Ok(_) => Ok(None),
        Err(error) => Err(failed(&error)),
    }
}

/// The settings that undoing would write to: those that do not say what they said before, and are still of the same disk.
pub(super) fn settings_to_put_back(made: &Made) -> Vec<PathBuf> {
    let differs = |path: &Path, before: &str| crate::host::read_knob(path).is_ok_and(|now| now != before);
    match made {
        Made::Knob { path, before, sequence } => {
            let same = sequence.is_none() || DeviceIdentity::sequence_of_setting(path) == *sequence;
            if same && differs(path, before) { vec![path.clone()] } else { Vec::new() }
        }
        Made::Pair { paths, before } => {
            let changed = paths.iter().zip(before).any(|(path, before)| differs(path, before));
            if changed { paths.to_vec() } else { Vec::new() }
        }
        _ => Vec::new(),
    }
}

/// Why nothing is written to a path.
fn no_setting(path: &Path) -> Option<String> {
    (!crate::host::is_setting(path))
        .then(|| format!("{} is not a setting of the kernel and stays as it is", path.display()))
}
