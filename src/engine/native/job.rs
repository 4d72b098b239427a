//! One instance: what it works with, how a transfer is counted, what it leaves. The loops that drive it are
//! `one_by_one.rs` (synchronous methods) and `in_flight.rs` (asynchronous ones).

use std::fs::File;
use std::time::Duration;

use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::ahead::Ahead;
use super::buffers::Buffers;
use super::clock::Clock;
use super::failure::{Failure, errno_text};
use super::io_log::IoLog;
use super::latency_target::Step;
use super::meter::{DirectionCounts, Meter, Moments};
use super::method::{IoUring, Libaio, Mmap, Null, Operation, Psync, Pvsync, Pvsync2, Sync};
use super::pace::WHENEVER;
use super::source::{Next, Source};
use super::start_line::StartLine;
use super::tempo::{Planned, Tempo, Wanted};
use super::usage::Usage;
use super::verify::{self, Verifier};
use super::{affinity, in_flight, numa_memory, one_by_one, opened};
use crate::record::{Direction, LatencyHistogram, LatencyKind};
use crate::workload::{Instance, IoMethod, Job};

/// What one instance counted.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct JobCounts {
    pub(super) directions: Vec<DirectionCounts>,
    pub(super) sync: Option<LatencyHistogram>,
    pub(super) started_ns: u64,
    /// When it first had a processor, whose turn all instances wait for after the common start.
    pub(super) running_ns: u64,
    pub(super) elapsed_ns: u64,
    /// Of that, the phases that only read back what was written (`verify`): no time to write in.
    pub(super) read_back_ns: u64,
    /// It reads in these phases only.
    pub(super) reads_apart: bool,
    pub(super) usage: Usage,
    /// What a reader of the results must know.
    pub(super) note: Option<String>,
    /// Why it ended early; what was counted until then stands.
    pub(super) failure: Option<Failure>,
    /// The depth of a `latency_target`, and whether it was found before the job ended.
    pub(super) latency_depth: Option<(u32, bool)>,
    /// What its reader should know, e.g. what the method did by itself.
    pub(super) notes: Vec<String>,
}

impl JobCounts {
    /// How long it could transfer in that direction; fio's rates are by this time.
    pub(super) fn elapsed_of(&self, direction: Direction) -> u64 {
        match direction {
            Direction::Read if self.reads_apart => self.read_back_ns,
            Direction::Read => self.elapsed_ns,
            Direction::Write | Direction::Trim => self.elapsed_ns.saturating_sub(self.read_back_ns),
        }
    }
}

/// Runs one instance to its end. `trial_seed` feeds jobs with `randrepeat=0`.
///
/// # Errors
/// [`Failure`] when nothing could be started; a failure on the way is in the counts.
pub(super) fn run(
    job: &Job,
    instance: &Instance,
    trial_seed: u64,
    clock: Clock,
    line: &StartLine,
) -> Result<JobCounts, Failure> {
    let depth = if job.method.is_asynchronous() { job.depth.iodepth } else { 1 };
    let refused = |errno| Failure::method(job.method.name(), errno);
    let mut running = Running::new(job, instance, trial_seed, clock, depth as usize)?;
    let failure = match job.method {
        IoMethod::Psync => running.run(line, |running| one_by_one::run(running, Psync, line)),
        IoMethod::Pvsync => running.run(line, |running| one_by_one::run(running, Pvsync, line)),
        IoMethod::Pvsync2 => running.run(line, |running| one_by_one::run(running, Pvsync2::new(job), line)),
        IoMethod::Mmap => {
            let mut mappings = Mmap::new(job, instance, &running.files)?;
            running.note = Some(mappings.note());
            running.run(line, |running| one_by_one::run(running, &mut mappings, line))
        }
        IoMethod::Sync => running.run(line, |running| one_by_one::run(running, Sync::default(), line)),
        IoMethod::Null => running.run(line, |running| one_by_one::run(running, Null, line)),
        IoMethod::IoUring => {
            let mut ring = IoUring::new(job, depth, &running.files, &running.buffers).map_err(refused)?;
            running.notes.extend(ring.note());
            running.run(line, |running| in_flight::run(running, &mut ring, line))
        }
        IoMethod::Libaio => {
            // io_destroy takes some 30 ms (it waits for RCU): after the run time has been taken.
            let mut context = Libaio::new(depth, job.method_options).map_err(refused)?;
            running.run(line, |running| in_flight::run(running, &mut context, line))
        }
    };
    let mut counts = running.finish(failure);
    // Its files are closed now.
    counts.failure = counts.failure.or(opened::remove_all(job, instance).err());
    Ok(counts)
}

