//! lseek(2), then read(2) or write(2), as fio's `sync`: the seek is left out when the file is already there.

use std::os::fd::AsRawFd;

use rustix::fs::{SeekFrom, seek};
use rustix::io::{Errno, read, write};

use super::{Completion, Method, Operation, Transfer, synchronous_other};
use crate::engine::native::buffers::Buffers;

/// At most one transfer, done when it is queued.
#[derive(Default)]
pub(in super::super) struct Sync {
    done: Option<Completion>,
    /// File and position after the last transfer.
    at: Option<(i32, u64)>,
}

impl Method for Sync {
    const ASYNCHRONOUS: bool = false;

    fn queue(&mut self, transfer: &Transfer<'_>, buffers: &mut Buffers) -> Result<(), Errno> {
        let result = match transfer.operation {
            Operation::Read | Operation::Write => self.transfer(transfer, buffers),
            _ => synchronous_other(transfer),
        };
        self.done = Some(Completion { slot: transfer.slot, result });
        Ok(())
    }

    fn submit(&mut self) -> Result<(), Errno> {
        Ok(())
    }

    fn reap(&mut self, _min: usize, _max: usize, done: &mut Vec<Completion>) -> Result<(), Errno> {
        done.extend(self.done.take());
        Ok(())
    }
}

impl Sync {
    fn transfer(&mut self, transfer: &Transfer<'_>, buffers: &mut Buffers) -> Result<u32, Errno> {
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
