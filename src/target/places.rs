//! Where records lie: `/run/assay` for root, a directory of their own for other users. `ASSAY_RUN_DIR` names another place.
//!
//! Enters: the environment. Leaves: opened directories that only this user can enter.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use super::error::TargetError;
use crate::sys::private_directory;

/// Names another place.
const VARIABLE: &str = "ASSAY_RUN_DIR";

/// How often a directory is made that others remove meanwhile.
const ATTEMPTS: u32 = 100;

/// A directory of records.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) path: PathBuf,
    pub(super) directory: OwnedFd,
}

impl Place {
    /// The system's words about a record.
    pub(super) fn failed(&self, what: &'static str, name: &str, error: rustix::io::Errno) -> TargetError {
        TargetError::io(what, self.path.join(name))(error.into())
    }
}

/// The places records may lie in, the best first. All are gone with a restart, or hold what is recognised as of another one. What lies in
/// a home directory may be shared with other machines, so it comes behind what a login has here; that goes with the last logout.
fn candidates() -> Vec<PathBuf> {
    if let Some(named) = std::env::var_os(VARIABLE) {
        return vec![PathBuf::from(named)];
    }
    let me = rustix::process::geteuid();
    let temporary = PathBuf::from(format!("/tmp/assay-{}", me.as_raw()));
    if me.is_root() {
        return vec![PathBuf::from("/run/assay"), temporary];
    }
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state")));
    // From cron or su the variable is not set, and the records of a login session must be found all the same.
    let session = PathBuf::from(format!("/run/user/{}", me.as_raw()));
    let homes = [absolute("XDG_RUNTIME_DIR"), Some(session).filter(|path| path.is_dir()), state];
    let mut places: Vec<PathBuf> = homes.into_iter().flatten().map(|home| home.join("assay")).collect();
    places.dedup();
    places.push(temporary);
    places
}

/// The first place that can be had, made when it is missing.
pub(super) fn first() -> Result<Place, TargetError> {
    let mut reasons = Vec::new();
    for path in candidates() {
        let mut found = private_directory(&path);
        // Another assay that ends may remove the empty directory between its making and its opening.
        for _ in 0..ATTEMPTS {
            match &found {
                Ok(directory) if is_linked(directory) => break,
                Err(error) if !error.is_missing() => break,
                _ => found = private_directory(&path),
            }
        }
        match found {
            Ok(directory) => return Ok(Place { path, directory }),
            Err(error) => reasons.push(error.to_string()),
        }
    }
    let reason = format!("what is made cannot be written down safely: {}", reasons.join("; "));
    Err(TargetError::unavailable(reason, format!("{VARIABLE} names a directory that only you can enter")))
}

/// Whether the directory still has a name.
fn is_linked(directory: &OwnedFd) -> bool {
    rustix::fs::fstat(directory).is_ok_and(|found| found.st_nlink > 0)
}

/// The places that exist, and why others are not trusted.
pub(super) fn all() -> (Vec<Place>, Vec<String>) {
    let (mut found, mut refused) = (Vec::new(), Vec::new());
    for path in candidates().into_iter().filter(|path| std::fs::symlink_metadata(path).is_ok()) {
        match private_directory(&path) {
            Ok(directory) => found.push(Place { path, directory }),
            Err(error) => refused.push(format!("records in {} are not trusted: {error}", path.display())),
        }
    }
    (found, refused)
}

/// Removes the places when the last record is gone; a place that holds any stays.
pub(super) fn leave() {
    candidates().iter().for_each(|path| drop(std::fs::remove_dir(path as &Path)));
}
