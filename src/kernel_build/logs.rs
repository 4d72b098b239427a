//! What builds said: a file each, kept for whoever looks for why one failed.
//!
//! Enters: a key. Leaves: a file that nobody removes while its build runs.

use std::fs::File;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use super::error::BuildError;
use crate::sys::cache;

/// Where they are in the cache.
const LOGS: &str = "build-logs";
/// As many are kept.
const MOST_LOGS: usize = 20;

/// A file for the words of a build; it stays while this is held.
#[derive(Debug)]
pub(super) struct Log {
    /// Where it is.
    pub(super) path: PathBuf,
    _lock: File,
}

/// A file for the words of a build.
///
/// # Errors
/// The cache cannot be used.
pub(super) fn log(key: &str) -> Result<Log, BuildError> {
    let place = cache::directory(LOGS)?;
    prune_logs(&place, MOST_LOGS);
    // Another assay may be building the same, and has the first name.
    let names = [format!("{key}.log"), format!("{key}-{}.log", std::process::id())];
    for path in names.map(|name| place.join(name)) {
        let failed = BuildError::io("cannot write", &path);
        let log = File::options().create(true).append(true).open(&path).map_err(failed)?;
        if flock(&log, FlockOperation::NonBlockingLockExclusive).is_ok() {
            log.set_len(0).map_err(BuildError::io("cannot write", &path))?;
            return Ok(Log { path, _lock: log });
        }
    }
    let busy = std::io::Error::from(std::io::ErrorKind::ResourceBusy);
    Err(BuildError::io("cannot write the log of a build in", &place)(busy))
}

/// Removes those of builds that have ended.
pub(super) fn remove_all() {
    cache::place(LOGS).iter().for_each(|place| prune_logs(place, 0));
}

/// Removes the oldest logs until `kept` are left; those of builds that run stay.
fn prune_logs(place: &Path, kept: usize) {
    let entries = std::fs::read_dir(place).into_iter().flatten().flatten();
    let mut logs: Vec<_> =
        entries.filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path()))).collect();
    logs.sort();
    let surplus = logs.len().saturating_sub(kept);
    for (_, path) in logs.into_iter().take(surplus) {
        let free =
            File::open(&path).is_ok_and(|log| flock(&log, FlockOperation::NonBlockingLockExclusive).is_ok());
        if free {
            let _ = std::fs::remove_file(path);
        }
    }
}
