//! Making, recognising and migrating the schema.
//!
//! Enters: a connection. Leaves: the same with exactly the tables and indices of schema [`VERSION`]: no view, trigger, virtual table,
//! generated column or constraint that assay does not make. It must not know what the tables hold.

use std::path::Path;

use rusqlite::{Connection, Transaction, TransactionBehavior};

use super::error::{StoreError, problem};
use super::file::APPLICATION_ID;

/// Entry i is schema i + 1 as stores of its time were made. A new schema is added at the end; its predecessor is kept
/// as `migrations/schema-N.sql`.
const MADE: [&str; 5] = [
    include_str!("migrations/schema-1.sql"),
    include_str!("migrations/schema-2.sql"),
    include_str!("migrations/schema-3.sql"),
    include_str!("migrations/schema-4.sql"),
    include_str!("schema.sql"),
];
/// Entry i takes schema i + 1 to i + 2.
const MIGRATIONS: [&str; MADE.len() - 1] = [
    include_str!("migrations/1-to-2.sql"),
    include_str!("migrations/2-to-3.sql"),
    include_str!("migrations/3-to-4.sql"),
    include_str!("migrations/4-to-5.sql"),
];
/// More than any schema has.
const MOST_ENTRIES: usize = 200;
/// The schema this assay writes.
pub(super) const VERSION: i64 = MADE.len() as i64;

/// Leaves `connection` with schema [`VERSION`], or says why not; a refused file is not changed.
pub(super) fn prepare(connection: &Connection, path: &Path) -> Result<(), StoreError> {
    let at = |source| problem(path, source);
    if version(connection, path)? == VERSION {
        return check(connection, path, VERSION);
    }
    let transaction = Transaction::new_unchecked(connection, TransactionBehavior::Immediate).map_err(at)?;
    // Another process may have made or migrated it while this one waited for the lock.
    let found = version(&transaction, path)?;
    check(&transaction, path, found)?;
    if found == VERSION {
        return Ok(());
    }
    if found == 0 {
        transaction.execute_batch(MADE[MADE.len() - 1]).map_err(at)?;
    } else {
        for migration in MIGRATIONS.iter().skip(found as usize - 1) {
            transaction.execute_batch(migration).map_err(at)?;
        }
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID).map_err(at)?;
    transaction.pragma_update(None, "user_version", VERSION).map_err(at)?;
    transaction.commit().map_err(at)
}

/// The schema of the file: 0 for an empty one.
///
/// # Errors
/// [`StoreError::Newer`]; [`StoreError::NotAStore`]: a number that assay never had.
pub(super) fn version(connection: &Connection, path: &Path) -> Result<i64, StoreError> {
    let (found, id) = marks(connection).map_err(|source| problem(path, source))?;
    // An empty file has neither; that nothing is in it is checked with its schema.
    if id != i64::from(APPLICATION_ID) && (id != 0 || found != 0) {
        return Err(refused(path, "another program's database"));
    }
    if found > VERSION {
        return Err(StoreError::Newer { path: path.to_owned(), found, known: VERSION });
    }
    if found < 0 || (found == 0 && id != 0) {
        return Err(refused(path, &format!("its schema is {found}")));
    }
    Ok(found)
}

/// The two numbers that tell whose a file is, of one moment: between one read and the next another process may have made the
/// store.
fn marks(connection: &Connection) -> rusqlite::Result<(i64, i64)> {
    let number = |name: &str| connection.pragma_query_value(None, name, |row| row.get(0));
    let of_one_moment = connection.is_autocommit().then(|| connection.unchecked_transaction()).transpose()?;
    let marks = (number("user_version")?, number("application_id")?);
    of_one_moment.map_or(Ok(()), Transaction::finish)?;
    Ok(marks)
}

/// Refuses anything in the schema that assay did not make.
fn check(connection: &Connection, path: &Path, version: i64) -> Result<(), StoreError> {
    let found = entries(connection).map_err(|source| problem(path, source))?;
    let Ok(version) = usize::try_from(version) else { return Err(refused(path, "its schema has no number")) };
    let mut expected: Vec<Vec<Entry>> = Vec::new();
    for first in 1..=version {
        expected.push(made(first, version).map_err(|source| problem(path, source))?);
    }
    if version == 0 {
        expected.push(Vec::new());
    }
    if expected.contains(&found) {
        return Ok(());
    }
    let known = |entry: &&Entry| expected.iter().any(|made| made.contains(entry));
    let nearest = expected.last().cloned().unwrap_or_default();
    let what = if let Some(odd) = found.iter().find(|entry| !known(entry)) {
        let same = nearest.iter().any(|made| (&made.kind, &made.name) == (&odd.kind, &odd.name));
        let name: String = odd.name.chars().take(40).flat_map(char::escape_debug).collect();
        format!(
            "its {} {name} is not {}",
            odd.kind(),
            if same { "as assay makes it" } else { "one of assay's" }
        )
    } else if let Some(lost) = nearest.iter().find(|made| !found.contains(made)) {
        format!("it has no {} {}", lost.kind(), lost.name)
    } else {
        "its schema is a mixture of two".to_owned()
    };
    Err(refused(path, &what))
}

/// A line of SQLite's table of contents.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    kind: String,
    name: String,
    table: String,
    /// Without comments and blanks; empty for what SQLite makes itself.
    sql: String,
}