/// Everything of an instance but its method and what is in flight.
pub(super) struct Running<'j> {
    pub(super) job: &'j Job,
    pub(super) files: Vec<File>,
    pub(super) buffers: Buffers,
    pub(super) clock: Clock,
    pub(super) begun_ns: u64,
    /// For [`JobCounts::notes`].
    pub(super) notes: Vec<String>,
    pub(super) ahead: Ahead,
    pub(super) meter: Meter,
    /// When the ramp ends; then when the runtime does (never, without one).
    pub(super) until_ns: u64,
    /// Something may happen between two transfers of a run: each is made by itself.
    pub(super) attended: bool,
    instance: &'j Instance,
    /// Rate, think time, latency target; `None`: as fast as it goes.
    pub(super) tempo: Option<Box<Tempo>>,
    /// When the transfer taken last was meant to start; with no rate whenever it could.
    pub(super) intended_ns: u64,
    /// The ramp is over and counting has begun.
    counting: bool,
    usage: Usage,
    elapsed_ns: u64,
    pub(super) read_back_ns: u64,
    io_log: Option<Box<IoLog>>,
    pub(super) verifier: Option<Box<Verifier>>,
    note: Option<String>,
    /// When a processor was first had after the start.
    running_ns: u64,
    /// A sync before closing that failed between two loops.
    not_closed: Option<Failure>,
}

impl<'j> Running<'j> {
    fn new(
        job: &'j Job,
        instance: &'j Instance,
        trial_seed: u64,
        clock: Clock,
        depth: usize,
    ) -> Result<Self, Failure> {
        affinity::apply(job, instance)?;
        numa_memory::apply(job)?;
        let files = opened::open_all(job, instance)?;
        let source = Source::new(job, instance, &files, trial_seed)?;
        let buffers = Buffers::for_job(job, depth, source.seed())?;
        let verifier = Verifier::new(job, instance, source.seed()).map(Box::new);
        Ok(Running {
            job,
            files,
            buffers,
            clock,
            begun_ns: 0,
            notes: Vec::new(),
            ahead: Ahead::new(source),
            meter: Meter::new(&directions(job), job.method.is_asynchronous(), job.rate.is_limited()),
            until_ns: 0,
            attended: false,
            instance,
            tempo: None,
            intended_ns: WHENEVER,
            counting: false,
            usage: Usage::default(),
            elapsed_ns: 0,
            read_back_ns: 0,
            io_log: IoLog::new(job, instance)?.map(Box::new),
            verifier,
            note: None,
            running_ns: 0,
            not_closed: None,
        })
    }

