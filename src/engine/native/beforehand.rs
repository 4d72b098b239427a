//! What a workload asks for and this machine does not have, said before anything is touched.
//!
//! Enters: jobs, their instances, where their files go. Leaves: nothing, or the failure that the trial would end with.
//! Only what is certain is refused: where a look cannot tell, the trial shall. It must not write or make anything but
//! a file without a name, which is gone when it is closed.

use std::fs::{File, Metadata};
use std::io::ErrorKind;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{Access, AtFlags, OFlags, StatxFlags, access, fcntl_setfl, statx};
use rustix::io::Errno;

use super::buffers::Buffers;
use super::failure::Failure;
use super::method::{Mmap, probe_io_uring};
use super::{affinity, layout, numa_memory, open_files, opened};
use crate::workload::{FileRegion, Instance, IoMethod, Job, Workload};

/// No device discards less than a sector.
const SECTOR: u64 = 512;

/// Looks at processors, nodes, memory, limits and methods.
///
/// # Errors
/// The first [`Failure`] that is certain.
pub(super) fn machine(workload: &Workload, instances: &[Instance]) -> Result<(), Failure> {
    for instance in instances {
        let job = &workload.jobs[instance.job];
        affinity::processors(job, instance)?;
        if instance.clone > 0 {
            continue;
        }
        numa_memory::policy(job)?;
        let depth = if job.method.is_asynchronous() { job.depth.iodepth } else { 1 };
        Buffers::check(job, depth as usize)?;
        match job.method {
            IoMethod::IoUring => {
                probe_io_uring().map_err(|errno| Failure::method(job.method.name(), errno))?;
            }
            IoMethod::Mmap => Mmap::check(job)?,
            _ => {}
        }
    }
    open_files::check(workload, instances)
}

/// Looks at the files and devices of all jobs, which are what the trial will find; those below `own` will be made.
///
/// # Errors
/// The first [`Failure`] that is certain.
pub(super) fn files(workload: &Workload, instances: &[Instance], own: &Path) -> Result<(), Failure> {
    for instance in instances {
        let job = &workload.jobs[instance.job];
        if job.method == IoMethod::Null {
            continue;
        }
        // One of the files that are made stands for all.
        let (made, named): (Vec<_>, Vec<_>) =
            instance.files.iter().partition(|file| file.path.starts_with(own));
        named.into_iter().chain(made.into_iter().take(1)).try_for_each(|region| file(job, region, own))?;
    }
    Ok(())
}

