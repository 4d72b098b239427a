//! The order of a run, read as a specification: `run::Execution` with a launcher that only pretends.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use assay::host::{Disturbance, Limits as DisturbanceLimits};
use assay::launch::{Answer, EngineKind, LaunchError, Launcher, PROTOCOL, Reply, Request, Task};
use assay::record::{FailureKind, FailureRule, Note, Outcome, Run, RunState, Sample, Source, Status, Unit};
use assay::run::{Ending, Event, Execution, Limits, RunError, Sink, SinkError};
use assay::target::TargetSpec;

use crate::fixtures::empty_run;

/// What the pretended trial does: (cell, round, how often it was asked before).
type Script<'s> = dyn Fn(usize, u32, u32) -> Result<Reply, LaunchError> + 's;

struct Pretended<'s> {
    script: &'s Script<'s>,
    asked: Vec<(usize, u32)>,
}

impl Launcher for Pretended<'_> {
    fn launch(&mut self, request: &Request, _: &AtomicBool) -> Result<Reply, LaunchError> {
        let place = ((request.task.seed % 1000) as usize, (request.task.seed / 1000) as u32);
        let before = self.asked.iter().filter(|asked| **asked == place).count() as u32;
        self.asked.push(place);
        (self.script)(place.0, place.1, before)
    }
}

/// Events as short words, in order.
#[derive(Default)]
struct Log {
    words: Vec<String>,
    /// How many trials were still to come after each.
    left: Vec<u64>,
    fail_at: Option<&'static str>,
}

impl Sink for Log {
    fn event(&mut self, event: &Event<'_>) -> Result<(), SinkError> {
        if let Event::TrialEnds { trials_left, .. } = event {
            self.left.push(*trials_left);
        }
        let word = match event {
            Event::RunBegins { trials_left, .. } => format!("begin {trials_left}"),
            Event::LeadInBegins { cell, round, .. } => format!("into {round}.{cell}"),
            Event::LeadInEnds { .. } => "led".to_owned(),
            Event::TrialBegins { cell, round, attempt, .. } => format!("{round}.{cell}.{attempt}"),
            Event::TrialEnds { run, index, .. } => match &run.trials[*index].status {
                Status::Done => "done".to_owned(),
                Status::Failed { reason, .. } => format!("failed {reason}"),
                Status::Skipped { reason } => format!("skipped {reason}"),
            },
            Event::RoundEnds { round, .. } => format!("round {round}"),
            Event::RoundExcluded { round, rule, .. } => format!("excluded {round} {rule}"),
            Event::RunEnds { run } => format!("end {:?}", run.state),
        };
        if self.fail_at == Some(word.as_str()) {
            return Err(SinkError("the disk is full".into()));
        }
        self.words.push(word);
        Ok(())
    }
}

impl Log {
    fn joined(&self) -> String {
        self.words.join(" | ")
    }
}

fn reply(answer: Answer) -> Reply {
    Reply::of(answer)
}

fn done() -> Result<Reply, LaunchError> {
    let samples = vec![Sample::new("", "runtime", Unit::Seconds, 1.5)];
    Ok(reply(Answer::Done(Outcome { samples, ..Outcome::default() })))
}

fn failed(reason: &str) -> Result<Reply, LaunchError> {
    failed_as(FailureKind::Passing, reason)
}

fn failed_as(kind: FailureKind, reason: &str) -> Result<Reply, LaunchError> {
    Ok(reply(Answer::Failed {
        kind,
        reason: reason.to_owned(),
        command: "false".to_owned(),
        output: "its last words".to_owned(),
        so_far: Vec::new(),
    }))
}

fn unsupported() -> Result<Reply, LaunchError> {
    Ok(reply(Answer::Unsupported { reason: "no io_uring".to_owned() }))
}

fn stolen() -> Disturbance {
    Disturbance { elapsed_s: 1.0, steal_s: 0.5, steal_share: 0.5, ..Disturbance::default() }
}

fn disturbed() -> Result<Reply, LaunchError> {
    done().map(|reply| Reply { disturbance: Some(stolen()), ..reply })
}

/// The round's cells: ascending in even rounds, descending in odd ones.
fn order(cells: usize, round: u32) -> Vec<usize> {
    let ascending = 0..cells;
    if round % 2 == 1 { ascending.rev().collect() } else { ascending.collect() }
}

fn request(cell: usize, round: u32) -> Request {
    Request {
        protocol: PROTOCOL,
        engine: EngineKind::Native,
        task: Task { seed: u64::from(round) * 1000 + cell as u64, ..Task::default() },
        target: TargetSpec::default(),
        rehearsal: false,
        observe: Vec::new(),
        before: None,
        after: None,
    }
}

struct Session<'s> {
    rounds: u32,
    time_budget: Option<Duration>,
    decided_after: Option<u32>,
    cancelled: &'s AtomicBool,
    fail_at: Option<&'static str>,
    /// A trial leads into each round.
    lead_in: bool,
}

/// The launcher is asked for the lead-in of round n as for round n + this.
const LEAD_INS: u32 = 500;

static NEVER: AtomicBool = AtomicBool::new(false);

impl Default for Session<'_> {
    fn default() -> Self {
        Session {
            rounds: 2,
            time_budget: None,
            decided_after: None,
            cancelled: &NEVER,
            fail_at: None,
            lead_in: false,
        }
    }
}

