//! A device of the kernel's device mapper between a device and what is on it (Linux's include/uapi/linux/dm-ioctl.h).
//!
//! Enters: a mapping, the device below. Leaves: a block device. Its name and its uuid have the run's random digits in them, so that it is
//! known again; a key is drawn for each device and is in no record.

use std::fs::{File, OpenOptions};
use std::io::{Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::busy::while_busy;
use super::error::TargetError;
use super::identity::DeviceIdentity;
use super::journal::Journal;
use super::made::Made;
use super::mapped_device::{Command, call, device_of, is_there};
use super::overwrite::{mounted_for_others, user_of_device};
use super::{mkfs, module};
use crate::experiment::Mapping;
use crate::host::KernelLog;
use crate::sys::random_bytes;

/// How names of assay's own begin.
const OWN: &str = "assay-";
/// What its messages in the kernel's log begin with.
const SAYS: &str = "device-mapper";
/// Levels of the kernel's log (syslog(2)).
const WARNING: u32 = 4;
/// Whether devices of this kind can be made here.
pub(super) fn obstacle(mapping: &Mapping) -> Option<TargetError> {
    let instead = "boot a kernel that has it: Debian's have it as a module, also in a guest (-t kernel=FILE)";
    ["dm_mod", mapping.module()].iter().find_map(|name| module::obstacle(name, instead))
}

/// Makes the device above `below`. `foreign`: that is not of this run's making, and is left without signatures.
pub(super) fn make(
    journal: &mut Journal,
    stack: &str,
    mapping: &Mapping,
    below: &Path,
    foreign: bool,
) -> Result<PathBuf, TargetError> {
    for name in ["dm_mod", mapping.module()] {
        module::load_for_all(name)?;
    }
    let digits: String = journal.session().chars().take(16).collect();
    let name = format!("{OWN}{digits}-{stack}");
    let disk = if foreign { DeviceIdentity::of(below) } else { None };
    let below_it = disk.map(|disk| (below.to_owned(), disk));
    journal.begin(Some(stack), Made::Mapped { name: name.clone(), below: below_it })?;
    let mut log = KernelLog::from_now();
    let failed = |what: &str, error: std::io::Error, log: &mut Option<KernelLog>| {
        let said = log.as_mut().map(KernelLog::records).unwrap_or_default();
        let said = said.into_iter().filter(|record| record.level <= WARNING && record.text.contains(SAYS));
        let said: Vec<String> = said.map(|record| record.text).collect();
        let reason = said.first().cloned().unwrap_or_else(|| error.to_string());
        TargetError::Failed {
            reason: format!("dm={mapping}: {what}: {reason}"),
            command: String::new(),
            output: said.join("\n"),
            hint: "the kernel's Documentation/admin-guide/device-mapper lists each target's options"
                .to_owned(),
        }
    };
    // Only the mapper's own name: its uuid is the same.
    let call = |command, table: Option<(u64, &str)>| call(command, &name, table);
    call(Command::Create, None).map_err(|error| failed("cannot make a device", error, &mut log))?;
    let sectors = sectors_of(below)? / (mapping.sector_bytes() / 512) * (mapping.sector_bytes() / 512);
    let key = random_bytes::<128>().map_err(TargetError::io("cannot draw a key for", below))?;
    let key: String = key.iter().take(mapping.key_bytes()).map(|byte| format!("{byte:02x}")).collect();
    let arguments = mapping.arguments(below, &key);
    let table = format!("{}\0{arguments}", mapping.target());
    call(Command::Load, Some((sectors, &table)))
        .map_err(|error| failed("the kernel refuses it", error, &mut log))?;
    call(Command::Suspend, None).map_err(|error| failed("cannot begin", error, &mut log))?;
    let made = device_of(&name).map(|sys| Path::new("/dev").join(sys.file_name().unwrap_or_default()));
    made.filter(|device| device.exists())
        .ok_or_else(|| TargetError::failed(format!("dm={mapping}: the kernel shows no device in /dev")))
}

fn sectors_of(device: &Path) -> Result<u64, TargetError> {
    let size = File::open(device).and_then(|mut file| file.seek(SeekFrom::End(0)));
    size.map(|bytes| bytes / 512).map_err(TargetError::io("cannot look at", device))
}

/// Takes the device away, also one that has no table yet, which sysfs does not show. What it wrote to a disk that stays is no filesystem,
/// but could look like one to the next who asks: of a disk that it lay on the ends are cleared.
pub(super) fn remove(
    name: &str,
    below: Option<&(PathBuf, DeviceIdentity)>,
) -> Result<Option<String>, TargetError> {
    if !name.starts_with(OWN) || !is_there(name) {
        return Ok(None);
    }
    let sys = device_of(name);
    let device =
        sys.as_deref().and_then(Path::file_name).map_or_else(|| name.into(), |of| Path::new("/dev").join(of));
    let lay_on = |path: &Path| {
        let disk = path.canonicalize().ok().and_then(|real| Some(real.file_name()?.to_owned()));
        disk.zip(sys.as_ref()).is_some_and(|(disk, sys)| sys.join("slaves").join(disk).exists())
    };
    let below = below.filter(|(path, _)| lay_on(path));
    let removed = while_busy(|| match call(Command::Remove, name, None) {
        Err(error) if error.raw_os_error() == Some(libc::ENXIO) => Ok(()),
        other => other,
    });
    removed.map_err(|error| match mounted_for_others(&device) {
        Some(by) => TargetError::failed(format!("cannot remove {}: it is {by}", device.display())),
        None => TargetError::io("cannot remove", device)(error),
    })?;
    let Some((below, disk)) = below else { return Ok(None) };
    let is_free =
        DeviceIdentity::of(below).is_some_and(|now| disk.is(&now)) && user_of_device(below).is_none();
    let held = || OpenOptions::new().read(true).custom_flags(libc::O_EXCL).open(below);
    match is_free.then(held) {
        Some(Ok(_held)) => {
            mkfs::clear_ends(below).map(|()| None).map_err(TargetError::io("cannot clear", below))
        }
        _ => Ok(Some(format!("{} is in use now, or another disk: what is on it stays", below.display()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_there_is_removed_already() {
        // Only root may ask the mapper, where there is one.
        if rustix::process::geteuid().is_root() || !Path::new("/sys/module/dm_mod").exists() {
            assert_eq!(remove("assay-nowhere", None).unwrap(), None);
        }
        assert_eq!(remove("LVM-root", None).unwrap(), None, "none of assay's own");
    }
}
