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
use super::start_line::StartLine;

/// Transfers until the amount or the time is up, or somebody tells all to stop.
pub(super) fn run<M: Synchronous>(
    running: &mut Running<'_>,
    mut method: M,
    line: &StartLine,
) -> Result<(), Failure> {
    let mut now = running.begun_ns;
    while running.keep_going(now) && !line.stopped() {
        let Some(next) = running.take() else {
            if !running.plan() {
                return Ok(());
            }
            now = running.clock.now_ns();
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
        let start_ns = now;
        let result = method.transfer(&transfer, &mut running.buffers);
        now = running.clock.now_ns();
        running.complete(next, Moments { start_ns, issue_ns: start_ns, complete_ns: now }, result)?;
        if running.pause() {
            now = running.clock.now_ns();
        }
    }
    Ok(())
}
