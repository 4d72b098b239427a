//! The tables of the metrics that decide.
//!
//! Enters: comparisons. Leaves: tables, one a metric and baseline. What is in a table is [`table`]'s affair; what stands beside
//! them is in `beside.rs`.

use super::{Material, factor_tables};
use crate::report::comparisons::group;
use crate::report::format::Detail;
use crate::report::section::{Block, Heading, Section, Weight};
use crate::report::table;

/// The section.
pub(super) fn section(material: &mut Material<'_>) -> Section {
    let heading = Heading::OnPage(material.heading("numbers"));
    let Material { analysis, options, names, primary, footnotes, .. } = material;
    let mut blocks: Vec<Block> =
        group(primary, |c| (c.baseline.arm.as_str(), &c.metric.name, &c.metric.unit))
            .iter()
            .filter_map(|rows| table::primary(rows, names, footnotes))
            .map(Block::Table)
            .collect();
    if !blocks.is_empty() {
        let how = "change: of the typical trial (Hodges–Lehmann), with its interval; mean: ratio of the mean values.";
        blocks.push(Block::Legend(how.to_owned()));
    }
    if options.detail == Detail::All {
        let groups = group(primary, |c| (c.baseline.arm.as_str(), &c.metric.name));
        let tables = groups.iter().filter_map(|rows| table::alone(rows, names));
        blocks.extend(tables.map(Block::Table));
    } else if primary.iter().any(|c| c.alone.is_some()) {
        blocks.push(Block::Withheld("the interval of each row alone"));
    }
    blocks.extend(factor_tables::tables(analysis, options.detail).into_iter().map(Block::Table));
    Section::new("numbers", heading, blocks).of_weight(Weight::Figures)
}
