//! The end of a trial that takes too long, or that waits for what does not come.
//!
//! Enters: a limit, for engines that work in this very process and its children, or none: then nobody may wait for I/O
//! longer than [`LONGEST_WAIT`] in one go (`stall.rs`). Leaves: whether it was passed, and how. A stopped or stuck child
//! is killed; when even that frees nobody (a thread hangs in the kernel) a last word is said and the process ends. It
//! must not know what the trial does.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::descendants;
use super::stall::{LONGEST_WAIT, Waits};

/// How long after the children's end the engine may take to notice it.
const GRACE: Duration = Duration::from_secs(5);
/// Between two looks at who waits.
const LOOKS: Duration = Duration::from_secs(5);

/// Watches from another thread until it is ended.
pub(super) struct TimeLimit {
    over: Sender<()>,
    watch: JoinHandle<Option<String>>,
}

impl TimeLimit {
    /// From now on; `last_word` is called with the reason when nothing else helps, before the process ends.
    pub(super) fn start(seconds: Option<f64>, last_word: impl FnOnce(String) + Send + 'static) -> TimeLimit {
        let (over, ended) = channel::<()>();
        // Tests do not want to wait for two minutes. Read here: a lock of the library must not be held in a fork.
        let asked = std::env::var("ASSAY_TEST_STALL_S").ok().and_then(|text| text.parse().ok());
        let longest = asked.map_or(LONGEST_WAIT, Duration::from_secs);
        let watch = std::thread::spawn(move || {
            let passed = |limit| matches!(ended.recv_timeout(limit), Err(RecvTimeoutError::Timeout));
            let reason = match seconds {
                Some(seconds) => {
                    // What does not fit is no limit.
                    let limit = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
                    passed(limit).then(|| too_long(seconds))
                }
                None => stalled(longest, passed),
            }?;
            descendants::kill_all(rustix::process::getpid().as_raw_nonzero().get());
            if passed(GRACE) {
                last_word(reason);
                std::process::exit(0);
            }
            Some(reason)
        });
        TimeLimit { over, watch }
    }

    /// Why it was stopped before this, if it was.
    pub(super) fn end(self) -> Option<String> {
        // A watch that is gone hears nothing, which is as well.
        let _ = self.over.send(());
        self.watch.join().ok().flatten()
    }
}

fn too_long(limit_s: f64) -> String {
    format!("the trial took longer than the limit of {limit_s} s and was stopped")
}

/// Looks until the trial has ended or somebody has waited too long; `passed` waits for the former.
fn stalled(longest: Duration, passed: impl Fn(Duration) -> bool) -> Option<String> {
    let mut waits = Waits::new(longest);
    let me = rustix::process::getpid().as_raw_nonzero().get();
    while passed(LOOKS.min(longest / 4)) {
        let mut processes = descendants::all(me);
        processes.push(me);
        if let Some(reason) = waits.look(&processes, Instant::now()) {
            return Some(reason);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    // That it is passed is tested with a whole trial (tests/it/failing_io.rs): it kills every child of this process.
    #[test]
    fn what_ends_in_time_has_not_passed_it() {
        for seconds in [Some(60.0), Some(1e300), Some(f64::INFINITY), None] {
            assert_eq!(TimeLimit::start(seconds, |_| ()).end(), None);
        }
    }
}
