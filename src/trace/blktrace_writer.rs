//! Writes `.blktrace.N` files, version 7, a file a processor, which blkparse and btt read.
//!
//! Enters: events in the order of time, whatever file they come from. Leaves: the block layer's among them as records, each task's name in
//! front of its first. What blktrace has no record for (calls, events of filesystems, markers) is left out. Layout: struct `blk_io_trace` of
//! include/uapi/linux/blktrace_api.h.

use std::collections::{HashMap, HashSet};
use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use super::blktrace::{MAGIC, NOTIFY_CATEGORY};
use super::event::{Action, Device, Event};

/// Version 7, as every kernel writes and every blkparse reads it.
const MAGIC_7: u32 = MAGIC | 7;
/// The categories of what has to do with a queue, a driver, an end.
const QUEUE: u32 = 1 << 4;
const REQUEUE: u32 = 1 << 5;
const ISSUE: u32 = 1 << 6;
const COMPLETE: u32 = 1 << 7;
/// A file each is open at once; a processor beyond is that of a forged trace.
const MOST_PROCESSORS: usize = 512;
/// Tasks whose names are remembered as written.
const MOST_TASKS: usize = 1 << 20;

/// The files of one trace.
pub struct BlktraceFiles {
    base: PathBuf,
    processors: Vec<Processor>,
    /// By processor and device, each of which counts for itself, the number of the last record.
    sequences: HashMap<(u32, Device), u32>,
    records: u64,
    /// Processors with the tasks whose names their files have.
    named: HashSet<(u32, u32)>,
    failed: Option<std::io::Error>,
    finished: bool,
}

struct Processor {
    path: PathBuf,
    file: BufWriter<File>,
}

/// Half a trace is none: files that were not finished are removed, those that were made here and no others.
impl Drop for BlktraceFiles {
    fn drop(&mut self) {
        for processor in self.processors.iter().filter(|_| !self.finished) {
            let _ = std::fs::remove_file(&processor.path);
        }
    }
}

impl BlktraceFiles {
    /// Files called `BASE.blktrace.N`. None is made before there is an event for it, and none that is there is written over.
    #[must_use]
    pub fn new(base: &Path) -> BlktraceFiles {
        BlktraceFiles {
            base: base.to_owned(),
            processors: Vec::new(),
            sequences: HashMap::new(),
            records: 0,
            named: HashSet::new(),
            failed: None,
            finished: false,
        }
    }

    /// Writes an event, if blktrace has a record for it. What fails is said by [`BlktraceFiles::finish`].
    pub fn put(&mut self, event: &Event) {
        if self.failed.is_none()
            && let Err(error) = self.written(event)
        {
            self.failed = Some(error);
        }
    }

    /// Events are missing: a number is left out, by which readers see it.
    pub fn lost(&mut self) {
        self.sequences.values_mut().for_each(|last| *last = last.wrapping_add(1));
    }

