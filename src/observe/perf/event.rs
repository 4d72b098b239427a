//! One event as the kernel wrote it into the ring buffer.
//!
//! Enters: the bytes of a record behind its header. Leaves: an [`Event`]. The order of its parts is that of perf_event_open(2),
//! `PERF_RECORD_SAMPLE`. (The parser of perf-event-data takes an empty stack at the end of a record for a record that was cut.)

/// Numbers in a stack from here on say where it was taken (include/uapi/linux/perf_event.h: `PERF_CONTEXT_MAX` is −4095).
const FIRST_MARK: u64 = u64::MAX - 4094;
/// What follows was outside the kernel (`PERF_CONTEXT_USER`, −512).
const USER_MARK: u64 = u64::MAX - 511;

/// One event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::observe) struct Event {
    /// The place in the list of what is watched.
    pub(in crate::observe) watched: usize,
    /// `CLOCK_MONOTONIC`.
    pub(in crate::observe) time_ns: u64,
    /// The process of the thread.
    pub(in crate::observe) process: u32,
    /// The thread that it happened to.
    pub(in crate::observe) thread: u32,
    /// Addresses in the kernel, the innermost first; empty outside the kernel, and where none was asked for.
    pub(in crate::observe) stack: Vec<u64>,
    /// Addresses of the program, the innermost first, or the innermost alone; empty in the kernel, and where none was asked for.
    pub(in crate::observe) user_stack: Vec<u64>,
    /// A tracepoint's fields.
    pub(in crate::observe) raw: Vec<u8>,
    /// No event: the thread is back on a processor.
    pub(in crate::observe) is_back: bool,
    /// No event: this thread started it.
    pub(in crate::observe) started_by: Option<u32>,
    /// No event: some were lost before this.
    pub(in crate::observe) is_hole: bool,
}

/// Which parts an event has besides thread and time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::observe) struct Parts {
    pub(in crate::observe) address: bool,
    pub(in crate::observe) stack: bool,
    pub(in crate::observe) raw: bool,
}

impl Event {
    /// Reads a sample; `None`: it is cut.
    pub(in crate::observe) fn read(watched: usize, parts: Parts, bytes: &[u8]) -> Option<Event> {
        let mut rest = bytes;
        let address = if parts.address { Some(u64_of(&mut rest)?) } else { None };
        let process = u32_of(&mut rest)?;
        let thread = u32_of(&mut rest)?;
        let time_ns = u64_of(&mut rest)?;
        let (mut stack, mut user_stack) = (Vec::new(), Vec::new());
        if parts.stack {
            let mut user = false;
            for _ in 0..u64_of(&mut rest)? {
                match u64_of(&mut rest)? {
                    mark @ FIRST_MARK.. => user = mark == USER_MARK,
                    address if user => user_stack.push(address),
                    address => stack.push(address),
                }
            }
        }
        if stack.is_empty() && user_stack.is_empty() {
            user_stack.extend(address);
        }
        let mut raw = Vec::new();
        if parts.raw {
            let length = u32_of(&mut rest)? as usize;
            raw.extend_from_slice(rest.get(..length)?);
        }
        Some(Event { watched, time_ns, process, thread, stack, user_stack, raw, ..Event::default() })
    }

    /// Reads a `PERF_RECORD_SWITCH`, which has thread and time alone; `None`: it is cut.
    pub(in crate::observe) fn back(watched: usize, bytes: &[u8]) -> Option<Event> {
        let event = Event::read(watched, Parts { address: false, stack: false, raw: false }, bytes)?;
        Some(Event { is_back: true, ..event })
    }

    /// Reads a `PERF_RECORD_FORK`; `None`: it is cut.
    pub(in crate::observe) fn started(watched: usize, bytes: &[u8]) -> Option<Event> {
        let mut rest = bytes;
        let [process, _parents, thread, parent] =
            [u32_of(&mut rest)?, u32_of(&mut rest)?, u32_of(&mut rest)?, u32_of(&mut rest)?];
        let time_ns = u64_of(&mut rest)?;
        Some(Event { watched, time_ns, process, thread, started_by: Some(parent), ..Event::default() })
    }

    /// Reads where a `PERF_RECORD_LOST` lies in time; `None`: it is cut.
    pub(in crate::observe) fn hole(watched: usize, bytes: &[u8]) -> Option<Event> {
        // The number of the event and how many were lost, then as of an event.
        let event = Event::back(watched, bytes.get(16..)?)?;
        Some(Event { is_back: false, is_hole: true, ..event })
    }
}

