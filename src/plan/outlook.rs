//! What a plan will touch and how long it can take, told before anything runs.
//!
//! Enters: the resolved cells. Leaves: files with sizes, programs needed, seconds. Nothing is looked up on a disk.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::cell_spec::CellSpec;
use crate::catalog::{EngineKind, Reaches};
use crate::experiment::Experiment;
use crate::workload::{FioEffects, FioRefusal, IoMethod, JobFile, Workload, WorkloadErrors};

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
    /// Whether the job deletes it (`unlink`).
    pub deletes: bool,
}

/// What the cells need and touch.
pub(super) struct Outlook {
    pub(super) files: Vec<PlannedFile>,
    pub(super) files_known: bool,
    pub(super) fio: FioEffects,
    pub(super) tools: Vec<String>,
}

impl Outlook {
    pub(super) fn of(experiment: &Experiment, cells: &[CellSpec]) -> Outlook {
        let mut files: Files = BTreeMap::new();
        let mut fio = FioEffects::default();
        let mut files_known = true;
        let mut tools: BTreeSet<String> = BTreeSet::new();
        if experiment.before.is_some() || experiment.after.is_some() {
            tools.insert("sh".to_owned());
        }
        for cell in cells {
            let engine = cell.engine.descriptor();
            if engine.reaches != Reaches::Nothing {
                tools.extend(engine.program.map(|program| program.name.to_owned()));
            }
            match engine.reaches {
                // All that a tool writes lies in the directory that is made for it.
                Reaches::Nothing | Reaches::OwnDirectory => continue,
                Reaches::Anything => {
                    tools.extend(cell.command.first().cloned());
                    files_known = false;
                    continue;
                }
                Reaches::JobFiles => {}
            }
            let mut known: Files = BTreeMap::new();
            match &cell.workload {
                Some(workload) => collect_files(workload, &cell.directory, &mut known),
                None => files_known = false,
            }
            if cell.engine == EngineKind::Fio {
                let effects = effects_of(cell);
                let understood = cell.workload.is_some();
                fio.merge(if understood { effects.beyond(|path| known.contains_key(path)) } else { effects });
            }
            for (path, file) in known {
                add_file(&mut files, path, file);
            }
        }
        let planned = |(path, (bytes, writes, deletes))| PlannedFile { path, bytes, writes, deletes };
        Outlook {
            files: files.into_iter().map(planned).collect(),
            files_known,
            fio,
            tools: tools.into_iter().collect(),
        }
    }
}

/// What fio does with the job of a cell besides what the native engine would: with the text that it will read.
fn effects_of(cell: &CellSpec) -> FioEffects {
    if let Some(job) = &cell.job {
        return FioEffects::of(job, &cell.directory);
    }
    // Read once more for what is wrong with it.
    let text = cell.job_text.as_deref().unwrap_or_default();
    let wrong = JobFile::parse(text, &cell.job_origin, Path::new("")).err();
    let hint = "write the lines as they shall be, without variables in front of '='";
    let refusal = |errors: WorkloadErrors| FioRefusal { what: errors.to_string(), hint };
    FioEffects { refused: wrong.map(refusal).into_iter().collect(), ..FioEffects::default() }
}

/// Size, what is done, whether it is deleted.
type Files = BTreeMap<PathBuf, (Option<u64>, Writes, bool)>;

fn add_file(files: &mut Files, path: PathBuf, file: (Option<u64>, Writes, bool)) {
    let entry = files.entry(path).or_insert(file);
    *entry = (entry.0.max(file.0), entry.1.max(file.1), entry.2 || file.2);
}

fn collect_files(workload: &Workload, directory: &Path, files: &mut Files) {
    for log in workload.jobs.iter().filter_map(|job| job.io_log.as_ref()) {
        add_file(files, directory.join(log), (None, Writes::Log, false));
    }
    for instance in workload.instances(directory) {
        let job = &workload.jobs[instance.job];
        let mix = job.pattern.mix;
        let writes = if mix.writes() || mix.trims() { Writes::Content } else { Writes::Layout };
        let deletes = job.unlink && job.method != IoMethod::Null;
        for file in instance.files {
            let bytes = file.file_size();
            add_file(files, file.path, (bytes, writes, deletes));
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

/// Bytes of the job's files that are filled before each trial, as it reads, overwrites or maps them: those in assay's own `directory`,
/// which is emptied between trials. Others are filled once, if at all.
pub(super) fn laid_out_bytes(workload: &Workload, directory: &Path) -> u64 {
    let mut files: BTreeMap<PathBuf, u64> = BTreeMap::new();
    for instance in workload.instances(directory) {
        let job = &workload.jobs[instance.job];
        if job.needs_layout() && !job.create_on_open && job.method != IoMethod::Null {
            for file in instance.files.into_iter().filter(|file| file.path.starts_with(directory)) {
                let bytes = file.file_size().unwrap_or(0);
                let known = files.entry(file.path).or_default();
                *known = bytes.max(*known);
            }
        }
    }
    files.into_values().fold(0, u64::saturating_add)
}
