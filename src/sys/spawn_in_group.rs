//! A program that begins its life inside a control group (clone3(2), CLONE_INTO_CGROUP, since Linux 5.7).
//!
//! Enters: a command, an opened group. Leaves: the started program with its three pipes. A process that is moved into a group
//! afterwards waits for a grace period of the whole machine, some milliseconds. std has no call for this.

use std::ffi::{CString, OsString};
use std::io::{PipeReader, PipeWriter, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions};

/// From linux/sched.h; the libc crate's are cut to 32 bits.
const CLONE_INTO_CGROUP: u64 = 1 << 33;
/// No handler of this process runs in the child, which has no use for them before it is the program.
const CLONE_CLEAR_SIGHAND: u64 = 1 << 32;

/// A child of this process and what it reads and writes. Like [`Child`], it is not ended when this is dropped.
#[derive(Debug)]
pub struct Program {
    pid: Pid,
    ended: Option<ExitStatus>,
    /// Each can be taken once.
    pub stdin: Option<PipeWriter>,
    /// What the program writes to its standard output.
    pub stdout: Option<PipeReader>,
    /// What the program writes to its standard error.
    pub stderr: Option<PipeReader>,
}

impl From<Child> for Program {
    fn from(mut child: Child) -> Program {
        Program {
            pid: Pid::from_child(&child),
            ended: None,
            stdin: child.stdin.take().map(|pipe| OwnedFd::from(pipe).into()),
            stdout: child.stdout.take().map(|pipe| OwnedFd::from(pipe).into()),
            stderr: child.stderr.take().map(|pipe| OwnedFd::from(pipe).into()),
        }
    }
}

impl Program {
    /// The process. Its number can become another's once [`Program::try_wait`] has told its end.
    #[must_use]
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// How it ended; `None`: it runs.
    ///
    /// # Errors
    /// The system's words.
    pub fn try_wait(&mut self) -> std::io::Result<Option<ExitStatus>> {
        if self.ended.is_none() {
            let found = rustix::process::waitpid(Some(self.pid), WaitOptions::NOHANG)?;
            self.ended = found.map(|(_, status)| ExitStatus::from_raw(status.as_raw()));
        }
        Ok(self.ended)
    }

    /// Sends a signal, unless its end was told.
    pub fn signal(&self, signal: Signal) {
        if self.ended.is_none() {
            let _ = rustix::process::kill_process(self.pid, signal);
        }
    }
}

/// Starts a program in `group`, in a process group of its own; the kernel sends it `signal` when the thread that calls this ends.
/// Of `command` that is the program (a path), its arguments and its environment; all three standard streams are pipes.
///
/// # Errors
/// The system's words: older kernels have no such call, and containers may refuse it.
pub fn spawn_in_group(command: &Command, group: BorrowedFd<'_>, signal: Signal) -> std::io::Result<Program> {
    let (stdin, write_stdin) = std::io::pipe()?;
    let (read_stdout, stdout) = std::io::pipe()?;
    let (read_stderr, stderr) = std::io::pipe()?;
    let (mut told, tells) = std::io::pipe()?;
    let image = Image::of(command)?;
    let begin = Begin {
        image: &image,
        streams: [stdin.as_fd(), stdout.as_fd(), stderr.as_fd()],
        tells: tells.as_fd(),
        parent: rustix::process::getpid(),
        signal,
    };
    let pid = forked_into(group, &begin)?;
    drop((stdin, stdout, stderr, tells));
    let mut errno = [0; 4];
    // At the end of the pipe it has become the program.
    if told.read_exact(&mut errno).is_ok() {
        let _ = rustix::process::waitpid(Some(pid), WaitOptions::empty());
        return Err(std::io::Error::from_raw_os_error(i32::from_ne_bytes(errno)));
    }
    Ok(Program {
        pid,
        ended: None,
        stdin: Some(write_stdin),
        stdout: Some(read_stdout),
        stderr: Some(read_stderr),
    })
}

