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
    /// Those that have a second parent: what came with them are the commits of a branch.
    pub(super) merges: Vec<u32>,
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
    let tree = |commit: &str| git(source, &["rev-parse", &format!("{commit}^{{tree}}")]);
    if tree(&first)? == tree(&last)? {
        return Err(Failure::request(format!("--good {good} and --bad {bad} have the same files"))
            .hint("what changed between them was taken back: name ends that differ"));
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
    let listed = commits(source, &["--first-parent", "--reverse", &format!("{first}..{last}")])?;
    // The good end must be on that line itself: one on a branch that was merged is an ancestor, and not the state before the first step.
    if let Some(left) =
        listed.first().and_then(|oldest| oldest.parent.as_deref()).filter(|left| *left != first)
    {
        return Err(Failure::request(format!(
            "--good {good} is on a branch that was merged, not on the first-parent line of --bad {bad}"
        ))
        .hint(format!(
            "--good {} is the last commit of that line that {good} contains",
            left.get(..12).unwrap_or(left)
        )));
    }
    let all: Vec<Listed> = commits(source, &["--max-count=1", &first])?.into_iter().chain(listed).collect();
    let merges = (0..).zip(&all).filter(|(_, one)| one.is_merge).map(|(step, _)| step).collect();
    let (commits, subjects) = all.into_iter().map(|one| (one.name, one.subject)).unzip();
    Ok(Revisions { git_dir, commits, subjects, merges })
}

/// A commit of a line.
struct Listed {
    name: String,
    /// The first one; a root has none.
    parent: Option<String>,
    is_merge: bool,
    subject: String,
}

/// What `git rev-list` lists, whatever is set for `git log`.
fn commits(source: &Path, which: &[&str]) -> Result<Vec<Listed>, Failure> {
    let words = [&["rev-list", "--format=%H%x09%P%x09%s"], which].concat();
    let listed = git(source, &words)?;
    let listed = listed.map_err(|why| Failure::request(format!("--source {}: {why}", source.display())))?;
    let of = |line: &str| {
        let mut words = line.splitn(3, '\t');
        let (name, parents) = (words.next()?.to_owned(), words.next()?);
        let parent = parents.split(' ').next().filter(|parent| !parent.is_empty()).map(str::to_owned);
        let is_merge = parents.contains(' ');
        Some(Listed { name, parent, is_merge, subject: words.next().unwrap_or_default().to_owned() })
    };
    // Each has a line `commit NAME` before it, without tabs.
    Ok(listed.lines().filter_map(of).collect())
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A line of four commits, `0` to `3`, into whose `2` a branch of one commit, `side`, was merged, which left it at `0`.
    fn repository() -> tempfile::TempDir {
        let place = tempfile::tempdir().unwrap();
        let run = |words: &[&str]| {
            let who = ["-c", "user.name=x", "-c", "user.email=x@y", "-c", "init.defaultBranch=main"];
            let words = [&who[..], words].concat();
            git(place.path(), &words).unwrap().unwrap();
        };
        let commit = |name: &str| {
            std::fs::write(place.path().join(name), name).unwrap();
            run(&["add", "."]);
            run(&["commit", "-q", "-m", &format!("subject\u{e4} {name}")]);
            run(&["tag", name]);
        };
        run(&["init", "-q"]);
        commit("0");
        run(&["checkout", "-q", "-b", "branch"]);
        commit("side");
        run(&["checkout", "-q", "main"]);
        commit("1");
        run(&["merge", "-q", "--no-ff", "-m", "merged", "branch"]);
        run(&["tag", "2"]);
        commit("3");
        place
    }

    #[test]
    fn commits_are_of_the_first_parent_line_both_ends_on_it() {
        if crate::sys::find_program("git").is_none() {
            return;
        }
        let place = repository();
        let found = between(place.path(), "0", "3").unwrap();
        assert_eq!(found.subjects, ["subject\u{e4} 0", "subject\u{e4} 1", "merged", "subject\u{e4} 3"]);
        assert_eq!((found.commits.len(), found.merges), (4, vec![2]));
        let error = between(place.path(), "side", "3").map(drop).unwrap_err();
        let said = format!("{error:?}");
        assert!(said.contains("on a branch that was merged"), "{said}");
        assert!(said.contains(&format!("--good {}", &found.commits[0][..12])), "{said}");
        assert!(between(place.path(), "3", "0").is_err());
        git(place.path(), &["-c", "user.name=x", "-c", "user.email=x@y", "revert", "--no-edit", "HEAD"])
            .unwrap()
            .unwrap();
        let error = between(place.path(), "2", "HEAD").map(drop).unwrap_err();
        assert!(format!("{error:?}").contains("--good 2 and --bad HEAD have the same files"), "{error:?}");
    }
}
