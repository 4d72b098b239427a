//! assay's own engine: a fio workload run in this process and its children.
//!
//! Enters: a task with a job text. Leaves: counts, latencies and throughput in fio's names. All files are laid
//! out first; then each wave (the jobs between two stonewalls) runs at once, a process or thread an instance.
//! It must not know rounds, targets or what its numbers are compared with.

mod affinity;
mod ahead;
mod aio_abi;
mod bare;
mod beforehand;
mod buffer_memory;
mod buffers;
mod clock;
mod completion;
mod content;
mod failure;
mod in_flight;
mod io_log;
mod job;
mod job_counts;
mod latencies;
mod latency_target;
mod layout;
mod meter;
mod method;
mod numa_memory;
mod one_by_one;
mod open_files;
mod opened;
mod pace;
mod passes;
mod pre_read;
mod remarks;
mod results;
mod running;
mod source;
mod start_line;
mod tempo;
mod until_durable;
mod usage;
mod verify;
mod verify_block;
mod verify_history;
mod workers;

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::path::PathBuf;

pub(super) use bare::Bare;

use super::{Engine, EngineError, Probe, Task};
use crate::record::{Note, Outcome, Sample};
use crate::workload::{BufferFill, Instance, IoMethod, Job, JobFile, Mix, Workload};
use failure::Failure;
use job_counts::JobCounts;

/// The native engine; with `null` every job runs with the null method, whatever `ioengine` it asks for.
pub(super) struct Native {
    /// No file is touched and nothing transferred.
    null: bool,
    /// Of the trial that was prepared: laying out changes what `file_append` would find.
    asked: OnceCell<Asked>,
    /// The clock is calibrated against what it was when the trial began.
    clock: clock::Reading,
}

/// What a task asks.
struct Asked {
    workload: Workload,
    instances: Vec<Instance>,
}

impl Engine for Native {
    fn probe(&self) -> Result<Probe, EngineError> {
        let name = if self.null { "null" } else { "native" };
        Ok(Probe { version: format!("{name} {}", env!("CARGO_PKG_VERSION")), path: None })
    }

    fn look_ahead(&self, task: &Task, files_are_there: bool) -> Result<(), EngineError> {
        let asked = self.asked(task)?;
        let failed = |failure: Failure| failed(&failure, Vec::new());
        beforehand::machine(&asked.workload, &asked.instances).map_err(failed)?;
        if files_are_there {
            beforehand::files(&asked.workload, &asked.instances, &task.directory).map_err(failed)?;
        }
        Ok(())
    }

    fn prepare(&self, task: &Task) -> Result<(), EngineError> {
        let asked = self.asked(task)?;
        open_files::raise_limit(&asked.workload, &asked.instances);
        // What the first wave reads beforehand is no part of what the device is counted for.
        layout::lay_out(&asked.workload, &asked.instances, &task.directory)
            .and_then(|()| pre_read::wave(&asked.workload, &asked.instances, 0))
            .map_err(|failure| failed(&failure, Vec::new()))
    }

    fn written_elsewhere(&self, task: &Task) -> Vec<PathBuf> {
        written_elsewhere(task)
    }

    fn run(&self, task: &Task) -> Result<Outcome, EngineError> {
        let asked = self.asked(task)?;
        let mut outcome = run_workload(asked, task.seed, clock::Clock::since(self.clock))?;
        outcome.notes.extend(asked.workload.jobs.iter().flat_map(remarks::of).map(Note::from));
        Ok(outcome)
    }
}

impl Native {
    /// The engine of one trial; `null`: with the null method for every job.
    pub(super) fn new(null: bool) -> Native {
        Native { null, asked: OnceCell::new(), clock: clock::Reading::now() }
    }

    /// The task, read once.
    fn asked(&self, task: &Task) -> Result<&Asked, EngineError> {
        if let Some(asked) = self.asked.get() {
            return Ok(asked);
        }
        let workload = self.workload(task)?;
        let mut instances = workload.instances(&task.directory);
        layout::place_appends(&workload, &mut instances);
        Ok(self.asked.get_or_init(|| Asked { workload, instances }))
    }

    fn workload(&self, task: &Task) -> Result<Workload, EngineError> {
        let mut workload = resolve(task)?;
        for path in workload.jobs.iter_mut().filter_map(|job| job.io_log.as_mut()) {
            *path = task.directory.join(&*path);
        }
        if self.null {
            workload.jobs.iter_mut().for_each(|job| job.method = IoMethod::Null);
        }
        Ok(workload)
    }
}

