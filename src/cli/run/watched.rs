//! Some more rounds of a stored run's cells, each unwatched and watched: a run of its own, which explains that one.
//!
//! Enters: the stored run, how many rounds, which observers. Leaves: the number of the run that watched it, or in a sentence why nothing
//! was run. A store is data: what a run would execute is executed only where this user began it on this machine (`trust.rs`). It must not
//! know what is made of the trials.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::args::Args;
use super::beforehand::nothing;
use super::conduct::{Conduct, database_flag};
use super::kernels::{self, Kernels};
use super::planned::{Given, planned as plan_of, seed_from_clock};
use super::prepare::Prepared;
use super::session;
use super::typed::first_typed;
use super::watching::{self, ROUNDS, observers};
use super::{foreseen, left_out, overwrite, prepare, trust};
use crate::analyse::Analysis;
use crate::catalog::in_order;
use crate::cli::Failure;
use crate::cli::database::wrong;
use crate::experiment::Experiment;
use crate::observe;
use crate::plan::{CellSpec, Expected};
use crate::record::{Design, Explains, HostFacts, Run, RunState, Source};
use crate::report::wrapped;
use crate::run::Ending;
use crate::store::{Store, StoreError};
use crate::sys::terminal::{err, visible_line};
use crate::target::ClaimedDevice;
use crate::units::pretty_duration;

/// Facts of the explained run that must be as they were, and what they are: those of the machine.
const OF_MACHINE: [(&str, &str); 3] =
    [("cpu.model", "the processor"), ("cpu.count", "the number of processors"), ("virt", "the machine")];
/// Where trials run on this machine, that of its kernel.
const OF_KERNEL: [(&str, &str); 1] = [("kernel.release", "the kernel")];
/// And those of the place where the trials work.
const OF_PLACE: [(&str, &str); 2] =
    [("fs.type", "the filesystem"), ("device.size", "the size of the device")];

/// What explaining asks for.
#[derive(Clone, Copy, Debug)]
pub(in crate::cli) struct Wish<'w> {
    /// Rounds of each cell.
    pub(in crate::cli) rounds: u32,
    /// Observers by name; empty: all that can watch here.
    pub(in crate::cli) only: &'w [String],
    /// Keep what `blocks` sees as files of its trials.
    pub(in crate::cli) keep_traces: bool,
    /// Execute what a run says that somebody else may have written.
    pub(in crate::cli) trust: bool,
    /// This session has just executed the run, and holds its devices.
    pub(in crate::cli) ours: bool,
    /// What this session was allowed to overwrite, beside what the run's first session was.
    pub(in crate::cli) destroy: &'w [PathBuf],
    /// It ends with the trial that passes this time.
    pub(in crate::cli) time_left: Option<Duration>,
}

/// What came of it.
#[derive(Debug)]
pub(in crate::cli) enum Watched {
    /// The run of this number has watched.
    By(i64),
    /// Nothing was run, for this reason.
    NotHere(String),
}

