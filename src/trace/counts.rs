//! What is counted of a device: bios, requests, bytes, merges, flushes, journal, order along the disk.
//!
//! Enters: block events of one device. Leaves: [`Counts`]. Numbers of bios are those at Q, numbers of requests those at D.

use std::collections::VecDeque;

use serde::Serialize;

use super::event::{Action, Event};
use super::flags::Operation;
use super::verdict::JournalRange;

/// Of so many requests that were issued last it is known what each of them added to the order along the disk.
const MOST_REMEMBERED: usize = 1024;

/// What a request that moves data added to the order along the disk, for it may be given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Step {
    sector: u64,
    operation: Operation,
    /// The end of the request before it.
    before: Option<u64>,
    sequential: u64,
    seek_sectors: u64,
}

/// Counts of one device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Read bios.
    pub reads_queued: u64,
    /// Their sectors.
    pub read_sectors_queued: u64,
    /// Write bios with data.
    pub writes_queued: u64,
    /// Their sectors.
    pub write_sectors_queued: u64,
    /// Discard bios.
    pub discards_queued: u64,
    /// Their sectors.
    pub discard_sectors_queued: u64,
    /// Read requests that went to the driver.
    pub reads_issued: u64,
    /// Their sectors.
    pub read_sectors_issued: u64,
    /// Write requests that went to the driver.
    pub writes_issued: u64,
    /// Their sectors.
    pub write_sectors_issued: u64,
    /// Bios that only ask for a flush.
    pub flush_bios: u64,
    /// Flush commands that went to the driver.
    pub flush_commands: u64,
    /// Write bios with data that ask for a flush before them.
    pub preflush_writes: u64,
    /// Write bios that ask for FUA.
    pub fua_writes: u64,
    /// Write requests that went to the driver with FUA: its device can do that itself.
    pub fua_commands: u64,
    /// Write bios within the journal.
    pub journal_writes: u64,
    /// Their sectors.
    pub journal_sectors: u64,
    /// Sectors of write bios that are marked as metadata and lie outside the journal.
    pub metadata_sectors: u64,
    /// Bios that were added to a request.
    pub merges: u64,
    /// Bios that were cut.
    pub splits: u64,
    /// Requests that the driver gave back.
    pub requeues: u64,
    /// Completions with an error.
    pub errors: u64,
    /// Bios with data that begin where the bio before them ended.
    pub sequential_bios: u64,
    /// Requests with data that begin where the request before them ended.
    pub sequential_requests: u64,
    /// Sum of the distances between a request's begin and the end of the request before it, in sectors.
    pub seek_sectors: u64,
    #[serde(skip)]
    bio_end: Option<u64>,
    #[serde(skip)]
    request_end: Option<u64>,
    #[serde(skip)]
    steps: VecDeque<Step>,
    /// Flush commands that are with the driver.
    #[serde(skip)]
    flushes_out: u64,
}

impl Counts {
    /// Counts an event, but what was given back: [`Counts::requeue`].
    pub(super) fn add(&mut self, event: &Event, journal: Option<JournalRange>) {
        match event.action {
            Action::Queue => self.queue(event, journal),
            Action::Issue => self.issue(event),
            Action::BackMerge | Action::FrontMerge => self.merges += 1,
            Action::Split => self.splits += 1,
            Action::Complete | Action::BioComplete => {
                self.errors += u64::from(event.error != 0);
                let is_flush = event.flags.operation == Operation::Flush;
                self.flushes_out = self.flushes_out.saturating_sub(u64::from(is_flush));
            }
            _ => {}
        }
    }

