//! The trials of a search: each round runs the ends and the steps that are asked, and asks the next ones by what it measured.
//!
//! Enters: a prepared run, what its arms are. Leaves: the run with its trials, stored as those of any run. It must not know what a step is
//! ([`Arms`] does) nor how it is searched ([`Bisected`] does).

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use super::arms::{Arms, Made};
use super::conduct::{Conduct, database_flag};
use super::prepare::Prepared;
use super::store_sink::StoreSink;
use super::time_left::{Planned, TimeLeft};
use crate::analyse::{Bisected, Next, lost_end};
use crate::cli::Failure;
use crate::cli::progress::Progress;
use crate::launch::{Answer, LaunchError, Launcher, Reply, Request, Unready};
use crate::record::Run;
use crate::report::{ends_so_far, step_name, wrapped};
use crate::run::{Ending, Event, Execution, Limits, Sink, SinkError};
use crate::store::Store;

/// The trials of a search.
pub(super) fn trials(
    conduct: &Conduct<'_>,
    store: &mut Store,
    prepared: &mut Prepared,
    arms: Box<dyn Arms>,
    id: i64,
    cancelled: &AtomicBool,
) -> anyhow::Result<Ending> {
    let (current, state) = (Cell::new(0), RefCell::new(Bisected::of(&prepared.run)));
    let ended = RefCell::new(None);
    let mut launcher = Making {
        inner: prepared.launcher()?,
        arms,
        current: &current,
        leads_in: prepared.plan.lead_in,
        made: BTreeMap::new(),
        ended: &ended,
        resume: format!("assay bisect --resume {id}{}", database_flag(conduct.db)),
    };
    let plan = &prepared.plan;
    let limits = Limits {
        rounds: plan.rounds_at_most(),
        time_budget: plan.stop.time_budget_s.map(Duration::from_secs_f64),
        disturbance: (!prepared.keep_disturbed).then(crate::host::Limits::default),
    };
    // It says what failed; how far the search is, the other one does.
    let planned = Planned {
        trials_s: vec![None; plan.cells.len()],
        boots_s: 0.0,
        rounds_for_one: 1.0,
        budget: limits.time_budget,
    };
    let mut failures = Progress::new(true, TimeLeft::new(planned));
    let mut store_sink = StoreSink { store, run: id };
    let mut shown = Shown { quiet: conduct.quiet, state: &state, last: None };
    let surroundings = &prepared.surroundings;
    let ending = Execution {
        run: &mut prepared.run,
        order: &|round| {
            let wanted = state.borrow().as_ref().map(|search| search.of_round(round)).unwrap_or_default();
            plan.order(round).into_iter().filter(|cell| wanted.contains(cell)).collect()
        },
        lead_in: &|round| plan.lead_in(round),
        request: &|cell, round| {
            current.set(cell);
            crate::run::request(plan, surroundings, cell, round)
        },
        launcher: &mut launcher,
        sinks: vec![&mut store_sink, &mut failures, &mut shown],
        decided: &mut |run| {
            let now = Bisected::of(run);
            let over = now.as_ref().is_none_or(|now| {
                let useless = now.not_positive > 0 && now.pairs == 0;
                matches!(now.next, Next::Stop(_)) || useless
            });
            state.replace(now);
            over || lost_end(run).is_some() || super::verdict::primary_is_known(run).is_err()
        },
        cancelled,
        limits,
    }
    .execute();
    match ended.take() {
        Some(failure) => Err(anyhow::Error::from(failure)),
        None => ending.map_err(|error| Failure::tool(error).into()),
    }
}

/// A step that takes longer to be made was built.
const SLOW: Duration = Duration::from_secs(1);

/// Makes each step ready before its first trial.
struct Making<'m> {
    inner: Box<dyn Launcher>,
    arms: Box<dyn Arms>,
    /// The step of the request that comes next.
    current: &'m Cell<usize>,
    /// Whether trials that are not judged come before others.
    leads_in: bool,
    /// Steps that were made, each with why it cannot be run, if so.
    made: BTreeMap<usize, Option<String>>,
    /// Why no step can be made any more.
    ended: &'m RefCell<Option<Failure>>,
    /// The command that goes on with the search.
    resume: String,
}

impl Making<'_> {
    fn ends(&self, failure: Failure) -> LaunchError {
        self.ended.replace(Some(failure));
        LaunchError::Cancelled { left: Vec::new() }
    }
}

