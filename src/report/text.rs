//! Text for a terminal and for pasting: never wider than asked, colour only when asked.

use super::document::Document;
use super::grid;
use super::layout::{printable, wrap};
use super::page::Page;

/// Writes the document in at most `columns` columns.
pub(super) fn render(document: &Document<'_>, columns: usize, colour: bool) -> String {
    let page = Page { columns, colour, plain: false };
    let mut out = page.bold(&wrap(&document.title, columns, "", "  "));
    out.push('\n');
    page.words(&mut out, &document.summary, "", "");
    page.verdicts(&mut out, document);
    for table in document.tables.iter().chain(&document.beside).chain(&document.exploratory) {
        page.heading(&mut out, &table.caption);
        out.push_str(&grid::table(table, &page));
    }
    page.hidden(&mut out, document);
    page.rest(&mut out, document);
    printable(&out)
}
