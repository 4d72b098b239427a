//! The end of an agent that a signal tells to end: everything that it has started ends with it, also what a process that was killed
//! has orphaned.
//!
//! Enters: a signal, also the one that the kernel sends when assay is killed. Leaves: no descendant of this process. It must not know
//! what they were started for.

use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use signal_hook::consts::{SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;

use super::endings::{ending_signals, reserved_signals_are_sigterm};
use crate::host::{RunGroup, end_children, kill_descendants, signal_descendants};

/// In the environment of an agent that was told to end and only ends what is left: its exit code.
pub(super) const LAST_DUTY: &str = "ASSAY_AGENT_ENDS";
/// In the environment of an agent: the process that started it.
pub(super) const PARENT: &str = "ASSAY_AGENT_OF";

/// Held while a hook is started, and from the end that was asked for on: nothing starts any more then.
pub(super) static STARTS: Mutex<()> = Mutex::new(());

/// Adopts orphans, so that on a signal that ends it (also the one the kernel sends when assay itself is killed) everything the
/// engine has started ends with this process.
pub(super) fn die_in_order() -> Result<(), String> {
    rustix::process::set_child_subreaper(rustix::process::Pid::from_raw(1))
        .map_err(|e| format!("cannot become subreaper: {e}"))?;
    // Handle SIGXFSZ so that a write past the limit of a file's size returns EFBIG.
    signal_hook::flag::register(SIGXFSZ, Arc::default()).map_err(|e| format!("cannot watch signals: {e}"))?;
    let mut signals = Signals::new([SIGTERM]).map_err(|e| format!("cannot watch signals: {e}"))?;
    for signal in ending_signals() {
        match signals.add_signal(signal) {
            // Under valgrind, which keeps the last one to itself.
            Err(error) if signal == libc::SIGRTMAX() && error.raw_os_error() == Some(libc::EINVAL) => {}
            watched => watched.map_err(|e| format!("cannot watch signals: {e}"))?,
        }
    }
    reserved_signals_are_sigterm();
    std::thread::spawn(move || signals.forever().next().into_iter().for_each(end_everything));
    Ok(())
}

/// Ends all descendants, then this process. Another thread may start one more until the last moment: so this program is begun
/// anew, with a single thread, which ends what is left.
fn end_everything(signal: i32) {
    let _nothing_starts = STARTS.lock().unwrap_or_else(PoisonError::into_inner);
    let me = rustix::process::getpid().as_raw_nonzero().get();
    let begun = Instant::now();
    while signal_descendants(me, Signal::TERM) > 0 && begun.elapsed() < Duration::from_millis(500) {
        std::thread::sleep(Duration::from_millis(20));
    }
    kill_descendants(me);
    let code = 128 + signal;
    let mut anew = Command::new("/proc/self/exe");
    // Returns only when it failed.
    let _ = anew.arg("agent").env(LAST_DUTY, code.to_string()).exec();
    std::process::exit(code);
}

/// The last duty of an agent that was told to end; `None`: this is one that begins.
pub(super) fn last_duty() -> Option<i32> {
    let code = std::env::var(LAST_DUTY).ok()?.parse().ok()?;
    end_children(&[]);
    // The parent that would remove the run's control group was killed, too.
    if std::env::var(PARENT).is_ok_and(|parent| parent != std::os::unix::process::parent_id().to_string()) {
        RunGroup::leave(crate::host::run_mark());
    }
    Some(code)
}
