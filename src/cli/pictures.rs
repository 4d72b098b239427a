//! `--pictures DIR`: the pictures of a report as files.
//!
//! Enters: a document, a directory. Leaves: an SVG and a PNG for each picture. Only files that assay wrote are replaced.

use std::io::Write;
use std::path::Path;

use super::Failure;
use super::output::{make_directory, write_file};
use crate::report::{self, Document};
use crate::sys::terminal;
use crate::units::counted;

/// Writes them, and says where.
///
/// # Errors
/// A [`Failure`]: exit code 2 when the directory or a file is somebody else's, 1 when a picture cannot be drawn.
pub(super) fn write(document: &Document<'_>, directory: &Path, force: bool) -> Result<(), Failure> {
    make_directory(directory, "--pictures")?;
    let pictures = report::picture_files(document);
    let file = |name: &str, ending: &str| directory.join(format!("{name}.{ending}"));
    let words = counted(pictures.len() as u64, "picture");
    // A PNG needs a font; without one all of these are there.
    for picture in &pictures {
        write_file(&file(&picture.name, "svg"), picture.svg.as_bytes(), force)?;
    }
    for picture in &pictures {
        let drawn = report::png(&picture.svg).map_err(|reason| {
            let as_svg = format!("{words} as SVG: {}", directory.display());
            Failure::tool(format!("{as_svg}; no PNG of {}: {reason}", picture.name))
        })?;
        write_file(&file(&picture.name, "png"), &drawn, force)?;
    }
    let said = format!("{words}, each as SVG and PNG: {}", directory.display());
    writeln!(terminal::err(), "{said}").map_err(Failure::tool)
}
