//! Revisions of a kernel's repository.
//!
//! Enters: a repository of the user's, a revision. Leaves: a [`Commit`], single files of it, and all of it in a directory of assay's, for
//! which git is given an index there: the repository's own index, work tree and branches are not touched.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::error::BuildError;
use super::make::{self, Watch};
use super::patch::Patch;
use super::source::SourceFile;
use crate::sys::clean_command;

/// A commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Commit {
    /// As it was asked for.
    pub(super) asked: String,
    /// The name of its tree, which is that of its content.
    pub(super) tree: String,
    /// Its own name when it was asked for; `None`: a tree was asked for.
    commit: Option<String>,
}

/// Whether a directory is a repository or the top of a work tree.
pub(super) fn is_repository(path: &Path) -> bool {
    path.join(".git").exists() || (path.join("HEAD").is_file() && path.join("objects").is_dir())
}

/// git, told nothing by variables of a repository around it; it asks nobody and starts no editor, no hook of the repository's and no
/// program that watches its files, which would run as whoever runs assay, and might keep the lock of a room.
fn git(repository: &Path) -> Command {
    let mut command = clean_command("git");
    command.env("GIT_OPTIONAL_LOCKS", "0").env("GIT_TERMINAL_PROMPT", "0");
    command.args(["-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false"]);
    command.arg("-C").arg(repository).stdin(Stdio::null());
    command
}

fn output(mut command: Command) -> Result<Result<Vec<u8>, String>, BuildError> {
    let output = command
        .output()
        .map_err(|_| BuildError::NoTools { what: vec!["git"], packages: vec!["git".to_owned()] })?;
    let said = || {
        String::from_utf8_lossy(&output.stderr).trim().lines().next().unwrap_or("git says nothing").to_owned()
    };
    Ok(if output.status.success() { Ok(output.stdout) } else { Err(said()) })
}

/// What it means that git failed, which complained like this.
fn failed(command: &str, said: String) -> BuildError {
    BuildError::of_the_machine(&said, command)
        .unwrap_or(BuildError::Failed { command: command.to_owned(), said })
}

impl Commit {
    /// Looks a revision up.
    ///
    /// # Errors
    /// [`BuildError::NoRevision`] in git's words.
    pub(super) fn of(repository: &Path, asked: &str) -> Result<Commit, BuildError> {
        let failed = |said: String| BuildError::NoRevision {
            path: repository.to_owned(),
            revision: asked.to_owned(),
            said: said.trim_start_matches("fatal: ").to_owned(),
        };
        // Nothing that begins with a dash is an option of git's here.
        let named = |what: String| {
            let mut parse = git(repository);
            parse.args(["rev-parse", "--verify", "--end-of-options"]).arg(what);
            let found = output(parse)?;
            Ok::<_, BuildError>(found.map(|name| String::from_utf8_lossy(&name).trim().to_owned()))
        };
        let commit = named(format!("{asked}^{{commit}}"))?.ok();
        // A branch may be another one by now.
        let tree = named(format!("{}^{{tree}}", commit.as_deref().unwrap_or(asked)))?.map_err(failed)?;
        Ok(Commit { asked: asked.to_owned(), tree, commit })
    }

    /// What people know it by, as facts: its commit, and that commit after the last tag before it. None of a tree.
    pub(super) fn names(&self, repository: &Path) -> Vec<(&'static str, String)> {
        let Some(commit) = &self.commit else { return Vec::new() };
        let mut describe = git(repository);
        describe.args(["describe", "--tags", commit]);
        let tagged = output(describe).ok().and_then(Result::ok);
        let tagged = tagged.map(|text| String::from_utf8_lossy(&text).trim().to_owned());
        let tagged = tagged.filter(|text| !text.is_empty()).map(|text| ("kernel.describe", text));
        [("kernel.commit", commit.clone())].into_iter().chain(tagged).collect()
    }

    /// One file of it; `None`: there is none of this name.
    pub(super) fn file(&self, repository: &Path, name: &str) -> Result<Option<SourceFile>, BuildError> {
        let mut list = git(repository);
        list.args(["ls-tree", &self.tree, "--"]).arg(name);
        // `100755 blob NAME\tPATH`.
        let listed = output(list)?.unwrap_or_default();
        let listed = String::from_utf8_lossy(&listed).into_owned();
        let mut words = listed.split_whitespace();
        let (Some(mode), Some("blob"), Some(blob)) = (words.next(), words.next(), words.next()) else {
            return Ok(None);
        };
        if mode == "120000" {
            return Ok(None);
        }
        let mut show = git(repository);
        show.args(["cat-file", "blob", blob]);
        let failed = |said| failed("git cat-file", said);
        Ok(Some(SourceFile { bytes: output(show)?.map_err(failed)?, executable: mode == "100755" }))
    }

