//! Every trial of every row, drawn.
//!
//! Enters: the comparisons that decide. Leaves: a picture a row. It must not know the page they stand on.

use super::Material;
use crate::report::document::Document;
use crate::report::picture::{self, Arm, Picture};
use crate::report::pictures::{MOST_ROWS, index_of, rows};
use crate::report::section::{Block, Drawings, Heading, Section, Weight};

/// Dots on the whole page, each trial being one by arm and one over time.
const MOST_DOTS: usize = 2000;

/// The section.
pub(super) fn section(material: &mut Material<'_>) -> Section {
    let heading = Heading::OnPage(material.heading("every trial"));
    Section::new("trials", heading, vec![Block::folded_pictures("Every trial, drawn", drawn)])
        .of_weight(Weight::Figures)
}

/// Every trial of every row.
fn drawn(document: &Document<'_>) -> Option<Drawings> {
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
    Drawings::of(pictures, true, left_out)
}
