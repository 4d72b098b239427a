//! Which factor does what, and how it scales: sentences behind the rankings.
//!
//! Enters: effects and scaling of an analysis. Leaves: a list. The table of all effects stands beside those of the metrics that
//! decide.

use super::{Material, factor_words};
use crate::report::section::{Block, Heading, Section};

/// The section.
pub(super) fn section(material: &mut Material<'_>) -> Section {
    let Material { analysis, options, names, .. } = material;
    let lists = factor_words::lists(analysis, options.detail, names);
    Section::new("factors", Heading::None, lists.into_iter().map(Block::List).collect())
}