    /// Waits for the others, runs `transfer_all`, syncs at the end where the job asks it. Why it ended early, if so.
    fn run(
        &mut self,
        line: &StartLine,
        transfer_all: impl FnMut(&mut Self) -> Result<(), Failure>,
    ) -> Option<Failure> {
        let Some(start_ns) = line.wait(&self.clock) else {
            // Nothing was transferred: that must not pass for a result.
            let what = "the jobs that start with it were not ready within a minute".to_owned();
            return Some(Failure::Job { job: self.job.name.clone(), what });
        };
        // One moment for all, whenever the scheduler lets each run: their times cover the same stretch.
        self.begun_ns = start_ns + self.start_delay().as_nanos() as u64;
        line.sleep_until(&self.clock, self.begun_ns);
        self.until_ns = self.begun_ns.saturating_add(self.job.ramp_time.as_nanos() as u64);
        self.tempo = Tempo::new(self.job, self.begun_ns, self.ahead.seed()).map(Box::new);
        self.attended = self.tempo.is_some() || self.verifier.is_some();
        if self.job.ramp_time.is_zero() {
            self.ramp_ends(self.begun_ns);
        }
        // Waiting for a processor is no part of the first transfer.
        self.begun_ns = self.clock.now_ns();
        self.running_ns = self.begun_ns;
        let failure = self.transfer_passes(line, transfer_all).err().or(self.not_closed.take());
        let failure = failure.or_else(|| self.verifier.as_ref()?.failure());
        if failure.is_some() {
            line.stop_all();
        }
        if !self.counting {
            // It ended within its ramp: nothing was counted.
            self.ramp_ends(self.clock.now_ns());
        }
        self.elapsed_ns = self.clock.now_ns().saturating_sub(self.meter.since_ns);
        self.usage = Usage::now().since(self.usage);
        let unlogged = self.io_log.as_ref().and_then(|log| log.write().err());
        failure.or(unlogged)
    }

    fn finish(self, failure: Option<Failure>) -> JobCounts {
        let name = &self.job.name;
        let sync = &self.meter.sync;
        let pack_sync =
            || LatencyHistogram::pack(name, Direction::Write, LatencyKind::Sync, &sync.histogram());
        JobCounts {
            directions: self.meter.finish(name),
            sync: (!sync.is_empty()).then(pack_sync),
            started_ns: self.meter.since_ns,
            running_ns: self.running_ns,
            elapsed_ns: self.elapsed_ns,
            read_back_ns: self.read_back_ns,
            reads_apart: verify::reads_apart(self.job),
            usage: self.usage,
            note: self.note,
            failure,
            latency_depth: self.tempo.as_ref().and_then(|tempo| tempo.found()),
            notes: self.notes,
        }
    }

    /// Whether time allows another transfer; also ends the ramp.
    #[inline]
    pub(super) fn keep_going(&mut self, now: u64) -> bool {
        now < self.until_ns || self.ramp_ends(now)
    }

    /// Begins to count when it was the ramp that ended; false when it was the runtime.
    #[cold]
    fn ramp_ends(&mut self, now: u64) -> bool {
        if self.counting {
            return false;
        }
        self.counting = true;
        self.count_anew(now);
        self.until_ns =
            self.job.runtime.map_or(u64::MAX, |runtime| now.saturating_add(runtime.as_nanos() as u64));
        true
    }

    /// Forgets what was counted.
    pub(super) fn count_anew(&mut self, now: u64) {
        self.meter.restart(now);
        self.usage = Usage::now();
        if let Some(tempo) = &mut self.tempo {
            tempo.new_window(now);
        }
    }

    /// The next transfer; `None`: see [`Running::plan`].
    #[inline]
    pub(super) fn take(&mut self) -> Option<Next> {
        if self.io_log.is_some() | self.verifier.is_some() {
            return self.take_watched();
        }
        self.ahead.take()
    }

    #[cold]
    fn take_watched(&mut self) -> Option<Next> {
        let backlog = self.verifier.as_mut().and_then(|verifier| verifier.of_backlog());
        let next = match backlog {
            Some(next) => {
                self.intended_ns = WHENEVER;
                next
            }
            None => self.ahead.take()?,
        };
        if let Some(log) = &mut self.io_log {
            log.note(next);
        }
        Some(next)
    }

    /// So many transfers of the current run were made.
    #[inline]
    pub(super) fn made(&mut self, count: usize) {
        if let (Some(log), Some((run, offsets))) = (&mut self.io_log, self.ahead.run()) {
            offsets.iter().take(count).for_each(|offset| log.note(run.at(*offset)));
        }
        self.ahead.advance(count);
    }

