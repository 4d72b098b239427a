//! The agent as a child process on this host.

use std::io::{Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use super::{Answer, LaunchError, Launcher, Reply, Request};
use crate::record::{FailureKind, HostFacts};

/// How long an agent may take to end after SIGTERM before it is killed.
const GRACE: Duration = Duration::from_secs(10);
/// How much longer than the task's own limit an agent may take (layout, settling, hooks).
const ALLOWANCE: Duration = Duration::from_secs(600);

/// Starts agents from this very program.
pub struct Local {
    program: PathBuf,
}

impl Local {
    /// Uses the program that is running now.
    ///
    /// # Errors
    /// The system's words when it cannot be found.
    pub fn new() -> std::io::Result<Local> {
        // The kernel's own link still names the right file when the binary was replaced by a rebuild.
        Ok(Local { program: PathBuf::from("/proc/self/exe").canonicalize()? })
    }
}

impl Launcher for Local {
    fn launch(&mut self, request: &Request, cancelled: &AtomicBool) -> Result<Reply, LaunchError> {
        let mut child = self.spawn()?;
        let input = serde_json::to_vec(request).unwrap_or_default();
        // An agent that died already is found by its exit status below.
        if let Some(mut stdin) = child.stdin.take() {
            let _ = stdin.write_all(&input);
        }
        let output = collect(child.stdout.take());
        let errors = collect(child.stderr.take());
        let limit = request.task.timeout_s.map(|s| Duration::from_secs_f64(s) + ALLOWANCE);
        let text = match wait(&output, limit, cancelled) {
            Waited::Answered(text) => text,
            Waited::Cancelled => {
                stop(&mut child);
                return Err(LaunchError::Cancelled);
            }
            Waited::TooLong => {
                stop(&mut child);
                return Ok(dead("the trial passed its time limit and was stopped", &errors));
            }
        };
        let status = child.wait();
        if cancelled.load(Ordering::SeqCst) {
            return Err(LaunchError::Cancelled);
        }
        match serde_json::from_slice(&text) {
            Ok(reply) => Ok(reply),
            Err(_) => Ok(dead(&format!("the agent {}", how_it_ended(status)), &errors)),
        }
    }
}

impl Local {
    fn spawn(&self) -> Result<Child, LaunchError> {
        let mut command = Command::new(&self.program);
        command.arg("agent").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // A process group of its own: Ctrl-C on the terminal reaches only assay, which then ends the agent in order.
        command.process_group(0);
        #[expect(unsafe_code, reason = "pre_exec is the only way to set a parent-death signal before exec")]
        // SAFETY: the closure makes one async-signal-safe system call and touches no memory of the parent.
        unsafe {
            command.pre_exec(|| {
                rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::TERM))
                    .map_err(Into::into)
            });
        }
        let start = |source| LaunchError::Start { program: self.program.display().to_string(), source };
        command.spawn().map_err(start)
    }
}

enum Waited {
    Answered(Vec<u8>),
    Cancelled,
    TooLong,
}

fn wait(output: &Receiver<Vec<u8>>, limit: Option<Duration>, cancelled: &AtomicBool) -> Waited {
    let begun = Instant::now();
    loop {
        match output.recv_timeout(Duration::from_millis(50)) {
            Ok(text) => return Waited::Answered(text),
            Err(RecvTimeoutError::Disconnected) => return Waited::Answered(Vec::new()),
            Err(RecvTimeoutError::Timeout) if cancelled.load(Ordering::SeqCst) => return Waited::Cancelled,
            Err(RecvTimeoutError::Timeout) if limit.is_some_and(|limit| begun.elapsed() > limit) => {
                return Waited::TooLong;
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

/// Reads a stream to its end on a thread of its own, so that neither side blocks on a full pipe.
pub(super) fn collect(stream: Option<impl Read + Send + 'static>) -> Receiver<Vec<u8>> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut stream) = stream {
            let _ = stream.read_to_end(&mut bytes);
        }
        let _ = sender.send(bytes);
    });
    receiver
}

/// SIGTERM, patience, then SIGKILL.
fn stop(child: &mut Child) {
    let pid = rustix::process::Pid::from_child(child);
    let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
    let begun = Instant::now();
    while begun.elapsed() < GRACE {
        if matches!(child.try_wait(), Ok(Some(_)) | Err(_)) {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    super::descendants::kill_all(pid.as_raw_nonzero().get());
    let _ = child.kill();
    let _ = child.wait();
}

fn dead(reason: &str, errors: &Receiver<Vec<u8>>) -> Reply {
    let words = errors.recv_timeout(Duration::from_secs(1)).unwrap_or_default();
    Reply {
        answer: Answer::Failed {
            kind: FailureKind::Passing,
            reason: reason.to_owned(),
            command: String::new(),
            output: String::from_utf8_lossy(&words).into_owned(),
            so_far: Vec::new(),
        },
        facts: HostFacts::default(),
        disturbance: None,
    }
}

fn how_it_ended(status: std::io::Result<ExitStatus>) -> String {
    match status {
        Ok(status) => match (status.signal(), status.code()) {
            (Some(9), _) => "was killed (SIGKILL; out of memory?)".to_owned(),
            (Some(signal), _) => format!("died of signal {signal}"),
            (None, code) => format!("ended with code {} and no answer", code.unwrap_or(-1)),
        },
        Err(error) => format!("could not be waited for: {error}"),
    }
}
