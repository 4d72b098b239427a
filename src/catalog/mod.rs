//! What there is to choose from: a table of engines, one of filesystems and one of launchers. A row says all that other layers ask about an
//! engine, so that a new one is its file here (settings, and the parser of what its program prints), its file in `engine`, and
//! a line in the table. A new filesystem is a row. Names of observers and patches of the kernel that recipes name are here, too.
//!
//! Enters: names as written, and text that tools printed. Leaves: [`EngineKind`] with its [`EngineDescriptor`], values of
//! settings in base units, results as [`ToolTrial`]. It must not know cells, targets or how an engine runs.

mod dbench;
mod engine_descriptor;
mod engine_kind;
mod filesystem;
mod fs_mark;
mod known_program;
mod launcher_kind;
mod metric_pattern;
mod observers;
mod patches;
mod program;
mod setting;
mod table;
mod tool_output;
mod xfs_io;
mod xfs_io_script;

pub use dbench::outcomes_from_dbench;
pub use engine_descriptor::{
    EngineDescriptor, LimitedBy, Output, Reaches, Runs, SectionMetric, Settings, Together,
};
pub use engine_kind::{EngineKind, tool_names};
pub use filesystem::{Filesystem, FilesystemDescriptor, LogDevice, Mkfs, Smallest};
pub use fs_mark::outcomes_from_fs_mark;
pub use known_program::{KNOWN_PROGRAMS, KnownProgram};
pub use launcher_kind::{LauncherDescriptor, LauncherKind};
pub(crate) use metric_pattern::number_in;
pub use metric_pattern::{MetricPattern, Patterns};
pub use observers::{
    CountedEvent, OBSERVERS, OR_A_TRACEPOINT, ObserverRow, in_order, is_observer, is_tracepoint,
    metrics_of_tracepoint, named_twice, observer_names, observers_listed, server_of,
};
pub use patches::{OWN_PATCH, own_patch, own_patches};
pub use program::Program;
pub use setting::{Setting, Value};
pub use tool_output::{ToolOutputError, ToolTrial};
// What reports make of counts, by which a metric may be asked for.
pub use crate::record::{forms_of, includes_a_ramp};
// Readers of other tools' results know options by fio's own names.
pub use crate::workload::fio_option;
// When a run ends is chosen by whoever writes the experiment; the record keeps it as it was chosen.
pub use crate::record::{Deltas, MetricDelta, StopRule};
pub use xfs_io::{XfsIoTransfer, outcomes_from_xfs_io, xfs_io_outcome, xfs_io_transfers};
