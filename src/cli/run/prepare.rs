//! Everything decided before the first trial: the plan, the engines, the run's record.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::args::{Args, takes_a_value};
use super::arms::Arms;
use super::decidable;
use super::extended::{self, Extended};
use super::found_kernels;
use super::kernels::Kernels;
use super::planned::{Given, planned, seed_from_clock};
use super::reach::Reach;
use super::typed::first_typed;
use crate::analyse::{Beyond, Bisected, Next};
use crate::cli::Failure;
use crate::cli::database::wrong;
use crate::cli::metric_patterns::metric_patterns;
use crate::engine::{self, EngineKind, Probe};
use crate::experiment::Experiment;
use crate::launch::{Launcher, Unready, everywhere};
use crate::plan::{Expected, Plan, Writes};
use crate::record::{self, Run, RunState, Trial};
use crate::run::Surroundings;
pub(super) use crate::run::now_unix_ns;
use crate::store::{Store, StoreError};
use crate::target::{ClaimedDevice, TargetSpec};

/// A run that is ready to start.
pub(super) struct Prepared {
    pub(super) plan: Plan,
    pub(super) engines: Vec<(EngineKind, Probe)>,
    /// Directories to be made, in which the trials work.
    pub(super) work: Vec<PathBuf>,
    pub(super) surroundings: Surroundings,
    /// What may be overwritten.
    pub(super) destroy: Vec<PathBuf>,
    /// Those of them that are devices, as they were when the run was begun.
    pub(super) claimed: Vec<ClaimedDevice>,
    /// Files outside the work directories that the job names and that were not there when it was looked at.
    pub(super) absent: Vec<PathBuf>,
    /// The session that had the run when it was read; empty: none.
    pub(super) owner: String,
    /// No round is thrown out for what others did.
    pub(super) keep_disturbed: bool,
    pub(super) run: Run,
    /// Facts of the run besides those of the machine: its recipe, and where that is run.
    pub(super) facts: Vec<(&'static str, String)>,
    /// What its rounds will probably show, in words; `None`: nothing to be told, or not a new run.
    pub(super) shows: Option<String>,
    /// The first round after which a run of no fixed length may end; `None`: not such a run, or not a new one.
    pub(super) first_look: Option<u32>,
    /// What trials will probably wait for, and lose to others.
    pub(super) expected: Expected,
    /// `--more` has moved the end of the run.
    pub(super) extended: Option<Extended>,
    /// Kernels that are built for it.
    pub(super) kernels: Kernels,
    /// What the steps of a search are; `None`: it is none, or its trials have begun.
    pub(super) arms: Option<Box<dyn Arms>>,
}

/// The design of a run that goes on, with all that its plan does not say.
fn design_again(run: &Run, plan: &Plan) -> record::Design {
    let then = &run.design;
    record::Design {
        failures: then.failures,
        extended: then.extended,
        bisects: then.bisects.clone(),
        together: then.together,
        // Earlier versions do not say which sections are paced and whether all are direct, and nothing is planned by it.
        paced: then.paced.clone(),
        direct: then.direct,
        // They had other sections decide, too, where one was named.
        primary: then.primary.clone(),
        asked: then.asked,
        ..crate::run::design(plan)
    }
}

impl Prepared {
    /// Refuses when a program that the trials need cannot be found.
    ///
    /// # Errors
    /// A [`Failure`] with exit code 2 naming it.
    pub(super) fn tools_are_here(&self) -> Result<(), Failure> {
        // An engine's own probe has looked for its tool, also where Debian keeps those of the administrator.
        let probed = |tool: &str| self.engines.iter().any(|(kind, _)| kind.name() == tool);
        let missing = |tool: &&String| !probed(tool) && crate::sys::find_program(tool).is_none();
        match self.plan.tools.iter().find(missing) {
            Some(tool) => Err(Failure::request(format!("there is no program '{tool}'"))
                .hint("give its path, or install it; a program without a slash is looked up on PATH")),
            None => Ok(()),
        }
    }

