//! The block layer of a trial's device, watched while the trial runs: counts against the device's own, flushes against fsyncs.
//!
//! These need root; where that is missing they say so, and fail in CI.

use assay::record::{Run, Status};

use crate::guests;
use crate::sandbox::Sandbox;
use crate::target_bench::can_make;

/// 64 writes with an fsync between each two.
pub(crate) const SYNCED: &str = "[w]\nrw=write\nbs=4k\nsize=256k\nfsync=1\n";
const WRITES: f64 = 64.0;

/// A watched run of one cell, its second trial led into by none.
pub(crate) fn watched(sandbox: &Sandbox, job: &str, observe: &str, target: &[&str]) -> Run {
    sandbox.write("job.fio", job);
    let words = ["run", "job.fio", "-q", "--aa", "--rounds", "1", "--observe", observe];
    sandbox.succeed(&[&words[..], target].concat());
    let run = sandbox.export("latest");
    assert!(run.trials.iter().all(|trial| trial.status == Status::Done), "{:?}", run.trials);
    run
}

/// A metric in each trial.
pub(crate) fn each(run: &Run, metric: &str) -> Vec<f64> {
    (0..run.trials.len())
        .map(|trial| {
            let value = guests::value(run, trial, metric);
            value.unwrap_or_else(|| {
                panic!("trial {trial} has no {metric}: {:?} {:?}", run.metrics, run.trials[trial].notes)
            })
        })
        .collect()
}

pub(crate) fn notes(run: &Run) -> String {
    run.trials.iter().flat_map(|trial| &trial.notes).map(|note| &*note.text).collect::<Vec<_>>().join("\n")
}

#[test]
fn writes_of_a_device_are_as_many_as_the_device_counted() {
    if !can_make() {
        return;
    }
    let sandbox = Sandbox::new();
    let job = "[w]\nrw=randwrite\nbs=4k\nio_size=256k\ndirect=1\nfsync=8\n";
    let run = watched(&sandbox, job, "blocks", &["-t", "loop:64m"]);
    // Nobody else uses the device.
    for (metric, expected) in [
        ("blocks.write_bios", WRITES),
        ("blocks.write_requests", WRITES),
        // There a flush without data is a write of no sectors.
        ("dev.write_ios", WRITES + 7.0),
        ("blocks.write_request_size", 4096.0),
        ("blocks.flushes", 7.0),
        ("dev.flushes", 7.0),
        ("blocks.errors", 0.0),
    ] {
        for value in each(&run, metric) {
            assert!(
                value == expected || metric.starts_with("dev.") && value == expected + 1.0,
                "{metric}: {value}"
            );
        }
    }
    let (served, whole) = (each(&run, "blocks.write.d2c.mean"), each(&run, "blocks.write.q2c.mean"));
    for (served, whole) in served.iter().zip(&whole) {
        assert!(0.0 < *served && served <= whole && *whole < 10.0, "{served} {whole}");
    }
    let report = sandbox.succeed(&["report", "latest", "--metrics", "blocks.write_requests_per_op"]);
    assert!(report.contains("blocks.write_requests_per_op"), "{report}");
}

