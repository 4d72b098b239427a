//! One running guest: brought up, asked, ended.
//!
//! Enters: a [`Machine`], requests. Leaves: replies, or what became of it with its last words. It ends when dropped.

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use super::accelerator::Accelerator;
use super::channel::{BEAT, FromGuest, line, listen, speak};
use super::error::GuestError;
use super::machine::Machine;
use super::room;
use crate::launch::local::{chunks, words};
use crate::launch::{Reply, Request};

/// Signals that a program dies of by its own fault: SIGILL, SIGABRT, SIGBUS, SIGFPE, SIGSEGV.
const CRASHES: [i32; 5] = [libc::SIGILL, libc::SIGABRT, libc::SIGBUS, libc::SIGFPE, libc::SIGSEGV];
/// Where the processor executes it, a guest that has put nothing on its console until then never will.
const KVM_PATIENCE: Duration = Duration::from_secs(20);
/// One that has, and an emulated one, takes longer on a busy host. This is for the first of a run.
const PATIENCE: Duration = Duration::from_secs(240);
/// Once guests have come up, another one may take so many times as long as the slowest of them, and this at least.
const TIMES: f64 = 8.0;
const LEAST_PATIENCE: Duration = Duration::from_secs(60);
/// A guest that has not said for this long that it lives hangs.
const SILENCE: Duration = Duration::from_secs(12 * BEAT.as_secs());
/// Another time of silence in seconds, for tests that stop a guest.
const SILENCE_VARIABLE: &str = "ASSAY_TEST_SILENCE";
/// Another [`PATIENCE`] in seconds, for tests with a guest that does not come up.
const PATIENCE_VARIABLE: &str = "ASSAY_TEST_PATIENCE";
/// So many last lines of the console are told.
const LAST_LINES: usize = 15;
const STEP: Duration = Duration::from_millis(50);

/// How waiting ended without what was waited for.
pub(super) enum Ended {
    /// Ctrl-C.
    Cancelled,
    /// It is of no use any more.
    Dead(GuestError),
    /// It answered, and was given up with processes that hang in its kernel.
    Hung(Box<Reply>),
}

/// How long the next guest may take to come up, after the slowest boot of the run so far; `None`: there was none.
pub(super) fn patience(slowest_s: Option<f64>) -> Duration {
    let usual = slowest_s.and_then(|s| Duration::try_from_secs_f64(TIMES * s).ok());
    seconds(PATIENCE_VARIABLE, usual.map_or(PATIENCE, |usual| usual.clamp(LEAST_PATIENCE, PATIENCE)))
}

/// A running guest.
pub(super) struct Guest {
    child: Child,
    requests: Sender<Vec<u8>>,
    messages: Receiver<FromGuest>,
    errors: Receiver<Vec<u8>>,
    console: PathBuf,
    /// Bytes on the console before the last request.
    said_before: usize,
    files: Vec<PathBuf>,
    pub(super) accelerator: Accelerator,
    /// What was loaded: `bzImage`, or `vmlinux` where it was decompressed beforehand.
    pub(super) image: &'static str,
    /// Seconds from the start of the emulator until it took requests.
    pub(super) boot_s: f64,
    /// Drivers that it could not load.
    pub(super) missing: Vec<String>,
}

