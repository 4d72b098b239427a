//! Mistakes that are seen before the first trial, also by `--plan`: exit code 2, what is wrong, what to do, nothing touched.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use crate::failing_case::Mounted;
use crate::loop_device::LoopDevice;
use crate::sandbox::{Sandbox, errors};
use crate::target_bench::{can_make, fact};
use crate::tools::{available, is_root, skipped};

const JOB: &str = "[w]\nrw=write\nbs=4k\nsize=64k\n";
const TWO: &str = "[global]\nbs=4k\nsize=64k\n[wal]\nrw=write\nfsync=4\n[scan]\nrw=randread\n";

fn bench(job: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("job.fio", job);
    sandbox
}

/// With and without `--plan`.
fn refused(sandbox: &Sandbox, arguments: &[&str], words: &[&str]) {
    for plan in [&["--plan"][..], &[]] {
        let all = [&["run"], arguments, plan].concat();
        let output = sandbox.run(&all);
        let said = errors(&output);
        assert_eq!(output.status.code(), Some(2), "{all:?}\n{said}");
        assert!(words.iter().all(|word| said.contains(word)), "{all:?}: expected {words:?}\n{said}");
        assert_eq!(said.matches("hint: ").count(), 1, "{said}");
        assert!(!sandbox.path().join("assay.db").exists(), "{all:?}: something was touched");
    }
}

fn open_to(directory: &Path, mode: u32) {
    std::fs::set_permissions(directory, std::fs::Permissions::from_mode(mode)).unwrap();
}

fn planned(sandbox: &Sandbox, arguments: &[&str]) -> Output {
    let output = sandbox.run(&[&["run"], arguments, &["--plan"]].concat());
    assert!(output.status.success(), "{arguments:?}\n{}", errors(&output));
    output
}

/// Warm reads would be measured where cold ones were asked for.
#[test]
fn who_may_not_drop_caches_is_not_left_with_warm_ones() {
    if !is_root() || !available("setpriv") {
        return;
    }
    let sandbox = bench(JOB);
    open_to(sandbox.path(), 0o777);
    let words = ["--reuid=65534", "--regid=65534", "--clear-groups", env!("CARGO_BIN_EXE_assay")];
    let run = ["run", "job.fio", "--aa", "--drop-caches", "--plan"];
    let output = sandbox.command("setpriv").args(words).args(run).output().unwrap();
    let said = errors(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.contains("--drop-caches: the caches of this machine cannot be dropped: only root may"),
        "{said}"
    );
    assert!(said.contains("run as root"), "{said}");
    open_to(sandbox.path(), 0o755);
    planned(&sandbox, &run[1..4]);
}

#[test]
fn a_misspelt_setting_of_a_target_is_no_file() {
    let sandbox = bench(JOB);
    let refuse = |target: &str, words: &[&str]| refused(&sandbox, &["job.fio", "--aa", "-t", target], words);
    refuse(
        "filesystem=xfs",
        &["no setting of a target is called filesystem; did you mean fs?", "./filesystem=xfs"],
    );
    refuse("schedular=none", &["no setting of a target is called schedular; did you mean scheduler?"]);
    refuse("colour=red", &["no setting of a target is called colour; there are device, dm, fs,"]);
    refused(&sandbox, &["job.fio", "--vary", "filesystem=xfs,ext4"], &["did you mean fs (a setting)?"]);
    for file in ["./a=b", "a=c"] {
        sandbox.write("a=c", "");
        let said = String::from_utf8_lossy(
            &planned(&sandbox, &["job.fio", "--aa", "-t", file, "--destroy", file]).stdout,
        )
        .into_owned();
        assert!(said.contains(file.trim_start_matches("./")), "{said}");
    }
}

