//! What the printed results of tools have in common, for their engines and for imports alike.
//!
//! Enters: nothing. Leaves: [`ToolTrial`] and [`ToolOutputError`]. It must not know who ran the tool or why.

use crate::record::{Metric, Outcome, Sample, Unit};
use crate::units::Better;

/// One invocation of a tool, as its output tells it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolTrial {
    /// The version it says it has, e.g. `4.00`; empty when it says none.
    pub version: String,
    /// What it says it was asked for and what makes results incomparable when it differs, as (name, value), e.g. clients of
    /// dbench.
    pub settings: Vec<(String, String)>,
    /// Its values.
    pub outcome: Outcome,
}

/// Why a text is not the whole output of a tool.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ToolOutputError {
    /// Line from 1, where one is to blame.
    pub line: Option<usize>,
    /// A clause: what is wrong, or missing.
    pub message: String,
}

impl ToolOutputError {
    pub(super) fn at(line: usize, message: impl Into<String>) -> ToolOutputError {
        ToolOutputError { line: Some(line), message: message.into() }
    }

    pub(super) fn whole(message: impl Into<String>) -> ToolOutputError {
        ToolOutputError { line: None, message: message.into() }
    }
}

/// A finite number that is not negative, as all of these tools' results are.
pub(super) fn amount(text: &str) -> Option<f64> {
    text.parse::<f64>().ok().filter(|value| value.is_finite() && *value >= 0.0)
}

/// A sample of a count, of which more is better.
pub(super) fn count(name: &str, unit: Unit, value: f64) -> Sample {
    Sample { metric: Metric::new("", name, unit, Better::Higher), value }
}

/// A sample with its unit's usual direction.
pub(super) fn sample(name: &str, unit: Unit, value: f64) -> Sample {
    Sample::new("", name, unit, value)
}
