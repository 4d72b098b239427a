//! Where a kernel's source is: a directory, a git repository, a tarball, or Debian's package of one.
//!
//! Enters: a path and a revision as named. Leaves: a [`Source`] with its digest, single files of it, and all of it as a tree in the cache.
//! Nothing is ever written into a directory or repository of the user's.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use super::digests;
use super::entries::Kept;
use super::error::BuildError;
use super::make::{self, Watch};
use super::patch::Patch;
use super::tree;
use super::{entries, git, tools};
use crate::sys::{clean_command, regular_file};

/// Ends of names that tar(1) knows what to do with.
const TARBALLS: [&str; 7] = [".tar", ".tar.xz", ".txz", ".tar.gz", ".tgz", ".tar.bz2", ".tar.zst"];
/// A larger file is no source of a kernel.
const MOST_FILE: u64 = 64 << 20;
/// What an unpacked kernel takes, and the archive in its package besides.
const UNPACKED_MIB: u64 = 1_900;
/// A kernel's files.
const TREE_MIB: u64 = 1_650;

/// What kind of source it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A directory with a kernel in it.
    Tree,
    /// A commit of a repository.
    Git(git::Commit),
    /// A file that tar(1) unpacks.
    Tarball,
    /// A Debian package with such a file below usr/src.
    Package,
}

/// A source that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Source {
    /// As named.
    pub(super) path: PathBuf,
    pub(super) kind: Kind,
    /// By content; of a commit its tree's name in git.
    pub(super) digest: String,
    /// What is not committed in a repository of which no revision was asked for.
    pub(super) uncommitted: Option<Patch>,
}

/// A file of a source.
pub(super) struct SourceFile {
    pub(super) bytes: Vec<u8>,
    pub(super) executable: bool,
}

/// How single files are read: of a source, or as patches have changed it.
pub(super) type Files<'f> = &'f dyn Fn(&str) -> Result<Option<SourceFile>, BuildError>;

impl Source {
    /// Finds out what a path is.
    ///
    /// # Errors
    /// Nothing of this kind, no such revision, unreadable.
    pub(super) fn open(path: &Path, revision: Option<&str>) -> Result<Source, BuildError> {
        let wrong = |found: &str| BuildError::NoSource { path: path.to_owned(), found: found.to_owned() };
        let found = path.metadata().map_err(BuildError::io("cannot read the source", path))?;
        if found.is_dir() && git::is_repository(path) {
            let commit = git::Commit::of(path, revision.unwrap_or("HEAD"))?;
            if commit.file(path, "Kconfig")?.is_none() {
                return Err(wrong(&format!("has no kernel at {} (no Kconfig)", revision.unwrap_or("HEAD"))));
            }
            let uncommitted = if revision.is_none() { git::uncommitted(path)? } else { None };
            let digest = commit.tree.clone();
            return Ok(Source { path: path.to_owned(), kind: Kind::Git(commit), digest, uncommitted });
        }
        if let Some(revision) = revision {
            return Err(BuildError::NotARepository { path: path.to_owned(), revision: revision.to_owned() });
        }
        if found.is_dir() {
            if !tree::is_kernel(path) {
                return Err(wrong("is a directory without a kernel's Makefile, Kconfig and init"));
            }
            let digest = tree::digest(path)?;
            return Ok(Source { path: path.to_owned(), kind: Kind::Tree, digest, uncommitted: None });
        }
        let mut start = [0_u8; 8];
        let mut file = regular_file::open(path).map_err(BuildError::unfit("cannot read the source", path))?;
        let is_package = file.read_exact(&mut start).is_ok() && &start == b"!<arch>\n";
        let name = path.to_string_lossy().into_owned();
        let kind = match () {
            () if is_package => Kind::Package,
            () if TARBALLS.iter().any(|end| name.ends_with(end)) => Kind::Tarball,
            () => {
                return Err(wrong(
                    "is neither a Debian package nor a tarball (.tar, .tar.xz, .tar.gz, .tar.zst)",
                ));
            }
        };
        Ok(Source { path: path.to_owned(), kind, digest: digests::of_file(path)?, uncommitted: None })
    }

