//! What stands in the way of a target, told before anything is touched.
//!
//! Enters: settings, the paths named with `--destroy`, the directory that will be worked in. Leaves: the first obstacle.

use std::path::{Path, PathBuf};

use super::error::TargetError;
use super::overwrite::may_overwrite;
use super::ramdisk::Taken;
use super::stack::mount_options;
use super::{
    device_mapper, guest_disk, knobs, loop_device, mkfs, mount, null_blk, pmem, ramdisk, scsi_debug,
    second_device, zram,
};
use crate::experiment::{Device, DeviceKind, Filesystem, Mapping, TargetSettings};

/// Whether `settings` can be had on this machine. `below` is where the job would work without a device of its own, `elsewhere` where it
/// works if it names its files itself.
///
/// # Errors
/// The first thing that stands in the way. Nothing was touched.
pub fn obstacle(
    settings: &TargetSettings,
    named: &[PathBuf],
    below: &Path,
    elsewhere: Option<&Path>,
) -> Result<(), TargetError> {
    for device in settings.devices() {
        let Device::Block(path) = device else { continue };
        if !path.exists() {
            let reason = format!("there is no {}", path.display());
            return Err(TargetError::unavailable(reason, "ls /sys/block shows the devices there are"));
        }
        may_overwrite(path, named)?;
    }
    second_device::obstacle(settings, named)?;
    if (settings.makes() || !settings.knobs.is_empty()) && !crate::host::may_administer() {
        let what =
            if settings.makes() { "making devices and filesystems" } else { "setting queues and kernel" };
        return Err(TargetError::unavailable(format!("{what} needs root"), "run it with sudo"));
    }
    let made = || settings.devices().filter(|_| !settings.is_in_memory());
    if let Some(found) = made().find_map(|made| device(made, settings, named, below)) {
        return Err(found);
    }
    if let Some(found) = room(made(), below) {
        return Err(found);
    }
    if let Some(found) = made().next().and(settings.dm.as_ref()).and_then(device_mapper::obstacle) {
        return Err(found);
    }
    if let Some(fs) = settings.fs {
        if !crate::host::has_filesystem(fs.name()) {
            let reason =
                format!("{} is not offered here: {}", fs.name(), crate::host::missing_driver(fs.name()));
            return Err(TargetError::unavailable(reason, "boot a kernel that has it"));
        }
        if let Some(found) = mkfs::obstacle(fs) {
            return Err(found);
        }
        mount::rehearse(fs.name(), &mount_options(settings))?;
    }
    settings_of(settings, below, elsewhere).map(drop)
}

/// The settings of this machine that trials on such a target set, as far as they are there before the target is made: those of a
/// device that is made for a run are nobody else's.
///
/// # Errors
/// One that there is not, or that is none.
pub fn settings_of(
    settings: &TargetSettings,
    below: &Path,
    elsewhere: Option<&Path>,
) -> Result<Vec<PathBuf>, TargetError> {
    // What is on a device that is still to be made is seen when it is there.
    let known = match &settings.device {
        _ if settings.is_in_memory() => None,
        Some(Device::Made { .. }) => None,
        Some(Device::Block(path)) => Some(path.as_path()),
        // As in a trial: what is watched is set.
        _ if elsewhere.is_some() => elsewhere,
        Some(Device::File(path)) => path.parent(),
        Some(Device::Directory(path)) => Some(path.as_path()),
        None => Some(below),
    };
    let judged = |path: &str| path.starts_with('/') || known.is_some();
    settings
        .knobs
        .iter()
        .filter(|knob| judged(&knob.path) && !knobs::comes_with_the_mount(knob, settings))
        .map(|knob| knobs::place(knob, known.unwrap_or(below)))
        .collect()
}

/// What can be made here: names of devices and filesystems, each with what is missing for it or `None`.
#[must_use]
pub fn offered(below: &Path) -> Vec<(&'static str, Option<String>)> {
    /// Large enough for every kind, small enough for every machine.
    const BYTES: u64 = 64 << 20;
    let of_kind = |kind: DeviceKind| {
        let made = Device::Made { kind, bytes: BYTES, options: Vec::new() };
        let missing = device(&made, &TargetSettings::default(), &[], below);
        let missing = missing.or_else(|| room(std::iter::once(&made), below));
        (kind.name(), missing.map(|missing| missing.to_string()))
    };
    let of_fs = |fs: Filesystem| {
        let missing = (!crate::host::has_filesystem(fs.name())).then(|| {
            format!("{} is not offered here: {}", fs.name(), crate::host::missing_driver(fs.name()))
        });
        (fs.name(), missing.or_else(|| mkfs::obstacle(fs).map(|missing| missing.to_string())))
    };
    let here = DeviceKind::ALL.into_iter().filter(|kind| !kind.only_in_guests());
    let of_dm = |mapping: Mapping| {
        let missing = device_mapper::obstacle(&mapping).map(|missing| missing.to_string());
        (mapping.key(), missing)
    };
    let mapped = Mapping::examples().into_iter().map(of_dm);
    here.map(of_kind).chain(mapped).chain(Filesystem::ALL.iter().copied().map(of_fs)).collect()
}

/// All that a machine made for the run has was made for it.
pub(super) fn taken<'n>(settings: &TargetSettings, named: &'n [PathBuf]) -> Taken<'n> {
    if settings.launcher().descriptor().made_for_the_run { Taken::Any } else { Taken::Named(named) }
}

/// The files behind loop devices have holes, but the job may fill them all.
fn room<'d>(devices: impl Iterator<Item = &'d Device>, below: &Path) -> Option<TargetError> {
    let of_loop = |device: &Device| match device {
        Device::Made { kind: DeviceKind::Loop, bytes, .. } => Some(*bytes),
        _ => None,
    };
    let bytes = devices.filter_map(of_loop).fold(0, u64::saturating_add);
    let space = rustix::fs::statvfs(below).ok()?;
    let free = space.f_bavail.saturating_mul(space.f_frsize);
    (bytes > free).then(|| {
        TargetError::unavailable(
            format!(
                "a loop device of {bytes} bytes does not fit into {}, which has {free} free",
                below.display()
            ),
            "--directory names a place with more room",
        )
    })
}

fn device(
    device: &Device,
    settings: &TargetSettings,
    named: &[PathBuf],
    below: &Path,
) -> Option<TargetError> {
    let Device::Made { kind, bytes, options } = device else { return None };
    match kind {
        DeviceKind::Loop => {
            let wrong = || loop_device::Wish::read(*bytes, options).err();
            let blocks =
                || (device.allocated_bytes() > 0).then(|| loop_device::cannot_allocate(below)).flatten();
            loop_device::obstacle().or_else(wrong).or_else(blocks)
        }
        DeviceKind::Zram => zram::obstacle(),
        DeviceKind::Ram => ramdisk::obstacle(*bytes, taken(settings, named)),
        DeviceKind::Pmem => pmem::obstacle(*bytes, taken(settings, named)),
        DeviceKind::NullBlk => null_blk::obstacle(),
        DeviceKind::ScsiDebug => scsi_debug::obstacle(),
        DeviceKind::VirtioBlk | DeviceKind::Nvme => {
            guest_disk::obstacle(*kind, *bytes, device.cache().unwrap_or_default())
        }
    }
}
