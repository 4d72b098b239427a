//! A straight line through points by least squares, with Student's t.
//!
//! Enters: x and y. Leaves: intercept and slope with intervals, and the slope's p.
//! Source: Draper & Smith, *Applied Regression Analysis* (1998) §1.4.

use super::descriptive::mean;
use super::{Estimate, student_t};

/// y = intercept + slope·x.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Line {
    /// y where x is 0.
    pub intercept: Estimate,
    /// What one more x adds.
    pub slope: Estimate,
    /// Two-sided p of intercept = 0.
    pub intercept_p: f64,
    /// Two-sided p of slope = 0.
    pub slope_p: f64,
    /// Standard deviation of what the line leaves over.
    pub residual: f64,
}

/// The line through the points, with intervals at two-sided `alpha`; `None` for fewer than four points or one x only.
#[must_use]
pub fn through(x: &[f64], y: &[f64], alpha: f64) -> Option<Line> {
    let n = x.len().min(y.len());
    let (x, y) = (&x[..n], &y[..n]);
    let (mean_x, mean_y) = (mean(x), mean(y));
    let spread: f64 = x.iter().map(|x| (x - mean_x).powi(2)).sum();
    if n < 4 || spread <= 0.0 || !spread.is_finite() {
        return None;
    }
    let together: f64 = x.iter().zip(y).map(|(x, y)| (x - mean_x) * (y - mean_y)).sum();
    let slope = together / spread;
    let intercept = mean_y - slope * mean_x;
    let left: f64 = x.iter().zip(y).map(|(x, y)| (y - intercept - slope * x).powi(2)).sum();
    let df = n as f64 - 2.0;
    let variance = left / df;
    let quantile = student_t::upper_quantile(alpha / 2.0, df);
    let around = |estimate: f64, error: f64| Estimate {
        estimate,
        low: estimate - quantile * error,
        high: estimate + quantile * error,
    };
    let slope_error = (variance / spread).sqrt();
    let intercept_error = (variance * (1.0 / n as f64 + mean_x * mean_x / spread)).sqrt();
    Some(Line {
        intercept: around(intercept, intercept_error),
        slope: around(slope, slope_error),
        intercept_p: student_t::two_sided((intercept / intercept_error).abs(), df),
        slope_p: student_t::two_sided((slope / slope_error).abs(), df),
        residual: variance.sqrt(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anscombe() {
        // Anscombe (1973), Am. Stat. 27:17, the first set; R's summary(lm(y1 ~ x1)): 3.0001 (1.1247), 0.5001 (0.1179), p 0.00217.
        let x = [10.0, 8.0, 13.0, 9.0, 11.0, 14.0, 6.0, 4.0, 12.0, 7.0, 5.0];
        let y = [8.04, 6.95, 7.58, 8.81, 8.33, 9.96, 7.24, 4.26, 10.84, 4.82, 5.68];
        let line = through(&x, &y, 0.05).unwrap();
        let near = |have: f64, want: f64, by: f64| assert!((have - want).abs() < by, "{have} {want}");
        near(line.intercept.estimate, 3.000_091, 1e-6);
        near(line.slope.estimate, 0.500_091, 1e-6);
        near(line.slope_p, 0.002_17, 5e-6);
        near(line.intercept_p, 0.025_73, 5e-6);
        // t(0.975, 9) = 2.262157
        near(line.slope.high - line.slope.estimate, 2.262_157 * 0.117_906, 1e-5);
        near(line.intercept.estimate - line.intercept.low, 2.262_157 * 1.124_747, 1e-5);
        near(line.residual, 1.236_603, 1e-5);
    }

    #[test]
    fn equal_values_have_a_level_line() {
        let line = through(&[0.0, -1.0, -1.0, 0.0, -1.0, 0.0], &[0.0; 6], 0.05).unwrap();
        assert_eq!((line.slope.estimate, line.slope_p, line.intercept_p), (0.0, 1.0, 1.0));
    }

    #[test]
    fn one_x_has_no_slope() {
        assert!(through(&[1.0; 9], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0], 0.05).is_none());
        assert!(through(&[1.0, 2.0, 3.0], &[1.0, 2.0, 3.0], 0.05).is_none());
    }
}
