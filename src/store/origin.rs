//! What a run was begun with that must hold when it goes on: who began it, and on which devices.
//!
//! Enters: texts that only their makers understand. Leaves: the same texts. Nothing here is trusted because it is stored.

use rusqlite::params;

use super::writer::add_run;
use super::{Store, StoreError, json};
use crate::record::{Design, Run};

impl Store {
    /// Stores a new run with its seal and its devices, one JSON text each; returns its number. A kill leaves all of it or
    /// nothing: a run without its seal could not be resumed.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`].
    pub fn begin_run(&self, run: &Run, seal: &str, devices: &[String]) -> Result<i64, StoreError> {
        self.write(|transaction| {
            let id = add_run(transaction, run)?;
            transaction.execute("UPDATE run SET seal = ?2 WHERE id = ?1", params![id, seal])?;
            for (number, device) in devices.iter().enumerate() {
                let row = params![id, number as i64, device];
                transaction.execute("INSERT INTO claim VALUES (?1, ?2, ?3)", row)?;
            }
            Ok(id)
        })
    }

    /// Changes how long a run goes on: its design and experiment, and with them its seal where there is a new one.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`].
    pub fn set_design(
        &self,
        id: i64,
        design: &Design,
        experiment: &serde_json::Value,
        seal: Option<&str>,
    ) -> Result<(), StoreError> {
        let changed = params![id, json(design), json(experiment), seal];
        let sql = "UPDATE run SET design = ?2, experiment = ?3, seal = coalesce(?4, seal) WHERE id = ?1";
        self.write(|transaction| transaction.execute(sql, changed).map(|_| ()))
    }

    /// The seal, as stored by [`Store::begin_run`]; empty for a run of an older assay.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn seal(&self, id: i64) -> Result<String, StoreError> {
        let sql = "SELECT seal FROM run WHERE id = ?1";
        self.rows(id, sql, |store, row| store.get(row, 0))?.pop().ok_or_else(|| self.unknown(id))
    }

    /// The devices, as stored by [`Store::begin_run`].
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn devices(&self, id: i64) -> Result<Vec<String>, StoreError> {
        self.rows(id, "SELECT device FROM claim WHERE run = ?1 ORDER BY number", |store, row| {
            store.get(row, 0)
        })
    }
}
