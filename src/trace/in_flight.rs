//! Which bio and which request an event belongs to.
//!
//! Enters: block events of one device. Leaves: what ended with an event. Bios and requests meet by their sectors, because no event
//! names both: a request's completion ends the bios that lie within its sectors, and of two with the same sectors the older one. A block
//! of metadata is never in flight twice, because its buffer is locked meanwhile: there the younger one ends, and the end of the older one
//! was not seen. A write that the block layer surrounds with flushes completes twice, and the completion without sectors is its end.

use super::class::Class;
use super::event::Event;
use super::flags::{Flags, Operation};
use super::sector_table::SectorTable;

/// Bios or requests that may be in flight before the trace is taken to have no completions.
const MOST: usize = 1 << 18;
/// Requests that may wait in a scheduler before the trace is taken to have no issues.
const MOST_INSERTED: usize = 1 << 14;
/// Requests that are in flight at once at the most: where more seem to be, the end of the first was not seen.
const MOST_ISSUED: u64 = 1024;
/// Writes that await a flush at once, or bios that only ask for one; of more the oldest has ended unseen.
const MOST_AWAITING: usize = 1 << 12;

/// A bio between its queueing and its end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bio {
    pub(super) sector: u64,
    pub(super) sectors: u32,
    pub(super) queued_ns: u64,
    pub(super) pid: u32,
    pub(super) flags: Flags,
    pub(super) class: Class,
    /// The call that it was queued in, 0 for none.
    pub(super) call: u64,
    /// Where its next part is expected: a bio that was cut completes in parts.
    at: u64,
    /// Sectors that are complete.
    done: u32,
    /// It was cut: it completed in parts.
    pub(super) cut: bool,
    /// When its data were complete, while flushes behind it are awaited.
    pub(super) data_ns: u64,
    /// When it was queued at the latest: bios that only ask for a flush look alike, and it may be any of those in flight.
    pub(super) latest_ns: u64,
    /// Another one with the same sectors was in flight when it was queued.
    beside: bool,
}

impl Bio {
    fn end(&self) -> u64 {
        self.sector.saturating_add(u64::from(self.sectors))
    }
}

/// A request between its insertion and its issue.
#[derive(Clone, Copy, Debug)]
struct Inserted {
    sector: u64,
    sectors: u32,
    operation: Operation,
    time_ns: u64,
}

/// A request between its issue and its completion.
#[derive(Clone, Copy, Debug)]
struct Request {
    sectors: u32,
    operation: Operation,
    /// How many reads and writes had been issued with it.
    number: u64,
    served: Served,
    /// Another one with the same sectors was in flight when it was issued.
    beside: bool,
}

/// A request that has completed, with its times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Served {
    pub(super) inserted_ns: Option<u64>,
    pub(super) issued_ns: u64,
}

/// What a completion is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Completed {
    /// Data: of this request, where its issue was seen. The bios are in [`InFlight::ended`].
    Data(Option<Served>),
    /// A sequence of flushes, or a bio that only asks for a flush; it is in [`InFlight::ended`] if it is known.
    Sequence,
}

/// All that is in flight on one device.
#[derive(Default)]
pub(super) struct InFlight {
    bios: SectorTable<Bio>,
    /// Requests that were inserted and not issued.
    inserted: SectorTable<Inserted>,
    issued: SectorTable<Request>,
    /// Reads and writes that were issued, and the most of them from the issue of one until its end.
    number: u64,
    pub(super) deepest: u64,
    /// Bios that only ask for a flush.
    flush_bios: Vec<Bio>,
    /// Writes whose data are complete and whose flushes are not.
    awaiting: Vec<Bio>,
    /// The bios whose data ended with the last completion; with whether that was their end.
    pub(super) ended: Vec<(Bio, bool)>,
    /// Data were queued to be written where others were in flight: if ends are missing nobody knows which of them ended.
    pub(super) write_beside_another: bool,
    /// Bios whose end was not seen because their number had become absurd.
    pub(super) given_up: u64,
}

