//! Why a store could not be used.
//!
//! Enters: an error of SQLite with the file it is about. Leaves: what that means for whoever asked for the file.

use std::path::{Path, PathBuf};

/// Why the store could not be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// No such file.
    #[error("there is no store at {0}; `assay run` makes one, `--db FILE` names another")]
    Missing(PathBuf),
    /// Not a regular file, not SQLite, or not assay's.
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
    /// The file cannot be opened.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's words.
        source: std::io::Error,
    },
    /// It can be read, but not written.
    #[error("{0} cannot be written")]
    ReadOnly(PathBuf),
    /// The process that wrote it was killed, and what it had begun cannot be undone by the caller.
    #[error("{0} was being written when its writer was killed, and only its owner can put it right")]
    HalfWritten(PathBuf),
    /// An older schema in a file that is too large to be migrated for reading.
    #[error("{path} has schema {found}, which is read after it was migrated to {known}")]
    Older {
        /// The file.
        path: PathBuf,
        /// Its schema.
        found: i64,
        /// Ours.
        known: i64,
    },
    /// More than can be read with reasonable memory and time.
    #[error("{path} cannot be read: {what}")]
    TooMuch {
        /// The file.
        path: PathBuf,
        /// Of what.
        what: String,
    },
    /// Its pages or values are not what assay writes.
    #[error("{path} is damaged: {what}")]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// A stored value that cannot be read.
    #[error("run {run} in the store is damaged: {what}")]
    Damaged {
        /// The run.
        run: i64,
        /// What could not be read.
        what: String,
    },
    /// Another owner than the expected one has the run by now.
    #[error("run {run} was taken over by '{owner}'")]
    TakenOver {
        /// The run.
        run: i64,
        /// Who has it.
        owner: String,
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

/// What an error of SQLite means for whoever asked for this file.
pub(super) fn problem(path: &Path, source: rusqlite::Error) -> StoreError {
    use rusqlite::{Error, ErrorCode};
    let path = path.to_owned();
    let too_much = |what: &str| StoreError::TooMuch { path: path.clone(), what: what.to_owned() };
    match &source {
        Error::InvalidColumnType(..)
        | Error::IntegralValueOutOfRange(..)
        | Error::FromSqlConversionFailure(..)
        | Error::Utf8Error(..) => StoreError::Corrupt { path, what: source.to_string().to_lowercase() },
        _ => match source.sqlite_error_code() {
            Some(ErrorCode::NotADatabase) => StoreError::NotAStore { path, why: "no SQLite file".to_owned() },
            Some(ErrorCode::TooBig) => too_much("a value in it is larger than 64 MiB"),
            Some(ErrorCode::OutOfMemory) => too_much("a value in it takes more memory than any of assay's"),
            Some(ErrorCode::OperationInterrupted) => too_much("it takes more time than any run needs"),
            Some(ErrorCode::DatabaseCorrupt) => StoreError::Corrupt { path, what: source.to_string() },
            _ => StoreError::Sqlite { path, source },
        },
    }
}
