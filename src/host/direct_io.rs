//! Whether files of a place can be read and written past the page cache, and really are.
//!
//! Enters: a directory, file or device. Leaves: the fact `o_direct`. A filesystem may take O_DIRECT and use the page cache all the
//! same (ext4 with data=journal, or with encryption; btrfs since Linux 6.15 for files with checksums): the kernel says so by an alignment of
//! 0 in statx(2), and a block written to a file without a name is found in the cache by cachestat(2), before Linux 6.5 by mincore(2).
//! btrfs takes it out of the cache again, but not from under a mapping, as a direct write does. The file is gone when it is closed.

use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Mode, OFlags, StatxAttributes, StatxFlags, openat, statx};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// What the fact says where O_DIRECT is taken and the page cache is used.
pub const FALLS_BACK: &str = "falls back to the page cache";
/// The same of writes alone.
pub const WRITES_FALL_BACK: &str = "writes fall back to the page cache";
/// Aligned for every device: a page.
const BLOCK: usize = 4096;

/// How often a page is asked to leave the cache.
const TRIES: usize = 8;

/// A block whose address is a multiple of its size.
#[repr(C, align(4096))]
struct Block([u8; BLOCK]);

/// `yes`, with the alignments when the kernel tells them, `no`, [`FALLS_BACK`], [`WRITES_FALL_BACK`], or `unknown` with the reason. A file
/// is opened; nothing is written, so that it may be asked before any trial.
#[must_use]
pub(super) fn direct_io(path: &Path) -> String {
    found(path, false)
}

/// The same, where in a directory a block is written, too: it finds what the kernel does not say.
#[must_use]
pub fn direct_io_tried(path: &Path) -> String {
    found(path, true)
}

fn found(path: &Path, writes: bool) -> String {
    let is_directory = path.is_dir();
    let mode = Mode::RUSR | Mode::WUSR;
    let opened = if is_directory {
        openat(CWD, path, OFlags::TMPFILE | OFlags::RDWR | OFlags::DIRECT | OFlags::CLOEXEC, mode)
            .map(File::from)
    } else {
        // A FIFO would wait for its other end.
        let flags = OFlags::RDONLY | OFlags::DIRECT | OFlags::NONBLOCK | OFlags::CLOEXEC;
        openat(CWD, path, flags, mode).map(File::from)
    };
    let opened = match opened {
        // No files without a name here (or no direct I/O, in the same words): with a name, then.
        Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::ISDIR) if is_directory => named_direct(path),
        other => other,
    };
    let file = match opened {
        Ok(file) => file,
        Err(rustix::io::Errno::INVAL) => return "no".to_owned(),
        Err(error) => return format!("unknown ({})", std::io::Error::from(error)),
    };
    let tries = writes && is_directory && !is_dax(&file);
    if is_in_memory(&file) {
        return FALLS_BACK.to_owned();
    }
    if tries && (is_cached_after_a_write(&file) || stays_cached_below_a_write(&file)) {
        return if is_cached_after_a_read(&file) { FALLS_BACK } else { WRITES_FALL_BACK }.to_owned();
    }
    match statx(file.as_fd(), "", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN) {
        Ok(stat) if stat.stx_mask & StatxFlags::DIOALIGN.bits() == 0 => "yes".to_owned(),
        Ok(stat) if stat.stx_dio_offset_align > 0 => {
            format!("yes (memory {}, offset {})", stat.stx_dio_mem_align, stat.stx_dio_offset_align)
        }
        Ok(_) => FALLS_BACK.to_owned(),
        Err(_) => "yes".to_owned(),
    }
}

/// Whether its filesystem is the page cache and nothing else; tmpfs takes O_DIRECT since Linux 6.6. A device's node lies in such a
/// filesystem, its data do not.
fn is_in_memory(file: &File) -> bool {
    let kinds = [libc::TMPFS_MAGIC, 0x8584_58f6];
    let is_node = file.metadata().is_ok_and(|found| !found.is_file() && !found.is_dir());
    !is_node && rustix::fs::fstatfs(file).is_ok_and(|found| kinds.contains(&found.f_type))
}

