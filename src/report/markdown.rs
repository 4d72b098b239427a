//! Markdown with GitHub's tables and footnotes. All text of others is escaped.

use super::document::Document;
use super::table::Table;
use super::words::Tone;

/// Writes the document for a pull request or an issue.
pub(super) fn render(document: &Document<'_>) -> String {
    let mut out = format!("## {}\n\n{}\n\n", escape(&document.title), escape(&document.summary));
    if let Some(tally) = &document.tally {
        out.push_str(&format!("**{}**\n\n", escape(tally)));
    }
    for sentence in &document.headlines {
        let marks = marks(&sentence.notes);
        let text = escape(&sentence.text);
        match sentence.tone {
            Tone::Better | Tone::Worse => out.push_str(&format!("- **{text}**{marks}\n")),
            Tone::Same | Tone::Unclear => out.push_str(&format!("- {text}{marks}\n")),
        }
    }
    if document.verdicts.is_empty() {
        out.push_str("Nothing to compare: no trial has a value of the metric that decides.\n");
    }
    for ranking in &document.rankings {
        out.push_str(&format!("\n{}:\n\n", escape(&ranking.caption)));
        ranking.lines.iter().for_each(|line| out.push_str(&format!("- {}\n", escape(line))));
    }
    for item in
        document.tables.iter().chain(&document.alone).chain(&document.beside).chain(&document.exploratory)
    {
        table(&mut out, item);
    }
    for sentence in &document.left_out {
        out.push_str(&format!("\n{}.\n", escape(sentence)));
    }
    list(&mut out, "Notes", document.notes.iter().chain(&document.noise).map(|note| escape(note)));
    list(&mut out, "Arms differ in what no factor declares", differences(document));
    failures(&mut out, document);
    details(&mut out, document);
    if !document.footnotes.is_empty() {
        out.push('\n');
    }
    for (at, text) in document.footnotes.iter().enumerate() {
        out.push_str(&format!("[^{}]: {}\n", at + 1, escape(text)));
    }
    out
}

fn marks(notes: &[usize]) -> String {
    notes.iter().map(|n| format!("[^{n}]")).collect()
}

fn table(out: &mut String, table: &Table) {
    out.push_str(&format!("\n{}\n\n|", escape(&table.caption)));
    for head in table.labels.iter().chain(&table.columns) {
        out.push_str(&format!(" {} |", escape(head)));
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

fn list(out: &mut String, head: &str, items: impl Iterator<Item = String>) {
    let mut items = items.peekable();
    if items.peek().is_some() {
        out.push_str(&format!("\n**{head}**\n\n"));
    }
    for item in items {
        out.push_str(&format!("- {item}\n"));
    }
}

fn differences<'d>(document: &'d Document<'_>) -> impl Iterator<Item = String> + 'd {
    document.differences.iter().map(|difference| {
        let arms: Vec<String> = difference
            .values
            .iter()
            .map(|(arm, value)| format!("{} for {}", code(value), escape(&document.arm(arm))))
            .collect();
        format!("{}: {}", code(&difference.fact), arms.join("; "))
    })
}

fn failures(out: &mut String, document: &Document<'_>) {
    if document.failures.is_empty() {
        return;
    }
    out.push_str("\n**Trials that do not count**\n\n");
    for failure in &document.failures {
        out.push_str(&format!("- {}\n", escape(&failure.sentence())));
        let text = match (failure.command.is_empty(), failure.output.is_empty()) {
            (true, true) => continue,
            (false, true) => format!("$ {}", failure.command),
            (true, false) => failure.output.clone(),
            (false, false) => format!("$ {}\n{}", failure.command, failure.output),
        };
        out.push_str(&format!("\n{}\n", fence(&text, "  ")));
    }
}

fn details(out: &mut String, document: &Document<'_>) {
    let repeat = &document.repeat;
    if !repeat.command.is_empty() || repeat.job.is_some() {
        let seed = repeat.seed.map_or(String::new(), |seed| format!(" (seed {seed})"));
        out.push_str(&format!("\n**To repeat it**{seed}\n\n"));
        if !repeat.command.is_empty() {
            out.push_str(&fence(&repeat.command, ""));
        }
        if let Some(job) = &repeat.job {
            out.push_str(&format!("\nwith this job:\n\n{}", fence(job, "")));
        }
    }
    if !document.host.is_empty() {
        out.push_str("\n<details><summary>Host</summary>\n\n| fact | value |\n| :-- | :-- |\n");
        for (name, value) in &document.host {
            out.push_str(&format!("| {} | {} |\n", escape(name), escape(value)));
        }
        out.push_str("\n</details>\n");
    }
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
    format!("{ticks}{pad}{}{pad}{ticks}", text.replace(['\n', '\r'], " ").replace('|', "\\|"))
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
}
