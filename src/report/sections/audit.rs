//! Whether each sync returned behind a flush: it stands behind the verdict, because an arm that is faster by losing data is none.
//!
//! Enters: a run. Leaves: the sentences of the audit of flushes, each with its arm. Nothing is judged here.

use super::material::Material;
use super::trial_notes::audits;
use crate::report::document::Document;
use crate::report::json::written;
use crate::report::section::{Block, Heading, Section};

/// The section: nothing where nobody looked.
pub(super) fn section(material: &mut Material<'_>) -> Section {
    let found = audits(material.run, &material.names);
    let remarks = (!found.is_empty()).then_some(Block::Remarks(found));
    let blocks = remarks.into_iter().chain([Block::Raw { name: "audit", json }]).collect();
    Section::new("audit", Heading::None, blocks)
}

fn json(document: &Document<'_>) -> String {
    written(&audits(document.run, &document.names()))
}