/// Watches the cells of a stored run. Signals set `cancelled`; without it they are watched for from here on.
///
/// # Errors
/// A [`Failure`]: the run is not this user's, is being executed, its devices are another run's; a trial or tool failed; interrupted.
pub(in crate::cli) fn watch(
    conduct: &Conduct<'_>,
    store: &mut Store,
    run: &Run,
    wish: &Wish<'_>,
    cancelled: Option<&AtomicBool>,
) -> anyhow::Result<Watched> {
    let asked = observers(wish.only)?;
    let id = match (run.id, &run.source) {
        (Some(id), Source::Measured) => id,
        (_, Source::Imported(from)) => return Ok(not_here(format!("its results were imported from {from}"))),
        (None, Source::Measured) => return Ok(not_here("it is in no store")),
    };
    let owner = store.owner(id).map_err(|error| wrong(&error))?;
    if let Some(pid) = crate::target::session_lives(&owner) {
        return Err(wrong(&StoreError::Busy { run: id, pid }).into());
    }
    let (mut prepared, left_out) = match prepared(conduct, store, run, wish, &asked) {
        Ok(found) => found,
        Err(failure) => return Ok(not_here(failure)),
    };
    if !wish.ours && !trust::is_ours(store, run)? {
        if !wish.trust {
            return Err(trust::refusal_to_watch(store, id).into());
        }
        trust::say_all(&prepared)?;
    }
    if let Err(failure) = same_place(run, &prepared).and_then(|()| can_run(&prepared)) {
        return Ok(not_here(failure));
    }
    let _claims = if wish.ours { None } else { Some(overwrite::claim([&prepared])?) };
    overwrite::settings_are_free([&prepared])?;
    let takes_s = watching::as_long_as_its_own(run, prepared.plan.trials_at_most())
        .map(|own_s| own_s + watching::added_s(&prepared.plan));
    if let Some((left, takes_s)) = wish.time_left.zip(takes_s)
        && watching::is_too_short(left.as_secs_f64(), takes_s)
    {
        let [takes, left] = [takes_s, left.as_secs_f64()].map(pretty_duration);
        let db = conduct.database_flag();
        return Ok(not_here(format!(
            "that would take about {takes}, and {left} of the time budget are left; assay explain {id}{db} watches it"
        )));
    }
    if !conduct.quiet {
        say(&prepared, id, &left_out)?;
    }
    let own = match cancelled {
        None => session::cancelled()?,
        Some(_) => Arc::default(),
    };
    let ending = session::carry_out(conduct, store, &mut prepared, cancelled.unwrap_or(&own))?;
    let (by, db) = (prepared.run.id.unwrap_or_default(), conduct.database_flag());
    match ending {
        Ending::Finished => Ok(Watched::By(by)),
        Ending::Interrupted => Err(session::interrupted(&prepared.run)
            .hint(format!("assay explain {id}{db} watches it anew"))
            .into()),
        Ending::Failed | Ending::Hopeless => Err(session::stopped(ending, &prepared.run)
            .hint(format!("assay show {by}{db} has the commands and last output"))
            .into()),
    }
}

/// `assay run --explain`: watches the run that has just ended; `None`: nothing differs or is decided, or it cannot be watched, which was said.
///
/// # Errors
/// As [`watch`].
pub(super) fn afterwards(
    args: &Args,
    store: &mut Store,
    run: &Run,
    analysis: &Analysis,
    cancelled: &AtomicBool,
    time_left: Option<Duration>,
) -> anyhow::Result<Option<Run>> {
    if time_left.is_some_and(|left| left.is_zero()) {
        say_not_here(run, &out_of_time(run, &args.database.db))?;
        return Ok(None);
    }
    if says_that_nothing_differs(run, analysis, &args.database.db)? {
        return Ok(None);
    }
    let wish = Wish {
        rounds: ROUNDS,
        only: &[],
        // A run that keeps traces passes that on by its experiment.
        keep_traces: false,
        trust: args.trust,
        ours: true,
        destroy: &args.destroy,
        time_left,
    };
    let conduct = Conduct { busy_told: true, ..args.conduct()? };
    match watch(&conduct, store, run, &wish, Some(cancelled))? {
        Watched::By(id) => {
            let by = store.load_for_report(id).map_err(|error| wrong(&error))?;
            if by.failures().next().is_some() {
                let said = failed_while_watched(id, &database_flag(&args.database.db));
                writeln!(err(), "{}", wrapped(&said, "  "))?;
            }
            Ok(Some(by))
        }
        Watched::NotHere(reason) => {
            say_not_here(run, &reason)?;
            Ok(None)
        }
    }
}

/// Whether the run has no difference to explain, or none that is decided: watching it would take time, and more rounds would help.
///
/// # Errors
/// Standard error is closed.
pub(in crate::cli) fn says_that_nothing_differs(
    run: &Run,
    analysis: &Analysis,
    db: &Path,
) -> std::io::Result<bool> {
    let Some(nothing) = nothing(run, analysis, db) else { return Ok(false) };
    say_not_here(run, &nothing.reason)?;
    writeln!(err(), "hint: {}", visible_line(&nothing.hint))?;
    Ok(true)
}

