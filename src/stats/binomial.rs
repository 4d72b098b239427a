//! The exact binomial test of a count against a rate, one-sided: are there more than the rate explains; and the rates that a
//! count leaves possible.
//!
//! Enters: trials, successes, rate or level. Leaves: P(X ≥ successes), or an interval of Clopper and Pearson (1934). Used on the
//! claims of A/A runs against 5 %, and on those of `make truth`.

use statrs::function::beta::{beta_reg, inv_beta_reg};

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

/// The rates that explain `successes` of `trials`, both tails of (1 − `level`)/2 left out.
#[must_use]
pub fn interval(trials: u32, successes: u32, level: f64) -> (f64, f64) {
    let tail = (1.0 - level) / 2.0;
    let (hits, misses) = (f64::from(successes), f64::from(trials.saturating_sub(successes)));
    let low = if hits > 0.0 { inv_beta_reg(hits, misses + 1.0, tail) } else { 0.0 };
    let high = if misses > 0.0 { inv_beta_reg(hits + 1.0, misses, 1.0 - tail) } else { 1.0 };
    (low, high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_ends_where_the_count_would_be_a_surprise() {
        // R: binom.test(10, 100)$conf.int is 0.04900469 0.17622260; binom.test(0, 20) is 0 0.1684335.
        let (low, high) = interval(100, 10, 0.95);
        assert!((low - 0.049_004_69).abs() < 1e-7 && (high - 0.176_222_60).abs() < 1e-7, "{low} {high}");
        let (low, high) = interval(20, 0, 0.95);
        assert!(low == 0.0 && (high - 0.168_433_5).abs() < 1e-6, "{high}");
        assert_eq!(interval(3, 3, 0.95).1, 1.0);
        for (trials, successes) in [(300, 1), (300, 17), (300, 299), (2, 1)] {
            let (low, high) = interval(trials, successes, 0.95);
            assert!((at_least(trials, successes, low) - 0.025).abs() < 1e-6, "{trials} {successes} {low}");
            assert!(
                (at_least(trials, successes + 1, high) - 0.975).abs() < 1e-6,
                "{trials} {successes} {high}"
            );
        }
    }

    #[test]
    fn by_hand() {
        assert!((at_least(2, 1, 0.5) - 0.75).abs() < 1e-12);
        assert!((at_least(40, 1, 0.05) - (1.0 - 0.95_f64.powi(40))).abs() < 1e-12);
        // 40 A/A runs: five or more claims happen once in twenty, so at most four are accepted.
        assert!(at_least(40, 5, 0.05) < 0.05 && at_least(40, 4, 0.05) > 0.05);
        assert_eq!((at_least(3, 0, 0.05), at_least(3, 4, 0.05)), (1.0, 0.0));
    }
}
