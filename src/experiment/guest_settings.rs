//! The settings of a guest: which kernel a trial runs on, and in what machine.
//!
//! Enters: `key = value` pairs, as for targets. Leaves: one [`GuestSettings`]. Whether the file is a kernel is not known here.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::kernel_source::{KernelSource, SOURCE_KEYS};
use crate::units::parse_bytes;

/// Keys of these settings.
pub const GUEST_KEYS: [&str; 9] =
    ["kernel", "source", "rev", "patch", "config", "cpus", "memory", "kernel_args", "modules"];

/// A level of `kernel`: the newest that can be found. Where to look is known elsewhere:
/// [`Experiment::newest_kernel`](super::Experiment::newest_kernel).
pub const NEWEST: &str = "newest";

/// Where a tree of the kernel has its image once it is built.
const BUILT: &str = "arch/x86/boot/bzImage";

/// Whether a level of `kernel` is a release, `6.1.0-57-amd64`, and no file of that name:
/// [`Experiment::kernel_releases`](super::Experiment::kernel_releases).
pub(super) fn is_release(value: &str) -> bool {
    let has_form = value.starts_with(|c: char| c.is_ascii_digit()) && value.contains('.');
    has_form && !value.contains('/') && !value.ends_with(".deb") && !Path::new(value).is_file()
}

/// The machine a trial runs in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct GuestSettings {
    /// A kernel image, or a Debian package of one; `None`: this machine itself.
    pub kernel: Option<PathBuf>,
    /// What the kernel is built from.
    pub build: KernelSource,
    /// What is known of a kernel that was built, for the facts of its trials.
    pub facts: Vec<(String, String)>,
    /// Processors; `None`: as many as here, at most 4.
    pub cpus: Option<u32>,
    /// Bytes of memory, without what is set aside as persistent memory; `None`: 1 GiB and room for devices in memory.
    pub memory: Option<u64>,
    /// What is added to the kernel's command line.
    pub arguments: Vec<String>,
    /// Modules loaded besides those that target and filesystem need.
    pub modules: Vec<String>,
}

impl GuestSettings {
    /// Sets one of [`GUEST_KEYS`]; relative paths are below `base`.
    ///
    /// # Errors
    /// A clause that says what would be right.
    pub fn set(&mut self, key: &str, value: &str, base: &Path) -> Result<(), String> {
        let words = || -> Vec<String> { value.split_whitespace().map(str::to_owned).collect() };
        let none = matches!(value, "default" | "none" | "");
        match key {
            "kernel" if value == "host" => self.kernel = None,
            "kernel" => {
                let path = base.join(value);
                let built = path.join(BUILT);
                self.kernel = Some(match path.is_file() {
                    true => path,
                    false if built.is_file() => built,
                    false if value == NEWEST || is_release(value) => PathBuf::from(value),
                    false => {
                        return Err(format!(
                            "kernel={value}: no such file; write a vmlinuz, a linux-image .deb, a tree that was built, a release, newest, or host for the kernel that runs here"
                        ));
                    }
                });
            }
            _ if SOURCE_KEYS.contains(&key) => self.build.set(key, value, base)?,
            "cpus" => match value.parse() {
                Ok(count @ 1..=255) => self.cpus = Some(count),
                _ => return Err(format!("cpus={value}: write a number from 1 to 255")),
            },
            "memory" => {
                let bytes = parse_bytes(value, 1024).map_err(|error| format!("memory: {error}"))?;
                if bytes < 256 << 20 || !bytes.is_multiple_of(1 << 20) {
                    return Err(format!("memory={value}: write whole MiB, 256m or more"));
                }
                self.memory = Some(bytes);
            }
            "kernel_args" => self.arguments = if none { Vec::new() } else { words() },
            "modules" => self.modules = if none { Vec::new() } else { words() },
            _ => return Err(format!("no setting of a guest is called {key}")),
        }
        Ok(())
    }

    /// The most memory that the kernel is told to use, with the argument that says so: `mem=48M`. Forms with `@` set no limit.
    #[must_use]
    pub fn memory_limit(&self) -> Option<(&str, u64)> {
        let limits = self.arguments.iter().filter_map(|word| {
            let bytes = parse_bytes(word.strip_prefix("mem=")?, 1024).ok()?;
            Some((word.as_str(), bytes))
        });
        limits.min_by_key(|(_, bytes)| *bytes)
    }

