//! A write that is stable when it returns: 4 KiB past the page cache with RWF_DSYNC, over blocks that were written before. On a device
//! with FUA, filesystems that write in place (XFS, ext4 without a journal of data) ask for just that; elsewhere a flush follows.

use std::io::IoSlice;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::io::{ReadWriteFlags, pwritev2};

use super::super::memory::Memory;
use super::super::random::Random;
use super::super::{Group, Probe};
use super::BLOCK;
use super::scratch_file::ScratchFile;
use crate::units::Unit;

/// The probe.
pub(super) struct StableWrite {
    file: Arc<ScratchFile>,
    data: Memory,
    random: Random,
}

impl StableWrite {
    /// One at a time.
    ///
    /// # Errors
    /// ENOMEM.
    pub(super) fn new(file: Arc<ScratchFile>) -> std::io::Result<StableWrite> {
        Ok(StableWrite { file, data: Memory::filled(BLOCK, 3)?, random: Random(3) })
    }
}

impl Probe for StableWrite {
    fn group(&self) -> Group {
        Group::Device
    }

    fn name(&self) -> String {
        "write.4k.stable".to_owned()
    }

    fn unit(&self) -> Unit {
        Unit::Nanoseconds
    }

    fn sample(&mut self, slice: Duration) -> std::io::Result<f64> {
        let file = &self.file.file;
        // Other probes have written.
        file.sync_data()?;
        let (begun, mut writes) = (Instant::now(), 0_u32);
        loop {
            let place = self.file.place(BLOCK, &mut self.random);
            let written = pwritev2(file, &[IoSlice::new(&self.data)], place, ReadWriteFlags::DSYNC)?;
            if written < BLOCK {
                return Err(std::io::Error::other("a block was written in part"));
            }
            writes += 1;
            let took = begun.elapsed();
            if took >= slice {
                return Ok(took.as_nanos() as f64 / f64::from(writes));
            }
        }
    }
}
