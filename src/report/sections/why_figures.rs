//! Why two arms differ, as a picture and as a table.
//!
//! Enters: a [`Why`] and the budget it belongs to. Leaves: bars with their names, a table of locks. Nothing is ranked or added up here but
//! the end of the last bar, which is where the bars lead.

use super::budget::{scale, signed, with_unit};
use super::cause_words::{figure, kind_words, what};
use super::why_words::{one, pair, unsure_part};
use crate::analyse::{Budget, Cause, Grade, What, Why};
use crate::report::layout::one_line;
use crate::report::picture::Bar;
use crate::report::table::{Head, Of, Table, TableRow};
use crate::report::verdict_words::Tone;
use crate::report::words::Names;

/// The bars between both arms: each cause that accounts for time with its difference in ns, then what is too small or unclear to name, then
/// what is unexplained.
pub(super) fn bars(why: &Why, budget: &Budget, names: &Names<'_>) -> Vec<Bar> {
    let scale = scale(&budget.total);
    let bar = |label: String, ns: f64, tone: Tone| Bar { label, ns, value: signed(ns, &scale), tone };
    let of = |cause: &Cause| {
        let ns = cause.time?.difference_ns.estimate;
        let tone = if ns > 0.0 { Tone::Worse } else { Tone::Better };
        Some(bar(what(cause, names), ns, tone))
    };
    let accounts = why.causes.iter().filter(|cause| cause.grade == Grade::AccountsFor);
    let mut bars: Vec<Bar> = accounts.filter_map(of).collect();
    let mut unnamed = why.unnamed_ns;
    for unsure in &why.unsure {
        let ns = unsure.difference_ns.estimate;
        unnamed -= ns;
        bars.push(bar(unsure_part(unsure, budget), ns, Tone::Same));
    }
    if unnamed.abs() >= budget.least_ns / 10.0 {
        bars.push(bar("too small or unclear to name".to_owned(), unnamed, Tone::Same));
        unnamed = 0.0;
    }
    // The last bar is the baseline's time and the whole difference, however small what is left out.
    let left = why.unexplained_ns.map(|left| bar("unexplained".to_owned(), left.estimate, Tone::Unclear));
    bars.extend(left.map(|bar| Bar { ns: bar.ns + unnamed, ..bar }));
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
pub(super) fn locks(why: &Why, budget: Option<&Budget>, names: &Names<'_>) -> Option<Table> {
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
        Some(TableRow::new(vec![one_line(&kind_words(kind)), one_line(caller)], cells))
    };
    let one = one(budget);
    let columns = [format!("time {one}"), format!("waits {one}"), "longest".to_owned()];
    Some(Table {
        caption: format!("waits for locks, {}", pair(why, names)),
        labels: vec![Head::new("lock", Of::Names), Head::new("wanted by", Of::Names)],
        columns: Head::values(columns.iter().map(String::as_str)).collect(),
        rows: found.iter().filter_map(row).collect(),
    })
}
