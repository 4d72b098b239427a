//! The Hodges–Lehmann shift of two unpaired samples: the median of all differences y_j − x_i, with its exact interval.
//!
//! Enters: two samples. Leaves: estimate and interval [d_(c+1), d_(nm−c)], c from the untied distribution of U
//! (with ties it is conservative). Up to `SORT_LIMIT` differences are sorted; above, order statistics are found
//! by bisection on the value with a two-pointer count, in O(n + m) memory.
//! Sources: Hodges & Lehmann (1963); Moses' interval, Hollander, Wolfe & Chicken (2014) §4.2–4.3.

use super::selection::{self, Countable};
use super::{Estimate, Precision, mann_whitney};

/// Most differences that are made and sorted one by one.
const SORT_LIMIT: usize = 40_000;

/// Order statistics of all differences y − x.
#[derive(Clone, Debug)]
pub struct Shift {
    x: Vec<f64>,
    y: Vec<f64>,
    differences: Option<Vec<f64>>,
}

impl Shift {
    /// Prepares two samples of finite values. `None` when one is empty or holds something not finite.
    #[must_use]
    pub fn new(x: &[f64], y: &[f64]) -> Option<Shift> {
        if x.is_empty() || y.is_empty() || x.iter().chain(y).any(|v| !v.is_finite()) {
            return None;
        }
        let sorted = |values: &[f64]| {
            let mut sorted = values.to_vec();
            sorted.sort_by(f64::total_cmp);
            sorted
        };
        let (x, y) = (sorted(x), sorted(y));
        let differences = (x.len() * y.len() <= SORT_LIMIT).then(|| {
            let mut all: Vec<f64> = x.iter().flat_map(|a| y.iter().map(move |b| b - a)).collect();
            all.sort_by(f64::total_cmp);
            all
        });
        Some(Shift { x, y, differences })
    }

    fn count(&self) -> u64 {
        (self.x.len() * self.y.len()) as u64
    }

    /// The `rank`-th smallest difference, counted from 1 and clamped.
    fn nth(&self, rank: u64) -> f64 {
        let rank = rank.clamp(1, self.count());
        if let Some(differences) = &self.differences {
            return differences[(rank - 1) as usize];
        }
        let low = self.y[0] - self.x[self.x.len() - 1];
        let high = self.y[self.y.len() - 1] - self.x[0];
        selection::nth(self, low, high, rank)
    }

    /// The median difference.
    #[must_use]
    pub fn hodges_lehmann(&self) -> f64 {
        let count = self.count();
        let lower = self.nth(count.div_ceil(2));
        if count % 2 == 1 { lower } else { f64::midpoint(lower, self.nth(count / 2 + 1)) }
    }

    /// The two-sided 1 − `alpha` interval, and whether its c is exact; `None` for samples too small to have one.
    #[must_use]
    pub fn interval(&self, alpha: f64) -> Option<(Estimate, Precision)> {
        let (c, precision) = mann_whitney::critical(self.x.len(), self.y.len(), alpha);
        let c = c?;
        let (low, high) = (self.nth(c + 1), self.nth(self.count() - c));
        Some((Estimate { estimate: self.hodges_lehmann(), low, high }, precision))
    }
}

impl Countable for Shift {
    fn count_at_most(&self, value: f64) -> u64 {
        // As x grows, more of the y are within `value` of it.
        let (mut within, mut count) = (0_usize, 0_u64);
        for x in &self.x {
            while within < self.y.len() && self.y[within] - x <= value {
                within += 1;
            }
            count += within as u64;
        }
        count
    }

    fn between(&self, above: f64, at_most: f64) -> Vec<f64> {
        let (mut first, mut end) = (0_usize, 0_usize);
        let mut found = Vec::new();
        for x in &self.x {
            while first < self.y.len() && self.y[first] - x <= above {
                first += 1;
            }
            while end < self.y.len() && self.y[end] - x <= at_most {
                end += 1;
            }
            found.extend(self.y[first..end].iter().map(|y| y - x));
        }
        found
    }

    fn few(&self) -> u64 {
        2 * (self.x.len() + self.y.len()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn by_hand() {
        let shift = Shift::new(&[1.0, 2.0, 3.0, 4.0], &[2.0, 4.0, 6.0, 9.0]).unwrap();
        // Differences: −2 −1 0 0 1 1 2 2 3 3 4 5 5 6 7 8, and c = 0 for 4 against 4.
        assert_eq!(shift.hodges_lehmann(), 2.5);
        let (interval, precision) = shift.interval(0.05).unwrap();
        assert_eq!((interval.low, interval.high, precision), (-2.0, 8.0, Precision::Exact));
        assert!(Shift::new(&[1.0], &[2.0]).unwrap().interval(0.05).is_none());
    }

    #[test]
    fn five_thousand_a_side_by_selection() {
        let x: Vec<f64> = (0..5_000).map(|i| f64::from((i * 7919) % 5_003)).collect();
        let y: Vec<f64> = x.iter().map(|v| v + 37.5).collect();
        let (interval, precision) = Shift::new(&x, &y).unwrap().interval(0.05).unwrap();
        assert!((interval.estimate - 37.5).abs() < 1e-9, "{interval:?}");
        assert!(interval.low < 37.5 && interval.high > 37.5 && precision == Precision::Normal);
    }

    proptest! {
        #[test]
        fn selection_is_sorting(x in prop::collection::vec(-50_i32..50, 1..25), y in prop::collection::vec(-50_i32..50, 1..25)) {
            let real = |v: Vec<i32>| v.into_iter().map(|i| f64::from(i) / 8.0).collect::<Vec<_>>();
            let sorted = Shift::new(&real(x), &real(y)).unwrap();
            let selecting = Shift { differences: None, ..sorted.clone() };
            for rank in 1..=sorted.count() {
                prop_assert_eq!(sorted.nth(rank), selecting.nth(rank));
            }
        }

        #[test]
        fn swapping_the_samples_mirrors(x in prop::collection::vec(-1e2_f64..1e2, 4..12), y in prop::collection::vec(-1e2_f64..1e2, 4..12)) {
            let a = Shift::new(&x, &y).unwrap().interval(0.05).unwrap().0;
            let b = Shift::new(&y, &x).unwrap().interval(0.05).unwrap().0;
            prop_assert!((a.low + b.high).abs() < 1e-9 && (a.high + b.low).abs() < 1e-9);
            prop_assert!(a.low <= a.estimate && a.estimate <= a.high);
        }
    }
}
