//! Reading runs back, whole or as a line of a list.

use rusqlite::{Row, params};
use serde::de::DeserializeOwned;

use super::allowance::{MOST_FOR_REPORT, MOST_FOR_RUN};
use super::{Store, StoreError, json};
use crate::record::{
    Cell, Explains, HostFacts, LatencyHistogram, LeadIn, Metric, RECORD_VERSION, Run, RunState, Series,
    Status, Trial, is_probe,
};

/// A run as a line of `assay list`.
#[derive(Clone, Debug, PartialEq)]
pub struct RunSummary {
    /// Its number.
    pub id: i64,
    /// Its name.
    pub name: String,
    /// How far it came.
    pub state: RunState,
    /// Nanoseconds since the Unix epoch.
    pub started_unix_ns: u64,
    /// Engine and version.
    pub engine: String,
    /// Trials stored.
    pub trials: u64,
    /// Rounds begun.
    pub rounds: u32,
    /// Labels of the arms, the baseline first.
    pub arms: Vec<String>,
    /// Name of the compared factor.
    pub factor: String,
    /// Whether it compares the baseline with itself.
    pub aa: bool,
    /// Seed of every random choice.
    pub seed: u64,
    /// The run that it explains, if it was made for that.
    pub explains: Option<Explains>,
    /// Whether it is a search for the step with a change.
    pub bisects: bool,
}

impl RunSummary {
    /// Whether it is what `assay probe` has measured.
    #[must_use]
    pub fn is_probe(&self) -> bool {
        is_probe(&self.engine)
    }
}

/// Memory of rows besides their texts and blobs, estimated from above.
const ROW_BYTES: u64 = 128;
const RUN_BYTES: u64 = 512;
const TRIAL_BYTES: u64 = 384;
const VALUE_BYTES: u64 = 32;
const PICTURE_BYTES: u64 = 128;
const FACT_BYTES: u64 = 112;
/// Trials whose histograms and series a report reads.
const MOST_TRIALS_IN_PICTURES: usize = 2000;

/// Indices of every k-th trial of each cell, so that there are about `most` in all.
fn every_kth(trials: &[Trial], most: usize) -> Vec<usize> {
    let step = trials.len().div_ceil(most.max(1)).max(1);
    let mut seen: std::collections::BTreeMap<u32, usize> = std::collections::BTreeMap::new();
    let mut chosen = |trial: &Trial| {
        let before = seen.entry(trial.cell).or_insert(0);
        *before += 1;
        (*before - 1).is_multiple_of(step)
    };
    (0..trials.len()).filter(|at| chosen(&trials[*at])).collect()
}

