//! What the tests of targets share: the program with a register of its own, what a run could have left, a loop device.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

pub(crate) use crate::loop_device::LoopDevice as Loop;
use crate::sandbox::{Sandbox, failure};
use crate::tools::{is_root, skipped};

pub(crate) const JOB: &str = "[w]\nrw=write\nbs=64k\nsize=1m\nfsync=4\n";

/// On a device itself.
pub(crate) const ON_DEVICE: &str = "[w]\nrw=randwrite\nbs=4k\nio_size=256k\n";

/// How long a program may take to come to a step, or to end.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Whether devices can be made here.
pub(crate) fn can_make() -> bool {
    let works = Path::new("/dev/loop-control").exists();
    if !works {
        skipped("this kernel has no /dev/loop-control");
    }
    works && is_root()
}

/// zram devices have numbers that the kernel gives out again, and until they have a size are all alike.
static ONE_ZRAM_TEST: Mutex<()> = Mutex::new(());

/// Whether zram devices can be made here; no other test makes any meanwhile.
pub(crate) fn zram() -> Option<MutexGuard<'static, ()>> {
    if !Path::new("/sys/class/zram-control/hot_add").exists() {
        skipped("this kernel has no zram-control");
        return None;
    }
    // A test that failed with them does not keep the others from trying.
    Some(ONE_ZRAM_TEST.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
}

pub(crate) fn assay(sandbox: &Sandbox, arguments: &[&str]) -> Command {
    sandbox.assay(arguments)
}

pub(crate) fn run(sandbox: &Sandbox, arguments: &[&str]) -> Output {
    assay(sandbox, arguments).output().unwrap()
}

pub(crate) fn succeed(sandbox: &Sandbox, arguments: &[&str]) -> String {
    let output = run(sandbox, arguments);
    assert!(output.status.success(), "{}", failure(arguments, &output));
    String::from_utf8(output.stdout).unwrap()
}

/// What a run of a sandbox could leave behind: loop devices and mounts below it, zram devices of this size.
pub(crate) fn left_behind(sandbox: &Sandbox, zram_bytes: u64) -> BTreeSet<String> {
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
    found.extend(sandbox.names().into_iter().filter(|name| name.starts_with("assay-")));
    if sandbox.records().exists() {
        found.insert("records".to_owned());
    }
    found
}

/// Starts a run that waits at a step of its set-up.
pub(crate) fn paused_at(sandbox: &Sandbox, step: &str, arguments: &[&str]) -> Child {
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
pub(crate) fn kill_all(sandbox: &Sandbox) {
    for (pid, _) in sandbox.processes() {
        let _ = kill_process(Pid::from_raw(pid as i32).unwrap(), Signal::KILL);
    }
    // One that is still ending holds the record of its run.
    let begun = Instant::now();
    while !sandbox.processes().is_empty() && begun.elapsed() < Duration::from_secs(5) {
        std::thread::sleep(Duration::from_millis(5));
    }
}

pub(crate) fn fact(sandbox: &Sandbox, run: &str, cell: u32, name: &str) -> String {
    let run = sandbox.export(run);
    let trial = run.trials.iter().find(|trial| trial.cell == cell).unwrap();
    run.facts[trial.facts.unwrap() as usize].get(name).unwrap_or("").to_owned()
}

/// A zram device that has no size: nobody else sets one up meanwhile.
pub(crate) struct EmptyZram {
    pub(crate) path: PathBuf,
    number: String,
    _alone: MutexGuard<'static, ()>,
}

impl EmptyZram {
    pub(crate) fn new() -> Option<EmptyZram> {
        if !is_root() {
            return None;
        }
        let alone = zram()?;
        let number = std::fs::read_to_string("/sys/class/zram-control/hot_add").unwrap().trim().to_owned();
        Some(EmptyZram { path: format!("/dev/zram{number}").into(), number, _alone: alone })
    }
}

impl Drop for EmptyZram {
    fn drop(&mut self) {
        let _ = std::fs::write("/sys/class/zram-control/hot_remove", &self.number);
    }
}
