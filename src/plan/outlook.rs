//! What a plan will touch and how long it can take, told before anything runs.
//!
//! Enters: the resolved cells. Leaves: files with sizes, programs needed, seconds. Nothing is looked up on a disk.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::cell::CellSpec;
use crate::experiment::{EngineChoice, Experiment};
use crate::workload::{JobFile, Workload};

/// What the trials do to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Writes {
    /// It is read; a missing or short one is written in full first.
    Layout,
    /// It is written: what was in it is lost.
    Content,
    /// Lines are added at its end (`write_iolog`), and it stays.
    Log,
}

/// A file the trials use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedFile {
    /// Where.
    pub path: PathBuf,
    /// Its size at most; `None`: as large as it is.
    pub bytes: Option<u64>,
    /// What happens to it.
    pub writes: Writes,
}

/// What the cells need and touch.
pub(super) struct Outlook {
    pub(super) files: Vec<PlannedFile>,
    pub(super) files_known: bool,
    pub(super) tools: Vec<String>,
}

impl Outlook {
    pub(super) fn of(experiment: &Experiment, cells: &[CellSpec]) -> Outlook {
        let mut files: BTreeMap<PathBuf, (Option<u64>, Writes)> = BTreeMap::new();
        let mut files_known = true;
        let mut tools: BTreeSet<String> = BTreeSet::new();
        if experiment.before.is_some() || experiment.after.is_some() {
            tools.insert("sh".to_owned());
        }
        for cell in cells {
            match cell.engine {
                EngineChoice::Simulated | EngineChoice::Null => continue,
                EngineChoice::Command => {
                    tools.extend(cell.command.first().cloned());
                    files_known = false;
                    continue;
                }
                EngineChoice::Fio => {
                    tools.insert("fio".to_owned());
                }
                EngineChoice::Dbench | EngineChoice::FsMark | EngineChoice::XfsIo => {
                    // All they write lies in the directory that is made for it.
                    tools.insert(cell.engine.name().to_owned());
                    continue;
                }
                EngineChoice::Native | EngineChoice::Bare => {}
            }
            match workload_of(cell) {
                Some(workload) => collect_files(&workload, &cell.directory, &mut files),
                None => files_known = false,
            }
        }
        let planned = |(path, (bytes, writes))| PlannedFile { path, bytes, writes };
        Outlook {
            files: files.into_iter().map(planned).collect(),
            files_known,
            tools: tools.into_iter().collect(),
        }
    }
}

fn workload_of(cell: &CellSpec) -> Option<Workload> {
    let file = JobFile::parse(cell.job_text.as_deref()?, &cell.job_origin, Path::new("")).ok()?;
    Workload::resolve(&file).ok()
}

fn collect_files(
    workload: &Workload,
    directory: &Path,
    files: &mut BTreeMap<PathBuf, (Option<u64>, Writes)>,
) {
    for log in workload.jobs.iter().filter_map(|job| job.io_log.as_ref()) {
        files.insert(directory.join(log), (None, Writes::Log));
    }
    for instance in workload.instances(directory) {
        let mix = workload.jobs[instance.job].pattern.mix;
        let writes = if mix.writes() || mix.trims() { Writes::Content } else { Writes::Layout };
        for file in instance.files {
            let bytes = file.file_size();
            let entry = files.entry(file.path).or_insert((bytes, writes));
            entry.0 = entry.0.max(bytes);
            entry.1 = entry.1.max(writes);
        }
    }
}

/// Longest time of one trial by the jobs' runtimes: waves one after another, in each the slowest job. `None`: some job
/// runs until its amount is done.
pub(super) fn longest_trial_s(workload: &Workload, directory: &Path) -> Option<f64> {
    let mut waves: BTreeMap<u32, f64> = BTreeMap::new();
    for instance in workload.instances(directory) {
        let job = &workload.jobs[instance.job];
        let time = job.start_delay.1 + job.ramp_time + job.runtime?;
        let slowest = waves.entry(instance.wave).or_default();
        *slowest = slowest.max(time.as_secs_f64());
    }
    Some(waves.values().sum())
}
