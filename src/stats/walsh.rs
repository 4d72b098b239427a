//! Walsh averages (x_i + x_j)/2, i ≤ j: the Hodges–Lehmann estimate is their median, and the signed-rank interval
//! ends at two of them.
//!
//! Enters: finite numbers. Leaves: order statistics of their Walsh averages. Up to `SORT_LIMIT` values all
//! n(n+1)/2 averages are sorted; above, the k-th is found by bisection on the value with a two-pointer count,
//! O(n) memory and some twenty passes.
//! Sources: Hodges & Lehmann (1963), Ann. Math. Stat. 34:598; Hollander, Wolfe & Chicken, *Nonparametric
//! Statistical Methods* (2014) §3.2–3.3; Johnson & Mizoguchi (1978), SIAM J. Comput. 7:147 (selection in X + Y).

use super::selection::{self, Countable};
use super::{Estimate, signed_rank};

/// Largest n whose averages are made and sorted one by one (20,100 of them).
const SORT_LIMIT: usize = 200;

/// Order statistics of the Walsh averages of one sample.
#[derive(Clone, Debug)]
pub struct Walsh {
    /// The sample, ascending.
    sorted: Vec<f64>,
    /// All averages ascending, for small samples.
    averages: Option<Vec<f64>>,
}

impl Walsh {
    /// Prepares a sample of finite values; `values` may be in any order. `None` when it is empty or holds
    /// something that is not finite.
    #[must_use]
    pub fn new(values: &[f64]) -> Option<Walsh> {
        if values.is_empty() || values.iter().any(|v| !v.is_finite()) {
            return None;
        }
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let averages = (sorted.len() <= SORT_LIMIT).then(|| {
            let mut all = Vec::with_capacity(sorted.len() * (sorted.len() + 1) / 2);
            for (i, low) in sorted.iter().enumerate() {
                all.extend(sorted[i..].iter().map(|high| average(*low, *high)));
            }
            all.sort_unstable_by(f64::total_cmp);
            all
        });
        Some(Walsh { sorted, averages })
    }

    /// How many averages there are: n(n + 1)/2.
    #[must_use]
    pub fn count(&self) -> u64 {
        let n = self.sorted.len() as u64;
        n * (n + 1) / 2
    }

    /// The `rank`-th smallest average, counted from 1 and clamped to the averages there are.
    #[must_use]
    pub fn nth(&self, rank: u64) -> f64 {
        let rank = rank.clamp(1, self.count());
        if let Some(averages) = &self.averages {
            return averages[(rank - 1) as usize];
        }
        let (low, high) = (self.sorted[0], self.sorted[self.sorted.len() - 1]);
        selection::nth(&Averages(&self.sorted), low, high, rank)
    }

    /// Hodges–Lehmann: the median of the averages (the middle two averaged when their number is even).
    #[must_use]
    pub fn hodges_lehmann(&self) -> f64 {
        let count = self.count();
        let lower = self.nth(count.div_ceil(2));
        if count % 2 == 1 { lower } else { average(lower, self.nth(count / 2 + 1)) }
    }

    /// The interval [w_(k+1), w_(M−k)] around the Hodges–Lehmann estimate; `None` when 2k + 2 > M.
    #[must_use]
    pub fn interval(&self, k: u64) -> Option<Estimate> {
        let count = self.count();
        if 2 * k + 2 > count {
            return None;
        }
        Some(Estimate { estimate: self.hodges_lehmann(), low: self.nth(k + 1), high: self.nth(count - k) })
    }

    /// The signed-rank statistic with zeros and ties counted against a claim: the smaller of the number of
    /// averages ≥ 0 and the number ≤ 0. Without zeros and ties it is min(W+, W−) (Tukey's identity).
    #[must_use]
    pub fn signed_rank_statistic(&self) -> u64 {
        let not_positive = count_at_most(&self.sorted, 0.0);
        let negative = count_at_most(&self.sorted, -f64::from_bits(1));
        not_positive.min(self.count() - negative)
    }

    /// Two-sided signed-rank p of the statistic above. It is at most α exactly when the interval with
    /// [`signed_rank::critical`]`(n, α)` excludes 0.
    #[must_use]
    pub fn signed_rank_p(&self) -> f64 {
        signed_rank::two_sided(self.sorted.len(), self.signed_rank_statistic())
    }
}

