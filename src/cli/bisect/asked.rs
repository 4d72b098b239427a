//! What a new search is over: its steps, and a command that says where they go.
//!
//! Enters: the options. Leaves: names and titles, or what is wrong with them. Nothing is run but git, which only reads.

use std::path::PathBuf;

use super::steps::names_the_step;
use super::{Args, revisions, steps};
use crate::cli::Failure;
use crate::units::counted;

/// Most steps: more cells than this no run has.
const MOST_STEPS: usize = 1000;

/// What a new search is over.
pub(super) struct Asked {
    /// Names of the steps, the good end first.
    pub(super) names: Vec<String>,
    /// What they are about; empty where nothing is known.
    pub(super) titles: Vec<String>,
    /// Those that are merges.
    pub(super) merges: Vec<u32>,
    /// The repository's own directory, where the steps are commits.
    pub(super) git_dir: Option<PathBuf>,
}

impl Asked {
    /// What the command line asks for.
    ///
    /// # Errors
    /// A [`Failure`] with exit code 2: no steps, too few, some twice, or a command that does not name them.
    pub(super) fn of(args: &Args) -> Result<Asked, Failure> {
        let asked = match (&args.steps, &args.source) {
            (Some(steps), _) => {
                let names: Vec<String> = steps.split_whitespace().map(str::to_owned).collect();
                Asked { names, titles: Vec::new(), merges: Vec::new(), git_dir: None }
            }
            (None, Some(source)) => {
                let word = |word: &Option<String>| word.clone().unwrap_or_default();
                let found = revisions::between(source, &word(&args.good), &word(&args.bad))?;
                let (names, titles, merges) = (found.commits, found.subjects, found.merges);
                Asked { names, titles, merges, git_dir: Some(found.git_dir) }
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

    fn check(&self, args: &Args) -> Result<(), Failure> {
        let of_git = self.git_dir.is_some();
        match self.names.as_slice() {
            [] | [_] => {
                return Err(Failure::request(format!(
                    "--steps names {}",
                    counted(self.names.len() as u64, "step")
                ))
                .hint("name at least three with blanks between: the good one first, the bad one last"));
            }
            [_, _] => {
                let what = if of_git {
                    "there is one commit from --good to --bad"
                } else {
                    "--steps names the ends alone"
                };
                return Err(Failure::request(format!("{what}: nothing lies between to be searched"))
                    .hint("assay run --vary step=GOOD,BAD -- prog ${step} compares two"));
            }
            names if names.len() > MOST_STEPS => {
                return Err(Failure::request(format!("{} steps are more than {MOST_STEPS}", names.len()))
                    .hint("name ends that are nearer to each other, or a part of the steps"));
            }
            names => {
                let mut seen = std::collections::BTreeSet::new();
                if let Some(twice) = names.iter().find(|name| !seen.insert(name.as_str())) {
                    return Err(Failure::request(format!("the step {twice} is given twice"))
                        .hint("each step is one place in the row; give each a name of its own"));
                }
            }
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
