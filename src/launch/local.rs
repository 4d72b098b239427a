//! The agent as a child process on this host.

use std::io::{Read, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::descendants::cannot_be_ended;
use super::{Answer, LaunchError, Launcher, Reply, Request};
use crate::host::{
    self, AFTER_KILL, MARK_VARIABLE, RunGroup, descendants, end_children, kill_descendants, own_children,
    that_hang,
};
use crate::record::FailureKind;
use crate::sys::Program;

/// How long an agent may take to end after SIGTERM before it is killed.
const GRACE: Duration = Duration::from_secs(10);
/// How long one that has answered may take; only its memory is left to be given back.
const AFTER_ANSWER: Duration = Duration::from_secs(3);
/// How long the output of an agent that has ended is read on: what it started may hold the pipe for ever.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// How much longer than the task's own limit an agent may take (layout, settling, hooks).
const ALLOWANCE: Duration = Duration::from_secs(600);

/// The kernel's link to the program that runs, also where its file was replaced.
const OWN_IMAGE: &str = "/proc/self/exe";

/// Starts agents from this very program.
pub struct Local {
    program: PathBuf,
    /// Made with the first agent; `Some(None)`: none can be made here.
    group: Option<Option<RunGroup>>,
    /// What hooks left in the background of agents that have ended, now children of this process.
    adopted: Vec<i32>,
}

impl Local {
    /// Uses the program that is running now.
    ///
    /// # Errors
    /// The system's words when it cannot be found.
    pub fn new() -> std::io::Result<Local> {
        let program = PathBuf::from(OWN_IMAGE).canonicalize()?;
        Ok(Local { program, group: None, adopted: Vec::new() })
    }

    /// What an agent is: the program by its name, or what runs here, where another file has that name since (an upgrade, a rebuild).
    fn image(&self) -> &Path {
        let identity = |path: &Path| path.metadata().map(|file| (file.dev(), file.ino())).ok();
        let own = Path::new(OWN_IMAGE);
        if identity(&self.program) == identity(own) { &self.program } else { own }
    }
}

impl Launcher for Local {
    fn launch(&mut self, request: &Request, cancelled: &AtomicBool) -> Result<Reply, LaunchError> {
        let before = own_children();
        let oom_kills = host::oom_kills();
        let mut child = self.spawn()?;
        let input = serde_json::to_vec(request).unwrap_or_default();
        // An agent that died already is found by its exit status below.
        if let Some(mut stdin) = child.stdin.take() {
            let _ = stdin.write_all(&input);
        }
        let output = chunks(child.stdout.take());
        let errors = chunks(child.stderr.take());
        // A limit that does not fit is none.
        let limit = request.task.timeout_s.and_then(|s| Duration::try_from_secs_f64(s).ok());
        let limit = limit.map(|limit| limit.saturating_add(ALLOWANCE));
        let text = match wait(&output, &mut child, limit, cancelled) {
            Waited::Answered(text) => text,
            Waited::Cancelled => {
                return Err(LaunchError::Cancelled { left: self.ended_by_force(&before, stop(&mut child)) });
            }
            Waited::TooLong => {
                let left = self.ended_by_force(&before, stop(&mut child));
                return Ok(with_left(
                    dead("the trial passed its time limit and was stopped", &errors),
                    &left,
                ));
            }
        };
        let (status, left) = match ended(&mut child, AFTER_ANSWER) {
            Some(status) => (Some(status), Vec::new()),
            None => (None, kill(&mut child)),
        };
        let left = match &status {
            Some(Ok(status)) if status.success() => {
                self.adopt(&before);
                left
            }
            _ => self.ended_by_force(&before, left),
        };
        if cancelled.load(Ordering::SeqCst) {
            return Err(LaunchError::Cancelled { left });
        }
        let reply = match serde_json::from_slice(&text) {
            Ok(reply) => reply,
            Err(_) => died(status, &errors, oom_kills.is_some() && oom_kills == host::oom_kills()),
        };
        Ok(with_left(reply, &left))
    }
}

impl Local {
    fn spawn(&mut self) -> Result<Program, LaunchError> {
        let mut command = Command::new(self.image());
        command.arg("agent").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.env(MARK_VARIABLE, host::run_mark());
        // A process group of its own: Ctrl-C on the terminal reaches only assay, which then ends the agent in order.
        command.process_group(0);
        command
            .env_remove(super::last_duty::LAST_DUTY)
            .env(super::last_duty::PARENT, std::process::id().to_string());
        let group = self.group.get_or_insert_with(|| RunGroup::create(host::run_mark())).as_ref();
        if let Some(agent) = group.and_then(|group| group.spawn(&command, Signal::TERM)) {
            return Ok(agent);
        }
        crate::sys::dies_with_its_parent(&mut command, Signal::TERM);
        let start = |source| LaunchError::Start { program: self.program.display().to_string(), source };
        let child = command.spawn().map_err(start)?;
        // It starts nothing before it has its request.
        if let Some(group) = group {
            group.add(child.id());
        }
        Ok(child.into())
    }

    /// An agent that did not end in order may have left orphans, which are children of this process then: ends them. `left`
    /// are those known to hang in the kernel; returns them all.
    fn ended_by_force(&mut self, before: &[i32], mut left: Vec<i32>) -> Vec<i32> {
        if adopts_orphans() {
            left.extend(end_children(before));
        }
        left.sort_unstable();
        left.dedup();
        left
    }

    /// What hooks have left in the background lives on, as it does where nobody adopts it; it is reaped here when it ends.
    fn adopt(&mut self, before: &[i32]) {
        if !adopts_orphans() {
            return;
        }
        self.adopted.extend(own_children().into_iter().filter(|child| !before.contains(child)));
        self.adopted.retain(|child| !rustix::process::Pid::from_raw(*child).is_none_or(host::reaped));
    }
}

/// Makes this process the parent of orphans of the agents that it starts, so that it can end what outlives one that was killed.
/// Its other children must all be started before an agent, or after one has ended.
///
/// # Errors
/// The system's words.
pub fn adopt_orphans() -> std::io::Result<()> {
    Ok(rustix::process::set_child_subreaper(rustix::process::Pid::from_raw(1))?)
}

/// Whether orphans of an agent become children of this process: it asked for that, or it is the first of a guest.
fn adopts_orphans() -> bool {
    rustix::process::getpid().is_init() || matches!(rustix::process::child_subreaper(), Ok(Some(_)))
}

enum Waited {
    Answered(Vec<u8>),
    Cancelled,
    TooLong,
}

/// Waits for the reply, which is one line. Another process may still hold the agent's standard output open.
fn wait(
    output: &Receiver<Vec<u8>>,
    child: &mut Program,
    limit: Option<Duration>,
    cancelled: &AtomicBool,
) -> Waited {
    let begun = Instant::now();
    let mut text = Vec::new();
    let mut gone: Option<Instant> = None;
    loop {
        match output.recv_timeout(Duration::from_millis(50)) {
            Ok(chunk) => {
                text.extend(chunk);
                if text.ends_with(b"\n") {
                    return Waited::Answered(text);
                }
            }
            Err(RecvTimeoutError::Disconnected) => return Waited::Answered(text),
            Err(RecvTimeoutError::Timeout) if cancelled.load(Ordering::SeqCst) => return Waited::Cancelled,
            Err(RecvTimeoutError::Timeout) if limit.is_some_and(|limit| begun.elapsed() > limit) => {
                return Waited::TooLong;
            }
            Err(RecvTimeoutError::Timeout) => {
                let has_ended = !matches!(child.try_wait(), Ok(None));
                if has_ended && gone.get_or_insert_with(Instant::now).elapsed() > LAST_WORDS {
                    return Waited::Answered(text);
                }
            }
        }
    }
}

/// What a stream says, read on a thread of its own, so that neither side blocks on a full pipe; disconnected at its end.
pub(super) fn chunks(stream: Option<impl Read + Send + 'static>) -> Receiver<Vec<u8>> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let Some(mut stream) = stream else { return };
        let mut chunk = vec![0; 1 << 16];
        loop {
            match stream.read(&mut chunk) {
                Ok(count) if count > 0 => {
                    // Read on where nobody listens any more: whoever still writes there lives on.
                    let _ = sender.send(chunk[..count].to_vec());
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                _ => return,
            }
        }
    });
    receiver
}

