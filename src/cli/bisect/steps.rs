//! Steps that are names, or commits of a git repository, tried by a command.
//!
//! Enters: the names, the command that builds a step. Leaves: requests in which `{step}` and `{tree}` are what they are of that step. A
//! kind of step that is made in another way (a kernel, say) is another implementation of [`Arms`].

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use crate::cli::run::arms::{Arms, Made};
use crate::cli::run::ended_by;
use crate::engine::EngineKind;
use crate::kernel_build::BuildError;
use crate::launch::{Answer, LaunchError, Launcher, Request};

/// What stands for the step.
pub(super) const STEP: &str = "{step}";
/// What stands for the directory with the step's files.
pub(super) const TREE: &str = "{tree}";
/// Lines of a failed build that are kept.
const LAST_LINES: usize = 12;

/// Steps of a command.
pub(super) struct Steps {
    /// By step, the good end first.
    pub(super) names: Vec<String>,
    /// Shell command that makes a step ready.
    pub(super) build: Option<String>,
    /// Of commits: the repository, and where their files go.
    pub(super) commits: Option<Commits>,
}

/// Where commits are from and where their files are laid out.
pub(super) struct Commits {
    /// The repository's own directory, `.git`; it is only read.
    pub(super) git_dir: PathBuf,
    /// A directory of assay's own.
    pub(super) place: PathBuf,
}

/// Whether a text says which step it is of.
pub(super) fn names_the_step(text: &str) -> bool {
    [STEP, TREE, "$step"].iter().any(|mark| text.contains(mark))
}

impl Steps {
    fn tree(&self, step: usize) -> Option<String> {
        let commits = self.commits.as_ref()?;
        Some(commits.place.join(format!("step-{step}")).to_string_lossy().into_owned())
    }

    /// The text with what stands for the step replaced, also where it is written as a variable.
    fn filled(&self, step: usize, text: &str) -> String {
        let name = &self.names[step];
        let text = text.replace("${step}", name).replace(STEP, name);
        match self.tree(step) {
            Some(tree) => text.replace("${tree}", &tree).replace(TREE, &tree),
            None => text,
        }
    }

    /// What is done before a step's first trial; `None`: nothing.
    fn script(&self, step: usize) -> Option<String> {
        let build = self.build.as_ref().map(|build| self.filled(step, build));
        let (Some(commits), Some(tree)) = (&self.commits, self.tree(step)) else { return build };
        let quoted = |text: &str| format!("'{}'", text.replace('\'', r"'\''"));
        let (tree, git_dir) = (quoted(&tree), quoted(&commits.git_dir.to_string_lossy()));
        let commit = quoted(&self.names[step]);
        // An index of its own: nothing is written to the repository or to its files. What a build asks git is not answered by, nor done
        // to, a repository that the directory happens to lie in.
        // Nor are its hooks run, nor a program that watches its files, and its work tree may have some files alone.
        let git = format!(
            "git -c core.hooksPath=/dev/null -c core.fsmonitor=false -c core.sparseCheckout=false --git-dir={git_dir} --work-tree={tree}"
        );
        let lay_out = format!(
            "rm -rf {tree} && mkdir {tree} && export GIT_INDEX_FILE={tree}.index && {git} read-tree {commit} && \
             cd {tree} && {git} checkout-index --all --force && unset GIT_INDEX_FILE && \
             GIT_CEILING_DIRECTORIES=$(dirname \"$PWD\") && export GIT_CEILING_DIRECTORIES"
        );
        Some(match build {
            Some(build) => format!("{lay_out} || exit 1\n{build}"),
            None => lay_out,
        })
    }
}

