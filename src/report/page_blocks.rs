//! Sections in lines of text.
//!
//! Enters: sections. Leaves: lines on a [`Page`]. It must not know which section it writes, nor which format asks.

use super::document::Document;
use super::grid;
use super::layout::{fold_command, shorten, wrap};
use super::page::Page;
use super::section::{Block, Facts, Heading, Line, List, Section, Transcript, Verdicts};

/// Lines of a listing that are shown; the rest is only counted.
const MOST_LINES: usize = 40;
/// Lines of a program's output that are shown, the last ones.
const MOST_OUTPUT: usize = 3;
/// Columns of one value; a longer one is shortened in the middle (JSON and HTML have it whole).
const MOST_VALUE: usize = 60;

impl Page {
    /// A section with all its blocks.
    pub(super) fn section(&self, out: &mut String, document: &Document<'_>, section: &Section) {
        self.footnotes_of(out, document, section);
        self.blocks(out, section);
    }

    /// The same of a section in which no footnotes stand.
    pub(super) fn blocks(&self, out: &mut String, section: &Section) {
        self.headed(out, section, |body, block| self.block(body, block));
    }

    /// What is said in a section in lists, tables and commands, without outputs, judgements and footnotes.
    pub(super) fn brief_section(&self, out: &mut String, section: &Section) {
        self.headed(out, section, |body, block| match block {
            Block::List(_) | Block::Table(_) | Block::Command(_) => self.block(body, block),
            Block::Transcripts(transcripts) => self.sentences(body, &transcripts.all),
            _ => {}
        });
    }

    /// How the intervals above are read, where their tables are not shown.
    pub(super) fn keys(&self, out: &mut String, document: &Document<'_>) {
        for block in document.blocks() {
            if let Block::Key(text) = block {
                out.push('\n');
                self.words(out, text, "", "  ");
            }
        }
    }

    /// A section's blocks behind its heading, which stands there only where a block is shown.
    fn headed(&self, out: &mut String, section: &Section, write: impl Fn(&mut String, &Block)) {
        let mut body = String::new();
        section.blocks.iter().for_each(|block| write(&mut body, block));
        if !body.is_empty() {
            self.section_heading(out, &section.heading);
            out.push_str(&body);
        }
    }

    /// Footnotes stand above the heading of their section: they belong to what was said before.
    pub(super) fn footnotes_of(&self, out: &mut String, document: &Document<'_>, section: &Section) {
        if section.blocks.iter().any(|block| matches!(block, Block::Footnotes)) {
            self.footnotes(out, &document.footnotes);
        }
    }

    /// A section's heading, where it has one in text.
    pub(super) fn section_heading(&self, out: &mut String, heading: &Heading) {
        match heading {
            Heading::Shown(text, None) | Heading::Named(text, None) => self.heading(out, text),
            Heading::Shown(text, Some(beside)) | Heading::Named(text, Some(beside)) => {
                self.heading(out, &format!("{text} ({beside})"));
            }
            Heading::None | Heading::OnPage(_) => {}
        }
    }

    /// A block in lines; nothing for one that has no lines.
    pub(super) fn block(&self, out: &mut String, block: &Block) {
        match block {
            Block::Verdicts(verdicts) => self.verdicts(out, verdicts),
            Block::Table(table) => {
                self.heading(out, &table.caption);
                let lines = grid::table(table, self);
                // As wide in ASCII as it was measured.
                let lines = if self.plain { lines.replace('…', "~") } else { lines };
                out.push_str(&self.letters(&lines));
            }
            Block::Key(text) => self.words(out, text, "", "  "),
            Block::List(list) => self.list(out, list),
            Block::Remarks(sentences) => self.remarks(out, sentences),
            Block::Transcripts(transcripts) => {
                transcripts.all.iter().for_each(|transcript| self.transcript(out, transcript));
            }
            Block::Command(command) => {
                out.push_str(&fold_command(&self.letters(command), self.columns, "  "));
            }
            Block::Listing { lead, text, .. } => self.listing(out, lead, text),
            Block::Facts(facts) => self.facts(out, facts),
            Block::Folded { blocks, .. } => blocks.iter().for_each(|block| self.block(out, block)),
            Block::Footnotes
            | Block::Legend(_)
            | Block::Pictures(_)
            | Block::Withheld(_)
            | Block::Raw { .. }
            | Block::Column { .. } => {}
        }
    }

