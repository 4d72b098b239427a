//! Markdown with GitHub's tables and footnotes. All text of others is escaped.

use super::document::Document;
use super::layout::shorten;
use super::section::{Block, Fact, Heading, List, Section, Transcript, Verdicts, Weight, capital};
use super::table::Table;
use super::verdict_words::Tone;

/// Columns of a fact's value: a kernel's command line may have hundreds.
const MOST_VALUE: usize = 120;

/// Writes the document for a pull request or an issue.
pub(super) fn render(document: &Document<'_>) -> String {
    let mut out = of_sections(&document.title, &document.summary, &document.sections);
    if !document.footnotes.is_empty() {
        out.push('\n');
    }
    for (at, text) in document.footnotes.iter().enumerate() {
        out.push_str(&format!("[^{}]: {}\n", at + 1, escape(text)));
    }
    out
}

/// Sections below a title and a line about the whole.
pub(super) fn of_sections(title: &str, summary: &str, sections: &[Section]) -> String {
    let mut out = format!("## {}\n\n{}\n\n", escape(title), escape(summary));
    let last = |section: &&Section| section.weight == Weight::Reference;
    sections.iter().filter(|one| !last(one)).for_each(|one| section(&mut out, one));
    sections.iter().filter(last).for_each(|one| section(&mut out, one));
    out
}

fn section(out: &mut String, section: &Section) {
    let mut body = String::new();
    section.blocks.iter().for_each(|item| block(&mut body, item));
    if body.is_empty() {
        return;
    }
    match (&section.heading, section.weight) {
        (Heading::Shown(text, _), Weight::Reference) => {
            let summary = escape(&capital(text));
            out.push_str(&format!("\n<details><summary>{summary}</summary>\n\n{body}\n</details>\n"));
            return;
        }
        (Heading::Shown(text, beside), _) => heading(out, &capital(text), beside.as_deref()),
        (Heading::Named(text, beside), _) => heading(out, text, beside.as_deref()),
        (Heading::None | Heading::OnPage(_), _) => {}
    }
    out.push_str(&body);
}

fn heading(out: &mut String, text: &str, beside: Option<&str>) {
    let beside = beside.map_or_else(String::new, |beside| format!(" ({})", escape(beside)));
    out.push_str(&format!("\n**{}**{beside}\n\n", escape(text)));
}

/// A block; nothing for one that Markdown has no form for, or that stands at its end.
fn block(out: &mut String, item: &Block) {
    match item {
        Block::Verdicts(item) => verdicts(out, item),
        Block::Table(item) => table(out, item),
        Block::Key(text) => out.push_str(&format!("\n{}\n", escape(text))),
        Block::List(item) => list(out, item),
        Block::Remarks(sentences) => {
            sentences.iter().for_each(|sentence| out.push_str(&format!("\n{}.\n", escape(sentence))));
        }
        Block::Transcripts(item) => item.all.iter().for_each(|one| transcript(out, one)),
        Block::Command(command) => out.push_str(&fence(command, "")),
        Block::Listing { lead, text, .. } => {
            out.push_str(&format!("\n{}\n\n{}", escape(lead), fence(text, "")));
        }
        Block::Facts(item) => facts(out, &item.all),
        Block::Folded { blocks, .. } => blocks.iter().for_each(|item| block(out, item)),
        Block::Legend(_)
        | Block::Footnotes
        | Block::Pictures(_)
        | Block::Withheld(_)
        | Block::Raw { .. }
        | Block::Column { .. } => {}
    }
}

fn verdicts(out: &mut String, verdicts: &Verdicts) {
    if let Some(tally) = &verdicts.tally {
        out.push_str(&format!("**{}**\n\n", escape(tally)));
    }
    for sentence in &verdicts.sentences {
        let marks = marks(&sentence.notes);
        let text = escape(&sentence.text);
        match sentence.tone {
            Tone::Better | Tone::Worse => out.push_str(&format!("- **{text}**{marks}\n")),
            Tone::Same | Tone::Unclear => out.push_str(&format!("- {text}{marks}\n")),
        }
    }
    if verdicts.sentences.is_empty() {
        out.push_str(&format!("{}.\n", escape(&capital(verdicts.otherwise))));
    }
}

fn marks(notes: &[usize]) -> String {
    notes.iter().map(|n| format!("[^{n}]")).collect()
}

