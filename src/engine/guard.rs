//! A guard process between assay and a program it starts, so that nothing of the program outlives the trial.
//!
//! Enters: a [`Command`] about to be spawned. Leaves: a [`Report`] of how the program ended and what it used.
//! It must not know fio, output or metrics.
//!
//! Why a process: a process group is not enough. fio's workers call `setsid()`, and after a `kill -9` of fio
//! they run on for ever. The guard is a child subreaper (prctl(2)): whatever the program leaves behind becomes
//! the guard's child, is killed and reaped. The guard itself is told by the kernel when its parent dies. It is
//! made by a second fork between fork and exec, so between there and its exit it makes system calls only.

use std::io::{PipeReader, Read};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

/// How the program ended and what it and the children it waited for used, as wait4(2) tells it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Report {
    /// Exit code, or the negative number of the signal that ended it.
    pub(super) code: i32,
    /// From fork to end, in nanoseconds.
    pub(super) elapsed_ns: i64,
    /// CPU time in user mode, microseconds.
    pub(super) usr_us: i64,
    /// CPU time in the kernel, microseconds.
    pub(super) sys_us: i64,
    /// Voluntary context switches.
    pub(super) voluntary: i64,
    /// Involuntary context switches.
    pub(super) involuntary: i64,
    /// Largest resident set of one of the processes, KiB.
    pub(super) max_rss_kib: i64,
    /// Whether some process could not be killed within ten seconds (it hangs in the kernel).
    pub(super) stuck: bool,
}

const WORDS: usize = 8;

impl Report {
    fn to_words(self) -> [i64; WORDS] {
        let Report { code, elapsed_ns, usr_us, sys_us, voluntary, involuntary, max_rss_kib, stuck } = self;
        let (code, stuck) = (i64::from(code), i64::from(stuck));
        [code, elapsed_ns, usr_us, sys_us, voluntary, involuntary, max_rss_kib, stuck]
    }

    /// Reads the guard's report; `None` when the guard was killed before it wrote one.
    pub(super) fn read(pipe: &mut PipeReader) -> Option<Report> {
        let mut bytes = [0_u8; WORDS * 8];
        pipe.read_exact(&mut bytes).ok()?;
        let mut words = [0_i64; WORDS];
        for (word, chunk) in words.iter_mut().zip(bytes.chunks_exact(8)) {
            *word = i64::from_ne_bytes(chunk.try_into().ok()?);
        }
        let [code, elapsed_ns, usr_us, sys_us, voluntary, involuntary, max_rss_kib, stuck] = words;
        let (code, stuck) = (i32::try_from(code).ok()?, stuck != 0);
        Some(Report { code, elapsed_ns, usr_us, sys_us, voluntary, involuntary, max_rss_kib, stuck })
    }
}

/// Puts a guard above the program that `command` will start and returns where its [`Report`] will arrive.
///
/// The pid of the spawned child is then the guard's: SIGTERM to it kills the program with all its descendants.
/// The same happens when the *thread* that spawns ends (that is how `PR_SET_PDEATHSIG` counts), so spawn and
/// wait in one thread.
///
/// # Errors
/// When no pipe can be made.
#[expect(unsafe_code, reason = "pre_exec and what runs in it are system calls between fork and exec")]
pub(super) fn put_above(command: &mut Command) -> std::io::Result<PipeReader> {
    let (reader, writer) = std::io::pipe()?;
    let parent = std::process::id();
    // SAFETY: the closure runs in the forked child. It and all it calls use async-signal-safe system calls on
    // values on its own stack, and allocate nothing; the guard side never returns into the standard library.
    unsafe {
        command.pre_exec(move || split(parent, writer.as_raw_fd()));
    }
    Ok(reader)
}

