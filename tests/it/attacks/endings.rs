//! Processes of a run that are killed one by one, and signals that end a program: whoever survives ends the rest, says why, and puts
//! everything back. What is killed at random is in `torture.rs`.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Output, Stdio};
use std::time::{Duration, Instant};

use assay::record::Status;
use rustix::process::{Pid, Signal, kill_process};

use crate::process_tree::{Seen, group_of, kill, parts, token};
use crate::sandbox::{Sandbox, errors};
use crate::target_bench::{JOB, PATIENCE, assay, can_make, left_behind, paused_at};
use crate::tools::{available, impossible_here, installed, is_root};

/// Two jobs that would run far longer than the test waits.
const LONG: &str = "[w]\nrw=randwrite\nbs=4k\nsize=1m\nnumjobs=2\ntime_based\nruntime=300\nthinktime=1ms\n";

fn begun(sandbox: &Sandbox, arguments: &[&str]) -> Child {
    assay(sandbox, arguments).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Waits until the run has a process of that part for which `fits` holds.
fn wait_for(run: &mut Child, part: &str, fits: impl Fn(&Seen) -> bool) -> Seen {
    let begun = Instant::now();
    loop {
        let found = parts(run.id() as i32).remove(part).unwrap_or_default();
        if let Some(process) = found.into_iter().find(|process| fits(process)) {
            return process;
        }
        assert!(run.try_wait().unwrap().is_none(), "the run has ended without a {part}");
        assert!(begun.elapsed() < PATIENCE, "no {part}");
        std::thread::sleep(Duration::from_millis(3));
    }
}

/// The run's end, which has to come by itself, and then nothing of it may be left.
fn ended(run: Child, sandbox: &Sandbox, what: &str) -> Output {
    let begun = Instant::now();
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || sender.send(run.wait_with_output().unwrap()));
    let output = receiver.recv_timeout(PATIENCE * 6).unwrap_or_else(|_| panic!("{what}: it does not end"));
    sandbox.no_process_left(Duration::from_secs(30));
    assert!(left_behind(sandbox, 0).is_empty(), "{what}, {:?}: {}", begun.elapsed(), errors(&output));
    output
}

/// Why the first trial of the first run failed.
fn first_reason(sandbox: &Sandbox) -> String {
    match &sandbox.export("1").trials[0].status {
        Status::Failed { reason, .. } => reason.clone(),
        other => panic!("it did not fail: {other:?}"),
    }
}

/// Kills that part of a trial, and interrupts the run while it tries again.
fn killed(engine: &str, part: &str, more: &[&str], words: &str) {
    let sandbox = Sandbox::new();
    sandbox.write("job.fio", LONG);
    let run = ["run", "job.fio", "-q", "--vary", "bs=4k,8k", "--rounds", "1", "--engine", engine];
    let mut run = begun(&sandbox, &[&run[..], more].concat());
    // A guard has no children either, until it has started what it guards.
    let is_fios = |process: &Seen| engine != "fio" || process.line.contains("fio");
    if matches!(part, "guard" | "engine" | "worker") {
        // Once it works, or a killed engine's workers would not be orphans.
        wait_for(&mut run, "worker", is_fios);
        std::thread::sleep(Duration::from_millis(300));
    }
    let victim = wait_for(&mut run, part, |process| {
        !process.line.starts_with("sleep") && (part != "worker" || is_fios(process))
    });
    let of_trial = assay::host::descendants(run.id() as i32);
    kill(victim.pid);
    // What was beside it in the tree ends without anybody's doing, and the run goes on.
    let gone = |pid: &i32| !Path::new(&format!("/proc/{pid}")).exists();
    let begun = Instant::now();
    let what = format!("{engine}: {part} {}", victim.line);
    while !of_trial.iter().all(gone) {
        assert!(begun.elapsed() < PATIENCE, "{what}: {:?}", parts(run.id() as i32));
        std::thread::sleep(Duration::from_millis(10));
    }
    wait_for(&mut run, "agent", |agent| !of_trial.contains(&agent.pid));
    kill_process(Pid::from_child(&run), Signal::TERM).unwrap();
    let output = ended(run, &sandbox, &what);
    assert_eq!(output.status.code(), Some(130), "{what}: {}", errors(&output));
    let reason = first_reason(&sandbox);
    assert!(reason.contains(words), "{what}: {reason}");
}

