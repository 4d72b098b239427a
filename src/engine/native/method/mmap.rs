//! memcpy(3) to and from a mapping of the region, msync(2) where a sync is asked: fio's `mmap`.
//!
//! Enters: the files of an instance and its regions. Leaves: copies. A region is mapped whole before the start; where
//! that cannot be, a window of it at a time. On a DAX filesystem the mapping is made with MAP_SYNC, so that what a
//! processor flush makes durable is so together with the file's own records.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, MsyncFlags, ProtFlags, madvise, mmap, msync, munmap};

use super::mapping_fault::{self, copy};
use super::{Operation, Synchronous, Transfer, synchronous_other};
use crate::engine::native::buffers::Buffers;
use crate::engine::native::failure::{Failure, errno_text};
use crate::engine::native::opened;
use crate::workload::{Access, Instance, Job};

/// Mapped at a time by all files of an instance where they cannot be mapped whole: fio's figure.
const WINDOWS_BYTES: u64 = 1 << 30;

/// The mappings of an instance.
pub(in super::super) struct Mmap {
    files: Vec<Mapped>,
    rule: Rule,
}

/// What all mappings have in common.
struct Rule {
    protection: ProtFlags,
    advice: Option<Advice>,
    window_bytes: u64,
    /// `direct`: each transfer is synced with the file.
    written_through: bool,
    page: u64,
}

/// One file, of which nothing or a part is mapped.
struct Mapped {
    /// The region's first page and the end of its last.
    first: u64,
    end: u64,
    base: *mut u8,
    /// Offset of `base` in the file, and bytes mapped.
    from: u64,
    length: u64,
    durable: bool,
    /// Windows that were left since the last sync may be dirty: syncing the current one is not enough.
    left_dirty: bool,
}

impl Mapped {
    /// A region of which nothing is mapped yet.
    fn nothing_of(first: u64, end: u64) -> Mapped {
        let base = std::ptr::null_mut();
        Mapped { first, end, base, from: first, length: 0, durable: false, left_dirty: false }
    }
}

impl Mmap {
    /// Maps the regions of `instance` in its open `files`.
    ///
    /// # Errors
    /// [`Failure`] when a file is too short or cannot be mapped, or when blocks are no whole pages and must be.
    pub(in super::super) fn new(job: &Job, instance: &Instance, files: &[File]) -> Result<Mmap, Failure> {
        mapping_fault::handle();
        Mmap::check(job)?;
        let page = rustix::param::page_size() as u64;
        let writes = job.pattern.mix.writes();
        let protection = if writes { ProtFlags::READ | ProtFlags::WRITE } else { ProtFlags::READ };
        let advice = match job.pattern.access {
            Access::Sequential => Advice::Sequential,
            Access::Random => Advice::Random,
        };
        let rule = Rule {
            protection,
            advice: job.fadvise_hint.then_some(advice),
            window_bytes: WINDOWS_BYTES / files.len().max(1) as u64 / page * page,
            written_through: job.direct,
            page,
        };
        let mut mapped = Vec::with_capacity(files.len());
        for (file, region) in files.iter().zip(&instance.files) {
            let have = opened::end_of(file, &region.path)?;
            let end = region.file_size().unwrap_or(have);
            if end > have {
                let what = format!("it has {have} bytes, and the job maps up to {end}");
                return Err(Failure::Setting { job: region.path.display().to_string(), what });
            }
            let first = region.offset / page * page;
            let mut one = Mapped::nothing_of(first, end);
            one.map(file.as_fd(), &rule, first, end.max(first + 1) - first)
                .or_else(|_| one.map(file.as_fd(), &rule, first, rule.window(first, end)))
                .map_err(|errno| Failure::File {
                    what: "cannot map".to_owned(),
                    path: region.path.clone(),
                    errno: errno.raw_os_error(),
                    error: errno_text(errno),
                })?;
            mapped.push(one);
        }
        Ok(Mmap { files: mapped, rule })
    }

    /// Refuses blocks that are no whole pages and must be. As in fio: msync(2) takes whole pages.
    ///
    /// # Errors
    /// [`Failure::Setting`].
    pub(in super::super) fn check(job: &Job) -> Result<(), Failure> {
        let page = rustix::param::page_size() as u64;
        let synced = job.direct || job.fsync > 0 || job.fdatasync > 0;
        if !synced || job.min_block().is_multiple_of(page) {
            return Ok(());
        }
        let what = format!(
            "ioengine=mmap with direct, fsync or fdatasync needs blocks of whole pages, {page} bytes or a multiple"
        );
        Err(Failure::Setting { job: job.name.clone(), what })
    }

