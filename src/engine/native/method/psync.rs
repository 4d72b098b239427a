//! pread(2) and pwrite(2).

use rustix::io::{Errno, pread, pwrite};

use super::{Operation, Synchronous, Transfer, synchronous_other};
use crate::engine::native::buffers::Buffers;

/// Has no state.
pub(in super::super) struct Psync;

impl Synchronous for Psync {
    #[inline]
    fn transfer(&mut self, transfer: &Transfer<'_>, buffers: &mut Buffers) -> Result<u32, Errno> {
        let buffer = buffers.slice(transfer.slot, transfer.length as usize);
        match transfer.operation {
            Operation::Read => pread(transfer.file, &mut *buffer, transfer.offset).map(|n| n as u32),
            Operation::Write => pwrite(transfer.file, buffer, transfer.offset).map(|n| n as u32),
            _ => synchronous_other(transfer),
        }
    }
}
