//! Several reports as one: what each run says, and on a page each whole report behind it.
//!
//! Enters: documents, and what kept a run from having one. Leaves: text. It must not judge.

use serde_json::{Value, json};

use super::document::Document;
use super::format::{Format, RenderOptions};
use super::layout::{one_line, printable};
use super::page::Page;
use super::picture::Picture;
use super::section::{Block, Heading, List, Section};
use super::sections::{effect_rows, on_one_axis, tally};
use super::words::{NBSP, plain_percent};
use super::{columns_of, csv, html, json, junit, markdown, render_with};
use crate::analyse::{Comparison, Role};
use crate::units::counted;

/// Version of its JSON, as that of a report's.
const VERSION: u32 = 1;

/// What several runs say.
pub struct Overview<'a> {
    /// One each, in the order in which they were run or named.
    pub parts: Vec<OverviewPart<'a>>,
}

/// One run among several.
pub struct OverviewPart<'a> {
    /// What it is called among the others.
    pub name: &'a str,
    /// Its report; `None`: it has none.
    pub document: Option<Document<'a>>,
    /// Why it ended otherwise than by its own rule, or was never begun.
    pub failure: Option<&'a str>,
}

impl Overview<'_> {
    /// Writes it. Formats that have no place for an overview write one report after the other.
    #[must_use]
    pub fn render(&self, format: Format, options: RenderOptions) -> String {
        match format {
            Format::Text => self.head(options) + &self.body(options),
            Format::Markdown => {
                markdown::of_sections(&self.title(), &self.summary().unwrap_or_default(), &self.sections())
            }
            Format::Html => self.page(),
            Format::Json => format!("{}\n", self.json()),
            Format::Csv => csv::of_several(&self.documents().collect::<Vec<_>>(), options.raw_cells),
            Format::Junit => {
                let parts = self.parts.iter().map(|part| (part.name, part.document.as_ref(), part.failure));
                junit::of_several(&parts.collect::<Vec<_>>())
            }
            Format::Lkml | Format::Mmtests => {
                let documents = self.documents().map(|document| render_with(document, format, options));
                documents.collect::<Vec<_>>().join("\n")
            }
        }
    }

    fn documents(&self) -> impl Iterator<Item = &Document<'_>> {
        self.parts.iter().filter_map(|part| part.document.as_ref())
    }

    /// `3 runs, 4 comparisons: 1 slower by more than δ, 3 undecided; 1 run failed, not finished or not run`.
    fn title(&self) -> String {
        let all: Vec<&Comparison> = self
            .documents()
            .filter(|document| !document.run.aa)
            .flat_map(|document| &document.analysis.comparisons)
            .filter(|comparison| comparison.role == Role::Primary)
            .collect();
        let runs = counted(self.parts.len() as u64, "run");
        let found = if all.is_empty() { String::new() } else { format!(", {}", tally(&all)) };
        match self.parts.iter().filter(|part| part.failure.is_some()).count() {
            0 => format!("{runs}{found}"),
            some => format!("{runs}{found}; {} failed, not finished or not run", counted(some as u64, "run")),
        }
    }

    /// What all claims together may err in: each run's own chance, added up.
    fn summary(&self) -> Option<String> {
        let judged = self.documents().filter(|document| !document.run.aa);
        let alpha: f64 = judged.map(|document| document.analysis.alpha).sum();
        (alpha > 0.0 && alpha < 1.0).then(|| {
            format!(
                "the chance that any of their claims is false is at most {}: the sum of each run's own",
                plain_percent(alpha)
            )
        })
    }

    /// What each says, without its footnotes.
    fn sections(&self) -> Vec<Section> {
        self.parts.iter().map(OverviewPart::section).collect()
    }

    /// What all of them say together, as text.
    #[must_use]
    pub fn head(&self, options: RenderOptions) -> String {
        let (page, mut out) = (text_page(options), String::new());
        page.words(&mut out, &self.title(), "", "  ");
        self.summary().iter().for_each(|summary| page.words(&mut out, summary, "", "  "));
        printable(&out)
    }

    /// What each of them says, as text.
    #[must_use]
    pub fn body(&self, options: RenderOptions) -> String {
        let (page, mut out) = (text_page(options), String::new());
        self.sections().iter().for_each(|section| page.blocks(&mut out, section));
        printable(&out)
    }

    fn page(&self) -> String {
        let parts: Vec<_> = self.parts.iter().map(|part| (part.section(), part.document.as_ref())).collect();
        let effects = self.effects();
        html::of_several([&self.title(), &self.summary().unwrap_or_default()], effects.as_ref(), &parts)
    }

    /// What decides in all of them on one axis; `None`: there is nothing to draw.
    fn effects(&self) -> Option<Picture> {
        let mut metrics =
            self.documents().flat_map(effect_rows).map(|(comparison, _)| &comparison.metric.name);
        let first = metrics.next();
        let same_sides = metrics.all(|name| Some(name) == first);
        let of_run = |document| {
            let (run, rows): (&Document<'_>, _) = (document, effect_rows(document));
            let alone = rows.len() == 1;
            let label = move |comparison: &Comparison, label: String| {
                let of_row = if alone { String::new() } else { format!(" · {label}") };
                let metric = match same_sides {
                    true => String::new(),
                    false => format!(
                        " · {}, {} is better",
                        comparison.metric.name,
                        comparison.metric.better.word()
                    ),
                };
                format!("{}{of_row}{metric}", one_line(&run.run.name))
            };
            rows.into_iter().map(move |(comparison, of_row)| (comparison, label(comparison, of_row)))
        };
        let rows: Vec<(&Comparison, String)> = self.documents().flat_map(of_run).collect();
        on_one_axis(&rows)
    }

    fn json(&self) -> Value {
        let report = |document: &Document<'_>| {
            serde_json::from_str::<Value>(&json::render(document)).unwrap_or_default()
        };
        let part = |part: &OverviewPart<'_>| json!({ "name": part.name, "failure": part.failure, "report": part.document.as_ref().map(report) });
        let reports: Vec<Value> = self.parts.iter().map(part).collect();
        json!({
            "format": "assay-reports", "version": VERSION, "title": printable(&self.title()),
            "summary": self.summary().as_deref().map(printable), "reports": reports,
        })
    }
}

fn text_page(options: RenderOptions) -> Page {
    let columns = columns_of(Format::Text, options);
    Page { columns, colour: options.colour, plain: false, each_verdict: false }
}

impl OverviewPart<'_> {
    fn section(&self) -> Section {
        let number = self.document.as_ref().and_then(|document| document.run.id);
        let number = number.map(|id| format!("run{NBSP}{id}"));
        let title = self.document.as_ref().map_or(self.name, |document| &document.title);
        let said = self.document.iter().flat_map(Document::blocks).find_map(|block| match block {
            Block::Verdicts(verdicts) => Some(Block::Verdicts(verdicts.clone().unmarked())),
            _ => None,
        });
        let failed = self.failure.map(|why| Block::List(List::of([why.to_owned()])));
        Section::new(
            "run",
            Heading::Named(title.to_owned(), number),
            said.into_iter().chain(failed).collect(),
        )
    }
}
