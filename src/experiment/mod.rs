//! What a user asks for: an experiment file or a job with `--vary`, as written → validated.
//!
//! Enters: TOML text, job text, command-line values. Leaves: one [`Experiment`], complete enough to be stored and run again.
//! It must not know cells, rounds or what a key is bound to (that is plan's), nor touch anything but the files named.

mod assemble;
mod described;
mod errors;
mod toml_file;
mod toml_reader;
mod vary;
mod written;

pub use described::{
    Assignment, EngineChoice, Experiment, Factor, JobSource, Level, Namespace, Simulated, StopRule,
};
pub use errors::{ExperimentErrors, Mistake};
pub use written::CommandLine;

#[cfg(test)]
mod tests;
