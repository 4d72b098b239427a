//! Nothing that exists is written to unless it was named with `--destroy`.

use std::io::Read;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use super::prepare::Prepared;
use crate::cli::Failure;
use crate::experiment::TargetSettings;
use crate::plan::{PlannedFile, Writes};
use crate::target::{Claims, TargetError, may_overwrite, obstacle, settings_of};
use crate::workload::FioEffects;

/// Looks at every path the trials will write to.
///
/// # Errors
/// A [`Failure`] with exit code 2 that names the first one that must not be written to, and how to allow it.
pub(super) fn check(prepared: &Prepared) -> Result<(), Failure> {
    let destroy = &prepared.destroy;
    targets(prepared)?;
    if prepared.plan.cells.iter().any(|cell| cell.target.is_elsewhere()) {
        let works = |path: &Path| prepared.plan.cells.iter().any(|cell| path.starts_with(&cell.work));
        if let Some(file) = prepared.plan.files.iter().find(|file| !works(&file.path)) {
            return Err(Failure::request(format!(
                "the job names {}, which is this machine's: a guest has none of its files and devices",
                file.path.display()
            ))
            .hint("take filename= and directory= out of the job, and name a device: --target virtio_blk:1g, --target fs=xfs"));
        }
        prepared.can_be_launched()?;
    }
    for file in prepared.plan.files.iter().filter(|file| changes(file)) {
        refuse(&file.path, destroy)?;
    }
    let work = |path: &Path| prepared.work.iter().any(|own| path.starts_with(own));
    check_fios_own(&prepared.plan.fio, destroy, &work)
}

/// Looks once more at the devices that jobs name, before they are written to for the first time: building kernels may have taken an hour,
/// in which somebody made a filesystem there. Files are looked at as the run begins.
///
/// # Errors
/// As [`check`].
pub(super) fn check_devices(prepared: &Prepared) -> Result<(), Failure> {
    let is_device = |file: &&PlannedFile| {
        file.path.metadata().is_ok_and(|found| found.file_type().is_block_device()) && changes(file)
    };
    prepared.plan.files.iter().filter(is_device).try_for_each(|file| refuse(&file.path, &prepared.destroy))
}

/// Keeps other runs off the devices that these may overwrite.
///
/// # Errors
/// A [`Failure`] with exit code 2: another run works on one of them.
pub(super) fn claim<'p>(parts: impl IntoIterator<Item = &'p Prepared>) -> Result<Claims, Failure> {
    let named: Vec<PathBuf> = parts.into_iter().flat_map(|part| part.destroy.clone()).collect();
    crate::target::claim(&named).map_err(|refusal| Failure::request(&refusal).hint(refusal.hint()))
}

/// The settings of this machine that the trials set.
///
/// # Errors
/// A [`Failure`] with exit code 2: one of them is not there.
pub(super) fn settings(prepared: &Prepared) -> Result<Vec<PathBuf>, Failure> {
    let mut all = Vec::new();
    let cells = prepared.plan.cells.iter().zip(&prepared.surroundings.targets);
    for (cell, target) in cells.filter(|(cell, _)| !cell.target.is_elsewhere()) {
        let below = cell.work.parent().unwrap_or(Path::new("."));
        all.extend(settings_of(&cell.target, below, target.elsewhere.as_deref()).map_err(refused)?);
    }
    Ok(all)
}

/// Looks whether another run sets what these will set; each takes hold of its own as it begins.
///
/// # Errors
/// A [`Failure`] with exit code 2 that names the setting and the run.
pub(super) fn settings_are_free<'p>(parts: impl IntoIterator<Item = &'p Prepared>) -> Result<(), Failure> {
    parts.into_iter().try_for_each(|part| crate::target::settings_are_free(&settings(part)?).map_err(refused))
}

fn refused(error: TargetError) -> Failure {
    let hint = error.hint();
    Failure::request(error).hint(hint)
}

/// Whether every cell's target can be had here, and may be written to.
fn targets(prepared: &Prepared) -> Result<(), Failure> {
    let mut seen: Vec<(&TargetSettings, Option<&Path>)> = Vec::new();
    for (cell, target) in prepared.plan.cells.iter().zip(&prepared.surroundings.targets) {
        let elsewhere = target.elsewhere.as_deref();
        if seen.contains(&(&cell.target, elsewhere)) {
            continue;
        }
        seen.push((&cell.target, elsewhere));
        // Another machine has devices, filesystems and privileges of its own.
        if cell.target.is_elsewhere() {
            continue;
        }
        let below = cell.work.parent().unwrap_or(Path::new("."));
        obstacle(&cell.target, &prepared.destroy, below, elsewhere).map_err(refused)?;
    }
    Ok(())
}

fn refuse(path: &Path, destroy: &[PathBuf]) -> Result<(), Failure> {
    no_dangling_link(path)?;
    no_file_among_devices(path)?;
    may_overwrite(path, destroy).map_err(|refusal| Failure::request(&refusal).hint(refusal.hint()))
}

