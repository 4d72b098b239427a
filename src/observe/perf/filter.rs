//! Which hits of a tracepoint count, by its fields.
//!
//! Enters: an event that is open, and a filter as the kernel writes it (Documentation/trace/events.rst). Leaves: whether it takes it.

use std::ffi::CString;
use std::os::fd::RawFd;

use rustix::io::Errno;

/// `_IOW('$', 6, char *)` of perf_event_open(2).
const SET_FILTER: libc::Ioctl = 0x4008_2406;

#[expect(unsafe_code, reason = "an ioctl that perf-event2 has no wrapper for")]
pub(super) fn set_filter(point: RawFd, filter: &str) -> Result<(), Errno> {
    let text = CString::new(filter).map_err(|_| Errno::INVAL)?;
    // SAFETY: an open descriptor of a perf event, and a text with its end that outlives the call, which copies it.
    let result = unsafe { libc::ioctl(point, SET_FILTER, text.as_ptr()) };
    if result < 0 {
        Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::INVAL))
    } else {
        Ok(())
    }
}
