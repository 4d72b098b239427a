//! Devices and filesystems made for a run, from the command line to what is left afterwards: nothing.
//!
//! These need root and a kernel with loop and zram devices, XFS and ext4; where that is missing they say so, and fail in CI.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::sandbox::{Sandbox, errors};

const JOB: &str = "[w]\nrw=write\nbs=64k\nsize=1m\nfsync=4\n";
/// On a device itself.
const ON_DEVICE: &str = "[w]\nrw=randwrite\nbs=4k\nio_size=256k\n";
/// How long a program may take to come to a step, or to end.
const PATIENCE: Duration = Duration::from_secs(30);

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

fn has_zram() -> bool {
    let there = Path::new("/sys/class/zram-control/hot_add").exists();
    if !there {
        eprintln!("SKIPPED: this kernel has no zram-control");
    }
    there
}

/// The program with a register of targets of its own: other tests clean up, too.
fn assay(sandbox: &Sandbox, arguments: &[&str]) -> Command {
    let mut command = sandbox.assay(arguments);
    command.env("ASSAY_RUN_DIR", sandbox.path().join("registered"));
    command
}

fn run(sandbox: &Sandbox, arguments: &[&str]) -> Output {
    assay(sandbox, arguments).output().unwrap()
}

fn succeed(sandbox: &Sandbox, arguments: &[&str]) -> String {
    let output = run(sandbox, arguments);
    assert!(output.status.success(), "{arguments:?}: {}\n{}", output.status, errors(&output));
    String::from_utf8(output.stdout).unwrap()
}

/// What a run of a sandbox could leave behind: loop devices and mounts below it, zram devices of this size.
fn left_behind(sandbox: &Sandbox, zram_bytes: u64) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let here = sandbox.path().canonicalize().unwrap();
    let here = here.to_string_lossy();
    for entry in std::fs::read_dir("/sys/block").unwrap().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let read = |file: &str| std::fs::read_to_string(entry.path().join(file)).unwrap_or_default();
        let image = read("loop/backing_file");
        if image.starts_with(&*here) && !image.contains("own.img") {
            found.insert(format!("{name} on {}", read("loop/backing_file").trim()));
        }
        if name.starts_with("zram") && zram_bytes > 0 && read("disksize").trim() == zram_bytes.to_string() {
            found.insert(name);
        }
    }
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    found.extend(mounts.lines().filter(|line| line.contains(&*here)).map(str::to_owned));
    found.extend(
        sandbox.names().into_iter().filter(|name| name.starts_with("assay-") || name == "registered"),
    );
    found
}

/// zram devices that were never set up: one of them may be a run's that was killed before it gave it a size.
fn unused_zram() -> usize {
    let entries = std::fs::read_dir("/sys/block").unwrap().flatten();
    let size = |name: PathBuf| std::fs::read_to_string(name.join("disksize")).unwrap_or_default();
    entries.filter(|entry| size(entry.path()).trim() == "0").count()
}

/// Starts a run that waits at a step of its set-up.
fn paused_at(sandbox: &Sandbox, step: &str, arguments: &[&str]) -> Child {
    let mut command = assay(sandbox, arguments);
    command.env("ASSAY_TEST_PAUSE", step).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let begun = Instant::now();
    let waits = || {
        let work = sandbox.names().into_iter().find(|name| name.starts_with("assay-"));
        work.is_some_and(|work| sandbox.path().join(work).join("paused").exists())
    };
    while !waits() {
        assert!(child.try_wait().unwrap().is_none(), "{step}: it ended before that step");
        assert!(begun.elapsed() < PATIENCE, "{step}: never reached");
        std::thread::sleep(Duration::from_millis(5));
    }
    child
}

/// kill -9 of a run and of its agent, as a machine out of memory would.
fn kill_all(sandbox: &Sandbox) {
    for (pid, _) in sandbox.processes() {
        let _ = kill_process(Pid::from_raw(pid as i32).unwrap(), Signal::KILL);
    }
}

fn fact(sandbox: &Sandbox, run: &str, cell: u32, name: &str) -> String {
    let run = sandbox.export(run);
    let trial = run.trials.iter().find(|trial| trial.cell == cell).unwrap();
    run.facts[trial.facts.unwrap() as usize].get(name).unwrap_or("").to_owned()
}