impl InFlight {
    /// A bio was queued. Returns whether it writes data that others may be in flight for.
    pub(super) fn queue(&mut self, event: &Event, class: Class, call: u64) -> bool {
        let bio = Bio {
            sector: event.sector,
            sectors: event.sectors,
            queued_ns: event.time_ns,
            pid: event.pid,
            flags: event.flags,
            class,
            call,
            at: event.sector,
            done: 0,
            cut: false,
            data_ns: 0,
            latest_ns: event.time_ns,
            beside: self.bios.at(event.sector).any(|older| older.flags.operation == event.flags.operation),
        };
        let mut is_beside = false;
        if event.sectors > 0 {
            let writes_data = event.flags.writes() && !event.flags.meta();
            is_beside = writes_data && self.bios.at(event.sector).any(|older| older.flags.writes());
            self.write_beside_another |= is_beside;
            insert(&mut self.bios, event, bio);
        } else if class == Class::FlushBio {
            self.flush_bios.push(bio);
            self.given_up += drop_oldest(&mut self.flush_bios);
        }
        if self.bios.len() > MOST {
            self.given_up += self.bios.len() as u64;
            self.bios.clear();
        }
        is_beside
    }

    pub(super) fn insert(&mut self, event: &Event) {
        let (sector, sectors) = (event.sector, event.sectors);
        let (operation, time_ns) = (event.flags.operation, event.time_ns);
        self.inserted.insert(sector, Inserted { sector, sectors, operation, time_ns });
        if self.inserted.len() > MOST_INSERTED {
            self.inserted.clear();
        }
    }

    /// Takes what this request was inserted as. Returns when.
    fn inserted(&mut self, event: &Event) -> Option<u64> {
        let operation = event.flags.operation;
        let same = self.inserted.take(event.sector, |inserted| inserted.operation == operation);
        let mut time_ns = same.map(|inserted| inserted.time_ns);
        if same.is_some_and(|inserted| inserted.sectors == event.sectors) {
            return time_ns;
        }
        // It may have grown to both sides, and have taken in others, since it was inserted.
        let sectors = event.sector..event.end();
        let inside =
            |inserted: &Inserted| inserted.operation == operation && sectors.contains(&inserted.sector);
        let others: Vec<u64> = self.inserted.values().filter(|of| inside(of)).map(|of| of.sector).collect();
        for sector in others {
            let taken = self.inserted.take(sector, inside);
            time_ns = time_ns.into_iter().chain(taken.map(|of| of.time_ns)).min();
        }
        time_ns
    }

    /// The request goes to the driver. Returns how long it had been inserted.
    pub(super) fn issue(&mut self, event: &Event) -> Option<u64> {
        let operation = event.flags.operation;
        let inserted_ns = self.inserted(event);
        let served = Served { inserted_ns, issued_ns: event.time_ns };
        self.number += u64::from(operation.moves_data());
        let beside = self.issued.at(event.sector).any(|older| older.operation == operation);
        let request = Request { sectors: event.sectors, operation, number: self.number, served, beside };
        insert(&mut self.issued, event, request);
        if self.issued.len() > MOST {
            self.issued.clear();
        }
        inserted_ns.map(|inserted| event.time_ns.saturating_sub(inserted))
    }

    /// The driver gives the request back: it is inserted again, or issued again without that. Returns whether its issue was seen.
    pub(super) fn requeue(&mut self, event: &Event) -> bool {
        self.issued.take(event.sector, |request| request.operation == event.flags.operation).is_some()
    }

    /// The request that this completion is of. A part of it completes from its front, and the rest stays.
    fn served(&mut self, event: &Event) -> Option<Served> {
        let operation = event.flags.operation;
        let request = self.issued.take(event.sector, |request| request.operation == operation)?;
        if operation.moves_data() {
            self.deepest = self.deepest.max((self.number - request.number + 1).min(MOST_ISSUED));
        }
        if request.sectors > event.sectors {
            self.issued.insert(event.end(), Request { sectors: request.sectors - event.sectors, ..request });
        }
        Some(request.served)
    }