fn table(out: &mut String, table: &Table) {
    out.push_str(&format!("\n{}\n\n|", escape(&table.caption)));
    for head in table.labels.iter().chain(&table.columns) {
        out.push_str(&format!(" {} |", escape(&head.text)));
    }
    out.push_str("\n|");
    for _ in &table.labels {
        out.push_str(" :-- |");
    }
    for at in 0..table.columns.len() {
        out.push_str(if at + 1 == table.columns.len() { " :-- |" } else { " --: |" });
    }
    out.push('\n');
    for row in &table.rows {
        out.push('|');
        for label in &row.labels {
            out.push_str(&format!(" {} |", escape(label)));
        }
        for (at, cell) in row.cells.iter().enumerate() {
            let marks = if at + 1 == row.cells.len() { marks(&row.notes) } else { String::new() };
            out.push_str(&format!(" {}{marks} |", escape(cell)));
        }
        out.push('\n');
    }
}

fn list(out: &mut String, list: &List) {
    if let Some(caption) = &list.caption {
        out.push_str(&format!("\n{}:\n\n", escape(caption)));
    }
    list.lines.iter().for_each(|line| out.push_str(&format!("- {}\n", line.written(escape, code))));
}

fn transcript(out: &mut String, transcript: &Transcript) {
    let Transcript { sentence, command, output } = transcript;
    out.push_str(&format!("- {}\n", escape(sentence)));
    let text = match (command.is_empty(), output.is_empty()) {
        (true, true) => return,
        (false, true) => format!("$ {command}"),
        (true, false) => output.clone(),
        (false, false) => format!("$ {command}\n{output}"),
    };
    out.push_str(&format!("\n{}\n", fence(&text, "  ")));
}

fn facts(out: &mut String, facts: &[Fact]) {
    // A table ends what stands above it only behind an empty line.
    out.push_str(if out.is_empty() { "" } else { "\n" });
    out.push_str("| fact | value |\n| :-- | :-- |\n");
    facts.iter().for_each(|fact| {
        let value = shorten(&fact.value, MOST_VALUE);
        out.push_str(&format!("| {} | {} |\n", escape(&fact.name), escape(&value)));
    });
}

/// Text in which nothing is markup.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\\' | '`' | '*' | '_' | '|' | '[' | ']' | '~' | '#' => {
                out.push('\\');
                out.push(character);
            }
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            // A mention would notify whoever bears the name.
            '@' => out.push_str("&#64;"),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

/// A code span that no backtick inside can end.
fn code(text: &str) -> String {
    let ticks = "`".repeat(longest_run(text) + 1);
    let pad = if text.starts_with('`') || text.ends_with('`') || text.is_empty() { " " } else { "" };
    format!("{ticks}{pad}{}{pad}{ticks}", text.replace(['\n', '\r'], " "))
}

/// A fenced block that no line inside can end.
fn fence(text: &str, indent: &str) -> String {
    let ticks = "`".repeat((longest_run(text) + 1).max(3));
    let mut out = format!("{indent}{ticks}\n");
    for line in text.lines() {
        let line: String = line.chars().map(|c| if c.is_control() && c != '\t' { '?' } else { c }).collect();
        out.push_str(&format!("{indent}{line}\n"));
    }
    out.push_str(&format!("{indent}{ticks}\n"));
    out
}

fn longest_run(text: &str) -> usize {
    let (mut longest, mut run) = (0, 0);
    for character in text.chars() {
        run = if character == '`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    longest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_others_is_markup() {
        assert_eq!(escape("a|b*<script>@x"), "a\\|b\\*&lt;script&gt;&#64;x");
        assert_eq!(code("a`b"), "``a`b``");
        assert_eq!(fence("```\nx", ""), "````\n```\nx\n````\n");
    }

    #[test]
    fn a_long_fact_gives_way_in_its_middle() {
        let value = format!("root=/dev/vda1 {} quiet", "x".repeat(600));
        let fact = Fact { name: "kernel.cmdline".to_owned(), value, differs: Vec::new() };
        let mut out = String::new();
        facts(&mut out, &[fact]);
        let line = out.lines().last().unwrap();
        assert!(line.contains("root=/dev/vda1 x") && line.contains("x…x"), "{line}");
        assert!(line.ends_with("x quiet |") && line.chars().count() < 160, "{line}");
    }
}
