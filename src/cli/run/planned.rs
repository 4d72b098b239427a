//! A plan with the directories it works in, each of which is there, can be written to, and is nobody else's.
//!
//! Enters: an experiment. Leaves: its plan, its work directories, what is made for each cell. Nothing is made yet.

use std::collections::BTreeSet;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::cli::Failure;
use crate::experiment::Experiment;
use crate::plan::{CellSpec, Plan, PlanError, PlannedFile, Writes};
use crate::run::now_unix_ns;
use crate::sys::Untrusted;
use crate::target::{ClaimedDevice, Setup, TargetSpec, WorkDirectory};

/// What a plan depends on besides the experiment.
pub(super) struct Given<'g> {
    pub(super) seed: u64,
    pub(super) drop_caches: bool,
    pub(super) destroy: &'g [PathBuf],
    pub(super) claimed: &'g [ClaimedDevice],
    /// Also where others can change the directory.
    pub(super) trust: bool,
}

/// The plan with the directories it works in: one of assay's own below each directory the cells name.
pub(super) fn planned(
    experiment: &Experiment,
    given: &Given<'_>,
) -> Result<(Plan, Vec<PathBuf>, Vec<TargetSpec>), Failure> {
    let here = std::env::current_dir().map_err(|e| {
        Failure::request(format!("the current directory: {e}")).hint("--directory names another")
    })?;
    // Not the run's seed: a second run with the same --seed must not share, or remove, the first one's directory.
    let own = WorkDirectory::path_for(Path::new(""), &format!("{:016x}", seed_from_clock()));
    let plan = Plan::new(experiment, given.seed, &here, &own.to_string_lossy())
        .map_err(|error| wrong_plan(&error))?;
    let written = written(&plan);
    let target = |cell: &CellSpec| TargetSpec {
        directory: cell.directory.clone(),
        drop_caches: given.drop_caches,
        settle_ms: experiment.settle_s.map(|seconds| (seconds * 1e3).round() as u64),
        elsewhere: elsewhere(cell),
        setup: setup(cell, given.destroy),
        // Another machine has devices of its own.
        claimed: if cell.target.is_elsewhere() { Vec::new() } else { given.claimed.to_vec() },
        written: if cell.target.is_elsewhere() { Vec::new() } else { written.clone() },
    };
    let targets: Vec<TargetSpec> = plan.cells.iter().map(target).collect();
    let work: BTreeSet<PathBuf> = plan.cells.iter().map(|cell| cell.work.clone()).collect();
    for below in work.iter().map(|path| path.parent().unwrap_or(Path::new("."))) {
        writable(below)?;
        if !given.trust {
            nobody_elses(below)?;
        }
    }
    if !given.trust {
        let own = |path: &Path| work.iter().any(|work| path.starts_with(work));
        named_elsewhere(&plan)
            .filter(|path| !own(path))
            .try_for_each(|path| nobody_elses(&directory_of(path)))?;
    }
    Ok((plan, work.into_iter().collect(), targets))
}

/// The block devices that the job itself names.
fn written(plan: &Plan) -> Vec<PathBuf> {
    let named = plan.files.iter().filter(|file| file.writes == Writes::Content).map(|file| &file.path);
    let named = named.chain(&plan.fio.files).chain(&plan.fio.devices);
    let is_device = |path: &&PathBuf| path.metadata().is_ok_and(|found| found.file_type().is_block_device());
    named.filter(is_device).cloned().collect()
}

/// Files of this machine that the job itself names, and that trials make or write to: who may replace one while assay runs as root
/// could lead it elsewhere.
fn named_elsewhere(plan: &Plan) -> impl Iterator<Item = &Path> {
    let here = !plan.cells.iter().any(|cell| cell.target.is_elsewhere());
    let is_written = |file: &&PlannedFile| match (file.writes, file.path.metadata()) {
        (Writes::Layout, Ok(found)) => found.is_file() && file.bytes.is_some_and(|bytes| found.len() < bytes),
        _ => true,
    };
    let files = plan.files.iter().filter(is_written).map(|file| file.path.as_path());
    let of_fio = plan.fio.files.iter().chain(&plan.fio.trees).map(PathBuf::as_path);
    let begun = plan.fio.beginnings.iter().map(|(directory, _)| directory.as_path());
    files.chain(of_fio).chain(begun).filter(move |_| here)
}

/// The directory that a file is in or will be, links followed; one that is there itself.
fn directory_of(path: &Path) -> PathBuf {
    let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let above = real.ancestors().find(|above| above.is_dir());
    above.unwrap_or(Path::new("/")).to_owned()
}

/// What is made and set for a cell, if anything is.
fn setup(cell: &CellSpec, destroy: &[PathBuf]) -> Option<Setup> {
    (cell.target.makes() || !cell.target.knobs.is_empty() || cell.target.is_elsewhere()).then(|| Setup {
        work: cell.work.clone(),
        stack: cell.stack.clone(),
        settings: cell.target.clone(),
        named: destroy.to_vec(),
        epoch: String::new(),
    })
}

