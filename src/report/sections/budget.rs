//! Where the time of an operation went, in at most eight lines a row and candidate.
//!
//! Enters: a [`Budget`]. Leaves: lines. It must not compute: sums, intervals and what is too small to matter are analyse's.

use super::Material;
use crate::analyse::{Asleep, Budget, BudgetLine, BudgetPart, Interval, Operation};
use crate::report::document::so_far;
use crate::report::format::Detail;
use crate::report::section::{Block, Heading, Line, List, Section};
use crate::report::words::{Names, count};
use crate::units::{Scale, Unit};

/// Lines of one budget, with its heading.
const MOST_LINES: usize = 8;
/// Of these the heading, the total and what is unexplained.
const ALWAYS: usize = 3;
/// A difference that is further from that of the medians, as a share of it, is not theirs.
const NOT_OF_MEDIANS: f64 = 0.05;

/// What a difference is that the two medians beside it do not have.
pub(super) const TYPICAL: &str = "typical difference in a round";

/// The section: in full only where all is asked for.
pub(super) fn section(material: &mut Material<'_>) -> Section {
    let Material { analysis, options, names, .. } = material;
    let list = |budget: &Budget| List {
        caption: Some(format!("{}{}", heading(budget, names), so_far(analysis))),
        lines: lines(budget).into_iter().map(Line::from).collect(),
    };
    let blocks = match options.detail {
        Detail::All => analysis.budgets.iter().map(|budget| Block::List(list(budget))).collect(),
        _ if analysis.budgets.is_empty() => Vec::new(),
        _ => vec![Block::Withheld("where the time went")],
    };
    Section::new("budget", Heading::None, blocks)
}

fn heading(budget: &Budget, names: &Names<'_>) -> String {
    let row = names.before(&budget.row);
    let of = match budget.operation {
        Operation::Counted => "an operation",
        Operation::Trial | Operation::Unknown => "a trial",
    };
    let of_rate =
        budget.rate.as_ref().map_or_else(String::new, |rate| format!(", operations {rate} × runtime"));
    format!(
        "{row}workers' time {of}, {} → {} ({}{of_rate})",
        names.arm(&budget.baseline),
        names.arm(&budget.candidate),
        count(budget.rounds as u64, "round")
    )
}

/// All but the heading.
fn lines(budget: &Budget) -> Vec<String> {
    let scale = scale(&budget.total);
    let mut shown: Vec<&(BudgetPart, BudgetLine)> = Vec::new();
    let mut small: Vec<&(BudgetPart, BudgetLine)> = Vec::new();
    let room = MOST_LINES - ALWAYS - usize::from(budget.in_flight.is_some());
    let matters =
        budget.parts.iter().filter(|(_, line)| line.difference_ns.estimate.abs() >= budget.least_ns).count();
    // What is left out takes a line.
    let most = if matters == budget.parts.len() && matters <= room { room } else { matters.min(room - 1) };
    for (at, part) in budget.parts.iter().enumerate() {
        if at < most { shown.push(part) } else { small.push(part) }
    }
    let mut lines = vec![line("all of it", &budget.total, &scale)];
    lines.extend(shown.iter().map(|(part, of)| line(name(*part, budget), of, &scale)));
    if !small.is_empty() {
        let sum: f64 = small.iter().map(|(_, of)| of.difference_ns.estimate).sum();
        let called: Vec<&str> = small.iter().map(|(part, _)| name(*part, budget)).collect();
        lines.push(format!("smaller changes: {} ({})", signed(sum, &scale), called.join(", ")));
    }
    lines.push(format!("unexplained: {}", with_interval(budget.unexplained_ns, &scale)));
    lines.extend(budget.in_flight.map(|known| {
        let of_latency = self::scale(&known.latency);
        format!(
            "{} with {:.1} → {:.1} in flight; the processor time above is not part of it",
            line("latency", &known.latency, &of_latency),
            known.baseline,
            known.candidate
        )
    }));
    lines
}

/// What a part is called.
pub(super) fn name(part: BudgetPart, budget: &Budget) -> &'static str {
    match part {
        BudgetPart::User => "user CPU",
        BudgetPart::Kernel => "kernel CPU",
        BudgetPart::Processor => "CPU",
        BudgetPart::WaitingToRun => "waiting to run",
        BudgetPart::WaitingForStorage => "waiting for storage",
        BudgetPart::Asleep => called(budget.asleep),
    }
}

/// What the sleep is called that has these in it.
pub(super) fn called(asleep: Asleep) -> &'static str {
    match (asleep.with_waiting_to_run, asleep.with_waiting_for_storage, asleep.with_pauses) {
        (false, false, false) => "asleep otherwise",
        (false, false, true) => "asleep otherwise (its own pauses, locks, others)",
        (false, true, false) => "asleep (storage, locks, others)",
        (false, true, true) => "asleep (its own pauses, storage, locks, others)",
        (true, false, false) => "asleep otherwise, or waiting to run",
        (true, false, true) => "asleep otherwise (its own pauses too), or waiting to run",
        (true, true, false) => "not running (storage, locks, processors, others)",
        (true, true, true) => "not running (its own pauses, storage, locks, processors, others)",
    }
}

fn line(name: &str, of: &BudgetLine, scale: &Scale) -> String {
    format!(
        "{name}: {} → {}{}{}",
        with_unit(of.baseline_ns, scale),
        with_unit(of.candidate_ns, scale),
        before_difference(of, scale),
        with_interval(of.difference_ns, scale)
    )
}

