//! The other end: one request on standard input, one reply, a line, on standard output, nothing else.

use std::io::{Read, Write};
use std::sync::PoisonError;
use std::time::Duration;

use super::descendants::cannot_be_ended;
use super::hook::{self, Given};
use super::last_duty::{STARTS, die_in_order, last_duty};
use super::stall::Rings;
use super::time_limit::{Limit, TimeLimit};
use super::{Answer, PROTOCOL, Reply, Request, Why};
use crate::catalog::{EngineKind, LimitedBy, Runs, server_of};
use crate::engine::{self, Engine, EngineError, Task};
use crate::host::{KernelLog, device_under, end_children, own_children};
use crate::observe::{self, Observer};
use crate::record::{FailureKind, KeptFile, Note, NoteKind, Outcome, Sample, Unit};
use crate::sys::server::processes_of;
use crate::target::{self, Released, TargetError};

/// What is said where a job runs before it counts.
const RAMP: &str =
    "ramp_time: counts of the device and of observers include the ramp; those of the job do not";

/// Runs the one trial asked for on standard input; the exit code says whether a reply was written.
///
/// # Errors
/// What made the request unreadable or the reply unwritable.
pub fn serve() -> Result<(), String> {
    crate::host::inherit_run_mark();
    if let Some(code) = last_duty() {
        std::process::exit(code);
    }
    die_in_order()?;
    let served = answer();
    // Whoever ends everything has to come to the end of it: this process would else be gone before.
    let _not_before = STARTS.lock().unwrap_or_else(PoisonError::into_inner);
    served
}

/// Reads the request, executes it, writes the reply.
fn answer() -> Result<(), String> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).map_err(|e| format!("cannot read the request: {e}"))?;
    let request: Request = serde_json::from_str(&text).map_err(|e| format!("the request is not one: {e}"))?;
    if request.protocol != PROTOCOL {
        return Err(format!("the request has protocol {}, this agent knows {PROTOCOL}", request.protocol));
    }
    let reply = if request.rehearsal { rehearse(&request) } else { execute(&request) };
    let unwritable = |error: &dyn std::fmt::Display| format!("the reply cannot be written: {error}");
    let mut bytes = serde_json::to_vec(&reply).map_err(|e| unwritable(&e))?;
    bytes.push(b'\n');
    std::io::stdout().write_all(&bytes).map_err(|e| unwritable(&e))
}

fn execute(request: &Request) -> Reply {
    let mut reply = nothing_yet();
    let mut log = KernelLog::from_now();
    // First of all: it calibrates its clock while the facts are looked up.
    let engine = engine::of(request.engine);
    let prepared = unhung(&reply, || {
        prepare(request).map(|(ready, given)| {
            let facts = target::facts(&request.target, &ready);
            (ready, given, facts)
        })
    });
    match prepared {
        Ok((mut ready, mut given, facts)) => {
            reply.facts = facts;
            let device = device_under(&request.target.watched()).ok().map(|device| device.name);
            let watch = target::Interference::look(&request.target.watched());
            if request.engine == EngineKind::Fio {
                target::engine_begins(&mut ready);
            }
            let mut traces = Vec::new();
            reply.answer = observed(request, engine.as_ref(), &reply, &mut traces);
            if let Err(error) = target::engine_ended(&mut ready) {
                ready.notes.push(error.to_string());
            }
            reply.disturbance = Some(watch.since());
            // What is read while devices are taken away fails, and is nobody's fault.
            let faults = log.as_mut().map(|log| log.faults(device.as_deref())).unwrap_or_default();
            let mut notes = std::mem::take(&mut ready.notes);
            let mut released = Released::default();
            let after = unhung(&reply, || {
                let after = hooked("after", request.after.as_ref(), request);
                released = target::release(&request.target, ready);
                after
            });
            notes.append(&mut released.notes);
            match after {
                Ok(after) => given.add(after),
                Err(failed) => reply.answer = also_failed(reply.answer, failed),
            }
            reply.files = given.take_files();
            // A hook's file of the same name stays: it is there in any case.
            traces.retain(|trace: &KeptFile| reply.files.iter().all(|file| file.name != trace.name));
            reply.files.append(&mut traces);
            if let Answer::Done(outcome) = &mut reply.answer {
                outcome.notes.extend(read_from_nothing(request));
                outcome.notes.extend(compressed_in_vain(request));
                outcome.notes.splice(0..0, notes.into_iter().map(Note::from));
                // What was said on mounting is told as such.
                let is_told =
                    |text: &String| outcome.notes.iter().any(|note| note.text.contains(text.as_str()));
                let faults: Vec<Note> =
                    faults.iter().filter(|text| !is_told(text)).map(|text| fault(text)).collect();
                outcome.notes.splice(0..0, faults);
                outcome.samples.extend(times_of(&released));
                if let Err(failed) = given.join(request, outcome) {
                    reply.answer = failed;
                }
            }
        }
        Err(NotReady { answer, why }) => (reply.answer, reply.why) = (*answer, why),
    }
    reply
}

