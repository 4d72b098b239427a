//! Runs one program of another's making to its end, under a guard, and streams what it prints.
//!
//! Enters: argv, directory, environment, a time limit. Leaves: how it ended, what it used, its last output; every
//! line is shown to the caller as it comes. It must not know which program it runs or what the lines mean.

use std::io::{PipeReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::guard::{self, Report};
use super::{EngineError, Task};
use crate::record::FailureKind;
use crate::sys::followed::{Followed, Lives};

/// Bytes of output kept for a failure's message.
const TAIL_BYTES: usize = 64 * 1024;
/// Lines of it that are shown.
const TAIL_LINES: usize = 40;
/// A line longer than this is shown to the caller in pieces.
const LINE_BYTES: usize = 1024 * 1024;

/// A program to run.
#[derive(Clone, Debug)]
pub(super) struct Program<'a> {
    /// Program and arguments; no shell.
    pub(super) argv: Vec<String>,
    /// Working directory; `None`: assay's own.
    pub(super) directory: Option<&'a Path>,
    /// Added to the environment.
    pub(super) variables: Vec<(String, String)>,
    /// Most seconds it may take; then it is killed with its descendants.
    pub(super) timeout_s: Option<f64>,
}

/// How a program ended.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum End {
    /// With this exit code.
    Code(i32),
    /// By this signal.
    Signal(i32),
    /// It was killed after this many seconds.
    TimedOut(f64),
    /// It was killed for what it printed, which means this.
    GivenUp(String),
}

/// What is known of a program that ran.
#[derive(Clone, Debug)]
pub(super) struct Ended {
    /// How it ended.
    pub(super) end: End,
    /// Time and resources.
    pub(super) report: Report,
    /// What its workers did meanwhile, as far as they were seen.
    pub(super) lives: Lives,
    /// Its last output, standard output and error in the order written.
    pub(super) tail: String,
}

impl Program<'_> {
    /// The line that repeats it in a shell.
    pub(super) fn shell_line(&self) -> String {
        let mut words = Vec::new();
        if !self.variables.is_empty() {
            words.push("env".to_owned());
            words.extend(self.variables.iter().map(|(name, value)| format!("{name}={value}")));
        }
        words.extend(self.argv.iter().cloned());
        let line = words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ");
        match self.directory {
            Some(directory) => {
                format!("cd {} && {line}", quoted(&directory.to_string_lossy()))
            }
            None => line,
        }
    }

    /// An [`EngineError::Failed`] about this program.
    pub(super) fn failed(&self, reason: String, output: String) -> EngineError {
        let kind = FailureKind::Passing;
        EngineError::Failed { kind, reason, command: self.shell_line(), output, so_far: Vec::new() }
    }

    /// Runs it; `on_line` sees each line of its output without the line's end.
    ///
    /// # Errors
    /// [`EngineError::Failed`] when it cannot be started or watched. How it ended is no error here.
    pub(super) fn run(&self, on_line: &mut dyn FnMut(&str)) -> Result<Ended, EngineError> {
        self.run_until(&mut |line| {
            on_line(line);
            None
        })
    }

    /// Runs it to its end, or until `on_line` says why it cannot come to a good one: then it is killed with its descendants.
    ///
    /// # Errors
    /// As [`Program::run`].
    pub(super) fn run_until(
        &self,
        on_line: &mut dyn FnMut(&str) -> Option<String>,
    ) -> Result<Ended, EngineError> {
        let io_failed = |what: &str, error: &std::io::Error| {
            let name = self.argv.first().map_or("", String::as_str);
            self.failed(format!("cannot {what} '{name}': {error}"), String::new())
        };
        let (program, arguments) = self
            .argv
            .split_first()
            .ok_or_else(|| self.failed("no command was given".to_owned(), String::new()))?;
        let (output, writer) = std::io::pipe().map_err(|e| io_failed("make a pipe for", &e))?;
        let second = writer.try_clone().map_err(|e| io_failed("make a pipe for", &e))?;
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null()).stdout(writer).stderr(second);
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        if let Some(directory) = self.directory {
            command.current_dir(directory);
        }
        let reports = guard::put_above(&mut command).map_err(|e| io_failed("guard", &e))?;
        let mut guard = command.spawn().map_err(|e| io_failed("start", &e))?;
        // The command holds the writing ends of both pipes; their end must be seen when the program ends.
        drop(command);
        let pid = rustix::process::Pid::from_child(&guard);
        let mut followed = Followed::below(pid.as_raw_nonzero().get());
        let watched = watch(output, reports, pid, self.timeout_s, &mut followed, on_line);
        let reaped = guard.wait();
        let Watched { report, tail, timed_out, given_up } = watched.map_err(|e| io_failed("watch", &e))?;
        reaped.map_err(|e| io_failed("wait for", &e))?;
        let Some(report) = report else {
            return Err(self.failed("the guard of the command was killed".to_owned(), last_lines(&tail)));
        };
        if report.stuck {
            let reason = "a process of the command cannot be killed: it hangs in the kernel".to_owned();
            return Err(self.failed(reason, last_lines(&tail)));
        }
        let end = match (given_up, timed_out, report.code) {
            (Some(reason), ..) => End::GivenUp(reason),
            (None, Some(limit_s), _) => End::TimedOut(limit_s),
            (None, None, code) if code < 0 => End::Signal(-code),
            (None, None, code) => End::Code(code),
        };
        let lives = followed.ended(report.elapsed_ns as f64 / 1e9);
        Ok(Ended { end, report, lives, tail: last_lines(&tail) })
    }
}