impl Arms for Steps {
    fn make(
        &mut self,
        step: usize,
        trial: &Request,
        launcher: &mut dyn Launcher,
        cancelled: &AtomicBool,
    ) -> Result<Made, LaunchError> {
        let Some(script) = self.script(step) else { return Ok(Made::Ready) };
        let mut request = self.trial(step, trial.clone());
        request.engine = EngineKind::Command;
        request.task.command = ["sh", "-c", &script].map(str::to_owned).to_vec();
        request.task.patterns = Vec::new();
        request.task.timeout_s = None;
        request.target.setup = None;
        request.target.drop_caches = false;
        request.target.settle_ms = Some(0);
        request.observe = Vec::new();
        (request.before, request.after) = (None, None);
        let cannot = |reason: String| Made::Cannot(format!("it cannot be built: {reason}"));
        Ok(match launcher.launch(&request, cancelled)?.answer {
            Answer::Done(_) => Made::Ready,
            Answer::Unsupported { reason } => cannot(reason),
            Answer::Failed { reason, output, .. } => {
                // The next steps would fail as well, and this one not, once there is space or memory.
                if let Some(lack) = BuildError::of_the_machine(&output, "the step") {
                    return Ok(ended_by(&lack));
                }
                let lines: Vec<&str> = output.lines().collect();
                let last = &lines[lines.len().saturating_sub(LAST_LINES)..];
                cannot(
                    std::iter::once(reason.as_str())
                        .chain(last.iter().copied())
                        .collect::<Vec<_>>()
                        .join("\n"),
                )
            }
        })
    }

    fn trial(&self, step: usize, mut request: Request) -> Request {
        request.task.command.iter_mut().for_each(|word| *word = self.filled(step, word));
        for hook in [&mut request.before, &mut request.after].into_iter().flatten() {
            *hook = self.filled(step, hook);
        }
        if let Some(tree) = self.tree(step) {
            request.task.variables.push(("tree".to_owned(), tree));
        }
        request
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn laying_out_a_commit_runs_nothing_of_the_repository() {
        use std::os::unix::fs::PermissionsExt;
        if crate::sys::find_program("git").is_none() {
            return;
        }
        let place = tempfile::tempdir().unwrap();
        let root = place.path().join("repository");
        std::fs::create_dir_all(root.join("sub")).unwrap();
        let git = |words: &[&str]| {
            let mut git = crate::sys::clean_command("git");
            git.arg("-C").arg(&root).args(["-c", "user.name=x", "-c", "user.email=x@y"]).args(words);
            assert!(git.output().unwrap().status.success(), "{words:?}");
        };
        std::fs::write(root.join("sub/a"), "a").unwrap();
        git(&["init", "-q"]);
        git(&["add", "."]);
        git(&["commit", "-q", "-m", "x"]);
        let (hook, ran) = (root.join(".git/hooks/post-index-change"), place.path().join("ran"));
        std::fs::create_dir_all(root.join(".git/hooks")).unwrap();
        std::fs::write(&hook, format!("#!/bin/sh\ntouch '{}'\n", ran.display())).unwrap();
        std::fs::set_permissions(&hook, std::fs::Permissions::from_mode(0o755)).unwrap();
        let commits = Commits { git_dir: root.join(".git"), place: place.path().to_owned() };
        let steps = Steps { names: vec!["HEAD".to_owned()], build: None, commits: Some(commits) };
        let script = steps.script(0).unwrap();
        let done = crate::sys::clean_command("sh").args(["-c", &script]).output().unwrap();
        assert!(done.status.success(), "{done:?}");
        assert!(place.path().join("step-0/sub/a").is_file() && !ran.exists());
    }

    #[test]
    fn marks_are_replaced_however_they_are_written() {
        let names = ["a", "b"].map(str::to_owned).to_vec();
        let steps = Steps { names: names.clone(), build: Some("make {step}".to_owned()), commits: None };
        assert_eq!(steps.filled(1, "./{step} ${step} $step {tree}"), "./b b $step {tree}");
        assert_eq!(steps.script(0).as_deref(), Some("make a"));
        assert!(names_the_step("x-{step}") && names_the_step("${step}") && !names_the_step("./step"));
        let commits = Commits { git_dir: "/r/it's/.git".into(), place: "/w".into() };
        let steps = Steps { names, build: None, commits: Some(commits) };
        assert_eq!(steps.filled(1, "{tree}/p"), "/w/step-1/p");
        let script = steps.script(1).unwrap();
        assert!(
            script.contains(r"--git-dir='/r/it'\''s/.git'") && script.contains("read-tree 'b'"),
            "{script}"
        );
    }
}
