//! What makes written data stable takes: fdatasync(2) of a file to which nothing, 4 KiB or 1 MiB were written past the page cache just
//! before. Only the call is timed. What was written before that is made stable first, untimed.

use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::super::memory::Memory;
use super::super::random::Random;
use super::super::{Group, Probe};
use super::scratch_file::ScratchFile;
use crate::units::Unit;

/// What is written before, by name.
pub(super) const DIRTY: [(&str, usize); 3] = [("nothing", 0), ("4k", 4 << 10), ("1m", 1 << 20)];

/// The probe.
pub(super) struct Flush {
    file: Arc<ScratchFile>,
    name: &'static str,
    /// What is written; `None`: nothing.
    data: Option<Memory>,
    random: Random,
}

impl Flush {
    /// A flush after so many bytes.
    ///
    /// # Errors
    /// ENOMEM.
    pub(super) fn new(
        file: Arc<ScratchFile>,
        (name, bytes): (&'static str, usize),
    ) -> std::io::Result<Flush> {
        let data = (bytes > 0).then(|| Memory::filled(bytes, bytes as u64)).transpose()?;
        Ok(Flush { file, name, data, random: Random(bytes as u64) })
    }
}

impl Probe for Flush {
    fn group(&self) -> Group {
        Group::Device
    }

    fn name(&self) -> String {
        format!("flush.after_{}", self.name)
    }

    fn unit(&self) -> Unit {
        Unit::Nanoseconds
    }

    fn sample(&mut self, slice: Duration) -> std::io::Result<f64> {
        let file = &self.file.file;
        // Other probes have written.
        file.sync_data()?;
        let begun = Instant::now();
        let (mut flushing, mut flushes) = (Duration::ZERO, 0_u32);
        while flushes == 0 || begun.elapsed() < slice {
            if let Some(data) = &self.data {
                file.write_all_at(data, self.file.place(data.len(), &mut self.random))?;
            }
            let before = Instant::now();
            file.sync_data()?;
            flushing += before.elapsed();
            flushes += 1;
        }
        Ok(flushing.as_nanos() as f64 / f64::from(flushes))
    }
}
