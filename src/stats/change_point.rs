//! Where the level of a series changes.
//!
//! Enters: values in the order of time. Leaves: the places from which on the level is another one, each with its p. At each place a series
//! can be cut, the means on both sides are compared by Student's t; the largest of these is judged by permutations, so that no
//! distribution of the values is assumed and looking at all places costs no error. Either side of a cut that is believed is searched
//! in turn.
//! Sources: Hawkins (1977), J. Am. Stat. Assoc. 72:180 (the largest t); Matteson & James (2014), J. Am. Stat. Assoc. 109:334
//! (permutations, and the search of both sides).

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use super::descriptive::{mean, variance};

/// Fewest values on either side of a cut: one or two that stick out are no new level.
pub const FEWEST: usize = 3;
/// Permutations besides the order that was seen.
const PERMUTATIONS: usize = 9_999;
/// The same series has the same p each time.
const SEED: u64 = 1;

/// The level is another one from a value on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChangePoint {
    /// Index of the first value of the new level.
    pub at: usize,
    /// Chance of so large a difference somewhere in a series whose level does not change.
    pub p: f64,
}

/// All changes at `alpha`, in the order of time. Values that are not finite have no level: there is none then.
#[must_use]
pub fn change_points(values: &[f64], alpha: f64) -> Vec<ChangePoint> {
    if values.iter().any(|value| !value.is_finite()) {
        return Vec::new();
    }
    let mut found = Vec::new();
    search(values, 0, alpha, &mut found);
    found.sort_by_key(|change| change.at);
    found
}

fn search(values: &[f64], offset: usize, alpha: f64, found: &mut Vec<ChangePoint>) {
    let Some((cut, largest)) = largest_step(values).filter(|(_, largest)| *largest > 0.0) else { return };
    let mut rng = ChaCha8Rng::seed_from_u64(SEED);
    let mut shuffled = values.to_vec();
    let mut as_large = 0_usize;
    for _ in 0..PERMUTATIONS {
        shuffled.shuffle(&mut rng);
        // The sums of another order round differently.
        let is_as_large = largest_step(&shuffled).is_some_and(|(_, other)| other >= largest * (1.0 - 1e-9));
        as_large += usize::from(is_as_large);
        // No longer believed, whatever the others are.
        if (as_large + 1) as f64 > alpha * (PERMUTATIONS + 1) as f64 {
            return;
        }
    }
    let p = (as_large + 1) as f64 / (PERMUTATIONS + 1) as f64;
    found.push(ChangePoint { at: offset + cut, p });
    let (left, right) = values.split_at(cut);
    search(left, offset, alpha, found);
    search(right, offset + cut, alpha, found);
}

/// The cut with the largest |t| of both sides' means, and that t²; infinite where neither side varies.
fn largest_step(values: &[f64]) -> Option<(usize, f64)> {
    let n = values.len();
    if n < 2 * FEWEST {
        return None;
    }
    let whole = mean(values);
    let all = variance(values) * (n as f64 - 1.0);
    let mut best = None;
    let mut left = 0.0;
    for cut in 1..=n - FEWEST {
        left += values[cut - 1] - whole;
        if cut < FEWEST {
            continue;
        }
        // Of the squares about the whole mean, those that the step explains.
        let explained = left * left * n as f64 / (cut as f64 * (n - cut) as f64);
        let rest = (all - explained).max(0.0);
        let t2 = if rest > all * 1e-12 {
            explained / rest * (n as f64 - 2.0)
        } else if explained > 0.0 {
            f64::INFINITY
        } else {
            0.0
        };
        if best.is_none_or(|(_, most)| t2 > most) {
            best = Some((cut, t2));
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::RngExt;

    fn noisy(levels: &[(usize, f64)], seed: u64) -> Vec<f64> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut noise = move || (0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0;
        levels.iter().flat_map(|(n, level)| vec![*level; *n]).map(|level| level + 0.01 * noise()).collect()
    }

    #[test]
    fn one_step_and_two_are_found_where_they_are() {
        let places =
            |values: &[f64]| change_points(values, 0.05).iter().map(|change| change.at).collect::<Vec<_>>();
        assert_eq!(places(&noisy(&[(6, 0.0), (5, 0.1)], 1)), [6]);
        assert_eq!(places(&noisy(&[(10, 0.0), (8, 0.1), (9, 0.0)], 2)), [10, 18]);
        assert_eq!(places(&[1.0, 1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 2.0]), [4]);
    }

    /// The Nile at Aswan, 1871–1970: the change after 1898 is the example of the field (Cobb 1978, Biometrika 65:243).
    #[test]
    fn the_nile_changes_after_1898() {
        let nile: Vec<f64> = NILE.iter().map(|flow| f64::from(*flow)).collect();
        let found = change_points(&nile, 0.05);
        assert_eq!(found.iter().map(|change| 1871 + change.at).collect::<Vec<_>>(), [1899]);
        assert!(found[0].p < 0.001, "{found:?}");
    }

    #[rustfmt::skip]
    const NILE: [u16; 100] = [
        1120, 1160, 963, 1210, 1160, 1160, 813, 1230, 1370, 1140, 995, 935, 1110, 994, 1020, 960, 1180, 799, 958, 1140,
        1100, 1210, 1150, 1250, 1260, 1220, 1030, 1100, 774, 840, 874, 694, 940, 833, 701, 916, 692, 1020, 1050, 969,
        831, 726, 456, 824, 702, 1120, 1100, 832, 764, 821, 768, 845, 864, 862, 698, 845, 744, 796, 1040, 759,
        781, 865, 845, 944, 984, 897, 822, 1010, 771, 676, 649, 846, 812, 742, 801, 1040, 860, 874, 848, 890,
        744, 749, 838, 1050, 918, 986, 797, 923, 975, 815, 1020, 906, 901, 1170, 912, 746, 919, 718, 714, 740,
    ];

    /// 400 series without a change: 5 % and three standard errors at most are said to have one.
    #[test]
    fn of_series_without_a_change_five_in_a_hundred_have_one() {
        let claimed =
            (0..400).filter(|seed| !change_points(&noisy(&[(10, 0.0)], 100 + seed), 0.05).is_empty()).count();
        assert!(claimed <= 20 + 13, "{claimed} of 400");
        assert!(claimed >= 5, "{claimed} of 400: the test never speaks");
    }

    #[test]
    fn too_few_values_and_those_that_never_change_have_none() {
        assert_eq!(change_points(&[1.0, 1.0, 1.0, 2.0, 2.0], 0.05), []);
        assert_eq!(change_points(&[3.0; 20], 0.05), []);
        assert_eq!(change_points(&[], 0.05), []);
        assert_eq!(change_points(&[1.0, f64::NAN, 2.0, 2.0, 2.0, 1.0, 1.0], 0.05), []);
    }
}
