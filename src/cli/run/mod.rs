//! `assay run`: experiment → plan → trials → verdict.

mod args;
mod foreseen;
mod overwrite;
mod place;
mod plan_text;
mod prepare;
mod session;
mod source;
mod store_sink;
mod verdict;

use std::process::ExitCode;

pub use args::Args;
use prepare::Prepared;
use source::Source;

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
        foreseen::check(&prepared)?;
        return session::execute(args, &mut store, &mut prepared);
    }
    let mut all = Vec::new();
    let sources = Source::all(args)?;
    let several = sources.len() > 1;
    for source in sources {
        let part = source.recipe_name().filter(|_| several);
        let prepared = place::prepared(args, &source);
        let prepared = prepared.map_err(|failure| match part {
            Some(part) if failure.hint_text().is_none_or(|hint| hint.contains("docs/")) => {
                failure.of(part).hint(format!(
                    "`assay run {part}` is one of the recipe's runs by itself, with settings of its own"
                ))
            }
            Some(part) => failure.of(part),
            None => failure,
        })?;
        all.push((prepared, source));
    }
    if args.plan {
        for (prepared, _) in &all {
            plan_text::print(prepared, prepared.launcher()?.forecast().as_ref())?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    for (prepared, _) in &all {
        prepared.tools_are_here()?;
        foreseen::check(prepared)?;
    }
    let mut store = args.database.open()?;
    let mut code = ExitCode::SUCCESS;
    for (mut prepared, source) in all {
        let part = source.recipe_name().filter(|_| several);
        let args = part.map_or_else(|| args.clone(), |part| args.of_part(part));
        prepared.begins_now();
        let ended = session::execute(&args, &mut store, &mut prepared)?;
        if ended != ExitCode::SUCCESS {
            code = ended;
        }
    }
    Ok(code)
}