impl Store {
    /// All runs, oldest first.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn list(&self) -> Result<Vec<RunSummary>, StoreError> {
        let sql = "SELECT id, name, state, started_unix_ns, engine, design, aa,
                 (SELECT count(*) FROM trial WHERE run = id), (SELECT 1 + max(round) FROM trial WHERE run = id), seed
             FROM run ORDER BY id";
        self.renew(MOST_FOR_REPORT);
        self.rows_of([], sql, RUN_BYTES, Store::summary)
    }

    /// Whether a trial of the run has values that may be judged. A list does not ask: it counts by the index alone.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn has_counted(&self, id: i64) -> Result<bool, StoreError> {
        self.renew(MOST_FOR_REPORT);
        let sql = "SELECT EXISTS (SELECT 1 FROM trial WHERE run = ?1 AND excluded IS NULL AND status = ?2)";
        let asked = self.connection.query_row(sql, params![id, json(&Status::Done)], |row| row.get(0));
        asked.map_err(|error| self.at(error))
    }

    fn summary(&self, row: &Row<'_>) -> Result<RunSummary, StoreError> {
        let id = self.get::<i64>(row, 0)?;
        let design: crate::record::Design = self.get_json(row, 5, id, "design")?;
        let factor = design.factors.get(design.compare).cloned();
        Ok(RunSummary {
            id,
            name: self.get(row, 1)?,
            state: self.get_json(row, 2, id, "state")?,
            started_unix_ns: self.get::<i64>(row, 3)? as u64,
            engine: self.get(row, 4)?,
            aa: self.get(row, 6)?,
            trials: self.get::<i64>(row, 7)? as u64,
            rounds: self.get::<Option<u32>>(row, 8)?.unwrap_or(0),
            arms: factor.as_ref().map(|f| f.levels.clone()).unwrap_or_default(),
            factor: factor.map(|f| f.name).unwrap_or_default(),
            seed: self.get::<i64>(row, 9)? as u64,
            explains: design.explains,
            bisects: design.bisects.is_some(),
        })
    }

    /// One run with every trial; histograms and series too, files not.
    ///
    /// # Errors
    /// [`StoreError::UnknownRun`] naming the known ones, [`StoreError::Damaged`].
    pub fn load_run(&self, id: i64) -> Result<Run, StoreError> {
        self.renew(MOST_FOR_RUN);
        self.load(id, None)
    }

    /// The same for a report: every value, but histograms and series, which only pictures need, of at most some 2,000
    /// trials, the same share of every cell; and of the files the stacks of observers.
    ///
    /// # Errors
    /// As [`Store::load_run`].
    pub fn load_for_report(&self, id: i64) -> Result<Run, StoreError> {
        self.renew(MOST_FOR_REPORT);
        self.load(id, Some(MOST_TRIALS_IN_PICTURES))
    }

    /// `most_in_pictures`: for a report.
    fn load(&self, id: i64, most_in_pictures: Option<usize>) -> Result<Run, StoreError> {
        // One snapshot: a trial that another process stores meanwhile must not be read by half.
        let snapshot = self.connection.unchecked_transaction().map_err(|e| self.at(e))?;
        let mut run = self.load_head(id)?;
        run.cells = self.rows(id, "SELECT levels FROM cell WHERE run = ?1 ORDER BY cell", |store, row| {
            Ok(Cell { levels: store.get_json(row, 0, id, "cell")? })
        })?;
        run.facts = self.load_facts(id)?;
        let sql = "SELECT job, name, unit, better FROM metric WHERE run = ?1 ORDER BY metric";
        run.metrics = self.rows(id, sql, |store, row| {
            Ok(Metric {
                job: store.get(row, 0)?,
                name: store.get(row, 1)?,
                unit: store.get_json(row, 2, id, "unit")?,
                better: store.get_json(row, 3, id, "better")?,
            })
        })?;
        run.trials = self.load_trials(id)?;
        self.load_values(id, &mut run.trials)?;
        run.lead_ins = self.load_lead_ins(id)?;
        let chosen = every_kth(&run.trials, most_in_pictures.unwrap_or(usize::MAX));
        self.load_pictures(id, &chosen, &mut run.trials)?;
        if most_in_pictures.is_some() {
            self.load_stacks(id, &mut run.trials)?;
        }
        snapshot.finish().map_err(|e| self.at(e))?;
        self.check(id, &run)?;
        Ok(run)
    }

    fn load_head(&self, id: i64) -> Result<Run, StoreError> {
        let sql = "SELECT name, source, state, assay_version, started_unix_ns, command_line, seed, engine, job_text,
                 experiment, design, aa, notes FROM run WHERE id = ?1";
        let mut heads = self.rows(id, sql, |store, row| {
            Ok(Run {
                version: RECORD_VERSION,
                id: Some(id),
                name: store.get(row, 0)?,
                source: store.get_json(row, 1, id, "source")?,
                state: store.get_json(row, 2, id, "state")?,
                assay_version: store.get(row, 3)?,
                started_unix_ns: store.get::<i64>(row, 4)? as u64,
                command_line: store.get_json(row, 5, id, "command line")?,
                seed: store.get::<i64>(row, 6)? as u64,
                engine: store.get(row, 7)?,
                job_text: store.get(row, 8)?,
                experiment: store.get_json(row, 9, id, "experiment")?,
                design: store.get_json(row, 10, id, "design")?,
                aa: store.get(row, 11)?,
                notes: store.get_json(row, 12, id, "notes")?,
                facts: Vec::new(),
                metrics: Vec::new(),
                cells: Vec::new(),
                trials: Vec::new(),
                lead_ins: Vec::new(),
            })
        })?;
        heads.pop().ok_or_else(|| self.unknown(id))
    }

    pub(super) fn unknown(&self, run: i64) -> StoreError {
        let known = match self.list() {
            Ok(list) if !list.is_empty() => {
                let ids: Vec<String> = list.iter().rev().take(8).map(|r| r.id.to_string()).collect();
                format!("the newest are {}", ids.join(", "))
            }
            _ => "it holds no run".to_owned(),
        };
        StoreError::UnknownRun { run, path: self.path.clone(), known }
    }

    /// Facts of a run. Those of trials mostly differ in what is of the moment, and share the memory of the rest.
    fn load_facts(&self, id: i64) -> Result<Vec<HostFacts>, StoreError> {
        let sql = "SELECT json FROM facts WHERE run = ?1 ORDER BY facts";
        let mut statement = self.connection.prepare(sql).map_err(|e| self.at(e))?;
        let mut rows = statement.query([id]).map_err(|e| self.at(e))?;
        let mut all: Vec<HostFacts> = Vec::new();
        while let Some(row) = rows.next().map_err(|e| self.at(e))? {
            let before = self.allowance.memory();
            self.allowance.row(&self.path, row, ROW_BYTES)?;
            let mut facts: HostFacts = self.get_json(row, 0, id, "facts")?;
            if facts.share(&all) {
                let own =
                    facts.momentary().map(|(name, value)| (name.len() + value.len()) as u64 + FACT_BYTES);
                self.allowance.took(&self.path, before, ROW_BYTES + own.sum::<u64>())?;
            }
            all.push(facts);
        }
        Ok(all)
    }

    fn load_trials(&self, id: i64) -> Result<Vec<Trial>, StoreError> {
        let sql = "SELECT cell, round, position, attempt, started_unix_ns, elapsed_s, facts, status, excluded, notes
             FROM trial WHERE run = ?1 ORDER BY trial";
        self.rows_of([id], sql, TRIAL_BYTES, |store, row| {
            Ok(Trial {
                cell: store.get(row, 0)?,
                round: store.get(row, 1)?,
                position: store.get(row, 2)?,
                attempt: store.get(row, 3)?,
                started_unix_ns: store.get::<i64>(row, 4)? as u64,
                elapsed_s: store.get(row, 5)?,
                facts: store.get(row, 6)?,
                status: store.get_json_of_texts(row, 7, id, "status")?,
                excluded: store.get(row, 8)?,
                notes: store.get_json(row, 9, id, "notes")?,
                ..Trial::default()
            })
        })
    }

    fn load_lead_ins(&self, id: i64) -> Result<Vec<LeadIn>, StoreError> {
        let sql = "SELECT cell, round, started_unix_ns, elapsed_s, failed, wrong_data, numbers FROM lead_in WHERE run = ?1 ORDER BY number";
        self.rows(id, sql, |store, row| {
            Ok(LeadIn {
                cell: store.get(row, 0)?,
                round: store.get(row, 1)?,
                started_unix_ns: store.get::<i64>(row, 2)? as u64,
                elapsed_s: store.get(row, 3)?,
                failed: store.get(row, 4)?,
                wrong_data: store.get(row, 5)?,
                values: store.get_json(row, 6, id, "values of a lead-in")?,
            })
        })
    }

    fn load_values(&self, id: i64, trials: &mut [Trial]) -> Result<(), StoreError> {
        let sql = "SELECT trial, metric, value FROM value WHERE run = ?1";
        let mut statement = self.connection.prepare(sql).map_err(|e| self.at(e))?;
        let mut rows = statement.query([id]).map_err(|e| self.at(e))?;
        while let Some(row) = rows.next().map_err(|e| self.at(e))? {
            self.allowance.row(&self.path, row, VALUE_BYTES)?;
            // SQLite keeps NaN as NULL.
            let value = self.get::<Option<f64>>(row, 2)?.unwrap_or(f64::NAN);
            let metric = self.get::<u32>(row, 1)?;
            self.trial_at(id, trials, self.get(row, 0)?)?.values.push((metric, value));
        }
        Ok(())
    }

    /// Histograms and series of the trials at `chosen`.
    fn load_pictures(&self, id: i64, chosen: &[usize], trials: &mut [Trial]) -> Result<(), StoreError> {
        let at = |e| self.at(e);
        let sql = "SELECT job, direction, kind, hdr FROM histogram WHERE run = ?1 AND trial = ?2";
        let mut histograms = self.connection.prepare(sql).map_err(at)?;
        let sql = "SELECT job, name, interval_s, numbers FROM series WHERE run = ?1 AND trial = ?2";
        let mut series = self.connection.prepare(sql).map_err(at)?;
        for number in chosen {
            let trial = &mut trials[*number];
            let key = params![id, *number as i64];
            let mut rows = histograms.query(key).map_err(at)?;
            while let Some(row) = rows.next().map_err(at)? {
                self.allowance.row(&self.path, row, PICTURE_BYTES)?;
                trial.histograms.push(LatencyHistogram {
                    job: self.get(row, 0)?,
                    direction: self.get_json(row, 1, id, "direction")?,
                    kind: self.get_json(row, 2, id, "latency kind")?,
                    hdr: self.get(row, 3)?,
                });
            }
            let mut rows = series.query(key).map_err(at)?;
            while let Some(row) = rows.next().map_err(at)? {
                self.allowance.row(&self.path, row, PICTURE_BYTES)?;
                let numbers: Vec<u8> = self.get(row, 3)?;
                let values = numbers.as_chunks().0.iter().map(|chunk| f64::from_le_bytes(*chunk)).collect();
                let (job, name, interval_s) = (self.get(row, 0)?, self.get(row, 1)?, self.get(row, 2)?);
                trial.series.push(Series { job, name, interval_s, values });
            }
        }
        Ok(())
    }

    fn trial_at<'t>(&self, run: i64, trials: &'t mut [Trial], at: i64) -> Result<&'t mut Trial, StoreError> {
        let missing =
            || StoreError::Damaged { run, what: format!("values of trial {at}, which is not there") };
        usize::try_from(at).ok().and_then(|at| trials.get_mut(at)).ok_or_else(missing)
    }

    /// Indices must point at something, or every later step would have to doubt them.
    fn check(&self, id: i64, run: &Run) -> Result<(), StoreError> {
        run.check().map_err(|what| StoreError::Damaged { run: id, what })
    }

    /// Who executes the run, as stored by [`Store::set_owner`].
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn owner(&self, id: i64) -> Result<String, StoreError> {
        self.renew(MOST_FOR_REPORT);
        let sql = "SELECT owner FROM run WHERE id = ?1";
        self.rows(id, sql, |store, row| store.get(row, 0))?.pop().ok_or_else(|| self.unknown(id))
    }

    /// (run, path) of everything some run has made and not removed.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn leftovers(&self) -> Result<Vec<(i64, String)>, StoreError> {
        self.renew(MOST_FOR_REPORT);
        let sql = "SELECT run, path FROM leftover WHERE run >= ?1 ORDER BY run, path";
        self.rows(0, sql, |store, row| Ok((store.get(row, 0)?, store.get(row, 1)?)))
    }

    /// Rows of one run.
    pub(super) fn rows<T>(
        &self,
        id: i64,
        sql: &str,
        read: impl FnMut(&Store, &Row<'_>) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        self.rows_of([id], sql, ROW_BYTES, read)
    }

    /// All rows of a statement, each of which takes `bytes` of memory besides its texts.
    pub(super) fn rows_of<T>(
        &self,
        parameters: impl rusqlite::Params,
        sql: &str,
        bytes: u64,
        mut read: impl FnMut(&Store, &Row<'_>) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        let mut statement = self.connection.prepare(sql).map_err(|e| self.at(e))?;
        let mut rows = statement.query(parameters).map_err(|e| self.at(e))?;
        let mut all = Vec::new();
        while let Some(row) = rows.next().map_err(|e| self.at(e))? {
            self.allowance.row(&self.path, row, bytes)?;
            all.push(read(self, row)?);
        }
        Ok(all)
    }

    pub(super) fn get<T: rusqlite::types::FromSql>(&self, row: &Row<'_>, at: usize) -> Result<T, StoreError> {
        row.get(at).map_err(|e| self.at(e))
    }

    fn get_json<T: DeserializeOwned>(
        &self,
        row: &Row<'_>,
        at: usize,
        run: i64,
        what: &str,
    ) -> Result<T, StoreError> {
        self.get_json_times(row, at, run, what, 8)
    }

    /// The same of a value that consists of texts: it takes hardly more memory than its JSON.
    fn get_json_of_texts<T: DeserializeOwned>(
        &self,
        row: &Row<'_>,
        at: usize,
        run: i64,
        what: &str,
    ) -> Result<T, StoreError> {
        self.get_json_times(row, at, run, what, 1)
    }

    fn get_json_times<T: DeserializeOwned>(
        &self,
        row: &Row<'_>,
        at: usize,
        run: i64,
        what: &str,
        times: u64,
    ) -> Result<T, StoreError> {
        let text = row.get_ref(at).map_err(|e| self.at(e))?;
        let text = text.as_str().map_err(|e| StoreError::Damaged { run, what: format!("{what}: {e}") })?;
        self.allowance.json(&self.path, text, times)?;
        serde_json::from_str(text).map_err(|e| StoreError::Damaged { run, what: format!("{what}: {e}") })
    }
}
