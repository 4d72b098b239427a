//! A page fault: the first write to a page of memory, which the kernel zeroes. Making and giving back the memory is not part of it.

use std::hint::black_box;
use std::time::{Duration, Instant};

use super::super::memory::{Memory, PAGE};
use super::super::{Group, Probe};
use crate::units::Unit;

/// Pages of one mapping.
const PAGES: usize = 1024;

/// The probe.
pub(super) struct PageFault;

impl Probe for PageFault {
    fn group(&self) -> Group {
        Group::Calls
    }

    fn name(&self) -> String {
        "page_fault".to_owned()
    }

    fn unit(&self) -> Unit {
        Unit::Nanoseconds
    }

    fn sample(&mut self, slice: Duration) -> std::io::Result<f64> {
        let begun = Instant::now();
        let (mut faulting, mut faults) = (Duration::ZERO, 0_u64);
        // Pages may be larger than the smallest: a page is touched once.
        let page = rustix::param::page_size().max(PAGE);
        while faults == 0 || begun.elapsed() < slice {
            let mut memory = Memory::of_small_pages(PAGES * page)?;
            let before = Instant::now();
            for first in memory.iter_mut().step_by(page) {
                *black_box(first) = 1;
            }
            faulting += before.elapsed();
            faults += PAGES as u64;
        }
        Ok(faulting.as_nanos() as f64 / faults as f64)
    }
}
