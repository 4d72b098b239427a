//! Resource use of this process and of its ended children: processor time, context switches, page faults (getrusage(2)).

use super::perf::readers_used;
use super::usage::Usage;
use super::{Observer, Unseen};
use crate::record::{Outcome, Sample, Unit};

/// Watches resource use from its start to its stop.
#[derive(Clone, Copy, Debug, Default)]
pub struct RusageObserver {
    before: Usage,
}

/// What this process and its ended children have used since each began, without the threads that read events, which are none of the load.
fn now() -> Usage {
    Usage::of(libc::RUSAGE_SELF).plus(&Usage::of(libc::RUSAGE_CHILDREN)).minus(&readers_used())
}

impl Observer for RusageObserver {
    fn start(&mut self) {
        self.before = now();
    }

    /// `usr_cpu`, `sys_cpu` (s), `ctx.voluntary`, `ctx.involuntary`, and fio's `majf`, `minf`.
    fn stop(&mut self) -> Result<Outcome, Unseen> {
        let used = now().minus(&self.before);
        let seconds = |name: &str, us: i64| Sample::new("", name, Unit::Seconds, us.max(0) as f64 / 1e6);
        let count = |name: &str, count: i64| Sample::new("", name, Unit::Count, count.max(0) as f64);
        let samples = vec![
            seconds("usr_cpu", used.usr_us),
            seconds("sys_cpu", used.sys_us),
            count("ctx.voluntary", used.voluntary),
            count("ctx.involuntary", used.involuntary),
            count("majf", used.major_faults),
            count("minf", used.minor_faults),
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
