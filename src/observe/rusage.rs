//! Resource use of this process and of its ended children: processor time, context switches, page faults (getrusage(2)).

use super::{Observer, Unseen};
use crate::record::{Outcome, Sample, Unit};

/// Watches resource use from its start to its stop.
#[derive(Clone, Copy, Debug, Default)]
pub struct RusageObserver {
    before: Usage,
}

/// Sums over this process and its children, since each began.
#[derive(Clone, Copy, Debug, Default)]
struct Usage {
    usr_us: i64,
    sys_us: i64,
    voluntary: i64,
    involuntary: i64,
    minor_faults: i64,
    major_faults: i64,
}

impl Usage {
    #[expect(unsafe_code, reason = "getrusage is not in rustix")]
    fn now() -> Usage {
        let mut sum = Usage::default();
        for who in [libc::RUSAGE_SELF, libc::RUSAGE_CHILDREN] {
            // SAFETY: rusage is plain numbers, all zeros is a value of it; getrusage writes to it.
            let usage = unsafe {
                let mut usage: libc::rusage = std::mem::zeroed();
                libc::getrusage(who, &raw mut usage);
                usage
            };
            sum.usr_us += usage.ru_utime.tv_sec * 1_000_000 + usage.ru_utime.tv_usec;
            sum.sys_us += usage.ru_stime.tv_sec * 1_000_000 + usage.ru_stime.tv_usec;
            sum.voluntary += usage.ru_nvcsw;
            sum.involuntary += usage.ru_nivcsw;
            sum.minor_faults += usage.ru_minflt;
            sum.major_faults += usage.ru_majflt;
        }
        sum
    }
}

impl Observer for RusageObserver {
    fn start(&mut self) {
        self.before = Usage::now();
    }

    /// `usr_cpu`, `sys_cpu` (s), `ctx.voluntary`, `ctx.involuntary`, and fio's `majf`, `minf`.
    fn stop(&mut self) -> Result<Outcome, Unseen> {
        let (before, now) = (self.before, Usage::now());
        let seconds = |name: &str, us: i64| Sample::new("", name, Unit::Seconds, us as f64 / 1e6);
        let count = |name: &str, count: i64| Sample::new("", name, Unit::Count, count as f64);
        let samples = vec![
            seconds("usr_cpu", now.usr_us - before.usr_us),
            seconds("sys_cpu", now.sys_us - before.sys_us),
            count("ctx.voluntary", now.voluntary - before.voluntary),
            count("ctx.involuntary", now.involuntary - before.involuntary),
            count("majf", now.major_faults - before.major_faults),
            count("minf", now.minor_faults - before.minor_faults),
        ];
        Ok(Outcome { samples, ..Outcome::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_childs_work_is_counted_when_it_has_ended() {
        let mut observer = RusageObserver::default();
        observer.start();
        let script = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; sleep 0.01";
        assert!(std::process::Command::new("sh").args(["-c", script]).status().unwrap().success());
        let samples = observer.stop().unwrap().samples;
        let value = |name: &str| samples.iter().find(|s| s.metric.name == name).unwrap().value;
        assert!(value("usr_cpu") + value("sys_cpu") > 0.02, "{samples:?}");
        assert!(value("ctx.voluntary") >= 1.0 && value("minf") >= 1.0, "{samples:?}");
    }
}
