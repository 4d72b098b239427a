//! McNemar's exact test: does one arm fail in more rounds than the other, where a round has a trial of each.
//!
//! Enters: rounds in which only the one arm failed, and only the other. Leaves: the two-sided p. Rounds in which both failed, or
//! neither, say nothing of a difference. Given how many rounds differ, each is one arm's or the other's by a fair coin when the arms
//! fail alike, also when failures come in bursts that hit whole rounds.
//! Sources: McNemar (1947), Psychometrika 12:153; the exact form is the sign test (Conover, *Practical Nonparametric Statistics*
//! (1999) §3.5).

use super::binomial;

/// Two-sided p of `only_first` against `only_second` rounds; 1 where no round differs.
#[must_use]
pub fn two_sided(only_first: u32, only_second: u32) -> f64 {
    let differing = only_first.saturating_add(only_second);
    (2.0 * binomial::at_least(differing, only_first.max(only_second), 0.5)).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_answers() {
        // Exact sums of binomial coefficients, 2·Σ C(n, k)/2^n.
        for (first, second, p) in
            [(6, 2, 0.289_062_5), (9, 0, 0.003_906_25), (12, 30, 0.007_915_897), (1, 7, 0.070_312_5)]
        {
            assert!(
                (two_sided(first, second) - p).abs() < 1e-6,
                "{first} {second}: {}",
                two_sided(first, second)
            );
            assert_eq!(two_sided(first, second), two_sided(second, first));
        }
        for (first, second) in [(0, 0), (1, 0), (4, 4)] {
            assert!((two_sided(first, second) - 1.0).abs() < 1e-12, "{first} {second}");
        }
        assert!(two_sided(6, 0) <= 0.05 && two_sided(5, 0) > 0.05, "six more are the fewest that show");
    }
}
