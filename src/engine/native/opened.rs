//! A job's files from open(2) to close(2): opened as it asks, hinted at, dropped from the cache, synced, removed.
//!
//! Enters: a job and paths that were laid out. Leaves: open files; at the end files that are synced or gone, where the
//! job asks it. What must be in them before is `layout`'s.

use std::fs::{File, OpenOptions};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{Advice, fadvise, fstatvfs};

use super::failure::Failure;
use crate::workload::{Access, FileRegion, Instance, IoMethod, Job, SyncMode};

/// Opens the files of `instance` as its job asks. With the null method /dev/null stands for descriptors that are never
/// used.
///
/// # Errors
/// [`Failure`] naming the first file that cannot be opened.
pub(super) fn open_all(job: &Job, instance: &Instance) -> Result<Vec<File>, Failure> {
    let null = Path::new("/dev/null");
    let open_one = |region: &FileRegion| match job.method {
        IoMethod::Null => File::open(null).map_err(|error| Failure::file("cannot open", null, &error)),
        _ => open(job, region),
    };
    instance.files.iter().map(open_one).collect()
}

/// Opens the file of a region as the job asks, drops its cached pages where it asks that, and tells the kernel how it
/// will be read.
pub(super) fn open(job: &Job, region: &FileRegion) -> Result<File, Failure> {
    let path = region.path.as_path();
    let mix = job.pattern.mix;
    // As in fio discards take no such flags.
    let mut flags = if job.direct && !mix.trims() { libc::O_DIRECT } else { 0 };
    flags |= match job.sync {
        _ if mix.trims() => 0,
        SyncMode::None => 0,
        SyncMode::Sync => libc::O_SYNC,
        SyncMode::Dsync => libc::O_DSYNC,
    };
    if mix.writes() || job.create_on_open {
        flags |= libc::O_CREAT;
    }
    let file = OpenOptions::new()
        .read(true)
        .write(mix.writes() || mix.trims())
        .custom_flags(flags)
        .open(path)
        .map_err(|error| match (job.direct, error.raw_os_error()) {
            (true, Some(libc::EINVAL)) => Failure::NoDirect { path: path.to_owned() },
            _ => Failure::file("cannot open", path, &error),
        })?;
    if job.invalidate {
        drop_cached_pages(&file);
    }
    if job.fadvise_hint {
        let advice = match job.pattern.access {
            Access::Sequential => Advice::Sequential,
            Access::Random => Advice::Random,
        };
        // A hint: what has no pages to read ahead (a pipe, some filesystems) refuses it, as fio lets it.
        let length = region.length.and_then(std::num::NonZeroU64::new);
        let _ = fadvise(&file, region.offset, length, advice);
    }
    Ok(file)
}

/// Like fio's `invalidate`: dirty pages stay, clean ones go; a device that refuses keeps its cache.
pub(super) fn drop_cached_pages(file: &File) {
    let _ = fadvise(file, 0, None, Advice::DontNeed);
}

/// Bytes of a file or device.
pub(super) fn end_of(mut file: &File, path: &Path) -> Result<u64, Failure> {
    std::io::Seek::seek(&mut file, std::io::SeekFrom::End(0))
        .map_err(|error| Failure::file("cannot find the end of", path, &error))
}

/// Whether the file's filesystem has no room for another block.
pub(super) fn is_full(file: impl AsFd) -> bool {
    let regular = rustix::fs::fstat(&file)
        .is_ok_and(|found| rustix::fs::FileType::from_raw_mode(found.st_mode).is_file());
    regular && fstatvfs(&file).is_ok_and(|space| space.f_bavail == 0)
}

/// Whether it is a block device; false when there is nothing.
pub(super) fn is_block_device(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|found| found.file_type().is_block_device())
}

/// `unlink`: removes the regular files of `instance`. One that is gone already, by a clone that has it too, is fine.
///
/// # Errors
/// [`Failure::File`] naming the first that cannot be removed.
pub(super) fn remove_all(job: &Job, instance: &Instance) -> Result<(), Failure> {
    if !job.unlink || job.method == IoMethod::Null {
        return Ok(());
    }
    for region in &instance.files {
        // A device, a pipe or a link to one stays.
        if !std::fs::metadata(&region.path).is_ok_and(|found| found.is_file()) {
            continue;
        }
        match std::fs::remove_file(&region.path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(Failure::file("cannot remove", &region.path, &error));
            }
            _ => {}
        }
    }
    Ok(())
}
