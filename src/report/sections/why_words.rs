//! Causes in words.
//!
//! Enters: a [`Why`] and the budget it belongs to. Leaves: lines, bars' names, a table of locks. Nothing is ranked or added up here.

use super::budget::{called, scale, signed, with_unit};
use crate::analyse::{Budget, Cause, Evidence, Grade, Operation, Standing, Watching, What, Why};
use crate::record::Direction;
use crate::report::layout::width;
use crate::report::picture::Bar;
use crate::report::table::{Head, Of, Table, TableRow};
use crate::report::verdict_words::Tone;
use crate::report::words::{NBSP, Names, count, plain_percent, row_label};
use crate::units::{Scale, Unit, format_number};

/// Columns that a line of text has for words.
const COLUMNS: usize = 74;
/// Causes named in one line about a pair.
const NAMED: usize = 2;

/// What stands above the causes of a pair.
pub(super) fn caption(why: &Why, budget: Option<&Budget>, names: &Names<'_>) -> String {
    let Some(budget) = budget else { return format!("why: {}", pair(why, names)) };
    let total = budget.total;
    let scale = scale(&total);
    format!(
        "why: {}: workers' time {} {} → {}, {}",
        pair(why, names),
        one(Some(budget)),
        with_unit(total.baseline_ns, &scale),
        with_unit(total.candidate_ns, &scale),
        signed(total.difference_ns.estimate, &scale)
    )
}

/// What the times are for.
fn one(budget: Option<&Budget>) -> &'static str {
    match budget.map(|budget| budget.operation) {
        Some(Operation::Trial) => "a trial",
        Some(Operation::Counted) | None => "an operation",
    }
}

/// The arms of a pair, behind its row.
pub(super) fn pair(why: &Why, names: &Names<'_>) -> String {
    format!("{}{} → {}", place(why), names.arm(&why.baseline), names.arm(&why.candidate))
}

/// The row of a pair, where there are several.
fn place(why: &Why) -> String {
    let row = row_label(&why.row);
    if row.is_empty() { row } else { format!("{row}: ") }
}

/// At most so many causes in at most so many lines of text, then what is unexplained and what watching cost; and how many causes are left
/// out.
pub(super) fn causes(
    why: &Why,
    budget: Option<&Budget>,
    names: &Names<'_>,
    most: usize,
    most_lines: usize,
) -> (Vec<String>, usize) {
    let last: Vec<String> =
        unexplained(why, budget).into_iter().chain(why.watching.as_ref().map(watched)).collect();
    let mut left = most_lines.saturating_sub(last.iter().map(|line| lines_of(line)).sum());
    let mut lines = Vec::new();
    for cause in chosen(why, most) {
        let line = line(cause, budget, names);
        let needs = lines_of(&line);
        if needs > left {
            break;
        }
        left -= needs;
        lines.push(line);
    }
    let hidden = why.causes.len() - lines.len();
    if why.causes.is_empty() {
        lines.push("no part of it differs so that it could be named".to_owned());
    }
    lines.extend(last);
    (lines, hidden)
}

/// The causes that are told where only so many fit: one place is for what goes with the difference, where anything does.
fn chosen(why: &Why, most: usize) -> Vec<&Cause> {
    let timed = why.causes.iter().filter(|cause| cause.grade == Grade::AccountsFor).count();
    let others = why.causes.len() - timed;
    let first = timed.min(most.saturating_sub(others.min(1)));
    let (of_sum, beside) = why.causes.split_at(timed);
    of_sum.iter().take(first).chain(beside.iter().take(most - first)).collect()
}

/// Lines of text that words take.
pub(super) fn lines_of(words: &str) -> usize {
    width(words).div_ceil(COLUMNS).max(1)
}

/// One cause.
fn line(cause: &Cause, budget: Option<&Budget>, names: &Names<'_>) -> String {
    let scale = budget.map_or_else(
        || Scale::for_column(&Unit::Nanoseconds, cause.time.map(|time| time.difference_ns.estimate)),
        |budget| scale(&budget.total),
    );
    let time = cause.time.map(|time| signed(time.difference_ns.estimate, &scale));
    let what = what(&cause.what, names);
    let shown = evidence(cause);
    let distorted = if cause.distorted { ", distorted" } else { "" };
    match (cause.grade, time) {
        (Grade::AccountsFor, Some(time)) => {
            let share = cause.share.map_or_else(String::new, |share| format!(" ({})", whole_percent(share)));
            let shown = if shown.is_empty() { shown } else { format!("; {shown}") };
            format!("{time}{share}: {what}{shown}")
        }
        (_, Some(time)) => format!("goes with: {what}, {time} {}{distorted}", one(budget)),
        (grade, None) => {
            let word = if grade == Grade::May { "may be" } else { "goes with" };
            let shown = if shown.is_empty() { shown } else { format!(" ({shown})") };
            format!("{word}: {what}{shown}")
        }
    }
}

