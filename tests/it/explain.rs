//! `assay explain` through the real program: a run's cells run again, unwatched and watched, in a run of their own.
//!
//! Watching needs root; what is refused, or said of a run that cannot be watched, needs nothing.

use std::collections::BTreeSet;
use std::process::Output;
use std::time::{Duration, Instant};

use assay::record::{Run, RunState, Status};

use crate::attacks::sql;
use crate::observers::{a_trial_is_watched, watching};
use crate::sandbox::{Sandbox, errors};
use crate::target_bench::can_make;
use crate::tools::{available, is_root};

const JOB: &str = "[w]\nrw=randwrite\nbs=${BS}\nsize=1m\nioengine=psync\ntime_based\nruntime=80ms\n";

/// A job of which four rounds tell `fsync=0,1` apart on any machine.
const CLEAR: &str = "[w]\nrw=randwrite\nbs=4k\nsize=1m\nioengine=psync\ntime_based\nruntime=80ms\n";

/// A sandbox whose run 1 compares two block sizes.
fn explained(options: &[&str]) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("job.fio", JOB);
    sandbox.succeed(&[&["run", "job.fio", "-q", "--vary", "BS=4k,8k", "--rounds", "4"], options].concat());
    sandbox
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &errors(output)
}

fn runs(sandbox: &Sandbox) -> usize {
    sandbox.succeed(&["list"]).lines().count() - 1
}

/// Trials of each cell as (its levels, whether an observer left values).
fn watched(run: &Run) -> Vec<(Vec<u32>, bool)> {
    let seen = |metric: u32| run.metrics[metric as usize].name.ends_with(".lost");
    let of = |trial: &assay::record::Trial| {
        assert_eq!(trial.status, Status::Done);
        (run.cells[trial.cell as usize].levels.clone(), trial.values.iter().any(|(metric, _)| seen(*metric)))
    };
    run.trials.iter().map(of).collect()
}

/// The verdict of a report: the lines between its summary and the first empty line behind them.
fn verdict(report: &str) -> String {
    report.lines().skip_while(|line| !line.is_empty()).skip(1).take_while(|line| !line.is_empty()).collect()
}

#[test]
fn a_run_is_watched_in_a_run_of_its_own() {
    if !is_root() {
        return;
    }
    let sandbox = explained(&[]);
    let (before, report) = (sandbox.export("1"), sandbox.succeed(&["report", "1"]));
    let told = sandbox.succeed(&["explain", "1", "-q", "--only", "locks,cpu"]);
    let by = sandbox.export("2");
    assert_eq!((by.state, by.aa, by.design.stop.rounds), (RunState::Finished, false, Some(5)));
    let names: Vec<&str> = by.design.factors.iter().map(|factor| factor.name.as_str()).collect();
    assert_eq!((names, by.design.compare), (vec!["BS", "watched"], 0));
    let explains = by.design.explains.clone().unwrap();
    assert!(explains.is(&before) && !explains.is(&by) && explains.factor == "watched");
    let trials = watched(&by);
    assert_eq!(trials.len(), 5 * 2 * 2);
    assert!(trials.iter().all(|(levels, seen)| *seen == (levels[1] == 1)), "{trials:?}");
    for observer in ["cpu.samples", "locks.waits"] {
        assert!(by.metrics.iter().any(|metric| metric.name == observer), "{observer}");
    }
    assert!(by.metrics.iter().all(|metric| !metric.name.starts_with("waits.")), "only two were asked for");

    // What is explained is as it was, and says the same.
    assert_eq!(sandbox.export("1"), before);
    let after = sandbox.succeed(&["report", "1"]);
    assert_eq!(verdict(&report), verdict(&after));
    assert!(!verdict(&report).is_empty(), "{report}");
    assert_eq!(told, after, "explain ends with the report");
    // Fewer observers later take nothing away from the report.
    sandbox.succeed(&["explain", "1", "-q", "--only", "waits", "--rounds", "4"]);
    assert_eq!(sandbox.export("3").design.explains.unwrap().observers, ["waits"]);
    assert_eq!(sandbox.succeed(&["report", "1"]), after);
    assert!(!report.contains("price of watching"), "{report}");
    assert!(after.contains("price of watching, run 2 (5 rounds)"), "{after}");
    let words = after.split_whitespace().collect::<Vec<_>>().join(" ");
    // On a busy machine the watched trials may be the faster ones.
    let either = ["BS=4k: watching cost ", "BS=4k: watched trials were better by "];
    assert!(either.iter().any(|price| words.contains(price)) && words.contains("of write.bw"), "{after}");
    assert!(sandbox.succeed(&["report", "2"]).contains("price of watching, run 2"));

    is_listed_as_what_explains(&sandbox, &before);
}

