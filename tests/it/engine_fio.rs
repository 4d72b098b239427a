//! The fio engine with the real fio (`make test` installs it).

use assay::engine::fio::Fio;
use assay::engine::{Engine, EngineError, Task};
use assay::record::{Direction, LatencyKind, Outcome};

fn task(directory: &std::path::Path, job: &str) -> Task {
    Task {
        job: Some(job.to_owned()),
        directory: directory.to_owned(),
        variables: vec![("size".to_owned(), "2m".to_owned())],
        ..Task::default()
    }
}

fn value(outcome: &Outcome, job: &str, name: &str) -> f64 {
    let found = outcome.samples.iter().find(|s| s.metric.job == job && s.metric.name == name);
    assert!(found.is_some(), "no {job}/{name}");
    found.map_or(f64::NAN, |sample| sample.value)
}

#[test]
fn a_job_runs_in_the_tasks_directory_with_its_variables() {
    let directory = tempfile::tempdir().unwrap();
    let probe = Fio.probe().expect("these tests need fio 3.33 or newer");
    assert!(probe.version.starts_with("fio-") && probe.path.is_some(), "{probe:?}");
    let job = "[w]\nrw=randwrite\nbs=4k\nsize=${size}\nioengine=psync\n";
    let outcome = Fio.run(&task(directory.path(), job)).unwrap();
    assert_eq!(value(&outcome, "", "write.io_bytes"), 2_097_152.0);
    assert_eq!(value(&outcome, "", "write.total_ios"), 512.0);
    assert_eq!(directory.path().join("w.0.0").metadata().unwrap().len(), 2_097_152);
    let clat = outcome
        .histograms
        .iter()
        .find(|h| h.direction == Direction::Write && h.kind == LatencyKind::Clat)
        .unwrap()
        .unpack()
        .unwrap();
    assert_eq!(clat.len(), 512);
    let (p99, of_bins) = (value(&outcome, "", "write.clat_ns.p99"), clat.value_at_quantile(0.99) as f64);
    assert!((p99 / of_bins - 1.0).abs() < 0.02, "{p99} {of_bins}");
}

#[test]
fn several_jobs_keep_their_names() {
    let directory = tempfile::tempdir().unwrap();
    let job = "[global]\nsize=1m\nioengine=psync\n[a]\nrw=write\n[b]\nstonewall\nrw=read\nfilename=a.0.0\n";
    let outcome = Fio.run(&task(directory.path(), job)).unwrap();
    assert_eq!(value(&outcome, "a", "write.io_bytes"), 1_048_576.0);
    assert_eq!(value(&outcome, "b", "read.io_bytes"), 1_048_576.0);
}

#[test]
fn fios_error_text_reaches_the_user() {
    let directory = tempfile::tempdir().unwrap();
    let nonsense = "[w]\nrw=write\nsize=1m\nnonsense=1\n";
    match Fio.run(&task(directory.path(), nonsense)) {
        Err(EngineError::Failed { reason, output, command, .. }) => {
            assert!(reason.contains("Bad option <nonsense=1>"), "{reason}");
            assert!(output.contains("job w dropped"), "{output}");
            assert!(command.contains("nonsense=1"), "{command}");
        }
        other => panic!("{other:?}"),
    }
    // A directory where a file should be: an error of the job while fio itself goes on.
    std::fs::create_dir(directory.path().join("d")).unwrap();
    let io_error = "[w]\nrw=write\nsize=1m\nfilename=d\n";
    match Fio.run(&task(directory.path(), io_error)) {
        Err(EngineError::Failed { reason, .. }) => assert!(reason.contains("Is a directory"), "{reason}"),
        other => panic!("{other:?}"),
    }
    assert!(matches!(Fio.run(&Task::default()), Err(EngineError::Unsupported { .. })));
}

#[test]
fn a_time_limit_leaves_no_fio_behind() {
    let directory = tempfile::tempdir().unwrap();
    let job = "[w]\nrw=write\nsize=1m\nnumjobs=2\ntime_based\nruntime=60\nthinktime=1ms\nioengine=psync\n";
    let limited = Task { timeout_s: Some(1.0), ..task(directory.path(), job) };
    match Fio.run(&limited) {
        Err(EngineError::Failed { reason, .. }) => {
            assert!(reason.contains("longer than the limit of 1 s"), "{reason}");
        }
        other => panic!("{other:?}"),
    }
    // fio's workers are in sessions of their own; each would have its files here open.
    let here = directory.path().to_str().unwrap().to_owned();
    let holders: Vec<String> = glob::glob("/proc/[0-9]*/fd/*")
        .unwrap()
        .flatten()
        .filter_map(|fd| std::fs::read_link(fd).ok())
        .map(|target| target.to_string_lossy().into_owned())
        .filter(|target| target.starts_with(&here))
        .collect();
    assert!(holders.is_empty(), "{holders:?}");
}
