//! What a report says, a file a section, in reading order.
//!
//! Enters: a run and its analysis. Leaves: [`Section`]s. None of them knows a format. A new section is a file here with a function
//! `section`, and its name in the two lists below.

mod alone;
mod audit;
mod beside;
mod budget;
mod cause_words;
mod clear;
mod differences;
mod durability;
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
mod material;
mod noise_words;
mod notes;
mod numbers;
mod one_after_the_other;
mod other_metrics;
mod ranking;
mod repeat;
mod scaling;
mod scaling_words;
mod stages;
mod together;
mod trial_notes;
mod verdict;
mod watching;
mod why;
mod why_choice;
mod why_figures;
mod why_latency;
mod why_words;
#[cfg(test)]
mod why_words_tests;
mod within_trial;

use super::section::Section;
pub(super) use effects::{on_one_axis, rows as effect_rows};
pub(super) use host::machine;
pub(super) use material::Material;
pub(super) use verdict::tally;

/// All sections in reading order. Footnotes are counted in this order, too.
const SECTIONS: &[fn(&mut Material<'_>) -> Section] = &[
    verdict::section,
    one_after_the_other::section,
    durability::section,
    clear::section,
    audit::section,
    why::section,
    ranking::section,
    factors::section,
    numbers::section,
    alone::section,
    beside::section,
    effects::section,
    scaling::section,
    every_trial::section,
    latency::section,
    stages::section,
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
const EXPLAINING: &[fn(&mut Material<'_>) -> Section] =
    &[audit::section, why::section, stages::section, watching::section];

/// The sections of a report.
pub(super) fn all(material: &mut Material<'_>) -> Vec<Section> {
    SECTIONS.iter().map(|build| build(material)).collect()
}

/// Those that say why.
pub(super) fn explaining(material: &mut Material<'_>) -> Vec<Section> {
    EXPLAINING.iter().map(|build| build(material)).collect()
}
