//! Waits for the kernel's locks: how many, how long and where (tracepoints lock:contention_begin and lock:contention_end, Linux 5.19).
//!
//! Enters: the two events of each wait of the workers. Leaves: count, sum and longest by kind of lock and caller. It must not know which
//! program waits.
//!
//! Source of the flags: include/trace/events/lock.h. A mutex that is spun for and then slept for begins twice and ends once: that is one
//! wait. The caller is the first function of the stack that does not itself take locks.

use std::collections::HashMap;
use std::time::Instant;

use rustix::io::Errno;

use super::perf::{
    Event, Function, HIDDEN, Place, Refused, Seen, Sink, Symbols, Tracefs, Watch, Watched, Whose,
    distortion_note, lost_note,
};
use super::waited::{Waited, count, of_places, rank, seconds};
use super::{Observer, Unseen};
use crate::record::{Note, Outcome, Sample};

/// Its tracepoints, the one that begins a wait first.
const TRACEPOINTS: [&str; 2] = ["lock/contention_begin", "lock/contention_end"];
/// The place of the first in the list of what is watched.
const BEGIN: usize = 0;

/// Watches the waits of all that this thread starts, or of others.
pub struct LocksObserver {
    whose: Whose,
    symbols: Symbols,
    watch: Result<Watch<LockWaits>, Refused>,
    begun: Instant,
}

impl LocksObserver {
    /// Looks up the kernel's functions, which takes longer than a start may.
    #[must_use]
    pub(super) fn prepared(whose: Whose) -> LocksObserver {
        LocksObserver {
            whose,
            symbols: Symbols::of_the_kernel(),
            watch: Err(Refused::Kernel(Errno::INVAL)),
            begun: Instant::now(),
        }
    }

    fn watch(&mut self) -> Result<Watch<LockWaits>, Refused> {
        let tracefs = Tracefs::open().map_err(Refused::NoTracefs)?;
        let [begin, end] = TRACEPOINTS.map(|name| tracefs.wanted(name));
        let (begin, end) = (begin?, end?);
        let missing = |_| Refused::NoTracepoint(TRACEPOINTS[0].replace('/', ":"));
        let places = Places {
            begin_lock: begin.field("lock_addr").map_err(missing)?,
            begin_flags: begin.field("flags").map_err(missing)?,
            end_lock: end.field("lock_addr").map_err(missing)?,
        };
        let watched = [
            Watched::Tracepoint { id: begin.id, stack: true },
            Watched::Tracepoint { id: end.id, stack: false },
        ];
        Watch::start(&self.whose, &watched, LockWaits::new(places, std::mem::take(&mut self.symbols)))
    }
}

impl Observer for LocksObserver {
    fn start(&mut self) {
        self.begun = Instant::now();
        self.watch = self.watch();
    }

    fn end(&mut self) {
        if let Ok(watch) = &self.watch {
            watch.end();
        }
    }

    /// `locks.waits`, `locks.wait_time`, `locks.longest`, `locks.lost`, `locks.lost_time`; of each kind `locks.of.KIND` and of the places with the longest
    /// sums `locks.at.KIND.CALLER` (s), `locks.waits_at.KIND.CALLER` and `locks.longest_at.KIND.CALLER`.
    fn stop(&mut self) -> Result<Outcome, Unseen> {
        let Seen { sink: waits, lost, read } = Watch::seen(&mut self.watch, "locks are")?;
        let mut outcome = Outcome { samples: samples(&waits, lost), ..Outcome::default() };
        outcome.notes.extend(lost_note("locks", lost).map(Note::from));
        outcome.notes.extend(distortion_note("locks", read, self.begun.elapsed()));
        if !waits.symbols.are_known() {
            outcome.notes.push(HIDDEN.into());
        }
        Ok(outcome)
    }
}

/// A lock by what it is: mutex, rwsem, spinlock …
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Kind(u32);

const SPIN: u32 = 1;
const READ: u32 = 2;
const WRITE: u32 = 4;
const RT: u32 = 8;
const PERCPU: u32 = 16;
const MUTEX: u32 = 32;

/// All names of kinds.
const KINDS: [&str; 13] = [
    "mutex", "rwsem_R", "rwsem_W", "spinlock", "rwlock_R", "rwlock_W", "pcpu-rwsem_R", "pcpu-rwsem_W",
    "rtmutex", "rwlock-rt_R", "rwlock-rt_W", "semaphore", "other",
];

impl Kind {
    /// As perf-lock(1) calls it, with `_` where that has `:`.
    fn name(self) -> &'static str {
        match self.0 & (SPIN | READ | WRITE | RT | PERCPU | MUTEX) {
            SPIN => "spinlock",
            flags if flags & MUTEX != 0 => "mutex",
            flags if flags & PERCPU != 0 => {
                if flags & WRITE != 0 {
                    "pcpu-rwsem_W"
                } else {
                    "pcpu-rwsem_R"
                }
            }
            flags if flags & SPIN != 0 => {
                if flags & WRITE != 0 {
                    "rwlock_W"
                } else {
                    "rwlock_R"
                }
            }
            RT => "rtmutex",
            flags if flags & RT != 0 => {
                if flags & WRITE != 0 {
                    "rwlock-rt_W"
                } else {
                    "rwlock-rt_R"
                }
            }
            WRITE => "rwsem_W",
            READ => "rwsem_R",
            // kernel/locking/semaphore.c has no flag of its own.
            _ if self.0 == 0 => "semaphore",
            _ => "other",
        }
    }
}