/// A word as a shell takes it; `NAME=value` and paths stay as they read best.
pub(super) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./=:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    shlex::try_quote(word).map_or_else(|_| word.to_owned(), std::borrow::Cow::into_owned)
}

impl End {
    /// What went wrong, in words; `None` for exit code 0.
    pub(super) fn trouble(&self, name: &str) -> Option<String> {
        match self {
            End::Code(0) => None,
            End::Code(code) => Some(format!("'{name}' ended with exit code {code}")),
            End::Signal(signal) => {
                Some(format!("'{name}' was ended by signal {signal}{}", signal_name(*signal)))
            }
            End::TimedOut(limit_s) => {
                Some(format!("'{name}' took longer than the limit of {limit_s} s and was killed"))
            }
            End::GivenUp(reason) => Some(reason.clone()),
        }
    }
}

pub(super) fn signal_name(signal: i32) -> &'static str {
    match signal {
        libc::SIGHUP => " (SIGHUP)",
        libc::SIGINT => " (SIGINT)",
        libc::SIGABRT => " (SIGABRT)",
        libc::SIGBUS => " (SIGBUS)",
        libc::SIGFPE => " (SIGFPE)",
        libc::SIGKILL => " (SIGKILL)",
        libc::SIGSEGV => " (SIGSEGV)",
        libc::SIGPIPE => " (SIGPIPE)",
        libc::SIGTERM => " (SIGTERM)",
        _ => "",
    }
}

/// The variables of a task as an environment, with where the files go.
pub(super) fn environment(task: &Task) -> Vec<(String, String)> {
    let mut variables = task.variables.clone();
    variables.push(("ASSAY_DIRECTORY".to_owned(), task.directory.to_string_lossy().into_owned()));
    variables
}

struct Watched {
    report: Option<Report>,
    tail: Vec<u8>,
    timed_out: Option<f64>,
    given_up: Option<String>,
}

/// Sees each line; says why the program cannot come to a good end, if so.
type OnLine<'l> = &'l mut dyn FnMut(&str) -> Option<String>;

