//! Stores and runs of other users, as those that `sudo assay` has made.
//!
//! Enters: a path, or a run of a store. Leaves: whose it is where it is not the caller's, and how far a run came as far as this user can know.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{Access, access};

use crate::record::RunState;
use crate::store::Store;
use crate::target::session_lives;

/// Nobody executes it, and it has not ended.
pub(super) const UNFINISHED: &str = "unfinished";
/// Another user has it, and nobody else can see whether its process lives.
pub(super) const UNKNOWN: &str = "running or unfinished (another user's)";

/// What the caller may not write of a store, where it is another user's: `it belongs to root`.
pub(super) fn owned_by_another(store: &Path) -> Option<(&'static str, u32)> {
    let directory = store.parent().filter(|parent| *parent != Path::new("")).unwrap_or(Path::new("."));
    [("it", store), ("its directory", directory)].into_iter().find_map(|(what, path)| {
        let owner = std::fs::metadata(path).ok()?.uid();
        let refused = access(path, Access::WRITE_OK).is_err();
        (refused && owner != caller()).then_some((what, owner))
    })
}

/// `root`, or the number.
pub(super) fn name(user: u32) -> String {
    if user == 0 { "root".to_owned() } else { format!("user {user}") }
}

/// How this user is asked.
pub(super) fn assay_of(user: u32) -> String {
    if user == 0 { "sudo assay".to_owned() } else { format!("sudo -u '#{user}' assay") }
}

/// How far a run of a store came, in words.
pub(super) fn state(store: &Store, run: i64, state: RunState) -> &'static str {
    let lives = || store.owner(run).is_ok_and(|session| session_lives(&session).is_some());
    match state {
        RunState::Running if lives() => "running",
        RunState::Running if executor(store, run).is_some() => UNKNOWN,
        RunState::Running => UNFINISHED,
        RunState::Finished => "finished",
        RunState::Interrupted => "interrupted",
        RunState::Failed => "failed",
    }
}

/// Another user who seems to execute a run: the owner of what it has made, or of the store.
pub(super) fn executor(store: &Store, run: i64) -> Option<u32> {
    let made = store.leftovers().unwrap_or_default().into_iter().filter(|(of, _)| *of == run);
    let mut owners = made.filter_map(|(_, path)| Some(std::fs::symlink_metadata(path).ok()?.uid()));
    owners.find(|owner| *owner != caller()).or_else(|| store.user().filter(|user| *user != caller()))
}

fn caller() -> u32 {
    rustix::process::geteuid().as_raw()
}