#[test]
fn a_deciding_metric_that_nothing_reports_is_refused() {
    let sandbox = bench(TWO);
    let refuse = |engine: &str, primary: &str, words: &[&str]| {
        refused(&sandbox, &["job.fio", "--aa", "--engine", engine, "--primary", primary], words);
    };
    refuse("native", "write.bww", &["no metric 'write.bww'; did you mean write.bw?"]);
    refuse("native", "wall:write.bw", &["no section reports as 'wall'; did you mean wal?"]);
    refuse("native", "scan:sync.lat_ns.p99", &["no metric 'sync.lat_ns.p99' of section scan"]);
    refuse("native", "scan:read.slat_ns.mean", &["no metric 'read.slat_ns.mean' of section scan"]);
    if available("fio") {
        refuse("fio", "write.clat.p99", &["did you mean write.clat_ns.p99"]);
    }
    let command = ["--vary", "n=1,2", "--metric", "tps=([0-9]+)", "--primary", "tsp", "--", "echo", "${n}"];
    let all = [&["run", "--plan"][..], &command].concat();
    let said = errors(&sandbox.run(&all));
    assert!(said.contains("no metric 'tsp'; did you mean tps?"), "{said}");
}

#[test]
fn a_devices_counters_cannot_decide_without_a_device() {
    let memory = Path::new("/dev/shm");
    let place = tempfile::tempdir_in(memory).ok().filter(|_| assay::host::device_under(memory).is_err());
    let Some(place) = place else { return skipped("/dev/shm is no tmpfs that can be written to") };
    let sandbox = bench(JOB);
    let directory = place.path().to_str().unwrap();
    for metric in ["dev.flushes", "write.bw,dev.flushes_per_op"] {
        refused(
            &sandbox,
            &["job.fio", "--aa", "--directory", directory, "--primary", metric],
            &["no trial will have dev.flushes", "has no block device", "hint: dev.* is what a block device"],
        );
    }
    // A hook may mount something there.
    planned(
        &sandbox,
        &["job.fio", "--aa", "--directory", directory, "--primary", "dev.flushes", "--before", "true"],
    );
}

/// Sizes say how many operations there are at most, and a quantile of fewer is refused after the run, whatever it took.
#[test]
fn a_quantile_of_too_few_operations_is_refused_before_the_run() {
    let sandbox = bench(TWO);
    let vary = |primary: &'static str, vary: &'static str| ["job.fio", "--primary", primary, "--vary", vary];
    let words = ["needs 1000 operations a trial, and a trial has at most 8", "hint: a larger size"];
    refused(&sandbox, &vary("write.clat_ns.p99", "bs=4k,8k"), &words);
    refused(&sandbox, &vary("wal:sync.lat_ns.p50", "bs=4k,8k"), &["needs 20", "at most 2"]);
    refused(&sandbox, &vary("scan:read.clat_ns.p90", "bs=4k,8k"), &["needs 100", "at most 8"]);
    // One comparison of the run can be judged, or only the run tells how many there are.
    planned(&sandbox, &vary("write.clat_ns.p99", "size=64k,4m,8m"));
    // A hook's quantile is of its own operations.
    let hook = ["job.fio", "--aa", "--primary", "hook.lat.p99", "--before", "true"];
    planned(&sandbox, &hook);
    sandbox.write("timed.fio", &format!("{TWO}\n").replace("[global]", "[global]\ntime_based=1\nruntime=1"));
    planned(&sandbox, &["timed.fio", "--aa", "--primary", "write.clat_ns.p99"]);
    // A rate says how many fit the time.
    let paced = "[w]\nrw=write\nbs=4k\nsize=1m\nrate_iops=300\ntime_based=1\nruntime=2\n";
    sandbox.write("paced.fio", paced);
    let vary = |primary: &'static str| ["paced.fio", "--primary", primary, "--vary", "bs=4k,8k"];
    refused(&sandbox, &vary("write.clat_ns.p99"), &["needs 1000", "at most 660", "hint: a larger size"]);
    planned(&sandbox, &vary("write.clat_ns.p95"));
}

#[test]
fn a_latency_that_engines_begin_elsewhere_is_refused_before_the_run() {
    let sandbox =
        bench("[w]\nrw=write\nbs=4k\nsize=1m\nfsync=4\nrate_iops=300\n[r]\nrw=read\nbs=4k\nsize=1m\n");
    let engines = |primary: &'static str| ["job.fio", "--vary", "engine=native,fio", "--primary", primary];
    let words = ["native counts it from the time an I/O was due", "hint: write.clat_ns.mean, which both"];
    refused(&sandbox, &engines("w:write.lat_ns.mean"), &words);
    refused(&sandbox, &engines("w:write.clat_ns.mean,write.lat_ns.p50"), &["primary write.lat_ns.p50"]);
    planned(&sandbox, &engines("w:write.clat_ns.mean"));
    // Only an I/O of the limited direction is due at a time.
    planned(&sandbox, &engines("w:sync.lat_ns.mean"));
    planned(&sandbox, &engines("r:read.clat_ns.mean,w:write.clat_ns.mean"));
    planned(&sandbox, &["job.fio", "--aa", "--primary", "w:write.lat_ns.mean"]);
}

