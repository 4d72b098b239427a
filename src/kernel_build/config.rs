//! The configuration of a whole kernel: assay's small one, that with a fragment of the user's over it, or the user's own.
//!
//! Enters: a file. Leaves: a [`Configuration`]; what a finished `.config` is missing.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::compiled;
use super::digests;
use super::error::BuildError;
use super::patch::Patch;
use crate::sys::regular_file;

/// What assay's own kernels are made of, explained line by line.
const SMALL: &str = include_str!("small.config");
/// A larger file is no configuration.
const MOST_BYTES: u64 = 4 << 20;
/// What the kernel's own tools write above a whole one, behind a line of its own.
const WHOLE: &str = "# Automatically generated file; DO NOT EDIT.";
/// A fragment does not set as many.
const MANY: usize = 400;

/// What a kernel is configured by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Configuration {
    /// What it is called in messages.
    pub(super) name: String,
    /// What is set; all else is off, or as the kernel's own defaults have it where `is_whole`.
    pub(super) text: String,
    /// Whether it is a whole `.config`.
    pub(super) is_whole: bool,
    /// What the user's fragment asks for.
    asked: String,
    /// What the experiment needs.
    needed: BTreeSet<String>,
    /// By content.
    pub(super) digest: String,
}

/// What every guest needs of its kernel.
const ALWAYS: [&str; 5] = ["BLK_DEV_INITRD", "DEVTMPFS", "VIRTIO_PCI", "VIRTIO_CONSOLE", "BINFMT_ELF"];

impl Configuration {
    /// Reads one; `None`: assay's own. What is `needed` besides is added, unless the user has a whole one.
    ///
    /// # Errors
    /// Unreadable, a file that sets nothing, one that leaves out what is needed.
    pub(super) fn read(path: Option<&Path>, needed: &BTreeSet<String>) -> Result<Configuration, BuildError> {
        let needed: BTreeSet<String> = needed.iter().cloned().chain(ALWAYS.map(str::to_owned)).collect();
        let small = "assay's small configuration";
        let Some(path) = path else {
            return Ok(Configuration::of(small, extended(SMALL, &needed), String::new(), false, needed));
        };
        let text = regular_file::read_text(path, MOST_BYTES)
            .map_err(BuildError::unfit("cannot read the configuration", path))?;
        let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let set = options_of(path, &text)?;
        if text.lines().take(3).any(|line| line == WHOLE) || set >= MANY {
            let configuration = Configuration::of(&file, text, String::new(), true, needed);
            configuration.has(&configuration.text)?;
            return Ok(configuration);
        }
        let all = extended(&over(SMALL, &text), &needed);
        let configuration = Configuration::of(&format!("{small} and {file}"), all, text, false, needed);
        configuration.has(&configuration.text)?;
        Ok(configuration)
    }

    fn of(
        name: &str,
        text: String,
        asked: String,
        is_whole: bool,
        needed: BTreeSet<String>,
    ) -> Configuration {
        let digest = digests::of_texts([text.as_str(), if is_whole { "whole" } else { "fragment" }]);
        Configuration { name: name.to_owned(), text, is_whole, asked, needed, digest }
    }

    /// How many of its options are built in or as modules.
    pub(super) fn options_on(&self) -> u64 {
        let is_on = |line: &&str| option(line).is_some_and(|(_, value)| matches!(value, "y" | "m"));
        self.text.lines().filter(is_on).count() as u64
    }

    /// The files of keys that it names: the option, and the file.
    pub(super) fn keys(&self) -> impl Iterator<Item = (&str, &str)> {
        const OPTIONS: [&str; 2] = ["SYSTEM_TRUSTED_KEYS", "SYSTEM_REVOCATION_KEYS"];
        let named = self.text.lines().filter_map(option).filter(|(name, _)| OPTIONS.contains(name));
        named
            .map(|(name, value)| (name, value.trim_matches('"')))
            .filter(|(_, file)| !matches!(*file, "" | "n"))
    }

    /// Whether it says that an option is built in.
    pub(super) fn is_on(&self, name: &str) -> bool {
        self.text.lines().any(|line| option(line) == Some((name, "y")))
    }

    /// Whether a text has all that is needed, built in or as a module.
    fn has(&self, text: &str) -> Result<(), BuildError> {
        let missing = off(text, self.needed.iter().map(String::as_str));
        if missing.is_empty() {
            return Ok(());
        }
        Err(BuildError::Configuration {
            what: format!(
                "the kernel of {} would be without {}, which the experiment needs",
                self.name,
                missing.join(", ")
            ),
            hint: format!("add CONFIG_{}=y, or leave out the level that needs it", missing[0]),
        })
    }