fn out_of_time(run: &Run, db: &Path) -> String {
    let (id, db) = (run.id.unwrap_or_default(), database_flag(db));
    format!("the time budget is spent; assay explain {id}{db} watches it")
}

fn failed_while_watched(by: i64, database: &str) -> String {
    format!(
        "some trials failed while they were watched, and their rounds do not count: assay show {by}{database} has their \
         commands and last output"
    )
}

/// Says that `--explain` did nothing, because the run has no verdict or not all of its trials worked.
///
/// # Errors
/// Standard error is closed.
pub(super) fn say_not_explained(id: i64, db: &Path) -> std::io::Result<()> {
    writeln!(err(), "{}", wrapped(&not_explained(id, &database_flag(db)), "  "))
}

fn not_explained(id: i64, database: &str) -> String {
    format!(
        "run {id} is not explained, because it did not end well: assay show {id}{database} has what failed, and assay explain \
         {id}{database} explains what worked"
    )
}

/// Says in a line why nothing was run.
///
/// # Errors
/// Standard error is closed.
pub(in crate::cli) fn say_not_here(run: &Run, reason: &str) -> std::io::Result<()> {
    let run = run.id.map_or_else(|| "the run".to_owned(), |id| format!("run {id}"));
    writeln!(err(), "{}", wrapped(&format!("{run} is not watched: {}", visible_line(reason)), "  "))
}

fn not_here(reason: impl std::fmt::Display) -> Watched {
    Watched::NotHere(reason.to_string())
}

/// The run that watches, with what cannot watch here and why.
fn prepared(
    conduct: &Conduct<'_>,
    store: &Store,
    run: &Run,
    wish: &Wish<'_>,
    asked: &[String],
) -> Result<(Prepared, Vec<String>), Failure> {
    let experiment: Experiment = serde_json::from_value(run.experiment.clone())
        .map_err(|error| Failure::request(format!("its experiment is of another assay ({error})")))?;
    let own = if wish.only.is_empty() { &experiment.observe[..] } else { &[] };
    let names = in_order(asked.iter().chain(own).map(String::as_str));
    let all = planned(conduct, store, run, wish, &experiment, &names)?;
    same_machine(run, &all)?;
    let (mut can, mut left_out, mut refused) = (Vec::new(), Vec::new(), Vec::new());
    // A guest has a kernel and rights of its own.
    let elsewhere = all.plan.cells.iter().all(|cell| cell.target.is_elsewhere());
    for name in &names {
        let tried = if elsewhere { Ok(Vec::new()) } else { observe::tried(name) };
        match tried {
            Ok(notes) => {
                can.push(name.clone());
                left_out.extend(notes.into_iter().map(|note| note.text));
            }
            Err(reason) => refused.push((name.clone(), reason)),
        }
    }
    left_out.extend(left_out::sentences(&refused));
    if can.is_empty() {
        return Err(Failure::request(left_out.join("; ")));
    }
    let mut prepared =
        if can == names { all } else { planned(conduct, store, run, wish, &experiment, &can)? };
    prepared.run.notes.extend(left_out.iter().map(|reason| reason.clone().into()));
    Ok((prepared, left_out))
}

