//! All effects on one axis, drawn.
//!
//! Enters: the comparisons that decide. Leaves: one picture. It must not know the page it stands on.

use super::Material;
use crate::analyse::{Comparison, Role};
use crate::report::comparisons::of_role;
use crate::report::document::Document;
use crate::report::layout::one_line;
use crate::report::picture::{self, Form, Picture};
use crate::report::pictures::is_with_first;
use crate::report::section::{Block, Drawings, Heading, Section, Weight};

/// The section.
pub(super) fn section(material: &mut Material<'_>) -> Section {
    let heading = Heading::OnPage(material.heading("effects"));
    Section::new("effects", heading, vec![Block::Pictures(drawn)]).of_weight(Weight::Figures)
}

/// All effects on one axis.
fn drawn(document: &Document<'_>) -> Option<Drawings> {
    Drawings::of(on_one_axis(&with_metrics(rows(document))).into_iter().collect(), true, 0)
}

/// The same with its metric behind each label, where several decide.
fn with_metrics(mut rows: Vec<(&Comparison, String)>) -> Vec<(&Comparison, String)> {
    if rows.windows(2).any(|two| two[0].0.metric.name != two[1].0.metric.name) {
        for (c, label) in &mut rows {
            label.push_str(" · ");
            label.push_str(&c.metric.name);
        }
    }
    rows
}

/// A picture of these, also for a page as narrow as a phone.
pub(in crate::report) fn on_one_axis(rows: &[(&Comparison, String)]) -> Option<Picture> {
    let drawn = |form| picture::forest(rows, form);
    drawn(Form::Wide).map(|wide| Picture { narrow: drawn(Form::Narrow).map(|narrow| narrow.svg), ..wide })
}

/// The comparisons that decide, each with its label.
pub(in crate::report) fn rows<'d>(document: &'d Document<'_>) -> Vec<(&'d Comparison, String)> {
    let names = document.names();
    let several = document.analysis.arms.len() > 2;
    let all_pairs = of_role(document.analysis, Role::Primary).any(|c| !is_with_first(document, c));
    of_role(document.analysis, Role::Primary)
        .map(|c| {
            let row = names.short_row(&c.row);
            let arm = match (several, all_pairs) {
                (_, true) => one_line(&format!("{} against {}", c.candidate.arm, c.baseline.arm)),
                (true, false) => one_line(&c.candidate.arm),
                (false, false) => document.arm(&c.candidate.arm),
            };
            let label = match (row.is_empty(), several) {
                (true, _) => arm,
                (false, true) => format!("{row} · {arm}"),
                (false, false) => row,
            };
            (c, label)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::section_tests::made_up;

    #[test]
    fn where_several_metrics_decide_a_row_says_which() {
        let (_, analysis) = made_up();
        let mut two = [analysis.comparisons[0].clone(), analysis.comparisons[0].clone()];
        let labels = |two: &[Comparison]| -> Vec<String> {
            let rows = two.iter().map(|c| (c, "off".to_owned())).collect();
            with_metrics(rows).into_iter().map(|(_, label)| label).collect()
        };
        assert_eq!(labels(&two), ["off", "off"]);
        two[1].metric.name = "iops".to_owned();
        assert_eq!(labels(&two), ["off · bw", "off · iops"]);
    }
}
