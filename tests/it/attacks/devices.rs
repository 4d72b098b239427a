//! A device is the disk that was named, not whichever has its name by now.

use std::path::Path;
use std::process::Command;

use assay::engine::{EngineKind, Task};
use assay::launch::{Answer, PROTOCOL, Request};
use assay::target::{ClaimedDevice, TargetSpec, WorkDirectory};

use super::victims::sum;
use crate::failing_case::Mounted;
use crate::loop_device::{LoopDevice, NumberedLoop};
use crate::native_engine::{answered, asked};
use crate::sandbox::{Sandbox, errors};
use crate::target_bench::{PATIENCE, can_make, kill_all};

#[test]
fn a_run_does_not_go_on_on_another_disk_of_the_same_name() {
    if !can_make() {
        return;
    }
    let sandbox = Sandbox::new();
    let device = NumberedLoop::new(&sandbox, "own.img");
    let name = device.name();
    sandbox.write("job.fio", &format!("[w]\nrw=write\nbs=${{BS}}\nsize=1m\nfilename={name}\n"));
    let words = ["run", "job.fio", "-q", "--vary", "BS=4k,8k", "--rounds", "2", "--destroy", &name];
    sandbox.succeed(&words);
    let store = sandbox.path().join("assay.db");
    super::victims::sql(
        &store,
        "UPDATE run SET state = '\"interrupted\"'; DELETE FROM value; DELETE FROM histogram; DELETE FROM series;
         DELETE FROM trial WHERE round = 1",
    );
    let victim = device.exchange(&sandbox);
    let before = sum(&victim);
    let output = sandbox.run(&["run", "--resume", "1"]);
    assert_eq!(output.status.code(), Some(2), "{}", errors(&output));
    assert!(errors(&output).contains("is another disk now"), "{}", errors(&output));
    assert_eq!(sum(&victim), before);
    // A store cannot say that it is the same one.
    super::victims::sql(&store, "DELETE FROM claim");
    let output = sandbox.run(&["run", "--resume", "1"]);
    assert_eq!(output.status.code(), Some(2), "{}", errors(&output));
    assert_eq!(sum(&victim), before);
}

/// What a launcher asks of an agent before each trial.
#[test]
fn a_trial_on_another_disk_than_the_one_claimed_does_not_begin() {
    if !can_make() {
        return;
    }
    let sandbox = Sandbox::new();
    let device = NumberedLoop::new(&sandbox, "own.img");
    let before = sum(&device.path);
    let work = WorkDirectory::create(&sandbox.path().join("assay-1")).unwrap();
    let job = format!("[w]\nrw=write\nbs=4k\nsize=1m\nfilename={}\n", device.name());
    let claimed = ClaimedDevice::of(std::slice::from_ref(&device.path));
    let mut other = serde_json::to_value(&claimed).unwrap();
    other[0]["identity"]["sequence"] = 1.into();
    for (claimed, begins) in [(serde_json::from_value(other).unwrap(), false), (claimed, true)] {
        let target = TargetSpec { directory: work.path().to_owned(), claimed, ..TargetSpec::default() };
        let task = Task { job: Some(job.clone()), directory: work.path().to_owned(), ..Task::default() };
        let request = Request {
            protocol: PROTOCOL,
            engine: EngineKind::Native,
            task,
            target,
            rehearsal: false,
            observe: Vec::new(),
            before: None,
            after: None,
        };
        let reply = answered(asked(&request));
        assert_eq!(matches!(reply.answer, Answer::Done(_)), begins, "{reply:?}");
        assert_eq!(format!("{reply:?}").contains("is another disk now"), !begins, "{reply:?}");
        assert_eq!(sum(&device.path) == before, !begins);
    }
}

/// As long as a run lives it holds its device open, so that nothing else can get the name.
#[test]
fn a_disk_cannot_be_exchanged_during_a_run() {
    if !can_make() {
        return;
    }
    let sandbox = Sandbox::new();
    let device = NumberedLoop::new(&sandbox, "own.img");
    let name = device.name();
    let victim = sandbox.write("own.img.victim", &"7".repeat(16 << 20));
    sandbox.write("job.fio", &format!("[w]\nrw=write\nbs=${{BS}}\nsize=1m\nfilename={name}\n"));
    let before = sum(&victim);
    let hook = NumberedLoop::exchanging(&name, &victim);
    let words =
        ["run", "job.fio", "-q", "--vary", "BS=4k,8k", "--rounds", "2", "--destroy", &name, "--after", &hook];
    let output = sandbox.run(&words);
    assert!(!sandbox.path().join("exchanged").exists(), "{}", errors(&output));
    assert_eq!(sum(&victim), before, "{}", errors(&output));
}

