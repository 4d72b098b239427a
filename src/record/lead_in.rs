//! The trial that leads into a round: it leaves behind the same for all that are judged, and is not judged itself.

use serde::{Deserialize, Serialize};

/// A lead-in, as stored. Its cell is the one that goes first in its round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LeadIn {
    /// Index into `Run::cells`.
    pub cell: u32,
    /// Round, from 0.
    pub round: u32,
    /// Start, nanoseconds since the Unix epoch.
    pub started_unix_ns: u64,
    /// Wall time in seconds.
    pub elapsed_s: f64,
    /// Why it failed; its round counts all the same.
    pub failed: Option<String>,
    /// It failed because data were not what was written, which fails the run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub wrong_data: bool,
    /// Values, from which the carry-over is estimated: index into `Run::metrics`, value in that metric's base unit.
    pub values: Vec<(u32, f64)>,
}
