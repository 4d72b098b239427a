//! Files that hooks leave and what they print, kept with the trial: here, in the store, and written out again.

use std::collections::BTreeMap;

use assay::record::{KeptFile, Run, Status};

use crate::guests::{nothing_left, run};
use crate::sandbox::{Sandbox, errors};
use crate::target_bench::JOB;

/// The files of a trial as text.
pub(crate) fn files(run: &Run, trial: usize) -> BTreeMap<String, String> {
    let text = |file: &KeptFile| (file.name.clone(), String::from_utf8_lossy(&file.bytes).into_owned());
    run.trials[trial].files.iter().map(text).collect()
}

fn value(run: &Run, trial: usize, name: &str) -> f64 {
    let at = run.metrics.iter().position(|metric| metric.name == name).expect(name) as u32;
    run.trials[trial].value(at).expect(name)
}

#[test]
fn a_jobs_hooks_leave_files_output_and_metrics() {
    let sandbox = Sandbox::new();
    sandbox.write("job.fio", JOB);
    let before =
        "echo begun $bs > $ASSAY_FILES/begun.txt; ln -s /etc/passwd $ASSAY_FILES/link; echo free 1 x";
    let after = "test -z \"$(ls -A $ASSAY_FILES)\"; printf 'free 2 x\\nfree %s x\\n' 7 >&2";
    let hooks = ["--before", before, "--after", after, "--metric", "free=free ([0-9]+)"];
    let words = ["run", "-q", "job.fio", "--vary", "bs=4k,8k", "--rounds", "1"];
    let output = run(&sandbox, &[&words[..], &hooks].concat());
    assert!(output.status.success(), "{}", errors(&output));
    nothing_left(&sandbox);
    let first = sandbox.export("1");
    assert_eq!(first.trials.len(), 2);
    for (at, trial) in first.trials.iter().enumerate() {
        let kept = files(&first, at);
        assert_eq!(kept.keys().collect::<Vec<_>>(), ["after.out", "before.out", "begun.txt"], "{kept:?}");
        assert_eq!(kept["begun.txt"], ["begun 4k\n", "begun 8k\n"][trial.cell as usize]);
        assert_eq!((kept["before.out"].as_str(), value(&first, at, "free")), ("free 1 x\n", 7.0));
        let told = "the before hook's file link is not kept: it is not a regular file";
        assert!(trial.notes.iter().any(|note| note.text == told), "{:?}", trial.notes);
    }
    // The metric of --metric decides where nothing else is named.
    let report = sandbox.succeed(&["report", "1", "--format", "csv"]);
    assert!(report.lines().any(|line| line.contains("free") && line.contains("primary")), "{report}");
    written_out(&sandbox, &first);
}

/// `assay show`, of the store and of an exported file.
fn written_out(sandbox: &Sandbox, run: &Run) {
    assert!(sandbox.succeed(&["show", "1"]).contains("\n6 files of trials ("));
    sandbox.succeed(&["export", "1", "-o", "run.json"]);
    for (name, from) in [("stored", "1"), ("exported", "run.json")] {
        let said = errors(&sandbox.run(&["show", from, "--files", name]));
        assert!(said.contains("6 files written below"), "{said}");
        for at in 0..2 {
            for (file, text) in files(run, at) {
                let path = sandbox.path().join(name).join(at.to_string()).join(file);
                assert_eq!(std::fs::read_to_string(path).unwrap(), text);
            }
        }
    }
    let again = sandbox.run(&["show", "1", "--files", "stored"]);
    assert_eq!(again.status.code(), Some(2), "what is there is never replaced");
}

#[test]
fn a_metric_that_no_hook_prints_fails_and_files_are_kept() {
    let sandbox = Sandbox::new();
    sandbox.write("job.fio", JOB);
    let hooks = ["--after", "echo kept > $ASSAY_FILES/why; echo nothing", "--metric", "free=free ([0-9]+)"];
    let words = ["run", "-q", "job.fio", "--vary", "bs=4k,8k", "--rounds", "1"];
    run(&sandbox, &[&words[..], &hooks].concat());
    let failed = sandbox.export("1");
    assert!(!failed.trials.is_empty());
    for (at, trial) in failed.trials.iter().enumerate() {
        let Status::Failed { reason, output, .. } = &trial.status else { panic!("{:?}", trial.status) };
        let told = "metric 'free' was not found: no line of the hooks' output matches 'free ([0-9]+)'";
        assert_eq!((reason.as_str(), output.as_str()), (told, "nothing\n"));
        assert_eq!(files(&failed, at)["why"], "kept\n");
    }
}

#[test]
fn a_forged_name_of_a_file_leads_nowhere() {
    let sandbox = Sandbox::new();
    sandbox.write("job.fio", JOB);
    let words = ["run", "-q", "job.fio", "--vary", "bs=4k,8k", "--rounds", "1"];
    let output = run(&sandbox, &[&words[..], &["--after", "echo x > $ASSAY_FILES/x"]].concat());
    assert!(output.status.success(), "{}", errors(&output));
    let store = rusqlite::Connection::open(sandbox.path().join("assay.db")).unwrap();
    for name in ["../../escaped", "/tmp/assay-escaped", ".hidden", "a/b"] {
        store.execute("UPDATE file SET name = ?1 WHERE trial = 0", [name]).unwrap();
        for words in [&["show", "1", "--files", "out"][..], &["export", "1"]] {
            let output = sandbox.run(words);
            assert_eq!(output.status.code(), Some(2), "{name}: {}", errors(&output));
            assert!(errors(&output).contains("has a file whose name is none"), "{}", errors(&output));
        }
        assert!(!sandbox.path().join("out").exists(), "{name}");
    }
}
