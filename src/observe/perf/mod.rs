//! perf_event_open(2): clock samples and tracepoints of this thread and of all that it starts, read while they happen.
//!
//! Enters: what to watch, and a [`Sink`]. Leaves: the sink, which was given every event in the order of time, and how many events
//! were lost. It must not know what events mean.
//!
//! Each event has a ring buffer on each processor. A thread of this process empties them; it is started before the events are opened, so
//! that it does not watch itself. An event is handed on when all that came before it must have been read. Nothing of this outlives the
//! process: events end with their descriptors. What watching takes is processor time of the watched machine: some microseconds an event.

mod counting;
mod event;
mod family;
mod filter;
mod machine;
mod notes;
mod opened;
mod pace;
mod programs;
mod readers;
mod refused;
mod symbols;
mod tracefs;

pub(in crate::observe) use counting::Counting;
pub(in crate::observe) use event::Event;
pub(in crate::observe) use family::Whose;
pub(in crate::observe) use machine::{MachineWatch, Recorder, Wanted};
pub(in crate::observe) use notes::{
    HIDDEN, Read, distortion_note, io_uring_note, is_io_urings_thread, lost_note, unwritten_note,
};
pub(in crate::observe) use programs::{Programs, Spot};
pub(in crate::observe) use readers::used as readers_used;
pub(in crate::observe) use refused::Refused;
pub(in crate::observe) use symbols::{Function, Symbols};
pub(in crate::observe) use tracefs::{Place, Tracefs, Tracepoint};

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use perf_event::Sampler;
use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};

use super::unseen::{READER_DIED, Unseen};
use event::Parts;
use family::Family;
use machine::MoreFiles;
use opened::{open, ring_sizes};
use pace::{Pace, Turn};

/// An event may be written by one processor while another writes later ones; it is there after this time.
const SETTLED_NS: u64 = 5_000_000;
/// Between two times that the buffers are emptied: a buffer has room for some 200,000 events a second.
const PAUSE: Duration = Duration::from_millis(20);
/// Types of records (perf_event_open(2)); the last is what the fourth is called where a processor is watched and no thread.
const LOST: u32 = 2;
const FORK: u32 = 7;
const SAMPLE: u32 = 9;
const SWITCH: u32 = 14;
const SWITCH_OF_PROCESSOR: u32 = 15;
/// Of a `PERF_RECORD_SWITCH`: the thread leaves the processor.
const SWITCHED_OUT: u16 = 1 << 13;

/// What to watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::observe) enum Watched {
    /// The processor clock, so many times a second of running, with the kernel's stack or else where the program is. Beside one that is not of
    /// the whole machine one that is takes over where threads leave their processors often: see [`Pace`].
    Clock {
        /// On the whole machine; samples of others are dropped as they are read. It needs [`Watched::Starts`].
        of_machine: bool,
        /// Samples a second.
        hertz: u64,
        /// Also what runs in the kernel.
        kernel: bool,
        /// With the program's stack in every sample.
        user_stacks: bool,
    },
    /// A tracepoint by its number.
    Tracepoint {
        /// The number.
        id: u64,
        /// With the kernel's stack.
        stack: bool,
    },
    /// A tracepoint by its number, only where the kernel lets it through.
    Filtered {
        /// The number.
        id: u64,
        /// The filter as the kernel writes it.
        filter: &'static str,
    },
    /// A tracepoint by its number, on the whole machine.
    OfMachine {
        /// The number.
        id: u64,
    },
    /// Which threads of the machine are started, and by whom; it is no event.
    Starts,
    /// The tracepoint sched:sched_switch by its number, with the kernel's stack, and when threads are back on a processor.
    Switches {
        /// The number.
        id: u64,
    },
}

impl Watched {
    fn parts(self) -> Parts {
        match self {
            Watched::Clock { .. } => Parts { address: true, stack: true, raw: false },
            Watched::Tracepoint { stack, .. } => Parts { address: false, stack, raw: true },
            Watched::Filtered { .. } | Watched::OfMachine { .. } => {
                Parts { address: false, stack: false, raw: true }
            }
            Watched::Starts => Parts { address: false, stack: false, raw: false },
            Watched::Switches { .. } => Parts { address: false, stack: true, raw: true },
        }
    }
}