#[test]
fn two_filesystems_on_a_loop_device_are_compared_and_gone() {
    if !can_make() {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.write("job.fio", JOB);
    let vary = ["--vary", "fs=ext4,tmpfs", "--target", "loop:32m", "--rounds", "1"];
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
    if !can_make() || !has_zram() {
        return;
    }
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

/// Every step of the set-up, and the trial itself.
const STEPS: [&str; 7] = ["loop", "device", "mkfs", "mount", "stack", "knob", "knobs"];

#[test]
fn what_a_kill_leaves_at_any_step_is_told_and_removed() {
    if !can_make() {
        return;
    }
    for step in STEPS {
        let sandbox = Sandbox::new();
        sandbox.write("job.fio", JOB);
        let arguments = [
            "run",
            "job.fio",
            "-q",
            "--vary",
            "bs=4k,8k",
            "-t",
            "loop:32m",
            "-t",
            "fs=ext4",
            "-t",
            "read_ahead=64",
        ];
        let mut child = paused_at(&sandbox, step, &arguments);
        kill_all(&sandbox);
        child.wait().unwrap();
        let left = left_behind(&sandbox, 0);
        assert!(left.iter().any(|name| name.starts_with("assay-")), "{step}: {left:?}");
        assert_eq!(
            step == "stack",
            step == "stack" && left.iter().any(|name| name.contains(" ext4 ")),
            "{left:?}"
        );
        let dry = succeed(&sandbox, &["cleanup", "--dry-run"]);
        assert!(dry.contains("would remove ") && dry.contains("(run 1)"), "{step}: {dry}");
        assert_eq!(left_behind(&sandbox, 0), left, "{step}: only told");
        assert!(succeed(&sandbox, &["cleanup"]).contains("removed "), "{step}");
        assert_eq!(left_behind(&sandbox, 0), BTreeSet::new(), "{step}");
        assert!(succeed(&sandbox, &["cleanup"]).contains("nothing was left behind"));
    }
}

#[test]
fn an_interrupted_run_puts_back_what_it_made_at_any_step() {
    if !can_make() {
        return;
    }
    for step in STEPS {
        let sandbox = Sandbox::new();
        sandbox.write("job.fio", JOB);
        let arguments = [
            "run",
            "job.fio",
            "-q",
            "--vary",
            "bs=4k,8k",
            "-t",
            "loop:32m",
            "-t",
            "fs=ext4",
            "-t",
            "read_ahead=64",
        ];
        let child = paused_at(&sandbox, step, &arguments);
        let signal = if step == "mkfs" { Signal::TERM } else { Signal::INT };
        kill_process(Pid::from_child(&child), signal).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(130), "{step}: {}", errors(&output));
        assert_eq!(left_behind(&sandbox, 0), BTreeSet::new(), "{step}");
        sandbox.no_process_left(PATIENCE);
    }
}

#[test]
fn a_zram_device_is_removed_even_before_it_is_known() {
    if !can_make() || !has_zram() {
        return;
    }
    let bytes = 310 << 20;
    for (step, kill) in [("zram", true), ("device", true), ("stack", true), ("stack", false)] {
        let sandbox = Sandbox::new();
        sandbox.write("job.fio", JOB);
        let arguments = ["run", "job.fio", "-q", "--vary", "bs=4k,8k", "-t", "zram:310m", "-t", "fs=xfs"];
        let before = unused_zram();
        let mut child = paused_at(&sandbox, step, &arguments);
        if kill {
            kill_all(&sandbox);
            child.wait().unwrap();
            succeed(&sandbox, &["cleanup"]);
        } else {
            kill_process(Pid::from_child(&child), Signal::INT).unwrap();
            assert_eq!(child.wait().unwrap().code(), Some(130));
        }
        assert_eq!(left_behind(&sandbox, bytes), BTreeSet::new(), "{step}");
        assert!(unused_zram() <= before, "{step}");
    }
}

/// The issue's own words: the same experiment five times, ended at a moment nobody chose.
#[test]
fn five_runs_ended_at_any_moment_leave_nothing() {
    if !can_make() {
        return;
    }
    let bytes = 312 << 20;
    let sandbox = Sandbox::new();
    sandbox.write("job.fio", JOB);
    let device = if has_zram() { "zram:312m" } else { "loop:312m" };
    let arguments =
        ["run", "job.fio", "-q", "--vary", "bs=4k,8k", "--rounds", "50", "-t", device, "-t", "fs=xfs"];
    let seed = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().subsec_nanos();
    for round in 0..5_u32 {
        let child = assay(&sandbox, &arguments).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let wait = Duration::from_millis(u64::from(seed.rotate_left(round * 6) % 700) + 40);
        std::thread::sleep(wait);
        let killed = round % 2 == 0;
        let signal = if killed { Signal::KILL } else { Signal::INT };
        kill_process(Pid::from_child(&child), signal).unwrap();
        let output = child.wait_with_output().unwrap();
        if killed {
            // The kernel tells the agent, which ends by itself; cleaning up waits for it.
            run(&sandbox, &["cleanup"]);
        }
        sandbox.no_process_left(PATIENCE);
        assert_eq!(
            left_behind(&sandbox, bytes),
            BTreeSet::new(),
            "round {round}, {wait:?}: {}",
            errors(&output)
        );
    }
}

#[test]
fn a_run_of_another_store_is_found_from_anywhere() {
    if !can_make() {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.write("job.fio", JOB);
    let arguments = ["run", "job.fio", "-q", "--vary", "bs=4k,8k", "-t", "fs=tmpfs"];
    let mut child = paused_at(&sandbox, "stack", &arguments);
    kill_all(&sandbox);
    child.wait().unwrap();
    std::fs::remove_file(sandbox.path().join("assay.db")).unwrap();
    let next = run(
        &sandbox,
        &["run", "--db", "new.db", "-q", "--vary", "n=1,2", "--rounds", "1", "--", "true", "${n}"],
    );
    assert!(errors(&next).contains("a run was killed and left devices in "), "{}", errors(&next));
    assert!(succeed(&sandbox, &["cleanup"]).contains("(a run of another store)"));
    assert_eq!(left_behind(&sandbox, 0), BTreeSet::new());
}

#[test]
fn settings_of_a_device_that_stays_are_put_back() {
    if !can_make() {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.write("job.fio", JOB);
    let device = Loop::new(&sandbox, 48);
    let queue = device.sys().join("queue/read_ahead_kb");
    let before = std::fs::read_to_string(&queue).unwrap();
    let name = device.path.to_string_lossy().into_owned();
    let target = ["-t", &name, "--destroy", &name, "-t", "fs=ext4", "-t", "read_ahead=8"];
    let arguments = [&["run", "job.fio", "-q", "--vary", "bs=4k,8k", "--rounds", "1"][..], &target].concat();
    succeed(&sandbox, &arguments);
    assert_eq!(fact(&sandbox, "1", 0, "queue.read_ahead_kb"), "8");
    assert_eq!(std::fs::read_to_string(&queue).unwrap(), before);
    let mut child = paused_at(&sandbox, "knobs", &arguments);
    assert_ne!(std::fs::read_to_string(&queue).unwrap(), before);
    kill_all(&sandbox);
    child.wait().unwrap();
    succeed(&sandbox, &["cleanup"]);
    assert_eq!(std::fs::read_to_string(&queue).unwrap(), before);
    // The filesystem assay made is gone, too, or the next run would refuse the device.
    succeed(&sandbox, &arguments);
}

/// A loop device of the test's own.
struct Loop {
    path: PathBuf,
}

impl Loop {
    fn new(sandbox: &Sandbox, mebibytes: u64) -> Loop {
        let image = sandbox.path().join("own.img");
        std::fs::File::create(&image).unwrap().set_len(mebibytes << 20).unwrap();
        let output = Command::new("losetup").args(["--show", "-f"]).arg(&image).output().unwrap();
        assert!(output.status.success(), "{}", errors(&output));
        Loop { path: String::from_utf8(output.stdout).unwrap().trim().into() }
    }

    fn sys(&self) -> PathBuf {
        Path::new("/sys/block").join(self.path.file_name().unwrap())
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let detached = Command::new("losetup").arg("-d").arg(&self.path).status();
        assert!(detached.is_ok_and(|status| status.success()) || std::thread::panicking());
    }
}

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
fn what_mkfs_or_the_kernel_refuses_is_said_once_in_their_words() {
    if !can_make() {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.write("job.fio", JOB);
    let on_loop = ["-t", "loop:32m", "-t", "fs=ext4"];
    let refuse = |more: &[&str], words: &str| refused(&sandbox, 1, &[&on_loop, more].concat(), words);
    refuse(&["--vary", "mkfs=default,'-Z crc=0'"], "invalid option -- 'Z'");
    refuse(&["--vary", "mkfs=default,'-Z crc=0'"], "mkfs=-Z crc=0");
    // An option that is known, with a value that only the device shows to be wrong.
    refuse(&["--vary", "mount=default,dax"], "dax");
    refuse(&["--vary", "nr_requests=128,no"], "nr_requests");
    refuse(&["--vary", "scheduler=none,noop"], "it takes none");
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
        eprintln!("SKIPPED: this kernel's XFS has no DAX at all");
        return;
    }
    let run = sandbox.export("1");
    let notes = |cell: u32| run.trials.iter().find(|trial| trial.cell == cell).unwrap().notes.join("\n");
    assert!(!notes(0).contains("the kernel said"), "{}", notes(0));
    assert!(notes(1).contains("the kernel said on mounting: XFS (loop"), "{}", notes(1));
    assert!(notes(1).contains("DAX unsupported by block device"), "{}", notes(1));
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
    let shell =
        "cd $ASSAY_DIRECTORY && test $(stat -f -c %T .) = tmpfs && test -z \"$(ls)\" && touch file${n}";
    let command = [
        "run",
        "--vary",
        "n=1,2",
        "--rounds",
        "2",
        "-q",
        "-t",
        "fs=tmpfs",
        "-t",
        "fresh=run",
        "--",
        "sh",
        "-c",
        shell,
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
fn a_run_killed_with_its_devices_goes_on() {
    if !can_make() {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.write("job.fio", JOB);
    let target = ["-t", "loop:32m", "-t", "fs=ext4", "-t", "fresh=run"];
    let begin = [
        &["run", "job.fio", "-q", "--vary", "bs=4k,8k", "--rounds", "2", "--after", "touch ran; sleep 9"][..],
        &target,
    ];
    let mut child =
        assay(&sandbox, &begin.concat()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let begun = Instant::now();
    // The hook runs where assay does.
    while !sandbox.path().join("ran").exists() {
        assert!(begun.elapsed() < PATIENCE);
        std::thread::sleep(Duration::from_millis(10));
    }
    kill_all(&sandbox);
    child.wait().unwrap();
    assert!(!left_behind(&sandbox, 0).is_empty());
    std::fs::remove_file(sandbox.path().join("ran")).unwrap();
    let mut child = assay(&sandbox, &["run", "--resume", "1", "-q"]).stdout(Stdio::null()).spawn().unwrap();
    while !sandbox.path().join("ran").exists() {
        assert!(begun.elapsed() < 2 * PATIENCE);
        std::thread::sleep(Duration::from_millis(10));
    }
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
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
        "run",
        "job.fio",
        "--plan",
        "-t",
        "loop:32m",
        "-t",
        "scheduler=none",
        "--vary",
        "fs=ext4,tmpfs",
        "-t",
        "fresh=run",
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
    assert!(Command::new("partx").args(["-a", &name]).status().unwrap().success());
    let partition = format!("{name}p1");
    assert!(Command::new("/usr/sbin/mkfs.ext4").args(["-q", &partition]).status().unwrap().success());
    let point = sandbox.path().join("own-mount");
    std::fs::create_dir(&point).unwrap();
    assert!(Command::new("mount").arg(&partition).arg(&point).status().unwrap().success());
    let output = run(&sandbox, &[&["run", "job.fio", "-q"][..], &named].concat());
    assert!(Command::new("umount").arg(&point).status().unwrap().success());
    assert!(Command::new("partx").args(["-d", &name]).status().unwrap().success());
    let said = errors(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("is in use: mounted at ") && said.contains("hint: unmount or release"), "{said}");
}