#[test]
fn each_fsync_of_a_filesystem_is_behind_a_flush() {
    if !can_make() {
        return;
    }
    let sandbox = Sandbox::new();
    // What ext4 would write in the background, also between the starts of two observers, is written by mkfs.
    let whole = ["-t", "mkfs=-E lazy_itable_init=0,lazy_journal_init=0"];
    for (fs, mkfs) in [("fs=ext4", &whole[..]), ("fs=xfs", &[])] {
        let target = [&["-t", "loop:400m", "-t", fs], mkfs].concat();
        let fs = fs.trim_start_matches("fs=");
        let run = watched(&sandbox, SYNCED, "blocks", &target);
        for metric in ["blocks.flushes", "blocks.fua_writes"] {
            for value in each(&run, metric) {
                assert!((WRITES / 2.0..=6.0 * WRITES).contains(&value), "{fs} {metric}: {value}");
            }
        }
        let lost = each(&run, "blocks.lost");
        let (watched, counted) = (each(&run, "blocks.flushes"), each(&run, "dev.flushes"));
        for ((watched, counted), lost) in watched.iter().zip(&counted).zip(&lost) {
            // A filesystem commits by itself, also between the starts of two observers, which a busy machine may hold up.
            let apart = (watched - counted).abs();
            assert!(
                apart <= 0.15 * counted + lost,
                "{fs}: {watched} watched, {counted} counted, {lost} lost"
            );
        }
        let (watched, counted) = (each(&run, "blocks.write_requests"), each(&run, "dev.write_ios"));
        for ((watched, counted), lost) in watched.iter().zip(&counted).zip(&lost) {
            assert!(
                (watched - counted).abs() <= 8.0 + 0.15 * counted + lost,
                "{fs}: {watched} watched, {counted} counted"
            );
        }
        // At least a record of 512 bytes a commit.
        assert!(
            each(&run, "blocks.journal_bytes").iter().all(|bytes| *bytes >= 512.0 * WRITES / 2.0),
            "{fs}"
        );
        let (metadata, journal) = (each(&run, "blocks.metadata_bytes"), each(&run, "blocks.journal_bytes"));
        let is_within = metadata.iter().zip(&journal).all(|(metadata, journal)| metadata >= journal);
        assert!(is_within, "{fs}: {journal:?} of {metadata:?} are the journal's");
        assert!(
            each(&run, "blocks.audit_violations").iter().all(|calls| *calls == 0.0),
            "{fs}: {}",
            notes(&run)
        );
        // Some kernels write no record of events that interrupt the idle task, which is a doubt where it is counted.
        let undecided = each(&run, "blocks.audit_undecided");
        for (lost, undecided) in lost.iter().zip(&undecided) {
            let told = notes(&run);
            let is_told = told.contains("of which it wrote no record") || told.contains(" lost, because ");
            assert!(if *lost > 0.0 { is_told } else { *undecided == 0.0 }, "{fs}: {told}");
        }
        let passed = each(&run, "blocks.audit_passed");
        assert!(
            passed.iter().zip(&undecided).all(|(passed, undecided)| passed + undecided >= WRITES / 2.0),
            "{fs}: {}",
            notes(&run)
        );
        assert!(notes(&run).contains(&format!("audit of flushes ({fs}): ")), "{}", notes(&run));
    }
}