/// What execve(2) takes. It is made before the fork: behind it nothing may be allocated.
struct Image {
    arguments: Vec<CString>,
    environment: Vec<CString>,
}

impl Image {
    fn of(command: &Command) -> std::io::Result<Image> {
        let words = std::iter::once(command.get_program()).chain(command.get_args());
        let arguments = words.map(|word| CString::new(word.as_bytes())).collect::<Result<_, _>>()?;
        let changed = |name: &OsString| command.get_envs().any(|(changed, _)| changed == name);
        let kept = std::env::vars_os().filter(|(name, _)| !changed(name));
        let set = command.get_envs().filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned())));
        let environment = kept
            .chain(set)
            .map(|(name, value)| CString::new([&name.into_vec()[..], b"=", &value.into_vec()].concat()))
            .collect::<Result<_, _>>()?;
        Ok(Image { arguments, environment })
    }
}

/// All that the child needs until it is the program.
struct Begin<'a> {
    image: &'a Image,
    streams: [BorrowedFd<'a>; 3],
    tells: BorrowedFd<'a>,
    parent: Pid,
    signal: Signal,
}

#[expect(unsafe_code, reason = "std has no call that starts a process in a control group")]
fn forked_into(group: BorrowedFd<'_>, begin: &Begin<'_>) -> std::io::Result<Pid> {
    let pointers = |words: &[CString]| -> Vec<*const libc::c_char> {
        words.iter().map(|word| word.as_ptr()).chain([std::ptr::null()]).collect()
    };
    let (arguments, environment) = (pointers(&begin.image.arguments), pointers(&begin.image.environment));
    // SAFETY: all zero is a valid value of this struct of integers.
    let mut ask: libc::clone_args = unsafe { std::mem::zeroed() };
    ask.flags = CLONE_INTO_CGROUP | CLONE_CLEAR_SIGHAND;
    ask.exit_signal = libc::SIGCHLD as u64;
    ask.cgroup = group.as_raw_fd() as u64;
    // SAFETY: without CLONE_VM and a stack of its own this is fork(2): the child has copies of all memory and goes on here. It
    // makes async-signal-safe calls only, allocates nothing, takes no lock, and never returns.
    let pid = unsafe { libc::syscall(libc::SYS_clone3, &raw mut ask, size_of::<libc::clone_args>()) };
    if pid == 0 {
        let refused = match prepared(begin) {
            // SAFETY: both lists end with a null pointer, and what they point to lives in `begin`.
            Ok(()) => unsafe {
                libc::execve(arguments[0], arguments.as_ptr(), environment.as_ptr());
                *libc::__errno_location()
            },
            Err(error) => error.raw_os_error(),
        };
        let _ = rustix::io::write(begin.tells, &refused.to_ne_bytes());
        // SAFETY: it ends the child at once, without what the parent has asked for at its own end.
        unsafe { libc::_exit(127) }
    }
    if pid < 0 {
        return Err(std::io::Error::last_os_error());
    }
    i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or_else(|| Errno::SRCH.into())
}

/// In the child: what std does between fork and exec, and the signal of the parent's death.
#[expect(unsafe_code, reason = "signals of a child before exec are set through libc")]
fn prepared(begin: &Begin<'_>) -> Result<(), Errno> {
    let [stdin, stdout, stderr] = begin.streams;
    rustix::stdio::dup2_stdin(stdin)?;
    rustix::stdio::dup2_stdout(stdout)?;
    rustix::stdio::dup2_stderr(stderr)?;
    rustix::process::setpgid(None, None)?;
    // SAFETY: async-signal-safe calls on memory of this frame.
    unsafe {
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
    }
    rustix::process::set_parent_process_death_signal(Some(begin.signal))?;
    // The parent may have died before the kernel was told to watch it.
    if rustix::process::getppid() == Some(begin.parent) { Ok(()) } else { Err(Errno::SRCH) }
}
