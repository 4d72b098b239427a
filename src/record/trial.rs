//! One execution of one cell.

use serde::{Deserialize, Serialize};

use super::{FailureKind, KeptFile, LatencyHistogram, Note, Sample};

/// What an engine delivers for one trial.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Scalar results.
    pub samples: Vec<Sample>,
    /// Latency histograms, all kept.
    pub histograms: Vec<LatencyHistogram>,
    /// Values over time.
    pub series: Vec<Series>,
    /// Things a reader must know.
    pub notes: Vec<Note>,
}

/// Values over the time of one trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// The job or group; empty for the whole trial.
    pub job: String,
    /// What, e.g. `write.bw`.
    pub name: String,
    /// Seconds a value covers.
    pub interval_s: f64,
    /// One value an interval, in the metric's base unit.
    pub values: Vec<f64>,
}

/// How a trial ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It ran; its values count.
    #[default]
    Done,
    /// It failed.
    Failed {
        /// Whether it may be tried again.
        #[serde(default)]
        kind: FailureKind,
        /// What went wrong, one line.
        reason: String,
        /// The command that failed, to repeat by hand.
        command: String,
        /// The last output of it.
        output: String,
    },
    /// It could not be run here, and why.
    Skipped {
        /// The engine's reason.
        reason: String,
    },
}

impl Status {
    /// A failure of which nothing else is known.
    #[must_use]
    pub fn failed(kind: FailureKind, reason: impl Into<String>) -> Status {
        Status::Failed { kind, reason: reason.into(), command: String::new(), output: String::new() }
    }
}

/// One execution of one cell, as stored.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// Index into `Run::cells`.
    pub cell: u32,
    /// Round, from 0. Imported results count repeats of a cell here.
    pub round: u32,
    /// Place within the round, from 0.
    pub position: u32,
    /// 0, and one more for each that follows: after a failure that may have been of the moment, and when a resumed run tries again
    /// what failed in an earlier session in a way that would have come again then.
    pub attempt: u32,
    /// Start, nanoseconds since the Unix epoch; 0 when unknown.
    pub started_unix_ns: u64,
    /// Wall time of the whole trial in seconds.
    pub elapsed_s: f64,
    /// Index into `Run::facts`.
    pub facts: Option<u32>,
    /// How it ended.
    pub status: Status,
    /// The rule fixed beforehand by which its round was thrown out.
    pub excluded: Option<String>,
    /// Values: index into `Run::metrics`, value in that metric's base unit.
    pub values: Vec<(u32, f64)>,
    /// Latency histograms.
    pub histograms: Vec<LatencyHistogram>,
    /// Values over time.
    pub series: Vec<Series>,
    /// The engine's notes.
    pub notes: Vec<Note>,
    /// Files that its hooks and observers left, and what hooks printed; a stored run is read without them unless they are asked for, a report
    /// reads stacks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<KeptFile>,
}

impl Trial {
    /// The value of the metric with this index.
    #[must_use]
    pub fn value(&self, metric: u32) -> Option<f64> {
        self.values.iter().find(|(index, _)| *index == metric).map(|(_, value)| *value)
    }

    /// Whether no further attempt at it follows in its session: done, skipped, failed for the second time or in a way that
    /// would come again.
    #[must_use]
    pub fn is_final(&self) -> bool {
        match &self.status {
            Status::Failed { kind, .. } => self.attempt >= 1 || !kind.is_tried_again(),
            Status::Done | Status::Skipped { .. } => true,
        }
    }

    /// Whether it failed in a way that would come again.
    #[must_use]
    pub fn is_lasting(&self) -> bool {
        matches!(self.status, Status::Failed { kind: FailureKind::Lasting, .. })
    }

    /// Whether it failed, and not certainly for a reason outside of it.
    #[must_use]
    pub fn failed_itself(&self) -> bool {
        matches!(self.status, Status::Failed { kind, .. } if kind != FailureKind::Outside)
    }

    /// Whether its values may be judged.
    #[must_use]
    pub fn counts(&self) -> bool {
        self.status == Status::Done && self.excluded.is_none()
    }
}
