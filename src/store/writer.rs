//! Writing runs: the run first, then each trial in a transaction of its own.

use rusqlite::{Transaction, TransactionBehavior, params};

use super::allowance::MOST_FOR_RUN;
use super::{Store, StoreError, json, kept_files};
use crate::record::{LeadIn, Note, Run, RunState, Trial};

/// The tables whose rows belong to a run, by their column `run`.
const TABLES_OF_RUNS: [&str; 11] = [
    "leftover", "claim", "lead_in", "file", "series", "histogram", "value", "trial", "metric", "facts",
    "cell",
];

impl Store {
    /// Stores a new run with all its cells, facts, metrics and trials; returns its number. `run.id` is ignored.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`].
    pub fn insert_run(&mut self, run: &Run) -> Result<i64, StoreError> {
        self.write(|transaction| add_run(transaction, run))
    }

    /// Commits the trial at `index` of `run.trials`, with definitions that came with it.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`]; also when that trial is stored already.
    pub fn append_trial(&mut self, id: i64, run: &Run, index: usize) -> Result<(), StoreError> {
        self.write(|transaction| {
            add_definitions(transaction, id, run)?;
            add_trial(transaction, id, index, &run.trials[index])
        })
    }

    /// Commits the lead-in at `index` of `run.lead_ins`, with definitions that came with it.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`].
    pub fn append_lead_in(&mut self, id: i64, run: &Run, index: usize) -> Result<(), StoreError> {
        self.write(|transaction| {
            add_definitions(transaction, id, run)?;
            add_lead_in(transaction, id, &run.lead_ins[index])?;
            Ok(())
        })
    }

    /// Marks all trials of these cells in a round as thrown out by `rule`.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`].
    pub fn exclude_round(&self, id: i64, round: u32, cells: &[u32], rule: &str) -> Result<(), StoreError> {
        self.write(|transaction| {
            let sql = "UPDATE trial SET excluded = ?4 WHERE run = ?1 AND round = ?2 AND cell = ?3";
            for cell in cells {
                transaction.execute(sql, params![id, round, cell, rule])?;
            }
            Ok(())
        })
    }

    /// Sets how far a run came.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`].
    pub fn set_state(&self, id: i64, state: RunState) -> Result<(), StoreError> {
        self.change("UPDATE run SET state = ?2 WHERE id = ?1", params![id, json(&state)])
    }

    /// Replaces the notes of a run.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`].
    pub fn set_notes(&self, id: i64, notes: &[Note]) -> Result<(), StoreError> {
        self.change("UPDATE run SET notes = ?2 WHERE id = ?1", params![id, json(&notes)])
    }

    /// Makes `new` the owner of a run whose owner is `expected` (`""`: nobody), both as the caller writes them. Of several that
    /// expect the same owner at the same time one succeeds.
    ///
    /// # Errors
    /// [`StoreError::TakenOver`] with the owner it has instead, [`StoreError::UnknownRun`], [`StoreError::Sqlite`].
    pub fn take_over(&self, id: i64, expected: &str, new: &str) -> Result<(), StoreError> {
        let taken = self.write(|transaction| {
            let sql = "UPDATE run SET owner = ?3 WHERE id = ?1 AND owner = ?2";
            transaction.execute(sql, params![id, expected, new])
        })?;
        if taken == 1 {
            return Ok(());
        }
        Err(StoreError::TakenOver { run: id, owner: self.owner(id)? })
    }

    /// Records who executes the run, whoever did before; `""` is nobody.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`].
    pub fn set_owner(&self, id: i64, owner: &str) -> Result<(), StoreError> {
        self.change("UPDATE run SET owner = ?2 WHERE id = ?1", params![id, owner])
    }

    /// Removes a run with all that belongs to it, unless another than `owner` has it now.
    ///
    /// # Errors
    /// [`StoreError::TakenOver`] with the owner it has instead, [`StoreError::UnknownRun`], [`StoreError::Sqlite`].
    pub fn delete_run(&self, id: i64, owner: &str) -> Result<(), StoreError> {
        let deleted = self.write(|transaction| {
            let sql = "SELECT count(*) FROM run WHERE id = ?1 AND owner = ?2";
            let found: i64 = transaction.query_row(sql, params![id, owner], |row| row.get(0))?;
            if found == 1 {
                for table in TABLES_OF_RUNS {
                    transaction.execute(&format!("DELETE FROM {table} WHERE run = ?1"), [id])?;
                }
                transaction.execute("DELETE FROM run WHERE id = ?1", [id])?;
            }
            Ok(found == 1)
        })?;
        if deleted { Ok(()) } else { Err(StoreError::TakenOver { run: id, owner: self.owner(id)? }) }
    }

    /// Remembers a path that the run is about to make and must remove.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`].
    pub fn add_leftover(&self, id: i64, path: &str) -> Result<(), StoreError> {
        self.change("INSERT OR IGNORE INTO leftover VALUES (?1, ?2)", params![id, path])
    }

    /// Forgets a path that has been removed.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`].
    pub fn remove_leftover(&self, id: i64, path: &str) -> Result<(), StoreError> {
        self.change("DELETE FROM leftover WHERE run = ?1 AND path = ?2", params![id, path])
    }

