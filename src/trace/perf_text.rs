//! Reads the text of `perf script`.
//!
//! Enters: `COMM PID [CPU] SECONDS: SYSTEM:EVENT: …`, perhaps with the period in front of the event and stacks behind it. Leaves:
//! events. Times are as exact as the text: microseconds, or nanoseconds with `--ns`.

use std::io::Read;

use super::error::TraceError;
use super::event::{Action, Comm, Event};
use super::event_text;
use super::source::{Item, Lost, Names, Source};
use super::text_lines::{Lines, Words, number, processors, seconds, task};

/// A text of `perf script`.
pub struct PerfText<R> {
    lines: Lines<R>,
}

impl<R: Read> PerfText<R> {
    /// Reads from here. The name is for messages.
    pub fn new(reader: R, name: impl Into<String>) -> PerfText<R> {
        PerfText { lines: Lines::new(reader, name.into()) }
    }
}

/// Whether a line is one of perf's with an event of a known system.
pub(super) fn is_line(line: &[u8]) -> bool {
    front(line).is_some_and(|(_, rest)| event_name(rest).is_some())
}

/// What stands in front of the event's name, and what follows.
fn front(line: &[u8]) -> Option<(Event, &[u8])> {
    for (column, cpu, mut words) in processors(line) {
        let Some(time_ns) = words.word().and_then(|word| seconds(word.strip_suffix(b":")?)) else { continue };
        let column = column.trim_ascii();
        let blank = column.iter().rposition(u8::is_ascii_whitespace)?;
        let pid = task(&column[blank + 1..])?;
        let comm = Comm::new(column[..blank].trim_ascii_end());
        return Some((Event { comm, ..Event::at(time_ns, cpu, pid, Action::Marker) }, words.rest()));
    }
    None
}

/// The event's name without its system, and the text behind it. A period may stand in front.
fn event_name(rest: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut words = Words(rest);
    let mut name = words.word()?;
    if number(name).is_some() {
        name = words.word()?;
    }
    let name = name.strip_suffix(b":")?;
    let system = name.iter().position(|byte| *byte == b':')?;
    Some((&name[system + 1..], words.rest()))
}

impl<R: Read> Source for PerfText<R> {
    fn next(&mut self, names: &mut Names) -> Result<Option<Item>, TraceError> {
        while self.lines.advance()? {
            let line = self.lines.line();
            let Some((mut event, rest)) = front(line) else {
                // Heads, and the stacks behind an event.
                if line.is_empty() || line.starts_with(b"#") || line[0].is_ascii_whitespace() {
                    continue;
                }
                return Err(self.lines.damaged("this is not a line of perf script"));
            };
            if let Some(at) = rest.windows(17).position(|text| text == b"PERF_RECORD_LOST ") {
                let mut words = Words(&rest[at + 17..]);
                let count = std::iter::from_fn(|| words.word())
                    .find_map(|word| number(word.strip_prefix(b"lost=").unwrap_or(word)));
                return Ok(Some(Item::Lost(Lost { count, from_ns: 0, until_ns: 0 })));
            }
            let Some((name, text)) = event_name(rest) else {
                return Err(self.lines.damaged("the event has no name"));
            };
            if event_text::read(&mut event, name, text, names).is_none() {
                return Err(self.lines.not_of_event(name));
            }
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
        all_items(PerfText::new(text.as_bytes(), "test"))
    }

    #[test]
    fn events_are_read_with_and_without_period_and_stack() {
        let plain = "  my task 12/34 [001]  1696.211029:   block:block_bio_queue: 254,0 RA 8 + 8 [my task]\n";
        let rich = "# head\n  my task 12/34 [001]  1696.211029:          1   block:block_bio_queue: 254,0 RA 8 + 8 [my task]\n\
                    \tffffffff8149 submit_bio+0x5 ([kernel.kallsyms])\n\n";
        let found = items(plain).unwrap();
        assert_eq!(found, items(rich).unwrap());
        let Item::Event(event) = found[0] else { panic!() };
        assert_eq!((event.pid, event.cpu, event.time_ns), (34, 1, 1_696_211_029_000));
        assert_eq!(event.comm.to_string(), "my task");
    }

    #[test]
    fn calls_and_losses_are_read() {
        let text = " x 5 [000] 1.000001: syscalls:sys_enter_fsync: fd: 0x00000003\n\
                    x 5 [000] 1.000002: PERF_RECORD_LOST lost 17\n\
                    x 5 [000] 1.000003: syscalls:sys_exit_fsync: 0x0\n";
        let found = items(text).unwrap();
        let Item::Event(enter) = found[0] else { panic!() };
        assert_eq!((enter.action, enter.sector), (Action::Enter(super::super::event::Call::Fsync), 3));
        assert_eq!(found.len(), 3);
        assert!(matches!(found[1], Item::Lost(Lost { count: Some(17), .. })));
        assert!(
            items(" x 5 [000] 1.000001: block:block_bio_queue: 254,0 RA\n").unwrap_err().contains("line 1")
        );
        assert!(items("nonsense\n").unwrap_err().contains("not a line of perf script"));
    }
}
