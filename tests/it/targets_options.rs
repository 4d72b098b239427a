//! Options of targets that hold for one filesystem or device alone.

use std::collections::BTreeSet;
use std::process::Command;

use crate::sandbox::{Sandbox, errors};
use crate::target_bench::{JOB, Loop, can_make, fact, kill_all, left_behind, paused_at, run, succeed, zram};

#[test]
fn each_filesystem_is_made_with_options_of_its_own() {
    if !can_make() {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.write("job.fio", JOB);
    let on = ["run", "job.fio", "-q", "--rounds", "1", "-t", "loop:310m", "--vary", "fs=xfs,ext4"];
    // -m of mkfs.ext4 is another option; what is for all is not used with XFS.
    let options = ["-t", "mkfs=-m 1", "-t", "mkfs.xfs=-m reflink=0", "-t", "mount.ext4=nodelalloc"];
    succeed(&sandbox, &[&on[..], &options].concat());
    assert_eq!(fact(&sandbox, "1", 0, "mkfs.command"), "mkfs.xfs -m 'reflink=0' DEVICE");
    assert_eq!(fact(&sandbox, "1", 1, "mkfs.command"), "mkfs.ext4 -m 1 DEVICE");
    let mounted = [0, 1].map(|cell| fact(&sandbox, "1", cell, "mount.options").contains("nodelalloc"));
    assert_eq!(mounted, [false, true]);
    // As levels, from a file: the report says which rows compare nothing.
    let table = "job = \"job.fio\"\n[target]\ndevice = \"loop:310m\"\n\"mount.xfs\" = \"noatime\"\n";
    sandbox.write("e.toml", table);
    let levels = ["--rounds", "1", "--vary", "mkfs.xfs=default,-m reflink=0", "--vary", "fs=xfs,ext4"];
    let output = run(&sandbox, &[&["run", "e.toml"][..], &levels].concat());
    let said = errors(&output);
    assert!(output.status.success(), "{said}");
    let same = "mkfs.xfs=default and mkfs.xfs=-m reflink=0 are the same trial in some rows: with fs=ext4";
    assert!(said.split_whitespace().collect::<Vec<_>>().join(" ").contains(same), "{said}");
    let notes = sandbox.export("2").notes;
    assert!(notes.iter().any(|note| note.to_string().starts_with(same)), "{notes:?}");
    assert_eq!(
        [0, 1, 2, 3].map(|cell| fact(&sandbox, "2", cell, "mkfs.command")),
        ["mkfs.xfs DEVICE", "mkfs.ext4 DEVICE", "mkfs.xfs -m 'reflink=0' DEVICE", "mkfs.ext4 DEVICE"]
    );
    assert!(fact(&sandbox, "2", 0, "mount.options").contains("noatime"));
    assert!(!fact(&sandbox, "2", 1, "mount.options").contains("noatime"));
    let plan = succeed(&sandbox, &[&["run", "e.toml", "--plan"][..], &levels].concat());
    assert_eq!(plan.matches("ext4 on loop:310m, made for each trial").count(), 1, "{plan}");
    assert!(plan.contains("    mkfs: -m reflink=0\n    mount: noatime\n"), "{plan}");
    assert_eq!(left_behind(&sandbox, 0), BTreeSet::new());
}

#[test]
fn a_loop_device_has_its_blocks_before_it_is_written() {
    if !can_make() {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.write("job.fio", JOB);
    let words = ["run", "job.fio", "-q", "--rounds", "1", "-t", "fs=ext4"];
    let levels = ["--vary", "device=loop:48m,loop:48m:fallocate=1"];
    succeed(&sandbox, &[&words[..], &levels].concat());
    // mkfs.ext4 discards its device.
    assert_eq!([0, 1].map(|cell| fact(&sandbox, "1", cell, "loop.fallocate")), ["0", "1"]);
    // Killed in the middle, too.
    let level = ["--vary", "bs=4k,8k", "-t", "loop:48m:fallocate=1"];
    let mut child = paused_at(&sandbox, "image", &[&words[..], &level].concat());
    kill_all(&sandbox);
    child.wait().unwrap();
    succeed(&sandbox, &["cleanup"]);
    assert_eq!(left_behind(&sandbox, 0), BTreeSet::new());
    // Together they are more than there is.
    let place = rustix::fs::statvfs(sandbox.path()).unwrap();
    let each = (place.f_bavail * place.f_frsize / 5 * 3) >> 20;
    let level = format!("device=loop:{each}m:fallocate=1,loop:{}m:fallocate=1", each + 1);
    let output = run(&sandbox, &[&words[..], &["--vary", &level, "-t", "fresh=round", "--plan"]].concat());
    let said = errors(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.contains("loop: fallocate=1 takes ") && said.contains("hint: make the devices smaller"),
        "{said}"
    );
    succeed(&sandbox, &[&words[..], &["--vary", &level, "--plan"]].concat());
}

/// Where a filesystem cannot, this is refused before anything is made.
#[test]
fn what_cannot_allocate_is_refused_before_the_run() {
    // ramfs has no fallocate.
    let sandbox = Sandbox::new();
    let place = sandbox.path().join("memory");
    std::fs::create_dir(&place).unwrap();
    if !can_make() {
        return;
    }
    sandbox.write("job.fio", JOB);
    let mounted = Command::new("mount").args(["-t", "ramfs", "none"]).arg(&place).status().unwrap();
    assert!(mounted.success());
    let output = run(
        &sandbox,
        &["run", "job.fio", "-q", "--vary", "bs=4k,8k", "-t", "loop:8m:fallocate=1", "--directory", "memory"],
    );
    assert!(Command::new("umount").arg(&place).status().unwrap().success());
    let said = errors(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.contains("cannot allocate blocks before they are written") && said.contains("hint: --directory"),
        "{said}"
    );
    assert!(!sandbox.path().join("assay.db").exists());
}

/// Writes of 128 fsyncs go to the log.
const SYNCED: &str = "[w]\nrw=write\nbs=4k\nsize=512k\nfsync=1\n";

#[test]
fn a_log_is_made_on_a_device_of_its_own() {
    if !can_make() {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.write("job.fio", SYNCED);
    let words =
        ["run", "job.fio", "-q", "--rounds", "1", "-t", "loop:310m", "--vary", "log=internal,loop:96m"];
    // ext4 has blocks of 1 KiB on so small a device, and its journal must have, too.
    for (number, fs, mkfs) in [
        ("1", "fs=xfs", "mkfs.xfs -l 'logdev=LOG' DEVICE"),
        ("2", "fs=ext4", "mkfs.ext4 -J 'device=LOG' DEVICE"),
    ] {
        succeed(&sandbox, &[&words[..], &["-t", fs]].concat());
        let both = |name: &str| [0, 1].map(|cell| fact(&sandbox, number, cell, name));
        assert_eq!(both("target.log"), ["", "loop:96m"]);
        assert_eq!(both("mkfs.command")[1], mkfs);
        assert_eq!(both("device.members"), ["", "2"], "{fs}: dev.* has both");
        let names = both("mount.options").map(|options| options.contains("loop"));
        assert_eq!(names, [false, false], "{:?}", both("mount.options"));
        let report = succeed(&sandbox, &["report", number]);
        assert!(!report.contains("undeclared differences"), "{report}");
    }
    assert!(fact(&sandbox, "1", 1, "mount.options").contains("logdev=LOG"));
    assert!(fact(&sandbox, "2", 1, "fs.geometry").starts_with("bsize=1024 "), "as without a log elsewhere");
    assert_eq!(left_behind(&sandbox, 0), BTreeSet::new());
    if let Some(_alone) = zram() {
        let on_zram = ["run", "job.fio", "-q", "--rounds", "1", "-t", "loop:64m", "-t", "fs=ext4"];
        let log = ["--vary", "bs=4k,8k", "-t", "log=zram:32m", "-t", "fresh=run"];
        succeed(&sandbox, &[&on_zram[..], &log].concat());
        assert_eq!(fact(&sandbox, "3", 1, "device.members"), "2");
        assert_eq!(left_behind(&sandbox, 32 << 20), BTreeSet::new());
    }
}

#[test]
fn a_log_on_a_named_device_is_put_back_after_a_kill_too() {
    if !can_make() {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.write("job.fio", SYNCED);
    let device = Loop::new(&sandbox, 96);
    let name = device.path.to_string_lossy().into_owned();
    let log = format!("log={name}");
    let is_clean = || std::fs::read(&device.path).unwrap()[..1 << 20].iter().all(|byte| *byte == 0);
    let words =
        ["run", "job.fio", "-q", "--rounds", "1", "--vary", "bs=4k,8k", "-t", "loop:310m", "-t", &log];
    let output = run(&sandbox, &[&words[..], &["-t", "fs=xfs"]].concat());
    assert_eq!(output.status.code(), Some(2), "{}", errors(&output));
    assert!(errors(&output).contains("is a block device, and the job would overwrite it"));
    for fs in ["fs=xfs", "fs=ext4"] {
        let all = [&words[..], &["-t", fs, "--destroy", &name]].concat();
        let plan = succeed(&sandbox, &[&all[..], &["--plan"]].concat());
        assert!(plan.contains(&format!("on loop:310m, its log on {name}, made for each trial")), "{plan}");
        assert!(plan.contains(&format!("everything on {name} is erased (named with --destroy)")), "{plan}");
        succeed(&sandbox, &[&all[..], &["-t", "fresh=round"]].concat());
        assert!(is_clean(), "{fs}");
        // Before the filesystem is made, before it is mounted, and in use.
        for step in ["mkfs", "mount", "stack"] {
            let mut child = paused_at(&sandbox, step, &all);
            kill_all(&sandbox);
            child.wait().unwrap();
            succeed(&sandbox, &["cleanup"]);
            assert!(is_clean(), "{fs}: killed at {step}");
            assert_eq!(left_behind(&sandbox, 0), BTreeSet::new(), "{fs}: killed at {step}");
        }
    }
    // What somebody has on it is in the way.
    assert!(Command::new("/usr/sbin/mkfs.ext4").args(["-q", &name]).status().unwrap().success());
    let output = run(&sandbox, &[&words[..], &["-t", "fs=xfs", "--destroy", &name]].concat());
    assert_eq!(output.status.code(), Some(2), "{}", errors(&output));
    assert!(errors(&output).contains("it carries an ext2/3/4 filesystem"), "{}", errors(&output));
}

#[test]
fn options_of_a_filesystem_that_no_cell_has_are_refused() {
    let sandbox = Sandbox::new();
    sandbox.write("job.fio", JOB);
    let on = ["run", "job.fio", "-q", "-t", "loop:310m", "--vary", "fs=xfs,ext4", "-t"];
    for (option, words) in [
        ("mkfs.btrfs=-n 4k", "mkfs.btrfs is given, but no cell has fs=btrfs"),
        ("mount.tmpfs=size=1g", "mount.tmpfs is given, but no cell has fs=tmpfs"),
        ("mkfs.tmpfs=x", "tmpfs has no mkfs"),
        ("log=ram:64m", "log=ram:64m: write loop:SIZE, zram:SIZE, /dev/X with --destroy, or internal"),
        ("log=/dev/no-such-device", "there is no /dev/no-such-device"),
        ("mkfs.zfs=x", "mkfs.zfs: assay makes no zfs; write one of mkfs.xfs"),
    ] {
        let output = run(&sandbox, &[&on[..], &[option]].concat());
        let said = errors(&output);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(words) && said.contains("hint: "), "{said}");
    }
    assert_eq!(sandbox.names(), BTreeSet::from(["job.fio".to_owned()]));
}
