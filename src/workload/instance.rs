//! The clones of the jobs: which group each runs in, which files and regions it touches, how much it transfers.
//!
//! Enters: a [`Workload`]. Leaves: [`Instance`]s. Nothing is looked up on a disk here.

use std::path::{Path, PathBuf};

use super::job::{Job, Workload};
use super::offsets::SplitMix;

/// The part of one file that an instance works on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileRegion {
    /// Where it is.
    pub path: PathBuf,
    /// First byte of the region.
    pub offset: u64,
    /// Bytes of the region; `None`: up to the end of the existing file.
    pub length: Option<u64>,
}

impl FileRegion {
    /// Bytes the file must have for the region to exist.
    #[must_use]
    pub fn file_size(&self) -> Option<u64> {
        self.length.map(|length| self.offset + length)
    }
}

/// One clone of a job: one thread of the native engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instance {
    /// Index into [`Workload::jobs`].
    pub job: usize,
    /// Which clone, from 0.
    pub clone: u32,
    /// Place among all instances, from 0 (fio's `thread_number` − 1): makes seeds differ.
    pub number: u32,
    /// Instances of a wave start when all of the wave before have ended (`stonewall`), from 0.
    pub wave: u32,
    /// fio's `groupid`, from 0: `stonewall` and `new_group` begin one.
    pub group: u32,
    /// Index of the report its results are added to: one a group under `group_reporting`, else one an instance.
    pub report: u32,
    /// Its files, in the order they are visited round robin.
    pub files: Vec<FileRegion>,
    /// Bytes over all regions; `None`: some file's size is not known before it is opened.
    pub size: Option<u64>,
    /// Bytes one loop transfers (`io_size`, else `size`).
    pub io_size: Option<u64>,
}

impl Workload {
    /// The clones of every job, in fio's order. `default_directory` holds files of jobs without `directory`.
    #[must_use]
    pub fn instances(&self, default_directory: &Path) -> Vec<Instance> {
        let mut instances: Vec<Instance> = Vec::new();
        let (mut wave, mut group, mut report) = (0, 0, 0);
        for (job_index, job) in self.jobs.iter().enumerate() {
            let first = instances.is_empty();
            wave += u32::from(job.stonewall && !first);
            let new_group = (job.stonewall || job.new_group) && !first;
            group += u32::from(new_group);
            for clone in 0..job.numjobs {
                let joins = job.group_reporting && instances.last().is_some_and(|last| last.group == group);
                report += u32::from(!instances.is_empty() && !joins);
                let files = job.regions(clone, default_directory);
                let size = files.iter().map(|file| file.length).sum::<Option<u64>>();
                let size = job.size.map_or(size, |wanted| Some(size.map_or(wanted, |all| all.min(wanted))));
                instances.push(Instance {
                    job: job_index,
                    clone,
                    number: instances.len() as u32,
                    wave,
                    group,
                    report,
                    files,
                    size,
                    io_size: job.io_size.or(size),
                });
            }
        }
        instances
    }

    /// What the results of an instance are called: its job's name, under `group_reporting` that of the first of the group.
    #[must_use]
    pub fn section_of(&self, instances: &[Instance], at: usize) -> &str {
        let own = &instances[at];
        let job = &self.jobs[own.job];
        let first = instances.iter().find(|first| first.report == own.report);
        &first.filter(|_| job.group_reporting).map_or(job, |first| &self.jobs[first.job]).name
    }
}

impl Job {
    /// Files and regions of one clone (fio's `setup_files`): `size` is divided evenly, what is left over goes to the
    /// first files one block each; the offset moves by `offset_increment` a clone.
    fn regions(&self, clone: u32, default_directory: &Path) -> Vec<FileRegion> {
        let offset = self.offset + u64::from(clone) * self.offset_increment;
        let each = self.size.map(|size| size / u64::from(self.nrfiles));
        let mut left = match (self.size, each) {
            (Some(size), Some(each)) => (size - each * u64::from(self.nrfiles)) / self.min_block(),
            _ => 0,
        };
        (0..self.nrfiles)
            .map(|number| {
                let length = match self.filesize {
                    Some((low, high)) => {
                        Some(pick_size(low, high, self.min_block(), clone, number).saturating_sub(offset))
                    }
                    None => each.map(|each| {
                        let extra = if left > 0 { self.min_block() } else { 0 };
                        left = left.saturating_sub(1);
                        each + extra
                    }),
                };
                FileRegion { path: self.file_path(clone, number, default_directory), offset, length }
            })
            .collect()
    }

    /// The name of a clone's file as fio gives it: relative to the engine's own directory unless the job names
    /// another.
    #[must_use]
    pub fn file_name(&self, clone: u32, number: u32) -> PathBuf {
        self.file_path(clone, number, Path::new(""))
    }

    fn file_path(&self, clone: u32, number: u32, default_directory: &Path) -> PathBuf {
        // Named files lie in the first directory for all clones, generated ones take turns.
        let turn = if self.filenames.is_empty() { clone as usize } else { 0 };
        let chosen = self.directories.get(turn % self.directories.len().max(1));
        let directory =
            chosen.map_or_else(|| default_directory.to_owned(), |own| default_directory.join(own));
        match self.filenames.get(number as usize) {
            // fio writes the directory in front even of an absolute name.
            Some(name) if chosen.is_some() => directory.join(name.strip_prefix("/").unwrap_or(name)),
            Some(name) => directory.join(name),
            None => directory.join(format!("{}.{clone}.{number}", self.section)),
        }
    }
}

/// A size between `low` and `high`, whole blocks above `low`, that depends on nothing but the file's place.
fn pick_size(low: u64, high: u64, block: u64, clone: u32, number: u32) -> u64 {
    if low == high {
        return low;
    }
    // Of the place: repeatable, so that layout and job agree.
    let above = SplitMix::new((u64::from(clone) << 32) | u64::from(number)).draw() % (high - low + 1);
    low + above - above % block
}

#[cfg(test)]
#[path = "instance_tests.rs"]
mod tests;
