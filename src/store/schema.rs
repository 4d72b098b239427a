//! Making, recognising and migrating the schema.

use std::path::Path;

use rusqlite::Connection;

use super::StoreError;

/// The schema this assay writes.
pub(super) const VERSION: i64 = 3;
/// "assa" in SQLite's application id.
const APPLICATION_ID: i64 = 0x6173_7361;
const SCHEMA: &str = include_str!("schema.sql");
/// Entry i takes schema i + 1 to i + 2.
const MIGRATIONS: [&str; 2] = [include_str!("migrations/1-to-2.sql"), include_str!("migrations/2-to-3.sql")];

/// Leaves `connection` with schema [`VERSION`], or says why not; a refused file is not changed.
pub(super) fn prepare(connection: &mut Connection, path: &Path) -> Result<(), StoreError> {
    let at = |source: rusqlite::Error| match source.sqlite_error_code() {
        Some(rusqlite::ErrorCode::NotADatabase) => {
            StoreError::NotAStore { path: path.to_owned(), why: "no SQLite file".to_owned() }
        }
        _ => StoreError::Sqlite { path: path.to_owned(), source },
    };
    let read = |connection: &Connection, name: &str| -> Result<i64, StoreError> {
        connection.pragma_query_value(None, name, |row| row.get(0)).map_err(at)
    };
    let (version, id) = (read(connection, "user_version")?, read(connection, "application_id")?);
    let tables: i64 = connection
        .query_row("SELECT count(*) FROM sqlite_schema WHERE type = 'table'", [], |row| row.get(0))
        .map_err(at)?;
    if tables > 0 && id != APPLICATION_ID {
        return Err(StoreError::NotAStore {
            path: path.to_owned(),
            why: "another program's database".to_owned(),
        });
    }
    if version > VERSION {
        return Err(StoreError::Newer { path: path.to_owned(), found: version, known: VERSION });
    }
    if version == VERSION {
        return Ok(());
    }
    let transaction =
        connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate).map_err(at)?;
    // Another process may have made or migrated it while this one waited for the lock.
    let version: i64 = transaction.pragma_query_value(None, "user_version", |row| row.get(0)).map_err(at)?;
    if version == 0 {
        transaction.execute_batch(SCHEMA).map_err(at)?;
    } else {
        for migration in &MIGRATIONS[(version as usize - 1).min(MIGRATIONS.len())..] {
            transaction.execute_batch(migration).map_err(at)?;
        }
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID).map_err(at)?;
    transaction.pragma_update(None, "user_version", VERSION).map_err(at)?;
    transaction.commit().map_err(at)
}
