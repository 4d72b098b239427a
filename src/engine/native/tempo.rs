//! What a job's rate, think time and latency target add to its loop. Jobs that ask for none of them have no [`Tempo`].
//!
//! Enters: transfers as they are planned and completed. Leaves: when the next one may begin, when to pause, how deep
//! the queue may be. The loops ask for it where they pass seldom, or behind one branch an I/O.

use std::time::Duration;

use super::clock::Clock;
use super::latency_target::{Search, Step};
use super::method::Operation;
use super::pace::{self, Schedule, WHENEVER};
use super::source::Next;
use super::start_line::StartLine;
use crate::workload::{DataDirection, Job, ThinkTime};

/// The state of rate, think time and latency target of one instance.
pub(super) struct Tempo {
    schedule: Option<Schedule>,
    /// Planned, but not due yet, and when it is.
    waiting: Option<(Next, u64)>,
    /// What was due within a pause is meant to start when that ends.
    not_before_ns: u64,
    think: ThinkTime,
    /// Transfers to complete until the next pause; below 1 it is due.
    before_pause: i64,
    search: Option<Search>,
}

/// What came of planning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Planned {
    /// Transfers can be taken.
    Ready,
    /// Not before this moment: wait until then, then plan again.
    Later(u64),
    /// The amount is done.
    Done,
}

/// What is to be done between transfers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) step: Step,
    pub(super) pause: bool,
}

impl Default for Wanted {
    fn default() -> Wanted {
        Wanted { step: Step::GoOn, pause: false }
    }
}

impl Wanted {
    /// Whether it needs that nothing is in flight.
    pub(super) fn drains(self) -> bool {
        self.pause || self.step != Step::GoOn
    }
}

impl Tempo {
    /// For a job that begins at `begun_ns`; `None` when it goes as fast as it can.
    pub(super) fn new(job: &Job, begun_ns: u64, seed: u64) -> Option<Tempo> {
        let schedule = Schedule::new(job, begun_ns, seed);
        let search = job.latency_target.map(|target| Search::new(target, job.depth.iodepth.max(1), begun_ns));
        if schedule.is_none() && search.is_none() && job.thinktime.pause.is_zero() {
            return None;
        }
        // The forked process or thread is this job's own.
        pace::sharpen_sleep();
        Some(Tempo {
            schedule,
            waiting: None,
            not_before_ns: 0,
            think: job.thinktime,
            before_pause: i64::from(job.thinktime.every_ios.max(1)),
            search,
        })
    }

    /// Whether transfers have times of their own to begin at.
    pub(super) fn is_paced(&self) -> bool {
        self.schedule.is_some()
    }

    /// The transfer whose turn it is and when it is meant to start, once that is past; else until when to wait, at most
    /// until `end_ns`. `plan` makes the next transfer in the direction that its argument makes of the one drawn.
    pub(super) fn due(
        &mut self,
        now_ns: u64,
        end_ns: u64,
        plan: impl FnOnce(&mut dyn FnMut(DataDirection) -> DataDirection) -> Option<Next>,
    ) -> Result<(Next, u64), Planned> {
        // It is planned before it is waited for, so that a job does not wait when there is nothing left to do.
        let (next, due_ns) = match (self.waiting.take(), &mut self.schedule) {
            (Some(waiting), _) => waiting,
            (None, Some(schedule)) => {
                let next = plan(&mut |drawn| schedule.choose(drawn, now_ns)).ok_or(Planned::Done)?;
                let due = direction_of(next.operation)
                    .map_or(WHENEVER, |direction| schedule.next_due(direction, u64::from(next.length)));
                (next, due)
            }
            (None, None) => (plan(&mut |drawn| drawn).ok_or(Planned::Done)?, WHENEVER),
        };
        if due_ns == WHENEVER {
            return Ok((next, WHENEVER));
        }
        if due_ns > now_ns {
            self.waiting = Some((next, due_ns));
            return Err(Planned::Later(due_ns.min(end_ns)));
        }
        Ok((next, due_ns.max(self.not_before_ns)))
    }

    /// When a transfer after the one that is due at `due_ns` will be, as far as that is known.
    pub(super) fn following_ns(&self, due_ns: u64) -> Option<u64> {
        self.schedule.as_ref().and_then(|schedule| schedule.following_ns(due_ns))
    }

    /// Counts a completed read, write or discard.
    pub(super) fn completed(&mut self, latency_ns: u64) {
        self.before_pause -= 1;
        if let Some(search) = &mut self.search {
            search.completed(latency_ns);
        }
    }

    /// Whether enough was completed for a pause. As in fio what completes while the queue drains for it counts for the
    /// next one.
    pub(super) fn pause_is_due(&mut self) -> bool {
        let due = self.before_pause < 1 && !self.think.pause.is_zero();
        if due {
            self.before_pause = i64::from(self.think.every_ios.max(1));
        }
        due
    }

    /// Pauses: busy for `thinktime_spin`, then asleep. Nothing may be in flight.
    pub(super) fn pause(&mut self, clock: &Clock, line: &StartLine) {
        let begun_ns = clock.now_ns();
        let after =
            |part: Duration| begun_ns.saturating_add(u64::try_from(part.as_nanos()).unwrap_or(u64::MAX));
        let (busy_until, until) = (after(self.think.spin.min(self.think.pause)), after(self.think.pause));
        let mut now = begun_ns;
        while now < busy_until && !line.stopped() {
            std::hint::spin_loop();
            now = clock.now_ns();
        }
        if now < until {
            now = pace::sleep_until(clock, line, until);
        }
        self.held_up_until(now);
    }

    /// Something that is not of the job's own load ended at `now_ns`: it shall be in no latency.
    pub(super) fn held_up_until(&mut self, now_ns: u64) {
        self.not_before_ns = now_ns;
    }

    /// What the search for the depth wants.
    pub(super) fn step(&mut self, now_ns: u64) -> Step {
        self.search.as_mut().map_or(Step::GoOn, |search| search.step(now_ns))
    }

    /// The rate begins anew: what was behind it is forgotten.
    pub(super) fn restart(&mut self, now_ns: u64) {
        let Some(schedule) = &mut self.schedule else { return };
        schedule.restart(now_ns);
        // What is planned already is the first.
        if let Some((next, due_ns)) = &mut self.waiting
            && let Some(direction) = direction_of(next.operation)
        {
            *due_ns = schedule.next_due(direction, u64::from(next.length));
        }
        self.not_before_ns = self.not_before_ns.max(now_ns);
    }

    /// The search's window begins now: the ramp is over, or the queue was drained for another depth.
    pub(super) fn new_window(&mut self, now_ns: u64) {
        if let Some(search) = &mut self.search {
            search.new_window(now_ns);
        }
    }

    /// How many transfers may be in flight, where that is less than the queue has room for.
    pub(super) fn depth(&self) -> Option<u32> {
        self.search.as_ref().map(Search::depth)
    }

    /// The depth of the search, and whether it was found or only the last one tried.
    pub(super) fn found(&self) -> Option<(u32, bool)> {
        self.search.as_ref().map(|search| (search.depth(), search.found()))
    }
}

/// The direction that a rate limits; syncs follow the writes that made them due.
fn direction_of(operation: Operation) -> Option<DataDirection> {
    match operation {
        Operation::Read => Some(DataDirection::Read),
        Operation::Write => Some(DataDirection::Write),
        Operation::Trim => Some(DataDirection::Trim),
        _ => None,
    }
}
