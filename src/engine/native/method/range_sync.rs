//! sync_file_range(2): when it is due, and of what.
//!
//! Enters: writes as they are planned. Leaves: the span from the first to the last byte written to a file since it was
//! synced, as fio has it, packed into the offset and length of a transfer.

use std::os::fd::AsRawFd;

use rustix::io::Errno;

use super::{Operation, Transfer, last_errno};
use crate::workload::RangeSync;

/// Spans are whole pages of this size: the kernel writes no less, and a length of 32 bits then reaches 2 TiB.
const PAGE: u64 = 4096;
/// Bits of a length that are flags of sync_file_range(2); the pages are above them.
const FLAG_BITS: u32 = 3;

/// What was written to each file of an instance since it was synced.
pub(in super::super) struct RangesWritten {
    every: u32,
    flags: u32,
    writes: u32,
    /// First byte and end; nothing where both are 0.
    spans: Vec<(u64, u64)>,
}

impl RangesWritten {
    /// Nothing yet.
    pub(in super::super) fn new(sync: RangeSync, files: usize) -> RangesWritten {
        let flag = |on: bool, flag: libc::c_uint| if on { flag } else { 0 };
        let flags = flag(sync.wait_before, libc::SYNC_FILE_RANGE_WAIT_BEFORE)
            | flag(sync.write, libc::SYNC_FILE_RANGE_WRITE)
            | flag(sync.wait_after, libc::SYNC_FILE_RANGE_WAIT_AFTER);
        RangesWritten { every: sync.every.max(1), flags, writes: 0, spans: vec![(0, 0); files] }
    }

    /// Notes a write; the sync that it makes due, if any.
    pub(in super::super) fn note(&mut self, file: usize, offset: u64, length: u64) -> Option<Operation> {
        let span = &mut self.spans[file];
        let first = if span.1 == 0 { offset } else { span.0.min(offset) };
        *span = (first, span.1.max(offset + length));
        self.writes += 1;
        if self.writes < self.every {
            return None;
        }
        self.writes = 0;
        Some(Operation::SyncRange)
    }

    /// The file is synced: offset and length of the transfer that does it. As in fio any sync begins the span anew.
    pub(in super::super) fn take(&mut self, file: usize, operation: Operation) -> (u64, u32) {
        let (first, end) = std::mem::take(&mut self.spans[file]);
        if operation != Operation::SyncRange || end == 0 {
            return (0, 0);
        }
        let first = first / PAGE * PAGE;
        // What is more is synced to the end of the file: 0 pages.
        let pages = u32::try_from((end - first).div_ceil(PAGE)).ok().filter(|n| *n < 1 << (32 - FLAG_BITS));
        (first, (pages.unwrap_or(0) << FLAG_BITS) | self.flags)
    }
}

/// Bytes that the transfer of this `length` syncs; 0: to the end of the file.
pub(in super::super) fn bytes_synced(length: u32) -> u64 {
    u64::from(length >> FLAG_BITS) * PAGE
}

/// Makes the transfer that [`RangesWritten::take`] gave. A file that nothing was written to needs none.
pub(super) fn sync(transfer: &Transfer<'_>) -> Result<(), Errno> {
    if transfer.length == 0 {
        return Ok(());
    }
    let flags = transfer.length & ((1 << FLAG_BITS) - 1);
    let bytes = bytes_synced(transfer.length);
    #[expect(unsafe_code, reason = "rustix has no sync_file_range")]
    // SAFETY: it takes no addresses.
    let result = unsafe {
        libc::sync_file_range(transfer.file.as_raw_fd(), transfer.offset as i64, bytes as i64, flags)
    };
    if result == 0 { Ok(()) } else { Err(last_errno()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    const SYNC: RangeSync = RangeSync { wait_before: true, write: true, wait_after: false, every: 3 };

    #[test]
    fn the_span_is_that_of_the_writes_since_the_last_sync() {
        let mut ranges = RangesWritten::new(SYNC, 2);
        assert_eq!(ranges.note(0, 40_960, 4096), None);
        assert_eq!(ranges.note(1, 0, 512), None);
        assert_eq!(ranges.note(0, 8192, 4096), Some(Operation::SyncRange));
        // Pages 2 to 10 inclusive; flags 1 (wait_before) and 2 (write).
        assert_eq!(ranges.take(0, Operation::SyncRange), (8192, (9 << 3) | 3));
        assert_eq!(ranges.take(0, Operation::SyncRange), (0, 0));
        assert_eq!(ranges.take(1, Operation::Fsync), (0, 0));
        assert_eq!(ranges.take(1, Operation::SyncRange), (0, 0));
        ranges.note(1, 1000, 512);
        ranges.note(1, 5 << 42, 512);
        assert_eq!(ranges.take(1, Operation::SyncRange), (0, 3));
    }

    #[test]
    fn the_kernel_takes_it() {
        let file = tempfile::tempfile().unwrap();
        let mut ranges = RangesWritten::new(SYNC, 1);
        ranges.note(0, 0, 8192);
        file.set_len(8192).unwrap();
        let (offset, length) = ranges.take(0, Operation::SyncRange);
        let transfer = Transfer {
            slot: 0,
            number: 0,
            operation: Operation::SyncRange,
            file: file.as_fd(),
            offset,
            length,
        };
        assert_eq!(sync(&transfer), Ok(()));
        let (pipe, _other) = rustix::pipe::pipe().unwrap();
        assert_eq!(sync(&Transfer { file: pipe.as_fd(), ..transfer }), Err(Errno::SPIPE));
        assert_eq!(sync(&Transfer { length: 0, ..transfer }), Ok(()));
    }
}