    fn change(&self, sql: &str, parameters: impl rusqlite::Params) -> Result<(), StoreError> {
        self.write(|transaction| transaction.execute(sql, parameters).map(|_| ()))
    }

    /// Does `work` in one transaction. It has the write lock from its start: one that reads first and then wants to write
    /// cannot wait for another that does the same.
    pub(super) fn write<T>(
        &self,
        work: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        self.renew(MOST_FOR_RUN);
        let begun = Transaction::new_unchecked(&self.connection, TransactionBehavior::Immediate);
        let transaction = begun.map_err(|e| self.at(e))?;
        let done = work(&transaction).map_err(|e| self.at(e))?;
        transaction.commit().map_err(|e| self.at(e))?;
        Ok(done)
    }
}

pub(super) fn add_run(transaction: &Transaction<'_>, run: &Run) -> rusqlite::Result<i64> {
    add_head(transaction, run)?;
    let id = transaction.last_insert_rowid();
    for (number, cell) in run.cells.iter().enumerate() {
        let row = params![id, number as i64, json(&cell.levels)];
        transaction.execute("INSERT INTO cell VALUES (?1, ?2, ?3)", row)?;
    }
    add_definitions(transaction, id, run)?;
    for (number, trial) in run.trials.iter().enumerate() {
        add_trial(transaction, id, number, trial)?;
    }
    for lead_in in &run.lead_ins {
        add_lead_in(transaction, id, lead_in)?;
    }
    Ok(id)
}

fn add_head(transaction: &Transaction<'_>, run: &Run) -> rusqlite::Result<usize> {
    transaction.execute(
        "INSERT INTO run (name, source, state, assay_version, started_unix_ns, command_line, seed, engine,
             job_text, experiment, design, aa, notes)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
        params![
            run.name,
            json(&run.source),
            json(&run.state),
            run.assay_version,
            run.started_unix_ns as i64,
            json(&run.command_line),
            run.seed as i64,
            run.engine,
            run.job_text,
            json(&run.experiment),
            json(&run.design),
            run.aa,
            json(&run.notes),
        ],
    )
}

/// Adds metrics and facts that the store does not have yet (they only ever grow).
fn add_definitions(transaction: &Transaction<'_>, id: i64, run: &Run) -> rusqlite::Result<()> {
    let stored = |table: &str| -> rusqlite::Result<usize> {
        let sql = format!("SELECT count(*) FROM {table} WHERE run = ?1");
        transaction.query_row(&sql, [id], |row| row.get::<_, i64>(0)).map(|n| n as usize)
    };
    for (number, metric) in run.metrics.iter().enumerate().skip(stored("metric")?) {
        transaction.execute(
            "INSERT INTO metric VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            params![id, number as i64, metric.job, metric.name, json(&metric.unit), json(&metric.better)],
        )?;
    }
    for (number, facts) in run.facts.iter().enumerate().skip(stored("facts")?) {
        transaction
            .execute("INSERT INTO facts VALUES (?1, ?2, ?3)", params![id, number as i64, json(facts)])?;
    }
    Ok(())
}

fn add_trial(transaction: &Transaction<'_>, id: i64, number: usize, trial: &Trial) -> rusqlite::Result<()> {
    let number = number as i64;
    let mut notes = trial.notes.clone();
    notes.extend(kept_files::add(transaction, id, number, trial)?.map(Note::from));
    transaction
        .prepare_cached("INSERT INTO trial VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)")?
        .execute(params![
            id,
            number,
            trial.cell,
            trial.round,
            trial.position,
            trial.attempt,
            trial.started_unix_ns as i64,
            trial.elapsed_s,
            trial.facts,
            json(&trial.status),
            trial.excluded,
            json(&notes),
        ])?;
    let mut value = transaction.prepare_cached("INSERT INTO value VALUES (?1, ?2, ?3, ?4)")?;
    for (metric, number_measured) in &trial.values {
        value.execute(params![id, number, metric, number_measured])?;
    }
    let mut histogram =
        transaction.prepare_cached("INSERT INTO histogram VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)")?;
    for (at, h) in trial.histograms.iter().enumerate() {
        histogram.execute(params![id, number, at as i64, h.job, json(&h.direction), json(&h.kind), h.hdr])?;
    }
    let mut series = transaction.prepare_cached("INSERT INTO series VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)")?;
    for (at, s) in trial.series.iter().enumerate() {
        let numbers: Vec<u8> = s.values.iter().flat_map(|v| v.to_le_bytes()).collect();
        series.execute(params![id, number, at as i64, s.job, s.name, s.interval_s, numbers])?;
    }
    Ok(())
}

/// Numbered by the store: another session may have stored one since this one read the run.
fn add_lead_in(transaction: &Transaction<'_>, id: i64, lead_in: &LeadIn) -> rusqlite::Result<usize> {
    transaction.execute(
        "INSERT INTO lead_in
         SELECT ?1, coalesce(max(number) + 1, 0), ?2, ?3, ?4, ?5, ?6, ?7, ?8 FROM lead_in WHERE run = ?1",
        params![
            id,
            lead_in.cell,
            lead_in.round,
            lead_in.started_unix_ns as i64,
            lead_in.elapsed_s,
            lead_in.failed,
            lead_in.wrong_data,
            json(&lead_in.values),
        ],
    )
}
