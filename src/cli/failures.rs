//! `--failures`: what trials that failed mean for a verdict.

use crate::record::FailureRule;

/// What `--failures` says of trials that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(in crate::cli) enum Failures {
    /// Their numbers are compared; unequal ones may leave no verdict.
    Compare,
    /// Each is worse than any value.
    Worst,
}

impl Failures {
    /// The same for an analysis.
    pub(in crate::cli) fn rule(self) -> FailureRule {
        match self {
            Failures::Compare => FailureRule::Compare,
            Failures::Worst => FailureRule::Worst,
        }
    }
}
