//! `assay.db`: every run and trial in one SQLite file.
//!
//! Enters: a [`Run`](crate::record::Run) and its trials as they end. Leaves: the same [`Run`](crate::record::Run). It must not know how a trial is
//! executed or judged. A trial is committed the moment it ends; a newer schema is refused, an older migrated.

mod origin;
mod reader;
mod schema;
mod writer;

use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags};

use crate::record::RunState;

pub use reader::RunSummary;

/// Why the store could not be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// No such file.
    #[error("there is no store at {0}; `assay run` makes one, `--db FILE` names another")]
    Missing(PathBuf),
    /// Not SQLite, or not assay's.
    #[error("{path} is not an assay store ({why})")]
    NotAStore {
        /// The file.
        path: PathBuf,
        /// What it is instead.
        why: String,
    },
    /// Written by a newer assay.
    #[error("{path} has schema {found}, written by a newer assay; this one knows up to {known}")]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its schema.
        found: i64,
        /// Ours.
        known: i64,
    },
    /// No run of that number.
    #[error("there is no run {run} in {path}; {known}")]
    UnknownRun {
        /// The number asked for.
        run: i64,
        /// The file.
        path: PathBuf,
        /// What there is.
        known: String,
    },
    /// A stored value that cannot be read.
    #[error("run {run} in the store is damaged: {what}")]
    Damaged {
        /// The run.
        run: i64,
        /// What could not be read.
        what: String,
    },
    /// Another process is executing the run.
    #[error("run {run} is being executed by process {pid}")]
    Busy {
        /// The run.
        run: i64,
        /// Who.
        pid: u32,
    },
    /// SQLite's own error.
    #[error("{path}: {source}")]
    Sqlite {
        /// The file.
        path: PathBuf,
        /// SQLite's words.
        source: rusqlite::Error,
    },
}

/// An open store.
pub struct Store {
    connection: Connection,
    path: PathBuf,
}

impl Store {
    /// Opens the store at `path`, made when it does not exist, migrated when it is older.
    ///
    /// # Errors
    /// [`StoreError`]: not a store, a newer schema, no permission.
    pub fn open(path: &Path) -> Result<Store, StoreError> {
        Self::open_with(path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE)
    }

    /// Opens a store that must exist already.
    ///
    /// # Errors
    /// [`StoreError::Missing`], or as [`Store::open`].
    pub fn open_existing(path: &Path) -> Result<Store, StoreError> {
        if !path.exists() {
            return Err(StoreError::Missing(path.to_owned()));
        }
        Self::open_with(path, OpenFlags::SQLITE_OPEN_READ_WRITE)
    }

    fn open_with(path: &Path, flags: OpenFlags) -> Result<Store, StoreError> {
        let at = |source| StoreError::Sqlite { path: path.to_owned(), source };
        if path.is_dir() {
            return Err(StoreError::NotAStore { path: path.to_owned(), why: "a directory".to_owned() });
        }
        let mut connection = Connection::open_with_flags(path, flags).map_err(at)?;
        connection.busy_timeout(std::time::Duration::from_secs(10)).map_err(at)?;
        schema::prepare(&mut connection, path)?;
        Ok(Store { connection, path: path.to_owned() })
    }

    fn at(&self, source: rusqlite::Error) -> StoreError {
        StoreError::Sqlite { path: self.path.clone(), source }
    }

    /// Sets how far a run came.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`].
    pub fn set_state(&self, run: i64, state: RunState) -> Result<(), StoreError> {
        self.connection
            .execute("UPDATE run SET state = ?2 WHERE id = ?1", (run, json(&state)))
            .map(|_| ())
            .map_err(|e| self.at(e))
    }
}

/// Compact JSON of a value that always serialises (records have string keys and finite structure).
fn json<T: serde::Serialize>(value: &T) -> String {
    serde_json::to_string(value).unwrap_or_else(|error| format!("\"{error}\""))
}
