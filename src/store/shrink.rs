//! Gives the room of deleted runs back to the filesystem.
//!
//! Enters: an open store. Leaves: a smaller file with the same in it, or why it keeps its size.

use std::path::{Path, PathBuf};

use super::allowance::MOST_FOR_RUN;
use super::{Store, StoreError, connection};

/// Less free room than this share of the file, or than these bytes, stays: rewriting the file costs more.
const SHARE: f64 = 0.25;
const LEAST: u64 = 16 << 20;

/// What came of it.
#[derive(Debug, PartialEq, Eq)]
pub enum Shrunk {
    /// So little is free that it stays for the next runs.
    NotWorth,
    /// So many bytes are the filesystem's again.
    Freed(u64),
    /// So many bytes stay free inside the file.
    Stays {
        /// How many.
        bytes: u64,
        /// Why.
        why: String,
    },
}

impl Store {
    /// Bytes inside the file that nothing uses, where they are worth rewriting it.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn worth_freeing(&self) -> Result<Option<u64>, StoreError> {
        self.renew(MOST_FOR_RUN);
        let number = |what: &str| -> Result<u64, StoreError> {
            let found = self.connection.pragma_query_value(None, what, |row| row.get::<_, i64>(0));
            found.map(|number| number as u64).map_err(|error| self.at(error))
        };
        let (free, all, page) = (number("freelist_count")?, number("page_count")?, number("page_size")?);
        let bytes = free.saturating_mul(page);
        Ok(Some(bytes).filter(|bytes| *bytes >= LEAST && free as f64 >= SHARE * all as f64))
    }

    /// Rewrites the file without the room of what was deleted, where that is much. Nobody may be executing a run of it: a trial's
    /// commit would have to wait.
    ///
    /// # Errors
    /// [`StoreError`]: how much is free cannot be read.
    pub fn shrink(&self) -> Result<Shrunk, StoreError> {
        let Some(bytes) = self.worth_freeing()? else { return Ok(Shrunk::NotWorth) };
        let stays = |why: String| Ok(Shrunk::Stays { bytes, why });
        let length = || self.held.metadata().map_or(0, |found| found.len());
        // The copy, and a journal of the pages that are replaced.
        let needed = length().saturating_sub(bytes);
        let beside = self.path.canonicalize().ok().and_then(|path| path.parent().map(Path::to_owned));
        for place in beside.into_iter().chain(place_of_copies()) {
            if room(&place).is_some_and(|room| room < 2 * needed + LEAST) {
                return stays(format!("{} has no room for a copy", place.display()));
            }
        }
        let before = length();
        match connection::vacuum(&self.connection) {
            Ok(()) => Ok(Shrunk::Freed(before.saturating_sub(length()))),
            Err(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy) => {
                stays("another program uses the store".to_owned())
            }
            Err(error) => stays(error.to_string()),
        }
    }
}

/// Where SQLite makes the copy. <https://www.sqlite.org/tempfiles.html#temporary_file_storage_locations>
fn place_of_copies() -> Option<PathBuf> {
    let named = ["SQLITE_TMPDIR", "TMPDIR"].into_iter().filter_map(std::env::var_os).map(PathBuf::from);
    named.chain(["/var/tmp", "/usr/tmp", "/tmp"].map(PathBuf::from)).find(|place| place.is_dir())
}

/// Bytes that a user may still fill.
fn room(place: &Path) -> Option<u64> {
    let found = rustix::fs::statvfs(place).ok()?;
    Some(found.f_bavail.saturating_mul(found.f_frsize))
}