#[test]
fn a_killed_guard_takes_the_program_and_its_workers_along() {
    if available("fio") {
        killed("fio", "guard", &[], "the guard of the command was killed");
    }
}

#[test]
fn a_killed_agent_takes_all_it_started_along() {
    killed("native", "agent", &[], "the agent was killed (SIGKILL");
    if available("fio") {
        killed("fio", "agent", &[], "the agent was killed (SIGKILL");
    }
}

#[test]
fn a_killed_program_takes_its_workers_along() {
    if available("fio") {
        killed("fio", "engine", &[], "'fio' was ended by signal 9 (SIGKILL)");
    }
}

#[test]
fn a_killed_worker_is_a_failed_trial_and_no_hang() {
    killed("native", "worker", &[], "its process was killed by SIGKILL");
    if available("fio") {
        killed("fio", "worker", &[], "was ended by");
    }
}

#[test]
fn a_killed_hook_takes_its_children_along() {
    // The shell waits for a child that holds its output.
    let hook = ["--before", "sleep 300; true"];
    killed("native", "hook", &hook, "the shell of the before hook was ended by SIGKILL");
}

/// fio waits for all its jobs before any begins, and does not end when one of them never comes.
#[test]
fn a_fio_worker_killed_as_it_starts_hangs_nothing() {
    if !available("fio") {
        return;
    }
    for _ in 0..5 {
        let sandbox = Sandbox::new();
        sandbox.write("job.fio", &LONG.replace("runtime=300", "runtime=1").replace("numjobs=2", "numjobs=4"));
        let mut run = begun(
            &sandbox,
            &["run", "job.fio", "-q", "--vary", "bs=4k,8k", "--rounds", "1", "--engine", "fio"],
        );
        let victim = wait_for(&mut run, "worker", |worker| worker.line.contains("fio"));
        kill(victim.pid);
        let output = ended(run, &sandbox, "a worker that starts");
        assert_eq!(output.status.code(), Some(0), "{}", errors(&output));
        let trials = sandbox.export("1").trials;
        assert_eq!((trials.len(), trials.iter().filter(|trial| trial.counts()).count()), (3, 2));
    }
}

/// dbench, too, waits for all its clients before any begins, then for the first bytes of each, and prints a line each second while
/// one never comes: for half a minute.
#[test]
fn a_dbench_client_killed_as_it_starts_hangs_nothing() {
    if !installed("dbench") {
        return;
    }
    let sandbox = Sandbox::new();
    let clients = ["run", "-q", "--engine", "dbench", "--vary", "clients=3,2", "--vary", "dbench.time=2s"];
    let mut run = begun(&sandbox, &[&clients[..], &["--rounds", "1"]].concat());
    kill(wait_for(&mut run, "worker", |worker| worker.line.contains("dbench")).pid);
    // Whether it had begun already is chance.
    let output = ended(run, &sandbox, "a dbench client");
    assert_eq!(output.status.code(), Some(0), "{}", errors(&output));
    assert_eq!(sandbox.export("1").trials.iter().filter(|trial| trial.counts()).count(), 2);
}

#[test]
fn children_that_a_program_ends_itself_are_no_failure() {
    let sandbox = Sandbox::new();
    let script = "sleep 60 & kill -9 $!; sh -c 'kill -9 $$'; sleep 0.2; : ${n}";
    let hook = "sleep 60 >/dev/null 2>&1 & kill -9 $!";
    let run = ["run", "-q", "--vary", "n=1,2", "--rounds", "1", "--before", hook, "--", "sh", "-c", script];
    sandbox.succeed(&run);
    assert!(sandbox.export("1").trials.iter().all(|trial| trial.counts()));
}

