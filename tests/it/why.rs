//! Why two arms differ: real experiments in which a cause is there, and some in which there is nothing to explain.

use assay::analyse::{Analysis, Options, analyse};
use assay::record::{Run, Source, StopRule};
use assay::report::{Detail, Document, Format, Options as ReportOptions, render};
use assay::units::{Better, Unit};
use serde_json::Value;

use crate::fixtures;
use crate::sandbox::Sandbox;
use crate::spoiled::unless_spoiled;
use crate::target_bench::can_make;

/// A made-up run in which four writers of one file wait for its lock: watched, with all parts of the sum, and a row in which nothing
/// differs.
pub(crate) fn made_up() -> (Run, Analysis) {
    with_slow(&[0])
}

/// The same where these cells wait: one file at 4k is 0, at 1m 1.
fn with_slow(slow: &[u32]) -> (Run, Analysis) {
    let factors: [(&str, &[&str]); 2] = [("files", &["one", "four"]), ("bs", &["4k", "1m"])];
    let mut run = fixtures::empty_run("writers.fio", &factors, Source::Measured);
    run.design.stop = StopRule { rounds: Some(8), ..StopRule::default() };
    run.design.primary = Some("write.bw".to_owned());
    run.engine = "native 0.1.0".to_owned();
    // What a trial counts with one file and with four, at 4k; at 1m it is as with four.
    let counted: [(&str, Unit, f64, f64); 19] = [
        ("write.bw", Unit::BytesPerSecond, 2e8, 8e8),
        ("write.total_ios", Unit::Count, 1e5, 1e5),
        ("write.io_bytes", Unit::Bytes, 4.096e8, 4.096e8),
        ("workers.wall", Unit::Seconds, 4.0, 1.0),
        ("usr_cpu", Unit::Seconds, 0.05, 0.06),
        ("sys_cpu", Unit::Seconds, 0.9, 0.6),
        ("workers.run_wait", Unit::Seconds, 0.2, 0.05),
        ("ctx.involuntary", Unit::Count, 2000.0, 300.0),
        ("locks.lost", Unit::Count, 0.0, 0.0),
        ("locks.at.rwsem_W.ext4_buffered_write_iter", Unit::Seconds, 2.4, 0.0),
        ("locks.waits_at.rwsem_W.ext4_buffered_write_iter", Unit::Count, 4000.0, 0.0),
        ("locks.longest_at.rwsem_W.ext4_buffered_write_iter", Unit::Seconds, 0.4, 0.0),
        ("locks.at.spinlock.jbd2_journal_get_write_access", Unit::Seconds, 0.1, 0.0),
        ("cpu.samples", Unit::Count, 900.0, 600.0),
        ("cpu.at.copy", Unit::Seconds, 0.2, 0.2),
        ("cpu.at.locks", Unit::Seconds, 0.25, 0.01),
        ("dev.write_bytes", Unit::Bytes, 4e6, 4e6),
        ("dev.flushes_per_op", Unit::Count, 0.02, 0.001),
        ("extents.owner_changes_per_mib", Unit::Other("/MiB".to_owned()), 3.0, 0.1),
    ];
    let metrics = counted.map(|(name, unit, one, four)| {
        let better = if name == "write.bw" { Better::Higher } else { Better::Lower };
        (run.metric_index(&fixtures::metric("", name, unit, better)), one, four)
    });
    let mut noise = fixtures::Noise::new(5);
    for round in 0..8 {
        for cell in 0..4 {
            let slow = slow.contains(&cell);
            let values = metrics.iter().map(|(at, one, four)| {
                (*at, if slow { *one } else { *four } * (0.002 * noise.normal()).exp())
            });
            let mut trial = fixtures::trial(cell, round, cell, values.collect());
            trial.facts = None;
            run.trials.push(trial);
        }
    }
    let analysis = analyse(&run, &Options::default());
    (run, analysis)
}

/// The same, with the stages of the device's requests.
pub(crate) fn with_stages() -> (Run, Analysis) {
    let (mut run, _) = made_up();
    let stages = [("q2i", 2e-6, 1e-6), ("i2d", 9e-6, 1e-6), ("d2c", 20e-6, 21e-6), ("q2c", 31e-6, 23e-6)];
    let mut noise = fixtures::Noise::new(6);
    for (stage, one, four) in stages {
        let name = format!("blocks.write.{stage}.mean");
        let at = run.metric_index(&fixtures::metric("", &name, Unit::Seconds, Better::Lower));
        for trial in &mut run.trials {
            let mean = if trial.cell == 0 { one } else { four };
            trial.values.push((at, mean * (0.002 * noise.normal()).exp()));
        }
    }
    // All requests passed a scheduler.
    let at =
        run.metric_index(&fixtures::metric("", "blocks.write.inserted_share", Unit::Count, Better::Lower));
    run.trials.iter_mut().for_each(|trial| trial.values.push((at, 1.0)));
    let analysis = analyse(&run, &Options::default());
    (run, analysis)
}

fn text(fixture: &(Run, Analysis), format: Format, detail: Detail) -> String {
    let options = ReportOptions { detail, ..ReportOptions::default() };
    render(&Document::build(&fixture.0, &fixture.1, &options), format)
}

