//! preadv2(2) and pwritev2(2): as `pvsync`, and polled (`hipri`) or never waiting (`nowait`) where the job asks it.

use std::io::{IoSlice, IoSliceMut};

use rustix::io::{Errno, ReadWriteFlags, preadv2, pwritev2};

use super::{Operation, Synchronous, Transfer, synchronous_other};
use crate::engine::native::buffers::Buffers;
use crate::workload::{Job, MethodOptions};

/// Which flags the next call gets.
pub(in super::super) struct Pvsync2 {
    always: ReadWriteFlags,
    /// Percent of the calls that are polled besides.
    polled_percent: u64,
    random: u64,
}

impl Pvsync2 {
    /// As the options of `job` say.
    pub(in super::super) fn new(job: &Job) -> Pvsync2 {
        Pvsync2::with(job.method_options)
    }

    fn with(options: MethodOptions) -> Pvsync2 {
        let mut always = ReadWriteFlags::empty();
        always.set(ReadWriteFlags::NOWAIT, options.no_wait);
        let percent = if options.polled { u64::from(options.polled_percent) } else { 0 };
        always.set(ReadWriteFlags::HIPRI, percent >= 100);
        let polled_percent = if percent >= 100 { 0 } else { percent };
        Pvsync2 { always, polled_percent, random: 0x9e37_79b9_7f4a_7c15 }
    }

    #[inline]
    fn flags(&mut self) -> ReadWriteFlags {
        if self.polled_percent == 0 {
            return self.always;
        }
        // xorshift64 (Marsaglia 2003): shares are all that is asked of it.
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        if (self.random >> 32) % 100 < self.polled_percent {
            return self.always | ReadWriteFlags::HIPRI;
        }
        self.always
    }
}

impl Synchronous for Pvsync2 {
    #[inline]
    fn transfer(&mut self, transfer: &Transfer<'_>, buffers: &mut Buffers) -> Result<u32, Errno> {
        let buffer = buffers.slice(transfer.slot, transfer.length as usize);
        let (file, offset, flags) = (transfer.file, transfer.offset, self.flags());
        match transfer.operation {
            Operation::Read => preadv2(file, &mut [IoSliceMut::new(buffer)], offset, flags).map(|n| n as u32),
            Operation::Write => pwritev2(file, &[IoSlice::new(buffer)], offset, flags).map(|n| n as u32),
            _ => synchronous_other(transfer),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn polled(options: MethodOptions) -> usize {
        let mut method = Pvsync2::with(options);
        (0..10_000).filter(|_| method.flags().contains(ReadWriteFlags::HIPRI)).count()
    }

    #[test]
    fn so_many_calls_are_polled() {
        let options = MethodOptions { polled: true, polled_percent: 100, ..MethodOptions::default() };
        assert_eq!(polled(options), 10_000);
        let share = polled(MethodOptions { polled_percent: 30, ..options });
        assert!((2700..3300).contains(&share), "{share}");
        assert_eq!(polled(MethodOptions { polled_percent: 0, ..options }), 0);
        assert_eq!(polled(MethodOptions { polled: false, ..options }), 0);
    }

    #[test]
    fn a_call_that_must_not_wait_says_so() {
        let options = MethodOptions { no_wait: true, polled_percent: 100, ..MethodOptions::default() };
        assert_eq!(Pvsync2::with(options).flags(), ReadWriteFlags::NOWAIT);
    }
}
