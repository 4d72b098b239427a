//! What one instance works with, from its start to its end. The loops that drive it are `one_by_one.rs` (synchronous
//! methods) and `in_flight.rs` (asynchronous ones), what follows a transfer is in `completion.rs`.

use std::fs::File;
use std::time::Duration;

use super::ahead::Ahead;
use super::buffers::Buffers;
use super::clock::Clock;
use super::failure::Failure;
use super::io_log::IoLog;
use super::job_counts::JobCounts;
use super::latencies::Latencies;
use super::latency_target::Step;
use super::meter::Meter;
use super::pace::WHENEVER;
use super::source::{Next, Source};
use super::start_line::StartLine;
use super::tempo::{Planned, Tempo, Wanted};
use super::usage::{Usage, WaitCounts, Waits};
use super::verify::{self, Verifier};
use super::{affinity, numa_memory, opened};
use crate::record::{Direction, LatencyHistogram, LatencyKind, Note};
use crate::workload::{Instance, IoMethod, Job};

/// A job that did less of its rate has not kept it.
const KEPT: f64 = 0.95;
/// Less behind is made up for.
const FAR_BEHIND_NS: u64 = 10_000_000;

/// Everything of an instance but its method and what is in flight.
pub(super) struct Running<'j> {
    pub(super) job: &'j Job,
    pub(super) files: Vec<File>,
    pub(super) buffers: Buffers,
    pub(super) clock: Clock,
    pub(super) begun_ns: u64,
    /// For [`JobCounts::notes`].
    pub(super) notes: Vec<Note>,
    pub(super) ahead: Ahead,
    pub(super) meter: Meter,
    /// When the ramp ends; then when the runtime does (never, without one).
    pub(super) until_ns: u64,
    /// Something may happen between two transfers of a run: each is made by itself.
    pub(super) attended: bool,
    pub(super) instance: &'j Instance,
    /// Rate, think time, latency target; `None`: as fast as it goes.
    pub(super) tempo: Option<Box<Tempo>>,
    /// When the transfer taken last was meant to start; with no rate whenever it could.
    pub(super) intended_ns: u64,
    /// The same of the one that is planned, before which a backlog is read back.
    planned_ns: u64,
    /// The ramp is over and counting has begun.
    counting: bool,
    usage: Usage,
    wait_counts: WaitCounts,
    waits: Waits,
    /// Of the gaps of a Poisson process: another in each trial, also with `randrepeat`.
    gaps_seed: u64,
    elapsed_ns: u64,
    pub(super) read_back_ns: u64,
    pub(super) io_log: Option<Box<IoLog>>,
    pub(super) verifier: Option<Box<Verifier>>,
    pub(super) note: Option<String>,
    /// When a processor was first had after the start.
    running_ns: u64,
    /// A sync before closing that failed between two loops.
    pub(super) not_closed: Option<Failure>,
}

