//! One file a subcommand: wires parts, decides nothing.

use std::process::ExitCode;

/// Parses the command line, runs the subcommand and returns assay's exit code.
pub fn main() -> ExitCode {
    ExitCode::SUCCESS
}
