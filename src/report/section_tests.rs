//! That a section needs no format's help, and a format knows no section.

use serde_json::json;

use super::format::{Format, Options, RenderOptions};
use super::section::{
    Block, Drawings, Fact, Facts, Heading, Line, List, Section, Span, Transcript, Transcripts, Weight,
};
use super::{Document, render_with};
use crate::analyse::{self, Analysis, Comparison};
use crate::record::Run;

/// Five rounds of two arms.
pub(super) fn made_up() -> (Run, Analysis) {
    let trial = |at: u32| {
        let value = 100.0 + f64::from(at % 2) * 10.0 + f64::from(at / 2) * 0.1;
        json!({"cell": at % 2, "round": at / 2, "position": at % 2, "attempt": 0, "started_unix_ns": 0, "elapsed_s": 1.0,
            "facts": null, "status": "done", "excluded": null, "values": [[0, value]], "histograms": [], "series": [],
            "notes": []})
    };
    let trials: Vec<_> = (0..10).map(trial).collect();
    let stop = json!({"max_rounds": 30, "rounds": null, "delta": 0.02, "alpha": 0.05, "exact": false, "time_budget_s": null});
    let factors = json!([{"name": "cache", "levels": ["on", "off"]}]);
    let design = json!({"factors": factors, "compare": 0, "paired": true, "primary": "bw", "stop": stop});
    let metric = json!({"job": "", "name": "bw", "unit": "bytes_per_second", "better": "higher"});
    let run = json!({"version": 1, "id": 7, "name": "r", "source": "measured", "state": "finished",
        "assay_version": "0", "started_unix_ns": 0, "command_line": ["assay"], "seed": 1, "engine": "e", "job_text": null,
        "experiment": null, "design": design, "aa": false, "facts": [], "metrics": [metric],
        "cells": [{"levels": [0]}, {"levels": [1]}], "trials": trials, "notes": []});
    let run: Run = serde_json::from_value(run).unwrap();
    let analysis = analyse::analyse(&run, &analyse::Options::default());
    (run, analysis)
}

/// What a section of remarks alone says, one on each line.
pub(super) fn remarks(section: &Section) -> String {
    match section.blocks.first() {
        Some(Block::Remarks(all)) => all.join("\n").replace(super::words::NBSP, " "),
        _ => String::new(),
    }
}

