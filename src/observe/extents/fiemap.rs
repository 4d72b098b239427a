//! The extents of an open file, as its filesystem tells them (FS_IOC_FIEMAP, Documentation/filesystems/fiemap.rst).

use std::fs::File;

use rustix::io::Errno;
use rustix::ioctl::{Opcode, Updater, ioctl};

use super::arrangement::Extent;

/// `_IOWR('f', 11, struct fiemap)`, the same number on every architecture with the common ioctl encoding.
const FS_IOC_FIEMAP: Opcode = 0xc020_660b;
/// Write back first, so that delayed allocation has taken place.
const FLAG_SYNC: u32 = 1;
/// The last extent of the file.
const LAST: u32 = 1;
/// The place is not known, or the data are not on the device yet (`DELALLOC` comes with it).
const UNKNOWN: u32 = 2;
/// The length on the device is another one.
const ENCODED: u32 = 8;
/// The data lie inside a block of metadata.
const INLINE: u32 = 0x200;
/// Extents that are asked for at once.
const BATCH: usize = 512;

/// `struct fiemap` with room for the extents that follow it.
#[repr(C)]
#[derive(Clone)]
struct Fiemap {
    start: u64,
    length: u64,
    flags: u32,
    mapped: u32,
    count: u32,
    reserved: u32,
    extents: [FiemapExtent; BATCH],
}

/// `struct fiemap_extent`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct FiemapExtent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved64: [u64; 2],
    flags: u32,
    reserved: [u32; 3],
}

/// What was told of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Told {
    /// Extents with a place of their own on the device.
    pub(super) extents: Vec<Extent>,
    /// Extents without one.
    pub(super) unplaced: u64,
}

/// Why nothing was told.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum FiemapError {
    /// The filesystem has no FIEMAP.
    #[error("its filesystem cannot tell them (no FIEMAP)")]
    NotOffered,
    /// The kernel's word.
    #[error("FIEMAP: {0}")]
    Refused(Errno),
}

/// All extents of a file, written back beforehand.
pub(super) fn read(file: &File) -> Result<Told, FiemapError> {
    let (mut told, mut start) = (Told::default(), 0);
    let mut request = Box::new(Fiemap {
        start,
        length: u64::MAX,
        flags: FLAG_SYNC,
        mapped: 0,
        count: BATCH as u32,
        reserved: 0,
        extents: [FiemapExtent::default(); BATCH],
    });
    loop {
        request.start = start;
        request.length = u64::MAX - start;
        request.mapped = 0;
        ask(file, &mut request).map_err(|error| match error {
            Errno::OPNOTSUPP | Errno::NOTTY | Errno::NOSYS => FiemapError::NotOffered,
            other => FiemapError::Refused(other),
        })?;
        let batch = &request.extents[..(request.mapped as usize).min(BATCH)];
        told.add(batch);
        // Written back once; what was mapped meanwhile is not to be chased.
        request.flags = 0;
        match batch.last() {
            // A filesystem that goes back would never come to an end.
            Some(last) if last.flags & LAST == 0 && last.logical.saturating_add(last.length) > start => {
                start = last.logical.saturating_add(last.length);
            }
            _ => return Ok(told),
        }
    }
}

impl Told {
    fn add(&mut self, batch: &[FiemapExtent]) {
        for extent in batch {
            if extent.flags & (UNKNOWN | INLINE) != 0 {
                self.unplaced += 1;
                continue;
            }
            self.extents.push(Extent {
                physical: extent.physical,
                logical: extent.logical,
                bytes: extent.length,
                encoded: extent.flags & ENCODED != 0,
            });
        }
    }
}

#[expect(unsafe_code, reason = "an ioctl that rustix has no wrapper for")]
fn ask(file: &File, request: &mut Fiemap) -> rustix::io::Result<()> {
    // SAFETY: FS_IOC_FIEMAP reads and writes one `struct fiemap` and `count` extents behind it, which Fiemap is laid out as.
    unsafe { ioctl(file, Updater::<FS_IOC_FIEMAP, Fiemap>::new(request)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_structs_have_the_kernels_sizes() {
        assert_eq!(size_of::<FiemapExtent>(), 56);
        assert_eq!(size_of::<Fiemap>(), 32 + BATCH * 56);
        assert_eq!(std::mem::offset_of!(Fiemap, extents), 32);
        assert_eq!(std::mem::offset_of!(FiemapExtent, flags), 40);
    }

    #[test]
    fn extents_without_a_place_are_counted_apart() {
        let of = |flags: u32| FiemapExtent { logical: 4096, length: 4096, flags, ..FiemapExtent::default() };
        let mut told = Told::default();
        told.add(&[of(UNKNOWN), of(INLINE | 0x100), of(LAST), of(ENCODED)]);
        assert_eq!((told.unplaced, told.extents.len()), (2, 2));
        assert_eq!(told.extents.iter().map(|extent| extent.encoded).collect::<Vec<_>>(), [false, true]);
    }
}
