//! Records of the kernel as one stream of events in the order of time, analysed while it grows.
//!
//! Enters: records processor by processor, and holes. Leaves: what the analysis says. It must not know which tracepoints were asked for.

use std::collections::HashMap;
use std::ops::Range;

use super::kept::Kept;
use crate::observe::perf::Recorder;
use crate::record::KeptFile;
use crate::trace::{Analysis, Decoder, Item, Lost, Names, Settings, Summary, TraceError, Unwritten};

/// A stream while it is recorded.
pub(super) struct Recording {
    decoder: Decoder,
    names: Names,
    analysis: Analysis,
    /// What others may have to go before.
    waiting: Vec<Item>,
    /// The last record of each processor.
    latest_ns: HashMap<u32, u64>,
    damaged: u64,
    kept: Option<(Kept, Unkept)>,
}

/// What was seen.
#[derive(Debug, PartialEq)]
pub(super) struct Seen {
    /// Nothing where the device had no event; or why nothing can be said from the stream.
    pub(super) summary: Result<Option<Summary>, String>,
    /// Records that could not be read.
    pub(super) damaged: u64,
    /// The records, where they are kept.
    pub(super) files: Vec<KeptFile>,
    /// About these.
    pub(super) note: Option<String>,
}

/// Records and holes that others may have to go before, as they are to be kept.
#[derive(Default)]
struct Unkept {
    /// When, of which processor, and how many were lost there; or 0 and where the record lies.
    order: Vec<(u64, u32, u64, Range<usize>)>,
    bytes: Vec<u8>,
}

impl Unkept {
    fn record(&mut self, processor: u32, time_ns: u64, raw: &[u8]) {
        let begin = self.bytes.len();
        self.bytes.extend_from_slice(raw);
        self.order.push((time_ns, processor, 0, begin..self.bytes.len()));
    }

    /// Hands on what is older than this time.
    fn hand_on(&mut self, time_ns: u64, kept: &mut Kept) {
        // Stable: what was written first stays first.
        self.order.sort_by_key(|(at_ns, ..)| *at_ns);
        let ready = self.order.partition_point(|(at_ns, ..)| *at_ns < time_ns);
        for (at_ns, processor, lost, place) in self.order.drain(..ready) {
            if lost > 0 {
                kept.lost(processor, lost);
            } else if let Some(raw) = self.bytes.get(place) {
                kept.record(processor, at_ns, raw);
            }
        }
        let mut left = Vec::new();
        for (.., place) in &mut self.order {
            let begin = left.len();
            left.extend_from_slice(self.bytes.get(place.clone()).unwrap_or_default());
            *place = begin..left.len();
        }
        self.bytes = left;
    }
}

impl Recording {
    pub(super) fn new(decoder: Decoder, settings: Settings, kept: Option<Kept>) -> Recording {
        Recording {
            decoder,
            names: Names::default(),
            analysis: Analysis::new(settings),
            waiting: Vec::new(),
            latest_ns: HashMap::new(),
            damaged: 0,
            kept: kept.map(|kept| (kept, Unkept::default())),
        }
    }

    /// What was seen.
    pub(super) fn finish(self) -> Seen {
        let (files, note) = self.kept.map(|(kept, _)| kept.finish()).unwrap_or_default();
        let summary = match self.analysis.finish(&self.names) {
            Ok(summary) => Ok(Some(summary)),
            Err(TraceError::Empty | TraceError::NoBlockEvents { .. } | TraceError::OtherDevice { .. }) => {
                Ok(None)
            }
            Err(error) => Err(format!("blocks: {error}")),
        };
        Seen { summary, damaged: self.damaged, files, note }
    }
}

impl Recorder for Recording {
    fn record(&mut self, processor: u32, time_ns: u64, raw: &[u8]) {
        match self.decoder.decode(raw, time_ns, processor, &mut self.names) {
            Ok(event) => self.waiting.push(Item::Event(event)),
            Err(_) => self.damaged += 1,
        }
        if let Some((_, unkept)) = &mut self.kept {
            unkept.record(processor, time_ns, raw);
        }
        self.latest_ns.insert(processor, time_ns);
    }

