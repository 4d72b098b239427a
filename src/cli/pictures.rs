//! `--pictures DIR`: the pictures of a report as files.
//!
//! Enters: a document, a directory. Leaves: an SVG and a PNG for each picture. Only files that assay wrote are replaced.

use std::io::{ErrorKind, Write};
use std::path::Path;

use super::Failure;
use super::output::write_file;
use crate::report::{self, Document};
use crate::sys::terminal;

/// Writes them, and says where.
///
/// # Errors
/// A [`Failure`]: exit code 2 when the directory or a file is somebody else's, 1 when a picture cannot be drawn.
pub(super) fn write(document: &Document<'_>, directory: &Path, force: bool) -> Result<(), Failure> {
    let at = |error: std::io::Error| {
        Failure::request(format!("cannot make {}: {error}", directory.display()))
            .hint("--pictures takes a directory, or the name of one to be made")
    };
    match std::fs::create_dir(directory) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists && directory.is_dir() => {}
        made => made.map_err(at)?,
    }
    let pictures = report::picture_files(document);
    for picture in &pictures {
        let file = |ending: &str| directory.join(format!("{}.{ending}", picture.name));
        write_file(&file("svg"), picture.svg.as_bytes(), force)?;
        let drawn = report::png(&picture.svg).map_err(|reason| {
            Failure::tool(format!("{} is written, but no PNG of it: {reason}", file("svg").display()))
        })?;
        write_file(&file("png"), &drawn, force)?;
    }
    let words = match pictures.len() {
        1 => "1 picture".to_owned(),
        n => format!("{n} pictures"),
    };
    let said = format!("{words}, each as SVG and PNG: {}", directory.display());
    writeln!(terminal::err(), "{said}").map_err(Failure::tool)
}
