//! Files that came with trials, in and out of the store.
//!
//! Enters: a trial's files, as many as a run may keep. Leaves: the same. They are read only when asked for; reports need the stacks alone.

use rusqlite::{Transaction, params};

use super::allowance::{MOST_FOR_REPORT, MOST_FOR_RUN};
use super::{Store, StoreError};
use crate::record::{KeptFile, Run, StackKind, Trial};

/// Bytes that the files of one run may have in all.
const MOST_BYTES: u64 = 256 << 20;
/// Files of stacks that a report reads.
const MOST_STACKS: i64 = 400;
/// Memory of a file besides its name and bytes, estimated.
const FILE_BYTES: u64 = 64;

/// Stores the files of a trial that have room; of the others a note.
pub(super) fn add(
    transaction: &Transaction<'_>,
    id: i64,
    number: i64,
    trial: &Trial,
) -> rusqlite::Result<Option<String>> {
    if trial.files.is_empty() {
        return Ok(None);
    }
    let sql = "SELECT coalesce(sum(length(bytes)), 0) FROM file WHERE run = ?1";
    let mut there: u64 = transaction.query_row(sql, [id], |row| row.get::<_, i64>(0))? as u64;
    let mut insert = transaction.prepare_cached("INSERT INTO file VALUES (?1, ?2, ?3, ?4, ?5)")?;
    let mut left_out: Vec<&str> = Vec::new();
    for (at, KeptFile { name, bytes }) in trial.files.iter().enumerate() {
        if there + bytes.len() as u64 > MOST_BYTES {
            left_out.push(name);
            continue;
        }
        there += bytes.len() as u64;
        insert.execute(params![id, number, at as i64, name, bytes])?;
    }
    let names = left_out.join(", ");
    let note = || format!("{names}: not kept, for the files of a run may have {} MiB", MOST_BYTES >> 20);
    Ok((!left_out.is_empty()).then(note))
}

impl Store {
    /// One run as [`Store::load_run`] reads it, with the files of its trials.
    ///
    /// # Errors
    /// As [`Store::load_run`].
    pub fn load_with_files(&self, id: i64) -> Result<Run, StoreError> {
        let mut run = self.load_run(id)?;
        self.renew(MOST_FOR_RUN);
        let sql = "SELECT trial, name, bytes FROM file WHERE run = ?1 ORDER BY trial, number";
        let files = self.rows_of([id], sql, FILE_BYTES, |store, row| {
            let file = KeptFile { name: store.get(row, 1)?, bytes: store.get(row, 2)? };
            Ok((store.get::<i64>(row, 0)?, file))
        })?;
        give(id, files, &mut run.trials)?;
        run.check().map_err(|what| StoreError::Damaged { run: id, what })?;
        Ok(run)
    }

    /// Gives the trials of a run, which were read without files, the stacks that observers left with them.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn add_stacks(&self, id: i64, trials: &mut [Trial]) -> Result<(), StoreError> {
        self.renew(MOST_FOR_REPORT);
        self.load_stacks(id, trials)
    }

    /// The same as a part of reading a run.
    pub(super) fn load_stacks(&self, id: i64, trials: &mut [Trial]) -> Result<(), StoreError> {
        let [cpu, waits] = StackKind::ALL.map(StackKind::file);
        let sql = "SELECT trial, name, bytes FROM file
             WHERE run = ?1 AND name IN (?2, ?3) AND length(bytes) <= ?4 ORDER BY trial, number LIMIT ?5";
        let parameters = params![id, cpu, waits, StackKind::MOST_BYTES as i64, MOST_STACKS];
        let files = self.rows_of(parameters, sql, FILE_BYTES, |store, row| {
            let file = KeptFile { name: store.get(row, 1)?, bytes: store.get(row, 2)? };
            Ok((store.get::<i64>(row, 0)?, file))
        })?;
        give(id, files, trials)
    }

    /// How many files the trials of a run have, and their bytes in all.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn kept_files(&self, id: i64) -> Result<(u64, u64), StoreError> {
        self.renew(MOST_FOR_RUN);
        let sql = "SELECT count(*), coalesce(sum(length(bytes)), 0) FROM file WHERE run = ?1";
        let counted =
            self.rows(id, sql, |store, row| Ok((store.get::<i64>(row, 0)?, store.get::<i64>(row, 1)?)))?;
        let (files, bytes) = counted.first().copied().unwrap_or_default();
        Ok((files as u64, bytes as u64))
    }
}

/// Puts files where they belong, each by the number of its trial.
fn give(run: i64, files: Vec<(i64, KeptFile)>, trials: &mut [Trial]) -> Result<(), StoreError> {
    for (trial, file) in files {
        let missing =
            || StoreError::Damaged { run, what: format!("a file of trial {trial}, which is not there") };
        let of = usize::try_from(trial).ok().and_then(|at| trials.get_mut(at)).ok_or_else(missing)?;
        of.files.push(file);
    }
    Ok(())
}
