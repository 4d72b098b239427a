//! Nothing that exists is written to unless it was named with `--destroy`.

use std::io::Read;
use std::path::{Path, PathBuf};

use super::prepare::Prepared;
use crate::cli::Failure;
use crate::experiment::{EngineChoice, TargetSettings};
use crate::plan::{PlannedFile, Writes};
use crate::target::{Claims, may_overwrite, obstacle};
use crate::workload::{FioPaths, JobFile, Workload};

/// Looks at every path the trials will write to.
///
/// # Errors
/// A [`Failure`] with exit code 2 that names the first one that must not be written to, and how to allow it.
pub(super) fn check(prepared: &Prepared) -> Result<(), Failure> {
    let destroy = &prepared.destroy;
    targets(prepared)?;
    let in_guests = prepared.plan.cells.iter().filter(|cell| cell.target.guest.kernel.is_some()).count();
    if in_guests > 0 {
        let works = |path: &Path| prepared.plan.cells.iter().any(|cell| path.starts_with(&cell.work));
        if let Some(file) = prepared.plan.files.iter().find(|file| !works(&file.path)) {
            return Err(Failure::request(format!(
                "the job names {}, which is this machine's: a guest has none of its files and devices",
                file.path.display()
            ))
            .hint("take filename= and directory= out of the job, and name a device: --target virtio_blk:1g, --target fs=xfs"));
        }
        prepared.launcher().map(drop)?;
    }
    for file in prepared.plan.files.iter().filter(|file| changes(file)) {
        refuse(&file.path, destroy)?;
    }
    for (target, cell) in prepared.surroundings.targets.iter().zip(&prepared.plan.cells) {
        let (EngineChoice::Fio, Some(text)) = (cell.engine, &cell.job_text) else { continue };
        let parsed = JobFile::parse(text, &cell.job_origin, &target.directory);
        let file = parsed.map_err(|errors| Failure::request(&errors).hint(errors.hint()))?;
        if Workload::resolve(&file).is_err() {
            check_fios_own(&FioPaths::of(&file, &target.directory), destroy)?;
        }
    }
    Ok(())
}

/// Keeps other runs off the devices that these may overwrite.
///
/// # Errors
/// A [`Failure`] with exit code 2: another run works on one of them.
pub(super) fn claim<'p>(parts: impl IntoIterator<Item = &'p Prepared>) -> Result<Claims, Failure> {
    let named: Vec<PathBuf> = parts.into_iter().flat_map(|part| part.destroy.clone()).collect();
    crate::target::claim(&named).map_err(|refusal| Failure::request(&refusal).hint(refusal.hint()))
}

/// Whether every cell's target can be had here, and may be written to.
fn targets(prepared: &Prepared) -> Result<(), Failure> {
    let mut seen: Vec<&TargetSettings> = Vec::new();
    for cell in &prepared.plan.cells {
        if seen.contains(&&cell.target) {
            continue;
        }
        seen.push(&cell.target);
        // A guest has devices, filesystems and privileges of its own.
        if cell.target.guest.kernel.is_some() {
            continue;
        }
        let below = cell.work.parent().unwrap_or(Path::new("."));
        obstacle(&cell.target, &prepared.destroy, below).map_err(|error| {
            let hint = error.hint();
            let failure = Failure::request(error);
            if hint.is_empty() { failure } else { failure.hint(hint) }
        })?;
    }
    Ok(())
}

fn refuse(path: &Path, destroy: &[PathBuf]) -> Result<(), Failure> {
    may_overwrite(path, destroy).map_err(|refusal| Failure::request(&refusal).hint(refusal.hint()))
}

/// Whether a trial changes the file: one that is only read is written where it is missing or short.
fn changes(file: &PlannedFile) -> bool {
    match (file.writes, std::fs::metadata(&file.path)) {
        (Writes::Content, _) | (_, Err(_)) => true,
        (Writes::Layout, Ok(found)) => found.is_file() && file.bytes.is_some_and(|bytes| found.len() < bytes),
        (Writes::Log, Ok(found)) => !found.is_file() || !is_an_iolog(&file.path),
    }
}

/// A log of an earlier trial or session is gone on with; nothing in it is lost.
fn is_an_iolog(path: &Path) -> bool {
    let mut start = [0; 12];
    crate::sys::regular_file::open(path).is_ok_and(|mut file| file.read_exact(&mut start).is_ok())
        && &start == b"fio version "
}

/// Every path of a job that only fio understands, whatever the job does with it.
fn check_fios_own(paths: &FioPaths, destroy: &[PathBuf]) -> Result<(), Failure> {
    if let Some(setting) = paths.unknowable.first() {
        return Err(Failure::request(format!(
            "{}: {} replays I/O on files that cannot be told beforehand",
            setting.place, setting.name
        ))
        .hint("run fio yourself and compare its output: assay compare BASELINE.json CANDIDATE.json"));
    }
    paths.files.iter().try_for_each(|path| refuse(path, destroy))?;
    for (directory, start) in &paths.beginnings {
        // Nothing is there: only the way is looked at.
        refuse(&directory.join(format!("{start}0")), destroy)?;
        let found = entries(directory)
            .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(start)));
        found.filter(|path| !path.is_dir()).try_for_each(|path| refuse(&path, destroy))?;
    }
    let mut trees = paths.trees.clone();
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

fn entries(directory: &Path) -> impl Iterator<Item = PathBuf> {
    std::fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path())
}
