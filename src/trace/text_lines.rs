//! What all text forms need: lines with numbers, the order of time, numbers out of bytes.
//!
//! Enters: a file. Leaves: its lines; errors with the line's number.

use std::io::Read;

use super::error::TraceError;
use super::window::Window;

/// No tool writes longer lines.
const LONGEST: usize = 64 << 10;

/// The lines of a file.
pub(super) struct Lines<R> {
    window: Window<R>,
    number: u64,
    latest_ns: u64,
    line: Vec<u8>,
}

impl<R: Read> Lines<R> {
    pub(super) fn new(reader: R, name: String) -> Lines<R> {
        Lines { window: Window::new(reader, name), number: 0, latest_ns: 0, line: Vec::new() }
    }

    /// Goes to the next line. Returns whether there is one.
    pub(super) fn advance(&mut self) -> Result<bool, TraceError> {
        self.line.clear();
        let Some(line) = self.window.line(LONGEST)? else { return Ok(false) };
        self.line.extend_from_slice(line);
        self.number += 1;
        Ok(true)
    }

    /// The line without blanks at its end.
    pub(super) fn line(&self) -> &[u8] {
        self.line.trim_ascii_end()
    }

    /// An error with the line's number.
    pub(super) fn damaged(&self, what: impl Into<String>) -> TraceError {
        TraceError::Damaged {
            name: self.window.name().to_owned(),
            place: format!("line {}", self.number),
            what: what.into(),
        }
    }

    /// An error about an event whose text is not what it prints.
    pub(super) fn not_of_event(&self, name: &[u8]) -> TraceError {
        self.damaged(format!("{} does not print this", String::from_utf8_lossy(name)))
    }

    /// Refuses a time before the latest one.
    pub(super) fn in_order(&mut self, time_ns: u64) -> Result<(), TraceError> {
        if time_ns < self.latest_ns {
            return Err(TraceError::OutOfOrder {
                name: self.window.name().to_owned(),
                place: format!("line {}", self.number),
                by_ns: self.latest_ns - time_ns,
            });
        }
        self.latest_ns = time_ns;
        Ok(())
    }
}

/// A line's bytes as far as they are read.
#[derive(Clone, Copy)]
pub(super) struct Words<'a>(pub(super) &'a [u8]);

impl<'a> Words<'a> {
    /// The next word.
    pub(super) fn word(&mut self) -> Option<&'a [u8]> {
        let rest = self.0.trim_ascii_start();
        let length = rest.iter().position(u8::is_ascii_whitespace).unwrap_or(rest.len());
        let (word, rest) = rest.split_at(length);
        self.0 = rest;
        (!word.is_empty()).then_some(word)
    }

    /// Whether the next word is this; it is passed if so.
    pub(super) fn pass(&mut self, expected: &[u8]) -> bool {
        let before = self.0;
        if self.word() == Some(expected) {
            return true;
        }
        self.0 = before;
        false
    }

    /// The next word as a number.
    pub(super) fn number(&mut self) -> Option<u64> {
        number(self.word()?)
    }

    /// What is left, without blanks around it.
    pub(super) fn rest(&self) -> &'a [u8] {
        self.0.trim_ascii()
    }
}

/// Each processor in a line, `[CPU]` behind a blank: the column in front of it, its number, and what follows. A task's name may hold
/// blanks and brackets.
pub(super) fn processors(line: &[u8]) -> impl Iterator<Item = (&[u8], u32, Words<'_>)> {
    let blanks = line.windows(2).enumerate().filter(|(_, pair)| *pair == b" [").map(|(at, _)| at);
    blanks.filter_map(move |blank| {
        let open = blank + 2;
        let close = open + line[open..].iter().position(|byte| *byte == b']')?;
        let cpu = u32::try_from(number(&line[open..close])?).ok()?;
        Some((&line[..blank], cpu, Words(&line[close + 1..])))
    })
}

/// A decimal number.
pub(super) fn number(text: &[u8]) -> Option<u64> {
    if text.is_empty() || text.len() > 20 {
        return None;
    }
    text.iter().try_fold(0u64, |sum, byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        sum.checked_mul(10)?.checked_add(digit)
    })
}

/// A decimal number with a sign.
pub(super) fn signed(text: &[u8]) -> Option<i64> {
    match text.strip_prefix(b"-") {
        Some(digits) => number(digits).and_then(|value| 0i64.checked_sub_unsigned(value)),
        None => number(text).and_then(|value| i64::try_from(value).ok()),
    }
}

/// A hexadecimal number with or without `0x`.
pub(super) fn hexadecimal(text: &[u8]) -> Option<u64> {
    let digits = text.strip_prefix(b"0x").unwrap_or(text);
    u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

/// Seconds with up to nine decimals, as nanoseconds.
pub(super) fn seconds(text: &[u8]) -> Option<u64> {
    let point = text.iter().position(|byte| *byte == b'.')?;
    let (whole, decimals) = (number(&text[..point])?, &text[point + 1..]);
    let scale = 10u64.checked_pow(9u32.checked_sub(u32::try_from(decimals.len()).ok()?)?)?;
    whole.checked_mul(1_000_000_000)?.checked_add(number(decimals)?.checked_mul(scale)?)
}

/// A task's number and `/thread` behind it; the thread counts.
pub(super) fn task(text: &[u8]) -> Option<u32> {
    let thread = text.iter().rposition(|byte| *byte == b'/').map_or(text, |at| &text[at + 1..]);
    // perf writes -1 for a task that it does not know.
    if thread == b"-1" { Some(0) } else { number(thread).and_then(|value| u32::try_from(value).ok()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_or_refused() {
        assert_eq!(number(b"18446744073709551615"), Some(u64::MAX));
        for wrong in [&b""[..], b"18446744073709551616", b"1x", b"-1"] {
            assert_eq!(number(wrong), None);
        }
        assert_eq!((signed(b"-5"), signed(b"7"), signed(b"-")), (Some(-5), Some(7), None));
        assert_eq!(seconds(b"1202.130694"), Some(1_202_130_694_000));
        assert_eq!(seconds(b"0.000046076"), Some(46_076));
        assert_eq!((seconds(b"5"), seconds(b"1.0000000001"), seconds(b"99999999999.0")), (None, None, None));
        assert_eq!((task(b"12/34"), task(b"-1"), task(b"x")), (Some(34), Some(0), None));
        assert_eq!((hexadecimal(b"0x1f"), hexadecimal(b"zz")), (Some(31), None));
    }
}
