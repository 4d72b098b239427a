//! Arms that were measured one after the other: what else changed meanwhile is in the difference.
//!
//! Enters: what analyse found of the order. Leaves: a sentence behind the verdict, on every screen: it is the first doubt of such a comparison.

use super::Material;
use crate::analyse::Caveat;
use crate::report::footnotes::caveat_text;
use crate::report::section::{Block, Heading, Section};

/// The section.
pub(super) fn section(material: &mut Material<'_>) -> Section {
    let Material { analysis, names, .. } = material;
    let told =
        analysis.caveats.contains(&Caveat::Sequential).then(|| caveat_text(&Caveat::Sequential, None, names));
    let remarks = told.map(|text| Block::Remarks(vec![text]));
    Section::new("one-after-the-other", Heading::None, remarks.into_iter().collect())
}
