//! What this machine offers for guests: the emulator, what runs them, kernels. For people, before anything is booted.
//!
//! Enters: the machine, the cache. Leaves: a [`GuestOffer`], a [`Forecast`]. Nothing is started but the emulator's `--version`.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::accelerator::{Accelerator, Kvm};
use super::known_kernels::{self, KnownKernel, unreadable_kernel};
use super::machine;

/// What guests can be booted with here.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct GuestOffer {
    /// `qemu 7.2.22`; `None`: there is no emulator.
    pub emulator: Option<String>,
    /// What a guest is run by, with the reason.
    pub accelerator: String,
    /// Release and path of each kernel that was found, the oldest first.
    pub kernels: Vec<(String, PathBuf)>,
    /// The release that `kernel=newest` boots; `None`: there is none.
    pub newest: Option<String>,
    /// An image that only its owner may read.
    pub unreadable: Option<PathBuf>,
}

/// What boots will cost.
#[derive(Clone, Debug, PartialEq)]
pub struct Forecast {
    /// Guests that differ in kernel or machine. Each is booted once a round, unless all trials share one.
    pub guests: u32,
    /// Whether all trials share one guest, which is booted once.
    pub once: bool,
    /// Whether the guests in which targets are tried are not those of the first round, as they do not fit side by side.
    pub again: bool,
    /// What they will probably be run by, with the reason.
    pub accelerator: String,
    /// Whether that is an interpreter.
    pub emulated: bool,
    /// Seconds a boot takes.
    pub boot_s: f64,
    /// Whether a guest that came up here took so long; otherwise it is a guess.
    pub measured: bool,
    /// Seconds that a trial in one takes besides its job: as the last one, or a guess.
    pub trial_s: f64,
}

/// Looks what is here: kernels where they are put to be booted, in `below`, and packages unpacked before.
#[must_use]
pub fn guests_offered(below: &Path) -> GuestOffer {
    let emulator = machine::emulator().ok().map(|program| version(&program));
    let known = known_kernels::all(below);
    let newest = known_kernels::newest(&known);
    let of_path = |kernel: &&KnownKernel| newest == Some(kernel.path.as_path());
    let newest = known.iter().find(of_path).map(|kernel| kernel.release.clone());
    let kernels = known.into_iter().map(|kernel| (kernel.release, kernel.path)).collect();
    GuestOffer {
        emulator,
        accelerator: Kvm::here().described(),
        kernels,
        newest,
        unreadable: unreadable_kernel(),
    }
}

/// What this many guests will cost.
pub(super) fn forecast(guests: u32, once: bool) -> Forecast {
    let likely = Accelerator::likely();
    // As measured where assay was written, for a machine that has booted none yet.
    let (boot_s, trial_s) = if likely == Accelerator::Kvm { (2.0, 0.5) } else { (8.0, 1.5) };
    let last = likely.last_boot_s();
    Forecast {
        guests,
        once,
        again: false,
        accelerator: Kvm::here().described(),
        emulated: likely == Accelerator::Tcg,
        boot_s: last.unwrap_or(boot_s),
        measured: last.is_some(),
        trial_s: likely.last_trial_s().unwrap_or(trial_s),
    }
}

fn version(program: &Path) -> String {
    let output = Command::new(program).arg("--version").stdin(Stdio::null()).output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    // `QEMU emulator version 7.2.22 (Debian …)`.
    let number = text.split_whitespace().skip_while(|word| *word != "version").nth(1);
    format!("qemu {}", number.unwrap_or("of unknown version"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_boots_will_cost_is_guessed_where_it_is_not_known() {
        let ahead = forecast(3, false);
        assert!(ahead.guests == 3 && ahead.boot_s > 0.0 && ahead.trial_s > 0.0);
    }
}
