//! perf_event_open(2) for the whole machine: tracepoints on every processor, whoever they happen to, read while they happen.
//!
//! Enters: which tracepoints, each with a filter, and a [`Recorder`]. Leaves: the recorder, which was given the records as the kernel wrote
//! them, and how often each tracepoint was met. It must not know what records mean.
//!
//! A processor has one ring buffer that all its tracepoints share (PERF_EVENT_IOC_SET_OUTPUT), so that its records come in the order
//! they were written. Those that are only counted write nothing. As with [`super::Watch`] nothing outlives the process.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use perf_event::events::{Software, Tracepoint};
use perf_event::{Builder, Clock, Counter, ReadFormat, SampleFlag, Sampler};
use rustix::io::{Errno, fcntl_dupfd_cloexec};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::event::lost_of;
use super::filter::set_filter;
use super::{LOST, Refused, SAMPLE, SETTLED_NS, errno_of, now_ns, processors};

/// Bytes of all ring buffers together; each is a power of two within the other two.
const ALL_RINGS: usize = 32 << 20;
const SMALLEST_RING: usize = 512 << 10;
const LARGEST_RING: usize = 4 << 20;
/// Between two times that the buffers are emptied: the smallest has room for some 500,000 records a second.
const PAUSE: Duration = Duration::from_millis(10);
/// Of no tracepoint.
const NO_ID: u64 = u64::MAX;
/// It has not ended yet.
const NOT_ENDED: u64 = u64::MAX;
// `_IO('$', 5)` of perf_event_open(2).
const SET_OUTPUT: libc::Ioctl = 0x2405;

/// A tracepoint that is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::observe) struct Wanted {
    /// Its number.
    pub(in crate::observe) id: u64,
    /// The kernel's filter, `dev == 7340032`; empty: all.
    pub(in crate::observe) filter: String,
    /// Whether its records are wanted, too, or only how many there were.
    pub(in crate::observe) recorded: bool,
}

/// Takes records.
pub(in crate::observe) trait Recorder: Send + 'static {
    /// One record. Those of a processor come in the order they were written, but for those of interrupts, which may stand behind later
    /// ones.
    fn record(&mut self, processor: u32, time_ns: u64, raw: &[u8]);

    /// So many events of the tracepoint with this number (of one that is not known: `u64::MAX`) happened and have no record, nobody knows when. Told at the end.
    fn unwritten(&mut self, id: u64, count: u64);

    /// So many records of a processor found no room; `until_ns`: from then on there is room again.
    fn lost(&mut self, processor: u32, count: u64, until_ns: u64);

    /// All records before this time have been given.
    fn settled(&mut self, time_ns: u64);
}

/// What came of it.
pub(in crate::observe) struct Recorded<R> {
    /// The recorder.
    pub(in crate::observe) recorder: R,
    /// How often each tracepoint was met, in the order they were asked for; exact even where records were lost.
    pub(in crate::observe) met: Vec<u64>,
    /// Records that found no room.
    pub(in crate::observe) lost: u64,
    /// Events that the kernel counted and neither wrote nor lost: some kernels (6.18 under Firecracker, seen) write nothing of an event
    /// that interrupts the idle task.
    pub(in crate::observe) unwritten: u64,
}

/// Tracepoints being watched.
pub(in crate::observe) struct MachineWatch<R> {
    reader: JoinHandle<Recorded<R>>,
    ended_ns: Arc<AtomicU64>,
    begun_ns: u64,
}

impl<R: Recorder> MachineWatch<R> {
    /// Watches from now on.
    ///
    /// # Errors
    /// Why the kernel refuses.
    pub(in crate::observe) fn start(wanted: &[Wanted], recorder: R) -> Result<MachineWatch<R>, Refused> {
        let (rings, to_read) = channel::<Begun>();
        let (up, is_up) = channel::<()>();
        let ended_ns = Arc::new(AtomicU64::new(NOT_ENDED));
        let told = Arc::clone(&ended_ns);
        let kinds = wanted.len();
        let reader = std::thread::spawn(move || read_all(&up, &to_read, &told, kinds, recorder));
        // A thread that is being started holds locks of the library, which a fork meanwhile would copy.
        let _ = is_up.recv();
        let mut processors = open_all(wanted)?;
        let enabled = processors.iter_mut().flat_map(|processor| &mut processor.points);
        for point in enabled {
            point.counter.enable().map_err(|error| Refused::Kernel(errno_of(&error)))?;
        }
        let _ = rings.send(Begun { processors, at_ns: now_ns() });
        Ok(MachineWatch { reader, ended_ns, begun_ns: now_ns() })
    }

