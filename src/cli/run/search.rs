//! A search that is begun, or goes on.
//!
//! Enters: options, what the arms are, or a stored search. Leaves: the run with all its trials (`search_trials.rs`).

use std::path::{Path, PathBuf};

use super::args::Args;
use super::arms::{Arms, FACTOR};
use super::conduct::database_flag;
use super::kernels::{BuiltEnds, KernelSteps, cannot_be_built, failure};
use super::prepare::Prepared;
use super::source::Source;
use super::{early, foreseen, overwrite, session, trust};
use crate::analyse::lost_end;
use crate::cli::Failure;
use crate::experiment::{Assignment, Namespace};
use crate::record::{Bisects, Run};
use crate::report::step_name;
use crate::run::Ending;
use crate::store::Store;
use crate::target::WorkDirectory;

/// A search that is ready to start or to go on.
pub(in crate::cli) struct Search {
    prepared: Prepared,
}

impl Search {
    /// A new one. The experiment's factor gets one level a step; a step that is a kernel sets which one.
    ///
    /// # Errors
    /// A [`Failure`] with exit code 2; nothing was touched.
    pub(in crate::cli) fn new(
        args: &Args,
        steps: &[String],
        max_rounds: u32,
        bisects: Bisects,
    ) -> Result<Search, Failure> {
        let named = args.files.first().map(|file| Source::all(file, args.quiet)).transpose()?;
        let source = match named.as_deref() {
            None => Source::CommandLine,
            Some([source @ Source::File(_)]) => source.clone(),
            _ => {
                return Err(Failure::request(
                    "bisect does not search with a recipe, which is a comparison already",
                )
                .hint("name a fio job file: assay bisect --source GIT --good REV --bad REV JOB.fio"));
            }
        };
        let mut experiment = args.experiment(&source, &[])?;
        if let Some(own) = experiment.deltas.first() {
            return Err(Failure::request(format!(
                "delta {}=…: a search has one metric that decides",
                own.metric
            ))
            .hint("write one for all, e.g. 2%"));
        }
        if let Some(varied) = experiment.factors.iter().find(|factor| factor.name != FACTOR) {
            return Err(Failure::request(format!("{} varies {} itself", experiment.name, varied.name))
                .hint("a search varies the step alone: take the factor out of the experiment file"));
        }
        // What else a step is, is its arm's to say.
        let revision = |step: &String| Assignment {
            namespace: Namespace::Target,
            key: "rev".to_owned(),
            value: step.clone(),
        };
        let level = |step: &String| crate::experiment::Level {
            label: step.clone(),
            set: if bisects.kernels { vec![revision(step)] } else { Vec::new() },
        };
        experiment.factors = vec![crate::experiment::Factor {
            name: FACTOR.to_owned(),
            levels: steps.iter().map(level).collect(),
        }];
        experiment.compare = 0;
        experiment.stop.max_rounds = max_rounds;
        // How many rounds it takes, the search finds out, whatever the file says of comparisons.
        (experiment.stop.rounds, experiment.stop.anytime) = (None, false);
        let mut prepared = Prepared::new(args, experiment)?;
        if bisects.kernels {
            of_kernels(&prepared)?;
        }
        prepared.run.design.bisects = Some(bisects);
        overwrite::check(&prepared)?;
        early::machine(&prepared)?;
        Ok(Search { prepared })
    }

    /// A stored one that was stopped or killed.
    ///
    /// # Errors
    /// A [`Failure`] with exit code 2: no search, finished, or not this user's.
    pub(in crate::cli) fn again(args: &Args, store: &Store, id: i64) -> anyhow::Result<Search> {
        let mut prepared = Prepared::again(args, store, id)?;
        if prepared.run.design.bisects.is_none() {
            return Err(Failure::request(format!("run {id} is no search"))
                .hint(format!("assay run --resume {id} goes on with it"))
                .into());
        }
        if !trust::is_ours(store, &prepared.run)? {
            if !args.trust {
                return Err(trust::refusal(store, id, None).into());
            }
            trust::say_all(&prepared)?;
        }
        session::undo_killed(store, id, &args.database.db)?;
        prepared.look_again();
        overwrite::check(&prepared)?;
        Ok(Search { prepared })
    }

    /// Changes the command line that is kept to repeat it.
    pub(in crate::cli) fn is_repeated_by(&mut self, change: impl FnOnce(&mut [String])) {
        change(&mut self.prepared.run.command_line);
    }

