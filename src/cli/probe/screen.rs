//! The figures of a probe as text: those that speak for the others, or all of them.
//!
//! Enters: a stored probe. Leaves: lines of 80 columns, a few for `assay doctor`. It must not know how anything was measured.

use jiff::Timestamp;

use crate::analyse::{Ceiling, Saturation, best, ceilings, is_same_device, is_same_machine, saturated};
use crate::record::{HostFacts, Run};
use crate::report::wrapped;
use crate::sys::terminal::visible_line;
use crate::units::{counted, format_number, pretty_duration};

/// Columns of what a figure is called.
const WORDS: usize = 42;
/// Ways of copying, with their words.
const WAYS: [(&str, &str); 4] = [
    ("read", "copy out of memory"),
    ("cached", "copy into memory"),
    ("non_temporal", "copy past the caches"),
    ("write_back", "copy, lines written back"),
];
/// Kinds of locks, with their words.
const LOCKS: [(&str, &str); 4] = [
    ("exclusive", "lock, one owner"),
    ("shared", "lock, shared"),
    ("per_thread", "own counter"),
    ("epoch", "epoch, as with RCU"),
];
/// Single figures, with their words.
const SINGLE: [(&str, &str); 9] = [
    ("system_call", "system call"),
    ("context_switch", "context switch"),
    ("page_fault", "page fault"),
    ("futex_wake", "wake-up, other processor"),
    ("write.4k.stable", "stable write of 4 KiB"),
    ("flush.after_nothing", "flush after nothing"),
    ("flush.after_4k", "flush after 4 KiB"),
    ("flush.after_1m", "flush after 1 MiB"),
    ("fsync.one_page", "fsync of one page"),
];
/// What is measured by depth, with its words.
const BY_DEPTH: [(&str, &str); 2] = [("read.4k", "4 KiB reads"), ("write.4k", "4 KiB writes")];

/// The whole text.
pub(super) fn text(run: &Run, verbose: bool) -> String {
    let all = ceilings(run);
    let mut lines = head(run);
    lines.push(format!("{:<WORDS$} {:>10}  half of the rounds", "", "median"));
    let rows: Vec<(String, &Ceiling)> = match verbose {
        true => all.iter().map(|ceiling| (format!("{} {}", ceiling.group, ceiling.name), ceiling)).collect(),
        false => headlines(&all),
    };
    lines.extend(rows.iter().map(|(words, ceiling)| row(words, ceiling)));
    lines.push(String::new());
    lines.extend(run.notes.iter().map(|note| wrapped(&visible_line(&note.text), "  ")));
    lines.push(wrapped(
        "locks are stand-ins outside the kernel; `assay help probes` says what each figure is",
        "  ",
    ));
    lines.join("\n") + "\n"
}

fn head(run: &Run) -> Vec<String> {
    let fact = |name: &str| run.facts.first().and_then(|facts| facts.get(name)).unwrap_or("unknown");
    let place = match fact("device") {
        "unknown" => fact("fs.type").to_owned(),
        device => format!("{} on {device}", fact("fs.type")),
    };
    let elapsed: f64 = run.trials.iter().map(|trial| trial.elapsed_s).sum();
    let rounds = counted(run.trials.len() as u64, "round");
    let number = run.id.map_or_else(String::new, |id| format!("probe {id}, "));
    let directory = run.arms().first().map_or("", String::as_str);
    [
        format!("{number}{rounds} in {}: {directory} ({place})", pretty_duration(elapsed)),
        format!("{} × {}, kernel {}", fact("cpu.count"), fact("cpu.model"), fact("kernel.release")),
    ]
    .map(|line| visible_line(&line).into_owned())
    .to_vec()
}

fn row(words: &str, ceiling: &Ceiling) -> String {
    let number = |value: f64| format_number(&ceiling.unit, value);
    format!(
        "{words:<WORDS$} {:>10}  {} … {}",
        number(ceiling.median),
        number(ceiling.low),
        number(ceiling.high)
    )
}