/// What a kernel that goes on has said of itself: its trial may not be worth a verdict.
fn fault(text: &str) -> Note {
    Note { text: format!("the kernel reported a fault: {text}"), kind: NoteKind::Fault }
}

/// That reads of the trial cost no storage; a hook may have written what they read.
fn read_from_nothing(request: &Request) -> Option<Note> {
    let kind = request.target.answers_from_nothing().filter(|_| request.before.is_none())?;
    engine::reads_first(&request.task).then(|| {
        Note::from(format!(
            "the job reads where nothing was written, and a new {} device answers that without storage: -t state=overwrite writes \
             all of it before",
            kind.name()
        ))
    })
}

/// That a compression has nothing to make smaller.
fn compressed_in_vain(request: &Request) -> Option<Note> {
    (request.target.compresses() && engine::writes_random_bytes(&request.task)).then(|| {
        Note::from(
            "the target compresses, and the job writes random bytes, which do not become smaller: buffer_compress_percentage=50 \
             in the job makes half of them do",
        )
    })
}

/// Why a target is not there, or its hook failed.
struct NotReady {
    answer: Box<Answer>,
    why: Why,
}

impl From<Answer> for NotReady {
    fn from(answer: Answer) -> NotReady {
        NotReady { answer: Box::new(answer), why: Why::default() }
    }
}

/// How long it took to undo what was made for the trial.
fn times_of(released: &Released) -> impl Iterator<Item = Sample> {
    let times = [("target.umount", released.unmounting), ("target.teardown", released.teardown)];
    let sample = |(name, time): (&str, Option<Duration>)| {
        Some(Sample::new("", name, Unit::Seconds, time?.as_secs_f64()))
    };
    times.into_iter().filter_map(sample)
}

/// The answer of a trial after which its hook failed: that, or the trial's own failure with the hook's words behind it.
fn also_failed(trial: Answer, hook: Answer) -> Answer {
    match (trial, hook) {
        (
            Answer::Failed { kind, reason, command, output, so_far },
            Answer::Failed { reason: hooks, output: words, .. },
        ) => {
            let line = |text: &str| if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
            let output = format!("{output}{}{hooks}\n{words}", line(&output));
            Answer::Failed { kind, reason, command, output, so_far }
        }
        (Answer::Done(_), hook) => hook,
        (trial, _) => trial,
    }
}

fn nothing_yet() -> Reply {
    Reply::of(Answer::Unsupported { reason: String::new() })
}

/// Makes the target once to see that it can be made; what lasts longer than a trial stays for the first one.
fn rehearse(request: &Request) -> Reply {
    let reply = nothing_yet();
    match unhung(&reply, || target::rehearse(&request.target).map_err(not_ready)) {
        Ok(facts) => Reply { answer: Answer::Done(Outcome::default()), facts, ..reply },
        Err(NotReady { answer, why }) => Reply { answer: *answer, why, ..reply },
    }
}

/// Does what no time limit is for; but nobody may wait for I/O for ever there either.
fn unhung<T, E: From<Answer>>(so_far: &Reply, work: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
    let watch = watched(Limit::Waits(Rings::Anything), so_far);
    let result = work();
    match watch.end() {
        Some(reason) => Err(stopped(reason, Vec::new()).into()),
        None => result,
    }
}

