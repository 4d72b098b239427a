//! How throughput grows with the number of workers: the measured points, and the law through them where it can be known.
//!
//! Enters: the values of every cell. Leaves: a curve for each arm with the Universal Scalability Law (`stats/scalability_law.rs`), or the
//! reason why none is fitted, and in what the laws of two arms differ. It must not know words.
//!
//! A factor counts workers where what it sets has such a name and all its levels are whole numbers. Only throughput scales: where
//! a row is judged by a time, its bandwidth stands for it. Nothing is said before the last of a fixed number of rounds.

mod law;
mod series;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use super::comparison::Interval;
use super::draft::Setting;
use crate::record::Metric;

/// One factor that counts workers, in one job, under the same levels of all else but the compared factor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scaling {
    /// The factor that counts.
    pub factor: String,
    /// (factor, level) of what is the same for all curves.
    pub row: Vec<(String, String)>,
    /// The job; empty for the whole trial.
    pub job: String,
    /// Processors of the machine, where it is known and each worker needs one.
    pub processors: Option<u32>,
    /// One for each arm; where the compared factor is the one that counts, one for each combination of the others.
    pub curves: Vec<ScalingCurve>,
    /// The laws of later curves against that of the first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub differences: Vec<ScalingDifference>,
}

/// Throughput by number of workers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScalingCurve {
    /// (factor, level) of what tells it from the others; empty where it is the only one.
    pub of: Vec<(String, String)>,
    /// The throughput.
    pub metric: Metric,
    /// What was measured, by ascending level.
    pub points: Vec<ScalingPoint>,
    /// The law.
    pub law: Option<ScalingLaw>,
    /// Why there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<NoLaw>,
}

/// One level.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScalingPoint {
    /// Number of workers.
    pub level: u32,
    /// Trials.
    pub n: usize,
    /// Mean throughput, smallest and largest, in the metric's unit.
    pub mean: f64,
    /// Smallest.
    pub min: f64,
    /// Largest.
    pub max: f64,
    /// The law is fitted to it.
    pub fitted: bool,
}

/// X(N) = γN/(1 + α(N − 1) + βN(N − 1)), with 95 % intervals by bootstrap.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScalingLaw {
    /// γ, throughput of one worker, in the metric's unit.
    pub gamma: Interval,
    /// α, serial share.
    pub alpha: Interval,
    /// β, crosstalk.
    pub beta: Interval,
    /// N at the highest throughput; without a number at the end that lies beyond all bounds.
    pub peak: Interval,
    /// γ/α, what the serial share alone would allow; `None` where α is 0.
    pub ceiling: Option<f64>,
    /// Root of the mean squared residual relative to the mean throughput.
    pub residual: f64,
    /// Rounds, or repeats of the smallest cell.
    pub n: usize,
    /// The largest level that was fitted; nothing is said beyond twice it.
    pub last: u32,
}

/// In what the law of a curve differs from that of the first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScalingDifference {
    /// The first curve and the other one, by their places in `curves`.
    pub curves: [usize; 2],
    /// γ's ratio − 1.
    pub gamma: Interval,
    /// The other α − the first one's.
    pub alpha: Interval,
    /// The other β − the first one's.
    pub beta: Interval,
    /// Of `gamma`, `alpha` and `beta` those whose interval excludes 0.
    pub differs: Vec<String>,
}

/// Why no law is fitted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoLaw {
    /// Neither the metric that decides nor another one of the row is a throughput.
    NoThroughput {
        /// The metric that decides.
        metric: String,
    },
    /// Fewer than 6 levels that have a processor for each worker.
    FewLevels {
        /// Levels that could be fitted.
        levels: usize,
        /// Levels measured.
        of: usize,
    },
    /// Less than a factor 4 between the smallest and the largest of them.
    NarrowRange {
        /// The smallest.
        from: u32,
        /// The largest.
        to: u32,
    },
    /// Fewer than 4 rounds that all levels have.
    FewRounds {
        /// How many.
        rounds: usize,
    },
    /// A throughput of 0 or below.
    NotPositive,
    /// The law misses the points by more than 10 %.
    Misses {
        /// By how much.
        residual: f64,
    },
    /// The peak is not known within a factor 2.
    PeakUnknown {
        /// Its interval; `None`: beyond all bounds.
        low: Option<f64>,
        /// Its upper end.
        high: Option<f64>,
    },
}

/// How throughput grows with each factor that counts workers.
pub(super) fn scaling(setting: &Setting) -> Vec<Scaling> {
    series::groups(setting).into_iter().map(|group| law::fitted(setting, group)).collect()
}
