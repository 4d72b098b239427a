//! Wilcoxon's signed rank with ties and zeros: the exact conditional test.
//!
//! Enters: differences. Leaves: the exact two-sided p and the side they lean to. The differences keep their size and
//! each takes its sign with probability ½, so that ties cost nothing and need no correction. Zeros take part in the
//! ranking and are dropped afterwards (Pratt 1959, J. Am. Stat. Assoc. 54:655: dropping them before can make a
//! larger sample less significant). Midranks are doubled to stay whole.
//! Without ties and zeros this is [`super::signed_rank::two_sided`].

/// Most additions the distribution may take.
const MOST_WORK: usize = 20_000_000;
/// Sizes closer than this part of the largest are ties: binary fractions of decimal values.
const FLOAT_NOISE: f64 = 1e-9;

/// The exact test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExactTies {
    /// Two-sided p.
    pub p: f64,
    /// W+ − W−: positive when the differences lean upwards.
    pub lean: f64,
}

/// The test of finite differences; `None` without ties and zeros, where the plain test is as exact, and where it
/// would take too long.
#[must_use]
pub fn test(differences: &[f64]) -> Option<ExactTies> {
    let (ranks, dropped) = doubled_midranks(differences);
    let tied = dropped || ranks.windows(2).any(|pair| pair[0].0 == pair[1].0);
    let all: usize = ranks.iter().map(|(rank, _)| rank).sum();
    if !tied || all.saturating_mul(ranks.len()) > MOST_WORK {
        return None;
    }
    let up: usize = ranks.iter().filter(|(_, positive)| *positive).map(|(rank, _)| rank).sum();
    let smaller = up.min(all - up);
    let mut masses = vec![0.0_f64; smaller + 1];
    masses[0] = 1.0;
    for (rank, _) in &ranks {
        for sum in (0..=smaller).rev() {
            let shifted = if sum >= *rank { masses[sum - rank] } else { 0.0 };
            masses[sum] = 0.5 * (masses[sum] + shifted);
        }
    }
    let tail: f64 = masses.iter().sum();
    let lean = 0.5 * (up as f64 - (all - up) as f64);
    Some(ExactTies { p: (2.0 * tail).min(1.0), lean })
}

/// Twice the midrank and the sign of every difference that is not 0, by ascending size; and whether there were zeros.
fn doubled_midranks(differences: &[f64]) -> (Vec<(usize, bool)>, bool) {
    let mut sizes: Vec<(f64, bool)> = differences.iter().map(|d| (d.abs(), *d > 0.0)).collect();
    sizes.sort_by(|a, b| a.0.total_cmp(&b.0));
    let noise = FLOAT_NOISE * sizes.last().map_or(0.0, |largest| largest.0);
    let mut ranks = Vec::with_capacity(sizes.len());
    let (mut start, mut dropped) = (0, false);
    while start < sizes.len() {
        let tied = sizes[start..].iter().take_while(|(size, _)| size - sizes[start].0 <= noise).count();
        if sizes[start].0 <= noise {
            dropped = true;
        } else {
            // Ranks start + 1 … start + tied, the mean of first and last doubled.
            ranks.extend(sizes[start..start + tied].iter().map(|(_, up)| (2 * start + tied + 1, *up)));
        }
        start += tied;
    }
    (ranks, dropped)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn all_of_one_size_is_the_sign_test() {
        // One of ten against the others: 2·(1 + 10)/2^10.
        let mut differences = vec![0.3 - 0.2; 9];
        differences.push(0.1 - 0.2);
        let found = test(&differences).unwrap();
        assert!((found.p - 22.0 / 1024.0).abs() < 1e-15 && found.lean > 0.0, "{found:?}");
    }

    #[test]
    fn zeros_are_ranked_and_then_dropped() {
        // Seven up and three zeros: 2/2^7, whatever the ranks.
        let found = test(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 0.0, 0.0, 0.0]).unwrap();
        assert!((found.p - 2.0 / 128.0).abs() < 1e-15, "{found:?}");
        // Pratt's ranks of 0, 1, −2 and 3 are 1 (dropped), 2, 3, 4: W− = 3, and 1/8 + 1/8 + 1/8 lie at or below it.
        let found = test(&[0.0, 1.0, -2.0, 3.0]).unwrap();
        assert!((found.p - 0.75).abs() < 1e-15, "{found:?}");
        assert_eq!(test(&[0.0; 6]).map(|found| (found.p, found.lean)), Some((1.0, 0.0)));
        assert_eq!(test(&[1.0, -2.0, 3.0]), None);
    }

    proptest! {
        #[test]
        fn every_sign_is_tried(values in prop::collection::vec(-4_i32..6, 4..11)) {
            let differences: Vec<f64> = values.iter().map(|v| f64::from(*v)).collect();
            let (ranks, _) = doubled_midranks(&differences);
            if let Some(found) = test(&differences) {
                let all: usize = ranks.iter().map(|(rank, _)| rank).sum();
                let up: usize = ranks.iter().filter(|(_, up)| *up).map(|(rank, _)| rank).sum();
                let smaller = up.min(all - up);
                let low = (0_u32..1 << ranks.len()).filter(|signs| {
                    let chosen = ranks.iter().enumerate().filter(|(at, _)| signs >> at & 1 == 1);
                    chosen.map(|(_, (rank, _))| rank).sum::<usize>() <= smaller
                });
                let p = (2.0 * low.count() as f64 / f64::from(1_u32 << ranks.len())).min(1.0);
                prop_assert!((found.p - p).abs() < 1e-12, "{} {}", found.p, p);
            }
        }
    }
}