impl<'j> Running<'j> {
    pub(super) fn new(
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
        let gaps_seed = gaps_seed(source.seed(), trial_seed);
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
            meter: Meter::new(
                &directions(job),
                job.method.is_asynchronous(),
                job.rate.is_limited(),
                job.durability(),
            ),
            until_ns: 0,
            attended: false,
            instance,
            tempo: None,
            intended_ns: WHENEVER,
            planned_ns: WHENEVER,
            counting: false,
            usage: Usage::default(),
            wait_counts: WaitCounts::default(),
            waits: Waits::default(),
            gaps_seed,
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
    pub(super) fn run(
        &mut self,
        line: &StartLine,
        transfer_all: impl FnMut(&mut Self) -> Result<(), Failure>,
    ) -> Option<Failure> {
        // Before the start, behind which it would delay the others.
        self.wait_counts = WaitCounts::of_this_thread();
        let Some(start_ns) = line.wait(&self.clock) else {
            // Nothing was transferred: that must not pass for a result.
            let what = "the jobs that start with it were not ready within a minute".to_owned();
            return Some(Failure::Job { job: self.job.name.clone(), what });
        };
        // One moment for all, whenever the scheduler lets each run: their times cover the same stretch.
        self.begun_ns = start_ns + self.start_delay().as_nanos() as u64;
        line.sleep_until(&self.clock, self.begun_ns);
        if !self.start_delay().is_zero() && self.job.invalidate && self.job.method != IoMethod::Null {
            // fio opens them only now: what others brought into the cache meanwhile goes.
            self.files.iter().for_each(opened::drop_cached_pages);
        }
        self.until_ns = self.begun_ns.saturating_add(self.job.ramp_time.as_nanos() as u64);
        self.tempo = Tempo::new(self.job, self.begun_ns, self.gaps_seed).map(Box::new);
        self.attended = self.tempo.is_some() || self.verifier.is_some();
        match self.job.ramp_time.is_zero() {
            true => drop(self.ramp_ends(self.begun_ns)),
            false => self.count_anew(self.begun_ns),
        }
        // Waiting for a processor is no part of the first transfer.
        self.begun_ns = self.clock.now_ns();
        self.running_ns = self.begun_ns;
        let failure = self.transfer_passes(line, transfer_all).err().or(self.not_closed.take());
        // Nothing may hide that data were wrong.
        let failure = self.verifier.as_ref().and_then(|verifier| verifier.failure()).or(failure);
        let now_ns = self.clock.now_ns();
        // A job whose amount ends within its ramp counts all of it, as in fio. One that had nothing to transfer is no result.
        let counts_all = !self.counting || self.job.ramp_time.is_zero();
        let ended_by_itself = now_ns < self.until_ns && !line.stopped();
        let failure = failure.or_else(|| {
            (counts_all && ended_by_itself && self.meter.is_empty()).then(|| self.nothing_fits())
        });
        if failure.is_some() {
            line.stop_all();
        }
        if !self.counting && failure.is_none() {
            let told =
                format!("job {}: it ended within its ramp_time: all of it counts, as in fio", self.job.name);
            self.notes.push(told.into());
        }
        self.elapsed_ns = now_ns.saturating_sub(self.meter.since_ns);
        self.notes.extend(self.behind_its_rate(now_ns).map(Note::from));
        self.usage = Usage::now().since(self.usage);
        self.waits = self.wait_counts.now().since(self.waits);
        let unlogged = self.io_log.as_ref().and_then(|log| log.write().err());
        failure.or(unlogged)
    }

    /// That the job fell behind its rate and stayed there, if it did.
    fn behind_its_rate(&self, now_ns: u64) -> Option<String> {
        let is_known = self.job.rate.is_limited() && self.intended_ns != WHENEVER;
        let behind_ns = now_ns.checked_sub(self.intended_ns).filter(|_| is_known)?;
        let kept = 1.0 - behind_ns as f64 / self.elapsed_ns.max(1) as f64;
        (behind_ns > FAR_BEHIND_NS && kept < KEPT).then(|| {
            format!(
                "job {}: it did {:.0} % of its rate; lat_ns counts from the time an I/O was due, and grows for as long as it runs",
                self.job.name,
                kept.max(0.0) * 100.0
            )
        })
    }

    /// Why nothing was transferred, although nobody ended it.
    fn nothing_fits(&self) -> Failure {
        let what = format!(
            "nothing was transferred: no block of {} bytes fits into its files, or its size or io_size is smaller than one; choose a \
             smaller bs, or a larger size",
            self.job.min_block()
        );
        Failure::Setting { job: self.job.name.clone(), what }
    }

    pub(super) fn finish(self, failure: Option<Failure>) -> JobCounts {
        let name = &self.job.name;
        let pack = |kind: LatencyKind, latencies: &Latencies| {
            LatencyHistogram::pack(name, Direction::Write, kind, &latencies.histogram())
        };
        let sync = &self.meter.sync;
        JobCounts {
            directions: self.meter.finish(name),
            sync: (!sync.is_empty()).then(|| pack(LatencyKind::Sync, sync)),
            durable: self.meter.durable().map(|latencies| pack(LatencyKind::Durable, latencies)),
            started_ns: self.meter.since_ns,
            running_ns: self.running_ns,
            elapsed_ns: self.elapsed_ns,
            read_back_ns: self.read_back_ns,
            reads_apart: verify::reads_apart(self.job),
            usage: self.usage,
            waits: self.waits,
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
        // What a rate was behind in the ramp is none of what is counted, as in fio.
        if let Some(tempo) = self.tempo.as_mut().filter(|_| !self.job.ramp_time.is_zero()) {
            tempo.restart(now);
        }
        self.until_ns =
            self.job.runtime.map_or(u64::MAX, |runtime| now.saturating_add(runtime.as_nanos() as u64));
        true
    }

    /// Forgets what was counted.
    pub(super) fn count_anew(&mut self, now: u64) {
        self.meter.restart(now);
        self.usage = Usage::now();
        self.waits = self.wait_counts.now();
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
            None => {
                let next = self.ahead.take()?;
                self.intended_ns = self.planned_ns;
                next
            }
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

    /// Plans transfers to be taken, with a rate one, once it is due. [`Running::begin_again`] follows.
    pub(super) fn plan(&mut self, now: u64) -> Planned {
        if let Some(verifier) = self.verifier.as_mut().filter(|verifier| verifier.is_reading_back()) {
            let Some(next) = verifier.read_back() else { return Planned::Done };
            self.ahead.hand_out(next);
            (self.intended_ns, self.planned_ns) = (WHENEVER, WHENEVER);
            return Planned::Ready;
        }
        match &mut self.tempo {
            Some(tempo) if tempo.is_paced() => {
                let ahead = &mut self.ahead;
                match tempo.due(now, self.until_ns, |steer| ahead.plan_one(steer)) {
                    Ok((next, intended_ns)) => {
                        ahead.hand_out(next);
                        (self.intended_ns, self.planned_ns) = (intended_ns, intended_ns);
                        Planned::Ready
                    }
                    Err(not_now) => not_now,
                }
            }
            _ if self.ahead.plan() => Planned::Ready,
            _ => Planned::Done,
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

    fn start_delay(&self) -> Duration {
        let (low, high) = self.job.start_delay;
        // Spread evenly over the clones: repeatable, unlike a draw.
        let share = f64::from(self.instance.clone) / f64::from(self.job.numjobs.max(2) - 1);
        low + high.saturating_sub(low).mul_f64(share.min(1.0))
    }
}

/// Arrivals are drawn anew in each trial: the same ones again would show less spread than there is. Which blocks are hit
/// still repeats with `randrepeat`.
fn gaps_seed(instance_seed: u64, trial_seed: u64) -> u64 {
    instance_seed ^ trial_seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrivals_differ_from_trial_to_trial_and_from_clone_to_clone() {
        let seeds = [gaps_seed(1, 7), gaps_seed(1, 8), gaps_seed(2, 7), gaps_seed(2, 8)];
        assert!((0..4).all(|at| (0..at).all(|before| seeds[at] != seeds[before])), "{seeds:?}");
        assert_eq!(gaps_seed(1, 7), seeds[0], "the same trial again has the same");
    }
}
