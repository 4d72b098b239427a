//! The only way out: whatever is printed or written for people passes here, and nothing of others acts on a terminal.
//!
//! Enters: text with names, paths, output of programs in it. Leaves: the same text with control and invisible format characters
//! spelled out (`\x1b`, `\u{202e}`), on standard output, standard error or for a file. It must not know which command writes.

use std::borrow::Cow;
use std::io::{IsTerminal, Write};

use super::word_wrap;

/// What a text is, and so how characters that act are spelled in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Words: `\x1b`.
    Plain,
    /// Words with assay's own colours, which stay. Whoever makes such a text has spelled out the parts that are not assay's.
    Styled,
    /// JSON: `\u001b`, which reads back as the same text.
    Json,
    /// Cells that are asked for as they are: nothing is changed in a file or a pipe; a terminal gets [`Form::Plain`].
    Raw,
}

/// Whether a character does something else than show: control characters but for line end and tab, and format characters that
/// reorder, join or hide text (Unicode's class Cf and line separators).
#[must_use]
pub fn acts(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        c if c.is_ascii() => c.is_ascii_control(),
        '\u{80}'..='\u{9f}' | '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' => true,
        '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' => true,
        '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e007f}' => true,
        _ => false,
    }
}

/// `\x1b`, `\u{202e}`.
fn spelled(c: char, out: &mut String) {
    let number = u32::from(c);
    out.push_str(&if number < 0x100 { format!("\\x{number:02x}") } else { format!("\\u{{{number:x}}}") });
}

/// `\u001b`, or two of them.
fn spelled_in_json(c: char, out: &mut String) {
    for unit in c.encode_utf16(&mut [0; 2]) {
        out.push_str(&format!("\\u{unit:04x}"));
    }
}

/// The text with every character that acts spelled out; line ends and tabs stay.
#[must_use]
pub fn visible(text: &str) -> Cow<'_, str> {
    replaced(text, acts, spelled)
}

/// The same in one line: line ends and tabs are spelled out, too.
#[must_use]
pub fn visible_line(text: &str) -> Cow<'_, str> {
    replaced(text, |c| acts(c) || matches!(c, '\n' | '\t'), spelled)
}

fn replaced(text: &str, is_one: impl Fn(char) -> bool, put: impl Fn(char, &mut String)) -> Cow<'_, str> {
    if !text.contains(&is_one) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_one(c) { put(c, &mut out) } else { out.push(c) }
    }
    Cow::Owned(out)
}

/// The length of a colour, `ESC [ 1 ; 31 m`, at the start of a text.
fn colour(text: &str) -> Option<usize> {
    let rest = text.strip_prefix("\u{1b}[")?;
    let end = rest.find(|c: char| !(c.is_ascii_digit() || c == ';'))?;
    rest[end..].starts_with('m').then_some(2 + end + 1)
}

/// A text as it is written in its form.
#[must_use]
pub fn harmless(text: &str, form: Form) -> Cow<'_, str> {
    match form {
        Form::Plain => visible(text),
        Form::Json => replaced(text, acts, spelled_in_json),
        Form::Raw => Cow::Borrowed(text),
        Form::Styled => {
            let (mut out, mut rest) = (String::with_capacity(text.len()), text);
            while let Some(at) = rest.find('\u{1b}') {
                out.push_str(&visible(&rest[..at]));
                // What is no colour is an escape like any other.
                let length = colour(&rest[at..]);
                let (begun, left) = rest[at..].split_at(length.unwrap_or(1));
                out.push_str(&if length.is_some() { Cow::Borrowed(begun) } else { visible(begun) });
                rest = left;
            }
            out.push_str(&visible(rest));
            Cow::Owned(out)
        }
    }
}

/// A standard stream behind the edge.
pub struct Edge<W> {
    stream: W,
    form: Form,
}

/// Standard output, for words.
#[must_use]
pub fn out() -> Edge<std::io::StdoutLock<'static>> {
    out_as(Form::Plain)
}

/// Standard output, for a text of that form.
#[must_use]
pub fn out_as(form: Form) -> Edge<std::io::StdoutLock<'static>> {
    let stream = std::io::stdout().lock();
    let form = if form == Form::Raw && stream.is_terminal() { Form::Plain } else { form };
    Edge { stream, form }
}

/// Standard error, for a report that is to be written there.
#[must_use]
pub fn error_output() -> Edge<std::io::Stderr> {
    Edge { stream: std::io::stderr(), form: Form::Plain }
}