/// All of a stream; where its end does not come within a second, what has come until then.
pub(super) fn words(stream: &Receiver<Vec<u8>>) -> String {
    let begun = Instant::now();
    let mut bytes = Vec::new();
    while let Ok(chunk) = stream.recv_timeout(LAST_WORDS.saturating_sub(begun.elapsed())) {
        bytes.extend(chunk);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// SIGTERM, patience, then SIGKILL; the processes that hang in the kernel and so are left.
fn stop(child: &mut Program) -> Vec<i32> {
    let pid = child.pid();
    // Once it has ended they are no longer its descendants.
    let family = descendants(pid.as_raw_nonzero().get());
    child.signal(Signal::TERM);
    let mut left = if ended(child, GRACE).is_some() { Vec::new() } else { kill(child) };
    left.extend(that_hang(&family));
    left.sort_unstable();
    left.dedup();
    left
}

/// SIGKILL for it and all it has started; those that hang in the kernel and so are left.
fn kill(child: &mut Program) -> Vec<i32> {
    let pid = child.pid().as_raw_nonzero().get();
    let mut family = descendants(pid);
    family.push(pid);
    kill_descendants(pid);
    child.signal(Signal::KILL);
    if ended(child, AFTER_KILL).is_none() {
        let hanging = that_hang(&family);
        return if hanging.is_empty() { vec![pid] } else { hanging };
    }
    that_hang(&family)
}

/// Waits a while for a process's end; `None`: it has not ended.
fn ended(child: &mut Program, patience: Duration) -> Option<std::io::Result<ExitStatus>> {
    let begun = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(Ok(status)),
            Err(error) => return Some(Err(error)),
            Ok(None) if begun.elapsed() >= patience => return None,
            Ok(None) => std::thread::sleep(Duration::from_millis(1)),
        }
    }
}

