//! `assay bisect` with the real program: steps with a known change, builds that fail, kills, commits, wrong requests.

use std::collections::BTreeSet;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};
use serde_json::Value;

use crate::sandbox::{Sandbox, errors};
use crate::tools::available;

/// Prints `took`, 5 % more from step `change` on, with noise that the number of the trial decides; each trial leaves a line in `count`.
fn program(change: u32) -> String {
    format!(
        "echo \"$1\" >> count\nn=$(wc -l < count)\nbase=100000\n[ \"$1\" -ge {change} ] && base=105000\n\
         echo \"took $((base + (n * 7919 % 101) * 20 - 1000))\"\n"
    )
}

fn sandbox(change: u32) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("prog.sh", &program(change));
    sandbox
}

const METRIC: &str = "took=took ([0-9]+)";

/// Searches steps 0 to 20.
fn search<'a>(more: &[&'a str]) -> Vec<&'a str> {
    let steps = "0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20";
    let mut words = vec![
        "bisect", "--steps", steps, "--metric", METRIC, "--seed", "1", "--keep-disturbed", "--format", "json",
    ];
    words.extend(more);
    words.extend(["--", "sh", "prog.sh", "{step}"]);
    words
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

fn found(answer: &Value) -> Vec<&str> {
    let steps = answer["found"]["steps"].as_array().unwrap();
    steps.iter().map(|step| step["step"].as_str().unwrap()).collect()
}

