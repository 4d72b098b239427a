//! Who wakes a sleeper: a thread by its name, or an interrupt.
//!
//! Enters: events of sched:sched_waking of the whole machine, each in the context of whoever wakes. Leaves: whom it woke, and a name that is the
//! same for all threads of a kind. It must not know why the sleeper slept. (The kernel can write this event for the thread that is woken alone,
//! but Linux 6.18 did not do so where events are watched by processor, as they must be to follow new threads.)

use std::collections::HashMap;
use std::sync::Arc;

use super::perf::{Event, Place, Tracefs};

const TRACEPOINT: &str = "sched/sched_waking";
/// In an interrupt, hard (0x08) or soft (0x10): `common_flags`, of include/linux/trace_events.h.
const IN_INTERRUPT: u64 = 0x18;
/// What wakes from there: the thread that it interrupted has nothing to do with it.
const INTERRUPT: &str = "interrupt";
/// A thread whose name nobody could read.
const UNKNOWN: &str = "unknown";

/// Where the fields of its events lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fields {
    /// Flags of the context.
    pub(super) flags: Place,
    /// The thread that is woken.
    pub(super) woken: Place,
}

/// The first pid namespace (include/linux/proc_ns.h: `PROC_PID_INIT_INO`).
const FIRST_NAMESPACE: &str = "pid:[4026531836]";

/// The number of its tracepoint and its fields; `None`: this kernel has no such event, or threads have other numbers here than in the event.
pub(super) fn waking(tracefs: &Tracefs) -> Option<(u64, Fields)> {
    let waking = tracefs.tracepoint(TRACEPOINT).ok()?;
    let fields = Fields { flags: waking.field("common_flags").ok()?, woken: waking.field("pid").ok()? };
    let namespace = std::fs::read_link("/proc/self/ns/pid").ok()?;
    (namespace.to_str() == Some(FIRST_NAMESPACE)).then_some((waking.id, fields))
}

/// Names of those that woke somebody.
pub(super) struct Wakers {
    fields: Fields,
    /// A thread keeps the name that it had when it first woke somebody.
    names: HashMap<u32, Arc<str>>,
    read: fn(u32) -> Option<String>,
}

impl Wakers {
    pub(super) fn new(fields: Fields) -> Wakers {
        Wakers { fields, names: HashMap::new(), read: name_of_thread }
    }

    /// Whom an event wakes, and who does it.
    pub(super) fn of(&mut self, event: &Event) -> Option<(u32, Arc<str>)> {
        let woken = u32::try_from(self.fields.woken.of(&event.raw)?).ok()?;
        // 0 is no thread: a processor that was idle when it was interrupted.
        let interrupt = self.fields.flags.of(&event.raw)? & IN_INTERRUPT != 0 || event.thread == 0;
        let (thread, read) = (if interrupt { 0 } else { event.thread }, self.read);
        let name = self.names.entry(thread).or_insert_with(|| match thread {
            0 => INTERRUPT.into(),
            thread => read(thread).map_or(UNKNOWN.into(), |name| kind(&name).into()),
        });
        Some((woken, Arc::clone(name)))
    }
}

/// The name of a thread of any process.
fn name_of_thread(thread: u32) -> Option<String> {
    std::fs::read_to_string(format!("/proc/{thread}/comm")).ok()
}

/// What threads of a kind have in common: `jbd2` of `jbd2/loop0-8`, `kworker` of `kworker/u8:3-events`, `iou-wrk` of `iou-wrk-123`.
fn kind(name: &str) -> String {
    let number = |c: char| c.is_ascii_digit() || matches!(c, '-' | ':' | '_');
    let name = name.trim_end();
    let kind = name.split_once('/').map_or_else(|| name.trim_end_matches(number), |(kind, _)| kind);
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_') { c } else { '_' };
    if kind.is_empty() { UNKNOWN.to_owned() } else { kind.chars().map(plain).collect() }
}

#[cfg(test)]
impl Wakers {
    /// Whose threads have these names, with the flags at 0 and the woken thread at 4.
    pub(super) fn with_names(read: fn(u32) -> Option<String>) -> Wakers {
        let fields = Fields { flags: Place::at(0, 1), woken: Place::at(4, 4) };
        Wakers { read, ..Wakers::new(fields) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waking(thread: u32, flags: u8, woken: u32) -> Event {
        let raw = [&[flags, 0, 0, 0][..], &woken.to_ne_bytes()].concat();
        Event { thread, raw, ..Event::default() }
    }

    #[test]
    fn a_thread_is_named_by_its_kind_and_an_interrupt_as_such() {
        let names = |thread: u32| match thread {
            9 => Some("jbd2/loop0-8\n".to_owned()),
            10 => Some("iou-wrk-123\n".to_owned()),
            11 => Some("my job.x\n".to_owned()),
            12 => Some("0\n".to_owned()),
            _ => None,
        };
        let mut wakers = Wakers::with_names(names);
        for (event, expected) in [
            (waking(9, 0x01, 5), "jbd2"),
            (waking(10, 0x04, 5), "iou-wrk"),
            (waking(11, 0, 5), "my_job_x"),
            (waking(12, 0, 5), UNKNOWN),
            (waking(13, 0, 5), UNKNOWN),
            (waking(9, 0x08, 5), INTERRUPT),
            (waking(9, 0x10, 5), INTERRUPT),
            (waking(0, 0, 5), INTERRUPT),
        ] {
            let (woken, name) = wakers.of(&event).unwrap();
            assert_eq!((woken, &*name), (5, expected), "{event:?}");
        }
        assert_eq!(kind("kworker/u8:3-xfs-conv/loop0"), "kworker");
        assert_eq!(wakers.of(&Event { raw: vec![0; 5], ..waking(9, 0, 0) }), None, "cut");
    }
}
