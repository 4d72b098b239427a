//! What happens during a run, told to whoever listens.

use crate::record::Run;

/// Something that happened. Sinks get the run as it is at that moment.
#[derive(Clone, Copy, Debug)]
pub enum Event<'r> {
    /// A run begins, or goes on after `--resume`.
    RunBegins {
        /// The run.
        run: &'r Run,
        /// Most trials that are still to come.
        trials_left: u64,
    },
    /// The trial that leads into a round is about to start.
    LeadInBegins {
        /// The run.
        run: &'r Run,
        /// Index into `Run::cells`.
        cell: u32,
        /// From 0.
        round: u32,
    },
    /// That trial ended, however; it is `run.lead_ins[index]`.
    LeadInEnds {
        /// The run.
        run: &'r Run,
        /// Index into `Run::lead_ins`.
        index: usize,
    },
    /// A trial is about to start.
    TrialBegins {
        /// The run.
        run: &'r Run,
        /// Index into `Run::cells`.
        cell: u32,
        /// From 0.
        round: u32,
        /// From 0.
        attempt: u32,
    },
    /// A trial ended, however; it is `run.trials[index]`.
    TrialEnds {
        /// The run.
        run: &'r Run,
        /// Index into `Run::trials`.
        index: usize,
        /// Most trials that are still to come.
        trials_left: u64,
    },
    /// All trials of a round have ended.
    RoundEnds {
        /// The run.
        run: &'r Run,
        /// From 0.
        round: u32,
    },
    /// A round was thrown out, for some rows or for all, by the rule fixed beforehand.
    RoundExcluded {
        /// The run.
        run: &'r Run,
        /// From 0.
        round: u32,
        /// The cells of these rows: indices into `Run::cells`.
        cells: &'r [u32],
        /// The rule and what it saw.
        rule: &'r str,
    },
    /// The run is over; its state and notes are final.
    RunEnds {
        /// The run.
        run: &'r Run,
    },
}

/// Why a sink could not take an event: the run ends, because a lost trial is worse than none.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct SinkError(pub Box<dyn std::error::Error + Send + Sync>);

/// Takes events: a terminal, a store, a log.
pub trait Sink {
    /// Takes one event.
    ///
    /// # Errors
    /// [`SinkError`] ends the run.
    fn event(&mut self, event: &Event<'_>) -> Result<(), SinkError>;
}
