//! What a new search is over: its steps, and a command that says where they go.
//!
//! Enters: the options; of kernels, what those of the ends were made of. Leaves: names and titles, or what is wrong with them. Nothing is
//! run but git, which only reads.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::revisions::{self, Commit};
use super::steps::names_the_step;
use super::{Args, steps};
use crate::cli::Failure;
use crate::kernel_build::MadeOf;
use crate::record::LeftOut;
use crate::units::counted;

/// Most steps: more cells than this no run has.
const MOST_STEPS: usize = 1000;

/// What a new search is over.
pub(super) struct Asked {
    /// Names of the steps, in their order.
    pub(super) names: Vec<String>,
    /// The same as commits; empty where they are none.
    commits: Vec<Commit>,
    /// The repository's own directory, where the steps are commits.
    pub(super) git_dir: Option<PathBuf>,
    /// Commits that are no steps.
    pub(super) left_out: LeftOut,
    /// What made it better is searched for: the first step is the bad end.
    pub(super) for_better: bool,
}

impl Asked {
    /// What the command line asks for.
    ///
    /// # Errors
    /// A [`Failure`] with exit code 2: no steps, some twice, or a command that does not name them.
    pub(super) fn of(args: &Args) -> Result<Asked, Failure> {
        let asked = match (&args.steps, &args.source) {
            (Some(steps), _) => {
                let names: Vec<String> = steps.split_whitespace().map(str::to_owned).collect();
                let left_out = LeftOut::default();
                Asked { names, commits: Vec::new(), git_dir: None, left_out, for_better: args.better }
            }
            (None, Some(source)) => {
                let word = |word: &Option<String>| word.clone().unwrap_or_default();
                let found = revisions::between(source, &word(&args.good), &word(&args.bad), &args.path)?;
                let left_out = LeftOut { beside_paths: found.beside_paths, not_compiled: 0 };
                let asked = Asked {
                    names: Vec::new(),
                    commits: Vec::new(),
                    git_dir: Some(found.git_dir),
                    left_out,
                    for_better: found.for_better,
                };
                asked.with(found.commits)
            }
            (None, None) => {
                return Err(Failure::request("nothing says what the steps are").hint(
                    "assay bisect --steps 'a b c' -- prog {step}; or: --source GIT --good REV --bad REV -- {tree}/prog",
                ));
            }
        };
        asked.check(args)?;
        Ok(asked)
    }

    fn with(self, commits: Vec<Commit>) -> Asked {
        let names = commits.iter().map(|commit| commit.name.clone()).collect();
        Asked { names, commits, ..self }
    }

    /// What the steps are about; empty where nothing is known.
    pub(super) fn titles(&self) -> Vec<String> {
        self.commits.iter().map(|commit| commit.subject.clone()).collect()
    }

    /// Those that are merges.
    pub(super) fn merges(&self) -> Vec<u32> {
        (0..).zip(&self.commits).filter(|(_, commit)| commit.is_merge).map(|(step, _)| step).collect()
    }

    /// The same without the commits between the ends that change nothing of what the kernels of the ends were made of.
    ///
    /// # Errors
    /// A [`Failure`]: git does not say what they change.
    pub(super) fn that_are_compiled(self, source: &Path, ends: MadeOf) -> Result<Asked, Failure> {
        let last = self.commits.len().saturating_sub(1);
        let of_ends = [self.commits.first(), self.commits.last()].into_iter().flatten();
        let files = of_ends.map(|commit| revisions::files(source, commit)).collect::<Result<Vec<_>, _>>()?;
        let ends = ends.in_sources(files);
        let differing = revisions::differing(source, &self.commits)?;
        let (mut left_out, mut kept) = (self.left_out, Vec::new());
        let all = self.commits;
        let asked = Asked { commits: Vec::new(), ..self };
        for (at, (commit, files)) in all.into_iter().zip(&differing).enumerate() {
            if at == 0 || at == last || ends.may_change_with(files) {
                kept.push(commit);
            } else {
                left_out.not_compiled += 1;
            }
        }
        Ok(Asked { left_out, ..asked }.with(kept))
    }