/// The reply, told with the processes that are left.
fn with_left(mut reply: Reply, left: &[i32]) -> Reply {
    if left.is_empty() {
        return reply;
    }
    let told = cannot_be_ended(left);
    match &mut reply.answer {
        Answer::Done(outcome) => outcome.notes.push(told.into()),
        // Another attempt would meet the same, and what is left beside it.
        Answer::Failed { kind, reason, .. } => {
            if reply.why.left.is_empty() {
                reason.push_str(&format!("; {told}"));
            }
            *kind = (*kind).max(FailureKind::Lasting);
        }
        Answer::Unsupported { reason } => reason.push_str(&format!("; {told}")),
    }
    reply.why.left = left.to_vec();
    reply
}

fn dead(reason: &str, errors: &Receiver<Vec<u8>>) -> Reply {
    Reply::failed(reason, words(errors))
}

/// An agent that somebody killed says nothing of its trial; one that the kernel killed for want of memory may.
fn died(
    status: Option<std::io::Result<ExitStatus>>,
    errors: &Receiver<Vec<u8>>,
    memory_sufficed: bool,
) -> Reply {
    let killed = matches!(&status, Some(Ok(status)) if status.signal() == Some(libc::SIGKILL));
    let killed = killed && memory_sufficed;
    let reply = dead(&format!("the agent {}", how_it_ended(status)), errors);
    if killed { reply.caused_outside() } else { reply }
}

fn how_it_ended(status: Option<std::io::Result<ExitStatus>>) -> String {
    match status {
        None => "closed its standard output without an answer and did not end".to_owned(),
        Some(Ok(status)) => match (status.signal(), status.code()) {
            (Some(9), _) => "was killed (SIGKILL; out of memory?)".to_owned(),
            (Some(signal), _) => format!("died of signal {signal}"),
            (None, code) => format!("ended with code {} and no answer", code.unwrap_or(-1)),
        },
        Some(Err(error)) => format!("could not be waited for: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Program {
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap().into()
    }

    fn answered(script: &str) -> (Vec<u8>, Duration) {
        let mut child = shell(script);
        let output = chunks(child.stdout.take());
        let begun = Instant::now();
        let waited = wait(&output, &mut child, Some(Duration::from_secs(20)), &AtomicBool::new(false));
        let took = begun.elapsed();
        assert_eq!(stop(&mut child), Vec::<i32>::new());
        match waited {
            Waited::Answered(text) => (text, took),
            _ => panic!("no answer"),
        }
    }

    #[test]
    fn a_reply_is_a_line_whoever_holds_the_pipe() {
        // It lives on; one that it has left lives on; it ended without a line, and one that it has left lives on.
        for script in ["echo reply; exec sleep 60", "sleep 60 & echo reply", "sleep 60 & printf reply"] {
            let (text, took) = answered(script);
            assert_eq!(text.trim_ascii(), b"reply", "{script}");
            assert!(took < Duration::from_secs(19), "{script}: {took:?}");
        }
        assert_eq!(answered("printf reply").0, b"reply");
    }

    #[test]
    fn last_words_are_told_though_the_pipe_is_held() {
        let mut child = shell("echo words >&2; exec sleep 30");
        let errors = chunks(child.stderr.take());
        assert_eq!(words(&errors), "words\n");
        assert_eq!(stop(&mut child), Vec::<i32>::new());
    }

    #[test]
    fn what_is_left_is_told_and_the_trial_not_tried_again() {
        let failed = with_left(dead("it hangs", &chunks(Some(std::io::empty()))), &[7, 9]);
        let told_before = failed.clone();
        let Answer::Failed { kind, reason, .. } = failed.answer else { panic!("{failed:?}") };
        assert_eq!(reason, "it hangs; processes 7, 9 cannot be ended: they hang in the kernel");
        assert_eq!(kind, FailureKind::Lasting);
        assert_eq!(with_left(told_before.clone(), &[7, 9]), told_before, "the agent has told it");
    }
}
