//! What the kernel charged to this thread, to this process, or to its children that have ended.
//!
//! Enters: whose. Leaves: the kernel's numbers. rustix has no getrusage(2).

/// getrusage(2) of `RUSAGE_SELF`, `RUSAGE_CHILDREN` or `RUSAGE_THREAD`.
#[must_use]
pub fn usage(who: libc::c_int) -> libc::rusage {
    #[expect(unsafe_code, reason = "getrusage is not in rustix")]
    // SAFETY: rusage is plain numbers, all zeros is a value of it; getrusage writes to it.
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(who, &raw mut usage);
        usage
    }
}
