//! The end of a trial that takes too long, or that waits for what does not come.
//!
//! Enters: a [`Limit`]. Leaves: whether it was passed, and how. A stopped or stuck child is killed; when even that frees
//! nobody (a thread hangs in the kernel) a last word is said and the process ends. It must not know what the trial does.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::descendants;
use super::stall::{LONGEST_WAIT, Rings, Waits};

/// How long after the children's end the engine may take to notice it.
const GRACE: Duration = Duration::from_secs(5);
/// Between two looks at who waits.
const LOOKS: Duration = Duration::from_secs(5);
/// How much longer than its limit an engine may take that ends its program itself: the guard (`engine/guard.rs`) gives up
/// after ten seconds.
const ENGINES_OWN: Duration = Duration::from_secs(15);

/// What a trial may not pass.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Limit {
    /// So many seconds, for engines that work in this very process and its children.
    Seconds(f64),
    /// So many seconds, for engines that end their program themselves; this is for what hangs then.
    EnginesOwn(f64),
    /// Nobody may wait for I/O longer than [`LONGEST_WAIT`] in one go (`stall.rs`).
    Waits(Rings),
}

/// Watches from another thread until it is ended.
pub(super) struct TimeLimit {
    over: Sender<()>,
    watch: JoinHandle<Option<String>>,
}

impl TimeLimit {
    /// From now on; `last_word` is called with the reason and the processes that are left when nothing else helps, before
    /// the process ends.
    pub(super) fn start(
        limit: Limit,
        last_word: impl FnOnce(String, Vec<i32>) + Send + 'static,
    ) -> TimeLimit {
        let (over, ended) = channel::<()>();
        let (up, is_up) = channel::<()>();
        // Tests do not want to wait for two minutes. Read here: a lock of the library must not be held in a fork.
        let asked = std::env::var("ASSAY_TEST_STALL_S").ok().and_then(|text| text.parse().ok());
        let longest = asked.map_or(LONGEST_WAIT, Duration::from_secs);
        let watch = std::thread::spawn(move || {
            let _ = up.send(());
            let passed = |limit| matches!(ended.recv_timeout(limit), Err(RecvTimeoutError::Timeout));
            let reason = match limit {
                Limit::Seconds(seconds) => passed(duration(seconds)).then(|| too_long(seconds)),
                Limit::EnginesOwn(seconds) => {
                    passed(duration(seconds).saturating_add(ENGINES_OWN)).then(|| too_long(seconds))
                }
                Limit::Waits(rings) => stalled(longest, rings, passed),
            }?;
            let me = rustix::process::getpid().as_raw_nonzero().get();
            descendants::kill_all(me);
            if passed(GRACE) {
                let mut family = descendants::all(me);
                family.push(me);
                last_word(reason, descendants::that_hang(&family));
                std::process::exit(0);
            }
            Some(reason)
        });
        // A thread that is being started holds locks of the library, which a fork meanwhile would copy.
        let _ = is_up.recv();
        TimeLimit { over, watch }
    }

    /// Why it was stopped before this, if it was.
    pub(super) fn end(self) -> Option<String> {
        // A watch that is gone hears nothing, which is as well.
        let _ = self.over.send(());
        self.watch.join().ok().flatten()
    }
}

/// What does not fit is no limit.
fn duration(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
}

fn too_long(limit_s: f64) -> String {
    format!("the trial took longer than the limit of {limit_s} s and was stopped")
}

/// Looks until the trial has ended or somebody has waited too long; `passed` waits for the former.
fn stalled(longest: Duration, rings: Rings, passed: impl Fn(Duration) -> bool) -> Option<String> {
    let mut waits = Waits::new(longest, rings);
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

    // That it is passed is tested with a whole trial (tests/it/failing_io.rs, hanging_io.rs): it kills every child of
    // this process.
    #[test]
    fn what_ends_in_time_has_not_passed_it() {
        let seconds = [60.0, 1e300, f64::INFINITY];
        let limits = seconds.map(Limit::Seconds).into_iter().chain(seconds.map(Limit::EnginesOwn));
        for limit in limits.chain([Limit::Waits(Rings::OnlyIo), Limit::Waits(Rings::Anything)]) {
            assert_eq!(TimeLimit::start(limit, |_, _| ()).end(), None, "{limit:?}");
        }
    }
}
