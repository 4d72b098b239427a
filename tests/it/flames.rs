//! Flame graphs: stacks that are kept with watched trials, drawn in reports and written as files.
//!
//! A made-up run needs nothing; a real one is watched, which needs root.

use std::collections::BTreeSet;
use std::process::Output;

use assay::analyse::{Options, analyse};
use assay::record::{KeptFile, Run, StackKind};
use assay::report::{Detail, Document, Format, Options as ReportOptions, render};
use assay::store::Store;

use crate::sandbox::{Sandbox, errors};
use crate::spoiled::{expect, unless_spoiled};
use crate::tools::is_root;
use crate::why;

/// Stacks that no kernel has: markup, ends of names and lines, what acts on a terminal.
const HOSTILE: &str = "vfs_write;<script>alert(1)</script>&\"';x\u{1b}[2J\u{202e}]]>-->\0 50000000\n</svg></title> 7\nnonsense\n";

/// The made-up run whose writers wait for a lock, with these stacks in each trial of one file and of four.
pub(crate) fn with_stacks(one: &str, four: &str) -> Run {
    let (mut run, _) = why::made_up();
    for trial in &mut run.trials {
        let text = if run.cells[trial.cell as usize].levels[0] == 0 { one } else { four };
        trial.files = vec![KeptFile { name: StackKind::Cpu.file().to_owned(), bytes: text.into() }];
    }
    run
}

fn report(run: &Run, format: Format) -> String {
    let analysis = analyse(run, &Options::default());
    let options = ReportOptions { detail: Detail::Page, ..ReportOptions::default() };
    render(&Document::build(run, &analysis, &options), format)
}

/// A sandbox with the run as `run.json`.
fn exported(run: &Run) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("run.json", &serde_json::to_string(run).unwrap());
    sandbox
}

