//! Lines of text in a given width: the sections that text and lkml (and mmtests' footer) have in common.
//!
//! Enters: parts of a document. Leaves: lines, in ASCII when `plain`. It must not know which format asks.

use std::borrow::Cow;

use anstyle::{AnsiColor, Style};

use super::document::Document;
use super::format::Detail;
use super::layout::{ascii, fold_command, fold_lines, shorten, width, wrap};
use super::words::Tone;
use crate::units::{Unit, format_number};

/// Lines of a job's text that are shown; the rest is only counted.
const MOST_JOB_LINES: usize = 40;
/// Columns of one fact of the host; a longer one is shortened in the middle (JSON and HTML have it whole).
const MOST_FACT: usize = 60;
/// Facts of the host named in text; JSON and HTML have all.
const TOLD_FACTS: [&str; 22] = [
    "cpu.model",
    "cpu.count",
    "cpu.governor",
    "cpu.boost",
    "cpu.smt",
    "memory.total",
    "virt",
    "guest.accelerator",
    "kernel.release",
    "target.device",
    "device",
    "device.kind",
    "device.model",
    "device.size",
    "queue.scheduler",
    "queue.write_cache",
    "fs.type",
    "mkfs.command",
    "mkfs.version",
    "mount.options",
    "io_uring",
    "o_direct",
];

/// What heads the facts in which arms differ and that no factor declares.
pub(super) const UNDECLARED: &str = "arms differ in what no factor declares";

/// A width, and whether colour and letters beyond ASCII may be used.
pub(super) struct Page {
    /// Most columns of a line.
    pub(super) columns: usize,
    /// ANSI colours.
    pub(super) colour: bool,
    /// ASCII only.
    pub(super) plain: bool,
}

