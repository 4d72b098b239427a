//! Lines of text in a given width: what text, lkml and mmtests have in common.
//!
//! Enters: words. Leaves: lines, in ASCII when `plain`. It must not know which format asks; what a block looks like in lines stands in
//! [`super::page_blocks`].

use std::borrow::Cow;

use anstyle::{AnsiColor, Style};

use super::layout::{ascii, fold_lines, width, wrap};
use super::verdict_words::Tone;

/// A width, and whether colour and letters beyond ASCII may be used.
pub(super) struct Page {
    /// Most columns of a line.
    pub(super) columns: usize,
    /// ANSI colours.
    pub(super) colour: bool,
    /// ASCII only.
    pub(super) plain: bool,
    /// Each verdict has a sentence: no table has it.
    pub(super) each_verdict: bool,
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
    pub(super) fn lines(&self, out: &mut String, text: &str, indent: &str) {
        out.push_str(&fold_lines(&self.letters(text), self.columns, indent));
    }

    /// The mark of footnotes: ` ¹ ²`, or ` [1] [2]` in ASCII.
    pub(super) fn mark(&self, notes: &[usize]) -> String {
        notes.iter().map(|n| format!(" {}", self.number(*n))).collect()
    }

    fn number(&self, n: usize) -> String {
        if self.plain { format!("[{n}]") } else { superscript(n) }
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
}

/// A number in raised digits.
fn superscript(n: usize) -> String {
    const RAISED: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    n.to_string().chars().filter_map(|c| c.to_digit(10)).map(|digit| RAISED[digit as usize]).collect()
}