/// A wait that has begun.
#[derive(Clone, Copy, Debug)]
struct Begun {
    lock: u64,
    kind: Kind,
    caller: Option<Function>,
    at_ns: u64,
}

/// Where the fields of both tracepoints lie.
#[derive(Clone, Copy, Debug)]
struct Places {
    begin_lock: Place,
    begin_flags: Place,
    end_lock: Place,
}

/// Adds waits up.
struct LockWaits {
    places: Places,
    symbols: Symbols,
    begun: HashMap<u32, Vec<Begun>>,
    by_place: HashMap<(Kind, Option<Function>), Waited>,
    /// How long those had waited of which nobody knows the end.
    forgotten_ns: u64,
}

impl LockWaits {
    fn new(places: Places, symbols: Symbols) -> LockWaits {
        LockWaits { places, symbols, begun: HashMap::new(), by_place: HashMap::new(), forgotten_ns: 0 }
    }

    fn begin(&mut self, event: &Event) -> Option<()> {
        let lock = self.places.begin_lock.of(&event.raw)?;
        let kind = Kind(self.places.begin_flags.of(&event.raw)? as u32);
        let of_thread = self.begun.entry(event.thread).or_default();
        if let Some(at) = of_thread.iter().position(|begun| begun.lock == lock) {
            if of_thread[at].kind.0 & kind.0 & MUTEX != 0 {
                // Spinning has become sleeping, or the other way.
                of_thread[at].kind = kind;
                return Some(());
            }
            // The end of that wait was lost.
            of_thread.swap_remove(at);
        }
        let outside = event.stack.iter().find(|address| !self.symbols.takes_locks(**address));
        let caller = outside.and_then(|address| self.symbols.function(*address));
        of_thread.push(Begun { lock, kind, caller, at_ns: event.time_ns });
        Some(())
    }

    fn end(&mut self, event: &Event) -> Option<()> {
        let lock = self.places.end_lock.of(&event.raw)?;
        let of_thread = self.begun.get_mut(&event.thread)?;
        let at = of_thread.iter().position(|begun| begun.lock == lock)?;
        let begun = of_thread.swap_remove(at);
        let waited_ns = event.time_ns.saturating_sub(begun.at_ns);
        let waits = self.by_place.entry((begun.kind, begun.caller)).or_default();
        waits.add(Waited::once(waited_ns));
        Some(())
    }

    /// The sum of all.
    fn all(&self) -> Waited {
        Waited::sum(self.by_place.values())
    }

    /// By kind and caller, the longest sum first. Kinds of one name and places of one function are one.
    fn ranked(&self) -> Vec<(&'static str, &str, Waited)> {
        let mut named: HashMap<(&'static str, &str), Waited> = HashMap::new();
        for ((kind, caller), waits) in &self.by_place {
            let caller = caller.map_or("unknown", |caller| self.symbols.name(caller));
            named.entry((kind.name(), caller)).or_default().add(*waits);
        }
        let mut ranked: Vec<_> =
            named.into_iter().map(|((kind, caller), waits)| (kind, caller, waits)).collect();
        ranked.sort_by(|a, b| (b.2.sum_ns, a.0, a.1).cmp(&(a.2.sum_ns, b.0, b.1)));
        ranked
    }
}

impl Sink for LockWaits {
    fn take(&mut self, event: &Event) {
        // An end whose begin was lost is no wait.
        let _ = if event.watched == BEGIN { self.begin(event) } else { self.end(event) };
    }

