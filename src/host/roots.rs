//! Where `/proc` and `/sys` are, and reading small files below them. A file that is not there is no fact, never an error:
//! kernels differ in what they have.

use std::path::{Path, PathBuf};

/// The roots that facts are read from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Roots {
    /// `/proc`.
    pub proc: PathBuf,
    /// `/sys`.
    pub sys: PathBuf,
}

impl Default for Roots {
    fn default() -> Self {
        Roots::under(Path::new("/"))
    }
}

impl Roots {
    /// `proc` and `sys` below another directory.
    #[must_use]
    pub fn under(root: &Path) -> Roots {
        Roots { proc: root.join("proc"), sys: root.join("sys") }
    }

    /// The trimmed text of a file below `/proc`; `None` when it is not there, cannot be read or is empty.
    pub(super) fn proc(&self, path: &str) -> Option<String> {
        text(&self.proc.join(path))
    }

    /// The table of mounts; empty where there is none.
    pub(super) fn mountinfo(&self) -> String {
        self.proc("self/mountinfo").unwrap_or_default()
    }

    /// The trimmed text of a file below `/sys`.
    pub(super) fn sys(&self, path: &str) -> Option<String> {
        text(&self.sys.join(path))
    }
}

/// The trimmed text of a file; `None` when there is none.
pub(super) fn text(path: &Path) -> Option<String> {
    let bytes = std::fs::read(path).ok()?;
    let text = String::from_utf8_lossy(&bytes).trim().to_owned();
    (!text.is_empty()).then_some(text)
}

/// The names in a directory, sorted; empty when there is none.
pub(super) fn names(path: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// `mq-deadline` from `none [mq-deadline] kyber`; a text without brackets as it is.
pub(super) fn chosen(text: &str) -> &str {
    match text.split_once('[').and_then(|(_, rest)| rest.split_once(']')) {
        Some((chosen, _)) => chosen,
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_choice_is_in_brackets() {
        assert_eq!(chosen("none [mq-deadline] kyber"), "mq-deadline");
        assert_eq!(chosen("always [madvise] never"), "madvise");
        assert_eq!(chosen("none"), "none");
    }
}
