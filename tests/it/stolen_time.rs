//! Time that the hypervisor steals, as the whole program sees it: in a `/proc/stat` of the test's own, where it only rises.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Output;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use assay::record::Trial;

use crate::sandbox::{Sandbox, errors};
use crate::tools::{installed, is_root};

/// A processor that has worked for 5 s since boot, in hundredths of a second; always of one length, so that no reader sees
/// half a line.
fn stat(stolen: u128) -> String {
    format!("cpu  500 0 0 900 0 0 0 {stolen:09} 0 0\n")
}

/// Takes all of one processor from now on.
fn steal(from: &Path, until: &AtomicBool) {
    let (begun, file) = (Instant::now(), File::options().write(true).open(from).unwrap());
    while !until.load(Ordering::Relaxed) {
        file.write_all_at(stat(begun.elapsed().as_millis() / 10).as_bytes(), 0).unwrap();
        std::thread::sleep(Duration::from_millis(10));
    }
}

const SLEEPS: [&str; 4] = ["--vary", "n=1,2", "--rounds", "2"];

/// `assay run`, where the time is stolen.
fn run(sandbox: &Sandbox, arguments: &[&str]) -> Output {
    let ended = AtomicBool::new(false);
    let path = sandbox.write("stat", &stat(0));
    std::thread::scope(|threads| {
        threads.spawn(|| steal(&path, &ended));
        let own_stat = "mount --bind stat /proc/stat && exec \"$@\"";
        let mut command = sandbox.with_own_mounts(own_stat, &[env!("CARGO_BIN_EXE_assay"), "run", "-q"]);
        command.args(arguments);
        let output = command.output();
        ended.store(true, Ordering::Relaxed);
        output.unwrap()
    })
}

#[test]
fn rounds_with_stolen_time_are_thrown_out_unless_asked_for() {
    if !is_root() || !installed("unshare") {
        return;
    }
    let sandbox = Sandbox::new();
    let sleeps = |more: &[&'static str]| [&SLEEPS[..], more, &["--", "sleep", "1.${n}"]].concat();
    let output = run(&sandbox, &sleeps(&[]));
    let said = errors(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("nothing was compared: the hypervisor stole more than 5 % of the processor time"),
        "{said}"
    );
    assert!(
        said.contains("hint: run it when the machine is calm, or count such rounds: --keep-disturbed"),
        "{said}"
    );
    // Two rounds were to be, two more were to make good for them.
    let run_1 = sandbox.export("1");
    assert_eq!(run_1.trials.len(), 8);
    assert!(run_1.trials.iter().all(|trial| trial.excluded.is_some()), "{:?}", run_1.trials);

    let file = "command = [\"sleep\", \"1.${n}\"]\nkeep_disturbed = true\n[stop]\nrounds = 2\n[[factor]]\nname = \"n\"\nlevels = [\"1\", \"2\"]\n";
    sandbox.write("keep.toml", file);
    for (at, kept) in [sleeps(&["--keep-disturbed"]), vec!["keep.toml"]].into_iter().enumerate() {
        let output = run(&sandbox, &kept);
        assert!(output.status.success(), "{}", errors(&output));
        let run = sandbox.export(&(at + 2).to_string());
        assert_eq!(run.trials.len(), 4);
        assert!(run.trials.iter().all(Trial::counts), "{:?}", run.trials);
        let why = "it counts, although the hypervisor stole more than 5 % of the processor time";
        assert!(run.trials.iter().all(|trial| trial.notes.iter().any(|note| note.text == why)));
    }
}