#[test]
fn arms_that_go_no_common_way_are_refused_before_the_run() {
    let sandbox = bench(JOB);
    let words = ["rw=randread does no I/O in a direction of rw=write", "hint: --primary names a metric"];
    refused(&sandbox, &["job.fio", "--vary", "rw=write,randread"], &words);
    planned(&sandbox, &["job.fio", "--vary", "rw=write,randread", "--primary", "runtime"]);
    planned(&sandbox, &["job.fio", "--vary", "rw=write,randwrite"]);
    // One arm that can be compared is enough, and both directions have one in common.
    planned(&sandbox, &["job.fio", "--vary", "rw=write,randread,randrw"]);
    sandbox.succeed(&["run", "job.fio", "--vary", "rw=write,randrw", "--rounds", "4", "-q"]);
    let report = sandbox.succeed(&["report", "1"]);
    assert!(report.contains("write.bw in") && !report.contains("cannot be compared"), "{report}");
}

/// What is foreseen is what is reported.
#[test]
fn every_reported_metric_was_foreseen() {
    let job = "[global]\nbs=4k\nsize=256k\n[wal]\nrw=write\nfsync=4\nrate=100m\n[scan]\nrw=randrw\nioengine=libaio\niodepth=4\n";
    for engine in ["native", "fio", "simulated"] {
        if engine == "fio" && !available("fio") {
            continue;
        }
        let sandbox = bench(job);
        sandbox.succeed(&["run", "job.fio", "--aa", "--rounds", "1", "-q", "--engine", engine]);
        let metrics = sandbox.export("1").metrics.into_iter();
        let named = |metric: assay::record::Metric| match metric.job.is_empty() {
            true => metric.name,
            false => format!("{}:{}", metric.job, metric.name),
        };
        let names: Vec<String> = metrics.map(named).collect();
        assert!(names.len() >= 20, "{names:?}");
        // A name that nobody knows is refused before a quantile that has too few operations.
        let planned = |names: &[String]| {
            let list = names.join(",");
            let asked =
                sandbox.run(&["run", "job.fio", "--aa", "--engine", engine, "--primary", &list, "--plan"]);
            let said = errors(&asked);
            (asked.status.success() || said.contains("operations a trial"), said)
        };
        let (known, said) = planned(&names);
        assert!(known, "{engine}: {said}");
        let (known, said) = planned(&[&names[..], &["wal:write.nothing".to_owned()]].concat());
        assert!(!known && said.contains("write.nothing"), "{engine}: {said}");
    }
}

