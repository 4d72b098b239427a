//! Files from their making to their end, and jobs that end each other: what no iolog shows (see `agreement` for what
//! one does). Where fio can do the same, beside fio.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use assay::engine::{EngineKind, Task};
use assay::launch::{Answer, PROTOCOL, Reply, Request};
use assay::record::{Outcome, Sample};
use assay::target::TargetSpec;

use crate::native_engine::{agent, done, work};
use crate::spoiled::{expect, texts, unless_spoiled};
use crate::tools;

fn failed(job: &str, directory: &Path) -> (String, Vec<Sample>) {
    match agent(EngineKind::Native, job, directory).answer {
        Answer::Failed { reason, so_far, .. } => (reason, so_far),
        other => panic!("{job}\n{other:?}"),
    }
}

fn value(outcome: &Outcome, job: &str, name: &str) -> f64 {
    let found = outcome.samples.iter().find(|s| s.metric.job == job && s.metric.name == name);
    found.unwrap_or_else(|| panic!("no {job}/{name}")).value
}

fn sizes(directory: &Path) -> BTreeMap<String, u64> {
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap());
    entries
        .filter(|entry| entry.file_name() != assay::target::MARK)
        .map(|entry| (entry.file_name().to_string_lossy().into_owned(), entry.metadata().unwrap().len()))
        .collect()
}

/// A file of the user's own, which outlives what is done to the work directory; its name has no `:`.
fn old_file(base: &Path) -> std::path::PathBuf {
    let old = base.join("old");
    std::fs::write(&old, (0..10_000_u32).map(|n| n as u8).collect::<Vec<_>>()).unwrap();
    old
}

/// The same job under both engines, each with a file OLD of 10000 bytes: what is there afterwards.
fn left_behind(job: &str) -> BTreeMap<String, u64> {
    let left: Vec<_> = [EngineKind::Native, EngineKind::Fio]
        .into_iter()
        .map(|engine| {
            let (base, work) = work();
            let old = old_file(base.path());
            done(engine, &job.replace("OLD", &old.display().to_string()), work.path());
            let mut left = sizes(work.path());
            left.extend(old.metadata().ok().map(|found| ("old".to_owned(), found.len())));
            left
        })
        .collect();
    assert_eq!(left[0], left[1], "native, fio\n{job}");
    left[0].clone()
}

#[test]
fn what_remains_is_what_fio_leaves() {
    if !tools::available("fio") {
        return;
    }
    let jobs: [(&str, &[(&str, u64)]); 7] = [
        ("filename=OLD\nrw=write\nsize=16k\nfile_append=1\nnumjobs=2", &[("old", 10_000 + 2 * 16_384)]),
        ("filename=OLD\nrw=randwrite\nsize=16k\nfile_append=1\nfallocate=none", &[("old", 26_384)]),
        ("filename=OLD\nrw=write\nsize=8k\nunlink=1\nnumjobs=2", &[]),
        ("rw=randrw\nsize=64k\nnrfiles=2\nunlink=1", &[("old", 10_000)]),
        ("rw=write\nsize=64k\nio_size=16k\ncreate_on_open=1", &[("j.0.0", 16_384), ("old", 10_000)]),
        ("rw=write\nsize=64k\nio_size=16k", &[("j.0.0", 65_536), ("old", 10_000)]),
        (
            "rw=write\nioengine=mmap\nsize=64k\nio_size=16k\nfallocate=none",
            &[("j.0.0", 65_536), ("old", 10_000)],
        ),
    ];
    for (options, expected) in jobs {
        let expected: BTreeMap<String, u64> =
            expected.iter().map(|(name, bytes)| ((*name).to_owned(), *bytes)).collect();
        assert_eq!(left_behind(&format!("[j]\nbs=4k\n{options}\n")), expected, "{options}");
    }
}

#[test]
fn what_was_there_before_stays_when_it_is_appended_to() {
    let (base, work) = work();
    let old = old_file(base.path());
    let before = std::fs::read(&old).unwrap();
    let job = format!("[j]\nfilename={}\nrw=write\nbs=4k\nsize=8k\nfile_append=1\n", old.display());
    done(EngineKind::Native, &job, work.path());
    let new = std::fs::read(&old).unwrap();
    assert!(new.len() == 18_192 && new[..10_000] == before);
    assert!(new[10_000..].iter().any(|byte| *byte != 0));
}

