//! Rounds of trials in the plan's order, until the rule says stop.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::disturbed::{disturbed_rows, is_half_excluded};
use super::event::{Event, Sink, SinkError};
use super::remaining::Remaining;
use super::settle::settle_ms;
use crate::catalog::{EngineKind, Reaches};
use crate::host::Limits as DisturbanceLimits;
use crate::launch::{Answer, LaunchError, Launcher, Reply, Request};
use crate::record::{
    FailureKind, LeadIn, Note, NoteKind, Outcome, Run, RunState, Sample, Status, Trial, Unit,
};

/// Bytes of a failed trial's output that are kept, as many as of a hook that worked.
const MOST_OUTPUT: usize = 64 << 10;

/// Rules fixed before the first trial; none of them can see an outcome.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Most rounds.
    pub rounds: u32,
    /// Ends the run with the trial that passes it.
    pub time_budget: Option<Duration>,
    /// Throws a round out, for the rows it concerns, for what others did to the machine in one of their trials; `None`: never.
    pub disturbance: Option<DisturbanceLimits>,
}

/// Why a run could not go on.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A sink failed.
    #[error(transparent)]
    Sink(#[from] SinkError),
    /// The agent could not be started.
    #[error(transparent)]
    Launch(LaunchError),
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// By its rule.
    Finished,
    /// By Ctrl-C or SIGTERM.
    Interrupted,
    /// A cell failed in so many rounds running that it is given up.
    Failed,
    /// No row has its baseline and a candidate left: the others failed as they would again.
    Hopeless,
}

/// Everything needed to execute a plan.
pub struct Execution<'e> {
    /// The run; trials are added to it. With `--resume` it holds those done before.
    pub run: &'e mut Run,
    /// Cells of a round in the order they are run.
    pub order: &'e dyn Fn(u32) -> Vec<usize>,
    /// The cell of the trial that leads into a round, and its seed.
    pub lead_in: &'e dyn Fn(u32) -> Option<(usize, u64)>,
    /// What is asked of the agent for (cell, round).
    pub request: &'e dyn Fn(usize, u32) -> Request,
    /// Where trials execute.
    pub launcher: &'e mut dyn Launcher,
    /// Who is told.
    pub sinks: Vec<&'e mut dyn Sink>,
    /// Whether every verdict has been reached; asked after each round.
    pub decided: &'e mut dyn FnMut(&Run) -> bool,
    /// Set by Ctrl-C and SIGTERM.
    pub cancelled: &'e AtomicBool,
    /// When to stop at the latest, and what throws a round out.
    pub limits: Limits,
}