/// Two-sided signed-rank p of finite `values`, as [`Walsh::signed_rank_p`], without making their averages; 1 for none.
#[must_use]
pub fn signed_rank_p_of(values: &[f64]) -> f64 {
    if values.is_empty() || values.iter().any(|value| !value.is_finite()) {
        return 1.0;
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    Walsh { sorted, averages: None }.signed_rank_p()
}

fn average(a: f64, b: f64) -> f64 {
    // Halved first: two huge values must not overflow.
    0.5 * a + 0.5 * b
}

/// Number of pairs i ≤ j whose average is at most `value`.
fn count_at_most(sorted: &[f64], value: f64) -> u64 {
    Averages(sorted).count_at_most(value)
}

/// The averages of an ascending sample, not made.
struct Averages<'a>(&'a [f64]);

impl Countable for Averages<'_> {
    fn count_at_most(&self, value: f64) -> u64 {
        let Averages(sorted) = self;
        // As x_i grows, fewer partners keep the average down; partners before i were counted from their side.
        let (mut partners, mut count) = (sorted.len(), 0_u64);
        for (i, x) in sorted.iter().enumerate() {
            while partners > i && average(*x, sorted[partners - 1]) > value {
                partners -= 1;
            }
            if partners <= i {
                break;
            }
            count += (partners - i) as u64;
        }
        count
    }

    fn between(&self, above: f64, at_most: f64) -> Vec<f64> {
        let Averages(sorted) = self;
        let (mut first, mut end) = (sorted.len(), sorted.len());
        let mut found = Vec::new();
        for (i, x) in sorted.iter().enumerate() {
            while end > i && average(*x, sorted[end - 1]) > at_most {
                end -= 1;
            }
            while first > i && average(*x, sorted[first - 1]) > above {
                first -= 1;
            }
            first = first.max(i);
            if end <= i {
                break;
            }
            found.extend(sorted[first..end].iter().map(|y| average(*x, *y)));
        }
        found
    }

    fn few(&self) -> u64 {
        2 * self.0.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The data of scipy's documentation of `wilcoxon` (Darwin's plants, Siegel's form).
    const PLANTS: [f64; 15] =
        [6.0, 8.0, 14.0, 16.0, 23.0, 24.0, 28.0, 29.0, 41.0, -48.0, 49.0, 56.0, 60.0, -67.0, 75.0];

    #[test]
    fn scipy_documentation_data() {
        let walsh = Walsh::new(&PLANTS).unwrap();
        assert_eq!(walsh.signed_rank_statistic(), 24);
        assert!((walsh.signed_rank_p() - 0.041_259_765_625).abs() < 1e-15);
        let interval = walsh.interval(25).unwrap();
        assert_eq!((interval.estimate, interval.low, interval.high), (25.0, 4.0, 41.5));
        assert_eq!(signed_rank::critical(15, 0.05), Some(25));
    }

    #[test]
    fn selection_agrees_with_sorting() {
        let values: Vec<f64> = (0..150).map(|i| f64::from((i * 7919) % 1009) / 10.0 - 50.0).collect();
        let sorted = Walsh::new(&values).unwrap();
        let selecting = Walsh { averages: None, ..sorted.clone() };
        for rank in [1, 2, 17, 5_000, 5_662, 5_663, 11_324, 11_325] {
            assert_eq!(sorted.nth(rank), selecting.nth(rank), "rank {rank}");
        }
        assert_eq!(sorted.hodges_lehmann(), selecting.hodges_lehmann());
    }

    #[test]
    fn nothing_and_nan_have_no_averages() {
        assert!(Walsh::new(&[]).is_none());
        assert!(Walsh::new(&[1.0, f64::NAN]).is_none());
        assert!(Walsh::new(&[1.0]).unwrap().interval(0).is_none());
    }

    proptest! {
        #[test]
        fn p_and_interval_agree(values in prop::collection::vec(-6_i32..9, 6..40)) {
            let values: Vec<f64> = values.into_iter().map(f64::from).collect();
            let walsh = Walsh::new(&values).unwrap();
            let interval = walsh.interval(signed_rank::critical(values.len(), 0.05).unwrap()).unwrap();
            prop_assert_eq!(walsh.signed_rank_p() <= 0.05, interval.excludes(0.0));
            prop_assert_eq!(walsh.signed_rank_p(), signed_rank_p_of(&values));
            prop_assert!(interval.low <= interval.estimate && interval.estimate <= interval.high);
        }

        #[test]
        fn mirrored_values_mirror_the_interval(values in prop::collection::vec(-1e3_f64..1e3, 4..30), k in 0_u64..4) {
            let mirrored: Vec<f64> = values.iter().map(|v| -v).collect();
            let (a, b) = (Walsh::new(&values).unwrap(), Walsh::new(&mirrored).unwrap());
            let (a, b) = (a.interval(k).unwrap(), b.interval(k).unwrap());
            prop_assert_eq!((a.low, a.high, a.estimate), (-b.high, -b.low, -b.estimate));
        }
    }
}