impl Guest {
    /// Starts a machine and waits until it takes requests, but no longer than `patience`.
    pub(super) fn boot(
        machine: &Machine<'_>,
        patience: Duration,
        cancelled: &AtomicBool,
    ) -> Result<Guest, Ended> {
        let begun = Instant::now();
        let mut child = machine.start().map_err(Ended::Dead)?;
        let requests = speak(child.stdin.take());
        let messages = listen(child.stdout.take());
        let errors = chunks(child.stderr.take());
        let mut guest = Guest {
            child,
            requests,
            messages,
            errors,
            console: machine.console(),
            said_before: 0,
            files: machine.files(),
            accelerator: machine.accelerator,
            image: if machine.kernel.extension().is_some_and(|end| end == "vmlinux") {
                "vmlinux"
            } else {
                "bzImage"
            },
            boot_s: 0.0,
            missing: Vec::new(),
        };
        let patience = |guest: &Guest| match machine.accelerator {
            Accelerator::Kvm if !guest.spoke() => KVM_PATIENCE,
            Accelerator::Kvm | Accelerator::Tcg => patience,
        };
        loop {
            match guest.messages.recv_timeout(STEP) {
                Ok(FromGuest::Ready { missing, .. }) => {
                    guest.boot_s = begun.elapsed().as_secs_f64();
                    guest.missing = missing;
                    return Ok(guest);
                }
                Ok(_) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Ended::Dead(guest.dead("ended before it came up")));
                }
                Err(RecvTimeoutError::Timeout) if cancelled.load(Ordering::SeqCst) => {
                    return Err(Ended::Cancelled);
                }
                Err(RecvTimeoutError::Timeout) if begun.elapsed() > patience(&guest) => {
                    let what = format!("did not come up within {} s", patience(&guest).as_secs());
                    return Err(Ended::Dead(guest.dead(&what).late()));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// Has a request answered; `limit` is for the whole of it.
    pub(super) fn ask(
        &mut self,
        request: &Request,
        limit: Option<Duration>,
        cancelled: &AtomicBool,
    ) -> Result<Reply, Ended> {
        self.said_before = std::fs::metadata(&self.console).map_or(0, |found| found.len() as usize);
        if self.requests.send(line(request)).is_err() {
            return Err(Ended::Dead(self.dead("has ended")));
        }
        let begun = Instant::now();
        let (mut heard, silence) = (begun, seconds(SILENCE_VARIABLE, SILENCE));
        loop {
            match self.messages.recv_timeout(STEP) {
                Ok(FromGuest::Reply(reply)) => return Ok(*reply),
                Ok(_) => heard = Instant::now(),
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Ended::Dead(self.dead("died during the trial")));
                }
                Err(RecvTimeoutError::Timeout) if cancelled.load(Ordering::SeqCst) => {
                    return Err(Ended::Cancelled);
                }
                Err(RecvTimeoutError::Timeout) if heard.elapsed() > silence => {
                    let what = format!("hangs: it said nothing for {} s", silence.as_secs());
                    return Err(Ended::Dead(self.dead(&what)));
                }
                Err(RecvTimeoutError::Timeout) if limit.is_some_and(|limit| begun.elapsed() > limit) => {
                    return Err(Ended::Dead(self.dead("passed the trial's time limit and was stopped")));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// Ends it and tells its last words.
    fn dead(&mut self, what: &str) -> GuestError {
        // An emulator that has ended says why, and does not cost the next run its patience.
        let mute = matches!(self.child.try_wait(), Ok(None)) && !self.spoke();
        let crashed = self.end().filter(|signal| CRASHES.contains(signal));
        let mut words = words(&self.errors).trim().to_owned();
        let console = last_words(&self.console, 0);
        if !console.is_empty() {
            words.push_str(if words.is_empty() { "" } else { "\n" });
            words.push_str(&format!("last lines of the console:\n{console}"));
        }
        if let Some(full) = self.little_room() {
            words.push_str(if words.is_empty() { "" } else { "\n" });
            words.push_str(&full);
        }
        let died_of = [panic_of(&console).map(str::to_owned), fault_of(&console)];
        let of_emulator = crashed.map(|signal| format!("qemu crashed with signal {signal}"));
        let causes = died_of.into_iter().flatten().chain(of_emulator);
        let what = causes.fold(what.to_owned(), |what, cause| format!("{what}: {cause}"));
        GuestError::Dead { what, came_up: self.boot_s > 0.0, mute, late: false, crashed, console: words }
    }

    /// Whether its kernel has put anything on the console.
    fn spoke(&self) -> bool {
        std::fs::metadata(&self.console).is_ok_and(|found| found.len() > 0)
    }

    /// That its disks can hardly grow any more, in words.
    pub(super) fn little_room(&self) -> Option<String> {
        room::little_left(self.console.parent()?)
    }

    /// The last lines of the console since the last request.
    pub(super) fn said_since_asked(&self) -> String {
        last_words(&self.console, self.said_before)
    }

    /// The signal that its emulator died of: that which ends it here, or that of before.
    fn end(&mut self) -> Option<i32> {
        // Nothing in it outlives it: its disks are files of the run, its root lies in memory.
        let _ = self.child.kill();
        self.child.wait().ok()?.signal()
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        let _ = self.end();
        for file in &self.files {
            // The run's directory is removed with all in it; these are large.
            let _ = std::fs::remove_file(file);
        }
    }
}

/// Words of lines in which a kernel says what is wrong; registers and stack follow.
const TELLING: [&str; 11] = [
    "Kernel panic", "kernel BUG at", "BUG:", "RIP: 0010:", "Oops", "int3:", "Out of memory", "sysrq:",
    "general protection", "hung task", "blocked for more",
];
/// What lines begin with that have registers of the processor and bytes of its program, which say nothing without the kernel's own files.
const REGISTERS: [&str; 14] = [
    "RSP:", "RAX:", "RDX:", "RBP:", "R10:", "R13:", "FS:", "CS:", "CR2:", "DR0:", "DR3:", "PKRU:", "Code:",
    "RIP: 0033",
];
/// Behind this the functions follow that called each other, the innermost first.
const TRACE: &str = "Call Trace:";
/// So many of them are told.
const MOST_CALLS: usize = 6;
/// So many telling lines that are not among the last are told before those, and the panic however many there are.
const MOST_TELLING: usize = 5;
/// What a kernel says when it gives up. Another one, `---[ end Kernel panic`, only closes it.
const PANIC: &str = "Kernel panic - not syncing";

/// The last lines of a console from a byte on, and the telling ones before, without what moves a terminal's cursor.
fn last_words(console: &Path, from: usize) -> String {
    let text = std::fs::read(console).unwrap_or_default();
    let text = String::from_utf8_lossy(text.get(from..).unwrap_or_default());
    let plain = |line: &str| -> String {
        line.chars().filter(|c| !c.is_control()).collect::<String>().trim_end().to_owned()
    };
    let is_of_registers = |line: &String| REGISTERS.iter().any(|start| timeless(line).starts_with(start));
    let lines: Vec<String> =
        text.lines().map(plain).filter(|line| !line.is_empty() && !is_of_registers(line)).collect();
    let (before, last) = lines.split_at(lines.len().saturating_sub(LAST_LINES));
    let is_telling = |line: &String| TELLING.iter().any(|word| line.contains(word));
    let trace = lines.iter().position(|line| line.contains(TRACE)).unwrap_or(lines.len());
    let mut told = 0;
    let first = before.iter().enumerate().filter(|(at, line)| {
        told += usize::from(is_telling(line));
        let tells = is_telling(line) && told <= MOST_TELLING;
        tells || line.contains(PANIC) || (trace..=trace + MOST_CALLS).contains(at)
    });
    first.map(|(_, line)| line).chain(last).map(String::as_str).collect::<Vec<_>>().join("\n")
}

/// A line of the console without the time before it.
fn timeless(line: &str) -> &str {
    line.strip_prefix('[').and_then(|rest| rest.split_once("] ")).map_or(line, |(_, rest)| rest).trim_start()
}

/// What a kernel found wrong before it gave up, and in which function: `kernel BUG at fs/f2fs/hash.c:100! in f2fs_hash_filename`.
fn fault_of(words: &str) -> Option<String> {
    let is_fault = |line: &&str| {
        ["kernel BUG at", "BUG:", "Oops: general protection", "Oops:"]
            .iter()
            .any(|word| line.starts_with(word))
    };
    let fault = words.lines().map(timeless).find(is_fault)?;
    // Modules that assay builds know their files by where they were built.
    let built = fault.split_once("/build-").and_then(|(_, rest)| rest.split_once('/'));
    let fault = built.map_or_else(|| fault.to_owned(), |(_, file)| format!("kernel BUG at {file}"));
    let place = words.lines().find_map(|line| line.split_once("RIP: 0010:")).map(|(_, rest)| rest);
    let function = place.and_then(|place| place.split(['+', ' ']).next()).filter(|name| !name.is_empty());
    Some(function.map_or_else(|| fault.clone(), |function| format!("{fault} in {function}")))
}

/// The first panic among the last words, without its time: `Kernel panic - not syncing: VFS: Unable to mount root fs`.
fn panic_of(words: &str) -> Option<&str> {
    words.lines().find_map(|line| Some(line[line.find(PANIC)?..].trim_end_matches([' ', ']', '-'])))
}

/// The time that a variable sets, or the usual one.
fn seconds(variable: &str, usual: Duration) -> Duration {
    let set = std::env::var(variable).ok().and_then(|text| text.parse().ok());
    set.map_or(usual, Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patience_follows_the_boots_of_the_run() {
        let of = |slowest_s| patience(slowest_s).as_secs();
        assert_eq!([None, Some(1.5), Some(10.0), Some(100.0)].map(of), [240, 60, 80, 240]);
    }

    #[test]
    fn last_words_are_few_and_plain() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("console");
        let mut text = "[ 0.1] BUG: kernel NULL pointer\n".to_owned();
        text.extend((0..30).map(|n| format!("[ {n}.0] line\r\n")));
        text.push_str("\x1b[2J\r\n---[ end Kernel panic ]---");
        std::fs::write(&path, text).unwrap();
        let words = last_words(&path, 0);
        assert!(words.ends_with("[2J\n---[ end Kernel panic ]---"), "{words:?}");
        assert_eq!(words.lines().count(), LAST_LINES + 1);
        assert!(words.starts_with("[ 0.1] BUG: kernel NULL pointer\n"), "{words:?}");
        assert_eq!(last_words(&path, 1 << 20), "");
        assert_eq!(last_words(Path::new("/nowhere"), 0), "");
    }

    #[test]
    fn of_an_oops_its_place_and_callers_are_told_and_no_registers() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("console");
        let mut text = "[    3.1] ------------[ cut here ]------------\n[    3.1] kernel BUG at fs/f2fs/hash.c:100!\n\
                        [    3.2] Oops: invalid opcode: 0000 [#1] PREEMPT SMP NOPTI\n\
                        [    3.2] RIP: 0010:f2fs_hash_filename+0x10/0x40 [f2fs]\n\
                        [    3.2] Code: 0f 0b\n[    3.2] RSP: 0018:ffffc900 EFLAGS: 00000246\n[    3.3] Call Trace:\n[    3.3]  <TASK>\n"
            .to_owned();
        text.extend((0..40).map(|n| format!("[    3.3]  caller_{n}+0x1/0x2\n")));
        text.push_str("[    3.4] RIP: 0033:0x7f021\n[    3.4] RAX: ffff8880 RBX: 0\n");
        text.push_str("[    3.5] Kernel panic - not syncing: Fatal exception\n");
        std::fs::write(&path, text).unwrap();
        let words = last_words(&path, 0);
        for there in ["kernel BUG at", "RIP: 0010:f2fs_hash_filename", "caller_0+", "caller_4+", "caller_39+"]
        {
            assert!(words.contains(there), "{there}: {words}");
        }
        for noise in ["RSP:", "RAX:", "Code:", "0033", "caller_9+"] {
            assert!(!words.contains(noise), "{noise}: {words}");
        }
        let fault = "kernel BUG at fs/f2fs/hash.c:100! in f2fs_hash_filename";
        assert_eq!(fault_of(&words).as_deref(), Some(fault));
        let built = "[    3.1] kernel BUG at ../../built/.partial-EJ2/build-lUA/fs/f2fs/hash.c:7!\n";
        assert_eq!(fault_of(built).as_deref(), Some("kernel BUG at fs/f2fs/hash.c:7!"));
        assert_eq!(fault_of("[    3.5] Kernel panic - not syncing: VFS: Unable to mount root fs"), None);
    }

    #[test]
    fn a_panic_is_told_behind_many_other_lines() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("console");
        let mut text = "[ 0.1] BUG: sleeping function called\n".repeat(9);
        text.push_str("[ 0.2] Kernel panic - not syncing: IO-APIC + timer doesn't work!\n");
        text.extend((0..30).map(|n| format!("[ {n}.0] register\n")));
        std::fs::write(&path, text).unwrap();
        let words = last_words(&path, 0);
        assert_eq!(words.lines().count(), MOST_TELLING + 1 + LAST_LINES, "{words}");
        assert_eq!(panic_of(&words), Some("Kernel panic - not syncing: IO-APIC + timer doesn't work!"));
        assert_eq!(panic_of("[ 1.0] ---[ end Kernel panic ]---"), None);
    }
}