/// A program that was started by an agent and is nobody's child any more is known by its mark.
#[test]
fn a_run_killed_as_a_whole_is_found_by_its_mark() {
    if !available("fio") {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.write("job.fio", LONG);
    let mut run = begun(&sandbox, &["run", "job.fio", "-q", "--vary", "bs=4k,8k", "--engine", "fio"]);
    wait_for(&mut run, "worker", |worker| worker.line.contains("fio"));
    let mark = token(run.id() as i32).unwrap();
    let group = group_of(&mark);
    if group.is_none() {
        impossible_here("no control group can be made");
    }
    // Stopped first, so that none of them can end another.
    let family = parts(run.id() as i32);
    for process in family.values().flatten().filter(|process| !process.line.contains("fio --eta")) {
        kill_process(Pid::from_raw(process.pid).unwrap(), Signal::STOP).unwrap();
    }
    for process in family.iter().filter(|(part, _)| **part != "worker").flat_map(|(_, all)| all) {
        kill(process.pid);
    }
    run.wait().unwrap();
    std::thread::sleep(Duration::from_millis(300));
    let workers = sandbox.processes();
    assert!(!workers.is_empty(), "fio's workers end by themselves now");
    assert_eq!(assay::host::kill_marked(&mark), Vec::<i32>::new());
    sandbox.no_process_left(Duration::from_secs(30));
    assert_eq!(group_of(&mark), None, "{group:?}");
    assert!(crate::target_bench::run(&sandbox, &["cleanup"]).status.success());
    assert!(left_behind(&sandbox, 0).is_empty());
}

/// Every signal whose default ends a process, but those that cannot be handled or tell of a fault of the program.
fn signals() -> Vec<i32> {
    let few = [32, 33, libc::SIGRTMIN(), libc::SIGRTMIN() + 7, libc::SIGRTMAX()];
    let named = assay::launch::ending_signals().into_iter().filter(|signal| *signal < 32);
    let all: Vec<i32> = named.chain(few).collect();
    for signal in [libc::SIGQUIT, libc::SIGUSR1, libc::SIGALRM, libc::SIGXCPU, libc::SIGPWR, libc::SIGIO] {
        assert!(all.contains(&signal), "{signal}");
    }
    all
}

#[expect(unsafe_code, reason = "kill(2) with any number: the library knows no real-time signals")]
fn send(pid: i32, signal: i32) {
    // SAFETY: a plain system call.
    assert_eq!(unsafe { libc::kill(pid, signal) }, 0, "{signal}");
}

#[test]
fn every_ending_signal_puts_everything_back() {
    for signal in signals() {
        let sandbox = Sandbox::new();
        let script = "setsid sleep 300 & touch began; wait; : ${n}";
        let mut run = begun(&sandbox, &["run", "-q", "--vary", "n=1,2", "--", "sh", "-c", script]);
        wait_for(&mut run, "worker", |worker| worker.line.starts_with("sleep"));
        send(run.id() as i32, signal);
        let output = ended(run, &sandbox, &signal.to_string());
        let said = errors(&output);
        assert_eq!(output.status.code(), Some(130), "{signal}: {said}");
        let words =
            format!("was interrupted ({}); everything was put back", assay::launch::signal_name(signal));
        assert!(said.contains(&words), "{said}");
    }
}

#[test]
fn a_signal_to_agent_or_guard_ends_what_it_started() {
    // Both take signals by the same words of the program; the guard's are a named one of each kind, and two without a name.
    let few = [libc::SIGTERM, libc::SIGQUIT, libc::SIGPIPE, 33, libc::SIGRTMAX()];
    let guards = few.map(|signal| ("guard", signal));
    for (part, signal) in signals().into_iter().map(|signal| ("agent", signal)).chain(guards) {
        let sandbox = Sandbox::new();
        // Only the first trial is long.
        let script = "[ -e began ] || { touch began; setsid sleep 300 & wait; }; : ${n}";
        let mut run =
            begun(&sandbox, &["run", "-q", "--rounds", "1", "--vary", "n=1,2", "--", "sh", "-c", script]);
        wait_for(&mut run, "worker", |worker| worker.line.starts_with("sleep"));
        send(wait_for(&mut run, part, |_| true).pid, signal);
        let output = ended(run, &sandbox, &format!("{part} {signal}"));
        assert_eq!(output.status.code(), Some(0), "{part} {signal}: {}", errors(&output));
        let trials = sandbox.export("1").trials;
        assert_eq!(trials.iter().filter(|trial| trial.counts()).count(), 2, "{part} {signal}");
        first_reason(&sandbox);
    }
}

#[test]
fn a_second_interrupt_does_not_stop_the_putting_back() {
    if !can_make() {
        return;
    }
    for pause_ms in [0, 20, 100, 300] {
        let sandbox = Sandbox::new();
        sandbox.write("job.fio", JOB);
        let target = ["-t", "loop:32m", "-t", "fs=ext4", "-t", "read_ahead=64"];
        let run = paused_at(
            &sandbox,
            "stack",
            &[&["run", "job.fio", "-q", "--vary", "bs=4k,8k"][..], &target].concat(),
        );
        for signal in [Signal::INT, Signal::INT, Signal::TERM, Signal::INT] {
            // It may have ended meanwhile.
            let _ = kill_process(Pid::from_child(&run), signal);
            std::thread::sleep(Duration::from_millis(pause_ms));
        }
        let output = ended(run, &sandbox, &pause_ms.to_string());
        assert_eq!(output.status.code(), Some(130), "{}", errors(&output));
    }
}

#[test]
fn a_run_can_be_stopped_and_continued() {
    let sandbox = Sandbox::new();
    let script = "sleep 2; : ${n}";
    let words = ["run", "-q", "--rounds", "1", "--vary", "n=1,2", "--", "sh", "-c", script];
    // The kernel discards SIGTSTP for a process group without a parent in its session, as one of a job in the background of a
    // service is; this one has the test.
    let mut command = assay(&sandbox, &words);
    let mut run = command.process_group(0).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    wait_for(&mut run, "engine", |_| true);
    let pid = Pid::from_child(&run);
    let state = || {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", run.id())).unwrap();
        stat.rsplit(')').next().unwrap().trim().chars().next()
    };
    kill_process(pid, Signal::TSTP).unwrap();
    let begun = Instant::now();
    while state() != Some('T') {
        assert!(begun.elapsed() < PATIENCE, "{:?}", state());
        std::thread::sleep(Duration::from_millis(5));
    }
    kill_process(pid, Signal::CONT).unwrap();
    let output = ended(run, &sandbox, "stopped");
    assert_eq!(output.status.code(), Some(0), "{}", errors(&output));
    assert!(sandbox.export("1").trials.iter().all(|trial| trial.counts()));
}

#[test]
fn a_killed_mkfs_is_a_failed_trial_and_leaves_no_device() {
    if !can_make() || !is_root() {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.write("job.fio", JOB);
    // As if out of memory: the first mkfs of a trial kills itself, after the rehearsal's. What writes nothing (-n) and -V do not count.
    let tools = sandbox.path().join("tools");
    std::fs::create_dir(&tools).unwrap();
    let real = assay::sys::find_system_program("mkfs.ext4").unwrap();
    let count = sandbox.path().join("count");
    let script = format!(
        "#!/bin/sh\n[ \"$1\" = -V ] || [ \"$1\" = -n ] && exec {real} \"$@\"\necho >>{count}\n[ $(wc -l <{count}) = 2 ] && kill -9 $$\nexec {real} \"$@\"\n",
        real = real.display(),
        count = count.display()
    );
    let tool = sandbox.write("tools/mkfs.ext4", &script);
    std::fs::set_permissions(tool, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", tools.display(), std::env::var("PATH").unwrap());
    let arguments =
        ["run", "job.fio", "-q", "--vary", "bs=4k,8k", "--rounds", "1", "-t", "loop:32m", "-t", "fs=ext4"];
    let run =
        assay(&sandbox, &arguments).env("PATH", path).stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
    let output = ended(run.unwrap(), &sandbox, "mkfs");
    assert_eq!(output.status.code(), Some(0), "{}", errors(&output));
    let reason = first_reason(&sandbox);
    assert!(reason.contains("mkfs.ext4") && reason.contains("9"), "{reason}");
}
