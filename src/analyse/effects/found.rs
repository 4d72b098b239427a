//! What is known of the factors of a run, as values.

use serde::{Deserialize, Serialize};

use super::super::comparison::{Caveat, Interval, Method, Verdict};
use crate::record::Metric;

/// What the factors of a run do to one metric that decides, in one job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Effects {
    /// The metric; where rows are judged by different ones (`read.bw`, `write.bw`), its name has all of them.
    pub metric: Metric,
    /// δ of the metric, as a ratio − 1.
    pub delta: f64,
    /// The crossed factors: the compared one, then the others in the design's order.
    pub factors: Vec<String>,
    /// Rounds in which every cell has a value; the repeats of the smallest cell, where there are no rounds.
    pub n: usize,
    /// Effects that share α: those of all metrics and jobs.
    pub family: usize,
    /// Main effects, then interactions; empty where `refused` has a reason.
    pub effects: Vec<Effect>,
    /// What each factor has of the change from all first to all last levels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shares: Option<Shares>,
    /// Why there are no effects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<NoEffects>,
}

/// A main effect, or the interaction of two factors.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Effect {
    /// The change of one factor, or of two: then how much the first one's effect depends on the second.
    pub of: Vec<Change>,
    /// The estimate, that of the mean where there is no interval: ratio − 1 of a main effect; of an interaction the first factor's ratio at the
    /// second's later level over its ratio at the second's first level, − 1.
    pub change: f64,
    /// The same with the interval that holds together with those of all other effects.
    pub effect: Option<Interval>,
    /// p; none of sequential looks.
    pub p: Option<f64>,
    /// p after Holm.
    pub p_adjusted: Option<f64>,
    /// How it was judged.
    pub method: Method,
    /// `faster`: better in the metric's direction. Of an interaction: the first factor's effect is better at the later level.
    pub verdict: Verdict,
    /// Of an interaction: the first factor's effect at the first and at the later level of the second.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub within: Vec<Within>,
    /// Of a main effect: factors that its factor depends on, so that it says nothing alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<String>,
    /// What must be known of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub caveats: Vec<Caveat>,
}

/// A factor that goes from its first level to another one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// The factor.
    pub factor: String,
    /// Its first level.
    pub from: String,
    /// The level compared with it.
    pub to: String,
}

/// The effect of one factor at one level of another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Within {
    /// The other factor's level.
    pub level: String,
    /// The effect as ratio − 1, with its interval as if it were the only one.
    pub effect: Interval,
}

/// What each factor has of the change from all first to all last levels (Shapley): the parts multiply to the whole.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Shares {
    /// The whole change: each factor from its first to its last level.
    pub of: Vec<Change>,
    /// As ratio − 1, of mean logarithms, with its interval as if it were the only one (no number where there is none).
    pub whole: Interval,
    /// The same for each factor, in their order.
    pub parts: Vec<Interval>,
}

/// Why nothing is said of the factors.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoEffects {
    /// Not every combination of levels has a value.
    Incomplete {
        /// Combinations that have one.
        measured: usize,
        /// Of how many.
        of: usize,
    },
    /// Rows are judged by metrics of different units or directions.
    DifferentMetrics,
    /// Values of 0 or below have no ratio.
    NotPositive,
    /// No round has a value of every cell.
    NoCommonRound,
    /// The failures of arms are so unequal that what worked cannot be compared.
    UnequalFailures,
    /// Failed trials rank as the worst (`--failures worst`), and a rank is not a value.
    FailuresAsWorst,
    /// Results come in clusters.
    Clusters,
    /// So many effects that each would have too small a share of α.
    TooMany {
        /// How many.
        effects: usize,
    },
}