    /// A completion. Fills [`InFlight::ended`].
    pub(super) fn complete(&mut self, event: &Event, is_bio: bool) -> Completed {
        self.ended.clear();
        if event.sectors == 0 {
            self.sequence_end(event);
            return Completed::Sequence;
        }
        let served = self.served(event);
        self.end_bios(event, is_bio);
        Completed::Data(served)
    }

    /// Ends the bios within the sectors of a completion.
    fn end_bios(&mut self, event: &Event, is_bio: bool) {
        let (mut at, end) = (event.sector, event.end());
        while at < end && self.bios.len() > 0 {
            let operation = event.flags.operation;
            let Some(mut bio) = self.bio_at(at, end, operation) else {
                // A bio that was queued before the trace began; go on behind it.
                let behind =
                    self.bios.values().filter(|bio| bio.flags.operation == operation).map(|bio| bio.at);
                match behind.filter(|begin| (at + 1..end).contains(begin)).min() {
                    Some(begin) => at = begin,
                    None => break,
                }
                continue;
            };
            let part = bio.end().min(end) - at;
            bio.done = bio.done.saturating_add(u32::try_from(part).unwrap_or(u32::MAX));
            let in_order = bio.at == at;
            at += part;
            if bio.done < bio.sectors {
                // Mostly the next part completes next.
                bio.cut = true;
                bio.at = if in_order && at < bio.end() { at } else { bio.at };
                self.bios.insert(bio.at, bio);
                continue;
            }
            bio.data_ns = event.time_ns;
            // The flags in front of a request are taken off when the block layer makes a sequence of it; a completion that
            // still has them is of a bio, or of a device that does it by itself.
            let fua = bio.flags.fua() && !event.flags.fua();
            let sequence = !is_bio && !event.flags.preflush() && (bio.flags.preflush() || fua);
            if sequence {
                self.awaiting.push(bio);
                self.given_up += drop_oldest(&mut self.awaiting);
            }
            self.ended.push((bio, !sequence));
        }
    }

    /// Takes the bio at this sector: one that ends within the completion before one that does not; else the one that reaches over it.
    fn bio_at(&mut self, at: u64, end: u64, operation: Operation) -> Option<Bio> {
        let of = |bio: &Bio| bio.flags.operation == operation;
        if let Some(bio) = self.bios.take(at, |bio| of(bio) && bio.end() <= end) {
            return Some(bio);
        }
        if let Some(bio) = self.bios.take(at, of) {
            return Some(bio);
        }
        let reaches = |bio: &Bio| of(bio) && bio.sector < at && bio.end() > at;
        let place = self.bios.values().find(|bio| reaches(bio))?.at;
        self.bios.take(place, reaches)
    }

    /// The end of a sequence of flushes: of a write whose data are complete, or of a bio that only asks for a flush.
    fn sequence_end(&mut self, event: &Event) {
        let write = self.awaiting.iter().rposition(|bio| bio.sector == event.sector);
        let bio = match write {
            Some(at) => Some(self.awaiting.remove(at)),
            None if self.flush_bios.is_empty() => None,
            None => {
                let latest_ns = self.flush_bios.last().map_or(0, |bio| bio.queued_ns);
                let at = self.flush_bios.iter().position(|bio| bio.sector == event.sector);
                Some(Bio { latest_ns, ..self.flush_bios.remove(at.unwrap_or(0)) })
            }
        };
        self.ended.extend(bio.map(|bio| (bio, true)));
    }

    /// Bios and requests that are in flight.
    pub(super) fn unfinished(&self) -> u64 {
        (self.bios.len() + self.flush_bios.len() + self.awaiting.len()) as u64
    }