impl Session<'_> {
    /// Executes; returns how it ended, the log and what the launcher was asked.
    fn execute(
        self,
        run: &mut Run,
        script: &Script<'_>,
    ) -> (Result<Ending, RunError>, Log, Vec<(usize, u32)>) {
        let cells = run.cells.len();
        let mut launcher = Pretended { script, asked: Vec::new() };
        let mut log = Log { fail_at: self.fail_at, ..Log::default() };
        let decided_after = self.decided_after;
        let ending = Execution {
            run,
            order: &|round| order(cells, round),
            lead_in: &|round| {
                let first = order(cells, round)[0];
                let seed = u64::from(round + LEAD_INS) * 1000 + first as u64;
                self.lead_in.then_some((first, seed))
            },
            request: &request,
            launcher: &mut launcher,
            sinks: vec![&mut log],
            decided: &mut |run| {
                let rounds = run.trials.iter().map(|t| t.round + 1).max();
                decided_after.is_some_and(|enough| rounds >= Some(enough))
            },
            cancelled: self.cancelled,
            limits: Limits {
                rounds: self.rounds,
                time_budget: self.time_budget,
                disturbance: Some(DisturbanceLimits::default()),
            },
        }
        .execute();
        (ending, log, launcher.asked)
    }
}

fn run_of(levels: &[&str]) -> Run {
    crossed(&[("arm", levels)])
}

fn crossed(factors: &[(&str, &[&str])]) -> Run {
    let mut run = empty_run("pretended", factors, Source::Measured);
    run.state = RunState::Running;
    run
}

/// What identifies a stored trial.
fn places(run: &Run) -> Vec<(u32, u32, u32, u32)> {
    run.trials.iter().map(|t| (t.round, t.position, t.cell, t.attempt)).collect()
}

#[test]
fn the_order_is_the_plans_and_every_event_comes_in_its_place() {
    let mut run = run_of(&["a", "b"]);
    let (ending, log, asked) = Session::default().execute(&mut run, &|_, _, _| done());
    assert_eq!(ending.unwrap(), Ending::Finished);
    assert_eq!(asked, [(0, 0), (1, 0), (1, 1), (0, 1)]);
    assert_eq!(
        log.joined(),
        "begin 4 | 0.0.0 | done | 0.1.0 | done | round 0 | 1.1.0 | done | 1.0.0 | done | round 1 | end Finished"
    );
    assert_eq!(places(&run), [(0, 0, 0, 0), (0, 1, 1, 0), (1, 0, 1, 0), (1, 1, 0, 0)]);
    assert_eq!(run.state, RunState::Finished);
    let runtime = run.metrics.iter().position(|m| m.name == "runtime").unwrap() as u32;
    assert!(run.trials.iter().all(|t| t.value(runtime) == Some(1.5)), "{:?}", run.trials);
}

#[test]
fn the_cell_that_goes_first_leads_into_each_round() {
    let mut run = run_of(&["a", "b"]);
    let session = || Session { lead_in: true, ..Session::default() };
    let (ending, log, asked) = session().execute(&mut run, &|_, _, _| done());
    assert_eq!(ending.unwrap(), Ending::Finished);
    assert_eq!(asked, [(0, LEAD_INS), (0, 0), (1, 0), (1, LEAD_INS + 1), (1, 1), (0, 1)]);
    assert_eq!(
        log.joined(),
        "begin 4 | into 0.0 | led | 0.0.0 | done | 0.1.0 | done | round 0 | into 1.1 | led | 1.1.0 | done | 1.0.0 | done | \
         round 1 | end Finished"
    );
    assert_eq!(places(&run), [(0, 0, 0, 0), (0, 1, 1, 0), (1, 0, 1, 0), (1, 1, 0, 0)], "it is no trial");
    let runtime = run.metrics.iter().position(|m| m.name == "runtime").unwrap() as u32;
    let led: Vec<_> = run.lead_ins.iter().map(|l| (l.round, l.cell, l.values.clone())).collect();
    assert_eq!(led, [(0, 0, vec![(runtime, 1.5)]), (1, 1, vec![(runtime, 1.5)])]);
}

#[test]
fn a_lead_in_that_fails_leaves_its_round_whole() {
    let mut run = run_of(&["a", "b"]);
    let script = |_, round, _| if round >= LEAD_INS { failed("x") } else { done() };
    let session = Session { rounds: 4, lead_in: true, ..Session::default() };
    let (ending, _, asked) = session.execute(&mut run, &script);
    assert_eq!(
        (ending.unwrap(), asked.len(), run.trials.len()),
        (Ending::Finished, 12, 8),
        "it is not tried again"
    );
    assert!(run.trials.iter().all(assay::record::Trial::counts) && run.failures().count() == 0);
    let reasons: Vec<_> = run.lead_ins.iter().map(|lead_in| lead_in.failed.as_deref()).collect();
    assert_eq!(reasons, [Some("x"); 4]);
}

#[test]
fn wrong_data_in_a_lead_in_are_noted() {
    let mut run = run_of(&["a", "b"]);
    let wrong = |round| round == LEAD_INS + 1;
    let script =
        |_, round, _| if wrong(round) { failed_as(FailureKind::WrongData, "EILSEQ") } else { done() };
    let session = Session { lead_in: true, ..Session::default() };
    session.execute(&mut run, &script).0.unwrap();
    assert_eq!(run.lead_ins.iter().map(|lead_in| lead_in.wrong_data).collect::<Vec<_>>(), [false, true]);
    assert_eq!(run.notes, [Note::from("the trial that led into round 2 found wrong data: EILSEQ")]);
}

