//! What a user finds out from the program itself: metrics, runs by name, topics of the documentation.

use crate::sandbox::{Sandbox, errors};

const JOB: &str = "[global]\nbs=4k\nsize=64k\n[wal]\nrw=write\nfsync=4\n[scan]\nrw=randread\n";
const SIMULATED: &str = "name = \"NAME\"\njob_text = \"[w]\\nsize=1m\\n\"\nengine = \"simulated\"\n[stop]\nrounds = 4\n\
                         [[factor]]\nname = \"bs\"\nlevels = [\"4k\", \"8k\"]\n";

/// Runs 1 (alpha), 2 (beta) and 3 (beta).
fn three_runs() -> Sandbox {
    let sandbox = Sandbox::new();
    for name in ["alpha", "beta", "beta"] {
        let text = SIMULATED.replace("NAME", name);
        sandbox.write("s.toml", &text);
        sandbox.succeed(&["run", "s.toml", "-q"]);
    }
    sandbox
}

#[test]
fn a_run_is_named_by_number_name_or_latest() {
    let sandbox = three_runs();
    let head = |words: &[&str]| sandbox.succeed(words).lines().next().unwrap_or_default().to_owned();
    assert!(head(&["show", "alpha"]).starts_with("run 1  alpha"));
    assert!(head(&["show", "latest"]).starts_with("run 3  beta"));
    assert_eq!(sandbox.export("latest").id, Some(3));
    assert_eq!(sandbox.succeed(&["report", "alpha"]), sandbox.succeed(&["report", "1"]));
    let compared = sandbox.succeed(&["compare", "alpha", "old=latest"]);
    assert!(compared.contains("alpha") && compared.contains("old"), "{compared}");
    for command in ["show", "report", "export", "metrics"] {
        let output = sandbox.run(&[command, "beta"]);
        assert_eq!(output.status.code(), Some(2), "{command}");
        assert!(
            errors(&output).contains("2 runs are called 'beta': 3 (finished, 4 rounds), 2 ("),
            "{}",
            errors(&output)
        );
        let output = sandbox.run(&[command, "alpa"]);
        assert!(
            errors(&output).contains("no run is called 'alpa'; did you mean alpha?"),
            "{}",
            errors(&output)
        );
    }
    for (arguments, words) in [
        (&["run", "--resume", "alpha"][..], "run 1 is finished"),
        (&["run", "--resume", "latest"], "run 3 is finished"),
        (&["run", "--resume", "beta"], "2 runs are called 'beta'"),
        (&["run", "--more", "2", "latest"], "run 3 was not made with --anytime"),
        (&["run", "--more", "two", "latest"], "--more is two rounds"),
        (&["compare", "beta", "alpha"], "2 runs are called 'beta'"),
    ] {
        let output = sandbox.run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(errors(&output).contains(words), "{arguments:?}: {}", errors(&output));
    }
    // A file is a file.
    sandbox.succeed(&["export", "1", "-o", "latest.json"]);
    std::fs::rename(sandbox.path().join("latest.json"), sandbox.path().join("latest")).unwrap();
    assert!(head(&["show", "latest"]).contains("alpha"));
}

#[test]
fn metrics_are_listed_of_a_run_and_of_a_job() {
    let sandbox = Sandbox::new();
    sandbox.write("job.fio", JOB);
    sandbox.succeed(&["run", "job.fio", "--aa", "--rounds", "1", "-q"]);
    let lines = |words: &[&str]| -> Vec<String> {
        sandbox
            .succeed(words)
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
            .collect()
    };
    let (run, job) = (lines(&["metrics", "latest"]), lines(&["metrics", "job.fio"]));
    assert_eq!(run[0], "section metric unit better");
    for line in [
        "wal write.bw B/s higher",
        "wal sync.lat_ns.p99 ns lower",
        "scan read.clat_ns.mean ns lower",
        "- usr_cpu s lower",
    ] {
        assert!(run.iter().any(|known| known == line), "{line}: {run:?}");
    }
    let missing: Vec<&String> = run.iter().filter(|line| !job.contains(line)).collect();
    assert!(missing.is_empty(), "a job does not tell of {missing:?}\n{job:?}");
    let bare = sandbox.run(&["metrics", "job.fio", "--engine", "bare"]);
    assert_eq!(bare.status.code(), Some(2));
    assert!(errors(&bare).contains("known only from a run"), "{}", errors(&bare));
}

