//! That a sync returned before its data was safe: it stands behind the verdict, because a faster arm that loses data is none.
//!
//! Enters: a run. Leaves: a sentence for each arm in which the audit of flushes found that. Nothing is judged here.

use super::material::Material;
use super::trial_notes::violations;
use crate::report::document::Document;
use crate::report::json::written;
use crate::report::section::{Block, Heading, Section};

/// The section: nothing where nothing was found, or nobody looked.
pub(super) fn section(material: &mut Material<'_>) -> Section {
    let found = violations(material.run, &material.names);
    let remarks = (!found.is_empty()).then_some(Block::Remarks(found));
    let blocks = remarks.into_iter().chain([Block::Raw { name: "audit", json }]).collect();
    Section::new("audit", Heading::None, blocks)
}

fn json(document: &Document<'_>) -> String {
    written(&violations(document.run, &document.names()))
}