    /// What a reader of the results must know.
    pub(in super::super) fn note(&self) -> String {
        let durable = self.files.iter().filter(|file| file.durable).count();
        match durable {
            0 => "mapped with MAP_SHARED: its filesystem is not DAX".to_owned(),
            all if all == self.files.len() => "mapped with MAP_SYNC: its filesystem is DAX".to_owned(),
            some => format!("{some} of {} files mapped with MAP_SYNC, the others not DAX", self.files.len()),
        }
    }

    fn copy(&mut self, transfer: &Transfer<'_>, buffers: &mut Buffers) -> Result<u32, Errno> {
        let (file, rule) = (&mut self.files[transfer.number], &self.rule);
        let length = transfer.length as usize;
        file.reach(transfer.file, rule, transfer.offset, u64::from(transfer.length))?;
        let place = file.base.wrapping_add((transfer.offset - file.from) as usize);
        let buffer = buffers.slice(transfer.slot, length).as_mut_ptr();
        let (from, to) = if transfer.operation == Operation::Read {
            (place.cast_const(), buffer)
        } else {
            (buffer.cast_const(), place)
        };
        let mapping = (file.base as usize, file.base as usize + file.length as usize);
        #[expect(unsafe_code, reason = "a mapping is copied by address")]
        // SAFETY: reach() made sure that the mapping covers the transfer; the slot's buffer has `length` bytes and is
        // anonymous memory, which no file's mapping overlaps; handle() was called in new().
        let whole = unsafe { copy(from, to, length, mapping) };
        if !whole {
            file.unmap();
            return Err(missing(transfer.file));
        }
        if rule.written_through {
            sync(place, length)?;
        }
        Ok(transfer.length)
    }
}

impl Synchronous for Mmap {
    #[inline]
    fn transfer(&mut self, transfer: &Transfer<'_>, buffers: &mut Buffers) -> Result<u32, Errno> {
        match transfer.operation {
            Operation::Read | Operation::Write => self.copy(transfer, buffers),
            Operation::Trim => synchronous_other(transfer),
            _ => self.files[transfer.number].sync(transfer),
        }
    }
}

impl Rule {
    /// Bytes of a window that begins at `from`.
    fn window(&self, from: u64, end: u64) -> u64 {
        self.window_bytes.max(self.page).min(end.max(from + 1) - from)
    }
}

impl Mapped {
    /// Makes the mapping cover `length` bytes at `offset`.
    #[inline]
    fn reach(&mut self, file: BorrowedFd<'_>, rule: &Rule, offset: u64, length: u64) -> Result<(), Errno> {
        if offset >= self.from && offset + length <= self.from + self.length {
            return Ok(());
        }
        self.move_window(file, rule, offset, length)
    }

    #[cold]
    fn move_window(
        &mut self,
        file: BorrowedFd<'_>,
        rule: &Rule,
        offset: u64,
        length: u64,
    ) -> Result<(), Errno> {
        self.left_dirty |= self.length > 0 && rule.protection.contains(ProtFlags::WRITE);
        self.unmap();
        let from = offset / rule.page * rule.page;
        let needed = offset + length - from;
        self.map(file, rule, from, rule.window(from, self.end.max(self.first)).max(needed))
    }

    fn map(&mut self, file: BorrowedFd<'_>, rule: &Rule, from: u64, length: u64) -> Result<(), Errno> {
        let bytes = usize::try_from(length).map_err(|_| Errno::NOMEM)?;
        let map = |flags: MapFlags| {
            #[expect(unsafe_code, reason = "files are mapped by address")]
            // SAFETY: a new mapping at an address of the kernel's choice overlaps nothing.
            unsafe {
                mmap(std::ptr::null_mut(), bytes, rule.protection, flags, file, from)
            }
        };
        // EOPNOTSUPP where the file is not DAX, EINVAL from kernels that do not know the flag.
        let durable = map(MapFlags::SHARED_VALIDATE | MapFlags::SYNC);
        self.durable = durable.is_ok();
        self.base = durable.or_else(|_| map(MapFlags::SHARED))?.cast();
        (self.from, self.length) = (from, length);
        if let Some(advice) = rule.advice {
            #[expect(unsafe_code, reason = "madvise takes an address")]
            // SAFETY: exactly the mapping just made; this advice changes nothing of its content.
            let advised = unsafe { madvise(self.base.cast(), bytes, advice) };
            if let Err(errno) = advised {
                self.unmap();
                return Err(errno);
            }
        }
        Ok(())
    }

    /// Syncs what was written since the last time: the mapping, and with windows that were left the whole file, whose
    /// pages keep what was written through them.
    fn sync(&mut self, transfer: &Transfer<'_>) -> Result<u32, Errno> {
        if self.left_dirty {
            synchronous_other(&Transfer { operation: whole(transfer.operation), ..*transfer })?;
            self.left_dirty = false;
        } else if self.length > 0 {
            sync(self.base, self.length as usize)?;
        }
        Ok(0)
    }

