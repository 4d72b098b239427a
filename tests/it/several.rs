//! Several runs of one command, and what they say together.

use serde_json::Value;

use crate::sandbox::{Sandbox, errors};

/// Made-up values of two arms; the second is `effect` faster.
fn experiment(sandbox: &Sandbox, file: &str, effect: f64) {
    let text = format!(
        "engine = \"simulated\"\n[[factor]]\nname = \"x\"\nlevels = [\"a\", \"b\"]\n\
         [simulated]\nbw = 1e8\ncv = 0.005\neffects = {{ \"x=b\" = {effect:?} }}\n[stop]\nmax_rounds = 12\n"
    );
    sandbox.write(file, &text);
}

/// Without the ends of lines.
fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn suite(sandbox: &Sandbox) {
    std::fs::create_dir(sandbox.path().join("suite")).unwrap();
    experiment(sandbox, "suite/wal.toml", -0.1);
    experiment(sandbox, "suite/db.toml", 0.0);
    experiment(sandbox, "suite/scan.toml", 0.0);
    sandbox.write("suite/notes.txt", "no experiment");
}

#[test]
fn a_directory_is_run_by_name_with_one_page_and_one_exit_code() {
    let sandbox = Sandbox::new();
    suite(&sandbox);
    let words = ["run", "suite", "--name", "night", "--seed", "3", "--fail-if", "slower", "-o", "page.html"];
    let output = sandbox.run(&words);
    let (said, text) = (errors(&output), String::from_utf8_lossy(&output.stdout).into_owned());
    assert_eq!(output.status.code(), Some(3), "{said}\n{text}");
    let order = ["1 of 3: suite/db.toml", "2 of 3: suite/scan.toml", "3 of 3: suite/wal.toml"];
    assert!(
        order.windows(2).all(|two| said.find(two[0]) < said.find(two[1])) && said.contains(order[2]),
        "{said}"
    );
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let last = flat(text.rsplit("\n\n").next().unwrap());
    assert!(
        last.starts_with("3 runs, 3 comparisons: 1 slower by more than δ, 2 ")
            && last.contains("any of their claims is false is at most 5 %"),
        "{last}"
    );
    assert!(
        text.contains("night/wal: x=b against x=a (run 3)") && text.contains("x=b is slower than x=a"),
        "{text}"
    );
    assert!(said.contains("report with pictures: page.html"), "{said}");
    // Each is judged at its share, and what repeats it alone has that share.
    let run = sandbox.export("3");
    assert_eq!(run.name, "night/wal");
    assert!((run.design.stop.alpha - 0.05 / 3.0).abs() < 1e-12);
    let alone = run.command_line.join(" ");
    assert!(alone.starts_with("assay run --alpha 0.01666") && alone.contains("--name night/wal"), "{alone}");
    assert!(alone.contains(" suite/wal.toml ") && !alone.contains("suite "), "{alone}");
    // One page has all of it, each note with a name of its own.
    let page = std::fs::read_to_string(sandbox.path().join("page.html")).unwrap();
    assert_eq!((page.matches("<h2>").count(), page.matches("the whole report").count()), (3, 3));
    assert_eq!(page.matches("<html").count(), 1);
    // The same later, by names.
    let later = sandbox.succeed(&["report", "night/"]);
    assert!(later.starts_with("3 runs, 3 comparisons: 1 slower by more than δ"), "{later}");
    let failing = sandbox.run(&["report", "1", "3", "--fail-if", "slower"]);
    assert_eq!(failing.status.code(), Some(3), "{}", errors(&failing));
    let markdown = sandbox.succeed(&["report", "1", "3", "--format", "markdown"]);
    assert!(
        markdown.starts_with("## 2 runs, 2 comparisons") && markdown.contains("**night/wal: x=b"),
        "{markdown}"
    );
    let json: Value =
        serde_json::from_str(&sandbox.succeed(&["report", "1", "3", "--format", "json"])).unwrap();
    assert_eq!(json["format"], "assay-reports");
    assert_eq!(json["reports"][1]["report"]["run"]["name"], "night/wal");
    let none = sandbox.run(&["report", "day/"]);
    assert!(errors(&none).contains("no run has a name that begins with 'day/'"), "{}", errors(&none));
}

#[test]
fn json_of_several_is_one_document() {
    let sandbox = Sandbox::new();
    suite(&sandbox);
    let text = sandbox.succeed(&["run", "-q", "suite/wal.toml", "suite/db.toml", "--format", "json"]);
    let json: Value = serde_json::from_str(&text).unwrap();
    let names: Vec<&str> =
        json["reports"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["wal", "db"]);
}

