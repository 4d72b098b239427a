//! What accompanies the verdict on two arms: a line a metric and row, with means, deviations and the difference.

use super::super::comparisons::{group, has_change};
use super::super::document::Document;
use super::super::layout::{ascii, left, right, width};
use super::super::page::Page;
use super::super::words::{cell_number, unit_words};
use super::difference_pct;
use crate::analyse::{ArmSummary, Caveat, Comparison};
use crate::units::Scale;

/// Whether there are two arms.
pub(super) fn is_one(document: &Document<'_>) -> bool {
    document.analysis.arms.len() == 2
}

/// The table; nothing where nothing accompanies.
pub(super) fn write(document: &Document<'_>, comparisons: &[&Comparison], out: &mut String, page: &Page) {
    let Some(first) = comparisons.first() else { return };
    let arms = [&first.baseline.arm, &first.candidate.arm].map(|arm| ascii(&document.arm(arm)));
    let mut lines: Vec<[String; 4]> =
        vec![[String::new(), "baseline".to_owned(), "candidate".to_owned(), "diff %".to_owned()]];
    for metric in group(comparisons, |c| (&c.metric.name, &c.metric.unit)) {
        let summaries = metric.iter().flat_map(|c| [&c.baseline, &c.candidate]);
        let unit = &metric[0].metric.unit;
        let scale = Scale::for_column(unit, summaries.map(|summary| summary.mean));
        let rows = metric.iter().map(|c| ascii(&document.row(&c.row)));
        for (row, c) in rows.zip(&metric) {
            let name = format!("{}{}", c.metric.name, unit_words(&scale, unit).replace(" in ", " "));
            let row = if row.is_empty() || row == "all" { String::new() } else { format!(", {row}") };
            let of = |summary: &ArmSummary| mean_and_deviation(&scale, summary);
            lines.push([
                ascii(&format!("{name}{row}")),
                of(&c.baseline),
                of(&c.candidate),
                difference(document, c),
            ]);
        }
    }
    let so_far = document.so_far();
    page.heading(out, &format!("ALSO{so_far}, {} -> {}: MEANS +- STANDARD DEVIATION in %", arms[0], arms[1]));
    let widths = [1, 2, 3].map(|at| lines.iter().map(|line| width(&line[at])).fold(0, usize::max));
    let room = page.columns.saturating_sub(widths.iter().map(|columns| columns + 1).sum());
    let label = lines.iter().map(|line| width(&line[0])).fold(0, usize::max).min(room);
    for [name, cells @ ..] in &lines {
        // A name that is too long has a line of its own.
        let fits = width(name) <= label;
        if !fits {
            out.push_str(name);
            out.push('\n');
        }
        let mut line = left(if fits { name } else { "" }, label);
        for (cell, columns) in cells.iter().zip(widths) {
            line.push(' ');
            line.push_str(&right(cell, columns));
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
}

fn mean_and_deviation(scale: &Scale, summary: &ArmSummary) -> String {
    let mean = ascii(&cell_number(scale, summary.mean));
    let percent = summary.stddev / summary.mean.abs() * 100.0;
    if percent.is_finite() { format!("{mean} +-{percent:.0}%") } else { mean }
}

fn difference(document: &Document<'_>, c: &Comparison) -> String {
    let hide = document.options.hide_below_pct.unwrap_or(0.0);
    let percent = difference_pct(c.baseline.mean, c.candidate.mean, hide);
    // Failed trials are in the verdict, not in the means.
    let is_told = has_change(c) && !c.caveats.contains(&Caveat::FailuresAsWorst) && percent.is_finite();
    if is_told { format!("{percent:.2}").replace("-0.00", "0.00") } else { "-".to_owned() }
}
