//! What blocks look like on the page.
//!
//! Enters: blocks of any section. Leaves: HTML. It must not know which section a block is of; of that it knows the weight only.

use super::super::document::Document;
use super::super::html_text::escape;
use super::super::section::{Block, List, Sentence, Transcript, Verdicts, Weight, capital};
use super::super::verdict_words::Tone;
use super::super::words::count;
use super::{figures, tables};

/// Footnotes that are there before anything is unfolded.
const MOST_FOOTNOTES: usize = 4;

/// Footnote marks as links.
pub(super) fn marks(notes: &[usize]) -> String {
    let links: Vec<String> =
        notes.iter().map(|n| format!("<a href=\"#note-{n}\" aria-label=\"note {n}\">{n}</a>")).collect();
    if links.is_empty() { String::new() } else { format!("<sup>{}</sup>", links.join(" ")) }
}

fn glyph(tone: Tone) -> &'static str {
    match tone {
        Tone::Better => "▲",
        Tone::Worse => "▼",
        Tone::Same => "=",
        Tone::Unclear => "?",
    }
}

/// One block; nothing for one that a page has no form for.
pub(super) fn block(out: &mut String, document: &Document<'_>, item: &Block, weight: Weight) {
    match item {
        Block::Footnotes => footnotes(out, &document.footnotes),
        Block::Pictures(draw) => {
            draw(document).iter().for_each(|drawings| figures::all(out, document, drawings));
        }
        Block::Folded { summary, open, blocks } => {
            let mut body = String::new();
            blocks.iter().for_each(|item| block(&mut body, document, item, weight));
            folded(out, summary, *open, &body);
        }
        words_alone => words(out, words_alone, weight),
    }
}

/// One block that says all by itself; nothing for one that takes something from its document.
pub(super) fn words(out: &mut String, item: &Block, weight: Weight) {
    match item {
        Block::Verdicts(item) => verdicts(out, item),
        Block::Table(item) => tables::table(out, item),
        Block::List(item) => list(out, item, weight),
        Block::Remarks(sentences) => sentences
            .iter()
            .for_each(|text| out.push_str(&format!("<p class=\"muted\">{}.</p>\n", escape(text)))),
        Block::Key(text) | Block::Legend(text) => {
            out.push_str(&format!("<p class=\"muted\">{}</p>\n", escape(text)));
        }
        Block::Transcripts(item) => item.all.iter().for_each(|one| transcript(out, one)),
        Block::Command(text) => out.push_str(&format!("<pre class=\"wrap\">{}</pre>\n", escape(text))),
        Block::Listing { lead, text, .. } => {
            folded(out, lead, false, &format!("<pre>{}</pre>\n", escape(text.trim_end())));
        }
        Block::Facts(item) => tables::facts(out, &item.all),
        Block::Footnotes
        | Block::Pictures(_)
        | Block::Folded { .. }
        | Block::Withheld(_)
        | Block::Raw { .. }
        | Block::Column { .. } => {}
    }
}

/// What is there when unfolded; nothing where there is nothing in it.
pub(super) fn folded(out: &mut String, summary: &str, open: bool, body: &str) {
    if !body.is_empty() {
        let open = if open { " open" } else { "" };
        out.push_str(&format!("<details{open}><summary>{}</summary>\n{body}</details>\n", escape(summary)));
    }
}

/// Few sentences, and where rows share them one a row when unfolded.
fn verdicts(out: &mut String, verdicts: &Verdicts) {
    if let Some(tally) = &verdicts.tally {
        out.push_str(&format!("<p class=\"tally\">{}</p>\n", escape(tally)));
    }
    if verdicts.sentences.is_empty() {
        out.push_str(&format!("<p>{}.</p>\n", escape(&capital(verdicts.otherwise))));
    }
    sentences(out, &verdicts.sentences);
    if verdicts.each != verdicts.sentences {
        let mut each = String::new();
        sentences(&mut each, &verdicts.each);
        folded(out, "a sentence for each comparison", false, &each);
    }
}

/// A sentence a line, the word of its verdict before it.
fn sentences(out: &mut String, sentences: &[Sentence]) {
    let few = if sentences.len() <= 3 { " few" } else { "" };
    out.push_str(&format!("<ul class=\"verdicts{few}\">\n"));
    for sentence in sentences {
        out.push_str(&format!(
            "<li><span class=\"pill {}\"><span aria-hidden=\"true\">{}</span> {}</span><span>{}{}</span></li>\n",
            sentence.tone.name(),
            glyph(sentence.tone),
            escape(sentence.word),
            escape(&sentence.text),
            marks(&sentence.notes)
        ));
    }
    out.push_str("</ul>\n");
}

/// Points; in a warning paragraphs, below a caption of its own points as on a page of text.
fn list(out: &mut String, list: &List, weight: Weight) {
    let lines =
        list.lines.iter().map(|line| line.written(escape, |code| format!("<code>{}</code>", escape(code))));
    if weight == Weight::Warning {
        lines.for_each(|line| out.push_str(&format!("<p>{line}</p>\n")));
        return;
    }
    if list.lines.is_empty() {
        return;
    }
    let class = match &list.caption {
        Some(caption) => {
            out.push_str(&format!("<p class=\"muted\">{}</p>\n", escape(caption)));
            "ranking"
        }
        None => "notes",
    };
    out.push_str(&format!("<ul class=\"{class}\">\n"));
    lines.for_each(|line| out.push_str(&format!("<li>{line}</li>\n")));
    out.push_str("</ul>\n");
}

fn footnotes(out: &mut String, footnotes: &[String]) {
    if footnotes.is_empty() {
        return;
    }
    let mut list = "<ol class=\"notes\">\n".to_owned();
    for (at, text) in footnotes.iter().enumerate() {
        list.push_str(&format!("<li id=\"note-{}\">{}</li>\n", at + 1, escape(text)));
    }
    list.push_str("</ol>\n");
    if footnotes.len() <= MOST_FOOTNOTES {
        out.push_str(&list);
    } else {
        // A browser unfolds what a link leads to.
        folded(out, &format!("{} to single rows", count(footnotes.len() as u64, "note")), false, &list);
    }
}

fn transcript(out: &mut String, transcript: &Transcript) {
    out.push_str(&format!("<p>{}</p>\n", escape(&transcript.sentence)));
    let mut text = String::new();
    if !transcript.command.is_empty() {
        text.push_str(&format!("$ {}\n", transcript.command));
    }
    text.push_str(&transcript.output);
    if !text.trim().is_empty() {
        out.push_str(&format!("<pre class=\"wrap\">{}</pre>\n", escape(text.trim_end())));
    }
}
