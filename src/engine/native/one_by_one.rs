//! The loop of synchronous methods: one transfer after the other.
//!
//! The clock is read once a transfer: when it has ended, which is when the next one begins, unless something else was
//! done in between. What the loop itself takes (some ten nanoseconds) is therefore within the latencies, and a
//! second reading, which takes as long, is not.

use std::os::fd::AsFd;

use super::failure::Failure;
use super::job::Running;
use super::meter::Moments;
use super::method::{Operation, Synchronous, Transfer};
use super::pace;
use super::start_line::StartLine;
use super::tempo::Planned;

/// Transfers until the amount or the time is up, or somebody tells all to stop.
pub(super) fn run<M: Synchronous>(
    running: &mut Running<'_>,
    mut method: M,
    line: &StartLine,
) -> Result<(), Failure> {
    let mut now = running.begun_ns;
    while running.keep_going(now) && !line.stopped() {
        let Some(next) = running.take() else {
            match running.plan(now) {
                Planned::Done => return Ok(()),
                Planned::Ready => now = running.clock.now_ns(),
                Planned::Later(until_ns) => now = pace::sleep_until(&running.clock, until_ns),
            }
            continue;
        };
        if next.operation == Operation::Write && running.buffers.prepare_write(0, next.length, next.offset) {
            now = running.clock.now_ns();
        }
        let transfer = Transfer {
            slot: 0,
            operation: next.operation,
            file: running.files[next.file].as_fd(),
            offset: next.offset,
            length: next.length,
        };
        let issue_ns = now;
        let result = method.transfer(&transfer, &mut running.buffers);
        now = running.clock.now_ns();
        // What was meant to start earlier counts from then; without a rate nothing was.
        let start_ns = issue_ns.min(running.intended_ns);
        running.complete(next, Moments { start_ns, issue_ns, complete_ns: now }, result)?;
        if running.tempo.is_some() {
            let wanted = running.wanted(now);
            if wanted.drains() {
                now = running.attend(wanted, line)?;
            }
        }
    }
    Ok(())
}
