//! Commands about stored runs: names, states, times, other users' stores, room on the disk, exports that come back.

use crate::attacks::sql;
use crate::bad_inputs::without_privilege;
use crate::sandbox::{Sandbox, errors};
use crate::tools::is_root;

const SIMULATED: &str = "name = \"s\"\njob_text = \"[w]\\nsize=1m\\n\"\nengine = \"simulated\"\n[stop]\nrounds = 4\n\
                         [simulated]\ncv = 0.01\neffects = { \"bs=8k\" = 0.5 }\n\
                         [[factor]]\nname = \"bs\"\nlevels = [\"4k\", \"8k\"]\n";

/// A sandbox with runs of these names.
fn runs(names: &[&str]) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("s.toml", SIMULATED);
    names.iter().for_each(|name| drop(sandbox.succeed(&["run", "s.toml", "-q", "--name", name])));
    sandbox
}

fn in_store(sandbox: &Sandbox, statements: &str) {
    sql(&sandbox.path().join("assay.db"), statements);
}

#[test]
fn a_run_that_was_stopped_at_once_does_not_take_its_name() {
    let sandbox = runs(&["before"]);
    in_store(
        &sandbox,
        "DELETE FROM value; DELETE FROM trial; UPDATE run SET state = '\"interrupted\"' WHERE id = 1",
    );
    let again = sandbox.run(&["run", "s.toml", "--name", "before"]);
    let said = errors(&again);
    assert!(again.status.success() && !said.contains("already"), "{said}");
    sandbox.succeed(&["run", "s.toml", "-q", "--name", "after"]);
    assert!(sandbox.succeed(&["show", "before"]).starts_with("run 2  before"));
    sandbox.succeed(&["compare", "before", "after"]);
    let third = sandbox.run(&["run", "s.toml", "--name", "before"]);
    let said = errors(&third);
    assert!(said.contains("run 2 is called 'before' already; other commands"), "{said}");
    in_store(&sandbox, "UPDATE run SET state = '\"interrupted\"' WHERE id = 2");
    let refused = sandbox.run(&["show", "before"]);
    let said = errors(&refused);
    assert_eq!(refused.status.code(), Some(2), "{said}");
    let listed = "2 runs are called 'before': 4 (finished, 4 rounds), 2 (interrupted, 4 rounds)";
    assert!(said.contains(listed), "{said}");
}

