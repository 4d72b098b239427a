//! io_uring_enter(2) in a loop: what is pushed is handed over at once; when the queue is full, what has ended is taken from the
//! shared memory. The clock is read after each call of the kernel, as it must be by whoever tells latencies.
//!
//! Enters: offsets. Leaves: nothing but how it went. It waits only where the kernel has not ended enough transfers before.

use std::fs::File;
use std::hint::black_box;
use std::io::{Error, ErrorKind};
use std::os::fd::AsRawFd;

use io_uring::squeue::{Entry, Flags};
use io_uring::{IoUring, opcode, types};

use crate::engine::native::clock::Clock;
use crate::engine::native::method::make_ring;
use crate::workload::{Job, MethodOptions};

/// A ring with a buffer a slot, as the job asks.
pub(super) struct Ring {
    ring: IoUring,
    buffers: Vec<libc::iovec>,
    /// What the buffers are in.
    _memory: Vec<u8>,
    /// Transfers handed over by one call.
    batch: usize,
    block: u32,
    reads: bool,
    fixed_buffers: bool,
    file: types::Fd,
    flags: Flags,
    /// Used last. Two transfers share a buffer where they end out of order: nobody looks at it.
    slot: usize,
    in_flight: usize,
    clock: Clock,
}

impl Ring {
    pub(super) fn new(job: &Job, file: &File, reads: bool, clock: Clock) -> Result<Ring, Error> {
        let (depth, block) = (job.depth.iodepth.max(1) as usize, job.max_block() as usize);
        let mut memory = vec![0x5a_u8; (depth + 1) * block + 4096];
        let skew = memory.as_ptr().align_offset(4096);
        let of_slot = |slot: &mut [u8]| libc::iovec { iov_base: slot.as_mut_ptr().cast(), iov_len: block };
        let buffers: Vec<_> = memory[skew..].chunks_exact_mut(block).take(depth).map(of_slot).collect();
        let batch = (job.depth.submit as usize).clamp(1, depth);
        // As the engine's: it must not be faster for what it asks of the kernel.
        let ring = make_ring(MethodOptions::default(), depth as u32, batch > 1)?;
        let options = job.method_options;
        if options.fixed_buffers {
            #[expect(unsafe_code, reason = "the kernel keeps the addresses")]
            // SAFETY: `memory` lives as long as the ring, which is dropped before it.
            unsafe { ring.submitter().register_buffers(&buffers) }?;
        }
        let mut flags = Flags::empty();
        let mut number = types::Fd(file.as_raw_fd());
        if options.registered_files {
            ring.submitter().register_files(&[file.as_raw_fd()])?;
            flags = Flags::FIXED_FILE;
            number = types::Fd(0);
        }
        Ok(Ring {
            ring,
            buffers,
            _memory: memory,
            batch,
            block: block as u32,
            reads,
            fixed_buffers: options.fixed_buffers,
            file: number,
            flags,
            slot: 0,
            in_flight: 0,
            clock,
        })
    }

    /// Transfers handed over by one call.
    pub(super) fn batch(&self) -> usize {
        self.batch
    }

    /// Hands over a block at each of at most `batch` offsets, makes room for the next batch, and says how many bytes the shortest
    /// of those moved that have ended.
    pub(super) fn transfer(&mut self, offsets: impl Iterator<Item = u64>) -> Result<u32, Error> {
        for offset in offsets {
            let entry = self.entry(offset);
            #[expect(unsafe_code, reason = "the ring reads and writes memory by address")]
            // SAFETY: an entry points to a slot's buffer, of which there are at least as many as transfers on their way.
            unsafe { self.ring.submission().push(&entry) }
                .map_err(|_| Error::from_raw_os_error(libc::EBUSY))?;
            self.in_flight += 1;
        }
        self.ring.submit()?;
        black_box(self.clock.now_ns());
        let room = self.buffers.len() - self.batch;
        if self.in_flight > room { self.reap(self.in_flight - room) } else { Ok(self.block) }
    }

    /// Waits for all that is in flight.
    pub(super) fn finish(&mut self) -> Result<u32, Error> {
        self.reap(self.in_flight)
    }

    fn reap(&mut self, count: usize) -> Result<u32, Error> {
        let (left_in_flight, mut shortest) = (self.in_flight - count, self.block);
        loop {
            for completion in self.ring.completion().take(self.in_flight - left_in_flight) {
                self.in_flight -= 1;
                let moved = completion.result();
                shortest = shortest.min(u32::try_from(moved).map_err(|_| Error::from_raw_os_error(-moved))?);
            }
            if self.in_flight == left_in_flight {
                return Ok(shortest);
            }
            self.ring.submit_and_wait(self.in_flight - left_in_flight)?;
            black_box(self.clock.now_ns());
        }
    }

    fn entry(&mut self, offset: u64) -> Entry {
        self.slot = (self.slot + 1) % self.buffers.len();
        let (address, index) = (self.buffers[self.slot].iov_base.cast::<u8>(), self.slot as u16);
        let (file, length) = (self.file, self.block);
        let entry = match (self.reads, self.fixed_buffers) {
            (true, true) => opcode::ReadFixed::new(file, address, length, index).offset(offset).build(),
            (false, true) => opcode::WriteFixed::new(file, address, length, index).offset(offset).build(),
            (true, false) => opcode::Read::new(file, address, length).offset(offset).build(),
            (false, false) => opcode::Write::new(file, address, length).offset(offset).build(),
        };
        entry.flags(self.flags)
    }
}

impl Drop for Ring {
    /// After a failure, too: the kernel writes to the buffers until the last transfer has ended.
    fn drop(&mut self) {
        while self.in_flight > 0 {
            match self.ring.submit_and_wait(1) {
                Err(error) if error.kind() != ErrorKind::Interrupted => return,
                _ => self.in_flight = self.in_flight.saturating_sub(self.ring.completion().count()),
            }
        }
    }
}
