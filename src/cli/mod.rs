//! One file a subcommand: wires parts, decides nothing.

pub mod doctor;
mod failure;

use std::process::ExitCode;

pub use failure::Failure;

/// Parses the command line, runs the subcommand and returns assay's exit code.
pub fn main() -> ExitCode {
    ExitCode::SUCCESS
}
