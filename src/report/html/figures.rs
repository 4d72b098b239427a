//! The parts of the page that are pictures: which ones there are, and the frame around each.

use super::super::document::{Document, group, of_role};
use super::super::html_text::escape;
use super::super::layout::one_line;
use super::super::picture::{self, Arm, Picture, arm_class};
use super::super::words::short_row_label;
use crate::analyse::{Comparison, QuantileCurve, Role, RowKey};
use crate::record::{Series, SoFar, Trial};
use crate::units::Unit;

/// Rows that get pictures of their own.
const MOST_ROWS: usize = 12;
/// Dots on the whole page, each trial being one by arm and one over time.
const MOST_DOTS: usize = 2000;
/// Series drawn an arm.
const MOST_SERIES: usize = 20;

fn figure(out: &mut String, document: &Document<'_>, picture: &Picture, caption: &str, wide: bool) {
    out.push_str("<figure>\n");
    if !picture.title.is_empty() {
        out.push_str(&format!("<p class=\"title\">{}</p>\n", escape(&picture.title)));
    }
    if !picture.arms.is_empty() {
        out.push_str("<div>");
        for index in &picture.arms {
            let label = document.analysis.arms.get(*index).map(|arm| document.arm(arm)).unwrap_or_default();
            let class = arm_class(*index);
            out.push_str(&format!("<span class=\"key {class}\"><span>{}</span></span>", escape(&label)));
        }
        out.push_str("</div>\n");
    }
    let class = if wide { " wide" } else { "" };
    out.push_str(&format!("<div class=\"picture{class}\">\n{}</div>\n", picture.svg));
    if !caption.is_empty() {
        out.push_str(&format!("<figcaption>{}</figcaption>\n", escape(caption)));
    }
    out.push_str("</figure>\n");
}

/// A picture's caption, with how far the run is while rounds are missing.
fn caption(document: &Document<'_>, words: &str) -> String {
    match document.analysis.so_far() {
        Some(SoFar { rounds, of }) => format!("So far, {rounds} of {of} rounds, no verdict. {words}"),
        None => words.to_owned(),
    }
}

fn section(
    out: &mut String,
    document: &Document<'_>,
    heading: &str,
    pictures: &[Picture],
    wide: bool,
    left_out: usize,
) {
    if pictures.is_empty() {
        return;
    }
    let so_far = document.so_far();
    out.push_str(&format!("<section>\n<h2>{heading}{so_far}</h2>\n"));
    // What is true of all of them is said once.
    let common = pictures.iter().all(|picture| picture.caption == pictures[0].caption);
    if common {
        let caption = caption(document, &pictures[0].caption);
        out.push_str(&format!("<p class=\"muted\">{}</p>\n", escape(&caption)));
    }
    if !wide {
        let one = if pictures.len() == 1 { " one" } else { "" };
        out.push_str(&format!("<div class=\"pair{one}\">\n"));
    }
    for picture in pictures {
        let caption = if common { String::new() } else { caption(document, &picture.caption) };
        figure(out, document, picture, &caption, wide);
    }
    if !wide {
        out.push_str("</div>\n");
    }
    if left_out > 0 {
        let rows = super::super::document::count(left_out as u64, "more row");
        out.push_str(&format!(
            "<p class=\"muted\">{rows} without a picture; the numbers above have all.</p>\n"
        ));
    }
    out.push_str("</section>\n");
}

/// All effects on one axis.
pub(super) fn forest(out: &mut String, document: &Document<'_>) {
    let several = document.analysis.arms.len() > 2;
    let all_pairs = of_role(document.analysis, Role::Primary).any(|c| !is_with_first(document, c));
    let rows: Vec<(&Comparison, String)> = of_role(document.analysis, Role::Primary)
        .map(|c| {
            let row = short_row_label(&c.row);
            let arm = match (several, all_pairs) {
                (_, true) => one_line(&format!("{} against {}", c.candidate.arm, c.baseline.arm)),
                (true, false) => one_line(&c.candidate.arm),
                (false, false) => document.arm(&c.candidate.arm),
            };
            let label = match (row.is_empty(), several) {
                (true, _) => arm,
                (false, true) => format!("{row} · {arm}"),
                (false, false) => row,
            };
            (c, label)
        })
        .collect();
    let picture = picture::forest(&rows, document.analysis.delta);
    section(out, document, "Effects", picture.as_slice(), true, 0);
}

/// Whether it is a comparison with the first arm; only of all pairs some are not.
fn is_with_first(document: &Document<'_>, comparison: &Comparison) -> bool {
    document.analysis.arms.first() == Some(&comparison.baseline.arm)
}