    /// Judgements whose footnotes stand elsewhere.
    pub(super) fn unmarked_verdicts(&self, out: &mut String, verdicts: &Verdicts) {
        let mut verdicts = verdicts.clone();
        verdicts.sentences.iter_mut().chain(&mut verdicts.each).for_each(|one| one.notes.clear());
        self.verdicts(out, &verdicts);
    }

    fn verdicts(&self, out: &mut String, verdicts: &Verdicts) {
        out.push('\n');
        if let Some(tally) = &verdicts.tally {
            out.push_str(&self.bold(&wrap(&self.letters(tally), self.columns, "", "")));
            out.push('\n');
        }
        let told = if self.each_verdict { &verdicts.each } else { &verdicts.sentences };
        for sentence in told {
            // A mark alone on a line would belong to nothing.
            let mark = self.mark(&sentence.notes).replace(' ', "\u{a0}");
            let text = format!("{}{mark}", sentence.text);
            let lines = wrap(&self.letters(&text), self.columns, "  ", "    ");
            out.push_str(&self.tone(&lines, sentence.tone));
            out.push('\n');
        }
        if told.is_empty() {
            self.words(out, verdicts.otherwise, "  ", "  ");
        }
    }

    /// Lines behind dashes, or below the list's own caption.
    pub(super) fn list(&self, out: &mut String, list: &List) {
        let (first, rest) = match &list.caption {
            Some(caption) => {
                self.heading(out, caption);
                ("  ", "    ")
            }
            None => ("- ", "  "),
        };
        list.lines.iter().for_each(|line| self.words(out, &line_text(line), first, rest));
    }

    fn remarks(&self, out: &mut String, sentences: &[String]) {
        if !sentences.is_empty() {
            out.push('\n');
        }
        sentences.iter().for_each(|sentence| self.words(out, sentence, "", ""));
    }

    fn sentences(&self, out: &mut String, transcripts: &[Transcript]) {
        transcripts.iter().for_each(|transcript| self.words(out, &transcript.sentence, "- ", "  "));
    }

    fn transcript(&self, out: &mut String, transcript: &Transcript) {
        self.sentences(out, std::slice::from_ref(transcript));
        out.push_str(&fold_command(&self.letters(&transcript.command), self.columns, "  $ "));
        let lines: Vec<&str> = transcript.output.lines().collect();
        self.lines(out, &lines[lines.len().saturating_sub(MOST_OUTPUT)..].join("\n"), "  | ");
    }

    fn listing(&self, out: &mut String, lead: &str, text: &str) {
        let lines: Vec<&str> = text.lines().collect();
        self.words(out, lead, "  ", "  ");
        self.lines(out, &lines[..lines.len().min(MOST_LINES)].join("\n"), "    ");
        if lines.len() > MOST_LINES {
            self.words(out, &format!("({} more lines)", lines.len() - MOST_LINES), "    ", "    ");
        }
    }

    fn facts(&self, out: &mut String, facts: &Facts) {
        let told = facts.told.iter().filter_map(|at| facts.all.get(*at));
        let told: Vec<String> =
            told.map(|fact| format!("{} {}", fact.name, each_shortened(&fact.value))).collect();
        if !told.is_empty() {
            self.words(out, &told.join("\u{a0}· "), "  ", "  ");
        }
    }
}

/// A line of a list; long values are shortened.
pub(super) fn line_text(line: &Line) -> String {
    line.written(str::to_owned, |code| shorten(code, MOST_VALUE))
}

/// The values of a fact, each shortened by itself: in what they differ is then still seen.
fn each_shortened(values: &str) -> String {
    values.split(" | ").map(|value| shorten(value, MOST_VALUE)).collect::<Vec<_>>().join(" | ")
}
