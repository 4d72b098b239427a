//! Commits of a git repository as steps: those on the first-parent line between the good one and the bad one.
//!
//! Enters: the repository, two revisions, and the paths of what may have changed. Leaves: commits with their subjects, and the files that
//! differ between them. The repository is only read.

use std::collections::BTreeSet;
use std::io::{Seek, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::cli::Failure;
use crate::sys::clean_command;

/// Commits, the oldest first.
pub(super) struct Revisions {
    /// The repository's own directory.
    pub(super) git_dir: PathBuf,
    /// The commits.
    pub(super) commits: Vec<Commit>,
    /// How many of the line change none of the paths.
    pub(super) beside_paths: u32,
    /// The good end is the later one.
    pub(super) for_better: bool,
}

/// A commit that is a step.
pub(super) struct Commit {
    /// Its full name.
    pub(super) name: String,
    /// What it is about.
    pub(super) subject: String,
    /// It has a second parent: what came with it are the commits of a branch.
    pub(super) is_merge: bool,
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

/// The commits between two revisions, both with them; where paths are given, those that change one of them, and the ends.
///
/// # Errors
/// A [`Failure`] with exit code 2: no such revision, no way from one to the other, or nothing that changes the paths.
pub(super) fn between(source: &Path, good: &str, bad: &str, paths: &[String]) -> Result<Revisions, Failure> {
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
    let for_better = !is_before(&first, &last)?;
    if for_better && !is_before(&last, &first)? {
        return Err(Failure::request(format!(
            "neither of --good {good} and --bad {bad} is an ancestor of the other"
        ))
        .hint("name two revisions of one line of development"));
    }
    let mut ends = [("--good", good, first), ("--bad", bad, last)];
    if for_better {
        ends.reverse();
    }
    let [(option, older, first), (later_option, later, last)] = ends;
    let listed = commits(source, &["--first-parent", "--reverse", &format!("{first}..{last}")])?;
    // The older end must be on that line itself: one on a branch that was merged is an ancestor, and not the state before the first step.
    if let Some(left) =
        listed.first().and_then(|oldest| oldest.parent.as_deref()).filter(|left| *left != first)
    {
        return Err(Failure::request(format!(
            "{option} {older} is on a branch that was merged, not on the first-parent line of {later_option} {later}"
        ))
        .hint(format!(
            "{option} {} is the last commit of that line that {older} contains",
            left.get(..12).unwrap_or(left)
        )));
    }
    let on_line = listed.len();
    let between = changing(source, (&first, &last), paths, listed)?;
    let beside_paths = u32::try_from(on_line - between.len()).unwrap_or(u32::MAX);
    let oldest = commits(source, &["--max-count=1", &first])?;
    let commits = oldest.into_iter().chain(between).map(|listed| listed.commit).collect();
    Ok(Revisions { git_dir, commits, beside_paths, for_better })
}

/// Those that change one of the paths, and the last one; all, where there are no paths.
fn changing(
    source: &Path,
    (first, last): (&str, &str),
    paths: &[String],
    listed: Vec<Listed>,
) -> Result<Vec<Listed>, Failure> {
    if paths.is_empty() {
        return Ok(listed);
    }
    let range = format!("{first}..{last}");
    let mut words = vec!["rev-list", "--first-parent", &range, "--"];
    words.extend(paths.iter().map(String::as_str));
    let named = git(source, &words)?;
    let named = named.map_err(|why| Failure::request(format!("--path {}: {why}", paths.join(" "))))?;
    let named: BTreeSet<&str> = named.lines().collect();
    if named.is_empty() {
        return Err(Failure::request(format!(
            "no commit between --good and --bad changes {}",
            paths.join(" or ")
        ))
        .hint("--path is a file or directory below --source; without it all commits are searched"));
    }
    let is_kept = |one: &Listed| named.contains(one.commit.name.as_str()) || one.commit.name == last;
    Ok(listed.into_iter().filter(is_kept).collect())
}

/// The files in which each commit differs from the one before it in the list; of the first, none.
///
/// # Errors
/// A [`Failure`]: git failed.
pub(super) fn differing(source: &Path, commits: &[Commit]) -> Result<Vec<Vec<String>>, Failure> {
    let failed = |error| Failure::tool(format!("cannot ask git what commits change: {error}"));
    let mut pairs = tempfile::tempfile().map_err(failed)?;
    // The second of a pair is taken as the parent of the first.
    for pair in commits.windows(2) {
        writeln!(pairs, "{} {}", pair[1].name, pair[0].name).map_err(failed)?;
    }
    pairs.rewind().map_err(failed)?;
    let mut diff = command(source);
    diff.args(["-c", "core.quotePath=false", "diff-tree", "--stdin", "-r", "--always", "--name-only"]);
    let listed = said(diff.arg("--no-renames").stdin(pairs))?;
    let listed = listed.map_err(|why| Failure::request(format!("--source {}: {why}", source.display())))?;
    let mut all: Vec<Vec<String>> = vec![Vec::new()];
    for line in listed.lines() {
        if commits.get(all.len()).is_some_and(|next| next.name == line) {
            all.push(Vec::new());
        } else if let Some(files) = all.last_mut() {
            files.push(line.to_owned());
        }
    }
    if all.len() == commits.len() {
        return Ok(all);
    }
    Err(Failure::tool("git does not say what each commit changes"))
}

/// The names of all files of a commit.
///
/// # Errors
/// A [`Failure`]: git failed.
pub(super) fn files(source: &Path, commit: &Commit) -> Result<BTreeSet<String>, Failure> {
    let listed = git(source, &["ls-tree", "-r", "-z", "--full-tree", "--name-only", &commit.name])?;
    let listed = listed.map_err(|why| Failure::request(format!("--source {}: {why}", source.display())))?;
    Ok(listed.split('\0').filter(|name| !name.is_empty()).map(str::to_owned).collect())
}

/// A commit of a line.
struct Listed {
    commit: Commit,
    /// The first one; a root has none.
    parent: Option<String>,
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
        let commit = Commit { name, is_merge, subject: words.next().unwrap_or_default().to_owned() };
        Some(Listed { commit, parent })
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
    said(command(source).args(words).stdin(Stdio::null()))
}

fn command(source: &Path) -> Command {
    let mut command = clean_command("git");
    command.arg("-C").arg(source);
    command
}

fn said(command: &mut Command) -> Result<Result<String, String>, Failure> {
    let ended = command.output().map_err(|error| {
        Failure::request(format!("git cannot be started: {error}")).hint("sudo apt install git")
    })?;
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
        let of = |good: &str, bad: &str, paths: &[&str]| {
            let paths: Vec<String> = paths.iter().map(|path| (*path).to_owned()).collect();
            between(place.path(), good, bad, &paths)
        };
        let found = of("0", "3", &[]).unwrap();
        let subjects = |found: &Revisions| -> Vec<String> {
            found.commits.iter().map(|commit| commit.subject.clone()).collect()
        };
        assert_eq!(subjects(&found), ["subject\u{e4} 0", "subject\u{e4} 1", "merged", "subject\u{e4} 3"]);
        let merges = found.commits.iter().map(|commit| commit.is_merge).collect::<Vec<_>>();
        assert_eq!((merges, found.beside_paths), (vec![false, false, true, false], 0));
        let differing = differing(place.path(), &found.commits).unwrap();
        assert_eq!(differing, [vec![], vec!["1"], vec!["side"], vec!["3"]]);
        assert_eq!(
            files(place.path(), &found.commits[1]).unwrap().into_iter().collect::<Vec<_>>(),
            ["0", "1"]
        );
        let error = of("side", "3", &[]).map(drop).unwrap_err();
        let said = format!("{error:?}");
        assert!(said.contains("on a branch that was merged"), "{said}");
        assert!(said.contains(&format!("--good {}", &found.commits[0].name[..12])), "{said}");
        let turned = of("3", "0", &[]).unwrap();
        assert_eq!((subjects(&turned), turned.for_better, found.for_better), (subjects(&found), true, false));
        let said = format!("{:?}", of("3", "side", &[]).map(drop).unwrap_err());
        assert!(
            said.contains(
                "--bad side is on a branch that was merged, not on the first-parent line of --good 3"
            ),
            "{said}"
        );
        assert!(format!("{:?}", of("1", "side", &[]).map(drop).unwrap_err()).contains("neither of"));
        let limited = of("0", "3", &["side"]).unwrap();
        assert_eq!(subjects(&limited), ["subject\u{e4} 0", "merged", "subject\u{e4} 3"]);
        assert_eq!(limited.beside_paths, 1);
        let nothing = format!("{:?}", of("0", "3", &["none", "0"]).map(drop).unwrap_err());
        assert!(nothing.contains("no commit between --good and --bad changes none or 0"), "{nothing}");
        git(place.path(), &["-c", "user.name=x", "-c", "user.email=x@y", "revert", "--no-edit", "HEAD"])
            .unwrap()
            .unwrap();
        let error = of("2", "HEAD", &[]).map(drop).unwrap_err();
        assert!(format!("{error:?}").contains("--good 2 and --bad HEAD have the same files"), "{error:?}");
    }
}
