//! For a kernel mailing list: 72 columns of plain ASCII that survive quoting.
//!
//! The verdict in words, then the tables of the published block-device study (LKML, October 2012): averages an
//! arm, differences in percent, standard deviations in percent. Results shaped like fio's get its READ, WRITE and
//! CPU columns; others a column an arm. What decides and is none of fio's columns has such a table behind them. What else is to be shown of two
//! arms is one table, a line a metric.

mod columns;
mod fio_tables;
mod one_pair;
mod plain_tables;

use super::comparisons::shown;
use super::document::Document;
use super::format::Detail;
use super::layout::{ascii, printable, wrap};
use super::page::Page;
use super::section::{Block, Weight, unfolded};
use crate::analyse::{Comparison, Role};

/// The section of what accompanies.
const OTHER_METRICS: &str = "other-metrics";

/// Writes the document in at most `width` columns.
pub(super) fn render(document: &Document<'_>, width: usize) -> String {
    let page = Page { columns: width, colour: false, plain: true, each_verdict: true };
    let mut out = wrap(&ascii(&document.title), width, "", "  ");
    out.push('\n');
    page.words(&mut out, &document.summary, "", "");
    // The tables of the study stand where the first figures would.
    let is_mail = is_mail(document);
    let first = document.sections.iter().position(|section| section.weight == Weight::Figures);
    for (at, section) in document.sections.iter().enumerate() {
        if Some(at) == first {
            page.keys(&mut out, document);
            tables(&mut out, &page, document, is_mail);
        }
        // Of what the tables leave out there is a sentence.
        let is_sentence = is_mail && section.name == OTHER_METRICS;
        if is_sentence || section.weight != Weight::Figures {
            page.section(&mut out, document, section);
        }
    }
    let more = withheld(document);
    if !more.is_empty() {
        out.push('\n');
        page.words(&mut out, &format!("--verbose adds: {}", more.join(", ")), "", "  ");
    }
    printable(&out)
}

/// What is left out, each once.
fn withheld(document: &Document<'_>) -> Vec<&'static str> {
    let mut all: Vec<&str> = Vec::new();
    for block in document.sections.iter().flat_map(|section| unfolded(&section.blocks)) {
        if let Block::Withheld(called) = block
            && !all.contains(called)
        {
            all.push(called);
        }
    }
    all
}

/// Whether only what decides, and what the experiment wants shown, has a table.
fn is_mail(document: &Document<'_>) -> bool {
    let options = &document.options;
    options.detail == Detail::Screen && !options.all_metrics && !options.named_metrics
}

fn tables(out: &mut String, page: &Page, document: &Document<'_>, is_mail: bool) {
    let mut shown = shown(document.run, document.analysis, &document.options);
    shown.retain(|c| !is_mail || is_asked(document, c));
    if let Some(tables) = fio_tables::FioTables::of(document) {
        tables.write(out, page);
        shown.retain(|c| !columns::has_column(&c.metric));
    }
    // What decides has the study's tables, the rest of one pair a line a row.
    let (deciding, others): (Vec<&Comparison>, Vec<&Comparison>) =
        shown.into_iter().partition(|c| c.role == Role::Primary || !one_pair::is_one(document));
    plain_tables::write(document, &deciding, out, page);
    one_pair::write(document, &others, out, page);
}

/// Whether a comparison decides, or the experiment wants it shown.
fn is_asked(document: &Document<'_>, c: &Comparison) -> bool {
    c.role == Role::Primary || document.run.design.shows(&c.metric.name)
}

/// The difference in percent as the published study printed it: below `hide` it is 0.
fn difference_pct(baseline: f64, candidate: f64, hide: f64) -> f64 {
    if baseline == candidate {
        return 0.0;
    }
    let percent = (candidate - baseline) / baseline * 100.0;
    if percent.abs() < hide { 0.0 } else { percent }
}

/// `% DIFFERENCE, a -> b`, with what is hidden.
fn difference_heading(so_far: &str, baseline: &str, candidate: &str, hide: Option<f64>) -> String {
    let hidden = hide.filter(|h| *h > 0.0).map_or(String::new(), |h| format!(" (below {h} % printed as 0)"));
    format!("% DIFFERENCE{so_far}, {baseline} -> {candidate}{hidden}")
}