    /// Ends the files. Returns their number and that of their records. Without it, or where it fails, none of them stays.
    ///
    /// # Errors
    /// One of them could not be made or written.
    pub fn finish(mut self) -> std::io::Result<(usize, u64)> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        for processor in &mut self.processors {
            processor.file.flush()?;
        }
        self.finished = true;
        Ok((self.processors.len(), self.records))
    }

    fn written(&mut self, event: &Event) -> std::io::Result<()> {
        let Some((action, categories)) = kind(event.action).filter(|_| event.device.is_some()) else {
            return Ok(());
        };
        let at = event.cpu as usize;
        if at >= MOST_PROCESSORS {
            return Err(std::io::Error::other(format!(
                "the trace has an event on processor {at}, and at most {MOST_PROCESSORS} are written"
            )));
        }
        // blkparse looks for the files of all processors up to the first that is missing.
        while self.processors.len() <= at {
            let (path, file) = made(&self.base, self.processors.len())?;
            self.processors.push(Processor { path, file: BufWriter::new(file) });
        }
        let processor = &mut self.processors[at];
        if !event.comm.is_empty()
            && self.named.len() < MOST_TASKS
            && self.named.insert((event.cpu, event.pid))
        {
            let mut name = [0; 16];
            let text = event.comm.to_string();
            name[..text.len().min(15)].copy_from_slice(&text.as_bytes()[..text.len().min(15)]);
            processor.file.write_all(&record(event, 0, (NOTIFY_CATEGORY as u32) << 16, [0; 2], &name))?;
        }
        let sequence = self.sequences.entry((event.cpu, event.device)).or_default();
        *sequence = sequence.wrapping_add(1);
        self.records += 1;
        let bytes = u64::from(event.sectors) << 9;
        let payload: &[u8] = &match event.action {
            // Where the rest begins.
            Action::Split => event.end().to_be_bytes().to_vec(),
            // How many requests, and from where: the events do not say.
            Action::Unplug | Action::UnplugTimer => vec![0; 8],
            Action::Remap => vec![0; 16],
            _ => Vec::new(),
        };
        let action = action | (categories | u32::from(event.flags.categories())) << 16;
        let place = [event.sector, bytes.min(u64::from(u32::MAX))];
        processor.file.write_all(&record(event, *sequence, action, place, payload))
    }
}

/// A new file for a processor.
fn made(base: &Path, processor: usize) -> std::io::Result<(PathBuf, File)> {
    let mut name = base.as_os_str().to_owned();
    name.push(format!(".blktrace.{processor}"));
    let path = PathBuf::from(name);
    let named =
        |error: std::io::Error| std::io::Error::new(error.kind(), format!("{}: {error}", path.display()));
    let file = OpenOptions::new().write(true).create_new(true).open(&path).map_err(named)?;
    Ok((path, file))
}

fn record(event: &Event, sequence: u32, action: u32, [sector, bytes]: [u64; 2], payload: &[u8]) -> Vec<u8> {
    let mut record = Vec::with_capacity(64);
    for number in [MAGIC_7, sequence] {
        record.extend_from_slice(&number.to_le_bytes());
    }
    record.extend_from_slice(&event.time_ns.to_le_bytes());
    record.extend_from_slice(&sector.to_le_bytes());
    for number in [(bytes & 0xffff_ffff) as u32, action, event.pid, event.device.0, event.cpu] {
        record.extend_from_slice(&number.to_le_bytes());
    }
    // The field keeps the low bits of a negative number, as the kernel's does.
    record.extend_from_slice(&event.error.to_le_bytes()[..2]);
    record.extend_from_slice(&(payload.len() as u16).to_le_bytes());
    record.extend_from_slice(payload);
    record
}

