//! Where workers sleep: for how long a thread was off the processor, by the place in the kernel where it gave it up (tracepoint
//! sched:sched_switch), and who woke it (sched:sched_waking).
//!
//! Enters: each time a worker leaves a processor, with its stack, each time it is woken, and each time it is back. Leaves: count, sum and
//! longest by place, and the sum by place and waker; and the time by stack, as a file. It must not know which program sleeps.
//!
//! A wait is from leaving the processor to being back on one: the time to wake up and the wait for a free processor are in it, which
//! `workers.run_wait` has apart. A thread that was ready to run and lost its processor to another did not sleep: it is counted by itself.
//! The place is [`sleep_place`]'s to say. Threads that have nothing to do are counted by themselves, too: a parent that waits for its children
//! would else be the longest wait of all.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use rustix::io::Errno;

use super::perf::{
    Event, HIDDEN, Place, Refused, Seen, Sink, Symbols, Tracefs, Watch, Watched, Whose, distortion_note,
    io_uring_note, lost_note,
};
use super::sleep_place::{is_idle, sleep_place};
use super::waited::{Waited, count, of_places, rank, seconds};
use super::wakers::{self, Wakers};
use super::{Observer, Unseen};
use crate::record::{Folded, KeptFile, Note, Outcome, Sample, StackKind};

const TRACEPOINT: &str = "sched/sched_switch";
/// States of a thread that has left a processor (prev_state): it is not just ready to run, or it has ended (`EXIT_DEAD`, `EXIT_ZOMBIE` of
/// include/linux/sched.h).
const NOT_READY: u64 = 0xff;
const ENDED: u64 = 0x30;
/// The places of the two in the list of what is watched.
const SWITCHES: usize = 0;
/// The waker of sleeps of which no waking was seen: some kernels write no record of what interrupts the idle task.
const UNSEEN: &str = "unseen";
/// (place, waker) that are named at most, and the least share of all sleep for it.
const MOST_WAKERS: usize = 16;
const LEAST_SHARE: f64 = 0.01;
/// How the names of functions begin in which a thread waits for block I/O, as delay accounting counts it. io_uring tells that only while
/// requests are under way, which cannot be seen here.
const FOR_STORAGE: [&str; 8] = [
    "io_schedule", "blk_io_schedule", "io_cqring_wait", "io_cqring_schedule",
    // libaio's wait for completions.
    "read_events", "do_io_getevents", "mutex_lock_io", "blkcg_maybe_throttle",
];

/// Watches the sleep of all that this thread starts, or of others.
pub struct WaitsObserver {
    whose: Whose,
    symbols: Symbols,
    watch: Result<Watch<Sleeps>, Refused>,
    stacks: Option<KeptFile>,
    begun: Instant,
}

impl WaitsObserver {
    /// Looks up the kernel's functions, which takes longer than a start may.
    #[must_use]
    pub(super) fn prepared(whose: Whose) -> WaitsObserver {
        let watch = Err(Refused::Kernel(Errno::INVAL));
        WaitsObserver { whose, symbols: Symbols::of_the_kernel(), watch, stacks: None, begun: Instant::now() }
    }

    fn watch(&mut self) -> Result<Watch<Sleeps>, Refused> {
        let tracefs = Tracefs::open().map_err(Refused::NoTracefs)?;
        let switch = tracefs.wanted(TRACEPOINT)?;
        let missing = |_| Refused::NoTracepoint(TRACEPOINT.replace('/', ":"));
        let state = switch.field("prev_state").map_err(missing)?;
        let switches = Watched::Switches { id: switch.id };
        let symbols = std::mem::take(&mut self.symbols);
        if let Some((id, fields)) = wakers::waking(&tracefs) {
            let sink = Sleeps::new(state, Some(Wakers::new(fields)), symbols.clone());
            let watch = Watch::start(&self.whose, &[switches, Watched::OfMachine { id }], sink);
            if !matches!(watch, Err(Refused::Kernel(Errno::PERM | Errno::ACCESS))) {
                return watch;
            }
        }
        // Who may not watch the whole machine sees the same sleeps, and not who ends them.
        Watch::start(&self.whose, &[switches], Sleeps::new(state, None, symbols))
    }
}

impl Observer for WaitsObserver {
    fn start(&mut self) {
        self.begun = Instant::now();
        self.watch = self.watch();
    }

