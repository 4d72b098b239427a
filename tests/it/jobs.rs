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
    for path in job_files().iter().filter(|path| !path.ends_with("bdev-mix.fio") && !timed(path)).step_by(3) {
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
        eprintln!("SKIPPED: the list of options is fio 3.33's");
        return;
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
    assert_eq!(examples.len(), 2);
    for (example, cells) in examples.into_iter().zip([4, 2]) {
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
