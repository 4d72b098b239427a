//! A context switch: two threads on one processor hand a byte to and fro through pipes. A figure includes the write(2) and the read(2)
//! that go with each switch, as with lmbench's lat_ctx (McVoy & Staelin 1996, "lmbench: portable tools for performance analysis").

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use super::super::{Group, Probe};
use super::pinned;
use crate::units::Unit;

/// The probe.
pub(super) struct ContextSwitch;

impl Probe for ContextSwitch {
    fn group(&self) -> Group {
        Group::Calls
    }

    fn name(&self) -> String {
        "context_switch".to_owned()
    }

    fn unit(&self) -> Unit {
        Unit::Nanoseconds
    }

    fn sample(&mut self, slice: Duration) -> std::io::Result<f64> {
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
                let (begun, mut switches) = (Instant::now(), 0_u32);
                loop {
                    to_and_fro()?;
                    switches += 2;
                    let took = begun.elapsed();
                    if took >= slice {
                        return Ok(took.as_nanos() as f64 / f64::from(switches));
                    }
                }
            });
            let gone = || std::io::Error::other("a thread of the probe ended");
            // A thread that was not started has dropped its ends, which ends the other.
            let took = timed?.join().map_err(|_| gone())?;
            let other = other.join().map_err(|_| gone())?;
            // What went wrong with the other one comes first: it is why the byte did not return.
            other.and(took)
        })
    }
}
