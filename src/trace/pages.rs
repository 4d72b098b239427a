//! Reads raw pages of the kernel's ring buffer: `per_cpu/cpuN/trace_pipe_raw`.
//!
//! Enters: pages of one processor and the layouts of their events. Leaves: events. The format is that of
//! kernel/trace/ring_buffer.c as libtraceevent's kbuffer reads it: a page has a time and a length; each record has five bits of
//! type and 27 bits of time since the one in front of it.

use std::io::Read;
use std::sync::Arc;

use super::error::TraceError;
use super::page_event::Decoder;
use super::page_format::Formats;
use super::source::{Item, Lost, Names, Source};
use super::window::Window;

/// Events are missing in front of this page.
const MISSED: u64 = 1 << 31;
/// How many stands behind its records.
const MISSED_STORED: u64 = 1 << 30;
/// The part of the commit field that is the length.
const LENGTH: u64 = (1 << 20) - 1;
const PADDING: u32 = 29;
const TIME_EXTEND: u32 = 30;
const TIME_STAMP: u32 = 31;
const DELTA_BITS: u32 = 27;
/// Absolute times have 59 bits; the rest is that of the page.
const STAMP_BITS: u32 = 59;

/// Pages of one processor.
pub struct Pages<R> {
    window: Window<R>,
    formats: Arc<Formats>,
    decoder: Decoder,
    cpu: u32,
    page: Vec<u8>,
    /// Where the page begins in the file.
    page_at: u64,
    /// The next record.
    at: usize,
    /// The end of the records.
    end: usize,
    time_ns: u64,
    /// The latest event; nothing before the first.
    latest_ns: Option<u64>,
    /// Events are missing in front of the next one: how many, where it is known.
    missed: Option<Option<u64>>,
    waiting: Option<Item>,
}

impl<R: Read> Pages<R> {
    /// Reads pages of this processor. The name is for messages.
    pub fn new(reader: R, name: impl Into<String>, cpu: u32, formats: Arc<Formats>) -> Pages<R> {
        Pages {
            window: Window::new(reader, name.into()),
            decoder: Decoder::new(&formats),
            formats,
            cpu,
            page: Vec::new(),
            page_at: 0,
            at: 0,
            end: 0,
            time_ns: 0,
            latest_ns: None,
            missed: None,
            waiting: None,
        }
    }

    fn damaged(&self, at: usize, what: impl Into<String>) -> TraceError {
        TraceError::Damaged {
            name: self.window.name().to_owned(),
            place: format!("byte {}", self.page_at + at as u64),
            what: what.into(),
        }
    }

    /// Goes to the next page. Returns whether there is one.
    fn next_page(&mut self) -> Result<bool, TraceError> {
        let layout = self.formats.page;
        let bytes = layout.page_bytes();
        self.page_at = self.window.offset();
        let page = self.window.show(bytes)?;
        if page.is_empty() {
            return Ok(false);
        }
        if page.len() < bytes {
            let name = self.window.name().to_owned();
            return Err(TraceError::Truncated { name, what: "a page", at: self.page_at });
        }
        self.page.clear();
        self.page.extend_from_slice(page);
        self.window.consume(bytes);
        let commit = match layout.commit.size {
            8 => self.u64_at(layout.commit.offset),
            _ => u64::from(self.u32_at(layout.commit.offset)),
        };
        let length = usize::try_from(commit & LENGTH).unwrap_or(usize::MAX);
        if length > layout.data.size {
            return Err(
                self.damaged(layout.commit.offset, format!("a page of {bytes} bytes cannot hold {length}"))
            );
        }
        self.time_ns = self.u64_at(layout.timestamp.offset);
        self.at = layout.data.offset;
        self.end = layout.data.offset + length;
        if commit & MISSED != 0 {
            let stored = commit & MISSED_STORED != 0 && self.end + 8 <= self.page.len();
            self.missed = Some(stored.then(|| self.u64_at(self.end)));
        }
        Ok(true)
    }

