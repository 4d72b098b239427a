//! Page-aligned I/O buffers, one a slot, and what is written from them.

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

use crate::workload::BufferFill;

/// One aligned buffer for each I/O that can be in flight.
pub(super) struct Buffers {
    base: *mut u8,
    stride: usize,
    count: usize,
    fill: BufferFill,
    random: u64,
}

impl Buffers {
    /// `count` buffers of at least `bytes` each, all filled once as `fill` says.
    pub(super) fn new(count: usize, bytes: usize, fill: BufferFill, seed: u64) -> std::io::Result<Buffers> {
        let stride = bytes.max(1).next_multiple_of(4096);
        let total = stride * count;
        #[expect(unsafe_code, reason = "anonymous memory with page alignment comes from mmap")]
        // SAFETY: a new private anonymous mapping at an address of the kernel's choice overlaps nothing.
        let base = unsafe {
            mmap_anonymous(std::ptr::null_mut(), total, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE)
        }?
        .cast::<u8>();
        let mut buffers = Buffers { base, stride, count, fill, random: seed | 1 };
        for slot in 0..count {
            let bytes = buffers.stride;
            match fill {
                // Touched all the same: a page fault belongs to the set-up, not to the first I/O.
                BufferFill::Zero => buffers.slice(slot, bytes).fill(0),
                _ => buffers.randomize(slot, bytes),
            }
        }
        Ok(buffers)
    }

    /// Where the buffer of `slot` begins, for system calls that take addresses.
    pub(super) fn address(&self, slot: usize) -> *mut u8 {
        debug_assert!(slot < self.count);
        self.base.wrapping_add(slot * self.stride)
    }

    /// The first `length` bytes of the buffer of `slot`.
    pub(super) fn slice(&mut self, slot: usize, length: usize) -> &mut [u8] {
        assert!(slot < self.count && length <= self.stride);
        #[expect(unsafe_code, reason = "slices of the mapping made in new")]
        // SAFETY: within the mapping by the assertion; &mut self keeps it the only slice, and the kernel
        // writes to a slot only while a transfer of that slot is in flight, when nobody asks for its slice.
        unsafe {
            std::slice::from_raw_parts_mut(self.address(slot), length)
        }
    }

    /// Whether buffers change from write to write, so that [`Buffers::prepare_write`] has something to do.
    #[inline]
    pub(super) fn change(&self) -> bool {
        matches!(self.fill, BufferFill::Refill | BufferFill::Scrambled)
    }

    /// Makes the buffer ready to be written to `offset`.
    pub(super) fn prepare_write(&mut self, slot: usize, length: u32, offset: u64) {
        let length = length as usize;
        match self.fill {
            BufferFill::Zero | BufferFill::Fixed => {}
            BufferFill::Refill => self.randomize(slot, length),
            BufferFill::Scrambled => {
                // fio's scramble_buffers: a few changed words a sector defeat deduplication at little cost.
                self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let stamp = self.random;
                for (sector, bytes) in self.slice(slot, length).chunks_exact_mut(512).enumerate() {
                    bytes[..8].copy_from_slice(&(offset + 512 * sector as u64).to_le_bytes());
                    bytes[504..].copy_from_slice(&stamp.to_le_bytes());
                }
            }
        }
    }

    fn randomize(&mut self, slot: usize, length: usize) {
        let mut state = self.random;
        for word in self.slice(slot, length).chunks_mut(8) {
            // xorshift64: incompressible is all that is asked of it.
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            word.copy_from_slice(&state.to_le_bytes()[..word.len()]);
        }
        self.random = state;
    }
}

impl Drop for Buffers {
    fn drop(&mut self) {
        #[expect(unsafe_code, reason = "gives back the mapping made in new")]
        // SAFETY: exactly the mapping made in new; every transfer was reaped or its ring was closed before.
        let _ = unsafe { munmap(self.base.cast(), self.stride * self.count) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fills_are_what_they_say() {
        let mut zero = Buffers::new(2, 4096, BufferFill::Zero, 1).unwrap();
        zero.prepare_write(1, 4096, 0);
        assert!(zero.slice(1, 4096).iter().all(|b| *b == 0));

        let mut fixed = Buffers::new(1, 4096, BufferFill::Fixed, 1).unwrap();
        let before = fixed.slice(0, 4096).to_vec();
        fixed.prepare_write(0, 4096, 8192);
        assert_eq!(before, fixed.slice(0, 4096));

        let mut scrambled = Buffers::new(1, 4096, BufferFill::Scrambled, 1).unwrap();
        let before = scrambled.slice(0, 4096).to_vec();
        scrambled.prepare_write(0, 4096, 8192);
        let changed = before.iter().zip(scrambled.slice(0, 4096).iter()).filter(|(a, b)| a != b).count();
        assert!((1..=16 * 8).contains(&changed), "{changed}");

        let mut refill = Buffers::new(1, 1000, BufferFill::Refill, 1).unwrap();
        let before = refill.slice(0, 1000).to_vec();
        refill.prepare_write(0, 1000, 0);
        assert_ne!(before, refill.slice(0, 1000));
        assert_eq!(refill.address(0) as usize % 4096, 0);
    }
}