/// A place of the files of a cell whose job names them all outside assay's own directory, on one device.
fn elsewhere(cell: &CellSpec) -> Option<PathBuf> {
    let instances = cell.workload.as_ref()?.instances(&cell.directory);
    let mut place = None;
    for path in instances.iter().flat_map(|instance| &instance.files).map(|region| &region.path) {
        let there = if path.exists() { path.as_path() } else { path.parent()? };
        let found = std::fs::metadata(there).ok()?;
        let device = if found.file_type().is_block_device() { found.rdev() } else { found.dev() };
        if path.starts_with(&cell.directory) || place.as_ref().is_some_and(|(_, known)| *known != device) {
            return None;
        }
        place.get_or_insert((there.to_owned(), device));
    }
    place.map(|(there, _)| there)
}

/// As root: refuses a directory in which another user can put something else in the place of what assay made.
fn nobody_elses(directory: &Path) -> Result<(), Failure> {
    match crate::sys::trusted_directory(directory) {
        Err(reason @ Untrusted::Others { .. }) if rustix::process::geteuid().is_root() => {
            let directory = directory.display();
            Err(Failure::request(format!("as root, assay does not work in {directory}: {reason}")).hint(
                "name a place where no other user can rename, such as /var/tmp (--directory, or in the job); --trust works here all \
                 the same",
            ))
        }
        _ => Ok(()),
    }
}

fn writable(directory: &Path) -> Result<(), Failure> {
    let hint = "--directory names an existing directory that you can write to";
    if let Some(kind) = kernels_own(directory) {
        let place = directory.display();
        return Err(Failure::request(format!(
            "no files can be made in {place}: it is the kernel's own ({kind})"
        ))
        .hint(hint));
    }
    match std::fs::metadata(directory) {
        Err(error) => Err(Failure::request(format!("{}: {error}", directory.display())).hint(hint)),
        Ok(found) if !found.is_dir() => {
            Err(Failure::request(format!("{} is not a directory", directory.display())).hint(hint))
        }
        Ok(_) => rustix::fs::access(directory, rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK)
            .map_err(|error| {
                Failure::request(format!("cannot write to {}: {error}", directory.display())).hint(hint)
            }),
    }
}

/// Which filesystem of the kernel's own, in which nobody makes files, a directory is in.
fn kernels_own(directory: &Path) -> Option<&'static str> {
    /// Their numbers of statfs(2).
    const ALL: [(u64, &str); 9] = [
        (0x9fa0, "proc"),
        (0x6265_6572, "sysfs"),
        (0x6367_7270, "cgroup2"),
        (0x0027_e0eb, "cgroup"),
        (0x6462_6720, "debugfs"),
        (0x7472_6163, "tracefs"),
        (0x6265_6570, "configfs"),
        (0x7363_6673, "securityfs"),
        (0x1cd1, "devpts"),
    ];
    let number = rustix::fs::statfs(directory).ok()?.f_type as u64;
    ALL.iter().find(|(of, _)| *of == number).map(|(_, name)| *name)
}

fn wrong_plan(error: &PlanError) -> Failure {
    Failure::request(error).helped(error.hint.clone())
}

/// Any seed will do that another run does not have; it is recorded.
pub(super) fn seed_from_clock() -> u64 {
    now_unix_ns().wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ u64::from(std::process::id())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_shows_is_no_place_for_files() {
        let said = |place: &str| writable(Path::new(place)).map_err(|failure| failure.to_string());
        assert_eq!(
            said("/proc").unwrap_err(),
            "no files can be made in /proc: it is the kernel's own (proc)"
        );
        assert_eq!(kernels_own(Path::new("/sys")), Some("sysfs"));
        assert!(writable(tempfile::tempdir().unwrap().path()).is_ok());
    }
    use crate::experiment::CommandLine;

    #[test]
    fn how_long_a_device_is_waited_for_is_the_users_to_say() {
        let directory = tempfile::tempdir().unwrap();
        let waits = |settle: Option<&str>| {
            let line = CommandLine {
                vary: vec!["n=1,2".to_owned()],
                directory: Some(directory.path().to_owned()),
                settle: settle.map(str::to_owned),
                ..CommandLine::default()
            };
            let command = ["true", "${n}"].map(str::to_owned);
            let experiment = Experiment::from_command(&command, &line).unwrap();
            let given = Given { seed: 1, drop_caches: false, destroy: &[], claimed: &[], trust: true };
            let (_, _, targets) = planned(&experiment, &given).unwrap();
            targets.iter().map(|target| target.settle_ms).collect::<Vec<_>>()
        };
        assert_eq!(waits(Some("300ms")), [Some(300), Some(300)]);
        assert_eq!(waits(Some("0")), [Some(0), Some(0)]);
        assert_eq!(waits(None), [None, None]);
    }
}