    /// The files in which another commit of the same repository differs from it.
    pub(super) fn differs(&self, repository: &Path, other: &Commit) -> Result<Vec<String>, BuildError> {
        let mut diff = git(repository);
        diff.args(["diff-tree", "-r", "-z", "--name-only", "--no-renames", &self.tree, &other.tree]);
        let failed = |said| failed("git diff-tree", said);
        let names = output(diff)?.map_err(failed)?;
        let names = names.split(|byte| *byte == 0).filter(|name| !name.is_empty());
        Ok(names.map(|name| String::from_utf8_lossy(name).into_owned()).collect())
    }

    /// One directory of it, put below `into`.
    pub(super) fn directory(
        &self,
        repository: &Path,
        name: &str,
        into: &Path,
        watch: &mut Watch<'_>,
    ) -> Result<(), BuildError> {
        let archive = into.join(".archive.tar");
        let mut pack = git(repository);
        pack.args(["archive", "--format=tar", "--output"]).arg(&archive).arg(&self.tree).arg("--").arg(name);
        make::run(pack, watch)?;
        let mut tar = make::tar(into);
        tar.arg("--file").arg(&archive);
        make::run(tar, watch)?;
        std::fs::remove_file(&archive).map_err(BuildError::io("cannot remove", &archive))
    }

    /// Makes `tree` what this commit is; `index` is assay's. Files that are as they should be are not touched, so that make sees only
    /// what differs from the commit before.
    pub(super) fn check_out(
        &self,
        repository: &Path,
        tree: &Path,
        index: &Path,
        watch: &mut Watch<'_>,
    ) -> Result<(), BuildError> {
        let mut directory = git(repository);
        directory.args(["rev-parse", "--absolute-git-dir"]);
        let failed = |said| failed("git rev-parse", said);
        let found = output(directory)?.map_err(failed)?;
        let own = PathBuf::from(String::from_utf8_lossy(&found).trim());
        let mut read = git(tree);
        read.env("GIT_DIR", own).env("GIT_WORK_TREE", tree).env("GIT_INDEX_FILE", index);
        // All files, also where the work tree has some alone.
        read.args(["-c", "core.bare=false", "-c", "core.sparseCheckout=false"]);
        read.args(["read-tree", "--reset", "-u"]).arg(&self.tree);
        make::run(read, watch)
    }
}

/// What differs in the work tree from its commit; new files count once git knows of them (`git add -N`).
pub(super) fn uncommitted(repository: &Path) -> Result<Option<Patch>, BuildError> {
    let mut bare = git(repository);
    bare.args(["rev-parse", "--is-inside-work-tree"]);
    if !output(bare)?.is_ok_and(|said| said.starts_with(b"true")) {
        return Ok(None);
    }
    // git diff brings the index up to date, and the one of the repository stays as it is.
    let mut place = git(repository);
    place.args(["rev-parse", "--git-path", "index"]);
    let failed = |said| failed("git rev-parse", said);
    let index = output(place)?.map_err(failed)?;
    let index = repository.join(String::from_utf8_lossy(&index).trim_end_matches('\n'));
    let scratch = tempfile::tempdir().map_err(BuildError::io("cannot make a directory for", &index))?;
    let copy = scratch.path().join("index");
    let mut diff = git(repository);
    if copied_with_its_time(&index, &copy).is_ok() {
        diff.env("GIT_INDEX_FILE", &copy);
    }
    diff.args([
        "diff", "--no-ext-diff", "--no-textconv", "--no-color", "--no-renames", "--src-prefix=a/",
        "--dst-prefix=b/", "HEAD",
    ]);
    let failed = |said| self::failed("git diff", said);
    let text = output(diff)?.map_err(failed)?;
    let name = repository.join("uncommitted changes");
    (!text.is_empty()).then(|| Patch::of(&name, text)).transpose()
}

/// git reads a file again that may have changed in the second in which the index was written; it tells by the index's own time.
fn copied_with_its_time(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::copy(from, to)?;
    let written = from.metadata()?.modified()?;
    std::fs::File::options().write(true).open(to)?.set_modified(written)
}

#[cfg(test)]
mod tests {
    use super::super::fake;
    use super::*;

