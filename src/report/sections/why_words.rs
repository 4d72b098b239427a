//! Why two arms differ, as lines.
//!
//! Enters: a [`Why`] and the budget it belongs to. Leaves: lines. Nothing is ranked or added up here.

use super::budget::{scale, signed, with_unit};
use super::cause_words::{figure, what};
use crate::analyse::{Budget, Cause, Evidence, Grade, Operation, Standing, Watching, Why};
use crate::report::layout::{one_line, width};
use crate::report::words::{NBSP, Names, count, row_label};
use crate::units::{Scale, Unit};

/// Columns that a line of text has for words.
const COLUMNS: usize = 74;
/// Causes named in one line about a pair.
const NAMED: usize = 2;
/// Beyond this share parts work against each other, and a share of what they leave says nothing.
const CANCELS: f64 = 1.5;

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
pub(super) fn one(budget: Option<&Budget>) -> &'static str {
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

/// How much of a pair there is room for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    /// Causes.
    pub(super) causes: usize,
    /// Lines of text.
    pub(super) lines: usize,
    /// Whether the line about watched trials is among them; a price of watching elsewhere in the report says more.
    pub(super) watching: bool,
}

/// The causes that there is room for, then what is unexplained and what was watched; and how many causes are left out.
pub(super) fn causes(
    why: &Why,
    budget: Option<&Budget>,
    names: &Names<'_>,
    room: Room,
) -> (Vec<String>, usize) {
    let watching = why.watching.as_ref().filter(|_| room.watching).map(watched);
    let last: Vec<String> = unexplained(why, budget).into_iter().chain(watching).collect();
    let mut left = room.lines.saturating_sub(last.iter().map(|line| lines_of(line)).sum());
    let mut lines = Vec::new();
    for cause in chosen(why, room.causes) {
        let line = line(cause, share(why, cause), budget, names);
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

/// A cause's share of the difference, where parts do not cancel each other.
fn share(why: &Why, cause: &Cause) -> Option<String> {
    let cancel = why.causes.iter().filter_map(|cause| cause.share).any(|share| share.abs() > CANCELS);
    cause.share.filter(|_| !cancel).map(whole_percent)
}

/// One cause.
fn line(cause: &Cause, share: Option<String>, budget: Option<&Budget>, names: &Names<'_>) -> String {
    let scale = budget.map_or_else(
        || Scale::for_column(&Unit::Nanoseconds, cause.time.map(|time| time.difference_ns.estimate)),
        |budget| scale(&budget.total),
    );
    let time = cause.time.map(|time| signed(time.difference_ns.estimate, &scale));
    let what = what(cause, names);
    let shown = evidence(cause);
    let distorted = if cause.distorted { ", distorted" } else { "" };
    match (cause.grade, time) {
        (Grade::AccountsFor, Some(time)) => {
            let share = share.map_or_else(String::new, |share| format!(" ({share})"));
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
        let share = share(why, cause).map_or_else(String::new, |share| format!("{share} "));
        let word = match cause.grade {
            Grade::AccountsFor => "",
            Grade::GoesWith => "goes with ",
            Grade::May => "may be ",
        };
        format!("{word}{share}{}", what(cause, names))
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
        unnamed => {
            format!("; too small or unclear to name, or within the noise: {}", signed(unnamed, &scale))
        }
    };
    Some(format!("unexplained: {}{beside}", signed(left.estimate, &scale)))
}

/// That the trials themselves were watched, so that nothing is there to tell what that cost.
fn watched(watching: &Watching) -> String {
    format!("watched in {}; what that cost is not known", count(watching.rounds as u64, "round"))
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

/// The first of what shows a cause, but for the cause's own time.
fn evidence(cause: &Cause) -> String {
    let is_own = |shown: &&Evidence| !(shown.metric.contains(".at.") || shown.metric.contains("_at."));
    let first = cause.evidence.iter().find(is_own);
    first.map_or_else(String::new, |shown| {
        let metric = one_line(&shown.metric);
        format!("{metric} {} → {}", figure(shown, shown.baseline), figure(shown, shown.candidate))
    })
}

/// A share without digits behind the point.
fn whole_percent(share: f64) -> String {
    let sign = if share < 0.0 { "−" } else { "" };
    format!("{sign}{:.0}{NBSP}%", (share * 100.0).abs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyse::{Asleep, BudgetLine, Interval, RowKey, What};
    use crate::record::Direction;

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

    fn room(causes: usize) -> Room {
        Room { causes, lines: 11, watching: true }
    }

    fn told(why: &Why, most: usize) -> Vec<String> {
        let (lines, _) = causes(why, None, &names(), room(most));
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
    fn parts_that_cancel_each_other_have_no_shares() {
        let why = explained(vec![
            cause(Grade::AccountsFor, asleep(), Some(-24_000.0)),
            cause(Grade::AccountsFor, What::UserTime, Some(22_000.0)),
        ]);
        assert_eq!(told(&why, 2)[1], "+22.0 µs: user CPU");
        assert!(!brief(&why, &names()).contains('%'));
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
        let (lines, hidden) = causes(&why, None, &names(), room(usize::MAX));
        assert!(lines.iter().map(|line| lines_of(line)).sum::<usize>() <= 11 && hidden == 30 - lines.len());
    }

    #[test]
    fn watched_trials_are_told_of_where_no_price_is() {
        let watching = Watching { rounds: 4, run: None, price: None, distorted: false };
        let why = Why { watching: Some(watching), ..explained(Vec::new()) };
        assert_eq!(told(&why, 3)[1], "watched in 4 rounds; what that cost is not known");
        let (lines, _) = causes(&why, None, &names(), Room { watching: false, ..room(3) });
        assert_eq!(lines, ["no part of it differs so that it could be named"]);
    }
}