    /// Whether one of [`GUEST_KEYS`] is set.
    #[must_use]
    pub fn has(&self, key: &str) -> bool {
        match key {
            // One that is built is one.
            "kernel" => self.kernel.is_some() || self.build.source.is_some(),
            _ if SOURCE_KEYS.contains(&key) => self.build.has(key),
            "cpus" => self.cpus.is_some(),
            "memory" => self.memory.is_some(),
            "kernel_args" => !self.arguments.is_empty(),
            "modules" => !self.modules.is_empty(),
            _ => false,
        }
    }

    /// What is set although no guest is started.
    #[must_use]
    pub fn contradictions(&self) -> Vec<String> {
        let mut found = self.build.contradictions(self.kernel.is_some());
        if found.is_empty() {
            let idle = GUEST_KEYS.into_iter().filter(|key| self.has(key) && !self.has("kernel"));
            found.extend(idle.map(|key| format!("{key} is a guest's, and no kernel is given to boot one")));
        }
        found
    }

    /// In words, a line each; empty without a guest.
    #[must_use]
    pub fn described(&self) -> Vec<String> {
        if !self.has("kernel") {
            return Vec::new();
        }
        let kernel = self.kernel.as_ref().map_or_else(
            || "a kernel that is built".to_owned(),
            |kernel| format!("kernel {}", kernel.display()),
        );
        let mut lines = vec![format!("{kernel}, booted in a virtual machine for each round")];
        lines.extend(self.build.described());
        lines.extend(self.cpus.map(|cpus| format!("cpus = {cpus}")));
        lines.extend(self.memory.map(|memory| format!("memory = {} MiB", memory >> 20)));
        for (name, words) in [("kernel_args", &self.arguments), ("modules", &self.modules)] {
            lines.extend((!words.is_empty()).then(|| format!("{name} = {}", words.join(" "))));
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guest_is_set_key_by_key() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("vmlinuz"), "x").unwrap();
        let mut guest = GuestSettings::default();
        let mut set = |key: &str, value: &str| guest.set(key, value, directory.path());
        set("kernel", "vmlinuz").unwrap();
        set("memory", "512m").unwrap();
        set("kernel_args", "mitigations=off  nosmt").unwrap();
        for (key, value, expected) in [
            ("kernel", "vmlinux-9", "no such file"),
            ("cpus", "0", "from 1 to 255"),
            ("memory", "1m", "256m or more"),
            ("memory", "1q", "not a size unit"),
        ] {
            let message = set(key, value).unwrap_err();
            assert!(message.contains(expected), "{key}={value}: {message}");
        }
        assert_eq!(guest.arguments, ["mitigations=off", "nosmt"]);
        assert_eq!(guest.contradictions(), Vec::<String>::new());
        assert_eq!(guest.described()[1..], ["memory = 512 MiB", "kernel_args = mitigations=off nosmt"]);
        guest.set("kernel", "6.1.0-57-amd64", directory.path()).unwrap();
        assert_eq!(guest.kernel.as_deref(), Some(Path::new("6.1.0-57-amd64")), "others look for it");
        assert!(guest.set("kernel", "linux", directory.path()).is_err());
        std::fs::create_dir_all(directory.path().join("linux/arch/x86/boot")).unwrap();
        std::fs::write(directory.path().join("linux").join(BUILT), "x").unwrap();
        guest.set("kernel", "linux", directory.path()).unwrap();
        assert!(guest.kernel.as_ref().unwrap().ends_with("linux/arch/x86/boot/bzImage"));
        for no_release in ["6", "6.1/vmlinuz", "6.1.deb", "v6.1"] {
            assert!(!is_release(no_release), "{no_release}");
        }
        guest.set("kernel", "host", directory.path()).unwrap();
        assert_eq!(guest.contradictions().len(), 2, "memory and arguments of no guest");
        let set: Vec<&str> = GUEST_KEYS.into_iter().filter(|key| guest.has(key)).collect();
        assert_eq!(set, ["memory", "kernel_args"]);
    }

    #[test]
    fn what_asks_for_a_launcher_is_a_setting() {
        for kind in crate::catalog::LauncherKind::ALL {
            let key = kind.descriptor().asked_by;
            assert!(key.is_none_or(|key| GUEST_KEYS.contains(&key)), "{key:?}");
        }
    }
}