    /// Whether there are enough steps, and not too many.
    ///
    /// # Errors
    /// A [`Failure`] with exit code 2.
    pub(super) fn can_be_searched(&self, args: &Args) -> Result<(), Failure> {
        match self.names.as_slice() {
            [] | [_] => {
                Err(Failure::request(format!("--steps names {}", counted(self.names.len() as u64, "step")))
                    .hint("name at least three with blanks between: the good one first, the bad one last"))
            }
            [_, _] => {
                Err(Failure::request(format!("{}: nothing lies between to be searched", self.why_no_step()))
                    .hint(if args.is_of_kernels() {
                        "assay run JOB --source GIT --vary rev=GOOD,BAD compares two"
                    } else {
                        "assay run --vary step=GOOD,BAD -- prog ${step} compares two"
                    }))
            }
            names if names.len() > MOST_STEPS => {
                let failure = Failure::request(format!("{} steps are more than {MOST_STEPS}", names.len()));
                Err(failure.hint(if self.git_dir.is_some() {
                    "name ends that are nearer to each other, or --path FILE|DIRECTORY: only commits that change it are searched"
                } else {
                    "name ends that are nearer to each other, or a part of the steps"
                }))
            }
            _ => Ok(()),
        }
    }

    /// Why there are the ends alone.
    fn why_no_step(&self) -> String {
        let LeftOut { beside_paths, not_compiled } = self.left_out;
        let what = match (beside_paths, not_compiled) {
            (0, 0) if self.git_dir.is_none() => return "--steps names the ends alone".to_owned(),
            (0, 0) => return "there is one commit between --good and --bad".to_owned(),
            (_, 0) => "one of the paths",
            (0, _) => "what the kernels of the ends are made of",
            _ => "one of the paths and what the kernels of the ends are made of",
        };
        let all = u64::from(beside_paths) + u64::from(not_compiled);
        format!("none of the {} between --good and --bad changes {what}", counted(all, "commit"))
    }

    fn check(&self, args: &Args) -> Result<(), Failure> {
        let of_git = self.git_dir.is_some();
        // Of kernels some commits are left out once it is known what the ends are made of.
        if !args.is_of_kernels() || self.names.len() < 3 {
            self.can_be_searched(args)?;
        }
        let mut seen = BTreeSet::new();
        if let Some(twice) = self.names.iter().find(|name| !seen.insert(name.as_str())) {
            return Err(Failure::request(format!("the step {twice} is given twice"))
                .hint("each step is one place in the row; give them different names"));
        }
        if args.is_of_kernels() {
            let runs = args.file.is_some() || args.engine.is_some() || !args.command.is_empty();
            return match &args.build {
                None if !runs => Err(Failure::request("nothing says what is run on each kernel")
                    .hint("name a fio job, --engine dbench, or a command behind `--`")),
                Some(_) => Err(Failure::request("--build is of programs, and the steps are kernels")
                    .hint("leave it out: assay builds kernels itself; -t and --engine are of kernels only")),
                None => Ok(()),
            };
        }
        if args.command.is_empty() {
            return Err(Failure::request("no command is given")
                .hint("write it behind `--`: assay bisect --steps 'a b c' -- prog {step}"));
        }
        let texts = args.command.iter().chain(&args.before);
        if !texts.clone().any(|text| names_the_step(text)) {
            return Err(Failure::request("{step} is missing in the command: every step would run the same")
                .hint(if of_git {
                    "write {tree}, the directory with the commit's files: -- {tree}/prog"
                } else {
                    "write where the step goes: -- ./prog-{step}; a --build must leave each step in a place of its own"
                }));
        }
        if !of_git && texts.chain(&args.build).any(|text| text.contains(steps::TREE)) {
            return Err(Failure::request(
                "{tree} is the directory with a commit's files, and there are no commits",
            )
            .hint("write {step}, or name a repository: --source GIT --good REV --bad REV"));
        }
        Ok(())
    }
}