    /// Of what is in flight, what shared its sectors with another one. At the end of a trace an end was not seen for each of them, and those
    /// behind it may have been taken one for another.
    pub(super) fn unfinished_beside_another(&self) -> u64 {
        let bios = self.bios.values().filter(|bio| bio.beside).count();
        let requests = self.issued.values().filter(|request| request.beside).count();
        bios.max(requests) as u64
    }

    /// Forgets everything: events are missing, and what comes may belong to others.
    pub(super) fn forget(&mut self) {
        self.bios.clear();
        self.inserted.clear();
        self.issued.clear();
        self.flush_bios.clear();
        self.awaiting.clear();
    }
}

/// Adds a bio or a request of this event to those with the same sector.
fn insert<T>(table: &mut SectorTable<T>, event: &Event, value: T) {
    match event.flags.meta() {
        true => table.insert_in_front(event.sector, value),
        false => table.insert(event.sector, value),
    }
}

/// Forgets the oldest of more than there can be. Returns how many.
fn drop_oldest(bios: &mut Vec<Bio>) -> u64 {
    let is_more = bios.len() > MOST_AWAITING;
    bios.drain(..usize::from(is_more)).count() as u64
}

#[cfg(test)]
mod tests {
    use super::super::event::Action;
    use super::*;

    fn event(time_ns: u64, letters: &str, sector: u64, sectors: u32) -> Event {
        let flags = Flags::from_letters(letters.as_bytes());
        Event { flags, sector, sectors, ..Event::at(time_ns, 0, 7, Action::Queue) }
    }

    fn queue(all: &mut InFlight, time_ns: u64, letters: &str, sector: u64, sectors: u32) {
        let event = event(time_ns, letters, sector, sectors);
        all.queue(&event, Class::of(event.flags, sectors), 0);
    }

    fn ended(all: &InFlight) -> Vec<(u64, u64, bool)> {
        all.ended.iter().map(|(bio, end)| (bio.sector, bio.queued_ns, *end)).collect()
    }

    #[test]
    fn merged_bios_end_with_their_request() {
        let mut all = InFlight::default();
        queue(&mut all, 1, "W", 0, 8);
        queue(&mut all, 2, "W", 8, 8);
        queue(&mut all, 3, "R", 8, 8);
        all.insert(&event(4, "W", 8, 8));
        // A bio was added in front after the insertion.
        assert_eq!(all.issue(&event(9, "W", 0, 16)), Some(5));
        assert_eq!(
            all.complete(&event(20, "W", 0, 16), false),
            Completed::Data(Some(Served { inserted_ns: Some(4), issued_ns: 9 }))
        );
        assert_eq!(ended(&all), [(0, 1, true), (8, 2, true)]);
        assert_eq!(all.unfinished(), 1);
    }

    #[test]
    fn two_reads_of_one_sector_end_one_by_one() {
        let mut all = InFlight::default();
        queue(&mut all, 1, "R", 64, 8);
        queue(&mut all, 2, "R", 64, 8);
        all.issue(&event(3, "R", 64, 8));
        all.issue(&event(4, "R", 64, 8));
        all.complete(&event(10, "R", 64, 8), false);
        assert_eq!(ended(&all), [(64, 1, true)]);
        assert_eq!(
            all.complete(&event(11, "R", 64, 8), false),
            Completed::Data(Some(Served { inserted_ns: None, issued_ns: 4 }))
        );
        assert_eq!(ended(&all), [(64, 2, true)]);
    }

    #[test]
    fn a_cut_bio_ends_with_its_last_part() {
        let mut all = InFlight::default();
        queue(&mut all, 1, "WSM", 100, 4096);
        all.issue(&event(2, "WSM", 100, 2560));
        all.issue(&event(3, "WSM", 2660, 1536));
        all.complete(&event(4, "WSM", 2660, 1536), false);
        assert_eq!(ended(&all), []);
        all.complete(&event(5, "WSM", 100, 2560), false);
        assert_eq!(ended(&all), [(100, 1, true)]);
    }

