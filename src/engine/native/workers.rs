//! Running the instances of a wave side by side: a process each, or a thread each where the job says `thread`.

use std::io::{Read, Write};
use std::os::fd::OwnedFd;

use super::clock::Clock;
use super::failure::Failure;
use super::job::{self, JobCounts};
use super::start_line::StartLine;
use crate::workload::{Instance, Workload};

/// Runs all `instances` at once; their results in the same order.
pub(super) fn run_wave(
    workload: &Workload,
    instances: &[&Instance],
    trial_seed: u64,
    clock: Clock,
) -> Result<Vec<Result<JobCounts, Failure>>, Failure> {
    let line = StartLine::new(instances.len() as u32)
        .map_err(|e| Failure::Job { job: String::new(), what: format!("no shared memory: {e}") })?;
    let run_one = |instance: &Instance| {
        let result = job::run(&workload.jobs[instance.job], instance, trial_seed, clock, &line);
        if result.is_err() {
            line.stop_all();
        }
        result
    };
    // Processes first: a fork after threads exist would copy their locks.
    let mut forked = Vec::new();
    for instance in instances {
        let job = &workload.jobs[instance.job];
        let child = (!job.thread).then(|| fork(&job.name, || run_one(instance)));
        if matches!(child, Some(Err(_))) {
            // It will never arrive.
            line.stop_all();
        }
        forked.push(child);
    }
    let threads: Vec<_> = std::thread::scope(|scope| {
        let handles: Vec<_> = instances
            .iter()
            .map(|instance| workload.jobs[instance.job].thread.then(|| scope.spawn(|| run_one(instance))))
            .collect();
        handles.into_iter().map(|handle| handle.map(|h| h.join())).collect()
    });
    let gone = |name: &str| Failure::Job { job: name.to_owned(), what: "its thread died".to_owned() };
    let results = forked.into_iter().zip(threads).zip(instances);
    Ok(results
        .map(|((child, thread), instance)| match (child, thread) {
            (Some(child), _) => child.and_then(|child| child.collect(&line)),
            (None, Some(Ok(result))) => result,
            (None, _) => Err(gone(&workload.jobs[instance.job].name)),
        })
        .collect())
}

/// A forked instance and the pipe its counts come through.
struct Forked {
    job: String,
    pid: libc::pid_t,
    pipe: OwnedFd,
}

fn fork(job: &str, work: impl FnOnce() -> Result<JobCounts, Failure>) -> Result<Forked, Failure> {
    let failed = |what: String| Failure::Job { job: job.to_owned(), what };
    let (reader, writer) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)
        .map_err(|e| failed(format!("no pipe: {e}")))?;
    let parent = rustix::process::getpid();
    #[expect(unsafe_code, reason = "fio's jobs are processes, and std has no fork")]
    // SAFETY: the agent's only other thread sleeps in a read of the signal pipe and holds no lock; glibc makes
    // malloc usable in the child. The child runs `work` and leaves by _exit, so that nothing of the parent's
    // (buffers, destructors) runs twice.
    let pid = unsafe { libc::fork() };
    if pid < 0 {
        return Err(failed(format!("cannot fork: {}", std::io::Error::last_os_error())));
    }
    if pid == 0 {
        drop(reader);
        // A parent that dies takes its jobs along.
        let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
        if rustix::process::getppid() != Some(parent) {
            // It died before the line above could be heard.
            exit_now(1);
        }
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        let result = result.unwrap_or_else(|_| Err(failed("it panicked".to_owned())));
        let bytes = serde_json::to_vec(&result).unwrap_or_default();
        let written = std::fs::File::from(writer).write_all(&bytes);
        exit_now(i32::from(written.is_err()));
    }
    Ok(Forked { job: job.to_owned(), pid, pipe: reader })
}

/// Leaves a forked child without running anything of the parent's.
fn exit_now(code: i32) -> ! {
    #[expect(unsafe_code, reason = "std has no _exit")]
    // SAFETY: _exit never returns and runs no handlers.
    unsafe {
        libc::_exit(code)
    }
}

impl Forked {
    fn collect(self, line: &StartLine) -> Result<JobCounts, Failure> {
        let mut bytes = Vec::new();
        let read = std::fs::File::from(self.pipe).read_to_end(&mut bytes);
        if bytes.is_empty() || read.is_err() {
            line.stop_all();
        }
        let status = rustix::process::Pid::from_raw(self.pid)
            .and_then(|pid| {
                rustix::process::waitpid(Some(pid), rustix::process::WaitOptions::empty()).ok().flatten()
            })
            .and_then(|(_, status)| status.terminating_signal());
        serde_json::from_slice::<Result<JobCounts, Failure>>(&bytes).unwrap_or_else(|_| {
            let what = match status {
                Some(signal) => format!("its process was killed by signal {signal}"),
                None => "its process ended without a result".to_owned(),
            };
            Err(Failure::Job { job: self.job, what })
        })
    }
}
