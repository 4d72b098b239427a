//! Fisher's exact test of two counts: does one arm fail more often than the other, where trials have no partners.
//!
//! Enters: failures and trials of both arms. Leaves: the two-sided p, the sum over all tables with these margins that are no more
//! probable than the one seen.
//! Source: Fisher (1935), J. R. Stat. Soc. 98:39; Agresti, *Categorical Data Analysis* (2013) §3.5.

use statrs::function::factorial::ln_binomial;

/// Tables as probable as the one seen but for rounding count as such (R's `fisher.test` has the same factor).
const TIE: f64 = 1.0 + 1e-7;

/// Two-sided p of `first` = (failed, trials) against `second`; failed ≤ trials.
#[must_use]
pub fn two_sided(first: (u32, u32), second: (u32, u32)) -> f64 {
    let [failed, trials, others_failed, others] = [first.0, first.1, second.0, second.1].map(u64::from);
    let all_failed = failed + others_failed;
    let all = ln_binomial(trials + others, all_failed);
    let probability = |k: u64| (ln_binomial(trials, k) + ln_binomial(others, all_failed - k) - all).exp();
    let seen = probability(failed) * TIE;
    let tables = all_failed.saturating_sub(others)..=all_failed.min(trials);
    tables.map(probability).filter(|p| *p <= seen).sum::<f64>().min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_answers() {
        // The lady tasting tea; the convictions of twins (R's documentation of fisher.test); scipy's of fisher_exact.
        for (first, second, p) in [
            ((3, 4), (1, 4), 34.0 / 70.0),
            ((2, 17), (10, 13), 0.000_536_724),
            ((8, 10), (1, 6), 0.034_965_035),
            ((9, 30), (0, 30), 0.001_935_603),
        ] {
            assert!((two_sided(first, second) - p).abs() < 1e-7, "{first:?}: {}", two_sided(first, second));
            assert!((two_sided(first, second) - two_sided(second, first)).abs() < 1e-12);
        }
        assert!((two_sided((0, 10), (0, 3)) - 1.0).abs() < 1e-12 && two_sided((0, 0), (0, 0)) <= 1.0);
    }
}