    /// What messages call it.
    pub(super) fn name(&self) -> String {
        let file = self.path.file_name().unwrap_or(self.path.as_os_str()).to_string_lossy().into_owned();
        match &self.kind {
            Kind::Git(commit) => format!("{file}@{}", commit.asked),
            Kind::Tree | Kind::Tarball | Kind::Package => file,
        }
    }

    /// Of what is built, besides the source itself.
    pub(super) fn all_digest(&self) -> String {
        match &self.uncommitted {
            Some(patch) => format!("{}+{}", self.digest, patch.digest),
            None => self.digest.clone(),
        }
    }

    /// MiB that [`Source::unpacked`] will take.
    pub(super) fn needed_mib(&self) -> u64 {
        let is_file = matches!(self.kind, Kind::Tarball | Kind::Package);
        if is_file && !entries::is_there(entries::SOURCES, &self.digest) { UNPACKED_MIB } else { 0 }
    }

    /// MiB that a room takes with its files, besides its objects: those of an archive are links of what was unpacked.
    pub(super) fn tree_mib(&self) -> u64 {
        if matches!(self.kind, Kind::Git(_) | Kind::Tree) { TREE_MIB } else { 0 }
    }

    /// Whether single files can be read without unpacking anything.
    pub(super) fn is_readable(&self) -> bool {
        self.needed_mib() == 0
    }

    /// The directory that has its files, unpacked if need be, for as long as that is held; `None` of a repository.
    pub(super) fn unpacked(&self, watch: &mut Watch<'_>) -> Result<Option<Kept>, BuildError> {
        match &self.kind {
            Kind::Git(_) => Ok(None),
            Kind::Tree => Ok(Some(Kept::elsewhere(&self.path))),
            Kind::Tarball | Kind::Package => {
                let entry = entries::made(entries::SOURCES, &self.digest, &mut |place, lock| {
                    self.unpack(place, &mut watch.holding(lock))
                })?;
                Ok(Some(Kept::of(entry, "tree")))
            }
        }
    }

    /// The same where nothing has to be unpacked; `None`: it has to be, or it is a repository.
    pub(super) fn kept(&self) -> Option<Kept> {
        match &self.kind {
            Kind::Git(_) => None,
            Kind::Tree => Some(Kept::elsewhere(&self.path)),
            Kind::Tarball | Kind::Package => {
                entries::found(entries::SOURCES, &self.digest).map(|entry| Kept::of(entry, "tree"))
            }
        }
    }

    fn unpack(&self, place: &Path, watch: &mut Watch<'_>) -> Result<(), BuildError> {
        let tree = place.join("tree");
        std::fs::create_dir(&tree).map_err(BuildError::io("cannot make", &tree))?;
        let mut archive = self.path.clone();
        if self.kind == Kind::Package {
            archive = place.join("package");
            unpack_package(&self.path, &archive, watch)?;
            archive = archive_in(&archive, &self.path)?;
        }
        tools::can_unpack(&archive)?;
        let mut tar = make::tar(&tree);
        tar.args(["--strip-components=1", "--file"]).arg(&archive);
        make::run(tar, watch).map_err(|error| match error {
            BuildError::Failed { said, .. } => {
                let found = format!("cannot be unpacked: {said}");
                BuildError::NoSource { path: self.path.clone(), found }
            }
            other => other,
        })?;
        let _ = std::fs::remove_dir_all(place.join("package"));
        if tree::is_kernel(&tree) {
            return self.is_unchanged();
        }
        let found = "has no kernel in its top directory (Makefile, Kconfig, init)".to_owned();
        Err(BuildError::NoSource { path: self.path.clone(), found })
    }

    /// Looks whether it still is what its digest, and so the key of what is built, is of; asked after all of it was read.
    ///
    /// # Errors
    /// [`BuildError::SourceChanged`].
    pub(super) fn is_unchanged(&self) -> Result<(), BuildError> {
        let now = match self.kind {
            Kind::Git(_) => return Ok(()),
            Kind::Tree => tree::digest(&self.path)?,
            Kind::Tarball | Kind::Package => digests::of_file(&self.path)?,
        };
        if now == self.digest { Ok(()) } else { Err(BuildError::SourceChanged { path: self.path.clone() }) }
    }

