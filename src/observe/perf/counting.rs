//! How often a tracepoint is hit on all processors, whoever hits it: the kernel counts, nothing is written and nobody reads meanwhile.
//!
//! Enters: a tracepoint's number. Leaves: the count. As with [`super::Watch`] nothing outlives the process.

use std::os::fd::AsRawFd;

use perf_event::events::Tracepoint;
use perf_event::{Builder, Counter};
use rustix::io::Errno;

use super::filter::set_filter;
use super::machine::MoreFiles;
use super::{Refused, errno_of, processors};

/// A tracepoint being counted, on each processor.
pub(in crate::observe) struct Counting(Vec<Counter>);

impl Counting {
    /// Counts from now on the hits that the filter lets through, if there is one.
    ///
    /// # Errors
    /// Why the kernel refuses.
    pub(in crate::observe) fn start(id: u64, filter: Option<&str>) -> Result<Counting, Refused> {
        let numbers = processors();
        let _more = MoreFiles::allowed(numbers.len());
        let mut counters = Vec::new();
        for number in numbers {
            let built =
                Builder::new(Tracepoint::with_id(id)).any_pid().one_cpu(number).include_kernel().build();
            match built.map_err(|error| errno_of(&error)) {
                Ok(counter) => {
                    if let Some(filter) = filter {
                        set_filter(counter.as_raw_fd(), filter).map_err(|errno| match errno {
                            Errno::INVAL => Refused::Filter(filter.to_owned()),
                            errno => Refused::Kernel(errno),
                        })?;
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

    /// Stops counting; one that cannot be stopped now is when the count is asked for.
    pub(in crate::observe) fn end(&mut self) {
        self.0.iter_mut().for_each(|counter| drop(counter.disable()));
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