    /// Looks at the `.config` that the kernel's own tools have made of it.
    ///
    /// # Errors
    /// What is needed, or was asked for, is not in it.
    pub(super) fn check(&self, finished: &str) -> Result<(), BuildError> {
        self.has(finished)?;
        let asked = self.asked.lines().filter_map(option).filter(|(_, value)| matches!(*value, "y" | "m"));
        let left_out = off(finished, asked.map(|(name, _)| name));
        match left_out.first() {
            None => self.has_values(finished),
            Some(first) => Err(BuildError::Configuration {
                what: format!(
                    "{} asks for {}, and this kernel leaves it out",
                    self.name,
                    left_out.join(", ")
                ),
                hint: format!(
                    "the kernel has no {first}, or it depends on options that are off: add those, too"
                ),
            }),
        }
    }

    /// Whether what was to be off is off, and what was to have another value has it.
    fn has_values(&self, finished: &str) -> Result<(), BuildError> {
        let all: BTreeMap<&str, &str> = finished.lines().filter_map(option).collect();
        let differs = |(name, value): &(&str, &str)| {
            let found = all.get(name).copied().unwrap_or("n");
            !matches!(*value, "y" | "m") && found != *value
        };
        let other = self.asked.lines().filter_map(option).find(differs);
        let Some((name, value)) = other else { return Ok(()) };
        let found = all.get(name).copied().unwrap_or("n");
        Err(BuildError::Configuration {
            what: format!("{} asks for {name}={value}, and this kernel has {name}={found}", self.name),
            hint: format!(
                "another option selects {name}, or it cannot be chosen by itself (as HZ by HZ_1000): set that one"
            ),
        })
    }

    /// Whether the options that a patch brings are on: the small configuration has all off that nobody asks for.
    pub(super) fn has_options_of(&self, patch: &Patch, finished: &str) -> Result<(), BuildError> {
        let chosen: BTreeSet<&str> = self.asked.lines().filter_map(|line| Some(option(line)?.0)).collect();
        let own = compiled::new_options(patch);
        let own = own.iter().map(String::as_str).filter(|name| !self.is_whole && !chosen.contains(name));
        match off(finished, own).first() {
            None => Ok(()),
            Some(name) => Err(BuildError::Configuration {
                what: format!("{} brings the option {name}, which is off", patch.path.display()),
                hint: format!(
                    "--config FILE with CONFIG_{name}=y builds what it is for; with # CONFIG_{name} is not set it stays off"
                ),
            }),
        }
    }
}

/// How many options a file sets; every line is one, a comment or empty.
fn options_of(path: &Path, text: &str) -> Result<usize, BuildError> {
    let hint = "a fragment has lines such as CONFIG_XFS_RT=y or # CONFIG_XFS_RT is not set";
    let wrong = |what: String| BuildError::Configuration { what, hint: hint.to_owned() };
    let is_wrong = |line: &str| !line.trim().is_empty() && !line.starts_with('#') && option(line).is_none();
    if let Some(at) = text.lines().position(is_wrong) {
        let what = format!(
            "config {}, line {}: no option of the kernel's (CONFIG_NAME=VALUE)",
            path.display(),
            at + 1
        );
        return Err(wrong(what));
    }
    match text.lines().filter(|line| option(line).is_some()).count() {
        0 => Err(wrong(format!("config {} sets no option", path.display()))),
        set => Ok(set),
    }
}

/// Which of these options a text has neither built in nor as modules.
fn off<'o>(text: &str, options: impl Iterator<Item = &'o str>) -> Vec<&'o str> {
    let on: BTreeSet<&str> =
        text.lines().filter_map(option).filter(|(_, value)| *value != "n").map(|(name, _)| name).collect();
    options.filter(|name| !on.contains(name)).collect()
}

/// A text with what is needed and not mentioned in it.
fn extended(text: &str, needed: &BTreeSet<String>) -> String {
    let mentioned: BTreeSet<&str> = text.lines().filter_map(option).map(|(name, _)| name).collect();
    let more = needed.iter().filter(|name| !mentioned.contains(name.as_str()));
    text.lines()
        .map(|line| format!("{line}\n"))
        .chain(more.map(|name| format!("CONFIG_{name}=y\n")))
        .collect()
}

/// Whether some of it is built as modules.
pub(super) fn has_modules(finished: &str) -> bool {
    let lines = || finished.lines().filter_map(option);
    lines().any(|(name, value)| name == "MODULES" && value == "y") && lines().any(|(_, value)| value == "m")
}

/// Name and value of `CONFIG_X=y`, or of `# CONFIG_X is not set` with `n`.
fn option(line: &str) -> Option<(&str, &str)> {
    let (name, value) = match line.strip_prefix("# CONFIG_").and_then(|rest| rest.strip_suffix(" is not set"))
    {
        Some(name) => (name, "n"),
        None => line.trim().strip_prefix("CONFIG_")?.split_once('=')?,
    };
    let fits = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    fits.then_some((name, value))
}