/// The run that watches with these observers.
fn planned(
    conduct: &Conduct<'_>,
    store: &Store,
    run: &Run,
    wish: &Wish<'_>,
    experiment: &Experiment,
    observe: &[String],
) -> Result<Prepared, Failure> {
    let id = run.id.unwrap_or_default();
    let (mut explaining, factor) = experiment.watched(observe, wish.rounds).map_err(Failure::request)?;
    explaining.keep_traces |= wish.keep_traces;
    // Its trials begin as those of the explained run did, and may destroy no more than was named for that.
    let first = first_typed(run);
    let first = first.as_ref();
    let mut destroy: Vec<PathBuf> = first.into_iter().flat_map(|first| &first.destroy).cloned().collect();
    let mut claimed = prepare::devices(store, id)?;
    // A session that goes on with a run may have named more than its first one.
    let more = further(&destroy, wish.destroy);
    claimed.extend(ClaimedDevice::of(&more));
    destroy.extend(more);
    prepare::begun_here(run, experiment, first)?;
    let seed = seed_from_clock();
    let given = Given {
        seed,
        drop_caches: first.is_some_and(|first| first.drop_caches),
        destroy: &destroy,
        claimed: &claimed,
        trust: wish.trust,
    };
    let (mut plan, work, targets) = plan_of(&explaining, &given)?;
    plan.stop.time_budget_s = wish.time_left.map(|left| left.as_secs_f64());
    let engines = prepare::probe(&plan)?;
    let (started_unix_ns, seed_of_run) = (run.started_unix_ns, run.seed);
    let explains =
        Explains { run: id, started_unix_ns, seed: seed_of_run, factor, observers: observe.to_vec() };
    let note = format!(
        "its trials explain run {id} and enter no verdict of it; {} says which of them are watched: {}",
        explains.factor,
        observe.join(", ")
    );
    let design =
        Design { failures: run.design.failures, explains: Some(explains), ..crate::run::design(&plan) };
    let made = Run {
        started_unix_ns: prepare::now_unix_ns(),
        command_line: command_line(conduct.db, id, wish),
        seed,
        engine: engines.iter().map(|(_, probe)| probe.version.clone()).collect::<Vec<_>>().join(", "),
        job_text: run.job_text.clone(),
        experiment: serde_json::to_value(&explaining).map_err(Failure::tool)?,
        cells: crate::run::cells(&plan),
        notes: vec![note.into()],
        ..Run::new(run.name.as_str(), Source::Measured, RunState::Running, design)
    };
    Ok(Prepared {
        kernels: Kernels::of(&plan.cells)?,
        surroundings: prepare::surroundings(&explaining, targets)?,
        absent: prepare::absent(&plan, &work),
        plan,
        engines,
        work,
        destroy,
        claimed,
        owner: String::new(),
        keep_disturbed: explaining.keep_disturbed || first.is_some_and(|first| first.keep_disturbed),
        run: made,
        facts: Vec::new(),
        shows: None,
        first_look: None,
        expected: Expected::default(),
        extended: None,
        arms: None,
    })
}

/// Those of these paths that are not known yet.
fn further(known: &[PathBuf], named: &[PathBuf]) -> Vec<PathBuf> {
    named.iter().filter(|path| !known.contains(path)).cloned().collect()
}

/// The words that do it again.
fn command_line(db: &Path, id: i64, wish: &Wish<'_>) -> Vec<String> {
    let mut words = ["assay", "explain"].map(str::to_owned).to_vec();
    words.extend([id.to_string(), "--rounds".to_owned(), wish.rounds.to_string()]);
    if !wish.only.is_empty() {
        words.extend(["--only".to_owned(), wish.only.join(",")]);
    }
    if wish.keep_traces {
        words.push("--keep-traces".to_owned());
    }
    if db != Path::new("assay.db") {
        words.extend(["--db".to_owned(), db.display().to_string()]);
    }
    words
}

/// Refuses another machine or kernel than the run was measured on: trials there would explain something else. Nothing that the run names
/// is looked at.
fn same_machine(run: &Run, prepared: &Prepared) -> Result<(), Failure> {
    let now = crate::host::facts();
    same(run, &now, &OF_MACHINE)?;
    if is_here(prepared) { same(run, &now, &OF_KERNEL) } else { kernels::same_images(run, prepared) }
}

/// Refuses another filesystem or device below the place where the trials work.
fn same_place(run: &Run, prepared: &Prepared) -> Result<(), Failure> {
    if is_here(prepared) { same(run, &session::facts_here(prepared), &OF_PLACE) } else { Ok(()) }
}

fn is_here(prepared: &Prepared) -> bool {
    prepared.plan.cells.iter().all(|cell| !cell.target.is_elsewhere())
}

/// Refuses facts that are not as they were when the run began. What was not known then is not asked for.
fn same(run: &Run, now: &HostFacts, facts: &[(&str, &str)]) -> Result<(), Failure> {
    let Some(then) = run.facts.first() else { return Ok(()) };
    for (fact, what) in facts {
        let (Some(then), now) = (then.get(fact), now.get(fact)) else { continue };
        if now != Some(then) {
            let now = now.unwrap_or("not known");
            return Err(Failure::request(format!("{what} was {then} then, and is {now} here and now")));
        }
    }
    Ok(())
}

