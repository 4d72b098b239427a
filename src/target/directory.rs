//! A directory of assay's own below the one the user named, and all that is made for it: made, recorded, removed.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use rustix::fs::{Mode, OFlags};

use super::error::TargetError;
use super::journal::Journal;
use super::ledger::Ledger;
use super::made::{Found, MARK, MARK_BEGINS};
use super::{frozen, removal};

/// What the work directories of one session of a run have in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    token: String,
    run: String,
}

impl Session {
    /// A new one; `run` is what people call the run.
    ///
    /// # Errors
    /// [`TargetError::Io`]: the kernel gives no random bytes.
    pub fn new(run: &str) -> Result<Session, TargetError> {
        let token = crate::sys::random_digits().map_err(TargetError::io("cannot draw digits for", run))?;
        Ok(Session { token, run: run.to_owned() })
    }

    /// Its random digits: who knows them can ask whether the session lives.
    #[must_use]
    pub fn token(&self) -> &str {
        &self.token
    }
}

/// A working directory that is removed when this goes out of scope, however that happens. As long as it lives, nobody else
/// takes it for one that a killed run has left.
#[derive(Debug)]
pub struct WorkDirectory {
    path: PathBuf,
    ledger: Rc<Ledger>,
}

impl WorkDirectory {
    /// The path such a directory would have: below `base`, with `name` in it.
    #[must_use]
    pub fn path_for(base: &Path, name: &str) -> PathBuf {
        base.join(format!("assay-{name}"))
    }

    /// Makes the directory (not its parents), marks it, and records it as a session's own.
    ///
    /// # Errors
    /// As [`WorkDirectory::create_for`].
    pub fn create(path: &Path) -> Result<WorkDirectory, TargetError> {
        WorkDirectory::create_for(path, &Session::new("a run")?, &[])
    }