#[test]
fn a_cell_that_cannot_be_run_leads_into_no_round() {
    let mut run = run_of(&["a", "b", "c"]);
    let script = |cell, _, _| if cell == 2 { unsupported() } else { done() };
    let session = Session { rounds: 2, lead_in: true, ..Session::default() };
    let (ending, _, asked) = session.execute(&mut run, &script);
    assert_eq!(ending.unwrap(), Ending::Finished);
    assert_eq!(asked, [(0, LEAD_INS), (0, 0), (1, 0), (2, 0), (1, 1), (0, 1)]);
}

#[test]
fn nothing_leads_into_a_round_that_is_gone_on_with() {
    let session = || Session { lead_in: true, ..Session::default() };
    let mut whole = run_of(&["a", "b"]);
    session().execute(&mut whole, &|_, _, _| done()).0.unwrap();
    for (kept, then) in [
        (0, vec![(0, LEAD_INS), (0, 0), (1, 0), (1, LEAD_INS + 1), (1, 1), (0, 1)]),
        (1, vec![(1, 0), (1, LEAD_INS + 1), (1, 1), (0, 1)]),
        (2, vec![(1, LEAD_INS + 1), (1, 1), (0, 1)]),
        (3, vec![(0, 1)]),
    ] {
        let mut run = run_of(&["a", "b"]);
        run.metrics = whole.metrics.clone();
        run.trials = whole.trials[..kept].to_vec();
        let (ending, _, asked) = session().execute(&mut run, &|_, _, _| done());
        assert_eq!((ending.unwrap(), asked), (Ending::Finished, then), "killed after {kept} trials");
    }
}

#[test]
fn interrupted_in_a_lead_in_nothing_is_recorded_of_it() {
    let mut run = run_of(&["a", "b"]);
    let script = |_, round, _| {
        if round == LEAD_INS + 1 { Err(LaunchError::Cancelled { left: Vec::new() }) } else { done() }
    };
    let session = || Session { lead_in: true, ..Session::default() };
    let (ending, ..) = session().execute(&mut run, &script);
    assert_eq!((ending.unwrap(), run.trials.len(), run.lead_ins.len()), (Ending::Interrupted, 2, 1));
    let (ending, _, asked) = session().execute(&mut run, &|_, _, _| done());
    assert_eq!((ending.unwrap(), asked), (Ending::Finished, vec![(1, LEAD_INS + 1), (1, 1), (0, 1)]));
    assert_eq!(run.lead_ins.len(), 2);
}

#[test]
fn it_ends_with_the_round_in_which_everything_is_decided() {
    let mut run = run_of(&["a", "b"]);
    let session = Session { rounds: 9, decided_after: Some(3), ..Session::default() };
    let (ending, _, asked) = session.execute(&mut run, &|_, _, _| done());
    assert_eq!((ending.unwrap(), asked.len()), (Ending::Finished, 6));
}

#[test]
fn a_failed_trial_is_tried_once_more() {
    let mut run = run_of(&["a", "b"]);
    let script = |cell, round, before| if (cell, round, before) == (1, 0, 0) { failed("x") } else { done() };
    let (ending, log, _) = Session { rounds: 1, ..Session::default() }.execute(&mut run, &script);
    assert_eq!(ending.unwrap(), Ending::Finished);
    assert_eq!(
        log.joined(),
        "begin 2 | 0.0.0 | done | 0.1.0 | failed x | 0.1.1 | done | round 0 | end Finished"
    );
    let Status::Failed { reason, command, output, .. } = &run.trials[1].status else {
        panic!("{:?}", run.trials)
    };
    assert_eq!((reason.as_str(), command.as_str(), output.as_str()), ("x", "false", "its last words"));
    assert!(run.trials[2].counts() && run.trials[2].attempt == 1);
}

#[test]
fn after_a_trial_that_fails_twice_the_run_goes_on() {
    let mut run = run_of(&["a", "b"]);
    let script = |cell, round, _| if (cell, round) == (0, 0) { failed("x") } else { done() };
    let (ending, log, asked) = Session { rounds: 3, ..Session::default() }.execute(&mut run, &script);
    assert_eq!((ending.unwrap(), asked.len()), (Ending::Finished, 7));
    assert!(
        log.joined().starts_with("begin 6 | 0.0.0 | failed x | 0.0.1 | failed x | 0.1.0 | done | round 0")
    );
    let counted = |round| run.trials.iter().filter(|t| t.round == round && t.counts()).count();
    assert_eq!((counted(0), counted(1), counted(2)), (1, 2, 2));
}

#[test]
fn what_would_fail_again_is_not_tried_and_others_go_on() {
    let mut run = run_of(&["a", "b", "c"]);
    let script = |cell, _, _| if cell == 1 { failed_as(FailureKind::Lasting, "EMFILE") } else { done() };
    let (ending, log, asked) = Session { rounds: 3, ..Session::default() }.execute(&mut run, &script);
    assert_eq!(ending.unwrap(), Ending::Finished);
    assert_eq!(asked, [(0, 0), (1, 0), (2, 0), (2, 1), (0, 1), (0, 2), (2, 2)]);
    assert!(
        log.joined().starts_with("begin 9 | 0.0.0 | done | 0.1.0 | failed EMFILE | 0.2.0 | done | round 0")
    );
    // A later session is what shall get over it: the round that the first broke off in is made whole, and instead of the others there are
    // new ones of all cells, each of which is near those that it is compared with.
    let (ending, _, asked) = Session { rounds: 3, ..Session::default() }.execute(&mut run, &|_, _, _| done());
    assert_eq!(ending.unwrap(), Ending::Finished);
    assert_eq!(asked, [(1, 2), (2, 3), (1, 3), (0, 3), (0, 4), (1, 4), (2, 4)]);
    assert_eq!((run.failures().count(), run.so_far()), (0, None));
    // What fails in a passing way then is made up for as well.
    let mut run = run_of(&["a", "b", "c"]);
    Session { rounds: 3, ..Session::default() }.execute(&mut run, &script).0.unwrap();
    let passing = |cell, round, _| if (cell, round) == (1, 2) { failed("died") } else { done() };
    let (ending, _, asked) = Session { rounds: 3, ..Session::default() }.execute(&mut run, &passing);
    assert_eq!(ending.unwrap(), Ending::Finished);
    assert_eq!(asked.len(), 2 + 6, "{asked:?}");
    assert_eq!(assay::analyse::progress(&run, &assay::analyse::Options::default()).rounds, 3);
}

