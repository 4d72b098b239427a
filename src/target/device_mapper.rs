//! A device of the kernel's device mapper between a device and what is on it (Linux's include/uapi/linux/dm-ioctl.h).
//!
//! Enters: a mapping, the device below. Leaves: a block device. Its name and its uuid have the run's random digits in them, so that it is
//! known again; a key is drawn for each device and is in no record.

use std::fs::{File, OpenOptions};
use std::io::{Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::ioctl::{Ioctl, IoctlOutput, Opcode, ioctl};

use super::busy::while_busy;
use super::error::TargetError;
use super::identity::DeviceIdentity;
use super::journal::Journal;
use super::made::Made;
use super::mapped_device::device_of;
use super::overwrite::{mounted_for_others, user_of_device};
use super::{mkfs, module};
use crate::experiment::Mapping;
use crate::host::KernelLog;
use crate::sys::random_bytes;

/// How names of assay's own begin.
const OWN: &str = "assay-";
const CONTROL: &str = "/dev/mapper/control";
/// What its messages in the kernel's log begin with.
const SAYS: &str = "device-mapper";
/// Levels of the kernel's log (syslog(2)).
const WARNING: u32 = 4;
/// Where the fields of `struct dm_ioctl` are, and what follows it.
const DATA_SIZE_AT: usize = 12;
const DATA_START_AT: usize = 16;
const TARGETS_AT: usize = 20;
const FLAGS_AT: usize = 28;
const NAME_AT: usize = 48;
const UUID_AT: usize = 176;
const DATA_AT: usize = 312;
const UUID_BYTES: usize = 129;
/// `DM_SECURE_DATA_FLAG`: the kernel forgets the buffer, which has the key in it.
const SECURE_DATA: u32 = 1 << 15;

/// A command of the device mapper.
#[derive(Clone, Copy)]
enum Command {
    Create = 3,
    Remove = 4,
    Suspend = 6,
    Load = 9,
}

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
    let call = |command, table: Option<(u64, &str)>| Request::new(command, &name, table).send();
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

/// Takes the device away; what it wrote to a disk that stays is no filesystem, but could look like one to the next who asks.
pub(super) fn remove(
    name: &str,
    below: Option<&(PathBuf, DeviceIdentity)>,
) -> Result<Option<String>, TargetError> {
    let Some(sys) = device_of(name).filter(|_| name.starts_with(OWN)) else { return Ok(None) };
    let device = Path::new("/dev").join(sys.file_name().unwrap_or_default());
    let removed = while_busy(|| match Request::new(Command::Remove, name, None).send() {
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

/// One `struct dm_ioctl` with what follows it.
struct Request {
    command: Command,
    buffer: Vec<u8>,
}

impl Request {
    /// `table`: sectors, and the target's name and arguments with a zero byte between.
    fn new(command: Command, name: &str, table: Option<(u64, &str)>) -> Request {
        let mut buffer = vec![0_u8; DATA_AT];
        buffer[0] = 4;
        let uuid = &name.as_bytes()[..name.len().min(UUID_BYTES - 1)];
        buffer[UUID_AT..UUID_AT + uuid.len()].copy_from_slice(uuid);
        if let Command::Create = command {
            let name = &uuid[..uuid.len().min(UUID_AT - NAME_AT - 1)];
            buffer[NAME_AT..NAME_AT + name.len()].copy_from_slice(name);
        }
        if let Some((sectors, table)) = table {
            buffer.extend(target_spec(sectors, table));
            set(&mut buffer, TARGETS_AT, 1);
            set(&mut buffer, FLAGS_AT, SECURE_DATA);
        }
        let bytes = buffer.len() as u32;
        set(&mut buffer, DATA_SIZE_AT, bytes);
        set(&mut buffer, DATA_START_AT, DATA_AT as u32);
        Request { command, buffer }
    }

    fn send(self) -> std::io::Result<()> {
        let control = OpenOptions::new().read(true).write(true).open(CONTROL)?;
        #[expect(unsafe_code, reason = "an ioctl that rustix has no wrapper for")]
        // SAFETY: the buffer is a `struct dm_ioctl` that says its own size, and the kernel writes no further.
        let answered = unsafe { ioctl(control, self) };
        answered.map_err(Into::into)
    }
}

fn set(buffer: &mut [u8], at: usize, value: u32) {
    buffer[at..at + 4].copy_from_slice(&value.to_ne_bytes());
}

/// `struct dm_target_spec` of a table of one line, and its arguments.
fn target_spec(sectors: u64, table: &str) -> Vec<u8> {
    let (target, arguments) = table.split_once('\0').unwrap_or((table, ""));
    let mut spec = vec![0_u8; 24];
    spec[8..16].copy_from_slice(&sectors.to_ne_bytes());
    let mut kind = [0_u8; 16];
    let shown = &target.as_bytes()[..target.len().min(15)];
    kind[..shown.len()].copy_from_slice(shown);
    spec.extend(kind);
    spec.extend(arguments.as_bytes());
    spec.push(0);
    spec.resize(spec.len().next_multiple_of(8), 0);
    let next = spec.len() as u32;
    set(&mut spec, 20, next);
    spec
}

#[expect(unsafe_code, reason = "the trait through which rustix makes ioctls")]
// SAFETY: the opcode is that of a `struct dm_ioctl`, which the buffer begins with; the kernel reads and writes as many bytes as it says.
unsafe impl Ioctl for Request {
    type Output = ();
    const IS_MUTATING: bool = true;
    fn opcode(&self) -> Opcode {
        const BOTH_WAYS: u32 = 3 << 30;
        const GROUP: u32 = 0xfd << 8;
        (BOTH_WAYS | (DATA_AT as u32) << 16 | GROUP | self.command as u32) as Opcode
    }
    fn as_ptr(&mut self) -> *mut std::ffi::c_void {
        self.buffer.as_mut_ptr().cast()
    }
    unsafe fn output_from_ptr(_: IoctlOutput, _: *mut std::ffi::c_void) -> rustix::io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_laid_out_as_the_kernel_reads_them() {
        let request = Request::new(Command::Load, "assay-1", Some((2048, "linear\0/dev/loop1 0")));
        let bytes = &request.buffer;
        let word = |at: usize| u32::from_ne_bytes(bytes[at..at + 4].try_into().unwrap());
        assert_eq!((word(0), word(12) as usize, word(16), word(20)), (4, bytes.len(), 312, 1));
        assert!(bytes[176..].starts_with(b"assay-1\0") && bytes[48] == 0, "known by its uuid alone");
        assert_eq!(bytes[312 + 8..312 + 16], 2048_u64.to_ne_bytes());
        assert!(
            bytes[312 + 24..].starts_with(b"linear\0") && bytes[312 + 40..].starts_with(b"/dev/loop1 0\0")
        );
        assert_eq!(word(312 + 20) as usize, bytes.len() - 312);
        // Source: include/uapi/linux/dm-ioctl.h, DM_DEV_CREATE and DM_TABLE_LOAD as strace(1) prints them.
        assert_eq!(request.opcode(), 0xc138_fd09);
        let create = Request::new(Command::Create, "assay-1", None);
        assert_eq!(create.opcode(), 0xc138_fd03);
        assert!(
            create.buffer[48..].starts_with(b"assay-1\0") && create.buffer[176..].starts_with(b"assay-1\0")
        );
    }

    #[test]
    fn what_is_not_there_is_removed_already() {
        assert_eq!(remove("assay-nowhere", None).unwrap(), None);
    }
}
