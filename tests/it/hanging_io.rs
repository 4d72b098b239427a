//! I/O that never comes: a filesystem is frozen (FIFREEZE), and its writers hang in the kernel where no signal reaches
//! them. assay ends its trial all the same, says who is left, and goes on.

use std::path::Path;
use std::process::{Child, Output, Stdio};
use std::time::{Duration, Instant};

use assay::record::{FailureKind, Status};
use rustix::process::{Pid, Signal, kill_process};

use crate::failing_case::unwrapped;
use crate::open_loop::Frozen;
use crate::sandbox::{Sandbox, errors};
use crate::tools::available;

/// Two jobs on the frozen filesystem: a process, and a thread of the agent.
fn job(at: &Path) -> String {
    let named = |name: &str| {
        format!("[{name}]\nfilename={}/{name}\nthread={}\n", at.display(), u8::from(name == "thread"))
    };
    let global = "[global]\nrw=randwrite\nbs=4k\nsize=64k\ndirect=1\noverwrite=1\nthinktime=${X}\ntime_based\nruntime=60\n";
    format!("{global}{}{}", named("process"), named("thread"))
}

/// Starts `assay run`, and freezes when a trial has been at work for a second.
fn frozen_meanwhile(sandbox: &Sandbox, frozen: &Frozen, words: &[&str]) -> Child {
    let begun = sandbox.path().join("begun");
    let hook = format!("touch {}", begun.display());
    let common = ["run", "--vary", "X=1ms,2ms", "--rounds", "1", "--before", &hook];
    let mut command = sandbox.assay(&[&common[..], words].concat());
    // Layout has no other limit: the second trial comes no further.
    command.env("ASSAY_TEST_STALL_S", "3").stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let since = Instant::now();
    while !begun.exists() {
        assert!(since.elapsed() < Duration::from_secs(60) && child.try_wait().unwrap().is_none());
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_secs(1));
    assert!(frozen.set(true), "fsfreeze");
    child
}

/// Its end, within `patience`; thawed then, whether or not it came.
fn ended(sandbox: &Sandbox, frozen: &Frozen, mut child: Child, patience: Duration) -> Output {
    let since = Instant::now();
    while child.try_wait().unwrap().is_none() && since.elapsed() < patience {
        std::thread::sleep(Duration::from_millis(20));
    }
    let in_time = since.elapsed() < patience;
    assert!((0..20).any(|_| frozen.set(false)), "fsfreeze");
    let output = child.wait_with_output().unwrap();
    assert!(in_time, "it hangs: {}", errors(&output));
    sandbox.no_process_left(Duration::from_secs(30));
    output
}

#[test]
fn jobs_that_cannot_be_killed_end_their_trials() {
    let sandbox = Sandbox::new();
    let base = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let Some(frozen) = Frozen::mount(base.path()) else { return };
    sandbox.write("job.fio", &job(&frozen.at));
    let child = frozen_meanwhile(&sandbox, &frozen, &["job.fio", "--timeout", "10s"]);
    let output = ended(&sandbox, &frozen, child, Duration::from_secs(300));
    let said = errors(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("takes no changes"), "{said}");
    sandbox.succeed(&["cleanup"]);
    let run = sandbox.export("1");
    assert_eq!(run.trials.len(), 2, "none is tried again: {said}");
    let expected = [
        // A process of the job, and the agent itself.
        [
            "longer than the limit of 10 s and was stopped; processes ",
            " cannot be ended: they hang in the kernel",
        ],
        // Laying out.
        ["no progress: process ", " cannot be ended: it hangs in the kernel"],
    ];
    for (trial, words) in run.trials.iter().zip(expected) {
        let Status::Failed { reason, kind, .. } = &trial.status else { panic!("{:?}", trial.status) };
        assert!(words.iter().all(|words| reason.contains(words)), "{reason}");
        assert_eq!(*kind, FailureKind::Lasting);
        assert!(unwrapped(&said).contains(&unwrapped(reason)), "'{reason}' is not told: {said}");
    }
}

#[test]
fn ctrl_c_ends_a_run_whose_jobs_cannot_be_killed() {
    let sandbox = Sandbox::new();
    let base = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let Some(frozen) = Frozen::mount(base.path()) else { return };
    sandbox.write("job.fio", &job(&frozen.at));
    let child = frozen_meanwhile(&sandbox, &frozen, &["job.fio", "--timeout", "600s"]);
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let output = ended(&sandbox, &frozen, child, Duration::from_secs(300));
    let said = errors(&output);
    // Its files are not removed: whoever tried would hang as well.
    assert_eq!(output.status.code(), Some(1), "{said}");
    for words in
        ["cannot remove ", "takes no changes, who makes one hangs in the kernel", "hint: assay cleanup tries"]
    {
        assert!(said.contains(words), "{words}: {said}");
    }
    assert!(sandbox.export("1").trials.is_empty());
    sandbox.succeed(&["cleanup"]);
    assert!(!frozen.at.join("process").exists());
}

/// No limit was given.
#[test]
fn a_command_whose_write_never_comes_is_ended() {
    if !available("perl") {
        return;
    }
    let sandbox = Sandbox::new();
    let base = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let Some(frozen) = Frozen::mount(base.path()) else { return };
    let script = format!(
        "open(F, '>>', '{}/data'); $x = '${{X}}'; while (1) {{ syswrite(F, 'data'); select(undef, undef, undef, 0.01) }}",
        frozen.at.display()
    );
    let child = frozen_meanwhile(&sandbox, &frozen, &["--", "perl", "-e", &script]);
    let output = ended(&sandbox, &frozen, child, Duration::from_secs(300));
    let said = errors(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("(perl) has waited for I/O for 3 s in one go"), "{said}");
}
