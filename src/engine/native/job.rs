//! The loop of one instance: choose, submit, reap, count, until the amount or the time is up.

use std::fs::File;
use std::os::fd::AsFd;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::buffers::Buffers;
use super::clock::now_ns;
use super::failure::{Failure, errno_text};
use super::layout;
use super::meter::{DirectionCounts, Meter, Moments};
use super::method::{Completion, IoUring, Libaio, Method, Null, Operation, Psync, Sync, Transfer};
use super::source::{Next, Source};
use super::start_line::StartLine;
use crate::record::{Direction, LatencyHistogram, LatencyKind};
use crate::workload::{Instance, IoMethod, Job};

/// What one instance counted.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct JobCounts {
    pub(super) directions: Vec<DirectionCounts>,
    pub(super) sync: Option<LatencyHistogram>,
    pub(super) started_ns: u64,
    pub(super) elapsed_ns: u64,
    pub(super) usage: Usage,
    /// Why it ended early; what was counted until then stands.
    pub(super) failure: Option<Failure>,
}

/// What the kernel charged to the instance's thread.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Usage {
    pub(super) user_s: f64,
    pub(super) system_s: f64,
    pub(super) voluntary: u64,
    pub(super) involuntary: u64,
    pub(super) minor_faults: u64,
    pub(super) major_faults: u64,
}

impl Usage {
    fn now() -> Usage {
        #[expect(unsafe_code, reason = "rustix has no getrusage")]
        // SAFETY: all-zero is a valid rusage, and the kernel fills the one it is given.
        let usage = unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage);
            usage
        };
        let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
        Usage {
            user_s: seconds(usage.ru_utime),
            system_s: seconds(usage.ru_stime),
            voluntary: usage.ru_nvcsw as u64,
            involuntary: usage.ru_nivcsw as u64,
            minor_faults: usage.ru_minflt as u64,
            major_faults: usage.ru_majflt as u64,
        }
    }

    fn since(self, earlier: Usage) -> Usage {
        Usage {
            user_s: self.user_s - earlier.user_s,
            system_s: self.system_s - earlier.system_s,
            voluntary: self.voluntary - earlier.voluntary,
            involuntary: self.involuntary - earlier.involuntary,
            minor_faults: self.minor_faults - earlier.minor_faults,
            major_faults: self.major_faults - earlier.major_faults,
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
    line: &StartLine,
) -> Result<JobCounts, Failure> {
    let depth = if job.method.is_asynchronous() { job.depth.iodepth } else { 1 };
    let refused = |errno| Failure::method(job.method.name(), errno);
    match job.method {
        IoMethod::Psync => Running::new(job, instance, trial_seed, 1)?.run(Psync::default(), line),
        IoMethod::Sync => Running::new(job, instance, trial_seed, 1)?.run(Sync::default(), line),
        IoMethod::Null => Running::new(job, instance, trial_seed, 1)?.run(Null::default(), line),
        IoMethod::IoUring => {
            let ring = IoUring::new(depth).map_err(refused)?;
            Running::new(job, instance, trial_seed, depth as usize)?.run(ring, line)
        }
        IoMethod::Libaio => {
            let context = Libaio::new(depth).map_err(refused)?;
            Running::new(job, instance, trial_seed, depth as usize)?.run(context, line)
        }
    }
}

/// A transfer in flight.
#[derive(Clone, Copy)]
struct InFlight {
    next: Next,
    moments: Moments,
}

/// Everything of an instance that runs but its method.
struct Running<'j> {
    job: &'j Job,
    instance: &'j Instance,
    files: Vec<File>,
    buffers: Buffers,
    source: Source,
    free: Vec<usize>,
    flying: Vec<InFlight>,
    /// Slots queued but not yet submitted.
    queued: Vec<usize>,
    in_flight: usize,
    begun_ns: u64,
    /// The ramp is over and counting has begun.
    counting: bool,
    meter: Meter,
    usage: Usage,
}

impl<'j> Running<'j> {
    fn new(job: &'j Job, instance: &'j Instance, trial_seed: u64, depth: usize) -> Result<Self, Failure> {
        pin(job)?;
        let null = job.method == IoMethod::Null;
        // The null method touches no file; /dev/null stands for the descriptor it never uses.
        let files: Vec<File> = instance
            .files
            .iter()
            .map(|region| match null {
                true => File::open("/dev/null")
                    .map_err(|error| Failure::file("cannot open", std::path::Path::new("/dev/null"), &error)),
                false => layout::open(job, &region.path),
            })
            .collect::<Result<_, _>>()?;
        let source = Source::new(job, instance, &files, trial_seed)?;
        let buffers =
            Buffers::new(depth, job.max_block() as usize, job.buffers, source.seed()).map_err(|error| {
                Failure::Job { job: job.name.clone(), what: format!("no memory for buffers: {error}") }
            })?;
        let idle = InFlight { next: Next::default(), moments: Moments::default() };
        Ok(Running {
            job,
            instance,
            files,
            buffers,
            source,
            free: (0..depth).rev().collect(),
            flying: vec![idle; depth],
            queued: Vec::with_capacity(depth),
            in_flight: 0,
            begun_ns: 0,
            counting: job.ramp_time.is_zero(),
            meter: Meter::new(&directions(job), job.method.is_asynchronous(), 0),
            usage: Usage::default(),
        })
    }