/// Takes events in the order of time.
pub(in crate::observe) trait Sink: Send + 'static {
    /// One event.
    fn take(&mut self, event: &Event);

    /// Events were lost before this time: what has begun may have ended unseen.
    fn hole(&mut self, _time_ns: u64) {}
}

/// What came of it.
pub(in crate::observe) struct Seen<S> {
    /// The sink.
    pub(in crate::observe) sink: S,
    /// Events that were lost.
    pub(in crate::observe) lost: u64,
    /// All that were read: also those that say nothing to the sink.
    pub(in crate::observe) read: Read,
}

/// Events being watched.
pub(in crate::observe) struct Watch<S> {
    reader: JoinHandle<Seen<S>>,
    over: Arc<AtomicBool>,
}

impl<S: Sink> Watch<S> {
    /// Watches these, and all threads and processes that they start from now on.
    ///
    /// # Errors
    /// Why the kernel refuses.
    pub(in crate::observe) fn start(
        whose: &Whose,
        watched: &[Watched],
        sink: S,
    ) -> Result<Watch<S>, Refused> {
        let (rings, to_read) = channel::<Opened>();
        let (up, is_up) = channel::<()>();
        let over = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&over);
        // Of others only the whole machine can be watched, with what tells which threads are theirs.
        let mut watched = watched.to_vec();
        if whose.are_others() && !watched.contains(&Watched::Starts) {
            watched.push(Watched::Starts);
        }
        let own = Family::new(whose, &watched);
        let reader = std::thread::spawn(move || read_all(&up, &to_read, &told, own, sink));
        // A thread that is being started holds locks of the library, which a fork meanwhile would copy.
        let _ = is_up.recv();
        let mut opened = open_all(whose, &watched)?;
        // Only now: threads that were started before are listed, and those started since have told it.
        opened.threads = whose.threads();
        let _ = rings.send(opened);
        Ok(Watch { reader, over })
    }

    /// What comes from now on is watched no more, as soon as the reader looks: within [`PAUSE`].
    pub(in crate::observe) fn end(&self) {
        self.over.store(true, Ordering::Release);
    }

    /// Ends a watch and leaves none in its place. The subject has its verb: `locks are`.
    ///
    /// # Errors
    /// Why it was not watched; the reader died.
    pub(in crate::observe) fn seen(
        watch: &mut Result<Watch<S>, Refused>,
        subject: &str,
    ) -> Result<Seen<S>, Unseen> {
        let watch = std::mem::replace(watch, Err(Refused::Kernel(Errno::INVAL)));
        let watch = watch.map_err(|refused| Unseen::watched(subject, refused.words()))?;
        watch.end();
        watch.reader.join().map_err(|_| Unseen::watched(subject, READER_DIED))
    }
}

/// The ring buffer of one event on one processor.
struct Ring {
    watched: usize,
    parts: Parts,
    sampler: Sampler,
    turn: Turn,
    /// Told by records among the events.
    lost: u64,
}

/// What the reader is given.
struct Opened {
    rings: Vec<Ring>,
    /// `None`: nothing takes over.
    pace: Option<Pace>,
    /// Those that are watched from the beginning.
    threads: HashSet<u32>,
}

impl Opened {
    /// Lets the clock of the machine take over; how many events the other had lost.
    fn take_over(&mut self, waiting: &mut Waiting) -> u64 {
        self.pace = None;
        let second = self.rings.iter_mut().filter(|ring| ring.turn == Turn::Second);
        second.for_each(|ring| drop(ring.sampler.enable()));
        // Closed, they are no burden to threads that are switched.
        let (mut ended, kept): (Vec<Ring>, Vec<Ring>) =
            std::mem::take(&mut self.rings).into_iter().partition(|ring| ring.turn == Turn::First);
        self.rings = kept;
        ended.iter_mut().map(|ring| ring.end(waiting)).sum()
    }
}

