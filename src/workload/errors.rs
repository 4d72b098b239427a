//! What is wrong with a job file: every problem with its place, all at once.
//!
//! Enters: problems found while reading or resolving. Leaves: one error that lists them, and the hint that helps.

use std::fmt;
use std::sync::Arc;

/// A line of a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The file, as the user named it.
    pub origin: Arc<str>,
    /// Line from 1; 0: the file as a whole.
    pub line: u32,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line == 0 { write!(f, "{}", self.origin) } else { write!(f, "{}:{}", self.origin, self.line) }
    }
}

/// What kind of problem, so that the right hint is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProblemKind {
    /// The text is no job file.
    Syntax,
    /// No release of fio knows the option.
    UnknownOption,
    /// The option is known, its value is not one.
    BadValue,
    /// Something needed is not there, or two things exclude each other.
    Inconsistent,
    /// fio has it, the native engine does not.
    NotNative,
    /// A `${NAME}` has no value.
    UnsetVariable,
}

/// One thing wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Where.
    pub place: Place,
    /// What kind.
    pub kind: ProblemKind,
    /// What is wrong and what would be right.
    pub message: String,
}

/// Everything wrong with a job file, in file order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkloadErrors {
    /// At least one.
    pub problems: Vec<Problem>,
}

impl WorkloadErrors {
    /// One problem alone.
    #[must_use]
    pub fn one(place: Place, kind: ProblemKind, message: impl Into<String>) -> WorkloadErrors {
        WorkloadErrors { problems: vec![Problem { place, kind, message: message.into() }] }
    }

    /// `Ok` when there is no problem, else all of them in file order, each once.
    pub(super) fn or(mut problems: Vec<Problem>) -> Result<(), WorkloadErrors> {
        if problems.is_empty() {
            return Ok(());
        }
        problems.sort_by(|a, b| a.place.cmp(&b.place));
        // A setting of a [global] section is looked at once for each job below it.
        problems.dedup();
        Err(WorkloadErrors { problems })
    }

    /// The hint for the user, without the word `hint:`.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        let only = |kind: ProblemKind| self.problems.iter().all(|problem| problem.kind == kind);
        if only(ProblemKind::NotNative) {
            "--engine fio runs it"
        } else if only(ProblemKind::UnsetVariable) {
            "give it with --vary NAME=VALUE,VALUE or in the environment"
        } else if self.problems.iter().any(|problem| problem.kind == ProblemKind::UnknownOption) {
            "`fio --cmdhelp` lists the options; docs/jobs.md those of the native engine"
        } else {
            "docs/jobs.md describes job files"
        }
    }
}

impl fmt::Display for WorkloadErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().enumerate() {
            let separator = if index == 0 { "" } else { "\n" };
            write!(f, "{separator}{}: {}", problem.place, problem.message)?;
        }
        Ok(())
    }
}

impl std::error::Error for WorkloadErrors {}
