//! Devices and filesystems made for a run, from the command line to what is left afterwards: nothing.
//!
//! These need root and a kernel with loop devices and XFS or ext4; where that is missing they say so, and fail in CI.

use std::collections::BTreeSet;
use std::path::Path;

use crate::sandbox::Sandbox;

const JOB: &str = "[w]\nrw=write\nbs=64k\nsize=1m\nfsync=4\n";

/// Whether devices can be made here; says so where not, and panics in CI.
fn can_make() -> bool {
    let works = rustix::process::geteuid().is_root() && Path::new("/dev/loop-control").exists();
    assert!(
        works || std::env::var_os("CI").is_none(),
        "targets need root and loop devices, and CI skips nothing"
    );
    if !works {
        eprintln!("SKIPPED: not root, or no /dev/loop-control");
    }
    works
}

/// What a run of a sandbox could leave behind: loop devices and mounts below it, zram devices of this size.
fn left_behind(sandbox: &Sandbox, zram_bytes: u64) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let here = sandbox.path().canonicalize().unwrap();
    let here = here.to_string_lossy();
    for entry in std::fs::read_dir("/sys/block").unwrap().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let read = |file: &str| std::fs::read_to_string(entry.path().join(file)).unwrap_or_default();
        if read("loop/backing_file").starts_with(&*here) {
            found.insert(format!("{name} on {}", read("loop/backing_file").trim()));
        }
        if name.starts_with("zram") && zram_bytes > 0 && read("disksize").trim() == zram_bytes.to_string() {
            found.insert(name);
        }
    }
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    found.extend(mounts.lines().filter(|line| line.contains(&*here)).map(str::to_owned));
    found.extend(sandbox.names().into_iter().filter(|name| name.starts_with("assay-")));
    found
}

#[test]
fn two_filesystems_on_a_loop_device_are_compared_and_gone() {
    if !can_make() {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.write("job.fio", JOB);
    let vary = ["--vary", "fs=ext4,tmpfs", "--target", "loop:32m", "--rounds", "1", "-q"];
    sandbox.succeed(&[&["run", "job.fio"][..], &vary].concat());
    let run = sandbox.export("1");
    let fact = |cell: u32, name: &str| {
        let trial = run.trials.iter().find(|trial| trial.cell == cell).unwrap();
        run.facts[trial.facts.unwrap() as usize].get(name).unwrap_or("").to_owned()
    };
    assert_eq!([fact(0, "fs.type"), fact(1, "fs.type")], ["ext4", "tmpfs"]);
    assert_eq!(fact(0, "target.device"), "loop:32m");
    assert_eq!(fact(0, "device"), "loop");
    assert_eq!(fact(0, "mkfs.command"), "mkfs.ext4 DEVICE");
    assert_eq!(fact(1, "fs.size_bytes"), (32 << 20).to_string());
    assert_eq!(left_behind(&sandbox, 0), BTreeSet::new());
}
