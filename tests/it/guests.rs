//! Kernels booted in virtual machines, from the command line to what is left afterwards: nothing.
//!
//! These need qemu and two kernel packages in target/kernels (`make kernels`); where that is missing they say so, and fail in CI.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use assay::record::{Run, Status};
use rustix::fs::{FlockOperation, flock};
use rustix::process::{Pid, Signal, kill_process};

use crate::sandbox::{Sandbox, errors, failure};
use crate::tools;

pub(crate) const JOB: &str = "[w]\nrw=write\nbs=64k\nsize=4m\nend_fsync=1\n";
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// The 6.1 and the 6.12 package, and the right to boot them.
pub(crate) fn kernels() -> Option<([String; 2], File)> {
    packages().map(|packages| (packages, turn()))
}

/// Whoever holds one of these may boot a guest, in whatever process: emulated guests take a processor each. There are two where a file named
/// `two-guests` is, which scripts/test.sh makes when nothing but guests is left.
fn turn() -> File {
    let place = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let locks = [0, 1].map(|number| File::create(place.join(format!("guest-{number}.lock"))).unwrap());
    loop {
        let open = if place.join("two-guests").exists() { 2 } else { 1 };
        let free = |lock: &&File| flock(lock, FlockOperation::NonBlockingLockExclusive).is_ok();
        if let Some(lock) = locks[..open].iter().find(free) {
            return lock.try_clone().unwrap();
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// The 6.1 and the 6.12 package, for tests that boot nothing.
pub(crate) fn packages() -> Option<[String; 2]> {
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/kernels");
    let of = |series: &str| -> Option<String> {
        let entries = std::fs::read_dir(&place).ok()?.flatten();
        let mut paths: Vec<String> =
            entries.map(|entry| entry.path().to_string_lossy().into_owned()).collect();
        paths.sort();
        paths
            .into_iter()
            .find(|path| path.contains(&format!("linux-image-{series}.")) && path.ends_with(".deb"))
    };
    let both = of("6.1").zip(of("6.12"));
    if both.is_none() {
        tools::skipped("target/kernels has no two kernels; `make kernels` fetches them");
    }
    let (old, new) = both.filter(|_| tools::available("qemu-system-x86_64"))?;
    Some([old, new])
}

/// A cache that all tests share: a package is unpacked once.
pub(crate) fn shared_cache() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache")
}

/// The program with that cache. What was compiled is kept with the user's own, where it outlives this tree.
pub(crate) fn assay(sandbox: &Sandbox, arguments: &[&str]) -> Command {
    let mut command = sandbox.assay(arguments);
    command.env("XDG_CACHE_HOME", shared_cache());
    let of = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let users = of("XDG_CACHE_HOME").or_else(|| Some(of("HOME")?.join(".cache")));
    if let (None, Some(users)) = (of("CCACHE_DIR"), users) {
        command.env("CCACHE_DIR", users.join("ccache"));
    }
    command
}

pub(crate) fn run(sandbox: &Sandbox, arguments: &[&str]) -> Output {
    assay(sandbox, arguments).output().unwrap()
}

pub(crate) fn succeed(sandbox: &Sandbox, arguments: &[&str]) -> Run {
    let output = run(sandbox, arguments);
    assert!(output.status.success(), "{}", failure(arguments, &output));
    nothing_left(sandbox);
    sandbox.export("1")
}

pub(crate) fn nothing_left(sandbox: &Sandbox) {
    sandbox.no_process_left(Duration::from_secs(30));
    let left: Vec<String> = sandbox.names().into_iter().filter(|name| name.starts_with("assay-")).collect();
    assert_eq!(left, Vec::<String>::new());
}

pub(crate) fn fact<'r>(run: &'r Run, trial: usize, name: &str) -> &'r str {
    run.trials[trial].facts.and_then(|at| run.facts[at as usize].get(name)).unwrap_or_default()
}

pub(crate) fn value(run: &Run, trial: usize, metric: &str) -> Option<f64> {
    let at = run.metrics.iter().position(|known| known.name == metric)?;
    run.trials[trial].values.iter().find(|(known, _)| *known as usize == at).map(|(_, value)| *value)
}

