//! Signals that end a process unless it handles them, all of which end a run in order.
//!
//! Enters: a signal's number. Leaves: which signals those are, what they are called. Left out are those that cannot be handled
//! (SIGKILL), that tell of a fault in the program itself (SIGSEGV, SIGBUS, SIGFPE, SIGILL), SIGPIPE, which is ignored, and
//! SIGXFSZ, after which a write fails with EFBIG.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, Ordering};

use signal_hook::consts as signals;

/// Those that are no ending of a run, but end others' processes.
const OTHERS: [(i32, &str); 7] = [
    (signals::SIGKILL, "SIGKILL"),
    (signals::SIGSEGV, "SIGSEGV"),
    (signals::SIGBUS, "SIGBUS"),
    (signals::SIGFPE, "SIGFPE"),
    (signals::SIGILL, "SIGILL"),
    (signals::SIGPIPE, "SIGPIPE"),
    (signals::SIGXFSZ, "SIGXFSZ"),
];
const NAMED: [(i32, &str); 16] = [
    (signals::SIGHUP, "SIGHUP"),
    (signals::SIGINT, "SIGINT"),
    (signals::SIGQUIT, "SIGQUIT"),
    (signals::SIGTRAP, "SIGTRAP"),
    (signals::SIGABRT, "SIGABRT"),
    (signals::SIGUSR1, "SIGUSR1"),
    (signals::SIGUSR2, "SIGUSR2"),
    (signals::SIGALRM, "SIGALRM"),
    (signals::SIGTERM, "SIGTERM"),
    (libc::SIGSTKFLT, "SIGSTKFLT"),
    (signals::SIGXCPU, "SIGXCPU"),
    (signals::SIGVTALRM, "SIGVTALRM"),
    (signals::SIGPROF, "SIGPROF"),
    (signals::SIGIO, "SIGIO"),
    (libc::SIGPWR, "SIGPWR"),
    (signals::SIGSYS, "SIGSYS"),
];
/// The first real-time signal of the kernel; the C library keeps those below `SIGRTMIN` to itself.
const KERNEL_RTMIN: i32 = 32;

/// Signals that end a run in order, but those of [`reserved_signals_are_sigterm`]. A SIGHUP that this process was begun to ignore
/// (nohup(1), `trap '' HUP`) is none of them. A SIGINT is in any case: shells have what they put in the background ignore it.
#[must_use]
pub fn ending_signals() -> Vec<i32> {
    let named = NAMED
        .iter()
        .map(|(signal, _)| *signal)
        .filter(|signal| *signal != signals::SIGHUP || !hangup_is_ignored());
    named.chain(libc::SIGRTMIN()..=libc::SIGRTMAX()).collect()
}

/// Before it is handled: `SigIgn` is a mask of which bit 0 is signal 1.
fn hangup_is_ignored() -> bool {
    static IGNORED: OnceLock<bool> = OnceLock::new();
    *IGNORED.get_or_init(|| {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
        let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
        mask & (1 << (signals::SIGHUP - 1)) != 0
    })
}

/// `SIGQUIT`, `SIGRTMIN+3`.
#[must_use]
pub fn signal_name(signal: i32) -> String {
    let named = NAMED.iter().chain(&OTHERS).find(|(known, _)| *known == signal);
    named.map(|(_, name)| (*name).to_owned()).unwrap_or_else(|| match signal - libc::SIGRTMIN() {
        0 => "SIGRTMIN".to_owned(),
        above @ 1.. => format!("SIGRTMIN+{above}"),
        _ => format!("signal {signal}"),
    })
}

/// The one of the C library's own signals that came; 0: none did.
static RESERVED: AtomicI32 = AtomicI32::new(0);

/// Which of the C library's own real-time signals came as a SIGTERM, if that is what `signal` was.
#[must_use]
pub fn as_it_was_sent(signal: i32) -> i32 {
    match RESERVED.load(Ordering::SeqCst) {
        reserved if reserved > 0 && signal == signals::SIGTERM => reserved,
        _ => signal,
    }
}

/// An action of a signal as the kernel has it.
#[repr(C)]
#[derive(Clone, Copy)]
struct KernelAction {
    handler: usize,
    flags: libc::c_ulong,
    restorer: usize,
    mask: u64,
}

/// Makes the C library's own real-time signals a SIGTERM: it lets nobody handle them, and unhandled they end the process. It uses
/// them to cancel threads and to change users, which nothing here does. SIGTERM must be handled already.
#[expect(unsafe_code, reason = "the C library's own calls leave these signals out")]
pub fn reserved_signals_are_sigterm() {
    // With the first thread the library sets up what it needs itself.
    let _ = std::thread::spawn(|| ()).join();
    let mut action = KernelAction { handler: 0, flags: 0, restorer: 0, mask: 0 };
    let size = size_of::<u64>();
    // SAFETY: the kernel writes SIGTERM's action, with the library's way back from a handler, to a live value of its layout, and
    // reads that again. The handler makes only calls that are safe in one.
    unsafe {
        libc::syscall(libc::SYS_rt_sigaction, libc::SIGTERM, 0_usize, &raw mut action, size);
        // 0 is the default action, 1 is to be ignored.
        if action.handler > 1 {
            // Without the details of a signal, which the library's own handlers take.
            action.flags &= !(libc::SA_SIGINFO as libc::c_ulong);
            action.handler = pass_on as extern "C" fn(libc::c_int) as usize;
            for signal in KERNEL_RTMIN..libc::SIGRTMIN() {
                libc::syscall(libc::SYS_rt_sigaction, signal, &raw const action, 0_usize, size);
            }
        }
    }
}

#[expect(unsafe_code, reason = "kill(2) of this process, in a signal handler")]
extern "C" fn pass_on(signal: libc::c_int) {
    RESERVED.store(signal, Ordering::SeqCst);
    // SAFETY: a system call that is safe in a handler.
    unsafe { libc::kill(libc::getpid(), libc::SIGTERM) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_ending_signal_has_a_name_of_its_own() {
        let names: std::collections::BTreeSet<String> =
            ending_signals().into_iter().map(signal_name).collect();
        assert_eq!(names.len(), ending_signals().len());
        assert!(names.contains("SIGPWR") && names.contains("SIGRTMIN+2"));
        assert_eq!(signal_name(KERNEL_RTMIN), "signal 32");
        for kept in [libc::SIGKILL, libc::SIGPIPE, libc::SIGXFSZ, libc::SIGTSTP, libc::SIGCONT, libc::SIGCHLD]
        {
            assert!(!ending_signals().contains(&kept), "{kept}");
        }
    }
}
