//! Settings of the kernel that set each other, or that are not to be put back: the machine is afterwards as it was.

use std::fs::File;

use rustix::fs::{FlockOperation, flock};

use crate::loop_device::LoopDevice;
use crate::sandbox::{Sandbox, errors};
use crate::target_bench::{JOB, can_make, fact, kill_all, left_behind, paused_at, run, succeed};

const BYTES: &str = "/proc/sys/vm/dirty_background_bytes";
const RATIO: &str = "/proc/sys/vm/dirty_background_ratio";

/// The limit of the whole machine, put back when a test fails, and one test's alone.
struct Limit {
    before: [String; 2],
    _alone: File,
}

impl Limit {
    fn new() -> Limit {
        let alone = File::create(std::env::temp_dir().join("assay-test-limit.lock")).unwrap();
        flock(&alone, FlockOperation::LockExclusive).unwrap();
        Limit { before: Limit::now(), _alone: alone }
    }

    fn now() -> [String; 2] {
        [BYTES, RATIO].map(|path| std::fs::read_to_string(path).unwrap().trim().to_owned())
    }
}

impl Drop for Limit {
    fn drop(&mut self) {
        let at = usize::from(self.before[0] == "0");
        let _ = std::fs::write([BYTES, RATIO][at], &self.before[at]);
    }
}

#[test]
fn an_amount_is_put_back_to_the_share_it_replaced() {
    if !can_make() {
        return;
    }
    let limit = Limit::new();
    std::fs::write(RATIO, "11").unwrap();
    let sandbox = Sandbox::new();
    sandbox.write("job.fio", JOB);
    let vary = format!("sysfs:{BYTES}=16777216,1073741824");
    let words = ["run", "job.fio", "-q", "--vary", &vary, "--rounds", "2"];
    succeed(&sandbox, &words);
    let set = |cell: u32| fact(&sandbox, "1", cell, &format!("sysfs.{BYTES}"));
    assert_eq!([set(0), set(1)], ["16777216", "1073741824"]);
    assert_eq!(Limit::now(), ["0", "11"]);
    // After a kill as well.
    let mut child = paused_at(&sandbox, "knobs", &words);
    assert_eq!(Limit::now()[1], "0");
    kill_all(&sandbox);
    child.wait().unwrap();
    succeed(&sandbox, &["cleanup"]);
    assert_eq!(Limit::now(), ["0", "11"]);
    assert_eq!(left_behind(&sandbox, 0).len(), 0);
    drop(limit);
}

#[test]
fn a_share_is_put_back_to_the_amount_it_replaced() {
    if !can_make() {
        return;
    }
    let limit = Limit::new();
    std::fs::write(BYTES, "52428800").unwrap();
    let sandbox = Sandbox::new();
    sandbox.write("job.fio", JOB);
    // Both at once, too: only the last one set holds, and both come back.
    for target in [&[][..], &["-t", "sysfs:/proc/sys/vm/dirty_background_bytes=16777216"]] {
        let vary = format!("sysfs:{RATIO}=5,7");
        succeed(&sandbox, &[&["run", "job.fio", "-q", "--vary", &vary, "--rounds", "1"], target].concat());
        assert_eq!(Limit::now(), ["52428800", "0"]);
    }
    drop(limit);
}

#[test]
fn a_setting_that_cannot_be_put_back_is_not_changed() {
    if !can_make() {
        return;
    }
    // It can be read only; others take one value and never another again.
    let setting = "/proc/sys/kernel/osrelease";
    let sandbox = Sandbox::new();
    sandbox.write("job.fio", JOB);
    let target = format!("sysfs:{setting}=6");
    let output = run(&sandbox, &["run", "job.fio", "-q", "--vary", "bs=4k,8k", "-t", &target]);
    let said = errors(&output);
    assert_eq!(output.status.code(), Some(2), "nothing was touched: {said}");
    assert!(said.contains("osrelease could not be put back afterwards: "), "{said}");
    assert!(said.contains("hint: set it yourself before the run"), "{said}");
    assert_eq!(left_behind(&sandbox, 0).len(), 0);
    assert!(!sandbox.records().exists());
}

#[test]
fn what_the_kernel_changes_along_with_a_setting_is_put_back_too() {
    if !can_make() {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.write("job.fio", JOB);
    let device = LoopDevice::new(&sandbox, 64);
    let path = device.path.to_string_lossy().into_owned();
    let queue = |name: &str| device.sys().join("queue").join(name);
    let now = |name: &str| std::fs::read_to_string(queue(name)).unwrap().trim().to_owned();
    // Since Linux 6.9 each limit of the queue that is written sets the read-ahead to what the kernel thinks best.
    std::fs::write(queue("read_ahead_kb"), "16").unwrap();
    let largest = now("max_sectors_kb");
    let on = ["-t", &path, "--destroy", &path, "-q", "--rounds", "1"];
    let words = [&["run", "job.fio", "--vary", "sysfs:queue/iostats=1,0"][..], &on].concat();
    succeed(&sandbox, &words);
    assert_eq!((now("read_ahead_kb").as_str(), now("iostats").as_str()), ("16", "1"));
    // What is asked for holds in the trial, whichever is written first.
    let both = ["run", "job.fio", "--vary", "read_ahead=64,128", "-t", "sysfs:queue/max_sectors_kb=64"];
    succeed(&sandbox, &[&both[..], &on].concat());
    let set = |cell: u32| fact(&sandbox, "2", cell, "sysfs.queue/read_ahead_kb");
    assert_eq!([set(0), set(1)], ["64", "128"]);
    assert_eq!((now("read_ahead_kb").as_str(), now("max_sectors_kb")), ("16", largest));
    // After a kill as well.
    let mut child = paused_at(&sandbox, "knobs", &words);
    kill_all(&sandbox);
    child.wait().unwrap();
    succeed(&sandbox, &["cleanup"]);
    assert_eq!(now("read_ahead_kb"), "16");
    assert_eq!(left_behind(&sandbox, 0).len(), 0);
}