impl Execution<'_> {
    /// Runs all rounds; the run's state and notes are set at the end.
    ///
    /// # Errors
    /// [`RunError`]: a sink or the agent's start failed. Trials stored until then stay.
    pub fn execute(&mut self) -> Result<Ending, RunError> {
        let session = self.run.trials.len();
        // How an earlier session ended is not how this one does.
        self.run.notes.retain(|note| note.kind != NoteKind::Ending);
        let trials_left = self.remaining(session).trials_left(self.limits.rounds);
        self.tell(|run| Event::RunBegins { run, trials_left })?;
        let ending = self.rounds(session);
        self.run.state = match ending {
            Ok(Ending::Finished) => RunState::Finished,
            Ok(Ending::Interrupted) => RunState::Interrupted,
            Ok(Ending::Failed | Ending::Hopeless) | Err(_) => RunState::Failed,
        };
        let told = self.tell(|run| Event::RunEnds { run });
        let ending = ending?;
        told.map(|()| ending)
    }

    /// Notes how the session ended.
    fn ended(&mut self, text: impl Into<String>) {
        self.run.notes.push(Note::ending(text));
    }

    fn remaining(&self, session: usize) -> Remaining<'_> {
        Remaining { run: self.run, session }
    }

    fn rounds(&mut self, session: usize) -> Result<Ending, RunError> {
        let begun = Instant::now();
        let mut round = 0;
        // A round thrown out is made up for, but not for ever on a machine that is never calm.
        let most = 2 * self.limits.rounds + self.remaining(session).most_not_whole();
        while self.missing(round, session) > 0 && round < most {
            let this = round;
            round += 1;
            let begins = !self.complete(this, session);
            if begins {
                match self.round(this, session, begun)? {
                    Round::Whole => {}
                    Round::OutOfTime => return Ok(self.out_of_time(this)),
                    Round::Ended(ending) => return Ok(ending),
                }
            }
            // An earlier session went on after this round; asked now, the part of a later round would be judged with it.
            let later = self.run.trials.iter().any(|t| t.round > this);
            if !later && (self.decided)(self.run) {
                return Ok(Ending::Finished);
            }
            let remaining = self.remaining(session);
            if remaining.nothing_to_compare() {
                let hopeless = remaining.any_given_up();
                self.ended("ended early: nothing is left to compare, as the baseline or its candidates cannot be run here");
                return Ok(if hopeless { Ending::Hopeless } else { Ending::Finished });
            }
            if begins && self.missing(round, session) > 0 && self.time_is_over(begun, session) {
                return Ok(self.out_of_time(round));
            }
        }
        let missing = self.missing(round, session);
        if missing > 0 {
            self.ended(format!(
                "rounds are missing: {missing}, because too many of the {round} that were run were thrown out for what others \
                 did to the machine; --keep-disturbed counts them all"
            ));
        }
        Ok(Ending::Finished)
    }

    /// Whether the time budget is spent. A session that goes on does at least one trial, however long it took to find which.
    fn time_is_over(&self, begun: Instant, session: usize) -> bool {
        let spent = self.limits.time_budget.is_some_and(|budget| begun.elapsed() >= budget);
        spent && self.run.trials.len() > session
    }

    /// Ends the run after so many whole rounds. Trials of the next one that are there stay: `--resume` goes on with them.
    fn out_of_time(&mut self, rounds: u32) -> Ending {
        let s = |count: usize| if count == 1 { "" } else { "s" };
        let more = match self.run.trials.iter().filter(|trial| trial.round == rounds).count() {
            0 => String::new(),
            trials => format!(" and {trials} trial{} of the next", s(trials)),
        };
        self.ended(format!("the time budget ended it after {rounds} round{}{more}", s(rounds as usize)));
        Ending::Finished
    }

    /// How many rounds the row that lost most of the first `rounds` still lacks.
    fn missing(&self, rounds: u32, session: usize) -> u32 {
        let counted = self.remaining(session).rounds_that_count(rounds);
        self.limits.rounds - counted.into_iter().min().unwrap_or(rounds).min(self.limits.rounds)
    }

    /// The cells of a round in their order, with their positions: not those whose row has all its rounds already.
    fn cells(&self, round: u32, session: usize) -> Vec<(u32, usize)> {
        let all = (0..).zip((self.order)(round));
        if round < self.limits.rounds {
            return all.collect();
        }
        let counted = self.remaining(session).rounds_that_count(round);
        all.filter(|(_, cell)| counted.get(*cell).is_none_or(|rounds| *rounds < self.limits.rounds)).collect()
    }

    /// Whether nothing of the round is left to do (a resumed run): every trial has ended, and of a disturbed row all are
    /// excluded.
    fn complete(&self, round: u32, session: usize) -> bool {
        let remaining = self.remaining(session);
        let ended = |(position, cell)| remaining.lost(cell) || remaining.settled(round, position);
        !is_half_excluded(self.run, round) && self.cells(round, session).into_iter().all(ended)
    }

    fn round(&mut self, round: u32, session: usize, begun: Instant) -> Result<Round, RunError> {
        // A round that an earlier session began is gone on with.
        let fresh = !self.run.trials.iter().any(|trial| trial.round == round);
        let cells = self.cells(round, session);
        let first = cells.first().map(|(_, cell)| *cell);
        if let Some((cell, seed)) =
            (self.lead_in)(round).filter(|_| fresh).zip(first).map(|((_, s), c)| (c, s))
            && !self.remaining(session).lost(cell)
            && self.lead_into(round, cell, seed)? == Ending::Interrupted
        {
            return Ok(Round::Ended(Ending::Interrupted));
        }
        for (at, &(position, cell)) in cells.iter().enumerate() {
            if self.remaining(session).lost(cell) {
                continue;
            }
            let mut tried = false;
            while !self.remaining(session).settled(round, position) {
                tried = true;
                let attempt = self.remaining(session).attempts(round, position);
                if self.time_is_over(begun, session) {
                    self.launcher.round_ends();
                    return Ok(Round::OutOfTime);
                }
                if self.cancelled.load(Ordering::SeqCst) {
                    return Ok(Round::Ended(Ending::Interrupted));
                }
                match self.trial(Place { cell, round, position, attempt }, session)? {
                    Attempt::Ended => {}
                    Attempt::Interrupted => return Ok(Round::Ended(Ending::Interrupted)),
                }
            }
            // Failures of an earlier session are what a resumed run wants to get over.
            if let Some(rounds) = self.remaining(session).keeps_failing(cell, round).filter(|_| tried) {
                self.ended(format!(
                    "stopped: a cell failed in rounds {} {} {}; see its last output in `assay show`",
                    round + 2 - rounds,
                    if rounds == 2 { "and" } else { "to" },
                    round + 1
                ));
                return Ok(Round::Ended(Ending::Failed));
            }
            let (request, left) = (self.request, &cells[at + 1..]);
            if !left.is_empty() {
                self.launcher.round_goes_on(&mut left.iter().map(|(_, cell)| request(*cell, round)));
            }
        }
        self.launcher.round_ends();
        self.tell(|run| Event::RoundEnds { run, round })?;
        self.exclude(round)?;
        Ok(Round::Whole)
    }

    /// Throws a round out for the rows in which a trial was disturbed, by a rule that sees what others did to the machine and
    /// never a result.
    fn exclude(&mut self, round: u32) -> Result<(), RunError> {
        for (rule, cells) in disturbed_rows(self.run, round) {
            let of_rows = |trial: &&mut Trial| trial.round == round && cells.contains(&trial.cell);
            for trial in self.run.trials.iter_mut().filter(of_rows) {
                trial.excluded = Some(rule.clone());
            }
            let (rule, cells) = (&rule, &cells);
            self.tell(|run| Event::RoundExcluded { run, round, cells, rule })?;
        }
        Ok(())
    }

    /// Runs the trial that leads into a round. Whatever comes of it, the round is run.
    fn lead_into(&mut self, round: u32, cell: usize, seed: u64) -> Result<Ending, RunError> {
        if self.cancelled.load(Ordering::SeqCst) {
            return Ok(Ending::Interrupted);
        }
        self.tell(|run| Event::LeadInBegins { run, cell: cell as u32, round })?;
        let (started_unix_ns, begun) = (now_unix_ns(), Instant::now());
        let mut request = self.request(cell, round);
        request.task.seed = seed;
        let Some(reply) = self.launched(&request)? else { return Ok(Ending::Interrupted) };
        let (failed, wrong_data, samples) = match reply.answer {
            Answer::Done(outcome) => (None, false, plain_single_job(outcome).samples),
            Answer::Unsupported { reason } => (Some(reply.why.with(&reason)), false, Vec::new()),
            Answer::Failed { reason, kind, .. } => {
                (Some(reply.why.with(&reason)), kind == FailureKind::WrongData, Vec::new())
            }
        };
        if let Some(reason) = failed.as_ref().filter(|_| wrong_data) {
            let found = format!("the trial that led into round {} found wrong data: {reason}", round + 1);
            self.run.notes.push(found.into());
        }
        let mut values: Vec<(u32, f64)> = Vec::new();
        for sample in samples.into_iter().filter(|sample| sample.value.is_finite()) {
            let metric = self.run.metric_index(&sample.metric);
            if !values.iter().any(|(known, _)| *known == metric) {
                values.push((metric, sample.value));
            }
        }
        let elapsed_s = begun.elapsed().as_secs_f64();
        let lead_in =
            LeadIn { cell: cell as u32, round, started_unix_ns, elapsed_s, failed, wrong_data, values };
        self.run.lead_ins.push(lead_in);
        let index = self.run.lead_ins.len() - 1;
        self.tell(|run| Event::LeadInEnds { run, index })?;
        Ok(Ending::Finished)
    }

    fn request(&self, cell: usize, round: u32) -> Request {
        let mut request = (self.request)(cell, round);
        request.target.settle_ms = request.target.settle_ms.or_else(|| settle_ms(request.engine, self.run));
        request
    }

    /// What the agent answers; `None`: interrupted, and what could not be put back is in the notes.
    fn launched(&mut self, request: &Request) -> Result<Option<Reply>, RunError> {
        match self.launcher.launch(request, self.cancelled) {
            Ok(reply) => Ok(Some(reply)),
            Err(error @ LaunchError::Cancelled { .. }) => {
                self.run.notes.extend(error.left().map(Note::from));
                Ok(None)
            }
            Err(error) => Err(RunError::Launch(error)),
        }
    }

    fn trial(&mut self, place: Place, session: usize) -> Result<Attempt, RunError> {
        let Place { cell, round, position, attempt } = place;
        self.tell(|run| Event::TrialBegins { run, cell: cell as u32, round, attempt })?;
        let (started_unix_ns, begun) = (now_unix_ns(), Instant::now());
        let request = self.request(cell, round);
        let Some(reply) = self.launched(&request)? else { return Ok(Attempt::Interrupted) };
        let limits = limits_for(request.engine, self.limits.disturbance.unwrap_or_default());
        let disturbed_by =
            reply.disturbance.as_ref().and_then(|seen| limits.and_then(|limits| seen.over(&limits)));
        // Where all rounds count, a note says what disturbed the trial.
        let (excluded, kept) =
            if self.limits.disturbance.is_some() { (disturbed_by, None) } else { (None, disturbed_by) };
        let mut trial = Trial {
            cell: cell as u32,
            round,
            position,
            attempt,
            started_unix_ns,
            elapsed_s: begun.elapsed().as_secs_f64(),
            // Stored with the trial, so that the round is still excluded when assay is killed before its end.
            excluded,
            ..Trial::default()
        };
        let stolen = stolen(request.engine, &reply);
        take(self.run, &mut trial, reply);
        trial.notes.extend(kept.map(|rule| Note::from(format!("it counts, although {rule}"))));
        if let Some(stolen) = stolen.filter(|_| trial.status == Status::Done) {
            trial.values.push((self.run.metric_index(&stolen.metric), stolen.value));
        }
        self.run.trials.push(trial);
        let index = self.run.trials.len() - 1;
        let trials_left = self.remaining(session).trials_left(self.limits.rounds);
        self.tell(|run| Event::TrialEnds { run, index, trials_left })?;
        // Whoever keeps them has them now, and many trials' files are much.
        self.run.trials[index].files.clear();
        Ok(Attempt::Ended)
    }

    fn tell<'t>(&'t mut self, event: impl Fn(&'t Run) -> Event<'t>) -> Result<(), RunError> {
        let run: &'t Run = self.run;
        // One that fails keeps no other from what it shows.
        let told: Vec<_> = self.sinks.iter_mut().map(|sink| sink.event(&event(run))).collect();
        told.into_iter().collect::<Result<Vec<()>, _>>()?;
        Ok(())
    }
}

