//! `assay.db`: every run and trial in one SQLite file.
//!
//! Enters: a [`Run`](crate::record::Run) and its trials as they end. Leaves: the same [`Run`](crate::record::Run). It must not know how a trial is
//! executed or judged. A trial is committed the moment it ends; a newer schema is refused, an older migrated by whoever writes.
//! What is in a file is data: nothing in it is executed, and nothing but assay's own tables is accepted.

mod allowance;
mod connection;
mod error;
mod file;
mod held;
mod kept_files;
mod origin;
mod reader;
mod schema;
mod shrink;
mod writer;

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rusqlite::Connection;

use allowance::Allowance;
use connection::Access;
use error::problem;
use file::Vetted;
use held::Held;

pub use error::StoreError;
pub use reader::RunSummary;
pub use shrink::Shrunk;

/// An open store.
pub struct Store {
    connection: Connection,
    path: PathBuf,
    allowance: Allowance,
    /// Let go after the connection: see `held`.
    held: Held,
}

/// The largest file of an older schema that is copied to be read.
const LONGEST_COPY: u64 = 256 << 20;

impl Store {
    /// Opens the store at `path` to write, made when nothing or an empty file of the caller is there, migrated when it is older.
    ///
    /// # Errors
    /// [`StoreError`]: not a store, a newer schema, no permission. No byte is changed then.
    pub fn open(path: &Path) -> Result<Store, StoreError> {
        Self::open_to_write(path, file::vet_or_make(path)?)
    }

    /// Whether [`Store::open`] has what it needs, for whoever has much to do before it. Makes no store; one whose writer was killed is
    /// put right, as by [`Store::read`].
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn can_be_opened(path: &Path) -> Result<(), StoreError> {
        file::can_be_written(path)?;
        match Store::read(path) {
            Ok(_) | Err(StoreError::Missing(_) | StoreError::Older { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Opens a store to write that must exist already.
    ///
    /// # Errors
    /// [`StoreError::Missing`], or as [`Store::open`].
    pub fn open_existing(path: &Path) -> Result<Store, StoreError> {
        let vetted = file::vet(path)?.ok_or_else(|| StoreError::Missing(path.to_owned()))?;
        Self::open_to_write(path, vetted)
    }

    /// Opens a store to read; neither it nor its directory need be writable. An older schema is migrated in a private copy.
    ///
    /// # Errors
    /// As [`Store::open_existing`], and [`StoreError::HalfWritten`], [`StoreError::Older`].
    pub fn read(path: &Path) -> Result<Store, StoreError> {
        let at = |source| problem(path, source);
        let vetted = file::vet(path)?.ok_or_else(|| StoreError::Missing(path.to_owned()))?;
        let allowance = Allowance::default();
        let length = vetted.length();
        allowance.renew(length, allowance::MOST_FOR_REPORT);
        if vetted.is_empty {
            let connection = connection::private(&allowance).map_err(at)?;
            schema::prepare(&connection, path)?;
            return Ok(Store { connection, path: path.to_owned(), allowance, held: vetted.held });
        }
        let mut opened = open_and_read(path, &vetted, Access::Read, &allowance);
        if opened.as_ref().is_err_and(needs_rollback) {
            roll_back(path, &vetted, &allowance)?;
            opened = open_and_read(path, &vetted, Access::Read, &allowance);
        }
        let (mut connection, found) = match opened {
            Err(error) if needs_rollback(&error) => return Err(StoreError::HalfWritten(path.to_owned())),
            other => other?,
        };
        if found != schema::VERSION {
            if length > LONGEST_COPY {
                return Err(StoreError::Older { path: path.to_owned(), found, known: schema::VERSION });
            }
            connection = connection::copy(&connection, &allowance).map_err(at)?;
        }
        schema::prepare(&connection, path)?;
        Ok(Store { connection, path: path.to_owned(), allowance, held: vetted.held })
    }

    fn open_to_write(path: &Path, vetted: Vetted) -> Result<Store, StoreError> {
        let allowance = Allowance::default();
        allowance.renew(vetted.length(), allowance::MOST_FOR_RUN);
        let connection = open_in_place(path, &vetted, Access::Write, &allowance)?;
        if connection.is_readonly("main").map_err(|source| problem(path, source))? {
            return Err(StoreError::ReadOnly(path.to_owned()));
        }
        schema::prepare(&connection, path)?;
        Ok(Store { connection, path: path.to_owned(), allowance, held: vetted.held })
    }

    /// The user to whom the file belongs; `None`: it cannot be looked at.
    #[must_use]
    pub fn user(&self) -> Option<u32> {
        self.held.metadata().ok().map(|found| found.uid())
    }

    fn at(&self, source: rusqlite::Error) -> StoreError {
        problem(&self.path, source)
    }

    /// A new operation begins, which may read as much as the file can hold.
    fn renew(&self, memory: u64) {
        let length = self.held.metadata().map_or(0, |found| found.len());
        self.allowance.renew(length, memory);
    }
}

/// Opens the file that was looked at, and no other that came in its place.
fn open_in_place(
    path: &Path,
    vetted: &Vetted,
    access: Access,
    allowance: &Allowance,
) -> Result<Connection, StoreError> {
    let connection = connection::open(&vetted.path, access, allowance);
    let connection = connection.map_err(|source| problem(path, source))?;
    if vetted.is_in_place() {
        return Ok(connection);
    }
    Err(StoreError::NotAStore { path: path.to_owned(), why: "another file came in its place".to_owned() })
}

/// The same, with its schema.
fn open_and_read(
    path: &Path,
    vetted: &Vetted,
    access: Access,
    allowance: &Allowance,
) -> Result<(Connection, i64), StoreError> {
    let connection = open_in_place(path, vetted, access, allowance)?;
    let version = schema::version(&connection, path)?;
    Ok((connection, version))
}

/// A killed writer has left a journal, which a reader may not play back.
fn needs_rollback(error: &StoreError) -> bool {
    matches!(error, StoreError::Sqlite { source: rusqlite::Error::SqliteFailure(code, _), .. }
        if code.extended_code == rusqlite::ffi::SQLITE_READONLY_ROLLBACK)
}

/// Undoes what a killed writer had begun, as the next writer would. Only in a store of the caller's: in another one the journal is
/// another user's, too.
fn roll_back(path: &Path, vetted: &Vetted, allowance: &Allowance) -> Result<(), StoreError> {
    if !vetted.is_own {
        return Err(StoreError::HalfWritten(path.to_owned()));
    }
    // Any statement that reads does it.
    match open_and_read(path, vetted, Access::Write, allowance) {
        Err(error) if needs_rollback(&error) => Err(StoreError::HalfWritten(path.to_owned())),
        other => other.map(|_| ()),
    }
}

/// Compact JSON of a value that always serialises (records have string keys and finite structure).
fn json<T: serde::Serialize>(value: &T) -> String {
    serde_json::to_string(value).unwrap_or_else(|error| format!("\"{error}\""))
}
