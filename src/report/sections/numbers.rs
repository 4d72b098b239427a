//! The tables of the metrics that decide, and of those that the experiment wants shown beside them.
//!
//! Enters: comparisons. Leaves: tables, one a metric and pair of arms. What is in a table is [`table`]'s affair.

use super::{Material, factor_tables};
use crate::analyse::Comparison;
use crate::report::comparisons::{arms_of, beside, group};
use crate::report::format::Detail;
use crate::report::section::{Block, Heading, Section, Weight};
use crate::report::table;

/// Places in the kernel that have a table of their own on a screen: an observer may name a dozen, and Why tells which matter.
const PLACES: usize = 2;

/// The section.
pub(super) fn section(material: &mut Material<'_>) -> Section {
    let heading = Heading::OnPage(material.heading("numbers"));
    let Material { run, analysis, options, names, primary, footnotes, .. } = material;
    let mut blocks: Vec<Block> = group(primary, |c| (arms_of(c), &c.metric.name, &c.metric.unit))
        .iter()
        .filter_map(|rows| table::primary(rows, names, footnotes))
        .map(Block::Table)
        .collect();
    if !blocks.is_empty() {
        let how = "change: of the typical trial (Hodges–Lehmann), with its interval; mean: ratio of the mean values.";
        blocks.push(Block::Legend(how.to_owned()));
    }
    if options.detail == Detail::All {
        let groups = group(primary, |c| (arms_of(c), &c.metric.name));
        let tables = groups.iter().filter_map(|rows| table::alone(rows, names));
        blocks.extend(tables.map(Block::Table));
    } else if primary.iter().any(|c| c.alone.is_some()) {
        blocks.push(Block::Withheld("the interval of each row alone"));
    }
    blocks.extend(factor_tables::tables(analysis, options.detail).into_iter().map(Block::Table));
    let (beside, _) = beside(run, analysis);
    let groups = group(&beside, |c| (c.candidate.arm.as_str(), &c.metric.name, &c.metric.unit));
    let (told, left_out) = places_that_fit(groups, options.detail);
    blocks.extend(told.iter().filter_map(|rows| table::beside(rows, names)).map(Block::Table));
    if left_out {
        blocks.push(Block::Withheld("other places that were observed"));
    }
    Section::new("numbers", heading, blocks).of_weight(Weight::Figures)
}

/// The groups without the places that a screen has no room for, and whether any were left out. Groups come with the longest time first.
fn places_that_fit(groups: Vec<Vec<&Comparison>>, detail: Detail) -> (Vec<Vec<&Comparison>>, bool) {
    let all = groups.len();
    let mut places = 0;
    let fits = |rows: &Vec<&Comparison>| {
        let is_place = rows.iter().any(|c| c.metric.name.contains(".at."))
            || rows.iter().any(|c| c.metric.name.contains(".at_per_op."));
        places += usize::from(is_place);
        !is_place || places <= PLACES || detail > Detail::Screen
    };
    let told: Vec<_> = groups.into_iter().filter(fits).collect();
    let left_out = told.len() < all;
    (told, left_out)
}
