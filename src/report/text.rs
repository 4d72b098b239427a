//! Text for a terminal and for pasting: never wider than asked, colour only when asked.

use super::document::Document;
use super::format::Detail;
use super::layout::{printable, wrap};
use super::page::Page;
use super::screen;

/// Writes the document in at most `columns` columns.
pub(super) fn render(document: &Document<'_>, columns: usize, colour: bool) -> String {
    let page = Page { columns, colour, plain: false, each_verdict: false };
    let mut out = page.bold(&wrap(&document.title, columns, "", "  "));
    out.push('\n');
    page.words(&mut out, &document.summary, "", "");
    if !document.machine.is_empty() {
        page.words(&mut out, &document.machine, "", "");
    }
    match document.options.detail {
        Detail::Screen => screen::sections(&page, &mut out, document),
        Detail::Page | Detail::All => {
            document.sections.iter().for_each(|section| page.section(&mut out, document, section));
        }
    }
    printable(&out)
}
