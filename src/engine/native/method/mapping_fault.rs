//! Copying to and from a mapped file so that SIGBUS ends the transfer, not the process.
//!
//! Enters: addresses of which one side lies in a mapped file. Leaves: whether every byte was there. The kernel raises
//! SIGBUS where a mapped file ends, its filesystem has no room for a page, or its device gives an error. The handler
//! then puts an empty page of memory where the fault was, so that the copy can end, and notes that it did.

use std::cell::Cell;
use std::sync::Once;
use std::sync::atomic::{AtomicUsize, Ordering, compiler_fence};

static PAGE: AtomicUsize = AtomicUsize::new(4096);
static HANDLER: Once = Once::new();

thread_local! {
    /// Addresses whose faults are the copy's; a signal of this kind is handled by the thread that caused it.
    static WATCHED: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
    static FAULTED: Cell<bool> = const { Cell::new(false) };
}

/// Handles SIGBUS from now on; once a process is enough.
pub(super) fn handle() {
    HANDLER.call_once(|| {
        PAGE.store(rustix::param::page_size(), Ordering::Relaxed);
        #[expect(
            unsafe_code,
            reason = "std installs no signal handlers, and signal-hook's may not map memory"
        )]
        // SAFETY: an all-zero sigaction is a valid one; the handler below makes one system call and touches only the
        // calling thread's own cells, which need no initialisation.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = on_fault as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO;
            libc::sigaction(libc::SIGBUS, &raw const action, std::ptr::null_mut());
        }
    });
}

extern "C" fn on_fault(signal: libc::c_int, info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    #[expect(unsafe_code, reason = "what a signal handler is given are addresses")]
    // SAFETY: the kernel gives a valid siginfo to a handler with SA_SIGINFO.
    let address = unsafe { (*info).si_addr() } as usize;
    let (begin, end) = WATCHED.get();
    let page = PAGE.load(Ordering::Relaxed);
    let first = address & !(page - 1);
    #[expect(unsafe_code, reason = "system calls that are allowed in a signal handler")]
    // SAFETY: the page lies in the mapping that this thread watches, which nobody else uses and which is given back
    // after a fault; signal(2) is async-signal-safe.
    unsafe {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
        if (begin..end).contains(&address)
            && libc::mmap(first as *mut libc::c_void, page, protection, flags, -1, 0) != libc::MAP_FAILED
        {
            FAULTED.set(true);
        } else {
            // Not ours: as if there were no handler.
            libc::signal(signal, libc::SIG_DFL);
        }
    }
}

/// Copies `length` bytes; false when some were not there, which leaves memory of its own in the file's place: the
/// mapping must be given back. `mapping`: first address and end of the side that is a file.
///
/// # Safety
/// Both ranges must be mapped, and not overlap; [`handle`] was called.
#[expect(unsafe_code, reason = "the mapping has no slice: other processes write to the file")]
#[inline]
pub(super) unsafe fn copy(from: *const u8, to: *mut u8, length: usize, mapping: (usize, usize)) -> bool {
    WATCHED.set(mapping);
    compiler_fence(Ordering::SeqCst);
    // SAFETY: as the caller promises.
    unsafe { std::ptr::copy_nonoverlapping(from, to, length) };
    compiler_fence(Ordering::SeqCst);
    WATCHED.set((0, 0));
    !FAULTED.replace(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

    #[test]
    fn a_page_behind_the_end_of_the_file_is_said_to_be_missing() {
        handle();
        let file = tempfile::tempfile().unwrap();
        file.set_len(8192).unwrap();
        let mut buffer = vec![7_u8; 4096];
        #[expect(unsafe_code, reason = "a mapping is read by address")]
        // SAFETY: a new mapping of two pages; the buffer has one.
        unsafe {
            let base = mmap(std::ptr::null_mut(), 8192, ProtFlags::READ, MapFlags::SHARED, &file, 0)
                .unwrap()
                .cast::<u8>();
            let range = (base as usize, base as usize + 8192);
            assert!(copy(base.add(4096), buffer.as_mut_ptr(), 4096, range));
            assert_eq!(buffer, [0; 4096]);
            file.set_len(4096).unwrap();
            assert!(copy(base, buffer.as_mut_ptr(), 4096, range));
            assert!(!copy(base.add(4096), buffer.as_mut_ptr(), 4096, range));
            munmap(base.cast(), 8192).unwrap();
        }
    }
}
