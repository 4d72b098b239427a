//! Jobs that ask for direct I/O where the filesystem uses the page cache all the same.
//!
//! Enters: cells, and what was found out about their places. Leaves: one sentence, for the terminal before the first trial and
//! for the run's notes.

use std::path::Path;

use crate::catalog::Reaches;
use crate::host::{FALLS_BACK, WRITES_FALL_BACK, direct_io_tried};
use crate::plan::CellSpec;
use crate::workload::{JobFile, Workload};

/// The cells that were found so far.
#[derive(Debug, Default)]
pub(super) struct Buffered {
    /// Labels of cells whose direct I/O is none.
    labels: Vec<String>,
    /// The same of those whose direct writes are none.
    writers: Vec<String>,
}

impl Buffered {
    /// Tries it in a place of this machine.
    pub(super) fn look(&mut self, cell: &CellSpec, place: &Path) {
        if asks_for_direct(cell) {
            let there = place.ancestors().find(|place| place.exists()).unwrap_or(place);
            self.told(cell, &direct_io_tried(there));
        }
    }

    /// Takes what was found where the target was made.
    pub(super) fn told(&mut self, cell: &CellSpec, o_direct: &str) {
        let found = match o_direct {
            FALLS_BACK if asks_for_direct(cell) => &mut self.labels,
            WRITES_FALL_BACK if asks_for_direct(cell) && writes(cell) => &mut self.writers,
            _ => return,
        };
        found.push(cell.label.clone());
    }

    /// What a reader has to know, if anything.
    pub(super) fn notes(&self) -> Vec<String> {
        let takes = "this filesystem takes O_DIRECT and buffers all the same, so that the cache is measured";
        let all = cells(&self.labels)
            .map(|cells| format!("{cells}: direct=1 {FALLS_BACK}: {takes} (ext4 does so with data=journal)"));
        let writers = cells(&self.writers).map(|cells| {
            format!(
                "{cells}: with direct=1 {WRITES_FALL_BACK}: {takes} (btrfs does so since Linux 6.15 for files with checksums; \
                 mount=nodatacow on one device avoids it)"
            )
        });
        all.into_iter().chain(writers).collect()
    }
}

/// The first of these cells, and how many others; `None`: there is none.
fn cells(labels: &[String]) -> Option<String> {
    let first = labels.first()?;
    Some(match labels.len() - 1 {
        0 => first.clone(),
        1 => format!("{first} and one other"),
        more => format!("{first} and {more} others"),
    })
}

/// Whether a job writes; what has a meaning only to another engine may.
fn writes(cell: &CellSpec) -> bool {
    cell.workload.as_ref().is_none_or(|workload| workload.jobs.iter().any(|job| job.pattern.mix.writes()))
}

fn asks_for_direct(cell: &CellSpec) -> bool {
    let does_io = cell.engine.descriptor().reaches == Reaches::JobFiles;
    let direct = |workload: &Workload| workload.jobs.iter().any(|job| job.direct);
    // xfs_io has a setting of that name.
    let is_set = cell.settings.iter().any(|(key, value)| key == "direct" && value == "1");
    is_set || does_io && cell.workload.as_ref().map_or_else(|| fio_asks(cell), direct)
}

/// The same of a job that has a meaning only to fio. A flag without a value is set.
fn fio_asks(cell: &CellSpec) -> bool {
    let sets = |job: &JobFile| {
        job.settings().any(|setting| setting.canonical() == "direct" && setting.value.as_deref() != Some("0"))
    };
    cell.job.as_ref().is_some_and(sets)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{CommandLine, Experiment};
    use crate::plan::Plan;

    #[test]
    fn a_job_that_only_fio_understands_asks_for_direct_io_too() {
        let asked = |options: &str| {
            let directory = tempfile::tempdir().unwrap();
            let job = format!("[w]\nrw=write\nsize=1m\nzonemode=zbd\n{options}\n");
            let line = CommandLine { aa: true, engine: Some("fio".to_owned()), ..CommandLine::default() };
            let experiment = Experiment::from_job(&job, "j.fio", directory.path(), &line).unwrap();
            let plan = Plan::new(&experiment, 1, directory.path(), "own").unwrap();
            assert!(plan.cells[0].workload.is_none(), "native has the option now; take another one");
            asks_for_direct(&plan.cells[0])
        };
        assert_eq!(["direct=1", "direct", "direct=0", ""].map(asked), [true, true, false, false]);
    }
}
