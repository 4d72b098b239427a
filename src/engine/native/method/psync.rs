//! pread(2) and pwrite(2).

use rustix::io::{Errno, pread, pwrite};

use super::{Completion, Method, Operation, Transfer, synchronous_other};
use crate::engine::native::buffers::Buffers;

/// At most one transfer, done when it is queued.
#[derive(Default)]
pub(in super::super) struct Psync {
    done: Option<Completion>,
}

impl Method for Psync {
    const ASYNCHRONOUS: bool = false;

    fn queue(&mut self, transfer: &Transfer<'_>, buffers: &mut Buffers) -> Result<(), Errno> {
        let buffer = buffers.slice(transfer.slot, transfer.length as usize);
        let result = match transfer.operation {
            Operation::Read => pread(transfer.file, &mut *buffer, transfer.offset).map(|n| n as u32),
            Operation::Write => pwrite(transfer.file, buffer, transfer.offset).map(|n| n as u32),
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
