//! What the tables leave out, in words that the left-out rows bear out.
//!
//! Enters: the exploratory comparisons that no table shows. Leaves: sentences with how many there are of each kind, and the option
//! that lists them. It must not know which format prints them.

use crate::analyse::{Comparison, Verdict};
use crate::report::words::{NBSP, count, percent, shown_change};

/// Metrics named of those that differ clearly.
const MOST_NAMED: usize = 4;

/// The sentences. `clear` differ clearly and have no room, `others` are not worth a line, and `small` are times that do not matter
/// beside that of an operation.
pub(super) fn sentences(clear: &[&Comparison], others: &[&Comparison], small: usize) -> Vec<String> {
    clear_ones(clear).into_iter().chain(other_ones(others, small)).collect()
}

/// The sentence where all metrics are asked for and these have no line.
pub(super) fn alike(others: &[&Comparison]) -> Option<String> {
    let are = if others.len() == 1 { "is" } else { "are" };
    let n = count(others.len() as u64, "metric");
    (!others.is_empty()).then(|| {
        format!("{n} {are} printed alike for both arms; `assay report RUN --metrics NAME` lists one")
    })
}

fn clear_ones(clear: &[&Comparison]) -> Option<String> {
    let first = clear.first()?;
    let n = clear.len();
    let differ = if n == 1 { "differs" } else { "differ" };
    if clear.iter().any(|c| (&c.row, &c.candidate.arm) != (&first.row, &first.candidate.arm)) {
        let others = count(n as u64, "exploratory comparison");
        return Some(format!("{others} {differ} clearly; --verbose lists them"));
    }
    let change = |c: &&Comparison| format!("{} {}{NBSP}%", c.metric.name, percent(shown_change(c), 1));
    let mut named: Vec<String> = clear.iter().take(MOST_NAMED).map(change).collect();
    named.extend((n > MOST_NAMED).then(|| format!("{} more", n - MOST_NAMED)));
    let others = count(n as u64, "exploratory metric");
    Some(format!("{others} {differ} clearly: {}; --verbose lists them", named.join(", ")))
}

fn other_ones(others: &[&Comparison], small: usize) -> Option<String> {
    // What was not measured shows nothing, clear or not.
    let measured = others.iter().filter(|c| !matches!(c.verdict, Verdict::NotMeasured(_)));
    let (own, unlisted): (Vec<&Comparison>, Vec<&Comparison>) = measured.partition(|c| c.unlisted.is_none());
    let measured: Vec<&Verdict> = own.iter().map(|c| &c.verdict).collect();
    let number = |of: fn(&Verdict) -> bool| measured.iter().filter(|verdict| of(verdict)).count();
    let so_far = number(|v| matches!(v, Verdict::SoFar { .. }));
    let below = number(|v| matches!(v, Verdict::NoDifference { real_but_below_delta: true }));
    let unjudged = number(|v| matches!(v, Verdict::NotComparable | Verdict::TooFew { .. }));
    let unclear = measured.len() - so_far - below - unjudged;
    let kinds = [
        (unclear, ["shows no clear difference", "show no clear difference"]),
        (below, ["shows a real difference below δ", "show a real difference below δ"]),
        (so_far, ["has no verdict so far", "have no verdict so far"]),
        (unjudged, ["cannot be judged", "cannot be judged"]),
        (small, ["is too small to matter", "are too small to matter"]),
        // Beside others it is not worth a line.
        (
            unlisted.len() * usize::from(own.is_empty()),
            [
                "only repeats what is listed, or counts too little",
                "only repeat what is listed, or count too little",
            ],
        ),
    ];
    let mut parts: Vec<String> = Vec::new();
    for (n, [one, many]) in kinds.into_iter().filter(|(n, _)| *n > 0) {
        let what = if n == 1 { one } else { many };
        parts.push(match parts.is_empty() {
            true => format!("{} {what}", count(n as u64, "other comparison")),
            false => format!("{n}{NBSP}{what}"),
        });
    }
    (!parts.is_empty()).then(|| format!("{}; --all-metrics lists them", parts.join(", ")))
}