    /// What runs the trials, here or wherever their targets are. Of a search over kernels each is looked at when it is built.
    ///
    /// # Errors
    /// A [`Failure`] with exit code 2: emulator, kernel, module, program or memory of a guest is missing.
    pub(super) fn launcher(&self) -> Result<Box<dyn Launcher>, Failure> {
        self.launcher_of(if self.kernels_of_a_round().is_some() { 0 } else { self.plan.cells.len() })
    }

    /// Whether guests can be had, as far as that is seen before their kernels are built.
    ///
    /// # Errors
    /// As [`Prepared::launcher`].
    pub(super) fn can_be_launched(&self) -> Result<(), Failure> {
        let cells = self.plan.cells.len();
        self.launcher_of(self.kernels_of_a_round().map_or(cells, |of_round| of_round.min(cells))).map(drop)
    }

    /// How many kernels a round of a search boots; `None`: it is no search over kernels.
    fn kernels_of_a_round(&self) -> Option<usize> {
        let bisects = self.run.design.bisects.as_ref().filter(|bisects| bisects.kernels)?;
        Some(bisects.per_round as usize + 2)
    }

    /// The same that knows the first of the cells.
    fn launcher_of(&self, cells: usize) -> Result<Box<dyn Launcher>, Failure> {
        let mut launcher =
            everywhere().map_err(|error| Failure::tool(format!("cannot find my own program: {error}")))?;
        let failed = |Unready { reason, hint }| {
            let failure = Failure::request(reason);
            if hint.is_empty() { failure } else { failure.hint(hint) }
        };
        let trials = self.run.trials.iter().filter_map(|trial| trial.facts);
        for facts in trials.collect::<BTreeSet<_>>() {
            let earlier = self.run.facts.get(facts as usize);
            earlier.map_or(Ok(()), |facts| launcher.goes_on(facts)).map_err(failed)?;
        }
        for cell in 0..cells {
            let asked = crate::run::request(&self.plan, &self.surroundings, cell, 0);
            launcher.expect(&asked).map_err(failed)?;
        }
        let place = self.work.first().and_then(|path| path.parent()).unwrap_or(Path::new("."));
        launcher.check(place).map_err(failed)?;
        Ok(launcher)
    }

    /// From the command line.
    ///
    /// # Errors
    /// A [`Failure`] with exit code 2; nothing was touched.
    pub(super) fn new(args: &Args, mut experiment: Experiment) -> Result<Prepared, Failure> {
        experiment.complete();
        // A name that is no text cannot be kept, and is then not compared either.
        experiment.begun_in = std::env::current_dir().ok().filter(|here| here.to_str().is_some());
        found_kernels::find(&mut experiment)?;
        let seed = args.seed.unwrap_or_else(seed_from_clock);
        let job_text = experiment.job.as_ref().map(|job| job.text.clone());
        let claimed = ClaimedDevice::of(&args.destroy);
        let given = Given {
            seed,
            drop_caches: args.drop_caches,
            destroy: &args.destroy,
            claimed: &claimed,
            trust: args.trust,
        };
        let (plan, work, targets) = planned(&experiment, &given)?;
        decidable::check(&experiment, &plan, args.among.as_ref().is_some_and(|among| among.has_others))?;
        let engines = probe(&plan)?;
        let design = record::Design {
            failures: args.failures.rule(),
            together: args.among.as_ref().map(|among| among.together),
            ..crate::run::design(&plan)
        };
        let run = Run {
            started_unix_ns: now_unix_ns(),
            command_line: command_line(args, seed, experiment.stop.alpha),
            seed,
            engine: versions(&engines),
            job_text,
            experiment: serde_json::to_value(&experiment).map_err(Failure::tool)?,
            aa: plan.aa,
            cells: crate::run::cells(&plan),
            ..Run::new(experiment.name.as_str(), record::Source::Measured, RunState::Running, design)
        };
        let reach = Reach::of(&experiment, &plan);
        reach.check(&run.design.stop)?;
        let shows = reach.words(&plan, &run.design.stop);
        let first_look = reach.first_look(&run.design.stop);
        let surroundings = surroundings(&experiment, targets)?;
        let kernels = Kernels::of(&plan.cells)?;
        let destroy = args.destroy.clone();
        let keep_disturbed = args.keep_disturbed || experiment.keep_disturbed;
        let facts = Vec::new();
        let owner = String::new();
        let absent = absent(&plan, &work);
        Ok(Prepared {
            plan,
            engines,
            work,
            surroundings,
            destroy,
            claimed,
            absent,
            owner,
            keep_disturbed,
            run,
            facts,
            shows,
            first_look,
            expected: Expected::default(),
            extended: None,
            kernels,
            arms: None,
        })
    }

