//! What the limits that a shell or a service manager sets (`ulimit`, capabilities) make of a job: what is certainly too
//! much is refused, what is enough runs, and the rest ends with one clear error.

use std::os::unix::fs::PermissionsExt;

use assay::record::Status;

use crate::failing_case::{Case, PLAIN};
use crate::sandbox::{Sandbox, errors};
use crate::tools::{available, is_root};

/// What assay's own limits make of a job: `prlimit` sets them.
/// A soft limit that is too low is raised as far as the hard one lets it.
#[test]
fn the_limit_of_open_files_is_raised() {
    if !available("prlimit") {
        return;
    }
    let sandbox = Sandbox::new();
    let case = Case {
        job: "[w]\nrw=write\nbs=4k\nsize=800k\nnrfiles=${X}\n",
        good: "100",
        bad: "200",
        under: &["prlimit", "--nofile=64:4096"],
        ..PLAIN
    };
    succeeds(&case, &sandbox);
}

/// Both levels run.
fn succeeds(case: &Case, sandbox: &Sandbox) {
    let output = case.prepared(sandbox).output().unwrap();
    assert!(output.status.success(), "{}", errors(&output));
    let run = sandbox.export("1");
    assert_eq!(run.trials.len(), 2);
    assert!(run.trials.iter().all(|trial| trial.status == Status::Done), "{:?}", run.trials);
}

/// The kernel asks for a capability, not for a user.
#[test]
fn locked_memory_is_limited_without_the_capability_only() {
    if !is_root() || !available("prlimit") || !available("setpriv") {
        return;
    }
    let sandbox = Sandbox::new();
    std::fs::set_permissions(sandbox.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    let job = "[r]\nrw=read\nbs=4k\nsize=64k\nlockmem=${X}\n";
    let case = |under| Case { job, good: "4k", bad: "1m", under, ..PLAIN };
    let user = ["--reuid=65534", "--regid=65534", "--clear-groups"];
    let [few, with, without] = ["--memlock=65536", "--inh-caps=+ipc_lock", "--inh-caps=-ipc_lock"];
    let under = ["prlimit", few, "setpriv", with, "--ambient-caps=+ipc_lock", user[0], user[1], user[2]];
    succeeds(&case(&under), &sandbox);
    // As root it works in no directory that others can change.
    std::fs::set_permissions(sandbox.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let under = ["prlimit", few, "setpriv", without, "--bounding-set=-ipc_lock"];
    let words = ["job 'r'", "lockmem", "RLIMIT_MEMLOCK is 65536", "ulimit -l"];
    Case { words: &words, refused: true, ..case(&under) }.fails(&sandbox);
}