/// What stands between two medians and their difference: where a reader who subtracts them finds another one, what it is.
pub(super) fn before_difference(of: &BudgetLine, scale: &Scale) -> String {
    if is_of_medians(of, scale) { ", ".to_owned() } else { "; typically ".to_owned() }
}

/// Whether the difference, which is estimated over rounds, reads like that of the two medians.
pub(super) fn is_of_medians(of: &BudgetLine, scale: &Scale) -> bool {
    let (of_medians, typical) = (of.candidate_ns - of.baseline_ns, of.difference_ns.estimate);
    (of_medians - typical).abs() <= NOT_OF_MEDIANS * typical.abs()
        || signed(of_medians, scale) == signed(typical, scale)
}

/// One scale a budget, by its total: a part that needs more digits does not matter.
pub(super) fn scale(total: &BudgetLine) -> Scale {
    Scale::for_column(&Unit::Nanoseconds, [total.baseline_ns, total.candidate_ns])
}

pub(super) fn with_unit(ns: f64, scale: &Scale) -> String {
    scale.with_unit(ns).replace(' ', "\u{a0}")
}

/// `+1.2 µs (+1.1 … +1.3)`, and as it is where it is not known how far it could be off.
fn with_interval(of: Interval, scale: &Scale) -> String {
    let difference = signed(of.estimate, scale);
    if of.low.is_finite() && of.high.is_finite() && of.low < of.high {
        let ends = [of.low, of.high].map(|end| sign(end, scale) + &scale.number(end.abs()));
        return format!("{difference} ({} … {})", ends[0], ends[1]).replace(' ', "\u{a0}");
    }
    difference
}

pub(super) fn signed(ns: f64, scale: &Scale) -> String {
    sign(ns, scale) + &with_unit(ns.abs(), scale)
}

/// The sign of a number as it is printed: none of a zero.
fn sign(ns: f64, scale: &Scale) -> String {
    let is_zero = scale.number(ns.abs()).chars().all(|c| c == '0' || c == '.');
    let sign = if is_zero {
        ""
    } else if ns < 0.0 {
        "−"
    } else {
        "+"
    };
    sign.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyse::{InFlight, RowKey};

    fn of(baseline_ns: f64, candidate_ns: f64) -> BudgetLine {
        let estimate = candidate_ns - baseline_ns;
        let difference_ns = Interval { estimate, low: estimate - 20.0, high: estimate + 20.0 };
        BudgetLine { baseline_ns, candidate_ns, difference_ns }
    }

    fn budget() -> Budget {
        Budget {
            row: RowKey { levels: Vec::new(), job: String::new() },
            baseline: "0".to_owned(),
            candidate: "1".to_owned(),
            operation: Operation::Counted,
            rate: None,
            rounds: 8,
            total: of(10_000.0, 18_200.0),
            parts: vec![
                (BudgetPart::Asleep, of(6000.0, 12_000.0)),
                (BudgetPart::Kernel, of(3000.0, 5200.0)),
                (BudgetPart::User, of(900.0, 950.0)),
                (BudgetPart::WaitingToRun, of(100.0, 60.0)),
            ],
            unexplained_ns: Interval { estimate: -10.0, low: -10.0, high: -10.0 },
            asleep: Asleep { with_waiting_to_run: false, with_waiting_for_storage: true, with_pauses: false },
            least_ns: 200.0,
            in_flight: None,
            bytes: None,
        }
    }

    #[test]
    fn parts_that_matter_have_a_line_each() {
        let text = lines(&budget()).join("\n").replace('\u{a0}', " ");
        let expected = "all of it: 10.0 µs → 18.2 µs, +8.2 µs (+8.2 … +8.2)\n\
                        asleep (storage, locks, others): 6.0 µs → 12.0 µs, +6.0 µs (+6.0 … +6.0)\n\
                        kernel CPU: 3.0 µs → 5.2 µs, +2.2 µs (+2.2 … +2.2)\n\
                        smaller changes: 0.0 µs (user CPU, waiting to run)\n\
                        unexplained: 0.0 µs";
        assert_eq!(text, expected);
    }

    #[test]
    fn a_difference_that_is_not_of_the_medians_is_named() {
        let mut budget = budget();
        budget.total.difference_ns = Interval { estimate: 6000.0, low: 5500.0, high: 6500.0 };
        let first = lines(&budget)[0].replace('\u{a0}', " ");
        assert_eq!(first, "all of it: 10.0 µs → 18.2 µs; typically +6.0 µs (+5.5 … +6.5)");
        budget.total.difference_ns.estimate = 7900.0;
        assert!(lines(&budget)[0].contains("µs, +7.9"), "less than 5 %");
    }

    #[test]
    fn it_never_takes_more_than_eight_lines() {
        let mut budget = budget();
        budget.asleep.with_waiting_for_storage = false;
        budget.parts.push((BudgetPart::WaitingForStorage, of(0.0, 900.0)));
        budget.least_ns = 1.0;
        assert_eq!(lines(&budget).len() + 1, MOST_LINES, "all five parts");
        let latency = of(40_000.0, 80_000.0);
        budget.in_flight = Some(InFlight { baseline: 4.0, candidate: 4.4, latency });
        let all = lines(&budget);
        assert_eq!(all.len() + 1, MOST_LINES, "{all:?}");
        let last = all.last().unwrap().replace('\u{a0}', " ");
        assert!(
            last.starts_with("latency: 40.0 µs → 80.0 µs, +40.0 µs") && last.contains("4.0 → 4.4 in flight")
        );
    }
}
