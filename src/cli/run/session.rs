//! One session of a run: makes what is needed, executes, puts everything back, prints the verdict.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use signal_hook::flag;

use super::conduct::{Conduct, database_flag};
use super::overwrite::settings;
use super::prepare::{Prepared, take_over};
use super::store_sink::StoreSink;
use super::time_left::{Planned, TimeLeft};
use super::{busy, more, rehearsal, search_trials, verdict};
use crate::cli::Failure;
use crate::cli::database::wrong;
use crate::cli::named_run::{name_of, of_this_store};
use crate::cli::progress::Progress;
use crate::launch;
use crate::record::{HostFacts, Note, NoteKind, Run, RunState};
use crate::run::{Ending, Execution, Limits, RunError};
use crate::store::Store;
use crate::sys::terminal::visible_line;
use crate::target::{self, Session, TargetError, WorkDirectory};

/// A run that a signal ended.
pub(super) fn interrupted(run: &Run) -> Failure {
    let (id, by) = (run.id.unwrap_or_default(), signal_that_ended_it());
    Failure::interrupted(format!("run {id} was interrupted{by}; everything was put back"))
}

/// A run that ended because its trials fail.
pub(super) fn stopped(ending: Ending, run: &Run) -> Failure {
    let what = match (verdict::wrong_data(run), ending) {
        (Some(wrong), _) => wrong,
        (None, Ending::Failed) => "a cell kept failing".to_owned(),
        (None, _) => "what failed would fail again".to_owned(),
    };
    Failure::tool(format!("run {} was stopped: {what}", run.id.unwrap_or_default()))
}

/// Runs what is prepared to its end; nothing is judged.
///
/// # Errors
/// A [`Failure`]: the store, a directory or the agent failed. Everything made is removed all the same.
pub(super) fn carry_out(
    conduct: &Conduct<'_>,
    store: &mut Store,
    prepared: &mut Prepared,
    cancelled: &AtomicBool,
) -> anyhow::Result<Ending> {
    tell_abandoned(conduct, store)?;
    super::kernels::build(prepared, conduct.quiet, cancelled)?;
    busy::look(conduct, prepared, cancelled)?;
    let is_new = prepared.run.id.is_none();
    let (id, made) = match (begin(conduct, store, prepared), prepared.run.id) {
        (Err(error), Some(id)) if is_new => {
            failed_for(store, id, &mut prepared.run, &error);
            let _ = forget(store, id, prepared, true);
            return Err(error);
        }
        (other, _) => other?,
    };
    let result = trials(conduct, store, prepared, id, cancelled);
    // First of all, and whatever failed before or fails meanwhile: what was made is put back.
    let put_back = put_back(made);
    if let Err(error) = &result {
        failed_for(store, id, &mut prepared.run, error);
    }
    let forgotten = forget(store, id, prepared, put_back.is_ok());
    let ending = result?;
    put_back?;
    forgotten?;
    Ok(ending)
}

/// Stores that the run has failed, and why: `assay show` prints it with the notes of the run.
fn failed_for(store: &Store, id: i64, run: &mut Run, error: &anyhow::Error) {
    // How an earlier session ended is not how this one does.
    run.notes.retain(|note| note.kind != NoteKind::Ending);
    let why = format!("{error:#}").lines().map(str::trim).collect::<Vec<_>>().join(" ");
    run.notes.push(Note::ending(format!("it failed: {why}")));
    // The store may be what failed; the first error is the one to tell.
    let _ = store.set_state(id, RunState::Failed);
    let _ = store.set_notes(id, &run.notes);
}

/// The signal that ended the run; 0: none.
static ENDED_BY: OnceLock<Arc<AtomicUsize>> = OnceLock::new();