/// Whether it is mapped from memory that lasts, without a page cache. cachestat(2) must not be asked of such a file: up to Linux 6.12 at
/// least, the kernel takes what is mapped there for pages that were evicted, and dies (`workingset_test_recent`).
fn is_dax(file: &File) -> bool {
    let found = statx(file.as_fd(), "", AtFlags::EMPTY_PATH, StatxFlags::BASIC_STATS);
    found.is_ok_and(|found| found.stx_attributes.contains(StatxAttributes::DAX))
}

fn named_direct(directory: &Path) -> Result<File, rustix::io::Errno> {
    let errno =
        |error: std::io::Error| rustix::io::Errno::from_io_error(&error).unwrap_or(rustix::io::Errno::IO);
    let file = tempfile::NamedTempFile::new_in(directory).map_err(errno)?;
    openat(CWD, file.path(), OFlags::RDWR | OFlags::DIRECT | OFlags::CLOEXEC, Mode::empty()).map(File::from)
}

/// Whether a block that was written lies in the page cache. Where it cannot be written, or the kernel cannot tell: no.
fn is_cached_after_a_write(mut file: &File) -> bool {
    let block = Block([0; BLOCK]);
    file.write_all(&block.0).is_ok() && pages_in_cache(file).is_some_and(|pages| pages > 0)
}

/// Whether the written block is in the page cache once it was read. btrfs leaves it there now and then after a write that used the cache (a
/// page that still waits for its place in the lists of the reclaim is not taken out), so it is taken out before. Where it stays: yes.
fn is_cached_after_a_read(file: &File) -> bool {
    let mut block = Block([0; BLOCK]);
    let is_out = (0..TRIES).any(|_| {
        let _ = rustix::fs::fdatasync(file);
        let _ = rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::DontNeed);
        pages_in_cache(file) == Some(0)
    });
    !is_out || (file.read_at(&mut block.0, 0).is_ok() && pages_in_cache(file) != Some(0))
}

/// Whether a block that a mapping holds in the page cache stays there when it is written again: a write past the cache takes it out, one
/// through it does not, whatever is taken out afterwards.
fn stays_cached_below_a_write(file: &File) -> bool {
    let block = Block([0; BLOCK]);
    let Some(mapped) = Mapped::of(file).filter(|_| file.metadata().is_ok_and(|found| found.len() > 0)) else {
        return false;
    };
    mapped.touch();
    let before = mapped.pages();
    before == Some(1) && file.write_all_at(&block.0, 0).is_ok() && mapped.pages() == Some(1)
}

/// Pages of the first block that the cache holds; `None`: the kernel cannot tell.
fn pages_in_cache(file: &File) -> Option<u64> {
    cached_pages(file).or_else(|| Mapped::of(file)?.pages())
}

/// The same by cachestat(2).
#[expect(unsafe_code, reason = "cachestat(2) is in no library here")]
fn cached_pages(file: &File) -> Option<u64> {
    let range = [0_u64, BLOCK as u64];
    // nr_cache, nr_dirty, nr_writeback, nr_evicted, nr_recently_evicted.
    let mut found = [0_u64; 5];
    // SAFETY: the pointers are to arrays of the lengths that cachestat(2) reads and writes, and both outlive the call.
    let result =
        unsafe { libc::syscall(SYS_CACHESTAT, file.as_raw_fd(), range.as_ptr(), found.as_mut_ptr(), 0_u32) };
    (result == 0).then_some(found[0])
}

/// A mapping of a file's first block, which nobody writes to.
struct Mapped(*mut libc::c_void);

