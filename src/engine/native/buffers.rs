//! Page-aligned I/O buffers, one a slot, and what is written from them.
//!
//! Enters: a job and its depth. Leaves: addresses and slices of slots, made ready to be written. They are as large as
//! the largest block and no larger, and touched before the first transfer, so that no page fault is measured.

use super::buffer_memory::Mapping;
use super::content::{Content, ContentRule};
use super::failure::Failure;
use crate::workload::Job;

const PAGE: usize = 4096;
/// Blocks smaller than a page share one, as with fio; direct I/O needs no more than this.
const SECTOR: usize = 512;

/// One aligned buffer for each I/O that can be in flight.
pub(super) struct Buffers {
    base: *mut u8,
    stride: usize,
    count: usize,
    content: Content,
    /// Where they lie.
    _memory: Mapping,
}

impl Buffers {
    /// `count` buffers for the blocks of `job`, filled once where it writes.
    ///
    /// # Errors
    /// [`Failure::Setting`] where the memory that the job asks for is not to be had.
    pub(super) fn for_job(job: &Job, count: usize, seed: u64) -> Result<Buffers, Failure> {
        let stride = stride(job.max_block() as usize);
        let memory = Mapping::new(job, stride * count)?;
        let mut buffers = Buffers::over(memory, stride, count, ContentRule::of(job), seed);
        if job.pattern.mix.writes() {
            buffers.fill();
        }
        Ok(buffers)
    }

    /// Looks whether the memory of [`Buffers::for_job`] is to be had, without taking it.
    ///
    /// # Errors
    /// As [`Buffers::for_job`].
    pub(super) fn check(job: &Job, count: usize) -> Result<(), Failure> {
        super::buffer_memory::check(job, stride(job.max_block() as usize).saturating_mul(count))
    }

    /// `count` buffers of at least `bytes` each, all filled once as `fill` says.
    #[cfg(test)]
    pub(super) fn new(
        count: usize,
        bytes: usize,
        fill: crate::workload::BufferFill,
        seed: u64,
    ) -> std::io::Result<Buffers> {
        let stride = stride(bytes);
        let memory = Mapping::plain(stride * count)?;
        let mut buffers = Buffers::over(memory, stride, count, ContentRule::plain(fill), seed);
        buffers.fill();
        Ok(buffers)
    }

    fn over(memory: Mapping, stride: usize, count: usize, rule: ContentRule, seed: u64) -> Buffers {
        Buffers { base: memory.base(), stride, count, content: Content::new(rule, seed), _memory: memory }
    }

    fn fill(&mut self) {
        for slot in 0..self.count {
            let (content, buffer) = self.parts(slot, self.stride);
            content.begin(buffer);
        }
    }

    /// Where the buffer of `slot` begins, for system calls that take addresses.
    #[inline]
    pub(super) fn address(&self, slot: usize) -> *mut u8 {
        debug_assert!(slot < self.count);
        self.base.wrapping_add(slot * self.stride)
    }

    /// The first `length` bytes of the buffer of `slot`.
    #[inline]
    pub(super) fn slice(&mut self, slot: usize, length: usize) -> &mut [u8] {
        self.parts(slot, length).1
    }

    #[inline]
    fn parts(&mut self, slot: usize, length: usize) -> (&mut Content, &mut [u8]) {
        assert!(slot < self.count && length <= self.stride);
        #[expect(unsafe_code, reason = "slices of a mapping")]
        // SAFETY: within the mapping by the assertion (it has count × stride bytes); &mut self keeps it the only
        // slice, and the kernel writes to a slot only while a transfer of that slot is in flight, when nobody asks
        // for its slice.
        let buffer = unsafe { std::slice::from_raw_parts_mut(self.address(slot), length) };
        (&mut self.content, buffer)
    }

    /// Whether buffers change from write to write, so that [`Buffers::prepare_write`] has something to do.
    #[inline]
    pub(super) fn change(&self) -> bool {
        self.content.changes()
    }

    /// Makes the buffer ready to be written to `offset`.
    #[inline]
    pub(super) fn prepare_write(&mut self, slot: usize, length: u32, offset: u64) {
        let (content, buffer) = self.parts(slot, length as usize);
        content.again(buffer, offset);
    }
}

/// Bytes from one buffer to the next.
fn stride(bytes: usize) -> usize {
    bytes.max(1).next_multiple_of(if bytes < PAGE { SECTOR } else { PAGE })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::BufferFill;

    #[test]
    fn slots_are_aligned_and_do_not_overlap() {
        for (bytes, apart) in [(4096, 4096), (1000, 1024), (512, 512), (5000, 8192), (1 << 20, 1 << 20)] {
            let mut buffers = Buffers::new(3, bytes, BufferFill::Zero, 1).unwrap();
            assert_eq!(buffers.address(0) as usize % 4096, 0);
            assert_eq!(buffers.address(2) as usize - buffers.address(1) as usize, apart);
            buffers.slice(1, bytes).fill(7);
            assert!(buffers.slice(0, bytes).iter().all(|byte| *byte == 0));
            assert!(buffers.slice(2, bytes).iter().all(|byte| *byte == 0));
        }
    }

    #[test]
    fn writes_are_prepared_in_their_own_slot() {
        let mut buffers = Buffers::new(2, 4096, BufferFill::Scrambled, 1).unwrap();
        let other = buffers.slice(0, 4096).to_vec();
        let before = buffers.slice(1, 4096).to_vec();
        assert!(buffers.change());
        buffers.prepare_write(1, 4096, 8192);
        assert_eq!(buffers.slice(0, 4096), other);
        assert_ne!(buffers.slice(1, 4096), before);
        assert!(buffers.slice(1, 512).chunks(64).any(|line| line[..8] == 8192_u64.to_le_bytes()));
        let mut zero = Buffers::new(1, 4096, BufferFill::Zero, 1).unwrap();
        assert!(!zero.change() && zero.slice(0, 4096).iter().all(|byte| *byte == 0));
    }
}
