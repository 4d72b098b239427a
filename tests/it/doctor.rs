//! `assay doctor` on the machine the tests run on: whatever it finds, it must be true and useful there.

use std::path::{Path, PathBuf};
use std::time::Duration;

use assay::host::doctor::{findings, watch};
use assay::host::{facts, path_facts};
use assay::record::HostFacts;

use crate::tools::skipped;

fn real_facts(path: &Path) -> HostFacts {
    let mut all = facts();
    all.extend(path_facts(path));
    all.extend(watch(path, Duration::from_millis(50)));
    all
}

/// The files that commands write: `echo VALUE | sudo tee FILE`.
fn written(command: &str) -> Option<PathBuf> {
    command.split_once(" | sudo tee ").map(|(_, file)| PathBuf::from(file))
}

#[test]
fn findings_here_are_whole_and_their_files_exist() {
    let directory = tempfile::tempdir().unwrap();
    for path in [directory.path(), Path::new("/dev/shm"), Path::new("/proc")] {
        if !path.exists() {
            skipped(&format!("there is no {}", path.display()));
            continue;
        }
        for finding in findings(&real_facts(path)) {
            assert!(!finding.fact.is_empty() && finding.effect.ends_with('.'), "{finding:?}");
            assert!(finding.undo.is_none() || finding.mend.is_some(), "{finding:?}");
            assert!(finding.mend.is_none() || finding.look.is_none(), "{finding:?}");
            for file in
                [&finding.mend, &finding.undo].into_iter().flatten().filter_map(|command| written(command))
            {
                assert!(file.exists(), "{} is written, but is not there: {finding:?}", file.display());
            }
        }
    }
}

#[test]
fn memory_is_told_from_a_disk() {
    let is_tmpfs = |path: &Path| path_facts(path).get("fs.type") == Some("tmpfs");
    let ids = |path: &Path| findings(&real_facts(path)).into_iter().map(|f| f.id).collect::<Vec<_>>();
    let shm = Path::new("/dev/shm");
    if shm.exists() && is_tmpfs(shm) {
        assert!(ids(shm).contains(&"no-device"));
    } else {
        skipped("/dev/shm is no tmpfs");
    }
    // The other way round, on a directory that has a device.
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    assert_eq!(path_facts(manifest).get("device").is_none(), ids(manifest).contains(&"no-device"));
}

#[test]
fn undoing_restores_what_is_set_now() {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    for finding in findings(&real_facts(manifest)) {
        let Some((value, file)) =
            finding.undo.as_deref().and_then(|undo| undo.strip_prefix("echo ")?.split_once(" | sudo tee "))
        else {
            continue;
        };
        let Ok(now) = std::fs::read_to_string(file) else { continue };
        let chosen =
            now.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map_or(now.trim(), |(c, _)| c);
        assert_eq!(value, chosen, "{finding:?}");
    }
}

fn assay(arguments: &[&str]) -> std::process::Output {
    std::process::Command::new(env!("CARGO_BIN_EXE_assay")).args(arguments).output().expect("assay starts")
}

#[test]
fn in_a_pipe_text_has_80_columns_and_no_colour() {
    let directory = tempfile::tempdir().unwrap();
    let output = assay(&["doctor", directory.path().to_str().unwrap()]);
    assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("path     /") && text.contains("\nkernel   "), "{text}");
    assert!(!text.contains('\u{1b}'), "{text}");
    // The first lines name what may be long: a path, a processor.
    assert!(text.lines().skip(3).all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn the_json_has_findings_and_facts() {
    let output = assay(&["doctor", "/", "--format", "json"]);
    assert_eq!(output.status.code(), Some(0));
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(document["facts"]["kernel.release"].is_string(), "{document}");
    for finding in document["findings"].as_array().unwrap() {
        assert!(["bad", "warning", "note"].contains(&finding["severity"].as_str().unwrap()), "{finding}");
    }
}

#[test]
fn a_gate_is_as_severe_as_what_was_found() {
    for least in ["bad", "warning"] {
        let output = assay(&["doctor", "/", "--format", "json", "--fail-if", least]);
        let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let found = document["findings"].as_array().unwrap();
        let is_severe = |finding: &&serde_json::Value| {
            finding["severity"] == "bad" || least == "warning" && finding["severity"] == "warning"
        };
        let expected = if found.iter().filter(is_severe).count() > 0 { 3 } else { 0 };
        assert_eq!(output.status.code(), Some(expected), "{least}: {document}");
    }
}

#[test]
fn a_path_that_is_not_there_is_a_wrong_request() {
    let output = assay(&["doctor", "/no/such/path"]);
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0));
    assert!(message.contains("'/no/such/path'") && message.contains("\nhint: "), "{message}");
}

/// What `kernel=newest` would boot is listed before it was ever unpacked, and what is being unpacked is not.
#[test]
fn kernels_are_listed_wherever_newest_finds_them() {
    let sandbox = crate::sandbox::Sandbox::new();
    let (packages, cache) = (sandbox.path().join("target/kernels"), sandbox.path().join("assay/kernels"));
    std::fs::create_dir_all(&packages).unwrap();
    std::fs::create_dir_all(cache.join(".tmpXyZ/boot")).unwrap();
    std::fs::write(packages.join("linux-image-9998.1.0-1-amd64_9998.1-1_amd64.deb"), "").unwrap();
    std::fs::write(packages.join("linux-image-9999.1.0-1-amd64-dbg_9999.1-1_amd64.deb"), "").unwrap();
    std::fs::write(cache.join("linux-image-9998.2.0-1-amd64_9998.2-1_amd64.deb"), "").unwrap();
    let mut command = sandbox.assay(&["doctor", "--format", "json"]);
    let output = command.env("XDG_CACHE_HOME", sandbox.path()).output().unwrap();
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let guests = &found["guests"];
    assert_eq!(guests["newest"], "9998.2.0-1-amd64", "{guests}");
    let kernels = guests["kernels"].as_array().unwrap();
    let releases: Vec<&str> = kernels.iter().filter_map(|pair| pair[0].as_str()).collect();
    assert!(releases.ends_with(&["9998.1.0-1-amd64", "9998.2.0-1-amd64"]), "{releases:?}");
}
