//! The tables of the metrics that decide.
//!
//! Enters: comparisons. Leaves: tables, one a metric and baseline, and how they are read. What is in a table is [`table`]'s affair; what
//! stands beside them is in `beside.rs`, and the intervals of single rows in `alone.rs`.

use super::{Material, factor_tables};
use crate::analyse::{Analysis, Caveat, Comparison};
use crate::report::comparisons::group;
use crate::report::section::{Block, Heading, Section, Weight};
use crate::report::table;
use crate::report::words::{NBSP, plain_percent};

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
        if let Some(key) = key(analysis, primary) {
            blocks.insert(1, Block::Key(key));
        }
    }
    blocks.extend(factor_tables::tables(analysis, options.detail).into_iter().map(Block::Table));
    Section::new("numbers", heading, blocks).of_weight(Weight::Figures)
}

/// What an interval is, and what δ; nothing where no row has an interval.
fn key(analysis: &Analysis, primary: &[&Comparison]) -> Option<String> {
    let family = analysis.caveats.iter().find_map(|caveat| match caveat {
        Caveat::Family { m } => Some(*m as usize),
        _ => None,
    });
    let together = match family.unwrap_or(primary.len()) {
        1 => String::new(),
        2 => " for both rows together".to_owned(),
        m => format!(" for all {m}{NBSP}rows together"),
    };
    let level = plain_percent(1.0 - analysis.alpha);
    let has_interval = primary.iter().any(|c| c.effect.or(c.difference).is_some());
    has_interval.then(|| format!("intervals: {level}{together}; δ: the smallest difference that matters"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::section_tests::made_up;

    #[test]
    fn the_level_of_the_intervals_is_told() {
        let (_, mut analysis) = made_up();
        let told = |analysis: &Analysis| {
            let primary: Vec<&Comparison> = analysis.comparisons.iter().collect();
            key(analysis, &primary).map(|key| key.replace(NBSP, " "))
        };
        assert_eq!(
            told(&analysis).as_deref(),
            Some("intervals: 95 %; δ: the smallest difference that matters")
        );
        analysis.caveats.push(Caveat::Family { m: 12 });
        analysis.alpha = 0.01;
        assert_eq!(
            told(&analysis).as_deref(),
            Some("intervals: 99 % for all 12 rows together; δ: the smallest difference that matters")
        );
        analysis.comparisons[0].effect = None;
        assert_eq!(told(&analysis), None);
    }
}
