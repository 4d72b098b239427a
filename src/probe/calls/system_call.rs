//! A system call that does next to nothing: getppid(2), which no library answers from memory.

use std::hint::black_box;
use std::time::{Duration, Instant};

use super::super::{Group, Probe};
use crate::units::Unit;

/// Calls between two looks at the clock.
const BATCH: u32 = 1000;

/// The probe.
pub(super) struct SystemCall;

impl Probe for SystemCall {
    fn group(&self) -> Group {
        Group::Calls
    }

    fn name(&self) -> String {
        "system_call".to_owned()
    }

    fn unit(&self) -> Unit {
        Unit::Nanoseconds
    }

    fn sample(&mut self, slice: Duration) -> std::io::Result<f64> {
        let (begun, mut calls) = (Instant::now(), 0_u64);
        loop {
            for _ in 0..BATCH {
                black_box(rustix::process::getppid());
            }
            calls += u64::from(BATCH);
            let took = begun.elapsed();
            if took >= slice {
                return Ok(took.as_nanos() as f64 / calls as f64);
            }
        }
    }
}