/// A device that is not there, perhaps misspelt, would become a file in the memory that holds the nodes of /dev.
fn no_file_among_devices(path: &Path) -> Result<(), Failure> {
    let device_of = |path: &Path| path.metadata().ok().map(|found| found.dev());
    let nodes = device_of(Path::new("/dev"));
    let is_one = path.parent().is_some_and(|parent| nodes.is_some() && device_of(parent) == nodes);
    // Where /dev is a directory of the root filesystem, only what is in it is meant.
    if path.exists() || !is_one || !path.starts_with("/dev") {
        return Ok(());
    }
    Err(Failure::request(format!(
        "there is no {}, and a file of that name in /dev would lie in memory",
        path.display()
    ))
    .hint("lsblk lists the devices there are; /dev/shm/NAME is a file in memory"))
}

/// A file made through a link that leads nowhere would lie where nobody was asked, and stay there.
fn no_dangling_link(path: &Path) -> Result<(), Failure> {
    if !path.is_symlink() || path.exists() {
        return Ok(());
    }
    let mut end = path.to_owned();
    // As many as the kernel follows.
    for _ in 0..40 {
        let Ok(next) = std::fs::read_link(&end) else { break };
        end = end.parent().unwrap_or(Path::new("/")).join(next);
    }
    let (path, end) = (path.display(), end.display());
    Err(Failure::request(format!("{path} is a symlink to {end}, which is not there"))
        .hint(format!("remove the link (rm {path}), or name the file itself in the job")))
}

/// Whether a trial changes the file: one that is only read is written where it is missing or short.
fn changes(file: &PlannedFile) -> bool {
    match (file.writes, std::fs::metadata(&file.path)) {
        (Writes::Content, _) | (_, Err(_)) => true,
        _ if file.deletes => true,
        (Writes::Layout, Ok(found)) => found.is_file() && file.bytes.is_some_and(|bytes| found.len() < bytes),
        (Writes::Log, Ok(found)) => !found.is_file() || file.path.is_symlink() || !is_an_iolog(&file.path),
    }
}

/// A log of an earlier trial or session is gone on with; nothing in it is lost.
fn is_an_iolog(path: &Path) -> bool {
    let mut start = [0; 12];
    crate::sys::regular_file::open(path).is_ok_and(|mut file| file.read_exact(&mut start).is_ok())
        && &start == b"fio version "
}

/// Every path of a job that only fio understands, whatever the job does with it.
fn check_fios_own(
    fio: &FioEffects,
    destroy: &[PathBuf],
    work: &dyn Fn(&Path) -> bool,
) -> Result<(), Failure> {
    if let Some(refused) = fio.refused.first() {
        return Err(Failure::request(&refused.what).hint(refused.hint));
    }
    elsewhere(fio, destroy)?;
    fio.files.iter().try_for_each(|path| refuse(path, destroy))?;
    fio.parents.iter().filter(|parent| !work(parent)).try_for_each(|parent| is_there(parent))?;
    let special = |path: &&PathBuf| path.symlink_metadata().is_ok_and(|found| !found.is_file());
    fio.devices.iter().filter(special).try_for_each(|path| refuse(path, destroy))?;
    for (directory, start) in &fio.beginnings {
        // Nothing is there: only the way is looked at.
        refuse(&directory.join(format!("{start}0")), destroy)?;
        let found = entries(directory)
            .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(start)));
        found.filter(|path| !path.is_dir()).try_for_each(|path| refuse(&path, destroy))?;
    }
    let mut trees = fio.trees.clone();
    while let Some(tree) = trees.pop() {
        for path in entries(&tree) {
            if path.is_dir() && !path.is_symlink() {
                trees.push(path);
            } else {
                refuse(&path, destroy)?;
            }
        }
    }
    Ok(())
}

/// What other machines keep cannot be looked at: it is named as the job names it.
fn elsewhere(fio: &FioEffects, destroy: &[PathBuf]) -> Result<(), Failure> {
    let named = |name: &String| destroy.iter().any(|path| path.as_os_str() == name.as_str());
    let Some(storage) = fio.elsewhere.iter().find(|storage| !storage.names.iter().any(named)) else {
        return Ok(());
    };
    let what = format!("ioengine={} writes to storage that assay cannot look at", storage.engine);
    let failure = Failure::request(match storage.names.first() {
        Some(name) => format!("{what}: {name}"),
        None => what,
    });
    Err(match storage.names.first() {
        Some(name) => failure.hint(format!("if everything on it may be lost: --destroy {name}")),
        None => failure.hint("name it in the job; fio --enghelp=ENGINE lists how"),
    })
}

/// fio would make it, and nobody would remove it.
fn is_there(directory: &Path) -> Result<(), Failure> {
    if directory.exists() {
        return Ok(());
    }
    let directory = directory.display();
    Err(Failure::request(format!("there is no directory {directory}, where the job has a file"))
        .hint(format!("make it first: mkdir -p {directory}")))
}

fn entries(directory: &Path) -> impl Iterator<Item = PathBuf> {
    std::fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path())
}
