//! Lag-1 autocorrelation: does one difference know the next.
//!
//! Enters: values in time order. Leaves: r_1 and whether it passes the white-noise limit 1.96/√n.
//! Source: Box, Jenkins & Reinsel (1994), *Time Series Analysis*, §2.1; Bartlett (1946).

/// Share of the largest value below which values differ by rounding only.
const ROUNDING: f64 = 1e-12;

/// r_1 = Σ(x_i − m)(x_{i+1} − m)/Σ(x_i − m)²; `None` for fewer than 3 values or constant ones.
#[must_use]
pub fn lag1(values: &[f64]) -> Option<f64> {
    if values.len() < 3 {
        return None;
    }
    let centre = super::descriptive::mean(values);
    let total: f64 = values.iter().map(|v| (v - centre) * (v - centre)).sum();
    let joint: f64 = values.windows(2).map(|w| (w[0] - centre) * (w[1] - centre)).sum();
    let rounding = ROUNDING * values.iter().fold(0.0, |largest: f64, v| largest.max(v.abs()));
    (total > rounding * rounding * values.len() as f64).then(|| joint / total)
}

/// Whether r_1 of n values is beyond what white noise gives 95 times of 100.
#[must_use]
pub fn is_notable(r1: f64, n: usize) -> bool {
    // Under the null r_1 centres on −1/n (Kendall & Stuart).
    (r1 + 1.0 / n as f64).abs() > 1.96 / (n as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_hand() {
        assert_eq!(lag1(&[1.0, 2.0, 3.0]), Some(0.0));
        assert_eq!(lag1(&[1.0, -1.0, 1.0, -1.0]), Some(-0.75));
        assert_eq!(lag1(&[2.0; 5]), None);
        assert_eq!(lag1(&[-std::f64::consts::LN_2; 10]), None);
        assert!(is_notable(0.9, 20) && !is_notable(-0.05, 20));
    }
}
