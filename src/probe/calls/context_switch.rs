//! A context switch: two threads on one processor hand a byte to and fro through pipes. A figure includes the write(2) and the read(2)
//! that go with each switch, as with lmbench's lat_ctx (McVoy & Staelin 1996, "lmbench: portable tools for performance analysis").

use std::io::{Read, Write};
use std::time::Duration;

use super::super::timed;
use super::pinned;

/// Nanoseconds for a switch.
///
/// # Errors
/// No pipe or thread can be made.
pub(super) fn sample(slice: Duration) -> std::io::Result<f64> {
    let cpu = rustix::thread::sched_getcpu();
    let ((mut ball, mut there), (mut back, mut returned)) = (std::io::pipe()?, std::io::pipe()?);
    std::thread::scope(|scope| {
        let builder = std::thread::Builder::new();
        let other = builder.spawn_scoped(scope, move || -> std::io::Result<()> {
            pinned::stay_on(cpu)?;
            let mut byte = [0];
            // Ends when the other end is closed.
            while ball.read(&mut byte)? == 1 {
                returned.write_all(&byte)?;
            }
            Ok(())
        })?;
        let builder = std::thread::Builder::new();
        let timed = builder.spawn_scoped(scope, move || -> std::io::Result<f64> {
            pinned::stay_on(cpu)?;
            let mut byte = [0];
            let mut to_and_fro = || {
                there.write_all(&[0])?;
                back.read_exact(&mut byte)
            };
            // Both are where they belong by then.
            to_and_fro()?;
            // There and back.
            timed::whole(slice, 2, to_and_fro)
        });
        let gone = || std::io::Error::other("a thread of the probe ended");
        // A thread that was not started has dropped its ends, which ends the other.
        let took = timed?.join().map_err(|_| gone())?;
        let other = other.join().map_err(|_| gone())?;
        // What went wrong with the other one comes first: it is why the byte did not return.
        other.and(took)
    })
}