/// The same state before each trial; then the hook.
fn prepare(request: &Request) -> Result<(target::Ready, Given), NotReady> {
    let mut ready =
        target::prepare(&request.target).map_err(|error| lost(not_ready(error), &request.target))?;
    let before =
        hooked("before", request.before.as_ref(), request).map_err(NotReady::from).and_then(|given| {
            // Only a hook may have changed them.
            let looked =
                request.before.as_ref().map_or(Ok(()), |_| target::check_files(&request.target, &mut ready));
            looked.map(|()| given).map_err(not_ready)
        });
    match before {
        Ok(given) => Ok((ready, given)),
        Err(failed) => {
            // What cannot be put back now is tried again by the next trial, and at the end by the parent.
            let _ = target::release(&request.target, ready);
            Err(failed)
        }
    }
}

/// Runs a hook where there is one.
fn hooked(which: &str, script: Option<&String>, request: &Request) -> Result<Given, Answer> {
    script.map_or(Ok(Given::default()), |script| hook::run(which, script, request))
}

fn not_ready(error: TargetError) -> NotReady {
    let why = Why { hint: error.hint(), ..Why::default() };
    let (reason, kind) = (error.to_string(), FailureKind::Passing);
    let answer = match error {
        TargetError::Unavailable { .. } => Answer::Unsupported { reason },
        TargetError::Failed { command, output, .. } => {
            Answer::Failed { kind, reason, command, output, so_far: Vec::new() }
        }
        _ => {
            Answer::Failed { kind, reason, command: String::new(), output: String::new(), so_far: Vec::new() }
        }
    };
    NotReady { answer: Box::new(answer), why }
}

/// Every target was made once before the first trial. It worked then, so this is a failure that may be tried again, not a skip; what no
/// machine can do stays a skip.
fn lost(NotReady { answer, why }: NotReady, target: &target::TargetSpec) -> NotReady {
    let impossible = target.setup.as_ref().is_some_and(|setup| setup.settings.impossible().is_some());
    let answer = match *answer {
        Answer::Unsupported { reason } if !impossible => stopped(reason, Vec::new()),
        other => other,
    };
    NotReady { answer: Box::new(answer), why }
}

/// What the engine's run may not pass.
fn limit_of(engine: EngineKind, timeout_s: Option<f64>) -> Limit {
    // Any program may have a ring for what is no I/O on storage, and be idle.
    let rings = |limited_by| match limited_by {
        LimitedBy::EngineOfAnyProgram => Rings::Anything,
        LimitedBy::Agent | LimitedBy::Engine => Rings::OnlyIo,
    };
    match (timeout_s, engine.descriptor().limited_by) {
        (Some(seconds), LimitedBy::Agent) => Limit::Seconds(seconds),
        (Some(seconds), other) => Limit::EnginesOwn(seconds, rings(other)),
        (None, limited_by) => Limit::Waits(rings(limited_by)),
    }
}

/// Watches a limit; where nothing else helps, the reply is that it was passed.
fn watched(limit: Limit, so_far: &Reply) -> TimeLimit {
    let mut reply = so_far.clone();
    let last_word = move |reason: String, left: Vec<i32>| {
        // What failed before is what is told.
        if !matches!(reply.answer, Answer::Failed { .. }) {
            reply.answer = stopped(reason, Vec::new());
        }
        if let Answer::Failed { kind, reason, .. } = &mut reply.answer
            && !left.is_empty()
        {
            reason.push_str(&format!("; {}", cannot_be_ended(&left)));
            // Another attempt would meet the same, and what is left beside it.
            *kind = (*kind).max(FailureKind::Lasting);
            reply.why.left = left;
        }
        let mut bytes = serde_json::to_vec(&reply).unwrap_or_default();
        bytes.push(b'\n');
        let _ = std::io::stdout().write_all(&bytes);
    };
    TimeLimit::start(limit, last_word)
}

fn stopped(reason: String, so_far: Vec<Sample>) -> Answer {
    let kind = FailureKind::Passing;
    Answer::Failed { kind, reason, command: String::new(), output: String::new(), so_far }
}

