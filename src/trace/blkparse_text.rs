//! Reads the text of blkparse in its own format.
//!
//! Enters: `MAJOR,MINOR CPU SEQUENCE SECONDS PID ACTION RWBS …`. Leaves: events. Times count from the trace's first event. The
//! sums behind the events end the reading.

use std::collections::HashMap;
use std::io::Read;

use super::error::TraceError;
use super::event::{Action, Comm, Device, Event};
use super::flags::{Flags, Operation};
use super::source::{Item, Lost, Names, Source};
use super::text_lines::{Lines, Words, seconds, signed, task};

/// Pairs of a device and a processor whose last number is remembered.
const MOST_COUNTERS: usize = 1 << 20;

/// A text of blkparse.
pub struct BlkparseText<R> {
    lines: Lines<R>,
    /// By device and processor, each of which counts for itself: the number of the last event, with that event's time.
    sequences: HashMap<(Device, u32), (u64, u64)>,
    waiting: Option<Event>,
}

impl<R: Read> BlkparseText<R> {
    /// Reads from here. The name is for messages.
    pub fn new(reader: R, name: impl Into<String>) -> BlkparseText<R> {
        BlkparseText { lines: Lines::new(reader, name.into()), sequences: HashMap::new(), waiting: None }
    }
}

/// Whether a line is an event of blkparse.
pub(super) fn is_line(line: &[u8]) -> bool {
    front(line).is_some_and(|(_, action, _)| action.len() <= 2 && action.iter().all(u8::is_ascii_alphabetic))
}

/// The event without its action's own part, its number, the action's letters, and what follows.
fn front(line: &[u8]) -> Option<((Event, u64), &[u8], Words<'_>)> {
    let mut words = Words(line);
    let device = std::str::from_utf8(words.word()?).ok()?.parse().ok()?;
    let cpu = u32::try_from(words.number()?).ok().filter(|cpu| *cpu < 1 << 16)?;
    let sequence = words.number()?;
    let time_ns = seconds(words.word()?)?;
    let pid = task(words.word()?)?;
    let action = words.word()?;
    Some(((Event { device, ..Event::at(time_ns, cpu, pid, Action::Message) }, sequence), action, words))
}

fn action(letters: &[u8]) -> Option<Action> {
    Some(match letters {
        b"Q" => Action::Queue,
        b"G" => Action::GetRequest,
        b"S" => Action::Sleep,
        b"I" => Action::Insert,
        b"D" => Action::Issue,
        b"C" => Action::Complete,
        b"R" => Action::Requeue,
        b"M" => Action::BackMerge,
        b"F" => Action::FrontMerge,
        b"X" => Action::Split,
        b"A" => Action::Remap,
        b"B" => Action::Bounce,
        b"P" => Action::Plug,
        b"U" => Action::Unplug,
        b"T" | b"UT" => Action::UnplugTimer,
        b"a" => Action::Abort,
        b"m" => Action::Message,
        _ => return None,
    })
}

/// What follows the action. Nothing when no such action prints it.
fn body(event: &mut Event, mut words: Words<'_>) -> Option<()> {
    event.flags = Flags::from_letters(words.word()?);
    if matches!(event.action, Action::Plug | Action::Unplug | Action::UnplugTimer | Action::Message) {
        event.comm = comm(words.rest());
        return Some(());
    }
    let mut next = words;
    // `18 (12 00 00 00)`, and `(12 00 00 00)` at its end: bytes and the command of a request that reads and writes no sectors.
    let is_end = matches!(event.action, Action::Complete | Action::Requeue);
    let number = next.number();
    if number.is_some() {
        words = next;
    }
    if number.is_none() == is_end && is_command(words.rest()) {
        event.flags.operation = Operation::Passthrough;
    } else if let Some(sector) = number {
        event.sector = sector;
        match next.word() {
            Some(b"+") => {
                event.sectors = u32::try_from(next.number()?).ok()?;
                words = next;
            }
            Some(b"/") => {
                event.sectors = u32::try_from(next.number()?.checked_sub(sector)?).ok()?;
                words = next;
            }
            // A sector alone: nothing was moved, as in the end of a sequence of flushes.
            _ => {}
        }
    }
    let tail = words.rest();
    match event.action {
        Action::Complete => {
            // Times may stand between, as in "C WS 8 + 8 ( 12345) [0]".
            let open = tail.iter().rposition(|byte| *byte == b'[')?;
            let error = signed(tail[open + 1..].strip_suffix(b"]")?)?;
            // The field is too small for a negative number and is printed without its sign.
            let error = if error > 0x7fff { error - 0x1_0000 } else { error };
            event.error = i32::try_from(error).ok()?;
        }
        // `[0]` behind a request that was given back is an error, too.
        Action::Remap | Action::Requeue => {}
        _ if tail.is_empty() => {}
        _ => event.comm = comm(tail),
    }
    Some(())
}

