//! preadv(2) and pwritev(2), one vector a transfer as in fio's `pvsync`.

use std::io::{IoSlice, IoSliceMut};

use rustix::io::{Errno, preadv, pwritev};

use super::{Operation, Synchronous, Transfer, synchronous_other};
use crate::engine::native::buffers::Buffers;

/// Has no state.
pub(in super::super) struct Pvsync;

impl Synchronous for Pvsync {
    #[inline]
    fn transfer(&mut self, transfer: &Transfer<'_>, buffers: &mut Buffers) -> Result<u32, Errno> {
        let buffer = buffers.slice(transfer.slot, transfer.length as usize);
        let (file, offset) = (transfer.file, transfer.offset);
        match transfer.operation {
            Operation::Read => preadv(file, &mut [IoSliceMut::new(buffer)], offset).map(|n| n as u32),
            Operation::Write => pwritev(file, &[IoSlice::new(buffer)], offset).map(|n| n as u32),
            _ => synchronous_other(transfer),
        }
    }
}
