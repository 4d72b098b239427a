//! The job files that go around the page cache, on a loop device: what an engine reports is what the device counted.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use assay::engine::EngineKind;
use assay::workload::{JobFile, Workload};

use crate::agreement::{Amounts, amounts, job_files};
use crate::failing_case::Mounted;
use crate::loop_device::LoopDevice;
use crate::native_engine::{done, work};
use crate::sandbox::Sandbox;
use crate::target_bench::can_make;
use crate::tools;

/// Larger blocks the kernel splits: a request to a loop device has at most 128 pages that do not lie together.
const WHOLE: u64 = 128 * 4096;

/// I/Os and bytes a direction that a device has counted. What the kernel merged was an I/O of the engine's.
fn counted(device: &LoopDevice) -> BTreeMap<&'static str, (u64, u64)> {
    let text = std::fs::read_to_string(device.sys().join("stat")).unwrap();
    let fields: Vec<u64> = text.split_whitespace().map(|field| field.parse().unwrap()).collect();
    // Documentation/block/stat.rst: I/Os, merges, sectors of 512 bytes, milliseconds.
    let of = |at: usize| (fields[at] + fields[at + 1], fields[at + 2] * 512);
    BTreeMap::from([("read", of(0)), ("write", of(4)), ("trim", of(11))])
}

/// The job with every section on `device`.
fn on_device(text: &str, device: &Path) -> String {
    let places = ["filename=", "directory=", "nrfiles="];
    let mut moved = String::new();
    for line in text.lines().filter(|line| !places.iter().any(|place| line.starts_with(place))) {
        moved.push_str(line);
        moved.push('\n');
        if line.starts_with('[') && line.trim() != "[global]" {
            moved.push_str(&format!("filename={}\n", device.display()));
        }
    }
    moved
}

fn by_direction(reported: &Amounts) -> BTreeMap<&'static str, (u64, u64)> {
    let mut sums = BTreeMap::from([("read", (0, 0)), ("write", (0, 0)), ("trim", (0, 0))]);
    for ((_, direction), (ios, bytes)) in reported {
        let sum = sums.get_mut(direction.as_str()).expect("a direction");
        *sum = (sum.0 + ios, sum.1 + bytes);
    }
    sums
}

fn workload(path: &Path) -> Workload {
    let text = std::fs::read_to_string(path).unwrap();
    Workload::resolve(&JobFile::parse(&text, &path.to_string_lossy(), Path::new("")).unwrap()).unwrap()
}

#[test]
fn the_devices_own_counters_agree_with_both_engines() {
    if !tools::available("fio") {
        return;
    }
    let sandbox = Sandbox::new();
    let Some(device) = LoopDevice::on(&sandbox.path().join("image"), 32 << 20) else { return };
    let is_direct = |path: &PathBuf| workload(path).jobs.iter().all(|job| job.direct);
    let own = std::fs::read_dir("tests/data/jobs/device").unwrap().map(|entry| entry.unwrap().path());
    let paths: Vec<PathBuf> = job_files().into_iter().filter(is_direct).chain(own).collect();
    assert!(paths.len() >= 10, "{paths:?}");
    for path in paths {
        let text = on_device(&std::fs::read_to_string(&path).unwrap(), &device.path);
        let mut ran = Vec::new();
        for engine in [EngineKind::Native, EngineKind::Fio] {
            let (_base, place) = work();
            let before = counted(&device);
            let outcome = done(engine, &text, place.path());
            let mut counted = counted(&device);
            for (direction, (ios, bytes)) in &mut counted {
                (*ios, *bytes) = (*ios - before[direction].0, *bytes - before[direction].1);
            }
            let mut reported = by_direction(&amounts(&outcome));
            // A flush is counted as a write of no sectors.
            let syncs = outcome.samples.iter().filter(|sample| sample.metric.name == "sync.total_ios");
            let syncs: f64 = syncs.map(|sample| sample.value).sum();
            let last =
                workload(&path).jobs.iter().filter(|job| job.end_fsync).map(|job| job.numjobs).sum::<u32>();
            reported.entry("write").or_default().0 += syncs as u64 + u64::from(last);
            let jobs = workload(&path).jobs;
            if jobs.iter().any(|job| job.max_block() > WHOLE) {
                reported.values_mut().chain(counted.values_mut()).for_each(|sum| sum.0 = 0);
            }
            assert_eq!(reported, counted, "{} {engine:?}: reported, counted", path.display());
            ran.push(counted.values().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1)));
        }
        // What ends by the clock gets as far as it gets, and sizes that are drawn are each engine's own.
        let jobs = workload(&path).jobs;
        if jobs.iter().all(|job| job.runtime.is_none() && job.block_split.iter().all(Vec::is_empty)) {
            assert_eq!(ran[0], ran[1], "{}: native, fio", path.display());
        }
    }
}

/// The log of XFS on another device: its writes count, and an audit that cannot see them decides nothing.
#[test]
fn what_xfs_writes_to_its_log_elsewhere_is_counted() {
    if !can_make() {
        return;
    }
    let sandbox = Sandbox::new();
    let [data, log] =
        ["data.img", "log.img"].map(|image| LoopDevice::on(&sandbox.path().join(image), 320 << 20));
    let (Some(data), Some(log)) = (data, log) else { return };
    let [data_path, log_path] = [&data, &log].map(|device| device.path.to_str().unwrap());
    let logdev = format!("logdev={log_path}");
    let mkfs = ["-q", "-f", "-l", &format!("{logdev},size=64m"), data_path];
    assert!(std::process::Command::new("/usr/sbin/mkfs.xfs").args(mkfs).status().unwrap().success());
    let Some(mounted) = Mounted::new(&sandbox, "there", &["-o", &logdev, data_path]) else { return };
    sandbox.write("job.fio", "[w]\nrw=write\nbs=4k\nsize=512k\nfsync=1\n");
    let before = counted(&log)["write"];
    let there = mounted.0.to_str().unwrap();
    let words = [
        "run", "job.fio", "-q", "--aa", "--rounds", "1", "--no-lead-in", "--observe", "blocks",
        "--directory", there,
    ];
    sandbox.succeed(&words);
    let (ios, bytes) = counted(&log)["write"];
    assert!(ios - before.0 >= 128, "{ios} writes of the log");
    let run = sandbox.export("1");
    let value = |trial: &assay::record::Trial, name: &str| {
        let of = |(at, _): &&(u32, f64)| run.metrics[*at as usize].name == name;
        trial.values.iter().find(of).map_or(0.0, |(_, value)| *value)
    };
    let written: f64 = run.trials.iter().map(|trial| value(trial, "dev.write_bytes")).sum();
    let logged = (bytes - before.1) as f64;
    assert!(written > logged, "{written} of which {logged} in the log");
    let notes: Vec<&str> = run.trials[0].notes.iter().map(|note| &*note.text).collect();
    let said = notes.iter().any(|note| note.contains("UNDECIDABLE, its journal is on another device"));
    assert!(said, "{notes:?}");
}