impl Page {
    /// Text in the letters this page may use.
    pub(super) fn letters<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if self.plain { Cow::Owned(ascii(text)) } else { Cow::Borrowed(text) }
    }

    fn paint(&self, text: &str, style: Style) -> String {
        if self.colour { format!("{style}{text}{style:#}") } else { text.to_owned() }
    }

    /// Bold where there is colour.
    pub(super) fn bold(&self, text: &str) -> String {
        self.paint(text, Style::new().bold())
    }

    /// Dimmed where there is colour.
    pub(super) fn dim(&self, text: &str) -> String {
        self.paint(text, Style::new().dimmed())
    }

    /// Coloured by what a verdict means, where there is colour.
    pub(super) fn tone(&self, text: &str, tone: Tone) -> String {
        let colour = match tone {
            Tone::Better => AnsiColor::Green,
            Tone::Worse => AnsiColor::Red,
            Tone::Same => AnsiColor::Blue,
            Tone::Unclear => AnsiColor::Yellow,
        };
        self.paint(text, Style::new().fg_color(Some(colour.into())))
    }

    /// Wrapped words with a line end.
    pub(super) fn words(&self, out: &mut String, text: &str, first: &str, rest: &str) {
        out.push_str(&wrap(&self.letters(text), self.columns, first, rest));
        out.push('\n');
    }

    /// A heading behind an empty line.
    pub(super) fn heading(&self, out: &mut String, text: &str) {
        out.push('\n');
        out.push_str(&self.bold(&wrap(&self.letters(text), self.columns, "", "  ")));
        out.push('\n');
    }

    /// Lines kept as they are.
    fn lines(&self, out: &mut String, text: &str, indent: &str) {
        out.push_str(&fold_lines(&self.letters(text), self.columns, indent));
    }

    /// The mark of footnotes: ` ¹ ²`, or ` [1] [2]` in ASCII.
    pub(super) fn mark(&self, notes: &[usize]) -> String {
        notes.iter().map(|n| format!(" {}", self.number(*n))).collect()
    }

    fn number(&self, n: usize) -> String {
        if self.plain { format!("[{n}]") } else { superscript(n) }
    }

    /// The tally and one sentence a row.
    pub(super) fn verdicts(&self, out: &mut String, document: &Document<'_>) {
        out.push('\n');
        if let Some(tally) = &document.tally {
            out.push_str(&self.bold(&wrap(&self.letters(tally), self.columns, "", "")));
            out.push('\n');
        }
        for sentence in &document.headlines {
            // A mark alone on a line would belong to nothing.
            let mark = self.mark(&sentence.notes).replace(' ', "\u{a0}");
            let text = format!("{}{mark}", sentence.text);
            let lines = wrap(&self.letters(&text), self.columns, "  ", "    ");
            out.push_str(&self.tone(&lines, sentence.tone));
            out.push('\n');
        }
        if document.headlines.is_empty() {
            self.words(
                out,
                "nothing to compare: no trial has a value of the metric that decides",
                "  ",
                "  ",
            );
        }
    }

    /// The order of three or more arms, one line a row.
    pub(super) fn rankings(&self, out: &mut String, document: &Document<'_>) {
        for ranking in &document.rankings {
            self.heading(out, &ranking.caption);
            for line in &ranking.lines {
                self.words(out, line, "  ", "    ");
            }
        }
    }

    /// Which exploratory comparisons were left out.
    pub(super) fn hidden(&self, out: &mut String, document: &Document<'_>) {
        if !document.left_out.is_empty() {
            out.push('\n');
        }
        for sentence in &document.left_out {
            self.words(out, sentence, "", "");
        }
    }

    /// Everything below the tables.
    pub(super) fn rest(&self, out: &mut String, document: &Document<'_>) {
        self.footnotes(out, &document.footnotes);
        if document.options.detail == Detail::All {
            super::budget::write(self, out, document);
        }
        self.list(out, "notes", document.notes.iter().chain(&document.noise).map(String::as_str));
        self.differences(out, document);
        self.failures(out, document);
        self.host(out, document);
        self.repeat(out, document);
    }

    /// Footnotes, each behind its number.
    pub(super) fn footnotes(&self, out: &mut String, footnotes: &[String]) {
        if !footnotes.is_empty() {
            out.push('\n');
        }
        for (at, text) in footnotes.iter().enumerate() {
            let first = format!("{} ", self.number(at + 1));
            self.words(out, text, &first, &" ".repeat(width(&first)));
        }
    }

    /// A heading with items behind dashes; nothing where there are none.
    pub(super) fn list<'t>(&self, out: &mut String, head: &str, items: impl Iterator<Item = &'t str>) {
        let mut items = items.peekable();
        if items.peek().is_none() {
            return;
        }
        self.heading(out, head);
        for item in items {
            self.words(out, item, "- ", "  ");
        }
    }

    fn differences(&self, out: &mut String, document: &Document<'_>) {
        let lines = self.difference_lines(document);
        self.list(out, UNDECLARED, lines.iter().map(String::as_str));
    }

    /// Each fact in which arms differ undeclared, with its values.
    pub(super) fn difference_lines(&self, document: &Document<'_>) -> Vec<String> {
        document
            .differences
            .iter()
            .map(|difference| {
                let arms: Vec<String> = difference
                    .values
                    .iter()
                    .map(|(arm, value)| format!("{} for {}", shorten(value, MOST_FACT), document.arm(arm)))
                    .collect();
                format!("{}: {}", difference.fact, arms.join("; "))
            })
            .collect()
    }

    fn failures(&self, out: &mut String, document: &Document<'_>) {
        if document.failures.is_empty() {
            return;
        }
        self.heading(out, "trials that do not count");
        for failure in &document.failures {
            self.words(out, &failure.sentence(), "- ", "  ");
            out.push_str(&fold_command(&self.letters(&failure.command), self.columns, "  $ "));
            let lines: Vec<&str> = failure.output.lines().collect();
            self.lines(out, &lines[lines.len().saturating_sub(3)..].join("\n"), "  | ");
        }
    }

    fn host(&self, out: &mut String, document: &Document<'_>) {
        let fact = |told: &&str| document.host.iter().find(|(name, _)| name == told);
        let facts: Vec<String> = TOLD_FACTS
            .iter()
            .filter_map(fact)
            .map(|(name, value)| format!("{name} {}", each_shortened(&fact_text(name, value))))
            .collect();
        if !facts.is_empty() {
            self.heading(out, "host");
            self.words(out, &facts.join("\u{a0}· "), "  ", "  ");
        }
    }

    /// The command line that repeats the run, behind its heading.
    pub(super) fn command(&self, out: &mut String, document: &Document<'_>) {
        let repeat = &document.repeat;
        if repeat.command.is_empty() && repeat.job.is_none() {
            return;
        }
        let seed = repeat.seed.map_or(String::new(), |seed| format!(" (seed {seed})"));
        self.heading(out, &format!("to repeat it{seed}"));
        out.push_str(&fold_command(&self.letters(&repeat.command), self.columns, "  "));
    }

    fn repeat(&self, out: &mut String, document: &Document<'_>) {
        self.command(out, document);
        let Some(job) = &document.repeat.job else { return };
        let lines: Vec<&str> = job.lines().collect();
        self.words(out, "with this job:", "  ", "  ");
        self.lines(out, &lines[..lines.len().min(MOST_JOB_LINES)].join("\n"), "    ");
        if lines.len() > MOST_JOB_LINES {
            self.words(out, &format!("({} more lines)", lines.len() - MOST_JOB_LINES), "    ", "    ");
        }
    }
}

/// A fact's value as people read it: sizes with their unit.
pub(super) fn fact_text(name: &str, value: &str) -> String {
    let size = matches!(name, "memory.total" | "device.size" | "fs.size_bytes" | "now.memory.available");
    match value.parse::<f64>() {
        Ok(bytes) if size || name.ends_with("_bytes") => format_number(&Unit::Bytes, bytes),
        _ => value.to_owned(),
    }
}

/// A number in raised digits.
pub(super) fn superscript(n: usize) -> String {
    const RAISED: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    n.to_string().chars().filter_map(|c| c.to_digit(10)).map(|digit| RAISED[digit as usize]).collect()
}

/// The values of a fact, each shortened by itself: in what they differ is then still seen.
fn each_shortened(values: &str) -> String {
    values.split(" | ").map(|value| shorten(value, MOST_FACT)).collect::<Vec<_>>().join(" | ")
}
