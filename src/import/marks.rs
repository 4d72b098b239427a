//! Columns of a table beside arms, rows and results: which trials belong together, and when each began.
//!
//! Enters: a table, what was asked for. Leaves: marks and start of each observation. Whether the marks make clusters is for
//! [`super::clusters`].

use std::sync::Arc;

use super::clusters::Clusters;
use super::columns::Columns;
use super::csv_table::Table;
use super::error::{ImportError, Problem};
use super::observation::{Batch, Observation};
use super::time_stamps;

/// Columns that say which trials belong together and when one began.
pub(super) struct Marks {
    clusters: Vec<(usize, Arc<str>)>,
    time: Option<(usize, String)>,
}

impl Marks {
    /// `taken` are the columns that hold arms and results.
    ///
    /// # Errors
    /// The column of `--cluster` is not there, or is one of those.
    pub(super) fn of(
        table: &Table<'_>,
        columns: &Columns,
        taken: &[usize],
        batch: &mut Batch,
    ) -> Result<Marks, ImportError> {
        if let Clusters::By(name) = &columns.clusters {
            let at = table.column(name)?;
            if taken.contains(&at) {
                return Err(ImportError::new(table.origin, Problem::ClusterTaken { name: name.clone() }));
            }
        }
        let free = |at: &usize| !taken.contains(at);
        let all = 0..table.headers.len();
        let time = |at: &usize| {
            let header = &table.headers[*at];
            let mut fields = table.rows.iter().map(|(_, record)| record.get(*at).unwrap_or(""));
            time_stamps::may_be(header)
                && !columns.rows.contains(header)
                && columns.clusters != Clusters::By(header.clone())
                && fields.all(|field| time_stamps::start(header, field).is_some())
        };
        let time = all.clone().filter(free).find(time);
        if let Some(at) = time {
            batch.note(format!("column '{}' is taken as the time at which a trial began", table.headers[at]));
        }
        let wanted = |at: &usize| {
            let header = &table.headers[*at];
            columns.clusters.wants(header, columns.rows.contains(header))
        };
        let clusters = all.filter(|at| free(at) && Some(*at) != time).filter(wanted);
        let time = time.map(|at| (at, table.headers[at].clone()));
        Ok(Marks { clusters: clusters.map(|at| (at, table.headers[at].as_str().into())).collect(), time })
    }

    /// Marks the observation of a line.
    pub(super) fn put(&self, record: &csv::StringRecord, observation: &mut Observation) {
        let field = |at: usize| record.get(at).unwrap_or("");
        observation.marks =
            self.clusters.iter().map(|(at, name)| (name.clone(), field(*at).to_owned())).collect();
        observation.started_unix_ns =
            self.time.as_ref().and_then(|(at, name)| time_stamps::start(name, field(*at))).unwrap_or(0);
    }

    /// The columns that are used so.
    pub(super) fn columns(&self) -> impl Iterator<Item = usize> {
        self.clusters.iter().map(|(at, _)| *at).chain(self.time.as_ref().map(|(at, _)| *at))
    }
}
