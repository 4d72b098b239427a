//! The limit: the bare system call (pread, pwrite, io_uring_enter or io_submit) in a loop, with nothing counted but how often it
//! was made. Asynchronous ones keep as many in flight as the job says, and the clock is read between their calls, as any engine
//! must that tells latencies.
//!
//! Enters: a task whose job a plain loop can stand for. Leaves: I/Os and processor time a second, no latencies.
//! What an engine costs is the distance to it; it shares no code with the loops it is the limit of.

mod context;
mod ring;

use std::fs::File;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::io::{pread, pwrite};

use self::context::Context;
use self::ring::Ring;
use super::clock::{Clock, Reading};
use super::failure::Failure;
use super::usage::{Usage, WaitCounts, Waits};
use super::{Native, failed, opened};
use crate::engine::{Engine, EngineError, Probe, Task};
use crate::record::{Outcome, Sample};
use crate::units::Unit;
use crate::workload::{
    Access, BufferMemory, Distribution, Instance, IoMethod, Job, MethodOptions, Mix, NumaMemory, Workload,
};

/// Calls between two looks at the time.
const BETWEEN_LOOKS: usize = 256;

/// The bare engine.
pub(in crate::engine) struct Bare;

impl Engine for Bare {
    fn probe(&self) -> Result<Probe, EngineError> {
        Ok(Probe { version: format!("bare {}", env!("CARGO_PKG_VERSION")), path: None })
    }

    fn prepare(&self, task: &Task) -> Result<(), EngineError> {
        plain(&super::resolve(task)?)?;
        Native::new(false).prepare(task)
    }

    fn run(&self, task: &Task) -> Result<Outcome, EngineError> {
        let workload = super::resolve(task)?;
        let (job, runtime) = plain(&workload)?;
        let instances = workload.instances(&task.directory);
        let instance = instances.first().ok_or_else(|| unsupported("a job without a clone"))?;
        transfer(job, instance, runtime).map_err(|failure| failed(&failure, Vec::new()))
    }
}

fn unsupported(what: &str) -> EngineError {
    EngineError::Unsupported { reason: format!("the bare engine does not do {what}; --engine native does") }
}

/// The one job and its runtime, when a plain loop can stand for it.
fn plain(workload: &Workload) -> Result<(&Job, Duration), EngineError> {
    let [job] = workload.jobs.as_slice() else { return Err(unsupported("more than one job")) };
    let runtime = job.runtime.filter(|_| job.time_based);
    let options = MethodOptions {
        fixed_buffers: false,
        registered_files: false,
        // Means nothing without hipri.
        polled_percent: 0,
        ..job.method_options
    };
    let obstacles = [
        (job.numjobs > 1 || job.nrfiles > 1, "clones or several files"),
        (
            !matches!(job.method, IoMethod::Psync | IoMethod::IoUring | IoMethod::Libaio),
            "other methods than ioengine=psync, io_uring and libaio",
        ),
        (!matches!(job.pattern.mix, Mix::Read | Mix::Write), "other mixes than read and write"),
        (job.max_block() != job.min_block(), "block sizes that differ"),
        (job.fsync > 0 || job.fdatasync > 0 || job.end_fsync, "syncs"),
        (job.fsync_on_close || job.sync_file_range.is_some(), "syncs"),
        (job.rate.is_limited() || job.latency_target.is_some(), "rates and latency targets"),
        (!job.thinktime.pause.is_zero(), "pauses"),
        (!job.ramp_time.is_zero() || !job.start_delay.1.is_zero(), "ramps and delays"),
        (job.verify.is_some(), "verify"),
        (job.io_log.is_some(), "write_iolog"),
        (job.file_append, "file_append"),
        (options != MethodOptions::default(), "other ways of submitting than fixedbufs and registerfiles"),
        (
            job.depth.complete_min > 1 || job.depth.low < job.depth.iodepth,
            "waits for several completions (iodepth_batch_complete_min, iodepth_low)",
        ),
        (job.distribution != Distribution::Uniform, "random distributions"),
        (job.percentage_random.iter().any(|percent| *percent < 100), "partly random offsets"),
        (!job.cpus_allowed.is_empty() || !job.numa_cpu_nodes.is_empty(), "choices of processors"),
        (
            job.numa_memory != NumaMemory::Default || job.memory != BufferMemory::default(),
            "choices of memory",
        ),
        (runtime.is_none(), "amounts; it needs time_based and runtime="),
    ];
    match (obstacles.iter().find(|(found, _)| *found), runtime) {
        (Some((_, what)), _) => Err(unsupported(what)),
        (None, runtime) => Ok((job, runtime.unwrap_or_default())),
    }
}