/// One line about a pair.
pub(super) fn brief(why: &Why, names: &Names<'_>) -> String {
    let told = chosen(why, NAMED + 1).into_iter().map(|cause| {
        let share = cause.share.map(whole_percent).map_or_else(String::new, |share| format!("{share} "));
        let word = match cause.grade {
            Grade::AccountsFor => "",
            Grade::GoesWith => "goes with ",
            Grade::May => "may be ",
        };
        format!("{word}{share}{}", what(&cause.what, names))
    });
    let told: Vec<String> = told.collect();
    let told = if told.is_empty() { "no part of it could be named".to_owned() } else { told.join("; ") };
    format!("{}{}: {told}", place(why), names.arm(&why.candidate))
}

/// What is left of the difference.
fn unexplained(why: &Why, budget: Option<&Budget>) -> Option<String> {
    let (left, budget) = (why.unexplained_ns?, budget?);
    let scale = scale(&budget.total);
    let beside = match why.unnamed_ns {
        small if small.abs() < budget.least_ns / 10.0 => String::new(),
        unnamed => format!("; too small or unclear to name: {}", signed(unnamed, &scale)),
    };
    Some(format!("unexplained: {}{beside}", signed(left.estimate, &scale)))
}

/// What watching cost.
fn watched(watching: &Watching) -> String {
    let rounds = count(watching.rounds as u64, "round");
    let of = watching.run.map_or_else(String::new, |run| format!(" of run{NBSP}{run}"));
    let price = match (watching.price, watching.distorted) {
        (Some(price), false) => format!(", which cost {} of an operation", plain_percent(price.max(0.0))),
        (Some(price), true) => {
            format!(", which cost {} of an operation: times are distorted, counts stay", plain_percent(price))
        }
        (None, true) => ", nobody knows at what price: times are taken for distorted".to_owned(),
        (None, false) => "; what that cost is not known".to_owned(),
    };
    format!("watched in {rounds}{of}{price}")
}

/// What is said where no pair differs.
pub(super) fn nothing_words(all: &[Why]) -> Option<String> {
    let has = |standing: Standing| all.iter().any(|why| why.standing == standing);
    if has(Standing::Differs) {
        None
    } else if has(Standing::NotDecided) {
        Some("nothing is decided yet, so there is nothing to explain yet".to_owned())
    } else {
        has(Standing::NothingDiffers).then(|| "nothing differs, so there is nothing to explain".to_owned())
    }
}

/// A cause in words.
pub(super) fn what(what: &What, names: &Names<'_>) -> String {
    let other = |rest: &bool| if *rest { "other " } else { "" };
    match what {
        What::Copying => "kernel CPU in copying".to_owned(),
        What::Subsystem(part) => format!("kernel CPU in {part}"),
        What::Lock { kind, caller, spins: false } => format!("waits for {} at {caller}", kind_words(kind)),
        What::Lock { kind, caller, spins: true } => format!("spins for {} at {caller}", kind_words(kind)),
        What::Flush { at } => format!("waits for a flush at {at}"),
        What::Commit { at } => format!("waits for a journal commit at {at}"),
        What::Sleep { at } => format!("sleeps at {at}"),
        What::UserTime => "user CPU".to_owned(),
        What::KernelTime { rest } => format!("{}kernel CPU", other(rest)),
        What::WaitingToRun => "waiting to run (too few processors)".to_owned(),
        What::Storage { rest } => format!("{}waiting for storage", other(rest)),
        What::Asleep { rest: false, with } => called(*with).to_owned(),
        What::Asleep { rest: true, .. } => "asleep elsewhere".to_owned(),
        What::MoreFlushes => "more flushes".to_owned(),
        What::DeviceBytes { direction } => format!("the device {} more than is asked for", verb(*direction)),
        What::SmallerRequests { direction } => format!("smaller {} requests at the device", direction.name()),
        What::OwnerChanges => "files lie between each other on the device".to_owned(),
        What::QueueDepth => "fewer requests under way at the device".to_owned(),
        What::WorkerThreads { arm } => {
            format!("io_uring hands I/Os to worker threads with {}", names.arm(arm))
        }
        What::PageCache { arm, direction } => {
            format!("the page cache serves the {}s of {}", direction.name(), names.arm(arm))
        }
        What::SlowerDevice { direction } => {
            format!("the same {} requests take longer: it is the device, not the software", direction.name())
        }
        What::MachineSetting { fact, values } => {
            let of_arm = |(arm, value): &(String, String)| format!("{value} with {}", names.arm(arm));
            let values: Vec<String> = values.iter().map(of_arm).collect();
            format!("{fact} is {}: it is the machine", values.join(", "))
        }
        What::SlowerProcessor => {
            "a slower processor, by its clock or stolen time: user and kernel CPU grew alike".to_owned()
        }
    }
}

