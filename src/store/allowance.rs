//! How much one operation on a store may read and compute. A store is data that anybody may have made: pages that point at each
//! other make a table of few pages endless, and a small text can become a large value.
//!
//! Enters: rows as they are read. Leaves: an error when they are more than a store of this size can hold, or more than a report
//! needs. It must not know the tables.

use std::cell::Cell;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use rusqlite::Row;
use rusqlite::types::ValueRef;

use super::error::{StoreError, problem};

/// The largest text, blob or row.
pub(super) const LONGEST_VALUE: usize = 64 << 20;
/// The largest text that is read as JSON.
const LONGEST_JSON: usize = 4 << 20;
/// Steps of SQLite's machine between two looks at the counter.
pub(super) const STEPS_A_TICK: i32 = 10_000;
/// Ticks an operation may take: ten times what a run of 100,000 trials needs.
const MOST_TICKS: u32 = 20_000;
/// Memory of what a report reads, estimated.
pub(super) const MOST_FOR_REPORT: u64 = 160 << 20;
/// Memory of a run with all its histograms and series.
pub(super) const MOST_FOR_RUN: u64 = 3 << 29;
/// What rows may have in all beyond what the file holds: small integers take less room in it than is counted here.
const SMALLEST_FILE: u64 = 1 << 20;
const FILE_TIMES: u64 = 4;

/// What is left of it for the operation that is being done.
#[derive(Default)]
pub(super) struct Allowance {
    ticks: Arc<AtomicU32>,
    bytes: Cell<u64>,
    memory: Cell<u64>,
}

impl Allowance {
    /// A new operation begins on a file of `length` bytes; what it reads may take `memory` bytes.
    pub(super) fn renew(&self, length: u64, memory: u64) {
        self.ticks.store(0, Ordering::Relaxed);
        self.bytes.set(length.saturating_mul(FILE_TIMES).saturating_add(SMALLEST_FILE));
        self.memory.set(memory);
    }

    /// For SQLite's progress handler: whether the operation must end.
    pub(super) fn ticker(&self) -> impl FnMut() -> bool + Send + 'static {
        let ticks = Arc::clone(&self.ticks);
        move || ticks.fetch_add(1, Ordering::Relaxed) >= MOST_TICKS
    }

    /// Counts a row, which takes `more` bytes of memory besides its texts and blobs.
    pub(super) fn row(&self, path: &Path, row: &Row<'_>, more: u64) -> Result<(), StoreError> {
        let mut bytes = 0;
        for column in 0..row.as_ref().column_count() {
            bytes += match row.get_ref(column).map_err(|error| problem(path, error))? {
                ValueRef::Text(value) | ValueRef::Blob(value) => value.len() as u64,
                ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) => 4,
            };
        }
        let left = |cell: &Cell<u64>, taken: u64| cell.get().checked_sub(taken).map(|left| cell.set(left));
        if left(&self.bytes, bytes).is_none() {
            let what = "its tables have more in them than the file".to_owned();
            return Err(StoreError::Corrupt { path: path.to_owned(), what });
        }
        left(&self.memory, bytes + more).ok_or_else(|| too_much(path))
    }

    /// Memory that is left.
    pub(super) fn memory(&self) -> u64 {
        self.memory.get()
    }

    /// Of what was read since `before` was left, only `taken` bytes stay in memory.
    pub(super) fn took(&self, path: &Path, before: u64, taken: u64) -> Result<(), StoreError> {
        self.memory.set(before.checked_sub(taken).ok_or_else(|| too_much(path))?);
        Ok(())
    }

    /// Counts a JSON text, whose values may take `times` as much memory as the text.
    pub(super) fn json(&self, path: &Path, text: &str, times: u64) -> Result<(), StoreError> {
        let taken = text.len() as u64 * times;
        match self.memory.get().checked_sub(taken).filter(|_| text.len() <= LONGEST_JSON) {
            Some(left) => self.memory.set(left),
            None => return Err(too_much(path)),
        }
        Ok(())
    }
}

fn too_much(path: &Path) -> StoreError {
    StoreError::TooMuch {
        path: path.to_owned(),
        what: "it holds more than a report can have in memory".to_owned(),
    }
}