/// A shell command that makes a filesystem on a device with something on it and mounts it at `at`, at its first call.
fn somebody_mounts(device: &str, at: &Path) -> String {
    let at = at.display();
    format!(
        "[ -e {at} ] || {{ mkfs.ext4 -q {device} && mkdir {at} && mount {device} {at} && echo precious > {at}/file; }}"
    )
}

/// Hours into a run somebody takes the disk that the job names for an empty one.
#[test]
fn a_device_that_somebody_has_mounted_meanwhile_is_written_to_no_more() {
    if !can_make() {
        return;
    }
    let sandbox = Sandbox::new();
    let device = LoopDevice::new(&sandbox, 64);
    let name = device.path.to_string_lossy().into_owned();
    sandbox.write("job.fio", &format!("[w]\nrw=write\nbs=${{BS}}\nsize=1m\nfilename={name}\n"));
    let at = sandbox.path().join("data");
    let hook = somebody_mounts(&name, &at);
    let words =
        ["run", "job.fio", "-q", "--vary", "BS=4k,8k", "--rounds", "2", "--destroy", &name, "--after", &hook];
    let output = sandbox.run(&words);
    let data = Mounted(at);
    assert_eq!(output.status.code(), Some(1), "{}", errors(&output));
    let said = errors(&output).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("is in use: mounted at"), "{said}");
    assert_eq!(std::fs::read_to_string(data.0.join("file")).unwrap(), "precious\n");
    drop(data);
    let checked = Command::new("fsck.ext4").args(["-fn", &name]).output().unwrap();
    assert!(checked.status.success(), "{checked:?}");
}

/// The filesystem of a killed run, which somebody has mounted to look into it.
#[test]
fn a_filesystem_of_a_killed_run_that_is_in_use_stays() {
    if !can_make() {
        return;
    }
    let sandbox = Sandbox::new();
    let device = LoopDevice::new(&sandbox, 64);
    let name = device.path.to_string_lossy().into_owned();
    sandbox.write("job.fio", "[w]\nrw=write\nbs=4k\nsize=64k\n");
    let wait =
        format!("touch {0}/waits; while [ ! -e {0}/go ]; do sleep 0.02; done", sandbox.path().display());
    let target = ["-t", &name, "-t", "fs=ext4", "--destroy", &name];
    let child = sandbox.start(&[&["run", "job.fio", "-q", "--aa", "--before", &wait], &target[..]].concat());
    let begun = std::time::Instant::now();
    while !sandbox.path().join("waits").exists() {
        assert!(begun.elapsed() < PATIENCE, "the hook never began");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    kill_all(&sandbox);
    drop(child.wait_with_output());
    let data = Mounted::new(&sandbox, "data", &[&name]).unwrap();
    std::fs::write(data.0.join("file"), "precious").unwrap();
    let said = sandbox.run(&["cleanup"]);
    let said = errors(&said).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        said.contains("is in use now (mounted at") && said.contains("the filesystem on it stays"),
        "{said}"
    );
    drop(data);
    let data = Mounted::new(&sandbox, "data", &[&name]).unwrap();
    assert_eq!(std::fs::read_to_string(data.0.join("file")).unwrap(), "precious");
}

/// A name of /dev that is misspelt, or of a disk that did not come up.
#[test]
fn no_file_is_made_among_the_devices() {
    let sandbox = Sandbox::new();
    let name = "/dev/no-such-disk-of-assay";
    sandbox.write("job.fio", &format!("[w]\nrw=write\nbs=${{BS}}\nsize=64k\nfilename={name}\n"));
    for engine in ["native", "fio"] {
        let words = ["run", "job.fio", "--vary", "BS=4k,8k", "--engine", engine, "--destroy", name, "--plan"];
        let output = sandbox.run(&words);
        assert_eq!(output.status.code(), Some(2), "{engine}: {}", errors(&output));
        assert!(errors(&output).contains("there is no /dev/no-such-disk-of-assay"), "{}", errors(&output));
    }
}
