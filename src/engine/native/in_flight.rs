//! The loop of asynchronous methods, fio's `do_io`: fill the queue; when it is full, or nothing is left to queue, wait
//! for completions. What the job does not say is as in fio: each transfer is submitted as it is queued, and completions
//! are reaped one by one. The clock is read once a batch: what is reaped together has ended, and what is queued next
//! begins, at that moment.

use std::ops::ControlFlow;
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::io::Errno;

use super::ahead::LOT;
use super::failure::Failure;
use super::meter::Moments;
use super::method::{Asynchronous, Completion, Operation, Transfer, synchronous_other};
use super::one_by_one::LOOK_AROUND_NS;
use super::pace;
use super::running::Running;
use super::source::Next;
use super::start_line::StartLine;
use super::tempo::Planned;

/// Transfers until the amount or the time is up, or somebody tells all to stop; then waits for what is in flight.
pub(super) fn run<M: Asynchronous>(
    running: &mut Running<'_>,
    method: &mut M,
    line: &StartLine,
) -> Result<(), Failure> {
    let depth = running.job.depth;
    let slots = depth.iodepth as usize;
    let idle = Flight { next: Next::default(), start_ns: 0, issue_ns: 0 };
    let mut queue = Queue {
        method,
        free: (0..slots).rev().collect(),
        flights: vec![idle; slots],
        queued: Vec::with_capacity(slots),
        of_batch: 0,
        done: Vec::with_capacity(slots),
        ended: Vec::with_capacity(LOT),
        one_by_one: depth.submit == 1
            && depth.complete_min <= 1
            && depth.complete_max == 1
            && depth.low as usize + 1 >= slots
            && !running.attended,
        now: running.begun_ns,
        most: depth.complete_max as usize,
        kept_free: 0,
        alarm_ns: 0,
        line,
    };
    queue.follow_depth(running);
    let ended = queue.transfer_all(running, depth.submit as usize);
    if ended.is_err() {
        queue.settle(running);
    }
    ended
}

/// A transfer in flight.
#[derive(Clone, Copy)]
struct Flight {
    next: Next,
    start_ns: u64,
    issue_ns: u64,
}

impl Flight {
    fn ended(&self, complete_ns: u64) -> Moments {
        Moments { start_ns: self.start_ns, issue_ns: self.issue_ns, complete_ns }
    }
}

/// The slots and what is in them.
struct Queue<'m, M> {
    method: &'m mut M,
    free: Vec<usize>,
    flights: Vec<Flight>,
    /// Queued but not yet submitted.
    queued: Vec<usize>,
    /// Queued since a batch was last full. As in fio it counts on where a wait submits what there is: see [`Queue::submit_if_due`].
    of_batch: usize,
    done: Vec<Completion>,
    /// Transfers of [`Queue::exchange`] that ended well and are not counted yet.
    ended: Vec<Moments>,
    /// Whether a full queue takes one transfer for each that is reaped, with nothing in between.
    one_by_one: bool,
    /// When the clock was last read.
    now: u64,
    /// Most to be reaped in one go.
    most: usize,
    /// Slots that a latency target leaves unused.
    kept_free: usize,
    /// When the alarm set last goes off.
    alarm_ns: u64,
    line: &'m StartLine<'m>,
}

