//! What sections are made from.
//!
//! Enters: a run, its analysis, what the reader asked for. Leaves: a [`Material`]. It knows no section.

use super::super::comparisons::of_role;
use super::super::document;
use super::super::footnotes::{Footnotes, common_caveats};
use super::super::format::Options;
use super::super::words::Names;
use crate::analyse::{self, Analysis, Comparison, Flame, RequestTimes, Role, Why};
use crate::record::Run;

/// What sections are made from.
pub(in crate::report) struct Material<'a> {
    /// The run.
    pub(in crate::report) run: &'a Run,
    /// What was found.
    pub(in crate::report) analysis: &'a Analysis,
    /// The run that watched its cells, if one did.
    pub(in crate::report) watched: Option<&'a Run>,
    /// What the reader asked for.
    pub(in crate::report) options: &'a Options,
    /// Names of arms.
    pub(in crate::report) names: Names<'a>,
    /// Why pairs differ.
    pub(in crate::report) why: Vec<Why>,
    /// Stacks of functions of the pairs.
    pub(in crate::report) flames: Vec<Flame>,
    /// Times of requests of the pairs.
    pub(in crate::report) request_times: Vec<RequestTimes>,
    /// The comparisons that decide.
    pub(in crate::report) primary: Vec<&'a Comparison>,
    /// Footnotes of all sections.
    pub(in crate::report) footnotes: Footnotes<'a>,
}

impl<'a> Material<'a> {
    /// What a report of `run` is made from.
    pub(in crate::report) fn new(
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
        let request_times = analyse::request_times(run, analysis, watched);
        Material { run, analysis, options, names, watched, why, flames, request_times, primary, footnotes }
    }

    /// A heading with how far the run is.
    pub(super) fn heading(&self, text: &str) -> String {
        format!("{text}{}", document::so_far(self.analysis))
    }
}
