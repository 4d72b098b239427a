//! The tables of the metrics that only accompany, and what they leave out.
//!
//! Enters: exploratory comparisons. Leaves: tables, one a row and candidate, and sentences. It must not judge.

use super::{Material, left_out};
use crate::analyse::Comparison;
use crate::report::comparisons::{beside, group};
use crate::report::format::Detail;
use crate::report::section::{Block, Heading, Section, Weight};
use crate::report::table;

/// Tables that are there before anything is unfolded.
const MOST_UNFOLDED: usize = 2;

/// The section.
pub(super) fn section(material: &mut Material<'_>) -> Section {
    let heading = Heading::OnPage(material.heading("other metrics"));
    let Material { run, analysis, options, names, footnotes, .. } = material;
    let (_, others) = beside(run, analysis);
    // Who names metrics wants their figures, whatever they show.
    let asked_for = options.all_metrics || options.named_metrics;
    let (shown, hidden): (Vec<&Comparison>, Vec<&Comparison>) =
        others.into_iter().partition(|c| asked_for || table::stands_out(c));
    let listed = options.detail > Detail::Screen || asked_for;
    let (shown, clear) = if listed { (shown, Vec::new()) } else { (Vec::new(), shown) };
    let tables: Vec<Block> = group(&shown, |c| (c.candidate.arm.as_str(), &c.row))
        .iter()
        .filter_map(|rows| table::exploratory(rows, names, footnotes))
        .map(Block::Table)
        .collect();
    let left_out = left_out::sentences(&clear, &hidden);
    if tables.is_empty() && left_out.is_empty() {
        return Section::new("other-metrics", heading, Vec::new()).of_weight(Weight::Figures);
    }
    let what = if analysis.so_far().is_none() {
        "Exploratory: false discoveries are held to 5 % over all of them together, and none decides."
    } else {
        "Exploratory: none decides."
    };
    let mut blocks = vec![Block::Legend(what.to_owned())];
    if !tables.is_empty() {
        let open = tables.len() <= MOST_UNFOLDED;
        blocks.push(Block::Folded { summary: "Metrics shown".to_owned(), open, blocks: tables });
    }
    blocks.push(Block::Remarks(left_out));
    Section::new("other-metrics", heading, blocks).of_weight(Weight::Figures)
}
