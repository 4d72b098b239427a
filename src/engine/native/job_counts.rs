//! What one instance leaves. It crosses a process boundary, hence plain data; it must not know how it was counted.

use serde::{Deserialize, Serialize};

use super::failure::Failure;
use super::meter::DirectionCounts;
use super::usage::{Usage, Waits};
use crate::record::{Direction, LatencyHistogram, Note};

/// What one instance counted.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct JobCounts {
    pub(super) directions: Vec<DirectionCounts>,
    pub(super) sync: Option<LatencyHistogram>,
    /// Until writes were durable.
    pub(super) durable: Option<LatencyHistogram>,
    pub(super) started_ns: u64,
    /// When it was first scheduled after the common start.
    pub(super) running_ns: u64,
    pub(super) elapsed_ns: u64,
    /// Of that, the phases that only read back what was written (`verify`): no time to write in.
    pub(super) read_back_ns: u64,
    /// It reads in these phases only.
    pub(super) reads_apart: bool,
    pub(super) usage: Usage,
    pub(super) waits: Waits,
    /// What a reader of the results must know.
    pub(super) note: Option<String>,
    /// Why it ended early; what was counted until then stands.
    pub(super) failure: Option<Failure>,
    /// The depth of a `latency_target`, and whether it was found before the job ended.
    pub(super) latency_depth: Option<(u32, bool)>,
    /// What its reader should know, e.g. what the method did by itself.
    pub(super) notes: Vec<Note>,
}

impl JobCounts {
    /// How long it could transfer in that direction; fio's rates are by this time.
    pub(super) fn elapsed_of(&self, direction: Direction) -> u64 {
        match direction {
            Direction::Read if self.reads_apart => self.read_back_ns,
            Direction::Read => self.elapsed_ns,
            Direction::Write | Direction::Trim => self.elapsed_ns.saturating_sub(self.read_back_ns),
        }
    }
}
