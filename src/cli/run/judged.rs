//! A run from its first trial to its verdict: carried out, printed, and explained where that is asked for.

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::args::Args;
use super::conduct::database_flag;
use super::prepare::Prepared;
use super::session::{carry_out, interrupted, stopped};
use super::{operations, verdict, watched, watching};
use crate::cli::Failure;
use crate::cli::database::wrong;
use crate::record::Run;
use crate::report::Format;
use crate::run::Ending;
use crate::store::Store;
use crate::sys::terminal::tell;

/// Runs what is prepared to its end and reports it; the exit code is that of `verdict::exit_code`.
///
/// # Errors
/// A [`Failure`]: the store, a directory or the agent failed. Everything made is removed all the same.
pub(super) fn execute(
    args: &Args,
    store: &mut Store,
    prepared: &mut Prepared,
    cancelled: &AtomicBool,
) -> anyhow::Result<ExitCode> {
    let begun = Instant::now();
    let budget = prepared.plan.stop.time_budget_s.map(Duration::from_secs_f64);
    if args.explain {
        watching::keep_time(prepared);
    }
    let ending = carry_out(&args.conduct()?, store, prepared, cancelled)?;
    verdict::primary_is_known(&prepared.run)?;
    let id = prepared.run.id.unwrap_or_default();
    store.add_stacks(id, &mut prepared.run.trials).map_err(|error| wrong(&error))?;
    let run = &prepared.run;
    let explain = args.explain && ending == Ending::Finished;
    // People read the verdict meanwhile; a document for programs is one, and waits.
    let waits = explain && args.format != Format::Text;
    let analysis = verdict::of(args, store, run);
    let afterwards = |store: &mut Store| {
        let left = budget.map(|budget| budget.saturating_sub(begun.elapsed()));
        watched::afterwards(args, store, run, &analysis, cancelled, left)
    };
    let mut watched = if waits { afterwards(store) } else { Ok(None) };
    verdict::print(args, store, run, &analysis, seen(&watched))?;
    let code = match ended_early(ending, run, args) {
        Ok(()) => match verdict::exit_code(args, run, &analysis) {
            // What is wrong besides comes first.
            Ok(code) if code == ExitCode::SUCCESS => {
                operations::are_enough(run).map(|()| code).map_err(Into::into)
            }
            other => other,
        },
        Err(failure) => Err(failure.into()),
    };
    if explain && !waits && code.is_ok() {
        watched = afterwards(store);
        if let Some(watched) = seen(&watched) {
            verdict::explain(args, run, &analysis, watched)?;
        }
    } else if args.explain && !waits && ending != Ending::Interrupted {
        watched::say_not_explained(id, &args.database.db)?;
    }
    // Written once, with all that was seen, and also where nothing could be.
    verdict::page(args, run, &analysis, seen(&watched))?;
    match (watched, code) {
        // A gate reads the verdict, which watching has no part in.
        (Err(error), Ok(code)) if args.fail_if.is_some() && !cancelled.load(Ordering::SeqCst) => {
            tell(&format!("assay: {error:#}"));
            Ok(code)
        }
        (Err(error), _) => Err(error),
        (Ok(_), code) => code,
    }
}

/// The run that has watched, if one has.
fn seen(watched: &anyhow::Result<Option<Run>>) -> Option<&Run> {
    watched.as_ref().ok().and_then(Option::as_ref)
}

/// Refuses to call a run done that did not come to its own end.
///
/// # Errors
/// A [`Failure`] that says what ended it, and how it goes on.
fn ended_early(ending: Ending, run: &Run, args: &Args) -> Result<(), Failure> {
    let (id, db) = (run.id.unwrap_or_default(), database_flag(&args.database.db));
    let gate = args.fail_if.map(|gate| format!(" --fail-if {}", gate.name())).unwrap_or_default();
    match ending {
        Ending::Finished => Ok(()),
        Ending::Interrupted => {
            Err(interrupted(run).hint(format!("assay run --resume {id}{db}{gate} goes on with it")))
        }
        Ending::Hopeless | Ending::Failed => {
            let mended = match verdict::once_mended(run, &db) {
                lasting if !lasting.is_empty() => lasting,
                _ => format!("; assay run --resume {id}{db}{gate} goes on with it"),
            };
            Err(stopped(ending, run)
                .hint(format!("assay show {id}{db} has the commands and last output{mended}")))
        }
    }
}
