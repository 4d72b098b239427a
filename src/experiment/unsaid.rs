//! What may be left unsaid of a kernel that is built, because only one answer makes sense: its source, and the device of a guest's
//! filesystem; and what a job leaves to the environment.
//!
//! Enters: an experiment as it was written. Leaves: the same, complete. What was said anywhere, also as a level, stays as it is.

use super::described::{Assignment, Experiment, Level};
use super::device_spec::{Device, DeviceKind};
use super::guest_settings::NEWEST;
use crate::workload::{JobFile, variables};

/// The disk of a guest that was not given one: large enough for every filesystem, and sparse until it is written.
const DISK_BYTES: u64 = 1 << 30;

impl Experiment {
    /// A patch or a configuration is of the newest source that can be found; a guest's filesystem is on a disk of 1 GiB. A revision says
    /// nothing about where its repository is.
    pub fn complete(&mut self) {
        let build = &self.target.guest.build;
        let patched =
            !build.patches.is_empty() || build.config.is_some() || self.varies(&["patch", "config"]);
        let placed = build.source.is_some() || build.revision.is_some() || self.varies(&["source", "rev"]);
        if patched && !placed {
            self.target.guest.build.source = Some(NEWEST.into());
        }
        let on_a_device = self.target.fs.is_some() || self.varies(&["fs"]);
        let has_one = self.target.device.is_some() || self.varies(&["device"]);
        if on_a_device && !has_one && !self.target.is_in_memory() && self.is_in_guests() {
            self.target.device =
                Some(Device::Made { kind: DeviceKind::VirtioBlk, bytes: DISK_BYTES, options: Vec::new() });
        }
        self.keep_environment();
    }

    /// What the job takes from the environment becomes the experiment's own: a later session may have another environment.
    fn keep_environment(&mut self) {
        let job = self.job.as_ref();
        let file = job.and_then(|job| JobFile::parse(&job.text, &job.origin, &job.base_dir).ok());
        let mut names = file.map(|file| file.variables()).unwrap_or_default();
        self.tools.texts().for_each(|text| variables::collect(text, &mut names));
        // A factor some of whose levels leave it alone does not say what it is there.
        let sets = |level: &Level, name: &str| level.set.iter().any(|set| set.key == name);
        let is_own = |name: &String| {
            self.variables.iter().any(|(known, _)| known == name)
                || self.factors.iter().any(|factor| factor.levels.iter().all(|level| sets(level, name)))
        };
        let taken: Vec<(String, String)> = names
            .into_iter()
            .filter(|name| !is_own(name))
            .filter_map(|name| variables::environment(&name).map(|value| (name, value)))
            .collect();
        self.variables.extend(taken);
    }

    /// Whether no level runs on this machine itself.
    fn is_in_guests(&self) -> bool {
        let host = |set: &Assignment| set.key == "kernel" && set.value == "host";
        let sources = || self.levels_of(&["kernel", "source"]);
        (self.target.guest.has("kernel") || sources().next().is_some()) && !sources().any(host)
    }

    fn varies(&self, keys: &'static [&'static str]) -> bool {
        self.levels_of(keys).next().is_some()
    }

    fn levels_of(&self, keys: &'static [&'static str]) -> impl Iterator<Item = &Assignment> {
        let all = self.factors.iter().flat_map(|factor| &factor.levels).flat_map(|level| &level.set);
        all.filter(move |set| keys.contains(&set.key.as_str()))
    }
}
