//! Looking early at a run with a fixed number of rounds: before the last of them no format says a verdict, and nothing acts on one.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

use assay::record::RunState;

use crate::sandbox::{Sandbox, errors};

const FORMATS: [&str; 7] = ["text", "lkml", "mmtests", "markdown", "html", "json", "csv"];
/// What a report could say of an effect of −50 %.
const VERDICTS: [&str; 6] = ["slower", "faster", "worse", "undecided", "no difference", "too few"];

/// Two arms, six rounds, half the bandwidth in the second; the trial after so many waits in its hook for the file `go`.
fn experiment(sandbox: &Sandbox, waits_after: u32) -> String {
    let directory = sandbox.path().display();
    format!(
        "name = \"s\"\njob_text = \"[w]\\nsize=1m\\n\"\nengine = \"simulated\"\nlead_in = false\n\
         before = \"cd {directory}; echo t >> count; if [ $(wc -l < count) -gt {waits_after} ]; then touch waits; \
         while [ -e count ] && [ ! -e go ]; do sleep 0.02; done; fi\"\n[stop]\nrounds = 6\n\
         [simulated]\ncv = 0.001\neffects = {{ \"bs=8k\" = -0.5 }}\n\
         [[factor]]\nname = \"bs\"\nlevels = [\"4k\", \"8k\"]\n"
    )
}