/// The observers that were asked for by name.
fn asked_for(
    request: &Request,
    engine: &dyn Engine,
    task: &Task,
) -> Result<Vec<Box<dyn Observer>>, EngineError> {
    if request.observe.is_empty() {
        return Ok(Vec::new());
    }
    let server = request.observe.iter().find_map(|name| server_of(name));
    // Only now: a hook may have started it.
    let server =
        server.map(processes_of).transpose().map_err(|reason| EngineError::Unsupported { reason })?;
    let place = observe::Place {
        server,
        directory: task.directory.clone(),
        elsewhere: engine.written_elsewhere(task),
        watched: request.target.watched(),
        is_program: request.engine.descriptor().runs != Runs::Job,
    };
    let known = |name: &String| {
        let reason = || format!("this agent has no observer '{name}'");
        observe::named(name, &place).ok_or_else(|| EngineError::Unsupported { reason: reason() })
    };
    request.observe.iter().map(known).collect()
}

/// The engine with the observers around it, which may leave files.
fn observed(request: &Request, engine: &dyn Engine, reply: &Reply, files: &mut Vec<KeptFile>) -> Answer {
    let mut task = Task {
        directory: request.target.directory.clone(),
        device_stat: observe::device_stat(&request.target.watched()),
        ..request.task.clone()
    };
    let device = request.target.device();
    task.variables
        .extend(device.map(|device| ("ASSAY_DEVICE".to_owned(), device.to_string_lossy().into_owned())));
    let mut stopped_for = None;
    let has_server = request.observe.iter().any(|name| server_of(name).is_some());
    let hooks = own_children();
    // Laying out is no part of what a time limit is for.
    let prepared = match unhung(reply, || Ok(engine.prepare(&task))) {
        Ok(prepared) => prepared,
        Err(failed) => return failed,
    };
    let result = prepared.and_then(|()| {
        // Started only now: laying files out is no part of what is measured.
        let mut observers = observe::standard(&request.target.watched(), has_server);
        observers.extend(asked_for(request, engine, &task)?);
        observers.iter_mut().for_each(|observer| observer.start());
        let limit = watched(limit_of(request.engine, request.task.timeout_s), reply);
        let outcome = engine.run(&task);
        stopped_for = limit.end();
        let mut outcome = outcome?;
        if has_server {
            observe::call_workers_clients(&mut outcome);
        }
        observe::stop_all(&mut observers, &mut outcome);
        files.extend(observers.iter_mut().flat_map(|observer| observer.files()));
        outcome.notes.extend(task.has_a_ramp().then(|| Note { text: RAMP.to_owned(), kind: NoteKind::Ramp }));
        if request.engine.descriptor().runs != Runs::Command {
            observe::add_flushes_per_operation(&mut outcome);
        }
        Ok(outcome)
    });
    if result.is_err() {
        // Orphans of a guard that was killed.
        end_children(&hooks);
    }
    match (result, stopped_for) {
        // Wrong data are told whatever came afterwards.
        (Err(EngineError::Failed { kind, so_far, .. }), Some(reason)) if kind != FailureKind::WrongData => {
            stopped(reason, so_far)
        }
        (Ok(outcome), Some(reason)) => stopped(reason, outcome.samples),
        (Ok(outcome), None) => Answer::Done(outcome),
        (Err(EngineError::Unsupported { reason }), _) => Answer::Unsupported { reason },
        (Err(EngineError::Failed { kind, reason, command, output, so_far }), _) => {
            Answer::Failed { kind, reason, command, output, so_far }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_engine_has_a_limit() {
        assert_eq!(limit_of(EngineKind::Native, Some(2.0)), Limit::Seconds(2.0));
        // Their programs they end themselves.
        assert_eq!(limit_of(EngineKind::Dbench, Some(2.0)), Limit::EnginesOwn(2.0, Rings::OnlyIo));
        assert_eq!(limit_of(EngineKind::Command, Some(2.0)), Limit::EnginesOwn(2.0, Rings::Anything));
        assert_eq!(limit_of(EngineKind::Fio, None), Limit::Waits(Rings::OnlyIo));
        assert_eq!(limit_of(EngineKind::Command, None), Limit::Waits(Rings::Anything));
    }
}
