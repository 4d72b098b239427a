//! Means, spread and quantiles of one sample.
//!
//! Enters: numbers. Leaves: one number; NaN where a figure does not exist (the mean of nothing, the standard
//! deviation of one value, the harmonic mean of a value ≤ 0).

/// Arithmetic mean.
#[must_use]
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Harmonic mean: n/Σ(1/x); NaN when a value is ≤ 0.
#[must_use]
pub fn harmonic_mean(values: &[f64]) -> f64 {
    if values.is_empty() || values.iter().any(|v| *v <= 0.0) {
        return f64::NAN;
    }
    values.len() as f64 / values.iter().map(|v| v.recip()).sum::<f64>()
}

/// Variance with n − 1, in two passes (Chan, Golub & LeVeque 1983) so that large means lose no digits.
#[must_use]
pub fn variance(values: &[f64]) -> f64 {
    if values.len() < 2 {
        return f64::NAN;
    }
    let centre = mean(values);
    values.iter().map(|v| (v - centre) * (v - centre)).sum::<f64>() / (values.len() as f64 - 1.0)
}

/// Standard deviation with n − 1.
#[must_use]
pub fn stddev(values: &[f64]) -> f64 {
    variance(values).sqrt()
}

/// Quantile q in 0..=1 of ascending values, linear between order statistics (Hyndman & Fan 1996, type 7:
/// the default of R and numpy).
#[must_use]
pub fn quantile_of_sorted(sorted: &[f64], q: f64) -> f64 {
    if sorted.is_empty() {
        return f64::NAN;
    }
    let place = q.clamp(0.0, 1.0) * (sorted.len() - 1) as f64;
    let below = place.floor() as usize;
    let above = (below + 1).min(sorted.len() - 1);
    sorted[below] + (place - below as f64) * (sorted[above] - sorted[below])
}

/// Median.
#[must_use]
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    quantile_of_sorted(&sorted, 0.5)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_a_small_sample() {
        let values = [1.0, 2.0, 4.0];
        assert_eq!(mean(&values), 7.0 / 3.0);
        assert!((harmonic_mean(&values) - 12.0 / 7.0).abs() < 1e-15);
        assert!((stddev(&values) - 1.527_525_231_651_946_7).abs() < 1e-15);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert_eq!(quantile_of_sorted(&values, 0.25), 1.5);
    }

    #[test]
    fn what_does_not_exist_is_nan() {
        assert!(mean(&[]).is_nan() && stddev(&[1.0]).is_nan() && harmonic_mean(&[1.0, 0.0]).is_nan());
        assert!(median(&[]).is_nan());
    }
}
