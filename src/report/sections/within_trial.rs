//! Values within trials, drawn where engines recorded them.
//!
//! Enters: the series of trials. Leaves: a picture a row. It must not know the page they stand on.

use super::Material;
use crate::analyse::RowKey;
use crate::record::{Series, Trial};
use crate::report::document::Document;
use crate::report::picture::{self, Picture};
use crate::report::pictures::{MOST_ROWS, rows};
use crate::report::section::{Block, Drawings, Heading, Section, Weight};
use crate::report::words::compared;
use crate::units::Unit;

/// Series drawn an arm.
const MOST_SERIES: usize = 20;

/// The section.
pub(super) fn section(material: &mut Material<'_>) -> Section {
    let heading = Heading::OnPage(material.heading("within a trial"));
    Section::new("series", heading, vec![Block::folded_pictures("Within trials, drawn", drawn)])
        .of_weight(Weight::Figures)
}

/// Values within trials, where engines recorded them.
fn drawn(document: &Document<'_>) -> Option<Drawings> {
    let mut names: Vec<&str> = Vec::new();
    for series in document.run.trials.iter().flat_map(|trial| &trial.series) {
        if !names.contains(&series.name.as_str()) {
            names.push(&series.name);
        }
    }
    // A row that several metrics decide is one.
    let mut keys: Vec<&RowKey> = Vec::new();
    let rows = if names.is_empty() { Vec::new() } else { rows(document) };
    for row in rows.iter().filter_map(|row| Some(&row.first()?.row)) {
        if !keys.contains(&row) {
            keys.push(row);
        }
    }
    let all = keys.iter().flat_map(|row| names.iter().map(move |name| (*row, *name)));
    let left_out = (keys.len() * names.len()).saturating_sub(MOST_ROWS);
    let pictures = all.take(MOST_ROWS).filter_map(|(row, name)| row_series(document, row, name)).collect();
    Drawings::of(pictures, false, left_out)
}

/// The series of this name in the trials of a row.
fn row_series(document: &Document<'_>, row: &RowKey, name: &str) -> Option<Picture> {
    let run = document.run;
    let mut arms = Vec::new();
    for (index, label) in document.analysis.arms.iter().enumerate() {
        let of_arm: Vec<&Trial> = run
            .trials
            .iter()
            .filter(|trial| trial.counts() && !trial.series.is_empty())
            .filter(|trial| {
                level_of(document, trial.cell) == Some(label) && in_row(document, trial.cell, row)
            })
            .collect();
        let stride = of_arm.len().div_ceil(MOST_SERIES).max(1);
        let mut trials: Vec<&Series> = Vec::new();
        for trial in of_arm.into_iter().step_by(stride) {
            let fits =
                |series: &&Series| series.job.is_empty() || row.job.is_empty() || series.job == row.job;
            trials.extend(trial.series.iter().find(|series| series.name == name && fits(series)));
        }
        if !trials.is_empty() {
            arms.push(picture::ArmSeries { index, label: document.arm(label), trials });
        }
    }
    let unit = run.metrics.iter().find(|metric| metric.name == name).map_or(Unit::Count, |m| m.unit.clone());
    picture::series(&arms, name, &unit, &document.row(row))
}

/// The level of the compared factor in a cell.
fn level_of<'d>(document: &'d Document<'_>, cell: u32) -> Option<&'d String> {
    let (run, at) = (document.run, compared(document.run, &document.analysis.factor));
    let level = *run.cells.get(cell as usize)?.levels.get(at)?;
    run.design.factors.get(at)?.levels.get(level as usize)
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