/// How many events a `PERF_RECORD_LOST` tells of.
pub(in crate::observe) fn lost_of(bytes: &[u8]) -> Option<u64> {
    let mut rest = bytes;
    let _event = u64_of(&mut rest)?;
    u64_of(&mut rest)
}

fn u32_of(rest: &mut &[u8]) -> Option<u32> {
    let (number, behind) = rest.split_first_chunk()?;
    *rest = behind;
    Some(u32::from_ne_bytes(*number))
}

fn u64_of(rest: &mut &[u8]) -> Option<u64> {
    let (number, behind) = rest.split_first_chunk()?;
    *rest = behind;
    Some(u64::from_ne_bytes(*number))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Parts = Parts { address: false, stack: true, raw: true };
    const OF_CLOCK: Parts = Parts { address: true, stack: true, raw: false };

    fn sample(stack: &[u64], raw: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend(7_u32.to_ne_bytes());
        bytes.extend(9_u32.to_ne_bytes());
        bytes.extend(123_u64.to_ne_bytes());
        bytes.extend((stack.len() as u64).to_ne_bytes());
        stack.iter().for_each(|address| bytes.extend(address.to_ne_bytes()));
        bytes.extend((raw.len() as u32).to_ne_bytes());
        bytes.extend(raw);
        bytes
    }

    #[test]
    fn marks_are_no_addresses_and_an_empty_stack_is_one() {
        // PERF_CONTEXT_KERNEL is −128.
        // PERF_CONTEXT_USER is −512.
        let marks = [128_u64.wrapping_neg(), 512_u64.wrapping_neg()];
        let bytes = sample(&[marks[0], 0xffff_ffff_816b_b3c0, marks[1], 0x5566, 0x7788], &[1, 2]);
        let event = Event::read(3, ALL, &bytes).unwrap();
        let expected = Event {
            watched: 3,
            time_ns: 123,
            process: 7,
            thread: 9,
            stack: vec![0xffff_ffff_816b_b3c0],
            user_stack: vec![0x5566, 0x7788],
            raw: vec![1, 2],
            ..Event::default()
        };
        assert_eq!(event, expected);
        let empty = Event::read(0, Parts { raw: false, ..ALL }, &sample(&[], &[])[..24]).unwrap();
        assert!(empty.stack.is_empty() && empty.time_ns == 123);
    }

    #[test]
    fn where_a_program_is_stands_for_its_stack() {
        let of = |stack: &[u64]| {
            let bytes = [&0x5566_u64.to_ne_bytes(), &sample(stack, &[])[..]].concat();
            Event::read(0, OF_CLOCK, &bytes).map(|event| (event.stack.len(), event.user_stack))
        };
        assert_eq!(of(&[]), Some((0, vec![0x5566])));
        assert_eq!(of(&[512_u64.wrapping_neg(), 1, 2]), Some((0, vec![1, 2])));
        assert_eq!(
            of(&[128_u64.wrapping_neg(), 0xffff_ffff_816b_b3c0]),
            Some((1, Vec::new())),
            "in the kernel"
        );
    }

    #[test]
    fn what_is_cut_is_no_event() {
        let whole = sample(&[1, 2, 3], &[1, 2, 3, 4]);
        assert!((0..whole.len()).all(|length| Event::read(0, ALL, &whole[..length]).is_none()));
        // A length that no record has.
        let mut forged = sample(&[], &[]);
        forged[16..24].copy_from_slice(&u64::MAX.to_ne_bytes());
        assert_eq!(Event::read(0, ALL, &forged), None);
    }

    #[test]
    fn a_thread_that_is_started_is_told_with_who_starts_it() {
        let mut bytes: Vec<u8> = [7_u32, 5, 9, 6].iter().flat_map(|number| number.to_ne_bytes()).collect();
        bytes.extend(123_u64.to_ne_bytes());
        let event = Event::started(2, &bytes).unwrap();
        assert_eq!((event.process, event.thread, event.started_by, event.time_ns), (7, 9, Some(6), 123));
        assert_eq!(Event::started(2, &bytes[..20]), None, "cut");
    }

    #[test]
    fn lost_events_are_told_behind_their_number() {
        let bytes: Vec<u8> = [5_u64, 42].iter().flat_map(|number| number.to_ne_bytes()).collect();
        assert_eq!((lost_of(&bytes), lost_of(&bytes[..12])), (Some(42), None));
    }
}