#[test]
fn syncs_are_as_many_as_fios() {
    if !tools::available("fio") {
        return;
    }
    for options in ["sync_file_range=write:8", "sync_file_range=wait_before,write,wait_after:3\nfdatasync=6"]
    {
        let job = format!("[j]\nrw=write\nbs=4k\nsize=512k\n{options}\n");
        let syncs = [EngineKind::Native, EngineKind::Fio].map(|engine| {
            let (_base, work) = work();
            let outcome = done(engine, &job, work.path());
            outcome.samples.iter().find(|s| s.metric.name == "sync.total_ios").map(|s| s.value)
        });
        assert!(syncs[0].is_some_and(|count| count > 10.0), "{options}: {syncs:?}");
        assert_eq!(syncs[0], syncs[1], "{options}");
    }
}

#[test]
fn with_exitall_the_first_that_ends_takes_its_group_along() {
    if !tools::available("fio") {
        return;
    }
    // The other group has an amount, and both engines let it end.
    let job = "[global]\nbs=4k\nrw=write\nsize=1m\nthread=1\n\
               [quick]\nexitall\nthinktime=500us\n\
               [endless]\ntime_based\nruntime=60\nthinktime=1ms\n\
               [late]\nstartdelay=60\n\
               [other-group]\nnew_group\nthinktime=500us\nsize=512k\n";
    for (engine, job) in [
        (EngineKind::Native, job.to_owned()),
        (EngineKind::Native, job.replace("thread=1", "thread=0")),
        // fio itself does not end a job that has not started.
        (EngineKind::Fio, job.replace("[late]\nstartdelay=60\n", "")),
    ] {
        let (_base, work) = work();
        let begun = Instant::now();
        let outcome = done(engine, &job, work.path());
        assert!(begun.elapsed() < Duration::from_secs(30), "{engine:?}: {:?}", begun.elapsed());
        assert_eq!(value(&outcome, "quick", "write.io_bytes"), 1_048_576.0, "{engine:?}");
        assert_eq!(value(&outcome, "other-group", "write.io_bytes"), 524_288.0, "{engine:?}");
        assert!(value(&outcome, "endless", "write.runtime") < 30.0, "{engine:?}");
    }
}

#[test]
fn with_exitall_a_job_that_waits_for_its_rate_ends_at_once() {
    for method in ["psync", "libaio", "io_uring"] {
        let (_base, work) = work();
        let job = format!(
            "[global]\nbs=4k\nrw=write\nsize=1m\n[quick]\nexitall\nthinktime=500us\n\
             [paced]\nioengine={method}\nrate=400\ntime_based\nruntime=60\n"
        );
        let outcome = done(EngineKind::Native, &job, work.path());
        let after = value(&outcome, "paced", "runtime") - value(&outcome, "quick", "runtime");
        // 8 ms, and what a busy machine adds; its second I/O would be due after 10 s.
        assert!((0.0..5.0).contains(&after), "{method}: {after} s");
    }
}

#[test]
fn a_mapping_says_how_it_is_made_and_what_it_needs() {
    let (_base, work) = work();
    let outcome =
        done(EngineKind::Native, "[j]\nioengine=mmap\nrw=write\nsize=64k\nnumjobs=2\n", work.path());
    let notes = texts(&outcome.notes);
    let notes: Vec<&str> = notes.into_iter().filter(|note| note.contains("mapped with")).collect();
    assert_eq!(notes, ["job j: mapped with MAP_SHARED: its filesystem is not DAX"]);
    let (reason, _) = failed("[j]\nioengine=mmap\nrw=write\nbs=1000\nsize=64k\nfsync=4\n", work.path());
    assert!(reason.contains("blocks of whole pages"), "{reason}");
    let read_behind = "[j]\nioengine=mmap\nrw=read\nfilename=short\nsize=64k\ncreate_on_open=1\n";
    let (reason, _) = failed(read_behind, work.path());
    assert!(reason.contains("has 0 bytes, and the job"), "{reason}");
}

