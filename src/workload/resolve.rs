//! From settings to typed jobs for the native engine: defaults, inheritance, checks.
//!
//! Enters: a [`JobFile`] without variables. Leaves: a [`Workload`], or everything the native engine cannot take, at once.

use super::draft::Draft;
use super::errors::{Place, Problem, ProblemKind, WorkloadErrors, shortened};
use super::fio_effects::{FioRefusal, refusal};
use super::fio_options::fio_option;
use super::job::Workload;
use super::job_file::{JobFile, Section, Setting, unknown_option};
use super::tolerated::is_tolerated;
use super::values::{Fault, number};

/// fio's own limit (`REAL_MAX_JOBS`).
const MOST_INSTANCES: u64 = 4096;
/// More files than this are taken for a mistake.
const MOST_FILES: u64 = 1 << 20;

impl Workload {
    /// The jobs of `file` as the native engine understands them.
    ///
    /// # Errors
    /// Every option that no fio has, every value that is none, everything that is missing, and all options that only
    /// fio has, each with its place. [`WorkloadErrors::hint`] says what helps.
    pub fn resolve(file: &JobFile) -> Result<Workload, WorkloadErrors> {
        let mut problems = Vec::new();
        let mut inherited: Vec<&[Setting]> = Vec::new();
        let mut workload = Workload::default();
        for section in &file.sections {
            if section.is_global() {
                inherited.push(&section.settings);
                continue;
            }
            let before = problems.len();
            let draft = collect(section, &inherited, &mut problems);
            if problems.len() == before {
                match draft.finish(section) {
                    Ok(job) => workload.jobs.push(job),
                    Err(found) => problems.extend(found),
                }
            }
        }
        WorkloadErrors::or(problems)?;
        // As in fio, where the option of one job is the option of all.
        if workload.jobs.iter().any(|job| job.exitall) {
            workload.jobs.iter_mut().for_each(|job| job.exitall = true);
        }
        let total = |count: fn(&super::job::Job) -> u64| workload.jobs.iter().map(count).sum::<u64>();
        let limits = [
            ("jobs with their clones", total(|job| u64::from(job.numjobs)), MOST_INSTANCES),
            ("files", total(|job| u64::from(job.numjobs) * u64::from(job.nrfiles)), MOST_FILES),
        ];
        for (what, count, most) in limits {
            if count > most {
                let place = Place { origin: file.origin.clone(), line: 0 };
                let message = format!("{count} {what}; at most {most} can be run");
                return Err(WorkloadErrors::one(place, ProblemKind::BadValue, message));
            }
        }
        Ok(workload)
    }
}

/// Applies all settings of a job in order, those of the globals above it first; what cannot be applied is added to `problems`.
fn collect(section: &Section, inherited: &[&[Setting]], problems: &mut Vec<Problem>) -> Draft {
    let mut draft = Draft::new(&section.name, section.place.line);
    for settings in inherited.iter().copied().chain([&section.settings[..]]) {
        draft.kb_base = kb_base(settings).unwrap_or(draft.kb_base);
        settings.iter().for_each(|setting| apply(&mut draft, setting, problems));
    }
    draft
}

fn apply(draft: &mut Draft, setting: &Setting, problems: &mut Vec<Problem>) {
    let place = setting.place.clone();
    let mut fault = |kind, message: String| {
        // Messages quote the value whole.
        let value = setting.value.as_deref().filter(|value| value.chars().count() > 60);
        let message = value.map_or(message.clone(), |value| message.replace(value, &shortened(value)));
        problems.push(Problem { place: place.clone(), kind, message });
    };
    let Some(option) = fio_option(&setting.name) else {
        fault(ProblemKind::UnknownOption, unknown_option(&setting.name));
        return;
    };
    let value = setting.value.as_deref();
    if option.takes == super::fio_options::Takes::Value && value.is_none_or(str::is_empty) {
        fault(ProblemKind::BadValue, format!("{0} needs a value: {0}=...", setting.name));
        return;
    }
    match draft.apply(option.name, value) {
        Some(Ok(())) => {}
        Some(Err(Fault::Bad(message))) => {
            fault(ProblemKind::BadValue, format!("{}: {message}", setting.name));
        }
        Some(Err(Fault::NotNative(what))) => {
            fault(
                ProblemKind::NotNative,
                format!("{}: the native engine does not have {what}", setting.name),
            );
        }
        None if is_tolerated(option.name, value) => {}
        None => {
            if let Some(FioRefusal { what, hint }) = refusal(setting) {
                fault(ProblemKind::Refused { hint }, what);
                return;
            }
            let written =
                value.map_or_else(|| setting.name.clone(), |value| format!("{}={value}", setting.name));
            fault(ProblemKind::NotNative, format!("{written}: the native engine does not have this option"));
        }
    }
}

/// fio applies the `kb_base` of a section before all else in it, and to no other section's lines. A bad value is reported where it is
/// applied.
fn kb_base(settings: &[Setting]) -> Option<u64> {
    let last = settings.iter().rev().find(|setting| setting.name == "kb_base")?;
    let given = last.value.as_deref().and_then(|value| number(value, 1024, 0, 1024).ok());
    Some(if given == Some(1000) { 1000 } else { 1024 })
}

#[cfg(test)]
#[path = "resolve_tests.rs"]
mod tests;
