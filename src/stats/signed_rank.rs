//! Wilcoxon's signed rank: the exact null distribution of W+ for n differences symmetric about 0.
//!
//! Enters: n and a statistic or a level. Leaves: a probability or a critical value. Up to [`EXACT_LIMIT`] the
//! distribution is built by adding ranks one at a time (each goes to W+ with probability ½); above, the normal
//! approximation with continuity correction is used and [`precision`] says so.
//! Convention for data with zeros and ties: both are counted against a claim (see
//! [`super::walsh::Walsh::signed_rank_statistic`]) and the untied distribution is used, which is conservative.
//! Source: Wilcoxon (1945), Biometrics Bull. 1:80; Hollander, Wolfe & Chicken (2014) §3.1.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::{Precision, normal};

/// Largest n with the exact distribution.
pub const EXACT_LIMIT: usize = 500;

/// Whether n differences are judged exactly.
#[must_use]
pub fn precision(n: usize) -> Precision {
    if n <= EXACT_LIMIT { Precision::Exact } else { Precision::Normal }
}

/// P(min(W+, W−) ≤ k) for n differences under the null, at most 1.
#[must_use]
pub fn two_sided(n: usize, k: u64) -> f64 {
    if precision(n) == Precision::Normal {
        let (mean, sd) = moments(n);
        return (2.0 * normal::upper_tail((mean - k as f64 - 0.5) / sd)).min(1.0);
    }
    let lower = lower_tail(n);
    lower.get(k as usize).map_or(1.0, |p| (2.0 * p).min(1.0))
}

/// The largest k with P(min(W+, W−) ≤ k) ≤ `alpha`; `None` when not even k = 0 is rare enough.
#[must_use]
pub fn critical(n: usize, alpha: f64) -> Option<u64> {
    if precision(n) == Precision::Normal {
        let (mean, sd) = moments(n);
        let k = (mean - 0.5 - normal::upper_quantile(alpha / 2.0) * sd).floor();
        return (k >= 0.0).then_some(k as u64);
    }
    let rare = lower_tail(n).iter().take_while(|p| 2.0 * **p <= alpha).count();
    rare.checked_sub(1).map(|k| k as u64)
}

/// Mean and standard deviation of W+.
fn moments(n: usize) -> (f64, f64) {
    let n = n as f64;
    (n * (n + 1.0) / 4.0, (n * (n + 1.0) * (2.0 * n + 1.0) / 24.0).sqrt())
}

/// P(W+ ≤ k) for k = 0 … ⌊M/2⌋, cached for a process.
fn lower_tail(n: usize) -> Arc<Vec<f64>> {
    static CACHE: Mutex<BTreeMap<usize, Arc<Vec<f64>>>> = Mutex::new(BTreeMap::new());
    /// Distributions kept: 500 of them could be 80 MB.
    const KEPT: usize = 64;
    let mut cache = CACHE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = cache.get(&n) {
        return Arc::clone(known);
    }
    let made = Arc::new(build_lower_tail(n));
    if cache.len() >= KEPT {
        cache.pop_first();
    }
    cache.insert(n, Arc::clone(&made));
    made
}

fn build_lower_tail(n: usize) -> Vec<f64> {
    let half = n * (n + 1) / 4;
    let mut p = vec![0.0_f64; half + 1];
    p[0] = 1.0;
    for rank in 1..=n {
        // In place from above: p'[s] = (p[s] + p[s − rank])/2.
        for s in (0..=half.min(rank * (rank + 1) / 2)).rev() {
            let shifted = if s >= rank { p[s - rank] } else { 0.0 };
            p[s] = 0.5 * (p[s] + shifted);
        }
    }
    let mut sum = 0.0;
    for value in &mut p {
        sum += *value;
        *value = sum;
    }
    p
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_probabilities() {
        let known = [
            (6, 0, 0.031_250),
            (7, 0, 0.015_625),
            (8, 1, 0.015_625),
            (9, 3, 0.019_531),
            (10, 8, 0.048_828),
            (15, 25, 0.047_913),
            (20, 52, 0.048_441),
            (30, 137, 0.049_710),
        ];
        for (n, k, p) in known {
            assert!((two_sided(n, k) - p).abs() < 5e-7, "({n}, {k}): {}", two_sided(n, k));
        }
    }

    #[test]
    fn critical_values() {
        assert_eq!(critical(5, 0.05), None);
        assert_eq!(critical(6, 0.05), Some(0));
        assert_eq!(critical(10, 0.05), Some(8));
        assert_eq!(critical(30, 0.05), Some(137));
        assert_eq!(two_sided(3, 6), 1.0);
    }

    #[test]
    fn the_approximation_meets_the_exact_distribution_at_the_limit() {
        let exact = critical(EXACT_LIMIT, 0.05).unwrap() as f64;
        let (mean, sd) = moments(EXACT_LIMIT);
        let approximate = (mean - 0.5 - normal::upper_quantile(0.025) * sd).floor();
        assert!((exact - approximate).abs() <= 12.0, "{exact} {approximate}");
        assert_eq!(precision(EXACT_LIMIT + 1), Precision::Normal);
        let k = critical(50_000, 0.05).unwrap();
        assert!((two_sided(50_000, k) - 0.05).abs() < 1e-6);
    }
}