#[test]
fn times_are_local_and_show_says_when_and_what_decides() {
    let sandbox = runs(&["one"]);
    // 2026-11-24 20:41:07 UTC; the trials began then, too.
    in_store(
        &sandbox,
        "UPDATE run SET started_unix_ns = 1795552867000000000, state = '\"running\"';
         UPDATE trial SET started_unix_ns = 1795552867000000000, elapsed_s = 90.0;
         UPDATE metric SET job = 'wal' WHERE name = 'write.bw'",
    );
    let east = |words: &[&str]| {
        let output = sandbox.assay(words).env("TZ", "ABC-3").output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let list = east(&["list"]);
    assert!(list.contains("local time") && list.contains("2026-11-24 23:41 unfinished"), "{list}");
    let shown = east(&["show", "1"]);
    let began =
        "\nbegan: 2026-11-24 23:41:07 +03:00; its last trial ended 1 min 30 s later\nstate: unfinished  ";
    assert!(shown.contains(began), "{shown}");
    let first = shown.lines().find(|line| line.contains("bs=")).unwrap();
    assert!(first.contains("wal: write.bw "), "{shown}");
}

#[test]
fn a_store_of_another_user_says_whose_it_is() {
    if !is_root() {
        return;
    }
    let sandbox = runs(&["one"]);
    in_store(&sandbox, "UPDATE run SET state = '\"running\"', owner = 'somebody'");
    let nobody = |words: &[&str]| without_privilege(&sandbox, words).output().unwrap();
    let list = String::from_utf8(nobody(&["list"]).stdout).unwrap();
    let told = "running?: running or unfinished (another user's); `sudo assay list` knows";
    assert!(list.contains(" running? ") && list.contains(told), "{list}");
    let shown = String::from_utf8(nobody(&["show", "1"]).stdout).unwrap();
    assert!(shown.contains("\nstate: running or unfinished (another user's)  "), "{shown}");
    for words in [&["delete", "1"][..], &["run", "s.toml"]] {
        let refused = nobody(words);
        let said = errors(&refused);
        assert_eq!(refused.status.code(), Some(2), "{said}");
        assert!(said.contains("it belongs to root: `sudo assay …` may write it"), "{said}");
    }
    // Root itself knows.
    assert!(sandbox.succeed(&["list"]).contains(" unfinished "));
}

#[test]
fn cleanup_needs_no_store() {
    let sandbox = Sandbox::new();
    for words in [&["cleanup"][..], &["cleanup", "--dry-run"]] {
        assert_eq!(sandbox.succeed(words), "nothing was left behind\n");
    }
    assert!(sandbox.names().is_empty());
}

#[test]
fn a_list_is_cut_and_a_range_is_deleted() {
    let sandbox = runs(&["one", "two", "one", "three", "one"]);
    let numbers = |words: &[&str]| -> Vec<String> {
        let list = sandbox.succeed(words);
        let numbers = list.lines().skip(1).map(|line| line.split_whitespace().next().unwrap().to_owned());
        numbers.collect()
    };
    assert_eq!(numbers(&["list", "--last", "2"]), ["4", "5"]);
    assert_eq!(numbers(&["list", "--name", "on", "--last", "2"]), ["3", "5"]);
    assert_eq!(sandbox.succeed(&["list", "--json", "--name", "two"]).lines().count(), 1);
    for wrong in ["9-12", "4-2", "one", "1-"] {
        assert_eq!(sandbox.run(&["delete", wrong]).status.code(), Some(2), "{wrong}");
    }
    sandbox.succeed(&["delete", "1", "3-4", "4-9"]);
    assert_eq!(numbers(&["list"]), ["2"]);
}

#[test]
fn an_export_comes_back_as_a_run_that_nobody_began_here() {
    let sandbox = runs(&["one"]);
    sandbox.succeed(&["export", "1", "-o", "run.json"]);
    sandbox.succeed(&["export", "1", "-o", "run.csv"]);
    let there = ["--db", "there.db"];
    let imported = |words: &[&str]| sandbox.run(&[words, &there].concat());
    let first = imported(&["import", "run.json", "--name", "elsewhere"]);
    let said = String::from_utf8(first.stdout).unwrap();
    assert_eq!(said, "run 1 (elsewhere, 8 trials) from run.json\n");
    let again = imported(&["import", "run.json"]);
    assert_eq!(String::from_utf8(again.stdout).unwrap(), "run.json is run 1 already\n");
    let original = sandbox.export("1");
    let output = imported(&["export", "elsewhere"]);
    let back: assay::record::Run = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&back.trials, &back.facts, &back.metrics),
        (&original.trials, &original.facts, &original.metrics)
    );
    assert!(back.notes.iter().any(|note| note.text == "imported from run.json, where it was run 1"));
    // Everything that would run something of it refuses.
    in_store_of(&sandbox, "there.db", "UPDATE run SET state = '\"interrupted\"'");
    for words in [&["run", "--resume", "1"][..], &["explain", "1"]] {
        let refused = imported(words);
        let said = errors(&refused);
        assert_eq!(refused.status.code(), Some(2), "{said}");
        assert!(said.contains("run 1 has no seal: it was imported"), "{said}");
    }
    for (file, name, words) in [
        ("run.csv", "x", "only JSON keeps all of a run"),
        ("s.toml", "x", "no format known here"),
        ("missing.json", "x", "no such file"),
        ("run.json", "latest", "a run cannot be called 'latest'"),
    ] {
        let refused = imported(&["import", file, "--name", name]);
        let said = errors(&refused);
        assert_eq!(refused.status.code(), Some(2), "{said}");
        assert!(said.contains(words), "{said}");
    }
}

