//! What is wrong with a request, all at once.
//!
//! Enters: mistakes with their places. Leaves: one error and the hint that helps.

use std::fmt;
use std::sync::Arc;

use crate::workload::{Hint, Place, WorkloadErrors, list_shortly};

/// One mistake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// A line of the experiment file, or the flag.
    pub place: Place,
    /// What is wrong and what would be right.
    pub message: String,
}

/// Everything wrong with a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExperimentErrors {
    /// At least one.
    pub mistakes: Vec<Mistake>,
    /// What helps, without the word `hint:`.
    pub hint: Hint,
}

impl ExperimentErrors {
    /// One mistake of a whole file or flag.
    pub(super) fn one(origin: &str, message: impl Into<String>, hint: &str) -> ExperimentErrors {
        let place = Place { origin: Arc::from(origin), line: 0 };
        ExperimentErrors { mistakes: vec![Mistake { place, message: message.into() }], hint: hint.into() }
    }

    pub(super) fn or(mistakes: Vec<Mistake>) -> Result<(), ExperimentErrors> {
        if mistakes.is_empty() {
            return Ok(());
        }
        let hint = Hint::page("`assay help jobs` describes experiment files, `assay run --help` the flags");
        Err(ExperimentErrors { mistakes, hint })
    }
}

impl From<WorkloadErrors> for ExperimentErrors {
    fn from(errors: WorkloadErrors) -> ExperimentErrors {
        let hint = errors.hint();
        let mistake =
            |problem: crate::workload::Problem| Mistake { place: problem.place, message: problem.message };
        ExperimentErrors { mistakes: errors.problems.into_iter().map(mistake).collect(), hint }
    }
}

impl fmt::Display for ExperimentErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        list_shortly(f, self.mistakes.iter().map(|mistake| (&mistake.place, mistake.message.as_str())))
    }
}

impl std::error::Error for ExperimentErrors {}
