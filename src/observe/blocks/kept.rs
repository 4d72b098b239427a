//! The records of a trial as files that `assay trace` reads again: pages of the kernel's ring buffer, with the descriptions of their
//! events.
//!
//! Enters: records in the order of time, and holes. Leaves: `blocks.cpuN.raw` for each processor, `NAME.format` for each event,
//! `header_page` and `header_event`, and `unwritten` where events have no record. A record of perf_event_open(2) is what the ring buffer
//! would hold, so that only heads are made anew. The layout of pages is that of kernel/trace/ring_buffer.c; whoever reads them is
//! `trace/pages.rs`.

use std::collections::BTreeMap;

use crate::record::KeptFile;
use crate::trace::{UNWRITTEN_FILE, Unwritten};

/// All pages of a trial together.
const MOST_BYTES: usize = 16 << 20;
const PAGE: usize = 4096;
/// Behind the time of the page and its length.
const HEAD: usize = 16;
/// Room behind the last record for the number of those that were lost in front of the page.
const COUNT: usize = 8;
/// Words that the head of a record can say.
const MOST_WORDS: usize = 28;
const DELTA_BITS: u32 = 27;
const TIME_EXTEND: u32 = 30;
const MISSED: u64 = 1 << 31;
const MISSED_STORED: u64 = 1 << 30;

/// How these pages are laid out, in the kernel's words.
pub(super) const HEADER_PAGE: &str = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
                           \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
                           \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
                           \tfield: char data;\toffset:16;\tsize:4080;\tsigned:1;\n";
/// Of a record's head, the same.
pub(super) const HEADER_EVENT: &str = "# compressed entry header\n\
                            \ttype_len    :    5 bits\n\
                            \ttime_delta  :   27 bits\n\
                            \tarray       :   32 bits\n\n\
                            \tpadding     : type == 29\n\
                            \ttime_extend : type == 30\n\
                            \ttime_stamp : type == 31\n\
                            \tdata max type_len  == 28\n";

/// What is kept of a trial, while it grows.
pub(super) struct Kept {
    processors: BTreeMap<u32, Pages>,
    /// Descriptions by the names of their events.
    formats: Vec<(String, String)>,
    bytes: usize,
    most: usize,
    begun_ns: Option<u64>,
    /// Since when nothing is kept, as time from the first record.
    cut_ns: Option<u64>,
    left_out: u64,
    unwritten: Unwritten,
}

/// The pages of one processor.
#[derive(Default)]
struct Pages {
    whole: Vec<u8>,
    /// The page that grows; empty: none.
    page: Vec<u8>,
    latest_ns: u64,
    /// Records lost in front of the next page.
    missed: u64,
}

impl Kept {
    /// Nothing yet; `formats` are the descriptions of all events by path, `block/block_split`, and there are at least so many processors.
    pub(super) fn new(formats: Vec<(String, String)>, processors: u32) -> Kept {
        Kept::up_to(MOST_BYTES, formats, processors)
    }

    fn up_to(most: usize, formats: Vec<(String, String)>, processors: u32) -> Kept {
        let processors = (0..processors).map(|number| (number, Pages::default())).collect();
        Kept {
            processors,
            formats,
            bytes: 0,
            most,
            begun_ns: None,
            cut_ns: None,
            left_out: 0,
            unwritten: Unwritten::default(),
        }
    }

    /// The next record of a processor.
    pub(super) fn record(&mut self, processor: u32, time_ns: u64, raw: &[u8]) {
        let begun_ns = *self.begun_ns.get_or_insert(time_ns);
        if self.cut_ns.is_none() && self.bytes >= self.most {
            self.cut_ns = Some(time_ns.saturating_sub(begun_ns));
        }
        if self.cut_ns.is_some() {
            self.left_out += 1;
            return;
        }
        self.bytes += self.processors.entry(processor).or_default().record(time_ns, raw);
    }

    /// So many records of a processor are missing here.
    pub(super) fn lost(&mut self, processor: u32, count: u64) {
        let pages = self.processors.entry(processor).or_default();
        pages.close();
        pages.missed += count;
    }