impl Mapped {
    /// `None`: it cannot be mapped.
    #[expect(unsafe_code, reason = "a mapping of a file is not known to stay as it is")]
    fn of(file: &File) -> Option<Mapped> {
        // SAFETY: a new mapping of the block, at an address of the kernel's choice and given back when this is dropped.
        let address =
            unsafe { mmap(std::ptr::null_mut(), BLOCK, ProtFlags::READ, MapFlags::SHARED, file, 0) };
        Some(Mapped(address.ok()?))
    }

    /// Reads a byte of it, so that the block is in the cache, and mapped.
    #[expect(unsafe_code, reason = "reads through a mapping")]
    fn touch(&self) {
        // SAFETY: the first byte of a mapping that is there; the file is this process's own and has the block.
        std::hint::black_box(unsafe { self.0.cast::<u8>().read_volatile() });
    }

    /// Pages of it that are in memory, without cachestat(2).
    #[expect(unsafe_code, reason = "no library wraps mincore(2)")]
    fn pages(&self) -> Option<u64> {
        let mut found = 0_u8;
        // SAFETY: mincore(2) writes a byte a page of this mapping, and no page is smaller than the block.
        let result = unsafe { libc::mincore(self.0, BLOCK, &raw mut found) };
        (result == 0).then_some(u64::from(found & 1))
    }
}

impl Drop for Mapped {
    #[expect(unsafe_code, reason = "gives the mapping back")]
    fn drop(&mut self) {
        // SAFETY: the mapping that `of` has made, which nothing refers to any more.
        let _ = unsafe { munmap(self.0, BLOCK) };
    }
}

/// The same number on every architecture. Source: include/uapi/asm-generic/unistd.h of Linux 6.5.
const SYS_CACHESTAT: libc::c_long = 451;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_through_the_cache_is_seen_there() {
        let file = tempfile::tempfile().unwrap();
        match cached_pages(&file) {
            None => eprintln!("SKIPPED: this kernel has no cachestat(2)"),
            Some(pages) => {
                assert_eq!(pages, 0);
                assert!(is_cached_after_a_write(&file));
            }
        }
    }

    #[test]
    fn what_was_read_through_the_cache_is_seen_there() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&[0; BLOCK]).unwrap();
        assert!(is_cached_after_a_read(file.as_file()));
    }

    #[test]
    fn a_mapping_tells_what_the_cache_holds() {
        let mut file = tempfile::tempfile().unwrap();
        file.set_len(BLOCK as u64).unwrap();
        let pages = |file: &File| Mapped::of(file).unwrap().pages();
        assert_eq!(pages(&file), Some(0), "nothing was read or written");
        file.write_all(&[0; BLOCK]).unwrap();
        assert_eq!(pages(&file), Some(1));
    }

    #[test]
    fn a_filesystem_in_memory_has_no_direct_io() {
        let kind = Path::new("/dev/shm").is_dir().then(|| rustix::fs::statfs("/dev/shm").unwrap().f_type);
        if kind != Some(libc::TMPFS_MAGIC) {
            return eprintln!("SKIPPED: /dev/shm is no tmpfs here");
        }
        // Before 6.6 the open itself fails.
        let found = [direct_io(Path::new("/dev/shm")), direct_io_tried(Path::new("/dev/shm"))];
        assert!(found == [FALLS_BACK, FALLS_BACK] || found == ["no", "no"], "{found:?}");
    }

    #[test]
    fn a_device_is_not_the_filesystem_of_its_node() {
        let zero = File::open("/dev/zero").unwrap();
        assert!(!is_in_memory(&zero), "only its node is in memory");
    }

    #[test]
    fn nothing_stays_of_the_trial() {
        let directory = tempfile::tempdir().unwrap();
        let found = direct_io_tried(directory.path());
        assert!(
            ["yes", "no", "unknown", FALLS_BACK, WRITES_FALL_BACK].iter().any(|word| found.starts_with(word)),
            "{found}"
        );
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }
}