    /// Nothing that comes from now on is watched.
    pub(in crate::observe) fn end(&self) {
        let order = Ordering::AcqRel;
        let _ = self.ended_ns.compare_exchange(NOT_ENDED, now_ns(), order, Ordering::Acquire);
        self.reader.thread().unpark();
    }

    /// How long it has watched.
    pub(in crate::observe) fn elapsed(&self) -> Duration {
        let ended_ns = match self.ended_ns.load(Ordering::Acquire) {
            NOT_ENDED => now_ns(),
            ended_ns => ended_ns,
        };
        Duration::from_nanos(ended_ns.saturating_sub(self.begun_ns))
    }

    /// Ends it. `None`: the reader died.
    pub(in crate::observe) fn stop(self) -> Option<Recorded<R>> {
        self.end();
        self.reader.join().ok()
    }
}

/// What the reader is given.
struct Begun {
    processors: Vec<Processor>,
    at_ns: u64,
}

/// The ring buffer of a processor with what writes into it.
struct Processor {
    number: u32,
    ring: Sampler,
    bytes: usize,
    points: Vec<Point>,
    /// Lost records as records among the others tell them.
    told: u64,
    /// Lost records that the recorder knows of.
    reported: u64,
}

/// A tracepoint on a processor.
struct Point {
    /// Its place in the list of what is wanted.
    place: usize,
    id: u64,
    recorded: bool,
    counter: Counter,
    /// Records of it that were read.
    read: u64,
}

/// Room for many descriptors until this is dropped: there is one for each tracepoint on each processor. Where the limit of this process is
/// too low for them it is raised meanwhile, and they get numbers above it. Afterwards as many numbers are free below the limit as before,
/// for this process and for what it starts.
pub(super) struct MoreFiles {
    before: Rlimit,
    /// They have the numbers below the limit.
    placeholders: Vec<OwnedFd>,
}

impl MoreFiles {
    /// Room for so many.
    pub(super) fn allowed(wanted: usize) -> MoreFiles {
        let before = getrlimit(Resource::Nofile);
        let mut more = MoreFiles { before, placeholders: Vec::new() };
        let (Some(limit), Ok(null)) = (before.current, File::open("/dev/null")) else { return more };
        let wanted = wanted as u64;
        // The lowest free number is about how many are open.
        if u64::from(null.as_raw_fd().unsigned_abs()) + wanted <= limit / 2 {
            return more;
        }
        let raised = Rlimit { current: before.maximum, maximum: before.maximum };
        // Without more files it may do with those it has.
        let is_raised = setrlimit(Resource::Nofile, raised).is_ok();
        if is_raised && before.maximum.is_none_or(|most| most >= limit + wanted) {
            more.placeholders = all_below(&null, limit);
        }
        more
    }
}

impl Drop for MoreFiles {
    fn drop(&mut self) {
        self.placeholders.clear();
        let _ = setrlimit(Resource::Nofile, self.before);
    }
}

/// Copies of a descriptor with all free numbers below this one.
fn all_below(file: &File, number: u64) -> Vec<OwnedFd> {
    let copies = std::iter::from_fn(|| fcntl_dupfd_cloexec(file, 0).ok());
    copies.take_while(|copy| u64::from(copy.as_raw_fd().unsigned_abs()) < number).collect()
}

fn open_all(wanted: &[Wanted]) -> Result<Vec<Processor>, Refused> {
    let numbers = processors();
    let bytes = ring_bytes(numbers.len());
    let _more = MoreFiles::allowed(numbers.len() * (wanted.len() + 1));
    let mut opened = Vec::new();
    for number in numbers {
        match Processor::open(number, bytes, wanted) {
            Ok(processor) => opened.push(processor),
            // Taken offline meanwhile.
            Err(Errno::NODEV) => {}
            Err(errno) => return Err(Refused::Kernel(errno)),
        }
    }
    if opened.is_empty() { Err(Refused::NoProcessors) } else { Ok(opened) }
}

/// Bytes of each of so many ring buffers.
fn ring_bytes(processors: usize) -> usize {
    let share = ALL_RINGS / processors.max(1);
    // The largest power of two within the share.
    let power = 1 << share.checked_ilog2().unwrap_or(0);
    power.clamp(SMALLEST_RING, LARGEST_RING)
}

