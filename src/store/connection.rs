//! A connection to SQLite as assay wants it: patient with other writers, and trusting nothing in the file.
//!
//! Enters: a file that was looked at. Leaves: a connection. It must not know the tables.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::backup::Backup;
use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::{Connection, OpenFlags};

use super::allowance::{Allowance, LONGEST_VALUE, STEPS_A_TICK};

/// How long a writer waits for its turn: sixteen others may each take seconds to commit on a slow disk.
const WRITER_WAITS: Duration = Duration::from_secs(300);
const READER_WAITS: Duration = Duration::from_secs(60);
/// Memory that SQLite may take in this process: a key of any length is read whole before its length is looked at.
const MOST_MEMORY: i64 = 320 << 20;
/// The longest statement, also of the schema of a file.
const LONGEST_SQL: i32 = 1 << 20;
/// More than the tables and indices of any schema of assay.
const MOST_IN_SCHEMA: i32 = 200;

/// Whether a connection may change the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    Read,
    Write,
}

/// Opens the file at `path`, which must exist and must not be a symbolic link.
pub(super) fn open(path: &Path, access: Access, allowance: &Allowance) -> rusqlite::Result<Connection> {
    let way = match access {
        Access::Read => OpenFlags::SQLITE_OPEN_READ_ONLY,
        Access::Write => OpenFlags::SQLITE_OPEN_READ_WRITE,
    };
    let mut connection = Connection::open_with_flags(path, way | OpenFlags::SQLITE_OPEN_NOFOLLOW)?;
    let wait = if access == Access::Write { WRITER_WAITS } else { READER_WAITS };
    connection.busy_handler(Some(patience(wait)))?;
    trust_nothing(&mut connection, allowance)?;
    Ok(connection)
}

/// A store of this process alone, without a file that others see.
pub(super) fn private(allowance: &Allowance) -> rusqlite::Result<Connection> {
    // The empty name is SQLite's own: a temporary file without a name, memory while it is small.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
    let mut connection = Connection::open_with_flags("", flags)?;
    trust_nothing(&mut connection, allowance)?;
    Ok(connection)
}

/// A private copy of all that is in `source`.
pub(super) fn copy(source: &Connection, allowance: &Allowance) -> rusqlite::Result<Connection> {
    let mut copy = private(allowance)?;
    Backup::new(source, &mut copy)?.run_to_completion(i32::MAX, Duration::from_millis(20), None)?;
    Ok(copy)
}

/// No view, trigger or function of a file is ever executed; what a statement may take is limited.
/// <https://www.sqlite.org/security.html>
fn trust_nothing(connection: &mut Connection, allowance: &Allowance) -> rusqlite::Result<()> {
    for (setting, on) in [
        (DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true),
        (DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false),
    ] {
        connection.set_db_config(setting, on)?;
    }
    let longest = i32::try_from(LONGEST_VALUE).unwrap_or(i32::MAX);
    connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, longest)?;
    connection.set_limit(Limit::SQLITE_LIMIT_SQL_LENGTH, LONGEST_SQL)?;
    connection.set_limit(Limit::SQLITE_LIMIT_ATTACHED, 0)?;
    connection.set_limit(Limit::SQLITE_LIMIT_SCHEMA, MOST_IN_SCHEMA)?;
    connection.progress_handler(STEPS_A_TICK, Some(allowance.ticker()))?;
    connection.pragma_update(None, "hard_heap_limit", MOST_MEMORY)?;
    connection.pragma_update(None, "cell_size_check", true)?;
    connection.pragma_update(None, "mmap_size", 0)?;
    // A trial is committed when the disk has it.
    connection.pragma_update(None, "synchronous", "FULL")
}

/// Rewrites the file without its free pages, unless another connection uses it at this moment.
pub(super) fn vacuum(connection: &Connection) -> rusqlite::Result<()> {
    // SQLite attaches the copy that it makes.
    connection.set_limit(Limit::SQLITE_LIMIT_ATTACHED, 1)?;
    connection.busy_timeout(Duration::ZERO)?;
    let done = connection.execute_batch("VACUUM");
    connection.busy_timeout(WRITER_WAITS)?;
    connection.set_limit(Limit::SQLITE_LIMIT_ATTACHED, 0)?;
    done
}

/// SQLite's busy handler: waits for a random time up to 0.1 s, so that no two stay in step, and gives up after `longest`.
fn patience(longest: Duration) -> impl FnMut(i32) -> bool + Send + 'static {
    let mut since = Instant::now();
    let mut chance = RandomState::new().build_hasher().finish() | 1;
    move |tries| {
        if tries == 0 {
            since = Instant::now();
        }
        if since.elapsed() >= longest {
            return false;
        }
        // Marsaglia's xorshift, doi:10.18637/jss.v008.i14.
        chance ^= chance << 13;
        chance ^= chance >> 7;
        chance ^= chance << 17;
        let most_us = 1000 << tries.clamp(0, 6);
        std::thread::sleep(Duration::from_micros(200 + chance % most_us.min(100_000)));
        true
    }
}