impl Entry {
    fn kind(&self) -> &str {
        match self.kind.as_str() {
            "table" if self.sql.starts_with("CREATE VIRTUAL") => "virtual table",
            "table" | "index" | "view" | "trigger" => &self.kind,
            _ => "entry",
        }
    }
}

/// The schema of a store that was made with schema `first` and migrated to `last`.
fn made(first: usize, last: usize) -> rusqlite::Result<Vec<Entry>> {
    let connection = Connection::open_in_memory()?;
    connection.execute_batch(MADE[first - 1])?;
    for migration in &MIGRATIONS[first - 1..last - 1] {
        connection.execute_batch(migration)?;
    }
    entries(&connection)
}

fn entries(connection: &Connection) -> rusqlite::Result<Vec<Entry>> {
    let mut statement = connection
        .prepare("SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY type, name, tbl_name")?;
    let mut rows = statement.query([])?;
    let mut entries = Vec::new();
    while let Some(row) = rows.next()?
        && entries.len() < MOST_ENTRIES
    {
        let text = |column: usize| -> rusqlite::Result<String> {
            let value = row.get_ref(column)?;
            Ok(value.as_bytes().map(|bytes| String::from_utf8_lossy(bytes).into_owned()).unwrap_or_default())
        };
        entries.push(Entry { kind: text(0)?, name: text(1)?, table: text(2)?, sql: bare(&text(3)?) });
    }
    Ok(entries)
}

/// SQL without comments, and without blanks that part no words.
fn bare(sql: &str) -> String {
    let mut out = String::with_capacity(sql.len());
    let mut quote = None;
    let mut gap = false;
    let word = |c: char| c.is_alphanumeric() || c == '_';
    let mut rest = sql.chars().peekable();
    while let Some(c) = rest.next() {
        match quote {
            Some(end) => {
                out.push(c);
                quote = (c != end).then_some(end);
            }
            None if c == '-' && rest.peek() == Some(&'-') => {
                rest.by_ref().find(|c| *c == '\n');
                gap = true;
            }
            None if c.is_ascii_whitespace() => gap = true,
            None => {
                if std::mem::take(&mut gap) && word(c) && out.ends_with(word) {
                    out.push(' ');
                }
                quote = matches!(c, '\'' | '"' | '`').then_some(c).or((c == '[').then_some(']'));
                out.push(c);
            }
        }
    }
    out
}

fn refused(path: &Path, why: &str) -> StoreError {
    StoreError::NotAStore { path: path.to_owned(), why: why.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_blanks_do_not_matter() {
        assert_eq!(bare("CREATE TABLE t (\n  a TEXT, -- JSON: 'x'\n b)"), bare("CREATE TABLE t (a TEXT,b)"));
        assert_ne!(bare("CREATE TABLE t (a TEXT NOT NULL)"), bare("CREATE TABLE t (a TEXTNOT NULL)"));
        assert_ne!(bare("CREATE TABLE t (a DEFAULT '-- x')"), bare("CREATE TABLE t (a DEFAULT '--x')"));
    }

    #[test]
    fn a_store_that_is_made_meanwhile_is_seen_before_or_after() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("assay.db");
        let writer = Connection::open(&path).unwrap();
        writer.execute_batch("PRAGMA synchronous = OFF").unwrap();
        let marked = |version: i64, id: i32| {
            format!("BEGIN IMMEDIATE; PRAGMA application_id = {id}; PRAGMA user_version = {version}; COMMIT")
        };
        let done = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            let (path, done) = (&path, &done);
            let reader = scope.spawn(move || {
                let connection = Connection::open(path).unwrap();
                connection.busy_timeout(std::time::Duration::from_secs(60)).unwrap();
                let mut seen = std::collections::BTreeSet::new();
                while !done.load(std::sync::atomic::Ordering::Relaxed) {
                    seen.insert(version(&connection, path).unwrap());
                }
                seen
            });
            writer.busy_timeout(std::time::Duration::from_secs(60)).unwrap();
            for _ in 0..300 {
                writer.execute_batch(&marked(VERSION, APPLICATION_ID as i32)).unwrap();
                writer.execute_batch(&marked(0, 0)).unwrap();
            }
            done.store(true, std::sync::atomic::Ordering::Relaxed);
            assert!(reader.join().unwrap().is_subset(&[0, VERSION].into()));
        });
    }

    #[test]
    fn every_migration_ends_with_the_columns_of_the_newest() {
        let columns = |sql: &[&str]| -> Vec<String> {
            let connection = Connection::open_in_memory().unwrap();
            sql.iter().for_each(|sql| connection.execute_batch(sql).unwrap());
            let all = "SELECT m.name || '.' || c.name || ' ' || c.type || c.pk || coalesce(c.dflt_value, '') \
                       FROM sqlite_schema m, pragma_table_info(m.name) c ORDER BY 1";
            let mut statement = connection.prepare(all).unwrap();
            statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
        };
        let newest = columns(&MADE[MADE.len() - 1..]);
        for first in 0..MADE.len() {
            let path: Vec<&str> = std::iter::once(MADE[first]).chain(MIGRATIONS[first..].to_vec()).collect();
            assert_eq!(columns(&path), newest, "from schema {}", first + 1);
        }
    }
}