/// What a signal sets: one for all, so that none is lost between what is built and what is run.
static CANCELLED: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// Set from the first signal on that would end this process, whatever is being done then. From now on orphans of what is started
/// become this process's children, so that it can end them.
///
/// # Errors
/// A [`Failure`]: the signals cannot be watched.
pub(super) fn cancelled() -> Result<Arc<AtomicBool>, Failure> {
    if let Some(known) = CANCELLED.get() {
        return Ok(Arc::clone(known));
    }
    let cancelled = Arc::clone(CANCELLED.get_or_init(Arc::default));
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

/// What killed runs have left is listed by the next start.
fn tell_abandoned(conduct: &Conduct<'_>, store: &Store) -> anyhow::Result<()> {
    use std::io::Write;
    let mut told = crate::sys::terminal::err();
    let (left, unread) = target::abandoned();
    let mut elsewhere: Vec<&str> = Vec::new();
    for one in left.iter().filter(|one| !one.is_gone()) {
        let run = of_this_store(one.run(), conduct.db);
        if run == one.run() {
            elsewhere.push(run);
            continue;
        }
        for path in one.paths() {
            writeln!(
                told,
                "{run} was killed and left {}; `assay cleanup` removes it",
                visible_line(&path.to_string_lossy())
            )?;
        }
    }
    elsewhere.sort_unstable();
    elsewhere.dedup();
    match elsewhere[..] {
        [] => {}
        [run] => {
            writeln!(
                told,
                "{} was killed and left something; `assay cleanup` removes it",
                visible_line(run)
            )?;
        }
        _ => writeln!(
            told,
            "{} runs of other stores were killed and left something; `assay cleanup --dry-run` lists it",
            elsewhere.len()
        )?,
    }
    unread.iter().try_for_each(|reason| writeln!(told, "assay: {reason}"))?;
    let named = crate::cli::cleanup::unrecorded(store)?;
    for (run, path) in named.iter().filter(|(_, path)| Path::new(path).join(target::MARK).is_file()) {
        writeln!(told, "run {run} seems to have left {}; `assay cleanup` says more", visible_line(path))?;
    }
    Ok(())
}

/// Stores the run (a new one) or takes it over, with everything that will be made recorded beforehand.
fn begin(
    conduct: &Conduct<'_>,
    store: &mut Store,
    prepared: &mut Prepared,
) -> anyhow::Result<(i64, Vec<WorkDirectory>)> {
    let failed = |error| wrong(&error);
    let id = match prepared.run.id {
        Some(id) => id,
        None => insert(store, prepared)?,
    };
    prepared.run.id = Some(id);
    prepared.run.state = RunState::Running;
    let files = prepared.absent.clone();
    for path in prepared.work.iter().chain(&files) {
        store.add_leftover(id, &path.to_string_lossy()).map_err(failed)?;
    }
    let session = Session::new(&name_of(id, conduct.db)).map_err(|error| cannot_make(&error))?;
    let mut made = Vec::new();
    for (number, path) in prepared.work.iter().enumerate() {
        let own = if number == 0 { files.as_slice() } else { &[] };
        made.push(WorkDirectory::create_for(path, &session, own).map_err(|error| cannot_make(&error))?);
    }
    // Nothing has been set yet. Of several runs that begin at this moment one goes on.
    if let Some(first) = made.first() {
        first.hold_settings(&settings(prepared)?).map_err(|error| cannot_make(&error))?;
    }
    // From here on others see that it lives; of two that go on with one run at once only one comes to this.
    take_over(store, prepared, id, session.token())?;
    if let Some(extended) = prepared.extended {
        more::keep(store, &prepared.run, id, extended)?;
    }
    Ok((id, made))
}

fn cannot_make(error: &TargetError) -> Failure {
    let hint = Some(error.hint()).filter(|hint| !hint.is_empty());
    let failure = match error {
        TargetError::Refused(_) | TargetError::Unavailable { .. } => Failure::request(error),
        _ => Failure::tool(error),
    };
    failure.hint(hint.unwrap_or_else(|| "is there space left? --directory names another place".to_owned()))
}

/// Facts of this machine, and of the place where the trials work.
pub(super) fn facts_here(prepared: &Prepared) -> HostFacts {
    let mut facts = crate::host::facts();
    let elsewhere = prepared.surroundings.targets.first().and_then(|target| target.elsewhere.as_deref());
    let place = elsewhere.or_else(|| prepared.work.first().and_then(|path| path.parent()));
    facts.extend(place.map(crate::host::path_facts).unwrap_or_default());
    facts
}

fn insert(store: &mut Store, prepared: &mut Prepared) -> anyhow::Result<i64> {
    let mut facts = facts_here(prepared);
    prepared.facts.iter().for_each(|(name, value)| facts.set(*name, value));
    prepared.run.facts.push(facts);
    let devices: Vec<String> =
        prepared.claimed.iter().map(serde_json::to_string).collect::<Result<_, _>>()?;
    let seal = super::trust::seal(&prepared.run, &devices);
    let id = store.begin_run(&prepared.run, &seal, &devices).map_err(|error| wrong(&error))?;
    prepared.run.id = Some(id);
    Ok(id)
}

fn trials(
    conduct: &Conduct<'_>,
    store: &mut Store,
    prepared: &mut Prepared,
    id: i64,
    cancelled: &AtomicBool,
) -> anyhow::Result<Ending> {
    if let Some(arms) = prepared.arms.take() {
        return search_trials::trials(conduct, store, prepared, arms, id, cancelled);
    }
    let begun = Instant::now();
    let mut launcher = prepared.launcher()?;
    if let Some(ahead) = launcher.forecast().filter(|_| !conduct.quiet) {
        use std::io::Write;
        writeln!(
            crate::sys::terminal::err(),
            "trying each target; booting {}",
            super::plan_text::guests(&ahead)
        )?;
    }
    let Some(rehearsals_s) = rehearsal::rehearsed(launcher.as_mut(), prepared, conduct.quiet, cancelled)?
    else {
        return Ok(Ending::Interrupted);
    };
    let plan = &prepared.plan;
    let limits = Limits {
        rounds: plan.rounds_at_most(),
        // Booting and trying the targets is part of the time.
        time_budget: plan
            .stop
            .time_budget_s
            .map(|s| Duration::from_secs_f64(s).saturating_sub(begun.elapsed())),
        disturbance: (!prepared.keep_disturbed).then(crate::host::Limits::default),
    };
    let expected = busy::with_guests(prepared.expected, launcher.forecast().as_ref());
    // A target that took longer to make than most takes as long again.
    let longer =
        |cell: usize| rehearsals_s[cell].map_or(0.0, |s| (s - plan.rehearsal_s(cell, &expected)).max(0.0));
    let trials = plan.longest_trials_s(&expected).into_iter().enumerate();
    let planned = Planned {
        trials_s: trials.map(|(cell, trial_s)| Some(trial_s? + longer(cell))).collect(),
        boots_s: expected.boots_s,
        rounds_for_one: expected.rounds_for_one,
        budget: limits.time_budget,
    };
    let mut progress = Progress::new(conduct.quiet, TimeLeft::new(planned));
    let mut store_sink = StoreSink { store, run: id };
    let options = crate::analyse::Options { beyond_delta: conduct.beyond_delta, ..Default::default() };
    let surroundings = &prepared.surroundings;
    // Rounds that were asked for one by one are all done, whatever is decided meanwhile.
    let all = prepared.run.design.extended;
    let ending = Execution {
        run: &mut prepared.run,
        order: &|round| plan.order(round),
        lead_in: &|round| plan.lead_in(round),
        request: &|cell, round| crate::run::request(plan, surroundings, cell, round),
        launcher: launcher.as_mut(),
        sinks: vec![&mut store_sink, &mut progress],
        decided: &mut |run| {
            verdict::primary_is_known(run).is_err()
                || (!all
                    && (super::operations::are_enough(run).is_err()
                        || crate::analyse::decided(run, &options)))
        },
        cancelled,
        limits,
    }
    .execute();
    ending.map_err(|error| {
        match error {
            // The disk is full, most often.
            RunError::Sink(_) => {
                let resumed = format!("assay run --resume {id}{}", database_flag(conduct.db));
                Failure::tool(error)
                    .hint(format!("when the store can be written again, {resumed} goes on with what it has"))
            }
            RunError::Launch(_) => Failure::tool(error),
        }
        .into()
    })
}

/// Undoes what killed sessions of a run have left, as this user's own records say: the one that had the run, and any that was
/// killed before it was the run's owner.
pub(super) fn undo_killed(store: &Store, id: i64, db: &Path) -> anyhow::Result<()> {
    let owner = store.owner(id).map_err(|error| wrong(&error))?;
    let run = name_of(id, db);
    let of_run = |one: &target::Abandoned| (!owner.is_empty() && one.session() == owner) || one.run() == run;
    for one in target::abandoned().0.into_iter().filter(of_run) {
        match one.remove() {
            Ok(notes) => tell(&notes),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                let what = format!("another process puts back what run {id} has left at this moment");
                return Err(Failure::request(what).hint("wait for it, then look at `assay list`").into());
            }
            Err(error) => return Err(not_removed(one.work(), &error).into()),
        }
    }
    Ok(())
}

