//! The files before the job starts: made, grown, filled where they will be read, all before any group starts
//! and one after the other, so that they lie on the disk in order.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FallocateFlags, fallocate, ftruncate, statvfs};

use super::failure::Failure;
use super::opened;
use crate::workload::{Fallocate, Instance, IoMethod, Job, Workload};

const CHUNK: usize = 1 << 20;

/// What one file must be when the jobs start.
#[derive(Clone, Copy)]
struct Wanted {
    bytes: u64,
    filled: bool,
    fallocate: Fallocate,
}

/// Moves the regions of jobs with `file_append` behind the end of what their files hold when it is their turn to be
/// laid out. As in fio that is one instance after the other: a file that the one before grows is longer for the next.
pub(super) fn place_appends(workload: &Workload, instances: &mut [Instance]) {
    if !workload.jobs.iter().any(|job| job.file_append) {
        return;
    }
    let mut ends: BTreeMap<PathBuf, u64> = BTreeMap::new();
    for instance in instances {
        let job = &workload.jobs[instance.job];
        for region in &mut instance.files {
            if job.method == IoMethod::Null || opened::is_block_device(&region.path) {
                continue;
            }
            let end = ends
                .entry(region.path.clone())
                .or_insert_with(|| std::fs::metadata(&region.path).map_or(0, |found| found.len()));
            if job.file_append {
                region.offset = *end;
            }
            let grows = !job.create_on_open
                && (job.needs_layout() || !matches!(job.fallocate, Fallocate::None | Fallocate::Keep));
            if grows {
                *end = region.file_size().unwrap_or(0).max(*end);
            }
        }
    }
}

/// Lays out the files of all `instances`; directories are made only below `own`, which is removed afterwards.
pub(super) fn lay_out(workload: &Workload, instances: &[Instance], own: &Path) -> Result<(), Failure> {
    // In the order of the jobs, so that the files lie on the disk as fio would lay them.
    let mut files: Vec<(&Path, Wanted)> = Vec::new();
    let mut known: BTreeMap<&Path, usize> = BTreeMap::new();
    for instance in instances {
        let job = &workload.jobs[instance.job];
        if job.method == IoMethod::Null {
            continue;
        }
        for region in &instance.files {
            can_be_trimmed(job, &region.path)?;
            if job.create_on_open {
                make_own_directory(&region.path, own)?;
                continue;
            }
            let bytes = region.file_size().unwrap_or(0);
            let at = *known.entry(&region.path).or_insert_with(|| {
                files.push((&region.path, Wanted { bytes, filled: false, fallocate: job.fallocate }));
                files.len() - 1
            });
            let wanted = &mut files[at].1;
            wanted.bytes = wanted.bytes.max(bytes);
            wanted.filled |= job.needs_layout();
        }
    }
    enough_space(&files)?;
    files.iter().try_for_each(|(path, wanted)| lay_out_file(path, *wanted, own))
}

/// Refuses discards of what is no block device.
///
/// # Errors
/// [`Failure::Setting`].
pub(super) fn can_be_trimmed(job: &Job, path: &Path) -> Result<(), Failure> {
    if !job.pattern.mix.trims() || opened::is_block_device(path) {
        return Ok(());
    }
    let what = format!("rw=trim discards blocks of a block device, and {} is none", path.display());
    Err(Failure::Setting { job: job.name.clone(), what })
}

fn make_own_directory(path: &Path, own: &Path) -> Result<(), Failure> {
    match path.parent().filter(|directory| directory.starts_with(own)) {
        Some(directory) => std::fs::create_dir_all(directory)
            .map_err(|error| Failure::file("cannot make the directory of", path, &error)),
        None => Ok(()),
    }
}

