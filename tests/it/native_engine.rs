//! The native engine through a real agent: coverage, counts, time and failures. Beside fio: `agreement.rs`.

use std::collections::BTreeMap;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use assay::engine::{EngineKind, Task};
use assay::launch::{Answer, PROTOCOL, Reply, Request};
use assay::record::Outcome;
use assay::target::{TargetSpec, WorkDirectory};

use crate::sandbox::HASTE;
use crate::spoiled::own;

/// One trial through a real agent process.
pub(crate) fn agent(engine: EngineKind, job: &str, directory: &Path) -> Reply {
    answered(started(engine, job, directory))
}

/// One trial's agent, in a process group of its own, with its request.
pub(crate) fn started(engine: EngineKind, job: &str, directory: &Path) -> Child {
    crate::tools::failures_are_said_at_once();
    let task = Task {
        job: Some(job.to_owned()),
        job_origin: "test.fio".to_owned(),
        directory: directory.to_owned(),
        seed: 7,
        ..Task::default()
    };
    let target = TargetSpec { directory: directory.to_owned(), ..TargetSpec::default() };
    let request = Request {
        protocol: PROTOCOL,
        engine,
        task,
        target,
        rehearsal: false,
        observe: Vec::new(),
        before: None,
        after: None,
    };
    asked(&request)
}

/// An agent that was asked this.
pub(crate) fn asked(request: &Request) -> Child {
    let mut child = Command::new(env!("CARGO_BIN_EXE_assay"))
        .arg("agent")
        .envs(HASTE)
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    serde_json::to_writer(child.stdin.take().unwrap(), request).unwrap();
    child
}

/// What a started one says in the end.
pub(crate) fn answered(child: Child) -> Reply {
    let output = child.wait_with_output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {output:?}"))
}

pub(crate) fn done(engine: EngineKind, job: &str, directory: &Path) -> Outcome {
    match agent(engine, job, directory).answer {
        Answer::Done(outcome) => outcome,
        other => panic!("{job}\n{other:?}"),
    }
}

pub(crate) fn work() -> (tempfile::TempDir, WorkDirectory) {
    crate::deadline::watched();
    // Beside the build rather than in /tmp, which may be memory without O_DIRECT.
    let base = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let work = WorkDirectory::create(&WorkDirectory::path_for(base.path(), "test")).unwrap();
    (base, work)
}

type Amounts = BTreeMap<String, (u64, u64)>;

/// I/Os and bytes a job: a mixed job's directions are added, as each engine draws them by its own dice.
fn amounts(outcome: &Outcome) -> Amounts {
    let mut amounts = Amounts::new();
    for sample in &outcome.samples {
        let entry = amounts.entry(sample.metric.job.clone()).or_default();
        if sample.metric.name.ends_with(".total_ios") {
            entry.0 += sample.value as u64;
        } else if sample.metric.name.ends_with(".io_bytes") {
            entry.1 += sample.value as u64;
        }
    }
    amounts.retain(|_, (ios, _)| *ios > 0);
    // A single job needs no name; the engines differ in whether they give it one.
    if amounts.len() == 1 {
        amounts = amounts.into_values().map(|amount| (String::new(), amount)).collect();
    }
    amounts
}

/// Every block carries the offset it was written to (scrambled buffers have it at the start of a cache line): each exactly once.
#[test]
fn without_norandommap_every_block_is_hit_exactly_once() {
    for method in ["psync", "io_uring\niodepth=8", "libaio\niodepth=8\ndirect=1"] {
        let (_base, work) = work();
        let job = format!(
            "[cover]\nioengine={method}\nrw=randwrite\nbs=4k\nsize=1m\nfallocate=none\nrandrepeat=1\n"
        );
        let outcome = done(EngineKind::Native, &job, work.path());
        assert_eq!(amounts(&outcome)[""], (256, 1 << 20), "{method}");
        let bytes = std::fs::read(work.path().join("cover.0.0")).unwrap();
        assert_eq!(bytes.len(), 1 << 20);
        for (block, data) in bytes.chunks(4096).enumerate() {
            let place = (block as u64 * 4096).to_le_bytes();
            let is_there = data[..512].chunks(64).any(|line| line[..8] == place);
            assert!(is_there, "{method}: block {block} was not written to its place");
        }
    }
}

#[test]
fn latencies_are_counted_for_every_transfer_and_sync() {
    // libaio syncs in place, io_uring in flight.
    for method in ["io_uring", "libaio"] {
        latencies_are_counted_with(method);
    }
}