fn file(job: &Job, region: &FileRegion, own: &Path) -> Result<(), Failure> {
    let path = region.path.as_path();
    layout::can_be_trimmed(job, path)?;
    match std::fs::metadata(path) {
        Ok(found) if found.is_dir() => Err(Failure::IsDirectory { path: path.to_owned() }),
        Ok(found) if found.file_type().is_block_device() => device(job, region),
        Ok(found) if !found.is_file() => Err(Failure::special(path, found.file_type())),
        Ok(found) => {
            opens(job, path, &found)?;
            aligned(job, region, &path_for_direct(path, false))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => missing(job, region, own),
        Err(error) => Err(Failure::file("cannot open", path, &error)),
    }
}

/// A file that will be made: its directory must be there, and one may write to it.
fn missing(job: &Job, region: &FileRegion, own: &Path) -> Result<(), Failure> {
    let path = region.path.as_path();
    let directory =
        path.parent().filter(|directory| !directory.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if path.starts_with(own) {
        // It is made in a directory that is, whose own was looked at.
        let there = directory.ancestors().find(|directory| directory.is_dir());
        return there.map_or(Ok(()), |there| aligned(job, region, &path_for_direct(there, true)));
    }
    match std::fs::metadata(directory) {
        Err(error) => Err(Failure::file("cannot open", path, &error)),
        Ok(found) if !found.is_dir() => Err(Failure::file("cannot open", path, &Errno::NOTDIR.into())),
        Ok(_) => {
            access(directory, Access::WRITE_OK | Access::EXEC_OK)
                .map_err(|errno| Failure::file("cannot make", path, &errno.into()))?;
            aligned(job, region, &path_for_direct(directory, true))
        }
    }
}

/// Whether an existing file may be opened as the job opens it.
fn opens(job: &Job, path: &Path, found: &Metadata) -> Result<(), Failure> {
    let grows = !job.create_on_open && job.needs_layout() && job.size.is_some_and(|size| found.len() < size);
    let writes = job.pattern.mix.writes() || job.pattern.mix.trims() || grows && job.nrfiles == 1;
    let wanted = if writes { Access::READ_OK | Access::WRITE_OK } else { Access::READ_OK };
    access(path, wanted).map_err(|errno| Failure::file("cannot open", path, &errno.into()))
}

fn device(job: &Job, region: &FileRegion) -> Result<(), Failure> {
    let path = region.path.as_path();
    let trims = job.pattern.mix.trims();
    let writes = job.pattern.mix.writes() || trims;
    let wanted = if writes { Access::READ_OK | Access::WRITE_OK } else { Access::READ_OK };
    access(path, wanted).map_err(|errno| Failure::file("cannot open", path, &errno.into()))?;
    let smallest = if trims { job.block_sizes.trim.min } else { SECTOR };
    if !smallest.is_multiple_of(SECTOR) || trims && !region.offset.is_multiple_of(SECTOR) {
        let what =
            format!("rw=trim discards whole sectors of {SECTOR} bytes of {}, not {smallest}", path.display());
        return Err(Failure::Setting { job: job.name.clone(), what: what + " (EINVAL)" });
    }
    // A device that cannot be opened now may be by then.
    let Ok(opened) = File::open(path) else { return Ok(()) };
    let have = opened::end_of(&opened, path)?;
    // What is bound by time or io_size may never come there.
    let comes_there = !writes || job.runtime.is_none() && job.io_size.is_none();
    match region.file_size() {
        Some(needed) if needed > have && comes_there => {
            Err(Failure::TooSmall { path: path.to_owned(), have, needed })
        }
        _ if trims => Ok(()),
        _ => aligned(job, region, &Some(opened)),
    }
}

/// Something on the filesystem in question to ask for its alignment: the file, or one without a name in a directory.
fn path_for_direct(path: &Path, is_directory: bool) -> Option<File> {
    let nameless = if is_directory { libc::O_TMPFILE } else { 0 };
    let mut options = std::fs::OpenOptions::new();
    options.read(true).write(is_directory).custom_flags(nameless | libc::O_NONBLOCK).open(path).ok()
}

/// Refuses direct I/O on blocks or offsets that the file does not take; where the kernel (before 6.1) or the filesystem
/// does not say what it takes, nothing is refused.
fn aligned(job: &Job, region: &FileRegion, file: &Option<File>) -> Result<(), Failure> {
    let (true, Some(file)) = (job.direct && job.method != IoMethod::Mmap, file) else { return Ok(()) };
    let Ok(found) = statx(file.as_fd(), "", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN) else { return Ok(()) };
    if found.stx_mask & StatxFlags::DIOALIGN.bits() == 0 {
        return Ok(());
    }
    let unit = u64::from(found.stx_dio_offset_align);
    if unit == 0 {
        // Either there is no O_DIRECT, or it is taken and buffered all the same (ext4 with data=journal): the latter is noted elsewhere.
        return match fcntl_setfl(file, OFlags::DIRECT) {
            Err(Errno::INVAL) => Err(Failure::NoDirect { path: region.path.clone() }),
            _ => Ok(()),
        };
    }
    let sizes = job.block_sizes;
    let mix = job.pattern.mix;
    let used = [(mix.reads(), sizes.read.min), (mix.writes(), sizes.write.min), (true, region.offset)];
    match used.iter().find(|(used, bytes)| *used && !bytes.is_multiple_of(unit)) {
        Some((_, bytes)) => {
            let what = format!(
                "with direct=1 blocks and offsets of {} must be multiples of its logical block, {unit} bytes, and \
                 {bytes} is none (EINVAL)",
                region.path.display()
            );
            Err(Failure::Setting { job: job.name.clone(), what })
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::JobFile;

    fn look(options: &str, own: &Path) -> Result<(), String> {
        let text = format!("[j]\nbs=4k\nsize=64k\n{options}\n");
        let file = JobFile::parse(&text, "test.fio", Path::new(".")).unwrap();
        let workload = Workload::resolve(&file).unwrap();
        let instances = workload.instances(own);
        let failed = |failure: Failure| failure.to_string();
        machine(&workload, &instances).map_err(failed)?;
        files(&workload, &instances, own).map_err(failed)
    }

    #[test]
    fn what_is_certain_is_refused_and_nothing_is_made() {
        let place = tempfile::tempdir().unwrap();
        let here = place.path().display();
        std::fs::write(place.path().join("data"), vec![1; 1 << 16]).unwrap();
        let own = place.path().join("own");
        for (options, part) in [
            ("rw=read\ncpus_allowed=900".to_owned(), "there is no CPU 900"),
            ("rw=read\nnuma_mem_policy=bind:63".to_owned(), "no node 63"),
            (format!("rw=read\nfilename={here}/none/file"), "ENOENT"),
            (format!("rw=write\nfilename={here}/data/file"), "ENOTDIR"),
            (format!("rw=read\nfilename={here}"), "is a directory"),
            ("rw=read\nfilename=/dev/zero".to_owned(), "character device"),
            (format!("rw=trim\nfilename={here}/data"), "is none"),
            ("rw=trim".to_owned(), "is none"),
            ("rw=write\nioengine=mmap\nbs=1000\nfsync=1".to_owned(), "whole pages"),
        ] {
            let said = look(&options, &own).unwrap_err();
            assert!(said.contains(part), "{options}: {said}");
        }
        for options in [
            "rw=write".to_owned(),
            format!("rw=randread\nfilename={here}/data"),
            format!("rw=write\nfilename={here}/new"),
            "rw=read\ncpus_allowed=0\ndirect=1".to_owned(),
            "rw=read\nioengine=null\nfilename=/none/there".to_owned(),
        ] {
            look(&options, &own).unwrap();
        }
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 1);
    }
}