    /// Looks again which files are not there: what the killed session has left is gone now.
    pub(super) fn look_again(&mut self) {
        self.absent = absent(&self.plan, &self.work);
    }

    /// Whether the devices the run was begun on are still those.
    ///
    /// # Errors
    /// A [`Failure`] with exit code 2: another disk has the name now.
    pub(super) fn same_devices(&self) -> Result<(), Failure> {
        self.claimed.iter().try_for_each(ClaimedDevice::check).map_err(|reason| {
            Failure::request(reason)
                .hint("run it anew on the disk that is there now, or bring the other one back")
        })
    }

    /// From a stored run that was stopped or killed.
    ///
    /// # Errors
    /// A [`Failure`] with exit code 2: no such run, finished already, being executed, or of another assay.
    pub(super) fn again(args: &Args, store: &Store, id: i64) -> Result<Prepared, Failure> {
        let owner = store.owner(id).map_err(|error| wrong(&error))?;
        if let Some(pid) = crate::target::session_lives(&owner) {
            return Err(wrong(&StoreError::Busy { run: id, pid }));
        }
        let run = store.load_run(id).map_err(|error| wrong(&error))?;
        if let Some(explains) = &run.design.explains {
            let explained = explains.run;
            return Err(Failure::request(format!("run {id} watches run {explained}, and does not go on"))
                .hint(format!("assay explain {explained} watches it anew")));
        }
        if args.more.is_empty() {
            unfinished(store, &run, id, args.beyond_delta())?;
        } else {
            extended::check(&run, id)?;
        }
        let experiment: Experiment = serde_json::from_value(run.experiment.clone()).map_err(|error| {
            Failure::request(format!(
                "run {id} cannot be resumed: its experiment is of another assay ({error})"
            ))
            .hint("run it anew; its finished trials stay in the store")
        })?;
        // The later rounds must start as the earlier ones did, and may destroy no more than was named.
        let first = first_typed(&run);
        let first = first.as_ref();
        let drop_caches = first.is_some_and(|first| first.drop_caches);
        let keep_disturbed = first.is_some_and(|first| first.keep_disturbed) || experiment.keep_disturbed;
        let destroy: Vec<PathBuf> =
            first.into_iter().flat_map(|first| &first.destroy).chain(&args.destroy).cloned().collect();
        begun_here(&run, &experiment, first)?;
        let mut claimed = devices(store, id)?;
        claimed.extend(ClaimedDevice::of(&args.destroy));
        let given =
            Given { seed: run.seed, drop_caches, destroy: &destroy, claimed: &claimed, trust: args.trust };
        let (plan, work, targets) = planned(&experiment, &given)?;
        if design_again(&run, &plan) != run.design || crate::run::cells(&plan) != run.cells {
            return Err(Failure::request(format!(
                "run {id} was planned differently by assay {}",
                run.assay_version
            ))
            .hint("resume it with that version, or run it anew"));
        }
        let engines = probe(&plan)?;
        let now = versions(&engines);
        if now != run.engine {
            return Err(Failure::request(format!(
                "run {id} was measured by {}, and here is {now}",
                run.engine
            ))
            .hint("bring that release back, or run it anew; its finished trials stay in the store"));
        }
        let surroundings = surroundings(&experiment, targets)?;
        let kernels = Kernels::of(&plan.cells)?;
        let absent = absent(&plan, &work);
        Ok(Prepared {
            plan,
            engines,
            work,
            surroundings,
            destroy,
            claimed,
            absent,
            owner,
            keep_disturbed,
            run,
            facts: Vec::new(),
            shows: None,
            first_look: None,
            expected: Expected::default(),
            extended: None,
            kernels,
            arms: None,
        })
    }

