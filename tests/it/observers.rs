//! Waits for locks and processor time, watched while a trial runs.
//!
//! Most of these need root; where that is missing they say so, and fail in CI.

use std::time::{Duration, Instant};

use assay::record::Run;
use rustix::process::{Pid, Signal};

use crate::sandbox::{Sandbox, errors};
use crate::spoiled::{expect, unless_spoiled};
use crate::target_bench::can_make;
use crate::tools::{available, installed, is_root};

/// Four writers of one file through the page cache: with ext4 they take turns at the inode's lock.
const ONE_FILE: &str = "[w]\nrw=randwrite\nbs=4k\nsize=16m\nnumjobs=4\nfilename=one\ntime_based\nruntime=500ms\n\
                        group_reporting\n";

/// The largest value of a metric over all trials, by the beginning of its name.
fn largest(run: &Run, beginning: &str) -> Option<f64> {
    let metric = |at: u32| &run.metrics[at as usize].name;
    let values = run.trials.iter().flat_map(|trial| &trial.values);
    values
        .filter(|(at, _)| metric(*at).starts_with(beginning))
        .map(|(_, value)| *value)
        .max_by(f64::total_cmp)
}

fn notes(run: &Run) -> String {
    run.trials.iter().flat_map(|trial| &trial.notes).map(|note| &*note.text).collect::<Vec<_>>().join("\n")
}

#[test]
fn writers_of_one_file_wait_for_its_lock_those_of_four_not() {
    if !can_make() {
        return;
    }
    unless_spoiled(who_waits_for_the_inode);
}

fn who_waits_for_the_inode() -> Result<(), String> {
    let sandbox = Sandbox::new();
    sandbox.write("one.fio", ONE_FILE);
    sandbox.write("four.fio", &ONE_FILE.replace("filename=one\n", ""));
    for (job, run) in [("one.fio", "1"), ("four.fio", "2")] {
        let words = [
            "run", job, "-q", "--aa", "--rounds", "1", "--observe", "locks,cpu", "-t", "loop:300m", "-t",
            "fs=ext4",
        ];
        sandbox.succeed(&words);
        let run = sandbox.export(run);
        let told = notes(&run);
        assert!(!told.contains("not watched"), "{told}");
        let at_inode = largest(&run, "locks.at.rwsem_W.").unwrap_or(0.0);
        let kernel = largest(&run, "cpu.kernel_time").unwrap_or(0.0);
        let samples = largest(&run, "cpu.samples").unwrap_or(0.0);
        expect(kernel > 0.01 && samples > 10.0, || format!("{kernel} s, {samples} samples"))?;
        if job == "one.fio" {
            expect(at_inode > 0.05, || format!("{at_inode} s: {:?}", run.metrics))?;
        } else {
            let all = largest(&run, "locks.of.rwsem_W").unwrap_or(f64::NAN);
            expect(all < 0.05, || format!("{all} s: {:?}", run.trials))?;
        }
    }
    // Which rows of one value each are worth a line of the text is another question.
    let report = sandbox.succeed(&["report", "1", "--format", "json"]);
    assert!(report.contains("locks.at_per_op.rwsem_W."), "{report}");
    Ok(())
}

