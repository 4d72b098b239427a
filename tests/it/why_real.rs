//! Why, in real experiments: what each rule says where its cause is there, and that it keeps silent where it is not.
//!
//! Here are locks, copying, the page cache and the processors; `why_real_device.rs` has the device, `why_real_flushes.rs` the flushes. What a
//! busy machine can spoil is taken again; what it can spoil eight times is no part of `make test`, but of `make why-real`. Nothing is
//! asserted of absolute times.

use std::collections::BTreeSet;

use assay::record::Run;
use serde_json::Value;

use crate::sandbox::Sandbox;
use crate::spoiled::{expect, unless_spoiled};
use crate::target_bench::can_make;
use crate::tools::{available, impossible_here, is_root};

/// A time below this share of the difference is as good as silence: one interval of twenty excludes 0 by chance.
const CHANCE: f64 = 0.05;

/// A run, and what its report says.
pub(crate) struct Found {
    pub(crate) sandbox: Sandbox,
    report: Value,
}

impl Found {
    /// Makes the experiment and reads its report.
    pub(crate) fn of(toml: &str, options: &[&str]) -> Found {
        let sandbox = Sandbox::that_waits();
        sandbox.write("why.toml", toml);
        let words = ["run", "-q", "why.toml", "--format", "json"];
        let report = serde_json::from_str(&sandbox.succeed(&[&words[..], options].concat())).unwrap();
        Found { sandbox, report }
    }

    /// The pair with this candidate; a complaint where its arms do not differ.
    pub(crate) fn pair(&self, candidate: &str) -> Result<Pair<'_>, String> {
        let all = self.report["why"].as_array().unwrap();
        let why = all.iter().find(|why| why["candidate"] == candidate);
        let why = why.unwrap_or_else(|| panic!("no pair with {candidate}: {all:?}"));
        expect(why["standing"] == "differs", || {
            format!("{candidate} does not differ: {}", self.report["verdicts"])
        })?;
        let budget = why["budget"].as_u64().map(|at| &self.report["analysis"]["budgets"][at as usize]);
        Ok(Pair { why, budget: budget.unwrap_or(&Value::Null) })
    }

    /// The run as it is stored.
    pub(crate) fn run(&self) -> Run {
        self.sandbox.export("1")
    }

    /// The report in text, everything in it, in one line.
    pub(crate) fn text(&self) -> String {
        let text = self.sandbox.succeed(&["report", "1", "--verbose"]);
        text.replace('\u{a0}', " ").split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

/// Why one candidate differs.
pub(crate) struct Pair<'f> {
    why: &'f Value,
    budget: &'f Value,
}

impl<'f> Pair<'f> {
    fn causes(&self) -> impl Iterator<Item = &'f Value> {
        self.why["causes"].as_array().into_iter().flatten()
    }

    /// The largest cause that the rule finds; a complaint where it keeps silent.
    pub(crate) fn fires(&self, rule: &str) -> Result<&'f Value, String> {
        let found = self.causes().find(|cause| cause["rule"] == rule);
        found.ok_or_else(|| format!("{rule} keeps silent: {}", self.why))
    }

    /// A complaint where the rule says anything, but for a time that is small beside the difference.
    pub(crate) fn silent(&self, rule: &str) -> Result<(), String> {
        let whole = estimate(&self.budget["total"]).abs();
        let is_told =
            |cause: &&Value| cause["time"].is_null() || estimate(&cause["time"]).abs() >= CHANCE * whole;
        match self.causes().filter(|cause| cause["rule"] == rule).find(is_told) {
            None => Ok(()),
            Some(cause) => Err(format!("{rule} does not keep silent: {cause} of {}", self.why)),
        }
    }

    /// The largest part of the sum, but for waiting for a processor, which a busy machine makes.
    fn largest(&self) -> &'f Value {
        let of_sum = self.causes().filter(|cause| cause["grade"] == "accounts_for");
        of_sum
            .filter(|cause| cause["part"] != "waiting_to_run")
            .max_by(|a, b| estimate(&a["time"]).total_cmp(&estimate(&b["time"])))
            .unwrap_or(&Value::Null)
    }

    /// Causes, what is too small to name and what is unexplained are the difference; the parts of the budget add up to it within its
    /// interval.
    pub(crate) fn adds_up(&self) -> Result<(), String> {
        let total = &self.budget["total"]["difference_ns"];
        let whole = estimate(&self.budget["total"]);
        let of_sum = self.causes().filter(|cause| cause["grade"] == "accounts_for");
        let named: f64 = of_sum.map(|cause| estimate(&cause["time"])).sum();
        let number = |value: &Value| value.as_f64().unwrap_or(f64::NAN);
        let left = number(&self.why["unexplained_ns"]["estimate"]) + number(&self.why["unnamed_ns"]);
        assert!((named + left - whole).abs() < 1e-6 * whole.abs(), "{named} + {left} is not {whole}");
        let parts: f64 = self.budget["parts"].as_array().unwrap().iter().map(|part| estimate(&part[1])).sum();
        let (low, high) = (number(&total["low"]), number(&total["high"]));
        expect((low..=high).contains(&parts), || format!("{parts} is not in {low} … {high}: {}", self.budget))
    }

    /// A complaint where causes leave more than half of the difference without a name.
    fn is_mostly_named(&self) -> Result<(), String> {
        let whole = estimate(&self.budget["total"]);
        let number = |value: &Value| value.as_f64().unwrap_or(f64::NAN);
        let left = [&self.why["unexplained_ns"]["estimate"], &self.why["unnamed_ns"]].map(number);
        let is_small = left.iter().map(|left| left.abs()).sum::<f64>() < 0.5 * whole.abs();
        expect(is_small, || format!("{left:?} of {whole} have no name: {}", self.why))
    }
}

