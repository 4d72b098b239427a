//! What this machine offers for guests: the emulator, what runs them, kernels. For people, before anything is booted.
//!
//! Enters: the machine, the cache. Leaves: a [`GuestOffer`], a [`Forecast`]. Nothing is started but the emulator's `--version`.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::accelerator::{Accelerator, Kvm};
use super::cache;
use super::kernel_image::KernelImage;
use super::machine;

/// What guests can be booted with here.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct GuestOffer {
    /// `qemu 7.2.22`; `None`: there is no emulator.
    pub emulator: Option<String>,
    /// What a guest is run by, with the reason.
    pub accelerator: String,
    /// Release and path of each kernel that was found.
    pub kernels: Vec<(String, PathBuf)>,
}

/// What boots will cost.
#[derive(Clone, Debug, PartialEq)]
pub struct Forecast {
    /// Guests that differ in kernel or machine; each is booted once a round.
    pub guests: u32,
    /// What they will probably be run by, with the reason.
    pub accelerator: String,
    /// Whether that is an interpreter.
    pub emulated: bool,
    /// Seconds a boot takes.
    pub boot_s: f64,
    /// Whether a guest that came up here took so long; otherwise it is a guess.
    pub measured: bool,
}

/// Looks what is here: kernels in `/boot`, in `below`, and packages unpacked before.
#[must_use]
pub fn guests_offered(below: &Path) -> GuestOffer {
    let emulator = machine::emulator().ok().map(|program| version(&program));
    GuestOffer { emulator, accelerator: Kvm::here().described(), kernels: kernels(below) }
}

/// What this many guests will cost.
pub(super) fn forecast(guests: u32) -> Forecast {
    let likely = Accelerator::likely();
    // As measured where assay was written, for a machine that has booted none yet.
    let guess = if likely == Accelerator::Kvm { 2.0 } else { 8.0 };
    let last = likely.last_boot_s();
    Forecast {
        guests,
        accelerator: Kvm::here().described(),
        emulated: likely == Accelerator::Tcg,
        boot_s: last.unwrap_or(guess),
        measured: last.is_some(),
    }
}

fn version(program: &Path) -> String {
    let output = Command::new(program).arg("--version").stdin(Stdio::null()).output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    // `QEMU emulator version 7.2.22 (Debian …)`.
    let number = text.split_whitespace().skip_while(|word| *word != "version").nth(1);
    format!("qemu {}", number.unwrap_or("of unknown version"))
}

fn kernels(below: &Path) -> Vec<(String, PathBuf)> {
    let entries = |path: &Path| {
        std::fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path()).collect::<Vec<_>>()
    };
    let mut places = vec![PathBuf::from("/boot"), below.to_owned()];
    places.extend(entries(&cache::place("kernels")).into_iter().map(|path| path.join("boot")));
    let image = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        ["vmlinuz", "bzImage"].iter().any(|start| name.starts_with(start))
    };
    let images = places.iter().flat_map(|place| entries(place)).filter(image);
    let mut found: Vec<_> =
        images.filter_map(|path| Some((KernelImage::open(&path).ok()?.release, path))).collect();
    found.sort();
    found.dedup_by(|a, b| a.0 == b.0);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_beside_one_are_found_by_their_release() {
        let directory = tempfile::tempdir().unwrap();
        let mut bytes = vec![0_u8; 0x400];
        bytes[0x202..0x206].copy_from_slice(b"HdrS");
        bytes[0x20e..0x210].copy_from_slice(&0x100_u16.to_le_bytes());
        bytes[0x300..0x30a].copy_from_slice(b"9.9.9-mine");
        std::fs::write(directory.path().join("bzImage"), &bytes).unwrap();
        std::fs::write(directory.path().join("bzImage.old"), "none").unwrap();
        let found = kernels(directory.path());
        let mine = found.iter().filter(|(_, path)| path.starts_with(directory.path())).collect::<Vec<_>>();
        assert_eq!(mine, [&("9.9.9-mine".to_owned(), directory.path().join("bzImage"))]);
        let ahead = forecast(3);
        assert!(ahead.guests == 3 && ahead.boot_s > 0.0);
    }
}