/// Reads until the guard has reported. The output is read to its end, or to what is there when something that
/// is no descendant of the program still holds the pipe.
fn watch(
    mut output: PipeReader,
    mut reports: PipeReader,
    guard: rustix::process::Pid,
    timeout_s: Option<f64>,
    followed: &mut Followed,
    on_line: OnLine<'_>,
) -> std::io::Result<Watched> {
    rustix::io::ioctl_fionbio(&output, true)?;
    let limit = timeout_s.filter(|s| s.is_finite() && *s >= 0.0).map(|s| (s, Instant::now()));
    let (mut timed_out, mut ending) = (None, false);
    let mut lines = Lines::default();
    loop {
        followed.look_when_due();
        let mut wait = followed.due_in();
        if let (Some((limit_s, start)), None) = (limit, timed_out) {
            let left_s = limit_s - start.elapsed().as_secs_f64();
            if left_s <= 0.0 {
                timed_out = Some(limit_s);
                rustix::process::kill_process(guard, rustix::process::Signal::TERM)?;
            } else {
                // Rounded up to the next millisecond, and bounded so that any number of seconds fits.
                wait = wait.min(Duration::from_secs_f64(left_s.min(3600.0) + 0.001));
            }
        }
        let wait = Timespec::try_from(wait).ok();
        let (output_ready, report_ready) = {
            let mut ready = [PollFd::new(&output, PollFlags::IN), PollFd::new(&reports, PollFlags::IN)];
            // At its end the output is always ready; from then on only the report is waited for.
            let from = usize::from(lines.at_end);
            match poll(&mut ready[from..], wait.as_ref()) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            (!ready[0].revents().is_empty(), !ready[1].revents().is_empty())
        };
        if output_ready {
            lines.read_some(&mut output, on_line)?;
        }
        if lines.given_up.is_some() && !ending {
            ending = true;
            rustix::process::kill_process(guard, rustix::process::Signal::TERM)?;
        }
        if report_ready {
            while lines.read_some(&mut output, on_line)? {}
            lines.finish(on_line);
            let Lines { tail, given_up, .. } = lines;
            return Ok(Watched { report: Report::read(&mut reports), tail, timed_out, given_up });
        }
    }
}

/// Cuts a stream of bytes into lines and keeps its tail.
#[derive(Default)]
struct Lines {
    unfinished: Vec<u8>,
    tail: Vec<u8>,
    at_end: bool,
    given_up: Option<String>,
}

impl Lines {
    /// Reads once; false when there was nothing to read or the output is at its end.
    fn read_some(&mut self, output: &mut PipeReader, on_line: OnLine<'_>) -> std::io::Result<bool> {
        let mut buffer = [0_u8; 16 * 1024];
        match output.read(&mut buffer) {
            Ok(0) => {
                self.at_end = true;
                Ok(false)
            }
            Ok(length) => {
                self.take(&buffer[..length], on_line);
                Ok(true)
            }
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => Ok(false),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => Ok(true),
            Err(error) => Err(error),
        }
    }

    fn take(&mut self, bytes: &[u8], on_line: OnLine<'_>) {
        self.tail.extend_from_slice(bytes);
        // Twice the bound before it is cut: the copying is then at most one byte for each byte read.
        if self.tail.len() > 2 * TAIL_BYTES {
            self.tail.drain(..self.tail.len() - TAIL_BYTES);
        }
        let mut rest = bytes;
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            self.unfinished.extend_from_slice(&rest[..end]);
            self.finish(on_line);
            rest = &rest[end + 1..];
        }
        self.unfinished.extend_from_slice(rest);
        if self.unfinished.len() >= LINE_BYTES {
            self.finish(on_line);
        }
    }

    fn finish(&mut self, on_line: OnLine<'_>) {
        if self.unfinished.last() == Some(&b'\r') {
            self.unfinished.pop();
        }
        if !self.unfinished.is_empty() {
            let said = on_line(&String::from_utf8_lossy(&self.unfinished));
            self.given_up = self.given_up.take().or(said);
        }
        self.unfinished.clear();
    }
}

