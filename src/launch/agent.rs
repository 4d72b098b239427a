//! The other end: one request on standard input, one reply on standard output, nothing else.

use std::io::{Read, Write};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;

use super::time_limit::TimeLimit;
use super::{Answer, PROTOCOL, Reply, Request, descendants};
use crate::engine::{self, Engine, EngineError, EngineKind, Task};
use crate::observe::{self, Observer};
use crate::record::{FailureKind, HostFacts, Outcome, Sample};
use crate::target::{self, TargetError};

/// Runs the one trial asked for on standard input; the exit code says whether a reply was written.
///
/// # Errors
/// What made the request unreadable or the reply unwritable.
pub fn serve() -> Result<(), String> {
    die_in_order()?;
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).map_err(|e| format!("cannot read the request: {e}"))?;
    let request: Request = serde_json::from_str(&text).map_err(|e| format!("the request is not one: {e}"))?;
    if request.protocol != PROTOCOL {
        return Err(format!("the request has protocol {}, this agent knows {PROTOCOL}", request.protocol));
    }
    let reply = if request.rehearsal { rehearse(&request) } else { execute(&request) };
    let bytes = serde_json::to_vec(&reply).map_err(|e| format!("the reply cannot be written: {e}"))?;
    std::io::stdout().write_all(&bytes).map_err(|e| format!("the reply cannot be written: {e}"))
}

/// Adopts orphans, so that on SIGTERM (also the one the kernel sends when assay itself is killed) everything
/// the engine has started ends with this process.
fn die_in_order() -> Result<(), String> {
    rustix::process::set_child_subreaper(rustix::process::Pid::from_raw(1))
        .map_err(|e| format!("cannot become subreaper: {e}"))?;
    // Heard and forgotten: a write beyond the limit of a file's size is to fail with EFBIG, not to end the process.
    signal_hook::flag::register(SIGXFSZ, Arc::default()).map_err(|e| format!("cannot watch signals: {e}"))?;
    let mut signals =
        Signals::new([SIGTERM, SIGINT, SIGHUP]).map_err(|e| format!("cannot watch signals: {e}"))?;
    std::thread::spawn(move || {
        if let Some(signal) = signals.forever().next() {
            let me = rustix::process::getpid().as_raw_nonzero().get();
            let begun = Instant::now();
            while descendants::signal_all(me, Signal::TERM) > 0
                && begun.elapsed() < Duration::from_millis(500)
            {
                std::thread::sleep(Duration::from_millis(20));
            }
            descendants::kill_all(me);
            std::process::exit(128 + signal);
        }
    });
    Ok(())
}

fn execute(request: &Request) -> Reply {
    let mut reply = Reply {
        answer: Answer::Unsupported { reason: String::new() },
        facts: HostFacts::default(),
        disturbance: None,
    };
    // First of all: it calibrates its clock while the facts are looked up.
    let engine = engine::of(request.engine);
    match prepare(request) {
        Ok(mut ready) => {
            reply.facts = target::facts(&request.target, &ready);
            let watch = target::Interference::look(&request.target.watched());
            let answer = observed(request, engine.as_ref(), &reply);
            reply.disturbance = Some(watch.since());
            let mut answer = after_hook(request, answer);
            let mut notes = std::mem::take(&mut ready.notes);
            notes.extend(target::release(&request.target, ready));
            if let Answer::Done(outcome) = &mut answer {
                outcome.notes.splice(0..0, notes);
            }
            reply.answer = answer;
        }
        Err(failed) => reply.answer = failed,
    }
    reply
}

/// Makes the target once to see that it can be made; what lasts longer than a trial stays for the first one.
fn rehearse(request: &Request) -> Reply {
    let answer = match target::rehearse(&request.target) {
        Ok(()) => Answer::Done(Outcome::default()),
        Err(error) => not_ready(error),
    };
    Reply { answer, facts: HostFacts::default(), disturbance: None }
}

/// The same state before each trial; then the hook.
fn prepare(request: &Request) -> Result<target::Ready, Answer> {
    let ready = target::prepare(&request.target).map_err(|error| lost(not_ready(error), &request.target))?;
    let before = request.before.as_ref().map_or(Ok(()), |script| hook("before", script, request));
    if let Err(failed) = before {
        // What cannot be put back now is tried again by the next trial, and at the end by the parent.
        let _ = target::release(&request.target, ready);
        return Err(failed);
    }
    Ok(ready)
}

fn not_ready(error: TargetError) -> Answer {
    let reason = match (error.to_string(), error.hint()) {
        (reason, hint) if hint.is_empty() => reason,
        (reason, hint) => format!("{reason}\nhint: {hint}"),
    };
    let kind = FailureKind::Passing;
    match error {
        TargetError::Unavailable { .. } => Answer::Unsupported { reason },
        TargetError::Failed { command, output, .. } => {
            Answer::Failed { kind, reason, command, output, so_far: Vec::new() }
        }
        _ => {
            Answer::Failed { kind, reason, command: String::new(), output: String::new(), so_far: Vec::new() }
        }
    }
}

/// Every target was made once before the first trial. What is not to be had now was then, so the trial fails, and may be tried
/// again; what no machine can do is said as such.
fn lost(answer: Answer, target: &target::TargetSpec) -> Answer {
    let impossible = target.setup.as_ref().is_some_and(|setup| setup.settings.impossible().is_some());
    match answer {
        Answer::Unsupported { reason } if !impossible => stopped(reason, Vec::new()),
        other => other,
    }
}

