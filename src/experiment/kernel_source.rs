//! What a kernel is built from: source, revision, patches, configuration.
//!
//! Enters: `key = value` pairs, as for guests. Leaves: one [`KernelSource`]. Whether a file is a patch, and whether it applies, is not known
//! here.

use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::guest_settings::NEWEST;
use crate::catalog::{OWN_PATCH, own_patch, own_patches};
use crate::sys::regular_file;

/// Quilt's list of the patches of a directory.
const SERIES: &str = "series";
/// A longer list is none.
const MOST_SERIES: u64 = 1 << 20;

/// Keys of these settings, which are among those of a guest.
pub const SOURCE_KEYS: [&str; 4] = ["source", "rev", "patch", "config"];

/// What a kernel is built from; nothing is set: none is built.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct KernelSource {
    /// A tree, a git repository, a tarball or a Debian linux-source package.
    pub source: Option<PathBuf>,
    /// Of a repository; `None`: what is checked out.
    pub revision: Option<String>,
    /// In the order they are applied.
    pub patches: Vec<PathBuf>,
    /// A fragment, or a whole `.config`; `None`: assay's own.
    pub config: Option<PathBuf>,
}

impl KernelSource {
    /// Sets one of [`SOURCE_KEYS`]; relative paths are below `base`.
    ///
    /// # Errors
    /// A clause that says what would be right.
    pub(super) fn set(&mut self, key: &str, value: &str, base: &Path) -> Result<(), String> {
        let none = matches!(value, "none" | "default" | "");
        match key {
            "source" if none => (self.source, self.revision) = (None, None),
            "source" => {
                let (path, revision) = source(value, base)?;
                self.revision = revision.or(self.revision.take());
                self.source = Some(path);
            }
            "rev" => self.revision = (!none).then(|| value.to_owned()),
            "patch" => self.patches = if none { Vec::new() } else { patches(value, base)? },
            _ => {
                let path = base.join(value);
                if !none && !path.is_file() {
                    return Err(format!(
                        "config={value}: no such file; write a fragment, a .config, or default"
                    ));
                }
                self.config = (!none).then_some(path);
            }
        }
        Ok(())
    }

    /// Whether one of [`SOURCE_KEYS`] is set.
    pub(super) fn has(&self, key: &str) -> bool {
        match key {
            "source" => self.source.is_some(),
            "rev" => self.revision.is_some(),
            "patch" => !self.patches.is_empty(),
            _ => self.config.is_some(),
        }
    }

    /// What is set although nothing is built; `kernel`: one is given.
    pub(super) fn contradictions(&self, kernel: bool) -> Vec<String> {
        let idle = SOURCE_KEYS.into_iter().filter(|key| self.has(key) && self.source.is_none());
        let named = |key| if key == "rev" { "REPOSITORY" } else { "TREE" };
        let mut found: Vec<String> = idle
            .map(|key| {
                format!("{key} is of a kernel that is built, and no source is given: --source {}", named(key))
            })
            .collect();
        if kernel && self.source.is_some() && self.config.is_some() {
            found.push("config is of a whole kernel, and with kernel only modules of that one are built; leave one out".to_owned());
        }
        found
    }

    /// In words, a line each.
    pub(super) fn described(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let at = self.revision.as_ref().map_or_else(String::new, |revision| format!(" at {revision}"));
        lines.extend(
            self.source.as_ref().map(|path| format!("built from {}{at} (runs its make)", path.display())),
        );
        lines.extend(self.patches.iter().map(|path| format!("patch {}", path.display())));
        lines.extend(self.config.iter().map(|path| format!("configuration {}", path.display())));
        lines
    }
}

/// `PATH` or `REPOSITORY@REV`.
fn source(value: &str, base: &Path) -> Result<(PathBuf, Option<String>), String> {
    let whole = base.join(value);
    if whole.exists() {
        return Ok((whole, None));
    }
    let parts = value.rsplit_once('@').map(|(path, revision)| (base.join(path), revision));
    match parts {
        _ if value == NEWEST => Ok((PathBuf::from(NEWEST), None)),
        Some((path, revision)) if path.is_dir() && !revision.is_empty() => {
            Ok((path, Some(revision.to_owned())))
        }
        _ => Err(format!(
            "source={value}: no such file or directory; write a kernel tree, REPOSITORY or REPOSITORY@REV, a tarball, a linux-source .deb, or newest"
        )),
    }
}

/// `a.patch+b.patch`; a file that has a plus in its name may stand alone, and a directory is a series.
fn patches(value: &str, base: &Path) -> Result<Vec<PathBuf>, String> {
    let whole = base.join(value);
    if whole.is_file() {
        return Ok(vec![whole]);
    }
    let one = |name: &str| {
        let name = name.trim();
        let path = base.join(name);
        if path.is_file() {
            return Ok(vec![path]);
        }
        if own_patch(name).is_some() {
            return Ok(vec![PathBuf::from(name)]);
        }
        if path.is_dir() {
            return series(&path).map_err(|why| format!("patch={value}: {why}"));
        }
        if name.starts_with(OWN_PATCH) {
            let known: Vec<String> = own_patches().collect();
            return Err(format!(
                "patch={value}: the program has no patch of that name, but {}",
                known.join(", ")
            ));
        }
        Err(format!("patch={value}: there is no file {name}; write none, FILE, FILE+FILE or a directory"))
    };
    let all = value.split('+').map(one).collect::<Result<Vec<_>, String>>()?;
    Ok(all.concat())
}