    /// So many events have no record, nobody knows where.
    pub(super) fn unwritten(&mut self, unwritten: Unwritten) {
        self.unwritten.ends += unwritten.ends;
        self.unwritten.others += unwritten.others;
    }

    /// The files, and a note where they are not all there was.
    pub(super) fn finish(mut self) -> (Vec<KeptFile>, Option<String>) {
        let last = self.processors.keys().next_back().copied().unwrap_or(0);
        let mut files = Vec::new();
        for number in 0..=last {
            let mut pages = self.processors.remove(&number).unwrap_or_default();
            pages.close();
            files.push(KeptFile { name: format!("blocks.cpu{number}.raw"), bytes: pages.whole });
        }
        let named = |name: &str, text: String| KeptFile { name: name.to_owned(), bytes: text.into_bytes() };
        files.push(named("header_page", HEADER_PAGE.to_owned()));
        files.push(named("header_event", HEADER_EVENT.to_owned()));
        if self.unwritten != Unwritten::default() {
            files.push(named(UNWRITTEN_FILE, self.unwritten.text()));
        }
        for (path, text) in self.formats {
            let name = path.rsplit('/').next().unwrap_or_default();
            files.push(named(&format!("{name}.format"), text));
        }
        let note = self.cut_ns.map(|cut_ns| {
            format!(
                "blocks: the kept trace ends after {:.3} s, at {} MiB: {} later events are not in it; the figures include them",
                cut_ns as f64 / 1e9,
                self.most >> 20,
                self.left_out
            )
        });
        (files, note)
    }
}

impl Pages {
    /// Adds a record; returns how many bytes that takes.
    fn record(&mut self, time_ns: u64, raw: &[u8]) -> usize {
        // One that came too late for its place has the time of the one before it: who reads pages goes forward only.
        let time_ns = time_ns.max(self.latest_ns);
        let length = raw.len().next_multiple_of(4);
        let is_long = length > MOST_WORDS * 4;
        let mut delta = time_ns - self.latest_ns;
        let extended = |delta: u64| if delta >> DELTA_BITS > 0 { 8 } else { 0 };
        let own = 4 + length + if is_long { 4 } else { 0 };
        let before = self.page.len();
        if before + own + extended(delta) > PAGE - COUNT {
            self.close();
        }
        let mut added = 0;
        if self.page.is_empty() {
            self.page.extend(time_ns.to_le_bytes());
            self.page.extend([0; HEAD - 8]);
            delta = 0;
            added = PAGE;
        } else if delta >> DELTA_BITS > 0 {
            self.head(TIME_EXTEND, delta & ((1 << DELTA_BITS) - 1));
            self.page.extend(((delta >> DELTA_BITS) as u32).to_le_bytes());
            delta = 0;
        }
        if is_long {
            self.head(0, delta);
            // The length counts itself.
            self.page.extend((length as u32 + 4).to_le_bytes());
        } else {
            self.head((length / 4) as u32, delta);
        }
        self.page.extend(raw);
        self.page.extend(std::iter::repeat_n(0, length - raw.len()));
        self.latest_ns = time_ns;
        added
    }

    fn head(&mut self, kind: u32, delta: u64) {
        self.page.extend((kind | (delta as u32) << 5).to_le_bytes());
    }

