//! How one transfer reaches the kernel: one file a method behind one contract.
//!
//! The job loop is compiled once a method; there is no dynamic call an I/O.

mod io_uring;
mod libaio;
mod mapping_fault;
mod mmap;
mod null;
mod psync;
mod pvsync;
mod pvsync2;
mod range_sync;
mod ring;
mod sync;

use std::os::fd::BorrowedFd;
use std::time::Duration;

use rustix::io::Errno;

use super::buffers::Buffers;
use crate::record::Direction;

pub(super) use io_uring::IoUring;
pub(super) use libaio::Libaio;
pub(super) use mmap::Mmap;
pub(super) use null::Null;
pub(super) use psync::Psync;
pub(super) use pvsync::Pvsync;
pub(super) use pvsync2::Pvsync2;
pub(super) use range_sync::{RangesWritten, bytes_synced};
pub(super) use ring::{make as make_ring, probe as probe_io_uring, workers_note};
pub(super) use sync::Sync;

/// What a transfer does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Read,
    Write,
    /// BLKDISCARD of a block device.
    Trim,
    Fsync,
    Fdatasync,
    /// sync_file_range(2): the length says how much and how, see [`RangesWritten`].
    SyncRange,
}

impl Operation {
    /// Which way it moves data, if any.
    #[inline]
    pub(super) fn direction(self) -> Option<Direction> {
        match self {
            Operation::Read => Some(Direction::Read),
            Operation::Write => Some(Direction::Write),
            Operation::Trim => Some(Direction::Trim),
            Operation::Fsync | Operation::Fdatasync | Operation::SyncRange => None,
        }
    }
}

/// One transfer between a slot's buffer and a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Transfer<'f> {
    pub(super) slot: usize,
    pub(super) operation: Operation,
    /// Which of the instance's files, and the file itself.
    pub(super) number: usize,
    pub(super) file: BorrowedFd<'f>,
    pub(super) offset: u64,
    pub(super) length: u32,
}

/// A transfer that ended: bytes moved, or the errno.
#[derive(Clone, Copy, Debug)]
pub(super) struct Completion {
    pub(super) slot: usize,
    pub(super) result: Result<u32, Errno>,
}

/// A method whose transfers are done when the call returns.
pub(super) trait Synchronous {
    /// Makes one transfer: bytes moved, or the errno.
    fn transfer(&mut self, transfer: &Transfer<'_>, buffers: &mut Buffers) -> Result<u32, Errno>;
}

impl<M: Synchronous> Synchronous for &mut M {
    #[inline]
    fn transfer(&mut self, transfer: &Transfer<'_>, buffers: &mut Buffers) -> Result<u32, Errno> {
        (**self).transfer(transfer, buffers)
    }
}

/// A method with many transfers in flight. `queue` takes one, `submit` hands all queued ones to the kernel, `reap`
/// waits for at least `min` and takes at most `max` completions. An error here is the method's own; that of a
/// transfer is in its [`Completion`].
pub(super) trait Asynchronous {
    /// Operations it cannot have in flight: they are made with [`synchronous_other`], one at a time.
    const IN_PLACE: &'static [Operation];
    fn queue(&mut self, transfer: &Transfer<'_>, buffers: &mut Buffers) -> Result<(), Errno>;
    fn submit(&mut self) -> Result<(), Errno>;
    /// After `submit` failed: how many of those queued, the last ones, the kernel has not taken; `None`: all.
    fn refused(&self) -> Option<usize> {
        None
    }
    /// Says whether the kernel was entered; if not, all that it took had ended by the time that the last call returned.
    fn reap(&mut self, min: usize, max: usize, done: &mut Vec<Completion>) -> Result<bool, Errno>;
    /// Hands one transfer over, with nothing queued before it.
    fn submit_one(&mut self, transfer: &Transfer<'_>, buffers: &mut Buffers) -> Result<(), Errno>;
    /// Waits for one completion and takes it; and whether the kernel was entered, as [`Asynchronous::reap`] says.
    fn reap_one(&mut self) -> Result<(Completion, bool), Errno>;
    /// Has the alarm go off `after` now. It costs no completion any time: it stays set when one comes first, where a
    /// limit to each wait would be taken back then (17 µs of the latency in a virtual machine, which has no timer of
    /// its own).
    fn set_alarm(&mut self, after: Duration) -> Result<(), Errno>;
    /// Whether an alarm was set and was not seen to go off.
    fn alarm_is_set(&self) -> bool;
    /// Waits until there are completions, and takes them, or until the alarm goes off.
    fn reap_or_alarm(&mut self, done: &mut Vec<Completion>) -> Result<(), Errno>;
}

/// Instead of a slot: the alarm's.
const ALARM: u64 = u64::MAX;

/// What is done while the caller waits, besides reading and writing.
pub(super) fn synchronous_other(transfer: &Transfer<'_>) -> Result<u32, Errno> {
    match transfer.operation {
        Operation::Fsync => rustix::fs::fsync(transfer.file).map(|()| 0),
        Operation::Fdatasync => rustix::fs::fdatasync(transfer.file).map(|()| 0),
        Operation::Trim => discard(transfer).map(|()| transfer.length),
        Operation::SyncRange => range_sync::sync(transfer).map(|()| 0),
        Operation::Read | Operation::Write => Err(Errno::NOSYS),
    }
}

fn discard(transfer: &Transfer<'_>) -> Result<(), Errno> {
    use std::os::fd::AsRawFd;
    /// `_IO(0x12, 119)` of linux/fs.h.
    const BLKDISCARD: libc::c_ulong = 0x1277;
    let range = [transfer.offset, u64::from(transfer.length)];
    #[expect(unsafe_code, reason = "no library wraps BLKDISCARD")]
    // SAFETY: BLKDISCARD reads two u64 from the address, which outlives the call.
    let result = unsafe { libc::ioctl(transfer.file.as_raw_fd(), BLKDISCARD, range.as_ptr()) };
    if result == 0 { Ok(()) } else { Err(last_errno()) }
}

/// errno of the call that just failed.
fn last_errno() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)
}
