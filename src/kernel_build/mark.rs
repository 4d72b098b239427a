//! The mark of an entry of the cache: that it is whole, how large it is, when it was used, and of what it consists.
//!
//! Enters: an entry's directory. Leaves: a file in it. Its first line is the bytes of the entry; of a finished kernel each further line is
//! the size, the digest and the name of a file, so that a damaged one (a disk that was full, a machine that lost its power) is not booted.
//! A file that other directories have, too, is not the build's: of it there is the size alone.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::digests;
use super::error::BuildError;
use crate::sys::cache::bytes_below;

/// Its name; its time says when the entry was last used.
const NAME: &str = ".assay-entry";
/// What a kernel is booted of.
const ARTIFACTS: [&str; 2] = ["boot", "lib"];
/// Instead of a digest.
const NONE: &str = "-";

/// Whether an entry has one.
pub(super) fn is_there(entry: &Path) -> bool {
    entry.join(NAME).is_file()
}

/// Writes it for what lies in an entry now; `artifacts`: also what a kernel is booted of.
///
/// # Errors
/// A file cannot be read, the mark not written.
pub(super) fn write(entry: &Path, artifacts: bool) -> Result<(), BuildError> {
    let mut text = format!("{}\n", bytes_below(entry));
    for name in artifacts.then(|| files(entry)).into_iter().flatten() {
        let path = entry.join(&name);
        let found = path.metadata().map_err(BuildError::io("cannot read", &path))?;
        let digest = if found.nlink() < 2 { digests::of_file(&path)? } else { NONE.to_owned() };
        text.push_str(&format!("{} {digest} {}\n", found.len(), name.display()));
    }
    put(entry, &text)
}

/// Writes one that says nothing yet, for an entry whose filling may be ended at any time.
///
/// # Errors
/// It cannot be written.
pub(super) fn begin(entry: &Path) -> Result<(), BuildError> {
    if is_there(entry) { Ok(()) } else { put(entry, "0\n") }
}

fn put(entry: &Path, text: &str) -> Result<(), BuildError> {
    let path = entry.join(NAME);
    std::fs::write(&path, text).map_err(BuildError::io("cannot write", &path))
}

/// Sets its time; an entry that cannot be written to is as good.
pub(super) fn touch(entry: &Path) {
    let file = std::fs::File::options().write(true).open(entry.join(NAME));
    let _ = file.and_then(|file| file.set_modified(SystemTime::now()));
}

/// Whether all files that it names are as they were.
pub(super) fn fits(entry: &Path) -> bool {
    let Ok(text) = std::fs::read_to_string(entry.join(NAME)) else { return false };
    text.lines().skip(1).all(|line| is_as_it_was(entry, line).unwrap_or(false))
}

fn is_as_it_was(entry: &Path, line: &str) -> Option<bool> {
    let mut words = line.splitn(3, ' ');
    let (size, digest, name) = (words.next()?.parse::<u64>().ok()?, words.next()?, words.next()?);
    let path = entry.join(name);
    let is_of_size = path.symlink_metadata().is_ok_and(|found| found.is_file() && found.len() == size);
    Some(is_of_size && (digest == NONE || digests::of_file(&path).is_ok_and(|now| now == digest)))
}

/// Bytes of an entry and when it was used, also where a kill has kept it from getting a mark that says so.
pub(super) fn read(entry: &Path) -> Option<(u64, SystemTime)> {
    let mark = entry.join(NAME);
    let text = std::fs::read_to_string(&mark).unwrap_or_default();
    let said = text.lines().next().and_then(|line| line.trim().parse().ok());
    let bytes = said.filter(|bytes| *bytes > 0).unwrap_or_else(|| bytes_below(entry));
    let used = mark.metadata().or_else(|_| entry.metadata()).ok()?.modified().ok()?;
    Some((bytes, used))
}

/// Files that a kernel is booted of, below its entry.
fn files(entry: &Path) -> Vec<PathBuf> {
    let (mut names, mut open) = (Vec::new(), ARTIFACTS.map(PathBuf::from).to_vec());
    while let Some(directory) = open.pop() {
        for found in std::fs::read_dir(entry.join(&directory)).into_iter().flatten().flatten() {
            let name = directory.join(found.file_name());
            match found.file_type() {
                Ok(kind) if kind.is_dir() => open.push(name),
                Ok(kind) if kind.is_file() => names.push(name),
                _ => {}
            }
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_that_is_not_as_it_was_does_not_fit_its_mark() {
        let place = tempfile::tempdir().unwrap();
        let entry = place.path();
        assert!(!is_there(entry) && !fits(entry));
        for (name, text) in [("boot/vmlinuz-6.12", "image"), ("lib/modules/6.12/kernel/a b.ko", "module")] {
            super::super::tree::put(entry, name, Some((text.as_bytes(), false))).unwrap();
        }
        std::fs::hard_link(entry.join("boot/vmlinuz-6.12"), entry.join("elsewhere")).unwrap();
        write(entry, true).unwrap();
        assert!(is_there(entry) && fits(entry));
        std::fs::write(entry.join("build.log"), "anything").unwrap();
        assert!(fits(entry), "nothing is booted of it");
        let module = entry.join("lib/modules/6.12/kernel/a b.ko");
        for damaged in ["modulf", ""] {
            std::fs::write(&module, damaged).unwrap();
            assert!(!fits(entry), "{damaged:?}");
        }
        std::fs::write(&module, "module").unwrap();
        assert!(fits(entry));
        std::fs::write(entry.join("boot/vmlinuz-6.12"), "imag").unwrap();
        assert!(!fits(entry));
        std::fs::remove_file(&module).unwrap();
        assert!(!fits(entry));
    }
}