    fn u32_at(&self, at: usize) -> u32 {
        self.page.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |bytes| u32::from_le_bytes(*bytes))
    }

    fn u64_at(&self, at: usize) -> u64 {
        self.page.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |bytes| u64::from_le_bytes(*bytes))
    }

    /// The place and end of the next record with data; nothing at the page's end. Moves the time.
    fn next_record(&mut self) -> Result<Option<(usize, usize)>, TraceError> {
        while self.at < self.end {
            let head_at = self.at;
            if self.end - head_at < 4 {
                return Err(self.damaged(head_at, "a record's head is cut"));
            }
            let head = self.u32_at(head_at);
            let (kind, delta) = (head & 31, u64::from(head >> 5));
            let body = head_at + 4;
            let long = |pages: &Pages<R>| usize::try_from(pages.u32_at(body)).unwrap_or(usize::MAX);
            let (begin, next) = match kind {
                // The rest of the page is empty.
                PADDING if delta == 0 => (None, self.end),
                PADDING => (None, body.saturating_add(long(self))),
                TIME_EXTEND | TIME_STAMP => (None, body + 4),
                0 => (Some(body + 4), body.saturating_add(long(self).max(4).next_multiple_of(4))),
                words => (Some(body), body + words as usize * 4),
            };
            if next > self.end {
                return Err(self.damaged(head_at, "a record is longer than its page"));
            }
            match kind {
                TIME_EXTEND => {
                    self.time_ns =
                        self.time_ns.wrapping_add((u64::from(self.u32_at(body)) << DELTA_BITS) + delta);
                }
                TIME_STAMP => {
                    let low = (u64::from(self.u32_at(body)) << DELTA_BITS) + delta;
                    self.time_ns = self.time_ns >> STAMP_BITS << STAMP_BITS | low;
                }
                _ => self.time_ns = self.time_ns.wrapping_add(delta),
            }
            self.at = next;
            if let Some(begin) = begin {
                return Ok(Some((begin, next)));
            }
        }
        Ok(None)
    }

    fn in_order(&mut self, begin: usize) -> Result<(), TraceError> {
        if let Some(latest) = self.latest_ns
            && self.time_ns < latest
        {
            return Err(TraceError::OutOfOrder {
                name: self.window.name().to_owned(),
                place: format!("byte {}", self.page_at + begin as u64),
                by_ns: latest - self.time_ns,
            });
        }
        Ok(())
    }
}

impl<R: Read> Source for Pages<R> {
    fn next(&mut self, names: &mut Names) -> Result<Option<Item>, TraceError> {
        if let Some(item) = self.waiting.take() {
            return Ok(Some(item));
        }
        loop {
            let Some((begin, end)) = self.next_record()? else {
                if self.next_page()? {
                    continue;
                }
                return Ok(None);
            };
            self.in_order(begin)?;
            let record = self.page.get(begin..end).unwrap_or_default();
            let event = self.decoder.decode(record, self.time_ns, self.cpu, names);
            let event = Item::Event(event.map_err(|what| self.damaged(begin, what))?);
            let from_ns = self.latest_ns.replace(self.time_ns).unwrap_or(0);
            if let Some(count) = self.missed.take() {
                self.waiting = Some(event);
                return Ok(Some(Item::Lost(Lost { count, from_ns, until_ns: self.time_ns })));
            }
            return Ok(Some(event));
        }
    }
}

/// Whether the bytes look like a page: a time, a length that fits, records that end where the length says.
pub(super) fn begins_like(bytes: &[u8]) -> bool {
    let number = |at: usize| {
        bytes
            .get(at..)
            .and_then(|rest| rest.first_chunk())
            .map_or(0, |field: &[u8; 8]| u64::from_le_bytes(*field))
    };
    let (time, commit) = (number(0), number(8));
    let length = commit & LENGTH;
    bytes.len() >= 20
        && time != 0
        && commit >> 32 == 0
        && (4..=(1 << 16) - 16).contains(&length)
        && commit & !(LENGTH | MISSED | MISSED_STORED) == 0
        // An event's number and flags stand behind a head of at most 28 words.
        && (1..=31).contains(&(number(16) & 31)) | (number(16) & 31 == 0 && number(20) & 0xffff_ffff <= length)
}
