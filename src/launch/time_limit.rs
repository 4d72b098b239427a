//! The end of a trial that takes too long, for engines that work in this very process and its children.
//!
//! Enters: a limit. Leaves: whether it was passed. A stopped or stuck child is killed; when even that frees nobody
//! (a thread hangs in the kernel) a last word is said and the process ends. It must not know what the trial does.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use super::descendants;

/// How long after the children's end the engine may take to notice it.
const GRACE: Duration = Duration::from_secs(5);

/// Watches from another thread until it is ended.
pub(super) struct TimeLimit {
    over: Sender<()>,
    watch: JoinHandle<bool>,
}

impl TimeLimit {
    /// From now on; `last_word` is called when nothing else helps, before the process ends.
    pub(super) fn start(seconds: f64, last_word: impl FnOnce() + Send + 'static) -> TimeLimit {
        let (over, ended) = channel::<()>();
        // What does not fit is no limit.
        let limit = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
        let watch = std::thread::spawn(move || {
            let passed = |limit| matches!(ended.recv_timeout(limit), Err(RecvTimeoutError::Timeout));
            if !passed(limit) {
                return false;
            }
            descendants::kill_all(rustix::process::getpid().as_raw_nonzero().get());
            if passed(GRACE) {
                last_word();
                std::process::exit(0);
            }
            true
        });
        TimeLimit { over, watch }
    }

    /// Whether the limit was passed before this.
    pub(super) fn end(self) -> bool {
        // A watch that is gone hears nothing, which is as well.
        let _ = self.over.send(());
        self.watch.join().unwrap_or(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // That it is passed is tested with a whole trial (tests/it/failing_io.rs): it kills every child of this process.
    #[test]
    fn what_ends_in_time_has_not_passed_it() {
        for seconds in [60.0, 1e300, f64::INFINITY] {
            assert!(!TimeLimit::start(seconds, || ()).end());
        }
    }
}
