//! The parts of the page that are words and tables.

use super::super::document::Document;
use super::super::html_text::escape;
use super::super::page::fact_text;
use super::super::table::Table;
use super::super::words::Tone;

/// Tables of what does not decide that are there before anything is unfolded.
const MOST_UNFOLDED: usize = 2;

/// Footnote marks as links.
fn marks(notes: &[usize]) -> String {
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

/// One sentence a row, the word of its verdict before it.
pub(super) fn verdicts(out: &mut String, document: &Document<'_>) {
    out.push_str("<section aria-label=\"verdict\">\n");
    if let Some(tally) = &document.tally {
        out.push_str(&format!("<p class=\"tally\">{}</p>\n", escape(tally)));
    }
    if document.verdicts.is_empty() {
        out.push_str("<p>Nothing to compare: no trial has a value of the metric that decides.</p>\n");
    }
    let few = if document.headlines.len() <= 3 { " few" } else { "" };
    out.push_str(&format!("<ul class=\"verdicts{few}\">\n"));
    for sentence in &document.headlines {
        out.push_str(&format!(
            "<li><span class=\"pill {}\"><span aria-hidden=\"true\">{}</span> {}</span><span>{}{}</span></li>\n",
            sentence.tone.name(),
            glyph(sentence.tone),
            escape(sentence.word),
            escape(&sentence.text),
            marks(&sentence.notes)
        ));
    }
    out.push_str("</ul>\n</section>\n");
}

/// The order of three or more arms, one item a row.
pub(super) fn rankings(out: &mut String, document: &Document<'_>) {
    for ranking in &document.rankings {
        out.push_str(&format!(
            "<section aria-label=\"ranking\">\n<p class=\"muted\">{}</p>\n<ul class=\"ranking\">\n",
            escape(&ranking.caption)
        ));
        for line in &ranking.lines {
            out.push_str(&format!("<li>{}</li>\n", escape(line)));
        }
        out.push_str("</ul>\n</section>\n");
    }
}

/// What differs between arms although nobody declared it: it may be the cause, so it stands before the numbers.
pub(super) fn differences(out: &mut String, document: &Document<'_>) {
    if document.differences.is_empty() {
        return;
    }
    out.push_str("<div class=\"warn\" role=\"note\">\n<p><strong>Arms differ in what no factor declares</strong></p>\n");
    for difference in document.differences {
        let arms: Vec<String> = difference
            .values
            .iter()
            .map(|(arm, value)| format!("<code>{}</code> for {}", escape(value), escape(&document.arm(arm))))
            .collect();
        out.push_str(&format!("<p><code>{}</code>: {}</p>\n", escape(&difference.fact), arms.join("; ")));
    }
    out.push_str("</div>\n");
}

/// The tables of the metrics that decide.
pub(super) fn tables(out: &mut String, document: &Document<'_>) {
    if document.tables.is_empty() {
        return;
    }
    out.push_str(&format!("<section>\n<h2>Numbers{}</h2>\n", document.so_far()));
    for item in &document.tables {
        table(out, item);
    }
    out.push_str(
        "<p class=\"muted\">change: of the typical trial (Hodges–Lehmann), with its interval; mean: ratio of the mean \
         values.</p>\n",
    );
    for item in document.alone.iter().chain(&document.beside) {
        table(out, item);
    }
    out.push_str("</section>\n");
}

fn table(out: &mut String, table: &Table) {
    let caption = escape(&table.caption);
    out.push_str(&format!(
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{caption}\">\n<table>\n<caption>{caption}\
         </caption>\n<thead><tr>"
    ));
    for head in &table.labels {
        out.push_str(&format!("<th scope=\"col\" class=\"left\">{}</th>", escape(head)));
    }
    for (at, head) in table.columns.iter().enumerate() {
        // The first two are arms, whose names may be long.
        let class = if at < 2 { " class=\"arm\"" } else { "" };
        out.push_str(&format!("<th scope=\"col\"{class}>{}</th>", escape(head)));
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    for row in &table.rows {
        out.push_str("<tr>");
        // On a phone the heads stand before the cells.
        for (label, head) in row.labels.iter().zip(&table.labels) {
            out.push_str(&format!("<th scope=\"row\" data-head=\"{}\">{}</th>", escape(head), escape(label)));
        }
        for (cell, head) in row.cells.iter().zip(&table.columns) {
            if head == "verdict" {
                let tone = row.tone.name();
                out.push_str(&format!(
                    "<td class=\"verdict {tone}\">{}{}</td>",
                    escape(cell),
                    marks(&row.notes)
                ));
            } else {
                out.push_str(&format!("<td data-head=\"{}\">{}</td>", escape(head), escape(cell)));
            }
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody>\n</table>\n</div>\n");
}

/// The tables of the metrics that only accompany, folded when there are many.
pub(super) fn exploratory(out: &mut String, document: &Document<'_>) {
    if document.exploratory.is_empty() && document.left_out.is_empty() {
        return;
    }
    out.push_str(&format!("<section>\n<h2>Other metrics{}</h2>\n", document.so_far()));
    out.push_str(if document.so_far().is_empty() {
        "<p class=\"muted\">Exploratory: false discoveries are held to 5 % over all of them together, and none decides.</p>\n"
    } else {
        "<p class=\"muted\">Exploratory: none decides.</p>\n"
    });
    let open = if document.exploratory.len() <= MOST_UNFOLDED { " open" } else { "" };
    if !document.exploratory.is_empty() {
        out.push_str(&format!("<details{open}><summary>Metrics shown</summary>\n"));
        for item in &document.exploratory {
            table(out, item);
        }
        out.push_str("</details>\n");
    }
    for sentence in &document.left_out {
        out.push_str(&format!("<p class=\"muted\">{}.</p>\n", escape(sentence)));
    }
    out.push_str("</section>\n");
}

/// Footnotes, notes and the noise floor.
pub(super) fn notes(out: &mut String, document: &Document<'_>) {
    if document.footnotes.is_empty() && document.notes.is_empty() && document.noise.is_none() {
        return;
    }
    out.push_str("<section>\n<h2>Notes</h2>\n");
    if !document.footnotes.is_empty() {
        out.push_str("<ol class=\"notes\">\n");
        for (at, text) in document.footnotes.iter().enumerate() {
            out.push_str(&format!("<li id=\"note-{}\">{}</li>\n", at + 1, escape(text)));
        }
        out.push_str("</ol>\n");
    }
    if !document.notes.is_empty() || document.noise.is_some() {
        out.push_str("<ul class=\"notes\">\n");
        for text in document.notes.iter().chain(&document.noise) {
            out.push_str(&format!("<li>{}</li>\n", escape(text)));
        }
        out.push_str("</ul>\n");
    }
    out.push_str("</section>\n");
}

/// Trials without values, with what to repeat by hand.
pub(super) fn failures(out: &mut String, document: &Document<'_>) {
    if document.failures.is_empty() {
        return;
    }
    out.push_str("<section>\n<h2>Trials that do not count</h2>\n");
    for failure in &document.failures {
        out.push_str(&format!("<p>{}</p>\n", escape(&failure.sentence())));
        let mut text = String::new();
        if !failure.command.is_empty() {
            text.push_str(&format!("$ {}\n", failure.command));
        }
        text.push_str(&failure.output);
        if !text.trim().is_empty() {
            out.push_str(&format!("<pre class=\"wrap\">{}</pre>\n", escape(text.trim_end())));
        }
    }
    out.push_str("</section>\n");
}

/// The exact command and job.
pub(super) fn repeat(out: &mut String, document: &Document<'_>) {
    let repeat = &document.repeat;
    if repeat.command.is_empty() && repeat.job.is_none() {
        return;
    }
    out.push_str("<section>\n<h2>To repeat it</h2>\n");
    if !repeat.command.is_empty() {
        out.push_str(&format!("<pre class=\"wrap\">{}</pre>\n", escape(&repeat.command)));
    }
    if let Some(seed) = repeat.seed {
        out.push_str(&format!("<p class=\"muted\">seed {seed}</p>\n"));
    }
    if let Some(job) = &repeat.job {
        out.push_str(&format!("<p>with this job:</p>\n<pre>{}</pre>\n", escape(job.trim_end())));
    }
    out.push_str("</section>\n");
}

/// All facts; those in which arms differ are marked.
pub(super) fn host(out: &mut String, document: &Document<'_>) {
    if document.host.is_empty() {
        return;
    }
    let facts = super::super::document::count(document.host.len() as u64, "fact");
    out.push_str(&format!(
        "<section>\n<h2>Host</h2>\n<details><summary>{facts}</summary>\n<div class=\"scroll\"><table class=\"facts\">\n<tbody>\n"
    ));
    for (name, value) in &document.host {
        let difference = document.differences.iter().find(|difference| difference.fact == *name);
        let (class, text) = match difference {
            Some(difference) => {
                let values: Vec<String> = difference
                    .values
                    .iter()
                    .map(|(arm, value)| format!("{}: {value}", document.arm(arm)))
                    .collect();
                (" class=\"differs\"", format!("{} (arms differ)", values.join("; ")))
            }
            None => ("", fact_text(name, value)),
        };
        out.push_str(&format!(
            "<tr{class}><th scope=\"row\">{}</th><td>{}</td></tr>\n",
            escape(name),
            escape(&text)
        ));
    }
    out.push_str("</tbody>\n</table></div>\n</details>\n</section>\n");
}

/// What made this page.
pub(super) fn footer(out: &mut String, document: &Document<'_>) {
    let version = &document.run.assay_version;
    out.push_str(&format!(
        "<footer>Made by assay {}. This page needs no network and no script.</footer>\n",
        escape(version)
    ));
}