/// How much longer an operation takes with the candidate, in ns.
pub(crate) fn estimate(line: &Value) -> f64 {
    line["difference_ns"]["estimate"].as_f64().unwrap_or(0.0)
}

/// The share that a cause has of the whole difference.
pub(crate) fn share(cause: &Value) -> f64 {
    cause["share"].as_f64().unwrap_or(0.0)
}

/// What the first piece of evidence says of baseline and candidate.
pub(crate) fn shown(cause: &Value) -> [f64; 2] {
    ["baseline", "candidate"].map(|arm| cause["evidence"][0][arm].as_f64().unwrap_or(f64::NAN))
}

/// Four writers of a file each, of one, and of one around the page cache of XFS, which lets them share its lock. What they wait for locks
/// decides beside the bandwidth: on a busy machine all of them wait for a processor first. What a worker sleeps while it throws its file out of
/// the cache beforehand is watched, too, so that none does.
const WRITERS: &str = r#"
job_text = """
[w]
rw=randwrite
bs=4k
size=4m
numjobs=4
time_based
runtime=400ms
invalidate=0
group_reporting
"""
observe = ["locks", "waits"]
primary = "write.bw,locks.wait_time"

[stop]
rounds = 5

[target]
device = "loop:400m"
state = "overwrite"

[[factor]]
name = "files"
level = [
  { label = "four", set = { fs = "ext4" } },
  { label = "one", set = { fs = "ext4", filename = "one" } },
  { label = "one of xfs, direct", set = { fs = "xfs", filename = "one", direct = 1 } },
]
"#;

#[test]
#[ignore = "an experiment that a busy machine spoils: make why-real"]
fn writers_of_one_file_wait_for_its_lock_unless_they_share_it() {
    if !can_make() {
        return;
    }
    unless_spoiled(|| {
        let found = Found::of(WRITERS, &[]);
        let one = found.pair("one")?;
        let lock = &one.fires("lock_wait")?["what"]["lock"];
        let largest = &one.largest()["what"]["lock"];
        let is_of_inode = |lock: &Value| {
            lock["kind"] == "rwsem_W"
                && lock["caller"] == "ext4_buffered_write_iter"
                && lock["spins"] == false
        };
        expect(is_of_inode(lock) && is_of_inode(largest), || {
            format!("not the lock of the inode: {}", one.why)
        })?;
        one.adds_up()?;
        one.is_mostly_named()?;
        one.silent("page_cache")?;
        one.silent("commit_wait")?;
        let direct = found.pair("one of xfs, direct")?;
        direct.silent("lock_wait")?;
        // It waits for the device instead, which the page cache spares the others.
        let sleep = direct.fires("sleep_place")?;
        let at = sleep["what"]["sleep"]["at"].as_str().unwrap_or("");
        expect(at.contains("dio") && share(sleep) > 0.2, || format!("{sleep}"))?;
        let cache = &direct.fires("page_cache")?["what"]["page_cache"];
        assert!(cache["arm"] == "four" && cache["direction"] == "write", "{cache}");
        direct.adds_up()?;
        let text = found.text();
        assert!(text.contains("waits for rwsem:W at ext4_buffered_write_iter"), "{text}");
        Ok(())
    });
}

/// The demo on a device of its own (the disk below the tests is everybody's), with blocks so large that copying them is no trifle beside the
/// time that the device takes.
const DEMO: &str = r#"
job_text = """
[w]
rw=randwrite
bs=2m
size=16m
time_based
runtime=400ms
invalidate=0
"""
observe = ["cpu", "extents"]

[stop]
rounds = 8

[target]
device = "loop:300m"
fs = "ext4"

[[factor]]
name = "direct"
levels = [0, 1]
"#;