#[test]
fn fio_and_commands_are_watched_as_well() {
    if !is_root() {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.write("job.fio", &ONE_FILE.replace("numjobs=4", "numjobs=2"));
    sandbox
        .succeed(&["run", "job.fio", "-q", "--aa", "--rounds", "1", "--observe", "cpu", "--engine", "fio"]);
    let script = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";
    sandbox.succeed(&["run", "-q", "--aa", "--rounds", "1", "--observe", "cpu", "--", "sh", "-c", script]);
    let (fio, shell) = (sandbox.export("1"), sandbox.export("2"));
    assert!(largest(&fio, "cpu.kernel_time").is_some_and(|seconds| seconds > 0.05), "{:?}", fio.metrics);
    let (watched, counted) = (largest(&shell, "cpu.user_time").unwrap(), largest(&shell, "usr_cpu").unwrap());
    // The kernel's own split of user and kernel time is by its ticks, that of the samples by theirs.
    assert!(watched > 0.2 * counted && watched < 5.0 * counted + 0.1, "{watched} {counted}");
}

#[test]
fn what_reads_the_events_is_in_no_count_of_the_trial() {
    if !is_root() {
        return;
    }
    let sandbox = Sandbox::new();
    // Jobs count their own instances; of all together the process is counted, in which five threads read events.
    let job =
        |name: &str| format!("[{name}]\nrw=read\nbs=4k\nsize=1m\ntime_based\nruntime=2\nthinktime=50ms\n");
    sandbox.write("job.fio", &(job("a") + &job("b")));
    let observed = "observe=none,locks+waits+cpu+blocks+fs";
    sandbox.succeed(&["run", "job.fio", "-q", "--vary", observed, "--rounds", "1", "--engine", "native"]);
    let run = sandbox.export("1");
    let beside = |trial: &assay::record::Trial| {
        let of = |whole: bool| {
            let wanted = |at: u32| {
                let metric = &run.metrics[at as usize];
                metric.name == "ctx.voluntary" && metric.job.is_empty() == whole
            };
            trial.values.iter().filter(|(at, _)| wanted(*at)).map(|(_, value)| value).sum::<f64>()
        };
        of(true) - of(false)
    };
    let switches: Vec<(u32, f64)> = run.trials.iter().map(|trial| (trial.cell, beside(trial))).collect();
    // Three of them look 50 times a second, two 100 times.
    for (cell, switches) in &switches {
        assert!(*switches < 200.0, "cell {cell}: {switches:?} beside those of the jobs, {:?}", notes(&run));
    }
}

#[test]
fn samples_of_a_busy_stranger_are_dropped() {
    if !is_root() {
        return;
    }
    let sandbox = Sandbox::new();
    let mut stranger = std::process::Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
    let words = ["run", "-q", "--aa", "--rounds", "1", "--observe", "cpu", "--", "sleep", "1"];
    let output = sandbox.run(&words);
    stranger.kill().unwrap();
    stranger.wait().unwrap();
    assert!(output.status.success(), "{}", errors(&output));
    let run = sandbox.export("1");
    let seconds = largest(&run, "cpu.user_time").unwrap() + largest(&run, "cpu.kernel_time").unwrap();
    assert!(seconds < 0.3, "{seconds} s of a load that sleeps: {:?}", run.trials);
}

#[test]
fn direct_writes_sleep_until_the_device_has_them() {
    if !can_make() {
        return;
    }
    let sandbox = Sandbox::new();
    let job = ONE_FILE.replace("numjobs=4", "numjobs=1\ndirect=1");
    sandbox.write("job.fio", &job);
    let words = [
        "run", "job.fio", "-q", "--aa", "--rounds", "1", "--observe", "waits", "-t", "loop:300m", "-t",
        "fs=xfs",
    ];
    sandbox.succeed(&words);
    let run = sandbox.export("1");
    let (slept, all) =
        (largest(&run, "waits.at.").unwrap_or(0.0), largest(&run, "waits.sleep_time").unwrap_or(0.0));
    assert!(slept > 0.5 * all && slept > 0.02, "{slept} of {all} s: {:?}", run.metrics);
    let for_storage = largest(&run, "waits.storage_time").unwrap();
    assert!(for_storage >= slept && for_storage <= all, "{slept} of {for_storage} of {all} s");
    let runtime = largest(&run, "runtime").unwrap();
    assert!(all < 1.5 * runtime, "one worker slept {all} of {runtime} s");
    let places: Vec<&str> = run.metrics.iter().filter_map(|m| m.name.strip_prefix("waits.at.")).collect();
    assert!(places.iter().any(|place| place.contains("dio")), "{places:?}");
    // In another pid namespace the event has other numbers of threads.
    if std::fs::read_link("/proc/self/ns/pid").is_ok_and(|link| link.ends_with("pid:[4026531836]")) {
        let woken: Vec<(&str, f64)> = run
            .metrics
            .iter()
            .filter(|metric| metric.name.starts_with("waits.woken_at.") && !metric.name.ends_with(".unseen"))
            .map(|metric| (&*metric.name, largest(&run, &metric.name).unwrap()))
            .collect();
        assert!(woken.iter().any(|(_, seconds)| *seconds > 0.0), "{:?}", run.metrics);
        assert!(woken.iter().all(|(_, seconds)| *seconds <= all), "{woken:?} of {all} s");
        assert!(largest(&run, "waits.wakeup_time").is_some_and(|seconds| seconds <= all), "{:?}", run.trials);
    }
    // The agent waits for its jobs all the time: that is none of their sleep.
    assert!(largest(&run, "waits.idle_time").is_some_and(|idle| idle > 0.3), "{:?}", run.metrics);
}

#[test]
fn the_slowest_calls_are_split_into_what_they_waited_for() {
    if !can_make() || !installed("mkfs.ext4") {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.write("job.fio", "[w]\nioengine=psync\nrw=write\nbs=4k\nsize=3m\nfdatasync=1\n");
    let target = ["-t", "loop:64m", "-t", "fs=ext4"];
    let run = ["run", "job.fio", "-q", "--aa", "--rounds", "1", "--observe", "calls"];
    sandbox.succeed(&[&run[..], &target].concat());
    let run = sandbox.export("1");
    for trial in &run.trials {
        let value = |name: &str| {
            let at = run.metrics.iter().position(|metric| metric.name == name)?;
            trial.values.iter().find(|(metric, _)| *metric as usize == at).map(|(_, value)| *value)
        };
        if value("calls.lost").unwrap() > 0.0 {
            continue;
        }
        assert_eq!(value("calls.count.fdatasync"), Some(767.0), "none behind the last write");
        assert!(value("calls.count.write").unwrap() >= 768.0);
        let [slow, mean] = ["slow", "mean"].map(|what| value(&format!("calls.{what}.fdatasync")).unwrap());
        assert!(slow >= mean && mean > 0.0, "{slow} {mean}");
        let places = run.metrics.iter().filter(|metric| metric.name.starts_with("calls.slow_at.fdatasync."));
        let asleep: f64 = places.filter_map(|metric| value(&metric.name)).sum();
        let others: f64 = ["slow_ready", "slow_cpu"]
            .iter()
            .map(|what| value(&format!("calls.{what}.fdatasync")).unwrap())
            .sum();
        assert!(asleep > 0.0 && asleep + others <= slow * 1.001, "{asleep} {others} of {slow}");
        assert!(
            asleep + others >= slow * 0.9,
            "places of less than a hundredth are not named: {asleep} {others} of {slow}"
        );
    }
}

#[test]
fn a_tracepoint_of_the_users_choice_is_counted_and_can_decide() {
    if !can_make() {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.write("job.fio", "[w]\nrw=write\nbs=4k\nsize=256k\ndirect=1\nioengine=psync\n");
    let words = |event| {
        let run = ["run", "job.fio", "-q", "-t", "loop:32m", "--vary", "bs=4k,16k", "--rounds", "4"];
        [&run[..], &["--primary", "events_per_op.block.block_bio_queue", "--observe", event]].concat()
    };
    let output = sandbox.run(&words("block:block_bio_queu"));
    let said = errors(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("no metric 'events_per_op.block.block_bio_queue'"), "{said}");
    let both = [&words("block:block_bio_queue")[..], &["--observe", "block:block_bio_queu"]].concat();
    let output = sandbox.run(&both);
    let said = errors(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("block:block_bio_queu; did you mean block:block_bio_queue?"), "{said}");
    let report = sandbox.succeed(&words("block:block_bio_queue"));
    assert!(report.contains("events_per_op.block.block_bio_queue"), "{report}");
    let run = sandbox.export("1");
    let name = |at: &u32| run.metrics[*at as usize].name.as_str();
    for trial in &run.trials {
        let value = |wanted: &str| {
            let of = |(at, value): &(u32, f64)| (name(at) == wanted).then_some(*value);
            trial.values.iter().find_map(of).unwrap_or_else(|| panic!("no {wanted} in {trial:?}"))
        };
        // One bio of the loop device for each write, and what others do meanwhile.
        assert!(value("events.block.block_bio_queue") >= value("write.total_ios"), "{trial:?}");
    }
}

#[test]
fn only_the_hits_count_that_a_filter_lets_through() {
    if !can_make() {
        return;
    }
    let sandbox = Sandbox::new();
    let job = "[w]\nrw=write\nbs=4k\noffset=12388k\nsize=2064k\ndirect=1\nioengine=psync\n";
    sandbox.write("job.fio", job);
    let observed = |filter: &str| {
        let run = ["run", "job.fio", "-q", "-t", "loop:32m", "--vary", "bs=4k,516k", "--rounds", "4"];
        let events = format!("all=block:block_bio_queue,large=block:block_bio_queue/{filter}/");
        sandbox.run(&[&run[..], &["--primary", "events_per_op.large", "--observe", &events]].concat())
    };
    // Also where two levels give one name to different counts.
    let levels = "observe=large=block:block_plug,large=block:block_unplug";
    let twice = sandbox.run(&["run", "job.fio", "-q", "-t", "loop:32m", "--vary", levels, "--rounds", "4"]);
    assert_eq!(twice.status.code(), Some(2), "{}", errors(&twice));
    assert!(errors(&twice).contains("two tracepoints are called large"), "{}", errors(&twice));
    let output = observed("nr_sectors == 1032");
    let said = errors(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    let refusal = "does not take the filter 'nr_sectors == 1032' of block:block_bio_queue; its numbers are dev, sector, nr_sector";
    assert!(said.contains(refusal), "{said}");
    let output = observed("nr_sector == 1032 && sector >= 24776 && sector < 28904");
    assert_eq!(output.status.code(), Some(0), "{}", errors(&output));
    let run = sandbox.export("1");
    let of = |arm: usize, metric: &str| -> Vec<f64> {
        let of_arm = run.trials.iter().filter(|trial| run.arm_of(trial.cell) == arm);
        let named = |(at, value): &(u32, f64)| (run.metrics[*at as usize].name == metric).then_some(*value);
        of_arm.flat_map(|trial| trial.values.iter().filter_map(named)).collect()
    };
    // 516 writes of 4 KiB, 4 of a size that nobody else has at these places of a device.
    let (small, large) = (of(0, "events.all"), of(1, "events.large"));
    assert!(small.len() == 4 && small.iter().all(|hits| *hits >= 516.0), "{small:?}");
    assert!(large.len() == 4 && large.iter().all(|hits| *hits >= 4.0), "{large:?}");
    let other = of(0, "events.large");
    assert!(other.iter().all(|hits| *hits == 0.0), "{other:?}");
}

#[test]
fn who_may_not_watch_is_told_what_helps_and_has_the_rest() {
    if !is_root() || !available("setpriv") {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.write("job.fio", "[w]\nrw=write\nbs=4k\nsize=64k\n");
    // root without any right of root's.
    let words = ["--bounding-set=-all", "--inh-caps=-all", env!("CARGO_BIN_EXE_assay"), "run", "job.fio"];
    let more = ["--keep-disturbed", "-q", "--aa", "--rounds", "1", "--observe", "locks,waits,cpu,blocks,fs"];
    let output = sandbox.command("setpriv").args(words).args(more).output().unwrap();
    assert!(output.status.success(), "{}", errors(&output));
    let run = sandbox.export("1");
    let told = notes(&run);
    assert!(told.contains("locks are not watched: the kernel does not let this user watch it"), "{told}");
    assert!(told.contains("waits are not watched") && told.contains("run as root"), "{told}");
    assert!(told.contains("blocks are not watched") && told.contains("fs is not watched"), "{told}");
    assert!(largest(&run, "write.total_ios") == Some(16.0), "{:?}", run.metrics);
    let report = sandbox.succeed(&["report", "1"]);
    assert!(report.contains("locks are not watched"), "{report}");
}

/// Processes of the sandbox that hold a perf event.
pub(crate) fn watching(sandbox: &Sandbox) -> usize {
    watchers(sandbox).len()
}

/// Whether a trial is watched. The program itself tries its observers before the first one.
pub(crate) fn a_trial_is_watched(sandbox: &Sandbox) -> bool {
    watchers(sandbox).iter().any(|line| line.contains(" agent"))
}

fn watchers(sandbox: &Sandbox) -> Vec<String> {
    let holds = |pid: &u32| {
        let held = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        held.filter_map(|fd| std::fs::read_link(fd.path()).ok())
            .any(|file| file.to_string_lossy().contains("[perf_event]"))
    };
    sandbox.processes().into_iter().filter(|(pid, _)| holds(pid)).map(|(_, line)| line).collect()
}

#[test]
fn nothing_stays_when_assay_is_killed_while_it_watches() {
    nothing_stays_after(Signal::KILL);
}

#[test]
fn nothing_stays_after_ctrl_c_while_it_watches() {
    nothing_stays_after(Signal::INT);
}

/// Ends assay with a signal while all observers watch, and looks for what they might have left.
fn nothing_stays_after(signal: Signal) {
    if !is_root() {
        return;
    }
    let tracefs = || {
        let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
        mounts.lines().filter(|line| line.contains(" tracefs ")).count()
    };
    // What everybody on this machine would see. Perf events are not among it: they end with the process that holds them.
    let seen_by_all = || {
        let instances = std::fs::read_dir("/sys/kernel/tracing/instances").into_iter().flatten().flatten();
        let names = instances.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let all: std::collections::BTreeSet<String> = names.collect();
        (all, std::fs::read_to_string("/sys/kernel/tracing/events/block/enable").unwrap_or_default())
    };
    let before_all = seen_by_all();
    let sandbox = Sandbox::new();
    sandbox.write("job.fio", &ONE_FILE.replace("500ms", "30"));
    let before = tracefs();
    let words = ["run", "job.fio", "-q", "--aa", "--rounds", "1", "--observe", "locks,waits,cpu,blocks,fs"];
    let mut child = sandbox.start(&words);
    let begun = Instant::now();
    while !a_trial_is_watched(&sandbox) {
        assert!(begun.elapsed() < Duration::from_secs(60), "nobody watches: {:?}", sandbox.processes());
        std::thread::sleep(Duration::from_millis(20));
    }
    rustix::process::kill_process(Pid::from_child(&child), signal).unwrap();
    let status = child.wait().unwrap();
    assert_eq!(status.code(), (signal == Signal::INT).then_some(130), "{status}");
    sandbox.no_process_left(Duration::from_secs(30));
    assert_eq!((watching(&sandbox), tracefs()), (0, before));
    assert_eq!(seen_by_all(), before_all);
}
