//! Memory that begins at a page, straight from the kernel.
//!
//! Enters: a length. Leaves: zeroed bytes, given back when dropped. It must not know what they are for.

use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

/// Bytes of a page on every machine that assay measures with these probes; larger pages are whole multiples.
pub(super) const PAGE: usize = 4096;

/// Anonymous memory of its own.
pub(super) struct Memory {
    start: NonNull<u8>,
    length: usize,
}

#[expect(unsafe_code, reason = "the memory belongs to this value alone")]
// SAFETY: as with a `Box<[u8]>`: nobody else has the address.
unsafe impl Send for Memory {}

impl Memory {
    /// Untouched memory of `length` bytes, above 0.
    ///
    /// # Errors
    /// ENOMEM.
    pub(super) fn untouched(length: usize) -> std::io::Result<Memory> {
        #[expect(unsafe_code, reason = "the only way to memory without the allocator's pages")]
        // SAFETY: a new private mapping at an address that the kernel chooses touches no other memory.
        let start = unsafe {
            let access = ProtFlags::READ | ProtFlags::WRITE;
            mmap_anonymous(std::ptr::null_mut(), length, access, MapFlags::PRIVATE)
        }?;
        let start = NonNull::new(start.cast()).ok_or(std::io::ErrorKind::OutOfMemory)?;
        Ok(Memory { start, length })
    }

    /// The same, whose faults bring one page each.
    ///
    /// # Errors
    /// ENOMEM.
    pub(super) fn of_small_pages(length: usize) -> std::io::Result<Memory> {
        let memory = Memory::untouched(length)?;
        #[expect(unsafe_code, reason = "advice is given by address")]
        // SAFETY: the range is the mapping's own, and this advice changes no contents.
        let advised = unsafe { madvise(memory.start.as_ptr().cast(), length, Advice::LinuxNoHugepage) };
        match advised {
            // A kernel without huge pages does not know the advice, and needs none.
            Ok(()) | Err(rustix::io::Errno::INVAL) => Ok(memory),
            Err(error) => Err(error.into()),
        }
    }

    /// The same with contents that do not compress, every page in place.
    ///
    /// # Errors
    /// ENOMEM.
    pub(super) fn filled(length: usize, seed: u64) -> std::io::Result<Memory> {
        let mut memory = Memory::untouched(length)?;
        super::random::Random(seed).fill(&mut memory);
        Ok(memory)
    }
}

impl Deref for Memory {
    type Target = [u8];

    #[expect(unsafe_code, reason = "memory by address")]
    fn deref(&self) -> &[u8] {
        // SAFETY: `length` bytes were mapped there, readable and zeroed, and stay until `drop`.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.length) }
    }
}

impl DerefMut for Memory {
    #[expect(unsafe_code, reason = "memory by address")]
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`, writable, and borrowed once.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.length) }
    }
}

impl Drop for Memory {
    #[expect(unsafe_code, reason = "memory by address")]
    fn drop(&mut self) {
        // SAFETY: the whole mapping, which nobody can reach any more. A failure leaves it to the end of the process.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.length) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_begins_at_a_page_and_is_zero_until_it_is_filled() {
        let mut memory = Memory::of_small_pages(3 * PAGE).unwrap();
        assert_eq!((memory.len(), memory.as_ptr() as usize % PAGE), (3 * PAGE, 0));
        assert!(memory.iter().all(|byte| *byte == 0));
        memory[2 * PAGE] = 7;
        assert_eq!(memory[2 * PAGE], 7);
        let filled = Memory::filled(PAGE, 1).unwrap();
        assert!(filled.iter().filter(|byte| **byte == 0).count() < PAGE / 16);
    }
}
