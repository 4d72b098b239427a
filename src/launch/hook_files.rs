//! `$ASSAY_FILES`: the directory in which a hook leaves files that are kept with the trial; and what it printed as such a file.
//!
//! Enters: the work directory. Leaves: the regular files that lie in it, and notes about what is not kept. The directory is held
//! open from before the hook runs, so that whatever the hook puts in its place, or mounts over it, is not read. No link is
//! followed, nothing in a subdirectory is read, and a name is only ever one that [`KeptFile::is_name`] allows.

use std::ffi::CString;
use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, openat, statat};

use crate::record::KeptFile;
use crate::target::{empty_opened, open_itself};

/// Names the directory in which a hook may leave files.
pub(super) const FILES_VARIABLE: &str = "ASSAY_FILES";
/// Bytes of one file, and of all that a hook leaves.
const MOST_BYTES: u64 = 1 << 20;
const MOST_IN_ALL: u64 = 4 << 20;
/// Files of a hook.
const MOST_FILES: usize = 16;
/// Names that are looked at.
const MOST_NAMES: usize = 1000;
/// Of what a hook printed so much of the end is kept.
const MOST_OUTPUT: usize = 64 << 10;
/// Things not kept that are told one by one, and letters of a name.
const MOST_TOLD: usize = 5;
const MOST_LETTERS: usize = 60;
const READ: OFlags = OFlags::RDONLY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);

/// The directory of one hook.
pub(super) struct FilesPlace {
    path: PathBuf,
    directory: OwnedFd,
}

