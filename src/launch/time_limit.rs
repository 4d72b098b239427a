//! The end of a trial that takes too long, or that waits for what does not come.
//!
//! Enters: a [`Limit`]. Leaves: whether it was passed, and how. A stopped or stuck child is killed; when even that frees
//! nobody (a thread hangs in the kernel) a last word is said and the process ends. It must not know what the trial does.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::endings::signal_name;
use super::stall::{LONGEST_WAIT, Rings, Waits};
use crate::host::{descendants, kill_descendants, own_children, that_hang, unnoticed_death};

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
    /// So many seconds, for engines that end their program themselves; this is for what hangs then. What the program is, as in
    /// [`Limit::Waits`].
    EnginesOwn(f64, Rings),
    /// Nobody may wait for I/O longer than [`LONGEST_WAIT`] in one go (`stall.rs`); of a tool that does I/O alone no process may be
    /// killed.
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
        // What hooks have left in the background is none of the engine's.
        let others = own_children();
        let watch = std::thread::spawn(move || {
            let _ = up.send(());
            let passed = |limit| matches!(ended.recv_timeout(limit), Err(RecvTimeoutError::Timeout));
            let reason = match limit {
                Limit::Seconds(seconds) => passed(duration(seconds)).then(|| too_long(seconds)),
                Limit::EnginesOwn(seconds, rings) => overdue(seconds, rings, &others, passed),
                Limit::Waits(rings) => stalled(longest, rings, &others, passed),
            }?;
            let me = rustix::process::getpid().as_raw_nonzero().get();
            kill_descendants(me);
            if passed(GRACE) {
                let mut family = descendants(me);
                family.push(me);
                last_word(reason, that_hang(&family));
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

/// Looks until the trial has ended, its time is over or a worker was killed; `passed` waits for the first.
fn overdue(seconds: f64, rings: Rings, others: &[i32], passed: impl Fn(Duration) -> bool) -> Option<String> {
    let mut left = duration(seconds).saturating_add(ENGINES_OWN);
    while passed(LOOKS.min(left)) {
        left = left.saturating_sub(LOOKS);
        if left.is_zero() {
            return Some(too_long(seconds));
        }
        if let Some(reason) = killed_worker(rings, others) {
            return Some(reason);
        }
    }
    None
}

/// Looks until the trial has ended, somebody has waited too long or a worker was killed; `passed` waits for the first.
fn stalled(
    longest: Duration,
    rings: Rings,
    others: &[i32],
    passed: impl Fn(Duration) -> bool,
) -> Option<String> {
    let mut waits = Waits::new(longest, rings);
    let me = rustix::process::getpid().as_raw_nonzero().get();
    while passed(LOOKS.min(longest / 4)) {
        let mut processes = descendants(me);
        processes.push(me);
        let stuck = waits.look(&processes, Instant::now());
        if let Some(reason) = stuck.or_else(|| killed_worker(rings, others)) {
            return Some(reason);
        }
    }
    None
}

/// A process of the engine's program that a signal ended, and whose parent has not noticed: it may wait for ever, or go on
/// without it and print a result. Any program may end its children so; one that does I/O alone does not. This process
/// notices the end of its own children.
fn killed_worker(rings: Rings, others: &[i32]) -> Option<String> {
    if rings == Rings::Anything {
        return None;
    }
    let of_engine = own_children().into_iter().filter(|child| !others.contains(child));
    let (worker, signal) =
        of_engine.flat_map(descendants).find_map(|pid| Some((pid, unnoticed_death(pid)?)))?;
    let name = std::fs::read_to_string(format!("/proc/{worker}/comm")).unwrap_or_default();
    Some(format!(
        "process {worker} ({}) of the engine's program was ended by {}; the trial was ended",
        name.trim(),
        signal_name(signal)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    // That it is passed is tested with a whole trial (tests/it/failing_io.rs, hanging_io.rs): it kills every child of
    // this process.
    #[test]
    fn what_ends_in_time_has_not_passed_it() {
        let seconds = [60.0, 1e300, f64::INFINITY];
        let limits = seconds
            .map(Limit::Seconds)
            .into_iter()
            .chain(seconds.map(|s| Limit::EnginesOwn(s, Rings::OnlyIo)));
        for limit in limits.chain([Limit::Waits(Rings::OnlyIo), Limit::Waits(Rings::Anything)]) {
            assert_eq!(TimeLimit::start(limit, |_, _| ()).end(), None, "{limit:?}");
        }
    }
}