/// The primary comparisons with the first arm, those of one row and metric together.
fn rows<'a>(document: &Document<'a>) -> Vec<Vec<&'a Comparison>> {
    let primary: Vec<&Comparison> =
        of_role(document.analysis, Role::Primary).filter(|c| is_with_first(document, c)).collect();
    group(&primary, |c| (&c.row, &c.metric.name))
}

fn index_of(document: &Document<'_>, arm: &str) -> usize {
    document.analysis.arms.iter().position(|known| known == arm).unwrap_or(0)
}

/// Every trial of every row.
pub(super) fn trials(out: &mut String, document: &Document<'_>) {
    let rows = rows(document);
    let drawn = &rows[..rows.len().min(MOST_ROWS)];
    let arms_drawn: usize = drawn.iter().map(|row| row.len() + 1).sum();
    let most = (MOST_DOTS / (2 * arms_drawn.max(1))).max(20);
    let pictures: Vec<Picture> = drawn
        .iter()
        .filter_map(|row| {
            let first = row.first()?;
            let summaries = std::iter::once(&first.baseline).chain(row.iter().map(|c| &c.candidate));
            let arms: Vec<Arm<'_>> = summaries
                .filter(|summary| !summary.values.is_empty())
                .map(|summary| Arm {
                    index: index_of(document, &summary.arm),
                    label: document.arm(&summary.arm),
                    summary,
                })
                .collect();
            picture::trials(first, &arms, &document.row(&first.row), most)
        })
        .collect();
    section(out, document, "Every trial", &pictures, true, rows.len() - drawn.len());
}

/// Latency curves, all arms of a row together.
pub(super) fn quantiles(out: &mut String, document: &Document<'_>) {
    let mut groups: Vec<Vec<&QuantileCurve>> = Vec::new();
    for curve in &document.analysis.curves {
        let same = |other: &QuantileCurve| {
            other.row == curve.row && other.direction == curve.direction && other.kind == curve.kind
        };
        match groups.iter_mut().find(|group| group.first().is_some_and(|first| same(first))) {
            Some(group) => group.push(curve),
            None => groups.push(vec![curve]),
        }
    }
    let pictures: Vec<Picture> = groups
        .iter()
        .take(MOST_ROWS)
        .filter_map(|group| {
            let curves: Vec<(usize, &QuantileCurve)> =
                group.iter().map(|curve| (index_of(document, &curve.arm), *curve)).collect();
            picture::quantiles(&curves, &document.row(&group[0].row))
        })
        .collect();
    section(out, document, "Latency", &pictures, false, groups.len().saturating_sub(MOST_ROWS));
}

/// Values within trials, where engines recorded them.
pub(super) fn series(out: &mut String, document: &Document<'_>) {
    if document.run.trials.iter().all(|trial| trial.series.is_empty()) {
        return;
    }
    let rows = rows(document);
    let pictures: Vec<Picture> =
        rows.iter().take(MOST_ROWS).filter_map(|row| row_series(document, &row.first()?.row)).collect();
    section(out, document, "Within a trial", &pictures, false, 0);
}

fn row_series(document: &Document<'_>, row: &RowKey) -> Option<Picture> {
    let run = document.run;
    let mut name: Option<&str> = None;
    let mut arms = Vec::new();
    for (index, label) in document.analysis.arms.iter().enumerate() {
        let of_arm: Vec<&Trial> = run
            .trials
            .iter()
            .filter(|trial| trial.counts() && !trial.series.is_empty())
            .filter(|trial| run.arm_of(trial.cell) == index && in_row(document, trial.cell, row))
            .collect();
        let stride = of_arm.len().div_ceil(MOST_SERIES).max(1);
        let mut trials: Vec<&Series> = Vec::new();
        for trial in of_arm.into_iter().step_by(stride) {
            let fits =
                |series: &&Series| series.job.is_empty() || row.job.is_empty() || series.job == row.job;
            let wanted = |series: &&Series| name.is_none_or(|name| name == series.name) && fits(series);
            if let Some(series) = trial.series.iter().find(wanted) {
                name = Some(&series.name);
                trials.push(series);
            }
        }
        if !trials.is_empty() {
            arms.push(picture::ArmSeries { index, label: document.arm(label), trials });
        }
    }
    let name = name?;
    let unit = run.metrics.iter().find(|metric| metric.name == name).map_or(Unit::Count, |m| m.unit.clone());
    picture::series(&arms, name, &unit, &document.row(row))
}

/// Whether a cell has the levels of a row.
fn in_row(document: &Document<'_>, cell: u32, row: &RowKey) -> bool {
    let design = &document.run.design;
    let Some(cell) = document.run.cells.get(cell as usize) else { return false };
    row.levels.iter().all(|(name, level)| {
        let factors = design.factors.iter().zip(&cell.levels);
        factors
            .clone()
            .any(|(factor, at)| factor.name == *name && factor.levels.get(*at as usize) == Some(level))
    })
}