fn latencies_are_counted_with(method: &str) {
    let (_base, work) = work();
    let job = format!("[j]\nrw=randrw\nbs=4k\nsize=1m\nfsync=8\nioengine={method}\niodepth=4\n");
    let outcome = done(EngineKind::Native, &job, work.path());
    let value = |name: &str| outcome.samples.iter().find(|s| s.metric.name == name).map(|s| s.value);
    let transfers = value("read.total_ios").unwrap() + value("write.total_ios").unwrap();
    assert_eq!(transfers, 256.0);
    for (direction, name) in
        [(assay::record::Direction::Read, "read"), (assay::record::Direction::Write, "write")]
    {
        for histogram in outcome.histograms.iter().filter(|h| h.direction == direction) {
            let count = histogram.unpack().unwrap().len() as f64;
            match histogram.kind {
                assay::record::LatencyKind::Sync => assert!(count >= 10.0, "{count} syncs"),
                assay::record::LatencyKind::Durable => {
                    assert!(count >= 80.0 && count <= value("write.total_ios").unwrap(), "{count} writes");
                }
                _ => assert_eq!(count, value(&format!("{name}.total_ios")).unwrap()),
            }
        }
    }
    assert!(value("sync.lat_ns.mean").unwrap() > 0.0);
    assert!(value("dev.write_bytes").is_none_or(|bytes| bytes > 0.0));
}

/// A write and the sync behind it, or with sync= the write.
#[test]
fn writes_are_durable_when_their_sync_has_ended() {
    let (_base, work) = work();
    let mean = |options: &str| {
        let job = format!("[j]\nrw=write\nbs=4k\nsize=256k\nrate_iops=2000\n{options}\n");
        let outcome = done(EngineKind::Native, &job, work.path());
        move |name: &str| {
            let name = format!("{name}.lat_ns.mean");
            outcome.samples.iter().find(|sample| sample.metric.name == name).map(|sample| sample.value)
        }
    };
    let synced = mean("fdatasync=1");
    let (sum, durable) = (synced("write").unwrap() + synced("sync").unwrap(), synced("durable").unwrap());
    // The last write has no sync behind it.
    assert!((durable / sum - 1.0).abs() < 0.2, "{durable} ns are not {sum} ns");
    for (options, known) in [("sync=dsync", true), ("sync=dsync\nfdatasync=1", true), ("", false)] {
        let of = mean(options);
        assert_eq!(of("durable"), of("write").filter(|_| known), "{options}");
    }
    for unknown in ["sync_file_range=write:1", "fdatasync=1\nthinktime=1", "fdatasync=1\nnrfiles=2"] {
        assert_eq!(mean(unknown)("durable"), None, "{unknown}");
    }
    let both = mean("fdatasync=8\nsync_file_range=write:1");
    assert!(both("durable").unwrap() > 0.0);
}

/// What is read back between two writes takes none of the time from when the second was due.
#[test]
fn a_write_behind_a_backlog_keeps_its_due_time() {
    let (_base, work) = work();
    // All are due at once, and wait for those before them.
    let job = "[j]\nrw=write\nbs=4k\nsize=1m\nrate_iops=100000000\nverify=crc32c\nverify_backlog=1\n";
    let outcome = done(EngineKind::Native, job, work.path());
    let mean = |name: &str| outcome.samples.iter().find(|sample| sample.metric.name == name).unwrap().value;
    let [due, issued] = ["write.lat_ns.mean", "write.clat_ns.mean"].map(mean);
    assert!(due > 10.0 * issued, "{due} ns from the due time, {issued} ns from the issue");
}

#[test]
fn runtime_is_kept_by_a_wave_of_threads_and_processes() {
    let (_base, work) = work();
    let job = "[global]\nrw=randread\nbs=4k\nsize=1m\npre_read=1\ntime_based\nruntime=500ms\n[processes]\nnumjobs=2\n[threads]\nthread\nnumjobs=2\n";
    let outcome = done(EngineKind::Native, job, work.path());
    for name in ["processes", "threads"] {
        let value = |metric: &str| {
            outcome.samples.iter().find(|s| s.metric.job == name && s.metric.name == metric).map(|s| s.value)
        };
        let runtime = value("runtime").unwrap();
        // One that began again would run for good.
        assert!((0.5..60.0).contains(&runtime), "{name} ran {runtime} s");
        assert!(value("read.total_ios").unwrap() > 256.0, "{name} began again");
        assert!(value("usr_cpu").unwrap() + value("sys_cpu").unwrap() <= 2.0 * runtime + 0.1);
    }
}

