//! The one document that every format writes down: its head and its sections in reading order, beside the numbers themselves.
//!
//! It knows no section, so that sections can draw and write values from it; `building.rs` asks them all.

mod building;

use super::format::Options;
use super::section::{Block, Section, unfolded};
use super::words::Names;
use crate::analyse::{Analysis, Flame, RequestTimes, RowKey, Why};
use crate::record::Run;

/// One report, before it is written in a format.
#[derive(Clone, Debug)]
pub struct Document<'a> {
    /// The run it is about.
    pub run: &'a Run,
    /// What was found.
    pub analysis: &'a Analysis,
    /// The run that watched its cells, if one did.
    pub watched: Option<&'a Run>,
    /// What the reader asked for.
    pub options: Options,
    /// `randwrite.fio: direct=1 against direct=0`.
    pub title: String,
    /// Run number, time, rounds, engine: one line.
    pub summary: String,
    /// Kernel, processors, device, filesystem and scheduler in one line; empty where nothing is known of them.
    pub(super) machine: String,
    /// Why pairs differ.
    why: Vec<Why>,
    /// Stacks of functions of the pairs.
    flames: Vec<Flame>,
    /// The times of requests in pairs of arms, where the block layer was watched.
    request_times: Vec<RequestTimes>,
    /// All that is said, in reading order.
    pub(super) sections: Vec<Section>,
    /// Footnotes of all sections, number 1 first.
    pub(super) footnotes: Vec<String>,
}

impl<'a> Document<'a> {
    /// Why each candidate differs from the baseline, or that there is nothing to explain; one for each row that decides.
    #[must_use]
    pub fn why(&self) -> &[Why] {
        &self.why
    }

    /// Where the time of an operation goes by stack of functions, of the pairs whose trials were watched for that.
    #[must_use]
    pub fn flames(&self) -> &[Flame] {
        &self.flames
    }

    /// The times of requests by stage in pairs of arms.
    #[must_use]
    pub fn request_times(&self) -> &[RequestTimes] {
        &self.request_times
    }

    /// Names of arms as the reader knows them.
    pub(super) fn names(&self) -> Names<'a> {
        Names::new(self.run, &self.analysis.factor)
    }

    /// The label of an arm as the reader knows it: `direct=1`.
    #[must_use]
    pub fn arm(&self, label: &str) -> String {
        self.names().arm(label)
    }

    /// ` so far` in headings, while there is no verdict before the last round.
    #[must_use]
    pub fn so_far(&self) -> &'static str {
        so_far(self.analysis)
    }

    /// The label of a row, empty when there is one only.
    #[must_use]
    pub fn row(&self, row: &RowKey) -> String {
        self.names().row(row)
    }

    /// The blocks of all sections, also those that can be folded.
    pub(super) fn blocks(&self) -> Vec<&Block> {
        self.sections.iter().flat_map(|section| unfolded(&section.blocks)).collect()
    }
}

/// ` so far` in headings, while there is no verdict before the last round.
pub(super) fn so_far(analysis: &Analysis) -> &'static str {
    if analysis.so_far().is_some() { " so far" } else { "" }
}
