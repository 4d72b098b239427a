//! Where workers sleep: for how long a thread was off the processor, by the place in the kernel where it gave it up (tracepoint
//! sched:sched_switch).
//!
//! Enters: each time a worker leaves a processor, with its stack, and each time it is back. Leaves: count, sum and longest by place; and
//! the time by stack, as a file. It must not know which program sleeps.
//!
//! A wait is from leaving the processor to being back on one: the time to wake up and the wait for a free processor are in it, which
//! `workers.run_wait` has apart. A thread that was ready to run and lost its processor to another did not sleep: it is counted by itself.
//! The place is the innermost function that neither changes tasks nor is a way in which all wait (`GENERAL`). Threads that have nothing to
//! do (`IDLE`) are counted by themselves, too: a parent that waits for its children would else be the longest wait of all.

use std::collections::HashMap;

use rustix::io::Errno;

use super::Observer;
use super::perf::{Event, HIDDEN, Place, Refused, Sink, Symbols, Tracefs, Watch, Watched, lost_note};
use super::waited::{Waited, count, of_places, rank, seconds};
use crate::record::{Folded, KeptFile, Outcome, Sample, StackKind};

const TRACEPOINT: &str = "sched/sched_switch";
/// How the names of functions begin in which anybody waits.
const GENERAL: [&str; 14] = [
    "schedule",
    "io_schedule",
    "blk_io_schedule",
    "bit_wait",
    "__wait_on_bit",
    "out_of_line_wait_on_bit",
    "folio_wait_bit",
    "wait_for_completion",
    "__wait_for_common",
    "do_wait_for_common",
    "hrtimer_nanosleep",
    "do_nanosleep",
    "rwsem_",
    "submit_bio_wait",
];

/// How the names of functions begin in which a thread waits because it has nothing to do: for a time, for another process, for a message.
const IDLE: [&str; 18] = [
    "do_wait",
    "kernel_wait4",
    "poll_schedule_timeout",
    "do_poll",
    "do_sys_poll",
    "do_select",
    "ep_poll",
    "common_nsleep",
    "futex_",
    "pipe_",
    "anon_pipe_",
    "do_sigtimedwait",
    "sigsuspend",
    "do_signal_stop",
    "unix_stream_",
    "io_wq_worker",
    "io_sq_thread",
    "msleep",
];

/// How the names of functions begin in which a thread waits for block I/O, as delay accounting counts it. io_uring tells that only while
/// requests are under way, which cannot be seen here.
const FOR_STORAGE: [&str; 6] = [
    "io_schedule",
    "blk_io_schedule",
    "io_cqring_wait",
    "io_cqring_schedule",
    "mutex_lock_io",
    "blkcg_maybe_throttle",
];

/// Watches the sleep of all that this thread starts.
pub struct WaitsObserver {
    symbols: Symbols,
    watch: Result<Watch<Sleeps>, Refused>,
    stacks: Option<KeptFile>,
}

impl WaitsObserver {
    /// Looks up the kernel's functions, which takes longer than a start may.
    #[must_use]
    pub fn prepared() -> WaitsObserver {
        let watch = Err(Refused::Kernel(Errno::INVAL));
        WaitsObserver { symbols: Symbols::of_the_kernel(), watch, stacks: None }
    }

    fn watch(&mut self) -> Result<Watch<Sleeps>, Refused> {
        let missing = || Refused::NoTracepoint(TRACEPOINT.replace('/', ":"));
        let tracefs = Tracefs::open().map_err(Refused::NoTracefs)?;
        let switch = tracefs.tracepoint(TRACEPOINT).map_err(|errno| match errno {
            Errno::NOENT => missing(),
            other => Refused::Kernel(other),
        })?;
        let state = switch.field("prev_state").map_err(|_| missing())?;
        let sink = Sleeps::new(state, std::mem::take(&mut self.symbols));
        Watch::start(&[Watched::Switches { id: switch.id }], sink)
    }
}

impl Observer for WaitsObserver {
    fn start(&mut self) {
        self.watch = self.watch();
    }

