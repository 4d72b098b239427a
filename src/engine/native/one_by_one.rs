//! The loop of synchronous methods: one transfer after the other.
//!
//! The clock is read once a transfer: when it has ended, which is when the next one begins, unless something else was
//! done in between. What the loop itself takes (some nanoseconds) is therefore within the latencies, and a second
//! reading, which would take longer, is not.

use std::os::fd::AsFd;

use super::failure::Failure;
use super::meter::Moments;
use super::method::{Operation, Synchronous, Transfer};
use super::pace;
use super::running::Running;
use super::start_line::StartLine;
use super::tempo::Planned;
use crate::record::Direction;

/// A run of transfers is left at least so often, to see whether somebody told all to stop.
pub(super) const LOOK_AROUND_NS: u64 = 5_000_000;

/// Transfers until the amount or the time is up, or somebody tells all to stop.
pub(super) fn run<M: Synchronous>(
    running: &mut Running<'_>,
    mut method: M,
    line: &StartLine,
) -> Result<(), Failure> {
    let mut now = running.begun_ns;
    while running.keep_going(now) && !line.stopped() {
        let Some((run, _)) = running.ahead.run() else {
            let planned = running.plan(now);
            if !running.begin_again() {
                return Ok(());
            }
            match planned {
                Planned::Done => return Ok(()),
                Planned::Ready => now = running.clock.now_ns(),
                Planned::Later(until_ns) => now = pace::sleep_until(&running.clock, line, until_ns),
            }
            continue;
        };
        now = match run.operation.direction() {
            Some(direction) if !running.attended => transfer_run(running, &mut method, direction, now)?,
            _ => transfer_one(running, &mut method, line, now)?,
        };
    }
    Ok(())
}

/// Transfers what the current run holds, with nothing in between; returns when the last ended. It stops early when a
/// time limit is passed: all that ended by then but the last belongs to one second of the series.
fn transfer_run<M: Synchronous>(
    running: &mut Running<'_>,
    method: &mut M,
    direction: Direction,
    mut now: u64,
) -> Result<u64, Failure> {
    let Running { ahead, buffers, files, clock, meter, .. } = running;
    let (Some((run, offsets)), Some(meter)) = (ahead.run(), meter.of(direction)) else { return Ok(now) };
    let file = files[run.file].as_fd();
    let limit = meter.interval_end_ns.min(running.until_ns).min(now + LOOK_AROUND_NS);
    let prepares = run.operation == Operation::Write && buffers.change();
    let (mut before, mut done) = (now, 0);
    let mut result = Ok(run.length);
    for &offset in offsets {
        if prepares {
            buffers.prepare_write(0, run.length, offset);
            now = clock.now_ns();
        }
        let transfer = Transfer {
            slot: 0,
            operation: run.operation,
            number: run.file,
            file,
            offset,
            length: run.length,
        };
        result = method.transfer(&transfer, buffers);
        let ended = clock.now_ns();
        if result != Ok(run.length) {
            break;
        }
        meter.clat.record(ended.saturating_sub(now));
        if let Some(until_durable) = &mut meter.until_durable {
            until_durable.wrote(now, ended);
        }
        done += 1;
        (before, now) = (now, ended);
        if ended >= limit {
            break;
        }
    }
    if done > 0 {
        meter.add(done - 1, run.length, before);
        meter.add(1, run.length, now);
    }
    let failed = offsets.get(done as usize).copied().filter(|_| result != Ok(run.length));
    running.made(done as usize + usize::from(failed.is_some()));
    match failed {
        Some(offset) => Err(running.wrong(direction, run.at(offset), result)),
        None => Ok(now),
    }
}

/// Makes one transfer, or one sync, with all that may happen around it.
fn transfer_one<M: Synchronous>(
    running: &mut Running<'_>,
    method: &mut M,
    line: &StartLine,
    mut now: u64,
) -> Result<u64, Failure> {
    let Some(next) = running.take() else { return Ok(now) };
    if next.operation == Operation::Write && running.prepare_write(0, &next) {
        now = running.clock.now_ns();
    }
    let transfer = Transfer {
        slot: 0,
        operation: next.operation,
        number: next.file,
        file: running.files[next.file].as_fd(),
        offset: next.offset,
        length: next.length,
    };
    let issue_ns = now;
    let result = method.transfer(&transfer, &mut running.buffers);
    now = running.clock.now_ns();
    // What was meant to start earlier counts from then; without a rate nothing was.
    let start_ns = issue_ns.min(running.intended_ns);
    running.complete(0, &next, &Moments { start_ns, issue_ns, complete_ns: now }, result)?;
    // What is counted behind a sync, of all writes before it, is none of the next one's time.
    if running.judges() || next.operation.direction().is_none() {
        now = running.clock.now_ns();
    }
    let wanted = running.wanted(now);
    if wanted.drains() { running.attend(wanted, line) } else { Ok(now) }
}
