//! The loop of synchronous methods: one transfer after the other.

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
        let Some(next) = running.next() else { return Ok(()) };
        if next.operation == Operation::Write {
            running.buffers.prepare_write(0, next.length as usize, next.offset);
        }
        let transfer = Transfer {
            slot: 0,
            operation: next.operation,
            file: running.files[next.file].as_fd(),
            offset: next.offset,
            length: next.length,
        };
        let start_ns = running.clock.now_ns();
        let result = method.transfer(&transfer, &mut running.buffers);
        now = running.clock.now_ns();
        running.complete(next, Moments { start_ns, issue_ns: start_ns, complete_ns: now }, result)?;
    }
    Ok(())
}
