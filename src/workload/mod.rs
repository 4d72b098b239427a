//! The fio job language, and what any engine is asked to do.
//!
//! Enters: the text of a fio job file. Leaves: a [`Workload`] of typed [`Job`]s, its [`Instance`]s (one a clone, with the
//! files and regions it touches), and pure generators of offsets. It must not know engines, factors or records, and
//! touches no file but those an `include` names.

mod content;
mod deciding_metric;
mod draft;
mod errors;
mod fio_effects;
mod fio_engines;
mod fio_options;
mod hint;
mod instance;
mod issue;
mod job;
mod job_file;
mod metric_advice;
mod named_values;
mod nearest;
mod offsets;
mod pace;
mod pattern_text;
mod placement;
mod quantile;
mod resolve;
mod tolerated;
mod values;
pub mod variables;

pub use content::{BufferFill, BufferMemory, PatternPart, Redundancy, Verify, VerifyMethod};
pub use deciding_metric::{deciding_metrics, other_direction};
pub use errors::{Place, Problem, ProblemKind, WorkloadErrors, list_shortly, shortened};
pub use fio_effects::{Elsewhere, FioEffects, FioRefusal};
pub use fio_engines::FioEngine;
pub use fio_options::{Effect, FioOption, Takes, fio_option, fio_option_names};
pub use hint::Hint;
pub use instance::{FileRegion, Instance};
pub use issue::{Depth, IoMethod, MethodOptions};
pub use job::{
    Access, BlockRange, BlockSizes, CpuPolicy, Durability, Fallocate, Job, Mix, NumaMemory, Pattern,
    RangeSync, SeedRule, SyncMode, Workload,
};
pub use job_file::{JobFile, Section, Setting};
pub use metric_advice::metric_advice;
pub use nearest::nearest;
pub use offsets::{DataDirection, DirectionChoice, FileChoice, Offsets, SplitMix};
pub use pace::{LatencyTarget, Rate, RateLimit, RateProcess, ThinkTime};
pub use placement::{BlockShare, Distribution, FileOrder, FileService, Zone, ZoneSize};
pub use quantile::{operations_for, quantile_of};

#[cfg(test)]
mod property_tests;
