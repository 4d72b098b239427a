//! Text for a terminal and for pasting: never wider than asked, colour only when asked.

use super::document::Document;
use super::layout::{fold_lines, left, right, shorten, width, wrap};
use super::table::{Table, TableRow};
use super::words::Tone;
use anstyle::{AnsiColor, Style};

/// Lines of a job's text that are shown; the rest is only counted.
const MOST_JOB_LINES: usize = 40;
/// Facts of the host named in text, by the beginning of their names; JSON and HTML have all.
const TOLD_FACTS: [&str; 12] = [
    "cpu.model",
    "cpu.count",
    "cpu.governor",
    "cpu.boost",
    "cpu.smt",
    "memory",
    "virt",
    "kernel.release",
    "device",
    "queue.scheduler",
    "filesystem",
    "mount",
];

/// Writes the document in at most `columns` columns.
pub(super) fn render(document: &Document<'_>, columns: usize, colour: bool) -> String {
    let page = Page { columns, colour };
    let mut out = String::new();
    page.paragraph(&mut out, &page.bold(&wrap(&document.title, columns, "", "  ")));
    page.paragraph(&mut out, &wrap(&document.summary, columns, "", ""));
    page.verdicts(&mut out, document);
    for table in &document.tables {
        page.table(&mut out, table);
    }
    for table in &document.exploratory {
        page.table(&mut out, table);
    }
    if document.exploratory_hidden > 0 {
        let n = document.exploratory_hidden;
        let text = format!("{n} other comparisons show no clear difference; --all-metrics lists them");
        page.block(&mut out, &wrap(&text, columns, "", ""));
    }
    page.footnotes(&mut out, &document.footnotes);
    page.list(&mut out, "notes", document.notes.iter().chain(document.noise.iter()).map(String::as_str));
    page.differences(&mut out, document);
    page.failures(&mut out, document);
    page.host(&mut out, document);
    page.repeat(&mut out, document);
    out
}

struct Page {
    columns: usize,
    colour: bool,
}

impl Page {
    fn paint(&self, text: &str, style: Style) -> String {
        if self.colour { format!("{style}{text}{style:#}") } else { text.to_owned() }
    }

    fn bold(&self, text: &str) -> String {
        self.paint(text, Style::new().bold())
    }

    fn tone(&self, text: &str, tone: Tone) -> String {
        let colour = match tone {
            Tone::Better => AnsiColor::Green,
            Tone::Worse => AnsiColor::Red,
            Tone::Same => AnsiColor::Blue,
            Tone::Unclear => AnsiColor::Yellow,
        };
        self.paint(text, Style::new().fg_color(Some(colour.into())))
    }

    fn paragraph(&self, out: &mut String, text: &str) {
        out.push_str(text);
        out.push('\n');
    }

    fn block(&self, out: &mut String, text: &str) {
        out.push('\n');
        self.paragraph(out, text);
    }

    fn verdicts(&self, out: &mut String, document: &Document<'_>) {
        out.push('\n');
        if let Some(tally) = &document.tally {
            self.paragraph(out, &self.bold(&wrap(tally, self.columns, "", "")));
        }
        for sentence in &document.verdicts {
            let text = wrap(&sentence.text, self.columns, "  ", "    ");
            self.paragraph(out, &self.tone(&text, sentence.tone));
        }
        if document.verdicts.is_empty() {
            self.paragraph(out, "  nothing to compare: no trial has a value of the metric that decides");
        }
    }

    fn table(&self, out: &mut String, table: &Table) {
        self.block(out, &self.bold(&wrap(&table.caption, self.columns, "", "  ")));
        out.push_str(&self.table_lines(table));
    }

    /// The table's lines; labels that leave no room for the values go on lines of their own above them.
    fn table_lines(&self, table: &Table) -> String {
        let most_head = 12;
        let heads: Vec<String> = table.columns.iter().map(|head| shorten(head, most_head)).collect();
        let values: Vec<usize> = (0..heads.len())
            .map(|at| table.rows.iter().map(|row| width(&row.cells[at])).fold(width(&heads[at]), usize::max))
            .collect();
        let marks = table.rows.iter().map(|row| width(&mark(row))).max().unwrap_or(0);
        let taken: usize = values.iter().sum::<usize>() + 2 * (values.len() - 1) + marks;
        let labels: Vec<usize> = (0..table.labels.len())
            .map(|at| {
                table.rows.iter().map(|row| width(&row.labels[at])).fold(width(&table.labels[at]), usize::max)
            })
            .collect();
        let wanted: usize = labels.iter().map(|w| w + 2).sum();
        let room = self.columns.saturating_sub(taken);
        let stacked = wanted > room && room < 24.min(wanted);
        let shortened = if stacked { Vec::new() } else { share(&labels, room) };
        let gap = if taken + if stacked { 2 } else { 0 } > self.columns { " " } else { "  " };
        let line = |labels: &[String], cells: &[String]| {
            let mut line = String::new();
            for (label, columns) in labels.iter().zip(&shortened) {
                line.push_str(&left(&shorten(label, *columns), *columns));
                line.push_str("  ");
            }
            if stacked {
                line.push_str("  ");
            }
            for (at, cell) in cells.iter().enumerate() {
                if at > 0 {
                    line.push_str(gap);
                }
                if at + 1 == cells.len() {
                    line.push_str(&left(cell, values[at]));
                } else {
                    line.push_str(&right(cell, values[at]));
                }
            }
            line
        };
        let mut out = String::new();
        out.push_str(&self.paint(line(&table.labels, &heads).trim_end(), Style::new().dimmed()));
        out.push('\n');
        for row in &table.rows {
            if stacked {
                out.push_str(&wrap(&stacked_label(table, row), self.columns, "", "  "));
                out.push('\n');
            }
            let text = line(&row.labels, &row.cells);
            let verdict_at = text.len()
                - text.chars().rev().take(values[values.len() - 1]).map(char::len_utf8).sum::<usize>();
            let (numbers, verdict) = text.split_at(verdict_at);
            out.push_str(numbers);
            out.push_str(&self.tone(verdict.trim_end(), row.tone));
            out.push_str(&mark(row));
            out.push('\n');
        }
        out
    }

