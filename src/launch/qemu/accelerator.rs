//! What executes a guest's instructions here, and what earlier guests have shown about it.
//!
//! Enters: `/dev/kvm`, marks in the cache. Leaves: an [`Accelerator`]; marks. A mark holds until this machine is started again.

use super::error::GuestError;
use crate::sys::cache;
use crate::sys::regular_file;

/// The fact that names it.
pub(super) const ACCELERATOR: &str = "guest.accelerator";

named! {
    /// What executes a guest's instructions.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(super) enum Accelerator {
        /// The processor itself.
        Kvm = "kvm",
        /// An interpreter.
        Tcg = "tcg (emulated)",
    }
}

impl Accelerator {
    /// Whether guests can be run by it as earlier ones were.
    ///
    /// # Errors
    /// There is no KVM any more.
    pub(super) fn is_here(self) -> Result<(), GuestError> {
        if self == Accelerator::Tcg || Accelerator::likely() == Accelerator::Kvm {
            return Ok(());
        }
        Err(GuestError::NoKvm { now: Kvm::here().described() })
    }

    /// What will be tried first.
    pub(super) fn likely() -> Accelerator {
        match Kvm::here() {
            Kvm::Runs | Kvm::Untried => Accelerator::Kvm,
            Kvm::Absent | Kvm::Closed(_) | Kvm::DoesNotRun => Accelerator::Tcg,
        }
    }

    fn file(self) -> &'static str {
        match self {
            Accelerator::Kvm => "kvm",
            Accelerator::Tcg => "tcg",
        }
    }

    /// Seconds the last guest took to come up here; `None`: there was none yet.
    pub(super) fn last_boot_s(self) -> Option<f64> {
        remembered(self.file())
    }

    /// Seconds the last trial in a guest took here besides its job.
    pub(super) fn last_trial_s(self) -> Option<f64> {
        remembered(&format!("{}-trial", self.file()))
    }

    /// A trial in a guest has ended.
    pub(super) fn trial_took(self, besides_its_job_s: f64) {
        remember(&format!("{}-trial", self.file()), besides_its_job_s);
    }

    /// A guest came up.
    pub(super) fn came_up(self, seconds: f64) {
        remember(self.file(), seconds);
        if self == Accelerator::Kvm {
            mark(RUNS, "a guest under /dev/kvm came up\n");
        }
    }
}

fn remembered(name: &str) -> Option<f64> {
    let text = regular_file::read_text(&cache::place("boots")?.join(name), 64).ok()?;
    text.trim().parse().ok().filter(|seconds: &f64| seconds.is_finite() && *seconds > 0.0)
}

fn remember(name: &str, seconds: f64) {
    // Not remembering costs the next run a guess, nothing else.
    let _ =
        cache::directory("boots").map(|place| std::fs::write(place.join(name), format!("{seconds:.1}\n")));
}

/// The state of `/dev/kvm`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kvm {
    /// There is none.
    Absent,
    /// It cannot be opened, for this reason.
    Closed(String),
    /// No guest has been run by it since this machine was started.
    Untried,
    /// A guest has come up under it.
    Runs,
    /// It opens, and a guest under it showed no sign of life.
    DoesNotRun,
}

const RUNS: &str = "runs";
const DOES_NOT_RUN: &str = "does-not-run";

impl Kvm {
    /// How it is here, without trying.
    pub(super) fn here() -> Kvm {
        match std::fs::OpenOptions::new().read(true).write(true).open("/dev/kvm") {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Kvm::Absent,
            Err(error) => Kvm::Closed(error.to_string()),
            Ok(_) if marked(DOES_NOT_RUN) => Kvm::DoesNotRun,
            Ok(_) if marked(RUNS) => Kvm::Runs,
            Ok(_) => Kvm::Untried,
        }
    }

    /// In words, for people.
    pub(super) fn described(&self) -> String {
        match self {
            Kvm::Absent => "emulated: there is no /dev/kvm".to_owned(),
            Kvm::Closed(why) => format!("emulated: /dev/kvm cannot be opened ({why})"),
            Kvm::Untried => "KVM, not tried since this machine was started".to_owned(),
            Kvm::Runs => "KVM, which runs".to_owned(),
            Kvm::DoesNotRun => {
                format!(
                    "emulated: /dev/kvm opens, but a guest did not run under it (removing {} tries again)",
                    marks()
                )
            }
        }
    }
}

