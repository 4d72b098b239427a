//! Devices of the device mapper as the kernel is asked for them (Linux's include/uapi/linux/dm-ioctl.h), by their uuid.
//!
//! Enters: a command, a uuid, a table. Leaves: the kernel's answer; which directory of sysfs is a device's. Numbers and names are given out
//! again, a uuid of assay's own is not.

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};

use rustix::ioctl::{Ioctl, IoctlOutput, Opcode, ioctl};

const CONTROL: &str = "/dev/mapper/control";
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
pub(super) enum Command {
    Create = 3,
    Remove = 4,
    Suspend = 6,
    Status = 7,
    Load = 9,
}

/// Asks for it; with `table`, sectors, and the target's name and arguments with a zero byte between.
///
/// # Errors
/// The kernel's.
pub(super) fn call(command: Command, uuid: &str, table: Option<(u64, &str)>) -> std::io::Result<()> {
    Request::new(command, uuid, table).send()
}

/// Whether the mapper has a device of this uuid, with or without a table; without the module there is none, and asking would load it.
pub(super) fn is_there(uuid: &str) -> bool {
    Path::new("/sys/module/dm_mod").exists()
        && !call(Command::Status, uuid, None).is_err_and(|error| error.raw_os_error() == Some(libc::ENXIO))
}

/// Where sysfs has the device of this uuid; `None`: there is none, or it has no table.
pub(super) fn device_of(uuid: &str) -> Option<PathBuf> {
    let mut all = std::fs::read_dir("/sys/block").ok()?.flatten().map(|entry| entry.path());
    all.find(|sys| crate::host::read_knob(&sys.join("dm/uuid")).is_ok_and(|now| now == uuid))
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
    fn what_nobody_made_is_not_there() {
        assert_eq!(device_of("assay-nowhere"), None);
        // Only root may ask.
        let may_ask = rustix::process::geteuid().is_root() || !Path::new("/sys/module/dm_mod").exists();
        assert!(!may_ask || !is_there("assay-nowhere"));
    }
}
