//! Reads `.blktrace.N` files: the binary records of blktrace and of the kernel's `blk` tracer, versions 7 and 8, of either byte
//! order, of one processor or (`blkparse -d`) of all.
//!
//! Enters: a file. Leaves: events. Layout: struct `blk_io_trace` and `blk_io_trace2` of include/uapi/linux/blktrace_api.h.
//! Records of a processor are numbered, so that lost ones are seen; the kernel's `blk` tracer numbers all with 0.

use std::collections::HashMap;
use std::io::Read;

use super::error::TraceError;
use super::event::{Action, Comm, Device, Event};
use super::flags::Flags;
use super::source::{Item, Lost, Names, Source};
use super::window::Window;

/// The magic number without its version.
pub(super) const MAGIC: u32 = 0x6561_7400;
const HEADER_7: usize = 48;
const HEADER_8: usize = 64;
pub(super) const NOTIFY_CATEGORY: u64 = 1 << 10;
const CGROUP_ACTION: u64 = 1 << 8;
/// More processors than any machine has.
const PROCESSORS: u32 = 1 << 16;
/// Traced devices of one file whose last records are remembered.
const MOST_DEVICES: usize = 64;
/// Tasks whose names are kept.
const MOST_TASKS: usize = 1 << 20;
/// Of these, how many are found without a search.
const RECENT: usize = 64;

/// Whether a file begins like this.
pub(super) fn begins_like(bytes: &[u8]) -> bool {
    bytes.first_chunk().is_some_and(|first: &[u8; 4]| {
        let is_magic = |value: u32| value & !0xff == MAGIC;
        is_magic(u32::from_le_bytes(*first)) || is_magic(u32::from_be_bytes(*first))
    })
}

/// A record's header, with its numbers in this machine's order.
struct Header {
    sequence: u32,
    time_ns: u64,
    sector: u64,
    bytes: u32,
    action: u64,
    pid: u32,
    device: u32,
    cpu: u32,
    error: u16,
    payload: usize,
    length: usize,
}

/// The bytes of the longer header; of the shorter one the rest is something else.
type Head = [u8; HEADER_8];

/// A number of `SIZE` bytes at this place, in the order of bytes that the file has.
#[inline(always)]
fn number<const BIG: bool, const SIZE: usize>(head: &Head, at: usize) -> u64 {
    let mut bytes = [0; 8];
    if BIG {
        bytes[8 - SIZE..].copy_from_slice(&head[at..at + SIZE]);
        u64::from_be_bytes(bytes)
    } else {
        bytes[..SIZE].copy_from_slice(&head[at..at + SIZE]);
        u64::from_le_bytes(bytes)
    }
}

#[inline(always)]
fn u16_at<const BIG: bool>(head: &Head, at: usize) -> u16 {
    (number::<BIG, 2>(head, at) & 0xffff) as u16
}

#[inline(always)]
fn u32_at<const BIG: bool>(head: &Head, at: usize) -> u32 {
    (number::<BIG, 4>(head, at) & 0xffff_ffff) as u32
}

/// The version of a record in this order of bytes; nothing where none begins.
#[inline(always)]
fn version<const BIG: bool>(head: &Head) -> Option<u32> {
    let magic = u32_at::<BIG>(head, 0);
    (magic & !0xff == MAGIC).then_some(magic & 0xff)
}

/// Reads a header; nothing where none of a known version begins.
#[inline(always)]
fn header(head: &Head) -> Option<Header> {
    // Each version in each order has its own code: no place and no order is looked up while a file is read.
    match version::<false>(head) {
        Some(7) => Some(header_7::<false>(head)),
        Some(8) => Some(header_8::<false>(head)),
        Some(_) => None,
        None => match version::<true>(head) {
            Some(7) => Some(header_7::<true>(head)),
            Some(8) => Some(header_8::<true>(head)),
            _ => None,
        },
    }
}

#[inline(always)]
fn header_7<const BIG: bool>(head: &Head) -> Header {
    // Task, device, processor, error and what follows.
    header_at::<BIG>(head, u64::from(u32_at::<BIG>(head, 28)), [32, 36, 40, 44], HEADER_7)
}

#[inline(always)]
fn header_8<const BIG: bool>(head: &Head) -> Header {
    header_at::<BIG>(head, number::<BIG, 8>(head, 32), [28, 40, 44, 48], HEADER_8)
}

