//! A wake-up across processors: two threads on two processors wake each other by futex(2) in turn. A figure is from the wake by one to
//! the other having run and called for its own wake.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::io::Errno;
use rustix::thread::futex;

use super::super::timed;
use super::pinned;

/// Whose turn it is, or that it is over.
const TIMED: u32 = 0;
const OTHER: u32 = 1;
const OVER: u32 = 2;

/// Nanoseconds for a wake-up between these processors.
///
/// # Errors
/// No thread can be started, or a processor has gone.
pub(super) fn sample(cpus: [usize; 2], slice: Duration) -> std::io::Result<f64> {
    let turn = &AtomicU32::new(TIMED);
    let [here, there] = cpus;
    std::thread::scope(|scope| {
        let other = std::thread::Builder::new().spawn_scoped(scope, move || -> std::io::Result<()> {
            let pinned = pinned::stay_on(there);
            while wait_while(turn, TIMED)? != OVER {
                pass(turn, TIMED)?;
            }
            pinned
        })?;
        let timed = std::thread::Builder::new().spawn_scoped(scope, move || {
            let took = timed_here(turn, here, slice);
            pass(turn, OVER).and(took)
        });
        let Ok(timed) = timed.inspect_err(|_| drop(pass(turn, OVER))) else {
            return Err(std::io::Error::other("no thread can be started"));
        };
        let gone = |_| std::io::Error::other("a thread of the probe ended");
        let took = timed.join().map_err(gone)?;
        other.join().map_err(gone)?.and(took)
    })
}

fn timed_here(turn: &AtomicU32, cpu: usize, slice: Duration) -> std::io::Result<f64> {
    pinned::stay_on(cpu)?;
    let to_and_fro = || pass(turn, OTHER).and_then(|()| wait_while(turn, OTHER)).map(drop);
    to_and_fro()?;
    // There and back.
    timed::whole(slice, 2, to_and_fro)
}

/// Hands the turn over and wakes who waits for it.
fn pass(turn: &AtomicU32, to: u32) -> std::io::Result<()> {
    turn.store(to, Ordering::Release);
    futex::wake(turn, futex::Flags::PRIVATE, 1)?;
    Ok(())
}

/// Sleeps while it is `whose` turn; whose it is then.
fn wait_while(turn: &AtomicU32, whose: u32) -> std::io::Result<u32> {
    loop {
        let now = turn.load(Ordering::Acquire);
        if now != whose {
            return Ok(now);
        }
        match futex::wait(turn, futex::Flags::PRIVATE, whose, None) {
            Ok(()) | Err(Errno::AGAIN | Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}