fn names(sandbox: &Sandbox, directory: &str) -> BTreeSet<String> {
    let entries = std::fs::read_dir(sandbox.path().join(directory)).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

fn text(sandbox: &Sandbox, file: &str) -> String {
    std::fs::read_to_string(sandbox.path().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &errors(output)
}

#[test]
fn a_page_shows_the_difference_folded_away() {
    let run = with_stacks("[kernel];vfs_write;down_write 40000000\n", "[kernel];vfs_write;copy 20000000\n");
    let html = report(&run, Format::Html);
    let folded =
        html.find("<details><summary>Flame graphs of the difference</summary>").expect("folded away");
    assert!(html.find("<h2>Why</h2>").unwrap() < folded, "in the section Why");
    let picture = &html[folded..folded + html[folded..].find("</details>").unwrap()];
    // At 1m nothing differs, and nothing is drawn; a wide picture and a narrow one of 4k.
    assert_eq!(picture.matches("<svg ").count(), 2, "{picture}");
    for words in ["bs=4k: files=one → files=four: processor time an operation", "<title>copy: 0 → "] {
        assert!(picture.contains(words), "{words}: {picture}");
    }
    let gone = picture.lines().find(|line| line.contains("<title>down_write: ")).unwrap();
    assert!(gone.contains(" → 0 an operation, −"), "{gone}");
    let json: serde_json::Value = serde_json::from_str(&report(&run, Format::Json)).unwrap();
    assert_eq!(json["flames"].as_array().map(Vec::len), Some(2));
    assert_eq!(json["flames"][0]["stacks"][0]["frames"][2], "copy");
    // Lines of text have no pictures.
    let without = with_stacks("", "");
    for format in [Format::Text, Format::Lkml, Format::Mmtests, Format::Markdown, Format::Csv] {
        assert_eq!(report(&run, format), report(&without, format), "{format}");
    }
    assert!(!report(&without, Format::Html).contains("Flame graphs"));
    assert!(!report(&without, Format::Json).contains("\"flames\""));
}

#[test]
fn files_are_written_and_only_assays_own_replaced() {
    let run = with_stacks("a;b 40000000\n", "a;c 20000000\n");
    let sandbox = exported(&run);
    let words = ["explain", "run.json", "--flame", "graphs"];
    let output = sandbox.run(&words);
    assert!(output.status.success(), "{}", said(&output));
    assert!(
        said(&output).contains("2 flame graphs of two arms and their difference, with the stacks: graphs")
    );
    let pairs = ["cpu-1-bs-4k-files-one-files-four", "cpu-2-bs-1m-files-one-files-four"];
    let endings = ["baseline.folded", "baseline.svg", "candidate.folded", "candidate.svg", "difference.svg"];
    let expected: BTreeSet<String> =
        pairs.iter().flat_map(|pair| endings.map(|ending| format!("{pair}.{ending}"))).collect();
    assert_eq!(names(&sandbox, "graphs"), expected);
    // In picoseconds of an operation.
    let folded = |arm: &str| text(&sandbox, &format!("graphs/{}.{arm}.folded", pairs[0]));
    let number = |text: &str| text.trim().rsplit(' ').next().and_then(|n| n.parse::<f64>().ok()).unwrap();
    let (one, four) = (folded("baseline"), folded("candidate"));
    assert!(one.starts_with("a;b ") && four.starts_with("a;c "), "{one}{four}");
    assert!(
        (number(&one) / 4e5 - 1.0).abs() < 0.01 && (number(&four) / 2e5 - 1.0).abs() < 0.01,
        "{one}{four}"
    );

    assert!(sandbox.run(&words).status.success(), "its own are replaced");
    let mine = format!("graphs/{}.difference.svg", pairs[0]);
    sandbox.write(&mine, "mine");
    let refused = sandbox.run(&words);
    assert_eq!(refused.status.code(), Some(2), "{}", said(&refused));
    assert!(said(&refused).contains("--force replaces it"), "{}", said(&refused));
    assert_eq!(text(&sandbox, &mine), "mine");
    assert!(sandbox.run(&[&words[..], &["--force"]].concat()).status.success());
    assert!(text(&sandbox, &mine).starts_with("<svg "));
    let file = sandbox.run(&["explain", "run.json", "--flame", "run.json"]);
    assert_eq!(file.status.code(), Some(2), "{}", said(&file));
    assert!(said(&file).contains("--flame takes a directory"), "{}", said(&file));
}

#[test]
fn without_stacks_it_says_what_keeps_them() {
    let (run, _) = why::made_up();
    let output = exported(&run).run(&["explain", "run.json", "--flame", "graphs"]);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(said(&output).contains("no flame graph: no pair has trials whose stacks were kept"));
    assert!(said(&output).contains("--only cpu,waits"), "{}", said(&output));
    // The report is there all the same.
    assert!(said(&output).contains("waits for rwsem:W"), "{}", said(&output));
}

#[test]
fn hostile_names_break_no_page_picture_or_line() {
    let mut run = with_stacks(HOSTILE, "vfs_write 1000\n");
    run.design.factors[0].levels[1] = "</title><script>four</script>".to_owned();
    let html = report(&run, Format::Html);
    // The page's own script, which finds functions, is the only one.
    assert_eq!((html.matches("<script").count(), html.matches("<script>four").count()), (1, 0), "markup");
    assert!(!html.contains("</svg></title>"), "markup");
    assert!(!html.contains(['\u{1b}', '\u{202e}', '\0']), "control characters");
    let sandbox = exported(&run);
    sandbox.succeed(&["explain", "run.json", "--flame", "graphs"]);
    for name in names(&sandbox, "graphs") {
        let text = text(&sandbox, &format!("graphs/{name}"));
        assert!(KeptFile::is_name(&name), "{name}");
        assert!(!text.contains(['\u{1b}', '\u{202e}', '\0']), "{name}: {text}");
        if name.ends_with(".svg") {
            assert!(!text.contains("<script"), "{text}");
            assert_eq!(text.matches("<g").count(), text.matches("</g>").count(), "{text}");
            assert_eq!((text.matches("<svg ").count(), text.matches("</svg>").count()), (1, 1), "{text}");
        } else {
            for line in text.lines() {
                let (stack, number) = line.rsplit_once(' ').unwrap();
                assert!(number.parse::<u64>().is_ok() && !stack.contains(char::is_whitespace), "{line}");
            }
        }
    }
}

#[test]
fn of_the_files_of_trials_a_report_reads_the_stacks_alone() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = Store::open(&directory.path().join("assay.db")).unwrap();
    let mut run = with_stacks("a 1\n", "a 2\n");
    let file = |name: &str, bytes: usize| KeptFile { name: name.to_owned(), bytes: vec![b' '; bytes] };
    for trial in &mut run.trials {
        trial.files.extend([file("trace.raw", 10), file("waits.folded", StackKind::MOST_BYTES + 1)]);
    }
    let id = store.insert_run(&run).unwrap();
    let read = store.load_for_report(id).unwrap();
    assert_eq!(read.trials.len(), run.trials.len());
    for (read, stored) in read.trials.iter().zip(&run.trials) {
        assert_eq!(read.files, stored.files[..1]);
    }
    let mut without = store.load_run(id).unwrap();
    assert!(without.trials.iter().all(|trial| trial.files.is_empty()));
    store.add_stacks(id, &mut without.trials).unwrap();
    assert_eq!(without.trials, read.trials);
    assert_eq!(store.load_with_files(id).unwrap().trials[0].files.len(), 3);
}

/// Stacks with their numbers.
fn lines(text: &str) -> Vec<(String, u64)> {
    let line = |line: &str| {
        let (stack, number) = line.rsplit_once(' ').unwrap();
        (stack.to_owned(), number.parse().unwrap())
    };
    text.lines().map(line).collect()
}

/// One arm spins in a program, the other calls the kernel: a command each, watched afterwards.
#[test]
fn a_program_that_computes_and_one_that_calls_the_kernel_differ() {
    if !is_root() {
        return;
    }
    unless_spoiled(a_shell_and_a_copy);
}

fn a_shell_and_a_copy() -> Result<(), String> {
    let sandbox = Sandbox::new();
    let script = "case ${how} in compute) i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done;; \
                  *) dd if=/dev/zero of=/dev/null bs=1 count=1000000 status=none;; esac";
    sandbox.succeed(&["run", "-q", "--vary", "how=calls,compute", "--rounds", "4", "--", "sh", "-c", script]);
    let output = sandbox.run(&["explain", "1", "-q", "--only", "cpu,waits", "--flame", "graphs"]);
    assert!(output.status.success(), "{}", said(&output));
    let by = sandbox.export("2");
    for trial in &by.trials {
        let kept: BTreeSet<&str> = trial.files.iter().map(|file| file.name.as_str()).collect();
        let is_watched = by.cells[trial.cell as usize].levels[1] == 1;
        let expected =
            if is_watched { BTreeSet::from(["cpu.folded", "waits.folded"]) } else { BTreeSet::new() };
        assert_eq!(kept, expected, "{:?}", trial.notes);
        assert!(trial.files.iter().all(|file| file.bytes.len() <= StackKind::MOST_BYTES));
    }
    let pair = "graphs/cpu-1-how-calls-how-compute";
    let [calls, compute] =
        ["baseline", "candidate"].map(|arm| lines(&text(&sandbox, &format!("{pair}.{arm}.folded"))));
    let time = |stacks: &[(String, u64)], outermost: &str| -> u64 {
        let below = stacks.iter().filter(|(stack, _)| stack.split(';').next() == Some(outermost));
        below.map(|(_, number)| number).sum()
    };
    let is_so = time(&compute, "[user]") > time(&calls, "[user]")
        && time(&calls, "[kernel]") > time(&compute, "[kernel]");
    expect(is_so, || format!("{calls:?} {compute:?}"))?;
    // Debian's shell is stripped: its own functions have no names, but those of libraries do.
    assert!(compute.iter().any(|(stack, _)| stack.starts_with("[user];")), "{compute:?}");
    let is_named = |name: &str| calls.iter().any(|(stack, _)| stack.contains(name));
    assert!(is_named("ksys_read") || is_named("vfs_read"), "{calls:?}");
    let svg = text(&sandbox, &format!("{pair}.difference.svg"));
    let colour = |name: &str| {
        let line = svg.lines().find(|line| line.starts_with(&format!("<g><title>{name}: "))).expect(name);
        line.split_once("fill=\"").and_then(|(_, rest)| rest.split('"').next()).map(str::to_owned)
    };
    // The page's colours of worse and of same: red and blue.
    let colours = ["[user]", "[kernel]"].map(colour);
    expect(colours == ["#b42a24", "#34568b"].map(|colour| Some(colour.to_owned())), || {
        format!("{colours:?}")
    })?;
    // Whatever the verdict of four rounds is: the stacks are in the store, for every later report.
    let json: serde_json::Value =
        serde_json::from_str(&sandbox.succeed(&["report", "1", "--format", "json"])).unwrap();
    assert_eq!(json["flames"][0]["kind"], "cpu");
    assert_eq!(json["flames"][0]["operation"], "trial");
    Ok(())
}