    /// Its steps as kernels.
    pub(in crate::cli) fn kernel_steps(&mut self, quiet: bool) -> Box<dyn Arms> {
        Box::new(KernelSteps::of(&mut self.prepared, quiet))
    }

    /// Whether its steps are kernels that are built whole.
    pub(in crate::cli) fn builds_whole_kernels(&self) -> bool {
        self.prepared.kernels.are_whole()
    }

    /// Builds the kernels of the ends.
    ///
    /// # Errors
    /// A [`Failure`]: they cannot be built, or are one kernel.
    pub(in crate::cli) fn build_ends(&self, quiet: bool) -> Result<BuiltEnds, Failure> {
        let cancelled = session::cancelled()?;
        let last = self.prepared.plan.cells.len() - 1;
        self.prepared.kernels.build_ends([0, last], quiet, &cancelled).map_err(|(end, error)| {
            let name = step_name(&self.prepared.run, end);
            if error.is_of_the_revision() { lost(name, &cannot_be_built(&error)) } else { failure(&error) }
        })
    }

    /// What would be built for the ends.
    ///
    /// # Errors
    /// A [`Failure`] with exit code 2: a patch that does not apply, no space.
    pub(in crate::cli) fn planned_kernels(&self) -> Result<Vec<String>, Failure> {
        let last = self.prepared.plan.cells.len() - 1;
        [0, last].into_iter().map(|step| self.prepared.kernels.planned_for(step)).collect()
    }

    /// The run as it is.
    pub(in crate::cli) fn run(&self) -> &Run {
        &self.prepared.run
    }

    /// A directory that is made for the session and removed after it, for what the steps are made of.
    pub(in crate::cli) fn place(&mut self) -> PathBuf {
        let work = self.prepared.work.first();
        let base = work.and_then(|path| path.parent()).unwrap_or(Path::new(".")).to_owned();
        let place =
            WorkDirectory::path_for(&base, &format!("steps-{:016x}", super::planned::seed_from_clock()));
        self.prepared.work.push(place.clone());
        place
    }

    /// Refuses when a program that the trials need cannot be found.
    ///
    /// # Errors
    /// A [`Failure`] with exit code 2 naming it.
    pub(in crate::cli) fn tools_are_here(&self) -> Result<(), Failure> {
        self.prepared.tools_are_here()
    }

    /// Searches to the end; leaves the run with all its trials.
    ///
    /// # Errors
    /// A [`Failure`]: interrupted (130), the ends cannot be run (1), the store or the agent failed.
    pub(in crate::cli) fn execute(
        mut self,
        args: &Args,
        store: &mut Store,
        arms: Box<dyn Arms>,
    ) -> anyhow::Result<Run> {
        self.prepared.arms = Some(arms);
        self.prepared.begins_now();
        let cancelled = session::cancelled()?;
        let ending = session::carry_out(&args.conduct()?, store, &mut self.prepared, &cancelled)?;
        let run = self.prepared.run;
        let (id, db) = (run.id.unwrap_or_default(), database_flag(&args.database.db));
        super::verdict::primary_is_known(&run)?;
        match ending {
            Ending::Interrupted => Err(session::interrupted(&run)
                .hint(format!("assay bisect --resume {id}{db} goes on with it"))
                .into()),
            Ending::Failed | Ending::Hopeless => Err(session::stopped(ending, &run)
                .hint(format!("assay show {id}{db} has the commands and last output"))
                .into()),
            Ending::Finished => match lost_end(&run) {
                Some((step, why)) => Err(lost(step_name(&run, step), &why).into()),
                None => Ok(run),
            },
        }
    }
}

/// An end that cannot be run.
fn lost(name: &str, why: &str) -> Failure {
    Failure::tool(format!("{name} cannot be run, and without it nothing can be compared: {why}"))
        .hint("name ends that build and run; a step between them is skipped")
}

/// Refuses a search over kernels in which one is not built and booted, or whose trials lack something.
fn of_kernels(prepared: &Prepared) -> Result<(), Failure> {
    if !prepared.kernels.are_of_all_cells() {
        return Err(Failure::request("the trials would boot none of these kernels").hint(
            "kernels are booted in a guest, with devices of its own: -t virtio_blk:1g (assay help targets)",
        ));
    }
    prepared.tools_are_here()?;
    foreseen::check(prepared)
}