/// The lines of `below` that `above` says nothing of, and then those.
fn over(below: &str, above: &str) -> String {
    let said: BTreeSet<&str> = above.lines().filter_map(|line| Some(option(line)?.0)).collect();
    let kept = below.lines().filter(|line| option(line).is_none_or(|(name, _)| !said.contains(name)));
    kept.chain(above.lines()).map(|line| format!("{line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_option_of_the_small_one_is_explained() {
        let mut explained = false;
        let mut options = 0;
        for line in SMALL.lines() {
            match line {
                "" => explained = false,
                _ if option(line).is_some() => {
                    assert!(explained, "{line}");
                    options += 1;
                }
                _ => {
                    assert!(line.starts_with("# "), "{line}");
                    explained = true;
                }
            }
        }
        assert!(options > 40, "{options}");
    }

    #[test]
    fn a_fragment_goes_over_the_small_one_and_a_whole_one_instead() {
        let place = tempfile::tempdir().unwrap();
        let none = BTreeSet::new();
        let read = |text: &str| {
            let path = place.path().join("mine.config");
            std::fs::write(&path, text).unwrap();
            Configuration::read(Some(&path), &none)
        };
        let small = Configuration::read(None, &none).unwrap();
        let mine = read("# CONFIG_XFS_FS is not set\nCONFIG_BTRFS_FS=y\n").unwrap();
        assert!(!mine.is_whole && mine.digest != small.digest);
        let lines: Vec<&str> = mine.text.lines().filter(|line| line.contains("CONFIG_XFS_FS")).collect();
        assert_eq!(lines, ["# CONFIG_XFS_FS is not set"]);
        let all = ALWAYS.map(|name| format!("CONFIG_{name}=y\n")).concat();
        assert!(
            read(&format!("#\n{WHOLE}\n# Linux/x86 6.12.57 Kernel Configuration\n#\n{all}"))
                .unwrap()
                .is_whole
        );
        for (text, expected) in [
            ("", "sets no option"),
            ("# nothing\n", "sets no option"),
            ("CONFIG_X\n", "line 1"),
            ("X=y\n", "line 1"),
            (&format!("{WHOLE}\nCONFIG_X86_64=y\n"), "would be without BINFMT_ELF"),
        ] {
            let message = read(text).unwrap_err().to_string();
            assert!(message.contains(expected), "{text}: {message}");
        }
    }

    #[test]
    fn options_that_a_patch_brings_are_on_or_off_by_name() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("mine.config");
        let text =
            "--- a/fs/xfs/Kconfig\n+++ b/fs/xfs/Kconfig\n@@ -1 +1,2 @@\n config XFS_FS\n+config XFS_FOO\n";
        let patch = Patch::of(Path::new("foo.patch"), text.as_bytes().to_vec()).unwrap();
        let has =
            |configuration: &Configuration, finished: &str| configuration.has_options_of(&patch, finished);
        let own = Configuration::read(None, &BTreeSet::new()).unwrap();
        let off = "# CONFIG_XFS_FOO is not set\n";
        let said = has(&own, off).unwrap_err().to_string();
        assert_eq!(said, "foo.patch brings the option XFS_FOO, which is off");
        has(&own, "CONFIG_XFS_FOO=y\n").unwrap();
        std::fs::write(&path, off).unwrap();
        has(&Configuration::read(Some(&path), &BTreeSet::new()).unwrap(), off).unwrap();
    }

    #[test]
    fn what_an_experiment_needs_is_added_or_refused() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("mine.config");
        let needed: BTreeSet<String> = ["XFS_FS", "BTRFS_FS"].map(str::to_owned).into();
        let own = Configuration::read(None, &needed).unwrap();
        assert!(own.text.contains("CONFIG_BTRFS_FS=y\n") && own.text.matches("CONFIG_XFS_FS=y").count() == 1);
        std::fs::write(&path, "# CONFIG_XFS_FS is not set\n").unwrap();
        let error = Configuration::read(Some(&path), &needed).unwrap_err();
        assert!(
            error.to_string().ends_with("would be without XFS_FS, which the experiment needs"),
            "{error}"
        );
        std::fs::write(&path, "CONFIG_XFS_RT=y\n").unwrap();
        let mine = Configuration::read(Some(&path), &needed).unwrap();
        let left_out = mine.check(&own.text).unwrap_err().to_string();
        assert!(
            left_out.ends_with("mine.config asks for XFS_RT, and this kernel leaves it out"),
            "{left_out}"
        );
        mine.check(&format!("{}CONFIG_XFS_RT=m\n", own.text)).unwrap();
        // A value that cannot be chosen by itself, and an option that another one selects.
        for (asked, found) in [
            ("CONFIG_HZ=1000", "CONFIG_HZ=250\n"),
            ("# CONFIG_IOMAP is not set", "CONFIG_IOMAP=y\n"),
            ("CONFIG_NR_CPUS=8", ""),
        ] {
            std::fs::write(&path, format!("{asked}\n")).unwrap();
            let mine = Configuration::read(Some(&path), &needed).unwrap();
            let said = mine.check(&format!("{}{found}", own.text)).unwrap_err().to_string();
            assert!(said.contains(" asks for ") && said.contains(", and this kernel has "), "{said}");
            mine.check(&format!("{}{asked}\n", own.text)).unwrap();
        }
        assert!(has_modules("CONFIG_MODULES=y\nCONFIG_XFS_FS=m\n") && !has_modules("CONFIG_MODULES=y\n"));
    }
}