/// Whether everything is there that the trials need, and may be written to.
fn can_run(prepared: &Prepared) -> Result<(), Failure> {
    prepared.same_devices()?;
    prepared.tools_are_here()?;
    foreseen::check(prepared)?;
    overwrite::check(prepared)
}

/// What is about to be done.
fn say(prepared: &Prepared, id: i64, left_out: &[String]) -> std::io::Result<()> {
    let plan = &prepared.plan;
    let (unwatched, watched): (Vec<&CellSpec>, Vec<&CellSpec>) =
        plan.cells.iter().partition(|cell| cell.observe.is_empty());
    // Groups of observers watch in trials of their own.
    let mut groups: Vec<String> = watched.iter().map(|cell| cell.observe.join(", ")).collect();
    groups.sort();
    groups.dedup();
    let said = format!(
        "watching run {id}: {} rounds of its {} cells, each unwatched and watched ({})",
        plan.rounds_at_most(),
        unwatched.len(),
        groups.join("; ")
    );
    for line in std::iter::once(&said).chain(left_out) {
        writeln!(err(), "{}", wrapped(line, "  "))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{RECORD_VERSION, StopRule};

    #[test]
    fn facts_that_were_known_must_be_as_they_were() {
        let mut run: Run = serde_json::from_value(serde_json::json!({
            "version": RECORD_VERSION, "id": 3, "name": "r", "source": "measured", "state": "finished",
            "assay_version": "", "started_unix_ns": 0, "command_line": [], "seed": 0, "engine": "",
            "job_text": null, "experiment": null, "aa": false, "facts": [], "metrics": [], "cells": [],
            "trials": [], "notes": [],
            "design": {"factors": [], "compare": 0, "paired": true, "primary": null, "stop": StopRule::default()}
        }))
        .unwrap();
        let mut now = HostFacts::default();
        now.set("kernel.release", "6.18");
        assert!(same(&run, &now, &OF_KERNEL).is_ok(), "nothing was known then");
        run.facts.push(now.clone());
        assert!(same(&run, &now, &OF_KERNEL).is_ok());
        now.set("kernel.release", "6.19");
        let said = same(&run, &now, &OF_KERNEL).unwrap_err().to_string();
        assert_eq!(said, "the kernel was 6.18 then, and is 6.19 here and now");
    }

    #[test]
    fn what_a_later_session_names_is_added_once() {
        let [a, b] = ["/dev/a", "/dev/b"].map(PathBuf::from);
        let (first, both) = (std::slice::from_ref(&a), [a.clone(), b.clone()]);
        assert_eq!(further(first, &both), [b]);
        assert_eq!(further(first, first), Vec::<PathBuf>::new());
    }

    #[test]
    fn what_failed_has_a_command_that_shows_it() {
        let said = not_explained(3, " --db o.db");
        assert!(
            said.contains("assay show 3 --db o.db") && said.contains("assay explain 3 --db o.db"),
            "{said}"
        );
        assert!(failed_while_watched(4, "").contains("assay show 4 has"));
    }

    #[test]
    fn the_command_that_does_it_again_names_what_was_asked() {
        let only = ["locks".to_owned(), "cpu".to_owned()];
        let wish = Wish {
            rounds: 6,
            only: &only,
            keep_traces: false,
            trust: false,
            ours: false,
            destroy: &[],
            time_left: None,
        };
        let words = command_line(Path::new("other.db"), 3, &wish).join(" ");
        assert_eq!(words, "assay explain 3 --rounds 6 --only locks,cpu --db other.db");
        let wish = Wish { only: &[], ..wish };
        assert_eq!(command_line(Path::new("assay.db"), 3, &wish).join(" "), "assay explain 3 --rounds 6");
        let wish = Wish { keep_traces: true, ..wish };
        let words = command_line(Path::new("assay.db"), 3, &wish).join(" ");
        assert_eq!(words, "assay explain 3 --rounds 6 --keep-traces");
    }
}
