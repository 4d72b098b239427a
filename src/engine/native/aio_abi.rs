//! The structures of linux/aio_abi.h, little endian, its commands, what a context is, and the two calls that an I/O takes.
//!
//! These two are inlined into the loops that make them: behind a call of the kernel the processor guesses wrongly where a
//! function returns to.

use rustix::io::Errno;
use syscalls::{Sysno, syscall1, syscall2, syscall3, syscall5};

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

/// What io_setup(2) makes. Who holds one declares it before what the kernel reads and writes: it is dropped first, and io_destroy(2)
/// waits for what is in flight.
pub(super) struct AioContext(libc::c_ulong);

impl AioContext {
    /// For so many events.
    ///
    /// # Errors
    /// EAGAIN over /proc/sys/fs/aio-max-nr, ENOSYS without CONFIG_AIO.
    pub(super) fn new(events: u32) -> Result<AioContext, Errno> {
        let mut context: libc::c_ulong = 0;
        #[expect(unsafe_code, reason = "no library wraps io_setup")]
        // SAFETY: the kernel writes one word to `context`, which is zero as it demands.
        let made = unsafe { syscall2(Sysno::io_setup, events as usize, &raw mut context as usize) };
        made.map(|_| AioContext(context)).map_err(errno)
    }
}

impl Drop for AioContext {
    fn drop(&mut self) {
        #[expect(unsafe_code, reason = "no library wraps io_destroy")]
        // SAFETY: a context made by io_setup and not used afterwards.
        let _ = unsafe { syscall1(Sysno::io_destroy, self.0 as usize) };
    }
}

/// io_submit(2): how many of the blocks, the first ones, were taken.
///
/// # Safety
/// The blocks live, and nobody touches the buffers that they name until their completion is reaped.
#[inline]
#[expect(unsafe_code, reason = "no library wraps io_submit")]
pub(super) unsafe fn io_submit(context: &AioContext, blocks: &mut [*mut Iocb]) -> Result<usize, Errno> {
    let (count, first) = (blocks.len(), blocks.as_mut_ptr() as usize);
    // SAFETY: so many pointers to control blocks that live, as the caller says.
    let taken = unsafe { syscall3(Sysno::io_submit, context.0 as usize, count, first) };
    taken.map_err(errno)
}

/// io_getevents(2): waits until `min` of `events` are filled, or the time is up. How many were.
#[inline]
pub(super) fn io_getevents(
    context: &AioContext,
    min: usize,
    events: &mut [IoEvent],
    most: Option<&libc::timespec>,
) -> Result<usize, Errno> {
    let most = most.map_or(std::ptr::null(), std::ptr::from_ref) as usize;
    let (room, first) = (events.len(), events.as_mut_ptr() as usize);
    #[expect(unsafe_code, reason = "no library wraps io_getevents")]
    // SAFETY: the kernel writes at most `room` events, and reads a time that outlives the call.
    let got = unsafe { syscall5(Sysno::io_getevents, context.0 as usize, min, room, first, most) };
    got.map_err(errno)
}

fn errno(errno: syscalls::Errno) -> Errno {
    Errno::from_raw_os_error(errno.into_raw())
}