/// `(12 00 00 00)`, and not the time of `blkparse -t`: `(    1234)`.
fn is_command(text: &[u8]) -> bool {
    let [b'(', one, other, b' ' | b')', ..] = text else { return false };
    one.is_ascii_hexdigit() && other.is_ascii_hexdigit()
}

/// `[name]`; `[(null)]` where blkparse does not know it.
fn comm(tail: &[u8]) -> Comm {
    let open = tail.iter().position(|byte| *byte == b'[');
    let close = tail.iter().rposition(|byte| *byte == b']');
    match (open, close) {
        (Some(open), Some(close)) if open < close && &tail[open + 1..close] != b"(null)" => {
            Comm::new(&tail[open + 1..close])
        }
        _ => Comm::default(),
    }
}

impl<R: Read> BlkparseText<R> {
    /// Looks whether the numbers of a processor's events go on. blkparse prints 0 where the kernel gave none.
    fn hole(&mut self, event: &Event, sequence: u64) -> Option<Lost> {
        // More than any machine has: what a made-up text names is not remembered.
        if self.sequences.len() > MOST_COUNTERS {
            self.sequences.clear();
        }
        let earlier = self.sequences.insert((event.device, event.cpu), (sequence, event.time_ns));
        let (before, time_ns) = earlier.unwrap_or_default();
        // blkparse sorts by time and may change the order of equal times.
        let is_hole = before != 0 && sequence > before + 1;
        is_hole.then(|| Lost {
            count: Some(sequence - before - 1),
            from_ns: time_ns.min(event.time_ns),
            until_ns: event.time_ns,
        })
    }
}

