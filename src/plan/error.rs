//! Why there is no plan.
//!
//! Enters: everything found wrong. Leaves: one error and the hint that helps.

use std::fmt;

use crate::workload::Hint;

/// Why an experiment cannot be run; nothing was touched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanError {
    /// At least one, each a clause that says what would be right.
    pub problems: Vec<String>,
    /// What helps, without the word `hint:`.
    pub hint: Hint,
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.problems.join("\n"))
    }
}

impl std::error::Error for PlanError {}