    fn footnotes(&self, out: &mut String, footnotes: &[String]) {
        if footnotes.is_empty() {
            return;
        }
        out.push('\n');
        for (at, text) in footnotes.iter().enumerate() {
            let first = format!("{} ", superscript(at + 1));
            let rest = " ".repeat(width(&first));
            self.paragraph(out, &wrap(text, self.columns, &first, &rest));
        }
    }

    fn list<'t>(&self, out: &mut String, head: &str, items: impl Iterator<Item = &'t str>) {
        let mut items = items.peekable();
        if items.peek().is_none() {
            return;
        }
        self.block(out, &self.bold(head));
        for item in items {
            self.paragraph(out, &wrap(item, self.columns, "  ", "    "));
        }
    }

    fn differences(&self, out: &mut String, document: &Document<'_>) {
        let lines: Vec<String> = document
            .differences
            .iter()
            .map(|difference| {
                let arms: Vec<String> = difference
                    .values
                    .iter()
                    .map(|(arm, value)| format!("{}: {value}", document.arm(arm)))
                    .collect();
                format!("{}: {}", difference.fact, arms.join("; "))
            })
            .collect();
        self.list(out, "arms differ in what no factor declares", lines.iter().map(String::as_str));
    }

    fn failures(&self, out: &mut String, document: &Document<'_>) {
        if document.failures.is_empty() {
            return;
        }
        self.block(out, &self.bold("trials without values"));
        for failure in &document.failures {
            self.paragraph(out, &wrap(&failure.sentence(), self.columns, "  ", "    "));
            if !failure.command.is_empty() {
                out.push_str(&fold_lines(&failure.command, self.columns, "    $ "));
            }
            let lines: Vec<&str> = failure.output.lines().collect();
            let last = lines[lines.len().saturating_sub(3)..].join("\n");
            out.push_str(&fold_lines(&last, self.columns, "    | "));
        }
    }

    fn host(&self, out: &mut String, document: &Document<'_>) {
        let told: Vec<String> = document
            .host
            .iter()
            .filter(|(name, _)| {
                document.host.len() <= 12 || TOLD_FACTS.iter().any(|told| name.starts_with(told))
            })
            .map(|(name, value)| format!("{name} {value}"))
            .collect();
        if told.is_empty() {
            return;
        }
        self.block(out, &self.bold("host"));
        self.paragraph(out, &wrap(&told.join(" · "), self.columns, "  ", "  "));
    }

    fn repeat(&self, out: &mut String, document: &Document<'_>) {
        let repeat = &document.repeat;
        if repeat.command.is_empty() && repeat.job.is_none() {
            return;
        }
        let seed = repeat.seed.map_or(String::new(), |seed| format!(" (seed {seed})"));
        self.block(out, &self.bold(&format!("to repeat it{seed}")));
        if !repeat.command.is_empty() {
            out.push_str(&fold_lines(&repeat.command, self.columns, "  "));
        }
        if let Some(job) = &repeat.job {
            let lines: Vec<&str> = job.lines().collect();
            self.paragraph(out, "  with this job:");
            let shown = &lines[..lines.len().min(MOST_JOB_LINES)];
            out.push_str(&fold_lines(&shown.join("\n"), self.columns, "    "));
            if lines.len() > MOST_JOB_LINES {
                let more = lines.len() - MOST_JOB_LINES;
                self.paragraph(out, &format!("    ({more} more lines)"));
            }
        }
    }
}

/// `write=append, io_size=4K`: a row's labels on a line of their own.
fn stacked_label(table: &Table, row: &TableRow) -> String {
    let parts: Vec<String> = table
        .labels
        .iter()
        .zip(&row.labels)
        .filter(|(_, label)| !label.is_empty())
        .map(|(head, label)| if head == "metric" { label.clone() } else { format!("{head}={label}") })
        .collect();
    parts.join(", ")
}

/// Column widths for labels so that together (two blanks behind each) they fit into `room`: the widest give way.
fn share(wanted: &[usize], room: usize) -> Vec<usize> {
    let mut widths = wanted.to_vec();
    while widths.iter().map(|w| w + 2).sum::<usize>() > room {
        match widths.iter_mut().max() {
            Some(widest) if *widest > 4 => *widest -= 1,
            _ => break,
        }
    }
    widths
}

/// The numbers of a row's footnotes, raised: ` ¹˒²`.
fn mark(row: &TableRow) -> String {
    if row.notes.is_empty() {
        return String::new();
    }
    let notes: Vec<String> = row.notes.iter().map(|n| superscript(*n)).collect();
    format!(" {}", notes.join(" "))
}

/// A number in raised digits.
pub(super) fn superscript(n: usize) -> String {
    n.to_string()
        .chars()
        .map(|c| match c {
            '1' => '¹',
            '2' => '²',
            '3' => '³',
            '4' => '⁴',
            '5' => '⁵',
            '6' => '⁶',
            '7' => '⁷',
            '8' => '⁸',
            '9' => '⁹',
            _ => '⁰',
        })
        .collect()
}