fn transfer(job: &Job, instance: &Instance, runtime: Duration) -> Result<Outcome, Failure> {
    let region = &instance.files[0];
    let file = opened::open(job, region)?;
    let block = job.max_block();
    let length = match region.length {
        Some(length) => length,
        None => end_of(&file)
            .map_err(|e| Failure::file("cannot find the end of", &region.path, &e))?
            .saturating_sub(region.offset),
    };
    let blocks = length / block;
    if blocks == 0 {
        let what =
            format!("no block of {block} bytes fits into the {length} bytes of {}", region.path.display());
        return Err(Failure::Setting { job: job.name.clone(), what });
    }
    let reads = matches!(job.pattern.mix, Mix::Read);
    let mut calls = Calls::new(job, &file, reads, Clock::since(Reading::now()))
        .map_err(|e| Failure::file("cannot set up transfers of", &region.path, &e))?;
    let order = order(blocks, job.pattern.access == Access::Random);
    let counts = WaitCounts::of_this_thread();
    let (waits, usage, begun) = (counts.now(), Usage::now(), Instant::now());
    let mut ios = 0_u64;
    let mut next = order.iter().map(|number| region.offset + u64::from(*number) * block).cycle();
    let whole = |moved: std::io::Result<u32>| match moved {
        Ok(bytes) if u64::from(bytes) == block => Ok(()),
        Ok(n) => Err(Failure::Job { job: job.name.clone(), what: format!("{n} of {block} bytes") }),
        Err(error) => Err(Failure::file("cannot transfer a block of", &region.path, &error)),
    };
    while begun.elapsed() < runtime {
        whole(calls.transfer(&file, &mut next))?;
        ios += BETWEEN_LOOKS as u64;
    }
    whole(calls.finish(block as u32))?;
    let elapsed = begun.elapsed().as_secs_f64();
    let used = (Usage::now().since(usage), counts.now().since(waits));
    Ok(outcome(if reads { "read" } else { "write" }, ios, block, elapsed, used))
}

/// What moves a block.
enum Calls {
    /// pread(2) or pwrite(2), of one buffer.
    OneByOne { memory: Vec<u8>, skew: usize, reads: bool },
    /// io_uring_enter(2).
    Ring(Box<Ring>),
    /// io_submit(2) and io_getevents(2).
    Context(Context),
}

impl Calls {
    fn new(job: &Job, file: &File, reads: bool, clock: Clock) -> std::io::Result<Calls> {
        match job.method {
            IoMethod::IoUring => {
                return Ring::new(job, file, reads, clock).map(|ring| Calls::Ring(Box::new(ring)));
            }
            IoMethod::Libaio => return Context::new(job, file, reads, clock).map(Calls::Context),
            _ => {}
        }
        let memory = vec![0x5a_u8; job.max_block() as usize + 4096];
        let skew = memory.as_ptr().align_offset(4096);
        Ok(Calls::OneByOne { memory, skew, reads })
    }