#[test]
fn all_formats_say_why() {
    let fixture = made_up();
    let lock = "waits for rwsem:W at ext4_buffered_write_iter";
    for format in Format::ALL {
        let words = text(&fixture, format, Detail::Page).replace(['\\', '\u{a0}'], " ");
        let words = words.split_whitespace().collect::<Vec<_>>().join(" ").replace(" _", "_");
        match format {
            Format::Json => assert!(words.contains("ext4_buffered_write_iter"), "{format}"),
            _ => assert!(words.contains(lock), "{format}: {words}"),
        }
    }
    let html = text(&fixture, Format::Html, Detail::Page);
    let (verdict, why) = (html.find("class=\"verdicts").unwrap(), html.find("<h2>Why</h2>").unwrap());
    assert!(
        verdict < why && html.contains("waits for locks, bs=4k: files=one → files=four"),
        "the verdict is first"
    );
    assert!(
        html[why..].contains("aria-label=\"bs=4k: files=one → files=four: files=one "),
        "there is a picture of the sum"
    );
}

#[test]
fn one_pair_has_three_causes_on_a_screen_and_all_in_full() {
    let fixture = made_up();
    let screen = text(&fixture, Format::Text, Detail::Screen);
    let of = |text: &str| {
        let from = text.find("\nwhy: ").unwrap_or_else(|| panic!("{text}"));
        text[from + 1..].split("\n\n").next().unwrap().to_owned()
    };
    let why = of(&screen);
    let causes = why.lines().filter(|line| line.contains(": ") && !line.starts_with("why")).count();
    assert!(
        why.contains("waits for rwsem:W at ext4_buffered_write_iter") && why.contains("unexplained: "),
        "{why}"
    );
    assert!(why.contains("goes with: ") && causes <= 6, "{why}");
    assert!(why.contains("1 more cause: −") && why.contains("(--verbose); unexplained: "), "{why}");
    assert!(screen.find("is faster than").unwrap() < screen.find("\nwhy: ").unwrap(), "{screen}");
    let full = of(&text(&fixture, Format::Text, Detail::All));
    assert!(!full.contains("more cause") && full.lines().count() > why.lines().count(), "{full}");
}

#[test]
fn several_pairs_have_a_line_each_on_a_screen() {
    let screen = text(&with_slow(&[0, 1]), Format::Text, Detail::Screen);
    let words = screen.split_whitespace().collect::<Vec<_>>().join(" ");
    for row in ["bs=4k", "bs=1m"] {
        let (_, line) = words.split_once(&format!("{row}: files=four: time an operation −")).unwrap();
        let cause = " µs: 80 % waits for rwsem:W at ext4_buffered_write_iter; ";
        assert!(line.split_once(" µs: ").is_some_and(|(time, _)| time.len() < 6), "{screen}");
        assert!(line.contains(cause), "{screen}");
    }
    assert!(screen.contains("--verbose adds: ") && words.contains("all causes"), "{screen}");
}

#[test]
fn the_json_has_every_cause_with_its_evidence() {
    let fixture = made_up();
    let json: Value = serde_json::from_str(&text(&fixture, Format::Json, Detail::Page)).unwrap();
    let all = json["why"].as_array().unwrap();
    let standings: Vec<&str> = all.iter().map(|why| why["standing"].as_str().unwrap()).collect();
    assert_eq!(standings, ["differs", "nothing_differs"]);
    let (why, budget) = (&all[0], &json["analysis"]["budgets"][0]);
    let lock = &why["causes"][0];
    assert_eq!((lock["rule"].as_str(), lock["grade"].as_str()), (Some("lock_wait"), Some("accounts_for")));
    assert_eq!(lock["what"]["lock"]["kind"], "rwsem_W");
    assert!(lock["share"].as_f64().is_some_and(|share| (share - 0.8).abs() < 0.02), "{lock}");
    assert!(
        lock["evidence"].as_array().unwrap().len() == 3 && lock["time"]["difference_ns"]["low"].is_number()
    );
    let estimate = |value: &Value| value["difference_ns"]["estimate"].as_f64().unwrap();
    let accounts = why["causes"].as_array().unwrap().iter().filter(|cause| cause["grade"] == "accounts_for");
    let named: f64 = accounts.map(|cause| estimate(&cause["time"])).sum();
    let left = why["unexplained_ns"]["estimate"].as_f64().unwrap() + why["unnamed_ns"].as_f64().unwrap();
    let whole = estimate(&budget["total"]);
    assert!((named + left - whole).abs() < 1e-6 * whole.abs(), "{named} + {left} is not {whole}");
    let documented =
        std::fs::read_to_string(format!("{}/docs/FORMAT.md", env!("CARGO_MANIFEST_DIR"))).unwrap();
    for object in [why, lock, &lock["evidence"][0], &why["watching"]] {
        for name in object.as_object().unwrap().keys() {
            let told =
                documented.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).any(|word| word == name);
            assert!(told, "docs/FORMAT.md does not tell of {name}");
        }
    }
}

