//! Devices and filesystems made for a run, from the command line to its facts, with nothing left afterwards.
//!
//! These need root and a kernel with loop and zram devices, XFS and ext4; where that is missing they say so, and fail in CI.

use std::collections::BTreeSet;

use crate::sandbox::{Sandbox, errors};
use crate::spoiled::texts;
use crate::target_bench::{JOB, ON_DEVICE, can_make, fact, left_behind, run, succeed, zram};

#[test]
fn two_filesystems_on_a_loop_device_are_compared_and_gone() {
    if !can_make() {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.write("job.fio", JOB);
    let vary = ["--vary", "fs=ext4,tmpfs", "--target", "loop:32m", "--rounds", "1", "--verbose"];
    let report = succeed(&sandbox, &[&["run", "job.fio", "-q"][..], &vary].concat());
    assert!(report.contains("fs.type ext4 | tmpfs"), "{report}");
    let fact = |cell: u32, name: &str| fact(&sandbox, "1", cell, name);
    assert_eq!([fact(0, "fs.type"), fact(1, "fs.type")], ["ext4", "tmpfs"]);
    assert_eq!(fact(0, "target.device"), "loop:32m");
    assert_eq!(fact(0, "device"), "loop");
    assert_eq!(fact(0, "mkfs.command"), "mkfs.ext4 DEVICE");
    assert!(fact(0, "mkfs.version").starts_with("mke2fs "));
    assert_eq!(fact(1, "fs.size_bytes"), (32 << 20).to_string());
    assert_eq!(left_behind(&sandbox, 0), BTreeSet::new());
}

#[test]
fn mount_mkfs_and_queue_are_settings_and_factors() {
    if !can_make() {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.write("job.fio", JOB);
    sandbox.write(
        "e.toml",
        "job = \"job.fio\"\n[stop]\nrounds = 1\n[target]\ndevice = \"loop:32m\"\nfs = \"ext4\"\n\
         mkfs = \"-b 4096 -O ^has_journal\"\nscheduler = \"none\"\nread_ahead = 64\n\
         sysfs = { \"queue/rq_affinity\" = 2 }\n[[factor]]\nname = \"mount\"\n\
         levels = [\"defaults\", \"noatime,nodelalloc\"]\n",
    );
    succeed(&sandbox, &["run", "e.toml", "-q"]);
    let fact = |cell: u32, name: &str| fact(&sandbox, "1", cell, name);
    assert_eq!(fact(0, "mkfs.command"), "mkfs.ext4 -b 4096 -O '^has_journal' DEVICE");
    assert_eq!(fact(0, "queue.read_ahead_kb"), "64");
    assert_eq!(fact(0, "queue.scheduler"), "none");
    assert_eq!(fact(0, "sysfs.queue/rq_affinity"), "2");
    assert!(!fact(0, "mount.options").contains("noatime"));
    assert!(fact(1, "mount.options").contains("noatime") && fact(1, "mount.options").contains("nodelalloc"));
    assert!(!fact(1, "queue.write_cache").is_empty());
    assert_eq!(left_behind(&sandbox, 0), BTreeSet::new());
}

#[test]
fn an_arm_that_blinds_the_counters_has_none_and_says_so() {
    if !can_make() {
        return;
    }
    let Some(_alone) = zram() else { return };
    let sandbox = Sandbox::new();
    sandbox.write("job.fio", ON_DEVICE);
    let vary = ["--vary", "sysfs:queue/iostats=1,0", "--vary", "device=loop:6m,zram:6m"];
    succeed(&sandbox, &[&["run", "job.fio", "--rounds", "1", "-q"][..], &vary].concat());
    let run = sandbox.export("1");
    let at = run.metrics.iter().position(|metric| metric.name == "dev.write_bytes").unwrap() as u32;
    let of = |iostats: u32, device: u32| {
        let cell = run.cells.iter().position(|cell| cell.levels == [iostats, device]).unwrap();
        let trial = run.trials.iter().find(|trial| trial.cell as usize == cell).unwrap();
        let has = |words: &str| trial.notes.iter().any(|note| note.text.contains(words));
        let blind = has("counts flushes and nothing else");
        (trial.value(at).is_some_and(|bytes| bytes > 0.0), blind, has("iostats has no effect on zram"))
    };
    assert_eq!(of(0, 0), (true, false, false), "a loop device that counts");
    assert_eq!(of(1, 0), (false, true, false), "and one that does not");
    assert_eq!([of(0, 1), of(1, 1)], [(true, false, true), (true, false, true)]);
}

#[test]
fn how_long_what_is_made_lasts_is_a_choice() {
    if !can_make() {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.write("job.fio", JOB);
    // A filesystem's identity is new when it is.
    for (fresh, different) in [("trial", 4), ("round", 2), ("run", 1)] {
        let fresh = format!("fresh={fresh}");
        let target = ["-t", "loop:32m", "-t", "fs=ext4", "-t", &fresh];
        std::fs::write(sandbox.path().join("ids"), "").unwrap();
        let before = format!("stat -f -c %i $ASSAY_DIRECTORY >> {}/ids", sandbox.path().display());
        let rest = ["--vary", "bs=4k,8k", "--rounds", "2", "-q", "--before", &before];
        succeed(&sandbox, &[&["run", "job.fio"][..], &target, &rest].concat());
        let ids = std::fs::read_to_string(sandbox.path().join("ids")).unwrap();
        assert_eq!(ids.lines().count(), 4);
        let ids: BTreeSet<&str> = ids.lines().collect();
        assert_eq!(ids.len(), different, "{fresh}: {ids:?}");
        assert_eq!(left_behind(&sandbox, 0), BTreeSet::new());
    }
}

#[test]
fn a_device_without_a_filesystem_is_the_jobs_file() {
    if !can_make() {
        return;
    }
    let Some(_alone) = zram() else { return };
    let sandbox = Sandbox::new();
    sandbox.write("job.fio", ON_DEVICE);
    let bytes = 5 << 20;
    let vary =
        ["--vary", "device=zram:5m,zram:5m:algorithm=lzo,loop:5m:direct_io=0", "-t", "state=overwrite"];
    succeed(&sandbox, &[&["run", "job.fio", "--rounds", "1", "-q"][..], &vary].concat());
    let fact = |cell: u32, name: &str| fact(&sandbox, "1", cell, name);
    assert_eq!([fact(0, "device"), fact(2, "device")], ["zram", "loop"]);
    assert_eq!([fact(1, "zram.algorithm"), fact(2, "loop.direct_io")], ["lzo", "0"]);
    assert_eq!(fact(0, "device.size"), bytes.to_string());
    assert_eq!(fact(0, "target.filled"), "yes");
    assert_eq!(left_behind(&sandbox, bytes), BTreeSet::new());
}

#[test]
fn the_state_of_the_files_is_set_before_the_timed_part() {
    if !can_make() {
        return;
    }
    let sandbox = Sandbox::new();
    // One of 64 blocks is written, so that what the others are shows how the file began.
    sandbox.write("job.fio", "[w]\nrw=randwrite\nbs=64k\nsize=4m\nio_size=64k\n");
    let look = "f=$ASSAY_DIRECTORY/w.0.0; echo $state $(du -k $f | cut -f1) $(/usr/sbin/filefrag -v $f | grep -c unwritten)";
    let after = format!("({look}) >> {}/seen", sandbox.path().display());
    let state = ["--vary", "state=new,allocate,overwrite", "-t", "fs=ext4", "-t", "loop:32m"];
    succeed(&sandbox, &[&["run", "job.fio", "--rounds", "1", "-q", "--after", &after][..], &state].concat());
    let seen = std::fs::read_to_string(sandbox.path().join("seen")).unwrap();
    let of = |state: &str| {
        let line =
            seen.lines().find(|line| line.starts_with(state)).unwrap_or_else(|| panic!("{state}: {seen}"));
        let mut numbers = line.split(' ').skip(1).map(|number| number.parse::<u64>().unwrap());
        (numbers.next().unwrap(), numbers.next().unwrap())
    };
    assert!(of("new").0 < 200 && of("new").1 == 0, "{seen}");
    assert!(of("allocate").0 >= 4096 && of("allocate").1 > 0, "{seen}");
    assert!(of("overwrite").0 >= 4096 && of("overwrite").1 == 0, "{seen}");
    assert_eq!(left_behind(&sandbox, 0), BTreeSet::new());
}

#[test]
fn an_option_that_the_kernel_leaves_out_is_a_note() {
    if !can_make() {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.write("job.fio", JOB);
    let xfs = ["-t", "loop:310m", "-t", "fs=xfs", "--vary", "mount=default,dax=always"];
    let output = run(&sandbox, &[&["run", "job.fio", "--rounds", "1", "-q"][..], &xfs].concat());
    if errors(&output).contains("dax=always is refused") {
        return crate::tools::impossible_here("this kernel's XFS has no DAX at all");
    }
    let run = sandbox.export("1");
    let notes =
        |cell: u32| texts(&run.trials.iter().find(|trial| trial.cell == cell).unwrap().notes).join("\n");
    assert!(!notes(0).contains("the kernel said"), "{}", notes(0));
    assert!(notes(1).contains("the kernel said on mounting: XFS (loop"), "{}", notes(1));
    assert!(notes(1).contains("DAX unsupported by block device"), "{}", notes(1));
}

/// A device that nothing has written answers reads from nothing: that is no storage's speed.
#[test]
fn reads_of_a_new_device_are_noted() {
    if !can_make() {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.write("read.fio", "[r]\nrw=randread\nbs=4k\nsize=1m\n");
    sandbox.write("both.fio", "[w]\nrw=write\nbs=64k\nsize=1m\n[r]\nstonewall\nrw=read\nbs=64k\nsize=1m\n");
    let report = |job: &str, more: &[&str]| {
        let words = ["run", job, "--aa", "--rounds", "1", "-t", "loop:8m"];
        run(&sandbox, &[&words[..], more].concat());
        sandbox.succeed(&["report", "latest", "--verbose"]).split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let said = "a new loop device answers that without storage: -t state=overwrite writes all of it before";
    assert!(report("read.fio", &[]).contains(said));
    assert!(!report("read.fio", &["-t", "state=overwrite"]).contains("without storage"));
    assert!(
        !report("read.fio", &["--before", "dd if=/dev/urandom of=$ASSAY_DEVICE bs=1M count=8 2>&1"])
            .contains("without storage")
    );
    assert!(!report("both.fio", &[]).contains("without storage"));
}

/// Random bytes, which jobs write unless they say otherwise, show nothing of a compression.
#[test]
fn a_compression_that_has_nothing_to_compress_is_said() {
    if !can_make() || !crate::tools::installed("mkfs.btrfs") {
        return;
    }
    let sandbox = Sandbox::new();
    let report = |content: &str, mount: &str| {
        sandbox.write("c.fio", &format!("[w]\nrw=write\nsize=1m\n{content}"));
        let target = ["-t", "loop:256m", "-t", "fs=btrfs", "-t", mount, "--engine", "native"];
        let run = [&["run", "c.fio", "--vary", "bs=4k,8k", "--rounds", "2", "-q", "--verbose"][..], &target]
            .concat();
        sandbox.succeed(&run).split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let said = "the target compresses, and the job writes random bytes";
    assert!(report("", "mount=compress=zstd").contains(said));
    assert!(!report("buffer_compress_percentage=50\n", "mount=compress=zstd").contains(said));
    assert!(!report("", "mount=noatime").contains(said));
}

/// Files are there before anything is counted, whoever lays them out.
#[test]
fn what_engines_lay_out_is_in_no_count() {
    if !can_make() || !crate::tools::available("fio") {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.write("job.fio", "[r]\nrw=read\nbs=64k\nsize=48m\n");
    let made = ["-t", "loop:128m", "-t", "fs=ext4", "-t", "mkfs=-E lazy_itable_init=0,lazy_journal_init=0"];
    let words = ["run", "job.fio", "--vary", "engine=native,fio", "--rounds", "2", "-q", "-t", "fresh=trial"];
    succeed(&sandbox, &[&words[..], &made].concat());
    let run = sandbox.export("1");
    let written = run.metrics.iter().position(|metric| metric.name == "dev.write_bytes").unwrap();
    let counts: Vec<f64> = run.trials.iter().map(|trial| trial.value(written as u32).unwrap()).collect();
    assert!(counts.len() == 4 && counts.iter().all(|bytes| *bytes < 8e6), "{counts:?}");
}

#[test]
fn every_engine_works_on_what_was_made() {
    if !can_make() {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.write("job.fio", ON_DEVICE);
    let vary = ["--vary", "bs=4k,8k", "--rounds", "1", "-q", "-t", "loop:8m"];
    if crate::tools::available("fio") {
        succeed(&sandbox, &[&["run", "job.fio", "--engine", "fio", "--db", "fio.db"][..], &vary].concat());
        let run = succeed(&sandbox, &["export", "1", "--db", "fio.db", "--format", "json"]);
        assert!(run.contains("\"done\"") && !run.contains("failed"), "{run}");
    }
    let shell = "test -b $ASSAY_DEVICE && dd if=/dev/zero of=$ASSAY_DEVICE bs=4k count=${n} status=none";
    let command = ["run", "--vary", "n=1,2", "--rounds", "1", "-q", "-t", "loop:8m", "--", "sh", "-c", shell];
    succeed(&sandbox, &command);
    // Below a filesystem it is there to be looked at.
    let looks = "test $(findmnt -n -o SOURCE -T $ASSAY_DIRECTORY) = $ASSAY_DEVICE && cat /sys/block/$(basename $ASSAY_DEVICE)/stat";
    let with_fs = [
        "run", "--vary", "n=1,2", "--rounds", "1", "-q", "-t", "loop:64m", "-t", "fs=ext4", "--before", looks,
    ];
    succeed(&sandbox, &[&with_fs[..], &["--", "sh", "-c", "true ${n}"]].concat());
    let shell =
        "cd $ASSAY_DIRECTORY && test $(stat -f -c %T .) = tmpfs && test -z \"$(ls)\" && touch file${n}";
    let command = [
        "run", "--vary", "n=1,2", "--rounds", "2", "-q", "-t", "fs=tmpfs", "-t", "fresh=run", "--", "sh",
        "-c", shell,
    ];
    succeed(&sandbox, &command);
    for run in ["1", "2"] {
        let run = sandbox.export(run);
        assert!(
            run.trials.iter().all(|trial| trial.status == assay::record::Status::Done),
            "{:?}",
            run.trials
        );
    }
    assert_eq!(left_behind(&sandbox, 0), BTreeSet::new());
}

#[test]
fn the_plan_tells_what_is_made_and_doctor_what_can_be() {
    if !can_make() {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.write("job.fio", JOB);
    let arguments = [
        "run", "job.fio", "--plan", "-t", "loop:32m", "-t", "scheduler=none", "--vary", "fs=ext4,tmpfs",
        "-t", "fresh=run",
    ];
    let plan = succeed(&sandbox, &arguments);
    let told = "targets, put back afterwards\n  ext4 on loop:32m, made once\n    queue/scheduler = none\n  tmpfs in memory";
    assert!(plan.contains(told), "{plan}");
    assert_eq!(sandbox.names(), BTreeSet::from(["job.fio".to_owned()]));
    let doctor = succeed(&sandbox, &["doctor"]);
    assert!(
        doctor.lines().any(|line| line.starts_with("targets  loop ") && line.contains(" ext4 ")),
        "{doctor}"
    );
}