#[test]
fn a_kept_trace_is_read_again_with_the_same_figures() {
    if !can_make() {
        return;
    }
    let sandbox = Sandbox::new();
    let run = watched(&sandbox, SYNCED, "blocks", &["--keep-traces", "-t", "loop:400m", "-t", "fs=ext4"]);
    let shown = sandbox.succeed(&["show", "latest"]);
    assert!(shown.contains("files of trials ("), "{shown}");
    sandbox.succeed(&["show", "latest", "--files", "kept"]);
    for trial in 0..run.trials.len() {
        let place = sandbox.path().join(format!("kept/{trial}"));
        let names = std::fs::read_dir(&place).unwrap().map(|entry| entry.unwrap().path());
        let mut pages: Vec<String> = names.filter_map(|path| path.to_str().map(str::to_owned)).collect();
        pages.retain(|path| path.ends_with(".raw"));
        pages.sort();
        let mut words = vec!["trace", "--json", "--fs", "ext4"];
        words.extend(pages.iter().map(String::as_str));
        let read: serde_json::Value = serde_json::from_str(&sandbox.succeed(&words)).unwrap();
        let counts = &read["device"]["counts"];
        for (metric, count) in [
            ("blocks.write_bios", &counts["writes_queued"]),
            ("blocks.write_requests", &counts["writes_issued"]),
            ("blocks.flushes", &counts["flush_commands"]),
        ] {
            assert_eq!(guests::value(&run, trial, metric), count.as_f64(), "{metric}: {counts}");
        }
        if crate::tools::installed("blkparse") {
            let mut words = vec!["trace", "--blktrace", "other"];
            words.extend(pages.iter().map(String::as_str));
            assert!(crate::sandbox::errors(&sandbox.run(&words)).contains("blkparse -i other"));
            let output =
                sandbox.command("blkparse").args(["-i", "other", "-f", "%D %a %d %n\n"]).output().unwrap();
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            // The trace has every device of this machine; blkparse separates the numbers of one by a comma.
            let device = read["device"]["device"].as_str().unwrap().replace(':', ",");
            let of_device: Vec<String> = text
                .lines()
                .filter(|line| line.trim_start().starts_with(&format!("{device} ")))
                .map(|line| line.split_whitespace().skip(1).collect::<Vec<_>>().join(" "))
                .collect();
            // A flush that a sync sends by itself is a write of nothing.
            let count = |begins: &str, empty: bool| {
                let found = of_device.iter().filter(|line| line.starts_with(begins));
                found.filter(|line| line.ends_with(" 0") == empty).count() as f64
            };
            let both =
                |event: char| count(&format!("{event} W"), false) + count(&format!("{event} FW"), false);
            assert_eq!(Some(both('Q')), counts["writes_queued"].as_f64(), "{text}");
            assert_eq!(Some(both('D')), counts["writes_issued"].as_f64(), "{text}");
            assert_eq!(Some(count("Q FW", true)), counts["flush_bios"].as_f64(), "{text}");
            assert_eq!(Some(count("D FN", true)), counts["flush_commands"].as_f64(), "{text}");
            let made = std::fs::read_dir(sandbox.path()).unwrap().map(|entry| entry.unwrap().path());
            made.filter(|path| path.to_string_lossy().contains("other.blktrace")).for_each(|path| {
                std::fs::remove_file(path).unwrap();
            });
        }
    }
    let refused = sandbox.run(&["run", "job.fio", "--aa", "--keep-traces", "--plan"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(crate::sandbox::errors(&refused).contains("add --observe blocks"));
}

#[test]
fn barriers_that_are_off_are_a_violation() {
    if !can_make() {
        return;
    }
    let sandbox = Sandbox::new();
    let target = ["-t", "loop:400m", "-t", "fs=ext4", "-t", "mount=barrier=0"];
    let run = watched(&sandbox, SYNCED, "blocks", &target);
    let told = notes(&run);
    assert!(told.contains("audit of flushes (ext4): VIOLATION") && told.contains("(first the "), "{told}");
    assert!(each(&run, "blocks.audit_violations").iter().all(|calls| *calls >= WRITES / 2.0), "{told}");
}

#[test]
fn a_filesystem_without_a_device_is_a_note_and_the_trial_counts() {
    if !can_make() {
        return;
    }
    let sandbox = Sandbox::new();
    let run = watched(&sandbox, SYNCED, "blocks,fs", &["-t", "fs=tmpfs"]);
    let told = notes(&run);
    assert!(told.contains("blocks are not watched") && told.contains("fs is not watched"), "{told}");
    assert_eq!(each(&run, "write.total_ios"), [WRITES, WRITES]);
}

#[test]
fn guests_are_watched_in_the_same_way() {
    let Some((kernels, _alone)) = guests::kernels() else { return };
    let sandbox = Sandbox::new();
    sandbox.write("job.fio", SYNCED);
    let kernel = format!("kernel={}", kernels[1]);
    let words = ["run", "job.fio", "-q", "--aa", "--rounds", "1", "--observe", "blocks,fs,cpu,locks,waits"];
    let run = guests::succeed(
        &sandbox,
        // Watching changes the kernel's text, and with several processors qemu's tcg may then run into a breakpoint that is gone.
        &[&words[..], &["-t", &kernel, "-t", "virtio_blk:400m", "-t", "fs=xfs", "-t", "cpus=1"]].concat(),
    );
    let told = notes(&run);
    assert!(each(&run, "blocks.flushes").iter().all(|flushes| *flushes >= WRITES / 2.0), "{told}");
    assert!(each(&run, "blocks.audit_violations").iter().all(|calls| *calls == 0.0), "{told}");
    assert!(each(&run, "fs.count.xfs_file_fsync").iter().all(|calls| *calls == WRITES - 1.0), "{told}");
    // Each sync sleeps until the disk has it, and the kernel's time is spent somewhere.
    assert!(each(&run, "cpu.samples").iter().all(|samples| *samples > 0.0), "{told}");
    assert!(each(&run, "locks.lost").iter().all(|lost| *lost == 0.0), "{told}");
    let sleeps = run.metrics.iter().filter(|metric| metric.name.starts_with("waits.at."));
    assert!(sleeps.filter_map(|metric| guests::value(&run, 0, &metric.name)).sum::<f64>() > 0.0, "{told}");
}
