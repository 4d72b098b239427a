//! What a user without root's rights can do: measure, report, look for why, and leave nothing.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::{Command, Output};

use crate::bad_inputs::without_privilege;
use crate::sandbox::{Sandbox, errors, failure};
use crate::tools::{available, is_root};

/// As nobody, with a home and a state of their own in the sandbox.
fn nobodys(sandbox: &Sandbox, arguments: &[&str]) -> Command {
    let mut command = without_privilege(sandbox, arguments);
    // As /tmp is: where anybody may take another's files away, nothing is kept.
    std::fs::set_permissions(sandbox.path(), PermissionsExt::from_mode(0o1777)).unwrap();
    let home = sandbox.path().join("home");
    command.env("HOME", &home).env("XDG_CACHE_HOME", home.join("cache"));
    command.env("ASSAY_STATE_DIR", home.join("state")).env("ASSAY_RUN_DIR", home.join("records"));
    command.env("NO_COLOR", "1").env_remove("ASSAY_DB").envs(crate::sandbox::HASTE);
    command
}

fn said(sandbox: &Sandbox, arguments: &[&str]) -> String {
    let output: Output = nobodys(sandbox, arguments).output().unwrap();
    assert!(output.status.success(), "{}", failure(arguments, &output));
    String::from_utf8_lossy(&output.stdout).into_owned() + &errors(&output)
}

#[test]
fn a_user_without_root_runs_reports_and_explains() {
    if !is_root() || !available("setpriv") {
        return;
    }
    let sandbox = Sandbox::new();
    std::fs::create_dir(sandbox.path().join("home")).unwrap();
    std::os::unix::fs::chown(sandbox.path().join("home"), Some(65_534), Some(65_534)).unwrap();
    // As `make demo`, but less of it.
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/randwrite.fio");
    let job = std::fs::read_to_string(example).unwrap();
    sandbox.write("job.fio", &job.replace("size=64m", "size=4m").replace("io_size=32m", "io_size=1m"));
    let run = ["run", "job.fio", "--vary", "direct=0,1", "--rounds", "4", "--keep-disturbed"];
    let report = said(&sandbox, &[&run[..], &["--html", "report.html"]].concat());
    assert!(report.contains("direct=1") && report.contains("write.bw"), "{report}");
    for made in ["assay.db", "report.html"] {
        let owner = std::fs::metadata(sandbox.path().join(made)).unwrap().uid();
        assert_eq!(owner, 65_534, "{made}");
    }
    let markdown = said(&sandbox, &["report", "1", "--format", "markdown"]);
    assert!(markdown.contains("write.bw"), "{markdown}");
    // What it may not watch is said; the rest is measured again.
    let explained = said(&sandbox, &["explain", "1", "-q", "--rounds", "4"]);
    assert!(!explained.contains("panicked"), "{explained}");
    assert!(said(&sandbox, &["list"]).contains("job"));
    assert_eq!(said(&sandbox, &["cleanup"]), "nothing was left behind\n");
    let names: Vec<String> = sandbox.names().into_iter().collect();
    assert_eq!(names, ["assay.db", "home", "job.fio", "report.html"]);
}
