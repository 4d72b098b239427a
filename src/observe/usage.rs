//! What a process or a thread used of the machine (getrusage(2)).
//!
//! Enters: whose it is. Leaves: sums since each began.

/// Sums since the beginning.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Usage {
    pub(super) usr_us: i64,
    pub(super) sys_us: i64,
    pub(super) voluntary: i64,
    pub(super) involuntary: i64,
    pub(super) minor_faults: i64,
    pub(super) major_faults: i64,
}

impl Usage {
    /// Of `RUSAGE_SELF`, `RUSAGE_CHILDREN` or `RUSAGE_THREAD`.
    pub(super) fn of(who: libc::c_int) -> Usage {
        let usage = crate::sys::usage(who);
        Usage {
            usr_us: usage.ru_utime.tv_sec * 1_000_000 + usage.ru_utime.tv_usec,
            sys_us: usage.ru_stime.tv_sec * 1_000_000 + usage.ru_stime.tv_usec,
            voluntary: usage.ru_nvcsw,
            involuntary: usage.ru_nivcsw,
            minor_faults: usage.ru_minflt,
            major_faults: usage.ru_majflt,
        }
    }

    /// Both together.
    pub(super) fn plus(&self, other: &Usage) -> Usage {
        self.with(other, |a, b| a + b)
    }

    /// What the other leaves of it.
    pub(super) fn minus(&self, other: &Usage) -> Usage {
        self.with(other, |a, b| a - b)
    }

    fn with(&self, other: &Usage, of: impl Fn(i64, i64) -> i64) -> Usage {
        Usage {
            usr_us: of(self.usr_us, other.usr_us),
            sys_us: of(self.sys_us, other.sys_us),
            voluntary: of(self.voluntary, other.voluntary),
            involuntary: of(self.involuntary, other.involuntary),
            minor_faults: of(self.minor_faults, other.minor_faults),
            major_faults: of(self.major_faults, other.major_faults),
        }
    }
}