/// A section that no format has ever seen, with a block of almost every kind.
fn unheard_of() -> Section {
    let pictures: fn(&Document<'_>) -> Option<Drawings> = |_| None;
    let line = Line(vec![Span::Words("seen in ".to_owned()), Span::Code("dm_table".to_owned())]);
    let fact = Fact { name: "moon".to_owned(), value: "full".to_owned(), differs: Vec::new() };
    let transcript = Transcript {
        sentence: "heard at night".to_owned(),
        command: "howl --loud".to_owned(),
        output: "ooh".to_owned(),
    };
    let facts = Facts { all: vec![fact], told: vec![0], called: "the moon" };
    let blocks = vec![
        Block::Pictures(pictures),
        Block::List(List { caption: None, lines: vec![line] }),
        Block::Transcripts(Transcripts { all: vec![transcript], called: "the howling" }),
        Block::Remarks(vec!["nothing else is known of it".to_owned()]),
        Block::Folded { summary: "sky".to_owned(), open: false, blocks: vec![Block::Facts(facts)] },
        Block::Listing { lead: "it says:".to_owned(), text: "a verse".to_owned(), called: "the verse" },
        Block::Raw { name: "wolf", json: |document| super::json::written(&document.title) },
        Block::Column { head: "howls", cell: |_, c: &Comparison| format!("of {}", c.candidate.arm) },
    ];
    Section::new("wolf", Heading::shown("the wolf"), blocks)
}

fn written(sections: Vec<Section>, format: Format) -> String {
    let (run, analysis) = made_up();
    let mut document = Document::build(&run, &analysis, &Options::default());
    document.sections.extend(sections);
    render_with(&document, format, RenderOptions::default())
}

#[test]
fn a_new_section_is_shown_by_all_seven_formats() {
    for (format, shown) in [
        (
            Format::Text,
            "\nthe wolf\n- seen in dm_table\n- heard at night\n  $ howl --loud\n  | ooh\n\nnothing else is known of it\n  \
             moon full\n  it says:\n    a verse\n",
        ),
        (Format::Lkml, "\nthe wolf\n- seen in dm_table\n- heard at night\n  $ howl --loud\n  | ooh\n"),
        (Format::Mmtests, "\nthe wolf\n- seen in dm_table\n- heard at night\n\nrun 7"),
        (
            Format::Markdown,
            "\n**The wolf**\n\n- seen in `dm_table`\n- heard at night\n\n  ```\n  $ howl --loud\n  ooh\n  ```\n\n\nnothing \
             else is known of it.\n\n| fact | value |\n| :-- | :-- |\n| moon | full |\n\nit says:\n\n```\na verse\n```\n",
        ),
        (Format::Json, ",\"wolf\":\"r: cache=off against cache=on\","),
        (Format::Csv, "caveats,howls,difference,difference_low,difference_high,name,factor\n"),
        (
            Format::Html,
            "<section>\n<h2>The wolf</h2>\n<ul class=\"notes\">\n<li>seen in <code>dm_table</code></li>\n</ul>\n<p>heard at \
             night</p>\n<pre class=\"wrap\">$ howl --loud\nooh</pre>\n<p class=\"muted\">nothing else is known of \
             it.</p>\n<details><summary>sky</summary>\n",
        ),
    ] {
        let text = written(vec![unheard_of()], format);
        assert!(text.contains(shown), "{format}: {shown:?} is not in\n{text}");
    }
    assert!(written(vec![unheard_of()], Format::Csv).contains(",of off,,,,r,cache\n"));
}

#[test]
fn a_section_of_which_a_format_shows_nothing_has_no_heading() {
    let silent = || {
        let json: fn(&Document<'_>) -> String = |_| "1".to_owned();
        Section::new("silence", Heading::shown("silence"), vec![Block::Raw { name: "n", json }])
    };
    for format in [Format::Text, Format::Lkml, Format::Mmtests, Format::Markdown, Format::Html] {
        assert_eq!(written(vec![silent()], format), written(Vec::new(), format), "{format}");
    }
}

#[test]
fn figures_give_way_to_tables_and_warnings_come_first() {
    let of = |weight| unheard_of().of_weight(weight);
    for format in [Format::Lkml, Format::Mmtests] {
        assert!(!written(vec![of(Weight::Figures)], format).contains("wolf"), "{format}");
    }
    let page = written(vec![of(Weight::Warning)], Format::Html);
    let (wolf, numbers) = (page.find("<strong>The wolf</strong>"), page.find("<h2>Numbers</h2>"));
    assert!(wolf.is_some() && wolf < numbers, "{wolf:?} {numbers:?}");
    let folded = written(vec![of(Weight::Reference)], Format::Markdown);
    assert!(folded.contains("<details><summary>The wolf</summary>\n\n- seen in"), "{folded}");
}

#[test]
fn no_format_names_a_section() {
    let formats = [
        include_str!("text.rs"),
        include_str!("screen.rs"),
        include_str!("page.rs"),
        include_str!("page_blocks.rs"),
        include_str!("markdown.rs"),
        include_str!("html/mod.rs"),
        include_str!("html/blocks.rs"),
        include_str!("html/figures.rs"),
        include_str!("html/tables.rs"),
        include_str!("lkml/mod.rs"),
        include_str!("mmtests.rs"),
        include_str!("csv.rs"),
        include_str!("json.rs"),
    ];
    for line in formats.iter().flat_map(|text| text.lines()) {
        assert!(!line.contains("sections::") || line.contains("screen::sections("), "{line}");
    }
}
