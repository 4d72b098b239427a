//! The same three tables for results of any shape: a line a row, a column an arm.

use std::collections::BTreeSet;

use super::super::comparisons::{group, has_change};
use super::super::document::Document;
use super::super::layout::{ascii, left, one_line, right, shorten, told_apart, width};
use super::super::page::Page;
use super::super::words::{cell_number, direction, unit_words};
use super::{difference_heading, difference_pct};
use crate::analyse::{ArmSummary, Caveat, Comparison};
use crate::units::Scale;

/// Columns of an arm's value.
const VALUE: usize = 14;
/// Of one under a long name.
const MOST_VALUE: usize = 24;
/// Columns of the row's label.
const LABEL: usize = 26;

/// Averages, differences and deviations of each metric of these comparisons.
pub(super) fn write(document: &Document<'_>, comparisons: &[&Comparison], out: &mut String, page: &Page) {
    for comparisons in group(comparisons, |c| (&c.metric.name, &c.metric.unit)) {
        one_metric(document, &comparisons, out, page);
    }
}

fn one_metric(document: &Document<'_>, comparisons: &[&Comparison], out: &mut String, page: &Page) {
    let Some(first) = comparisons.first() else { return };
    let rows = group(comparisons, |c| &c.row);
    let labels: Vec<String> = rows.iter().map(|row| ascii(&document.row(&row[0].row))).collect();
    let summaries = comparisons.iter().flat_map(|c| [&c.baseline, &c.candidate]);
    let scale = Scale::for_column(&first.metric.unit, summaries.map(|s| s.mean));
    let name = &first.metric.name;
    let arms: Vec<(&str, String)> =
        document.analysis.arms.iter().map(|arm| (arm.as_str(), ascii(&document.arm(arm)))).collect();
    let table = Table { labels: &labels, rows: &rows };

    let unit = unit_words(&scale, &first.metric.unit);
    let so_far = document.so_far();
    page.heading(out, &format!("AVERAGES{so_far}, {name}{unit}, {}", direction(first.metric.better)));
    table.write(out, page, &arms, |row, arm| summary_of(row, arm).map(|s| cell_number(&scale, s.mean)));
    let hide = document.options.hide_below_pct;
    let Some(((_, baseline), candidates)) = arms.split_first() else { return };
    let target = match candidates {
        [(_, one)] => one.clone(),
        _ => "each".to_owned(),
    };
    page.heading(out, &difference_heading(so_far, baseline, &target, hide));
    table.write(out, page, candidates, |row, arm| {
        let comparison = row.iter().find(|c| c.candidate.arm == arm)?;
        // Failed trials are in the verdict, not in the means.
        if !has_change(comparison) || comparison.caveats.contains(&Caveat::FailuresAsWorst) {
            return None;
        }
        let percent =
            difference_pct(comparison.baseline.mean, comparison.candidate.mean, hide.unwrap_or(0.0));
        percent.is_finite().then(|| format!("{percent:.2}").replace("-0.00", "0.00"))
    });
    if comparisons.iter().any(|c| c.baseline.stddev.is_finite() || c.candidate.stddev.is_finite()) {
        page.heading(out, &format!("STANDARD DEVIATION{so_far} in %, {name}"));
        table.write(out, page, &arms, |row, arm| {
            let summary = summary_of(row, arm)?;
            let percent = summary.stddev / summary.mean.abs() * 100.0;
            percent.is_finite().then(|| format!("{percent:.2}"))
        });
    }
}

fn summary_of<'c>(row: &[&'c Comparison], arm: &str) -> Option<&'c ArmSummary> {
    row.iter().flat_map(|c| [&c.baseline, &c.candidate]).find(|summary| summary.arm == arm)
}

struct Table<'t> {
    labels: &'t [String],
    rows: &'t [Vec<&'t Comparison>],
}