    fn lost(&mut self, processor: u32, count: u64, until_ns: u64) {
        let from_ns = self.latest_ns.get(&processor).copied().unwrap_or(0);
        self.waiting.push(Item::Lost(Lost { count: Some(count), from_ns, until_ns }));
        if let Some((_, unkept)) = &mut self.kept {
            unkept.order.push((from_ns, processor, count, 0..0));
        }
    }

    fn unwritten(&mut self, id: u64, count: u64) {
        let is_end = u16::try_from(id).is_ok_and(|id| self.decoder.is_end(id));
        let (ends, others) = if is_end { (count, 0) } else { (0, count) };
        let unwritten = Unwritten { ends, others };
        self.analysis.feed(&Item::Unwritten(unwritten));
        if let Some((kept, _)) = &mut self.kept {
            kept.unwritten(unwritten);
        }
    }

    fn settled(&mut self, time_ns: u64) {
        // Stable: items of one moment stay as they were written.
        self.waiting.sort_by_key(Item::time_ns);
        let ready = self.waiting.partition_point(|item| item.time_ns() < time_ns);
        self.waiting.drain(..ready).for_each(|item| self.analysis.feed(&item));
        if let Some((kept, unkept)) = &mut self.kept {
            unkept.hand_on(time_ns, kept);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::Formats;

    const FORMATS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/traces/formats");

    fn recording() -> (Recording, u16) {
        let formats = Formats::read(FORMATS.as_ref()).unwrap();
        let text = std::fs::read_to_string(format!("{FORMATS}/block_bio_queue.format")).unwrap();
        let id = text.lines().find_map(|line| line.strip_prefix("ID: ")).unwrap().parse().unwrap();
        let settings = Settings { device: "7:3".parse().ok(), ..Settings::default() };
        (Recording::new(Decoder::new(&formats), settings, None), id)
    }

    /// A bio of eight sectors is queued on 7:3.
    fn queued(id: u16, sector: u64) -> Vec<u8> {
        let mut raw = vec![0; 56];
        raw[..2].copy_from_slice(&id.to_le_bytes());
        raw[4..8].copy_from_slice(&1234_u32.to_le_bytes());
        raw[8..12].copy_from_slice(&(7_u32 << 20 | 3).to_le_bytes());
        raw[16..24].copy_from_slice(&sector.to_le_bytes());
        raw[24..28].copy_from_slice(&8_u32.to_le_bytes());
        raw[28..30].copy_from_slice(b"WS");
        raw
    }

    #[test]
    fn records_of_several_processors_become_one_stream() {
        let (mut recording, id) = recording();
        // In the order of time each begins where the one before ended.
        for (processor, time_ns, sector) in [(0, 10, 0), (0, 30, 16), (1, 20, 8), (1, 40, 24)] {
            recording.record(processor, time_ns, &queued(id, sector));
        }
        recording.settled(25);
        assert_eq!(recording.waiting.len(), 2);
        recording.settled(u64::MAX);
        let Seen { summary, damaged, .. } = recording.finish();
        let counts = summary.unwrap().unwrap().device.counts;
        assert_eq!((counts.writes_queued, counts.sequential_bios, damaged), (4, 3, 0));
    }

    #[test]
    fn a_hole_begins_behind_the_last_record_of_its_processor() {
        let (mut recording, id) = recording();
        recording.record(1, 20, &queued(id, 0));
        recording.record(0, 50, &queued(id, 8));
        recording.lost(1, 7, 90);
        recording.record(0, 60, &[1]);
        recording.settled(u64::MAX);
        let Seen { summary, damaged, .. } = recording.finish();
        let totals = summary.unwrap().unwrap().totals;
        assert_eq!((totals.holes, totals.lost_events, totals.events, damaged), (1, 7, 2, 1));
    }

    #[test]
    fn a_device_that_was_not_used_has_no_summary() {
        let (mut recording, id) = recording();
        recording.settled(u64::MAX);
        let seen = recording.finish();
        assert_eq!((seen.summary, seen.damaged), (Ok(None), 0));
        let (mut other, _) = self::recording();
        let mut raw = queued(id, 0);
        raw[8..12].copy_from_slice(&(7_u32 << 20 | 4).to_le_bytes());
        other.record(0, 1, &raw);
        other.settled(u64::MAX);
        let seen = other.finish();
        assert_eq!((seen.summary, seen.damaged), (Ok(None), 0));
    }
}