    /// Hands over `BETWEEN_LOOKS` blocks, and says how many bytes the shortest transfer moved of those that have ended.
    fn transfer(&mut self, file: &File, offsets: &mut impl Iterator<Item = u64>) -> std::io::Result<u32> {
        match self {
            Calls::OneByOne { memory, skew, reads } => {
                let length = memory.len() - 4096;
                let buffer = &mut memory[*skew..][..length];
                let mut shortest = length;
                for offset in offsets.take(BETWEEN_LOOKS) {
                    let moved = if *reads {
                        pread(file.as_fd(), &mut *buffer, offset)?
                    } else {
                        pwrite(file.as_fd(), &*buffer, offset)?
                    };
                    shortest = shortest.min(moved);
                }
                Ok(shortest as u32)
            }
            Calls::Ring(ring) => {
                let batch = ring.batch();
                in_batches(batch, |size| ring.transfer(offsets.by_ref().take(size)))
            }
            Calls::Context(context) => {
                let batch = context.batch();
                in_batches(batch, |size| context.transfer(offsets.by_ref().take(size)))
            }
        }
    }

    /// Waits for what is in flight, and says how many bytes the shortest transfer moved of those: of blocks of `length`.
    fn finish(&mut self, length: u32) -> std::io::Result<u32> {
        match self {
            Calls::OneByOne { .. } => Ok(length),
            Calls::Ring(ring) => ring.finish(),
            Calls::Context(context) => context.finish(),
        }
    }
}

/// `BETWEEN_LOOKS` blocks by calls of at most `batch`, and how many bytes the shortest of those moved that have ended.
fn in_batches(batch: usize, mut transfer: impl FnMut(usize) -> std::io::Result<u32>) -> std::io::Result<u32> {
    let (mut shortest, mut left) = (u32::MAX, BETWEEN_LOOKS);
    while left > 0 {
        let size = batch.min(left);
        shortest = shortest.min(transfer(size)?);
        left -= size;
    }
    Ok(shortest)
}

/// All blocks once, shuffled beforehand (Fisher–Yates) where the job is random: the loop has nothing to work out.
fn order(blocks: u64, random: bool) -> Vec<u32> {
    let mut order: Vec<u32> = (0..u32::try_from(blocks).unwrap_or(u32::MAX)).collect();
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for last in (1..order.len()).rev().filter(|_| random) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        order.swap(last, (state % (last as u64 + 1)) as usize);
    }
    order
}

fn end_of(mut file: &File) -> std::io::Result<u64> {
    std::io::Seek::seek(&mut file, std::io::SeekFrom::End(0))
}