    fn repository() -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join("a.c"), "one\n").unwrap();
        for arguments in [
            &["init", "-q"][..],
            &["add", "."],
            &["-c", "user.name=x", "-c", "user.email=x@y", "commit", "-q", "-m", "one"],
            &["tag", "v1"],
        ] {
            output({
                let mut command = git(root.path());
                command.args(arguments);
                command
            })
            .unwrap()
            .unwrap();
        }
        root
    }

    #[test]
    fn a_revision_is_its_tree_and_an_unknown_one_is_said() {
        let root = repository();
        let (commit, head) =
            (Commit::of(root.path(), "v1").unwrap(), Commit::of(root.path(), "HEAD").unwrap());
        assert_eq!(commit.tree, head.tree);
        assert_eq!(commit.file(root.path(), "a.c").unwrap().unwrap().bytes, b"one\n");
        assert!(commit.file(root.path(), "b.c").unwrap().is_none());
        let names = commit.names(root.path());
        assert_eq!(names[0].0, "kernel.commit");
        assert_eq!((names[0].1.len(), &names[1]), (40, &("kernel.describe", "v1".to_owned())));
        for revision in ["v9", "--all"] {
            let error = Commit::of(root.path(), revision).unwrap_err();
            assert!(matches!(error, BuildError::NoRevision { .. }), "{error}");
        }
    }

    #[test]
    fn files_in_which_two_commits_differ_are_named() {
        let root = repository();
        std::fs::write(root.path().join("a.c"), "two\n").unwrap();
        std::fs::write(root.path().join("b c.h"), "new\n").unwrap();
        for arguments in
            [&["add", "."][..], &["-c", "user.name=x", "-c", "user.email=x@y", "commit", "-q", "-m", "two"]]
        {
            let mut command = git(root.path());
            command.args(arguments);
            output(command).unwrap().unwrap();
        }
        let (one, two) = (Commit::of(root.path(), "v1").unwrap(), Commit::of(root.path(), "HEAD").unwrap());
        assert_eq!(one.differs(root.path(), &two).unwrap(), ["a.c", "b c.h"]);
        assert!(two.differs(root.path(), &two).unwrap().is_empty());
    }

    #[test]
    fn a_copied_index_keeps_its_time() {
        let root = tempfile::tempdir().unwrap();
        let [from, to] = ["a", "b"].map(|name| root.path().join(name));
        std::fs::write(&from, "index").unwrap();
        let then = std::time::SystemTime::now() - std::time::Duration::from_secs(100);
        std::fs::File::options().write(true).open(&from).unwrap().set_modified(then).unwrap();
        copied_with_its_time(&from, &to).unwrap();
        assert_eq!(to.metadata().unwrap().modified().unwrap(), then);
    }

    #[test]
    fn what_is_not_committed_is_a_patch() {
        let root = repository();
        assert_eq!(uncommitted(root.path()).unwrap(), None);
        // Written again as it was: git would note in the index that it looked.
        let index = || std::fs::read(root.path().join(".git/index")).unwrap();
        std::fs::write(root.path().join("a.c"), "one\n").unwrap();
        let before = index();
        assert_eq!(uncommitted(root.path()).unwrap(), None);
        assert!(index() == before, "the repository's index was written");
        std::fs::write(root.path().join("a.c"), "two\n").unwrap();
        let patch = uncommitted(root.path()).unwrap().unwrap();
        assert_eq!(patch.touched.into_iter().collect::<Vec<_>>(), ["a.c"]);
        std::fs::write(root.path().join("a.c"), "one\n").unwrap();
        let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(root.path().join("a.c"), executable).unwrap();
        let patch = uncommitted(root.path()).unwrap().unwrap();
        assert_eq!(patch.touched.into_iter().collect::<Vec<_>>(), ["a.c"], "its rights");
    }

    #[test]
    fn no_program_that_the_repository_names_is_run() {
        use std::os::unix::fs::PermissionsExt;
        let root = repository();
        let (script, ran) = (root.path().join(".git/watch"), root.path().join(".git/ran"));
        std::fs::write(&script, format!("#!/bin/sh\ntouch '{}'\nexit 1\n", ran.display())).unwrap();
        std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
        let config = root.path().join(".git/config");
        let text = std::fs::read_to_string(&config).unwrap();
        std::fs::write(&config, format!("{text}[core]\n\tfsmonitor = {}\n", script.display())).unwrap();
        std::fs::write(root.path().join("a.c"), "two\n").unwrap();
        assert!(uncommitted(root.path()).unwrap().is_some());
        assert!(!ran.exists());
    }

    #[test]
    fn a_check_out_elsewhere_leaves_the_repository_alone() {
        let (root, room) = (repository(), tempfile::tempdir().unwrap());
        std::fs::write(root.path().join("a.c"), "mine\n").unwrap();
        let tree = room.path().join("tree");
        std::fs::create_dir(&tree).unwrap();
        let flag = std::sync::atomic::AtomicBool::new(false);
        let mut objects = |_| ();
        let log = room.path().join("log");
        let mut watch = fake::watch(&log, &flag, &mut objects);
        let commit = Commit::of(root.path(), "v1").unwrap();
        let index = room.path().join("index");
        commit.check_out(root.path(), &tree, &index, &mut watch).unwrap();
        assert_eq!(std::fs::read_to_string(tree.join("a.c")).unwrap(), "one\n");
        std::fs::write(tree.join("a.c"), "patched\n").unwrap();
        commit.check_out(root.path(), &tree, &index, &mut watch).unwrap();
        assert_eq!(std::fs::read_to_string(tree.join("a.c")).unwrap(), "one\n", "put back");
        assert_eq!(std::fs::read_to_string(root.path().join("a.c")).unwrap(), "mine\n");
    }
}