    fn run<M: Method>(mut self, mut method: M, line: &StartLine) -> Result<JobCounts, Failure> {
        let mut done = Vec::with_capacity(self.flying.len());
        line.wait();
        self.sleep_before_start();
        self.begun_ns = now_ns();
        self.meter.restart(self.begun_ns);
        self.usage = Usage::now();
        let mut failure = self.transfer_all(&mut method, &mut done, line).err();
        if failure.is_none() && self.job.end_fsync && self.job.pattern.mix.writes() {
            failure = self.sync_files().err();
        }
        if failure.is_some() {
            line.stop_all();
        }
        let elapsed_ns = now_ns().saturating_sub(self.meter.since_ns);
        let usage = Usage::now().since(self.usage);
        // The ring goes before buffers and files do, whatever is still in flight after a failure.
        drop(method);
        let name = &self.job.name;
        let sync = &self.meter.sync;
        Ok(JobCounts {
            directions: self.meter.finish(name),
            sync: (!sync.is_empty())
                .then(|| LatencyHistogram::pack(name, Direction::Write, LatencyKind::Sync, sync)),
            started_ns: self.meter.since_ns,
            elapsed_ns,
            usage,
            failure,
        })
    }

    /// fio's `do_io`: fill the queue, and when it is full (or nothing is left) wait for completions.
    fn transfer_all<M: Method>(
        &mut self,
        method: &mut M,
        done: &mut Vec<Completion>,
        line: &StartLine,
    ) -> Result<(), Failure> {
        let depth = self.job.depth;
        let refused = |errno| Failure::method(self.job.method.name(), errno);
        let mut now = self.begun_ns;
        loop {
            let more = self.keep_going(now) && !line.stopped();
            let queued = more && self.queue_one(method, now).map_err(refused)?;
            if self.queued.len() >= depth.submit as usize || (!queued && !self.queued.is_empty()) {
                self.submit(method).map_err(refused)?;
            }
            let full = self.free.is_empty();
            if self.in_flight > 0 && (full || !queued) {
                if !self.queued.is_empty() {
                    self.submit(method).map_err(refused)?;
                }
                now = self.wait(method, done, full)?;
            } else if M::ASYNCHRONOUS || !queued {
                now = now_ns();
            }
            if !queued && self.in_flight == 0 {
                return Ok(());
            }
        }
    }

    /// Whether time and counting allow another transfer; also ends the ramp.
    fn keep_going(&mut self, now: u64) -> bool {
        if !self.counting && now - self.begun_ns >= self.job.ramp_time.as_nanos() as u64 {
            self.counting = true;
            self.meter.restart(now);
            self.usage = Usage::now();
        }
        match self.job.runtime {
            Some(runtime) if self.counting => now - self.meter.since_ns < runtime.as_nanos() as u64,
            _ => true,
        }
    }

    /// Queues the next transfer; false when the amount is done.
    fn queue_one<M: Method>(&mut self, method: &mut M, now: u64) -> Result<bool, rustix::io::Errno> {
        let Some(slot) = self.free.pop() else { return Ok(true) };
        let Some(next) = self.source.next() else {
            self.free.push(slot);
            return Ok(false);
        };
        if next.operation == Operation::Write {
            self.buffers.prepare_write(slot, next.length as usize, next.offset);
        }
        let start_ns = if M::ASYNCHRONOUS { now_ns().max(now) } else { now_ns() };
        let moments = Moments { start_ns, issue_ns: start_ns, complete_ns: 0 };
        self.flying[slot] = InFlight { next, moments };
        let transfer = Transfer {
            slot,
            operation: next.operation,
            file: self.files[next.file].as_fd(),
            offset: next.offset,
            length: next.length,
        };
        method.queue(&transfer, &mut self.buffers)?;
        self.queued.push(slot);
        self.in_flight += 1;
        Ok(true)
    }

    fn submit<M: Method>(&mut self, method: &mut M) -> Result<(), rustix::io::Errno> {
        method.submit()?;
        if M::ASYNCHRONOUS {
            let now = now_ns();
            for slot in &self.queued {
                self.flying[*slot].moments.issue_ns = now;
            }
        }
        self.queued.clear();
        Ok(())
    }

