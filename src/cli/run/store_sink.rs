//! The store as a sink: each trial is committed the moment it ends.

use crate::run::{Event, Sink, SinkError};
use crate::store::{Store, StoreError};

/// Writes one run's events.
pub(super) struct StoreSink<'s> {
    pub(super) store: &'s mut Store,
    pub(super) run: i64,
}

impl Sink for StoreSink<'_> {
    fn event(&mut self, event: &Event<'_>) -> Result<(), SinkError> {
        self.write(event).map_err(|error| SinkError(Box::new(error)))
    }
}

impl StoreSink<'_> {
    fn write(&mut self, event: &Event<'_>) -> Result<(), StoreError> {
        match event {
            Event::LeadInEnds { run, index } => self.store.append_lead_in(self.run, run, *index),
            Event::TrialEnds { run, index, .. } => self.store.append_trial(self.run, run, *index),
            Event::RoundExcluded { round, cells, rule, .. } => {
                self.store.exclude_round(self.run, *round, cells, rule)
            }
            Event::RunEnds { run } => {
                self.store.set_notes(self.run, &run.notes)?;
                self.store.set_state(self.run, run.state)
            }
            Event::RunBegins { run, .. } => self.store.set_state(self.run, run.state),
            Event::LeadInBegins { .. } | Event::TrialBegins { .. } | Event::RoundEnds { .. } => Ok(()),
        }
    }
}