impl Table<'_> {
    /// The table, its arms in as many blocks as the page's width needs.
    fn write<'c>(
        &'c self,
        out: &mut String,
        page: &Page,
        arms: &[(&str, String)],
        text: impl Fn(&'c [&'c Comparison], &str) -> Option<String>,
    ) {
        let label = self.labels.iter().map(|l| width(l)).fold(0, usize::max).min(LABEL);
        let names = short_names(arms);
        // As wide as the names are, where all arms have room for it.
        let widest = names.iter().map(|name| width(name)).max().unwrap_or(0);
        let room = (page.columns - label) / arms.len().max(1);
        let value = widest.min(room.saturating_sub(1)).clamp(VALUE, MOST_VALUE);
        let fit = ((page.columns - label) / (value + 1)).max(1);
        let heads = told_apart(&names.iter().map(String::as_str).collect::<Vec<_>>(), value);
        for (block, heads) in arms.chunks(fit).zip(heads.chunks(fit)) {
            let mut head = " ".repeat(label);
            for name in heads {
                head.push_str(&right(&name.replace('…', "~"), value + 1));
            }
            out.push_str(head.trim_end());
            out.push('\n');
            for (name, row) in self.labels.iter().zip(self.rows) {
                let mut line = left(&ascii_short(name, label), label);
                for (arm, _) in block {
                    let cell = text(row, arm).unwrap_or_else(|| "-".to_owned());
                    line.push_str(&right(&ascii(&cell), value + 1));
                }
                out.push_str(line.trim_end());
                out.push('\n');
            }
        }
    }
}

/// Names of arms for the heads of columns: where one is too wide all of them without their factor, and of files in directories as much
/// of the end as tells them apart.
fn short_names(arms: &[(&str, String)]) -> Vec<String> {
    let names: Vec<String> = arms.iter().map(|(_, name)| name.clone()).collect();
    if names.iter().all(|name| width(name) <= VALUE) {
        return names;
    }
    let levels: Vec<String> = arms.iter().map(|(arm, _)| ascii(&one_line(arm))).collect();
    let parts = levels.iter().map(|level| parts_of(level).len()).max().unwrap_or(1);
    let ends = |n: usize| levels.iter().map(|level| end_of(level, n)).collect::<Vec<_>>();
    let tells = |ends: &Vec<String>| ends.iter().collect::<BTreeSet<_>>().len() == levels.len();
    (1..parts).map(ends).find(tells).unwrap_or(levels.clone())
}

/// The last `n` parts of a path.
fn end_of(level: &str, n: usize) -> String {
    let parts = parts_of(level);
    parts[parts.len().saturating_sub(n)..].join("/")
}

/// The parts of a file's path; anything else is one.
fn parts_of(level: &str) -> Vec<&str> {
    let is_path = level.chars().all(|c| c.is_ascii_alphanumeric() || "/._+~-".contains(c));
    if is_path && !level.ends_with('/') { level.split('/').collect() } else { vec![level] }
}

/// Shortened with two dots where the text formats have an ellipsis.
fn ascii_short(text: &str, columns: usize) -> String {
    if width(text) <= columns { text.to_owned() } else { shorten(text, columns).replace('…', "~") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arms_have_the_shortest_names_that_tell_them_apart() {
        let of = |levels: &[&'static str]| {
            short_names(&levels.iter().map(|level| (*level, format!("patch={level}"))).collect::<Vec<_>>())
        };
        assert_eq!(of(&["none", "a"]), ["patch=none", "patch=a"]);
        assert_eq!(of(&["none", "../sent/my.patch"]), ["none", "my.patch"]);
        assert_eq!(of(&["/v1/fix/my.patch", "/v2/fix/my.patch"]), ["v1/fix/my.patch", "v2/fix/my.patch"]);
        assert_eq!(of(&["xfs-delay.patch"]), ["xfs-delay.patch"]);
        assert_eq!(of(&["a</b>", "a-long-one"]), ["a</b>", "a-long-one"], "it is no path");
    }
}
