//! Commits of a git repository as steps: those on the first-parent line from the good one to the bad one.
//!
//! Enters: the repository and two revisions. Leaves: commits with their subjects. The repository is only read.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::cli::Failure;
use crate::sys::clean_command;

/// Commits, the good end first.
pub(super) struct Revisions {
    /// The repository's own directory.
    pub(super) git_dir: PathBuf,
    /// Full names.
    pub(super) commits: Vec<String>,
    /// Their subjects.
    pub(super) subjects: Vec<String>,
}

/// Where the repository's own files are.
///
/// # Errors
/// A [`Failure`] with exit code 2: no git, no repository.
pub(super) fn git_dir(source: &Path) -> Result<PathBuf, Failure> {
    let said = git(source, &["rev-parse", "--absolute-git-dir"])?.map_err(|why| {
        Failure::request(format!("--source {}: {why}", source.display()))
            .hint("name the directory of a git repository; --steps 'a b c' takes any other steps")
    })?;
    Ok(PathBuf::from(said.trim_end_matches('\n')))
}

/// The commits between two revisions, both with them.
///
/// # Errors
/// A [`Failure`] with exit code 2: no such revision, or no way from one to the other.
pub(super) fn between(source: &Path, good: &str, bad: &str) -> Result<Revisions, Failure> {
    let git_dir = git_dir(source)?;
    let (first, last) = (commit(source, "--good", good)?, commit(source, "--bad", bad)?);
    if first == last {
        return Err(Failure::request(format!("--good {good} and --bad {bad} are the same commit"))
            .hint("name the last revision that was good and the first that is known to be bad"));
    }
    let is_before = |one: &str, other: &str| {
        git(source, &["merge-base", "--is-ancestor", one, other]).map(|said| said.is_ok())
    };
    if !is_before(&first, &last)? {
        let turned = is_before(&last, &first)?;
        return Err(Failure::request(format!("--good {good} is not an ancestor of --bad {bad}")).hint(
            if turned {
                "they are the other way round: exchange --good and --bad"
            } else {
                "name two revisions of one line of development"
            },
        ));
    }
    let range = format!("{first}..{last}");
    let listed = git(source, &["log", "--first-parent", "--reverse", "--format=%H %s", &range])?;
    let listed = listed.map_err(|why| Failure::request(format!("--source {}: {why}", source.display())))?;
    let subject = git(source, &["log", "-1", "--format=%s", &first])?.unwrap_or_default();
    let mut revisions =
        Revisions { git_dir, commits: vec![first], subjects: vec![subject.trim().to_owned()] };
    for line in listed.lines() {
        let (commit, subject) = line.split_once(' ').unwrap_or((line, ""));
        revisions.commits.push(commit.to_owned());
        revisions.subjects.push(subject.to_owned());
    }
    Ok(revisions)
}

fn commit(source: &Path, option: &str, revision: &str) -> Result<String, Failure> {
    let wanted = format!("{revision}^{{commit}}");
    let found = git(source, &["rev-parse", "--verify", "--quiet", "--end-of-options", &wanted])?;
    found.map(|name| name.trim().to_owned()).map_err(|_| {
        Failure::request(format!("{option} {revision}: no such revision in {}", source.display()))
            .hint(format!("git -C {} log --oneline lists what there is", source.display()))
    })
}

/// What git prints, or the last line of its complaint.
fn git(source: &Path, words: &[&str]) -> Result<Result<String, String>, Failure> {
    let ended =
        clean_command("git").arg("-C").arg(source).args(words).stdin(Stdio::null()).output().map_err(
            |error| Failure::request(format!("git cannot be started: {error}")).hint("sudo apt install git"),
        )?;
    if ended.status.success() {
        return Ok(Ok(String::from_utf8_lossy(&ended.stdout).into_owned()));
    }
    let said = String::from_utf8_lossy(&ended.stderr);
    Ok(Err(said.lines().last().unwrap_or("git failed").trim_start_matches("fatal: ").to_owned()))
}