    fn queue(&mut self, event: &Event, journal: Option<JournalRange>) {
        let sectors = u64::from(event.sectors);
        match event.flags.operation {
            Operation::Read => {
                self.reads_queued += 1;
                self.read_sectors_queued += sectors;
            }
            Operation::Write if event.sectors == 0 => self.flush_bios += u64::from(event.flags.preflush()),
            Operation::Write => {
                self.writes_queued += 1;
                self.write_sectors_queued += sectors;
                self.preflush_writes += u64::from(event.flags.preflush());
                self.fua_writes += u64::from(event.flags.fua());
                if journal.is_some_and(|journal| journal.holds(event.sector)) {
                    self.journal_writes += 1;
                    self.journal_sectors += sectors;
                } else if event.flags.meta() {
                    self.metadata_sectors += sectors;
                }
            }
            Operation::Discard | Operation::SecureErase => {
                self.discards_queued += 1;
                self.discard_sectors_queued += sectors;
            }
            _ => {}
        }
        if event.sectors > 0 {
            self.sequential_bios += u64::from(self.bio_end == Some(event.sector));
            self.bio_end = Some(event.end());
        }
    }

    fn issue(&mut self, event: &Event) {
        let sectors = u64::from(event.sectors);
        match event.flags.operation {
            Operation::Read => {
                self.reads_issued += 1;
                self.read_sectors_issued += sectors;
            }
            Operation::Write => {
                self.writes_issued += 1;
                self.write_sectors_issued += sectors;
                self.fua_commands += u64::from(event.flags.fua());
            }
            Operation::Flush => {
                self.flush_commands += 1;
                self.flushes_out += 1;
            }
            _ => {}
        }
        // What moves no data, discards first of all, is in nobody's way.
        if event.sectors > 0 && event.flags.operation.moves_data() {
            let sequential = u64::from(self.request_end == Some(event.sector));
            let seek_sectors = self.request_end.map_or(0, |end| end.abs_diff(event.sector));
            let (sector, operation) = (event.sector, event.flags.operation);
            if self.steps.len() == MOST_REMEMBERED {
                self.steps.pop_front();
            }
            let before = self.request_end.replace(event.end());
            self.steps.push_back(Step { sector, operation, before, sequential, seek_sectors });
            self.sequential_requests += sequential;
            self.seek_sectors = self.seek_sectors.saturating_add(seek_sectors);
        }
    }

    /// The driver gave a request back: its issue does not count, for it will be issued once more. One whose issue was not seen has not
    /// been counted.
    pub(super) fn requeue(&mut self, event: &Event, was_issued: bool) {
        self.requeues += 1;
        let is_flush = event.flags.operation == Operation::Flush;
        if !(was_issued || is_flush && self.flushes_out > 0) {
            return;
        }
        let sectors = u64::from(event.sectors);
        let take = |count: &mut u64, less: u64| *count = count.saturating_sub(less);
        match event.flags.operation {
            Operation::Read => {
                take(&mut self.reads_issued, 1);
                take(&mut self.read_sectors_issued, sectors);
            }
            Operation::Write => {
                take(&mut self.writes_issued, 1);
                take(&mut self.write_sectors_issued, sectors);
                take(&mut self.fua_commands, u64::from(event.flags.fua()));
            }
            Operation::Flush => {
                take(&mut self.flush_commands, 1);
                take(&mut self.flushes_out, 1);
            }
            _ => {}
        }
        let is_of = |step: &Step| step.sector == event.sector && step.operation == event.flags.operation;
        let Some(at) = self.steps.iter().rposition(is_of) else { return };
        let Some(step) = self.steps.remove(at) else { return };
        take(&mut self.sequential_requests, step.sequential);
        take(&mut self.seek_sectors, step.seek_sectors);
        // Those behind it went on from where it ended.
        if at == self.steps.len() {
            self.request_end = step.before;
        }
    }

    /// Bios with data for each request with data, as btt's ratio; nothing without requests.
    #[must_use]
    pub fn merge_ratio(&self) -> Option<f64> {
        let requests = self.reads_issued + self.writes_issued;
        (requests > 0).then(|| (self.reads_queued + self.writes_queued) as f64 / requests as f64)
    }

