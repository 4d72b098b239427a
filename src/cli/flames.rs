//! `--flame DIR`: the flame graphs of a report as files, with the stacks that they are drawn of.
//!
//! Enters: a document, a directory. Leaves: SVG files and folded stacks. Only files that assay wrote are replaced.

use std::io::Write;
use std::path::Path;

use super::Failure;
use super::output::write_file;
use crate::report::{Document, flame_files};
use crate::sys::terminal;
use crate::units::counted;

/// Writes them into a directory that is there, and says so.
///
/// # Errors
/// A [`Failure`] with exit code 2: no trial has stacks, or a file is somebody else's.
pub(super) fn write(document: &Document<'_>, directory: &Path, force: bool) -> Result<(), Failure> {
    let files = flame_files(document);
    if files.is_empty() {
        let run = document.run.id.map_or_else(|| "RUN".to_owned(), |id| id.to_string());
        return Err(Failure::request("no flame graph: no pair has trials whose stacks were kept").hint(format!(
            "the observers cpu and waits keep them: assay explain {run} --only cpu,waits; `assay help observers` says what they need"
        )));
    }
    for file in &files {
        write_file(&directory.join(&file.name), file.content.as_bytes(), force)?;
    }
    let pairs = counted(document.flames().len() as u64, "flame graph");
    let said = format!("{pairs} of two arms and their difference, with the stacks: {}", directory.display());
    writeln!(terminal::err(), "{said}").map_err(Failure::tool)
}