    fn end(&mut self) {
        if let Ok(watch) = &self.watch {
            watch.end();
        }
    }

    /// `waits.sleeps`, `waits.sleep_time`, `waits.longest`, `waits.idle_time`, `waits.preempted_time`, `waits.lost`, `waits.lost_time`, and `waits.wakeup_time` where
    /// wakers are known; where functions have names, `waits.storage_time`, and of the places with the longest sums `waits.at.FUNCTION` (s),
    /// `waits.waits_at.FUNCTION`, `waits.longest_at.FUNCTION` and `waits.woken_at.FUNCTION.WAKER` (s).
    fn stop(&mut self) -> Result<Outcome, Unseen> {
        let Seen { sink: sleeps, lost, read } = Watch::seen(&mut self.watch, "waits are")?;
        self.stacks = Some(StackKind::Waits.kept(&sleeps.folded()));
        let mut outcome = Outcome { samples: sleeps.samples(lost), ..Outcome::default() };
        outcome.notes.extend(lost_note("waits", lost).map(Note::from));
        outcome.notes.extend(distortion_note("waits", read, self.begun.elapsed()));
        outcome.notes.extend(sleeps.of_io_uring());
        if !sleeps.symbols.are_known() {
            outcome.notes.push(HIDDEN.into());
        }
        Ok(outcome)
    }

    fn files(&mut self) -> Vec<KeptFile> {
        self.stacks.take().into_iter().collect()
    }
}

/// A thread that is off the processor.
struct Left {
    at_ns: u64,
    /// Where it went to sleep, as addresses; `None`: it was ready to run.
    asleep: Option<Vec<u64>>,
    /// When it was first woken since, and by whom.
    woken: Option<(u64, Arc<str>)>,
}

/// Sleep with one stack.
#[derive(Default)]
struct Slept {
    all: Waited,
    /// Until it was woken, by who did it.
    until_woken_ns: HashMap<Arc<str>, u64>,
    /// From then on.
    wakeup_ns: u64,
}

/// Adds sleep up.
struct Sleeps {
    /// Where the state lies in which a thread left.
    state: Place,
    /// `None`: this kernel does not tell who wakes.
    wakers: Option<Wakers>,
    symbols: Symbols,
    left: HashMap<u32, Left>,
    /// By addresses, which have names only at the end: there are few stacks, and many sleeps.
    by_stack: HashMap<Vec<u64>, Slept>,
    /// How long sleepers had slept of which nobody knows the end, in ns, by stack.
    forgotten_ns: HashMap<Vec<u64>, u64>,
    preempted: Waited,
}

impl Sleeps {
    fn new(state: Place, wakers: Option<Wakers>, symbols: Symbols) -> Sleeps {
        Sleeps {
            state,
            wakers,
            symbols,
            left: HashMap::new(),
            by_stack: HashMap::new(),
            forgotten_ns: HashMap::new(),
            preempted: Waited::default(),
        }
    }

    /// The function that a stack waits at.
    fn place(&self, stack: &[u64]) -> &str {
        sleep_place(&self.symbols, stack)
    }

    /// Whether a stack waits for block I/O.
    fn is_for_storage(&self, stack: &[u64]) -> bool {
        let functions = stack.iter().filter_map(|address| self.symbols.function(*address));
        let mut names = functions.map(|function| self.symbols.name(function));
        names.any(|name| FOR_STORAGE.iter().any(|beginning| name.starts_with(beginning)))
    }

    /// That io_uring's own threads slept for something, if they did: a worker that waits for their work sleeps at the same time.
    fn of_io_uring(&self) -> Option<Note> {
        let is_theirs = |stack: &[u64]| self.symbols.are_of_io_uring(stack) && !is_idle(self.place(stack));
        let theirs =
            self.by_stack.iter().filter(|(stack, _)| is_theirs(stack)).map(|(_, slept)| slept.all.sum_ns);
        let all: u64 = self.by_stack.values().map(|slept| slept.all.sum_ns).sum();
        io_uring_note("waits", theirs.sum::<u64>() as f64, all as f64)
    }

    /// Sleep by stack, in ns, without that of threads that have nothing to do.
    fn folded(&self) -> Folded {
        let mut folded = Folded::default();
        for (stack, slept) in self.by_stack.iter().filter(|(stack, _)| !is_idle(self.place(stack))) {
            let functions = stack.iter().rev().filter_map(|address| self.symbols.function(*address));
            folded.add(functions.map(|function| self.symbols.name(function)), slept.all.sum_ns);
        }
        folded
    }