/// Removes everything that was made; one that cannot be removed keeps no other from it.
fn put_back(made: Vec<WorkDirectory>) -> Result<(), Failure> {
    let mut failed = None;
    for directory in made {
        let path = directory.path().to_owned();
        match directory.close() {
            Ok(notes) => tell(&notes),
            Err(error) => failed = failed.or(Some(not_removed(&path, &error))),
        }
    }
    failed.map_or(Ok(()), Err)
}

/// Takes what was made in this session, or is gone, out of the store, and the run's owner. What is at one of these paths and is not
/// assay's has been named.
fn forget(store: &Store, id: i64, prepared: &Prepared, all_is_gone: bool) -> anyhow::Result<()> {
    let failed = |error| wrong(&error);
    let of_session = |path: &Path| prepared.work.iter().chain(&prepared.absent).any(|made| made == path);
    for (_, path) in store.leftovers().map_err(failed)?.into_iter().filter(|(run, _)| *run == id) {
        let gone = std::fs::symlink_metadata(&path).is_err();
        if gone || all_is_gone && of_session(Path::new(&path)) {
            store.remove_leftover(id, &path).map_err(failed)?;
        }
    }
    if all_is_gone {
        store.set_owner(id, "").map_err(failed)?;
    }
    Ok(())
}

/// What stays because others use it.
fn tell(notes: &[String]) {
    for note in notes {
        crate::sys::terminal::tell(&format!("assay: {note}"));
    }
}

fn not_removed(path: &Path, error: &std::io::Error) -> Failure {
    let hint = target::hint_of(error).unwrap_or_else(|| "assay cleanup tries again".to_owned());
    Failure::tool(format!("cannot remove {}: {error}", path.display())).hint(hint)
}