/// `rwsem:W` of `rwsem_W`, as perf-lock(1) writes it.
fn kind_words(kind: &str) -> String {
    match kind.rsplit_once('_') {
        Some((lock, side @ ("R" | "W"))) => format!("{lock}:{side}"),
        _ => kind.to_owned(),
    }
}

fn verb(direction: Direction) -> &'static str {
    match direction {
        Direction::Read => "reads",
        Direction::Write => "writes",
        Direction::Trim => "discards",
    }
}

/// The first of what shows a cause, but for the cause's own time.
fn evidence(cause: &Cause) -> String {
    let is_own = |shown: &&Evidence| !(shown.metric.contains(".at.") || shown.metric.contains("_at."));
    let first = cause.evidence.iter().find(is_own);
    first.map_or_else(String::new, |shown| {
        format!("{} {} → {}", shown.metric, figure(shown, shown.baseline), figure(shown, shown.candidate))
    })
}

/// Both values of a metric have a scale of their own: one may be a thousand times the other.
fn figure(shown: &Evidence, value: f64) -> String {
    let text = match (&shown.unit, value) {
        (_, 0.0) => "0".to_owned(),
        (Unit::Count, value) if value.abs() < 0.01 => "<0.01".to_owned(),
        (unit, value) => format_number(unit, value),
    };
    text.replace(' ', &NBSP.to_string())
}

/// A share without digits behind the point.
fn whole_percent(share: f64) -> String {
    let sign = if share < 0.0 { "−" } else { "" };
    format!("{sign}{:.0}{NBSP}%", (share * 100.0).abs())
}

/// The bars between both arms: each cause that accounts for time with its difference in ns, then what is too small or unclear to name, then
/// what is unexplained.
pub(super) fn bars(why: &Why, budget: &Budget, names: &Names<'_>) -> Vec<Bar> {
    let scale = scale(&budget.total);
    let bar = |label: String, ns: f64, tone: Tone| Bar { label, ns, value: signed(ns, &scale), tone };
    let of = |cause: &Cause| {
        let ns = cause.time?.difference_ns.estimate;
        let tone = if ns > 0.0 { Tone::Worse } else { Tone::Better };
        Some(bar(what(&cause.what, names), ns, tone))
    };
    let accounts = why.causes.iter().filter(|cause| cause.grade == Grade::AccountsFor);
    let mut bars: Vec<Bar> = accounts.filter_map(of).collect();
    if why.unnamed_ns.abs() >= budget.least_ns / 10.0 {
        bars.push(bar("too small or unclear to name".to_owned(), why.unnamed_ns, Tone::Same));
    }
    let left = why.unexplained_ns.map(|left| left.estimate);
    bars.extend(left.map(|ns| bar("unexplained".to_owned(), ns, Tone::Unclear)));
    bars
}

/// What stands at the ends of the bars: each arm with its time of an operation.
pub(super) fn ends(why: &Why, budget: &Budget, names: &Names<'_>) -> [(String, String); 2] {
    let (scale, total) = (scale(&budget.total), budget.total);
    let sum = total.baseline_ns + total.difference_ns.estimate;
    [(&why.baseline, total.baseline_ns), (&why.candidate, sum)]
        .map(|(arm, ns)| (names.arm(arm), with_unit(ns, &scale)))
}

