//! The memory that buffers lie in: anonymous pages, huge ones, shared ones, locked ones.
//!
//! Enters: what a job asks (`mem`, `lockmem`). Leaves: a mapping that is touched, or one clear error. It must not know
//! what lies in it.

use rustix::mm::{MapFlags, ProtFlags, mlock, mmap_anonymous, munmap};
use rustix::process::{Resource, getrlimit};
use rustix::thread::{CapabilitySet, capabilities};

use super::failure::{Failure, errno_text};
use crate::workload::{BufferMemory, Job};

/// What `lockmem` leaves to the rest of the machine; fio leaves as much.
const LEFT_BYTES: u64 = 128 << 20;

/// Memory of one instance; given back when dropped.
pub(super) struct Mapping {
    base: *mut u8,
    length: usize,
    /// Memory that is only kept from others.
    kept: Option<Box<Mapping>>,
}

impl Mapping {
    /// `bytes` as `job` asks for them.
    ///
    /// # Errors
    /// [`Failure::Setting`] with the setting that helps: huge pages to be reserved, a limit to be raised.
    pub(super) fn new(job: &Job, bytes: usize) -> Result<Mapping, Failure> {
        let failed = |what: String| Failure::Setting { job: job.name.clone(), what };
        let memory = job.memory;
        let unit = if memory.huge_pages { huge_page_bytes() } else { 1 };
        let length = bytes.max(1).next_multiple_of(unit);
        let mut mapping = map(length, memory).map_err(|errno| {
            failed(if memory.huge_pages {
                no_huge_pages(length / unit, unit, errno)
            } else {
                format!(
                    "no memory for {length} bytes of buffers ({}); lower iodepth or bs",
                    errno_text(errno)
                )
            })
        })?;
        if memory.locked_bytes > 0 {
            mapping.lock().map_err(|errno| failed(cannot_lock(length as u64, errno)))?;
            mapping.kept = Some(Box::new(keep(memory.locked_bytes).map_err(failed)?));
        }
        Ok(mapping)
    }

    /// Private pages of the usual size.
    #[cfg(test)]
    pub(super) fn plain(bytes: usize) -> std::io::Result<Mapping> {
        Ok(map(bytes.max(1), BufferMemory::default())?)
    }

    /// Where it begins: a page's first byte.
    pub(super) fn base(&self) -> *mut u8 {
        self.base
    }

    fn lock(&self) -> rustix::io::Result<()> {
        #[expect(unsafe_code, reason = "mlock takes an address")]
        // SAFETY: exactly the mapping; locking changes nothing of its content.
        unsafe {
            mlock(self.base.cast(), self.length)
        }
    }
}

/// Looks whether buffers of `bytes` are to be had as `job` asks, without taking them: huge pages, and a limit of locked
/// memory that holds for this user.
///
/// # Errors
/// [`Failure::Setting`] with the setting that helps.
pub(super) fn check(job: &Job, bytes: usize) -> Result<(), Failure> {
    let failed = |what: String| Failure::Setting { job: job.name.clone(), what };
    if job.memory.huge_pages {
        let unit = huge_page_bytes();
        let pages = bytes.max(1).div_ceil(unit);
        let more = std::fs::read_to_string("/proc/sys/vm/nr_overcommit_hugepages").unwrap_or_default();
        let free = count_info("HugePages_Free:").unwrap_or(u64::MAX);
        if free.saturating_add(more.trim().parse().unwrap_or(0)) < pages as u64 {
            return Err(failed(no_huge_pages(pages, unit, rustix::io::Errno::NOMEM)));
        }
    }
    let locked = job.memory.locked_bytes;
    let limit = getrlimit(Resource::Memlock).current.filter(|_| !may_lock_all());
    if locked > 0 && limit.is_some_and(|limit| limit < locked.saturating_add(bytes as u64)) {
        return Err(failed(cannot_lock(locked.saturating_add(bytes as u64), rustix::io::Errno::NOMEM)));
    }
    Ok(())
}

/// Whether the limit of locked memory does not hold for this process: that of a user other than root can have the
/// capability, and root can be without it.
fn may_lock_all() -> bool {
    // What cannot be told is not refused.
    capabilities(None).map_or(true, |sets| sets.effective.contains(CapabilitySet::IPC_LOCK))
}

fn no_huge_pages(pages: usize, unit: usize, errno: rustix::io::Errno) -> String {
    format!(
        "no memory on huge pages: {pages} pages of {} KiB are needed ({}); reserve them, e.g. \
         echo {pages} > /proc/sys/vm/nr_hugepages, or leave out mem=",
        unit / 1024,
        errno_text(errno)
    )
}

