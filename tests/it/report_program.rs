//! `assay report` itself: formats, files, colours and exit codes, on a run in an exported file.

use std::path::Path;
use std::process::{Command, Output};

use assay::record::Status;

use crate::fixtures;
use crate::sandbox::{Sandbox, errors};

/// `assay report ARGS` in a directory that holds `run.json` and no store.
fn report(directory: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_assay"))
        .arg("report")
        .args(args)
        .current_dir(directory)
        .env_remove("ASSAY_DB")
        .env_remove("NO_COLOR")
        .env_remove("CLICOLOR_FORCE")
        .output()
        .unwrap()
}

fn with_run() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let (run, _) = fixtures::measured();
    std::fs::write(directory.path().join("run.json"), serde_json::to_vec(&run).unwrap()).unwrap();
    directory
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn a_report_is_data_on_standard_output() {
    let directory = with_run();
    let output = report(directory.path(), &["run.json"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let out = text(&output.stdout);
    assert!(out.contains("bs=4k: direct=1 is slower than direct=0 by more than 2 %"), "{out}");
    assert!(out.contains("bs=1m: direct=1 is faster than direct=0"), "{out}");
    assert!(out.lines().all(|line| line.chars().count() <= 80), "{out}");
    assert!(!out.contains('\u{1b}'), "colour in a pipe");
    assert_eq!(text(&output.stderr), "");
    assert!(!directory.path().join("assay.db").exists(), "a report of a file makes no store");
}

#[test]
fn the_files_name_chooses_the_format() {
    let directory = with_run();
    for (file, beginning) in [
        ("report.html", "<!DOCTYPE html>"),
        ("report.md", "## randwrite.fio"),
        ("report.json", "{\"format\":\"assay-report\""),
        ("report.csv", "row.bs,"),
        ("report.xml", "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"assay\" "),
        ("report.txt", "randwrite.fio: direct=1 against direct=0\n"),
    ] {
        let output = report(directory.path(), &["run.json", "-o", file]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        assert!(output.stdout.is_empty());
        let written = std::fs::read_to_string(directory.path().join(file)).unwrap();
        assert!(written.starts_with(beginning), "{file}: {}", &written[..60]);
    }
}

#[test]
fn a_condition_that_holds_is_exit_code_3() {
    let directory = with_run();
    let code = |args: &[&str]| report(directory.path(), args).status.code();
    assert_eq!(code(&["run.json", "--fail-if", "slower"]), Some(3));
    assert_eq!(code(&["run.json", "--fail-if", "changed", "--format", "csv"]), Some(3));
    // One of its trials failed: "no difference" does not stand, and no verdict is not a pass.
    assert_eq!(code(&["run.json", "--delta", "90%"]), Some(0));
    assert_eq!(code(&["run.json", "--fail-if", "slower", "--delta", "90%"]), Some(1));
    assert_eq!(code(&["run.json", "--fail-if", "undecided", "--delta", "90%"]), Some(3));
    let (mut run, _) = fixtures::measured();
    run.trials.retain(|trial| trial.status == Status::Done);
    std::fs::write(directory.path().join("whole.json"), serde_json::to_vec(&run).unwrap()).unwrap();
    assert_eq!(code(&["whole.json", "--fail-if", "slower", "--delta", "90%"]), Some(0));
}

#[test]
fn a_metric_may_have_a_smallest_difference_of_its_own() {
    let directory = with_run();
    let told = |args: &[&str]| {
        let output = report(directory.path(), &[&["run.json"], args].concat());
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        text(&output.stdout).replace('\u{a0}', " ")
    };
    let own = told(&["--delta", "3%,bw=90%"]);
    assert!(own.contains("δ 3 % (bw: 90 %)") && !own.contains("by more than 2 %"), "{own}");
    assert!(own.contains("no difference beyond 90 %") || own.contains("but by less than"), "{own}");
    let csv = told(&["--delta", "3%,bw=90%", "--format", "csv"]);
    let mut rows = csv::Reader::from_reader(csv.as_bytes());
    let heads = rows.headers().unwrap().clone();
    let at = |head: &str| heads.iter().position(|known| known == head).unwrap();
    let (metric, delta) = (at("metric"), at("delta"));
    let mut seen = [false; 2];
    for row in rows.records().map(Result::unwrap) {
        let is_own = row[metric].ends_with(".bw") || &row[metric] == "bw";
        assert_eq!(&row[delta], if is_own { "0.9" } else { "0.03" }, "{}", &row[metric]);
        seen[usize::from(is_own)] = true;
    }
    assert_eq!(seen, [true; 2], "both kinds were compared: {csv}");
}

#[test]
fn several_runs_are_one_table_and_one_list_of_tests() {
    let directory = with_run();
    let (mut run, _) = fixtures::measured();
    let factor = run.design.factors.iter_mut().find(|factor| factor.name == "bs").unwrap();
    factor.name = "blk".to_owned();
    std::fs::write(directory.path().join("other.json"), serde_json::to_vec(&run).unwrap()).unwrap();
    let written = |format: &str| {
        let output = report(directory.path(), &["run.json", "other.json", "--format", format]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    let csv = written("csv");
    assert!(csv.starts_with("row.bs,row.blk,job,metric,"), "{csv}");
    let mut rows = csv::Reader::from_reader(csv.as_bytes());
    let (mut with_bs, mut with_blk) = (0, 0);
    for row in rows.records().map(|row| row.expect("every line has all columns")) {
        assert!(row[0].is_empty() != row[1].is_empty(), "{row:?}");
        with_bs += usize::from(!row[0].is_empty());
        with_blk += usize::from(!row[1].is_empty());
    }
    assert_eq!(with_bs, with_blk);
    let note = report(directory.path(), &["run.json", "other.json", "--delta", "p98=5%"]);
    let said = text(&note.stderr);
    assert_eq!((note.status.code(), said.matches("has no metric 'p98'").count()), (Some(0), 2), "{said}");
    let junit = written("junit");
    let read = roxmltree::Document::parse(&junit).unwrap();
    let count = |name: &str| read.descendants().filter(|element| element.has_tag_name(name)).count();
    assert_eq!((count("testsuite"), count("testcase") % 2), (2, 0), "{junit}");
    assert!(count("failure") >= 2, "one row of each is slower: {junit}");
}

#[test]
fn a_wrong_request_is_exit_code_2_with_a_hint() {
    let directory = with_run();
    for (args, message) in [
        (&["run.json", "--format", "yaml"][..], "'yaml' is not a report format"),
        (&["run.json", "--primary", "nothing"], "the run has no metric 'nothing'"),
        (&["run.json", "--compare", "fs"], "the run has no factor 'fs'"),
        (&["run.json", "--delta", "2%,p98=9%"], "the run has no metric 'p98'"),
        (&["run.json", "--delta", "2%,3%"], "a second one for all metrics"),
        (&["run.json", "--hide-below", "much"], "'much' is not a percentage"),
        (&["7"], "assay.db"),
        (&["missing.json"], "missing.json"),
    ] {
        let output = report(directory.path(), args);
        let errors = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {errors}");
        assert!(errors.contains(message), "{args:?}: {errors}");
        assert!(output.stdout.is_empty());
    }
    let hint = report(directory.path(), &["7"]);
    assert!(text(&hint.stderr).contains("hint: "), "{}", text(&hint.stderr));
}

#[test]
fn a_file_that_cannot_be_written_is_a_wrong_request() {
    let directory = with_run();
    let output = report(directory.path(), &["run.json", "-o", "no/such/report.html"]);
    assert_eq!(output.status.code(), Some(2));
    let errors = text(&output.stderr);
    assert!(errors.contains("no/such/report.html") && errors.contains("hint: "), "{errors}");
}

/// How long it takes is for `make scale`.
#[test]
fn a_run_of_100_000_stored_trials_is_reported() {
    let directory = tempfile::tempdir().unwrap();
    let run = fixtures::long(50_000);
    let id = assay::store::Store::open(&directory.path().join("assay.db")).unwrap().insert_run(&run).unwrap();
    for (format, needle) in [("text", "100000 trials"), ("html", "evenly chosen")] {
        let output = report(directory.path(), &[&id.to_string(), "--format", format]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        assert!(text(&output.stdout).contains(needle), "{format}");
    }
}

/// `what` is one of three words, whatever came of the attempt that followed.
#[test]
fn what_came_of_another_attempt_is_a_field_of_its_own() {
    let sandbox = Sandbox::new();
    let here = sandbox.path().display();
    // The second arm fails once, the third a second time for another reason.
    let script = format!(
        "x={here}/${{n}}; [ ${{n}} = 1 ] && exit 0; [ -e $x ] && [ ${{n}} = 3 ] && exit 4; [ -e $x ] || {{ touch $x; exit 3; }}"
    );
    let words = ["run", "-q", "--vary", "n=1,2,3", "--rounds", "1", "--"];
    let output = sandbox.run(&[&words[..], &["sh", "-c", &script]].concat());
    assert_eq!(output.status.code(), Some(1), "{}", errors(&output));
    let report: serde_json::Value =
        serde_json::from_str(&sandbox.succeed(&["report", "1", "--format", "json"])).unwrap();
    let mut told: Vec<(&str, &str, Option<&str>)> = Vec::new();
    for failure in report["failures"].as_array().unwrap() {
        told.push((
            failure["cell"].as_str().unwrap(),
            failure["what"].as_str().unwrap(),
            failure["then"].as_str(),
        ));
    }
    told.sort_unstable();
    assert_eq!(
        told,
        [("n=2", "failed", Some("done")), ("n=3", "failed", None), ("n=3", "failed", Some("failed"))]
    );
    let text = sandbox.succeed(&["report", "1"]);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("1 trial of n=2 failed at first, and not when tried again"), "{text}");
    assert!(text.contains("1 trial of n=3 failed at first, and then otherwise"), "{text}");
}

#[test]
fn pictures_are_files_that_replace_only_what_assay_wrote() {
    let directory = with_run();
    let pictures = directory.path().join("pictures");
    let output = report(directory.path(), &["run.json", "--pictures", "pictures"]);
    let said = text(&output.stderr);
    let mut names: Vec<String> = std::fs::read_dir(&pictures)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    // Words in a PNG need a font; an SVG has them as text, and all of those are there.
    if said.contains("no font is installed") {
        assert!(said.contains(&format!("{} pictures as SVG: pictures", names.len())), "{said}");
        return crate::tools::skipped("there is no font (apt-get install fonts-dejavu-core)");
    }
    assert!(output.status.success(), "{said}");
    assert!(said.contains(&format!("{} pictures, each as SVG and PNG: pictures", names.len() / 2)), "{said}");
    assert!(
        names.contains(&"effects.svg".to_owned()) && names.contains(&"effects.png".to_owned()),
        "{names:?}"
    );
    for name in &names {
        let file = pictures.join(name);
        if name.ends_with(".svg") {
            let svg = std::fs::read_to_string(&file).unwrap();
            let sentinel = ["#0101", "#0102", "#0103"].iter().any(|colour| svg.contains(colour));
            assert!(svg.starts_with("<svg xmlns=") && !sentinel, "{name}");
        } else {
            let decoder = png::Decoder::new(std::io::BufReader::new(std::fs::File::open(&file).unwrap()));
            let mut reader = decoder.read_info().unwrap();
            let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
            reader.next_frame(&mut pixels).unwrap();
            let inked = pixels.chunks(4).filter(|pixel| *pixel != &pixels[..4]).count();
            assert!(inked * 200 > pixels.len() / 4, "{name}: {inked} of {} pixels", pixels.len() / 4);
        }
    }
    // Once more replaces them; a file of somebody else stays.
    assert!(report(directory.path(), &["run.json", "--pictures", "pictures"]).status.success());
    std::fs::write(pictures.join("effects.svg"), "mine").unwrap();
    let refused = report(directory.path(), &["run.json", "--pictures", "pictures"]);
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused.stderr));
    assert_eq!(std::fs::read_to_string(pictures.join("effects.svg")).unwrap(), "mine");
    std::fs::write(directory.path().join("file"), "mine").unwrap();
    let refused = report(directory.path(), &["run.json", "--pictures", "file"]);
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused.stderr));
}
