//! One instance from its start to its end: with its method, in the loop that drives such methods.

use super::clock::Clock;
use super::failure::Failure;
use super::job_counts::JobCounts;
use super::method::{IoUring, Libaio, Mmap, Null, Psync, Pvsync, Pvsync2, Sync, workers_note};
use super::running::Running;
use super::start_line::StartLine;
use super::{in_flight, one_by_one, opened};
use crate::workload::{Instance, IoMethod, Job};

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
            let failure = running.run(line, |running| in_flight::run(running, &mut ring, line));
            running.notes.extend(workers_note());
            failure
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
