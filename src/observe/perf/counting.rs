//! How often a tracepoint is hit on all processors, whoever hits it: the kernel counts, nothing is written and nobody reads meanwhile.
//!
//! Enters: a tracepoint's number. Leaves: the count. As with [`super::Watch`] nothing outlives the process.

use std::ffi::CStr;
use std::os::fd::AsRawFd;

use perf_event::events::Tracepoint;
use perf_event::{Builder, Counter};
use rustix::io::Errno;

use super::machine::MoreFiles;
use super::{Refused, errno_of, processors};

/// `PERF_EVENT_IOC_SET_FILTER` of linux/perf_event.h.
const SET_FILTER: libc::c_ulong = 0x4008_2406;

/// A tracepoint being counted, on each processor.
pub(in crate::observe) struct Counting(Vec<Counter>);

impl Counting {
    /// Counts from now on the hits that the filter lets through, if there is one.
    ///
    /// # Errors
    /// Why the kernel refuses.
    pub(in crate::observe) fn start(id: u64, filter: Option<&CStr>) -> Result<Counting, Refused> {
        let numbers = processors();
        let _more = MoreFiles::allowed(numbers.len());
        let mut counters = Vec::new();
        for number in numbers {
            let built =
                Builder::new(Tracepoint::with_id(id)).any_pid().one_cpu(number).include_kernel().build();
            match built.map_err(|error| errno_of(&error)) {
                Ok(counter) => {
                    if let Some(filter) = filter {
                        set_filter(&counter, filter)?;
                    }
                    counters.push(counter);
                }
                // Taken offline meanwhile.
                Err(Errno::NODEV) => {}
                Err(errno) => return Err(Refused::Kernel(errno)),
            }
        }
        if counters.is_empty() {
            return Err(Refused::NoProcessors);
        }
        for counter in &mut counters {
            counter.enable().map_err(|error| Refused::Kernel(errno_of(&error)))?;
        }
        Ok(Counting(counters))
    }

    /// Stops and returns the count.
    ///
    /// # Errors
    /// The kernel cannot be asked.
    pub(in crate::observe) fn stop(mut self) -> Result<u64, Refused> {
        let refused = |error: std::io::Error| Refused::Kernel(errno_of(&error));
        for counter in &mut self.0 {
            counter.disable().map_err(refused)?;
        }
        self.0.iter_mut().map(|counter| counter.read().map_err(refused)).sum()
    }
}

/// The library has no call for it.
fn set_filter(counter: &Counter, filter: &CStr) -> Result<(), Refused> {
    #[expect(unsafe_code, reason = "no library wraps PERF_EVENT_IOC_SET_FILTER")]
    // SAFETY: the kernel reads a string that ends with 0, which outlives the call.
    let result = unsafe { libc::ioctl(counter.as_raw_fd(), SET_FILTER, filter.as_ptr()) };
    if result == 0 {
        return Ok(());
    }
    match Errno::from_io_error(&std::io::Error::last_os_error()) {
        Some(Errno::INVAL) => Err(Refused::Filter(filter.to_string_lossy().into_owned())),
        errno => Err(Refused::Kernel(errno.unwrap_or(Errno::IO))),
    }
}
