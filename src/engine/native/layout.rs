//! The files before the job starts: made, grown, filled where they will be read, all before any group starts
//! and one after the other, so that they lie on the disk in order.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FallocateFlags, fallocate, ftruncate, statvfs};

use super::content::{Content, ContentRule};
use super::failure::Failure;
use super::opened;
use crate::workload::{Fallocate, Instance, IoMethod, Job, Workload};

const CHUNK: usize = 1 << 20;

/// What one file must be when the jobs start.
#[derive(Clone, Copy)]
struct Wanted {
    bytes: u64,
    /// With what, where it is filled, and in blocks of which size.
    filled: Option<(ContentRule, usize)>,
    fallocate: Fallocate,
}

impl Wanted {
    fn by(job: &Job, bytes: u64) -> Wanted {
        let filled = job.needs_layout().then(|| (ContentRule::of(job), job.block_sizes.write.max as usize));
        Wanted { bytes, filled, fallocate: job.fallocate }
    }
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
    // One instance after the other, as fio: files lie on the disk in that order, and one that a writer has allocated is not filled for the
    // reader behind it.
    let mut files: Vec<(&Path, Wanted)> = Vec::new();
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
            files.push((&region.path, Wanted::by(job, region.file_size().unwrap_or(0))));
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
    let mut largest: BTreeMap<&Path, u64> = BTreeMap::new();
    // On a device nothing is laid out, and the filesystem of its node is not where its blocks are.
    for (path, wanted) in files.iter().filter(|(path, _)| !opened::is_block_device(path)) {
        let bytes = largest.entry(path).or_default();
        *bytes = wanted.bytes.max(*bytes);
    }
    for (path, bytes) in largest {
        let directory = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let Ok(space) = statvfs(directory) else { continue };
        let free = space.f_bavail.saturating_mul(space.f_frsize);
        let left = left_by_directory.entry(directory).or_insert(free);
        let needed = bytes.saturating_sub(std::fs::metadata(path).map_or(0, |m| m.len()));
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
    if let Some((content, block)) = wanted.filled {
        fill(&mut file, wanted.bytes, content, block).map_err(|error| full(path, wanted.bytes, &error))?;
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

/// From the start, with what the job writes: what is read later must be real blocks, not holes, and as compressible as it says.
fn fill(file: &mut File, bytes: u64, rule: ContentRule, block: usize) -> std::io::Result<()> {
    let block = block.max(1);
    // Whole blocks.
    let mut chunk = vec![0_u8; (CHUNK.div_ceil(block) * block).min(bytes as usize)];
    let mut content = Content::new(rule, file.metadata()?.ino());
    let mut left = bytes;
    while left > 0 {
        chunk.chunks_mut(block).for_each(|block| content.begin(block));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::JobFile;

    /// Zero bytes per hundred of the file that is laid out for these sections.
    fn zeroes(sections: &str) -> usize {
        let directory = tempfile::tempdir().unwrap();
        let text = format!("[global]\nfilename=f\nsize=256k\nbs=4k\n{sections}");
        let file = JobFile::parse(&text, "test", directory.path()).unwrap();
        let workload = Workload::resolve(&file).unwrap();
        lay_out(&workload, &workload.instances(directory.path()), directory.path()).unwrap();
        let bytes = std::fs::read(directory.path().join("f")).unwrap();
        assert_eq!(bytes.len(), 256 << 10, "{sections}");
        bytes.iter().filter(|byte| **byte == 0).count() * 100 / bytes.len()
    }

    /// As fio: what the first has allocated has its size for the second, whose blocks are read unwritten.
    #[test]
    fn a_file_of_two_sections_is_laid_out_for_one_after_the_other() {
        assert_eq!(zeroes("[w]\nrw=randwrite\n[r]\nstonewall\nrw=randread\n"), 100);
        assert!(zeroes("[r]\nrw=randread\n[w]\nstonewall\nrw=randwrite\n") < 2);
        assert!(zeroes("[w]\nrw=randwrite\nfallocate=none\n[r]\nstonewall\nrw=randread\n") < 2);
    }

    #[test]
    fn what_is_laid_out_is_as_redundant_as_the_job_says() {
        assert!(zeroes("[r]\nrw=randread\n") < 2);
        assert_eq!(zeroes("[r]\nrw=randread\nzero_buffers\n"), 100);
        let compressible = zeroes("[r]\nrw=randread\nbuffer_compress_percentage=70\n");
        assert!((68..74).contains(&compressible), "{compressible}");
    }
}
