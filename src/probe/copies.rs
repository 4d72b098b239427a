//! How many bytes a second memory copies: by way, size of block and number of threads.
//!
//! Enters: nothing. Leaves: probes that share their memory. Each thread has a block and an area that is larger than most
//! caches, and goes through the area block by block, as a program goes through a file with one buffer.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::copy_ways::{Way, features};
use super::crowd;
use super::memory::Memory;
use super::{Group, LeftOut, Probe, processors, thread_counts};
use crate::units::Unit;

/// Blocks, by their names.
const BLOCKS: [(&str, usize); 2] = [("4k", 4 << 10), ("16m", 16 << 20)];
/// A thread's area.
const AREA: usize = 32 << 20;
/// A thread's largest block.
const LARGEST: usize = 16 << 20;
/// More threads than these do not copy more on one socket, and each takes 48 MiB.
const MOST_THREADS: usize = 16;
/// The part of the free memory that may be taken.
const SHARE: u64 = 4;
/// Bytes copied between two looks at whether to stop.
const BETWEEN_LOOKS: usize = 256 << 10;

/// What one thread works with.
struct Lane {
    area: Memory,
    block: Memory,
}

type Lanes = Arc<Mutex<Vec<Lane>>>;

/// All probes of copying, and what is not there.
///
/// # Errors
/// ENOMEM.
pub(super) fn probes(left_out: &mut Vec<LeftOut>) -> std::io::Result<Vec<Probe>> {
    let (ways, lacking) = Way::of_processor(&features());
    left_out.extend(lacking.into_iter().map(|what| LeftOut {
        what: what.to_owned(),
        why: "this processor has no instruction for them that assay knows".to_owned(),
    }));
    let room = free_memory() / SHARE / (AREA + LARGEST) as u64;
    let most = processors().min(MOST_THREADS).min(room.max(1) as usize);
    if most < processors() {
        let why = format!("they take {} MiB of memory each", (AREA + LARGEST) >> 20);
        left_out.push(LeftOut { what: format!("copies by more than {most} threads"), why });
    }
    let lane = |number: usize| -> std::io::Result<Lane> {
        let seed = number as u64 + 1;
        Ok(Lane { area: Memory::filled(AREA, seed)?, block: Memory::filled(LARGEST, !seed)? })
    };
    let lanes: Lanes = Arc::new(Mutex::new((0..most).map(lane).collect::<std::io::Result<_>>()?));
    let mut probes = Vec::new();
    for way in ways {
        for (block, length) in BLOCKS {
            for threads in thread_counts(most) {
                let lanes = Arc::clone(&lanes);
                let sample = move |slice| {
                    let mut lanes = lanes.lock().unwrap_or_else(PoisonError::into_inner);
                    let lanes = lanes.iter_mut().take(threads);
                    crowd::rate(lanes, slice, |lane, stop| copied(lane, way, length, stop))
                };
                let name = format!("{}.{block}.t{threads}", way.name());
                probes.push(Probe::new(Group::Copies, name, Unit::BytesPerSecond, sample));
            }
        }
    }
    Ok(probes)
}

/// Bytes of memory that nobody uses; caches that could be dropped are not counted.
fn free_memory() -> u64 {
    let found = rustix::system::sysinfo();
    found.freeram as u64 * u64::from(found.mem_unit.max(1))
}

/// Goes through the area again and again; bytes copied.
fn copied(lane: &mut Lane, way: Way, length: usize, stop: &AtomicBool) -> u64 {
    let block = &mut lane.block[..length];
    let mut done = 0;
    for part in (0..lane.area.len()).step_by(length).cycle() {
        let place = &mut lane.area[part..part + length];
        match way {
            Way::Read => way.copy(block, place),
            _ => way.copy(place, block),
        }
        done += length;
        if done.is_multiple_of(BETWEEN_LOOKS) && stop.load(Ordering::Relaxed) {
            break;
        }
    }
    done as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pass_that_is_stopped_has_copied_whole_blocks() {
        let mut lane =
            Lane { area: Memory::untouched(AREA).unwrap(), block: Memory::filled(LARGEST, 1).unwrap() };
        let stopped = AtomicBool::new(true);
        assert_eq!(copied(&mut lane, Way::Cached, 4096, &stopped), BETWEEN_LOOKS as u64);
        assert!(lane.area[..4096] == lane.block[..4096] && lane.area[BETWEEN_LOOKS] == 0);
        assert_eq!(copied(&mut lane, Way::Read, LARGEST, &stopped), LARGEST as u64);
        assert!(lane.area[..LARGEST] == lane.block[..]);
    }
}
