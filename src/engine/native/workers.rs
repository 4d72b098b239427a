//! Running the instances of a wave side by side: a process each, or a thread each where the job says `thread`.

use std::io::{Read, Write};
use std::os::fd::OwnedFd;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use super::clock::Clock;
use super::failure::{Failure, errno_text};
use super::job;
use super::job_counts::JobCounts;
use super::start_line::{StartLine, Wave};
use crate::workload::{Instance, Workload};

/// Runs all `instances` at once; their results in the same order.
pub(super) fn run_wave(
    workload: &Workload,
    instances: &[&Instance],
    trial_seed: u64,
    clock: Clock,
) -> Result<Vec<Result<JobCounts, Failure>>, Failure> {
    let groups = groups(instances);
    let wave = Wave::new(instances.len() as u32, groups.iter().max().map_or(1, |last| last + 1))
        .map_err(|e| Failure::Job { job: String::new(), what: format!("no shared memory: {e}") })?;
    // As in fio: once any job asks for it, each that ends takes its group along.
    let exit_all = workload.jobs.iter().any(|job| job.exitall);
    let run_one = |instance: &Instance, line: StartLine<'_>| {
        let job = &workload.jobs[instance.job];
        let work = || job::run(job, instance, trial_seed, clock, &line);
        let result = caught(&job.name, work);
        match &result {
            Err(_) => line.stop_all(),
            Ok(_) if exit_all => line.finish_group(),
            Ok(_) => {}
        }
        result
    };
    let of_thread = |instance: &Instance| workload.jobs[instance.job].thread;
    // Processes first: a fork after threads exist would copy their locks.
    let mut forked = Vec::new();
    for (instance, group) in instances.iter().zip(&groups) {
        let job = &workload.jobs[instance.job];
        let child = (!job.thread).then(|| fork(&job.name, || run_one(instance, wave.line(*group))));
        if matches!(child, Some(Err(_))) {
            // It will never arrive.
            wave.stop_all();
        }
        forked.push(child);
    }
    let (threads, processes) = std::thread::scope(|scope| {
        let run_one = &run_one;
        let handles: Vec<_> = instances
            .iter()
            .zip(&groups)
            .map(|(instance, group)| {
                let line = wave.line(*group);
                of_thread(instance).then(|| scope.spawn(move || run_one(instance, line)))
            })
            .collect();
        // Meanwhile: a process that dies on its way must not be waited for.
        let processes = collect(forked, &wave);
        let threads: Vec<_> = handles.into_iter().map(|handle| handle.map(|h| h.join())).collect();
        (threads, processes)
    });
    let gone = |name: &str| Failure::Job { job: name.to_owned(), what: "its thread died".to_owned() };
    let results = processes.into_iter().zip(threads).zip(instances);
    Ok(results
        .map(|((process, thread), instance)| match (process, thread) {
            (Some(result), _) => result,
            (None, Some(Ok(result))) => result,
            (None, _) => Err(gone(&workload.jobs[instance.job].name)),
        })
        .collect())
}

/// A panic as a failure, so that it ends the others as any other failure does.
fn caught(job: &str, work: impl FnOnce() -> Result<JobCounts, Failure>) -> Result<JobCounts, Failure> {
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
    result.unwrap_or_else(|_| Err(Failure::Job { job: job.to_owned(), what: "it panicked".to_owned() }))
}