/// A search that ends for what the machine lacks, with the command that goes on with it.
fn goes_on_later(Unready { reason, hint }: Unready, resume: &str) -> Failure {
    let first = if hint.is_empty() { String::new() } else { format!("{hint}; then ") };
    Failure::tool(reason).hint(format!("{first}`{resume}` goes on with the search"))
}

impl Launcher for Making<'_> {
    fn launch(&mut self, request: &Request, cancelled: &AtomicBool) -> Result<Reply, LaunchError> {
        let step = self.current.get();
        if !self.made.contains_key(&step) {
            let begun = Instant::now();
            let why = match self.arms.make(step, request, self.inner.as_mut(), cancelled)? {
                Made::Ready => None,
                Made::Cannot(reason) => Some(reason),
                Made::Ends(failure) => return Err(self.ends(failure)),
                Made::Lacks(lack) => {
                    let failure = goes_on_later(lack, &self.resume);
                    return Err(self.ends(failure));
                }
            };
            // What was built leaves warm processors and other caches than the trials of its neighbours find.
            if why.is_none() && self.leads_in && begun.elapsed() >= SLOW {
                self.inner.launch(&self.arms.trial(step, request.clone()), cancelled)?;
            }
            self.made.insert(step, why);
        }
        match self.made.get(&step) {
            Some(Some(reason)) => Ok(Reply::of(Answer::Unsupported { reason: reason.clone() })),
            _ => self.inner.launch(&self.arms.trial(step, request.clone()), cancelled),
        }
    }

    fn round_goes_on(&mut self, left: &mut dyn Iterator<Item = Request>) {
        let (arms, current) = (&self.arms, self.current);
        // Whoever makes a request says of which step it is.
        self.inner.round_goes_on(&mut left.map(|request| arms.trial(current.get(), request)));
    }

    fn round_ends(&mut self) {
        self.inner.round_ends();
    }
}

/// A line a round, on standard error: which steps are left.
struct Shown<'s> {
    quiet: bool,
    state: &'s RefCell<Option<Bisected>>,
    last: Option<Instant>,
}

/// Lines come at most this often.
const INTERVAL: Duration = Duration::from_secs(2);

impl Sink for Shown<'_> {
    fn event(&mut self, event: &Event<'_>) -> Result<(), SinkError> {
        use std::io::Write;
        let mut said = crate::sys::terminal::err();
        match event {
            // The first round of those that follow is about to begin: what all before it say is known.
            Event::LeadInBegins { run, round, .. } | Event::TrialBegins { run, round, attempt: 0, .. }
                if !self.quiet && self.last.is_none_or(|last| last.elapsed() >= INTERVAL) =>
            {
                self.last = Some(Instant::now());
                if let Some(line) = self.state.borrow().as_ref().and_then(|state| line(run, state, *round)) {
                    // Nobody to tell is no reason to end a run.
                    let _ = writeln!(said, "{}", wrapped(&line, "  "));
                }
            }
            Event::RoundExcluded { round, rule, .. } if !self.quiet => {
                let _ = writeln!(said, "round {} is thrown out: {rule}", round + 1);
            }
            _ => {}
        }
        Ok(())
    }
}

fn line(run: &Run, state: &Bisected, round: u32) -> Option<String> {
    let names =
        |steps: &[usize]| steps.iter().map(|step| step_name(run, *step)).collect::<Vec<_>>().join(" and ");
    match &state.next {
        Next::Ends => Some(format!(
            "round {}: comparing {} with {}{}",
            round + 1,
            step_name(run, 0),
            step_name(run, state.steps),
            ends_so_far(state).map_or_else(String::new, |known| format!(": {known}"))
        )),
        Next::Ask(asked) => {
            let (left, likeliest) = (&state.range, state.likeliest.first()?);
            Some(format!(
                "round {}: asking {}; likeliest {} ({:.0} %), with {:.0} % one of {} to {}",
                round + 1,
                names(asked),
                step_name(run, likeliest.last),
                100.0 * likeliest.probability,
                100.0 * left.probability,
                step_name(run, left.first),
                step_name(run, left.last)
            ))
        }
        Next::Stop(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_that_ended_for_a_lack_names_itself() {
        let lack = Unready { reason: "no space".to_owned(), hint: "make some".to_owned() };
        let failure = goes_on_later(lack, "assay bisect --resume 7 --db x.db");
        let hint = failure.hinted().unwrap().to_string();
        assert_eq!(hint, "make some; then `assay bisect --resume 7 --db x.db` goes on with the search");
    }
}
