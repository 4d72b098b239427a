//! A page fault: the first write to a page of memory, which the kernel zeroes. Making and giving back the memory is not part of it.

use std::hint::black_box;
use std::time::{Duration, Instant};

use super::super::memory::{Memory, PAGE};
use super::super::timed;

/// Pages of one mapping.
const PAGES: u32 = 1024;

/// Nanoseconds for a fault.
///
/// # Errors
/// ENOMEM.
pub(super) fn sample(slice: Duration) -> std::io::Result<f64> {
    // Pages may be larger than the smallest: a page is touched once.
    let page = rustix::param::page_size().max(PAGE);
    timed::part(slice, PAGES, || {
        let mut memory = Memory::of_small_pages(PAGES as usize * page)?;
        let before = Instant::now();
        for first in memory.iter_mut().step_by(page) {
            *black_box(first) = 1;
        }
        Ok(before.elapsed())
    })
}