impl Processor {
    fn open(number: usize, bytes: usize, wanted: &[Wanted]) -> Result<Processor, Errno> {
        let on = |builder: &mut Builder<'_>| {
            builder.any_pid().one_cpu(number).clockid(Clock::MONOTONIC).include_kernel();
        };
        // An event that never happens holds the ring buffer.
        let mut holder = Builder::new(Software::DUMMY);
        on(&mut holder);
        let ring = holder.build().and_then(|counter| counter.sampled(bytes));
        let ring = ring.map_err(|error| errno_of(&error))?;
        let mut points = Vec::new();
        for (place, point) in wanted.iter().enumerate() {
            let build = |read: ReadFormat| {
                let mut builder = Builder::new(Tracepoint::with_id(point.id));
                on(&mut builder);
                builder.read_format(read);
                if point.recorded {
                    builder.sample_period(1).sample(SampleFlag::TIME).sample(SampleFlag::RAW);
                }
                builder.build().map_err(|error| errno_of(&error))
            };
            // Linux 6.0 counts what was lost even where no later event tells it.
            let counter = match build(ReadFormat::LOST) {
                Err(Errno::INVAL) => build(ReadFormat::empty()),
                other => other,
            }?;
            if point.recorded {
                set_output(counter.as_raw_fd(), ring.as_raw_fd())?;
            }
            if !point.filter.is_empty() {
                set_filter(counter.as_raw_fd(), &point.filter)?;
            }
            points.push(Point { place, id: point.id, recorded: point.recorded, counter, read: 0 });
        }
        let number = u32::try_from(number).map_err(|_| Errno::INVAL)?;
        Ok(Processor { number, ring, bytes, points, told: 0, reported: 0 })
    }

    /// Gives the recorder what happened between two times and has not been given yet.
    fn empty(&mut self, begun_ns: u64, ended_ns: u64, recorder: &mut impl Recorder) {
        let mut read = 0;
        while let Some(record) = self.ring.next_record() {
            let bytes = record.to_contiguous();
            read += bytes.len();
            match record.ty() {
                SAMPLE => {
                    if let Some((time_ns, raw)) = sample_of(&bytes) {
                        count(raw, &mut self.points);
                        if (begun_ns..=ended_ns).contains(&time_ns) {
                            recorder.record(self.number, time_ns, raw);
                        }
                    }
                }
                // They are missing here, before the next record.
                LOST => {
                    self.told += lost_of(&bytes).unwrap_or(0);
                    report(self.number, self.told, &mut self.reported, recorder);
                }
                // Others were not asked for.
                _ => {}
            }
        }
        // A buffer that was full has lost what no record tells of yet.
        if read > self.bytes / 2 {
            self.report_lost(recorder);
        }
    }

    /// Tells the recorder of lost records by the kernel's count, where it has one.
    fn report_lost(&mut self, recorder: &mut impl Recorder) {
        let of = |point: &mut Point| point.counter.read_full().ok().and_then(|counter| counter.lost());
        let counted: Option<u64> = self.points.iter_mut().map(of).sum();
        report(self.number, counted.unwrap_or(0).max(self.told), &mut self.reported, recorder);
    }
}

/// Counts a record for its tracepoint.
fn count(raw: &[u8], points: &mut [Point]) {
    let Some(id) = raw.first_chunk().map(|id| u64::from(u16::from_ne_bytes(*id))) else { return };
    if let Some(point) = points.iter_mut().find(|point| point.id == id && point.recorded) {
        point.read += 1;
    }
}

/// Events that were counted and are neither among the records nor among the lost ones.
fn unwritten(counted: u64, read: u64, lost: u64) -> u64 {
    counted.saturating_sub(read).saturating_sub(lost)
}

/// Tells the recorder of lost records that it does not know of yet.
fn report(processor: u32, lost: u64, known: &mut u64, recorder: &mut impl Recorder) {
    if lost > *known {
        recorder.lost(processor, lost - *known, now_ns());
        *known = lost;
    }
}

/// Time and tracepoint's bytes of a `PERF_RECORD_SAMPLE` with just these; `None`: it is cut.
fn sample_of(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (time, rest) = bytes.split_first_chunk()?;
    let (length, rest) = rest.split_first_chunk()?;
    let raw = rest.get(..u32::from_ne_bytes(*length) as usize)?;
    Some((u64::from_ne_bytes(*time), raw))
}

