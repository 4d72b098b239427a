//! The newest kernel that can be found, where an experiment asks for it.
//!
//! Enters: an experiment, a kernel that was found. Leaves: the experiment with that kernel in it. Where kernels lie is not known here.

use std::path::Path;

use super::described::{Assignment, Experiment};
use super::guest_settings::NEWEST;

impl Experiment {
    /// Whether the newest kernel that can be found is asked for.
    #[must_use]
    pub fn wants_newest_kernel(&self) -> bool {
        let mut levels = self.factors.iter().flat_map(|factor| &factor.levels).flat_map(|level| &level.set);
        self.target.guest.kernel.as_deref() == Some(Path::new(NEWEST)) || levels.any(is_newest)
    }

    /// Puts `found` wherever [`NEWEST`] stands.
    pub fn newest_kernel(&mut self, found: &Path) {
        if self.target.guest.kernel.as_deref() == Some(Path::new(NEWEST)) {
            self.target.guest.kernel = Some(found.to_owned());
        }
        let levels = self.factors.iter_mut().flat_map(|factor| &mut factor.levels);
        for set in levels.flat_map(|level| &mut level.set).filter(|set| is_newest(set)) {
            set.value = found.to_string_lossy().into_owned();
        }
    }
}

fn is_newest(set: &Assignment) -> bool {
    set.key == "kernel" && set.value == NEWEST && !Path::new(NEWEST).is_file()
}
