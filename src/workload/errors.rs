//! What is wrong with a job file: every problem with its place, all at once.
//!
//! Enters: problems found while reading or resolving. Leaves: one error that lists them, and the hint that helps.

use std::fmt;
use std::sync::Arc;

use super::Hint;

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
    /// fio has it, and assay runs it with no engine.
    Refused {
        /// What to do instead.
        hint: &'static str,
    },
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
    pub fn hint(&self) -> Hint {
        let refused = self.problems.iter().find_map(|problem| match problem.kind {
            ProblemKind::Refused { hint } => Some(hint),
            _ => None,
        });
        if let Some(hint) = refused {
            return Hint::from(hint);
        }
        let only = |kind: ProblemKind| self.problems.iter().all(|problem| problem.kind == kind);
        if only(ProblemKind::NotNative) {
            Hint::from("--engine fio runs it")
        } else if only(ProblemKind::UnsetVariable) {
            Hint::from("give it with --vary NAME=VALUE,VALUE or in the environment")
        } else if self.problems.iter().any(|problem| problem.kind == ProblemKind::UnknownOption) {
            Hint::page("`fio --cmdhelp` lists the options, `assay help jobs` those of the native engine")
        } else {
            Hint::page("`assay help jobs` describes job files")
        }
    }
}

impl fmt::Display for WorkloadErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        list_shortly(f, self.problems.iter().map(|problem| (&problem.place, problem.message.as_str())))
    }
}

/// Most mistakes that are shown: a file that is no job at all has one in every line.
const SHOWN: usize = 10;

/// One line a mistake, the first [`SHOWN`] of them, and how many more there are.
///
/// # Errors
/// Those of the formatter.
pub fn list_shortly<'m>(
    f: &mut fmt::Formatter<'_>,
    mistakes: impl ExactSizeIterator<Item = (&'m Place, &'m str)>,
) -> fmt::Result {
    let more = mistakes.len().saturating_sub(SHOWN);
    for (index, (place, message)) in mistakes.take(SHOWN).enumerate() {
        let separator = if index == 0 { "" } else { "\n" };
        write!(f, "{separator}{place}: {message}")?;
    }
    if more > 0 { write!(f, "\n… and {more} more") } else { Ok(()) }
}

/// A piece of a file for a message, cut where it would flood the terminal.
#[must_use]
pub fn shortened(piece: &str) -> String {
    let cut: String = piece.chars().take(60).collect();
    if cut.len() < piece.len() { format!("{cut}…") } else { cut }
}

impl std::error::Error for WorkloadErrors {}

#[cfg(test)]
mod tests {
    use super::*;

    fn errors(count: u32) -> WorkloadErrors {
        let problem = |line| Problem {
            place: Place { origin: Arc::from("a"), line },
            kind: ProblemKind::Syntax,
            message: "wrong".to_owned(),
        };
        WorkloadErrors { problems: (1..=count).map(problem).collect() }
    }

    #[test]
    fn ten_problems_are_shown() {
        assert_eq!(errors(2).to_string(), "a:1: wrong\na:2: wrong");
        assert_eq!(errors(10).to_string().lines().last(), Some("a:10: wrong"));
        let many = errors(25).to_string();
        assert_eq!(many.lines().count(), 11);
        assert!(many.ends_with("a:10: wrong\n… and 15 more"), "{many}");
    }

    #[test]
    fn no_piece_is_longer_than_sixty_characters() {
        assert_eq!(shortened("ä4k"), "ä4k");
        assert_eq!(shortened(&"ä".repeat(61)), format!("{}…", "ä".repeat(60)));
    }
}
