//! Statistics: pure numbers, one file a method with its source cited.
//!
//! Enters: slices of numbers. Leaves: estimates, intervals, probabilities. Reservations are values ([`Precision`]),
//! never text. It depends on nothing else in the crate and must not know metrics, runs or verdict words.

pub mod anytime;
pub mod autocorrelation;
pub mod benjamini_hochberg;
pub mod binomial;
pub mod bisection;
pub mod bisection_ends;
mod bisection_model;
pub mod change_point;
pub mod chi_square;
pub mod cluster_means;
pub mod crossover;
pub mod descriptive;
pub mod early_stop;
pub mod factorial;
pub mod fisher_exact;
pub mod holm;
pub mod line;
pub mod mann_kendall;
pub mod mann_whitney;
pub mod mcnemar;
pub mod mser;
pub mod normal;
pub mod order_effect;
pub mod ratio_of_means;
pub mod rounds_needed;
pub mod saturation;
pub mod scalability_law;
mod selection;
pub mod sequential;
pub mod sequential_boundary;
mod sequential_grid;
pub mod shapley;
pub mod shift;
pub mod signed_rank;
pub mod signed_rank_ties;
pub mod step;
pub mod student_t;
pub mod theil_sen;
pub mod variance_components;
pub mod walsh;

/// Whether a probability comes from the exact null distribution or from an approximation to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precision {
    /// The exact null distribution.
    Exact,
    /// Normal approximation with continuity and tie correction: the sample was too large for the exact one.
    Normal,
}

/// An estimate with its interval, on whatever scale the data had.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The point estimate; it lies inside the interval.
    pub estimate: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Estimate {
    /// Whether the interval excludes `value`.
    #[must_use]
    pub fn excludes(&self, value: f64) -> bool {
        self.low > value || self.high < value
    }

    /// Whether the interval lies strictly inside (−`delta`, `delta`).
    #[must_use]
    pub fn within(&self, delta: f64) -> bool {
        self.low > -delta && self.high < delta
    }
}