impl<M: Asynchronous> Queue<'_, M> {
    /// Transfers until nothing is left to do and nothing in flight.
    fn transfer_all(&mut self, running: &mut Running<'_>, batch: usize) -> Result<(), Failure> {
        loop {
            let more = running.keep_going(self.now) && !self.line.stopped();
            if more && self.one_by_one && self.free.len() == 1 && self.exchange(running)? {
                continue;
            }
            let took = more && self.take_one(running)?;
            let full = self.is_full();
            let wait = self.in_flight() > 0 && (full || !took);
            self.submit_if_due(running, batch, wait)?;
            if wait {
                self.reap(running, full)?;
            }
            if took && running.tempo.is_some() {
                self.attend(running)?;
            }
            if !took && self.in_flight() == 0 {
                return Ok(());
            }
        }
    }

    /// After a failure: what is still in flight ends, and what of it ends well counts, too.
    #[cold]
    fn settle(&mut self, running: &mut Running<'_>) {
        while self.in_flight() > self.queued.len() {
            if self.method.reap(1, usize::MAX, &mut self.done).is_err() || self.done.is_empty() {
                return;
            }
            // The first failure is the one that is told.
            self.now = running.clock.now_ns();
            let _ = self.count_done(running);
        }
    }

    /// Hands over what the current run holds, one transfer for each that is reaped: what the loop does with a full queue, in
    /// little code, since a call of the kernel leaves little of it in the processor's caches. What has ended is counted
    /// behind it. False: nothing is planned, or nothing that can be in flight.
    fn exchange(&mut self, running: &mut Running<'_>) -> Result<bool, Failure> {
        let Running { ahead, buffers, files, clock, meter, .. } = running;
        let Some((run, offsets)) = ahead.run() else { return Ok(false) };
        let Some(direction) = run.operation.direction() else { return Ok(false) };
        if M::IN_PLACE.contains(&run.operation) {
            return Ok(false);
        }
        let Some(mut slot) = self.free.pop() else { return Ok(false) };
        let (operation, length, file) = (run.operation, run.length, files[run.file].as_fd());
        let prepares = operation == Operation::Write && buffers.change();
        let alone = self.flights.len() == 1;
        let limit = running.until_ns.min(self.now + LOOK_AROUND_NS);
        let (mut taken, mut other, mut result) = (0, None, Ok(()));
        for &offset in offsets {
            if prepares {
                buffers.prepare_write(slot, length, offset);
                self.now = clock.now_ns();
            }
            let transfer = Transfer { slot, operation, number: run.file, file, offset, length };
            let start_ns = self.now;
            result = self.method.submit_one(&transfer, buffers);
            self.now = clock.now_ns();
            self.flights[slot] = Flight { next: run.at(offset), start_ns, issue_ns: self.now };
            taken += 1;
            if result.is_err() {
                // Refused, unless it got through before the call failed.
                self.queued.extend((self.method.refused() != Some(0)).then_some(slot));
                break;
            }
            let (completion, entered) = match self.method.reap_one() {
                Ok(reaped) => reaped,
                Err(errno) => {
                    result = Err(errno);
                    break;
                }
            };
            if entered || alone {
                self.now = clock.now_ns();
            }
            slot = completion.slot;
            let flight = &self.flights[slot];
            if (flight.next.operation, flight.next.length, completion.result)
                != (operation, length, Ok(length))
            {
                other = Some(completion);
                break;
            }
            self.ended.push(flight.ended(self.now));
            if self.now >= limit {
                break;
            }
        }
        meter.transfers(direction, length, &self.ended);
        self.ended.clear();
        running.made(taken);
        // That slot is not free: its transfer is in flight, or refused.
        result.map_err(|errno| Failure::method(running.job.method.name(), errno))?;
        match other {
            Some(completion) => {
                self.done.push(completion);
                self.count_done(running)?;
            }
            None => self.free.push(slot),
        }
        Ok(true)
    }

    fn in_flight(&self) -> usize {
        self.flights.len() - self.free.len()
    }

    /// Queues the next transfer, or makes it at once; false when the amount is done.
    #[inline]
    fn take_one(&mut self, running: &mut Running<'_>) -> Result<bool, Failure> {
        if self.is_full() {
            return Ok(true);
        }
        let next = match running.take() {
            Some(next) => next,
            None => match self.plan(running)? {
                ControlFlow::Continue(next) => next,
                ControlFlow::Break(more) => return Ok(more),
            },
        };
        let Some(slot) = self.free.pop() else { return Ok(true) };
        if next.operation == Operation::Write && running.prepare_write(slot, &next) {
            self.now = running.clock.now_ns();
        }
        let transfer = Transfer {
            slot,
            operation: next.operation,
            number: next.file,
            file: running.files[next.file].as_fd(),
            offset: next.offset,
            length: next.length,
        };
        if M::IN_PLACE.contains(&next.operation) {
            // What is queued must not wait for it: its time would count as theirs.
            if let Err(failure) = self.submit(running) {
                // It is not in flight, and nobody may wait for it.
                self.free.push(slot);
                return Err(failure);
            }
            let issue_ns = running.clock.now_ns();
            let result = synchronous_other(&transfer);
            self.now = running.clock.now_ns();
            self.free.push(slot);
            let start_ns = issue_ns.min(running.intended_ns);
            let moments = Moments { start_ns, issue_ns, complete_ns: self.now };
            running.complete(slot, &next, &moments, result)?;
            self.now = running.clock.now_ns();
            return Ok(true);
        }
        // What was meant to start earlier counts from then; without a rate nothing was.
        let start_ns = self.now.min(running.intended_ns);
        self.flights[slot] = Flight { next, start_ns, issue_ns: self.now };
        if let Err(errno) = self.method.queue(&transfer, &mut running.buffers) {
            self.free.push(slot);
            return Err(Failure::method(running.job.method.name(), errno));
        }
        self.queued.push(slot);
        self.of_batch += 1;
        Ok(true)
    }

    /// Submits what is queued when a batch is full, or before a wait. What a wait submits early counts for the batch all the
    /// same, as in fio: the next one is full sooner, and the device gets the first part of a refill while the rest is queued.
    #[inline]
    fn submit_if_due(&mut self, running: &Running<'_>, batch: usize, wait: bool) -> Result<(), Failure> {
        if self.of_batch >= batch {
            self.of_batch = 0;
            return self.submit(running);
        }
        if wait && !self.queued.is_empty() { self.submit(running) } else { Ok(()) }
    }

    fn submit(&mut self, running: &Running<'_>) -> Result<(), Failure> {
        let submitted = self.method.submit();
        self.now = running.clock.now_ns();
        let refused = if submitted.is_ok() { 0 } else { self.method.refused().unwrap_or(self.queued.len()) };
        // Also of a batch that was not taken whole: what was is in flight, or has ended.
        for slot in self.queued.drain(..self.queued.len().saturating_sub(refused)) {
            self.flights[slot].issue_ns = self.now;
        }
        submitted.map_err(|errno| Failure::method(running.job.method.name(), errno))
    }

    /// Reaps as `iodepth_batch_complete_*` and `iodepth_low` say.
    fn reap(&mut self, running: &mut Running<'_>, full: bool) -> Result<(), Failure> {
        let depth = running.job.depth;
        loop {
            let min = (depth.complete_min as usize).max(1).min(self.in_flight());
            let most = self.most.max(min);
            let entered = self
                .method
                .reap(min, most, &mut self.done)
                .map_err(|errno| Failure::method(running.job.method.name(), errno))?;
            // What was taken without entering the kernel had ended when the clock was last read, after the submission. In a
            // batch, or alone in flight, it may be the transfer just submitted, whose time would then be 0.
            if entered || most > 1 || self.in_flight() == 1 {
                self.now = running.clock.now_ns();
            }
            self.count_done(running)?;
            // fio: once full, go on until no more than `iodepth_low` are in flight.
            if !full || self.in_flight() <= depth.low as usize {
                return Ok(());
            }
        }
    }

    /// Counts what was reaped as complete now.
    #[inline]
    fn count_done(&mut self, running: &mut Running<'_>) -> Result<(), Failure> {
        // One that failed ends the job, but not before the others of its batch were counted.
        let (mut failed, mut synced) = (None, false);
        for completion in self.done.drain(..) {
            let flight = &self.flights[completion.slot];
            synced |= flight.next.operation.direction().is_none();
            let moments = flight.ended(self.now);
            self.free.push(completion.slot);
            let counted = running.complete(completion.slot, &flight.next, &moments, completion.result);
            if let Err(failure) = counted {
                failed.get_or_insert(failure);
            }
        }
        if let Some(failure) = failed {
            return Err(failure);
        }
        if synced || running.judges() {
            self.now = running.clock.now_ns();
        }
        Ok(())
    }

    fn is_full(&self) -> bool {
        self.free.len() <= self.kept_free
    }

    /// Plans transfers: the next one; or none of them can be begun, and whether there will be more.
    fn plan(&mut self, running: &mut Running<'_>) -> Result<ControlFlow<bool, Next>, Failure> {
        let planned = running.plan(self.now);
        if running.syncs_between() {
            self.drain(running)?;
        }
        if !running.begin_again() {
            return Ok(ControlFlow::Break(false));
        }
        self.now = running.clock.now_ns();
        match planned {
            // At once: a pause in between would count as its latency.
            Planned::Ready => Ok(running.take().map_or(ControlFlow::Break(true), ControlFlow::Continue)),
            Planned::Later(until_ns) => {
                self.wait_until(running, until_ns)?;
                Ok(ControlFlow::Break(true))
            }
            Planned::Done => Ok(ControlFlow::Break(false)),
        }
    }

    /// Waits until the next transfer is due, or a pause is; what completes meanwhile is reaped when it does.
    #[cold]
    fn wait_until(&mut self, running: &mut Running<'_>, until_ns: u64) -> Result<(), Failure> {
        if !self.queued.is_empty() {
            self.submit(running)?;
        }
        while self.now < until_ns && !self.line.stopped() {
            if self.in_flight() == 0 && pace::is_long(until_ns, self.now) {
                pace::doze(&running.clock, self.line, until_ns);
                self.now = running.clock.now_ns();
                continue;
            }
            let following_ns = running.tempo.as_ref().and_then(|tempo| tempo.following_ns(until_ns));
            self.reap_until(until_ns, following_ns)
                .map_err(|errno| Failure::method(running.job.method.name(), errno))?;
            let reaped = !self.done.is_empty();
            self.now = running.clock.now_ns();
            self.count_done(running)?;
            if reaped {
                // It may have made a pause due.
                return Ok(());
            }
        }
        Ok(())
    }

    /// Sleeps until there are completions or it is time to be busy, which is then done once.
    fn reap_until(&mut self, until_ns: u64, following_ns: Option<u64>) -> Result<(), Errno> {
        if let Some(sleep) = pace::slice(until_ns, self.now) {
            self.wake_after(sleep)?;
            return self.method.reap_or_alarm(&mut self.done);
        }
        // For the wait behind the transfer that is due now: set while that is in flight, it would delay its completion.
        if !self.method.alarm_is_set()
            && let Some(sleep) = following_ns.and_then(|following| pace::slice(following, self.now))
        {
            self.wake_after(sleep)?;
        }
        // With nothing in flight it only spends a moment.
        self.method.reap(0, usize::MAX, &mut self.done).map(drop)
    }

    fn wake_after(&mut self, sleep: Duration) -> Result<(), Errno> {
        let wake_ns = self.now + sleep.as_nanos() as u64;
        if !self.method.alarm_is_set() || self.alarm_ns > wake_ns {
            self.method.set_alarm(sleep)?;
            self.alarm_ns = wake_ns;
        }
        Ok(())
    }

    /// Pauses, or changes the depth, when that is due.
    #[cold]
    fn attend(&mut self, running: &mut Running<'_>) -> Result<(), Failure> {
        let wanted = running.wanted(self.now);
        if wanted.drains() {
            self.drain(running)?;
            self.now = running.attend(wanted, self.line)?;
        }
        self.follow_depth(running);
        Ok(())
    }

    /// Waits until nothing is in flight.
    #[cold]
    fn drain(&mut self, running: &mut Running<'_>) -> Result<(), Failure> {
        self.of_batch = 0;
        self.submit(running)?;
        while self.in_flight() > 0 {
            self.method
                .reap(self.in_flight(), usize::MAX, &mut self.done)
                .map_err(|errno| Failure::method(running.job.method.name(), errno))?;
            self.now = running.clock.now_ns();
            self.count_done(running)?;
        }
        Ok(())
    }

    fn follow_depth(&mut self, running: &Running<'_>) {
        let depth = running.tempo.as_ref().and_then(|tempo| tempo.depth());
        self.kept_free = depth.map_or(0, |depth| self.flights.len().saturating_sub(depth as usize));
    }
}

#[cfg(test)]
#[path = "in_flight_tests.rs"]
mod tests;