/// Says before a byte is written when the files cannot fit.
fn enough_space(files: &[(&Path, Wanted)]) -> Result<(), Failure> {
    let mut left_by_directory: BTreeMap<&Path, u64> = BTreeMap::new();
    for (path, wanted) in files {
        let directory = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let Ok(space) = statvfs(directory) else { continue };
        let free = space.f_bavail.saturating_mul(space.f_frsize);
        let left = left_by_directory.entry(directory).or_insert(free);
        let needed = wanted.bytes.saturating_sub(std::fs::metadata(path).map_or(0, |m| m.len()));
        // A filesystem without blocks (proc, sysfs) has no space to run out of.
        if needed > *left && space.f_blocks > 0 {
            return Err(Failure::NoSpace { path: path.to_path_buf(), missing_bytes: needed - *left });
        }
        *left = left.saturating_sub(needed);
    }
    Ok(())
}

fn lay_out_file(path: &Path, wanted: Wanted, own: &Path) -> Result<(), Failure> {
    let failed = |what: &'static str| move |error: std::io::Error| Failure::file(what, path, &error);
    match std::fs::metadata(path) {
        Ok(found) if found.file_type().is_block_device() => return Ok(()),
        Ok(found) if found.is_dir() => return Err(Failure::IsDirectory { path: path.to_owned() }),
        Ok(found) if !found.is_file() => return Err(Failure::special(path, found.file_type())),
        Ok(found) if found.len() >= wanted.bytes => return Ok(()),
        Ok(_) => {}
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && wanted.bytes > 0 => {}
        Err(error) => return Err(Failure::file("cannot open", path, &error)),
    }
    make_own_directory(path, own)?;
    let mut file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(path)
        .map_err(failed("cannot make"))?;
    allocate(&file, wanted).map_err(failed("cannot allocate"))?;
    if wanted.filled {
        fill(&mut file, wanted.bytes).map_err(|error| full(path, wanted.bytes, &error))?;
        file.sync_all().map_err(failed("cannot fsync"))?;
        // As fio's: what was laid out just now is not in the cache, also with invalidate=0.
        opened::drop_cached_pages(&file);
    } else if wanted.fallocate == Fallocate::Truncate {
        grow(&file, wanted.bytes).map_err(failed("cannot size"))?;
    }
    Ok(())
}

fn allocate(file: &File, wanted: Wanted) -> std::io::Result<()> {
    let length = wanted.bytes;
    let result = match wanted.fallocate {
        Fallocate::None | Fallocate::Truncate => return Ok(()),
        Fallocate::Keep => fallocate(file, FallocateFlags::KEEP_SIZE, 0, length),
        Fallocate::Native | Fallocate::Posix => fallocate(file, FallocateFlags::empty(), 0, length),
    };
    match result {
        // fio's `native` does nothing where the filesystem cannot.
        Err(rustix::io::Errno::OPNOTSUPP) if wanted.fallocate == Fallocate::Native => Ok(()),
        other => other.map_err(Into::into),
    }
}

fn grow(file: &File, bytes: u64) -> std::io::Result<()> {
    if file.metadata()?.len() < bytes { ftruncate(file, bytes).map_err(Into::into) } else { Ok(()) }
}

/// Incompressible data from the start: what is read later must be real blocks, not holes.
fn fill(file: &mut File, bytes: u64) -> std::io::Result<()> {
    let mut chunk = vec![0_u8; CHUNK.min(bytes as usize)];
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut left = bytes;
    while left > 0 {
        for word in chunk.chunks_mut(8) {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            word.copy_from_slice(&state.to_le_bytes()[..word.len()]);
        }
        let now = left.min(chunk.len() as u64);
        file.write_all(&chunk[..now as usize])?;
        left -= now;
    }
    Ok(())
}

fn full(path: &Path, bytes: u64, error: &std::io::Error) -> Failure {
    if error.raw_os_error() == Some(libc::ENOSPC) {
        let have = std::fs::metadata(path).map_or(0, |m| m.len());
        return Failure::NoSpace { path: path.to_owned(), missing_bytes: bytes.saturating_sub(have) };
    }
    Failure::file("cannot fill", path, error)
}
