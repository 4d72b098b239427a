//! fsync(2) of a file of which one page was changed through the page cache just before. Only the call is timed.

use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use super::super::memory::{Memory, PAGE};
use super::super::random::Random;
use super::super::{Group, Probe};
use super::scratch_file::ScratchFile;
use crate::units::Unit;

/// Bytes of the file.
const LENGTH: usize = 1 << 20;

/// The probe.
pub(super) struct FsyncOnePage {
    file: ScratchFile,
    data: Memory,
    random: Random,
}

impl FsyncOnePage {
    /// With a file of its own in the directory.
    ///
    /// # Errors
    /// No file can be made and filled there.
    pub(super) fn new(directory: &Path) -> std::io::Result<FsyncOnePage> {
        let file = ScratchFile::cached(directory, LENGTH)?;
        Ok(FsyncOnePage { file, data: Memory::filled(PAGE, 5)?, random: Random(5) })
    }
}

impl Probe for FsyncOnePage {
    fn group(&self) -> Group {
        Group::Device
    }

    fn name(&self) -> String {
        "fsync.one_page".to_owned()
    }

    fn unit(&self) -> Unit {
        Unit::Nanoseconds
    }

    fn sample(&mut self, slice: Duration) -> std::io::Result<f64> {
        let begun = Instant::now();
        let (mut syncing, mut syncs) = (Duration::ZERO, 0_u32);
        while syncs == 0 || begun.elapsed() < slice {
            self.file.file.write_all_at(&self.data, self.file.place(PAGE, &mut self.random))?;
            let before = Instant::now();
            self.file.file.sync_all()?;
            syncing += before.elapsed();
            syncs += 1;
        }
        Ok(syncing.as_nanos() as f64 / f64::from(syncs))
    }
}