#[test]
fn one_that_fails_keeps_no_other_from_being_run() {
    let sandbox = Sandbox::new();
    suite(&sandbox);
    let broken = "command = [\"sh\", \"-c\", \"exit ${x}\"]\n[[factor]]\nname = \"x\"\nlevels = [1, 2]\n";
    sandbox.write("suite/broken.toml", broken);
    let output = sandbox.run(&["run", "-q", "suite", "-o", "page.html"]);
    let (said, text) = (errors(&output), String::from_utf8_lossy(&output.stdout).into_owned());
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        flat(&text).contains("4 runs, 3 comparisons: ")
            && flat(&text).contains("; 1 run failed, not finished or not run"),
        "{text}"
    );
    let page = std::fs::read_to_string(sandbox.path().join("page.html")).unwrap();
    assert!(page.contains("run 1 was stopped"), "{page}");
    assert_eq!(sandbox.export("4").trials.len() % 2, 0);
}

#[test]
fn mistakes_of_each_are_told_before_the_first_is_begun() {
    let sandbox = Sandbox::new();
    suite(&sandbox);
    sandbox.write("suite/zzz.toml", "engine = \"simulatd\"\n");
    let output = sandbox.run(&["run", "suite"]);
    assert_eq!(output.status.code(), Some(2), "{}", errors(&output));
    assert!(errors(&output).contains("suite/zzz.toml"), "{}", errors(&output));
    assert!(!sandbox.path().join("assay.db").exists());
    std::fs::create_dir(sandbox.path().join("empty")).unwrap();
    let empty = sandbox.run(&["run", "empty"]);
    assert_eq!(empty.status.code(), Some(2));
    assert!(
        errors(&empty).contains("the directory empty has no .fio and no .toml file"),
        "{}",
        errors(&empty)
    );
    // Of several files each is told.
    sandbox.write("suite/yyy.toml", "engine = \"simulated\"\n");
    let both = sandbox.run(&["run", "suite"]);
    let said = errors(&both);
    assert!(
        said.contains("2 of the files cannot be run:") && said.contains("- suite/yyy.toml: nothing varies"),
        "{said}"
    );
    assert!(said.contains("- suite/zzz.toml:1: no engine"), "{said}");
    let missing = sandbox.run(&["run", "suite/wal.toml", "nothing.fio"]);
    assert_eq!(missing.status.code(), Some(2), "{}", errors(&missing));
    assert!(errors(&missing).contains("nothing.fio"), "{}", errors(&missing));
}

#[test]
fn histories_of_a_whole_suite_are_judged_together() {
    let sandbox = Sandbox::new();
    suite(&sandbox);
    for seed in 1..7 {
        let seed = seed.to_string();
        sandbox.succeed(&["run", "suite", "-q", "--aa", "--rounds", "4", "--name", "night", "--seed", &seed]);
    }
    let gate = ["history", "night/", "--fail-if", "slower"];
    let calm = sandbox.run(&gate);
    assert_eq!(calm.status.code(), Some(0), "{}", errors(&calm));
    let text = String::from_utf8(calm.stdout).unwrap();
    let names = ["night/db: 6 runs", "night/scan: 6 runs", "night/wal: 6 runs"];
    assert!(names.iter().all(|name| text.contains(name)), "{text}");
    let slower =
        std::fs::read_to_string(sandbox.path().join("suite/scan.toml")).unwrap().replace("1e8", "9e7");
    sandbox.write("suite/scan.toml", &slower);
    sandbox.succeed(&["run", "suite", "-q", "--aa", "--rounds", "4", "--name", "night", "--seed", "9"]);
    let bad = sandbox.run(&gate);
    assert_eq!(bad.status.code(), Some(3), "{}", errors(&bad));
    assert!(errors(&bad).contains("holds for 1 of 1 series of night/scan"), "{}", errors(&bad));
    let json: Value =
        serde_json::from_str(&sandbox.succeed(&["history", "night/wal", "night/db", "--json"])).unwrap();
    assert_eq!(json[0]["name"], "night/wal");
    let none = sandbox.run(&["history", "day/"]);
    assert!(errors(&none).contains("no run has a name that begins with 'day/'"), "{}", errors(&none));
}

/// Nights of whatever is in `suite`.
fn night(sandbox: &Sandbox, seed: u32) {
    let seed = seed.to_string();
    sandbox.succeed(&["run", "suite", "-q", "--aa", "--rounds", "4", "--name", "night", "--seed", &seed]);
}