    /// `waits.sleeps`, `waits.sleep_time`, `waits.longest`, `waits.idle_time`, `waits.preempted_time`, `waits.lost`; where functions have names,
    /// `waits.storage_time`, and of the places with the longest sums `waits.at.FUNCTION` (s), `waits.waits_at.FUNCTION` and `waits.longest_at.FUNCTION`.
    fn stop(&mut self) -> Result<Outcome, String> {
        let watch = std::mem::replace(&mut self.watch, Err(Refused::Kernel(Errno::INVAL)));
        let watch = watch.map_err(|refused| format!("waits are not watched: {}", refused.words()))?;
        let (sleeps, lost) = watch.stop().ok_or("waits are not watched: the reader died")?;
        self.stacks = Some(StackKind::Waits.kept(&sleeps.folded()));
        let mut outcome = Outcome { samples: sleeps.samples(lost), ..Outcome::default() };
        outcome.notes.extend(lost_note("waits", lost));
        if !sleeps.symbols.are_known() {
            outcome.notes.push(HIDDEN.to_owned());
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
}

fn is_idle(place: &str) -> bool {
    IDLE.iter().any(|beginning| place.starts_with(beginning))
}

/// Adds sleep up.
struct Sleeps {
    /// Where the state lies in which a thread left.
    state: Place,
    symbols: Symbols,
    left: HashMap<u32, Left>,
    /// By addresses, which have names only at the end: there are few stacks, and many sleeps.
    by_stack: HashMap<Vec<u64>, Waited>,
    preempted: Waited,
}

impl Sleeps {
    fn new(state: Place, symbols: Symbols) -> Sleeps {
        let (left, by_stack) = (HashMap::new(), HashMap::new());
        Sleeps { state, symbols, left, by_stack, preempted: Waited::default() }
    }

    /// The function that a stack waits at.
    fn place(&self, stack: &[u64]) -> &str {
        let outside = stack.iter().filter(|address| !self.symbols.takes_locks(**address));
        let functions = outside.filter_map(|address| self.symbols.function(*address));
        let is_general = |name: &str| GENERAL.iter().any(|beginning| name.starts_with(beginning));
        let mut names = functions.map(|function| self.symbols.name(function));
        names.find(|name| !is_general(name)).unwrap_or("unknown")
    }

    /// Whether a stack waits for block I/O.
    fn is_for_storage(&self, stack: &[u64]) -> bool {
        let functions = stack.iter().filter_map(|address| self.symbols.function(*address));
        let mut names = functions.map(|function| self.symbols.name(function));
        names.any(|name| FOR_STORAGE.iter().any(|beginning| name.starts_with(beginning)))
    }

    /// Sleep by stack, in ns, without that of threads that have nothing to do.
    fn folded(&self) -> Folded {
        let mut folded = Folded::default();
        for (stack, waited) in self.by_stack.iter().filter(|(stack, _)| !is_idle(self.place(stack))) {
            let functions = stack.iter().rev().filter_map(|address| self.symbols.function(*address));
            folded.add(functions.map(|function| self.symbols.name(function)), waited.sum_ns);
        }
        folded
    }

    fn samples(&self, lost: u64) -> Vec<Sample> {
        let mut named: HashMap<&str, Waited> = HashMap::new();
        for (stack, waited) in &self.by_stack {
            named.entry(self.place(stack)).or_default().add(*waited);
        }
        let (idle, busy): (Vec<_>, Vec<_>) = named.into_iter().partition(|(place, _)| is_idle(place));
        let idle = Waited::sum(idle.iter().map(|(_, waited)| waited));
        let all = Waited::sum(busy.iter().map(|(_, waited)| waited));
        let is_for_storage = |stack: &[u64]| self.is_for_storage(stack) && !is_idle(self.place(stack));
        let for_storage = self.by_stack.iter().filter(|(stack, _)| is_for_storage(stack));
        let for_storage = Waited::sum(for_storage.map(|(_, waited)| waited));
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
        ];
        if self.symbols.are_known() {
            samples.push(seconds("waits.storage_time", for_storage.sum_ns));
        }
        samples.extend(of_places("waits", &places, all));
        samples
    }
}

impl Sink for Sleeps {
    fn take(&mut self, event: &Event) {
        if !event.is_back {
            // TASK_RUNNING is 0. The tracepoint sets a further bit where such a thread was preempted.
            let Some(state) = self.state.of(&event.raw) else { return };
            let asleep = (state & 0xff != 0).then(|| event.stack.clone());
            self.left.insert(event.thread, Left { at_ns: event.time_ns, asleep });
            return;
        }
        // Where the leaving was lost, or was before the watch began, nothing is known.
        let Some(left) = self.left.remove(&event.thread) else { return };
        let waited = Waited::once(event.time_ns.saturating_sub(left.at_ns));
        match left.asleep {
            Some(stack) => self.by_stack.entry(stack).or_default().add(waited),
            None => self.preempted.add(waited),
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
        Sleeps::new(Place::at(0, 8), Symbols::parse(kallsyms))
    }

    fn leaves(thread: u32, time_ns: u64, state: u64, stack: &[u64]) -> Event {
        let raw = state.to_ne_bytes().to_vec();
        Event { time_ns, thread, stack: stack.to_vec(), raw, ..Event::default() }
    }

    fn back(thread: u32, time_ns: u64) -> Event {
        Event { time_ns, thread, is_back: true, ..Event::default() }
    }

    #[test]
    fn a_sleep_is_from_leaving_to_being_back_at_the_function_that_waits() {
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
            Sleeps::new(Place::at(0, 8), Symbols::default())
                .samples(0)
                .iter()
                .all(|s| s.metric.name != "waits.storage_time")
        );
        assert_eq!(
            sleeps.folded().text(),
            "vfs_write;__schedule 10\nvfs_write;jbd2_log_wait_commit;folio_wait_bit_common;io_schedule;__schedule 300\n"
        );
    }
}
