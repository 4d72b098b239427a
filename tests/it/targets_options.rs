//! Options of targets that hold for one filesystem or device alone.

use std::collections::BTreeSet;
use std::process::Command;

use crate::sandbox::{Sandbox, errors};
use crate::target_bench::{JOB, can_make, fact, kill_all, left_behind, paused_at, run, succeed};

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

#[test]
fn options_of_a_filesystem_that_no_cell_has_are_refused() {
    let sandbox = Sandbox::new();
    sandbox.write("job.fio", JOB);
    let on = ["run", "job.fio", "-q", "-t", "loop:310m", "--vary", "fs=xfs,ext4", "-t"];
    for (option, words) in [
        ("mkfs.btrfs=-n 4k", "mkfs.btrfs is given, but no cell has fs=btrfs"),
        ("mount.tmpfs=size=1g", "mount.tmpfs is given, but no cell has fs=tmpfs"),
        ("mkfs.tmpfs=x", "tmpfs has no mkfs"),
        ("mkfs.zfs=x", "mkfs.zfs: assay makes no zfs; write one of mkfs.xfs"),
    ] {
        let output = run(&sandbox, &[&on[..], &[option]].concat());
        let said = errors(&output);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(words) && said.contains("hint: "), "{said}");
    }
    assert_eq!(sandbox.names(), BTreeSet::from(["job.fio".to_owned()]));
}