#[test]
fn the_step_is_found_and_shown_again() {
    let sandbox = sandbox(13);
    let answer = json(&sandbox.succeed(&search(&[])));
    assert_eq!((answer["outcome"].as_str(), found(&answer)), (Some("found"), vec!["13"]));
    assert!(answer["found"]["probability"].as_f64().unwrap() >= 0.95);
    let effect = &answer["effect"];
    let bounds = (effect["low"].as_f64().unwrap(), effect["high"].as_f64().unwrap());
    assert!(bounds.0 > 0.0 && bounds.0 < 0.05 && 0.05 < bounds.1 && bounds.1 < 0.1, "{effect}");
    // Every trial is stored, and the stored search gives the same answer with nothing at hand.
    let trials = std::fs::read_to_string(sandbox.path().join("count")).unwrap().lines().count();
    let counted = answer["trials"].as_u64().unwrap() + answer["lead_ins"].as_u64().unwrap();
    assert_eq!(trials as u64, counted);
    assert!(counted < 150, "{counted}");
    std::fs::remove_file(sandbox.path().join("prog.sh")).unwrap();
    assert_eq!(json(&sandbox.succeed(&["bisect", "--show", "1", "--format", "json"])), answer);
    let text = sandbox.succeed(&["bisect", "--show", "1"]);
    assert!(text.contains("the change came with 13 (probability"), "{text}");
    assert!(text.lines().count() < 25 && text.lines().all(|line| line.chars().count() <= 80), "{text}");
    // Its neighbours were run, and the order is in the log.
    let asked: Vec<&Value> = answer["rounds"].as_array().unwrap().iter().collect();
    let ran =
        |step: &str| asked.iter().any(|round| round["asked"].as_array().unwrap().contains(&step.into()));
    assert!(ran("12") && ran("13") && !ran("1"), "{asked:?}");
    // The other commands cope.
    assert!(sandbox.succeed(&["list"]).contains("bisect of 20 steps"));
    assert!(sandbox.succeed(&["show", "1"]).contains("step=13"));
    let refused = sandbox.run(&["report", "1"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(errors(&refused).contains("assay bisect --show 1"), "{}", errors(&refused));
    // The first of its words repeat it.
    let line = answer["command_line"].as_array().unwrap();
    assert_eq!((line[1].as_str(), line[2].as_str()), (Some("bisect"), Some("--steps")));
}

#[test]
fn equal_ends_and_better_ends_are_said() {
    let same = sandbox(99);
    let answer = json(&same.succeed(&search(&[])));
    assert_eq!((answer["outcome"].as_str(), &answer["found"]), (Some("not_worse"), &Value::Null));
    let text = same.succeed(&["bisect", "--show", "1"]);
    assert!(text.contains("nothing to find: 20 is not worse than 0"), "{text}");
    let higher = sandbox(13);
    let metric = "took=took ([0-9]+):/s:higher";
    let better = higher.succeed(&[
        "bisect", "--steps", "0 7 20", "--metric", metric, "--seed", "1", "--keep-disturbed", "--format",
        "json", "--", "sh", "prog.sh", "{step}",
    ]);
    assert_eq!(json(&better)["outcome"], "better");
    let text = higher.succeed(&["bisect", "--show", "1"]);
    assert!(text.contains("--better finds what made it"), "{text}");
}

#[test]
fn what_made_it_better_is_found() {
    let sandbox = sandbox(13);
    let steps = "0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20";
    let metric = "took=took ([0-9]+):/s:higher";
    let words = [
        "bisect", "--better", "--steps", steps, "--metric", metric, "--seed", "1", "--keep-disturbed",
        "--format", "json", "--", "sh", "prog.sh", "{step}",
    ];
    let answer = json(&sandbox.succeed(&words));
    assert_eq!((answer["outcome"].as_str(), found(&answer)), (Some("found"), vec!["13"]));
    assert_eq!(answer["seeks"], "better");
    let effect = &answer["effect"];
    let bounds = (effect["low"].as_f64().unwrap(), effect["high"].as_f64().unwrap());
    assert!(bounds.0 > 0.0 && bounds.0 < 0.05 && 0.05 < bounds.1 && bounds.1 < 0.1, "{effect}");
    let text = sandbox.succeed(&["bisect", "--show", "1"]);
    assert!(text.contains("which of 20 steps from 0 to 20 made took better (higher is better)"), "{text}");
    // More is worse of a time, and then there is nothing to find.
    let words: Vec<&str> = words.map(|word| if word == metric { METRIC } else { word }).to_vec();
    let answer = json(&sandbox.succeed(&words));
    assert_eq!(answer["outcome"], "worse");
    let text = sandbox.succeed(&["bisect", "--show", "2"]);
    assert!(text.contains("nothing to find: 20 is worse than 0"), "{text}");
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("to find what made it worse, leave --better out"), "{text}");
}

#[test]
fn a_step_that_does_not_build_or_run_is_skipped() {
    let sandbox = sandbox(13);
    let build = "echo {step} >> built; [ {step} != 12 ] || { echo no rule to make 12; exit 2; }";
    let answer = json(&sandbox.succeed(&search(&["--build", build, "--ask", "1"])));
    assert_eq!((answer["outcome"].as_str(), found(&answer)), (Some("found_among"), vec!["12", "13"]));
    let skipped = &answer["skipped"][0];
    assert_eq!(skipped["step"], "12");
    assert!(skipped["reason"].as_str().unwrap().contains("no rule to make 12"), "{skipped}");
    let built = std::fs::read_to_string(sandbox.path().join("built")).unwrap();
    let mut once: Vec<&str> = built.lines().collect();
    let all = once.len();
    once.sort_unstable();
    once.dedup();
    assert_eq!(once.len(), all, "each step is built once: {built}");
    let ran = std::fs::read_to_string(sandbox.path().join("count")).unwrap();
    assert!(!ran.lines().any(|step| step == "12"));

    // One that builds and fails is skipped, too; an end is not.
    let fails = Sandbox::new();
    fails.write("prog.sh", &format!("[ \"$1\" = 12 ] && exit 3\n{}", program(13)));
    assert_eq!(found(&json(&fails.succeed(&search(&["--ask", "1"])))), ["12", "13"]);
    let end = sandbox_with_end_that_does_not_build();
    assert_eq!(end.0, Some(1));
    assert!(end.1.contains("20 cannot be run") && end.1.contains("no rule"), "{}", end.1);
}

/// What it said, also where it was asked again.
fn sandbox_with_end_that_does_not_build() -> (Option<i32>, String) {
    let sandbox = sandbox(13);
    let ended = sandbox.run(&search(&["--build", "[ {step} != 20 ] || { echo no rule; exit 2; }"]));
    let shown = sandbox.succeed(&["bisect", "--show", "1"]);
    assert!(shown.contains("20 cannot be run") && shown.contains("begin a new search"), "{shown}");
    let resumed = errors(&sandbox.run(&["bisect", "--resume", "1"]));
    assert!(resumed.contains("one of its ends cannot be run"), "{resumed}");
    (ended.status.code(), errors(&ended))
}

#[test]
fn a_build_that_finds_no_space_ends_a_search_that_goes_on() {
    let sandbox = sandbox(13);
    let build = "[ ! -e full ] || { echo 'cc: error writing: No space left on device'; exit 1; }; echo {step} >> built; [ {step} != 20 ] || [ -e once ] || touch full once; true";
    let ended = sandbox.run(&search(&["--build", build, "--ask", "1"]));
    let said = errors(&ended);
    assert_eq!(ended.status.code(), Some(1), "{said}");
    assert!(said.contains("No space left on device") && said.contains("--resume"), "{said}");
    std::fs::remove_file(sandbox.path().join("full")).unwrap();
    let answer = json(&sandbox.succeed(&["bisect", "--resume", "1", "--format", "json"]));
    assert_eq!(found(&answer), ["13"]);
    assert!(answer["skipped"].as_array().unwrap().is_empty(), "{answer}");
}

#[test]
fn killed_and_resumed_it_finds_the_same() {
    let whole = json(&exact().succeed(&search(&[])));
    assert_eq!(found(&whole), ["13"]);
    for lines in [3, 9, 15] {
        let sandbox = exact();
        let mut child = sandbox.start(&search(&[]));
        let begun = Instant::now();
        let count =
            || std::fs::read_to_string(sandbox.path().join("count")).unwrap_or_default().lines().count();
        while count() < lines {
            assert!(begun.elapsed() < Duration::from_secs(60), "no trial ended");
            std::thread::sleep(Duration::from_millis(2));
        }
        rustix::process::kill_process(
            Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap(),
            Signal::KILL,
        )
        .unwrap();
        child.wait().unwrap();
        let before = sandbox.export("1");
        // The usual way says which one goes on with it.
        let refused = sandbox.run(&["run", "--resume", "1"]);
        assert!(errors(&refused).contains("assay bisect --resume 1"), "{}", errors(&refused));
        let answer = json(&sandbox.succeed(&["bisect", "--resume", "1", "--format", "json"]));
        let after = sandbox.export("1");
        assert_eq!(after.trials[..before.trials.len()], before.trials, "a stored trial changed");
        let asked = |answer: &Value| -> Vec<Value> {
            answer["rounds"].as_array().unwrap().iter().map(|round| round["asked"].clone()).collect()
        };
        assert_eq!((found(&answer), asked(&answer)), (vec!["13"], asked(&whole)), "killed after {lines}");
        sandbox.no_process_left(Duration::from_secs(30));
        let again = sandbox.run(&["bisect", "--resume", "1"]);
        assert_eq!(again.status.code(), Some(2), "{}", errors(&again));
    }
}

#[test]
fn the_first_judged_trial_of_a_step_follows_no_build() {
    for (more, extra) in [(&[][..], true), (&["--no-lead-in"][..], false)] {
        let sandbox = exact();
        sandbox.succeed(&search(&[&["--build", "sleep 1.1", "--max-rounds", "12"], more].concat()));
        let run = sandbox.export("1");
        let steps: BTreeSet<u32> = run.trials.iter().map(|trial| trial.cell).collect();
        let rounds = run.trials.iter().map(|trial| trial.round).max().unwrap() as usize + 1;
        let count = std::fs::read_to_string(sandbox.path().join("count")).unwrap();
        let unjudged = count.lines().count() - run.trials.len();
        // One leads in each round, and one follows each build.
        assert_eq!(unjudged, if extra { rounds + steps.len() } else { 0 }, "{more:?}");
    }
}

#[test]
fn a_search_that_its_time_ended_goes_on() {
    let sandbox = exact();
    // Each session ends with its first trial.
    let spent = sandbox.succeed(&search(&["--time-budget", "1ms"]));
    assert_eq!(json(&spent)["outcome"], "unfinished", "{spent}");
    let before = sandbox.export("1").trials.len();
    let goes_on = sandbox.run(&["bisect", "--resume", "1", "--format", "json"]);
    assert_eq!(goes_on.status.code(), Some(0), "{}", errors(&goes_on));
    assert!(sandbox.export("1").trials.len() > before);
}

/// Values without noise: the questions do not depend on how many trials there were.
fn exact() -> Sandbox {
    let sandbox = Sandbox::new();
    let text = "echo \"$1\" >> count\nsleep 0.03\nbase=100000\n[ \"$1\" -ge 13 ] && base=105000\necho \"took $base\"\n";
    sandbox.write("prog.sh", text);
    sandbox
}

/// What git says in the sandbox.
fn git(sandbox: &Sandbox, words: &[&str]) -> String {
    let mut git = Command::new("git");
    git.arg("-C").arg(sandbox.path()).args(words).stdin(Stdio::null());
    let named = ["AUTHOR", "COMMITTER"]
        .map(|who| [(format!("GIT_{who}_NAME"), "t"), (format!("GIT_{who}_EMAIL"), "t@t")]);
    for (name, value) in named.into_iter().flatten() {
        git.env(name, value);
    }
    let ended = git.output().unwrap();
    assert!(ended.status.success(), "{words:?}: {}", String::from_utf8_lossy(&ended.stderr));
    String::from_utf8(ended.stdout).unwrap().trim().to_owned()
}

/// Commits what lies in `src`.
fn commit(sandbox: &Sandbox, subject: &str) -> String {
    git(sandbox, &["-C", "src", "add", "."]);
    git(sandbox, &["-C", "src", "commit", "-q", "-m", subject]);
    git(sandbox, &["-C", "src", "rev-parse", "HEAD"])
}

#[test]
fn only_commits_that_change_a_path_are_searched() {
    if !available("git") {
        return;
    }
    let sandbox = Sandbox::new();
    git(&sandbox, &["init", "-q", "-b", "main", "src"]);
    std::fs::create_dir(sandbox.path().join("src/doc")).unwrap();
    let mut commits = Vec::new();
    for number in 0..12 {
        let took = if number >= 6 { 120 } else { 100 };
        match number % 2 {
            0 => sandbox.write("src/prog", &format!("echo took {took} # {number}\n")),
            _ => sandbox.write("src/doc/text", &format!("{number}\n")),
        };
        commits.push(commit(&sandbox, &format!("change {number}")));
    }
    let search = |more: &[&str]| {
        let words = ["bisect", "--source", "src", "--good", "HEAD~11", "--bad", "HEAD", "--seed", "1"];
        let command = ["--metric", METRIC, "--keep-disturbed", "--format", "json", "--", "sh", "{tree}/prog"];
        sandbox.run(&[&words[..], more, &command].concat())
    };
    let ended = search(&["--path", "prog"]);
    assert!(ended.status.success(), "{}", errors(&ended));
    let answer = json(&String::from_utf8(ended.stdout).unwrap());
    assert_eq!((found(&answer), answer["left_out"]["beside_paths"].as_u64()), (vec![&*commits[6]], Some(5)));
    let steps: Vec<&str> =
        answer["steps"].as_array().unwrap().iter().map(|step| step["step"].as_str().unwrap()).collect();
    assert_eq!(steps, [0, 2, 4, 6, 8, 10, 11].map(|at| &*commits[at]));
    let text = sandbox.succeed(&["bisect", "--show", "1"]);
    assert!(text.contains("5 commits left out: nothing of prog changes there"), "{text}");
    for (path, said) in [
        ("nothing", "no commit between --good and --bad changes nothing"),
        ("../..", "is outside repository"),
    ] {
        let refused = search(&["--path", path]);
        assert_eq!(refused.status.code(), Some(2));
        assert!(errors(&refused).contains(said), "{}", errors(&refused));
    }
}

/// As much of a kernel's Makefile as its build asks for: the image is `fs/one.c`, and `fs/two.c` is left out.
const MAKEFILE: &str = "VERSION = 6\nPATCHLEVEL = 12\nSUBLEVEL = 117\nEXTRAVERSION =\nO ?= .\n\
    allnoconfig:\n\t@cp $(KCONFIG_ALLCONFIG) $(O)/.config\n\
    bzImage:\n\t@mkdir -p $(O)/arch/x86/boot $(O)/include/config $(O)/fs; echo 6.12.117 > $(O)/include/config/kernel.release\n\
    \t@! grep broken fs/one.c || exit 1; echo 'deps := /r/tree/fs/one.c' > $(O)/fs/.one.o.cmd\n\
    \t@cp fs/one.c $(O)/arch/x86/boot/bzImage; cp fs/one.c $(O)/System.map\n";

#[test]
fn commits_of_which_no_kernel_is_made_are_left_out() {
    if !["git", "make", "gcc", "flex", "bison", "qemu-system-x86_64"].into_iter().all(available) {
        return;
    }
    let sandbox = Sandbox::new();
    git(&sandbox, &["init", "-q", "-b", "main", "src"]);
    for directory in ["init", "fs", "Documentation"] {
        std::fs::create_dir(sandbox.path().join("src").join(directory)).unwrap();
    }
    sandbox.write("src/Makefile", MAKEFILE);
    sandbox.write("src/Kconfig", "\n");
    sandbox.write("src/init/main.c", "main\n");
    // Both ends have it: what is new in one of them may have been part of a kernel between.
    sandbox.write("src/fs/two.c", "two\n");
    sandbox.write("job.fio", "[w]\nrw=write\nbs=4k\nsize=1m\n");
    let mut commits = Vec::new();
    for (number, file) in ["fs/one.c", "Documentation/a", "fs/two.c", "fs/one.c", "fs/two.c", "fs/one.c"]
        .into_iter()
        .enumerate()
    {
        sandbox.write(&format!("src/{file}"), &format!("{number}\n"));
        commits.push(commit(&sandbox, &format!("change {number}")));
    }
    sandbox.write("src/fs/one.c", "broken\n");
    commits.push(commit(&sandbox, "does not compile"));
    let search = |[good, bad]: [usize; 2], more: &[&str]| {
        let ends = ["bisect", "--source", "src", "--good", &commits[good], "--bad", &commits[bad]];
        let words = [&ends[..], &["job.fio", "-t", "ram:64m", "--settle", "0"], more].concat();
        let ended = sandbox.assay(&words).env("XDG_CACHE_HOME", sandbox.path().join("cache")).output();
        let ended = ended.unwrap();
        (ended.status.code(), errors(&ended), String::from_utf8(ended.stdout).unwrap())
    };
    let plan = search([0, 5], &["--plan"]);
    assert_eq!(plan.0, Some(0), "{}", plan.1);
    assert!(
        plan.2.contains("5 steps from") && plan.2.contains("fewer once the ends are built"),
        "{}",
        plan.2
    );
    let one_kernel = search([0, 2], &[]);
    assert_eq!(one_kernel.0, Some(2), "{}", one_kernel.1);
    assert!(one_kernel.1.contains("are one kernel: they differ in"), "{}", one_kernel.1);
    let nothing = search([0, 3], &[]);
    assert_eq!(nothing.0, Some(2), "{}", nothing.1);
    let said =
        "none of the 2 commits between --good and --bad changes what the kernels of the ends are made of";
    assert!(nothing.1.contains(said) && nothing.1.contains("--vary rev="), "{}", nothing.1);
    let lost = search([0, 6], &[]);
    assert_eq!(lost.0, Some(1), "{}", lost.1);
    let said = format!(
        "{} cannot be run, and without it nothing can be compared: it cannot be built",
        &commits[6][..12]
    );
    assert!(lost.1.contains(&said), "{}", lost.1);
    assert!(!sandbox.path().join("assay.db").exists(), "nothing was begun");
    // The image is no kernel, so that it ends there.
    let begun = search([0, 5], &[]);
    assert_eq!(begun.0, Some(1), "{}", begun.1);
    let answer = json(&sandbox.succeed(&["bisect", "--show", "1", "--format", "json"]));
    let steps: Vec<&str> =
        answer["steps"].as_array().unwrap().iter().map(|step| step["step"].as_str().unwrap()).collect();
    assert_eq!(steps, [0, 3, 5].map(|at| &*commits[at]));
    assert_eq!(answer["left_out"]["not_compiled"], 3);
    let text = sandbox.succeed(&["bisect", "--show", "1"]);
    assert!(text.contains("3 commits left out: nothing of what the kernels"), "{text}");
}

#[test]
fn commits_are_searched_and_the_repository_is_only_read() {
    if !available("git") {
        return;
    }
    let sandbox = Sandbox::new();
    let git = |words: &[&str]| git(&sandbox, words);
    git(&["init", "-q", "-b", "main", "src"]);
    // The directory that all is done in is a repository as well.
    git(&["init", "-q", "-b", "main", "."]);
    let mut commits = Vec::new();
    for number in 0..9 {
        let took = if number >= 6 { 120 } else { 100 };
        sandbox.write("src/prog.in", &format!("echo took {took} # {number}\n"));
        git(&["-C", "src", "add", "prog.in"]);
        git(&["-C", "src", "commit", "-q", "-m", &format!("change {number}")]);
        commits.push(git(&["-C", "src", "rev-parse", "HEAD"]));
    }
    // What is in the user's files stays as it is, whatever is built.
    sandbox.write("src/prog.in", "not committed\n");
    let before = git(&["-C", "src", "status", "--porcelain"]);
    let words = |good: &'static str, bad: &'static str| {
        vec![
            "bisect",
            "--source",
            "src",
            "--good",
            good,
            "--bad",
            bad,
            "--build",
            // No repository around the files answers.
            "cp prog.in prog && ! git rev-parse --git-dir",
            "--metric",
            METRIC,
            "--seed",
            "1",
            "--keep-disturbed",
            "--format",
            "json",
            "--",
            "sh",
            "{tree}/prog",
        ]
    };
    let answer = json(&sandbox.succeed(&words("HEAD~8", "HEAD")));
    assert_eq!(found(&answer), [commits[6].as_str()]);
    assert_eq!(answer["found"]["steps"][0]["title"], "change 6");
    let line: Vec<&str> =
        answer["command_line"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    let after = |option: &str| line[line.iter().position(|word| *word == option).unwrap() + 1];
    assert_eq!(
        [after("--good"), after("--bad")],
        [&*commits[0], &*commits[8]],
        "they mean the same tomorrow"
    );
    assert!(after("--source").starts_with('/'), "{line:?}");
    let text = sandbox.succeed(&["bisect", "--show", "1"]);
    assert!(text.contains(&format!("the change came with {} \"change 6\"", &commits[6][..12])), "{text}");
    assert_eq!(git(&["-C", "src", "status", "--porcelain"]), before);
    assert!(!sandbox.path().join("src/prog").exists());
    let left: Vec<String> = sandbox.names().into_iter().filter(|name| name.starts_with("assay-")).collect();
    assert!(left.is_empty(), "{left:?}");

    let refused = |good: &'static str, bad: &'static str, words_said: &[&str]| {
        let ended = sandbox.run(&words(good, bad));
        let said = errors(&ended);
        assert_eq!(ended.status.code(), Some(2), "{said}");
        assert!(words_said.iter().all(|words| said.contains(words)), "{said}");
    };
    refused("v7.7", "HEAD", &["--good v7.7: no such revision in src"]);
    refused("HEAD~2", "nothing", &["--bad nothing: no such revision"]);
    refused("HEAD", "main", &["are the same commit"]);
    refused("HEAD~1", "HEAD", &["there is one commit", "nothing lies between"]);
    // Ends the other way round ask what made it better, which nothing did.
    let turned = json(&sandbox.succeed(&words("HEAD", "HEAD~8")));
    assert_eq!((turned["seeks"].as_str(), turned["outcome"].as_str()), (Some("better"), Some("worse")));
    let text = sandbox.succeed(&["bisect", "--show", "2"]);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("to find what made it worse, exchange --good and --bad"), "{text}");
}

#[test]
fn wrong_requests_are_refused_before_anything_runs() {
    let sandbox = sandbox(13);
    let cases: &[(&[&str], &[&str])] = &[
        (&["--", "x", "{step}"], &["nothing says what the steps are", "--steps 'a b c'"]),
        (&["--steps", "a", "--", "x", "{step}"], &["--steps names 1 step", "at least three"]),
        (&["--steps", "", "--", "x", "{step}"], &["--steps names 0 steps"]),
        (&["--steps", "a b", "--", "x", "{step}"], &["the ends alone", "assay run --vary"]),
        (&["--steps", "a b a c", "--", "x", "{step}"], &["the step a is given twice"]),
        (&["--steps", "a b c", "--", "x"], &["{step} is missing in the command", "./prog-{step}"]),
        (
            &["--steps", "a b c", "--build", "make {step}", "--", "./prog"],
            &["{step} is missing", "a place of its own"],
        ),
        (&["--steps", "a b c"], &["no command is given"]),
        (&["--steps", "a b c", "--", "sh", "{tree}/x"], &["there are no commits"]),
        (
            &["--steps", "a b c", "--", "no-such-program", "{step}"],
            &["there is no program 'no-such-program'"],
        ),
        (
            &["--steps", "a b c", "--primary", "tokk", "--metric", METRIC, "--", "sh", "prog.sh", "{step}"],
            &["tokk", "took"],
        ),
        (&["--steps", "a b c", "--alpha", "2", "--", "sh", "{step}"], &["'2' is 200%"]),
        (&["--steps", "a b c", "--source", ".", "--", "sh", "{step}"], &["--source"]),
        (&["--source", ".", "--", "sh", "{tree}"], &["--good"]),
        (
            &["--source", "/proc", "--good", "a", "--bad", "b", "--", "sh", "{tree}"],
            &["--source /proc", "git repository"],
        ),
        (&["--resume", "7"], &["assay.db"]),
        (&["--show", "7"], &["assay.db"]),
    ];
    for (words, said) in cases {
        let ended = sandbox.run(&[&["bisect"][..], words].concat());
        let text = errors(&ended);
        assert_eq!(ended.status.code(), Some(2), "{words:?}: {text}");
        assert!(said.iter().all(|part| text.contains(part)), "{words:?}: {text}");
        assert!(text.lines().count() <= 8, "{words:?}: {text}");
    }
    assert_eq!(sandbox.names().len(), 1, "{:?}", sandbox.names());
}

#[test]
fn a_plan_says_how_many_trials_and_runs_nothing() {
    let sandbox = sandbox(13);
    let plan = sandbox.succeed(&search(&["--plan", "--build", "make {step}"]));
    for part in ["20 steps from 0 to 20", "make {step}", "sh prog.sh {step}", "without noise", "at most 2500"]
    {
        assert!(plan.contains(part), "{part}: {plan}");
    }
    assert_eq!(sandbox.names().len(), 1, "{:?}", sandbox.names());
}

/// Eight commits, of which one makes it 5 % slower, another one in each search; noise of about 2 % that seed and trial decide.
#[test]
fn of_ten_searches_over_eight_commits_nine_find_the_planted_one() {
    let mut right = 0;
    for seed in 1..=10_u32 {
        let sandbox = Sandbox::new();
        let planted = 1 + (seed * 5) % 8;
        let noise = "r=$(( (n * 2654435761 + n * n * 40503 + seed * 97531) % 4294967296 ))";
        sandbox.write(
            "prog.sh",
            &format!(
                "echo >> count\nn=$(wc -l < count)\nseed={seed}\n{noise}\n\
                 base=1000000\n[ \"$1\" -ge {planted} ] && base=1050000\n\
                 echo \"took $((base + (r >> 8) % 70000 - 35000))\"\n"
            ),
        );
        let steps = (0..=8).map(|step| step.to_string()).collect::<Vec<_>>().join(" ");
        let seed = seed.to_string();
        let words =
            ["bisect", "-q", "--steps", &steps, "--metric", METRIC, "--seed", &seed, "--keep-disturbed"];
        let asked = ["--settle", "0", "--format", "json", "--", "sh", "prog.sh", "{step}"];
        let answer = json(&sandbox.succeed(&[&words[..], &asked].concat()));
        right += u32::from(answer["outcome"] == "found" && found(&answer) == [planted.to_string()]);
    }
    assert!(right >= 9, "{right} of 10");
}