    /// The same as one of a session's. `files`, at which nothing may be, are made for a job that names them.
    ///
    /// # Errors
    /// [`TargetError::Io`]: it exists, no permission, no space; [`TargetError::Refused`]: a file is there already.
    pub fn create_for(
        path: &Path,
        session: &Session,
        files: &[PathBuf],
    ) -> Result<WorkDirectory, TargetError> {
        let cannot_make = |source| TargetError::Io { what: "cannot make", path: path.to_owned(), source };
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let name = path.file_name().ok_or_else(|| cannot_make(std::io::ErrorKind::InvalidInput.into()))?;
        let real = parent.canonicalize().map_err(cannot_make)?.join(name);
        let room = files.iter().map(|file| file.as_os_str().len() as u64 + 128).sum();
        let ledger = Rc::new(Ledger::create(&real, &session.token, &session.run, room)?);
        if let Err(error) = std::fs::create_dir(path) {
            ledger.forget();
            return Err(cannot_make(error));
        }
        let made = WorkDirectory { path: path.to_owned(), ledger };
        let mut contents = made.ledger.again()?;
        contents.work.now_made().map_err(cannot_make)?;
        made.ledger.write(&contents)?;
        contents.work.mark().map_err(cannot_make)?;
        if !files.is_empty() {
            Journal::begin_with(Rc::clone(&made.ledger))?.make_files(files)?;
        }
        Ok(made)
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its record.
    pub(super) fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Removes it and all that was made for it, and says whether that worked, which dropping cannot; returns notes about what
    /// stays because others use it.
    ///
    /// # Errors
    /// Something that cannot be put back, a directory in which others have mounted something, a filesystem that hangs, or
    /// the system's words; [`hint_of`] says what helps.
    pub fn close(self) -> std::io::Result<Vec<String>> {
        let ledger = Rc::clone(&self.ledger);
        std::mem::forget(self);
        remove_recorded(&ledger)
    }
}

#[cfg(test)]
impl WorkDirectory {
    /// As after a kill: the lock is let go of, nothing is removed.
    pub(super) fn dies(self) {
        let this = std::mem::ManuallyDrop::new(self);
        this.ledger.release();
    }
}

impl Drop for WorkDirectory {
    fn drop(&mut self) {
        // Whoever cares calls close; here another error is already on its way.
        let _ = remove_recorded(&self.ledger);
    }
}

/// Undoes all that a record says and removes its work directory, then the record. What is not recognised as what was made
/// stays, and is noted.
pub(super) fn remove_recorded(ledger: &Rc<Ledger>) -> std::io::Result<Vec<String>> {
    let other = std::io::Error::other;
    let mut journal = Journal::begin_with(Rc::clone(ledger)).map_err(other)?;
    let path = journal.directory().to_owned();
    if matches!(journal.found(), Ok(Found::Ours(_))) {
        // Here the wait of who removes something would be assay's own, and nothing could end it.
        frozen::takes_changes(&path)?;
    }
    // Mounts below it are undone first: what is on them is not the directory's to remove.
    let undone = journal.undo_all();
    // One that cannot be removed does not keep the directory from it, nor does a mount that stays keep the files from it.
    let files = journal.remove_files();
    undone.map_err(other)?;
    let mut notes = journal.notes();
    match journal.found().map_err(other)? {
        Found::Nothing => {}
        Found::Foreign(why) => {
            notes.push(format!("{} was to be removed and stays: {why}", path.display()));
        }
        Found::Ours(directory) => {
            removal::only_own_mounts(&path, None).map_err(other)?;
            // The mark goes last, so that a removal cut short can be finished later.
            removal::empty(&directory, &path, |name| name == MARK)?;
            removal::empty(&directory, &path, |_| false)?;
            drop(directory);
            std::fs::remove_dir(&path)?;
        }
    }
    files.map_err(other)?;
    ledger.forget();
    Ok(notes)
}

/// Removes a directory for which there is no record, because a person says so: one that carries [`MARK`] and belongs to this user.
/// Nothing that is mounted there is touched, and no link followed.
///
/// # Errors
/// It is not such a directory, others have mounted something in it, or the system's words.
pub fn remove_marked(path: &Path) -> std::io::Result<()> {
    let opened = removal::open(path)?;
    if !is_a_work_directory(path, &opened)? {
        let why =
            "it does not belong to you, is not called assay-…, or does not carry assay's mark".to_owned();
        return Err(std::io::Error::other(TargetError::NotOurs { path: path.to_owned(), why }));
    }
    frozen::takes_changes(path)?;
    removal::only_own_mounts(&path.canonicalize()?, None).map_err(std::io::Error::other)?;
    removal::empty(&opened, path, |name| name == MARK)?;
    removal::empty(&opened, path, |_| false)?;
    std::fs::remove_dir(path)
}

/// Whether a directory looks like one that a run of this user made.
#[must_use]
pub fn is_marked(path: &Path) -> bool {
    removal::open(path).and_then(|opened| is_a_work_directory(path, &opened)).unwrap_or(false)
}

fn is_a_work_directory(path: &Path, opened: &OwnedFd) -> std::io::Result<bool> {
    let mine = File::from(opened.try_clone()?).metadata()?.uid() == rustix::process::geteuid().as_raw();
    Ok(mine && path.is_absolute() && is_named_by_assay(path) && has_the_mark(opened))
}

/// `assay-` and random digits.
fn is_named_by_assay(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let digits = name.strip_prefix("assay-").unwrap_or_default();
    digits.len() == 16 && digits.bytes().all(|digit| digit.is_ascii_hexdigit())
}

/// A file of this user's with the text of a mark: in a directory of a group, others could have put one there.
fn has_the_mark(directory: &OwnedFd) -> bool {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let Ok(mark) = rustix::fs::openat(directory, MARK, flags, Mode::empty()) else { return false };
    let mark = File::from(mark);
    let me = rustix::process::geteuid().as_raw();
    let mine = mark.metadata().is_ok_and(|found| found.is_file() && found.uid() == me);
    let mut start = Vec::new();
    let read = mark.take(MARK_BEGINS.len() as u64).read_to_end(&mut start);
    mine && read.is_ok() && start == MARK_BEGINS.as_bytes()
}

/// What helps where something could not be removed; `None`: nothing that is known here.
#[must_use]
pub fn hint_of(error: &std::io::Error) -> Option<String> {
    let refusal = error.get_ref()?.downcast_ref::<TargetError>()?;
    Some(refusal.hint()).filter(|hint| !hint.is_empty())
}

/// Removes all in a work directory but assay's own mark, and what a new ext4 has in it; nothing where others have mounted
/// something in it. `own`: the directory is assay's own mount.
pub(super) fn empty(directory: &Path, own: bool) -> Result<(), TargetError> {
    let failed = |source| TargetError::Io { what: "cannot empty", path: directory.to_owned(), source };
    let real = directory.canonicalize().map_err(failed)?;
    removal::only_own_mounts(&real, own.then_some(&real))?;
    let kept = |name: &OsStr| name == "lost+found" || name.as_bytes().starts_with(b".assay-");
    let opened = removal::open(&real).map_err(failed)?;
    removal::empty(&opened, &real, kept).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_work_directory_is_removed_with_everything_in_it() {
        let base = tempfile::tempdir().unwrap();
        let path = WorkDirectory::path_for(base.path(), "7");
        let work = WorkDirectory::create(&path).unwrap();
        std::fs::create_dir(path.join("sub")).unwrap();
        std::fs::write(path.join("sub/file"), "x").unwrap();
        assert_eq!(work.close().unwrap(), Vec::<String>::new());
        assert!(!path.exists());
        assert!(Ledger::of(&path).unwrap().is_none(), "the record is gone");
    }

    #[test]
    fn a_directory_put_in_its_place_stays() {
        let base = tempfile::tempdir().unwrap();
        let path = base.path().join("assay-1");
        let work = WorkDirectory::create(&path).unwrap();
        std::fs::rename(&path, base.path().join("away")).unwrap();
        std::fs::create_dir(&path).unwrap();
        std::fs::write(path.join("precious"), "x").unwrap();
        let notes = work.close().unwrap();
        assert!(notes[0].contains("was to be removed and stays: it is another directory"), "{notes:?}");
        assert!(path.join("precious").exists() && base.path().join("away").exists());
    }

    #[test]
    fn a_directory_that_exists_is_not_taken() {
        let base = tempfile::tempdir().unwrap();
        let path = base.path().join("assay-1");
        std::fs::create_dir(&path).unwrap();
        assert!(WorkDirectory::create(&path).is_err());
        assert!(path.exists() && Ledger::of(&path).unwrap().is_none());
    }
}