    /// The files in which another revision of the same repository differs from it; of other sources that is not asked.
    pub(super) fn differs(&self, other: &Source) -> Result<Vec<String>, BuildError> {
        match (&self.kind, &other.kind) {
            (Kind::Git(commit), Kind::Git(other_commit)) if self.path == other.path => {
                commit.differs(&self.path, other_commit)
            }
            _ => Ok(Vec::new()),
        }
    }

    /// One file of it; `None`: there is none of this name.
    pub(super) fn file(&self, name: &str) -> Result<Option<SourceFile>, BuildError> {
        use std::os::unix::fs::PermissionsExt;
        if let Kind::Git(commit) = &self.kind {
            return commit.file(&self.path, name);
        }
        let Some(kept) = self.kept() else { return Ok(None) };
        tree::lies_inside(&kept.root, name)?;
        let path = kept.root.join(name);
        // A link in the tree may lead anywhere.
        let Ok(found) = path.symlink_metadata() else { return Ok(None) };
        if !found.is_file() {
            return Ok(None);
        }
        let bytes = regular_file::read(&path, MOST_FILE).map_err(BuildError::unfit("cannot read", &path))?;
        Ok(Some(SourceFile { bytes, executable: found.permissions().mode() & 0o111 != 0 }))
    }

    /// One directory of a repository's commit, put below `into`.
    pub(super) fn directory(&self, name: &str, into: &Path, watch: &mut Watch<'_>) -> Result<(), BuildError> {
        match &self.kind {
            Kind::Git(commit) => commit.directory(&self.path, name, into, watch),
            Kind::Tree | Kind::Tarball | Kind::Package => Ok(()),
        }
    }

    /// `6.12.117`, as its Makefile says; empty where it says nothing.
    pub(super) fn version(&self) -> Result<String, BuildError> {
        let makefile = self.file("Makefile")?.map(|file| String::from_utf8_lossy(&file.bytes).into_owned());
        Ok(makefile.map(|text| version_in(&text)).unwrap_or_default())
    }
}

/// `VERSION`, `PATCHLEVEL` and `SUBLEVEL` of a kernel's Makefile.
pub(super) fn version_in(makefile: &str) -> String {
    let value = |name: &str| {
        makefile
            .lines()
            .take(20)
            .find_map(|line| line.strip_prefix(name)?.trim_start().strip_prefix('=').map(str::trim))
    };
    let parts = ["VERSION", "PATCHLEVEL", "SUBLEVEL"].map(value);
    parts.into_iter().flatten().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(".")
}

/// dpkg-deb(1), which writes the files of a package as a tar archive to its standard output.
pub(super) fn archive_of(package: &Path) -> Result<Child, BuildError> {
    let started = clean_command("dpkg-deb")
        .arg("--fsys-tarfile")
        .arg(package)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    started.map_err(|_| BuildError::NoTools { what: vec!["dpkg-deb"], packages: vec!["dpkg".to_owned()] })
}

/// All files of a package, devices and the like left out as tar(1) does for who is not root.
pub(super) fn unpack_package(package: &Path, into: &Path, watch: &mut Watch<'_>) -> Result<(), BuildError> {
    std::fs::create_dir_all(into).map_err(BuildError::io("cannot make", into))?;
    let mut dpkg = archive_of(package)?;
    let Some(archive) = dpkg.stdout.take() else {
        return Err(BuildError::Failed {
            command: "dpkg-deb".to_owned(),
            said: "it has no output".to_owned(),
        });
    };
    let mut tar = make::tar(into);
    tar.args(["--file", "-"]);
    let unpacked = make::run_reading(tar, archive, watch);
    let status = dpkg.wait().map_err(BuildError::io("cannot read", package))?;
    match unpacked {
        Ok(()) if status.success() => return Ok(()),
        // What tar has not read of it says nothing of the package.
        Err(error @ (BuildError::Machine { .. } | BuildError::Interrupted { .. })) => return Err(error),
        Err(error) if status.success() => return Err(error),
        _ => {}
    }
    let found = "is no Debian package that can be unpacked".to_owned();
    Err(BuildError::NoSource { path: package.to_owned(), found })
}

