//! `assay run`: experiment → plan → trials → verdict.

mod args;
mod overwrite;
mod plan_text;
mod prepare;
mod session;
mod store_sink;
mod verdict;

use std::process::ExitCode;

pub use args::Args;
use prepare::Prepared;

/// Plans, runs and judges an experiment, or goes on with one.
///
/// # Errors
/// A wrong request before anything was touched (exit code 2); a trial or tool that failed (1).
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    if let Some(file) = &args.html {
        crate::cli::output::can_be_written(file)?;
    }
    if let Some(id) = args.resume {
        let mut store = args.database.open_existing()?;
        let mut prepared = Prepared::again(args, &store, id)?;
        // What the killed session made is no obstacle; what came since then is.
        session::put_back(&store, id)?;
        overwrite::check(&prepared)?;
        return session::execute(args, &mut store, &mut prepared);
    }
    let mut prepared = Prepared::new(args)?;
    overwrite::check(&prepared)?;
    if args.plan {
        plan_text::print(&prepared)?;
        return Ok(ExitCode::SUCCESS);
    }
    prepared.tools_are_here()?;
    let mut store = args.database.open()?;
    session::execute(args, &mut store, &mut prepared)
}
