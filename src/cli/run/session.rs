//! One session of a run: makes what is needed, executes, puts everything back, prints the verdict.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use signal_hook::flag;

use super::prepare::Prepared;
use super::store_sink::StoreSink;
use super::{Args, verdict};
use crate::cli::Failure;
use crate::cli::database::wrong;
use crate::cli::progress::Progress;
use crate::launch::{self, Answer, LaunchError, Launcher, Request};
use crate::plan::Writes;
use crate::record::RunState;
use crate::run::{Ending, Execution, Limits};
use crate::store::Store;
use crate::target::{self, WorkDirectory};

/// Runs what is prepared to its end and reports it; the exit code is design's.
///
/// # Errors
/// A [`Failure`]: the store, a directory or the agent failed. Everything made is removed all the same.
pub(super) fn execute(
    args: &Args,
    store: &mut Store,
    prepared: &mut Prepared,
    cancelled: &AtomicBool,
) -> anyhow::Result<ExitCode> {
    tell_abandoned(store, prepared.run.id)?;
    let id = begin(store, prepared)?;
    let result = trials(args, store, prepared, id, cancelled);
    if result.is_err() {
        // The store may be what failed; the first error is the one to tell.
        let _ = store.set_state(id, RunState::Failed);
    }
    let put_back = put_back(store, id);
    let ending = result?;
    put_back?;
    verdict::primary_is_known(&prepared.run)?;
    let analysis = verdict::print(args, store, &prepared.run)?;
    match ending {
        Ending::Interrupted => {
            let by = signal_that_ended_it();
            Err(Failure::interrupted(format!("run {id} was interrupted{by}; everything was put back"))
                .hint(format!("assay run --resume {id}{} goes on with it", database_flag(args)))
                .into())
        }
        Ending::Hopeless | Ending::Failed => {
            let what = match (verdict::wrong_data(&prepared.run), ending) {
                (Some(wrong), _) => wrong,
                (None, Ending::Failed) => "a cell failed in two rounds running".to_owned(),
                (None, _) => "what failed would fail again".to_owned(),
            };
            let db = database_flag(args);
            Err(Failure::tool(format!("run {id} was stopped: {what}"))
                .hint(format!(
                    "assay show {id}{db} has the commands and last output{}",
                    verdict::once_mended(&prepared.run, &db)
                ))
                .into())
        }
        Ending::Finished => verdict::exit_code(args, &prepared.run, &analysis),
    }
}

/// The signal that ended the run; 0: none.
static ENDED_BY: OnceLock<Arc<AtomicUsize>> = OnceLock::new();

/// Set from the first signal on that would end this process, whatever is being done then. From now on orphans of what is started
/// become this process's children, so that it can end them.
///
/// # Errors
/// A [`Failure`]: the signals cannot be watched.
pub(super) fn cancelled() -> Result<Arc<AtomicBool>, Failure> {
    let cancelled = Arc::new(AtomicBool::new(false));
    let by = Arc::clone(ENDED_BY.get_or_init(Arc::default));
    let failed = |error| Failure::tool(format!("cannot watch for Ctrl-C: {error}"));
    for signal in launch::ending_signals() {
        // In this order: whoever sees the flag can say which signal it was.
        flag::register_usize(signal, Arc::clone(&by), signal.unsigned_abs() as usize).map_err(failed)?;
        flag::register(signal, Arc::clone(&cancelled)).map_err(failed)?;
    }
    launch::reserved_signals_are_sigterm();
    launch::adopt_orphans().map_err(failed)?;
    Ok(cancelled)
}

/// ` (SIGTERM)` after a signal has ended the run.
fn signal_that_ended_it() -> String {
    let signal = ENDED_BY.get().map_or(0, |by| by.load(Ordering::SeqCst));
    i32::try_from(signal).ok().filter(|signal| *signal > 0).map_or_else(String::new, |signal| {
        format!(" ({})", launch::signal_name(launch::as_it_was_sent(signal)))
    })
}

/// ` --db FILE` for messages, unless it is the default.
pub(super) fn database_flag(args: &Args) -> String {
    if args.database.db == Path::new("assay.db") {
        String::new()
    } else {
        format!(" --db {}", args.database.db.display())
    }
}

/// What killed runs have left is listed by the next start.
fn tell_abandoned(store: &Store, resumed: Option<i64>) -> anyhow::Result<()> {
    use std::io::Write;
    let mut told = Vec::new();
    for (run, path) in crate::cli::cleanup::abandoned(store)? {
        if Some(run) != resumed {
            writeln!(std::io::stderr(), "run {run} was killed and left {path}; `assay cleanup` removes it")?;
        }
        told.extend(Path::new(&path).canonicalize().ok());
    }
    for path in target::abandoned_targets().into_iter().filter(|path| !told.contains(path)) {
        let path = path.display();
        writeln!(
            std::io::stderr(),
            "a run was killed and left devices in {path}; `assay cleanup` removes them"
        )?;
    }
    Ok(())
}

/// Stores the run (a new one) or takes it over, with everything that will be made written down beforehand.
fn begin(store: &mut Store, prepared: &mut Prepared) -> anyhow::Result<i64> {
    let failed = |error| wrong(&error);
    let id = match prepared.run.id {
        Some(id) => {
            put_back(store, id)?;
            id
        }
        None => {
            let mut facts = crate::host::facts();
            let elsewhere =
                prepared.surroundings.targets.first().and_then(|target| target.elsewhere.as_deref());
            let place = elsewhere.or_else(|| prepared.work.first().and_then(|path| path.parent()));
            facts.0.extend(place.map(crate::host::path_facts).unwrap_or_default().0);
            prepared.facts.iter().for_each(|(name, value)| facts.set(*name, value));
            prepared.run.facts.push(facts);
            store.insert_run(&prepared.run).map_err(failed)?
        }
    };
    prepared.run.id = Some(id);
    prepared.run.state = RunState::Running;
    store.set_owner(id, &crate::host::this_process()).map_err(failed)?;
    for path in prepared.work.iter().chain(&new_files(prepared)) {
        store.add_leftover(id, &path.to_string_lossy()).map_err(failed)?;
    }
    Ok(id)
}

