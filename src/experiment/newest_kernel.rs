//! The newest kernel and the newest source that can be found, and kernels of a release, where an experiment asks for them.
//!
//! Enters: an experiment, a file that was found. Leaves: the experiment with that file in it. Where such files lie is not known here.

use std::path::{Path, PathBuf};

use super::described::{Assignment, Experiment};
use super::guest_settings::{NEWEST, is_release};

impl Experiment {
    /// Whether the newest kernel that can be found is asked for.
    #[must_use]
    pub fn wants_newest_kernel(&self) -> bool {
        self.wants_newest("kernel", self.target.guest.kernel.as_deref())
    }

    /// Puts `found` wherever [`NEWEST`] stands.
    pub fn newest_kernel(&mut self, found: &Path) {
        self.target.guest.kernel = self.target.guest.kernel.take().map(|path| instead(path, found));
        self.newest_levels("kernel", found);
    }

    /// Whether kernels are built from the newest source that can be found.
    #[must_use]
    pub fn wants_newest_source(&self) -> bool {
        self.wants_newest("source", self.target.guest.build.source.as_deref())
    }

    /// Puts `found` wherever [`NEWEST`] stands.
    pub fn newest_source(&mut self, found: &Path) {
        let build = &mut self.target.guest.build;
        build.source = build.source.take().map(|path| instead(path, found));
        self.newest_levels("source", found);
    }

    /// Kernels that are named by their release, each once.
    #[must_use]
    pub fn kernel_releases(&self) -> Vec<String> {
        let of_target = self.target.guest.kernel.as_deref().and_then(Path::to_str);
        let levels = self.factors.iter().flat_map(|factor| &factor.levels).flat_map(|level| &level.set);
        let of_levels = levels.filter(|set| set.key == "kernel").map(|set| set.value.as_str());
        let mut found: Vec<String> = Vec::new();
        for name in of_target.into_iter().chain(of_levels).filter(|name| is_release(name)) {
            if !found.iter().any(|known| known == name) {
                found.push(name.to_owned());
            }
        }
        found
    }

    /// Puts `found` wherever this release stands.
    pub fn kernel_of_release(&mut self, release: &str, found: &Path) {
        if let Some(kernel) = self.target.guest.kernel.as_mut().filter(|kernel| *kernel == Path::new(release))
        {
            found.clone_into(kernel);
        }
        let levels = self.factors.iter_mut().flat_map(|factor| &mut factor.levels);
        let named = |set: &&mut Assignment| set.key == "kernel" && set.value == release;
        for set in levels.flat_map(|level| &mut level.set).filter(named) {
            set.value = found.to_string_lossy().into_owned();
        }
    }

    fn wants_newest(&self, key: &str, target: Option<&Path>) -> bool {
        let mut levels = self.factors.iter().flat_map(|factor| &factor.levels).flat_map(|level| &level.set);
        target == Some(Path::new(NEWEST)) || levels.any(|set| is_newest(set, key))
    }

    fn newest_levels(&mut self, key: &str, found: &Path) {
        let levels = self.factors.iter_mut().flat_map(|factor| &mut factor.levels);
        for set in levels.flat_map(|level| &mut level.set).filter(|set| is_newest(set, key)) {
            set.value = found.to_string_lossy().into_owned();
        }
    }
}

fn instead(path: PathBuf, found: &Path) -> PathBuf {
    if path == Path::new(NEWEST) { found.to_owned() } else { path }
}

fn is_newest(set: &Assignment, key: &str) -> bool {
    set.key == key && set.value == NEWEST && !Path::new(NEWEST).is_file()
}