    fn samples(&self, lost: u64) -> Vec<Sample> {
        let mut named: HashMap<&str, Waited> = HashMap::new();
        for (stack, slept) in &self.by_stack {
            named.entry(self.place(stack)).or_default().add(slept.all);
        }
        let (idle, busy): (Vec<_>, Vec<_>) = named.into_iter().partition(|(place, _)| is_idle(place));
        let idle = Waited::sum(idle.iter().map(|(_, waited)| waited));
        let all = Waited::sum(busy.iter().map(|(_, waited)| waited));
        let is_for_storage = |stack: &[u64]| self.is_for_storage(stack) && !is_idle(self.place(stack));
        let for_storage = self.by_stack.iter().filter(|(stack, _)| is_for_storage(stack));
        let for_storage = Waited::sum(for_storage.map(|(_, slept)| &slept.all));
        let forgotten = self.forgotten_ns.iter().filter(|(stack, _)| !is_idle(self.place(stack)));
        let mut places: Vec<(String, Waited)> =
            busy.into_iter().map(|(place, waited)| (place.to_owned(), waited)).collect();
        rank(&mut places);
        let mut samples = vec![
            seconds("waits.sleep_time", all.sum_ns),
            count("waits.sleeps", all.count),
            seconds("waits.longest", all.longest_ns),
            seconds("waits.idle_time", idle.sum_ns),
            seconds("waits.preempted_time", self.preempted.sum_ns),
            count("waits.lost", lost),
            seconds("waits.lost_time", forgotten.map(|(_, ns)| ns).sum()),
        ];
        if self.symbols.are_known() {
            samples.push(seconds("waits.storage_time", for_storage.sum_ns));
        }
        samples.extend(of_places("waits", &places, all));
        samples.extend(self.of_wakers(all.sum_ns));
        samples
    }

    /// Who ended the sleep of threads that had something to do, and how long they then took to be back.
    fn of_wakers(&self, all_ns: u64) -> Vec<Sample> {
        if self.wakers.is_none() {
            return Vec::new();
        }
        let mut wakeup_ns = 0;
        let mut by_name: HashMap<String, u64> = HashMap::new();
        for (stack, slept) in &self.by_stack {
            let place = self.place(stack);
            if is_idle(place) {
                continue;
            }
            wakeup_ns += slept.wakeup_ns;
            let mut add = |waker: &str, ns: u64| {
                *by_name.entry(format!("waits.woken_at.{place}.{waker}")).or_default() += ns;
            };
            slept.until_woken_ns.iter().for_each(|(waker, ns)| add(waker, *ns));
            let seen = slept.until_woken_ns.values().sum::<u64>() + slept.wakeup_ns;
            add(UNSEEN, slept.all.sum_ns.saturating_sub(seen));
        }
        let mut named: Vec<(String, u64)> = by_name.into_iter().collect();
        named.sort_by(|a, b| (b.1, &a.0).cmp(&(a.1, &b.0)));
        named.retain(|(_, ns)| *ns > 0 && *ns as f64 >= LEAST_SHARE * all_ns as f64);
        let named = named.iter().take(MOST_WAKERS).map(|(name, ns)| seconds(name, *ns));
        std::iter::once(seconds("waits.wakeup_time", wakeup_ns)).chain(named).collect()
    }

    /// A thread of the machine is woken; one that is running already may be woken again.
    fn woken(&mut self, event: &Event) {
        let Some((thread, waker)) = self.wakers.as_mut().and_then(|wakers| wakers.of(event)) else { return };
        if let Some(left) = self.left.get_mut(&thread) {
            left.woken.get_or_insert((event.time_ns, waker));
        }
    }
}