#[test]
fn without_a_pair_in_a_row_it_ends_with_the_round() {
    // Cells 0 and 1 are the baseline's, 2 and 3 the candidate's; both in a row of each size.
    let lasting = |lost: &'static [usize]| {
        move |cell, _, _| {
            if lost.contains(&cell) { failed_as(FailureKind::Lasting, "ENOSPC") } else { done() }
        }
    };
    let skips = |cell, _, _| if cell >= 2 { unsupported() } else { done() };
    let mut run = crossed(&[("arm", &["a", "b"]), ("bs", &["4k", "64k"])]);
    let (ending, log, asked) = Session { rounds: 9, ..Session::default() }.execute(&mut run, &skips);
    assert_eq!((ending.unwrap(), asked.len()), (Ending::Finished, 4), "the candidate is gone whole");
    assert_eq!((log.left.first(), log.left.last()), (Some(&35), Some(&16)), "of 36, and of 18 that are left");
    for lost in [&[2, 3][..], &[0, 3], &[0, 1]] {
        let mut run = crossed(&[("arm", &["a", "b"]), ("bs", &["4k", "64k"])]);
        let session = Session { rounds: 9, ..Session::default() };
        let (ending, _, asked) = session.execute(&mut run, &lasting(lost));
        assert_eq!((ending.unwrap(), asked.len()), (Ending::Hopeless, 4), "without {lost:?}");
        let said =
            "ended early: nothing is left to compare, as the baseline or its candidates cannot be run here";
        assert_eq!(run.notes, [Note::ending(said)]);
    }
    // One row is whole: it goes on.
    let mut run = crossed(&[("arm", &["a", "b"]), ("bs", &["4k", "64k"])]);
    let (ending, _, asked) = Session { rounds: 9, ..Session::default() }.execute(&mut run, &lasting(&[0]));
    assert_eq!((ending.unwrap(), asked.len()), (Ending::Finished, 1 + 3 * 9));
}

#[test]
fn what_worked_before_and_cannot_now_has_failed() {
    let mut run = run_of(&["a", "b"]);
    let script = |cell, round, _| if (cell, round) == (1, 2) { unsupported() } else { done() };
    let (ending, log, asked) = Session { rounds: 4, ..Session::default() }.execute(&mut run, &script);
    assert_eq!((ending.unwrap(), asked.len()), (Ending::Finished, 9), "{}", log.joined());
    assert!(
        log.joined().contains("2.1.0 | failed no io_uring | 2.1.1 | failed no io_uring"),
        "{}",
        log.joined()
    );
    // Where it stays so, the run ends as failed and can be resumed.
    let mut run = run_of(&["a", "b"]);
    let script = |cell, round, _| if cell == 1 && round >= 1 { unsupported() } else { done() };
    let (ending, ..) = Session { rounds: 9, ..Session::default() }.execute(&mut run, &script);
    assert_eq!((ending.unwrap(), run.state), (Ending::Failed, RunState::Failed));
    // The first attempt died in the middle, and left what hinders the second: no reason to skip the cell.
    let mut run = run_of(&["a", "b"]);
    let script = |cell, round, before| match (cell, round, before) {
        (0, 0, 0) => failed("killed"),
        (0, 0, _) => unsupported(),
        _ => done(),
    };
    let (ending, _, asked) = Session { rounds: 3, ..Session::default() }.execute(&mut run, &script);
    assert_eq!((ending.unwrap(), asked.len()), (Ending::Finished, 7));
}

#[test]
fn a_resumed_run_makes_good_what_would_have_failed_again() {
    let mut run = run_of(&["a", "b"]);
    let full = |cell, _, _| if cell == 1 { failed_as(FailureKind::Lasting, "ENOSPC") } else { done() };
    let session = || Session { rounds: 3, ..Session::default() };
    assert_eq!(session().execute(&mut run, &full).0.unwrap(), Ending::Hopeless);
    // Nobody has made room: it is tried once, and given up again.
    let (ending, log, asked) = session().execute(&mut run, &full);
    assert_eq!((ending.unwrap(), asked), (Ending::Hopeless, vec![(1, 0)]));
    assert!(log.joined().starts_with("begin 5 | 0.1.1 | failed ENOSPC"), "{}", log.joined());
    assert_eq!(run.failures().map(|trial| trial.attempt).collect::<Vec<_>>(), [1]);
    // Somebody has.
    let (ending, log, asked) = session().execute(&mut run, &|_, _, _| done());
    assert_eq!(ending.unwrap(), Ending::Finished);
    assert_eq!(asked, [(1, 0), (1, 1), (0, 1), (0, 2), (1, 2)]);
    assert!(log.joined().starts_with("begin 5 | 0.1.2 | done"), "{}", log.joined());
    assert_eq!((run.failures().count(), run.notes.len()), (0, 0), "{:?}", run.notes);
    // What was done is not done again.
    assert_eq!(session().execute(&mut run, &full).2, []);
}

