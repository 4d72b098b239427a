//! Targets that cannot be, or must not be written to: refused in words, with the remedy, and nothing touched.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use assay::engine::{EngineKind, Task};
use assay::experiment::{Device, Filesystem, TargetSettings};
use assay::launch::{Answer, PROTOCOL, Request};
use assay::record::FailureKind;
use assay::target::{Setup, TargetSpec};

use crate::bad_inputs::without_privilege;
use crate::loop_device::LoopDevice;
use crate::native_engine::{answered, asked, work};
use crate::sandbox::{Sandbox, errors};
use crate::target_bench::{JOB, Loop, ON_DEVICE, assay, can_make, fact, left_behind, run, succeed};

/// Runs must be refused with these words and a hint, by this exit code, with nothing left behind.
fn refused(sandbox: &Sandbox, code: i32, arguments: &[&str], words: &str) {
    let all = [&["run", "job.fio", "-q", "--rounds", "1"][..], arguments].concat();
    let output = run(sandbox, &all);
    let said = errors(&output);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}\n{said}");
    assert!(said.contains(words) && said.contains("hint: "), "{arguments:?}: expected '{words}'\n{said}");
    assert_eq!(said.matches("hint: ").count(), 1, "{said}");
    assert!(code != 2 || !sandbox.path().join("assay.db").exists(), "{arguments:?}: something was touched");
    assert_eq!(left_behind(sandbox, 0), BTreeSet::new(), "{arguments:?}");
}

/// What an agent answers; at the rehearsal, before the first trial, and in a trial.
#[test]
fn what_is_lost_has_failed_and_what_cannot_be_is_skipped() {
    let (_base, work) = work();
    let answer = |settings: TargetSettings, rehearsal: bool| {
        let stack = Some(work.path().join("stack"));
        let setup = Setup { work: work.path().to_owned(), stack, settings, ..Setup::default() };
        let target =
            TargetSpec { directory: work.path().to_owned(), setup: Some(setup), ..TargetSpec::default() };
        let request = Request {
            protocol: PROTOCOL,
            engine: EngineKind::Null,
            task: Task::default(),
            target,
            rehearsal,
            observe: Vec::new(),
            before: None,
            after: None,
        };
        answered(asked(&request)).answer
    };
    let gone = Some(Device::Block("/dev/nowhere".into()));
    let settings = TargetSettings { device: gone.clone(), ..TargetSettings::default() };
    let Answer::Unsupported { reason: first } = answer(settings.clone(), true) else {
        panic!("before the first trial it is what this machine does not have")
    };
    let Answer::Failed { kind: FailureKind::Passing, reason, .. } = answer(settings, false) else {
        panic!("in a trial it may come back")
    };
    assert!(reason.starts_with("there is no /dev/nowhere") && reason == first, "{reason}");
    let fs = Some(Filesystem::F2fs);
    let settings = TargetSettings { device: gone, fs, extsize: Some(1 << 20), ..TargetSettings::default() };
    let Answer::Unsupported { reason } = answer(settings, false) else { panic!("no machine can") };
    assert!(reason.starts_with("f2fs has no extent-size hint"), "{reason}");
}