/// The locks that account for a difference.
pub(super) fn locks(why: &Why, names: &Names<'_>) -> Option<Table> {
    let waits = |cause: &&Cause| matches!(cause.what, What::Lock { .. });
    let found: Vec<&Cause> = why.causes.iter().filter(waits).collect();
    found.first()?;
    let row = |cause: &&Cause| {
        let What::Lock { kind, caller, .. } = &cause.what else { return None };
        let of = |beginning: &str| {
            let found = cause.evidence.iter().find(|shown| shown.metric.starts_with(beginning));
            found.map_or_else(
                || "-".to_owned(),
                |shown| format!("{} → {}", figure(shown, shown.baseline), figure(shown, shown.candidate)),
            )
        };
        let cells = ["locks.at.", "locks.waits_at.", "locks.longest_at."].map(of).to_vec();
        Some(TableRow {
            labels: vec![kind_words(kind), caller.clone()],
            cells,
            tone: None,
            notes: Vec::new(),
        })
    };
    Some(Table {
        caption: format!("waits for locks, {}", pair(why, names)),
        labels: vec![Head::new("lock", Of::Names), Head::new("wanted by", Of::Names)],
        columns: Head::values(["time an operation", "waits an operation", "longest"]).collect(),
        rows: found.iter().filter_map(row).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyse::{Asleep, BudgetLine, Interval, RowKey};

    fn names() -> Names<'static> {
        Names::of_factor("direct")
    }

    fn cause(grade: Grade, what: What, ns: Option<f64>) -> Cause {
        let known = |estimate: f64| Interval { estimate, low: estimate - 1.0, high: estimate + 1.0 };
        let time = ns.map(|ns| BudgetLine { baseline_ns: 0.0, candidate_ns: ns, difference_ns: known(ns) });
        let share = ns.map(|ns| ns / 10_000.0).filter(|_| grade == Grade::AccountsFor);
        Cause { rule: "rule", grade, what, part: None, time, share, distorted: false, evidence: Vec::new() }
    }

    fn explained(causes: Vec<Cause>) -> Why {
        Why {
            row: RowKey { levels: Vec::new(), job: String::new() },
            metric: "write.bw".to_owned(),
            baseline: "0".to_owned(),
            candidate: "1".to_owned(),
            standing: Standing::Differs,
            budget: None,
            watching: None,
            causes,
            unnamed_ns: 0.0,
            unexplained_ns: None,
        }
    }

    fn told(why: &Why, most: usize) -> Vec<String> {
        let (lines, _) = causes(why, None, &names(), most, 11);
        lines.into_iter().map(|line| line.replace(NBSP, " ")).collect()
    }

    fn asleep() -> What {
        let with = Asleep { with_waiting_to_run: false, with_waiting_for_storage: true };
        What::Asleep { rest: false, with }
    }

    #[test]
    fn a_cause_has_its_time_its_share_and_the_word_of_its_grade() {
        let served = What::PageCache { arm: "0".to_owned(), direction: Direction::Write };
        let shown = Evidence {
            metric: "dev.write_bytes for each byte asked".to_owned(),
            unit: Unit::Count,
            baseline: 0.0,
            candidate: 1.0,
            difference: None,
        };
        let lock = What::Lock { kind: "rwsem_W".to_owned(), caller: "f".to_owned(), spins: false };
        let why = explained(vec![
            cause(Grade::AccountsFor, asleep(), Some(9600.0)),
            cause(Grade::AccountsFor, What::KernelTime { rest: false }, Some(-300.0)),
            Cause { distorted: true, ..cause(Grade::GoesWith, lock, Some(5000.0)) },
            Cause { evidence: vec![shown], ..cause(Grade::GoesWith, served, None) },
            cause(Grade::May, What::SlowerProcessor, None),
        ]);
        assert_eq!(
            told(&why, usize::MAX),
            [
                "+9.60 µs (96 %): asleep (storage, locks, others)",
                "−300 ns (−3 %): kernel CPU",
                "goes with: waits for rwsem:W at f, +5.00 µs an operation, distorted",
                "goes with: the page cache serves the writes of direct=0 (dev.write_bytes for each byte asked 0 → 1.00)",
                "may be: a slower processor, by its clock or stolen time: user and kernel CPU grew alike",
            ]
        );
    }

    #[test]
    fn where_room_is_short_one_place_is_for_what_goes_with_it() {
        let time = |ns: f64| cause(Grade::AccountsFor, What::UserTime, Some(ns));
        let mut causes = vec![time(5000.0), time(3000.0), time(2000.0)];
        assert_eq!(told(&explained(causes.clone()), 3).len(), 3);
        causes.push(cause(Grade::GoesWith, What::MoreFlushes, None));
        let lines = told(&explained(causes), 3);
        assert_eq!((lines.len(), lines[2].as_str()), (3, "goes with: more flushes"));
    }

    #[test]
    fn a_pair_never_takes_more_lines_than_it_has() {
        let long = || What::Sleep { at: "a_function_whose_name_goes_on_and_on_".repeat(3) };
        let why = explained((0..30).map(|_| cause(Grade::AccountsFor, long(), Some(500.0))).collect());
        let (lines, hidden) = causes(&why, None, &names(), usize::MAX, 11);
        assert!(lines.iter().map(|line| lines_of(line)).sum::<usize>() <= 11 && hidden == 30 - lines.len());
    }

    #[test]
    fn what_watching_cost_is_said() {
        let watching = |price, distorted| Watching { rounds: 4, run: Some(9), price, distorted };
        let said = |price, distorted| watched(&watching(price, distorted)).replace(NBSP, " ");
        assert_eq!(
            said(Some(0.012), false),
            "watched in 4 rounds of run 9, which cost 1.2 % of an operation"
        );
        assert!(said(Some(0.08), true).ends_with("times are distorted, counts stay"));
        assert!(said(None, false).ends_with("what that cost is not known"));
    }
}