#[test]
fn a_lasting_failure_that_was_mended_is_no_failure_of_its_arm() {
    let took = |cell: usize, round: u32| {
        let value = if cell == 1 { 1.5 } else { 1.0 } + f64::from(round) / 1e3;
        let samples = vec![Sample::new("", "runtime", Unit::Seconds, value)];
        Ok(reply(Answer::Done(Outcome { samples, ..Outcome::default() })))
    };
    let full = |cell, round, _| match (cell, round) {
        (1, 2) => failed_as(FailureKind::Lasting, "ENOSPC"),
        _ => took(cell, round),
    };
    let mut run = run_of(&["a", "b"]);
    let session = || Session { rounds: 8, ..Session::default() };
    assert_eq!(session().execute(&mut run, &full).0.unwrap(), Ending::Hopeless);
    let failed = |run: &Run| {
        let analysis = assay::analyse::analyse(run, &assay::analyse::Options::default());
        (analysis.comparisons[0].failures.is_some(), analysis.comparisons[0].verdict.clone())
    };
    assert!(failed(&run).0, "nobody has mended it yet");
    // Its cause is removed, and the run is resumed.
    let (ending, ..) = session().execute(&mut run, &|cell, round, _| took(cell, round));
    assert_eq!(ending.unwrap(), Ending::Finished);
    assert!(run.trials.iter().any(assay::record::Trial::is_lasting), "it is kept");
    let (counted, verdict) = failed(&run);
    assert!(!counted && matches!(verdict, assay::analyse::Verdict::Slower { .. }), "{verdict:?}");
}

#[test]
fn with_one_cell_left_it_ends_with_the_round() {
    let mut run = run_of(&["a", "b"]);
    let script = |cell, _, _| if cell == 0 { failed_as(FailureKind::Lasting, "EACCES") } else { done() };
    let (ending, _, asked) = Session { rounds: 9, ..Session::default() }.execute(&mut run, &script);
    assert_eq!((ending.unwrap(), asked), (Ending::Hopeless, vec![(0, 0), (1, 0)]));
    assert_eq!(run.state, RunState::Failed);
}

#[test]
fn wrong_data_are_never_tried_again_and_two_stop_the_run() {
    let mut run = run_of(&["a", "b"]);
    let wrong = |cell, round| (cell, round) == (1, 0);
    let script = |cell, round, _| {
        if wrong(cell, round) { failed_as(FailureKind::WrongData, "EILSEQ") } else { done() }
    };
    let (ending, _, asked) = Session { rounds: 2, ..Session::default() }.execute(&mut run, &script);
    assert_eq!((ending.unwrap(), asked.len()), (Ending::Finished, 4));
    assert!(run.trials[1].is_final() && !run.trials[1].counts());
    let mut run = run_of(&["a", "b"]);
    let script = |cell, _, _| if cell == 1 { failed_as(FailureKind::WrongData, "EILSEQ") } else { done() };
    let (ending, _, asked) = Session { rounds: 9, ..Session::default() }.execute(&mut run, &script);
    assert_eq!((ending.unwrap(), asked), (Ending::Failed, vec![(0, 0), (1, 0), (1, 1)]));
}

#[test]
fn a_cell_that_fails_in_two_rounds_running_stops_the_run() {
    let mut run = run_of(&["a", "b"]);
    let script = |cell, _, _| if cell == 0 { failed("x") } else { done() };
    let (ending, log, asked) = Session { rounds: 9, ..Session::default() }.execute(&mut run, &script);
    assert_eq!(ending.unwrap(), Ending::Failed);
    assert_eq!(asked, [(0, 0), (0, 0), (1, 0), (1, 1), (0, 1), (0, 1)]);
    assert_eq!(run.state, RunState::Failed);
    assert!(log.joined().ends_with("1.0.1 | failed x | end Failed"), "{}", log.joined());
    assert!(run.notes.iter().any(|note| note.text.contains("rounds 1 and 2")), "{:?}", run.notes);
    // Not in rounds that are not neighbours.
    let mut run = run_of(&["a", "b"]);
    let script = |cell, round, _| if cell == 0 && round % 2 == 0 { failed("x") } else { done() };
    let (ending, ..) = Session { rounds: 5, ..Session::default() }.execute(&mut run, &script);
    assert_eq!(ending.unwrap(), Ending::Finished);
}

/// One that fails now and then is measured to the end; one that has come to fail always is not.
#[test]
fn a_cell_that_has_worked_is_given_up_after_four_rounds() {
    let ends = |failing: std::ops::Range<u32>, failures: FailureRule| {
        let mut run = run_of(&["a", "b"]);
        run.design.failures = failures;
        let script =
            |cell, round, _| if cell == 0 && failing.contains(&round) { failed("x") } else { done() };
        let (ending, ..) = Session { rounds: 9, ..Session::default() }.execute(&mut run, &script);
        let notes: Vec<String> = run.notes.iter().map(|note| note.text.clone()).collect();
        (ending.unwrap(), notes.join("|"))
    };
    assert_eq!(ends(2..5, FailureRule::Compare), (Ending::Finished, String::new()));
    let (ending, said) = ends(2..6, FailureRule::Compare);
    assert!(ending == Ending::Failed && said.contains("rounds 3 to 6"), "{said}");
    assert_eq!(ends(2..9, FailureRule::Worst), (Ending::Finished, String::new()));
    assert_eq!(ends(0..9, FailureRule::Worst).0, Ending::Failed, "it never worked");
}

