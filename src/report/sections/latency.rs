//! Latency curves, drawn.
//!
//! Enters: the curves that analyse made of histograms. Leaves: a picture a row and direction. It must not know the page they stand on.

use super::Material;
use crate::analyse::QuantileCurve;
use crate::report::document::Document;
use crate::report::picture::{self, Picture};
use crate::report::pictures::{MOST_ROWS, index_of};
use crate::report::section::{Block, Drawings, Heading, Section, Weight};

/// The section.
pub(super) fn section(material: &mut Material<'_>) -> Section {
    let heading = Heading::OnPage(material.heading("latency"));
    Section::new("latency", heading, vec![Block::folded_pictures("Latency curves", drawn)])
        .of_weight(Weight::Figures)
}

/// Latency curves, all arms of a row together.
fn drawn(document: &Document<'_>) -> Option<Drawings> {
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
            picture::quantiles(&curves, &document.row(&group[0].row), |arm| document.arm(arm))
        })
        .collect();
    let left_out = groups.len().saturating_sub(MOST_ROWS);
    Drawings::of(pictures, false, left_out)
}
