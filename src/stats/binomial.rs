//! The exact binomial test of a count against a rate, one-sided: are there more than the rate explains.
//!
//! Enters: trials, successes, rate. Leaves: P(X ≥ successes). Used on the claims of A/A runs against 5 %.

use statrs::function::beta::beta_reg;

/// P(X ≥ `successes`) for X ~ Bin(`trials`, `rate`); the identity with the incomplete beta function.
#[must_use]
pub fn at_least(trials: u32, successes: u32, rate: f64) -> f64 {
    if successes == 0 || rate >= 1.0 {
        return 1.0;
    }
    if successes > trials || rate <= 0.0 {
        return 0.0;
    }
    beta_reg(f64::from(successes), f64::from(trials - successes) + 1.0, rate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_hand() {
        assert!((at_least(2, 1, 0.5) - 0.75).abs() < 1e-12);
        assert!((at_least(40, 1, 0.05) - (1.0 - 0.95_f64.powi(40))).abs() < 1e-12);
        // 40 A/A runs: five or more claims happen once in twenty, so at most four are accepted.
        assert!(at_least(40, 5, 0.05) < 0.05 && at_least(40, 4, 0.05) > 0.05);
        assert_eq!((at_least(3, 0, 0.05), at_least(3, 4, 0.05)), (1.0, 0.0));
    }
}