fn wait_for(file: &Path) {
    let begun = Instant::now();
    while !file.exists() {
        assert!(begun.elapsed() < Duration::from_secs(30), "{} never came", file.display());
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// One line, so that where words are wrapped plays no part.
fn in_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn says_no_verdict(sandbox: &Sandbox, rounds: u32) {
    says_no_verdict_of(sandbox, rounds, 6);
}

fn says_no_verdict_of(sandbox: &Sandbox, rounds: u32, of: u32) {
    for format in FORMATS {
        for more in [&[][..], &["--all-metrics"][..]] {
            let report = sandbox.succeed(&[&["report", "1", "--format", format], more].concat());
            // A page's style sheet has classes for verdicts.
            let report = report.split_once("</style>").map_or(report.as_str(), |(_, page)| page);
            let report = in_one_line(report);
            assert!(report.contains("so far") || report.contains("so_far"), "{format}: {report}");
            assert!(report.contains(&format!("{rounds} of {of} rounds")), "{format}: {report}");
            for word in VERDICTS {
                assert!(!report.contains(word), "{format} says {word:?}: {report}");
            }
        }
    }
    let report = sandbox.succeed(&["report", "1", "--format", "json", "--all-metrics"]);
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    let comparisons = report["analysis"]["comparisons"].as_array().unwrap();
    assert!(!comparisons.is_empty());
    for comparison in comparisons {
        assert!(comparison["p"].is_null() && comparison["p_adjusted"].is_null(), "{comparison}");
        // A metric that is 0 at times, such as processor time, has no interval ever.
        let so_far = serde_json::json!({"so_far": {"rounds": rounds, "of": of}});
        let verdict = &comparison["verdict"];
        assert!(*verdict == so_far || verdict.get("not_measured").is_some(), "{comparison}");
    }
    for condition in ["slower", "changed", "undecided"] {
        let output = sandbox.run(&["report", "1", "--fail-if", condition]);
        assert_eq!(output.status.code(), Some(1), "{condition}: no verdict is no pass");
        let why = format!("{rounds} of {of} rounds so far: there is no verdict before the last");
        assert!(errors(&output).contains(&why), "{}", errors(&output));
    }
}

fn says_the_verdict(sandbox: &Sandbox) {
    let text = in_one_line(&sandbox.succeed(&["report", "1"]));
    assert!(text.contains("bs=8k is slower than bs=4k by more than 2 %: write.bw −"), "{text}");
    assert!(!text.contains("so far"), "{text}");
    assert_eq!(sandbox.run(&["report", "1", "--fail-if", "slower"]).status.code(), Some(3));
}

/// A line that drops ends no run that was begun with nohup(1).
#[test]
fn a_run_under_nohup_outlives_its_terminal() {
    let sandbox = Sandbox::new();
    sandbox.write("s.toml", &experiment(&sandbox, 6));
    let run = [env!("CARGO_BIN_EXE_assay"), "run", "--keep-disturbed", "s.toml", "--quiet"];
    let mut under = sandbox.command("nohup");
    let child = under.args(run).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_for(&sandbox.path().join("waits"));
    // nohup(1) becomes the program that it runs; the agent gets the signal, too, where it belongs to the terminal's group.
    let all = sandbox.processes();
    assert!(all.len() > 1, "{all:?}");
    for (process, _) in all {
        let _ = rustix::process::kill_process(Pid::from_raw(process as i32).unwrap(), Signal::HUP);
    }
    sandbox.write("go", "");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(sandbox.export("1").state, RunState::Finished);
}

#[test]
fn an_interrupted_run_of_six_rounds_has_no_verdict() {
    let sandbox = Sandbox::new();
    sandbox.write("s.toml", &experiment(&sandbox, 6));
    let child = sandbox.start(&["run", "s.toml", "--quiet", "--fail-if", "changed"]);
    wait_for(&sandbox.path().join("waits"));
    // In another terminal, while it runs.
    says_no_verdict(&sandbox, 3);
    rustix::process::kill_process(Pid::from_raw(child.id() as i32).unwrap(), Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", errors(&output));
    let printed = in_one_line(&String::from_utf8_lossy(&output.stdout));
    assert!(printed.contains("so far, 3 of 6 rounds: write.bw −"), "{printed}");
    assert!(printed.contains("`assay run --resume 1` goes on with it"), "{printed}");
    assert!(VERDICTS.iter().all(|word| !printed.contains(word)), "{printed}");
    assert_eq!(sandbox.export("1").state, RunState::Interrupted);
    says_no_verdict(&sandbox, 3);
    // Nor when it is compared with others' results, or with itself.
    sandbox.succeed(&["export", "1", "--format", "json", "-o", "early.json"]);
    for pair in [["1", "again=1"], ["early.json", "1"], ["1", "early.json"]] {
        let report = in_one_line(&sandbox.succeed(&["compare", pair[0], pair[1]]));
        assert!(report.contains("run 1 has 3 of its 6 rounds so far"), "{report}");
        assert!(report.contains("so far, 3 of 6 rounds") && !report.contains("no difference"), "{report}");
    }

    sandbox.write("go", "");
    let resumed = sandbox.run(&["run", "--resume", "1", "--quiet", "--fail-if", "slower"]);
    assert_eq!(resumed.status.code(), Some(3), "{}", errors(&resumed));
    says_the_verdict(&sandbox);
    let looks = "looked at before its end, after 3 of 6 rounds";
    assert!(in_one_line(&sandbox.succeed(&["report", "1"])).contains(looks), "the look is in the store");
}

#[test]
fn a_killed_run_of_six_rounds_has_no_verdict() {
    let sandbox = Sandbox::new();
    sandbox.write("s.toml", &experiment(&sandbox, 9));
    let mut child = sandbox.start(&["run", "s.toml", "--quiet"]);
    wait_for(&sandbox.path().join("waits"));
    child.kill().unwrap();
    child.wait().unwrap();
    sandbox.no_process_left(Duration::from_secs(30));
    // Half of the fifth round is there.
    says_no_verdict(&sandbox, 4);
    sandbox.write("go", "");
    sandbox.succeed(&["run", "--resume", "1", "--quiet"]);
    says_the_verdict(&sandbox);
}

#[test]
fn a_time_budget_that_ends_it_early_leaves_no_verdict() {
    let sandbox = Sandbox::new();
    sandbox.write("s.toml", &experiment(&sandbox, 99));
    // Each session ends with the trial that passes the budget, which is its first.
    let begun = ["run", "s.toml", "--quiet", "--time-budget", "1ms", "--fail-if", "changed"];
    let output = sandbox.run(&begun);
    // One arm alone is not judged, and what is not judged does not pass.
    assert_eq!(output.status.code(), Some(1), "{}", errors(&output));
    let one_arm = in_one_line(&sandbox.succeed(&["report", "1"]));
    assert!(one_arm.contains("the time budget ended it after 0 rounds and 1 trial of the next"), "{one_arm}");
    sandbox.succeed(&["run", "--resume", "1", "--quiet"]);
    for trials in 2..12 {
        let run = sandbox.export("1");
        assert_eq!((run.state, run.trials.len()), (RunState::Finished, trials));
        says_no_verdict(&sandbox, trials as u32 / 2);
        let text = in_one_line(&sandbox.succeed(&["report", "1"]));
        assert!(text.contains("`assay run --resume 1` goes on with it"), "{text}");
        sandbox.succeed(&["run", "--resume", "1", "--quiet"]);
    }
    says_the_verdict(&sandbox);
    let again = sandbox.run(&["run", "--resume", "1"]);
    assert_eq!(again.status.code(), Some(2), "nothing of it is left to do");
}

/// A run that looks after each round, too: its looks were planned for all of them.
#[test]
fn an_open_run_that_ran_out_of_time_is_resumed() {
    let sandbox = Sandbox::new();
    let open = experiment(&sandbox, 99).replace("rounds = 6", "max_rounds = 5").replace("-0.5", "0.0");
    sandbox.write("s.toml", &open.replace("cv = 0.001", "cv = 0.3"));
    // With another order of the trials a claim by chance might end it sooner.
    sandbox.succeed(&["run", "s.toml", "--quiet", "--time-budget", "1ms", "--seed", "1"]);
    let mut trials = sandbox.export("1").trials.len();
    while trials < 10 {
        sandbox.succeed(&["run", "--resume", "1", "--quiet"]);
        let now = sandbox.export("1").trials.len();
        assert!(now > trials, "{trials} trials, and no more");
        trials = now;
    }
    let over = sandbox.run(&["run", "--resume", "1"]);
    assert_eq!(over.status.code(), Some(2), "{}", errors(&over));
}

/// `assay run … | tee log` and Ctrl-C, `… | head`: what the exit code says does not depend on who reads.
#[test]
fn a_reader_that_goes_away_changes_no_exit_code() {
    let sandbox = Sandbox::new();
    sandbox.write("s.toml", &experiment(&sandbox, 99));
    let mut child = sandbox.start(&["run", "s.toml", "--quiet", "--fail-if", "slower"]);
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", errors(&output));
    let mut child = sandbox.start(&["report", "1", "--fail-if", "slower"]);
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(3));
}

#[test]
fn failures_that_stop_it_early_leave_no_verdict() {
    let sandbox = Sandbox::new();
    let failing = experiment(&sandbox, 99)
        .replace("rounds = 6", "rounds = 12")
        .replace("echo t >> count;", "echo t >> count; [ -e go ] || [ $(wc -l < count) -lt 9 ] || exit 1;");
    sandbox.write("s.toml", &failing);
    let output = sandbox.run(&["run", "s.toml", "--quiet"]);
    assert_eq!(output.status.code(), Some(1), "{}", errors(&output));
    let rounds = sandbox.export("1").so_far().unwrap().rounds;
    says_no_verdict_of(&sandbox, rounds, 12);
    sandbox.write("go", "");
    sandbox.run(&["run", "--resume", "1", "--quiet"]);
    assert_eq!(sandbox.export("1").so_far(), None);
}
