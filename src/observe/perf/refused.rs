//! Why something cannot be watched, with what helps.

use rustix::io::Errno;

/// Why nothing is watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::observe) enum Refused {
    /// The kernel gave this error.
    Kernel(Errno),
    /// The kernel has no such tracepoint, or not with this field.
    NoTracepoint(String),
    /// The tracepoint has no such field, or the filter cannot be read.
    Filter(String),
    /// tracefs can neither be found nor mounted.
    NoTracefs(Errno),
    /// Nothing says which processors there are.
    NoProcessors,
}

impl Refused {
    /// One clause, and what helps.
    pub(in crate::observe) fn words(&self) -> String {
        match self {
            Refused::Kernel(errno) | Refused::NoTracefs(errno)
                if matches!(*errno, Errno::PERM | Errno::ACCESS) =>
            {
                denied(
                    &setting("/sys/kernel/security/lockdown"),
                    &setting("/proc/sys/kernel/perf_event_paranoid"),
                )
            }
            Refused::Kernel(Errno::NOSYS | Errno::OPNOTSUPP) => {
                "this kernel has no perf events; boot one with CONFIG_PERF_EVENTS".to_owned()
            }
            Refused::Kernel(Errno::MFILE) => "too many open files; raise the limit with ulimit -n".to_owned(),
            Refused::Kernel(errno) => format!("perf_event_open(2) failed: {errno}"),
            Refused::NoTracepoint(name) => {
                format!(
                    "this kernel does not have the tracepoint {name}; boot one with it (CONFIG_TRACEPOINTS, a newer Linux)"
                )
            }
            Refused::Filter(filter) => {
                format!(
                    "the kernel does not take the filter '{filter}'; `assay help observers` says what it may be"
                )
            }
            Refused::NoProcessors => {
                "/sys/devices/system/cpu/online lists no processors; mount -t sysfs sysfs /sys".to_owned()
            }
            Refused::NoTracefs(errno) => {
                format!("tracefs cannot be mounted ({errno}); mount -t tracefs tracefs /sys/kernel/tracing")
            }
        }
    }
}

fn setting(path: &str) -> String {
    std::fs::read_to_string(path).map(|text| text.trim().to_owned()).unwrap_or_default()
}

/// The words for a user who may not.
fn denied(lockdown: &str, paranoid: &str) -> String {
    if lockdown.contains("[confidentiality]") {
        return "the kernel is locked down (confidentiality) and shows its inside to nobody; boot with lockdown=integrity or none"
            .to_owned();
    }
    let is = if paranoid.is_empty() {
        String::new()
    } else {
        format!(" (kernel.perf_event_paranoid is {paranoid})")
    };
    format!(
        "the kernel does not let this user watch it{is}; run as root, or with CAP_PERFMON and CAP_SYS_ADMIN"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_may_not_is_told_what_helps() {
        assert!(denied("none integrity [confidentiality]", "2").contains("lockdown=integrity"));
        let paranoid = denied("[none] integrity confidentiality", "4");
        assert!(
            paranoid.contains("perf_event_paranoid is 4") && paranoid.contains("run as root"),
            "{paranoid}"
        );
        assert!(denied("", "").starts_with("the kernel does not let this user watch it; run as root"));
        assert!(Refused::NoTracepoint("lock/x".to_owned()).words().contains("lock/x"));
        assert!(Refused::Kernel(Errno::NOSYS).words().contains("CONFIG_PERF_EVENTS"));
    }
}
