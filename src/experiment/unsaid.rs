//! What may be left unsaid of a kernel that is built, because only one answer makes sense: its source, and the device of a guest's
//! filesystem.
//!
//! Enters: an experiment as it was written. Leaves: the same, complete. What was said anywhere, also as a level, stays as it is.

use super::described::{Assignment, Experiment};
use super::device_spec::{Device, DeviceKind};
use super::guest_settings::NEWEST;

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
