//! Text for a terminal and for pasting: never wider than asked, colour only when asked.

use super::document::Document;
use super::format::Detail;
use super::grid;
use super::layout::{printable, wrap};
use super::page::Page;
use super::screen;

/// Writes the document in at most `columns` columns.
pub(super) fn render(document: &Document<'_>, columns: usize, colour: bool) -> String {
    let page = Page { columns, colour, plain: false };
    let mut out = page.bold(&wrap(&document.title, columns, "", "  "));
    out.push('\n');
    page.words(&mut out, &document.summary, "", "");
    page.verdicts(&mut out, document);
    page.rankings(&mut out, document);
    let tables = document.tables.iter().chain(&document.alone).chain(&document.beside);
    for table in tables.chain(&document.exploratory) {
        page.heading(&mut out, &table.caption);
        out.push_str(&grid::table(table, &page));
    }
    page.hidden(&mut out, document);
    match document.options.detail {
        Detail::Screen => screen::rest(&page, &mut out, document),
        Detail::Page | Detail::All => page.rest(&mut out, document),
    }
    printable(&out)
}
