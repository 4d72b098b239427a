//! Mann–Kendall: is there a monotonic trend in a series.
//!
//! Enters: values in time order. Leaves: S (concordant minus discordant pairs) and its two-sided p: exact without
//! ties up to [`EXACT_LIMIT`] values, else normal with tie and continuity correction. S is counted by merge sort,
//! O(n log n).
//! Sources: Mann (1945), Econometrica 13:245; Kendall (1975), *Rank Correlation Methods*; Knight (1966),
//! J. Am. Stat. Assoc. 61:436 (the count).

use std::sync::OnceLock;

use super::{Precision, normal};

/// Largest n with the exact distribution.
pub const EXACT_LIMIT: usize = 50;

/// Result of the test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trend {
    /// Later-is-larger pairs minus later-is-smaller pairs.
    pub s: i64,
    /// Two-sided p.
    pub p: f64,
    /// Exact or approximated.
    pub precision: Precision,
}

/// Tests finite values in time order. `None` for fewer than three or something not finite.
#[must_use]
pub fn test(values: &[f64]) -> Option<Trend> {
    let n = values.len();
    if n < 3 || values.iter().any(|v| !v.is_finite()) {
        return None;
    }
    let mut sorted = values.to_vec();
    let mut spare = sorted.clone();
    let discordant = inversions(&mut sorted, &mut spare) as i64;
    let (mut tied_pairs, mut tie_term) = (0_i64, 0.0);
    for group in sorted.chunk_by(|a, b| a == b) {
        let t = group.len() as i64;
        tied_pairs += t * (t - 1) / 2;
        tie_term += (t * (t - 1) * (2 * t + 5)) as f64;
    }
    let pairs = (n * (n - 1) / 2) as i64;
    let s = pairs - tied_pairs - 2 * discordant;
    if tied_pairs == 0 && n <= EXACT_LIMIT {
        let fewer = ((pairs - s.abs()) / 2) as usize;
        let tail: f64 = inversion_masses(n)[..=fewer].iter().sum();
        return Some(Trend { s, p: (2.0 * tail).min(1.0), precision: Precision::Exact });
    }
    let n = n as f64;
    let variance = (n * (n - 1.0) * (2.0 * n + 5.0) - tie_term) / 18.0;
    let p = if variance > 0.0 {
        (2.0 * normal::upper_tail((s.abs() as f64 - 1.0).max(0.0) / variance.sqrt())).min(1.0)
    } else {
        1.0
    };
    Some(Trend { s, p, precision: Precision::Normal })
}

/// Sorts and counts pairs that stood in falling order.
fn inversions(values: &mut [f64], spare: &mut [f64]) -> u64 {
    let n = values.len();
    if n < 2 {
        return 0;
    }
    let middle = n / 2;
    let (left_spare, right_spare) = spare.split_at_mut(middle);
    let mut count =
        inversions(&mut values[..middle], left_spare) + inversions(&mut values[middle..], right_spare);
    spare.copy_from_slice(values);
    let (mut left, mut right) = (0, middle);
    for slot in values.iter_mut() {
        if left < middle && (right == n || spare[left] <= spare[right]) {
            *slot = spare[left];
            left += 1;
        } else {
            // Everything still on the left is larger than this one.
            count += (middle - left) as u64;
            *slot = spare[right];
            right += 1;
        }
    }
    count
}

/// P(inversions = k) of a random permutation of n, which is at most [`EXACT_LIMIT`]. Each is worked out once.
fn inversion_masses(n: usize) -> &'static [f64] {
    static KNOWN: [OnceLock<Vec<f64>>; EXACT_LIMIT + 1] = [const { OnceLock::new() }; EXACT_LIMIT + 1];
    KNOWN[n].get_or_init(|| masses_by_insertion(n))
}

/// By inserting one element after the other.
fn masses_by_insertion(n: usize) -> Vec<f64> {
    let mut masses = vec![1.0_f64];
    for size in 2..=n {
        let mut next = vec![0.0; masses.len() + size - 1];
        for (k, mass) in masses.iter().enumerate() {
            for slot in &mut next[k..k + size] {
                *slot += mass / size as f64;
            }
        }
        masses = next;
    }
    masses
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exact_tail_of_small_series() {
        // Kendall's table: n = 5, S = 8: P(S ≥ 8) = .042; n = 4 all rising: 1/24.
        let five = test(&[1.0, 2.0, 3.0, 5.0, 4.0]).unwrap();
        assert_eq!((five.s, five.precision), (8, Precision::Exact));
        assert!((five.p - 2.0 * 5.0 / 120.0).abs() < 1e-12);
        assert!((test(&[4.0, 3.0, 2.0, 1.0]).unwrap().p - 2.0 / 24.0).abs() < 1e-12);
        assert!(test(&[1.0, 2.0]).is_none());
    }

    #[test]
    fn ties_and_long_series_use_the_normal() {
        let flat = test(&[1.0; 20]).unwrap();
        assert_eq!((flat.s, flat.p), (0, 1.0));
        let rising: Vec<f64> = (0..50_000).map(f64::from).collect();
        let trend = test(&rising).unwrap();
        assert_eq!((trend.s, trend.precision), (50_000 * 49_999 / 2, Precision::Normal));
        assert!(trend.p < 1e-100);
    }

    #[test]
    fn counting_by_sorting_is_counting_pairs() {
        let values: Vec<f64> = (0..60).map(|i| f64::from((i * 37) % 23)).collect();
        let mut s = 0;
        for (i, earlier) in values.iter().enumerate() {
            for later in &values[i + 1..] {
                s += i64::from(later > earlier) - i64::from(later < earlier);
            }
        }
        assert_eq!(test(&values).unwrap().s, s);
    }
}
