//! A search that is begun, or goes on.
//!
//! Enters: options, what the arms are, or a stored search. Leaves: the run with all its trials (`search_trials.rs`).

use std::path::{Path, PathBuf};

use super::arms::{Arms, FACTOR};
use super::conduct::database_flag;
use super::prepare::Prepared;
use super::search_trials::lost_end;
use super::source::Source;
use super::{Args, early, overwrite, session, trust};
use crate::cli::Failure;
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
    /// A new one. The experiment's factor gets one level a step.
    ///
    /// # Errors
    /// A [`Failure`] with exit code 2; nothing was touched.
    pub(in crate::cli) fn new(
        args: &Args,
        steps: &[String],
        max_rounds: u32,
        bisects: Bisects,
    ) -> Result<Search, Failure> {
        let mut experiment = args.experiment(&Source::CommandLine, &[])?;
        // What a step sets is its arm's to say.
        let level = |step: &String| crate::experiment::Level { label: step.clone(), set: Vec::new() };
        experiment.factors = vec![crate::experiment::Factor {
            name: FACTOR.to_owned(),
            levels: steps.iter().map(level).collect(),
        }];
        experiment.compare = 0;
        experiment.stop.max_rounds = max_rounds;
        let mut prepared = Prepared::new(args, &Source::CommandLine, experiment)?;
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

    /// The run as it is.
    pub(in crate::cli) fn run(&self) -> &Run {
        &self.prepared.run
    }

    /// A directory that is made for the session and removed after it, for what the steps are made of.
    pub(in crate::cli) fn place(&mut self) -> PathBuf {
        let work = self.prepared.work.first();
        let base = work.and_then(|path| path.parent()).unwrap_or(Path::new(".")).to_owned();
        let place =
            WorkDirectory::path_for(&base, &format!("steps-{:016x}", super::prepare::seed_from_clock()));
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
                Some((step, why)) => Err(Failure::tool(format!(
                    "{} cannot be run, and without it nothing can be compared: {why}",
                    step_name(&run, step)
                ))
                .hint("name ends that build and run; a step between them is skipped")
                .into()),
                None => Ok(run),
            },
        }
    }
}
