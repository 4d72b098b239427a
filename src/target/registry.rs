//! Which work directories hold devices and mounts, known to the whole machine: `/run/assay`, gone with a restart as those
//! are. So what a killed run has left is found from any directory, whichever store the run belonged to.
//!
//! Enters: a work directory. Leaves: a file that names it and the process it is made for.

use std::path::{Path, PathBuf};

/// Where it is, unless this variable names another place.
const VARIABLE: &str = "ASSAY_RUN_DIR";
const USUAL: &str = "/run/assay";

fn place() -> PathBuf {
    std::env::var_os(VARIABLE).map_or_else(|| PathBuf::from(USUAL), PathBuf::from)
}

/// Two directories of one name on different filesystems have different files.
fn file_of(work: &Path) -> PathBuf {
    place().join(work.to_string_lossy().replace('%', "%25").replace('/', "%2f"))
}

/// Registers a work directory for the parent of this process. Where that cannot be written, the store alone knows.
pub(super) fn register(work: &Path) {
    let owner = rustix::process::getppid().map_or(0, |pid| pid.as_raw_nonzero().get().unsigned_abs());
    let owner = crate::host::identity_of(owner).unwrap_or_default();
    // Not having it registered loses convenience, not the journal itself.
    let _ = std::fs::create_dir_all(place()).and_then(|()| std::fs::write(file_of(work), owner));
}

/// Takes a work directory out that is no more.
pub(super) fn unregister(work: &Path) {
    let _ = std::fs::remove_file(file_of(work));
    // Gone with the last one.
    let _ = std::fs::remove_dir(place());
}

/// Work directories with devices and mounts whose run lives no more.
#[must_use]
pub fn abandoned_targets() -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(place()).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().replace("%2f", "/").replace("%25", "%");
        let owner = std::fs::read_to_string(entry.path()).unwrap_or_default();
        let work = PathBuf::from(name);
        if !work.is_absolute() || crate::host::process_lives(&owner) {
            continue;
        }
        if work.exists() {
            found.push(work);
        } else {
            unregister(&work);
        }
    }
    found.sort();
    found
}