/// The groups of the wave's instances, numbered from 0.
fn groups(instances: &[&Instance]) -> Vec<usize> {
    let first = instances.iter().map(|instance| instance.group).min().unwrap_or(0);
    instances.iter().map(|instance| (instance.group - first) as usize).collect()
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
    // The agent has two other threads, both past their start: one sleeps in a read of the signal pipe, the other watches
    // the time and now and then reads /proc. With --observe a third one reads events (observe/perf/). They take no lock but
    // malloc's, which glibc keeps usable in the child. The
    // child runs `work` and leaves by _exit, so that nothing of the parent's (buffers, destructors) runs twice.
    #[expect(unsafe_code, reason = "fio's jobs are processes, and std has no fork")]
    // SAFETY: no lock that the child needs is held by another thread, and it never returns from here (see above).
    let pid = unsafe { libc::fork() };
    if pid < 0 {
        let errno = Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::AGAIN);
        let hint = "raise the limit of processes (ulimit -u), lower numjobs, or set thread=1";
        let what = format!("cannot fork: {}; {hint}", errno_text(errno));
        return Err(Failure::Setting { job: job.to_owned(), what });
    }
    if pid == 0 {
        drop(reader);
        // A parent that dies takes its jobs along.
        let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
        if rustix::process::getppid() != Some(parent) {
            // It died before the line above could be heard.
            exit_now(1);
        }
        as_by_default();
        // The agent's standard output is its reply's: one that hangs in the kernel must not hold it open.
        if let Ok(null) = std::fs::OpenOptions::new().write(true).open("/dev/null") {
            let _ = rustix::stdio::dup2_stdout(&null);
        }
        let result = caught(job, work);
        let bytes = serde_json::to_vec(&result).unwrap_or_default();
        let written = std::fs::File::from(writer).write_all(&bytes);
        exit_now(i32::from(written.is_err()));
    }
    Ok(Forked { job: job.to_owned(), pid, pipe: reader })
}