#[test]
fn a_section_may_have_its_own_deciding_metric() {
    let sandbox = bench(TWO);
    let primary = ["--primary", "wal:sync.lat_ns.mean"];
    sandbox
        .succeed(&[&["run", "job.fio", "--vary", "bs=4k,8k", "--rounds", "4", "-q"][..], &primary].concat());
    let report = sandbox.succeed(&["report", "1"]);
    assert!(report.contains("sync.lat_ns.mean in ") && !report.contains("read.bw in "), "it alone: {report}");
    let both = ["--primary", "wal:sync.lat_ns.mean,scan:read.bw"];
    let both = sandbox.succeed(&[&["report", "1"][..], &both].concat());
    assert!(both.contains("sync.lat_ns.mean in ") && both.contains("read.bw in "), "{both}");
    let other = sandbox.succeed(&["report", "1", "--primary", "scan:read.iops"]);
    assert!(other.contains("read.iops in ") && !other.contains("job wal: "), "{other}");
    let wrong = sandbox.run(&["report", "1", "--primary", "scann:read.bw"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(
        errors(&wrong).contains("no section of the run is called 'scann'; it has wal, scan"),
        "{}",
        errors(&wrong)
    );
}

#[test]
fn a_scheduler_that_the_kernel_lacks_is_refused() {
    let blocks = std::fs::read_dir("/sys/block").into_iter().flatten().flatten();
    let mut loops = blocks.filter(|entry| entry.file_name().to_string_lossy().starts_with("loop"));
    let offered = loops.find_map(|entry| std::fs::read_to_string(entry.path().join("queue/scheduler")).ok());
    let Some(offered) = offered.filter(|_| can_make()) else {
        return skipped("no loop device has a scheduler here");
    };
    let there = offered.split_whitespace().map(|name| name.trim_matches(['[', ']']));
    let there = there.max_by_key(|name| name.len()).unwrap();
    let misspelt = &there[..there.len() - 1];
    let sandbox = bench(JOB);
    refused(
        &sandbox,
        &["job.fio", "-t", "loop:64m", "--vary", &format!("scheduler=none,{misspelt}")],
        &[&format!("scheduler={misspelt}: this kernel has"), &format!("did you mean {there}?")],
    );
    refused(
        &sandbox,
        &["job.fio", "-t", "zram:64m", "--vary", &format!("scheduler=none,{there}")],
        &[&format!("scheduler={there}: zram has no queue of requests"), "-t loop:1g"],
    );
}

#[test]
fn xfs_below_its_smallest_size_is_refused() {
    let sandbox = bench(JOB);
    let words = "loop of 64 MiB: XFS needs 300 MiB at least; write loop:300m";
    // Before 5.19 mkfs.xfs made smaller ones: whatever else is in the way here, the size is not.
    for (release, too_small) in [("5.18.0", false), ("5.19.0", true), ("6.13.0", true)] {
        // Written by a shell: a child of another test could have our open file, and the script would be busy (ETXTBSY).
        let script = format!(
            "printf '#!/bin/sh\\necho mkfs.xfs version {release}\\n' >mkfs.xfs && chmod 755 mkfs.xfs"
        );
        assert!(sandbox.command("sh").args(["-c", &script]).status().unwrap().success());
        let path = format!("{}:{}", sandbox.path().display(), std::env::var("PATH").unwrap());
        let arguments = ["run", "job.fio", "--aa", "-t", "fs=xfs", "-t", "loop:64m", "--plan"];
        let output = sandbox.assay(&arguments).env("PATH", &path).output().unwrap();
        let said = errors(&output);
        assert_eq!(said.contains(words), too_small, "{release}: {said}");
        assert!(!too_small || output.status.code() == Some(2), "{release}: {said}");
        assert!(!sandbox.path().join("assay.db").exists(), "{release}: something was touched");
        let Some(device) = LoopDevice::on(&sandbox.path().join("own.img"), 64 << 20) else { continue };
        let path_of = device.path.to_str().unwrap();
        let arguments =
            ["run", "job.fio", "--aa", "-t", "fs=xfs", "-t", path_of, "--destroy", path_of, "--plan"];
        let said = errors(&sandbox.assay(&arguments).env("PATH", &path).output().unwrap());
        let words = format!("fs=xfs on {path_of} of 64 MiB: XFS needs 300 MiB at least; name a larger one");
        assert_eq!(
            said.split_whitespace().collect::<Vec<_>>().join(" ").contains(&words),
            too_small,
            "{said}"
        );
    }
}

/// The real mkfs.btrfs agrees with the limit.
#[test]
fn btrfs_below_its_smallest_size_is_refused() {
    if !available("mkfs.btrfs") {
        return;
    }
    let sandbox = bench(JOB);
    let words = ["loop of 108 MiB: btrfs needs 109 MiB at least; write loop:109m"];
    refused(&sandbox, &["job.fio", "--aa", "-t", "fs=btrfs", "-t", "loop:108m"], &words);
    for (bytes, is_made) in [(108 << 20, false), (109 << 20, true)] {
        let image = sandbox.path().join("image");
        std::fs::File::create(&image).unwrap().set_len(bytes).unwrap();
        let made = sandbox.command("mkfs.btrfs").args(["-q", "-f"]).arg(&image).output().unwrap();
        assert_eq!(made.status.success(), is_made, "{bytes}: {}", errors(&made));
    }
}

#[test]
fn a_depth_that_the_method_ignores_is_refused_or_warned_of() {
    let sandbox = bench(JOB);
    let words = [
        "iodepth=1 and iodepth=8 are the same trial",
        "ioengine=psync has one I/O in flight",
        "ioengine=io_uring",
    ];
    refused(&sandbox, &["job.fio", "--vary", "iodepth=1,8"], &words);
    let mixed = planned(&sandbox, &["job.fio", "--vary", "iodepth=1,8", "--vary", "ioengine=psync,io_uring"]);
    assert!(
        errors(&mixed).contains("warning: iodepth=1 and iodepth=8 are the same trial in some rows"),
        "{}",
        errors(&mixed)
    );
}

#[test]
fn two_names_of_one_kernel_are_refused() {
    let sandbox = bench(JOB);
    sandbox.write("vmlinuz-a", "a kernel");
    sandbox.write("vmlinuz-b", "a kernel");
    std::os::unix::fs::symlink("vmlinuz-a", sandbox.path().join("vmlinuz-c")).unwrap();
    for other in ["vmlinuz-b", "vmlinuz-c"] {
        let vary = format!("kernel=vmlinuz-a,{other}");
        refused(
            &sandbox,
            &["job.fio", "--vary", &vary],
            &["are the same kernel: ", "have the same contents", "--aa"],
        );
    }
}

#[test]
fn files_larger_than_the_room_are_refused() {
    let sandbox = bench("[w]\nrw=randread\nbs=4k\nsize=4096t\n");
    refused(
        &sandbox,
        &["job.fio", "--vary", "bs=4k,8k"],
        &["the job's files take", "has room for", "lower size="],
    );
    sandbox.write("job.fio", "[w]\nrw=write\nbs=4k\nsize=64m\n");
    let target = ["job.fio", "--aa", "-t", "fs=ext4", "-t", "loop:32m"];
    refused(&sandbox, &target, &["the job's files take 64", "loop:32m has room for 32"]);
    // Tools say what they will write, too.
    let made = ["-t", "fs=ext4", "-t", "loop:32m", "--aa"];
    sandbox
        .write("x.toml", "engine = \"xfs_io\"\n[xfs_io]\ncommands = [\"pwrite -b 64k 1t 40m\", \"fsync\"]\n");
    sandbox.write("f.toml", "engine = \"fs_mark\"\n[fs_mark]\nfiles = 100\nthreads = 4\nsize = \"256k\"\n");
    for (file, words) in [("x.toml", "xfs_io's files take 40"), ("f.toml", "fs_mark's files take 100")] {
        refused(
            &sandbox,
            &[&[file], &made[..]].concat(),
            &[words, "loop:32m has room for 32", "let it write less"],
        );
    }
    // The same on a device that was there before.
    let Some(device) = LoopDevice::on(&sandbox.path().join("own.img"), 32 << 20) else { return };
    let path = device.path.to_str().unwrap();
    let target = ["job.fio", "--aa", "-t", "fs=ext4", "-t", path, "--destroy", path];
    refused(&sandbox, &target, &["the job's files take 64", &format!("{path} has room for 32")]);
}

/// A filesystem holds less than its device: that is known once it was made, and before the first trial.
#[test]
fn files_larger_than_what_a_filesystem_leaves_of_its_device_are_refused() {
    if !can_make() {
        return;
    }
    let sandbox = bench("[w]\nrw=write\nbs=64k\nsize=64m\n");
    for engine in ["native", "fio"] {
        let arguments = [
            "run", "job.fio", "--aa", "--rounds", "1", "--engine", engine, "-t", "loop:64m", "-t", "fs=ext4",
        ];
        let output = sandbox.run(&arguments);
        let said = errors(&output);
        assert_eq!(output.status.code(), Some(2), "{engine}: {said}");
        for words in ["the job's files take 64", "ext4 on loop:64m has room for ", "take a larger device"] {
            assert!(said.contains(words), "{engine}: {said}");
        }
        assert!(!said.contains("round 1"), "{engine}: {said}");
    }
    // What fits is run, and also where a hook may make room.
    sandbox.write("job.fio", "[w]\nrw=write\nbs=64k\nsize=32m\n");
    sandbox.succeed(&["run", "job.fio", "--aa", "--rounds", "1", "-t", "loop:64m", "-t", "fs=ext4"]);
}

#[test]
fn rounds_and_max_rounds_exclude_each_other() {
    let sandbox = bench(JOB);
    let words = ["--rounds 5 asks for exactly so many rounds, --max-rounds 9", "leave one out"];
    refused(&sandbox, &["job.fio", "--aa", "--rounds", "5", "--max-rounds", "9"], &words);
}

#[test]
fn an_ending_that_is_no_format_is_refused() {
    let sandbox = bench(JOB);
    sandbox.write("s.toml", "job_text = \"[w]\\nsize=1m\\n\"\nengine = \"simulated\"\n[stop]\nrounds = 4\n");
    sandbox.succeed(&["run", "s.toml", "--aa", "-q"]);
    for arguments in [
        &["report", "1", "-o", "r.pdf"][..],
        &["compare", "1", "1", "-o", "r.xlsx"],
        &["export", "1", "-o", "r.xml"],
    ] {
        let output = sandbox.run(arguments);
        let said = errors(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}\n{said}");
        assert!(said.contains("the ending .") && said.contains("hint: --format"), "{said}");
        assert!(!sandbox.path().join(arguments[arguments.len() - 1]).exists());
    }
    sandbox.succeed(&["report", "1", "--format", "text", "-o", "r.pdf"]);
    sandbox.succeed(&["export", "1", "-o", "trials.csv"]);
    let table = std::fs::read_to_string(sandbox.path().join("trials.csv")).unwrap();
    assert!(table.starts_with("trial,round,"), "{table}");
}

/// The form that --help and the documentation give, through a real shell.
#[test]
fn a_level_with_a_comma_survives_the_shell() {
    let sandbox = bench(JOB);
    let help = sandbox.succeed(&["run", "--help"]);
    let form = r#"'mount=default,"noatime,nodiratime"'"#;
    assert!(help.replace("\n          ", " ").contains(form), "{help}");
    for (form, other) in [
        (form, "mount=noatime,nodiratime"),
        (r"'mount=default,noatime\,nodiratime'", "mount=noatime,nodiratime"),
    ] {
        let line =
            format!("{} run job.fio -t tmpfs:1m --vary {form} --plan 2>&1", env!("CARGO_BIN_EXE_assay"))
                .replace("-t tmpfs:1m", "-t fs=tmpfs");
        let output = sandbox.command("sh").args(["-c", &line]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let needs_root = said.contains("needs root");
        assert!(needs_root || (said.contains("cells (2)") && said.contains(other)), "{line}\n{said}");
    }
}

/// ext4 with data=journal takes O_DIRECT and buffers.
#[test]
fn direct_io_that_is_none_is_said_before_the_first_trial() {
    if !can_make() {
        return;
    }
    let sandbox = bench("[w]\nrw=write\nbs=4k\nsize=256k\ndirect=1\n");
    let target = ["-t", "loop:64m", "-t", "fs=ext4", "--vary", "mount=default,data=journal"];
    let output = sandbox.run(&[&["run", "job.fio", "--rounds", "1"][..], &target].concat());
    let said = errors(&output);
    assert!(output.status.success(), "{said}");
    let warning = "mount=data=journal: direct=1 falls back to the page cache";
    let (early, _) = said.split_once("round 1").unwrap_or((said.as_str(), ""));
    assert!(
        early.contains(&format!("warning: {warning}")) && !said.contains("mount=default: direct=1"),
        "{said}"
    );
    assert_eq!(fact(&sandbox, "1", 1, "o_direct"), "falls back to the page cache");
    assert!(fact(&sandbox, "1", 0, "o_direct").starts_with("yes"));
    assert!(sandbox.export("1").notes.iter().any(|note| note.text.starts_with(warning)));
}

/// btrfs takes what it has buffered out of the cache again, and reads past it.
#[test]
fn direct_writes_that_are_none_are_said_of_jobs_that_write() {
    if !can_make() {
        return;
    }
    let sandbox = bench("[w]\nrw=${rw}\nbs=4k\nsize=256k\ndirect=1\n");
    let levels = ["mount=default", "mount=nodatacow"];
    let target =
        ["-t", "loop:128m", "-t", "fs=btrfs", "--vary", "mount=default,nodatacow", "--vary", "rw=write,read"];
    let output = sandbox.run(&[&["run", "job.fio", "--rounds", "1", "--no-lead-in"][..], &target].concat());
    let said = errors(&output);
    assert!(output.status.success(), "{said}");
    let run = sandbox.export("1");
    let first = run.trials.iter().find(|trial| trial.cell == 0).unwrap();
    let found = run.facts[first.facts.unwrap() as usize].get("o_direct").unwrap();
    // Before Linux 6.15 they go past it.
    let falls_back = found == "writes fall back to the page cache";
    assert!(falls_back || found.starts_with("yes"), "{found}");
    assert!(falls_back || !kernel_is_at_least(6, 15), "{found}");
    assert_eq!(
        said.contains("warning: mount=default rw=write: with direct=1 writes fall back"),
        falls_back,
        "{said}"
    );
    assert!(!said.contains(&format!("{} rw=read: with direct=1", levels[0])), "{said}");
    assert!(!said.contains(&format!("{} rw=write: with direct=1", levels[1])), "{said}");
}

fn kernel_is_at_least(major: u32, minor: u32) -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers = release.split(['.', '-', '+', '\n']).map_while(|number| number.parse::<u32>().ok());
    (numbers.next().unwrap(), numbers.next().unwrap()) >= (major, minor)
}

/// Different arguments of mkfs that come to the same.
#[test]
fn levels_that_make_the_same_filesystem_are_said_before_the_first_trial() {
    if !can_make() {
        return;
    }
    let sandbox = bench("[w]\nrw=write\nbs=4k\nsize=256k\n");
    let target = ["-t", "loop:320m", "-t", "fs=xfs", "--vary", "mkfs=default,-b size=4096,-m reflink=0"];
    let output = sandbox.run(&[&["run", "job.fio", "--rounds", "1", "--no-lead-in"][..], &target].concat());
    let said = errors(&output);
    assert!(output.status.success(), "{said}");
    let warning =
        "warning: mkfs=default and mkfs=-b size=4096: mkfs makes xfs with the same superblock of both";
    assert!(said.contains(warning) && said.matches("the same superblock").count() == 1, "{said}");
    let run = sandbox.export("1");
    let geometries: Vec<_> = run.facts.iter().filter_map(|facts| facts.get("fs.geometry")).collect();
    assert!(geometries.iter().any(|geometry| geometry.contains("reflink=0")), "{geometries:?}");
}

/// The same in a directory of the user's own.
#[test]
fn direct_io_that_is_none_is_found_in_a_directory_that_is_there() {
    let sandbox = bench("[w]\nrw=write\nbs=4k\nsize=256k\ndirect=1\n");
    let Some(device) = LoopDevice::on(&sandbox.path().join("own.img"), 64 << 20) else { return };
    let path = device.path.to_str().unwrap();
    assert!(Command::new("/usr/sbin/mkfs.ext4").args(["-q", path]).status().unwrap().success());
    for (option, is_buffered) in [("data=journal", true), ("data=ordered", false)] {
        let Some(mounted) = Mounted::new(&sandbox, "there", &["-o", option, path]) else { return };
        let there = mounted.0.to_str().unwrap();
        let output = sandbox.run(&["run", "job.fio", "--aa", "--rounds", "1", "--directory", there]);
        let said = errors(&output);
        assert!(output.status.success(), "{said}");
        assert_eq!(said.contains("direct=1 falls back to the page cache"), is_buffered, "{option}: {said}");
    }
}

#[test]
fn rounds_that_can_show_nothing_are_warned_of_when_a_run_begins() {
    let sandbox = Sandbox::new();
    sandbox.write("job.fio", "[w]\nrw=write\nbs=64k\nsize=256k\n");
    let said = |words: &[&str]| {
        let output =
            sandbox.run(&[&["run", "job.fio", "--vary", "bs=4k,64k", "--settle", "0"], words].concat());
        assert!(output.status.success(), "{}", errors(&output));
        errors(&output)
    };
    assert!(said(&["--rounds", "3"]).contains("warning: 3 rounds can show nothing: a verdict takes 4"));
    for words in [&["--rounds", "4"][..], &["--rounds", "3", "-q"]] {
        assert!(!said(words).contains("can show nothing"), "{words:?}");
    }
}