    #[test]
    fn a_request_may_complete_in_parts() {
        let mut all = InFlight::default();
        queue(&mut all, 1, "R", 0, 16);
        all.issue(&event(2, "R", 0, 16));
        let served = Completed::Data(Some(Served { inserted_ns: None, issued_ns: 2 }));
        assert_eq!(all.complete(&event(3, "R", 0, 8), false), served);
        assert_eq!(ended(&all), []);
        assert_eq!(all.complete(&event(4, "R", 8, 8), false), served);
        assert_eq!(ended(&all), [(0, 1, true)]);
        assert_eq!(all.complete(&event(5, "R", 8, 8), false), Completed::Data(None));
    }

    #[test]
    fn a_sequence_of_flushes_ends_without_sectors() {
        let mut all = InFlight::default();
        queue(&mut all, 1, "FWFSM", 100, 2);
        queue(&mut all, 2, "FWS", 0, 0);
        all.issue(&event(3, "WSM", 100, 2));
        all.complete(&event(4, "WSM", 100, 2), false);
        assert_eq!(ended(&all), [(100, 1, false)]);
        all.complete(&event(5, "WS", 0, 0), false);
        assert_eq!(ended(&all), [(0, 2, true)]);
        all.complete(&event(6, "WSM", 100, 0), false);
        assert_eq!(ended(&all), [(100, 1, true)]);
        assert_eq!(all.ended[0].0.data_ns, 4);
        // A device that knows FUA, and a bio of a device without requests, end at once.
        queue(&mut all, 7, "WFS", 8, 8);
        all.complete(&event(8, "WFS", 8, 8), false);
        assert_eq!(ended(&all), [(8, 7, true)]);
        queue(&mut all, 9, "FWS", 8, 8);
        all.complete(&event(10, "WS", 8, 8), true);
        assert_eq!(ended(&all), [(8, 9, true)]);
        assert_eq!(all.unfinished(), 0);
    }

    #[test]
    fn an_unseen_end_of_a_journal_does_not_move_the_next_ones() {
        let mut all = InFlight::default();
        queue(&mut all, 1, "FWFSM", 100, 2);
        all.issue(&event(2, "WSM", 100, 2));
        for again in [20, 40] {
            queue(&mut all, again, "FWFSM", 100, 2);
            all.issue(&event(again + 1, "WSM", 100, 2));
            let served = Served { inserted_ns: None, issued_ns: again + 1 };
            assert_eq!(all.complete(&event(again + 2, "WSM", 100, 2), false), Completed::Data(Some(served)));
            all.complete(&event(again + 3, "WSM", 100, 0), false);
            assert_eq!(ended(&all), [(100, again, true)]);
        }
        assert_eq!((all.unfinished(), all.write_beside_another), (1, false));
        for time_ns in [60, 61] {
            queue(&mut all, time_ns, "WS", 500, 8);
        }
        assert!(all.write_beside_another);
    }

    #[test]
    fn an_unseen_end_of_sectors_that_are_used_again_is_known() {
        for (letters, lost, beside) in [("W", 2, 1), ("W", 9, 0), ("R", 1, 1), ("WM", 1, 0), ("W", 4, 0)] {
            let mut all = InFlight::default();
            for round in 0..5 {
                let now = round * 10;
                queue(&mut all, now, letters, 64, 8);
                all.issue(&event(now + 1, letters, 64, 8));
                if round != lost {
                    all.complete(&event(now + 5, letters, 64, 8), false);
                }
            }
            assert_eq!(all.unfinished_beside_another(), beside, "{letters}, {lost}");
        }
    }

    #[test]
    fn a_trace_without_completions_stays_small() {
        let mut all = InFlight::default();
        for i in 0..(MOST as u64 + 10) {
            queue(&mut all, i, "W", i * 8, 8);
            all.issue(&event(i, "W", i * 8, 8));
        }
        assert!(all.bios.len() <= MOST && all.issued.len() <= MOST && all.given_up > 0);
    }
}
