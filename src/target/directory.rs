//! A directory of assay's own below the one the user named.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// The file that says a directory was made by assay and may be removed by it.
pub const MARK: &str = ".assay-work";

/// `host`'s facts, as they are recorded.
type TargetFacts = crate::host::HostFacts;

/// Where a trial works.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetSpec {
    /// A directory with [`MARK`] in it; it is emptied before each trial.
    pub directory: PathBuf,
    /// Drop the page cache before each trial (needs root; without it, that is said in a note).
    pub drop_caches: bool,
    /// The device or file whose device the trial works on, where that is not the directory's.
    #[serde(default)]
    pub elsewhere: Option<PathBuf>,
}

impl TargetSpec {
    /// What facts, counters and disturbances are about.
    #[must_use]
    pub fn watched(&self) -> &Path {
        self.elsewhere.as_deref().unwrap_or(&self.directory)
    }
}

/// Why the target is not ready.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// The directory is not assay's.
    #[error("{0} has no {MARK} in it, so it is not assay's own and is not emptied")]
    NotOurs(PathBuf),
    /// The system's words.
    #[error("{what} {path}: {source}")]
    Io {
        /// What was tried.
        what: &'static str,
        /// On what.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
}

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

/// Removes a directory that carries [`MARK`], or a file; nothing there is no error.
///
/// # Errors
/// A directory without the mark, or the system's words.
pub fn remove(path: &Path) -> std::io::Result<()> {
    match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
        Ok(found) if found.is_dir() => {
            let empty = std::fs::read_dir(path)?.next().is_none();
            if !empty && !path.join(MARK).exists() {
                return Err(std::io::Error::other(TargetError::NotOurs(path.to_owned())));
            }
            // The mark goes last, so that a removal cut short can be finished later.
            empty_but_mark(path)?;
            std::fs::remove_dir_all(path)
        }
        Ok(found) if found.is_file() => std::fs::remove_file(path),
        Ok(_) => Err(std::io::Error::other(format!("{} is neither a file nor a directory", path.display()))),
    }
}

fn empty_but_mark(directory: &Path) -> std::io::Result<()> {
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_name() == MARK {
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

/// Brings the target to the same state before each trial: empty, synced, page cache dropped, device idle.
/// Returns notes about what could not be done.
///
/// # Errors
/// [`TargetError`].
pub fn prepare(spec: &TargetSpec) -> Result<Vec<String>, TargetError> {
    if !spec.directory.join(MARK).exists() {
        return Err(TargetError::NotOurs(spec.directory.clone()));
    }
    empty_but_mark(&spec.directory).map_err(|source| TargetError::Io {
        what: "cannot empty",
        path: spec.directory.clone(),
        source,
    })?;
    Ok(crate::host::quiesce(spec.watched(), spec.drop_caches).notes())
}

/// Facts of the host and of the filesystem and device the target lies on.
#[must_use]
pub fn facts(spec: &TargetSpec) -> TargetFacts {
    let mut facts = crate::host::facts();
    facts.0.extend(crate::host::path_facts(spec.watched()).0);
    facts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_marked_directories_are_emptied_or_removed() {
        let base = tempfile::tempdir().unwrap();
        let foreign = base.path().join("precious");
        std::fs::create_dir(&foreign).unwrap();
        std::fs::write(foreign.join("data"), "x").unwrap();
        let spec = TargetSpec { directory: foreign.clone(), ..TargetSpec::default() };
        assert!(matches!(prepare(&spec), Err(TargetError::NotOurs(_))));
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
        let spec = TargetSpec { directory: path.clone(), ..TargetSpec::default() };
        prepare(&spec).unwrap();
        assert!(path.join(MARK).exists() && !path.join("sub").exists());
        drop(work);
        assert!(!path.exists());
        let work = WorkDirectory::create(&path).unwrap();
        work.close().unwrap();
        assert!(!path.exists());
        assert!(remove(&path).is_ok(), "removing what is gone is no error");
    }
}