/// The last lines of an output, for a message.
pub(super) fn last_lines(output: &[u8]) -> String {
    let kept = &output[output.len().saturating_sub(TAIL_BYTES)..];
    let text = String::from_utf8_lossy(kept);
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, timeout_s: Option<f64>) -> (Ended, Vec<String>) {
        let argv = vec!["sh".to_owned(), "-c".to_owned(), script.to_owned()];
        let program = Program { argv, directory: None, variables: Vec::new(), timeout_s };
        let mut lines = Vec::new();
        let ended = program.run(&mut |line| lines.push(line.to_owned())).unwrap();
        (ended, lines)
    }

    fn alive(pid: &str) -> bool {
        // A zombie is gone; only whoever inherits it has to notice.
        std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
    }

    #[test]
    fn lines_of_both_streams_come_in_order() {
        let (ended, lines) = shell("echo one; echo two >&2; printf 'three\\r\\nfour'", None);
        assert_eq!((ended.end, lines.join("|").as_str()), (End::Code(0), "one|two|three|four"));
        assert_eq!(ended.tail, "one\ntwo\nthree\nfour");
    }

    #[test]
    fn codes_and_signals_are_told_apart() {
        assert_eq!(shell("exit 7", None).0.end, End::Code(7));
        assert_eq!(shell("kill -SEGV $$", None).0.end, End::Signal(libc::SIGSEGV));
        assert_eq!(End::Code(0).trouble("x"), None);
        assert!(End::Signal(9).trouble("x").unwrap().contains("SIGKILL"));
    }

    #[test]
    fn usage_is_the_programs() {
        let (ended, _) = shell("i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; sleep 0.2", None);
        let report = ended.report;
        assert!(report.elapsed_ns > 200_000_000, "{report:?}");
        assert!(report.usr_us > 10_000 && report.usr_us < report.elapsed_ns / 1000, "{report:?}");
        assert!(report.voluntary >= 1 && report.max_rss_kib > 500, "{report:?}");
    }

    #[test]
    fn a_time_limit_ends_it_and_everything_it_started() {
        let start = Instant::now();
        // setsid: its own session and group, as fio's workers.
        let (ended, lines) = shell("setsid sleep 60 & echo $!; sleep 61 & echo $!; echo $$; wait", Some(3.0));
        assert_eq!(ended.end, End::TimedOut(3.0));
        assert!(start.elapsed() < Duration::from_secs(40));
        assert_eq!(lines.len(), 3);
        assert!(lines.iter().all(|pid| !alive(pid)), "{lines:?}");
    }

    #[test]
    fn what_is_left_in_the_background_ends_with_it() {
        let (ended, lines) = shell("setsid sleep 60 & echo $!", None);
        assert_eq!(ended.end, End::Code(0));
        assert!(!alive(&lines[0]), "{lines:?}");
    }

    #[test]
    fn a_program_that_is_not_there_is_a_failure() {
        let argv = vec!["/no/such/program".to_owned(), "a b".to_owned()];
        let program =
            Program { argv, directory: None, variables: vec![("n".into(), "1".into())], timeout_s: None };
        let Err(EngineError::Failed { reason, command, .. }) = program.run(&mut |_| {}) else {
            panic!("it ran")
        };
        assert!(reason.contains("cannot start '/no/such/program': No such file"), "{reason}");
        assert_eq!(command, "env n=1 /no/such/program 'a b'");
    }

    #[test]
    fn long_output_is_seen_whole_and_kept_in_part() {
        let (ended, lines) = shell("seq 1 200000", None);
        assert_eq!((lines.len(), lines[199_999].as_str()), (200_000, "200000"));
        assert_eq!(ended.tail.lines().count(), TAIL_LINES);
        assert!(ended.tail.ends_with("\n200000"));
    }
}
