//! The interval of each row as if it were the only one that decides.
//!
//! Enters: comparisons. Leaves: tables, in every format with tables, where all is asked for; else that there are such.

use super::Material;
use crate::report::comparisons::group;
use crate::report::format::Detail;
use crate::report::section::{Block, Heading, Section};
use crate::report::table;

/// The section.
pub(super) fn section(material: &mut Material<'_>) -> Section {
    let Material { options, names, primary, .. } = material;
    let blocks = if options.detail == Detail::All {
        let groups = group(primary, |c| (c.baseline.arm.as_str(), &c.metric.name));
        groups.iter().filter_map(|rows| table::alone(rows, names)).map(Block::Table).collect()
    } else {
        let withheld = primary.iter().any(|c| c.alone.is_some());
        withheld.then_some(Block::Withheld("the interval of each row alone")).into_iter().collect()
    };
    Section::new("alone", Heading::None, blocks)
}