fn outcome(direction: &str, ios: u64, block: u64, elapsed: f64, (usage, waited): (Usage, Waits)) -> Outcome {
    let samples = [
        (format!("{direction}.bw"), Unit::BytesPerSecond, (ios * block) as f64 / elapsed),
        (format!("{direction}.iops"), Unit::PerSecond, ios as f64 / elapsed),
        (format!("{direction}.total_ios"), Unit::Count, ios as f64),
        ("runtime".to_owned(), Unit::Seconds, elapsed),
        ("usr_cpu".to_owned(), Unit::Seconds, usage.user_s),
        ("sys_cpu".to_owned(), Unit::Seconds, usage.system_s),
    ];
    // It is one worker.
    let waited = waited.within(elapsed);
    let waits = [
        ("workers.wall", Some(elapsed)),
        ("workers.run_wait", waited.run_wait_s),
        ("workers.storage_wait", waited.storage_s),
    ];
    let waits = waits.into_iter().filter_map(|(name, value)| Some((name.to_owned(), Unit::Seconds, value?)));
    let samples = samples.into_iter().chain(waits);
    let samples = samples.map(|(name, unit, value)| Sample::new("", &name, unit, value)).collect();
    Outcome { samples, ..Outcome::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::JobFile;

    #[test]
    fn what_a_plain_loop_does_not_do_is_refused() {
        let refusal = |options: &str| {
            let text = format!("[a]\nrw=randread\nsize=1m\ntime_based\nruntime=1\n{options}\n");
            let file = JobFile::parse(&text, "test.fio", std::path::Path::new(".")).unwrap();
            plain(&Workload::resolve(&file).unwrap()).err().map(|error| error.to_string())
        };
        for options in ["", "bs=8k", "direct=1", "cpus_allowed_policy=split"] {
            assert_eq!(refusal(options), None, "{options}");
        }
        for (options, what) in [
            ("rate_iops=10", "rates"),
            ("thinktime=1ms", "pauses"),
            ("ramp_time=1", "ramps"),
            ("startdelay=1", "ramps"),
            ("verify=crc32c", "verify"),
            ("random_distribution=zipf", "distributions"),
            ("percentage_random=50", "partly random"),
            ("cpus_allowed=0", "processors"),
            ("lockmem=1m", "memory"),
            ("write_iolog=x", "write_iolog"),
        ] {
            let said = refusal(options).unwrap_or_default();
            assert!(said.contains(what), "{options}: {said}");
        }
    }

    /// 16 blocks, of which each has its own number in every byte.
    fn moved(options: &str, calls: usize) -> (tempfile::TempDir, Vec<u8>, std::io::Result<u32>) {
        let text = format!("[a]\nrw=write\nbs=4k\nsize=64k\ntime_based\nruntime=1\n{options}\n");
        let file = JobFile::parse(&text, "test.fio", std::path::Path::new(".")).unwrap();
        let workload = Workload::resolve(&file).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a");
        let numbered: Vec<u8> = (0..16_u8).flat_map(|number| [number; 4096]).collect();
        std::fs::write(&path, numbered).unwrap();
        let file = File::options().read(true).write(true).open(&path).unwrap();
        let mut next = (0..16_u64).cycle().map(|number| number * 4096);
        let mut transferred = Ok(0);
        for _ in 0..calls {
            transferred = Calls::new(&workload.jobs[0], &file, false, Clock::new()).and_then(|mut calls| {
                let shortest = calls.transfer(&file, &mut next)?;
                Ok(shortest.min(calls.finish(4096)?))
            });
        }
        let bytes = std::fs::read(&path).unwrap();
        (directory, bytes, transferred)
    }

    #[test]
    fn every_call_moves_whole_blocks_to_their_offsets() {
        let tuned = "fixedbufs=1\nregisterfiles=1\niodepth_batch=8";
        let (ring, context) = ("ioengine=io_uring\niodepth=8", "ioengine=libaio\niodepth=8");
        for options in
            ["", ring, &format!("{ring}\n{tuned}"), context, &format!("{context}\niodepth_batch=8")]
        {
            let (_directory, bytes, transferred) = moved(options, 0);
            assert!(bytes[4096] == 1 && transferred.unwrap() == 0, "{options}");
            let (_directory, bytes, transferred) = moved(options, 1);
            match transferred {
                Ok(shortest) => assert_eq!(shortest, 4096, "{options}"),
                // A machine may forbid io_uring.
                Err(error) => {
                    let forbidden = [Some(libc::EPERM), Some(libc::ENOSYS)].contains(&error.raw_os_error());
                    assert!(options.contains("io_uring") && forbidden, "{options}: {error}");
                    continue;
                }
            }
            assert!(bytes.len() == 65_536 && bytes.iter().all(|byte| *byte == 0x5a), "{options}");
        }
    }

    #[test]
    fn a_failed_transfer_is_an_error_and_leaves_nothing_in_flight() {
        for options in ["ioengine=io_uring\niodepth=8", "ioengine=libaio\niodepth=8"] {
            let text = format!("[a]\nrw=read\nbs=4k\nsize=64k\ntime_based\nruntime=1\n{options}\n");
            let file = JobFile::parse(&text, "test.fio", std::path::Path::new(".")).unwrap();
            let workload = Workload::resolve(&file).unwrap();
            // Only writable: no read of it can work.
            let file = tempfile::NamedTempFile::new().unwrap();
            let file = File::options().write(true).open(file.path()).unwrap();
            let calls = Calls::new(&workload.jobs[0], &file, true, Clock::new());
            let transferred = calls.and_then(|mut calls| calls.transfer(&file, &mut (0..).map(|_| 0)));
            assert!(transferred.is_err(), "{options}: {transferred:?}");
        }
    }
}