#[inline(always)]
fn header_at<const BIG: bool>(head: &Head, action: u64, places: [usize; 4], length: usize) -> Header {
    Header {
        sequence: u32_at::<BIG>(head, 4),
        time_ns: number::<BIG, 8>(head, 8),
        sector: number::<BIG, 8>(head, 16),
        bytes: u32_at::<BIG>(head, 24),
        action,
        pid: u32_at::<BIG>(head, places[0]),
        device: u32_at::<BIG>(head, places[1]),
        cpu: u32_at::<BIG>(head, places[2]),
        error: u16_at::<BIG>(head, places[3]),
        payload: usize::from(u16_at::<BIG>(head, places[3] + 2)),
        length,
    }
}

/// What is wrong where no header could be read.
#[cold]
fn no_header(head: &Head) -> String {
    match version::<false>(head).or_else(|| version::<true>(head)) {
        None => format!("no record begins here (0x{:08x})", u32_at::<false>(head, 0)),
        Some(version) => format!("version {version} of blktrace is not known; 7 and 8 are"),
    }
}

/// What a record was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Record {
    /// There was none: the end.
    None,
    /// A notice, which is no event.
    Notice,
    /// An event or a hole.
    Item,
}

/// What one processor's records were so far.
#[derive(Clone, Copy, Default)]
struct Processor {
    sequence: u32,
    time_ns: u64,
}

/// A `.blktrace.N` file.
pub struct BlktraceFile<R> {
    window: Window<R>,
    latest_ns: u64,
    processors: Vec<Processor>,
    /// The traced device of the last record, which these are of: each counts for itself.
    device: u32,
    /// The processors' last records of the other devices.
    others: HashMap<u32, Vec<Processor>>,
    comms: HashMap<u32, Comm>,
    /// The names used last, by the low bits of the task's number.
    recent: [(u32, Comm); RECENT],
    /// What comes behind a hole.
    waiting: Option<Event>,
}

impl<R: Read> BlktraceFile<R> {
    /// Reads from here. The name is for messages.
    pub fn new(reader: R, name: impl Into<String>) -> BlktraceFile<R> {
        BlktraceFile {
            window: Window::new(reader, name.into()),
            latest_ns: 0,
            processors: Vec::new(),
            device: 0,
            others: HashMap::new(),
            comms: HashMap::new(),
            recent: [(u32::MAX, Comm::default()); RECENT],
            waiting: None,
        }
    }

    fn truncated(&self, what: &'static str) -> TraceError {
        TraceError::Truncated { name: self.window.name().to_owned(), what, at: self.window.offset() }
    }

    fn damaged(&self, what: String) -> TraceError {
        TraceError::Damaged {
            name: self.window.name().to_owned(),
            place: format!("byte {}", self.window.offset()),
            what,
        }
    }

    /// Puts the next record into `item` as an event, or a hole in front of it if its number says so.
    fn record(&mut self, item: &mut Item) -> Result<Record, TraceError> {
        let shown = self.window.show(HEADER_8)?;
        if shown.is_empty() {
            return Ok(Record::None);
        }
        if shown.len() < HEADER_7 {
            return Err(self.truncated("a record"));
        }
        let mut short = [0; HEADER_8];
        let head = match shown.first_chunk() {
            Some(head) => head,
            None => {
                short[..shown.len()].copy_from_slice(shown);
                &short
            }
        };
        let Some(header) = header(head) else {
            let what = no_header(head);
            return Err(self.damaged(what));
        };
        if shown.len() < header.length {
            return Err(self.truncated("a record"));
        }
        let whole = header.length + header.payload;
        let record = self.window.show(whole)?;
        if record.len() < whole {
            return Err(self.truncated("a record"));
        }
        let payload = &record[header.length..];
        let kind = if (header.action >> 16) & NOTIFY_CATEGORY != 0 {
            if header.action & 0xff == 0 && self.comms.len() < MOST_TASKS {
                let comm = Comm::new(payload);
                self.comms.insert(header.pid, comm);
                self.recent[header.pid as usize % RECENT] = (header.pid, comm);
            }
            // Notices are not in the order of events.
            let time_ns = header.time_ns.max(self.latest_ns);
            if header.action & 0xff == 2 {
                *item = Item::Event(Event::at(time_ns, header.cpu, header.pid, Action::Message));
                Record::Item
            } else {
                Record::Notice
            }
        } else {
            if header.cpu >= PROCESSORS {
                return Err(self.damaged(format!("there is no CPU {}", header.cpu)));
            }
            if header.time_ns < self.latest_ns {
                return Err(TraceError::OutOfOrder {
                    name: self.window.name().to_owned(),
                    place: format!("byte {}", self.window.offset()),
                    by_ns: self.latest_ns - header.time_ns,
                });
            }
            let event = Event {
                comm: comm_of(&mut self.recent, &self.comms, header.pid),
                ..event_of(&header, payload)
            };
            self.latest_ns = header.time_ns;
            *item = match self.hole(&header) {
                Some(lost) => {
                    self.waiting = Some(event);
                    Item::Lost(lost)
                }
                None => Item::Event(event),
            };
            Record::Item
        };
        self.window.consume(whole);
        Ok(kind)
    }