/// In the forked child: becomes the guard, and returns in its new child, which goes on to exec.
#[expect(unsafe_code, reason = "system calls between fork and exec")]
fn split(parent: u32, report_fd: RawFd) -> std::io::Result<()> {
    // SAFETY: plain system calls with constant arguments.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM);
        // The parent may have died before the kernel was told to watch it.
        if libc::getppid() as u32 != parent {
            libc::_exit(0);
        }
        libc::setpgid(0, 0);
        libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1);
        libc::signal(libc::SIGCHLD, libc::SIG_DFL);
        // Blocked, so that none is lost that comes before it waits.
        mask_signals(libc::SIG_BLOCK);
        let guard = libc::getpid();
        let start_ns = now_ns();
        match libc::fork() {
            -1 => Err(std::io::Error::last_os_error()),
            0 => {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                if libc::getppid() != guard {
                    libc::_exit(0);
                }
                libc::setpgid(0, 0);
                mask_signals(libc::SIG_UNBLOCK);
                Ok(())
            }
            program => keep_guard(program, report_fd, start_ns),
        }
    }
}

/// The guard: waits for the program's end or for a signal to stop it, leaves nothing alive, reports, exits.
#[expect(unsafe_code, reason = "system calls between fork and exec")]
fn keep_guard(program: libc::pid_t, report_fd: RawFd, start_ns: i64) -> ! {
    let mut report = Report { code: -libc::SIGKILL, ..Report::default() };
    // SAFETY: system calls only; every pointer is to a live value on this stack. Closing every other descriptor
    // ends the standard library's wait for exec and lets readers of the program's output see its end.
    unsafe {
        let fd = report_fd as libc::c_uint;
        if fd > 0 {
            libc::syscall(libc::SYS_close_range, 0, fd - 1, 0);
        }
        libc::syscall(libc::SYS_close_range, fd + 1, libc::c_uint::MAX, 0);
        // Not to hold the trial's directory busy.
        libc::chdir(c"/".as_ptr());
        let mut ended = false;
        while !ended {
            let signal = wait_for_signal();
            let stop = signal > 0 && signal != i64::from(libc::SIGCHLD);
            if stop {
                // So that the report below is of the program, not of whoever is reaped first.
                libc::kill(program, libc::SIGKILL);
            }
            let patience = if stop { PATIENCE_MS } else { 0 };
            ended = reap_program(program, start_ns, patience, &mut report) || stop;
        }
        report.stuck = !kill_descendants(program);
        let words = report.to_words();
        libc::write(report_fd, words.as_ptr().cast(), size_of_val(&words));
        libc::_exit(0)
    }
}

/// Longest wait for killed processes to end; one that hangs in the kernel does not end.
const PATIENCE_MS: u32 = 10_000;

/// Reaps what has ended; true when the program itself was among it. Waits up to `patience_ms` for that.
#[expect(unsafe_code, reason = "system calls between fork and exec")]
fn reap_program(program: libc::pid_t, start_ns: i64, patience_ms: u32, report: &mut Report) -> bool {
    for waited_ms in 0..=patience_ms {
        loop {
            let mut status = 0;
            // SAFETY: rusage is plain numbers, all zeros is a value of it; wait4 writes to live values.
            let (pid, usage) = unsafe {
                let mut usage: libc::rusage = std::mem::zeroed();
                (libc::wait4(-1, &raw mut status, libc::WNOHANG, &raw mut usage), usage)
            };
            if pid == program {
                let code = if libc::WIFSIGNALED(status) {
                    -libc::WTERMSIG(status)
                } else {
                    libc::WEXITSTATUS(status)
                };
                let us = |t: libc::timeval| t.tv_sec * 1_000_000 + t.tv_usec;
                *report = Report {
                    code,
                    elapsed_ns: now_ns() - start_ns,
                    usr_us: us(usage.ru_utime),
                    sys_us: us(usage.ru_stime),
                    voluntary: usage.ru_nvcsw,
                    involuntary: usage.ru_nivcsw,
                    max_rss_kib: usage.ru_maxrss,
                    stuck: false,
                };
                return true;
            }
            if pid <= 0 {
                break;
            }
        }
        if waited_ms < patience_ms {
            sleep_1_ms();
        }
    }
    false
}