#[test]
fn a_run_that_stopped_for_failures_goes_on_when_resumed() {
    let mut run = run_of(&["a", "b"]);
    let script = |cell, _, _| if cell == 0 { failed("x") } else { done() };
    let (ending, ..) = Session { rounds: 4, ..Session::default() }.execute(&mut run, &script);
    assert_eq!(ending.unwrap(), Ending::Failed);
    let stored = run.trials.clone();
    let (ending, _, asked) = Session { rounds: 4, ..Session::default() }.execute(&mut run, &|_, _, _| done());
    assert_eq!(ending.unwrap(), Ending::Finished);
    assert_eq!(asked, [(0, 2), (1, 2), (1, 3), (0, 3)]);
    assert_eq!(run.trials[..stored.len()], stored);
}

#[test]
fn killed_after_any_trial_a_resumed_run_repeats_and_loses_none() {
    // Cell 1 fails at first in every round, and for good in round 1.
    let script = |cell: usize, round: u32, before: u32| match (cell, round, before) {
        (1, 1, _) | (1, _, 0) => failed("x"),
        _ => done(),
    };
    let mut whole = run_of(&["a", "b", "c"]);
    let (_, _, all) = Session { rounds: 3, ..Session::default() }.execute(&mut whole, &script);
    assert_eq!(all.len(), 12);
    for kept in 0..=all.len() {
        let mut run = run_of(&["a", "b", "c"]);
        run.metrics = whole.metrics.clone();
        run.trials = whole.trials[..kept].to_vec();
        // What was asked before the kill counts: the second attempt is the second also across sessions.
        let told = RefCell::new(all[..kept].to_vec());
        let resumed = |cell: usize, round: u32, _: u32| {
            let before = told.borrow().iter().filter(|asked| **asked == (cell, round)).count() as u32;
            told.borrow_mut().push((cell, round));
            script(cell, round, before)
        };
        let (ending, log, asked) = Session { rounds: 3, ..Session::default() }.execute(&mut run, &resumed);
        assert_eq!(ending.unwrap(), Ending::Finished);
        assert_eq!(asked, all[kept..], "killed after {kept} trials");
        assert_eq!(places(&run), places(&whole), "killed after {kept} trials");
        let finals = whole.trials[..kept]
            .iter()
            .filter(|t| t.attempt == 1 || !matches!(t.status, Status::Failed { .. }))
            .count();
        assert_eq!(log.words[0], format!("begin {}", 9 - finals));
    }
}

#[test]
fn a_resumed_run_is_not_judged_on_the_part_of_a_round() {
    let mut run = run_of(&["a", "b"]);
    let session = || Session { rounds: 9, decided_after: Some(3), ..Session::default() };
    session().execute(&mut run, &|_, _, _| done()).0.unwrap();
    run.trials.truncate(5);
    let (ending, _, asked) = session().execute(&mut run, &|_, _, _| done());
    assert_eq!((ending.unwrap(), asked), (Ending::Finished, vec![(1, 2)]));
}

#[test]
fn cancelled_within_a_round_nothing_of_the_trial_is_recorded() {
    let cancelled = AtomicBool::new(false);
    let mut run = run_of(&["a", "b"]);
    let script = |cell, round, _| {
        if (cell, round) == (1, 1) {
            cancelled.store(true, Ordering::SeqCst);
            return Err(LaunchError::Cancelled { left: Vec::new() });
        }
        done()
    };
    let session = Session { rounds: 5, cancelled: &cancelled, ..Session::default() };
    let (ending, log, _) = session.execute(&mut run, &script);
    assert_eq!(
        (ending.unwrap(), run.state, run.trials.len()),
        (Ending::Interrupted, RunState::Interrupted, 2)
    );
    assert!(log.joined().ends_with("round 0 | 1.1.0 | end Interrupted"), "{}", log.joined());
    // Between two trials: the next one is not begun.
    let cancelled = AtomicBool::new(false);
    let mut run = run_of(&["a", "b"]);
    let script = |_, _, _| {
        cancelled.store(true, Ordering::SeqCst);
        done()
    };
    let session = Session { rounds: 5, cancelled: &cancelled, ..Session::default() };
    let (ending, log, asked) = session.execute(&mut run, &script);
    assert_eq!((ending.unwrap(), asked.len(), run.trials.len()), (Ending::Interrupted, 1, 1));
    assert_eq!(log.joined(), "begin 10 | 0.0.0 | done | end Interrupted");
    // A failed trial that was cancelled before its second attempt gets it on resume.
    let cancelled = AtomicBool::new(false);
    let mut run = run_of(&["a", "b"]);
    let script = |_, _, _| {
        cancelled.store(true, Ordering::SeqCst);
        failed("x")
    };
    let session = Session { rounds: 1, cancelled: &cancelled, ..Session::default() };
    let (ending, ..) = session.execute(&mut run, &script);
    assert_eq!(ending.unwrap(), Ending::Interrupted);
    let (_, log, _) = Session { rounds: 1, ..Session::default() }.execute(&mut run, &|_, _, _| done());
    assert_eq!(log.joined(), "begin 2 | 0.0.1 | done | 0.1.0 | done | round 0 | end Finished");
}