impl Sink for Sleeps {
    fn take(&mut self, event: &Event) {
        if event.watched != SWITCHES {
            self.woken(event);
            return;
        }
        if !event.is_back {
            // TASK_RUNNING is 0. The tracepoint sets a further bit where such a thread was preempted.
            let Some(state) = self.state.of(&event.raw) else { return };
            if state & ENDED != 0 {
                // It never comes back, but another thread may get its number.
                self.left.remove(&event.thread);
                return;
            }
            let asleep = (state & NOT_READY != 0).then(|| event.stack.clone());
            self.left.insert(event.thread, Left { at_ns: event.time_ns, asleep, woken: None });
            return;
        }
        // Where the leaving was lost, or was before the watch began, nothing is known.
        let Some(left) = self.left.remove(&event.thread) else { return };
        let waited = Waited::once(event.time_ns.saturating_sub(left.at_ns));
        match left.asleep {
            Some(stack) => {
                let slept = self.by_stack.entry(stack).or_default();
                slept.all.add(waited);
                if let Some((woken_ns, waker)) = left.woken {
                    *slept.until_woken_ns.entry(waker).or_default() += woken_ns.saturating_sub(left.at_ns);
                    slept.wakeup_ns += event.time_ns.saturating_sub(woken_ns);
                }
            }
            None => self.preempted.add(waited),
        }
    }

