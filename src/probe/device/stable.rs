//! What makes written data stable takes: a flush, a write that is stable when it returns, and fsync(2) of one page.
//!
//! Enters: a file, or a directory for one. Leaves: probes in ns a call.

use std::io::IoSlice;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use rustix::io::{ReadWriteFlags, pwritev2};

use super::super::memory::{Memory, PAGE};
use super::super::random::Random;
use super::super::{Group, Probe, timed};
use super::BLOCK;
use super::scratch_file::ScratchFile;
use crate::units::Unit;

/// What is written before a flush, by name.
pub(super) const DIRTY: [(&str, usize); 3] = [("nothing", 0), ("4k", 4 << 10), ("1m", 1 << 20)];
/// Bytes of the file of which a page is changed.
const LENGTH: usize = 1 << 20;

/// fdatasync(2) of a file to which nothing, 4 KiB or 1 MiB were written past the page cache just before. Only the call is timed. What was
/// written before that is made stable first, untimed.
///
/// # Errors
/// ENOMEM.
pub(super) fn flush(file: Arc<ScratchFile>, (name, bytes): (&str, usize)) -> std::io::Result<Probe> {
    let data = (bytes > 0).then(|| Memory::filled(bytes, bytes as u64)).transpose()?;
    let mut random = Random(bytes as u64);
    let sample = move |slice| {
        // Other probes have written.
        file.file.sync_data()?;
        timed::part(slice, 1, || {
            if let Some(data) = &data {
                file.file.write_all_at(data, file.place(data.len(), &mut random))?;
            }
            let before = Instant::now();
            file.file.sync_data()?;
            Ok(before.elapsed())
        })
    };
    Ok(Probe::new(Group::Device, format!("flush.after_{name}"), Unit::Nanoseconds, sample))
}

/// A write that is stable when it returns: 4 KiB past the page cache with RWF_DSYNC, over blocks that were written before. On a device
/// with FUA, filesystems that write in place (XFS, ext4 without a journal of data) ask for just that; elsewhere a flush follows.
///
/// # Errors
/// ENOMEM.
pub(super) fn write(file: Arc<ScratchFile>) -> std::io::Result<Probe> {
    let (data, mut random) = (Memory::filled(BLOCK, 3)?, Random(3));
    let sample = move |slice| {
        // Other probes have written.
        file.file.sync_data()?;
        timed::whole(slice, 1, || {
            let place = file.place(BLOCK, &mut random);
            let written = pwritev2(&file.file, &[IoSlice::new(&data)], place, ReadWriteFlags::DSYNC)?;
            if written < BLOCK {
                return Err(std::io::Error::other("a block was written in part"));
            }
            Ok(())
        })
    };
    Ok(Probe::new(Group::Device, "write.4k.stable", Unit::Nanoseconds, sample))
}

/// fsync(2) of a file in the directory, of which one page was changed through the page cache just before. Only the call is timed.
///
/// # Errors
/// No file can be made and filled there.
pub(super) fn fsync_one_page(directory: &Path) -> std::io::Result<Probe> {
    let file = ScratchFile::cached(directory, LENGTH)?;
    let (data, mut random) = (Memory::filled(PAGE, 5)?, Random(5));
    let sample = move |slice| {
        timed::part(slice, 1, || {
            file.file.write_all_at(&data, file.place(PAGE, &mut random))?;
            let before = Instant::now();
            file.file.sync_all()?;
            Ok(before.elapsed())
        })
    };
    Ok(Probe::new(Group::Device, "fsync.one_page", Unit::Nanoseconds, sample))
}
