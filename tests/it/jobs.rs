//! Job files against the real fio, and the examples of docs/jobs.md.

use std::path::{Path, PathBuf};
use std::process::Command;

use assay::experiment::{CommandLine, Experiment};
use assay::plan::Plan;
use assay::workload::{JobFile, Workload, fio_option};

use crate::tools;

fn job_files() -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = std::fs::read_dir("tests/data/jobs")
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "fio"))
        .collect();
    files.sort();
    assert!(files.len() >= 11, "{files:?}");
    files
}

fn parse(path: &Path) -> JobFile {
    let text = std::fs::read_to_string(path).unwrap();
    JobFile::parse(&text, &path.display().to_string(), path.parent().unwrap()).unwrap()
}

#[test]
fn every_job_file_is_native() {
    for path in job_files() {
        let resolved = Workload::resolve(&parse(&path));
        assert!(resolved.is_ok(), "{}: {}", path.display(), resolved.unwrap_err());
    }
}

/// (jobs' reads and writes, bytes) of a run of `job` in `directory`, in the order of fio's report.
fn run_fio(job: &Path, directory: &Path) -> Vec<(u64, u64)> {
    let output =
        Command::new("fio").args(["--output-format=json"]).arg(job).current_dir(directory).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{}: {text}{}", job.display(), String::from_utf8_lossy(&output.stderr));
    let json: serde_json::Value = serde_json::from_str(&text[text.find('{').unwrap()..]).unwrap();
    let count = |job: &serde_json::Value, key: &str| {
        ["read", "write"].iter().map(|d| job[d][key].as_u64().unwrap()).sum()
    };
    json["jobs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|job| (count(job, "total_ios"), count(job, "io_bytes")))
        .collect()
}

#[test]
fn a_job_written_out_again_runs_alike_under_fio() {
    if !tools::available("fio") {
        return;
    }
    // Each of them takes fio a second; what ends by the clock never runs twice alike.
    let timed = |path: &&PathBuf| std::fs::read_to_string(path).unwrap().contains("runtime");
    for path in job_files().iter().filter(|path| !path.ends_with("bdev-mix.fio") && !timed(path)).step_by(7) {
        let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let written = second.path().join("written.fio");
        std::fs::write(&written, parse(path).to_fio_text()).unwrap();
        let original = run_fio(&std::fs::canonicalize(path).unwrap(), first.path());
        assert_eq!(run_fio(&written, second.path()), original, "{}", path.display());
    }
}

#[test]
fn every_option_of_fio_3_33_is_known() {
    if !tools::available("fio") {
        return;
    }
    let version = Command::new("fio").arg("--version").output().unwrap();
    if version.stdout.trim_ascii() != b"fio-3.33" {
        // A later fio may have options that were not there when the list was made.
        return tools::skipped("the list of options is fio 3.33's, and another fio is installed");
    }
    let help = Command::new("fio").arg("--cmdhelp").output().unwrap();
    let help = String::from_utf8_lossy(&help.stdout).into_owned();
    let names: Vec<&str> =
        help.lines().filter_map(|line| line.split_once(':')).map(|(name, _)| name.trim()).collect();
    assert!(names.len() > 200, "{names:?}");
    for name in names {
        assert!(fio_option(name).is_some(), "{name}");
    }
}

#[test]
fn the_examples_of_the_manual_are_experiments() {
    let manual = std::fs::read_to_string("docs/jobs.md").unwrap();
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("randwrite.fio"), "[w]\nrw=randwrite\nsize=${SIZE}\n").unwrap();
    let examples: Vec<&str> =
        manual.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert_eq!(examples.len(), 3);
    // The last is what a file may have besides.
    let with_more = format!("{}\n{}", examples[0], examples[2]);
    for (example, cells) in [(examples[0], 4), (examples[1], 2), (&with_more, 4)] {
        let path = directory.path().join("example.toml");
        std::fs::write(&path, example).unwrap();
        let experiment = Experiment::load(&path, &CommandLine::default()).unwrap();
        let plan = Plan::new(&experiment, 1, directory.path(), "own").unwrap();
        assert_eq!(plan.cells.len(), cells, "{example}");
    }
}

#[test]
fn every_example_plans() {
    let directory = tempfile::tempdir().unwrap();
    let mut cells = std::collections::BTreeMap::new();
    for entry in std::fs::read_dir("examples").unwrap() {
        let path = entry.unwrap().path();
        let aa = path.extension().is_some_and(|extension| extension == "fio");
        if !aa && path.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        // A job alone varies nothing.
        let experiment = Experiment::load(&path, &CommandLine { aa, ..CommandLine::default() }).unwrap();
        let plan = Plan::new(&experiment, 1, directory.path(), "own").unwrap();
        cells.insert(path.file_name().unwrap().to_string_lossy().into_owned(), plan.cells.len());
    }
    assert_eq!(cells.get("flush-policy.toml"), Some(&8), "{cells:?}");
    assert!(cells.contains_key("randwrite.fio"), "{cells:?}");
}

