//! What the slowest system calls wait for: of each kind of call how long it takes, and for the slowest hundredth where that time went
//! (tracepoints raw_syscalls:sys_enter, raw_syscalls:sys_exit and sched:sched_switch).
//!
//! Enters: when workers enter and leave calls that read, write or sync, and each time they leave a processor in one, with the
//! stack. Leaves: means in seconds a call. It must not know which program calls. The kernel hands on these calls alone, so that others cost
//! nothing.
//!
//! A call's time is its sleep by place ([`sleep_place`]), time in which it was ready to run and another thread ran, and the rest, which is
//! processor time. A call whose events were lost is left out.

use std::collections::HashMap;
use std::sync::LazyLock;
use std::time::Instant;

use rustix::io::Errno;

use super::perf::{
    Event, HIDDEN, Place, Refused, Seen, Sink, Symbols, Tracefs, Watch, Watched, Whose, distortion_note,
    lost_note,
};
use super::sleep_place::sleep_place;
use super::waited::count;
use super::{Observer, Unseen};
use crate::record::{Note, Outcome, Sample, Unit};

/// Kinds of calls, by their numbers in this architecture.
const KINDS: [(&str, &[libc::c_long]); 5] = [
    ("fsync", &[libc::SYS_fsync]),
    ("fdatasync", &[libc::SYS_fdatasync]),
    ("sync_file_range", &[libc::SYS_sync_file_range]),
    ("read", &[libc::SYS_read, libc::SYS_pread64, libc::SYS_readv, libc::SYS_preadv, libc::SYS_preadv2]),
    (
        "write",
        &[libc::SYS_write, libc::SYS_pwrite64, libc::SYS_writev, libc::SYS_pwritev, libc::SYS_pwritev2],
    ),
];
/// The kernel's filter for them (Documentation/trace/events.rst).
static FILTER: LazyLock<String> = LazyLock::new(|| {
    let numbers = KINDS.iter().flat_map(|(_, numbers)| numbers.iter());
    numbers.map(|number| format!("id == {number}")).collect::<Vec<_>>().join(" || ")
});
/// Places in the list of what is watched.
const ENTERS: usize = 0;
const LEAVES: usize = 1;
/// Fewer calls than this have no slowest hundredth.
const FEWEST: usize = 500;
/// The slowest are those above the 99th percentile.
const ONE_OF: usize = 100;
/// Of so many calls of a kind all are kept, and then the slowest half: the slowest hundredth of ten million.
const KEPT: usize = 200_000;
/// Places that are named, each with at least this share of the slowest calls' time.
const MOST_PLACES: usize = 8;
const LEAST_SHARE: f64 = 0.01;
/// Stands for time in which a thread was ready to run.
const READY: u32 = u32::MAX;

/// Watches the calls of all that this thread starts, or of others.
pub struct CallsObserver {
    whose: Whose,
    symbols: Symbols,
    watch: Result<Watch<Calls>, Refused>,
    begun: Instant,
}

impl CallsObserver {
    /// Looks up the kernel's functions, which takes longer than a start may.
    #[must_use]
    pub(super) fn prepared(whose: Whose) -> CallsObserver {
        let watch = Err(Refused::Kernel(Errno::INVAL));
        CallsObserver { whose, symbols: Symbols::of_the_kernel(), watch, begun: Instant::now() }
    }

    fn watch(&mut self) -> Result<Watch<Calls>, Refused> {
        let tracefs = Tracefs::open().map_err(Refused::NoTracefs)?;
        let [enters, leaves, switch] =
            ["raw_syscalls/sys_enter", "raw_syscalls/sys_exit", "sched/sched_switch"]
                .map(|name| tracefs.wanted(name));
        let (enters, leaves, switch) = (enters?, leaves?, switch?);
        let missing = |_| Refused::NoTracepoint("raw_syscalls:sys_enter".to_owned());
        let places = (enters.field("id").map_err(missing)?, switch.field("prev_state").map_err(missing)?);
        let filter = FILTER.as_str();
        let watched = [
            Watched::Filtered { id: enters.id, filter },
            Watched::Filtered { id: leaves.id, filter },
            Watched::Switches { id: switch.id },
        ];
        Watch::start(&self.whose, &watched, Calls::new(places, std::mem::take(&mut self.symbols)))
    }
}

impl Observer for CallsObserver {
    fn start(&mut self) {
        self.begun = Instant::now();
        self.watch = self.watch();
    }

    fn end(&mut self) {
        if let Ok(watch) = &self.watch {
            watch.end();
        }
    }

    /// `calls.lost`; of each kind `calls.count.KIND` and `calls.mean.KIND` (s); of a kind with 500 calls `calls.slow.KIND`, the mean of its
    /// slowest hundredth (s), and of that `calls.slow_at.KIND.PLACE`, `calls.slow_ready.KIND` and `calls.slow_cpu.KIND`.
    fn stop(&mut self) -> Result<Outcome, Unseen> {
        let Seen { sink: mut calls, lost, read } = Watch::seen(&mut self.watch, "calls are")?;
        let mut outcome = Outcome { samples: calls.samples(lost), ..Outcome::default() };
        outcome.notes.extend(lost_note("calls", lost).map(Note::from));
        outcome.notes.extend(distortion_note("calls", read, self.begun.elapsed()));
        if !calls.symbols.are_known() {
            outcome.notes.push(HIDDEN.into());
        }
        Ok(outcome)
    }
}

