//! One self-contained page: the verdict in words, then tables and pictures, then how to repeat it. No network, and no
//! script but one that finds names in flame graphs; light and dark by the reader's preference.

mod blocks;
mod figures;
mod search;
mod tables;

use super::GENERATOR;
use super::document::Document;
use super::html_text::escape;
use super::picture::{self, Picture};
use super::section::{Block, Heading, Section, Weight, capital};

/// Writes the page.
pub(super) fn render(document: &Document<'_>) -> String {
    page([&document.title, &document.summary], &document.run.assay_version, &of_sections(document))
}

/// Writes one page about several: what each says, and its whole report to be unfolded; `head`: its title, and a line about all.
pub(super) fn of_several(
    head: [&str; 2],
    effects: Option<&Picture>,
    parts: &[(Section, Option<&Document<'_>>)],
) -> String {
    let mut body = String::new();
    effects.iter().for_each(|picture| figures::figure(&mut body, "", picture, &picture.caption, true));
    for (number, (said, document)) in parts.iter().enumerate() {
        let mut whole = String::new();
        said.blocks.iter().for_each(|block| blocks::words(&mut whole, block, said.weight));
        if let Some(document) = document {
            // Each report counts its notes from 1.
            let own = of_sections(document)
                .replace("href=\"#note-", &format!("href=\"#run-{number}-note-"))
                .replace("id=\"note-", &format!("id=\"run-{number}-note-"))
                .replace("<h2>", "<h3>")
                .replace("</h2>", "</h3>");
            let about = format!("<p class=\"summary\">{}</p>\n", escape(&document.summary));
            blocks::folded(&mut whole, "the whole report", false, &(about + &own));
        }
        headed(&mut body, said, &whole);
    }
    page(head, env!("CARGO_PKG_VERSION"), &body)
}

/// A part of a page that is about pictures.
pub(super) struct PageSection {
    /// What stands above it.
    pub(super) heading: String,
    /// What is said of it.
    pub(super) said: Block,
    /// Its pictures, across the page.
    pub(super) pictures: Vec<Picture>,
    /// What is there when unfolded: what it is called, and lines that stay as they are.
    pub(super) folded: (String, String),
}

/// Writes one page of such parts. How pictures are read is said once.
pub(super) fn of_pictures(title: &str, summary: &str, sections: Vec<PageSection>) -> String {
    let mut body = String::new();
    let caption =
        sections.iter().flat_map(|one| &one.pictures).map(|picture| picture.caption.as_str()).next();
    body.extend(caption.map(|caption| format!("<p class=\"muted\">{}</p>\n", escape(caption))));
    for PageSection { heading, said, pictures, folded: (summary, lines) } in sections {
        let mut part = String::new();
        blocks::words(&mut part, &said, Weight::Words);
        pictures.iter().for_each(|picture| figures::figure(&mut part, "", picture, "", true));
        blocks::folded(&mut part, &summary, false, &format!("<pre>{}</pre>\n", escape(lines.trim_end())));
        body.push_str(&format!("<section>\n<h2>{}</h2>\n{part}</section>\n", escape(&heading)));
    }
    page([title, summary], env!("CARGO_PKG_VERSION"), &body)
}

/// Everything between the head of the page and its foot.
fn of_sections(document: &Document<'_>) -> String {
    let mut body = String::with_capacity(64 * 1024);
    in_order(&document.sections).into_iter().for_each(|one| section(&mut body, document, one));
    body
}

fn page([title, summary]: [&str; 2], version: &str, body: &str) -> String {
    let script = search::script(body);
    let mut out = String::with_capacity(body.len() + 32 * 1024);
    head(&mut out, [title, summary], &search::policy(body));
    out.push_str(body);
    footer(&mut out, version, &script);
    ["</main>\n", &script, "</body>\n</html>\n"].iter().for_each(|part| out.push_str(part));
    out
}

/// Warnings stand before the first figures, and what is there to look things up stands last.
fn in_order(sections: &[Section]) -> Vec<&Section> {
    let figures = sections.iter().position(|one| one.weight == Weight::Figures).unwrap_or(sections.len());
    let place = |(at, section): &(usize, &Section)| match section.weight {
        Weight::Words | Weight::Figures if *at < figures => 0,
        Weight::Warning => 1,
        Weight::Words | Weight::Figures => 2,
        Weight::Reference => 3,
    };
    let mut order: Vec<(usize, &Section)> = sections.iter().enumerate().collect();
    order.sort_by_key(place);
    order.into_iter().map(|(_, section)| section).collect()
}

fn section(out: &mut String, document: &Document<'_>, section: &Section) {
    let mut body = String::new();
    section.blocks.iter().for_each(|block| blocks::block(&mut body, document, block, section.weight));
    headed(out, section, &body);
}

/// A section's heading and what stands below it; nothing where that is nothing.
fn headed(out: &mut String, section: &Section, body: &str) {
    if body.is_empty() {
        return;
    }
    let heading = match &section.heading {
        Heading::None => None,
        Heading::OnPage(text) => Some((capital(text), None)),
        Heading::Shown(text, beside) => Some((capital(text), beside.as_ref())),
        Heading::Named(text, beside) => Some((text.clone(), beside.as_ref())),
    };
    let heading = heading.map(|(text, beside)| (escape(&text), beside.map(|text| escape(text))));
    match (heading, section.weight) {
        (Some((heading, _)), Weight::Warning) => {
            let heading = format!("<p><strong>{heading}</strong></p>");
            out.push_str(&format!("<div class=\"warn\" role=\"note\">\n{heading}\n{body}</div>\n"));
            return;
        }
        (Some((heading, beside)), _) => {
            out.push_str(&format!("<section>\n<h2>{heading}</h2>\n"));
            out.extend(beside.map(|beside| format!("<p class=\"muted\">{beside}</p>\n")));
        }
        (None, _) => out.push_str(&format!("<section aria-label=\"{}\">\n", section.name)),
    }
    out.push_str(body);
    out.push_str("</section>\n");
}

/// What made this page.
fn footer(out: &mut String, version: &str, script: &str) {
    let version = escape(version);
    let needs = if script.is_empty() {
        "needs no network and no script"
    } else {
        "needs no network; its only script finds functions in the flame graphs"
    };
    out.push_str(&format!("<footer>Made by assay {version}. This page {needs}.</footer>\n"));
}

fn head(out: &mut String, [title, summary]: [&str; 2], scripts: &str) {
    let title = escape(title);
    out.push_str(&format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'{scripts}\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n{GENERATOR}\">\n\
         <title>{title}</title>\n<style>\n{}{}</style>\n</head>\n<body>\n<main>\n<header>\n<h1>{title}</h1>\n\
         <p class=\"summary\">{}</p>\n</header>\n",
        include_str!("page.css"),
        picture::style_sheet(),
        escape(summary)
    ));
}