#[test]
#[ignore = "an experiment that a busy machine spoils: make why-real"]
fn of_direct_writes_device_copy_and_cpu_time_are_named() {
    if !can_make() {
        return;
    }
    unless_spoiled(|| {
        let found = Found::of(DEMO, &[]);
        let pair = found.pair("1")?;
        pair.adds_up()?;
        let service = pair.fires("storage_wait")?;
        expect(share(service) > 0.2, || format!("{service}"))?;
        let device = &service["evidence"][0];
        assert_eq!(device["metric"], "time of the device's requests an operation", "{service}");
        let [cached, direct] = shown(service);
        assert!(cached < direct, "{service}");
        // Direct I/O copies nothing.
        let copying = pair.fires("copying")?;
        expect(share(copying) < 0.0, || format!("{copying}"))?;
        expect(estimate(&pair.fires("subsystem")?["time"]) != 0.0, || format!("{}", pair.why))?;
        let cache = &pair.fires("page_cache")?["what"]["page_cache"];
        assert!(cache["arm"] == "0", "{cache}");
        // One file lies in no other's way, and a device takes no part of the processor's clock.
        pair.silent("owner_changes")?;
        pair.silent("machine")?;
        let text = found.text();
        for words in ["kernel CPU in copying", "time of the device's requests an operation", "unexplained: "]
        {
            expect(text.contains(words), || format!("{words}: {text}"))?;
        }
        Ok(())
    });
}

#[test]
fn counters_alone_say_why_on_a_screen() {
    let sandbox = Sandbox::that_waits();
    sandbox.write("job.fio", "[w]\nrw=randwrite\nbs=4k\nsize=16m\nio_size=8m\n");
    unless_spoiled(|| {
        let text = sandbox.succeed(&["run", "-q", "job.fio", "--vary", "direct=0,1", "--rounds", "5"]);
        let (_, why) = text.split_once("\nwhy: ").ok_or_else(|| text.clone())?;
        let why = why.split("\n\n").next().unwrap();
        assert!(why.contains("direct=0 → direct=1: workers' time an operation"), "{text}");
        let causes = why.lines().skip(1).filter(|line| line.contains("%): ") || line.contains("goes with: "));
        expect(causes.count() >= 2 && why.contains("unexplained: "), || text.clone())
    });
}

/// Readers of one cached file on one processor: alone, and four of them.
fn on_one_processor(processor: &str) -> String {
    format!(
        r#"
job_text = """
[r]
rw=randread
bs=4k
size=4m
io_size=256m
filename=one
pre_read=1
cpus_allowed={processor}
group_reporting
"""
primary = "runtime"
observe = ["cpu", "waits"]

[stop]
rounds = 5

[[factor]]
name = "readers"
level = [{{ label = "1", set = {{ numjobs = 1 }} }}, {{ label = "4", set = {{ numjobs = 4 }} }}]
"#
    )
}