fn in_store_of(sandbox: &Sandbox, store: &str, statements: &str) {
    sql(&sandbox.path().join(store), statements);
}

#[test]
fn metrics_of_jobs_with_variables_and_of_tables() {
    let sandbox = runs(&["one"]);
    sandbox.write("j.fio", "[w]\nrw=write\nbs=${bs}\nsize=1m\n");
    let without = sandbox.run(&["metrics", "j.fio"]);
    assert_eq!(without.status.code(), Some(2), "{}", errors(&without));
    for vary in ["bs=4k", "bs=4k,64k"] {
        assert!(
            sandbox
                .succeed(&["metrics", "j.fio", "--vary", vary, "-t", "fs=ext4", "-t", "loop:1g"])
                .contains("write.bw")
        );
    }
    sandbox.succeed(&["export", "1", "-o", "run.csv"]);
    sandbox.succeed(&["export", "1", "-o", "run.json"]);
    std::fs::rename(sandbox.path().join("run.json"), sandbox.path().join("exported")).unwrap();
    for file in ["run.csv", "exported"] {
        assert!(sandbox.succeed(&["metrics", file]).contains("write.bw"), "{file}");
    }
}

#[test]
fn hide_below_is_a_percentage_everywhere_and_says_where_it_changes_nothing() {
    let sandbox = runs(&["one", "two"]);
    for command in [&["report", "1"][..], &["compare", "one", "two"]] {
        let words = |format| [command, &["--hide-below", "5%", "--format", format]].concat();
        let text = sandbox.run(&words("text"));
        assert!(
            text.status.success() && errors(&text).contains("--hide-below changes nothing here"),
            "{command:?}"
        );
        let lkml = sandbox.run(&words("lkml"));
        assert!(lkml.status.success() && !errors(&lkml).contains("--hide-below"), "{}", errors(&lkml));
    }
}

#[test]
fn a_search_is_no_arm() {
    let sandbox = Sandbox::new();
    sandbox.write("s.toml", SIMULATED);
    sandbox.succeed(&["run", "s.toml", "-q"]);
    let steps = ["bisect", "--steps", "0 1 2 3", "--metric", "took=([0-9]+)", "--max-rounds", "8", "-q"];
    // What comes of it does not matter.
    let _ = sandbox.run(&[&steps[..], &["--", "sh", "-c", "echo $((100 + {step} * 50))"]].concat());
    sandbox.succeed(&["export", "2", "-o", "search.json"]);
    for inputs in [&["2"][..], &["1", "2"], &["1", "old=2:step=1"], &["search.json"], &["1", "search.json"]] {
        let refused = sandbox.run(&[&["compare"], inputs].concat());
        let said = errors(&refused);
        assert_eq!(refused.status.code(), Some(2), "{inputs:?}: {said}");
        assert!(said.contains("a search: most of its steps were hardly run"), "{inputs:?}: {said}");
        assert!(said.contains("`assay bisect --show"), "{inputs:?}: {said}");
    }
}

#[test]
fn an_export_leaves_files_out_where_it_is_asked_to() {
    let sandbox = Sandbox::new();
    let before = ["--before", "echo a hook speaks"];
    let words = ["run", "-q", "--vary", "n=1,2", "--rounds", "1"];
    sandbox.succeed(&[&words[..], &before, &["--", "true", "${n}"]].concat());
    let files = |words: &[&str]| -> usize {
        let run: assay::record::Run = serde_json::from_str(&sandbox.succeed(words)).unwrap();
        run.trials.iter().map(|trial| trial.files.len()).sum()
    };
    assert_eq!(files(&["export", "1"]), 2);
    assert_eq!(files(&["export", "1", "--no-files"]), 0);
    sandbox.succeed(&["export", "1", "-o", "run.json"]);
    assert_eq!(files(&["export", "run.json", "--no-files"]), 0);
}