/// `6.1.0-50-amd64` of its package's path.
fn release(package: &str) -> &str {
    let name = package.rsplit('/').next().unwrap();
    name.strip_prefix("linux-image-").unwrap().split('_').next().unwrap()
}

#[test]
fn a_guest_that_all_trials_share_is_booted_once() {
    let Some((kernels, _alone)) = kernels() else { return };
    let sandbox = Sandbox::new();
    sandbox.write("job.fio", JOB);
    let kernel = format!("kernel={}", kernels[1]);
    let words = ["run", "job.fio", "-q", "--vary", "bs=16k,64k", "--rounds", "3", "-t", &kernel];
    // What is made for the run is made for each round there, also where the guest runs on.
    let words = [&words[..], &["-t", "ram:64m", "-t", "fs=ext4", "-t", "fresh=run"]].concat();
    let plan = run(&sandbox, &[&words[..], &["--plan"]].concat());
    let plan = String::from_utf8(plan.stdout).unwrap();
    assert!(
        plan.contains("boots, once for all trials\n  1 guest, about ")
            && plan.contains("made for each round, which"),
        "{plan}"
    );
    let run = succeed(&sandbox, &words);
    let boots: BTreeSet<&str> = (0..run.trials.len()).map(|at| fact(&run, at, "now.guest.boot_s")).collect();
    assert_eq!((run.trials.len(), boots.len()), (6, 1), "{boots:?}");
    let shown = sandbox.succeed(&["show", "1"]);
    assert!(run.trials.iter().all(|trial| trial.status == Status::Done), "{shown}");
    nothing_left(&sandbox);
}

#[test]
fn two_kernels_are_compared_on_the_same_job() {
    let Some((kernels, _alone)) = kernels() else { return };
    let sandbox = Sandbox::new();
    // It waits for its disk, and long enough for a count in ticks.
    let job = JOB.replace("end_fsync=1", "direct=1").replace("size=4m", "size=16m");
    sandbox.write("job.fio", &job);
    let vary = format!("kernel={},{}", kernels[0], kernels[1]);
    let words = ["run", "job.fio", "-q", "--vary", &vary, "--vary", "bs=16k,64k", "--rounds", "4"];
    let target = ["--target", "virtio_blk:64m:cache=unsafe", "--target", "fs=ext4"];
    // With it the kernel counts what tasks wait for. An emulator with several processors may end while its guest is watched.
    let target = [&target[..], &["--target", "kernel_args=delayacct", "--target", "cpus=1"]].concat();
    let begun = Instant::now();
    let run = succeed(&sandbox, &[&words[..], &target[..]].concat());
    assert!(begun.elapsed() < Duration::from_secs(1000), "{:?}", begun.elapsed());
    assert_eq!(run.trials.len(), 16);
    let mut storage_counted = false;
    // Kernel facts are the guest's, and each round and arm has a boot of its own.
    let mut boots: BTreeMap<(u32, u32), BTreeSet<String>> = BTreeMap::new();
    for (at, trial) in run.trials.iter().enumerate() {
        assert_eq!(trial.status, Status::Done, "{trial:?}");
        let arm = run.cells[trial.cell as usize].levels[0];
        assert_eq!(fact(&run, at, "kernel.release"), release(&kernels[arm as usize]));
        assert_eq!(fact(&run, at, "fs.type"), "ext4");
        let wall = value(&run, at, "workers.wall").unwrap();
        // What is left out was counted since boot.
        if let Some(storage) = value(&run, at, "workers.storage_wait") {
            assert!(storage <= wall + 0.01, "{storage} of {wall} s: {trial:?}");
            storage_counted |= storage > 0.0;
        }
        assert!(fact(&run, at, "guest.accelerator").starts_with(['k', 't']));
        assert_eq!(fact(&run, at, "kernel.config_digest").len(), 16);
        boots.entry((trial.round, arm)).or_default().insert(fact(&run, at, "now.guest.boot_s").to_owned());
    }
    assert!(storage_counted, "no trial waited for its disk");
    assert_eq!(boots.len(), 8);
    assert!(boots.values().all(|times| times.len() == 1), "{boots:?}");
    let report = String::from_utf8(self::run(&sandbox, &["report", "1"]).stdout).unwrap();
    let plain = report.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(plain.contains(&format!("kernel={}", release(&kernels[1]))), "{report}");
    assert!(
        ["faster", "slower", "no difference", "undecided"].iter().any(|word| plain.contains(word)),
        "{report}"
    );
    if fact(&run, 0, "guest.accelerator").starts_with("tcg") {
        for format in ["text", "markdown", "html", "lkml"] {
            let report = sandbox.succeed(&["report", "1", "--format", format]);
            let plain = report.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(plain.contains("guests were run in an emulated processor"), "{format}: {report}");
        }
    }
    // What such a run will cost is known before it is begun.
    let plan = self::run(&sandbox, &[&words[..], &target[..], &["--plan"]].concat());
    let plan = String::from_utf8(plan.stdout).unwrap();
    assert!(plan.contains("\n  2 guests, about ") && plan.contains("\n  8 boots at most: "), "{plan}");
    // Where a guest ended under KVM without a word, KVM is tried again: what comes of that is not known.
    if !plan.contains("KVM, not tried since this machine was started") {
        assert!(plan.contains(" (as the last one)"), "{plan}");
        let emulated = plan.contains("times under emulation are no measurement of the hardware");
        assert_eq!(emulated, fact(&run, 0, "guest.accelerator").starts_with("tcg"), "{plan}");
    }
    let doctor = String::from_utf8(self::run(&sandbox, &["doctor"]).stdout).unwrap();
    assert!(doctor.contains("\nguests   qemu ") && doctor.contains(release(&kernels[0])), "{doctor}");
    watched_beside_unwatched_twins(&sandbox);
}

