//! All effects on one axis, drawn.
//!
//! Enters: the comparisons that decide. Leaves: one picture. It must not know the page it stands on.

use super::Material;
use crate::analyse::{Comparison, Role};
use crate::report::comparisons::of_role;
use crate::report::document::Document;
use crate::report::layout::one_line;
use crate::report::picture::{self, Form, Picture};
use crate::report::pictures::is_with_first;
use crate::report::section::{Block, Drawings, Heading, Section, Weight};

/// The section.
pub(super) fn section(material: &mut Material<'_>) -> Section {
    let heading = Heading::OnPage(material.heading("effects"));
    Section::new("effects", heading, vec![Block::Pictures(drawn)]).of_weight(Weight::Figures)
}

/// All effects on one axis.
fn drawn(document: &Document<'_>) -> Option<Drawings> {
    Drawings::of(on_one_axis(&rows(document)).into_iter().collect(), true, 0)
}

/// A picture of these, also for a page as narrow as a phone.
pub(in crate::report) fn on_one_axis(rows: &[(&Comparison, String)]) -> Option<Picture> {
    let drawn = |form| picture::forest(rows, form);
    drawn(Form::Wide).map(|wide| Picture { narrow: drawn(Form::Narrow).map(|narrow| narrow.svg), ..wide })
}

/// The comparisons that decide, each with its label.
pub(in crate::report) fn rows<'d>(document: &'d Document<'_>) -> Vec<(&'d Comparison, String)> {
    let names = document.names();
    let several = document.analysis.arms.len() > 2;
    let all_pairs = of_role(document.analysis, Role::Primary).any(|c| !is_with_first(document, c));
    of_role(document.analysis, Role::Primary)
        .map(|c| {
            let row = names.short_row(&c.row);
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
        .collect()
}