fn open_all(whose: &Whose, watched: &[Watched]) -> Result<Opened, Refused> {
    let processors = processors();
    let wanted = processors.len() * watched.len();
    let _more = MoreFiles::allowed(wanted);
    let mut refused = Refused::NoProcessors;
    for bytes in ring_sizes(wanted) {
        match open_with(whose, watched, &processors, *bytes) {
            // It may be that not so much memory may be locked.
            Err(Refused::Kernel(Errno::PERM)) => refused = Refused::Kernel(Errno::PERM),
            other => return other,
        }
    }
    Err(refused)
}

/// With rings of so many bytes.
fn open_with(
    whose: &Whose,
    watched: &[Watched],
    processors: &[usize],
    bytes: usize,
) -> Result<Opened, Refused> {
    let mut rings = Vec::new();
    for processor in processors {
        for (number, what) in watched.iter().enumerate() {
            match open(*what, whose.are_others(), *processor, bytes) {
                Ok(sampler) => {
                    let (parts, turn) = (what.parts(), Turn::of(*what, watched));
                    rings.push(Ring { watched: number, parts, sampler, turn, lost: 0 });
                }
                // Taken offline meanwhile.
                Err(Errno::NODEV) => {}
                Err(errno) => return Err(Refused::Kernel(errno)),
            }
        }
    }
    if rings.is_empty() {
        return Err(Refused::NoProcessors);
    }
    for ring in rings.iter_mut().filter(|ring| ring.turn != Turn::Second) {
        ring.sampler.enable().map_err(|error| Refused::Kernel(errno_of(&error)))?;
    }
    let pace = rings.iter().any(|ring| ring.turn == Turn::Second).then(Pace::counted);
    let pace = pace.transpose().map_err(Refused::Kernel)?;
    Ok(Opened { rings, pace, threads: HashSet::new() })
}

fn errno_of(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::INVAL)
}

/// Processors that are online: `0-3,8`.
fn processors() -> Vec<usize> {
    listed(&std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default())
}

/// The highest number of a processor that is online.
pub(in crate::observe) fn last_processor() -> Option<u32> {
    processors().into_iter().max().and_then(|number| u32::try_from(number).ok())
}

fn listed(text: &str) -> Vec<usize> {
    let part = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.parse::<usize>().ok()?..=last.parse().ok()?)
    };
    text.trim().split(',').filter_map(part).flatten().collect()
}

/// The reader's thread.
fn read_all<S: Sink>(
    up: &Sender<()>,
    to_read: &Receiver<Opened>,
    over: &AtomicBool,
    mut family: Family,
    mut sink: S,
) -> Seen<S> {
    let reading = readers::join();
    let _ = up.send(());
    let Ok(mut opened) = to_read.recv() else { return Seen { sink, lost: 0, read: Read::default() } };
    family.begins_with(std::mem::take(&mut opened.threads));
    let (mut waiting, mut lost) = (Waiting::default(), 0);
    while !over.load(Ordering::Acquire) {
        std::thread::sleep(PAUSE);
        if opened.pace.as_mut().is_some_and(Pace::is_fast) {
            lost += opened.take_over(&mut waiting);
        }
        let settled_ns = now_ns().saturating_sub(SETTLED_NS);
        opened.rings.iter_mut().for_each(|ring| ring.empty(&mut waiting));
        waiting.hand_on(settled_ns, &mut family, &mut sink);
        reading.tell();
    }
    lost += opened.rings.iter_mut().map(|ring| ring.end(&mut waiting)).sum::<u64>();
    waiting.hand_on(u64::MAX, &mut family, &mut sink);
    Seen { sink, lost, read: waiting.read }
}

fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

