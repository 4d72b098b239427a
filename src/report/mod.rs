//! Run + [`Analysis`](crate::analyse::Analysis) → one [`Document`] of sections → eight formats. A section knows no format and a
//! format no section: both know blocks (`section.rs`).
//!
//! Enters: a stored run and what analyse found. Leaves: text. It must not judge (every number and verdict is
//! analyse's), nor know where the text goes.

mod bisected;
mod bisected_ends;
mod bisected_further;
mod clusters;
mod comparisons;
mod counts;
mod csv;
mod document;
mod flames;
mod footnotes;
mod format;
mod grid;
mod history;
mod history_page;
mod html;
mod html_text;
mod json;
mod junit;
mod layout;
mod lkml;
mod manner;
mod markdown;
mod mmtests;
mod operation_times;
mod overview;
mod page;
mod page_blocks;
mod picture;
mod pictures;
mod raw_words;
mod scale_of_medians;
mod screen;
mod section;
#[cfg(test)]
mod section_tests;
mod sections;
mod table;
mod text;
mod verdict_words;
mod words;

pub use bisected::{bisected_json, bisected_text, left_out_line, step_name};
pub use bisected_ends::ends_so_far;
pub use document::Document;
pub use flames::{FlameFile, flame_files};
pub use format::{Detail, Format, Options, RenderOptions, UnknownFormat};
pub use history::{HistoryOf, history_json, history_text};
pub use history_page::history_page;
pub use overview::{Overview, OverviewPart};
pub use picture::png;
pub use pictures::{PictureFile, picture_files};

/// Beginning of the line in the head of an HTML report that says who wrote it.
pub const GENERATOR: &str = "<meta name=\"generator\" content=\"assay";

/// Beginning of JUnit XML of assay.
pub const JUNIT: &str = junit::BEGINNING;

/// Columns of the text format.
const TEXT_COLUMNS: usize = 80;
/// Columns of the lkml format.
const LKML_COLUMNS: usize = 72;
/// Columns fewer than these are not honoured.
const LEAST_COLUMNS: usize = 60;

/// The text in at most so many columns: what is too much goes from its middle.
#[must_use]
pub fn shortened(text: &str, columns: usize) -> String {
    layout::shorten(text, columns)
}

/// A message for people, wrapped to the columns of the text format; lines after the first begin with `rest`.
#[must_use]
pub fn wrapped(message: &str, rest: &str) -> String {
    layout::wrap(message, TEXT_COLUMNS, "", rest)
}

/// The same behind a word: lines after the first begin below its end.
#[must_use]
pub fn wrapped_behind(word: &str, message: &str) -> String {
    layout::wrap(message, TEXT_COLUMNS, word, &" ".repeat(layout::width(word)))
}

/// Writes a document down in a format, without colour, in the format's usual width.
#[must_use]
pub fn render(document: &Document<'_>, format: Format) -> String {
    render_with(document, format, RenderOptions::default())
}

/// Writes a document down in a format.
#[must_use]
pub fn render_with(document: &Document<'_>, format: Format, options: RenderOptions) -> String {
    match format {
        Format::Text => text::render(document, columns_of(format, options), options.colour),
        Format::Lkml => lkml::render(document, columns_of(format, options)),
        Format::Mmtests => mmtests::render(document),
        Format::Markdown => markdown::render(document),
        Format::Json => json::render(document),
        Format::Csv => csv::render(document, options.raw_cells),
        Format::Html => html::render(document),
        Format::Junit => junit::render(document),
    }
}

fn columns_of(format: Format, options: RenderOptions) -> usize {
    let usual = if format == Format::Lkml { LKML_COLUMNS } else { TEXT_COLUMNS };
    options.width.unwrap_or(usual).max(LEAST_COLUMNS)
}
