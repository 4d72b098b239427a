//! A device is the disk that was named, not whichever has its name by now.

use assay::engine::{EngineKind, Task};
use assay::launch::{Answer, PROTOCOL, Request};
use assay::target::{ClaimedDevice, TargetSpec, WorkDirectory};

use super::victims::sum;
use crate::loop_device::NumberedLoop;
use crate::native_engine::{answered, asked};
use crate::sandbox::{Sandbox, errors};
use crate::target_bench::can_make;

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
