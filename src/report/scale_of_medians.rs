//! The scale that the medians of some comparisons share.
//!
//! Enters: comparisons. Leaves: a unit with its number of decimals.

use crate::analyse::Comparison;
use crate::units::{Scale, Unit};

/// The medians of both arms, one after the other.
pub(super) fn medians(comparisons: &[&Comparison]) -> Vec<f64> {
    comparisons.iter().flat_map(|c| [c.baseline.median, c.candidate.median]).collect()
}

/// One scale for the medians of these comparisons, which have one metric. What an operation has less than a hundredth of is counted
/// for a thousand of them, or for a million.
pub(super) fn scale_of(comparisons: &[&Comparison]) -> Scale {
    const FEW: [(f64, &str); 2] = [(1e-3, "per 1000 ops"), (1e-6, "per million ops")];
    let metric = comparisons.first().map(|c| &c.metric);
    let unit = metric.map_or(&Unit::Count, |metric| &metric.unit);
    let plain = Scale::for_column(unit, medians(comparisons));
    let largest = medians(comparisons).into_iter().map(f64::abs).fold(0.0, f64::max);
    let is_few = metric.is_some_and(|metric| metric.unit == Unit::Count && metric.name.contains("_per_op"));
    let fits = |(divisor, _): &&(f64, &str)| largest >= 10.0 * divisor * 1e-3 && largest < 10.0 * divisor;
    match FEW.iter().find(fits).filter(|_| is_few) {
        Some((divisor, symbol)) => {
            Scale { divisor: *divisor, symbol: (*symbol).to_owned(), decimals: 0 }.with_digits_of([largest])
        }
        None => plain,
    }
}

/// One unit for times of an operation, whatever tables they stand in.
pub(super) fn scale_of_times(comparisons: &[&Comparison]) -> Option<Scale> {
    Some(Scale::by_largest(&comparisons.first()?.metric.unit, medians(comparisons)))
}