#[test]
#[ignore = "an experiment that a busy machine spoils: make why-real"]
fn more_workers_than_processors_wait_to_run() {
    if !is_root() {
        return;
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap();
    let first = allowed.trim().split(['-', ',']).next().unwrap();
    unless_spoiled(|| {
        let found = Found::of(&on_one_processor(first), &[]);
        let pair = found.pair("4")?;
        let waiting = pair.fires("waiting_to_run")?;
        expect(share(waiting) > 0.7, || format!("{waiting}"))?;
        pair.adds_up()?;
        // What each reader does is what one alone does.
        for rule in ["processor_time", "user_function", "subsystem", "storage_wait", "sleep_place"] {
            pair.silent(rule)?;
        }
        let text = found.text();
        assert!(text.contains("waiting to run (for a processor)"), "{text}");
        Ok(())
    });
}

#[test]
#[ignore = "an experiment that a busy machine spoils: make why-real"]
fn twice_the_cpu_time_for_the_same_may_be_a_slower_processor() {
    if !is_root() || !available("chrt") {
        return;
    }
    // Nothing else gets the processor meanwhile, so that only processor time differs.
    let before_others = ["chrt", "-f", "1"];
    let tried = std::process::Command::new("chrt").args(["-f", "1", "true"]).status().unwrap();
    if !tried.success() {
        return impossible_here("this control group has no time for real-time processes");
    }
    let script = "i=0; while [ $i -lt ${n}000 ]; do [ -e /proc/self/stat ]; i=$((i+1)); done";
    unless_spoiled(|| {
        let sandbox = Sandbox::that_waits();
        let words = ["run", "-q", "--format", "json", "--vary", "n=120,240", "--rounds", "5", "--"];
        let json = sandbox.succeed(&[&words[..], &before_others, &["sh", "-c", script]].concat());
        let found = Found { sandbox, report: serde_json::from_str(&json).unwrap() };
        let pair = found.pair("240")?;
        let slower = pair.fires("machine")?;
        assert!(slower["grade"] == "may" && slower["what"] == "slower_processor", "{slower}");
        expect(estimate(&pair.fires("processor_time")?["time"]) > 0.0, || format!("{}", pair.why))?;
        pair.silent("waiting_to_run")?;
        pair.adds_up()?;
        let text = found.text();
        assert!(text.contains("may be: a slower processor, by its clock"), "{text}");
        Ok(())
    });
}

/// A program with two functions: one has as many turns as it is told, the other always as many.
const GRINDER: &str = r#"
#include <stdlib.h>
static volatile unsigned long kept;
__attribute__((noinline)) void grind(unsigned long turns) { while (turns--) kept = kept * 31 + turns; }
__attribute__((noinline)) void steady(unsigned long turns) { while (turns--) kept = kept * 17 + turns; }
int main(int count, char **words) { (void)count; grind(strtoul(words[1], 0, 10)); steady(50000000); return 0; }
"#;

#[test]
fn the_function_of_a_program_that_takes_longer_is_named() {
    if !is_root() || !available("gcc") {
        return;
    }
    unless_spoiled(|| {
        let sandbox = Sandbox::that_waits();
        sandbox.write("grinder.c", GRINDER);
        let [source, program] = ["grinder.c", "grinder"].map(|name| sandbox.path().join(name));
        let made = std::process::Command::new("gcc").arg("-O1").arg("-o").arg(&program).arg(&source).status();
        assert!(made.unwrap().success());
        let program = program.to_str().unwrap();
        let words =
            ["run", "-q", "--format", "json", "--vary", "n=200,600", "--rounds", "5", "--observe", "cpu"];
        let json = sandbox.succeed(&[&words[..], &["--", program, "${n}000000"]].concat());
        let found = Found { sandbox, report: serde_json::from_str(&json).unwrap() };
        let pair = found.pair("600")?;
        let function = pair.fires("user_function")?;
        assert_eq!(function["what"]["user_function"], "grind", "{function}");
        expect((0.5..1.5).contains(&share(function)), || format!("{function}"))?;
        pair.silent("subsystem")?;
        let others = pair.causes().filter(|cause| cause["what"]["user_function"] == "steady");
        expect(others.count() == 0, || format!("{}", pair.why))?;
        let text = found.text();
        assert!(text.contains("user CPU in grind"), "{text}");
        Ok(())
    });
}

#[test]
fn an_arm_against_itself_is_not_watched() {
    if !is_root() {
        return;
    }
    let sandbox = Sandbox::that_waits();
    sandbox.write("job.fio", "[w]\nrw=write\nbs=64k\nsize=1m\n");
    for format in ["text", "json"] {
        let output =
            sandbox.run(&["run", "-q", "job.fio", "--aa", "--rounds", "4", "--explain", "--format", format]);
        let (told, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{said}");
        assert!(said.contains("nothing differs, so there is nothing to explain"), "{said}");
        assert!(said.contains("--only cpu,locks,waits"), "{said}");
        assert!(!told.contains("\nwhy: "), "{told}");
    }
    let runs = sandbox.succeed(&["list"]);
    assert_eq!(runs.lines().filter(|line| line.contains("job")).count(), 2, "{runs}");
    let plan =
        |words: &[&str]| sandbox.succeed(&[&["run", "job.fio", "--explain", "--plan"], words].concat());
    assert!(!plan(&["--aa"]).contains("to explain it"));
    assert!(plan(&["--vary", "bs=4k,64k"]).contains("to explain it"));
}

#[test]
fn every_rule_has_an_experiment_that_fires_it_and_one_silent() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let rules = std::fs::read_dir(root.join("src/analyse/why/rules")).unwrap();
    let rules = rules.map(|entry| entry.unwrap().file_name().to_string_lossy().replace(".rs", ""));
    let not_a_rule = ["mod", "rule"]; // the table of the rules, and what a rule is
    let rules: BTreeSet<String> = rules.filter(|rule| !not_a_rule.contains(&rule.as_str())).collect();
    assert!(rules.len() >= 18, "{rules:?}");
    let read = |name: &str| std::fs::read_to_string(root.join(format!("tests/it/{name}.rs"))).unwrap();
    let tests: String = ["why_real", "why_real_device", "why_real_flushes"].map(read).concat();
    for rule in rules {
        assert!(tests.contains(&format!("fires(\"{rule}\")")), "nothing makes {rule} fire");
        let is_silent = |line: &str| line.contains("silent") || line.contains("for rule in [");
        let silent = tests.lines().any(|line| is_silent(line) && line.contains(&format!("\"{rule}\"")));
        assert!(silent, "{rule} never keeps silent");
    }
}
