//! Writing runs: the run first, then each trial in a transaction of its own.

use rusqlite::{Transaction, params};

use super::{Store, StoreError, json};
use crate::record::{Run, Trial};

impl Store {
    /// Stores a new run with all its cells, facts, metrics and trials; returns its number. `run.id` is ignored.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`].
    pub fn insert_run(&mut self, run: &Run) -> Result<i64, StoreError> {
        let path = self.path.clone();
        let at = |source| StoreError::Sqlite { path: path.clone(), source };
        let transaction = self.connection.transaction().map_err(at)?;
        transaction
            .execute(
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
            .map_err(at)?;
        let id = transaction.last_insert_rowid();
        for (number, cell) in run.cells.iter().enumerate() {
            transaction
                .execute(
                    "INSERT INTO cell VALUES (?1, ?2, ?3)",
                    params![id, number as i64, json(&cell.levels)],
                )
                .map_err(at)?;
        }
        add_definitions(&transaction, id, run).map_err(at)?;
        for (number, trial) in run.trials.iter().enumerate() {
            add_trial(&transaction, id, number, trial).map_err(at)?;
        }
        transaction.commit().map_err(at)?;
        Ok(id)
    }

    /// Commits the trial at `index` of `run.trials`, with definitions that came with it.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`]; also when that trial is stored already.
    pub fn append_trial(&mut self, id: i64, run: &Run, index: usize) -> Result<(), StoreError> {
        let path = self.path.clone();
        let at = |source| StoreError::Sqlite { path: path.clone(), source };
        let transaction = self.connection.transaction().map_err(at)?;
        add_definitions(&transaction, id, run).map_err(at)?;
        add_trial(&transaction, id, index, &run.trials[index]).map_err(at)?;
        transaction.commit().map_err(at)
    }

    /// Marks all trials of a round as thrown out by `rule`.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`].
    pub fn exclude_round(&self, id: i64, round: u32, rule: &str) -> Result<(), StoreError> {
        self.connection
            .execute("UPDATE trial SET excluded = ?3 WHERE run = ?1 AND round = ?2", params![id, round, rule])
            .map(|_| ())
            .map_err(|e| self.at(e))
    }

    /// Replaces the notes of a run.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`].
    pub fn set_notes(&self, id: i64, notes: &[String]) -> Result<(), StoreError> {
        self.connection
            .execute("UPDATE run SET notes = ?2 WHERE id = ?1", params![id, json(&notes)])
            .map(|_| ())
            .map_err(|e| self.at(e))
    }

    /// Records who executes the run (`"PID START_TICKS"`), or nobody (`""`).
    ///
    /// # Errors
    /// [`StoreError::Sqlite`].
    pub fn set_owner(&self, id: i64, owner: &str) -> Result<(), StoreError> {
        self.connection
            .execute("UPDATE run SET owner = ?2 WHERE id = ?1", params![id, owner])
            .map(|_| ())
            .map_err(|e| self.at(e))
    }

    /// Remembers a path that the run is about to make and must remove.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`].
    pub fn add_leftover(&self, id: i64, path: &str) -> Result<(), StoreError> {
        self.connection
            .execute("INSERT OR IGNORE INTO leftover VALUES (?1, ?2)", params![id, path])
            .map(|_| ())
            .map_err(|e| self.at(e))
    }

    /// Forgets a path that has been removed.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`].
    pub fn remove_leftover(&self, id: i64, path: &str) -> Result<(), StoreError> {
        self.connection
            .execute("DELETE FROM leftover WHERE run = ?1 AND path = ?2", params![id, path])
            .map(|_| ())
            .map_err(|e| self.at(e))
    }
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
            json(&trial.notes),
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