    fn unmap(&mut self) {
        if self.length > 0 {
            #[expect(unsafe_code, reason = "gives back the mapping made in map")]
            // SAFETY: exactly the mapping made in map, which nothing refers to any more.
            let _ = unsafe { munmap(self.base.cast(), self.length as usize) };
            self.length = 0;
        }
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        self.unmap();
    }
}

/// The sync of a whole file that stands for one of its mapping.
fn whole(operation: Operation) -> Operation {
    if operation == Operation::Fsync { Operation::Fsync } else { Operation::Fdatasync }
}

fn sync(place: *mut u8, length: usize) -> Result<(), Errno> {
    #[expect(unsafe_code, reason = "msync takes an address")]
    // SAFETY: within a mapping made in map; its content stays as it is.
    unsafe {
        msync(place.cast(), length, MsyncFlags::SYNC)
    }
}

/// SIGBUS does not say why: a full filesystem can be told from the rest.
#[cold]
fn missing(file: BorrowedFd<'_>) -> Errno {
    if opened::is_full(file) { Errno::NOSPC } else { Errno::IO }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::BufferFill;

    fn one(file: &File, rule: &Rule, bytes: u64) -> Mmap {
        mapping_fault::handle();
        let mut mapped = Mapped::nothing_of(0, bytes);
        mapped.map(file.as_fd(), rule, 0, rule.window(0, bytes)).unwrap();
        let rule = Rule { advice: None, ..*rule };
        Mmap { files: vec![mapped], rule }
    }

    const RULE: Rule = Rule {
        protection: ProtFlags::READ.union(ProtFlags::WRITE),
        advice: None,
        window_bytes: 8192,
        written_through: false,
        page: 4096,
    };

    fn transfer(file: &File, operation: Operation, offset: u64, length: u32) -> Transfer<'_> {
        Transfer { slot: 0, number: 0, operation, file: file.as_fd(), offset, length }
    }

    #[test]
    fn windows_follow_the_transfers() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(1 << 20).unwrap();
        let mut method = one(&file, &RULE, 1 << 20);
        let mut buffers = Buffers::new(1, 16384, BufferFill::Zero, 1).unwrap();
        for (at, offset) in [0_u64, 4096, 500_000, 1 << 19, 0, (1 << 20) - 512].into_iter().enumerate() {
            buffers.slice(0, 512).fill(at as u8 + 1);
            assert_eq!(
                method.transfer(&transfer(&file, Operation::Write, offset, 512), &mut buffers),
                Ok(512)
            );
        }
        // A block larger than the window is mapped all the same.
        assert_eq!(
            method.transfer(&transfer(&file, Operation::Read, 500_000, 16384), &mut buffers),
            Ok(16384)
        );
        assert_eq!(buffers.slice(0, 512), [3; 512]);
        let mut bytes = [0; 1];
        for (offset, byte) in [(0, 5), (4096, 2), (500_511, 3), (1 << 19, 4), ((1 << 20) - 1, 6)] {
            std::os::unix::fs::FileExt::read_exact_at(&file, &mut bytes, offset).unwrap();
            assert_eq!(bytes[0], byte, "{offset}");
        }
        assert!(method.files[0].left_dirty);
        for operation in [Operation::Fsync, Operation::SyncRange, Operation::Fdatasync] {
            assert_eq!(method.transfer(&transfer(&file, operation, 0, 0), &mut buffers), Ok(0));
            assert!(!method.files[0].left_dirty, "the other windows were synced, too");
        }
    }

    #[test]
    fn a_mapping_that_takes_no_advice_is_given_back() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(1 << 20).unwrap();
        // Refused (EINVAL) for a mapping of a file that is shared.
        let rule = Rule { advice: Some(Advice::LinuxWipeOnFork), ..RULE };
        let mut one = Mapped::nothing_of(0, 1 << 20);
        assert_eq!(one.map(file.as_fd(), &rule, 0, 1 << 20), Err(Errno::INVAL));
        assert_eq!(one.length, 0);
    }

    #[test]
    fn behind_the_end_is_an_error_and_the_next_transfer_works() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(8192).unwrap();
        let mut method = one(&file, &RULE, 8192);
        let mut buffers = Buffers::new(1, 4096, BufferFill::Zero, 1).unwrap();
        file.set_len(4096).unwrap();
        let behind = transfer(&file, Operation::Write, 4096, 4096);
        assert_eq!(method.transfer(&behind, &mut buffers), Err(Errno::IO));
        assert_eq!(method.transfer(&transfer(&file, Operation::Read, 0, 4096), &mut buffers), Ok(4096));
    }
}
