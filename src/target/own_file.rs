//! A file outside the work directory that a job names and that did not exist: made by assay, known by its inode, removed at the end.
//!
//! Enters: a path at which nothing was when the run was announced. Leaves: an empty file of assay's own there. Whatever came there since,
//! by whomever, is in the way and never written to or removed.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, Mode, OFlags, openat, unlinkat};
use rustix::io::Errno;

use super::error::TargetError;
use super::made::{OwnFile, Seen};
use super::overwrite::Refusal;

const PARENT: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// The file that will be made; its parent must exist.
pub(super) fn planned(path: &Path) -> Result<OwnFile, TargetError> {
    let failed = |source| TargetError::Io { what: "cannot make", path: path.to_owned(), source };
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let real = parent.canonicalize().map_err(failed)?;
    let name = path.file_name().ok_or_else(|| failed(std::io::ErrorKind::InvalidInput.into()))?;
    Ok(OwnFile { path: real.join(name), inode: None })
}

/// Makes it, empty.
pub(super) fn make(file: &mut OwnFile) -> Result<(), TargetError> {
    let (parent, name) = parent_of(file)?;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match openat(&parent, &name, flags, Mode::from_raw_mode(0o644)) {
        Err(Errno::EXIST) => Err(Refusal::Appeared(file.path.clone()).into()),
        other => {
            let opened = other.map_err(|error| TargetError::io("cannot make", &file.path)(error.into()))?;
            let seen = Seen::opened(opened).map_err(TargetError::io("cannot look at", &file.path))?;
            file.inode = Some(seen.inode);
            Ok(())
        }
    }
}

/// Whether the file had to be made again, as the last trial has removed it.
pub(super) fn check(file: &mut OwnFile) -> Result<bool, TargetError> {
    match Seen::of(&file.path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => make(file).map(|()| true),
        Err(error) => Err(TargetError::io("cannot look at", &file.path)(error)),
        Ok(seen) if seen.is_file && file.inode == Some(seen.inode) => Ok(false),
        Ok(_) => Err(Refusal::Appeared(file.path.clone()).into()),
    }
}

/// Takes a file for the run's own that came in the place of its file while an engine ran that is known to do so; whether it did.
/// `began`: when the engine did.
pub(super) fn adopt(file: &mut OwnFile, began: (i64, u32)) -> bool {
    let Ok(seen) = Seen::of(&file.path) else { return false };
    let mine = seen.owner == rustix::process::geteuid().as_raw();
    let made_by_it = seen.is_file && seen.links == 1 && mine && seen.since >= began;
    let adopted = made_by_it && file.inode != Some(seen.inode);
    if adopted {
        file.inode = Some(seen.inode);
    }
    adopted
}

/// Whether what is there now is the file that was made.
pub(super) fn is_there(file: &OwnFile) -> bool {
    Seen::of(&file.path).is_ok_and(|seen| seen.is_file && file.inode.is_none_or(|inode| inode == seen.inode))
}

/// Removes it; the note says that another is there, which stays.
pub(super) fn remove(file: &OwnFile) -> Result<Option<String>, TargetError> {
    let (parent, name) = match parent_of(file) {
        Err(TargetError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
            return Ok(None);
        }
        other => other?,
    };
    let failed = |error: Errno| TargetError::io("cannot remove", &file.path)(error.into());
    let seen = match Seen::at(&parent, &name) {
        Err(Errno::NOENT) => return Ok(None),
        other => other.map_err(failed)?,
    };
    let mine = match file.inode {
        Some(inode) => inode == seen.inode,
        // Killed before it was known: an empty file is no loss.
        None => seen.bytes == 0 && seen.links == 1 && seen.owner == rustix::process::geteuid().as_raw(),
    };
    if !(seen.is_file && mine) {
        return Ok(Some(format!(
            "{} is another file now than the one that was made: it stays",
            file.path.display()
        )));
    }
    match unlinkat(&parent, &name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(failed(error)),
    }
}

fn parent_of(file: &OwnFile) -> Result<(OwnedFd, OsString), TargetError> {
    let parent = file.path.parent().unwrap_or(Path::new("/"));
    let opened = rustix::fs::open(parent, PARENT, Mode::empty());
    let opened = opened.map_err(|error| TargetError::io("cannot open", parent)(error.into()))?;
    Ok((opened, file.path.file_name().unwrap_or_default().to_owned()))
}
