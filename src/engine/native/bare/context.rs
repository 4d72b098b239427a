//! io_submit(2) and io_getevents(2) in a loop: a batch is handed over by one call, and another waits for one when the queue is
//! full. The clock is read after each, as it must be by whoever tells latencies.
//!
//! Enters: offsets. Leaves: nothing but how it went.

use std::fs::File;
use std::hint::black_box;
use std::io::Error;
use std::os::fd::AsRawFd;

use crate::engine::native::aio_abi::{
    AioContext, IOCB_CMD_PREAD, IOCB_CMD_PWRITE, IoEvent, Iocb, io_getevents, io_submit,
};
use crate::engine::native::clock::Clock;
use crate::workload::Job;

/// A context with a buffer a slot, as the job asks.
pub(super) struct Context {
    context: AioContext,
    blocks: Vec<Iocb>,
    addresses: Vec<*mut Iocb>,
    events: Vec<IoEvent>,
    /// What the buffers are in.
    _memory: Vec<u8>,
    batch: usize,
    length: u32,
    /// Used last. Two transfers share a buffer where they end out of order: nobody looks at it.
    slot: usize,
    in_flight: usize,
    clock: Clock,
}

impl Context {
    pub(super) fn new(job: &Job, file: &File, reads: bool, clock: Clock) -> Result<Context, Error> {
        let (depth, length) = (job.depth.iodepth.max(1) as usize, job.max_block() as usize);
        let mut memory = vec![0x5a_u8; (depth + 1) * length + 4096];
        let skew = memory.as_ptr().align_offset(4096);
        let of_slot = |slot: &mut [u8]| Iocb {
            opcode: if reads { IOCB_CMD_PREAD } else { IOCB_CMD_PWRITE },
            file: file.as_raw_fd() as u32,
            buffer: slot.as_mut_ptr() as u64,
            length: length as u64,
            ..Iocb::default()
        };
        let blocks: Vec<_> = memory[skew..].chunks_exact_mut(length).take(depth).map(of_slot).collect();
        let batch = (job.depth.submit as usize).clamp(1, depth);
        Ok(Context {
            context: AioContext::new(job.depth.iodepth.max(1))?,
            blocks,
            addresses: Vec::with_capacity(batch),
            events: vec![IoEvent::default(); batch],
            _memory: memory,
            batch,
            length: length as u32,
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
        self.addresses.clear();
        for offset in offsets {
            self.slot = (self.slot + 1) % self.blocks.len();
            let block = &mut self.blocks[self.slot];
            block.offset = offset as i64;
            self.addresses.push(std::ptr::from_mut(block));
        }
        let mut submitted = 0;
        while submitted < self.addresses.len() {
            let left = &mut self.addresses[submitted..];
            #[expect(unsafe_code, reason = "the kernel writes to buffers behind its back")]
            // SAFETY: the control blocks live as long as this does, with the buffers they name.
            let taken = unsafe { io_submit(&self.context, left) };
            submitted += taken?;
        }
        black_box(self.clock.now_ns());
        self.in_flight += submitted;
        let room = self.blocks.len() - self.batch;
        if self.in_flight > room { self.reap(self.in_flight - room) } else { Ok(self.length) }
    }

    /// Waits for all that is in flight.
    pub(super) fn finish(&mut self) -> Result<u32, Error> {
        self.reap(self.in_flight)
    }

    fn reap(&mut self, count: usize) -> Result<u32, Error> {
        let (mut left, mut shortest) = (count, self.length);
        while left > 0 {
            let missing = left.min(self.events.len());
            let got = io_getevents(&self.context, missing, &mut self.events[..missing], None)?;
            black_box(self.clock.now_ns());
            for event in &self.events[..got] {
                let moved = u32::try_from(event.result)
                    .map_err(|_| Error::from_raw_os_error(event.result.unsigned_abs() as i32))?;
                shortest = shortest.min(moved);
            }
            left -= got;
        }
        self.in_flight -= count;
        Ok(shortest)
    }
}
