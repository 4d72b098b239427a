//! What is counted of a device: bios, requests, bytes, merges, flushes, journal, order along the disk.
//!
//! Enters: block events of one device. Leaves: [`Counts`]. Numbers of bios are those at Q, numbers of requests those at D.

use serde::Serialize;

use super::event::{Action, Event};
use super::flags::Operation;
use super::verdict::JournalRange;

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
}

impl Counts {
    /// Counts an event.
    pub(super) fn add(&mut self, event: &Event, journal: Option<JournalRange>) {
        match event.action {
            Action::Queue => self.queue(event, journal),
            Action::Issue => self.issue(event),
            Action::BackMerge | Action::FrontMerge => self.merges += 1,
            Action::Split => self.splits += 1,
            Action::Requeue => self.requeues += 1,
            Action::Complete | Action::BioComplete => self.errors += u64::from(event.error != 0),
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
            Operation::Flush => self.flush_commands += 1,
            _ => {}
        }
        // What moves no data, discards first of all, is in nobody's way.
        if event.sectors > 0 && event.flags.operation.moves_data() {
            if let Some(end) = self.request_end {
                self.sequential_requests += u64::from(end == event.sector);
                self.seek_sectors = self.seek_sectors.saturating_add(end.abs_diff(event.sector));
            }
            self.request_end = Some(event.end());
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
}
