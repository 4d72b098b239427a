//! Levels that are the same trial: of a job that does not heed what they set, such as an `iodepth` with a synchronous method, or of a
//! filesystem that they say nothing about.
//!
//! Enters: a plan. Leaves: sentences. A factor with such levels everywhere is a mistake; where another factor makes a difference
//! of it, only some rows compare nothing.

use std::collections::BTreeMap;

use super::{CellSpec, Plan, PlannedFactor};
use crate::catalog::{EngineKind, Filesystem, Reaches, Runs};
use crate::experiment::of_one_filesystem;
use crate::workload::IoMethod;

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SameLevels {
    /// Levels that never differ.
    pub refused: Vec<String>,
    /// Levels that differ in some rows only.
    pub warned: Vec<String>,
}

impl SameLevels {
    /// Looks at each pair of levels of each factor. Hooks and commands see the levels, and may make a difference of them: then levels are
    /// only warned of.
    #[must_use]
    pub fn of(plan: &Plan, has_hooks: bool) -> SameLevels {
        let mut found = SameLevels::default();
        if plan.aa {
            return found;
        }
        let mut pairs: BTreeMap<(usize, [u32; 2]), Pair> = BTreeMap::new();
        for (factor, levels, [one, other]) in plan.neighbours() {
            let pair = pairs.entry((factor, levels)).or_default();
            pair.rows += 1;
            let why = if sets_options(&plan.factors[factor]) && has_same_options(one, other) {
                pair.seen |= has_hooks || one.engine.descriptor().runs == Runs::Command;
                let fs = one.target.fs.map_or("none", Filesystem::name);
                Some(format!("with fs={fs} both give mkfs and mount the same, and nothing else differs"))
            } else {
                same_job(one, other).filter(|_| !has_hooks)
            };
            pair.same += u32::from(why.is_some());
            pair.why = pair.why.take().or(why);
        }
        for ((factor, [one, other]), Pair { rows, same, seen, why }) in pairs {
            let factor = &plan.factors[factor];
            let label = |level: u32| &factor.levels[level as usize];
            let Some(why) = why else { continue };
            let what = format!(
                "{0}={1} and {0}={2} are the same trial{3}: {why}{4}",
                factor.name,
                label(one),
                label(other),
                if same < rows { " in some rows" } else { "" },
                if seen { " but what hook or command make of the level" } else { "" }
            );
            match same {
                _ if same == rows && !seen => found.refused.push(what),
                _ => found.warned.push(what),
            }
        }
        found.refused.truncate(1);
        found
    }
}

/// What is found of two levels of a factor.
#[derive(Default)]
struct Pair {
    /// Rows that have both.
    rows: u32,
    /// Those in which they are the same.
    same: u32,
    /// Whether somebody who sees the levels may still make a difference of them.
    seen: bool,
    /// The first reason.
    why: Option<String>,
}

/// Why the job does the same in both cells.
fn same_job(one: &CellSpec, other: &CellSpec) -> Option<String> {
    let ignored = ignored_depth(one, other)
        .map(|method| format!("ioengine={} has one I/O in flight whatever iodepth says", method.name()));
    ignored.or_else(|| {
        is_same_job(one, other)
            .then(|| "the job does the same with both, and nothing else differs".to_owned())
    })
}

/// Whether levels of the factor set what mkfs or mount are given.
fn sets_options(factor: &PlannedFactor) -> bool {
    std::iter::once(&factor.name).chain(&factor.sets).any(|key| {
        let key = key.strip_prefix("target.").unwrap_or(key);
        matches!(key, "mkfs" | "mount") || of_one_filesystem(key).is_some()
    })
}

/// Whether nothing differs in two cells but the names of their levels.
fn has_same_options(one: &CellSpec, other: &CellSpec) -> bool {
    if one.target != other.target || one.job_text != other.job_text {
        return false;
    }
    let named = CellSpec {
        levels: one.levels.clone(),
        label: one.label.clone(),
        variables: one.variables.clone(),
        ..other.clone()
    };
    *one == named
}