/// The patches of a directory in the order in which its `series` (quilt's) names them, or of their names, as `git format-patch -o` numbers
/// them; the letter before them is none.
fn series(directory: &Path) -> Result<Vec<PathBuf>, String> {
    let listed = directory.join(SERIES);
    let mut all: Vec<PathBuf> = Vec::new();
    if listed.is_file() {
        let wrong = |error| format!("cannot read {}: {error}", listed.display());
        let text = regular_file::read(&listed, MOST_SERIES).map_err(wrong)?;
        for line in String::from_utf8_lossy(&text).lines() {
            // Behind the name may stand options of patch(1).
            let name = line.split('#').next().unwrap_or_default().split_whitespace().next();
            let Some(name) = name else { continue };
            let is_below = Path::new(name).components().all(|part| matches!(part, Component::Normal(_)));
            let path = directory.join(name);
            if !is_below || !path.is_file() {
                return Err(format!("{} names {name}, which is no file below it", listed.display()));
            }
            all.push(path);
        }
    } else {
        let wrong = |error: std::io::Error| format!("cannot read {}: {error}", directory.display());
        for entry in std::fs::read_dir(directory).map_err(wrong)? {
            let path = entry.map_err(wrong)?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let is_patch = name.ends_with(".patch") || name.ends_with(".diff");
            if is_patch && !name.contains("-cover-letter.") && path.is_file() {
                all.push(path);
            }
        }
        all.sort();
    }
    if all.is_empty() {
        return Err(format!("{} has no .patch", directory.display()));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_kernel_is_built_from_is_set_key_by_key() {
        let place = tempfile::tempdir().unwrap();
        let base = place.path();
        for name in ["a.patch", "b.patch", "a+b.patch", "mine.config"] {
            std::fs::write(base.join(name), "x").unwrap();
        }
        std::fs::create_dir(base.join("linux")).unwrap();
        let mut built = KernelSource::default();
        built.set("patch", "a.patch", base).unwrap();
        assert_eq!(built.contradictions(false).len(), 1, "a patch of nothing");
        built.set("source", "linux@v6.12", base).unwrap();
        assert_eq!(
            (built.source.as_deref(), built.revision.as_deref()),
            (Some(base.join("linux").as_path()), Some("v6.12"))
        );
        built.set("source", "linux", base).unwrap();
        assert_eq!(built.revision.as_deref(), Some("v6.12"), "of a level before");
        built.set("patch", "a.patch+b.patch", base).unwrap();
        assert_eq!(built.patches, [base.join("a.patch"), base.join("b.patch")]);
        built.set("patch", "a+b.patch", base).unwrap();
        assert_eq!(built.patches, [base.join("a+b.patch")]);
        built.set("patch", "assay:dio-append+a.patch", base).unwrap();
        assert_eq!(built.patches, [PathBuf::from("assay:dio-append"), base.join("a.patch")]);
        built.set("patch", "none", base).unwrap();
        assert!(built.patches.is_empty());
        let mail = base.join("mail");
        std::fs::create_dir(&mail).unwrap();
        let message = built.set("patch", "mail/", base).unwrap_err();
        assert!(message.contains("mail/ has no .patch"), "{message}");
        for name in ["0002-b.patch", "0001-a.patch", "0000-cover-letter.patch", "notes.txt"] {
            std::fs::write(mail.join(name), "x").unwrap();
        }
        built.set("patch", "mail+a.patch", base).unwrap();
        assert_eq!(
            built.patches,
            [mail.join("0001-a.patch"), mail.join("0002-b.patch"), base.join("a.patch")]
        );
        std::fs::write(mail.join("series"), "# order\n0002-b.patch -p1\n\n0001-a.patch # first\n").unwrap();
        built.set("patch", "mail", base).unwrap();
        assert_eq!(built.patches, [mail.join("0002-b.patch"), mail.join("0001-a.patch")]);
        std::fs::write(mail.join("series"), "../a.patch\n").unwrap();
        let message = built.set("patch", "mail", base).unwrap_err();
        assert!(message.contains("series names ../a.patch, which is no file below it"), "{message}");
        for (key, value, expected) in [
            ("source", "nothing", "no such file or directory"),
            ("source", "nothing@v1", "no such file or directory"),
            ("patch", "a.patch+c.patch", "there is no file c.patch"),
            ("patch", "assay:none-such", "no patch of that name, but assay:bdev-mix"),
            ("config", "other.config", "no such file"),
        ] {
            let message = built.set(key, value, base).unwrap_err();
            assert!(message.contains(expected), "{key}={value}: {message}");
        }
        built.set("config", "mine.config", base).unwrap();
        assert_eq!(built.contradictions(false), Vec::<String>::new());
        assert!(built.contradictions(true)[0].starts_with("config is of a whole kernel"));
    }
}