/// What a run's report says of why, one entry a pair.
fn why(sandbox: &Sandbox, run: &str) -> Value {
    let json = sandbox.succeed(&["report", run, "--format", "json"]);
    let report: Value = serde_json::from_str(&json).unwrap();
    report["why"].clone()
}

/// The causes of the only pair.
fn causes(why: &Value) -> Vec<Value> {
    assert_eq!(why.as_array().map(Vec::len), Some(1), "{why}");
    why[0]["causes"].as_array().unwrap().clone()
}

#[test]
fn buffered_writes_end_in_the_cache_and_direct_ones_wait() {
    // A device of the run's own: the counters of the disk below the tests count everybody.
    if !can_make() {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.write("job.fio", "[w]\nrw=randwrite\nbs=4k\nsize=16m\nio_size=4m\n");
    let mut tried = 0;
    unless_spoiled(|| {
        tried += 1;
        let words = ["run", "-q", "job.fio", "--vary", "direct=0,1", "--rounds", "8"];
        sandbox.succeed(&[&words[..], &["-t", "loop:300m", "-t", "fs=ext4"]].concat());
        let run = tried.to_string();
        let found = why(&sandbox, &run);
        if found[0]["standing"] != "differs" {
            return Err(format!("nothing differs: {found}"));
        }
        let causes = causes(&found);
        let text = sandbox.succeed(&["report", &run]);
        let cache = causes.iter().find(|cause| cause["rule"] == "page_cache");
        let is_named = |cause: &Value| cause["what"]["page_cache"]["arm"] == "0";
        if !cache.is_some_and(is_named) {
            return Err(format!("no page cache: {found}"));
        }
        let of_sum = causes.iter().filter(|cause| cause["grade"] == "accounts_for").count();
        if of_sum == 0 || !text.contains("goes with: the page cache serves the writes of direct=0") {
            return Err(text);
        }
        assert!(text.contains("\nwhy: ") && text.contains("unexplained: "), "{text}");
        Ok(())
    });
}

/// Four writers through the page cache, of a file each and of one. Their waits decide, because on a busy machine all of them wait for a
/// processor, and whether bandwidth differs is chance. Large blocks: of small ones a quick machine writes so many that watching distorts it.
const WRITERS: &str = r#"
job_text = """
[w]
rw=randwrite
bs=1m
size=4m
numjobs=4
time_based
runtime=500ms
group_reporting
"""
observe = ["locks", "waits"]
primary = "locks.wait_time"

[stop]
rounds = 8

[target]
device = "loop:300m"
fs = "ext4"

[[factor]]
name = "files"
level = [{ label = "four", set = {} }, { label = "one", set = { filename = "one" } }]
"#;

#[test]
fn writers_of_one_file_wait_most_for_its_lock() {
    if !can_make() {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.write("writers.toml", WRITERS);
    let mut tried = 0;
    unless_spoiled(|| {
        tried += 1;
        sandbox.succeed(&["run", "-q", "writers.toml"]);
        let found = why(&sandbox, &tried.to_string());
        if found[0]["standing"] != "differs" {
            return Err(format!("nothing differs: {found}"));
        }
        let longer = |cause: &Value| cause["time"]["difference_ns"]["estimate"].as_f64().unwrap_or(0.0);
        let causes = causes(&found);
        let of_sum = causes.iter().filter(|cause| cause["grade"] == "accounts_for");
        // A busy machine makes them wait for a processor, a slow disk for the pages that others had it write; and who spins for the lock
        // before it sleeps is in the processor time.
        let is_beside = |cause: &Value| {
            ["waiting_to_run", "kernel"].iter().any(|part| cause["part"] == *part)
                || cause["what"]["sleep"]["at"] == "rq_qos_wait"
        };
        let largest = of_sum.filter(|cause| !is_beside(cause)).max_by(|a, b| longer(a).total_cmp(&longer(b)));
        let lock = &largest.unwrap_or(&Value::Null)["what"]["lock"];
        if lock["kind"] != "rwsem_W" || lock["caller"] != "ext4_buffered_write_iter" {
            return Err(format!("not the lock of the inode: {found}"));
        }
        let text = sandbox.succeed(&["report", &tried.to_string(), "--verbose"]);
        // However its lines are broken.
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("waits for rwsem:W at ext4_buffered_write_iter"), "{text}");
        Ok(())
    });
}

#[test]
fn an_arm_against_itself_leaves_nothing_to_explain() {
    let sandbox = Sandbox::new();
    sandbox.write("job.fio", "[w]\nrw=write\nbs=64k\nsize=1m\n");
    sandbox.succeed(&["run", "-q", "job.fio", "--aa", "--rounds", "4"]);
    let found = why(&sandbox, "1");
    assert_eq!(
        (&found[0]["standing"], &found[0]["causes"]),
        (&Value::from("nothing_differs"), &Value::from(Vec::<Value>::new()))
    );
    let verbose = sandbox.succeed(&["report", "1", "--verbose"]);
    assert!(verbose.contains("nothing differs, so there is nothing to explain"), "{verbose}");
    assert!(!sandbox.succeed(&["report", "1"]).contains("explain"));
}