/// The same guests watched: each cell once, beside its unwatched twin.
fn watched_beside_unwatched_twins(sandbox: &Sandbox) {
    let words =
        ["explain", "1", "-q", "--rounds", "1", "--keep-traces", "--only", "cpu,locks,waits,calls,blocks,fs"];
    let output = run(sandbox, &words);
    assert!(output.status.success(), "{}", failure(&words, &output));
    nothing_left(sandbox);
    let explained = sandbox.export("2");
    assert!(explained.design.explains.is_some() && explained.trials.len() == 12, "{:?}", explained.design);
    assert!(explained.trials.iter().all(|trial| trial.status == Status::Done), "{:?}", explained.trials);
    for observer in ["cpu", "locks", "waits", "calls", "blocks", "fs"] {
        let lost = format!("{observer}.lost");
        let watched = (0..12).filter(|at| value(&explained, *at, &lost).is_some()).count();
        assert_eq!(watched, 4, "{observer}: {:?}", explained.trials);
    }
    let words = ["report", "1", "--verbose"];
    let report = String::from_utf8(run(sandbox, &words).stdout).unwrap();
    assert!(report.contains("price of watching"), "{report}");
}

#[test]
fn dax_in_a_guest_is_mounted_and_faster() {
    let Some((kernels, _alone)) = kernels() else { return };
    if !tools::available("xz") || !tools::installed("mkfs.xfs") {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.write("job.fio", "[w]\nrw=write\nbs=64k\nsize=32m\nend_fsync=1\n");
    let kernel = format!("kernel={}", kernels[1]);
    let words = ["run", "job.fio", "-q", "--vary", "mount=dax=never,dax=always", "--rounds", "3"];
    let target = ["-t", "pmem:512m", "-t", "fs=xfs", "-t", "state=overwrite", "-t", &kernel];
    let run = succeed(&sandbox, &[&words[..], &target[..]].concat());
    let mut times: [Vec<f64>; 2] = Default::default();
    for (at, trial) in run.trials.iter().enumerate() {
        let dax = run.cells[trial.cell as usize].levels[0] as usize;
        let options = fact(&run, at, "mount.options");
        assert_eq!(options.contains("dax=always"), dax == 1, "{options}");
        times[dax].push(value(&run, at, "runtime").unwrap());
    }
    let middle = |times: &mut Vec<f64>| {
        times.sort_by(f64::total_cmp);
        times[1]
    };
    let [cached, dax] = &mut times;
    assert!(middle(dax) < middle(cached), "dax {dax:?}, page cache {cached:?}");
}

#[test]
fn guest_and_host_count_the_same() {
    let Some((kernels, _alone)) = kernels() else { return };
    let sandbox = Sandbox::new();
    sandbox.write("job.fio", "[m]\nrw=randrw\nrwmixread=70\nbs=4k\nsize=8m\nio_size=6m\nnumjobs=2\n");
    let vary = format!("kernel=host,{}", kernels[0]);
    let run = succeed(
        &sandbox,
        &["run", "job.fio", "-q", "--engine", "null", "--vary", &vary, "--rounds", "1", "--seed", "7"],
    );
    assert_eq!(run.trials.len(), 2);
    assert_ne!(fact(&run, 0, "kernel.release"), fact(&run, 1, "kernel.release"));
    let mut compared = 0;
    for metric in &run.metrics {
        let counted = ["total_ios", "io_bytes", "short_ios", "drop_ios", "total_err"];
        if counted.iter().any(|name| metric.name.ends_with(name)) {
            let values = [value(&run, 0, &metric.name), value(&run, 1, &metric.name)];
            assert_eq!(values[0], values[1], "{}", metric.name);
            compared += usize::from(values[0].is_some());
        }
    }
    assert!(compared >= 4, "{:?}", run.metrics);
}

#[test]
fn a_guest_that_dies_ends_its_trial_with_its_last_words() {
    let Some((kernels, _alone)) = kernels() else { return };
    let sandbox = Sandbox::new();
    let kernel = format!("kernel={}", kernels[0]);
    // The last level fills the memory: there the kernel ends the program, and the guest lives on.
    let vary = "how=true,echo c > /proc/sysrq-trigger,tail /dev/zero";
    let words = ["run", "-q", "-t", &kernel, "-t", "memory=300m", "--vary", vary, "--rounds", "1"];
    let output = run(&sandbox, &[&words[..], &["--", "sh", "-c", "${how}"]].concat());
    nothing_left(&sandbox);
    let run = sandbox.export("1");
    let of = |cell: u32| run.trials.iter().filter(move |trial| trial.cell == cell);
    assert!(of(0).any(|trial| trial.status == Status::Done), "{}", errors(&output));
    let died = ["the guest died during the trial", "sysrq: Trigger a crash", "Kernel panic"];
    let out_of_memory = ["'sh' ended", "Out of memory", "tail"];
    for (cell, expected) in [(1, died), (2, out_of_memory)] {
        assert_eq!(of(cell).count(), 2, "tried once more: {}", errors(&output));
        for trial in of(cell) {
            let Status::Failed { reason, output, .. } = &trial.status else { panic!("{:?}", trial.status) };
            assert!(reason.starts_with(expected[0]), "{reason}");
            assert!(expected[1..].iter().all(|words| output.contains(words)), "{output}");
        }
    }
}

#[test]
fn no_guest_outlives_assay() {
    let Some((kernels, _alone)) = kernels() else { return };
    let kernel = format!("kernel={}", kernels[0]);
    for signal in [Signal::INT, Signal::KILL] {
        let sandbox = Sandbox::new();
        let words =
            ["run", "-q", "-t", &kernel, "--vary", "n=1,2", "--rounds", "1", "--", "sh", "-c", "sleep ${n}0"];
        let mut command = assay(&sandbox, &words);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let begun = Instant::now();
        while !sandbox.processes().iter().any(|(_, line)| line.contains("qemu-system")) {
            assert!(begun.elapsed() < PATIENCE, "no guest was started");
            std::thread::sleep(Duration::from_millis(50));
        }
        std::thread::sleep(Duration::from_millis(500));
        kill_process(Pid::from_child(&child), signal).unwrap();
        let status = child.wait().unwrap();
        sandbox.no_process_left(Duration::from_secs(30));
        if signal == Signal::INT {
            assert_eq!(status.code(), Some(130));
        } else {
            sandbox.succeed(&["cleanup"]);
        }
        nothing_left(&sandbox);
    }
}

/// Exit code 2, these words, and nothing made.
pub(crate) fn refused(sandbox: &Sandbox, arguments: &[&str], expected: &str) {
    let output = run(sandbox, arguments);
    let said = errors(&output);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
    assert!(said.contains(expected), "{arguments:?}: {said}");
    assert!(said.contains("hint: "), "{arguments:?}: {said}");
    assert!(!sandbox.path().join("assay.db").exists());
    nothing_left(sandbox);
}

/// A header of a kernel that has no modules.
fn bare_kernel(sandbox: &Sandbox) -> PathBuf {
    let mut bytes = vec![0_u8; 0x400];
    bytes[0x202..0x206].copy_from_slice(b"HdrS");
    bytes[0x20e..0x210].copy_from_slice(&0x100_u16.to_le_bytes());
    bytes[0x300..0x30a].copy_from_slice(b"9.9.9-none");
    std::fs::create_dir_all(sandbox.path().join("lib/modules/9.9.9-none")).unwrap();
    let path = sandbox.path().join("vmlinuz");
    std::fs::write(&path, bytes).unwrap();
    path
}

#[test]
fn what_cannot_be_booted_is_refused_before_anything_is_made() {
    let sandbox = Sandbox::new();
    sandbox.write("job.fio", JOB);
    let common = ["run", "job.fio", "--vary", "bs=4k,8k", "-t"];
    let with = |more: &[&'static str]| -> Vec<&'static str> { [&common[..], more].concat() };
    refused(&sandbox, &with(&["kernel=nowhere"]), "kernel=nowhere: no such file");
    refused(&sandbox, &with(&["virtio_blk:64m"]), "virtio_blk is a disk of guests");
    refused(&sandbox, &with(&["memory=1g"]), "memory is a guest's, and no kernel is given");
    if !tools::available("qemu-system-x86_64") {
        return;
    }
    refused(&sandbox, &with(&["kernel=job.fio"]), "is too short for a kernel");
    bare_kernel(&sandbox);
    refused(&sandbox, &with(&["kernel=vmlinuz"]), "kernel 9.9.9-none has no virtio_pci");
    refused(&sandbox, &with(&["kernel=vmlinuz", "-t", "/dev/sda"]), "a guest does not have it");
    sandbox.write("job.fio", "[w]\nrw=write\nfilename=/dev/nothing\nsize=1m\n");
    refused(&sandbox, &with(&["kernel=vmlinuz"]), "the job names /dev/nothing, which is this machine's");
    sandbox.write("job.fio", JOB);
    // Without the emulator.
    let output = assay(&sandbox, &with(&["kernel=vmlinuz"])).env("PATH", "/nowhere").output().unwrap();
    let said = errors(&output);
    if !Path::new("/usr/sbin/qemu-system-x86_64").exists() {
        assert!(said.contains("there is no qemu-system-x86_64, which is needed to boot a kernel"), "{said}");
        assert!(said.contains("apt-get install qemu-system-x86"), "{said}");
    } else {
        tools::impossible_here("qemu is in /usr/sbin, where it is found without PATH");
    }
}

/// Neither a store nor a guest is needed for it.
#[test]
fn cleanup_empties_the_cache_but_for_what_people_put_there() {
    use std::os::unix::fs::DirBuilderExt;
    let sandbox = Sandbox::new();
    let cache = sandbox.path().join("cache/assay");
    let lay = |name: &str| {
        let path = cache.join(name);
        let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path.parent().unwrap());
        made.and_then(|()| std::fs::write(&path, vec![1; 1 << 20])).unwrap();
        path
    };
    let unpacked = lay("kernels/0123456789abcdef/boot/vmlinuz");
    let packed = lay("initramfs/0123456789abcdef.cpio");
    let own = lay("kernels/linux-image-mine.deb");
    let clean = |more: &[&str]| {
        let words = [&["cleanup", "--cache"], more].concat();
        let output =
            sandbox.assay(&words).env("XDG_CACHE_HOME", sandbox.path().join("cache")).output().unwrap();
        assert!(output.status.success(), "{}", failure(&words, &output));
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(clean(&["--dry-run"]).contains("would remove 2 of sources and kernels (2 MiB) from the cache"));
    assert!(unpacked.exists() && packed.exists());
    let said = clean(&[]);
    assert!(said.contains("removed 2 of sources and kernels (2 MiB) from the cache"), "{said}");
    assert!(!unpacked.exists() && !packed.exists() && own.exists());
    assert!(clean(&[]).contains("removed 0 of sources and kernels"));
}