/// Sentences about jobs whose `iodepth` their method ignores, each once: in the words in which the engine says it of each trial.
#[must_use]
pub fn ignored_depths(plan: &Plan) -> Vec<String> {
    let mut said: Vec<String> = Vec::new();
    let cells = plan.cells.iter().filter(|cell| cell.engine.descriptor().reaches == Reaches::JobFiles);
    for job in cells.filter_map(|cell| cell.workload.as_ref()).flat_map(|workload| &workload.jobs) {
        let (method, depth) = (job.method, job.depth.asked);
        if method.is_asynchronous() || method == IoMethod::Null || depth <= 1 {
            continue;
        }
        let sentence = format!(
            "job {}: iodepth={depth} has no effect with ioengine={}, which has one I/O in flight",
            job.name,
            method.name()
        );
        if !said.contains(&sentence) {
            said.push(sentence);
        }
    }
    said
}

/// The method of two cells whose jobs differ only in depths that it ignores.
fn ignored_depth(one: &CellSpec, other: &CellSpec) -> Option<IoMethod> {
    let runs_job = one.engine.descriptor().reaches == Reaches::JobFiles;
    let alike = one.engine == other.engine
        && one.target == other.target
        && one.directory == other.directory
        && one.timeout_s == other.timeout_s;
    if !runs_job || !alike || one.job_text == other.job_text {
        return None;
    }
    let (one, mut other) = (one.workload.as_ref()?, other.workload.clone()?);
    if *one == other || one.jobs.len() != other.jobs.len() {
        return None;
    }
    let mut method = None;
    for (known, job) in one.jobs.iter().zip(&mut other.jobs) {
        if known.method == job.method && !job.method.is_asynchronous() && known.depth != job.depth {
            job.depth = known.depth;
            method = method.or(Some(job.method));
        }
        job.line = known.line;
    }
    method.filter(|_| *one == other)
}