/// The reader's thread.
fn read_all<R: Recorder>(
    up: &Sender<()>,
    to_read: &Receiver<Begun>,
    ended_ns: &AtomicU64,
    kinds: usize,
    mut recorder: R,
) -> Recorded<R> {
    let reading = super::readers::join();
    let _ = up.send(());
    let mut met = vec![0; kinds];
    let Ok(Begun { mut processors, at_ns }) = to_read.recv() else {
        return Recorded { recorder, met, lost: 0, unwritten: 0 };
    };
    while ended_ns.load(Ordering::Acquire) == NOT_ENDED {
        std::thread::park_timeout(PAUSE);
        let settled_ns = now_ns().saturating_sub(SETTLED_NS);
        let until_ns = ended_ns.load(Ordering::Acquire);
        processors.iter_mut().for_each(|processor| processor.empty(at_ns, until_ns, &mut recorder));
        recorder.settled(settled_ns);
        reading.tell();
    }
    let until_ns = ended_ns.load(Ordering::Acquire);
    for point in processors.iter_mut().flat_map(|processor| &mut processor.points) {
        let _ = point.counter.disable();
    }
    let mut lost = 0;
    let mut missing = BTreeMap::new();
    processors.iter_mut().for_each(|processor| processor.empty(at_ns, until_ns, &mut recorder));
    // Another processor may be about to write its last record.
    std::thread::sleep(Duration::from_nanos(SETTLED_NS));
    for processor in &mut processors {
        processor.empty(at_ns, until_ns, &mut recorder);
        processor.report_lost(&mut recorder);
        lost += processor.reported;
        let mut unknown = 0;
        for point in &mut processor.points {
            let Ok(counter) = point.counter.read_full() else { continue };
            met[point.place] += counter.count();
            if !point.recorded {
                continue;
            }
            match counter.lost().or((processor.reported == 0).then_some(0)) {
                Some(lost) => {
                    *missing.entry(point.id).or_insert(0) += unwritten(counter.count(), point.read, lost);
                }
                None => unknown += counter.count().saturating_sub(point.read),
            }
        }
        // Before Linux 6.0 nobody knows of which tracepoints the lost records were.
        *missing.entry(NO_ID).or_insert(0) += unwritten(unknown, 0, processor.reported);
    }
    recorder.settled(u64::MAX);
    missing.retain(|_, count| *count > 0);
    missing.iter().for_each(|(id, count)| recorder.unwritten(*id, *count));
    Recorded { recorder, met, lost, unwritten: missing.into_values().sum() }
}

#[expect(unsafe_code, reason = "an ioctl that perf-event2 has no wrapper for")]
fn set_output(point: RawFd, ring: RawFd) -> Result<(), Errno> {
    // SAFETY: both are open descriptors of perf events; the kernel checks that they fit.
    let result = unsafe { libc::ioctl(point, SET_OUTPUT, ring) };
    if result < 0 { Err(errno_of(&std::io::Error::last_os_error())) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ring_buffers_share_their_memory_within_bounds() {
        for (processors, bytes) in [(0, 4 << 20), (1, 4 << 20), (2, 4 << 20), (12, 2 << 20), (64, 512 << 10)]
        {
            assert_eq!(ring_bytes(processors), bytes, "{processors}");
        }
        assert_eq!(ring_bytes(1024), SMALLEST_RING);
    }

    #[test]
    fn a_sample_is_its_time_and_the_tracepoints_bytes() {
        let mut bytes = 77_u64.to_ne_bytes().to_vec();
        bytes.extend(4_u32.to_ne_bytes());
        bytes.extend([1, 2, 3, 4]);
        assert_eq!(sample_of(&bytes), Some((77, &[1, 2, 3, 4][..])));
        assert!((0..bytes.len()).all(|length| sample_of(&bytes[..length]).is_none()));
    }

    #[test]
    fn what_was_counted_and_is_nowhere_is_unwritten() {
        assert_eq!((unwritten(10, 7, 2), unwritten(10, 10, 0)), (1, 0));
        // Read between two looks at the counter.
        assert_eq!(unwritten(10, 9, 2), 0);
    }

    #[test]
    fn the_limit_of_open_files_is_as_it_was_afterwards() {
        let before = getrlimit(Resource::Nofile);
        // More than fit below the usual limit of 1024.
        let more = MoreFiles::allowed(2000);
        let numbers = more.placeholders.iter().map(|copy| u64::from(copy.as_raw_fd().unsigned_abs()));
        assert!(numbers.max().is_none_or(|highest| Some(highest) < before.current));
        drop(more);
        assert_eq!(getrlimit(Resource::Nofile), before);
    }
}
