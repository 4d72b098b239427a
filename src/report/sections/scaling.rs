//! Throughput by what runs at once (workers, iodepth), drawn.
//!
//! Enters: the curves that analyse found. Leaves: a picture a group, all its curves together. It must not know the page they stand on.

use super::Material;
use super::scaling_words::curve_label;
use crate::analyse::{RowKey, Scaling};
use crate::report::document::Document;
use crate::report::picture::{self, Picture, ScalingArm};
use crate::report::pictures::MOST_ROWS;
use crate::report::section::{Block, Drawings, Heading, Section, Weight};

/// The section.
pub(super) fn section(material: &mut Material<'_>) -> Section {
    let heading = Heading::OnPage(material.heading("scaling"));
    Section::new("scaling", heading, vec![Block::folded_pictures("How it scales, drawn", drawn)])
        .of_weight(Weight::Figures)
}

fn drawn(document: &Document<'_>) -> Option<Drawings> {
    let all = &document.analysis.scaling;
    let names = document.names();
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
    Drawings::of(pictures, false, all.len().saturating_sub(MOST_ROWS))
}
