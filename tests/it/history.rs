//! Runs of one name in time.

use serde_json::Value;

use crate::attacks::sql;
use crate::sandbox::{Sandbox, errors};

/// Made-up values; what runs differ in is what their seeds give.
fn night(bw: f64) -> String {
    format!(
        "engine = \"simulated\"\naa = true\nname = \"nightly\"\n[[factor]]\nname = \"bs\"\nlevels = [\"4k\", \"64k\"]\n\
         [simulated]\nbw = {bw:?}\ncv = 0.005\n[stop]\nrounds = 4\n"
    )
}

/// Without the ends of lines.
fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn nights(sandbox: &Sandbox, bw: f64, seeds: std::ops::Range<u32>) {
    sandbox.write("night.toml", &night(bw));
    for seed in seeds {
        sandbox.succeed(&["run", "night.toml", "-q", "--seed", &seed.to_string()]);
    }
}

#[test]
fn a_change_of_level_is_found_with_what_changed_beside_it_and_a_gate_fails() {
    let sandbox = Sandbox::new();
    assert_eq!(sandbox.run(&["history"]).status.code(), Some(2), "there is no store");
    nights(&sandbox, 1e8, 1..2);
    let alone = sandbox.run(&["history", "nightly"]);
    assert_eq!(alone.status.code(), Some(2));
    assert!(errors(&alone).contains("'nightly' has 1 finished run"), "{}", errors(&alone));
    let first = sandbox.run(&["history", "nightly", "--fail-if", "slower"]);
    assert_eq!(first.status.code(), Some(0), "{}", errors(&first));
    let strict = sandbox.run(&["history", "nightly", "--fail-if", "slower,undecided"]);
    assert_eq!(strict.status.code(), Some(3), "{}", errors(&strict));
    assert!(errors(&first).contains("'nightly' has one finished run"), "{}", errors(&first));
    nights(&sandbox, 1e8, 2..7);
    assert!(sandbox.succeed(&["history"]).contains("6 runs  assay history nightly"));

    let gate = ["history", "nightly", "--fail-if", "slower"];
    let calm = sandbox.run(&gate);
    assert_eq!(calm.status.code(), Some(0), "{}", errors(&calm));
    let text = String::from_utf8(calm.stdout).unwrap();
    assert!(
        text.contains("newest, run 6:")
            && flat(&text).contains("against the 5 runs before it")
            && !text.contains("changed"),
        "{text}"
    );

    // One bad night fails the gate; three are a new level, which fails it until it is accepted.
    nights(&sandbox, 0.9e8, 7..8);
    let bad = sandbox.run(&gate);
    assert_eq!(bad.status.code(), Some(3), "{}", errors(&bad));
    let text = String::from_utf8(bad.stdout).unwrap();
    assert!(text.contains("newest, run 7: −10") && flat(&text).contains("slower by more than 2 %"), "{text}");
    // The second bad night is as bad.
    nights(&sandbox, 0.9e8, 8..9);
    assert_eq!(sandbox.run(&gate).status.code(), Some(3));
    nights(&sandbox, 0.9e8, 9..11);
    let text = sandbox.succeed(&["history", "nightly"]);
    assert!(
        text.contains("changed at run 7: −10.")
            && flat(&text).contains("newest, run 10: 3 runs before it since run 7"),
        "{text}"
    );
    assert_eq!(
        text.lines().filter(|line| line.ends_with("● changed") || line.ends_with("· changed")).count(),
        1,
        "{text}"
    );
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert_eq!(sandbox.run(&gate).status.code(), Some(3));
    let accepted = sandbox.run(&[&gate[..], &["--since", "7"]].concat());
    assert_eq!(accepted.status.code(), Some(0), "{}", errors(&accepted));
    assert!(errors(&accepted).contains("cannot be judged yet"), "{}", errors(&accepted));

    let json: Value = serde_json::from_str(&sandbox.succeed(&["history", "nightly", "--json"])).unwrap();
    let series = &json["series"][0];
    assert_eq!(series["points"].as_array().unwrap().len(), 10);
    assert_eq!(series["changes"][0]["run"], "run 7");
    assert!(series["changes"][0]["p"].as_f64().unwrap() < 0.05);
}