/// Standard error, for words about what is done: nobody to read them is no reason to fail, and changes no exit code.
#[must_use]
pub fn err() -> Told {
    Told(error_output())
}

/// Words to somebody who may have gone.
pub struct Told(Edge<std::io::Stderr>);

impl Write for Told {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let _ = self.0.write(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        let _ = self.0.flush();
        Ok(())
    }
}

/// Columns of the terminal on standard output; 80 where there is none, and at most 100, which can still be read.
#[must_use]
pub fn columns() -> usize {
    let size = rustix::termios::tcgetwinsize(std::io::stdout());
    match size.map(|size| usize::from(size.ws_col)) {
        Ok(columns) if columns > 0 => columns.clamp(40, 100),
        _ => 80,
    }
}

/// Columns of the terminal on standard error; `None`: there is none, and lines are nobody's to wrap.
#[must_use]
pub fn error_columns() -> Option<usize> {
    let stream = std::io::stderr();
    let size = if stream.is_terminal() { rustix::termios::tcgetwinsize(&stream).ok() } else { None };
    size.map(|size| usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

/// Writes words to standard error, wrapped to the width of a terminal; nobody to tell is no reason to fail.
pub fn tell(text: &str) {
    let wrapped = error_columns().map(|columns| word_wrap::wrapped(text, columns));
    let _ = writeln!(err(), "{}", wrapped.as_deref().unwrap_or(text));
}

/// Whether colours reach a reader on standard output: a terminal or a wish (NO_COLOR, CLICOLOR_FORCE).
#[must_use]
pub fn colours() -> bool {
    anstream::AutoStream::choice(&std::io::stdout()) != anstream::ColorChoice::Never
}

impl<W: Write> Edge<W> {
    #[cfg(test)]
    fn of(stream: W, form: Form) -> Edge<W> {
        Edge { stream, form }
    }
}

impl<W: Write> Write for Edge<W> {
    /// All of it: text comes in whole pieces, and what is not UTF-8 is shown as U+FFFD.
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.form == Form::Raw {
            return self.stream.write(bytes);
        }
        let text = String::from_utf8_lossy(bytes);
        self.stream.write_all(harmless(&text, self.form).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.stream.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_acts_is_spelled_out_and_the_rest_stays() {
        assert!(matches!(visible("äµ−…\n\tbs=4k"), Cow::Borrowed(_)));
        assert_eq!(visible("\u{1b}]52;c;aGk=\u{7}\u{1b}[2J"), "\\x1b]52;c;aGk=\\x07\\x1b[2J");
        assert_eq!(visible("a\r\u{9b}31mb\u{7f}\0"), "a\\x0d\\x9b31mb\\x7f\\x00");
        assert_eq!(
            visible("\u{202e}\u{2066}\u{200b}\u{feff}\u{e0041}"),
            "\\u{202e}\\u{2066}\\u{200b}\\u{feff}\\u{e0041}"
        );
        assert_eq!(visible_line("a\nb\tc"), "a\\x0ab\\x09c");
    }

    #[test]
    fn json_reads_back_as_the_same_text() {
        let text = "a\u{1b}\u{7f}\u{9b}\u{202e}\u{e0041}\n\"";
        let json = serde_json::to_string_pretty(&[text]).unwrap();
        let written = harmless(&json, Form::Json);
        assert!(!written.chars().any(acts), "{written}");
        assert_eq!(serde_json::from_str::<Vec<String>>(&written).unwrap(), [text]);
    }

    #[test]
    fn of_styled_text_only_colours_stay() {
        let text = "\u{1b}[1m\u{1b}[31mslower\u{1b}[0m \u{1b}[2J\u{1b}]0;t\u{7}\u{1b}\u{1b}[m\u{1b}[3";
        let styled = harmless(text, Form::Styled);
        assert_eq!(styled, "\u{1b}[1m\u{1b}[31mslower\u{1b}[0m \\x1b[2J\\x1b]0;t\\x07\\x1b\u{1b}[m\\x1b[3");
    }

    #[test]
    fn the_writer_spells_out_what_any_formatting_puts_in() {
        let mut written = Vec::new();
        let mut edge = Edge::of(&mut written, Form::Plain);
        let path = "\u{1b}[31m";
        writeln!(edge, "{path}: {}", 7).unwrap();
        edge.write_all(b"\xff\x9b").unwrap();
        assert_eq!(String::from_utf8(written).unwrap(), "\\x1b[31m: 7\n\u{fffd}\u{fffd}");
    }
}
