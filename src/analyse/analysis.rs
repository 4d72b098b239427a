//! The whole result of an analysis, as values. No text is made here; reports word them.

use serde::{Deserialize, Serialize};

use super::budget::Budget;
use super::comparison::{
    ArmSummary, Caveat, Comparison, FactDifference, NoiseFloor, QuantileCurve, Role, RowKey,
};
use super::effects::Effects;
use super::limits::Limit;
use super::ranking::Ranking;
use super::scaling::Scaling;
use crate::record::{Metric, MetricDelta, SoFar};

/// Everything the reports need of one run besides the run itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Analysis {
    /// Arms, the baseline first.
    pub arms: Vec<String>,
    /// Name of the compared factor.
    pub factor: String,
    /// δ of metrics without one of their own, as a ratio − 1.
    pub delta: f64,
    /// δ of some metrics.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deltas: Vec<MetricDelta>,
    /// α: the chance of a false claim among all comparisons that decide.
    pub alpha: f64,
    /// Rounds that count.
    pub rounds: u32,
    /// All comparisons: rows in the design's order, within a row candidates, primary first; of all pairs those without the
    /// baseline stand last.
    pub comparisons: Vec<Comparison>,
    /// What is not compared because it was the same in all trials of a row, for tables that have a column for it.
    #[serde(skip)]
    pub steady: Vec<Steady>,
    /// Rows with three or more arms: their order, as far as it is proven.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rankings: Vec<Ranking>,
    /// Of runs with several crossed factors: what each does, and which depend on each other.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub effects: Vec<Effects>,
    /// Of runs in which a number of workers varies: how throughput grows with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scaling: Vec<Scaling>,
    /// Where the time of an operation went, one a row and candidate; none where nobody counted it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub budgets: Vec<Budget>,
    /// Latency curves.
    pub curves: Vec<QuantileCurve>,
    /// Facts in which arms differ undeclared.
    pub differences: Vec<FactDifference>,
    /// The noise floor for the same host and job, when one is known.
    pub noise_floor: Option<NoiseFloor>,
    /// How near the arms came to what a probe of the same machine has measured, where there is one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<Limit>,
    /// Footnotes to the whole.
    pub caveats: Vec<Caveat>,
}

/// A metric that had one value in all trials of a row.
#[derive(Clone, Debug, PartialEq)]
pub struct Steady {
    /// The row.
    pub row: RowKey,
    /// The metric.
    pub metric: Metric,
    /// Its arms.
    pub arms: Vec<ArmSummary>,
}

impl Analysis {
    /// How far the run is with the deciding comparison that is furthest behind, where one has no verdict before the last of a
    /// fixed number of rounds.
    #[must_use]
    pub fn so_far(&self) -> Option<SoFar> {
        let primary = self.comparisons.iter().filter(|c| c.role == Role::Primary);
        primary.filter_map(Comparison::so_far).min_by_key(|so_far| so_far.rounds)
    }
}