    fn hole(&mut self, time_ns: u64) {
        for left in self.left.drain().map(|(_, left)| left) {
            if let Some(stack) = left.asleep {
                *self.forgotten_ns.entry(stack).or_default() += time_ns.saturating_sub(left.at_ns);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sleeps() -> Sleeps {
        let kallsyms = "1000 t vfs_write\n2000 t jbd2_log_wait_commit\n3000 t folio_wait_bit_common\n\
                        9000 T __sched_text_start\n9000 T __schedule\n9800 T io_schedule\n9900 T __sched_text_end\n\
                        a000 t do_wait\n";
        Sleeps::new(Place::at(0, 8), None, Symbols::parse(kallsyms))
    }

    fn leaves(thread: u32, time_ns: u64, state: u64, stack: &[u64]) -> Event {
        let raw = state.to_ne_bytes().to_vec();
        Event { time_ns, thread, stack: stack.to_vec(), raw, ..Event::default() }
    }

    fn back(thread: u32, time_ns: u64) -> Event {
        Event { time_ns, thread, is_back: true, ..Event::default() }
    }

    #[test]
    fn a_sleep_lasts_until_the_waiting_function_is_back() {
        let mut sleeps = sleeps();
        for event in [
            leaves(1, 100, 2, &[0x9010, 0x9810, 0x3010, 0x2010, 0x1010]),
            leaves(2, 150, 1, &[0x9010, 0x1010]),
            back(1, 400),
            leaves(1, 450, 0x100, &[0x9010, 0x1010]),
            back(1, 500),
            back(2, 160),
            back(3, 600),
            leaves(4, 100, 1, &[0x9010, 0xa010, 0x1010]),
            back(4, 900),
        ] {
            sleeps.take(&event);
        }
        let samples = sleeps.samples(0);
        let value = |name: &str| samples.iter().find(|s| s.metric.name == name).map(|s| s.value);
        assert_eq!(value("waits.at.jbd2_log_wait_commit"), Some(300e-9));
        assert_eq!(value("waits.at.vfs_write"), Some(10e-9));
        assert_eq!((value("waits.sleep_time"), value("waits.sleeps")), (Some(310e-9), Some(2.0)));
        assert_eq!(value("waits.storage_time"), Some(300e-9));
        assert_eq!((value("waits.preempted_time"), value("waits.idle_time")), (Some(50e-9), Some(800e-9)));
        assert!(
            Sleeps::new(Place::at(0, 8), None, Symbols::default())
                .samples(0)
                .iter()
                .all(|s| s.metric.name != "waits.storage_time")
        );
        assert_eq!(
            sleeps.folded().text(),
            "vfs_write;__schedule 10\nvfs_write;jbd2_log_wait_commit;folio_wait_bit_common;io_schedule;__schedule 300\n"
        );
    }

    #[test]
    fn a_wait_for_a_page_has_one_place_in_old_and_new_kernels() {
        let kallsyms = "1000 t filemap_get_pages\n2000 t __lock_page\n3000 t wait_on_page_bit_common\n\
                        4000 t put_and_wait_on_page_locked\n5000 t __folio_lock\n6000 t folio_wait_bit_common\n\
                        7000 t folio_wait_writeback\n8000 t wait_on_page_writeback\n";
        let sleeps = Sleeps::new(Place::at(0, 8), None, Symbols::parse(kallsyms));
        for stack in [[0x3010, 0x2010], [0x3010, 0x4010], [0x6010, 0x5010]] {
            assert_eq!(sleeps.place(&[&stack[..], &[0x1010]].concat()), "filemap_get_pages");
        }
        assert_eq!(sleeps.place(&[0x6010, 0x7010, 0x1010]), "folio_wait_writeback");
        assert_eq!(sleeps.place(&[0x3010, 0x8010, 0x1010]), "wait_on_page_writeback");
    }

    #[test]
    fn a_thread_with_nothing_to_do_is_idle_wherever_it_waits() {
        for place in [
            "io_wqe_worker", "do_epoll_wait", "wait_woken", "inet_csk_accept", "__skb_wait_for_more_packets",
            "__do_sys_pause", "__do_semtimedop", "kernel_clone", "wait_for_vfork_done", "_do_fork",
        ] {
            assert!(is_idle(place), "{place}");
        }
        assert!(!is_idle("jbd2_log_wait_commit") && !is_idle("__iomap_dio_rw"));
    }

    #[test]
    fn a_thread_that_has_ended_does_not_sleep_until_another_has_its_number() {
        let mut sleeps = sleeps();
        for (state, ended_ns) in [(0x10, 100), (0x20, 300)] {
            sleeps.take(&leaves(1, ended_ns, state, &[0x9010, 0x1010]));
            sleeps.take(&back(1, ended_ns + 100));
        }
        let samples = sleeps.samples(0);
        let value = |name: &str| samples.iter().find(|s| s.metric.name == name).map(|s| s.value);
        assert_eq!((value("waits.sleeps"), value("waits.preempted_time")), (Some(0.0), Some(0.0)));
    }

    #[test]
    fn a_sleep_of_which_events_were_lost_is_none() {
        let mut sleeps = sleeps();
        sleeps.take(&leaves(1, 100, 2, &[0x2010]));
        sleeps.take(&leaves(2, 100, 2, &[0xa010]));
        sleeps.take(&leaves(3, 100, 0x100, &[0x2010]));
        sleeps.hole(1_100);
        sleeps.take(&back(1, 20_000_100));
        sleeps.take(&leaves(1, 20_000_200, 2, &[0x2010]));
        sleeps.take(&back(1, 20_000_250));
        let samples = sleeps.samples(3);
        let slept = samples.iter().find(|sample| sample.metric.name == "waits.sleep_time").unwrap();
        assert!((slept.value - 50e-9).abs() < 1e-12, "{slept:?}");
        let lost = samples.iter().find(|sample| sample.metric.name == "waits.lost_time").unwrap();
        assert!((lost.value - 1e-6).abs() < 1e-12, "neither idle nor ready to run: {lost:?}");
    }

    #[test]
    fn who_ends_a_sleep_is_named_with_its_place() {
        let names = |thread: u32| Some(if thread == 70 { "jbd2/loop0-8" } else { "job" }.to_owned());
        let mut sleeps = Sleeps { wakers: Some(Wakers::with_names(names)), ..sleeps() };
        let wakes = |waker: u32, time_ns: u64, woken: u32| {
            let raw = [&[0; 4][..], &woken.to_ne_bytes()].concat();
            Event { watched: 1, time_ns, thread: waker, raw, ..Event::default() }
        };
        for event in [
            leaves(1, 100, 2, &[0x9010, 0x9810, 0x3010, 0x2010, 0x1010]),
            wakes(70, 350, 1),
            // Seen twice where the waker is watched as well, and of a thread that nobody watches.
            wakes(2, 360, 1),
            wakes(2, 370, 99),
            back(1, 400),
            // Nothing to do: nobody wants to know who ends that.
            leaves(4, 100, 1, &[0x9010, 0xa010, 0x1010]),
            wakes(70, 500, 4),
            back(4, 900),
            // It was ready to run.
            leaves(1, 450, 0x100, &[0x9010, 0x1010]),
            wakes(70, 460, 1),
            back(1, 500),
        ] {
            sleeps.take(&event);
        }
        let samples = sleeps.samples(0);
        let woken: Vec<(&str, f64)> = samples
            .iter()
            .filter(|s| s.metric.name.starts_with("waits.wo") || s.metric.name == "waits.wakeup_time")
            .map(|s| (&*s.metric.name, s.value))
            .collect();
        let expected = [("waits.wakeup_time", 50e-9), ("waits.woken_at.jbd2_log_wait_commit.jbd2", 250e-9)];
        assert_eq!(woken, expected);
    }
}