    /// Looks whether the numbers of a processor's records go on.
    #[inline(always)]
    fn hole(&mut self, header: &Header) -> Option<Lost> {
        if header.device != self.device {
            self.change_to(header.device);
        }
        let Header { sequence, time_ns, .. } = *header;
        let cpu = header.cpu as usize;
        if cpu >= self.processors.len() {
            self.processors.resize(cpu + 1, Processor::default());
        }
        let before = std::mem::replace(&mut self.processors[cpu], Processor { sequence, time_ns });
        let expected = before.sequence.wrapping_add(1);
        // The first record seen need not be the first made: a trace may begin late.
        let is_hole = before.sequence != 0 && sequence != 0 && sequence != expected;
        is_hole.then(|| Lost {
            count: Some(u64::from(sequence.wrapping_sub(expected))),
            from_ns: before.time_ns,
            until_ns: time_ns,
        })
    }
}

impl<R> BlktraceFile<R> {
    /// The processors' last records of another device take the place of those that are there.
    #[cold]
    fn change_to(&mut self, device: u32) {
        // More than any machine has: what a made-up file names is not remembered.
        if self.others.len() > MOST_DEVICES {
            self.others.clear();
        }
        let processors = self.others.remove(&device).unwrap_or_default();
        let of_last = std::mem::replace(&mut self.processors, processors);
        self.others.insert(std::mem::replace(&mut self.device, device), of_last);
    }
}

/// A task's name.
#[inline(always)]
fn comm_of(recent: &mut [(u32, Comm); RECENT], comms: &HashMap<u32, Comm>, pid: u32) -> Comm {
    let slot = &mut recent[pid as usize % RECENT];
    if slot.0 != pid {
        *slot = (pid, comms.get(&pid).copied().unwrap_or_default());
    }
    slot.1
}

/// The actions by their numbers. Drivers' data, plugs of zones, and what later versions add are all the first.
const ACTIONS: [Action; 17] = [
    Action::DriverData,
    Action::Queue,
    Action::BackMerge,
    Action::FrontMerge,
    Action::GetRequest,
    Action::Sleep,
    Action::Requeue,
    Action::Issue,
    Action::Complete,
    Action::Plug,
    Action::Unplug,
    Action::UnplugTimer,
    Action::Insert,
    Action::Split,
    Action::Bounce,
    Action::Remap,
    Action::Abort,
];

/// The event of a record that is no notice. It is made where it is used: a header that goes through memory is waited for.
#[inline(always)]
fn event_of(header: &Header, payload: &[u8]) -> Event {
    let categories = header.action >> 16;
    let number = (header.action & 0xffff & !CGROUP_ACTION) as usize;
    let action = ACTIONS.get(number).copied().unwrap_or(Action::DriverData);
    let mut sectors = header.bytes / 512;
    if action == Action::Split {
        // The payload ends with the sector at which the rest begins, big-endian.
        let rest = payload.last_chunk().map(|bytes: &[u8; 8]| u64::from_be_bytes(*bytes));
        sectors = rest
            .and_then(|rest| rest.checked_sub(header.sector))
            .and_then(|length| u32::try_from(length).ok())
            .unwrap_or(sectors);
    }
    Event {
        device: Device(header.device),
        flags: Flags::from_categories(categories, header.bytes),
        sector: header.sector,
        sectors,
        // The field is too small for a negative number and keeps its low bits.
        error: i32::from(header.error.cast_signed()),
        ..Event::at(header.time_ns, header.cpu, header.pid, action)
    }
}

impl<R: Read> Source for BlktraceFile<R> {
    fn next(&mut self, names: &mut Names) -> Result<Option<Item>, TraceError> {
        let mut item = Item::Event(Event::at(0, 0, 0, Action::Message));
        Ok(self.replace(names, &mut item)?.then_some(item))
    }