    /// Reaps as `iodepth_batch_complete_*` and `iodepth_low` say; returns the time of the last reap.
    fn wait<M: Method>(
        &mut self,
        method: &mut M,
        done: &mut Vec<Completion>,
        full: bool,
    ) -> Result<u64, Failure> {
        let depth = self.job.depth;
        let (least, most) = (depth.complete_min as usize, depth.complete_max as usize);
        loop {
            let min = least.max(1).min(self.in_flight);
            method
                .reap(min, most.max(min), done)
                .map_err(|errno| Failure::method(self.job.method.name(), errno))?;
            let now = now_ns();
            for completion in done.drain(..) {
                complete(self, completion, now)?;
            }
            if !full
                || self.in_flight == 0
                || self.in_flight < depth.low as usize
                || depth.low >= depth.iodepth
            {
                return Ok(now);
            }
        }
    }

    fn sync_files(&mut self) -> Result<(), Failure> {
        if self.job.method == IoMethod::Null {
            return Ok(());
        }
        for (file, region) in self.files.iter().zip(&self.instance.files) {
            file.sync_all().map_err(|error| Failure::file("cannot fsync", &region.path, &error))?;
        }
        Ok(())
    }

    fn sleep_before_start(&self) {
        let (low, high) = self.job.start_delay;
        // Spread evenly over the clones: repeatable, unlike a draw.
        let share = f64::from(self.instance.clone) / f64::from(self.job.numjobs.max(2) - 1);
        let delay = low + (high.saturating_sub(low)).mul_f64(share.min(1.0));
        if !delay.is_zero() {
            std::thread::sleep(delay);
        }
    }
}

/// Counts one completion and frees its slot.
fn complete(running: &mut Running<'_>, completion: Completion, now: u64) -> Result<(), Failure> {
    let flight = &mut running.flying[completion.slot];
    flight.moments.complete_ns = now;
    let (next, moments) = (flight.next, flight.moments);
    running.in_flight -= 1;
    running.free.push(completion.slot);
    let counted = running.counting;
    let transferred = |direction: Direction| -> Result<u64, Failure> {
        let path = &running.instance.files[next.file].path;
        let operation = direction.name().to_owned();
        let length = u64::from(next.length);
        match completion.result {
            Ok(moved) if moved == next.length => Ok(length),
            Ok(moved) => Err(Failure::Short {
                operation,
                path: path.clone(),
                offset: next.offset,
                length,
                moved: u64::from(moved),
            }),
            Err(rustix::io::Errno::NOSPC) => Err(Failure::NoSpace {
                path: path.clone(),
                missing_bytes: running.source.bytes_left() + length,
            }),
            Err(errno) => Err(Failure::Transfer {
                operation,
                path: path.clone(),
                offset: next.offset,
                length,
                error: transfer_error(running.job, errno),
            }),
        }
    };
    let direction = match next.operation {
        Operation::Read => Direction::Read,
        Operation::Write => Direction::Write,
        Operation::Trim => Direction::Trim,
        Operation::Fsync | Operation::Fdatasync => {
            let path = &running.instance.files[next.file].path;
            completion
                .result
                .map_err(|errno| Failure::file("cannot fsync", path, &std::io::Error::from(errno)))?;
            if counted {
                running.meter.sync(moments);
            }
            return Ok(());
        }
    };
    let bytes = transferred(direction)?;
    if counted {
        running.meter.transfer(direction, bytes, moments);
    }
    think(running.job.thinktime);
    Ok(())
}

fn transfer_error(job: &Job, errno: rustix::io::Errno) -> String {
    let hint = if errno == rustix::io::Errno::INVAL && job.direct {
        "; with direct=1 offset and size must be multiples of the device's logical block"
    } else {
        ""
    };
    format!("{}{hint}", errno_text(errno))
}

/// `thinktime`: the instance stalls between an I/O and the next.
fn think(time: Duration) {
    if !time.is_zero() {
        std::thread::sleep(time);
    }
}

fn directions(job: &Job) -> Vec<Direction> {
    let mix = job.pattern.mix;
    [(mix.reads(), Direction::Read), (mix.writes(), Direction::Write), (mix.trims(), Direction::Trim)]
        .into_iter()
        .filter_map(|(used, direction)| used.then_some(direction))
        .collect()
}

fn pin(job: &Job) -> Result<(), Failure> {
    if job.cpus_allowed.is_empty() {
        return Ok(());
    }
    let mut set = rustix::thread::CpuSet::new();
    for cpu in &job.cpus_allowed {
        if *cpu as usize >= rustix::thread::CpuSet::MAX_CPU {
            return Err(Failure::Job {
                job: job.name.clone(),
                what: format!("cpus_allowed: there is no CPU {cpu}"),
            });
        }
        set.set(*cpu as usize);
    }
    rustix::thread::sched_setaffinity(None, &set).map_err(|errno| Failure::Job {
        job: job.name.clone(),
        what: format!("cpus_allowed {:?}: {}", job.cpus_allowed, errno_text(errno)),
    })
}