/// Nanoseconds since 1970.
#[must_use]
pub fn now_unix_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_nanos() as u64)
}

/// What may disturb an engine: one without I/O no disk, a program that may read from anywhere only the processor.
fn limits_for(engine: EngineKind, limits: DisturbanceLimits) -> Option<DisturbanceLimits> {
    match engine.descriptor().reaches {
        Reaches::Nothing => None,
        Reaches::OwnDirectory | Reaches::Anything => {
            Some(DisturbanceLimits { foreign_read_bytes: u64::MAX, ..limits })
        }
        Reaches::JobFiles => Some(limits),
    }
}

/// What the hypervisor took while an engine worked that the machine can disturb.
fn stolen(engine: EngineKind, reply: &Reply) -> Option<Sample> {
    let reaches = engine.descriptor().reaches != Reaches::Nothing;
    let seconds = reply.disturbance.as_ref().filter(|_| reaches)?.steal_s;
    Some(Sample::new("", "machine.steal", Unit::Seconds, seconds))
}

/// How a round ended.
enum Round {
    /// Every trial of it was run.
    Whole,
    /// The time budget was spent in the middle of it.
    OutOfTime,
    /// The whole run ended in it.
    Ended(Ending),
}

/// One attempt at a trial.
#[derive(Clone, Copy)]
struct Place {
    cell: usize,
    round: u32,
    position: u32,
    attempt: u32,
}