#[test]
fn what_cannot_be_made_is_refused_before_anything_is_touched() {
    if !can_make() {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.write("job.fio", JOB);
    let vary = ["--vary", "bs=4k,8k"];
    let refuse = |more: &[&str], words: &str| refused(&sandbox, 2, &[&vary, more].concat(), words);
    refuse(&["-t", "loop"], "loop needs a size; write e.g. loop:1g");
    refuse(&["-t", "lop:1g"], "did you mean loop:SIZE?");
    refuse(&["-t", "fs=xfs"], "fs=xfs needs a device");
    refuse(&["-t", "fs=zfs", "-t", "loop:1g"], "write one of xfs, ext4");
    refuse(&["-t", "mount=noatime"], "mount is given, but no fs");
    refuse(&["-t", "loop:32m", "-t", "fs=ext4", "-t", "mount=bogus"], "Unknown parameter 'bogus'");
    refuse(
        &["-t", "/dev/no-such-device", "--destroy", "/dev/no-such-device"],
        "there is no /dev/no-such-device",
    );
    refuse(&["-t", "sysfs:/proc/sys/vm/no_such=1"], "there is no /proc/sys/vm/no_such");
    if !Path::new("/sys/kernel/config/nullb").exists() && !Path::new("/lib/modules").exists() {
        refuse(&["-t", "null_blk"], "null_blk is not offered here");
        refuse(&["-t", "scsi_debug"], "scsi_debug is not offered here");
        refuse(&["-t", "ram:1g"], "brd is not offered here");
        refuse(&["-t", "pmem:1g"], "/dev/pmem*");
    } else {
        crate::tools::impossible_here("this kernel's drivers may be loaded: none is missing");
    }
    sandbox.write("job.fio", "[a]\nfilename=x\nrw=write\nsize=64k\n");
    refused(&sandbox, 2, &[&vary[..], &["-t", "loop:32m"]].concat(), "every job names a file of its own");
}

#[test]
fn devices_in_use_are_refused_with_what_is_on_them() {
    if !can_make() {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.write("job.fio", ON_DEVICE);
    let device = Loop::new(&sandbox, 48);
    let name = device.path.to_string_lossy().into_owned();
    let vary = ["--vary", "bs=4k,8k"];
    let named = ["-t", &name, "--destroy", &name];
    refused(
        &sandbox,
        2,
        &[&vary[..], &["-t", &name]].concat(),
        "is a block device, and the job would overwrite it",
    );
    // As a level, too.
    let level = format!("device=loop:32m,{name}");
    refused(&sandbox, 2, &["--vary", &level], "is a block device, and the job would overwrite it");
    let mkfs = Command::new("/usr/sbin/mkfs.ext4").args(["-q", &name]).status().unwrap();
    assert!(mkfs.success());
    refused(&sandbox, 2, &[&vary[..], &named].concat(), "it carries an ext2/3/4 filesystem");
    let point = sandbox.path().join("own-mount");
    std::fs::create_dir(&point).unwrap();
    assert!(Command::new("mount").arg(&name).arg(&point).status().unwrap().success());
    std::fs::write(point.join("precious"), "x").unwrap();
    let said = std::panic::catch_unwind(|| {
        let output = run(&sandbox, &[&["run", "job.fio", "-q"][..], &vary, &named].concat());
        (output.status.code(), errors(&output), std::fs::read_to_string(point.join("precious")).unwrap())
    });
    assert!(Command::new("umount").arg(&point).status().unwrap().success());
    let (code, said, precious) = said.unwrap();
    assert_eq!((code, precious.as_str()), (Some(2), "x"));
    assert!(said.contains("is in use: mounted at ") && said.contains("hint: unmount or release"), "{said}");
}

#[test]
fn a_file_that_serves_as_a_device_is_not_written_to_even_where_it_is_named() {
    if !can_make() {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.write("job.fio", JOB);
    let image = sandbox.path().join("own.img");
    let own = LoopDevice::on(&image, 16 << 20).expect("a loop device, as can_make says");
    let name = image.to_string_lossy().into_owned();
    let named = ["--vary", "direct=0,1", "-t", &name, "--destroy", &name];
    let words = format!("{name} is in use: {} lies on it", own.path.display());
    refused(&sandbox, 2, &named, &words);
    // Also by another name.
    let link = sandbox.path().join("link");
    std::fs::hard_link(&image, &link).unwrap();
    let link = link.to_string_lossy().into_owned();
    refused(&sandbox, 2, &["--vary", "direct=0,1", "-t", &link, "--destroy", &link], "lies on it");
    // Whoever may write to the file but not open the device is told as well.
    std::fs::set_permissions(&image, PermissionsExt::from_mode(0o666)).unwrap();
    let output =
        without_privilege(&sandbox, &[&["run", "job.fio", "-q"][..], &named].concat()).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(errors(&output).contains(&words), "{}", errors(&output));
    std::fs::set_permissions(sandbox.path(), PermissionsExt::from_mode(0o755)).unwrap();
    drop(own);
    let output = run(&sandbox, &[&["run", "job.fio", "-q", "--rounds", "4"][..], &named].concat());
    assert!(output.status.code().is_some_and(|code| code != 2), "{}", errors(&output));
}

#[test]
fn what_mkfs_or_the_kernel_refuses_is_said_once_in_their_words() {
    if !can_make() {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.write("job.fio", JOB);
    let on_loop = ["-t", "loop:32m", "-t", "fs=ext4"];
    // Before anything is made, where another queue shows which schedulers there are.
    refused(
        &sandbox,
        2,
        &[&on_loop[..], &["--vary", "scheduler=none,noop"]].concat(),
        "scheduler=noop: this kernel has none",
    );
    let refuse =
        |code, more: &[&str], words: &str| refused(&sandbox, code, &[&on_loop, more].concat(), words);
    refuse(2, &["--vary", "mkfs=default,'-Z crc=0'"], "invalid option -- 'Z'");
    refuse(2, &["--vary", "mkfs=default,'-Z crc=0'"], "mkfs=-Z crc=0");
    // An option that is known, with a value that only the device shows to be wrong.
    refuse(1, &["--vary", "mount=default,dax"], "dax");
    refuse(1, &["--vary", "nr_requests=128,no"], "nr_requests");
}

#[test]
fn without_root_it_is_refused_with_the_remedy() {
    if !can_make() {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.write("job.fio", JOB);
    let program = assay(&sandbox, &[]).get_program().to_owned();
    for target in ["fs=tmpfs", "sysfs:/proc/sys/vm/dirty_ratio=20"] {
        let output = Command::new("setpriv")
            .args(["--bounding-set=-all", "--inh-caps=-all"])
            .arg(&program)
            .args(["run", "job.fio", "-q", "--vary", "bs=4k,8k", "-t", target])
            .current_dir(sandbox.path())
            .output()
            .unwrap();
        let said = errors(&output);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("needs root\nhint: run it with sudo"), "{said}");
    }
    assert_eq!(sandbox.names(), BTreeSet::from(["job.fio".to_owned()]));
}

#[test]
fn a_disk_with_a_partition_in_use_is_refused() {
    if !can_make() {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.write("job.fio", ON_DEVICE);
    let device = Loop::new(&sandbox, 48);
    let name = device.path.to_string_lossy().into_owned();
    // One partition of type 0x83, 65536 sectors from sector 2048 on.
    let mut table = [0_u8; 512];
    table[0x1be + 4] = 0x83;
    table[0x1be + 8..0x1be + 12].copy_from_slice(&2048_u32.to_le_bytes());
    table[0x1be + 12..0x1be + 16].copy_from_slice(&65_536_u32.to_le_bytes());
    table[510..].copy_from_slice(&[0x55, 0xaa]);
    std::fs::write(&device.path, table).unwrap();
    let named = ["--vary", "bs=4k,8k", "-t", &name, "--destroy", &name];
    refused(&sandbox, 2, &named, "carries a DOS partition table");
    // The table read again by the kernel, then the partition held by a mount.
    let partition = format!("{name}p1");
    let partx = |option: &str| {
        let output = Command::new("partx").args([option, &name]).output().unwrap();
        assert!(output.status.success(), "{}", errors(&output));
    };
    // The kernel keeps the partitions of a loop device that is detached, as of a test that was killed here: they are the next one's.
    if Path::new(&partition).exists() {
        partx("-d");
    }
    partx("-a");
    assert!(Command::new("/usr/sbin/mkfs.ext4").args(["-q", &partition]).status().unwrap().success());
    let point = sandbox.path().join("own-mount");
    std::fs::create_dir(&point).unwrap();
    assert!(Command::new("mount").arg(&partition).arg(&point).status().unwrap().success());
    let output = run(&sandbox, &[&["run", "job.fio", "-q"][..], &named].concat());
    assert!(Command::new("umount").arg(&point).status().unwrap().success());
    // Programs that were started beside it may have the mount in a namespace of their own for a moment.
    let removed = || Command::new("partx").args(["-d", &name]).status().unwrap().success();
    assert!((0..100).any(|_| removed() || (std::thread::sleep(Duration::from_millis(100)), false).1));
    let said = errors(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("is in use: mounted at ") && said.contains("hint: unmount or release"), "{said}");
}

#[test]
fn a_second_device_is_asked_for_as_the_first_is() {
    if !can_make() {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.write("job.fio", JOB);
    let device = Loop::new(&sandbox, 128);
    let name = device.path.to_string_lossy().into_owned();
    std::fs::write(&device.path, "precious").unwrap();
    std::os::unix::fs::symlink(&device.path, sandbox.path().join("link")).unwrap();
    sandbox.write("file", "precious");
    let vary = ["--vary", "bs=4k,8k", "-t", "loop:310m"];
    let log = format!("mkfs=-l size=64m,logdev={name}");
    let member = format!("mkfs=-f {name}");
    let option = format!("mount=logdev={name}");
    let device_words = "is a block device, and the job would overwrite it";
    for (fs, setting, words) in [
        ("fs=xfs", &*log, device_words),
        ("fs=xfs", "mkfs=-l logdev=link", device_words),
        ("fs=xfs", "mkfs=-llogdev=./link", device_words),
        ("fs=xfs", &option, device_words),
        ("fs=btrfs", &member, device_words),
        ("fs=ext4", "mkfs=-J device=link", device_words),
        ("fs=ext4", "mkfs=-J device=LABEL=j", "does not say by its path which device"),
        ("fs=xfs", "mkfs=-l size=64m,logdev=file", "exists, and the job would overwrite it"),
    ] {
        refused(&sandbox, 2, &[&vary[..], &["-t", fs, "-t", setting]].concat(), words);
    }
    // As a level, too.
    let level = format!("mkfs=default,'-l logdev={name}'");
    let target = ["-t", "loop:310m", "-t", "fs=xfs", "--vary", &level];
    refused(&sandbox, 2, &target, "is a block device, and the job would overwrite it");
    assert!(std::fs::read(&device.path).unwrap().starts_with(b"precious"));
    assert_eq!(std::fs::read_to_string(sandbox.path().join("file")).unwrap(), "precious");
    // With a filesystem of somebody's on it, naming it is not enough.
    assert!(Command::new("/usr/sbin/mkfs.ext4").args(["-q", &name]).status().unwrap().success());
    let named = ["-t", "fs=xfs", "-t", &log, "--destroy", &name];
    refused(&sandbox, 2, &[&vary[..], &named].concat(), "it carries an ext2/3/4 filesystem");
}

#[test]
fn a_second_device_is_used_in_every_trial_and_left_clean() {
    if !can_make() {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.write("job.fio", JOB);
    let device = Loop::new(&sandbox, 128);
    let name = device.path.to_string_lossy().into_owned();
    let log = format!("mkfs=-l size=64m,logdev={name}");
    let option = format!("mount=logdev={name}");
    let member = format!("mkfs=-f {name}");
    let all = ["run", "job.fio", "-q", "--vary", "bs=4k,8k", "--rounds", "1", "--destroy", &name];
    succeed(&sandbox, &[&all[..], &["-t", "loop:310m", "-t", "fs=xfs", "-t", &log, "-t", &option]].concat());
    assert!(fact(&sandbox, "1", 0, "mount.options").contains("logdev="));
    if crate::tools::installed("mkfs.btrfs") {
        let target = ["-t", "loop:128m", "-t", "fs=btrfs", "-t", &member, "--db", "two.db"];
        succeed(&sandbox, &[&all[..], &target].concat());
        let start = std::fs::read(&device.path).unwrap();
        assert!(start[..1 << 20].iter().all(|byte| *byte == 0), "the second member is wiped as the first is");
    }
    assert_eq!(left_behind(&sandbox, 0), BTreeSet::new());
}
