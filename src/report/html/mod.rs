//! One self-contained page: the verdict in words, then tables and pictures, then how to repeat it. No network, no
//! script; light and dark by the reader's preference.

mod figures;
mod sections;

use super::GENERATOR;
use super::document::Document;
use super::html_text::escape;
use super::picture;

/// Writes the page.
pub(super) fn render(document: &Document<'_>) -> String {
    let mut out = String::with_capacity(64 * 1024);
    head(&mut out, document);
    sections::verdicts(&mut out, document);
    sections::rankings(&mut out, document);
    sections::differences(&mut out, document);
    sections::tables(&mut out, document);
    figures::all(&mut out, document);
    sections::exploratory(&mut out, document);
    sections::notes(&mut out, document);
    sections::failures(&mut out, document);
    sections::repeat(&mut out, document);
    sections::host(&mut out, document);
    sections::footer(&mut out, document);
    out.push_str("</main>\n</body>\n</html>\n");
    out
}

fn head(out: &mut String, document: &Document<'_>) {
    let title = escape(&document.title);
    out.push_str(&format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n{GENERATOR}\">\n\
         <title>{title}</title>\n<style>\n{}{}</style>\n</head>\n<body>\n<main>\n<header>\n<h1>{title}</h1>\n\
         <p class=\"summary\">{}</p>\n</header>\n",
        include_str!("page.css"),
        picture::style_sheet(),
        escape(&document.summary)
    ));
}