/// That guests are emulated although `/dev/kvm` opens, in words: a fall-back is said.
pub(super) fn fallback(what: &str, remembered: bool) -> String {
    let until = if remembered {
        format!(",\n  and until this machine is started again (this tries KVM sooner:\n  rm -r {})", marks())
    } else {
        String::new()
    };
    format!(
        "assay: under /dev/kvm the guest {what}:\n  all guests of this run are emulated by qemu's tcg{until}"
    )
}

/// The same as a note of what was then measured.
pub(super) fn fallback_note(what: &str) -> String {
    format!("under /dev/kvm a guest {what}: all guests of this run were emulated by qemu's tcg")
}

/// What an emulated kernel may die of without a fault of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mishap {
    /// [`GuestError::ran_into_a_breakpoint`].
    Breakpoint,
    /// [`GuestError::missed_its_timer`].
    Timer,
    /// [`GuestError::got_stuck`].
    Stuck,
    /// [`GuestError::lost_its_emulator`].
    Crash,
    /// Processes that nobody can end. Seen under qemu's tcg (7.2): a module's loading did not come back.
    Hang,
}

impl Mishap {
    /// Which of them a guest died of.
    pub(super) fn of(error: &GuestError) -> Option<Mishap> {
        if error.ran_into_a_breakpoint() {
            return Some(Mishap::Breakpoint);
        }
        if error.missed_its_timer() {
            return Some(Mishap::Timer);
        }
        if error.lost_its_emulator() {
            return Some(Mishap::Crash);
        }
        error.got_stuck().then_some(Mishap::Stuck)
    }

    /// How often a guest that died so is booted anew for one trial.
    pub(super) fn boots_again(self) -> u32 {
        match self {
            Mishap::Breakpoint => 3,
            // A kernel to which it happens twice probably always does so.
            Mishap::Timer | Mishap::Stuck | Mishap::Crash | Mishap::Hang => 1,
        }
    }

    /// What became of the kernel.
    fn fate(self) -> &'static str {
        match self {
            Mishap::Breakpoint => "died of int3",
            Mishap::Timer => "died of a missing timer",
            Mishap::Stuck => "got stuck while it booted",
            Mishap::Crash => "was lost in a crash of qemu itself",
            Mishap::Hang => "hung",
        }
    }

    /// Says that a guest is booted another time. Nothing was measured in the one that died.
    pub(super) fn booted_again(self) -> String {
        let fate = self.fate();
        format!(
            "assay: the guest's kernel {fate}, as under qemu's tcg it may without a\n  fault of its own: it is booted again"
        )
    }

    /// The same as a note of what was then measured.
    pub(super) fn note(self) -> String {
        let fate = self.fate();
        format!(
            "an earlier boot of this round {fate}, as under qemu's tcg it may, before anything was measured in it"
        )
    }
}

/// A guest under KVM did not come up.
pub(super) fn remember_that_kvm_does_not_run() {
    mark(DOES_NOT_RUN, "a guest under /dev/kvm did not come up; removing this tries it again\n");
}

/// Where the marks are, for people.
fn marks() -> String {
    cache::place("kvm").unwrap_or_default().display().to_string()
}

fn mark_name(what: &str) -> String {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    format!("{what}-{}", boot.trim())
}

fn marked(what: &str) -> bool {
    cache::place("kvm").is_some_and(|place| place.join(mark_name(what)).exists())
}

fn mark(what: &str, text: &str) {
    // Not remembering costs the next run the wait, nothing else.
    let _ = cache::directory("kvm").map(|place| std::fs::write(place.join(mark_name(what)), text));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_runs_guests_is_said_with_its_reason() {
        let said = fallback("did not come up within 20 s", true);
        assert!(
            said.contains("did not come up within 20 s:\n  all guests of this run are emulated"),
            "{said}"
        );
        assert!(said.lines().take(3).all(|line| line.len() <= 80), "{said}");
        assert!(said.contains("until this machine is started again") && said.ends_with("/kvm)"), "{said}");
        assert!(fallback("ended before it came up", false).ends_with("qemu's tcg"));
        assert!(Kvm::Absent.described().starts_with("emulated: there is no"));
        assert!(Kvm::Closed("no right".to_owned()).described().ends_with("(no right)"));
        assert!(Kvm::DoesNotRun.described().contains("/kvm tries again"));
        let emulated = matches!(Kvm::here(), Kvm::Absent | Kvm::Closed(_) | Kvm::DoesNotRun);
        assert_eq!(Accelerator::likely() == Accelerator::Tcg, emulated);
    }
}