/// Files outside the work directories that the job names and that do not exist yet.
fn new_files(prepared: &Prepared) -> Vec<PathBuf> {
    let made_by_job =
        |path: &&PathBuf| !prepared.work.iter().any(|work| path.starts_with(work)) && !path.exists();
    prepared
        .plan
        .files
        .iter()
        .filter(|file| matches!(file.writes, Writes::Content | Writes::Layout))
        .map(|file| &file.path)
        .filter(made_by_job)
        .cloned()
        .collect()
}

fn trials(
    args: &Args,
    store: &mut Store,
    prepared: &mut Prepared,
    id: i64,
    cancelled: &AtomicBool,
) -> anyhow::Result<Ending> {
    let mut made = Vec::new();
    for path in &prepared.work {
        made.push(WorkDirectory::create(path).map_err(|error| {
            Failure::tool(error).hint("is there space left? --directory names another place")
        })?);
    }
    let mut launcher = prepared.launcher()?;
    if let Some(ahead) = launcher.forecast().filter(|_| !args.quiet) {
        use std::io::Write;
        writeln!(std::io::stderr(), "trying each target; booting {}", super::plan_text::guests(&ahead))?;
    }
    if !rehearsed(&mut launcher, prepared, cancelled)? {
        return Ok(Ending::Interrupted);
    }
    let plan = &prepared.plan;
    let limits = Limits {
        rounds: plan.rounds_at_most(),
        time_budget: plan.stop.time_budget_s.map(Duration::from_secs_f64),
        disturbance: (!prepared.keep_disturbed).then(crate::host::Limits::default),
    };
    let mut progress = Progress::new(args.quiet);
    let mut store_sink = StoreSink { store, run: id };
    let options = crate::analyse::Options::default();
    let surroundings = &prepared.surroundings;
    let ending = Execution {
        run: &mut prepared.run,
        order: &|round| plan.order(round),
        request: &|cell, round| crate::run::request(plan, surroundings, cell, round),
        launcher: &mut launcher,
        sinks: vec![&mut store_sink, &mut progress],
        decided: &mut |run| verdict::primary_is_known(run).is_err() || crate::analyse::decided(run, &options),
        cancelled,
        limits,
    }
    .execute();
    for directory in made {
        let path = directory.path().to_owned();
        tell(&directory.close().map_err(|error| not_removed(&path, &error))?);
    }
    ending.map_err(|error| Failure::tool(error).into())
}

/// Makes every target once before the first trial, so that what mkfs or the kernel refuses is said once, and at once.
/// False: interrupted.
fn rehearsed(
    launcher: &mut dyn Launcher,
    prepared: &Prepared,
    cancelled: &AtomicBool,
) -> anyhow::Result<bool> {
    let mut seen = Vec::new();
    for (cell, spec) in prepared.plan.cells.iter().enumerate() {
        let asked = crate::run::request(&prepared.plan, &prepared.surroundings, cell, 0);
        if asked.target.setup.is_none() || seen.contains(&asked.target.setup) {
            continue;
        }
        seen.push(asked.target.setup.clone());
        let asked = Request { rehearsal: true, before: None, after: None, ..asked };
        let reply = match launcher.launch(&asked, cancelled) {
            Err(LaunchError::Cancelled { .. }) => return Ok(false),
            other => other.map_err(Failure::tool)?,
        };
        let (reason, output) = match reply.answer {
            Answer::Done(_) => continue,
            Answer::Failed { reason, output, .. } => (reason, output),
            Answer::Unsupported { reason } => (reason, String::new()),
        };
        let (reason, hint) = reason.split_once("\nhint: ").unwrap_or((&reason, ""));
        let mut message = if reason.starts_with("the guest ") {
            format!("{}: {reason}", spec.label)
        } else {
            format!("the target of {} cannot be made: {reason}", spec.label)
        };
        // What is said already is not said twice.
        for line in
            output.lines().filter(|line| !line.trim().is_empty() && !reason.contains(line.trim())).take(24)
        {
            message.push_str(&format!("\n  | {line}"));
        }
        let failure = Failure::tool(message);
        return Err(if hint.is_empty() { failure } else { failure.hint(hint) }.into());
    }
    Ok(true)
}

/// Removes everything the run wrote down that it would make.
pub(super) fn put_back(store: &Store, id: i64) -> anyhow::Result<()> {
    let failed = |error| wrong(&error);
    for (_, path) in store.leftovers().map_err(failed)?.into_iter().filter(|(run, _)| *run == id) {
        tell(&target::remove(Path::new(&path)).map_err(|error| not_removed(Path::new(&path), &error))?);
        store.remove_leftover(id, &path).map_err(failed)?;
    }
    store.set_owner(id, "").map_err(failed)?;
    Ok(())
}

/// What stays because others use it.
fn tell(notes: &[String]) {
    use std::io::Write;
    for note in notes {
        let _ = writeln!(std::io::stderr(), "assay: {note}");
    }
}

fn not_removed(path: &Path, error: &std::io::Error) -> Failure {
    let hint = target::hint_of(error).unwrap_or_else(|| "assay cleanup tries again".to_owned());
    Failure::tool(format!("cannot remove {}: {error}", path.display())).hint(hint)
}
