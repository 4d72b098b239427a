//! Reads the text of tracefs: `trace` and `trace_pipe`, with any of the columns the kernel offers.
//!
//! Enters: `TASK-PID [CPU] FLAGS SECONDS: EVENT: …`. Leaves: events. Times are as exact as the text: microseconds.

use std::io::Read;

use super::error::TraceError;
use super::event::{Action, Comm, Event};
use super::event_text;
use super::source::{Item, Lost, Names, Source};
use super::text_lines::{Lines, Words, processors, seconds, task};

/// A text of tracefs.
pub struct TracefsText<R> {
    lines: Lines<R>,
    /// The line before was a text of a user, which may have several lines.
    in_marker: bool,
}

impl<R: Read> TracefsText<R> {
    /// Reads from here. The name is for messages.
    pub fn new(reader: R, name: impl Into<String>) -> TracefsText<R> {
        TracefsText { lines: Lines::new(reader, name.into()), in_marker: false }
    }
}

/// Whether a line is one of tracefs: an event, or the head of its table.
pub(super) fn is_line(line: &[u8]) -> bool {
    line.starts_with(b"# tracer:") || front(line).is_some_and(|(_, rest)| !rest.starts_with(b"block:"))
}

/// What stands in front of the event's name, and what follows.
fn front(line: &[u8]) -> Option<(Event, &[u8])> {
    // The processor is the first number in brackets that a time follows.
    for (column, cpu, mut words) in processors(line) {
        // The flags' column need not be there.
        for _ in 0..2 {
            let Some(word) = words.word() else { break };
            let Some(time_ns) = word.strip_suffix(b":").and_then(seconds) else { continue };
            let (comm, pid) = who(column)?;
            let event = Event { comm, ..Event::at(time_ns, cpu, pid, Action::Marker) };
            return Some((event, words.rest()));
        }
    }
    None
}

/// `comm-pid` and perhaps `(tgid)` behind it.
fn who(column: &[u8]) -> Option<(Comm, u32)> {
    let mut column = column.trim_ascii();
    if column.ends_with(b")")
        && let Some(open) = column.iter().rposition(|byte| *byte == b'(')
        && open > 0
    {
        column = column[..open].trim_ascii_end();
    }
    let dash = column.iter().rposition(|byte| *byte == b'-')?;
    Some((Comm::new(&column[..dash]), task(&column[dash + 1..])?))
}

/// `# entries-in-buffer/entries-written: 1193/50000   #P:2`: what was written before these was overwritten.
fn overwritten(line: &[u8]) -> Option<Lost> {
    let text = std::str::from_utf8(line.strip_prefix(b"#")?).ok()?;
    let numbers = text.trim_start_matches(['#', ' ']).strip_prefix("entries-in-buffer/entries-written:")?;
    let (kept, written) = numbers.split_whitespace().next()?.split_once('/')?;
    let count = written.parse::<u64>().ok()?.checked_sub(kept.parse().ok()?).filter(|count| *count > 0)?;
    Some(Lost { count: Some(count), from_ns: 0, until_ns: 0 })
}

/// `CPU:1 [LOST 12 EVENTS]`
fn lost(line: &[u8]) -> Option<Lost> {
    let line = line.strip_prefix(b"CPU:")?;
    let at = line.windows(6).position(|six| six == b"[LOST ")?;
    Some(Lost { count: Words(&line[at + 6..]).number(), from_ns: 0, until_ns: 0 })
}

impl<R: Read> Source for TracefsText<R> {
    fn next(&mut self, names: &mut Names) -> Result<Option<Item>, TraceError> {
        while self.lines.advance()? {
            let line = self.lines.line();
            if let Some(lost) = lost(line).or_else(|| overwritten(line)) {
                return Ok(Some(Item::Lost(lost)));
            }
            let Some((mut event, rest)) = front(line) else {
                // Heads of the table, stacks, notes of the kernel and further lines of a user's text.
                let trimmed = line.trim_ascii_start();
                let skipped = trimmed.is_empty() || trimmed.starts_with(b"#") || trimmed.starts_with(b"=>");
                if skipped || trimmed.starts_with(b"<stack trace>") || self.in_marker {
                    continue;
                }
                return Err(self.lines.damaged("this is not a line of tracefs"));
            };
            if event_text::system_call(&mut event, rest, names).is_none() {
                let length = rest.iter().position(|byte| *byte == b':').unwrap_or(rest.len());
                let (name, text) = rest.split_at(length);
                let text = text.strip_prefix(b":").unwrap_or(text).trim_ascii_start();
                if event_text::read(&mut event, name, text, names).is_none() {
                    return Err(self.lines.not_of_event(name));
                }
            }
            self.in_marker = event.action == Action::Marker;
            self.lines.in_order(event.time_ns)?;
            return Ok(Some(Item::Event(event)));
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::super::source::all_items;
    use super::*;

    fn items(text: &str) -> Result<Vec<Item>, String> {
        all_items(TracefsText::new(text.as_bytes(), "test"))
    }

    #[test]
    fn columns_may_be_there_or_not() {
        let full =
            "    my [0] task-17 (   12) [001] d..2.  5.000001: block_bio_queue: 7,1 WS 8 + 8 [my [0] task]\n";
        let bare = "my [0] task-17 [001] 5.000001: block_bio_queue: 7,1 WS 8 + 8 [my [0] task]\n";
        let found = items(full).unwrap();
        assert_eq!(found, items(bare).unwrap());
        let Item::Event(event) = found[0] else { panic!() };
        assert_eq!((event.time_ns, event.cpu, event.pid), (5_000_001_000, 1, 17));
        assert_eq!(event.comm.to_string(), "my [0] task");
    }

    #[test]
    fn users_texts_stacks_and_losses_have_lines_too() {
        let text = "# tracer: nop\n#\n a-1 [000] ..... 1.000000: tracing_mark_write: one\ntwo: more\n\
                    CPU:1 [LOST 12 EVENTS]\n a-1 [001] ..... 1.000001: <stack trace>\n => submit_bio\n\
                    a-1 [001] ..... 1.000002: sys_fsync(fd: 3)\n";
        let found = items(text).unwrap();
        assert_eq!(found.len(), 4);
        assert!(matches!(found[1], Item::Lost(Lost { count: Some(12), .. })));
    }

    #[test]
    fn what_the_ring_has_overwritten_is_lost() {
        let head = |numbers: &str| {
            format!("# tracer: nop\n#\n# entries-in-buffer/entries-written: {numbers}   #P:2\n#\n")
        };
        let lost = Item::Lost(Lost { count: Some(48_807), from_ns: 0, until_ns: 0 });
        assert_eq!(items(&head("1193/50000")).unwrap(), [lost]);
        assert_eq!(items(&head("1193/1193")).unwrap(), []);
    }

    #[test]
    fn other_lines_and_wrong_order_are_refused_with_the_line() {
        let one = " a-1 [000] ..... 1.000005: sys_fsync(fd: 3)\n";
        assert_eq!(
            items(&format!("{one}hello\n")).unwrap_err(),
            "test is damaged at line 2: this is not a line of tracefs"
        );
        let back = format!("{one} a-1 [000] ..... 1.000003: sys_fsync -> 0x0\n");
        assert_eq!(
            items(&back).unwrap_err(),
            "events of test are out of order: line 2 is 2000 ns before the event in front of it"
        );
        let cut = format!("{one} a-1 [000] ..... 1.000006: block_bio_queue: 7,1 WS 8 +");
        assert!(items(&cut).unwrap_err().contains("line 2: block_bio_queue does not print this"));
    }
}
