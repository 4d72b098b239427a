//! What pictures have in common: the rows that have one, and a picture as a file.
//!
//! Enters: a document. Leaves: rows, and SVG documents. What is drawn is said by the sections.

use super::comparisons::{group, of_role};
use super::document::Document;
use super::picture::{self, Picture};
use super::section::{Block, Heading, Section, capital, unfolded};
use crate::analyse::{Comparison, Role};

/// Rows that get pictures of their own.
pub(super) const MOST_ROWS: usize = 12;

/// A picture as a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PictureFile {
    /// Its name without an ending: `trials-2-bs-4k-write-bw-mib-s`.
    pub name: String,
    /// An SVG document.
    pub svg: String,
}

/// Every picture of a report as a file of its own.
#[must_use]
pub fn picture_files(document: &Document<'_>) -> Vec<PictureFile> {
    document.sections.iter().flat_map(|section| of_section(document, section)).collect()
}

fn of_section(document: &Document<'_>, section: &Section) -> Vec<PictureFile> {
    let arms: Vec<String> = document.analysis.arms.iter().map(|arm| document.arm(arm)).collect();
    let heading = match &section.heading {
        Heading::OnPage(text) | Heading::Shown(text, _) => capital(text),
        Heading::Named(text, _) => text.clone(),
        Heading::None => section.name.to_owned(),
    };
    let drawn = unfolded(&section.blocks).into_iter().filter_map(|block| match block {
        Block::Pictures(draw) => draw(document),
        _ => None,
    });
    let pictures: Vec<Picture> = drawn.flat_map(|drawings| drawings.pictures).collect();
    let several = pictures.len() > 1;
    let file = |(at, picture): (usize, &Picture)| {
        let name = if several { format!("{}-{}", section.name, at + 1) } else { section.name.to_owned() };
        PictureFile {
            name: [name, of_letters(&picture.title)].join("-").trim_end_matches('-').to_owned(),
            svg: picture::document(picture, &format!("{}: {heading}", document.title), &arms),
        }
    };
    pictures.iter().enumerate().map(file).collect()
}

/// Letters, digits and hyphens of a title, in lower case.
pub(super) fn of_letters(title: &str) -> String {
    const MOST: usize = 60;
    let plain: String =
        title.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' }).collect();
    let parts: Vec<&str> = plain.split('-').filter(|part| !part.is_empty()).collect();
    parts.join("-").chars().take(MOST).collect()
}

/// Whether it is a comparison with the first arm; only of all pairs some are not.
pub(super) fn is_with_first(document: &Document<'_>, comparison: &Comparison) -> bool {
    document.analysis.arms.first() == Some(&comparison.baseline.arm)
}

/// The primary comparisons with the first arm, those of one row and metric together.
pub(super) fn rows<'a>(document: &Document<'a>) -> Vec<Vec<&'a Comparison>> {
    let primary: Vec<&Comparison> =
        of_role(document.analysis, Role::Primary).filter(|c| is_with_first(document, c)).collect();
    group(&primary, |c| (&c.row, &c.metric.name))
}

/// The place of an arm in the run's order, which gives it its colour.
pub(super) fn index_of(document: &Document<'_>, arm: &str) -> usize {
    document.analysis.arms.iter().position(|known| known == arm).unwrap_or(0)
}
