//! Whether each sync returned behind a flush: it stands behind the verdict, because an arm that is faster by losing data is none.
//!
//! Enters: a run, and the run that watched its cells. Leaves: the sentences of the audit of flushes, each with its arm. Nothing is judged
//! here.

use super::material::Material;
use super::trial_notes::{audits, watched_audits};
use crate::record::Run;
use crate::report::document::Document;
use crate::report::json::sentences;
use crate::report::section::{Block, Heading, Section};
use crate::report::words::Names;

/// The section: nothing where nobody looked.
pub(super) fn section(material: &mut Material<'_>) -> Section {
    let found = found(material.run, material.watched, &material.analysis.factor, &material.names);
    let remarks = (!found.is_empty()).then_some(Block::Remarks(found));
    let blocks = remarks.into_iter().chain([Block::Raw { name: "audit", json }]).collect();
    Section::new("audit", Heading::None, blocks)
}

fn json(document: &Document<'_>) -> String {
    let factor = &document.analysis.factor;
    sentences(&found(document.run, document.watched, factor, &document.names()))
}

/// What was found in the run's own trials; where nobody looked there, in the trials that watched its cells.
fn found(run: &Run, watched: Option<&Run>, factor: &str, names: &Names<'_>) -> Vec<String> {
    let own = audits(run, names);
    match watched {
        Some(watched) if own.is_empty() => watched_audits(watched, factor, names),
        _ => own,
    }
}
