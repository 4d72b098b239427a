//! Whether a run lives is known by a lock that the kernel holds for it, not by a number that others have, too.

use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::sandbox::{Sandbox, errors};
use crate::target_bench::{JOB, PATIENCE, can_make, paused_at, succeed};
use crate::tools::{available, is_root};

#[test]
fn from_another_pid_namespace_a_living_run_is_not_cleaned_up() {
    if !can_make() || !is_root() || !available("unshare") {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.write("job.fio", JOB);
    let child =
        paused_at(&sandbox, "stack", &["run", "job.fio", "-q", "--vary", "bs=4k,8k", "-t", "fs=tmpfs"]);
    let there = |sandbox: &Sandbox| sandbox.names().into_iter().find(|name| name.starts_with("assay-"));
    let work = there(&sandbox);
    assert!(work.is_some());
    for command in [&["cleanup"][..], &["run", "--resume", "1"]] {
        let output = sandbox
            .command("unshare")
            .args(["--pid", "--fork", "--mount-proc", env!("CARGO_BIN_EXE_assay")])
            .args(command)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned() + &errors(&output);
        let words = if command[0] == "cleanup" { "nothing was left behind" } else { "is being executed" };
        assert!(said.contains(words), "{said}");
        assert_eq!(there(&sandbox), work, "{said}");
    }
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(130));
    assert_eq!(there(&sandbox), None);
}

#[test]
fn a_number_that_was_given_out_again_keeps_nothing_from_cleanup() {
    if !can_make() {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.write("job.fio", JOB);
    let mut child =
        paused_at(&sandbox, "stack", &["run", "job.fio", "-q", "--vary", "bs=4k,8k", "-t", "fs=tmpfs"]);
    crate::target_bench::kill_all(&sandbox);
    child.wait().unwrap();
    sandbox.no_process_left(PATIENCE);
    // Whatever process has the store's number now: the owner in the store is only a name.
    let me = format!("{} 1", std::process::id());
    super::victims::sql(&sandbox.path().join("assay.db"), &format!("UPDATE run SET owner = '{me}'"));
    assert!(succeed(&sandbox, &["cleanup"]).contains("removed "));
    // Two that clean up at once do not hinder each other.
    let both: Vec<_> = (0..2)
        .map(|_| {
            let program = env!("CARGO_BIN_EXE_assay");
            let mut command: Command = sandbox.command(program);
            command.arg("cleanup").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    for child in both {
        assert!(child.wait_with_output().unwrap().status.success());
    }
}