    /// The run's time starts now: parts of a recipe are all prepared before the first one runs.
    pub(super) fn begins_now(&mut self) {
        self.run.started_unix_ns = now_unix_ns();
    }
}

/// Refuses to go on elsewhere with a run whose files, or what it may destroy, are named from the directory it was begun in.
///
/// # Errors
/// A [`Failure`] with exit code 2 that names the directory.
pub(super) fn begun_here(run: &Run, experiment: &Experiment, first: Option<&Args>) -> Result<(), Failure> {
    let Some(there) = &experiment.begun_in else { return Ok(()) };
    let relative = |path: &PathBuf| path.is_relative();
    // A command, a hook or a build is run where assay is.
    let builds = run.design.bisects.as_ref().is_some_and(|bisects| bisects.build.is_some());
    let runs =
        builds || !experiment.command.is_empty() || experiment.before.is_some() || experiment.after.is_some();
    let needs_it = runs
        || experiment.directory.is_none()
        || first.is_some_and(|first| first.destroy.iter().any(relative));
    let same = || {
        let here = std::env::current_dir().ok();
        here.is_some_and(|here| here.canonicalize().ok() == there.canonicalize().ok())
    };
    if !needs_it || same() {
        return Ok(());
    }
    let id = run.id.unwrap_or_default();
    let shown = there.to_string_lossy();
    // To be typed: whoever wrote the store chose the name.
    let typed = shlex::try_quote(&shown).unwrap_or_default();
    Err(Failure::request(format!("run {id} was begun in {shown}, and names its files from there"))
        .hint(format!("cd {typed}, and give the store with --db")))
}

/// Releases of the engines, as a run keeps them.
fn versions(engines: &[(EngineKind, Probe)]) -> String {
    engines.iter().map(|(_, probe)| probe.version.clone()).collect::<Vec<_>>().join(", ")
}

/// Whether the last round lacks cells that the first has.
fn ends_within_a_round(run: &Run) -> bool {
    let cells = |round: u32| {
        let of_round = run.trials.iter().filter(|trial| trial.round == round && trial.is_final());
        of_round.map(|trial| trial.cell).collect::<BTreeSet<u32>>()
    };
    let last = run.trials.iter().map(|trial| trial.round).max().unwrap_or(0);
    cells(last).len() < cells(0).len()
}

/// Refuses to go on with a run of which nothing is left to do.
fn unfinished(store: &Store, run: &Run, id: i64, beyond_delta: Beyond) -> Result<(), Failure> {
    // Killed after its last trial, it is finished but has not put everything back yet.
    let leftovers = store.leftovers().map_err(|error| wrong(&error))?;
    // What failed may have been mended since then.
    let may_be_made_good = run.failures().any(Trial::is_lasting);
    let untidy = leftovers.iter().any(|(run, _)| *run == id);
    // Its time budget ended it before the last of its rounds, and there is no verdict without that one.
    let search = Bisected::of(run);
    let is_open = || match run.design.stop.rounds {
        Some(_) => run.so_far().is_some(),
        None => {
            let options = crate::analyse::Options { beyond_delta, ..Default::default() };
            !crate::analyse::decided(run, &options) || ends_within_a_round(run)
        }
    };
    let goes_on = search.as_ref().map_or_else(is_open, |now| !matches!(now.next, Next::Stop(_)));
    let out_of_time = run.design.stop.time_budget_s.is_some() && goes_on;
    if run.state == RunState::Finished && !untidy && !may_be_made_good && !out_of_time {
        if let Some(search) = &search {
            if search.lost_end.is_some() {
                let ended = format!("search {id} has ended: one of its ends cannot be run");
                return Err(Failure::request(ended).hint("when it builds and runs, begin the search anew"));
            }
            return Err(Failure::request(format!("search {id} is finished: nothing is left to do")).hint(
                format!(
                    "assay bisect --show {id} prints its answer; another number of rounds is a new search"
                ),
            ));
        }
        let more = match run.design.stop.anytime {
            true => format!("assay run --more 10 {id} adds rounds"),
            false => "for more rounds, run it anew".to_owned(),
        };
        return Err(Failure::request(format!("run {id} is finished: nothing is left to do"))
            .hint(format!("assay report {id} prints its verdict; {more}")));
    }
    Ok(())
}

/// Makes a session the owner of a prepared run; of several that go on with one run at once only one does, on what it has read.
///
/// # Errors
/// A [`Failure`] with exit code 2: another process was faster.
pub(super) fn take_over(store: &Store, prepared: &Prepared, id: i64, session: &str) -> Result<(), Failure> {
    store.take_over(id, &prepared.owner, session).map_err(|error| match error {
        StoreError::TakenOver { run, owner } => {
            let pid = crate::target::session_lives(&owner);
            pid.map_or_else(|| gone_on(run), |pid| wrong(&StoreError::Busy { run, pid }))
        }
        other => wrong(&other),
    })?;
    // Since it was read another session may have taken it over, gone on, and given it back.
    let stored = store.list().map_err(|error| wrong(&error))?.into_iter().find(|known| known.id == id);
    if stored.is_some_and(|stored| stored.trials == prepared.run.trials.len() as u64) {
        return Ok(());
    }
    store.set_owner(id, "").map_err(|error| wrong(&error))?;
    Err(gone_on(id))
}

/// Looked up before it is judged what may be overwritten: what comes later is in the way.
pub(super) fn absent(plan: &Plan, work: &[PathBuf]) -> Vec<PathBuf> {
    let made_by_job = |path: &&PathBuf| !work.iter().any(|work| path.starts_with(work)) && !path.exists();
    let written = plan.files.iter().filter(|file| matches!(file.writes, Writes::Content | Writes::Layout));
    written.map(|file| &file.path).filter(made_by_job).cloned().collect()
}

fn gone_on(id: i64) -> Failure {
    Failure::request(format!("another process is already continuing run {id}"))
        .hint(format!("`assay show {id}` says how far it came"))
}

/// The devices the run was begun on, as they were then.
///
/// # Errors
/// A [`Failure`] with exit code 2: damaged.
pub(super) fn devices(store: &Store, id: i64) -> Result<Vec<ClaimedDevice>, Failure> {
    let texts = store.devices(id).map_err(|error| wrong(&error))?;
    let read = |text: &String| {
        serde_json::from_str(text)
            .map_err(|error| Failure::request(format!("run {id} is damaged: a device of it: {error}")))
    };
    texts.iter().map(read).collect()
}

/// Version and place of every engine the plan needs.
pub(super) fn probe(plan: &Plan) -> Result<Vec<(EngineKind, Probe)>, Failure> {
    let mut engines: Vec<(EngineKind, Probe)> = Vec::new();
    for cell in &plan.cells {
        let kind = cell.engine;
        if engines.iter().any(|(known, _)| *known == kind) {
            continue;
        }
        let probe = engine::of(kind).probe().map_err(|error| {
            Failure::request(format!("the engine of {} cannot be used here: {error}", cell.label))
                .hint("install it, or choose another with --engine")
        })?;
        engines.push((kind, probe));
    }
    Ok(engines)
}

pub(super) fn surroundings(
    experiment: &Experiment,
    targets: Vec<TargetSpec>,
) -> Result<Surroundings, Failure> {
    let patterns = metric_patterns(&experiment.metrics)?;
    Ok(Surroundings {
        targets,
        before: experiment.before.clone(),
        after: experiment.after.clone(),
        keep_traces: experiment.keep_traces,
        patterns,
    })
}

/// The command line that repeats this run, its seed in it.
fn command_line(args: &Args, seed: u64, alpha: f64) -> Vec<String> {
    let mut words: Vec<String> =
        std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    words.insert(0, "assay".to_owned());
    if let Some(among) = &args.among {
        let mut set = vec![
            ("--name", args.asked.name.clone()),
            ("--compare", args.asked.compare.clone()),
            ("--time-budget", args.asked.time_budget.clone()),
        ];
        if among.together.sharing_alpha > 1 {
            set.push(("--alpha", Some(alpha.to_string())));
        }
        // The page is one of all of them.
        if among.has_others {
            set.extend(["--html", "--output", "-o", "--force"].map(|option| (option, None)));
        }
        words = among.alone(words, &set, takes_a_value);
    }
    if args.seed.is_none() && words.get(1).is_some_and(|word| word == "run" || word == "bisect") {
        words.splice(2..2, ["--seed".to_owned(), seed.to_string()]);
    }
    words
}
