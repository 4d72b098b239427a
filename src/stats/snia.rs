//! SNIA's steady state: is a preconditioned device level enough to measure on.
//!
//! Enters: one value a round of the tracking variable. Leaves: the first window of five rounds that is steady:
//! max − min ≤ 20 % of the mean, and the fitted line's excursion over the window ≤ 10 % of the mean.
//! Source: SNIA Solid State Storage Performance Test Specification, definition of steady state.

/// Rounds of one window.
pub const WINDOW: usize = 5;

/// Whether five rounds are steady.
#[must_use]
pub fn is_steady(window: &[f64; WINDOW]) -> bool {
    let mean = window.iter().sum::<f64>() / WINDOW as f64;
    let high = window.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let low = window.iter().copied().fold(f64::INFINITY, f64::min);
    // Least squares at x = −2 … 2: slope = Σ x·y/10; the line moves by 4 slopes over the window.
    let slope = window.iter().enumerate().map(|(i, y)| (i as f64 - 2.0) * y).sum::<f64>() / 10.0;
    high - low <= 0.2 * mean && (4.0 * slope).abs() <= 0.1 * mean
}

/// The round (from 0) that completes the first steady window; `None` when there is none yet.
#[must_use]
pub fn steady_at(rounds: &[f64]) -> Option<usize> {
    rounds
        .windows(WINDOW)
        .position(|w| <&[f64; WINDOW]>::try_from(w).is_ok_and(is_steady))
        .map(|at| at + WINDOW - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn range_and_slope_both_count() {
        assert!(is_steady(&[100.0, 102.0, 99.0, 101.0, 100.0]));
        assert!(!is_steady(&[100.0, 121.0, 99.0, 100.0, 100.0]), "range above 20 %");
        assert!(!is_steady(&[94.0, 97.0, 100.0, 103.0, 106.0]), "line moves 12 %");
        assert_eq!(steady_at(&[300.0, 200.0, 150.0, 104.0, 102.0, 100.0, 101.0, 99.0]), Some(7));
        assert_eq!(steady_at(&[100.0; 4]), None);
    }
}