#[test]
fn a_cell_that_cannot_run_is_skipped_once_with_its_reason() {
    let mut run = run_of(&["a", "b", "c"]);
    let script = |cell, _, _| if cell == 1 { unsupported() } else { done() };
    let (ending, log, asked) = Session::default().execute(&mut run, &script);
    assert_eq!(ending.unwrap(), Ending::Finished);
    assert_eq!(asked, [(0, 0), (1, 0), (2, 0), (2, 1), (0, 1)]);
    assert!(log.joined().contains("0.1.0 | skipped no io_uring | 0.2.0"), "{}", log.joined());
    // With one cell left there is nothing to compare: it ends, and says why.
    let mut run = run_of(&["a", "b"]);
    let (ending, _, asked) = Session { rounds: 9, ..Session::default() }.execute(&mut run, &script);
    assert_eq!((ending.unwrap(), asked.len()), (Ending::Finished, 2));
    assert!(
        run.notes.iter().any(|note| note.text.starts_with("ended early: nothing is left to compare")),
        "{:?}",
        run.notes
    );
}

#[test]
fn the_time_budget_ends_it_with_the_trial_that_passes_it() {
    let mut run = run_of(&["a", "b"]);
    // On a busy machine everything else takes its time, too, but not seconds.
    let budget = Duration::from_secs(4);
    let slow = |cell, round, _| {
        if (cell, round) == (0, 1) {
            std::thread::sleep(budget);
        }
        done()
    };
    let session = Session { rounds: 9, time_budget: Some(budget), ..Session::default() };
    let (ending, _, asked) = session.execute(&mut run, &slow);
    assert_eq!((ending.unwrap(), asked.len()), (Ending::Finished, 4), "the second round passes it");
    assert!(run.notes.iter().any(|note| note.text.ends_with("after 2 rounds")), "{:?}", run.notes);

    // The rest of a round is not begun, and a session that goes on begins with it.
    let mut run = run_of(&["a", "b", "c"]);
    let slow = |cell, round, before| {
        if (cell, round, before) == (1, 1, 0) {
            std::thread::sleep(budget);
        }
        done()
    };
    let session = Session { rounds: 2, time_budget: Some(budget), ..Session::default() };
    let (ending, _, asked) = session.execute(&mut run, &slow);
    assert_eq!((ending.unwrap(), asked.last(), asked.len()), (Ending::Finished, Some(&(1, 1)), 5));
    let note = "the time budget ended it after 1 round and 2 trials of the next";
    assert_eq!(run.notes, [Note::ending(note)]);
    let (ending, _, asked) = Session::default().execute(&mut run, &|_, _, _| done());
    assert_eq!((ending.unwrap(), asked), (Ending::Finished, vec![(0, 1)]));
    assert_eq!(run.notes, [], "how the first session ended is not how the second did");
    // A budget that is spent at once still gets a trial a session.
    let session = Session { time_budget: Some(Duration::ZERO), ..Session::default() };
    let mut run = run_of(&["a", "b"]);
    assert_eq!(session.execute(&mut run, &|_, _, _| done()).2.len(), 1);
}

#[test]
fn a_disturbed_round_is_excluded_whole_and_only_that_round() {
    let mut run = run_of(&["a", "b"]);
    let script = |cell, round, _| if (cell, round) == (0, 0) { disturbed() } else { done() };
    let (_, log, asked) = Session::default().execute(&mut run, &script);
    assert_eq!(asked.len(), 6, "its other trials are run all the same, and the round is made up for");
    let rule = stolen().over(&DisturbanceLimits::default()).unwrap();
    assert!(log.joined().contains(&format!("round 0 | excluded 0 {rule} | 1.1.0")), "{}", log.joined());
    let excluded: Vec<_> = run.trials.iter().map(|t| t.excluded.as_deref()).collect();
    assert_eq!(excluded, [Some(&*rule), Some(&*rule), None, None, None, None]);
}

#[test]
fn only_the_rows_that_were_disturbed_lose_the_round() {
    let mut run = crossed(&[("arm", &["a", "b"]), ("bs", &["4k", "8k", "1m"])]);
    // Cell 3 is arm b with 4k; its row has cell 0, too.
    let script = |cell, round, _| if (cell, round) == (3, 1) { disturbed() } else { done() };
    let session = Session { rounds: 3, lead_in: true, ..Session::default() };
    let (ending, log, asked) = session.execute(&mut run, &script);
    assert_eq!((ending.unwrap(), run.trials.len()), (Ending::Finished, 20));
    let rule = stolen().over(&DisturbanceLimits::default()).unwrap();
    assert!(log.joined().contains(&format!("round 1 | excluded 1 {rule} | into 2.")), "{}", log.joined());
    let lost: Vec<_> =
        run.trials.iter().filter(|t| t.excluded.is_some()).map(|t| (t.round, t.cell)).collect();
    assert_eq!(lost, [(1, 3), (1, 0)]);
    // Only that row is made up for, and what leads in is the first of it.
    assert_eq!(asked[asked.len() - 2..], [(3, 3), (0, 3)]);
    assert!(log.joined().contains("into 3.3 | led | 3.3.0"), "{}", log.joined());
    let counted = |cell: u32| run.trials.iter().filter(|t| t.cell == cell && t.excluded.is_none()).count();
    assert_eq!((0..6).map(counted).collect::<Vec<_>>(), [3; 6]);
    assert_eq!(*log.left.last().unwrap(), 0);
}