/// Run 2 is listed as what explains run 1, and is refused where that one is meant.
fn is_listed_as_what_explains(sandbox: &Sandbox, before: &Run) {
    let list = sandbox.succeed(&["list"]);
    assert!(list.lines().nth(2).is_some_and(|line| line.contains("explains 1: job")), "{list}");
    let json = sandbox.succeed(&["list", "--json"]);
    assert!(json.lines().nth(1).is_some_and(|line| line.contains("\"explains\":1")), "{json}");
    // A name and `latest` mean the run that the user made.
    assert_eq!(sandbox.export("latest"), *before);
    assert_eq!(sandbox.export("job"), *before);

    for (words, why) in [
        (&["run", "--resume", "2"][..], "run 2 watches run 1, and does not go on"),
        (&["explain", "2"], "2 is a run that watches run 1"),
    ] {
        let output = sandbox.run(words);
        assert_eq!(output.status.code(), Some(2), "{}", said(&output));
        assert!(
            said(&output).contains(why) && said(&output).contains("assay explain 1"),
            "{}",
            said(&output)
        );
    }
    // The number alone does not say which run is meant.
    sql(&sandbox.path().join("assay.db"), "UPDATE run SET seed = seed + 1 WHERE id = 1");
    assert!(sandbox.succeed(&["list"]).contains("explains a run elsewhere"));
    assert!(!sandbox.succeed(&["report", "1"]).contains("price of watching"));
}

