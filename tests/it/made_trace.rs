//! Writes block traces of any size in blktrace's version 7, one stream for each CPU, with known counts.
//!
//! Enters: how many I/Os and CPUs. Leaves: the bytes of each CPU's file. Five events an I/O (Q, G, I, D, C), a plug and an unplug
//! every 16 I/Os; every 1000th I/O is a journal commit with its flushes. `bench/block_trace.rs` uses it, too.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

const DEVICE: u32 = 259 << 20 | 1;
const READ: u32 = 1;
const WRITE: u32 = 1 << 1;
const FLUSH: u32 = 1 << 2;
const SYNC: u32 = 1 << 3;
const QUEUE: u32 = 1 << 4;
const ISSUE: u32 = 1 << 6;
const COMPLETE: u32 = 1 << 7;
const FS: u32 = 1 << 8;
const NOTIFY: u32 = 1 << 10;
const META: u32 = 1 << 12;
const FUA: u32 = 1 << 15;

/// An event that waits for its time: when, in which order, on which CPU, action, sector, bytes, task.
type Waiting = (u64, u64, usize, u32, u64, u32, u32);

/// The streams while they are made.
struct Streams {
    bytes: Vec<Vec<u8>>,
    numbers: Vec<u32>,
}

impl Streams {
    fn put(&mut self, (time, _, cpu, action, sector, bytes, task): Waiting, payload: &[u8]) {
        let is_notice = action >> 16 & NOTIFY != 0;
        self.numbers[cpu] += u32::from(!is_notice);
        let number = if is_notice { 0 } else { self.numbers[cpu] };
        let stream = &mut self.bytes[cpu];
        for word in [0x6561_7407, number] {
            stream.extend_from_slice(&word.to_le_bytes());
        }
        for long in [time, sector] {
            stream.extend_from_slice(&long.to_le_bytes());
        }
        // A completion runs in an interrupt, so that no task is known.
        let task = if action & 0xffff == 8 { 0 } else { task };
        for word in [bytes, action, task, DEVICE, u32::try_from(cpu).unwrap_or(0), 0] {
            stream.extend_from_slice(&word.to_le_bytes());
        }
        let length = u16::try_from(payload.len()).unwrap_or(0);
        let end = stream.len();
        stream[end - 2..].copy_from_slice(&length.to_le_bytes());
        stream.extend_from_slice(payload);
    }

    fn event(&mut self, event: Waiting) {
        let unplug = 16_u64.to_be_bytes();
        self.put(event, if event.3 & 0xffff == 10 { &unplug } else { &[] });
    }
}

/// A trace of `ios` I/Os on `cpus` CPUs.
pub(crate) fn made_trace(ios: u64, cpus: usize) -> Vec<Vec<u8>> {
    let mut streams = Streams { bytes: vec![Vec::new(); cpus], numbers: vec![0; cpus] };
    let mut seed = 1_u64;
    // Numerical Recipes' generator; its high bits are good enough for times and sectors.
    let mut random = move |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    };
    let mut time = 1_000_000_000;
    for cpu in 0..cpus {
        let task = 1000 + 4 * u32::try_from(cpu).unwrap_or(0);
        let notice = |action: u32, task: u32| (time, 0, cpu, action | NOTIFY << 16, 0, 0, task);
        streams.put(notice(1, 0), &[0; 8]);
        for task in task..task + 4 {
            let mut name = format!("writer{}", task - 1000).into_bytes();
            name.resize(16, 0);
            streams.put(notice(0, task), &name);
        }
    }
    let (mut waiting, mut order) = (BinaryHeap::new(), 0_u64);
    for io in 0..ios {
        let cpu = usize::try_from(io % cpus as u64).unwrap_or(0);
        let task =
            1000 + 4 * u32::try_from(cpu).unwrap_or(0) + u32::try_from(io / cpus as u64 % 4).unwrap_or(0);
        time += (500 + random(3500)) | 1;
        let (sector, took) = (8 * (1 + random(1 << 24)), 20_000 + random(100_000));
        for (after, action, sector, bytes) in events_of(io, sector, took) {
            order += 1;
            waiting.push(Reverse((time + after, order, cpu, action, sector, bytes, task)));
        }
        while waiting.peek().is_some_and(|Reverse(first)| first.0 < time) {
            if let Some(Reverse(event)) = waiting.pop() {
                streams.event(event);
            }
        }
    }
    while let Some(Reverse(event)) = waiting.pop() {
        streams.event(event);
    }
    streams.bytes
}

/// The events of one I/O: nanoseconds after its begin, action, sector, bytes.
fn events_of(io: u64, sector: u64, took: u64) -> Vec<(u64, u32, u64, u32)> {
    let action = |event: u32, categories: u32| event | categories << 16;
    let queue = WRITE | SYNC | QUEUE;
    if io % 1000 == 999 {
        let commit = action(1, queue | FLUSH | META | FUA);
        let (issue, complete) =
            (action(7, READ | FLUSH | ISSUE | FS), action(8, READ | FLUSH | COMPLETE | FS));
        let (data, done) =
            (action(7, WRITE | SYNC | META | ISSUE | FS), action(8, WRITE | SYNC | META | COMPLETE | FS));
        return vec![
            (0, commit, sector, 4096),
            (2_000, issue, 0, 0),
            (900_000, complete, 0, 0),
            (905_000, data, sector, 4096),
            (930_000, done, sector, 4096),
            (935_000, issue, 0, 0),
            (1_500_000, complete, 0, 0),
            (1_500_500, done, sector, 0),
        ];
    }
    let mut events = vec![
        (0, action(1, queue), sector, 4096),
        (300, action(4, queue), sector, 4096),
        (600, action(12, queue | FS), sector, 4096),
        (1_200, action(7, WRITE | SYNC | ISSUE | FS), sector, 4096),
        (1_200 + took, action(8, WRITE | SYNC | COMPLETE | FS), sector, 4096),
    ];
    if io.is_multiple_of(16) {
        events.insert(2, (400, action(9, READ | QUEUE), 0, 0));
        events.insert(4, (900, action(10, READ | QUEUE), 0, 0));
    }
    events
}
