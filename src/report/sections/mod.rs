//! What a report says, a file a section, in reading order.
//!
//! Enters: a run and its analysis. Leaves: [`Section`]s. None of them knows a format. A new section is a file here with a function
//! `section`, and its name in the two lists below.

mod budget;
mod cause_words;
mod differences;
mod effects;
mod every_trial;
mod factor_tables;
mod factor_words;
mod factors;
mod failures;
mod host;
mod host_facts;
mod latency;
mod left_out;
mod limits;
mod noise_words;
mod notes;
mod numbers;
mod other_metrics;
mod ranking;
mod repeat;
mod scaling;
mod scaling_words;
mod trial_notes;
mod verdict;
mod watching;
mod why;
mod why_figures;
mod why_words;
mod within_trial;

use super::comparisons::of_role;
use super::document;
use super::footnotes::Footnotes;
use super::format::Options;
use super::section::Section;
use super::words::Names;
use crate::analyse::{self, Analysis, Caveat, Comparison, Flame, Role, Why};
use crate::record::Run;

/// All sections in reading order. Footnotes are counted in this order, too.
const SECTIONS: &[fn(&mut Material<'_>) -> Section] = &[
    verdict::section,
    why::section,
    ranking::section,
    factors::section,
    numbers::section,
    effects::section,
    scaling::section,
    every_trial::section,
    latency::section,
    within_trial::section,
    other_metrics::section,
    limits::section,
    watching::section,
    budget::section,
    notes::section,
    differences::section,
    failures::section,
    host::section,
    repeat::section,
];

/// Of these the sections that say why, for a reader who has the verdict already.
const EXPLAINING: &[fn(&mut Material<'_>) -> Section] = &[why::section, watching::section];

/// What sections are made from.
pub(super) struct Material<'a> {
    /// The run.
    pub(super) run: &'a Run,
    /// What was found.
    pub(super) analysis: &'a Analysis,
    /// The run that watched its cells, if one did.
    pub(super) watched: Option<&'a Run>,
    /// What the reader asked for.
    pub(super) options: &'a Options,
    /// Names of arms.
    pub(super) names: Names<'a>,
    /// Why pairs differ.
    pub(super) why: Vec<Why>,
    /// Stacks of functions of the pairs.
    pub(super) flames: Vec<Flame>,
    /// The comparisons that decide.
    pub(super) primary: Vec<&'a Comparison>,
    /// Footnotes of all sections.
    pub(super) footnotes: Footnotes<'a>,
}

impl<'a> Material<'a> {
    /// What a report of `run` is made from.
    pub(super) fn new(
        run: &'a Run,
        analysis: &'a Analysis,
        watched: Option<&'a Run>,
        options: &'a Options,
    ) -> Material<'a> {
        let primary: Vec<&Comparison> = of_role(analysis, Role::Primary).collect();
        let footnotes = Footnotes::besides(common_caveats(&primary), options.detail);
        let names = Names::new(run, &analysis.factor);
        let why = analyse::why(run, analysis, watched);
        let flames = analyse::flames(run, analysis, watched);
        Material { run, analysis, options, names, watched, why, flames, primary, footnotes }
    }

    /// A heading with how far the run is.
    fn heading(&self, text: &str) -> String {
        format!("{text}{}", document::so_far(self.analysis))
    }
}

/// The sections of a report.
pub(super) fn all(material: &mut Material<'_>) -> Vec<Section> {
    SECTIONS.iter().map(|build| build(material)).collect()
}

/// Those that say why.
pub(super) fn explaining(material: &mut Material<'_>) -> Vec<Section> {
    EXPLAINING.iter().map(|build| build(material)).collect()
}

/// Caveats that every row bears: they are told once, as notes to the whole.
fn common_caveats<'c>(primary: &[&'c Comparison]) -> Vec<&'c Caveat> {
    match primary {
        [first, others @ ..] if !others.is_empty() => first
            .caveats
            .iter()
            .filter(|caveat| !matches!(caveat, Caveat::MeanDisagrees { .. }))
            .filter(|caveat| others.iter().all(|c| c.caveats.contains(caveat)))
            .collect(),
        _ => Vec::new(),
    }
}
