//! `assay run`: experiment → plan → trials → verdict.

mod among;
pub(super) mod args;
pub(super) mod arms;
mod beforehand;
mod buffered;
mod busy;
mod conduct;
mod decidable;
mod early;
mod exercised;
mod extended;
mod foreseen;
mod found_kernels;
mod judged;
mod kernels;
mod left_out;
mod more;
pub(super) mod operations;
mod overwrite;
mod place;
mod plan_text;
mod planned;
mod prepare;
mod reach;
mod rehearsal;
mod room;
mod search;
mod search_trials;
mod session;
mod several;
mod source;
mod store_sink;
mod teller;
pub(super) mod time_left;
mod trust;
mod typed;
mod verdict;
mod watched;
mod watching;

use std::io::Write;
use std::process::ExitCode;

pub use args::Args;
pub(super) use arms::Arms;
pub(super) use conduct::{Conduct, database_flag};
use extended::Extended;
pub(super) use kernels::BuiltEnds;
pub(super) use kernels::ended_by;
use more::More;
use prepare::Prepared;
pub(super) use search::Search;
use several::Part;
pub(super) use watched::{Watched, Wish, say_not_here, says_that_nothing_differs, watch};
pub(super) use watching::ROUNDS;

use crate::cli::Failure;
use crate::cli::named_run::already_there;
use crate::store::Store;

/// Plans, runs and judges an experiment, or goes on with one.
///
/// # Errors
/// A wrong request before anything was touched (exit code 2); a trial or tool that failed (1).
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    args.file()?.map_or(Ok(()), |(file, _)| file.check())?;
    arguments_can_be_kept()?;
    args.conduct()?;
    if args.resume.is_some() || !args.more.is_empty() {
        let mut store = args.database.open_existing()?;
        let more = More::asked(args, &store)?;
        let id = match (more, &args.resume) {
            (Some(more), _) => more.run,
            (None, name) => args.database.number(&store, name.as_deref().unwrap_or_default())?,
        };
        let mut prepared = Prepared::again(args, &store, id)?;
        if prepared.run.design.bisects.is_some() {
            return Err(Failure::request(format!("run {id} is a search"))
                .hint(format!("assay bisect --resume {id} goes on with it"))
                .into());
        }
        let ours = trust::is_ours(&store, &prepared.run)?;
        if let Some(more) = more {
            more::extend(&mut prepared, more);
            prepared.extended = Some(Extended { sealed: ours });
        }
        if !ours {
            if !args.trust {
                return Err(trust::refusal(&store, id, more.map(|more| more.rounds)).into());
            }
            trust::say_all(&prepared)?;
        }
        prepared.same_devices()?;
        // What the killed session made is no obstacle; what came since then is.
        session::undo_killed(&store, id, &args.database.db)?;
        prepared.look_again();
        let _claims = overwrite::claim([&prepared])?;
        overwrite::settings_are_free([&prepared])?;
        overwrite::check(&prepared)?;
        foreseen::check(&prepared)?;
        return judged::execute(args, &mut store, &mut prepared, &*session::cancelled()?);
    }
    let mut all = several::prepared(args)?;
    if args.plan {
        return print_plans(&mut all);
    }
    args.database.can_be_opened()?;
    for (_, prepared) in &all {
        can_begin(prepared, args.quiet)?;
    }
    // Until the last part has ended.
    let _claims = overwrite::claim(all.iter().map(|(_, prepared)| prepared))?;
    overwrite::settings_are_free(all.iter().map(|(_, prepared)| prepared))?;
    let cancelled = session::cancelled()?;
    for (_, prepared) in &mut all {
        // Before there is a run: what does not apply or compile leaves nothing behind.
        kernels::build(prepared, args.quiet, &cancelled)?;
        overwrite::check_devices(prepared)?;
    }
    let mut store = args.database.open()?;
    for (part, _) in &all {
        say_name_is_taken(&part.args, &store);
    }
    if all.len() > 1 {
        return several::execute(args, all, &mut store, &cancelled);
    }
    let (part, mut prepared) = all.remove(0);
    prepared.begins_now();
    judged::execute(&part.args, &mut store, &mut prepared, &cancelled)
}

/// Says that the store has a run of the name that this one is to get: later that name may mean either.
fn say_name_is_taken(args: &Args, store: &Store) {
    let name = args.asked.name.as_deref().filter(|_| !args.quiet);
    if let Some(said) = name.and_then(|name| already_there(store, name)) {
        crate::sys::terminal::tell(&format!("assay: {said}"));
    }
}

/// Prints what would be run, one after the other.
fn print_plans(all: &mut [(Part, Prepared)]) -> anyhow::Result<ExitCode> {
    let several = all.len() > 1;
    let mut longest_s = Vec::new();
    for (part, prepared) in all {
        longest_s.push(print_plan(&part.args, prepared)?);
        if several {
            writeln!(crate::sys::terminal::out())?;
        }
    }
    if several {
        plan_text::print_all(&longest_s)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints what would be run, and what explaining it would add; returns the longest time that takes, where it is known.
fn print_plan(args: &Args, prepared: &mut Prepared) -> anyhow::Result<Option<f64>> {
    foreseen::events(prepared)?;
    let kernels = prepared.kernels.planned(&prepared.plan, &prepared.surroundings)?;
    let explain = args.explain && !prepared.run.aa;
    if explain {
        watching::keep_time(prepared);
    }
    Ok(plan_text::print(prepared, prepared.launcher()?.forecast().as_ref(), explain, &kernels)?)
}

/// Looks for what is in the way of a run, and warns of one that can show nothing.
fn can_begin(prepared: &Prepared, quiet: bool) -> anyhow::Result<()> {
    prepared.tools_are_here()?;
    foreseen::check(prepared)?;
    let few = reach::too_few(&prepared.plan).map(|why| format!("warning: {why}"));
    for line in few.into_iter().chain(foreseen::unwatched(prepared)).filter(|_| !quiet) {
        crate::sys::terminal::tell(&line);
    }
    Ok(())
}

/// A run keeps its command line as text, to be repeated and resumed by it.
pub(super) fn arguments_can_be_kept() -> Result<(), Failure> {
    match std::env::args_os().find(|word| word.to_str().is_none()) {
        Some(word) => Err(Failure::request(format!(
            "the argument '{}' is not UTF-8, and a run keeps its command line as text",
            word.to_string_lossy()
        ))
        .hint("rename the file, or go to its directory and give a name below it")),
        None => Ok(()),
    }
}
