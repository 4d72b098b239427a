//! lseek(2), then read(2) or write(2), as fio's `sync`: the seek is left out when the file is already there.

use std::os::fd::AsRawFd;

use rustix::fs::{SeekFrom, seek};
use rustix::io::{Errno, read, write};

use super::{Operation, Synchronous, Transfer, synchronous_other};
use crate::engine::native::buffers::Buffers;

/// Remembers where the last transfer ended.
#[derive(Default)]
pub(in super::super) struct Sync {
    /// File and position after the last transfer.
    at: Option<(i32, u64)>,
}

impl Synchronous for Sync {
    fn transfer(&mut self, transfer: &Transfer<'_>, buffers: &mut Buffers) -> Result<u32, Errno> {
        if !matches!(transfer.operation, Operation::Read | Operation::Write) {
            return synchronous_other(transfer);
        }
        let place = (transfer.file.as_raw_fd(), transfer.offset);
        if self.at != Some(place) {
            seek(transfer.file, SeekFrom::Start(transfer.offset))?;
        }
        self.at = None;
        let buffer = buffers.slice(transfer.slot, transfer.length as usize);
        let moved = match transfer.operation {
            Operation::Read => read(transfer.file, &mut *buffer)?,
            _ => write(transfer.file, buffer)?,
        };
        self.at = Some((place.0, place.1 + moved as u64));
        Ok(moved as u32)
    }
}
