//! The command line that a stored run keeps, read again.

use clap::Parser;

use super::args::Args;
use crate::cli::bisect::args::Args as BisectArgs;
use crate::record::Run;

/// A whole command line that runs something.
#[derive(Parser)]
enum RunLine {
    Run(Box<Args>),
    Bisect(Box<BisectArgs>),
}

/// The options that a stored run was begun with; `None`: another command made it, or another assay.
pub(super) fn first_typed(run: &Run) -> Option<Args> {
    match RunLine::try_parse_from(&run.command_line).ok()? {
        RunLine::Run(args) => Some(*args),
        RunLine::Bisect(args) => Some(args.as_run()),
    }
}