#[test]
fn failures_name_the_place_and_the_errno() {
    let cases: [(&str, &[&str]); 6] = [
        ("[j]\nrw=read\nbs=4k\nsize=1m\nfilename=/proc/version\n", &["/proc/version"]),
        (
            "[j]\nrw=write\nbs=4k\nsize=1m\nfilename=/nonexistent/dir/file\n",
            &["/nonexistent/dir/file", "ENOENT"],
        ),
        ("[j]\nrw=write\nbs=4k\nsize=8192g\nfallocate=none\n", &["no space for", "bytes are missing"]),
        ("[j]\nrw=randwrite\nbs=1000\nsize=1m\ndirect=1\n", &["EINVAL", "offset", "logical block"]),
        ("[j]\nrw=write\nbs=4k\nsize=1m\nfilename=/dev/full\n", &["/dev/full"]),
        ("[j]\nrw=read\nbs=4k\nsize=1m\nnumjobs=2\ncpus_allowed=900\n", &["cpus_allowed"]),
    ];
    for (job, words) in cases {
        let (_base, work) = work();
        match agent(EngineKind::Native, job, work.path()).answer {
            Answer::Failed { reason, .. } | Answer::Unsupported { reason } => {
                for word in words {
                    assert!(reason.contains(word), "{job}: '{reason}' does not say '{word}'");
                }
            }
            Answer::Done(outcome) => panic!("{job} was done: {outcome:?}"),
        }
    }
}

#[test]
fn what_an_agent_cannot_read_is_an_error() {
    for input in ["", "{}", "nonsense", "{\"protocol\":99}"] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_assay"))
            .arg("agent")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), input.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{input}");
        assert!(output.stdout.is_empty());
        assert!(String::from_utf8_lossy(&output.stderr).contains("request"), "{output:?}");
    }
}

#[test]
fn io_uring_does_nothing_by_itself_and_says_what_the_kernel_did() {
    let cached = "[a]\nrw=read\nbs=4k\nsize=256k\npre_read=1\nioengine=io_uring\n";
    let note_of = |options: &str| {
        let (_base, work) = work();
        own(&done(EngineKind::Native, &format!("{cached}{options}"), work.path()).notes).join("\n")
    };
    assert_eq!(note_of("iodepth=8\n"), "", "what is cached needs no waiting");
    assert!(note_of("iodepth=8\nforce_async=1\n").contains("worker threads"));
}

/// As fio: the rate of a group's direction is over the time of those that move data that way.
#[test]
fn a_writer_that_ends_early_is_not_divided_by_the_readers_time() {
    let job = "[global]\ngroup_reporting\nioengine=psync\nbs=4k\nsize=256k\nfilename=f\n[w]\nrw=write\n\
               [r]\nrw=randread\ntime_based\nruntime=5\n";
    for engine in [EngineKind::Native, EngineKind::Fio] {
        if engine == EngineKind::Fio && !crate::tools::available("fio") {
            return;
        }
        let (_base, work) = work();
        let outcome = done(engine, job, work.path());
        let value = |name: &str| {
            let is_it = |sample: &&assay::record::Sample| sample.metric.name == name;
            outcome.samples.iter().find(is_it).unwrap_or_else(|| panic!("{engine:?}: no {name}")).value
        };
        assert!(value("write.runtime") < value("read.runtime"), "{engine:?}: {outcome:?}");
        assert!((value("read.runtime") - value("runtime")).abs() < 0.1, "{engine:?}");
        // Over the group's time it would be less.
        assert!(
            value("write.bw") > 1.2 * value("write.io_bytes") / value("runtime"),
            "{engine:?}: {outcome:?}"
        );
    }
}

/// As fio: each loop ends with the sync of the job's end, once, whatever is in flight or due.
#[test]
fn each_loop_ends_with_its_sync() {
    for options in ["ioengine=psync", "ioengine=libaio\niodepth=8\ndirect=1", "ioengine=psync\nrate=64m"] {
        let (_base, work) = work();
        let job =
            format!("[j]\nrw=write\nbs=64k\nsize=512k\nloops=3\nend_fsync=1\nwrite_iolog=log\n{options}\n");
        done(EngineKind::Native, &job, work.path());
        let log = std::fs::read_to_string(work.path().join("log")).unwrap();
        let done = log.lines().filter_map(|line| match line {
            _ if line.contains(" write ") => Some('w'),
            _ if line.contains(" sync") => Some('s'),
            _ => None,
        });
        assert_eq!(done.collect::<String>(), "wwwwwwwws".repeat(3), "{options}: {log}");
    }
}