/// Locks `bytes` that nobody uses, as fio does, so that the machine has as much less.
fn keep(bytes: u64) -> Result<Mapping, String> {
    let available = memory_info("MemAvailable:").unwrap_or(u64::MAX);
    if bytes > available.saturating_sub(LEFT_BYTES) {
        return Err(format!(
            "lockmem: {bytes} bytes would leave less than {LEFT_BYTES} of the {available} bytes available"
        ));
    }
    // Locking touches it.
    let kept = map_with(bytes as usize, BufferMemory::default(), MapFlags::empty());
    let kept = kept.map_err(|errno| cannot_lock(bytes, errno))?;
    kept.lock().map_err(|errno| cannot_lock(bytes, errno))?;
    Ok(kept)
}

/// The limit is named, as it is what stands in the way nearly always.
fn cannot_lock(bytes: u64, errno: rustix::io::Errno) -> String {
    let limit = getrlimit(Resource::Memlock).current;
    let limit = limit.map_or("unlimited".to_owned(), |bytes| format!("{bytes} bytes"));
    format!(
        "lockmem: {bytes} bytes cannot be locked ({}); the limit RLIMIT_MEMLOCK is {limit}, raise it with ulimit -l",
        errno_text(errno)
    )
}

/// Touched: a page fault belongs to the set-up, not to the first I/O.
fn map(length: usize, memory: BufferMemory) -> rustix::io::Result<Mapping> {
    map_with(length, memory, MapFlags::POPULATE)
}

fn map_with(length: usize, memory: BufferMemory, more: MapFlags) -> rustix::io::Result<Mapping> {
    let mut flags = more | if memory.shared { MapFlags::SHARED } else { MapFlags::PRIVATE };
    if memory.huge_pages {
        flags |= MapFlags::HUGETLB;
    }
    #[expect(unsafe_code, reason = "anonymous memory with page alignment comes from mmap")]
    // SAFETY: a new anonymous mapping at an address of the kernel's choice overlaps nothing.
    let base =
        unsafe { mmap_anonymous(std::ptr::null_mut(), length, ProtFlags::READ | ProtFlags::WRITE, flags) }?;
    Ok(Mapping { base: base.cast(), length, kept: None })
}

impl Drop for Mapping {
    fn drop(&mut self) {
        #[expect(unsafe_code, reason = "gives back the mapping made in map")]
        // SAFETY: exactly the mapping made in map; every transfer was reaped or its ring was closed before.
        let _ = unsafe { munmap(self.base.cast(), self.length) };
    }
}

/// The kernel's default size of huge pages; 2 MiB where it does not say.
fn huge_page_bytes() -> usize {
    memory_info("Hugepagesize:").map_or(2 << 20, |bytes| bytes as usize)
}

/// A line of /proc/meminfo that counts.
fn count_info(name: &str) -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    text.lines().find_map(|line| line.strip_prefix(name))?.trim().parse().ok()
}

/// A line of /proc/meminfo, in bytes.
fn memory_info(name: &str) -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    rest.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_and_shared_memory_can_be_written() {
        for memory in [BufferMemory::default(), BufferMemory { shared: true, ..BufferMemory::default() }] {
            let mapping = map(8192, memory).unwrap();
            assert_eq!(mapping.base() as usize % 4096, 0);
            #[expect(unsafe_code, reason = "a mapping is written by address")]
            // SAFETY: the last byte of the mapping, which nobody else has.
            unsafe {
                mapping.base().add(8191).write(1);
            }
            mapping.lock().unwrap();
        }
    }

    #[test]
    fn memory_is_kept_within_what_there_is() {
        let kept = keep(1 << 20).unwrap();
        assert_eq!(kept.length, 1 << 20);
        let error = keep(1 << 60).err().unwrap();
        assert!(error.contains("would leave less than 134217728"), "{error}");
    }

    #[test]
    fn a_huge_page_is_larger_than_a_page() {
        assert!(huge_page_bytes() >= 64 << 10 && huge_page_bytes().is_power_of_two());
    }

    #[test]
    fn the_limit_is_named() {
        let text = cannot_lock(1 << 30, rustix::io::Errno::NOMEM);
        assert!(
            text.contains("RLIMIT_MEMLOCK") && text.contains("ENOMEM") && text.contains("1073741824"),
            "{text}"
        );
    }
}
