//! What the kernel charged to a thread.

use serde::{Deserialize, Serialize};

/// What the kernel charged to the instance's thread.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Usage {
    pub(super) user_s: f64,
    pub(super) system_s: f64,
    pub(super) voluntary: u64,
    pub(super) involuntary: u64,
    pub(super) minor_faults: u64,
    pub(super) major_faults: u64,
}

impl Usage {
    /// Of the calling thread, since it began.
    pub(super) fn now() -> Usage {
        #[expect(unsafe_code, reason = "rustix has no getrusage")]
        // SAFETY: all-zero is a valid rusage, and the kernel fills the one it is given.
        let usage = unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage);
            usage
        };
        let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
        Usage {
            user_s: seconds(usage.ru_utime),
            system_s: seconds(usage.ru_stime),
            voluntary: usage.ru_nvcsw as u64,
            involuntary: usage.ru_nivcsw as u64,
            minor_faults: usage.ru_minflt as u64,
            major_faults: usage.ru_majflt as u64,
        }
    }

    /// What was added since `earlier`.
    pub(super) fn since(self, earlier: Usage) -> Usage {
        Usage {
            user_s: self.user_s - earlier.user_s,
            system_s: self.system_s - earlier.system_s,
            voluntary: self.voluntary - earlier.voluntary,
            involuntary: self.involuntary - earlier.involuntary,
            minor_faults: self.minor_faults - earlier.minor_faults,
            major_faults: self.major_faults - earlier.major_faults,
        }
    }
}