/// Whether the native engine, which sees nothing of a job but what it is to assay, would do the same in both cells.
fn is_same_job(one: &CellSpec, other: &CellSpec) -> bool {
    let (Some(first), Some(mut second)) = (&one.workload, other.workload.clone()) else { return false };
    if one.engine != EngineKind::Native || first.jobs.len() != second.jobs.len() {
        return false;
    }
    for (known, job) in first.jobs.iter().zip(&mut second.jobs) {
        job.line = known.line;
    }
    let named = CellSpec {
        levels: one.levels.clone(),
        label: one.label.clone(),
        job_text: one.job_text.clone(),
        job: one.job.clone(),
        variables: one.variables.clone(),
        workload: Some(second),
        ..other.clone()
    };
    *one == named
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{CommandLine, Experiment};
    use std::path::Path;

    fn planned(job: &str, vary: &[&str]) -> Plan {
        let vary = vary.iter().map(|text| (*text).to_owned()).collect();
        let line = CommandLine { vary, ..CommandLine::default() };
        let experiment = Experiment::from_job(job, "j.fio", Path::new("/"), &line).unwrap();
        Plan::new(&experiment, 1, Path::new("/"), "own").unwrap()
    }

    fn found(job: &str, vary: &[&str]) -> SameLevels {
        SameLevels::of(&planned(job, vary), false)
    }

    const JOB: &str = "[a]\nsize=1m\nrw=write\n";

    #[test]
    fn a_depth_that_psync_ignores_is_refused() {
        let same = found(JOB, &["iodepth=1,8,32"]);
        assert_eq!(
            same.refused,
            [
                "iodepth=1 and iodepth=8 are the same trial: ioengine=psync has one I/O in flight whatever iodepth says"
            ]
        );
        assert_eq!(found(&format!("{JOB}ioengine=io_uring\n"), &["iodepth=1,8"]), SameLevels::default());
        assert_eq!(found(JOB, &["bs=4k,8k"]), SameLevels::default());
        let mixed = format!("{JOB}[b]\nsize=1m\nioengine=libaio\n");
        assert_eq!(found(&mixed, &["iodepth=1,8"]), SameLevels::default(), "one section heeds it");
    }

    #[test]
    fn levels_that_the_job_does_not_heed_are_refused() {
        let reads = "[a]\nsize=1m\nrw=randread\n";
        for vary in ["rwmixread=30,70", "iodepth_batch=1,16", "bs=4k,4096", "gtod_reduce=0,1"] {
            let same = found(reads, &[vary]);
            assert!(
                same.refused[0].contains("are the same trial: the job does the same with both"),
                "{vary}: {same:?}"
            );
        }
        assert_eq!(found("[a]\nsize=1m\nrw=randrw\n", &["rwmixread=30,70"]), SameLevels::default());
        assert_eq!(found(reads, &["randseed=1,2"]), SameLevels::default());
        assert_eq!(found(reads, &["observe=none,cpu"]), SameLevels::default());
        // fio may heed what assay does not.
        assert_eq!(found(reads, &["engine=native,fio"]), SameLevels::default());
    }

    #[test]
    fn a_constant_depth_without_effect_is_said_once() {
        let deep = format!("{JOB}iodepth=32\n");
        let said = "job a: iodepth=32 has no effect with ioengine=psync, which has one I/O in flight";
        assert_eq!(ignored_depths(&planned(&deep, &["bs=4k,8k"])), [said]);
        assert!(ignored_depths(&planned(&format!("{deep}ioengine=libaio\n"), &["bs=4k,8k"])).is_empty());
        assert!(ignored_depths(&planned(JOB, &["bs=4k,8k"])).is_empty());
    }

    #[test]
    fn options_of_another_filesystem_are_said_to_change_nothing() {
        let fs = "fs=xfs,ext4";
        let on_loop = |factors: &[&str], job: bool, hooks: bool| {
            let line = CommandLine {
                target: vec!["loop:1g".to_owned()],
                vary: factors.iter().map(|text| (*text).to_owned()).collect(),
                ..CommandLine::default()
            };
            let experiment = match job {
                true => Experiment::from_job(JOB, "j.fio", Path::new("/"), &line),
                false => Experiment::from_command(&["true".to_owned()], &line),
            };
            SameLevels::of(&Plan::new(&experiment.unwrap(), 1, Path::new("/"), "own").unwrap(), hooks)
        };
        let said = "mkfs.xfs=default and mkfs.xfs=-m reflink=0 are the same trial in some rows: with fs=ext4 both give mkfs and mount \
                    the same, and nothing else differs";
        let own = "mkfs.xfs=default,-m reflink=0";
        for (engine, job) in [("engine=native", true), ("engine=fio", true), ("engine=command", false)] {
            let same = on_loop(&[fs, own, engine], job, false);
            assert_eq!((same.refused.len(), same.warned.len()), (0, 1), "{engine}: {same:?}");
            assert!(same.warned[0].starts_with(said), "{same:?}");
        }
        let same = on_loop(&[fs, own], true, true);
        assert_eq!(same.warned, [format!("{said} but what hook or command make of the level")]);
        assert_eq!(on_loop(&["fs=xfs", own], true, false), SameLevels::default());
        // What is for all is in no cell where each filesystem has its own.
        let same = on_loop(&["fs=ext4", "mount.ext4=noatime", "mount=default,nodiratime"], true, false);
        assert!(
            same.refused[0].starts_with("mount=default and mount=nodiratime are the same trial: "),
            "{same:?}"
        );
        let same = on_loop(&["fs=ext4", "mount.ext4=noatime", "mount=default,nodiratime"], true, true);
        assert!(same.refused.is_empty() && same.warned.len() == 1, "{same:?}");
    }

    #[test]
    fn rows_that_compare_nothing_are_warned_of() {
        let same = found(JOB, &["iodepth=1,8", "ioengine=psync,io_uring"]);
        assert!(same.refused.is_empty(), "{same:?}");
        assert_eq!(same.warned.len(), 1);
        assert!(same.warned[0].contains("are the same trial in some rows: ioengine=psync"), "{same:?}");
    }
}