#[test]
fn an_option_of_the_job_that_changed_with_the_level_is_named() {
    let sandbox = Sandbox::new();
    for (number, io_size) in
        [(1, "64k"), (2, "64k"), (3, "64k"), (4, "64k"), (5, "256k"), (6, "256k"), (7, "256k"), (8, "256k")]
    {
        sandbox.write("job.fio", &format!("[w]\nrw=write\nbs=4k\nsize=1m\nio_size={io_size}\n"));
        let seed = number.to_string();
        sandbox.succeed(&[
            "run", "job.fio", "-q", "--engine", "null", "--aa", "--name", "n", "--rounds", "1", "--primary",
            "write.total_ios", "--seed", &seed,
        ]);
    }
    let text = sandbox.succeed(&["history", "n"]);
    assert!(flat(&text).contains("changed at run 5: +300") && flat(&text).contains("with it: "), "{text}");
    let json: Value = serde_json::from_str(&sandbox.succeed(&["history", "n", "--json"])).unwrap();
    let facts = json["series"][0]["changes"][0]["facts"].as_array().unwrap().clone();
    let is_size =
        |fact: &Value| fact["fact"] == "job.io_size" && fact["before"] == "64k" && fact["after"] == "256k";
    assert!(facts.iter().any(is_size), "{facts:?}");
}

/// Nights differ by 2 %, trials of a night by 0.5 %: as many independent values as there are nights.
#[test]
fn stored_nights_are_compared_as_nights() {
    let sandbox = Sandbox::new();
    let levels = [1.00, 0.97, 1.02, 0.99, 1.01, 0.98, 1.015, 0.96];
    for (at, level) in levels.iter().enumerate() {
        sandbox.write("night.toml", &night(1e8 * level));
        sandbox.succeed(&["run", "night.toml", "-q", "--seed", &(at + 1).to_string()]);
        let side = if at % 2 == 0 { "old" } else { "new" };
        std::fs::create_dir_all(sandbox.path().join(side)).unwrap();
        let export = sandbox.succeed(&["export", &(at + 1).to_string(), "--format", "json"]);
        sandbox.write(&format!("{side}/{at}.json"), &export);
    }
    let text = flat(&sandbox.succeed(&["compare", "old", "new"]));
    assert!(text.contains("4 runs each") && text.contains("trials are judged by runs"), "{text}");
    let each = flat(&sandbox.succeed(&["compare", "old", "new", "--cluster", "none"]));
    assert!(each.contains("32 repeats each"), "{each}");
    let asked = flat(&sandbox.succeed(&["compare", "old", "new", "--cluster", "run"]));
    assert!(asked.contains("4 runs each"), "{asked}");
    // A row that one side has lost has no verdict, and a gate asks for one.
    sandbox.write("a.csv", "job,bw\na,10\na,11\na,10\na,11\nb,10\nb,11\nb,10\nb,11\n");
    sandbox.write("b.csv", "job,bw\na,10\na,11\na,10\na,11\n");
    let gate = ["compare", "a.csv", "b.csv", "--row", "job", "--value", "bw:higher", "--fail-if", "slower"];
    let lost = sandbox.run(&gate);
    assert_eq!(lost.status.code(), Some(1), "{}", errors(&lost));
    assert!(errors(&lost).contains("1 of 2 were measured on one side only"), "{}", errors(&lost));
}

/// A round of job.fio that moves nothing, judged by how many I/Os it counts.
fn count_alone(sandbox: &Sandbox, name: &str, seed: u32) {
    let words = ["run", "job.fio", "-q", "--engine", "null", "--aa", "--rounds", "1"];
    let judged = ["--primary", "write.total_ios", "--name", name, "--seed", &seed.to_string()];
    sandbox.succeed(&[&words[..], &judged[..]].concat());
}

/// The newest run has lost a job: the run before it must not be judged in its place.
#[test]
fn a_gate_does_not_pass_without_a_job() {
    let sandbox = Sandbox::new();
    let section = |name: &str| format!("[{name}]\nrw=write\nbs=4k\nsize=64k\n");
    for seed in 1..7 {
        let names: &[&str] = if seed < 6 { &["a", "b", "c"] } else { &["a", "b"] };
        sandbox.write("job.fio", &names.iter().map(|name| section(name)).collect::<String>());
        count_alone(&sandbox, "n", seed);
    }
    let gate = ["history", "n", "--primary", "write.total_ios", "--fail-if", "changed"];
    let lost = sandbox.run(&gate);
    let text = String::from_utf8(lost.stdout.clone()).unwrap();
    assert_eq!(lost.status.code(), Some(1), "{} {text}", errors(&lost));
    assert!(flat(&text).contains("not judged: run 6 has no value of it"), "{text}");
    // Who looks at the last run alone has nothing to compare it with.
    let alone = sandbox.run(&[&gate[..], &["--last", "1"]].concat());
    assert_eq!(alone.status.code(), Some(2), "{}", errors(&alone));
    assert!(errors(&alone).contains("'n' has 6 finished runs, of which 1 is left"), "{}", errors(&alone));
    // A newest run that has not finished is no green night.
    sql(&sandbox.path().join("assay.db"), "UPDATE run SET state = '\"interrupted\"' WHERE id = 6");
    let unfinished = sandbox.run(&gate);
    assert_eq!(unfinished.status.code(), Some(1), "{}", errors(&unfinished));
    assert!(
        errors(&unfinished).contains("run 6 of the name n, the newest, has not finished"),
        "{}",
        errors(&unfinished)
    );
}