/// What came of one attempt at a trial.
enum Attempt {
    Ended,
    Interrupted,
}

/// Moves what the agent answered into the trial.
fn take(run: &mut Run, trial: &mut Trial, reply: Reply) {
    if reply.facts != crate::record::HostFacts::default() {
        trial.facts = Some(run.facts_index(&reply.facts));
    }
    let why = reply.why;
    trial.files = reply.files;
    match reply.answer {
        Answer::Done(outcome) => {
            let outcome = plain_single_job(outcome);
            keep_values(run, trial, &outcome.samples);
            trial.histograms = outcome.histograms;
            trial.series = outcome.series;
            trial.notes = outcome.notes;
        }
        Answer::Failed { kind, reason, command, output, so_far } => {
            // What was counted until then is kept beside the reason; nothing that failed is ever judged.
            keep_values(run, trial, &so_far);
            let output = last_of(output);
            trial.status = Status::Failed { kind, reason: why.with(&reason), command, output };
        }
        // It worked in an earlier round, so this is a failure, not a skip: it may pass, or show again in the next round.
        Answer::Unsupported { reason } if run.trials.iter().any(|known| known.cell == trial.cell) => {
            let (kind, command, output) = (FailureKind::Passing, String::new(), String::new());
            trial.status = Status::Failed { kind, reason: why.with(&reason), command, output };
        }
        Answer::Unsupported { reason } => {
            trial.status = Status::Skipped { reason: why.with(&reason) };
        }
    }
}

/// Each value once: an engine and an observer may have measured the same.
fn keep_values(run: &mut Run, trial: &mut Trial, samples: &[Sample]) {
    let mut seen = BTreeSet::new();
    for sample in samples {
        let metric = run.metric_index(&sample.metric);
        if seen.insert(metric) {
            trial.values.push((metric, sample.value));
        }
    }
}

/// The end of what a trial that failed has printed, as much as a store keeps of it.
fn last_of(mut output: String) -> String {
    if output.len() > MOST_OUTPUT {
        let cut = output.ceil_char_boundary(output.len() - MOST_OUTPUT);
        output.replace_range(..cut, "…");
    }
    output
}

/// With a single job there is nothing to tell apart: its results are the trial's.
fn plain_single_job(mut outcome: Outcome) -> Outcome {
    let jobs: BTreeSet<&str> =
        outcome.samples.iter().map(|s| s.metric.job.as_str()).filter(|job| !job.is_empty()).collect();
    if jobs.len() == 1 {
        outcome.samples.iter_mut().for_each(|s| s.metric.job.clear());
        outcome.histograms.iter_mut().for_each(|h| h.job.clear());
        outcome.series.iter_mut().for_each(|s| s.job.clear());
    }
    outcome
}