/// Kills and reaps until there is no child left; false when some would not end in time.
#[expect(unsafe_code, reason = "system calls between fork and exec")]
fn kill_descendants(program: libc::pid_t) -> bool {
    for _ in 0..PATIENCE_MS {
        // SAFETY: system calls on constants and on a live buffer whose length is given.
        unsafe {
            libc::kill(-program, libc::SIGKILL);
            // The kernel lists this thread's children, orphans of the program included, each followed by a
            // blank. A list longer than the buffer is finished in the next turn.
            let fd = libc::open(c"/proc/thread-self/children".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
            if fd >= 0 {
                let mut list = [0_u8; 4096];
                let length = libc::read(fd, list.as_mut_ptr().cast(), list.len());
                libc::close(fd);
                let mut pid: libc::pid_t = 0;
                for byte in list.iter().take(usize::try_from(length).unwrap_or(0)) {
                    if byte.is_ascii_digit() {
                        pid = pid.wrapping_mul(10).wrapping_add(libc::pid_t::from(byte - b'0'));
                    } else {
                        if pid > 1 {
                            libc::kill(pid, libc::SIGKILL);
                        }
                        pid = 0;
                    }
                }
            }
            loop {
                match libc::waitpid(-1, std::ptr::null_mut(), libc::WNOHANG) {
                    -1 => return true,
                    0 => break,
                    _ => {}
                }
            }
        }
        sleep_1_ms();
    }
    false
}

/// What the guard waits for: a child's end, its parent's death (SIGTERM), or any other signal that would end it; not those that
/// stop and continue, nor those that tell of a fault in itself. As the kernel's set of signals: the C library's own calls leave
/// its two real-time signals out.
const GUARD_SIGNALS: u64 = {
    let passed = [
        libc::SIGKILL,
        libc::SIGSTOP,
        libc::SIGTSTP,
        libc::SIGTTIN,
        libc::SIGTTOU,
        libc::SIGCONT,
        libc::SIGURG,
        libc::SIGWINCH,
        libc::SIGSEGV,
        libc::SIGBUS,
        libc::SIGFPE,
        libc::SIGILL,
        libc::SIGPIPE,
    ];
    let (mut set, mut at) = (u64::MAX, 0);
    while at < passed.len() {
        set &= !(1 << (passed[at] - 1));
        at += 1;
    }
    set
};

/// Blocks or unblocks [`GUARD_SIGNALS`].
#[expect(unsafe_code, reason = "system calls between fork and exec")]
fn mask_signals(how: libc::c_int) {
    let set = GUARD_SIGNALS;
    // SAFETY: the kernel reads eight bytes of a live set, and writes nothing.
    unsafe { libc::syscall(libc::SYS_rt_sigprocmask, how, &raw const set, 0_usize, size_of::<u64>()) };
}

/// Waits for one of [`GUARD_SIGNALS`]; negative when it was interrupted.
#[expect(unsafe_code, reason = "system calls between fork and exec")]
fn wait_for_signal() -> i64 {
    let set = GUARD_SIGNALS;
    // SAFETY: as above; neither details nor a time limit are asked for.
    unsafe { libc::syscall(libc::SYS_rt_sigtimedwait, &raw const set, 0_usize, 0_usize, size_of::<u64>()) }
}

#[expect(unsafe_code, reason = "clock_gettime without the standard library, between fork and exec")]
fn now_ns() -> i64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes to a live timespec.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}

#[expect(unsafe_code, reason = "nanosleep without the standard library, between fork and exec")]
fn sleep_1_ms() {
    let pause = libc::timespec { tv_sec: 0, tv_nsec: 1_000_000 };
    // SAFETY: reads a live timespec; no remainder is asked for.
    unsafe { libc::nanosleep(&raw const pause, std::ptr::null_mut()) };
}
