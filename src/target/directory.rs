//! A directory of assay's own below the one the user named.

use std::path::{Path, PathBuf};

use super::error::TargetError;
use super::{journal, registry};

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

    /// Removes it and says whether that worked, which dropping cannot.
    ///
    /// # Errors
    /// The system's words.
    pub fn close(self) -> std::io::Result<()> {
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
/// there is no error.
///
/// # Errors
/// A directory without the mark, or the system's words.
pub fn remove(path: &Path) -> std::io::Result<()> {
    match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
        Ok(found) if found.is_dir() => {
            let has_entries = std::fs::read_dir(path)?.next().is_some();
            if has_entries && !path.join(MARK).exists() {
                return Err(std::io::Error::other(TargetError::NotOurs(path.to_owned())));
            }
            // Mounts below it are undone first: what is on them is not the directory's to remove.
            let real = path.canonicalize()?;
            journal::undo_all(&real).map_err(std::io::Error::other)?;
            registry::unregister(&real);
            // The mark goes last, so that a removal cut short can be finished later.
            empty(path)?;
            std::fs::remove_dir_all(path)
        }
        Ok(found) if found.is_file() => std::fs::remove_file(path),
        Ok(_) => Err(std::io::Error::other(format!("{} is neither a file nor a directory", path.display()))),
    }
}

/// Removes all in a directory but assay's own mark, journal and lock, and what a new ext4 has in it.
pub(super) fn empty(directory: &Path) -> std::io::Result<()> {
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        // Mark, journal and lock all begin so.
        if name == "lost+found" || name.to_string_lossy().starts_with(".assay-") {
            continue;
        }
        if entry.file_type()?.is_dir() {
            std::fs::remove_dir_all(entry.path())?;
        } else {
            std::fs::remove_file(entry.path())?;
        }
    }
    Ok(())
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
        empty(&path).unwrap();
        assert!(path.join(MARK).exists() && !path.join("sub").exists());
        drop(work);
        assert!(!path.exists());
        let work = WorkDirectory::create(&path).unwrap();
        work.close().unwrap();
        assert!(!path.exists());
        assert!(remove(&path).is_ok(), "removing what is gone is no error");
    }
}
