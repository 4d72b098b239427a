//! CSV, one line a comparison; raw base units, ratios minus 1, full precision.
//!
//! Enters: a document. Leaves: the numbers of its comparisons, then the columns of all sections in their order. It must not know which
//! section has which column.

use super::document::Document;
use super::section::Block;
use crate::analyse::{ArmSummary, Comparison, Role, Verdict};
use crate::sys::csv_cell::written;

/// Heads behind the columns of the factors.
const HEADS: [&str; 35] = [
    "job", "metric", "unit", "better", "role", "baseline", "candidate", "baseline_n", "candidate_n",
    "baseline_mean", "candidate_mean", "baseline_median", "candidate_median", "baseline_stddev",
    "candidate_stddev", "baseline_stall_rate", "candidate_stall_rate", "method", "n", "change", "change_low",
    "change_high", "mean_change", "mean_change_low", "mean_change_high", "p", "p_adjusted", "verdict",
    "rounds_to_claim", "rounds_for_no_difference", "delta", "run", "corrected", "baseline_failed",
    "candidate_failed",
];
/// Heads behind all others.
const LAST: [&str; 5] = ["difference", "difference_low", "difference_high", "name", "factor"];

/// Writes all comparisons, whatever was asked to be hidden.
pub(super) fn render(document: &Document<'_>, raw: bool) -> String {
    of_several(&[document], raw)
}

/// The comparisons of several runs in one table: a factor or a column that a run does not have is empty there.
pub(super) fn of_several(documents: &[&Document<'_>], raw: bool) -> String {
    let cell = |cell: String| if raw { cell } else { written(&cell).into_owned() };
    let mut writer = ::csv::WriterBuilder::new().flexible(true).from_writer(Vec::new());
    let first = documents.iter().filter_map(|document| document.analysis.comparisons.first());
    let factors = once_each(first.flat_map(|c| &c.row.levels).map(|(factor, _)| factor.as_str()));
    let columns: Vec<Vec<(&str, Cell)>> =
        documents.iter().map(|document| document.blocks().into_iter().filter_map(column).collect()).collect();
    let of_sections = once_each(columns.iter().flatten().map(|(head, _)| *head));
    let own = HEADS.iter().chain(&of_sections).chain(&LAST).map(|&head| head.to_owned());
    let heads = factors.iter().map(|factor| format!("row.{factor}")).chain(own);
    // Writing records into memory cannot fail.
    let _ = writer.write_record(heads.map(cell));
    for (document, columns) in documents.iter().zip(&columns) {
        for comparison in &document.analysis.comparisons {
            let level = |factor: &&str| {
                let own = comparison.row.levels.iter().find(|(name, _)| name == factor);
                own.map_or(String::new(), |(_, level)| level.clone())
            };
            let text = |head: &&str| {
                let own = columns.iter().find(|(own, _)| own == head);
                own.map_or(String::new(), |(_, text)| text(document, comparison))
            };
            let record = factors.iter().map(level).chain(record(document, comparison));
            let record = record.chain(of_sections.iter().map(text)).chain(difference(comparison));
            let record = record.chain([document.run.name.clone(), document.analysis.factor.clone()]);
            let _ = writer.write_record(record.map(cell));
        }
    }
    String::from_utf8(writer.into_inner().unwrap_or_default()).unwrap_or_default()
}

/// Each in the order in which it comes first.
fn once_each<'t>(all: impl Iterator<Item = &'t str>) -> Vec<&'t str> {
    let mut seen = Vec::new();
    all.for_each(|one| {
        if !seen.contains(&one) {
            seen.push(one);
        }
    });
    seen
}

/// What a section says of a comparison.
type Cell = fn(&Document<'_>, &Comparison) -> String;

fn column(block: &Block) -> Option<(&'static str, Cell)> {
    match block {
        Block::Column { head, cell } => Some((*head, *cell)),
        _ => None,
    }
}

fn record(document: &Document<'_>, c: &Comparison) -> Vec<String> {
    let role = if c.role == Role::Primary { "primary" } else { "exploratory" };
    let better = c.metric.better.word();
    let (base, cand) = (&c.baseline, &c.candidate);
    let mut cells: Vec<String> = Vec::new();
    cells.extend(
        [&c.row.job, &c.metric.name, c.metric.unit.symbol(), better, role, &base.arm, &cand.arm]
            .map(str::to_owned),
    );
    cells.extend([base.n.to_string(), cand.n.to_string()]);
    let pairs: [fn(&ArmSummary) -> f64; 4] = [|s| s.mean, |s| s.median, |s| s.stddev, |s| s.stall_rate];
    cells.extend(pairs.iter().flat_map(|of| [number(of(base)), number(of(cand))]));
    cells.extend([name(&c.method), c.n.to_string()]);
    cells.extend(match c.effect {
        Some(i) => [number(i.estimate), number(i.low), number(i.high)],
        // No interval holds together with the others', and this is the change that the text has.
        None => [c.typical.map_or(String::new(), number), String::new(), String::new()],
    });
    cells.extend([c.mean_change.estimate, c.mean_change.low, c.mean_change.high].map(number));
    cells.extend([c.p, c.p_adjusted].map(|p| p.map_or(String::new(), number)));
    let (word, claim, none) = verdict(&c.verdict);
    let rounds = |n: Option<u32>| n.map_or(String::new(), |n| n.to_string());
    cells.extend([word.to_owned(), rounds(claim), rounds(none)]);
    cells.push(number(c.delta));
    cells.push(document.run.id.map_or(String::new(), |id| id.to_string()));
    cells.push(c.corrected.map_or(String::new(), number));
    let failed = c.failures.map(|counts| [counts.baseline_failed, counts.candidate_failed]);
    cells.extend(failed.map_or([String::new(), String::new()], |counts| counts.map(|n| n.to_string())));
    cells
}

/// The difference in the metric's unit, where values of 0 or below have no ratio.
fn difference(c: &Comparison) -> [String; 3] {
    c.difference.map_or_else(Default::default, |i| [i.estimate, i.low, i.high].map(number))
}

/// The verdict as one word without blanks, with the rounds of an undecided one.
fn verdict(verdict: &Verdict) -> (&'static str, Option<u32>, Option<u32>) {
    match verdict {
        Verdict::Faster { beyond_delta: true } => ("faster_beyond_delta", None, None),
        Verdict::Faster { beyond_delta: false } => ("faster_maybe_below_delta", None, None),
        Verdict::Slower { beyond_delta: true } => ("slower_beyond_delta", None, None),
        Verdict::Slower { beyond_delta: false } => ("slower_maybe_below_delta", None, None),
        Verdict::NoDifference { real_but_below_delta: false } => ("no_difference", None, None),
        Verdict::NoDifference { real_but_below_delta: true } => ("real_but_below_delta", None, None),
        Verdict::Undecided { rounds_to_claim, rounds_for_no_difference } => {
            ("undecided", *rounds_to_claim, *rounds_for_no_difference)
        }
        Verdict::SoFar { .. } => ("so_far", None, None),
        Verdict::NotComparable => ("not_comparable", None, None),
        Verdict::TooFew { .. } => ("too_few", None, None),
        Verdict::NotMeasured(_) => ("not_measured", None, None),
    }
}

/// Shortest digits that read back to the same number; nothing for what is not a number.
fn number(value: f64) -> String {
    if value.is_finite() { value.to_string() } else { String::new() }
}

/// The name serde writes for a method.
fn name(method: &crate::analyse::Method) -> String {
    serde_json::to_value(method).ok().and_then(|v| v.as_str().map(str::to_owned)).unwrap_or_default()
}