/// A job that never came to its end is no job that is not there.
#[test]
fn a_gate_of_all_names_does_not_pass_over_one_without_a_finished_run() {
    let sandbox = Sandbox::new();
    sandbox.write("job.fio", "[a]\nrw=write\nbs=4k\nsize=64k\n");
    for (seed, name) in (1..).zip(["n/a", "n/a", "n/b", "m/b"]) {
        count_alone(&sandbox, name, seed);
    }
    sql(&sandbox.path().join("assay.db"), "UPDATE run SET state = '\"failed\"' WHERE id > 2");
    let words = ["history", "n/", "--primary", "write.total_ios"];
    let told = sandbox.run(&words);
    assert_eq!(told.status.code(), Some(0), "{}", errors(&told));
    assert!(
        errors(&told).contains("note: no run called 'n/b' has finished; the newest is run 3"),
        "{}",
        errors(&told)
    );
    let gate = sandbox.run(&[&words[..], &["--fail-if", "slower"]].concat());
    assert_eq!(gate.status.code(), Some(1), "{}", errors(&gate));
    assert!(errors(&gate).contains("assay show 3"), "{}", errors(&gate));
    let alone = sandbox.run(&["history", "m/", "--fail-if", "slower"]);
    assert_eq!(alone.status.code(), Some(1), "{}", errors(&alone));
}

/// Earlier versions judged a paced section with syncs by the latency of its writes.
#[test]
fn a_run_of_before_durable_latencies_is_compared_by_what_both_have() {
    let sandbox = Sandbox::new();
    sandbox.write("wal.fio", "[w]\nrw=write\nbs=4k\nsize=64k\nrate_iops=500\nfdatasync=1\n");
    for seed in ["1", "2"] {
        sandbox.succeed(&["run", "wal.fio", "-q", "--aa", "--name", "n", "--rounds", "4", "--seed", seed]);
    }
    sql(
        &sandbox.path().join("assay.db"),
        "UPDATE run SET design = replace(design, 'durable.lat_ns', 'write.lat_ns') WHERE id = 1",
    );
    let json = sandbox.succeed(&["compare", "1", "2", "--format", "json"]);
    assert!(json.contains("here write.lat_ns.mean decides"), "{json}");
    let found: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(found["analysis"]["comparisons"][0]["metric"]["name"], "write.lat_ns.mean");
    let gate = sandbox.run(&["history", "n", "--fail-if", "slower"]);
    assert_ne!(gate.status.code(), Some(2), "{}", errors(&gate));
    // Both of now are judged as they were.
    sql(
        &sandbox.path().join("assay.db"),
        "UPDATE run SET design = replace(design, 'write.lat_ns', 'durable.lat_ns') WHERE id = 1",
    );
    let json = sandbox.succeed(&["compare", "1", "2", "--format", "json"]);
    let found: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(found["analysis"]["comparisons"][0]["metric"]["name"], "durable.lat_ns.mean");
}

/// One run by hand that was judged by another metric must not change what the gate looks at.
#[test]
fn runs_that_were_judged_otherwise_need_a_word() {
    let sandbox = Sandbox::new();
    for (seed, delta) in [("1", "2%"), ("2", "2%"), ("3", "5%")] {
        sandbox.write("night.toml", &night(1e8));
        sandbox.succeed(&["run", "night.toml", "-q", "--seed", seed, "--delta", delta]);
    }
    let gate = ["history", "nightly", "--fail-if", "slower"];
    let refused = sandbox.run(&gate);
    assert_eq!(refused.status.code(), Some(2), "{}", errors(&refused));
    assert!(errors(&refused).contains("they differ in --delta"), "{}", errors(&refused));
    let said = sandbox.run(&[&gate[..], &["--delta", "2%"]].concat());
    assert_eq!(said.status.code(), Some(0), "{}", errors(&said));
}