#[test]
fn a_run_is_explained_right_after_its_verdict() {
    if !is_root() {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.write("job.fio", CLEAR);
    let words = ["run", "job.fio", "--vary", "fsync=0,1", "--rounds", "8", "--explain"];
    let plan = sandbox.succeed(&[&words[..], &["--plan"]].concat());
    let expected =
        "after the verdict, to explain it\n  5 rounds of each cell, unwatched and watched (30 trials): ";
    assert!(plan.contains(expected), "{plan}");
    let output = sandbox.run(&[&words[..], &["--html", "page.html"]].concat());
    assert!(output.status.success(), "{}", said(&output));
    let page = std::fs::read_to_string(sandbox.path().join("page.html")).unwrap();
    let either = ["watching cost", "watched trials were better by"];
    assert!(either.iter().any(|price| page.contains(price)), "the page has what was seen afterwards");
    assert_eq!(errors(&output).matches("report with pictures: page.html").count(), 1, "{}", said(&output));
    let (told, report) = (String::from_utf8(output.stdout.clone()).unwrap(), errors(&output));
    assert!(
        report.contains("watching run 1: 5 rounds of its 2 cells, each unwatched and watched ("),
        "{report}"
    );
    assert_eq!(told.matches("price of watching, run 2 (5 rounds)").count(), 1, "{told}");
    // What is dear watches in trials of its own.
    assert!(report.contains("(calls, blocks;"), "{report}");
    assert_eq!(watched(&sandbox.export("2")).len(), 30);
    // A program reads one document.
    let json = sandbox.succeed(&[&words[..], &["-q", "--format", "json"]].concat());
    let value: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(value["watching"]["run"], 4, "{json}");
    assert!(value["watching"]["prices"][0]["interval"]["low"].is_number(), "{json}");
}

#[test]
fn explaining_is_part_of_the_time_budget() {
    if !is_root() {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.write("job.fio", "[w]\nrw=randwrite\nbs=${BS}\nsize=1m\nioengine=psync\n");
    let words = ["run", "job.fio", "--vary", "BS=4k,8k", "--explain", "--time-budget"];
    let spent = sandbox.run(&[&words[..], &["1ms", "--quiet"]].concat());
    assert!(
        errors(&spent).contains("the time budget is spent; assay explain 1 watches it"),
        "{}",
        said(&spent)
    );
    // Half is kept for trials of which it cannot be said how long they take. Of rounds that are missing there is no verdict to explain.
    let ended = sandbox.run(&[&words[..], &["6s", "--quiet", "--rounds", "500"]].concat());
    assert!(errors(&ended).contains("run 2 is not watched: the verdict is undecided"), "{}", said(&ended));
    assert!(errors(&ended).contains("hint: assay run --resume 2 measures the rounds that are missing"));
    let run = sandbox.export("2");
    assert!(
        run.notes.iter().any(|note| note.text.starts_with("the time budget ended it")),
        "{:?}",
        run.notes
    );
    // What the verdict leaves of the time is for explaining.
    sandbox.write("clear.fio", CLEAR);
    sandbox.run(&[
        "run", "clear.fio", "--vary", "fsync=0,1", "--explain", "--time-budget", "60s", "-q", "--rounds", "4",
    ]);
    let watched = sandbox.export("4");
    assert_eq!(watched.design.explains.map(|explains| explains.run), Some(3));
    let left_s = watched.design.stop.time_budget_s.unwrap();
    assert!(0.0 < left_s && left_s < 60.0, "{left_s}");
}

#[test]
fn a_baseline_against_itself_and_commands_are_watched_as_well() {
    if !is_root() {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox
        .succeed(&["run", "-q", "--aa", "--vary", "n=1,2", "--rounds", "2", "--", "sh", "-c", "exit 0 ${n}"]);
    let output = sandbox.run(&["explain", "1", "--rounds", "4", "--only", "cpu"]);
    assert!(output.status.success(), "{}", said(&output));
    assert!(said(&output).contains("price of watching, run 2 (4 rounds)"), "{}", said(&output));
    let by = sandbox.export("2");
    let names: Vec<&str> = by.design.factors.iter().map(|factor| factor.name.as_str()).collect();
    assert_eq!((names, by.aa), (vec!["n", "a/a", "watched"], false));
    assert_eq!(watched(&by).len(), 16);
}

#[test]
fn traces_of_watched_trials_are_kept_for_other_tools() {
    if !can_make() {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.write("job.fio", crate::blocks::SYNCED);
    let target = ["-t", "loop:64m", "-t", "fs=ext4"];
    sandbox
        .succeed(&[&["run", "job.fio", "-q", "--vary", "bs=4k,8k", "--rounds", "4"][..], &target].concat());
    let output = sandbox.run(&["explain", "1", "--rounds", "1", "--only", "blocks", "--keep-traces"]);
    assert!(said(&output).contains("assay show 2 --files DIR writes them"), "{}", said(&output));
    assert!(sandbox.export("2").command_line.contains(&"--keep-traces".to_owned()));
    sandbox.succeed(&["show", "2", "--files", "kept"]);
    let run = sandbox.export("2");
    let mut read = 0;
    for (trial, (_, seen)) in watched(&run).into_iter().enumerate() {
        let place = sandbox.path().join(format!("kept/{trial}"));
        assert_eq!(place.exists(), seen, "only watched trials have a trace");
        if seen {
            let names = std::fs::read_dir(&place).unwrap().map(|entry| entry.unwrap().path());
            let mut words = vec!["trace".to_owned()];
            words.extend(
                names.filter_map(|path| path.to_str().map(str::to_owned)).filter(|p| p.ends_with(".raw")),
            );
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            assert!(sandbox.succeed(&words).contains("\nwrites "), "{words:?}");
            read += 1;
        }
    }
    assert_eq!(read, 2);
}

#[test]
fn a_run_of_others_is_watched_only_with_trust() {
    let sandbox = explained(&[]);
    let mut another = sandbox.assay(&["explain", "1", "--only", "extents"]);
    let refused = another.env("ASSAY_STATE_DIR", sandbox.state_of_another_user()).output().unwrap();
    assert_eq!(refused.status.code(), Some(2), "{}", said(&refused));
    assert!(said(&refused).contains("run 1 was not begun by you on this machine"), "{}", said(&refused));
    assert!(said(&refused).contains("assay explain 1 --no-watch reads it"), "{}", said(&refused));
    // Changed since, it is nobody's.
    let proof = sandbox.path().join("proof");
    let hook = format!("touch {}", proof.display());
    let forge = format!("UPDATE run SET experiment = json_set(experiment, '$.after', '{hook}')");
    sql(&sandbox.path().join("assay.db"), &forge);
    let refused = sandbox.run(&["explain", "1", "--only", "extents"]);
    assert_eq!(refused.status.code(), Some(2), "{}", said(&refused));
    assert_eq!((proof.exists(), runs(&sandbox)), (false, 1));
    // It can be read, and with trust it is said what will be run before it is.
    sandbox.succeed(&["explain", "1", "--no-watch"]);
    let trusted = sandbox.run(&["explain", "1", "--only", "extents", "--rounds", "4", "--trust"]);
    assert!(trusted.status.success(), "{}", said(&trusted));
    assert!(said(&trusted).contains(&format!("run: {hook}  (after each trial)")), "{}", said(&trusted));
    assert_eq!((proof.exists(), runs(&sandbox)), (true, 2));
}

#[test]
fn what_is_gone_is_said_and_the_rest_is_reported() {
    let sandbox = Sandbox::new();
    sandbox.write("job.fio", JOB);
    std::fs::create_dir(sandbox.path().join("sub")).unwrap();
    sandbox.succeed(&["run", "job.fio", "-q", "--vary", "BS=4k,8k", "--rounds", "2", "-d", "sub"]);
    sandbox.succeed(&["export", "1", "-o", "run.json"]);
    let report = sandbox.succeed(&["report", "1"]);
    let not_watched = |words: &[&str], why: &str| {
        let output = sandbox.run(words);
        assert!(output.status.success(), "{words:?}: {}", said(&output));
        assert!(errors(&output).contains("is not watched: "), "{words:?}: {}", said(&output));
        assert!(errors(&output).contains(why), "{words:?}: {}", said(&output));
        assert_eq!(verdict(&String::from_utf8_lossy(&output.stdout)), verdict(&report));
    };
    let explain = ["explain", "1", "--only", "extents"];
    not_watched(&["explain", "run.json"], "an exported file is not a run of this machine");
    std::fs::rename(sandbox.path().join("sub"), sandbox.path().join("away")).unwrap();
    not_watched(&explain, "No such file or directory");
    std::fs::rename(sandbox.path().join("away"), sandbox.path().join("sub")).unwrap();
    let store = sandbox.path().join("assay.db");
    let whole = std::fs::read(&store).unwrap();
    sql(&store, "UPDATE facts SET json = json_set(json, '$.\"kernel.release\"', '1.2.3') WHERE facts = 0");
    not_watched(&explain, "the kernel was 1.2.3 then, and is ");
    std::fs::write(&store, &whole).unwrap();
    sql(&store, "UPDATE run SET experiment = '{\"name\":\"job\"}'");
    not_watched(&explain, "its experiment is of another assay");
    std::fs::write(&store, whole).unwrap();
    assert_eq!(runs(&sandbox), 1);
    sandbox.succeed(&explain);
    assert_eq!(runs(&sandbox), 2);
}

#[test]
fn a_run_in_which_nothing_differs_is_not_watched() {
    let sandbox = Sandbox::new();
    sandbox.succeed(&["run", "-q", "--aa", "--rounds", "4", "--", "true"]);
    let output = sandbox.run(&["explain", "1"]);
    assert!(output.status.success(), "{}", said(&output));
    let told = errors(&output).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        told.contains(
            "run 1 is not watched: nothing differs, so there is nothing to explain hint: assay explain 1"
        ),
        "{told}"
    );
    assert_eq!(runs(&sandbox), 1);
}

#[test]
fn a_wrong_request_is_refused() {
    let sandbox = explained(&[]);
    for (words, why) in [
        (&["explain", "7"][..], "there is no run 7"),
        (&["explain", "nobody"], "no run is called 'nobody'"),
        (&["explain", "1", "--only", "lock"], "there is no observer 'lock'"),
        (&["explain", "1", "--rounds", "0"], "0 is not in 1..="),
        (&["explain", "1", "--rounds", "3"], "3 rounds can explain nothing: it takes 4"),
        (&["explain", "1", "--no-watch", "--only", "cpu"], "cannot be used with"),
        (&["explain", "1", "--keep-traces", "--only", "cpu"], "keeps what blocks sees"),
    ] {
        let output = sandbox.run(words);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {}", said(&output));
        assert!(said(&output).contains(why), "{words:?}: {}", said(&output));
    }
    assert_eq!(runs(&sandbox), 1);
}

#[test]
fn a_run_that_failed_says_that_it_is_not_explained() {
    let sandbox = Sandbox::new();
    let script = sandbox.write("fails.sh", "exit $1\n").to_string_lossy().into_owned();
    let words =
        ["run", "--explain", "-q", "--rounds", "4", "--vary", "code=0,1", "--", "sh", &script, "${code}"];
    let output = sandbox.run(&words);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    let told = errors(&output).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(told.contains("run 1 is not explained, because it did not end well: assay show 1 has"), "{told}");
    assert_eq!(runs(&sandbox), 1);
}

#[test]
fn what_a_level_observes_is_watched_in_its_trials_alone() {
    let sandbox = Sandbox::new();
    sandbox.write("job.fio", JOB.replace("${BS}", "4k").as_str());
    let words = ["run", "job.fio", "-q", "--rounds", "1", "--vary", "observe=none,extents"];
    sandbox.succeed(&words);
    let run = sandbox.export("1");
    let seen = |trial: &assay::record::Trial| {
        trial.values.iter().any(|(metric, _)| run.metrics[*metric as usize].name.starts_with("extents."))
            || trial.notes.iter().any(|note| note.text.contains("no extents"))
    };
    assert!(run.trials.iter().all(|trial| seen(trial) == (run.arm_of(trial.cell) == 1)), "{:?}", run.trials);
    // Such a run cannot be watched besides.
    let output = sandbox.run(&["explain", "1", "--only", "cpu"]);
    assert!(output.status.success(), "{}", said(&output));
    assert!(said(&output).contains("its factor observe varies itself what is watched"), "{}", said(&output));
    let wrong = sandbox.run(&["run", "job.fio", "--vary", "observe=none,lock"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(said(&wrong).contains("no observer 'lock'"), "{}", said(&wrong));
}

#[test]
fn who_may_not_watch_hears_what_helps() {
    if !is_root() || !available("setpriv") {
        return;
    }
    let sandbox = explained(&[]);
    // root without any right of root's.
    let words = ["--bounding-set=-all", "--inh-caps=-all", env!("CARGO_BIN_EXE_assay"), "explain", "1"];
    let output = sandbox.command("setpriv").args(words).args(["--only", "locks,waits"]).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let told = errors(&output).split_whitespace().collect::<Vec<_>>().join(" ");
    let reason = "the kernel does not let this user watch it";
    assert!(
        told.contains(&format!("run 1 is not watched: locks and waits are not watched: {reason}")),
        "{told}"
    );
    assert_eq!(told.matches(reason).count(), 1, "once for both: {told}");
    assert!(told.contains("run as root"), "{told}");
    assert_eq!(runs(&sandbox), 1);
}

#[test]
fn killed_while_it_watches_it_leaves_a_store_that_works() {
    if !is_root() {
        return;
    }
    let sandbox = Sandbox::new();
    // Short rounds, until a trial lasts long enough to be killed in.
    sandbox.write("job.fio", &JOB.replace("80ms", "${T}"));
    let run = ["run", "job.fio", "-q", "--vary", "BS=4k,8k", "--vary", "T=60ms,1500ms", "--rounds", "1"];
    sandbox.succeed(&run);
    let before = sandbox.export("1");
    let mut child = sandbox.start(&["explain", "1", "-q", "--only", "locks,cpu"]);
    let begun = Instant::now();
    while !a_trial_is_watched(&sandbox) {
        assert!(begun.elapsed() < Duration::from_secs(60), "nobody watches: {:?}", sandbox.processes());
        std::thread::sleep(Duration::from_millis(10));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    sandbox.no_process_left(Duration::from_secs(20));
    assert_eq!(watching(&sandbox), 0);
    let list = sandbox.succeed(&["list"]);
    assert!(list.contains("explains 1: job") && list.contains("unfinished"), "{list}");
    sandbox.succeed(&["cleanup"]);
    assert_eq!(sandbox.names(), BTreeSet::from(["assay.db".to_owned(), "job.fio".to_owned()]));
    assert_eq!(sandbox.export("1"), before);
    // What did not come to its end explains nothing, and is not in the way of the next one.
    assert!(!sandbox.succeed(&["report", "1"]).contains("price of watching"));
    assert_eq!(sandbox.run(&["run", "--resume", "2"]).status.code(), Some(2));
    sandbox.succeed(&["explain", "1", "-q", "--rounds", "1", "--only", "cpu", "--flame", "graphs"]);
    assert_eq!(watched(&sandbox.export("3")).len(), 8);
}