/// What a call waited for, in turn: the number of a stack, or [`READY`], and ns.
type WaitedFor = Vec<(u32, u64)>;

/// What a thread is in.
#[derive(Default)]
struct Thread {
    /// The kind of its call, when it began, and what it has waited for since.
    call: Option<(usize, u64, WaitedFor)>,
    /// When it left the processor in the call, and where.
    left: Option<(u64, u32)>,
}

/// One call that has ended.
struct Call {
    ns: u64,
    waited: WaitedFor,
}

/// All calls of one kind.
#[derive(Default)]
struct Kind {
    count: u64,
    sum_ns: u64,
    /// The slowest of them.
    kept: Vec<Call>,
}

impl Kind {
    fn add(&mut self, call: Call) {
        self.count += 1;
        self.sum_ns += call.ns;
        self.kept.push(call);
        if self.kept.len() >= KEPT {
            self.keep(KEPT / 2);
        }
    }

    fn keep(&mut self, most: usize) {
        if self.kept.len() > most {
            self.kept.select_nth_unstable_by(most, |a, b| b.ns.cmp(&a.ns));
            self.kept.truncate(most);
        }
    }
}

/// Adds calls up.
struct Calls {
    /// Where a call's number lies, and the state in which a thread left.
    places: (Place, Place),
    symbols: Symbols,
    threads: HashMap<u32, Thread>,
    /// Numbers of stacks: there are few, and many sleeps.
    stacks: HashMap<Vec<u64>, u32>,
    kinds: [Kind; KINDS.len()],
}

impl Calls {
    fn new(places: (Place, Place), symbols: Symbols) -> Calls {
        let (threads, stacks) = (HashMap::new(), HashMap::new());
        Calls { places, symbols, threads, stacks, kinds: std::array::from_fn(|_| Kind::default()) }
    }

    /// A thread leaves a processor, or is back on one.
    fn switched(&mut self, event: &Event) {
        let Some(thread) = self.threads.get_mut(&event.thread) else { return };
        let Some((_, _, waited)) = &mut thread.call else { return };
        if event.is_back {
            if let Some((left_ns, at)) = thread.left.take() {
                waited.push((at, event.time_ns.saturating_sub(left_ns)));
            }
            return;
        }
        // TASK_RUNNING is 0; the tracepoint sets a further bit where such a thread was preempted.
        let is_asleep = self.places.1.of(&event.raw).is_some_and(|state| state & 0xff != 0);
        let known = self.stacks.len() as u32;
        let at = if is_asleep { *self.stacks.entry(event.stack.clone()).or_insert(known) } else { READY };
        thread.left = Some((event.time_ns, at));
    }

    fn samples(&mut self, lost: u64) -> Vec<Sample> {
        let mut samples = vec![count("calls.lost", lost)];
        let names: HashMap<u32, &str> =
            self.stacks.iter().map(|(stack, at)| (*at, sleep_place(&self.symbols, stack))).collect();
        for ((name, _), kind) in KINDS.iter().zip(&mut self.kinds).filter(|(_, kind)| kind.count > 0) {
            let seconds =
                |what: &str, ns: f64| Sample::new("", &format!("calls.{what}"), Unit::Seconds, ns / 1e9);
            samples.push(count(&format!("calls.count.{name}"), kind.count));
            samples.push(seconds(&format!("mean.{name}"), kind.sum_ns as f64 / kind.count as f64));
            if (kind.count as usize) < FEWEST {
                continue;
            }
            kind.keep(kind.count as usize / ONE_OF);
            let of = kind.kept.len() as f64;
            let whole: u64 = kind.kept.iter().map(|call| call.ns).sum();
            let (mut ready, mut slept) = (0, 0);
            let mut by_place: HashMap<&str, u64> = HashMap::new();
            for (at, ns) in kind.kept.iter().flat_map(|call| &call.waited) {
                match names.get(at) {
                    Some(place) => {
                        slept += ns;
                        *by_place.entry(place).or_default() += ns;
                    }
                    None => ready += ns,
                }
            }
            samples.push(seconds(&format!("slow.{name}"), whole as f64 / of));
            samples.push(seconds(&format!("slow_ready.{name}"), ready as f64 / of));
            samples
                .push(seconds(&format!("slow_cpu.{name}"), whole.saturating_sub(slept + ready) as f64 / of));
            let mut places: Vec<(&str, u64)> = by_place.into_iter().collect();
            places.sort_by(|a, b| (b.1, a.0).cmp(&(a.1, b.0)));
            places.retain(|(_, ns)| *ns as f64 >= LEAST_SHARE * whole as f64);
            let named = places.iter().take(MOST_PLACES);
            samples.extend(
                named.map(|(place, ns)| seconds(&format!("slow_at.{name}.{place}"), *ns as f64 / of)),
            );
        }
        samples
    }
}