fn resolve(task: &Task) -> Result<Workload, EngineError> {
    let text = task.job.as_deref().unwrap_or_default();
    let unsupported = |reason: String| EngineError::Unsupported { reason };
    JobFile::parse(text, &task.job_origin, &task.directory)
        .and_then(|file| file.substitute(&task.variables))
        .and_then(|file| Workload::resolve(&file))
        .map_err(|errors| unsupported(errors.to_string()))
}

/// Files outside the task's directory that its job writes, each once; none of a job that cannot be read.
pub(super) fn written_elsewhere(task: &Task) -> Vec<PathBuf> {
    let Ok(workload) = resolve(task) else { return Vec::new() };
    let instances = workload.instances(&task.directory);
    let writing = instances.iter().filter(|instance| workload.jobs[instance.job].pattern.mix.writes());
    let paths: BTreeSet<PathBuf> =
        writing.flat_map(|instance| &instance.files).map(|file| task.directory.join(&file.path)).collect();
    paths.into_iter().filter(|path| !path.starts_with(&task.directory)).collect()
}

/// Whether a section of the task's job reads before any other has written; no of a job that cannot be read.
pub(super) fn reads_first(task: &Task) -> bool {
    let Ok(workload) = resolve(task) else { return false };
    let instances = workload.instances(&task.directory);
    let first = |goes: fn(Mix) -> bool| {
        let of = instances.iter().filter(|instance| goes(workload.jobs[instance.job].pattern.mix));
        of.map(|instance| instance.wave).min()
    };
    let (read, written) = (first(Mix::reads), first(Mix::writes));
    read.is_some_and(|read| written.is_none_or(|written| read <= written))
}

/// Whether all that the task's job writes is random bytes; no of a job that cannot be read, or writes nothing.
pub(super) fn writes_random_bytes(task: &Task) -> bool {
    let Ok(workload) = resolve(task) else { return false };
    let mut writers = workload.jobs.iter().filter(|job| job.pattern.mix.writes()).peekable();
    let is_random = |job: &Job| {
        let has_pattern = job.verify.as_ref().is_some_and(|verify| !verify.pattern.is_empty());
        job.buffers != BufferFill::Zero && job.redundancy.compress_percent == 0 && !has_pattern
    };
    writers.peek().is_some() && writers.all(is_random)
}

/// Runs the waves in order.
fn run_workload(asked: &Asked, trial_seed: u64, clock: clock::Clock) -> Result<Outcome, EngineError> {
    let Asked { workload, instances } = asked;
    let last_wave = instances.iter().map(|instance| instance.wave).max().unwrap_or(0);
    let mut finished: Vec<(usize, JobCounts)> = Vec::new();
    for wave in 0..=last_wave {
        if wave > 0 {
            pre_read::wave(workload, instances, wave).map_err(|failure| failed(&failure, Vec::new()))?;
        }
        let numbers: Vec<usize> = (0..instances.len()).filter(|at| instances[*at].wave == wave).collect();
        let members: Vec<_> = numbers.iter().map(|at| &instances[*at]).collect();
        let results =
            workers::run_wave(workload, &members, trial_seed, clock).map_err(|f| failed(&f, Vec::new()))?;
        let mut failures: Vec<Failure> = Vec::new();
        for (number, result) in numbers.into_iter().zip(results) {
            match result {
                Ok(counts) => {
                    failures.extend(counts.failure.clone());
                    finished.push((number, counts));
                }
                Err(failure) => failures.push(failure),
            }
        }
        if let Some(failure) = worst(&failures) {
            let so_far = results::outcome(workload, instances, &finished).samples;
            return Err(failed(failure, so_far));
        }
    }
    Ok(results::outcome(workload, instances, &finished))
}

/// The first of those that say most: wrong data before what would come again, that before what may pass.
fn worst(failures: &[Failure]) -> Option<&Failure> {
    let kind = failures.iter().map(Failure::kind).max()?;
    failures.iter().find(|failure| failure.kind() == kind)
}

fn failed(failure: &Failure, so_far: Vec<Sample>) -> EngineError {
    let (kind, reason) = (failure.kind(), failure.to_string());
    EngineError::Failed { kind, reason, command: String::new(), output: String::new(), so_far }
}