fn after_hook(request: &Request, answer: Answer) -> Answer {
    let Some(script) = &request.after else { return answer };
    match hook("after", script, request) {
        Err(failed) if matches!(answer, Answer::Done(_)) => failed,
        _ => answer,
    }
}

fn hook(which: &str, script: &str, request: &Request) -> Result<(), Answer> {
    let failed = |reason: String, output: String| Answer::Failed {
        kind: FailureKind::Passing,
        reason,
        command: format!("sh -c {}", shlex::try_quote(script).unwrap_or_default()),
        output,
        so_far: Vec::new(),
    };
    let output = Command::new("sh")
        .arg("-c")
        .arg(script)
        .envs(request.task.variables.iter().cloned())
        .env("ASSAY_DIRECTORY", &request.target.directory)
        .envs(request.target.device().map(|device| ("ASSAY_DEVICE", device)))
        .stdin(std::process::Stdio::null())
        .output()
        .map_err(|e| failed(format!("cannot start the {which} hook: {e}"), String::new()))?;
    if output.status.success() {
        return Ok(());
    }
    let mut words = String::from_utf8_lossy(&output.stdout).into_owned();
    words.push_str(&String::from_utf8_lossy(&output.stderr));
    Err(failed(format!("the {which} hook failed: {}", output.status), words))
}

/// Limits the time of engines that work in this process (the others end their programs themselves); without a limit
/// nobody may wait for I/O for ever.
fn time_limit(request: &Request, so_far: &Reply) -> TimeLimit {
    let here = matches!(request.engine, EngineKind::Native | EngineKind::Null | EngineKind::Bare);
    let seconds = request.task.timeout_s.map(|seconds| if here { seconds } else { f64::INFINITY });
    let so_far = so_far.clone();
    let last_word = move |reason| {
        let reply = Reply { answer: stopped(reason, Vec::new()), ..so_far };
        let bytes = serde_json::to_vec(&reply).unwrap_or_default();
        let _ = std::io::stdout().write_all(&bytes);
    };
    TimeLimit::start(seconds, last_word)
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
    let place =
        observe::Place { directory: task.directory.clone(), elsewhere: engine.written_elsewhere(task) };
    let known = |name: &String| {
        let reason = || format!("this agent has no observer '{name}'");
        observe::named(name, &place).ok_or_else(|| EngineError::Unsupported { reason: reason() })
    };
    request.observe.iter().map(known).collect()
}

/// The engine with the observers around it.
fn observed(request: &Request, engine: &dyn Engine, reply: &Reply) -> Answer {
    let mut task = Task {
        directory: request.target.directory.clone(),
        device_stat: observe::device_stat(&request.target.watched()),
        ..request.task.clone()
    };
    let device = request.target.device();
    task.variables
        .extend(device.map(|device| ("ASSAY_DEVICE".to_owned(), device.to_string_lossy().into_owned())));
    let mut stopped_for = None;
    let result = engine.prepare(&task).and_then(|()| {
        // Started only now: laying files out is no part of what is measured.
        let mut observers = observe::standard(&request.target.watched());
        observers.extend(asked_for(request, engine, &task)?);
        observers.iter_mut().for_each(|observer| observer.start());
        let limit = time_limit(request, reply);
        let outcome = engine.run(&task);
        stopped_for = limit.end();
        let mut outcome = outcome?;
        observe::stop_all(&mut observers, &mut outcome);
        if request.engine != EngineKind::Command {
            observe::add_flushes_per_operation(&mut outcome);
        }
        Ok(outcome)
    });
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
    use crate::target::{Device, Filesystem, Setup, TargetSettings, TargetSpec, WorkDirectory};

    #[test]
    fn what_is_not_to_be_had_any_more_has_failed_and_what_cannot_be_is_skipped() {
        let base = tempfile::tempdir().unwrap();
        let work = WorkDirectory::create(&base.path().join("assay-1")).unwrap();
        let asked = |settings: TargetSettings| {
            let stack = Some(work.path().join("stack"));
            let setup = Setup { work: work.path().to_owned(), stack, settings, ..Setup::default() };
            let target =
                TargetSpec { directory: work.path().to_owned(), setup: Some(setup), ..TargetSpec::default() };
            Request {
                protocol: PROTOCOL,
                engine: EngineKind::Null,
                task: Task::default(),
                target,
                rehearsal: false,
                observe: Vec::new(),
                before: None,
                after: None,
            }
        };
        let gone = Some(Device::Block("/dev/nowhere".into()));
        let settings = TargetSettings { device: gone.clone(), ..TargetSettings::default() };
        let request = asked(settings);
        let Answer::Unsupported { reason: first } = rehearse(&request).answer else {
            panic!("before the first trial it is what this machine does not have")
        };
        let Answer::Failed { kind: FailureKind::Passing, reason, .. } = execute(&request).answer else {
            panic!("in a trial it may come back")
        };
        assert!(reason.starts_with("there is no /dev/nowhere") && reason == first, "{reason}");
        let fs = Some(Filesystem::F2fs);
        let settings =
            TargetSettings { device: gone, fs, extsize: Some(1 << 20), ..TargetSettings::default() };
        let Answer::Unsupported { reason } = execute(&asked(settings)).answer else {
            panic!("no machine can")
        };
        assert!(reason.starts_with("f2fs has no extent-size hint"), "{reason}");
    }
}