/// The number of an action and its categories; nothing for what is no event of the block layer.
fn kind(action: Action) -> Option<(u32, u32)> {
    Some(match action {
        Action::Queue => (1, QUEUE),
        Action::BackMerge => (2, QUEUE),
        Action::FrontMerge => (3, QUEUE),
        Action::GetRequest => (4, QUEUE),
        Action::Sleep => (5, QUEUE),
        Action::Requeue => (6, REQUEUE),
        Action::Issue => (7, ISSUE),
        Action::Complete | Action::BioComplete => (8, COMPLETE),
        Action::Plug => (9, QUEUE),
        Action::Unplug => (10, QUEUE),
        Action::UnplugTimer => (11, QUEUE),
        Action::Insert => (12, QUEUE),
        Action::Split => (13, 0),
        Action::Bounce => (14, 0),
        Action::Remap => (15, 0),
        Action::Abort => (16, QUEUE),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::event::{Call, Comm, Device};
    use super::super::{Flags, Item, open};
    use super::*;

    /// One event of each action that has a record, on two processors.
    fn all() -> Vec<Event> {
        use Action::*;
        let actions = [
            Queue, GetRequest, Sleep, Insert, Issue, Requeue, BackMerge, FrontMerge, Split, Remap, Bounce,
            Plug, Unplug, UnplugTimer, Abort, Complete,
        ];
        let event = |(at, action): (u64, Action)| Event {
            device: Device::new(259, 3).unwrap(),
            flags: Flags::from_letters(b"FWFSM"),
            sector: 1 << 33 | at,
            sectors: 8,
            comm: Comm::new(b"fio"),
            error: if action == Complete { -5 } else { 0 },
            ..Event::at(1000 + at, (at % 2) as u32, 42, action)
        };
        (0..).zip(actions).map(event).collect()
    }

    #[test]
    fn what_is_written_is_read_again() {
        let place = tempfile::tempdir().unwrap();
        let base = place.path().join("trace");
        let mut files = BlktraceFiles::new(&base);
        let events = all();
        events.iter().for_each(|event| files.put(event));
        // A call of no device is no record.
        files.put(&Event::at(2000, 0, 42, Action::Enter(Call::Fsync)));
        assert_eq!(files.finish().unwrap(), (2, events.len() as u64));
        let mut trace = open(std::slice::from_ref(&base), None).unwrap();
        let mut found = Vec::new();
        while let Some(item) = trace.next_item().unwrap() {
            match item {
                Item::Event(event) => found.push(event),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(found, events);
        // Nothing is written over, nor removed.
        let mut again = BlktraceFiles::new(&base);
        events.iter().for_each(|event| again.put(event));
        assert_eq!(again.finish().unwrap_err().kind(), std::io::ErrorKind::AlreadyExists);
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 2);
    }

    #[test]
    fn each_device_counts_its_records_and_a_hole_is_one_of_each() {
        let place = tempfile::tempdir().unwrap();
        let base = place.path().join("trace");
        let mut files = BlktraceFiles::new(&base);
        let on =
            |minor: u32, event: &Event| Event { device: Device::new(8, minor).unwrap(), cpu: 0, ..*event };
        let events: Vec<Event> =
            all().iter().enumerate().map(|(at, event)| on(16 * (at as u32 % 3), event)).collect();
        let (before, behind) = events.split_at(9);
        before.iter().for_each(|event| files.put(event));
        files.lost();
        behind.iter().for_each(|event| files.put(event));
        files.finish().unwrap();
        let mut trace = open(std::slice::from_ref(&base), None).unwrap();
        let (mut seen, mut holes) = (0, 0);
        while let Some(item) = trace.next_item().unwrap() {
            match item {
                Item::Lost(lost) => holes += lost.count.unwrap(),
                _ => seen += 1,
            }
        }
        assert_eq!((seen, holes), (events.len(), 3));
    }

    #[test]
    fn a_trace_that_is_not_whole_leaves_no_file() {
        let place = tempfile::tempdir().unwrap();
        let files = |events: &[Event]| {
            let mut files = BlktraceFiles::new(&place.path().join("trace"));
            events.iter().for_each(|event| files.put(event));
            files
        };
        let left = || std::fs::read_dir(place.path()).unwrap().count();
        // Whoever reads the trace gives up: it is damaged.
        let begun = files(&all());
        assert_eq!(left(), 2);
        drop(begun);
        assert_eq!(left(), 0);
        // An event that no machine can have had.
        let forged = Event { cpu: u32::MAX, ..all()[0] };
        let error = files(&[all()[0], forged]).finish().unwrap_err().to_string();
        assert!(error.contains("processor 4294967295"), "{error}");
        assert_eq!(left(), 0);
    }

    #[test]
    fn every_kind_of_io_keeps_its_letters() {
        for letters in ["R", "RA", "RM", "W", "WS", "WFS", "FWFSM", "FF", "D", "WZ", "N"] {
            let flags = Flags::from_letters(letters.as_bytes());
            let bytes = if ["FF", "N"].contains(&letters) { 0 } else { 4096 };
            let again = Flags::from_categories(u64::from(flags.categories()), bytes);
            // blktrace has no letter of its own for zeroes without a buffer, but a bit beyond those of version 7.
            let expected = if letters == "WZ" { "W" } else { letters };
            assert_eq!(again.to_string(), expected, "{letters}");
        }
    }
}
