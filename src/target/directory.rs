//! A directory of assay's own below the one the user named.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::error::TargetError;
use super::{frozen, journal, registry, removal};

/// The file that says a directory was made by assay and may be removed by it.
pub const MARK: &str = ".assay-work";

/// A working directory that is removed when this goes out of scope, however that happens.
#[derive(Debug)]
pub struct WorkDirectory {
    path: PathBuf,
}

impl WorkDirectory {
    /// The path such a directory would have: below `base`, with `name` in it.
    #[must_use]
    pub fn path_for(base: &Path, name: &str) -> PathBuf {
        base.join(format!("assay-{name}"))
    }

    /// Makes the directory (not its parents) and marks it.
    ///
    /// # Errors
    /// [`TargetError::Io`]: it exists, no permission, no space.
    pub fn create(path: &Path) -> Result<WorkDirectory, TargetError> {
        let failed = |what, path: &Path| {
            let path = path.to_owned();
            move |source| TargetError::Io { what, path, source }
        };
        std::fs::create_dir(path).map_err(failed("cannot make", path))?;
        let made = WorkDirectory { path: path.to_owned() };
        let mark = path.join(MARK);
        std::fs::write(&mark, "made by assay; `assay cleanup` removes it\n")
            .map_err(failed("cannot make", &mark))?;
        Ok(made)
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes it and says whether that worked, which dropping cannot; returns notes as [`remove`] does.
    ///
    /// # Errors
    /// As [`remove`].
    pub fn close(self) -> std::io::Result<Vec<String>> {
        let result = remove(&self.path);
        std::mem::forget(self);
        result
    }
}

impl Drop for WorkDirectory {
    fn drop(&mut self) {
        // Whoever cares calls close; here another error is already on its way.
        let _ = remove(&self.path);
    }
}

/// Removes a directory that carries [`MARK`], with all devices, filesystems and settings made for it, or a file; nothing
/// there is no error. Returns notes about what stays because others use it.
///
/// # Errors
/// A directory without the mark, one in which others have mounted something, a filesystem that hangs, or the system's
/// words; [`hint_of`] says what helps.
pub fn remove(path: &Path) -> std::io::Result<Vec<String>> {
    match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
        Ok(found) if found.is_dir() => {
            // Here the wait of who removes something would be assay's own, and nothing could end it.
            frozen::takes_changes(path)?;
            let has_entries = std::fs::read_dir(path)?.next().is_some();
            if has_entries && !path.join(MARK).exists() {
                return Err(std::io::Error::other(TargetError::NotOurs(path.to_owned())));
            }
            // Mounts below it are undone first: what is on them is not the directory's to remove.
            let real = path.canonicalize()?;
            let notes = journal::undo_all(&real).map_err(std::io::Error::other)?;
            removal::only_own_mounts(&real, None).map_err(std::io::Error::other)?;
            registry::unregister(&real);
            // The mark goes last, so that a removal cut short can be finished later.
            removal::empty(&real, |name| name == MARK)?;
            removal::empty(&real, |_| false)?;
            std::fs::remove_dir(&real).map(|()| notes)
        }
        Ok(found) if found.is_file() => {
            frozen::takes_changes(path)?;
            std::fs::remove_file(path).map(|()| Vec::new())
        }
        Ok(_) => Err(std::io::Error::other(format!("{} is neither a file nor a directory", path.display()))),
    }
}

/// What helps where [`remove`] has refused; `None`: nothing that is known here.
#[must_use]
pub fn hint_of(error: &std::io::Error) -> Option<String> {
    let refusal = error.get_ref()?.downcast_ref::<TargetError>()?;
    Some(refusal.hint()).filter(|hint| !hint.is_empty())
}

/// Removes all in a directory but assay's own mark, journal and lock, and what a new ext4 has in it; nothing where others
/// have mounted something in it. `own`: the directory is assay's own mount.
pub(super) fn empty(directory: &Path, own: bool) -> Result<(), TargetError> {
    let failed = |source| TargetError::Io { what: "cannot empty", path: directory.to_owned(), source };
    let real = directory.canonicalize().map_err(failed)?;
    removal::only_own_mounts(&real, own.then_some(&real))?;
    // Mark, journal and lock all begin so.
    let kept = |name: &OsStr| name == "lost+found" || name.as_bytes().starts_with(b".assay-");
    removal::empty(&real, kept).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_marked_directories_are_removed() {
        let base = tempfile::tempdir().unwrap();
        let foreign = base.path().join("precious");
        std::fs::create_dir(&foreign).unwrap();
        std::fs::write(foreign.join("data"), "x").unwrap();
        assert!(remove(&foreign).is_err());
        assert!(foreign.join("data").exists());
    }

    #[test]
    fn a_work_directory_is_removed_with_everything_in_it() {
        let base = tempfile::tempdir().unwrap();
        let path = WorkDirectory::path_for(base.path(), "7");
        let work = WorkDirectory::create(&path).unwrap();
        std::fs::create_dir(path.join("sub")).unwrap();
        std::fs::write(path.join("sub/file"), "x").unwrap();
        empty(&path, false).unwrap();
        assert!(path.join(MARK).exists() && !path.join("sub").exists());
        drop(work);
        assert!(!path.exists());
        let work = WorkDirectory::create(&path).unwrap();
        work.close().unwrap();
        assert!(!path.exists());
        assert!(remove(&path).is_ok(), "removing what is gone is no error");
    }
}