/// The figures that speak for the others.
fn headlines(all: &[Ceiling]) -> Vec<(String, &Ceiling)> {
    let mut rows = Vec::new();
    for (way, words) in WAYS {
        if let Some(found) = best(all, "copies", way, None) {
            let block = found.name.split('.').nth(1).unwrap_or_default();
            rows.push((format!("{words}, {block}, {}", threads(found)), found));
        }
    }
    for (kind, words) in LOCKS {
        let of_kind = |ceiling: &&Ceiling| {
            ceiling.group == "locks" && ceiling.name.starts_with(&format!("{kind}.held_0."))
        };
        let found: Vec<&Ceiling> = all.iter().filter(of_kind).collect();
        let last = found.last().filter(|_| found.len() > 1);
        rows.extend(
            found.first().into_iter().chain(last).map(|c| (format!("{words}, held 0, {}", threads(c)), *c)),
        );
    }
    let single = |name: &str| all.iter().find(|ceiling| ceiling.name == name);
    let (calls, device) = SINGLE.split_at(4);
    let words = |(name, words): &(&str, &str)| Some(((*words).to_owned(), single(name)?));
    rows.extend(calls.iter().filter_map(words));
    for (kind, words) in BY_DEPTH {
        let first = single(&format!("{kind}.d1")).map(|found| (format!("{words}, depth 1"), found));
        let most = saturated(all, "device", kind).filter(|found| found.ceiling.level() != Some(1));
        let most = most.map(|found| (format!("{words}, {}", at_depth(&found)), found.ceiling));
        rows.extend(first.into_iter().chain(most));
    }
    rows.extend(device.iter().filter_map(words));
    rows
}

/// `saturated at depth 8`.
fn at_depth(found: &Saturation<'_>) -> String {
    let state = if found.is_reached { "saturated" } else { "still rising" };
    format!("{state} at depth {}", found.ceiling.level().unwrap_or(1))
}

fn threads(ceiling: &Ceiling) -> String {
    counted(u64::from(ceiling.level().unwrap_or(1)), "thread")
}

/// What `assay doctor` says of the latest probe of this machine and kernel, in sentences; device figures only of a probe of the same
/// device. Empty where there is none.
pub(crate) fn doctor_lines(probes: &[Run], here: &HostFacts) -> Option<String> {
    let of_here = |run: &&Run| run.facts.first().is_some_and(|facts| is_same_machine(facts, here));
    let run = probes.iter().find(of_here)?;
    let mut said =
        vec![format!("{}, {}", run.id.map_or_else(String::new, |id| format!("run {id}")), age(run))];
    let all: Vec<Ceiling> = ceilings(run);
    let number = |ceiling: &Ceiling| format_number(&ceiling.unit, ceiling.median);
    for (name, words) in [("read", "copies"), ("exclusive", "one lock")] {
        let group = if name == "read" { "copies" } else { "locks" };
        said.extend(best(&all, group, name, None).map(|found| format!("{words} {}", number(found))));
    }
    let single = |name: &str| all.iter().find(|ceiling| ceiling.name == name);
    said.extend(single("system_call").map(|found| format!("a system call {}", number(found))));
    let of_device = probes.iter().filter(of_here).find(|run| {
        let same = run.facts.first().is_some_and(|facts| is_same_device(facts, here));
        same && run.metrics.iter().any(|metric| metric.job == "device")
    });
    if let Some(run) = of_device {
        let all = ceilings(run);
        for (kind, words) in BY_DEPTH {
            let found = saturated(&all, "device", kind);
            said.extend(
                found.map(|found| format!("{words} {}, {}", number(found.ceiling), at_depth(&found))),
            );
        }
        let flush = all.iter().find(|ceiling| ceiling.name == "flush.after_4k");
        said.extend(flush.map(|found| format!("a flush after 4 KiB {}", number(found))));
    }
    Some(said.join("; "))
}

/// `2026-11-23 (3 days old)`.
fn age(run: &Run) -> String {
    let Ok(then) = Timestamp::from_nanosecond(i128::from(run.started_unix_ns)) else {
        return "of an unknown day".to_owned();
    };
    let seconds = Timestamp::now().duration_since(then).as_secs().max(0);
    let old = match seconds {
        0..3600 => "less than an hour old".to_owned(),
        3600..86_400 => format!("{} old", counted(seconds as u64 / 3600, "hour")),
        _ => format!("{} old", counted(seconds as u64 / 86_400, "day")),
    };
    format!("{} ({old})", then.strftime("%Y-%m-%d"))
}