    /// Plans transfers to be taken, with a rate one, once it is due. Where the files are begun again their cached pages
    /// go, as where fio opens them again.
    pub(super) fn plan(&mut self, now: u64) -> Planned {
        if let Some(verifier) = self.verifier.as_mut().filter(|verifier| verifier.is_reading_back()) {
            let Some(next) = verifier.read_back() else { return Planned::Done };
            self.ahead.hand_out(next);
            self.intended_ns = WHENEVER;
            return Planned::Ready;
        }
        let planned = match &mut self.tempo {
            Some(tempo) if tempo.is_paced() => {
                let ahead = &mut self.ahead;
                match tempo.due(now, self.until_ns, |steer| ahead.plan_one(steer)) {
                    Ok((next, intended_ns)) => {
                        ahead.hand_out(next);
                        self.intended_ns = intended_ns;
                        Planned::Ready
                    }
                    Err(not_now) => not_now,
                }
            }
            _ if self.ahead.plan() => Planned::Ready,
            _ => Planned::Done,
        };
        if self.ahead.began_again() && !self.reopen() { Planned::Done } else { planned }
    }

    /// Counts one transfer that ended, or says what was wrong with it.
    #[inline]
    pub(super) fn complete(
        &mut self,
        slot: usize,
        next: Next,
        moments: Moments,
        result: Result<u32, Errno>,
    ) -> Result<(), Failure> {
        let Some(direction) = next.operation.direction() else {
            return self.complete_sync(next, moments, result);
        };
        if result != Ok(next.length) {
            return Err(self.wrong(direction, next, result));
        }
        // Within the ramp it counts for nothing: the meter begins anew when that is over.
        self.meter.transfer(direction, next.length, moments);
        if self.attended {
            return self.look_at(slot, next, moments);
        }
        Ok(())
    }

    /// What besides counting follows a transfer that ended well.
    #[cold]
    fn look_at(&mut self, slot: usize, next: Next, moments: Moments) -> Result<(), Failure> {
        if let Some(tempo) = &mut self.tempo {
            tempo.completed(moments.complete_ns.saturating_sub(moments.start_ns));
        }
        match &mut self.verifier {
            Some(verifier) => verifier.completed(self.buffers.slice(slot, next.length as usize), &next),
            None => Ok(()),
        }
    }

    /// What the tempo wants when transfers were completed at `now`: first that nothing is in flight, if so.
    #[cold]
    pub(super) fn wanted(&mut self, now: u64) -> Wanted {
        let counting = self.counting;
        let Some(tempo) = &mut self.tempo else { return Wanted::default() };
        let step = if counting { tempo.step(now) } else { Step::GoOn };
        let pause = tempo.pause_is_due();
        Wanted { step, pause }
    }

    /// Does what was [`Running::wanted`], with nothing in flight; the clock afterwards.
    pub(super) fn attend(&mut self, wanted: Wanted, line: &StartLine) -> Result<u64, Failure> {
        if let (true, Some(tempo)) = (wanted.pause, &mut self.tempo) {
            tempo.pause(&self.clock, line);
        }
        let now = self.clock.now_ns();
        match (wanted.step, &mut self.tempo) {
            (Step::Drain, Some(tempo)) => tempo.new_window(now),
            (Step::CountAnew, _) => self.count_anew(now),
            (Step::Done, _) => self.until_ns = 0,
            (Step::GiveUp, _) => {
                let what = "latency_target is not kept even with one I/O in flight; allow a share of them to be later \
                            with latency_percentile, e.g. 99"
                    .to_owned();
                return Err(Failure::Job { job: self.job.name.clone(), what });
            }
            _ => {}
        }
        Ok(now)
    }

    fn complete_sync(
        &mut self,
        next: Next,
        moments: Moments,
        result: Result<u32, Errno>,
    ) -> Result<(), Failure> {
        let path = &self.instance.files[next.file].path;
        result.map_err(|errno| Failure::file("cannot fsync", path, &std::io::Error::from(errno)))?;
        self.meter.sync(moments);
        Ok(())
    }