impl FilesPlace {
    /// Makes it, empty, in the work directory.
    pub(super) fn make(work: &Path, which: &str) -> std::io::Result<FilesPlace> {
        let path = work.join(format!(".assay-{which}-files"));
        match std::fs::create_dir(&path) {
            // What an earlier trial's hook left open or mounted there could not be removed then.
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            other => other?,
        }
        let directory = open_itself(&path)?;
        empty_opened(&directory, &path, |_| false)?;
        Ok(FilesPlace { path, directory })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The files that lie there now, by name, with notes about what is not kept; then removes it all.
    pub(super) fn take(self, which: &str) -> (Vec<KeptFile>, Vec<String>) {
        let mut files: Vec<KeptFile> = Vec::new();
        let mut refused: Vec<String> = Vec::new();
        let (names, more) = self.names();
        let mut left = MOST_IN_ALL;
        for name in names {
            let shown = shown(&name);
            let full =
                || Err(format!("a hook may leave {MOST_FILES} files, {} MiB in all", MOST_IN_ALL >> 20));
            let read = match name.to_str() {
                Ok(text) if text == output_name(which) => {
                    Err("this is the name of what the hook prints".to_owned())
                }
                Ok(text) if KeptFile::is_name(text) && files.len() >= MOST_FILES => full(),
                Ok(text) if KeptFile::is_name(text) => match self.read(&name) {
                    Ok(bytes) if bytes.len() as u64 > left => full(),
                    Ok(bytes) => Ok(KeptFile { name: text.to_owned(), bytes }),
                    Err(why) => Err(why),
                },
                _ => {
                    Err("a name has letters, digits, '.', '_' and '-', 100 at most, a letter or digit first"
                        .to_owned())
                }
            };
            match read {
                Ok(file) => {
                    left -= file.bytes.len() as u64;
                    files.push(file);
                }
                Err(why) => refused.push(format!("the {which} hook's file {shown} is not kept: {why}")),
            }
        }
        let untold = refused.len().saturating_sub(MOST_TOLD) + more;
        refused.truncate(MOST_TOLD);
        if untold > 0 {
            refused.push(format!("{untold} more files of the {which} hook are not kept"));
        }
        // What cannot be removed, as others have mounted something in it, stays for `assay cleanup` to name.
        if empty_opened(&self.directory, &self.path, |_| false).is_ok() {
            let _ = std::fs::remove_dir(&self.path);
        }
        (files, refused)
    }

    /// Names in order, and how many more there are.
    fn names(&self) -> (Vec<CString>, usize) {
        let entries = Dir::read_from(&self.directory).into_iter().flatten().flatten();
        let all = entries.map(|entry| entry.file_name().to_owned());
        let mut names: Vec<CString> = all.filter(|name| !matches!(name.to_bytes(), b"." | b"..")).collect();
        names.sort();
        let more = names.len().saturating_sub(MOST_NAMES);
        names.truncate(MOST_NAMES);
        (names, more)
    }

    /// The contents of a regular file; the reason why not is a clause.
    fn read(&self, name: &CString) -> Result<Vec<u8>, String> {
        let words = |error: rustix::io::Errno| std::io::Error::from(error).to_string();
        // Opening some devices does something, so the kind is looked at first; and again afterwards, for what has changed meanwhile.
        let found = statat(&self.directory, name, AtFlags::SYMLINK_NOFOLLOW).map_err(words)?;
        if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
            return Err("it is not a regular file".to_owned());
        }
        let file = File::from(openat(&self.directory, name, READ, Mode::empty()).map_err(words)?);
        let found = file.metadata().map_err(|error| error.to_string())?;
        if !found.is_file() {
            return Err("it is not a regular file".to_owned());
        }
        let too_large = || Err(format!("it is larger than {} MiB", MOST_BYTES >> 20));
        if found.len() > MOST_BYTES {
            return too_large();
        }
        let mut bytes = Vec::with_capacity(found.len() as usize + 1);
        file.take(MOST_BYTES + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
        if bytes.len() as u64 > MOST_BYTES { too_large() } else { Ok(bytes) }
    }
}

/// A name that others chose, for people.
fn shown(name: &CString) -> String {
    name.to_string_lossy().chars().take(MOST_LETTERS).flat_map(char::escape_debug).collect()
}

fn output_name(which: &str) -> String {
    format!("{which}.out")
}

/// What a hook printed, as a file; `None`: nothing.
pub(super) fn output_file(which: &str, output: &str) -> Option<KeptFile> {
    let mut from = output.len().saturating_sub(MOST_OUTPUT);
    while !output.is_char_boundary(from) {
        from += 1;
    }
    let bytes = output.as_bytes()[from..].to_vec();
    (!bytes.is_empty()).then(|| KeptFile { name: output_name(which), bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place() -> (tempfile::TempDir, FilesPlace) {
        let work = tempfile::tempdir().unwrap();
        let place = FilesPlace::make(work.path(), "after").unwrap();
        (work, place)
    }

    #[test]
    fn regular_files_are_kept_and_nothing_is_left() {
        let (work, place) = place();
        std::fs::write(place.path().join("b.bin"), [0, 255]).unwrap();
        std::fs::write(place.path().join("a.txt"), "x").unwrap();
        std::fs::write(place.path().join("after.out"), "x").unwrap();
        let (files, notes) = place.take("after");
        let names: Vec<&str> = files.iter().map(|file| file.name.as_str()).collect();
        assert_eq!((names, files[1].bytes.as_slice()), (vec!["a.txt", "b.bin"], &[0, 255][..]));
        assert_eq!(notes.len(), 1, "{notes:?}");
        assert!(notes[0].contains("after.out is not kept: this is the name of what"), "{notes:?}");
        assert_eq!(std::fs::read_dir(work.path()).unwrap().count(), 0);
    }

    #[test]
    fn links_devices_directories_and_odd_names_are_not_read() {
        let (work, place) = place();
        let secret = work.path().join("secret");
        std::fs::write(&secret, "secret").unwrap();
        std::os::unix::fs::symlink(&secret, place.path().join("link")).unwrap();
        std::os::unix::fs::symlink("/dev/zero", place.path().join("zero")).unwrap();
        let fifo = place.path().join("fifo");
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, FileType::Fifo, 0o600.into(), 0).unwrap();
        std::fs::create_dir(place.path().join("directory")).unwrap();
        std::fs::write(place.path().join("directory/file"), "x").unwrap();
        std::fs::write(place.path().join(".hidden"), "x").unwrap();
        let (files, notes) = place.take("after");
        assert_eq!(files, Vec::new());
        assert_eq!(notes.len(), 5, "{notes:?}");
        assert!(
            notes.iter().filter(|note| note.contains("it is not a regular file")).count() == 4,
            "{notes:?}"
        );
        assert_eq!(std::fs::read_to_string(&secret).unwrap(), "secret");
        assert!(!work.path().join(".assay-after-files").exists());
    }

    #[test]
    fn a_directory_put_in_its_place_is_not_read() {
        let (work, place) = place();
        let other = work.path().join("other");
        std::fs::create_dir(&other).unwrap();
        std::fs::write(other.join("precious"), "x").unwrap();
        std::fs::remove_dir(place.path()).unwrap();
        std::os::unix::fs::symlink(&other, place.path()).unwrap();
        assert_eq!(place.take("after"), (Vec::new(), Vec::new()));
        assert!(other.join("precious").exists());
        // Nor is the link followed when the next one is made.
        assert!(FilesPlace::make(work.path(), "after").is_err());
    }

    #[test]
    fn there_are_limits_of_size_and_number() {
        let (_work, first) = place();
        File::create(first.path().join("sparse")).unwrap().set_len(1 << 40).unwrap();
        for at in 0..5 {
            File::create(first.path().join(format!("full{at}"))).unwrap().set_len(MOST_BYTES).unwrap();
        }
        let (files, notes) = first.take("after");
        assert_eq!((files.len(), notes.len()), (4, 2), "{notes:?}");
        let (_work, second) = place();
        for at in 0..30 {
            std::fs::write(second.path().join(format!("f{at}")), "x").unwrap();
        }
        let (files, notes) = second.take("after");
        assert_eq!((files.len(), notes.len()), (MOST_FILES, MOST_TOLD + 1));
        assert!(notes[MOST_TOLD].starts_with("9 more files of the after hook"), "{notes:?}");
    }

    #[test]
    fn of_what_was_printed_the_end_is_kept() {
        assert_eq!(output_file("before", ""), None);
        let file = output_file("before", "hello\n").unwrap();
        assert_eq!((file.name.as_str(), file.bytes.as_slice()), ("before.out", &b"hello\n"[..]));
        let long = "ä".repeat(MOST_OUTPUT) + "!";
        let kept = output_file("after", &long).unwrap().bytes;
        assert!(kept.len() <= MOST_OUTPUT && String::from_utf8(kept).unwrap().ends_with("ä!"));
    }
}