impl Ring {
    fn empty(&mut self, waiting: &mut Waiting) {
        while let Some(record) = self.sampler.next_record() {
            let bytes = record.to_contiguous();
            match record.ty() {
                SAMPLE => waiting.events.extend(Event::read(self.watched, self.parts, &bytes)),
                SWITCH if record.misc() & SWITCHED_OUT == 0 => {
                    waiting.events.extend(Event::back(self.watched, &bytes));
                }
                SWITCH_OF_PROCESSOR if record.misc() & SWITCHED_OUT == 0 => {
                    // First who was there before.
                    waiting.events.extend(bytes.get(8..).and_then(|own| Event::back(self.watched, own)));
                }
                FORK => waiting.events.extend(Event::started(self.watched, &bytes)),
                LOST => {
                    self.lost += event::lost_of(&bytes).unwrap_or(0);
                    waiting.events.extend(Event::hole(self.watched, &bytes));
                }
                // Others were not asked for.
                _ => {}
            }
        }
    }

    /// Ends it; how many events it lost.
    fn end(&mut self, waiting: &mut Waiting) -> u64 {
        let _ = self.sampler.disable();
        self.empty(waiting);
        self.lost()
    }

    /// Events that found no room, by the kernel's count where it has one.
    fn lost(&mut self) -> u64 {
        let counted = self.sampler.read_full().ok().and_then(|counter| counter.lost());
        counted.unwrap_or(self.lost)
    }
}

/// Events that were read, and which others may have to go before.
#[derive(Default)]
struct Waiting {
    events: VecDeque<Event>,
    /// All of them so far.
    read: Read,
}

impl Waiting {
    /// Hands on what happened before `settled_ns`, in the order of time.
    fn hand_on(&mut self, settled_ns: u64, family: &mut Family, sink: &mut impl Sink) {
        // Stable: events of one moment stay as they were read.
        self.events.make_contiguous().sort_by_key(|event| event.time_ns);
        while self.events.front().is_some_and(|event| event.time_ns < settled_ns) {
            let Some(event) = self.events.pop_front() else { return };
            match event.stack.is_empty() {
                true => self.read.plain += 1,
                false => self.read.with_stack += 1,
            }
            if event.is_hole {
                sink.hole(event.time_ns);
            } else if family.has(&event) {
                sink.take(&event);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Times(Vec<u64>);

    impl Sink for Times {
        fn take(&mut self, event: &Event) {
            self.0.push(event.time_ns);
        }

        fn hole(&mut self, _time_ns: u64) {
            self.0.push(0);
        }
    }

    #[test]
    fn events_are_handed_on_in_order_once_all_before_are_there() {
        let (mut waiting, mut sink) = (Waiting::default(), Times(Vec::new()));
        let mut family = Family::new(&Whose::Own, &[]);
        let at = |time_ns| Event { time_ns, ..Event::default() };
        waiting.events.extend([5, 9, 2].map(at));
        waiting.hand_on(6, &mut family, &mut sink);
        assert_eq!(sink.0, [2, 5]);
        waiting.events.extend([7, 12].map(at));
        waiting.hand_on(10, &mut family, &mut sink);
        assert_eq!(sink.0, [2, 5, 7, 9]);
        waiting.hand_on(u64::MAX, &mut family, &mut sink);
        assert_eq!(sink.0, [2, 5, 7, 9, 12]);
        // A hole has its place among them: number and count, task, time.
        let record: Vec<u8> = [1, 5, 7 << 32 | 7, 14].into_iter().flat_map(u64::to_ne_bytes).collect();
        waiting.events.extend([15, 13].map(at).into_iter().chain(Event::hole(0, &record)));
        waiting.hand_on(u64::MAX, &mut family, &mut sink);
        assert_eq!(sink.0[5..], [13, 0, 15]);
        assert_eq!(Event::hole(0, &record[..20]), None, "cut");
        assert_eq!(waiting.read, Read::plain(8));
        waiting.events.push_back(Event { stack: vec![1], ..at(20) });
        waiting.hand_on(u64::MAX, &mut family, &mut sink);
        assert_eq!(waiting.read, Read { plain: 8, with_stack: 1 });
    }

    #[test]
    fn processors_are_listed_in_ranges() {
        assert_eq!(listed("0-2,5,7-8\n"), [0, 1, 2, 5, 7, 8]);
        assert_eq!(listed("0"), [0]);
        assert_eq!(listed(""), Vec::<usize>::new());
    }
}