/// An agent that is running.
fn start(job: &str, directory: &Path) -> Child {
    let task = Task {
        job: Some(job.to_owned()),
        job_origin: "test.fio".to_owned(),
        directory: directory.to_owned(),
        ..Task::default()
    };
    let target = TargetSpec { directory: directory.to_owned(), ..TargetSpec::default() };
    let engine = EngineKind::Native;
    let request = Request {
        protocol: PROTOCOL,
        engine,
        task,
        target,
        before: None,
        after: None,
        rehearsal: false,
        observe: Vec::new(),
    };
    let mut child = Command::new(env!("CARGO_BIN_EXE_assay"))
        .arg("agent")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(&serde_json::to_vec(&request).unwrap()).unwrap();
    child
}

fn ended(child: Child) -> (String, Vec<Sample>) {
    let output = child.wait_with_output().unwrap();
    let reply: Reply = serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {output:?}"));
    match reply.answer {
        Answer::Failed { reason, so_far, .. } => (reason, so_far),
        other => panic!("{other:?}"),
    }
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(30), "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_mapped_file_that_is_cut_short_ends_the_job_with_its_counts() {
    for thread in [0, 1] {
        // The job may not have begun when the file is cut.
        unless_spoiled(|| {
            let (_base, work) = work();
            // A thousandth of the file stays: the next write lands behind the cut.
            let job = format!(
                "[j]\nioengine=mmap\nrw=randwrite\nnorandommap\nfilename=f\nbs=4k\nsize=4m\nthread={thread}\n\
                 thinktime=100us\ntime_based\nruntime=60\n"
            );
            let child = start(&job, work.path());
            let file = work.path().join("f");
            until("the file is not laid out", || file.metadata().is_ok_and(|found| found.len() == 4 << 20));
            std::thread::sleep(Duration::from_millis(300));
            std::fs::OpenOptions::new().write(true).open(&file).unwrap().set_len(4096).unwrap();
            let (reason, so_far) = ended(child);
            let at_work = reason.contains("SIGBUS") && reason.contains("write of 4096 bytes at offset");
            expect(at_work, || reason)?;
            let ios = so_far.iter().find(|sample| sample.metric.name == "write.total_ios");
            let some = ios.is_some_and(|sample| sample.value > 0.0);
            expect(some, || format!("thread={thread}: {so_far:?}"))
        });
    }
}

#[test]
fn a_job_that_is_killed_ends_the_others_at_once() {
    // The others may not have written when it is killed.
    unless_spoiled(|| {
        let (_base, work) = work();
        let job = "[j]\nrw=write\nbs=4k\nsize=4m\nnumjobs=3\nthinktime=1ms\ntime_based\nruntime=60\n";
        let child = start(job, work.path());
        let children = format!("/proc/{0}/task/{0}/children", child.id());
        let jobs = || -> Vec<i32> {
            let text = std::fs::read_to_string(&children).unwrap_or_default();
            text.split_whitespace().filter_map(|word| word.parse().ok()).collect()
        };
        until("the jobs do not start", || jobs().len() == 3);
        std::thread::sleep(Duration::from_millis(100));
        let begun = Instant::now();
        let second = rustix::process::Pid::from_raw(jobs()[1]).unwrap();
        rustix::process::kill_process(second, rustix::process::Signal::KILL).unwrap();
        let (reason, so_far) = ended(child);
        assert!(begun.elapsed() < Duration::from_secs(50), "{:?}", begun.elapsed());
        assert!(reason.contains("its process was killed by SIGKILL"), "{reason}");
        let wrote = so_far.iter().any(|sample| sample.metric.name == "write.total_ios");
        expect(wrote, || format!("{so_far:?}"))
    });
}

#[test]
fn what_cannot_be_is_said_before_anything_is_written() {
    let cases = [
        ("rw=randtrim", "rw=trim discards blocks of a block device, and"),
        ("rw=write\ncpus_allowed=0,4000", "cpus_allowed: there is no CPU 4000; this machine has 0"),
        ("rw=write\nnuma_cpu_nodes=99", "numa_cpu_nodes: there is no node 99; this machine has 0"),
        ("rw=read\nioengine=pvsync2\nnowait=1\ninvalidate=1\nsize=8m", "EAGAIN"),
    ];
    for (options, expected) in cases {
        let (_base, work) = work();
        let (reason, _) = failed(&format!("[j]\nsize=64k\n{options}\n"), work.path());
        assert!(reason.contains(expected), "{options}: {reason}");
    }
}