#[test]
fn a_suite_that_grows_or_shrinks_keeps_its_gate() {
    let sandbox = Sandbox::new();
    std::fs::create_dir(sandbox.path().join("suite")).unwrap();
    experiment(&sandbox, "suite/wal.toml", 0.0);
    let gate = |more: &[&str]| {
        let output = sandbox.run(&[&["history", "night/", "--fail-if", "slower"][..], more].concat());
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned() + &errors(&output))
    };
    // A directory of one file has the same names as one of several.
    (1..4).for_each(|seed| night(&sandbox, seed));
    assert_eq!(sandbox.export("1").name, "night/wal");
    experiment(&sandbox, "suite/db.toml", 0.0);
    (4..7).for_each(|seed| night(&sandbox, seed));
    let (code, said) = gate(&[]);
    assert_eq!(code, Some(0), "the share of alpha is nothing of the job: {said}");
    assert!(said.contains("night/wal: 6 runs") && said.contains("night/db: 3 runs"), "{said}");
    // A job that was not run tonight has no newest run.
    std::fs::remove_file(sandbox.path().join("suite/db.toml")).unwrap();
    night(&sandbox, 7);
    let (code, said) = gate(&[]);
    assert_eq!(code, Some(1), "{said}");
    assert!(flat(&said).contains("night/db was not run with the others, begun "), "{said}");
    let report = sandbox.succeed(&["report", "night/"]);
    assert!(flat(&report).contains("not run with the others: this is of "), "{report}");
    // Also where nothing but a new job was run.
    std::fs::rename(sandbox.path().join("suite/wal.toml"), sandbox.path().join("suite/new.toml")).unwrap();
    night(&sandbox, 9);
    let (code, said) = gate(&[]);
    assert_eq!(code, Some(1), "{said}");
    assert!(flat(&said).contains("night/wal was not run with the others, begun "), "{said}");
    std::fs::rename(sandbox.path().join("suite/new.toml"), sandbox.path().join("suite/wal.toml")).unwrap();
    sandbox.succeed(&["delete", "11"]);
    // A change that is accepted for one name leaves the others as they are.
    experiment(&sandbox, "suite/db.toml", 0.0);
    let slower =
        std::fs::read_to_string(sandbox.path().join("suite/wal.toml")).unwrap().replace("1e8", "9e7");
    sandbox.write("suite/wal.toml", &slower);
    night(&sandbox, 8);
    assert_eq!(gate(&[]).0, Some(3));
    let newest = sandbox.export("13");
    assert_eq!(newest.name, "night/wal");
    let (code, said) = gate(&["--since", "13"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("night/db: 4 runs") && said.contains("'night/wal' has one finished run"), "{said}");
    let (code, said) = gate(&["--since", "99"]);
    assert_eq!(code, Some(2), "{said}");
}

#[test]
fn names_that_would_change_from_night_to_night_are_refused() {
    let sandbox = Sandbox::new();
    suite(&sandbox);
    std::fs::create_dir(sandbox.path().join("other")).unwrap();
    experiment(&sandbox, "other/wal.toml", 0.0);
    for (files, label) in
        [(["suite", "other/wal.toml"], "n/wal"), (["suite/db.toml", "suite/db.toml"], "suite/db.toml")]
    {
        let output = sandbox.run(&[&["run", "--name", "n"][..], &files].concat());
        assert_eq!(output.status.code(), Some(2), "{}", errors(&output));
        assert!(
            errors(&output).contains(&format!("two of the runs would be called {label}")),
            "{}",
            errors(&output)
        );
    }
    // Without a name from night to night the path tells them apart.
    let text = sandbox.succeed(&["run", "-q", "suite/wal.toml", "other/wal.toml", "--format", "markdown"]);
    assert!(text.starts_with("## 2 runs, 2 comparisons: "), "{text}");
}

#[test]
fn what_all_are_asked_is_what_is_compared() {
    let sandbox = Sandbox::new();
    suite(&sandbox);
    let text = sandbox
        .succeed(&["run", "-q", "suite/wal.toml", "suite/db.toml", "--vary", "y=1,2", "--max-rounds", "8"]);
    assert!(text.contains("y=2 against y=1 (run 1)") && text.contains("y=2 against y=1 (run 2)"), "{text}");
}

#[test]
fn an_interrupt_says_what_is_left_and_how_it_is_run() {
    let sandbox = Sandbox::new();
    suite(&sandbox);
    let slow = "command = [\"sh\", \"-c\", \"touch began; sleep 30; true ${x} ${y}\"]\n[[factor]]\nname = \"x\"\nlevels = [3, 4]\n";
    sandbox.write("suite/ending.toml", slow);
    let child =
        sandbox.start(&["run", "suite", "--name", "n", "--vary", "y=1,2", "-o", "page.html", "--force"]);
    let begun = std::time::Instant::now();
    while !sandbox.path().join("began").exists() {
        assert!(begun.elapsed() < crate::target_bench::PATIENCE);
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), rustix::process::Signal::INT)
        .unwrap();
    let output = child.wait_with_output().unwrap();
    let said = errors(&output);
    assert_eq!(output.status.code(), Some(130), "{said}");
    let text = flat(&String::from_utf8_lossy(&output.stdout));
    assert!(
        text.contains("4 runs, 2 comparisons: ") && text.contains("; 3 runs failed, not finished or not run"),
        "{text}"
    );
    assert!(
        said.contains("scan: not begun; by itself: assay run ") && said.contains(" --name n/scan"),
        "{said}"
    );
    assert!(said.contains("run 2 was interrupted"), "{said}");
    let line = said.lines().find(|line| line.starts_with("scan: not begun")).unwrap();
    assert!(
        line.contains("--compare y") && !line.contains("page.html") && !line.contains("--force"),
        "{line}"
    );
    let page = std::fs::read_to_string(sandbox.path().join("page.html")).unwrap();
    assert!(page.contains("not begun; by itself: assay run"), "{page}");
}