#[test]
fn old_runs_are_deleted_by_age_and_name() {
    let sandbox = runs(&["nightly/a", "nightly/a", "other"]);
    in_store(
        &sandbox,
        "UPDATE run SET started_unix_ns = started_unix_ns - 100 * 86400 * 1000000000 WHERE id <> 2",
    );
    for wrong in [&["--older-than", "90"][..], &["--older-than", "90d", "1"], &["--name", "other", "1"], &[]]
    {
        assert_eq!(sandbox.run(&[&["delete"], wrong].concat()).status.code(), Some(2), "{wrong:?}");
    }
    for wrong in ["6m", "6M", "0d", "1h", "d", "-3d"] {
        assert_eq!(sandbox.run(&["delete", "--older-than", wrong]).status.code(), Some(2), "{wrong}");
    }
    assert_eq!(sandbox.succeed(&["delete", "--older-than", "1y"]), "no such run is older than 365 days\n");
    let night = errors(&sandbox.run(&["delete", "--older-than", "90d", "--name", "night"]));
    assert!(night.contains("no run is called 'night'"), "{night}");
    let dry = sandbox.succeed(&["delete", "--older-than", "90d", "--dry-run"]);
    assert!(
        dry.starts_with("would delete run 1 (nightly/a, ") && dry.contains("\nwould delete run 3 (other, "),
        "{dry}"
    );
    let slash = errors(&sandbox.run(&["delete", "--older-than", "90d", "--name", "nightly"]));
    assert!(slash.contains("did you mean nightly/"), "{slash}");
    let told = sandbox.succeed(&["delete", "--older-than", "12w", "--name", "nightly/"]);
    assert!(told.starts_with("deleted run 1 (nightly/a, ") && told.lines().count() == 1, "{told}");
    let left = sandbox.succeed(&["list", "--json", "--state", "finished"]);
    assert_eq!(left.lines().count(), 2, "{left}");
    assert_eq!(sandbox.succeed(&["list", "--json", "--state", "unfinished"]), "");
    in_store(&sandbox, "UPDATE run SET state = '\"running\"' WHERE id = 2");
    let killed = sandbox.succeed(&["list", "--json", "--state", "unfinished"]);
    assert!(killed.contains("\"run\":2,") && killed.contains("\"state\":\"unfinished\""), "{killed}");
}

#[test]
fn a_run_whose_leftover_is_gone_can_be_deleted() {
    let sandbox = runs(&["before"]);
    let there = sandbox.path().join("there");
    std::fs::create_dir(&there).unwrap();
    in_store(&sandbox, &format!("INSERT INTO leftover VALUES (1, '{}')", there.display()));
    let refused = sandbox.run(&["delete", "1"]);
    assert!(errors(&refused).contains("run 1 was killed and left something behind"), "{}", errors(&refused));
    std::fs::remove_dir(&there).unwrap();
    sandbox.succeed(&["delete", "1"]);
}

/// The report is printed and written, in the format that the file's ending says; a file of somebody else stays.
#[test]
fn a_run_also_writes_its_report() {
    let sandbox = Sandbox::new();
    sandbox.write("job.fio", "[a]\nrw=write\nbs=4k\nsize=64k\n");
    let words =
        ["run", "job.fio", "--engine", "null", "--vary", "bs=4k,8k", "--rounds", "4", "--seed", "1", "-o"];
    let told = sandbox.run(&[&words[..], &["r.md"]].concat());
    assert!(errors(&told).contains("\nreport: r.md"), "{}", errors(&told));
    assert!(String::from_utf8_lossy(&told.stdout).starts_with("job: bs=8k against bs=4k"));
    let file = sandbox.path().join("r.md");
    assert!(std::fs::read_to_string(&file).unwrap().starts_with("## job: bs=8k against bs=4k"));
    std::fs::write(&file, "my notes").unwrap();
    let refused = sandbox.run(&[&words[..], &["r.md"]].concat());
    assert_eq!(refused.status.code(), Some(2), "{}", errors(&refused));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "my notes");
    assert_eq!(sandbox.succeed(&["list"]).matches("job: bs").count(), 1, "it was refused before it began");
    sandbox.succeed(&[&words[..], &["r.md", "--force"]].concat());
    assert!(std::fs::read_to_string(&file).unwrap().starts_with("## job"));
}