    fn replace(&mut self, _: &mut Names, item: &mut Item) -> Result<bool, TraceError> {
        if let Some(event) = self.waiting.take() {
            *item = Item::Event(event);
            return Ok(true);
        }
        loop {
            match self.record(item)? {
                Record::Notice => {}
                kind => return Ok(kind == Record::Item),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A record of version 7.
    fn seven(sequence: u32, time_ns: u64, action: u32, big: bool) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut put = |value: u64, size: usize| {
            let all = if big { value.to_be_bytes() } else { value.to_le_bytes() };
            bytes.extend_from_slice(if big { &all[8 - size..] } else { &all[..size] });
        };
        for (value, size) in [
            (u64::from(MAGIC | 7), 4),
            (u64::from(sequence), 4),
            (time_ns, 8),
            (2048, 8),
            (4096, 4),
            (u64::from(action), 4),
            (42, 4),
            (7 << 20 | 1, 4),
            (3, 4),
            (u64::from((-5i16).cast_unsigned()), 2),
            (0, 2),
        ] {
            put(value, size);
        }
        bytes
    }

    fn items(bytes: &[u8]) -> Result<Vec<Item>, TraceError> {
        let mut file = BlktraceFile::new(bytes, "test");
        let mut names = Names::default();
        let mut items = Vec::new();
        while let Some(item) = file.next(&mut names)? {
            items.push(item);
        }
        Ok(items)
    }

    #[test]
    fn both_byte_orders_say_the_same() {
        let complete = 0x8a << 16 | 8;
        let little = items(&seven(1, 99, complete, false)).unwrap();
        assert_eq!(little, items(&seven(1, 99, complete, true)).unwrap());
        let Item::Event(event) = little[0] else { panic!() };
        assert_eq!((event.sector, event.sectors, event.pid, event.cpu), (2048, 8, 42, 3));
        assert_eq!(
            (event.error, event.action, event.device.to_string()),
            (-5, Action::Complete, "7:1".into())
        );
        assert_eq!(event.flags.to_string(), "WS");
    }

    #[test]
    fn version_8_has_wider_actions_behind_the_task() {
        let mut record = seven(1, 99, 0, false);
        record[0] = 8;
        record.truncate(28);
        // Task, action with the category of zone resets, device, processor, error, payload, filling.
        record.extend_from_slice(&42u32.to_le_bytes());
        record.extend_from_slice(&(7u64 | (1 << 17 | 1 << 6) << 16).to_le_bytes());
        record.extend_from_slice(&(7u32 << 20 | 1).to_le_bytes());
        record.extend_from_slice(&3u32.to_le_bytes());
        record.extend_from_slice(&[0; 16]);
        assert_eq!(record.len(), HEADER_8);
        let found = items(&record).unwrap();
        let Item::Event(event) = found[0] else { panic!() };
        assert_eq!((event.action, event.pid, event.cpu), (Action::Issue, 42, 3));
        assert_eq!((event.flags.to_string(), event.device.to_string()), ("Z".to_owned(), "7:1".to_owned()));
        record[0] = 9;
        assert!(items(&record).unwrap_err().to_string().contains("version 9"));
    }

    #[test]
    fn gaps_in_the_numbers_are_holes_in_front_of_the_event() {
        let queue = 0x1a << 16 | 1;
        let mut bytes = seven(5, 10, queue, false);
        bytes.extend(seven(9, 30, queue, false));
        let found = items(&bytes).unwrap();
        assert_eq!(found[1], Item::Lost(Lost { count: Some(3), from_ns: 10, until_ns: 30 }));
        assert_eq!((found.len(), found[1].time_ns(), found[2].time_ns()), (3, 10, 30));
        // Numbered 0 by the kernel's own tracer: nothing is known.
        let bytes = [seven(0, 10, queue, false), seven(0, 30, queue, false)].concat();
        assert_eq!(items(&bytes).unwrap().len(), 2);
    }

    #[test]
    fn damage_is_named_with_its_place() {
        let queue = 0x1a << 16 | 1;
        let two = [seven(1, 30, queue, false), seven(2, 40, queue, false)].concat();
        let said = |bytes: &[u8]| items(bytes).unwrap_err().to_string();
        assert_eq!(said(&two[..60]), "test is truncated: it ends within a record at byte 48");
        assert!(said(&[&two[..48], &[0; 48]].concat()).starts_with("test is damaged at byte 48: no record"));
        let back = [seven(1, 30, queue, false), seven(2, 20, queue, false)].concat();
        assert!(said(&back).contains("byte 48 is 10 ns before"));
        let mut far = two;
        far[40..44].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(said(&far).contains("no CPU 4294967295"));
    }
}