impl<R: Read> Source for BlkparseText<R> {
    fn next(&mut self, _: &mut Names) -> Result<Option<Item>, TraceError> {
        if let Some(event) = self.waiting.take() {
            return Ok(Some(Item::Event(event)));
        }
        while self.lines.advance()? {
            let line = self.lines.line();
            if line.is_empty() {
                continue;
            }
            let Some(((mut event, sequence), letters, words)) = front(line) else {
                // The sums of CPUs and of all.
                let begins = |start: &[u8]| line.starts_with(start);
                if begins(b"CPU") || begins(b"Total") || begins(b"Input file") {
                    return Ok(None);
                }
                return Err(self.lines.damaged("this is not a line of blkparse"));
            };
            let Some(known) = action(letters) else {
                let letters = String::from_utf8_lossy(letters).into_owned();
                return Err(self.lines.damaged(format!("blkparse has no action {letters}")));
            };
            event.action = known;
            if body(&mut event, words).is_none() {
                return Err(self.lines.damaged("the line is cut, or another format was chosen with -f"));
            }
            self.lines.in_order(event.time_ns)?;
            if let Some(lost) = self.hole(&event, sequence) {
                self.waiting = Some(event);
                return Ok(Some(Item::Lost(lost)));
            }
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
        all_items(BlkparseText::new(text.as_bytes(), "test"))
    }

    fn event(line: &str) -> Event {
        match items(line).unwrap()[0] {
            Item::Event(event) => event,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn lines_of_every_shape_are_read() {
        let queue = event("  7,1    1        1     0.000046076 28976  Q FWFSM 3148742 + 2 [xfs io]");
        assert_eq!(
            (queue.sector, queue.sectors, queue.comm.to_string()),
            (3_148_742, 2, "xfs io".to_owned())
        );
        assert_eq!((queue.time_ns, queue.cpu, queue.pid), (46_076, 1, 28_976));
        let flush = event("  7,1    1        0     0.765653163    22  C  FN 0 [0]");
        assert_eq!((flush.flags.to_string(), flush.sectors), ("FF".to_owned(), 0));
        let end = event("  7,1    1        0     0.765966668    22  C WSM 3148742 [0]");
        assert_eq!((end.sector, end.sectors), (3_148_742, 0));
        assert_eq!(event("  7,1    1        0     0.7    22  C WSM 8 + 8 ( 12) [65531]").error, -5);
        assert_eq!(
            event("  7,1    0        0     0.01 28976  X WSM 3145778 / 3148338 [(null)]").sectors,
            2560
        );
        assert_eq!(event("  7,1    1        0     0.765445094    24  D  FN [(null)]").action, Action::Issue);
        assert_eq!(event("  7,1    1        0     0.7 28976  U   N [(null)] 1").action, Action::Unplug);
        for command in [
            "D   R 18 (12 00 00 00) [dd]", "I   R 18 (12 00 00 00) [dd]", "C   R (12 00 00 00) [0]",
            "R   R (12 00 00 00) [0]", "C   N (a1) [0]",
        ] {
            let found = event(&format!("  8,0    0        5     0.000103000   100  {command}"));
            assert_eq!((found.flags.operation, found.sector), (Operation::Passthrough, 0), "{command}");
        }
        assert_eq!(
            event("  7,1    1        0     0.7    22  C WSM 8 ( 12) [0]").flags.operation,
            Operation::Write
        );
        // Times of `blkparse -t`.
        for flush in ["D  FN 0 (    1234) [kworker]", "C  FN 0 (12345678) [0]", "R  FN 0 (    1234) [0]"] {
            let found = event(&format!("  8,0    0        5     0.000103000   100  {flush}"));
            assert_eq!((found.flags.operation, found.sectors), (Operation::Flush, 0), "{flush}");
        }
        assert_eq!(event("  8,0    1        5     0.7    22  R WSM 8 + 8 ( 12) [0]").sectors, 8);
        assert_eq!(event("  8,0    1        0     0.7 28976  A  WS 100 + 8 <- (8,1) 36").sector, 100);
    }

    #[test]
    fn holes_sums_and_damage_are_seen() {
        let text = "8,0 1 1 0.000000001 5 Q W 8 + 8 [a]\n8,0 1 4 0.000000003 5 G W 8 + 8 [a]\n\nCPU1 (8,0):\n Reads Queued: 1\n";
        let found = items(text).unwrap();
        assert_eq!(found[1], Item::Lost(Lost { count: Some(2), from_ns: 1, until_ns: 3 }));
        assert_eq!(found.len(), 3);
        let two = "8,0 1 10 0.1 5 P N [a]\n8,16 1 1 0.2 5 P N [a]\n8,0 1 11 0.3 5 P N [a]\n8,16 1 2 0.4 5 P N [a]\n";
        assert!(
            items(two).unwrap().iter().all(|item| matches!(item, Item::Event(_))),
            "each device counts for itself"
        );
        assert!(items("8,0 1 1 0.000000001 5 Q W 8 +\n").unwrap_err().contains("line 1"));
        assert!(items("8,0 1 1 0.000000001 5 ? W 8 + 8 [a]\n").unwrap_err().contains("no action ?"));
        assert!(
            items("8,0 1 1 0.5 5 P N [a]\n8,0 1 2 0.4 5 P N [a]\n").unwrap_err().contains("out of order")
        );
    }
}