#[test]
fn the_program_explains_itself() {
    let sandbox = Sandbox::new();
    let all = sandbox.succeed(&["help"]);
    assert!(
        all.contains("Usage: assay")
            && all.contains("Topics, for `assay help TOPIC`:")
            && all.contains("  targets"),
        "{all}"
    );
    let targets = sandbox.succeed(&["help", "targets"]);
    assert!(
        targets.starts_with("Targets: what a trial writes to\n---") && targets.contains("    mount"),
        "{targets}"
    );
    let topics = all.split("Topics, for `assay help TOPIC`:").nth(1).unwrap();
    // What goes on in the next line is indented further.
    let topics = topics.lines().filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    let topics: Vec<&str> = topics.filter(|name| !name.is_empty()).collect();
    assert!(topics.len() >= 10 && topics.contains(&"jobs"), "{topics:?}");
    for topic in topics {
        let page = sandbox.succeed(&["help", topic]);
        assert!(!page.contains("docs/") && page.lines().count() > 5, "{topic}: {page}");
    }
    assert!(sandbox.succeed(&["help", "report"]).contains("assay report 7 -o report.html"));
    let wrong = sandbox.run(&["help", "tragets"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(
        errors(&wrong).contains("no subcommand and no topic 'tragets'; did you mean targets?"),
        "{}",
        errors(&wrong)
    );
    let run = sandbox.succeed(&["run", "--help"]);
    for words in ["Examples:", "Keys of --vary", "assay metrics", "assay help targets", "kernel_args"] {
        assert!(run.contains(words), "{words}: {run}");
    }
}

/// An installed program has no docs directory.
#[test]
fn no_hint_names_a_file_of_the_source() {
    let sandbox = Sandbox::new();
    sandbox.write("job.fio", JOB);
    for arguments in [
        &["run", "job.fio", "--vary", "colour=1,2"][..],
        &["run", "job.fio", "--aa", "-t", "colour=1"],
        &["run", "job.fio", "--aa", "-t", "fs=zfs"],
        &["run", "--engine", "dbench", "--vary", "clints=1,2"],
    ] {
        let said = errors(&sandbox.run(arguments));
        assert!(
            said.contains("hint: ") && said.contains("`assay help ") && !said.contains("docs/"),
            "{said}"
        );
    }
}

#[test]
fn runs_can_be_named_and_deleted() {
    let sandbox = Sandbox::new();
    sandbox.write("s.toml", SIMULATED);
    let run = |name: &str| sandbox.run(&["run", "s.toml", "-q", "--name", name]);
    for name in ["before", "after", "before"] {
        assert!(run(name).status.success(), "{name}");
    }
    for taken in ["7", "latest", " "] {
        let refused = run(taken);
        assert_eq!(refused.status.code(), Some(2));
        assert!(errors(&refused).contains("a run cannot be called"), "{}", errors(&refused));
    }
    assert!(sandbox.succeed(&["show", "after"]).contains("after"));
    // One that is not there: nothing is deleted.
    assert_eq!(sandbox.run(&["delete", "1", "9"]).status.code(), Some(2));
    assert_eq!(sandbox.run(&["delete", "latest"]).status.code(), Some(2));
    let told = sandbox.succeed(&["delete", "1", "2", "1"]);
    assert_eq!(told, "deleted run 1 (before, 8 trials)\ndeleted run 2 (after, 8 trials)\n");
    let left = sandbox.succeed(&["list"]);
    assert!(left.lines().count() == 2 && left.contains("before"), "{left}");
}

/// Trials run in an order that is drawn anew for each round, and the first need not be the baseline's.
#[test]
fn an_exported_table_has_the_runs_baseline() {
    for seed in ["1", "2", "3", "4"] {
        let sandbox = Sandbox::new();
        sandbox.write("s.toml", SIMULATED);
        sandbox.succeed(&["run", "s.toml", "-q", "--seed", seed]);
        sandbox.succeed(&["export", "1", "-o", "1.csv"]);
        let arms = |words: &[&str]| {
            let json: serde_json::Value =
                serde_json::from_str(&sandbox.succeed(&[words, &["--format", "json"]].concat())).unwrap();
            json["analysis"]["comparisons"][0].clone()
        };
        let (own, read) = (arms(&["report", "1"]), arms(&["compare", "1.csv"]));
        for what in ["baseline", "candidate"] {
            assert_eq!(own[what]["arm"], read[what]["arm"], "seed {seed}");
            assert_eq!(own[what]["mean"], read[what]["mean"], "seed {seed}");
        }
    }
}