#[test]
fn a_command_waits_for_the_device_at_most_four_trials() {
    let mut run = run_of(&["a", "b"]);
    let waits = RefCell::new(Vec::new());
    let mut launcher = Waits { waits: &waits };
    let command = |cell, round| Request { engine: EngineKind::Command, ..request(cell, round) };
    Execution {
        run: &mut run,
        order: &|round| order(2, round),
        lead_in: &|_| None,
        request: &command,
        launcher: &mut launcher,
        sinks: Vec::new(),
        decided: &mut |_| false,
        cancelled: &NEVER,
        limits: Limits { rounds: 2, time_budget: None, disturbance: None },
    }
    .execute()
    .unwrap();
    assert_eq!(*waits.borrow(), [None, Some(120), Some(160), Some(400)]);
}

/// Trials of 30, 40, 100 and 1000 ms; what each was to wait for is kept.
struct Waits<'w> {
    waits: &'w RefCell<Vec<Option<u64>>>,
}

impl Launcher for Waits<'_> {
    fn launch(&mut self, request: &Request, _: &AtomicBool) -> Result<Reply, LaunchError> {
        let mut waits = self.waits.borrow_mut();
        let took_s = [0.03, 0.04, 0.1, 1.0][waits.len()];
        waits.push(request.target.settle_ms);
        let samples = vec![Sample::new("", "runtime", Unit::Seconds, took_s)];
        Ok(reply(Answer::Done(Outcome { samples, ..Outcome::default() })))
    }
}

#[test]
fn a_machine_never_calm_ends_a_run_after_twice_its_rounds() {
    let mut run = run_of(&["a", "b"]);
    let session = Session { rounds: 3, ..Session::default() };
    let (ending, _, asked) = session.execute(&mut run, &|_, _, _| disturbed());
    assert_eq!((ending.unwrap(), asked.len()), (Ending::Finished, 12));
    assert!(run.notes.iter().any(|note| note.text.contains("rounds are missing: 3,")), "{:?}", run.notes);
}

#[test]
fn a_round_disturbed_before_a_kill_is_excluded_on_resume() {
    let script = |cell, round, _| if (cell, round) == (0, 0) { disturbed() } else { done() };
    for kept in 1..=2 {
        let mut run = run_of(&["a", "b"]);
        // The session that sees the disturbance ends before the round does.
        let session = Session { rounds: 1, fail_at: Some("round 0"), ..Session::default() };
        assert!(session.execute(&mut run, &script).0.is_err());
        run.trials.truncate(kept);
        let (ending, log, asked) = Session::default().execute(&mut run, &|_, _, _| done());
        assert_eq!((ending.unwrap(), asked.len()), (Ending::Finished, 6 - kept));
        assert!(log.joined().contains("round 0 | excluded 0 "), "{}", log.joined());
        let excluded: Vec<_> = run.trials.iter().map(|t| t.excluded.is_some()).collect();
        assert_eq!(excluded, [true, true, false, false, false, false], "killed after {kept}");
    }
}

#[test]
fn a_sink_that_cannot_keep_a_trial_ends_the_run() {
    let mut run = run_of(&["a", "b"]);
    let session = Session { rounds: 9, fail_at: Some("done"), ..Session::default() };
    let (ending, log, asked) = session.execute(&mut run, &|_, _, _| done());
    assert!(
        matches!(&ending, Err(RunError::Sink(error)) if error.to_string() == "the disk is full"),
        "{ending:?}"
    );
    assert_eq!((asked.len(), run.state), (1, RunState::Failed));
    assert_eq!(log.joined(), "begin 18 | 0.0.0 | end Failed");
}

#[test]
fn an_agent_that_cannot_be_started_ends_the_run() {
    let mut run = run_of(&["a", "b"]);
    let script = |_, _, _| {
        let source = std::io::Error::from(std::io::ErrorKind::PermissionDenied);
        Err(LaunchError::Start { program: "/x/assay".to_owned(), source })
    };
    let (ending, log, _) = Session::default().execute(&mut run, &script);
    let error = ending.unwrap_err().to_string();
    assert!(error.contains("/x/assay") && error.contains("permission denied"), "{error}");
    assert_eq!((run.trials.len(), log.joined().as_str()), (0, "begin 4 | 0.0.0 | end Failed"));
}

/// Says after each trial which cells are left of the round.
#[derive(Default)]
struct Left(Vec<Vec<u64>>);

impl Launcher for Left {
    fn launch(&mut self, _: &Request, _: &AtomicBool) -> Result<Reply, LaunchError> {
        if self.0.len() == 1 { failed("tried again") } else { done() }
    }

    fn round_goes_on(&mut self, left: &mut dyn Iterator<Item = Request>) {
        self.0.push(left.map(|request| request.task.seed % 1000).collect());
    }

    fn round_ends(&mut self) {
        self.0.push(vec![999]);
    }
}

#[test]
fn a_launcher_learns_which_cells_are_left_of_a_round() {
    let mut run = run_of(&["a", "b", "c"]);
    let mut launcher = Left::default();
    Execution {
        run: &mut run,
        order: &|round| order(3, round),
        lead_in: &|_| None,
        request: &request,
        launcher: &mut launcher,
        sinks: Vec::new(),
        decided: &mut |_| false,
        cancelled: &NEVER,
        limits: Limits { rounds: 2, time_budget: None, disturbance: None },
    }
    .execute()
    .unwrap();
    // A trial that is tried again is not over before that.
    let (first, second): (&[&[u64]], &[&[u64]]) = (&[&[1, 2], &[2], &[999]], &[&[1, 0], &[0], &[999]]);
    assert_eq!(launcher.0, [first, second].concat());
}
