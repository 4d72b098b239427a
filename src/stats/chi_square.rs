//! The interval of a standard deviation.
//!
//! Enters: a standard deviation and its degrees of freedom. Leaves: its 1 − α interval for normal values,
//! s·√(ν/χ²_{1−α/2}) … s·√(ν/χ²_{α/2}) (Cochran 1934; Hald 1952, *Statistical Theory with Engineering Applications* §11). The
//! distribution is statrs' incomplete gamma function.

use statrs::function::gamma::gamma_lr;

use super::Estimate;

/// The x with P(χ²_`df` ≤ x) = `lower`, 0 < lower < 1.
#[must_use]
pub fn quantile(lower: f64, df: f64) -> f64 {
    let below = |x: f64| gamma_lr(df / 2.0, x / 2.0);
    let (mut low, mut high) = (0.0_f64, df.max(1.0));
    while below(high) < lower && high < 1e300 {
        low = high;
        high *= 2.0;
    }
    for _ in 0..100 {
        let middle = f64::midpoint(low, high);
        if below(middle) < lower {
            low = middle;
        } else {
            high = middle;
        }
    }
    f64::midpoint(low, high)
}

/// The interval of a standard deviation with `df` degrees of freedom.
#[must_use]
pub fn stddev_interval(stddev: f64, df: f64, alpha: f64) -> Estimate {
    let end = |lower: f64| stddev * (df / quantile(lower, df)).sqrt();
    Estimate { estimate: stddev, low: end(1.0 - alpha / 2.0), high: end(alpha / 2.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_agree() {
        for (lower, df, x) in [
            (0.025, 9.0, 2.700_389_5),
            (0.975, 9.0, 19.022_767_8),
            (0.95, 1.0, 3.841_458_8),
            (0.05, 100.0, 77.929_465_2),
        ] {
            assert!((quantile(lower, df) - x).abs() < 1e-6, "{lower} {df}: {}", quantile(lower, df));
        }
    }

    #[test]
    fn ten_rounds_know_their_spread_within_a_factor_of_two() {
        let found = stddev_interval(1.0, 9.0, 0.05);
        assert!((found.low - 0.687_84).abs() < 1e-4 && (found.high - 1.825_61).abs() < 1e-4, "{found:?}");
    }
}