/// Signals end it again as they end any program: what the agent does when one comes is the agent's to do.
#[expect(unsafe_code, reason = "signal handlers are set by system calls")]
fn as_by_default() {
    let kept = [libc::SIGKILL, libc::SIGSTOP, libc::SIGXFSZ, libc::SIGPIPE, libc::SIGSEGV, libc::SIGBUS];
    for signal in (1..=libc::SIGRTMAX()).filter(|signal| !kept.contains(signal)) {
        // SAFETY: the default action is set, which is no code of ours. Numbers that the C library keeps to itself it refuses.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}

/// Leaves a forked child without running anything of the parent's.
fn exit_now(code: i32) -> ! {
    #[expect(unsafe_code, reason = "std has no _exit")]
    // SAFETY: _exit never returns and runs no handlers.
    unsafe {
        libc::_exit(code)
    }
}

/// The results of all processes, read as they come; `None` where there is none.
fn collect(
    forked: Vec<Option<Result<Forked, Failure>>>,
    wave: &Wave,
) -> Vec<Option<Result<JobCounts, Failure>>> {
    let mut bytes: Vec<Vec<u8>> = forked.iter().map(|_| Vec::new()).collect();
    let mut pipes: Vec<(usize, std::fs::File)> = Vec::new();
    let mut children = Vec::new();
    for (number, one) in forked.into_iter().enumerate() {
        children.push(one.map(|one| {
            one.map(|forked| {
                pipes.push((number, std::fs::File::from(forked.pipe)));
                (forked.job, forked.pid)
            })
        }));
    }
    while !pipes.is_empty() {
        let ready: Vec<bool> = {
            let mut waiting: Vec<PollFd<'_>> =
                pipes.iter().map(|(_, pipe)| PollFd::new(pipe, PollFlags::IN)).collect();
            // Interrupted: nobody is ready, look again.
            let _ = poll(&mut waiting, None);
            waiting.iter().map(|one| !one.revents().is_empty()).collect()
        };
        let mut ready = ready.into_iter();
        pipes.retain_mut(|(number, pipe)| {
            if !ready.next().unwrap_or(false) {
                return true;
            }
            let mut chunk = [0; 16384];
            match pipe.read(&mut chunk) {
                Ok(count) if count > 0 => {
                    bytes[*number].extend_from_slice(&chunk[..count]);
                    true
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => true,
                _ => {
                    if bytes[*number].is_empty() {
                        // It died without a word: the others need not go on.
                        wave.stop_all();
                    }
                    false
                }
            }
        });
    }
    let result = |(job, pid): (String, libc::pid_t), bytes: &[u8]| {
        let signal = reap(pid);
        serde_json::from_slice(bytes).unwrap_or_else(|_| {
            let what = signal.map_or_else(|| "its process ended without a result".to_owned(), died_of);
            Err(Failure::Job { job, what })
        })
    };
    let children = children.into_iter().zip(&bytes);
    children.map(|(child, bytes)| child.map(|child| child.and_then(|child| result(child, bytes)))).collect()
}

/// Waits for the process; the signal that ended it, if one did.
fn reap(pid: libc::pid_t) -> Option<i32> {
    let pid = rustix::process::Pid::from_raw(pid)?;
    let (_, status) =
        rustix::process::waitpid(Some(pid), rustix::process::WaitOptions::empty()).ok().flatten()?;
    status.terminating_signal()
}

fn died_of(signal: i32) -> String {
    let name = match signal {
        libc::SIGBUS => "SIGBUS: a mapped file was cut short, or its device gave an error",
        libc::SIGSEGV => "SIGSEGV",
        libc::SIGKILL => "SIGKILL: out of memory, or somebody's doing",
        libc::SIGTERM => "SIGTERM",
        other => return format!("its process was killed by signal {other}"),
    };
    format!("its process was killed by {name}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::JobFile;
    use std::path::Path;

    /// Runs jobs that touch no file; when each was to begin and when it first had a processor.
    fn beginnings(options: &str) -> Vec<(u64, u64)> {
        let text = format!("[a]\nioengine=null\nbs=4k\nsize=1m\n{options}\n");
        let file = JobFile::parse(&text, "test.fio", Path::new(".")).unwrap();
        let workload = Workload::resolve(&file).unwrap();
        let instances = workload.instances(Path::new("."));
        let members: Vec<&Instance> = instances.iter().collect();
        let results = run_wave(&workload, &members, 1, Clock::new()).unwrap();
        results
            .into_iter()
            .map(|result| result.unwrap())
            .map(|counts| (counts.started_ns, counts.running_ns))
            .collect()
    }

    #[test]
    fn a_panic_is_a_failure_that_can_end_the_others() {
        let failure = caught("a", || panic!("for the test")).unwrap_err();
        assert_eq!(failure.to_string(), "job 'a': it panicked");
        assert!(caught("a", || Err(Failure::IsDirectory { path: "/".into() })).is_err());
    }

    fn spread_us(moments: impl Iterator<Item = u64> + Clone) -> u64 {
        (moments.clone().max().unwrap() - moments.min().unwrap()) / 1000
    }

    /// Microseconds from the first to the last that had a processor, in up to `most` waves; ends with one below 1000.
    fn spreads_us(options: &str, most: usize) -> Vec<u64> {
        let mut running = Vec::new();
        while running.len() < most && running.last().is_none_or(|last| *last >= 1000) {
            let moments = beginnings(options);
            // The start itself is one moment of the clock.
            assert_eq!(spread_us(moments.iter().map(|(started, _)| *started)), 0, "{moments:?}");
            assert!(moments.iter().all(|(started, running)| running + 5_000 >= *started), "{moments:?}");
            running.push(spread_us(moments.iter().map(|(_, running)| *running)));
        }
        println!("{options:?}: {running:?} us");
        running
    }

    #[test]
    fn sixteen_jobs_begin_together() {
        for thread in ["thread=0", "thread=1"] {
            // They sleep after each I/O, so that all can have a processor when they begin. What else runs on the
            // machine, and other tests do, delays whom it likes: one wave of many is enough, and the limit is one that only jobs that
            // begin one after another would miss.
            let options = format!("numjobs=16\nrw=read\nthinktime=1ms\nio_size=16k\n{thread}");
            let all = spreads_us(&options, 100);
            assert!(all.iter().any(|spread| *spread < 10_000), "{thread}: {all:?} us");
        }
        // Jobs that never sleep: eight take turns on each of two processors, and the kernel's slices say when.
        spreads_us("numjobs=16\nrw=read\ntime_based\nruntime=30ms", 3);
    }
}