    /// Bytes written by requests, or by bios where the device has no requests.
    #[must_use]
    pub fn bytes_written(&self) -> u64 {
        let has_requests = self.reads_issued + self.writes_issued + self.flush_commands > 0;
        512 * if has_requests { self.write_sectors_issued } else { self.write_sectors_queued }
    }
}

#[cfg(test)]
mod tests {
    use super::super::flags::Flags;
    use super::*;

    fn event(action: Action, letters: &str, sector: u64, sectors: u32) -> Event {
        Event {
            flags: Flags::from_letters(letters.as_bytes()),
            sector,
            sectors,
            ..Event::at(0, 0, 0, action)
        }
    }

    #[test]
    fn bios_requests_and_journal_are_counted_apart() {
        let journal = JournalRange::new(100, 200);
        let mut counts = Counts::default();
        for event in [
            event(Action::Queue, "WS", 0, 8),
            event(Action::Queue, "WS", 8, 8),
            event(Action::BackMerge, "WS", 8, 8),
            event(Action::Issue, "WS", 0, 16),
            event(Action::Queue, "FWFSM", 100, 2),
            event(Action::Issue, "FF", 0, 0),
            event(Action::Issue, "WSM", 100, 2),
            event(Action::Issue, "D", 102, 8),
            event(Action::Issue, "D", 110, 8),
            event(Action::Queue, "WM", 200, 1),
            event(Action::Queue, "FWS", 0, 0),
            event(Action::Queue, "RA", 201, 8),
        ] {
            counts.add(&event, journal);
        }
        assert_eq!((counts.writes_queued, counts.write_sectors_queued), (4, 19));
        assert_eq!((counts.journal_writes, counts.journal_sectors, counts.metadata_sectors), (1, 2, 1));
        assert_eq!((counts.flush_bios, counts.flush_commands), (1, 1));
        assert_eq!((counts.preflush_writes, counts.fua_writes, counts.merges), (1, 1, 1));
        assert_eq!((counts.sequential_bios, counts.sequential_requests, counts.seek_sectors), (2, 0, 84));
        assert_eq!((counts.merge_ratio(), counts.bytes_written()), (Some(2.5), 18 * 512));
    }

    #[test]
    fn a_request_that_was_given_back_counts_once() {
        let issue = |letters: &str, sector: u64| event(Action::Issue, letters, sector, 8);
        let back = |letters: &str, sector: u64| event(Action::Requeue, letters, sector, 8);
        let mut once = Counts::default();
        let mut often = Counts::default();
        let flush = |action: Action| event(action, "FF", 0, 0);
        let order = [issue("WS", 0), issue("WFS", 8), issue("R", 100), issue("R", 108), flush(Action::Issue)];
        order.iter().for_each(|event| once.add(event, None));
        for event in order {
            often.add(&event, None);
            for _ in 0..3 {
                let letters = event.flags.to_string();
                let given_back = match event.sectors {
                    0 => flush(Action::Requeue),
                    _ => back(&letters, event.sector),
                };
                often.requeue(&given_back, true);
                often.add(&event, None);
            }
        }
        assert_eq!(often.requeues, 15);
        often.requeues = 0;
        assert_eq!(often, once);
        assert_eq!((once.writes_issued, once.fua_commands, once.sequential_requests), (2, 1, 2));
        // One whose issue was before the trace.
        let mut late = Counts::default();
        late.requeue(&back("R", 64), false);
        late.add(&issue("R", 64), None);
        assert_eq!((late.reads_issued, late.seek_sectors), (1, 0));
        // It takes nothing from others, nor does a flush when none is with the driver.
        late.requeue(&back("R", 128), false);
        late.add(&flush(Action::Issue), None);
        late.add(&flush(Action::Complete), None);
        late.requeue(&flush(Action::Requeue), false);
        assert_eq!((late.reads_issued, late.flush_commands, late.requeues), (1, 1, 3));
    }
}