#[test]
fn what_is_no_job_is_told_shortly() {
    let noise = "x".repeat(5000);
    for text in [
        format!("{noise}\n").repeat(50),
        format!("[a]\nsize=1m\n{}", format!("{noise}={noise}\n").repeat(50)),
        format!("[a]\nsize=1m\n{}", format!("iodepth={noise}\nfallocate={noise}\n").repeat(25)),
        format!("[a]\nsize=1m\n{}", format!("verify_pattern={noise}\n").repeat(50)),
        format!("[a]\nsize=1m\n{}", format!("no option {noise}\n").repeat(50)),
    ] {
        let told = match JobFile::parse(&text, "a", Path::new("")) {
            Err(errors) => errors,
            Ok(file) => Workload::resolve(&file).unwrap_err(),
        };
        let told = told.to_string();
        assert_eq!(told.lines().count(), 11, "{told}");
        assert!(told.ends_with("\n… and 40 more"), "{told}");
        assert!(told.lines().all(|line| line.chars().count() < 200), "{told}");
    }
}

/// Settings of which fio 3.33 takes the first ones and refuses the others, and so does the native engine.
const TAKEN: &[&str] = &[
    "bssplit=4k/50:8k",
    "bssplit=4k/10:64k/90,8k",
    "percentage_random=10,20,30",
    "random_distribution=zipf",
    "random_distribution=zipf:0.5:0.25",
    "random_distribution=pareto:0.9",
    "random_distribution=normal:20",
    "random_distribution=zoned:50/5:30/15:20/",
    "random_distribution=zoned_abs:90/16k:10/16k",
    "file_service_type=gauss:10",
    "file_service_type=random:8",
    "file_service_type=sequential",
    "rate=1g,500m",
    "rate_iops=,1k",
    "rate_process=poisson",
    "latency_target=5ms\nlatency_window=1s\nlatency_percentile=99.9",
    "thinktime=10\nthinktime_spin=5\nthinktime_blocks=4",
    "verify=crc32c-intel\nverify_backlog=16\nverify_backlog_batch=8",
    "verify=xxhash\nverify_interval=512\nverify_fatal=1",
    "verify=pattern\nverify_pattern=\"abc\"%o0xdeadbeef-12",
    "buffer_compress_percentage=50\nbuffer_compress_chunk=4k",
    "dedupe_percentage=30",
    "iomem=mmapshared",
    "lockmem=1m",
    "ioengine=io_uring\nfixedbufs\nregisterfiles=1\nnonvectored=1\nforce_async=4",
    "ioengine=io_uring\nsqthread_poll=1\nsqthread_poll_cpu=0",
    "ioengine=pvsync2\nhipri\nhipri_percentage=50\nnowait=1",
    "ioengine=mmap\nfsync=4",
    "sync_file_range=wait_before,write:8\nfsync_on_close=1",
    "create_on_open=1\nunlink=1\nfile_append=1",
    "exitall\nexit_what=group",
    "cpus_allowed=0\ncpus_allowed_policy=split",
    "numa_cpu_nodes=0\nnuma_mem_policy=prefer:0",
    "write_hint=none\nflow=0\nio_submit_mode=inline\nallow_mounted_write=0",
];
const REFUSED: &[&str] = &[
    "bssplit=4k/60:8k/60:16k:32k",
    "percentage_random=101",
    "random_distribution=zipf:1",
    "random_distribution=zipf:1.2:1.5",
    "random_distribution=pareto:1",
    "random_distribution=normal:100",
    "random_distribution=gauss",
    "random_distribution=zoned:50/5:30/15",
    "file_service_type=any",
    "rate_process=burst",
    "latency_percentile=101",
    "verify=md6",
    "verify_interval=79",
    "verify_pattern=0xzz",
    "dedupe_percentage=101",
    "mem=stack",
    "io_submit_mode=other",
    "cpus_allowed_policy=both",
    "sync_file_range=read:1",
    "ioengine=psync\nfixedbufs",
    "iodepth=0",
];

#[test]
fn fio_takes_and_refuses_the_same_settings() {
    let fio = tools::available("fio");
    let directory = tempfile::tempdir().unwrap();
    let cases = TAKEN.iter().map(|case| (case, true)).chain(REFUSED.iter().map(|case| (case, false)));
    for (settings, right) in cases {
        let text = format!("[a]\nsize=1m\nrw=randrw\n{settings}\n");
        let file = JobFile::parse(&text, "a", Path::new("")).unwrap();
        let native = Workload::resolve(&file);
        assert_eq!(native.is_ok(), right, "{settings}: {native:?}");
        if fio {
            let job = directory.path().join("job.fio");
            std::fs::write(&job, &text).unwrap();
            let output = Command::new("fio").arg("--parse-only").arg(&job).output().unwrap();
            assert_eq!(output.status.success(), right, "{settings}: fio: {output:?}");
        }
    }
}