    #[cold]
    pub(super) fn wrong(&self, direction: Direction, next: Next, result: Result<u32, Errno>) -> Failure {
        let path = self.instance.files[next.file].path.clone();
        let (operation, offset, length) = (direction.name().to_owned(), next.offset, u64::from(next.length));
        match result {
            // A write that no longer fits is cut short before the next one fails.
            Ok(moved) if direction == Direction::Write && opened::is_full(&self.files[next.file]) => {
                let missing_bytes = self.ahead.bytes_left().saturating_add(length - u64::from(moved));
                Failure::NoSpace { path, missing_bytes }
            }
            Ok(moved) => Failure::Short { operation, path, offset, length, moved: u64::from(moved) },
            Err(Errno::NOSPC) => {
                Failure::NoSpace { path, missing_bytes: self.ahead.bytes_left().saturating_add(length) }
            }
            Err(errno) => {
                let hint = match (errno, self.job.method) {
                    (Errno::INVAL, _) if self.job.direct => {
                        "; with direct=1 offset and size must be multiples of the device's logical block"
                    }
                    (Errno::IO, IoMethod::Mmap) => {
                        " (SIGBUS): the mapped file was cut short, or its device gave an error"
                    }
                    (Errno::AGAIN, _) if self.job.method_options.no_wait => {
                        "; with nowait=1 an I/O that would have to wait fails"
                    }
                    (Errno::OPNOTSUPP, _) if self.job.method_options.no_wait => {
                        "; this file cannot be transferred to or from with nowait=1"
                    }
                    (Errno::OPNOTSUPP, _) if self.job.method_options.polled => {
                        "; hipri=1 needs a device with queues that are polled, and direct=1"
                    }
                    _ => "",
                };
                let error = format!("{}{hint}", errno_text(errno));
                Failure::Transfer { operation, path, offset, length, error }
            }
        }
    }

    /// What closing and opening the files does where fio does it, between two loops; false when it failed.
    #[cold]
    fn reopen(&mut self) -> bool {
        if self.job.fsync_on_close && self.job.pattern.mix.writes() {
            self.not_closed = self.sync_files().err();
        }
        if self.job.invalidate && self.job.method != IoMethod::Null {
            self.files.iter().for_each(opened::drop_cached_pages);
        }
        self.not_closed.is_none()
    }

    pub(super) fn sync_files(&mut self) -> Result<(), Failure> {
        if self.job.method == IoMethod::Null {
            return Ok(());
        }
        for (number, (file, region)) in self.files.iter().zip(&self.instance.files).enumerate() {
            if let Some(log) = &mut self.io_log {
                log.note(Next { file: number, operation: Operation::Fsync, offset: 0, length: 0 });
            }
            file.sync_all().map_err(|error| Failure::file("cannot fsync", &region.path, &error))?;
        }
        Ok(())
    }

    fn start_delay(&self) -> Duration {
        let (low, high) = self.job.start_delay;
        // Spread evenly over the clones: repeatable, unlike a draw.
        let share = f64::from(self.instance.clone) / f64::from(self.job.numjobs.max(2) - 1);
        low + high.saturating_sub(low).mul_f64(share.min(1.0))
    }
}

/// As in fio a sync before closing is made at the end, too, where the files are still open.
pub(super) fn syncs_at_end(job: &Job) -> bool {
    (job.end_fsync || job.fsync_on_close) && job.pattern.mix.writes()
}

fn directions(job: &Job) -> Vec<Direction> {
    let mix = job.pattern.mix;
    [
        (mix.reads() || verify::reads_back(job), Direction::Read),
        (mix.writes(), Direction::Write),
        (mix.trims(), Direction::Trim),
    ]
    .into_iter()
    .filter_map(|(used, direction)| used.then_some(direction))
    .collect()
}
