//! One self-contained page: the verdict in words, then tables and pictures, then how to repeat it. No network, and no
//! script but one that finds names in flame graphs; light and dark by the reader's preference.

mod blocks;
mod figures;
mod search;
mod tables;

use super::GENERATOR;
use super::document::Document;
use super::html_text::escape;
use super::picture;
use super::section::{Heading, Section, Weight, capital};

/// Writes the page.
pub(super) fn render(document: &Document<'_>) -> String {
    let mut body = String::with_capacity(64 * 1024);
    in_order(&document.sections).into_iter().for_each(|one| section(&mut body, document, one));
    let script = search::script(&body);
    footer(&mut body, document, &script);
    let mut out = String::with_capacity(body.len() + 32 * 1024);
    head(&mut out, document, &search::policy(&body));
    [&body, "</main>\n", &script, "</body>\n</html>\n"].iter().for_each(|part| out.push_str(part));
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
    if body.is_empty() {
        return;
    }
    let heading = match &section.heading {
        Heading::None => None,
        Heading::OnPage(text) => Some((text, None)),
        Heading::Shown(text, beside) => Some((text, beside.as_ref())),
    };
    let heading = heading.map(|(text, beside)| (escape(&capital(text)), beside.map(|text| escape(text))));
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
    out.push_str(&body);
    out.push_str("</section>\n");
}

/// What made this page.
fn footer(out: &mut String, document: &Document<'_>, script: &str) {
    let version = escape(&document.run.assay_version);
    let needs = if script.is_empty() {
        "needs no network and no script"
    } else {
        "needs no network; its only script finds functions in the flame graphs"
    };
    out.push_str(&format!("<footer>Made by assay {version}. This page {needs}.</footer>\n"));
}

fn head(out: &mut String, document: &Document<'_>, scripts: &str) {
    let title = escape(&document.title);
    out.push_str(&format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'{scripts}\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n{GENERATOR}\">\n\
         <title>{title}</title>\n<style>\n{}{}</style>\n</head>\n<body>\n<main>\n<header>\n<h1>{title}</h1>\n\
         <p class=\"summary\">{}</p>\n</header>\n",
        include_str!("page.css"),
        picture::style_sheet(),
        escape(&document.summary)
    ));
}