    /// Ends the page that grows.
    fn close(&mut self) {
        if self.page.is_empty() {
            return;
        }
        let mut commit = (self.page.len() - HEAD) as u64;
        if self.missed > 0 {
            commit |= MISSED | MISSED_STORED;
            self.page.extend(std::mem::take(&mut self.missed).to_le_bytes());
        }
        self.page[8..HEAD].copy_from_slice(&commit.to_le_bytes());
        self.page.resize(PAGE, 0);
        self.whole.append(&mut self.page);
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::trace::{Action, Item, Trace, open};

    fn written(kept: Kept, directory: &Path) -> Trace {
        let (files, _) = kept.finish();
        let raw = files.iter().filter(|file| file.name.ends_with(".raw"));
        let paths: Vec<_> = raw.map(|file| directory.join(&file.name)).collect();
        for file in &files {
            assert!(KeptFile::is_name(&file.name), "{}", file.name);
            std::fs::write(directory.join(&file.name), &file.bytes).unwrap();
        }
        open(&paths, None).unwrap()
    }

    fn formats() -> Vec<(String, String)> {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/traces/formats");
        let text = std::fs::read_to_string(directory.join("block_bio_queue.format")).unwrap();
        vec![("block/block_bio_queue".to_owned(), text)]
    }

    fn queued(formats: &[(String, String)], sector: u64, length: usize) -> Vec<u8> {
        let id = formats[0].1.lines().find_map(|line| line.strip_prefix("ID: ")).unwrap();
        let mut raw = vec![0; length];
        raw[..2].copy_from_slice(&id.parse::<u16>().unwrap().to_le_bytes());
        raw[8..12].copy_from_slice(&(7_u32 << 20).to_le_bytes());
        raw[16..24].copy_from_slice(&sector.to_le_bytes());
        raw[28] = b'W';
        raw
    }

    #[test]
    fn what_is_kept_reads_back_as_it_was() {
        let formats = formats();
        let mut kept = Kept::new(formats.clone(), 3);
        // Many pages, a long record, a pause that the head of a record cannot hold, and a hole.
        let mut expected = Vec::new();
        for number in 0..1000_u64 {
            let pause = if number >= 500 { 10_000_000_000 } else { 0 };
            let time_ns = 1_000_000_000_000 + number * 1_000 + pause;
            let length = if number % 100 == 7 { 180 } else { 60 };
            if number == 700 {
                kept.lost(1, 42);
            }
            kept.record((number % 2) as u32, time_ns, &queued(&formats, number, length));
            expected.push((time_ns, (number % 2) as u32, number));
        }
        kept.unwritten(Unwritten { ends: 3, others: 0 });
        kept.unwritten(Unwritten { ends: 0, others: 1 });
        let directory = tempfile::tempdir().unwrap();
        let mut trace = written(kept, directory.path());
        let (mut found, mut holes, mut missing) = (Vec::new(), Vec::new(), Vec::new());
        while let Some(item) = trace.next_item().unwrap() {
            match item {
                Item::Event(event) => {
                    assert_eq!((event.action, event.device.to_string().as_str()), (Action::Queue, "7:0"));
                    found.push((event.time_ns, event.cpu, event.sector));
                }
                Item::Lost(lost) => holes.push(lost.count),
                Item::Unwritten(unwritten) => missing.push(unwritten),
            }
        }
        assert_eq!(found, expected);
        assert_eq!(holes, [Some(42)]);
        assert_eq!(missing, [Unwritten { ends: 3, others: 1 }]);
    }

    #[test]
    fn a_record_that_comes_late_keeps_the_trace_readable() {
        let formats = formats();
        let mut kept = Kept::new(formats.clone(), 1);
        kept.record(0, 5_000, &queued(&formats, 1, 60));
        // It begins a page.
        kept.lost(0, 1);
        kept.record(0, 4_000, &queued(&formats, 2, 60));
        let directory = tempfile::tempdir().unwrap();
        let mut trace = written(kept, directory.path());
        let mut times = Vec::new();
        while let Some(item) = trace.next_item().unwrap() {
            if let Item::Event(event) = item {
                times.push((event.time_ns, event.sector));
            }
        }
        assert_eq!(times, [(5_000, 1), (5_000, 2)]);
    }

    #[test]
    fn a_trace_that_grows_too_large_is_cut_and_says_so() {
        let formats = formats();
        let mut kept = Kept::up_to(3 * PAGE, formats.clone(), 1);
        for number in 0..1000 {
            kept.record(0, 1_000 + number * 1_000_000, &queued(&formats, number, 60));
        }
        let (files, note) = kept.finish();
        assert_eq!(files[0].bytes.len(), 3 * PAGE);
        let note = note.unwrap();
        assert!(note.contains("ends after 0.") && note.contains("later events are not in it"), "{note}");
    }
}
