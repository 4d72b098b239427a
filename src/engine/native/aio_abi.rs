//! The structures of linux/aio_abi.h, little endian, its commands, and the two calls that an I/O takes.
//!
//! They are inlined into the loops that make them: behind a call of the kernel the processor guesses wrongly where a
//! function returns to.

use rustix::io::Errno;
use syscalls::{Sysno, syscall3, syscall5};

/// `struct iocb`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(super) struct Iocb {
    pub(super) data: u64,
    pub(super) key: u32,
    pub(super) rw_flags: i32,
    pub(super) opcode: u16,
    pub(super) priority: i16,
    pub(super) file: u32,
    pub(super) buffer: u64,
    pub(super) length: u64,
    pub(super) offset: i64,
    pub(super) reserved: u64,
    pub(super) flags: u32,
    pub(super) event_file: u32,
}

/// `struct io_event`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(super) struct IoEvent {
    pub(super) data: u64,
    pub(super) object: u64,
    pub(super) result: i64,
    pub(super) result2: i64,
}

pub(super) const IOCB_CMD_PREAD: u16 = 0;
pub(super) const IOCB_CMD_PWRITE: u16 = 1;
pub(super) const IOCB_CMD_POLL: u16 = 5;

/// io_submit(2): how many of the blocks, the first ones, were taken.
///
/// # Safety
/// The blocks live, and nobody touches the buffers that they name until their completion is reaped.
#[inline]
#[expect(unsafe_code, reason = "no library wraps io_submit")]
pub(super) unsafe fn io_submit(context: libc::c_ulong, blocks: &mut [*mut Iocb]) -> Result<usize, Errno> {
    let (count, first) = (blocks.len(), blocks.as_mut_ptr() as usize);
    // SAFETY: so many pointers to control blocks that live, as the caller says.
    let taken = unsafe { syscall3(Sysno::io_submit, context as usize, count, first) };
    taken.map_err(errno)
}

/// io_getevents(2): waits until `min` of `events` are filled, or the time is up. How many were.
#[inline]
pub(super) fn io_getevents(
    context: libc::c_ulong,
    min: usize,
    events: &mut [IoEvent],
    most: Option<&libc::timespec>,
) -> Result<usize, Errno> {
    let most = most.map_or(std::ptr::null(), std::ptr::from_ref) as usize;
    let (room, first) = (events.len(), events.as_mut_ptr() as usize);
    #[expect(unsafe_code, reason = "no library wraps io_getevents")]
    // SAFETY: the kernel writes at most `room` events, and reads a time that outlives the call.
    let got = unsafe { syscall5(Sysno::io_getevents, context as usize, min, room, first, most) };
    got.map_err(errno)
}

fn errno(errno: syscalls::Errno) -> Errno {
    Errno::from_raw_os_error(errno.into_raw())
}