impl Sink for Calls {
    fn take(&mut self, event: &Event) {
        match event.watched {
            ENTERS => {
                let number = self.places.0.of(&event.raw).unwrap_or(u64::MAX) as libc::c_long;
                let kind = KINDS.iter().position(|(_, numbers)| numbers.contains(&number));
                let call = kind.map(|kind| (kind, event.time_ns, Vec::new()));
                self.threads.insert(event.thread, Thread { call, left: None });
            }
            LEAVES => {
                // Entered before the watch began, or while events were lost: nothing is known.
                let Some((kind, begun_ns, waited)) =
                    self.threads.get_mut(&event.thread).and_then(|thread| thread.call.take())
                else {
                    return;
                };
                self.kinds[kind].add(Call { ns: event.time_ns.saturating_sub(begun_ns), waited });
            }
            _ => self.switched(event),
        }
    }

    fn hole(&mut self, _: u64) {
        self.threads.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calls() -> Calls {
        let kallsyms = "1000 t ext4_sync_file\n2000 t jbd2_log_wait_commit\n\
                        9000 T __sched_text_start\n9000 T __schedule\n9900 T __sched_text_end\n";
        Calls::new((Place::at(0, 8), Place::at(0, 8)), Symbols::parse(kallsyms))
    }

    fn at(watched: usize, thread: u32, time_ns: u64, number: i64) -> Event {
        let raw = number.to_ne_bytes().to_vec();
        Event { watched, time_ns, thread, raw, ..Event::default() }
    }

    /// A call that sleeps and is preempted for so long.
    fn call(calls: &mut Calls, from_ns: u64, slept_ns: u64, ready_ns: u64) -> u64 {
        let stack = vec![0x9010, 0x2010, 0x1010];
        calls.take(&at(ENTERS, 1, from_ns, libc::SYS_fsync));
        calls.take(&Event { stack, ..at(2, 1, from_ns + 10, 2) });
        calls.take(&Event { is_back: true, ..at(2, 1, from_ns + 10 + slept_ns, 0) });
        calls.take(&at(2, 1, from_ns + 20 + slept_ns, 0));
        calls.take(&Event { is_back: true, ..at(2, 1, from_ns + 20 + slept_ns + ready_ns, 0) });
        let end = from_ns + 30 + slept_ns + ready_ns;
        calls.take(&at(LEAVES, 1, end, libc::SYS_fsync));
        end + 100
    }

    #[test]
    fn the_slowest_hundredth_is_split_into_what_it_waited_for() {
        let (mut calls, mut now) = (calls(), 1000);
        for at in 0..1000 {
            let slow = at % 100 == 7;
            now = call(&mut calls, now, if slow { 9_000 } else { 70 }, if slow { 970 } else { 0 });
        }
        let samples = calls.samples(3);
        let value =
            |name: &str| samples.iter().find(|s| s.metric.name == name).map(|s| (s.value * 1e9).round());
        assert_eq!(value("calls.slow.fsync"), Some(10_000.0));
        assert_eq!(value("calls.slow_at.fsync.jbd2_log_wait_commit"), Some(9_000.0));
        assert_eq!(
            (value("calls.slow_ready.fsync"), value("calls.slow_cpu.fsync")),
            (Some(970.0), Some(30.0))
        );
        assert_eq!(value("calls.mean.fsync"), Some(199.0));
        assert_eq!(
            samples.iter().find(|s| s.metric.name == "calls.count.fsync").map(|s| s.value),
            Some(1000.0)
        );
        assert_eq!(samples[0].value, 3.0, "lost");
        assert!(samples.iter().all(|s| !s.metric.name.ends_with(".read")), "none was made");
    }

    #[test]
    fn few_calls_have_no_slowest_and_what_was_lost_is_no_call() {
        let mut calls = calls();
        let now = call(&mut calls, 0, 70, 0);
        calls.take(&at(ENTERS, 1, now, libc::SYS_pread64));
        calls.hole(now + 5);
        calls.take(&at(LEAVES, 1, now + 9, libc::SYS_pread64));
        calls.take(&at(LEAVES, 9, now + 9, libc::SYS_fsync));
        let names: Vec<String> = calls.samples(0).into_iter().map(|s| s.metric.name).collect();
        assert_eq!(names, ["calls.lost", "calls.count.fsync", "calls.mean.fsync"]);
    }

    #[test]
    fn the_slowest_are_kept_of_many() {
        let mut kind = Kind::default();
        (0..450_000_u64).for_each(|at| kind.add(Call { ns: at * 7919 % 450_001, waited: Vec::new() }));
        kind.keep(4500);
        let least = kind.kept.iter().map(|call| call.ns).min().unwrap();
        assert!((445_490..=445_510).contains(&least) && kind.kept.len() == 4500, "{least}");
    }

    #[test]
    fn the_filter_names_every_call() {
        assert!(FILTER.starts_with(&format!("id == {} || ", libc::SYS_fsync)));
        assert_eq!(
            FILTER.matches("id ==").count(),
            KINDS.iter().map(|(_, numbers)| numbers.len()).sum::<usize>()
        );
    }
}