/// `usr/src/linux-source-6.12.tar.xz` in an unpacked package.
fn archive_in(unpacked: &Path, package: &Path) -> Result<PathBuf, BuildError> {
    let entries = std::fs::read_dir(unpacked.join("usr/src")).into_iter().flatten().flatten();
    let is_source = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        name.starts_with("linux-source-") && TARBALLS.iter().any(|end| name.ends_with(end))
    };
    let found = entries.map(|entry| entry.path()).find(is_source);
    found.filter(|path| path.symlink_metadata().is_ok_and(|found| found.is_file())).ok_or_else(|| {
        BuildError::NoSource {
            path: package.to_owned(),
            found: "is a package without usr/src/linux-source-*.tar.xz".to_owned(),
        }
    })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::super::fake;
    use super::*;

    #[test]
    fn a_version_is_read_from_the_makefile() {
        let text = "# SPDX\nVERSION = 6\nPATCHLEVEL = 12\nSUBLEVEL = 117\nEXTRAVERSION =\nNAME = x\n";
        assert_eq!(version_in(text), "6.12.117");
        assert_eq!(version_in("VERSION = 6\nPATCHLEVEL = 12\nSUBLEVEL =\n"), "6.12");
        assert_eq!(version_in(""), "");
    }

    #[test]
    fn a_tarball_that_is_none_is_named_with_the_first_words_of_tar() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("junk.tar");
        std::fs::write(&path, "x".repeat(1000)).unwrap();
        let (log, flag, mut objects) = (place.path().join("log"), AtomicBool::new(false), |_| ());
        let source = Source::open(&path, None).unwrap();
        let error = source.unpack(place.path(), &mut fake::watch(&log, &flag, &mut objects)).unwrap_err();
        let said = format!(
            "source {} cannot be unpacked: tar: This does not look like a tar archive",
            path.display()
        );
        assert_eq!(error.to_string(), said);
    }

    #[test]
    fn a_tarball_with_a_colon_in_its_name_is_no_other_machine() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path();
        std::fs::create_dir(path.join("top")).unwrap();
        std::fs::write(path.join("top/file"), "x").unwrap();
        let mut tar = std::process::Command::new("tar");
        tar.current_dir(path).args(["--force-local", "-cf", "a:b.tar", "top"]);
        assert!(tar.status().unwrap().success());
        let mut unpack = make::tar(path);
        unpack.arg("--file").arg("a:b.tar").current_dir(path).arg("--strip-components=1");
        assert!(unpack.status().unwrap().success());
        assert_eq!(std::fs::read_to_string(path.join("file")).unwrap(), "x");
    }

    #[test]
    fn what_is_no_source_is_said() {
        let root = tempfile::tempdir().unwrap();
        let said = |name: &str, revision: Option<&str>| {
            Source::open(&root.path().join(name), revision).unwrap_err().to_string()
        };
        std::fs::create_dir(root.path().join("empty")).unwrap();
        std::fs::write(root.path().join("notes.txt"), "x").unwrap();
        std::fs::write(root.path().join("linux.tar.xz"), "x").unwrap();
        assert!(said("nothing", None).contains("No such file"));
        assert!(said("empty", None).ends_with("without a kernel's Makefile, Kconfig and init"));
        assert!(said("notes.txt", None).contains("neither a Debian package nor a tarball"));
        assert!(said("linux.tar.xz", Some("v6.1")).starts_with("rev=v6.1: "));
        assert_eq!(Source::open(&root.path().join("linux.tar.xz"), None).unwrap().kind, Kind::Tarball);
        // A program's repository, which would be found out after minutes of what a build is said to take.
        let git = |words: &[&str]| {
            let mut git = std::process::Command::new("git");
            git.current_dir(root.path().join("empty")).args(["-c", "user.name=a", "-c", "user.email=a@b"]);
            assert!(git.args(words).output().unwrap().status.success(), "{words:?}");
        };
        git(&["init", "-q"]);
        git(&["commit", "-q", "--allow-empty", "-m", "x"]);
        assert!(said("empty", Some("HEAD")).contains("has no kernel at HEAD"));
    }
}
