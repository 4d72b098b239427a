//! Which pictures a report has, in the order in which they are read.
//!
//! Enters: a document. Leaves: drawings, those of one kind together. It must not know the page or the files they go into.

use super::document::{Document, group, of_role};
use super::layout::one_line;
use super::picture::{self, Arm, Form, Picture, ScalingArm};
use super::scaling_words::curve_label;
use super::words::{Names, short_row_label};
use crate::analyse::{Comparison, QuantileCurve, Role, RowKey, Scaling};
use crate::record::{Series, Trial};
use crate::units::Unit;

/// Rows that get pictures of their own.
const MOST_ROWS: usize = 12;
/// Dots on the whole page, each trial being one by arm and one over time.
const MOST_DOTS: usize = 2000;
/// Series drawn an arm.
const MOST_SERIES: usize = 20;

/// Pictures of one kind.
pub(super) struct Drawings {
    /// What they show.
    pub(super) heading: &'static str,
    /// The same as part of a file's name.
    pub(super) name: &'static str,
    /// At least one.
    pub(super) pictures: Vec<Picture>,
    /// Whether each takes the width of a page.
    pub(super) wide: bool,
    /// Rows for which there was no room.
    pub(super) left_out: usize,
}

/// All there are.
pub(super) fn all(document: &Document<'_>) -> Vec<Drawings> {
    let mut all =
        vec![effects(document), scaling(document), trials(document), quantiles(document), series(document)];
    all.retain(|drawings| !drawings.pictures.is_empty());
    all
}

/// A picture as a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PictureFile {
    /// Its name without an ending: `trials-2-bs-4k-write-bw-mib-s`.
    pub name: String,
    /// An SVG document.
    pub svg: String,
}

/// Every picture of a report as a file of its own.
#[must_use]
pub fn picture_files(document: &Document<'_>) -> Vec<PictureFile> {
    let arms: Vec<String> = document.analysis.arms.iter().map(|arm| document.arm(arm)).collect();
    let files = all(document).into_iter().flat_map(|drawings| {
        let Drawings { heading, name, pictures, .. } = drawings;
        let several = pictures.len() > 1;
        let numbered = move |at: usize| if several { format!("{name}-{}", at + 1) } else { name.to_owned() };
        let file = |(at, picture): (usize, Picture)| PictureFile {
            name: [numbered(at), of_letters(&picture.title)].join("-").trim_end_matches('-').to_owned(),
            svg: picture::document(&picture, &format!("{}: {heading}", document.title), &arms),
        };
        pictures.into_iter().enumerate().map(file).collect::<Vec<_>>()
    });
    files.collect()
}

/// Letters, digits and hyphens of a title, in lower case.
fn of_letters(title: &str) -> String {
    const MOST: usize = 60;
    let plain: String =
        title.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' }).collect();
    let parts: Vec<&str> = plain.split('-').filter(|part| !part.is_empty()).collect();
    parts.join("-").chars().take(MOST).collect()
}

/// All effects on one axis.
fn effects(document: &Document<'_>) -> Drawings {
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
    let drawn = |form| picture::forest(&rows, document.analysis.delta, form);
    let picture =
        drawn(Form::Wide).map(|wide| Picture { narrow: drawn(Form::Narrow).map(|p| p.svg), ..wide });
    let pictures = picture.into_iter().collect();
    Drawings { heading: "Effects", name: "effects", pictures, wide: true, left_out: 0 }
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
fn trials(document: &Document<'_>) -> Drawings {
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
    let left_out = rows.len() - drawn.len();
    Drawings { heading: "Every trial", name: "trials", pictures, wide: true, left_out }
}

/// Throughput by number of workers, all curves of a group together.
fn scaling(document: &Document<'_>) -> Drawings {
    let all = &document.analysis.scaling;
    let names = Names::new(document.run, &document.analysis.factor);
    let picture = |scaling: &Scaling| {
        let curves = scaling.curves.iter().enumerate();
        let alike = curves.filter(|(_, curve)| curve.metric.unit == scaling.curves[0].metric.unit);
        let arms: Vec<ScalingArm<'_>> = alike
            .map(|(index, curve)| ScalingArm { index, label: curve_label(curve, &names), curve })
            .collect();
        let row = RowKey { levels: scaling.row.clone(), job: scaling.job.clone() };
        picture::scaling(&arms, &scaling.factor, &document.row(&row))
    };
    let pictures: Vec<Picture> = all.iter().take(MOST_ROWS).filter_map(picture).collect();
    let left_out = all.len().saturating_sub(MOST_ROWS);
    Drawings { heading: "Scaling", name: "scaling", pictures, wide: false, left_out }
}

/// Latency curves, all arms of a row together.
fn quantiles(document: &Document<'_>) -> Drawings {
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
    let left_out = groups.len().saturating_sub(MOST_ROWS);
    Drawings { heading: "Latency", name: "latency", pictures, wide: false, left_out }
}

/// Values within trials, where engines recorded them.
fn series(document: &Document<'_>) -> Drawings {
    let has_any = document.run.trials.iter().any(|trial| !trial.series.is_empty());
    let rows = if has_any { rows(document) } else { Vec::new() };
    let pictures: Vec<Picture> =
        rows.iter().take(MOST_ROWS).filter_map(|row| row_series(document, &row.first()?.row)).collect();
    Drawings { heading: "Within a trial", name: "series", pictures, wide: false, left_out: 0 }
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
