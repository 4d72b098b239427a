//! `pre_read=1`: the files of a wave's jobs are read once before it starts, so that its transfers find them in the page
//! cache. fio's `pre_read_file`: from a file's region, through the page cache.
//!
//! Enters: instances whose files were laid out. Leaves: nothing but a warm cache. It must not know how transfers are
//! made: it opens each file by itself.

use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;

use super::failure::Failure;
use crate::workload::{FileRegion, Instance, IoMethod, Workload};

/// Bytes a read.
const CHUNK: usize = 1 << 20;

/// Reads what the jobs of `wave` ask to be read beforehand.
///
/// # Errors
/// [`Failure::File`] naming the first file that cannot be read.
pub(super) fn wave(workload: &Workload, instances: &[Instance], wave: u32) -> Result<(), Failure> {
    let asks = |instance: &&Instance| {
        let job = &workload.jobs[instance.job];
        instance.wave == wave && job.pre_read && job.method != IoMethod::Null
    };
    let mut buffer = Vec::new();
    for region in instances.iter().filter(asks).flat_map(|instance| &instance.files) {
        buffer.resize(CHUNK, 0);
        read(region, &mut buffer)?;
    }
    Ok(())
}

/// Reads a region, or what of it is there: a job that writes may make its file only later.
fn read(region: &FileRegion, buffer: &mut [u8]) -> Result<(), Failure> {
    let path = region.path.as_path();
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(Failure::file("cannot open", path, &error)),
    };
    let end = region.file_size().unwrap_or(u64::MAX);
    let mut at = region.offset;
    while at < end {
        let most = (end - at).min(buffer.len() as u64) as usize;
        match file.read_at(&mut buffer[..most], at) {
            Ok(0) => break,
            Ok(count) => at += count as u64,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(Failure::file("cannot read beforehand", path, &error)),
        }
    }
    Ok(())
}