    fn hole(&mut self, time_ns: u64) {
        let begun = self.begun.drain().flat_map(|(_, begun)| begun);
        self.forgotten_ns += begun.map(|begun| time_ns.saturating_sub(begun.at_ns)).sum::<u64>();
    }
}

fn samples(waits: &LockWaits, lost: u64) -> Vec<Sample> {
    let all = waits.all();
    let mut samples = vec![
        seconds("locks.wait_time", all.sum_ns),
        count("locks.waits", all.count),
        seconds("locks.longest", all.longest_ns),
        count("locks.lost", lost),
        seconds("locks.lost_time", waits.forgotten_ns),
    ];
    let ranked = waits.ranked();
    for kind in KINDS {
        let of_kind =
            ranked.iter().filter(|(known, ..)| *known == kind).map(|(.., waits)| waits.sum_ns).sum();
        samples.push(seconds(&format!("locks.of.{kind}"), of_kind));
    }
    let mut places: Vec<(String, Waited)> =
        ranked.iter().map(|(kind, caller, waited)| (format!("{kind}.{caller}"), *waited)).collect();
    rank(&mut places);
    samples.extend(of_places("locks", &places, all));
    samples
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Begin: lock in the first eight bytes, flags in the next four. End: lock.
    fn waits() -> LockWaits {
        let (lock, flags) = (Place::at(0, 8), Place::at(8, 4));
        let places = Places { begin_lock: lock, begin_flags: flags, end_lock: lock };
        let kallsyms = "1000 t vfs_write\n2000 t ext4_buffered_write_iter\n9000 T __sched_text_start\n\
                        9000 T down_write\n9900 T __sched_text_end\n";
        LockWaits::new(places, Symbols::parse(kallsyms))
    }

    fn begin(thread: u32, time_ns: u64, lock: u64, flags: u32, stack: &[u64]) -> Event {
        let raw = [&lock.to_ne_bytes()[..], &flags.to_ne_bytes()[..]].concat();
        Event { watched: BEGIN, time_ns, thread, stack: stack.to_vec(), raw, ..Event::default() }
    }

    fn end(thread: u32, time_ns: u64, lock: u64) -> Event {
        Event { watched: 1, time_ns, thread, raw: lock.to_ne_bytes().to_vec(), ..Event::default() }
    }

    #[test]
    fn a_wait_belongs_to_the_function_that_wanted_the_lock() {
        let mut waits = waits();
        let stack = [0x9100, 0x9050, 0x2010, 0x1010];
        for event in [
            begin(1, 100, 7, WRITE, &stack),
            begin(2, 150, 7, WRITE, &stack),
            begin(2, 160, 8, SPIN, &[0x1010]),
            end(2, 170, 8),
            end(1, 400, 7),
            end(2, 550, 7),
            end(3, 600, 7),
        ] {
            waits.take(&event);
        }
        let ranked = waits.ranked();
        assert_eq!(
            ranked[0],
            ("rwsem_W", "ext4_buffered_write_iter", Waited { count: 2, sum_ns: 700, longest_ns: 400 })
        );
        assert_eq!(ranked[1], ("spinlock", "vfs_write", Waited { count: 1, sum_ns: 10, longest_ns: 10 }));
        assert_eq!(waits.all(), Waited { count: 3, sum_ns: 710, longest_ns: 400 });
        let named: Vec<(String, f64)> =
            samples(&waits, 5).into_iter().map(|sample| (sample.metric.name, sample.value)).collect();
        let value = |name: &str| named.iter().find(|(known, _)| known == name).map(|(_, value)| *value);
        assert_eq!(value("locks.at.rwsem_W.ext4_buffered_write_iter"), Some(700e-9));
        assert_eq!(value("locks.at.spinlock.vfs_write"), Some(10e-9));
        assert_eq!((value("locks.of.mutex"), value("locks.lost")), (Some(0.0), Some(5.0)));
    }

    #[test]
    fn a_mutex_that_is_spun_for_and_slept_for_is_one_wait() {
        let mut waits = waits();
        let stack = [0x1010];
        for event in [begin(1, 100, 7, MUTEX | SPIN, &stack), begin(1, 130, 7, MUTEX, &stack), end(1, 200, 7)]
        {
            waits.take(&event);
        }
        assert_eq!(
            waits.ranked(),
            [("mutex", "vfs_write", Waited { count: 1, sum_ns: 100, longest_ns: 100 })]
        );
    }

    #[test]
    fn a_wait_whose_end_was_lost_is_none() {
        let mut waits = waits();
        let stack = [0x1010];
        // The thread waits for the same lock again.
        for event in [begin(1, 100, 7, WRITE, &stack), begin(1, 5_000, 7, WRITE, &stack), end(1, 5_050, 7)] {
            waits.take(&event);
        }
        waits.take(&begin(1, 6_000, 7, WRITE, &stack));
        waits.hole(6_700);
        waits.take(&end(1, 9_000, 7));
        assert_eq!(waits.forgotten_ns, 700);
        assert_eq!(waits.all(), Waited { count: 1, sum_ns: 50, longest_ns: 50 });
    }

    #[test]
    fn kinds_are_called_as_perf_calls_them() {
        for (flags, name) in [
            (SPIN, "spinlock"),
            (SPIN | READ, "rwlock_R"),
            (SPIN | WRITE, "rwlock_W"),
            (READ, "rwsem_R"),
            (WRITE, "rwsem_W"),
            (RT, "rtmutex"),
            (RT | WRITE, "rwlock-rt_W"),
            (PERCPU | READ, "pcpu-rwsem_R"),
            (PERCPU | WRITE, "pcpu-rwsem_W"),
            (MUTEX, "mutex"),
            (MUTEX | SPIN, "mutex"),
            (0, "semaphore"),
            (1 << 9, "other"),
            // Flags of a kernel to come do not change what is known.
            (WRITE | 1 << 9, "rwsem_W"),
        ] {
            assert_eq!(Kind(flags).name(), name, "{flags}");
            assert!(KINDS.contains(&name));
        }
    }
}
