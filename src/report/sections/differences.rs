//! What differs between arms although no factor declares it: it may be the cause of a difference.
//!
//! Enters: facts that analyse found to differ. Leaves: a line each, with the value of each arm.

use super::Material;
use crate::analyse::FactDifference;
use crate::report::section::{Block, GivesWay, Heading, Line, List, Section, Span, Weight};
use crate::report::words::Names;

/// Where a report is to fit one screen.
const WAY: GivesWay = GivesWay {
    turn: Some(5),
    called: "undeclared differences between the arms",
    most: [4, 2],
    items: ["undeclared difference", "undeclared differences"],
};

/// The section.
pub(super) fn section(material: &mut Material<'_>) -> Section {
    let Material { analysis, names, .. } = material;
    let lines = analysis.differences.iter().map(|difference| line(difference, names)).collect();
    let blocks = vec![Block::List(List { caption: None, lines })];
    Section::new("differences", Heading::shown("undeclared differences between the arms"), blocks)
        .of_weight(Weight::Warning)
        .gives_way(WAY)
}

/// `queue.scheduler: none for direct=1; mq-deadline for direct=0`.
fn line(difference: &FactDifference, names: &Names<'_>) -> Line {
    let mut spans = vec![Span::Code(difference.fact.clone())];
    for (at, (arm, value)) in difference.values.iter().enumerate() {
        spans.push(Span::Words(if at == 0 { ": " } else { "; " }.to_owned()));
        spans.push(match value.as_str() {
            "" => Span::Words("not set".to_owned()),
            value => Span::Code(value.to_owned()),
        });
        spans.push(Span::Words(format!(" for {}", names.arm(arm))));
    }
    Line(spans)
}
