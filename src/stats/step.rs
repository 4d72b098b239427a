//! The step of a metric's values: the resolution with which they were counted, printed or binned.
//!
//! Enters: all values of a comparison on their own scale. Leaves: the smallest difference that two of them can
//! visibly have; 0 where no step can be seen. Three cases:
//!
//! - Most values are ties (no more than half of them are distinct): the smallest gap between two distinct values. This
//!   also finds steps without a common divisor, such as rates made from a coarse clock.
//! - Few ties: the common divisor of the gaps, by Euclid's algorithm with the remainder of least magnitude (Knuth,
//!   *The Art of Computer Programming* 2, §4.5.2), with a tolerance for binary fractions of decimal values.
//! - One value only: nothing is visible but the last decimal of its shortest decimal form.

/// Values and divisors closer than this part of the largest magnitude are rounding errors of binary fractions.
const FLOAT_NOISE: f64 = 1e-7;

/// The step of `values`; 0 where none is visible, infinite where there is no finite value.
#[must_use]
pub fn step(values: &[f64]) -> f64 {
    let mut sorted: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
    sorted.sort_by(f64::total_cmp);
    let (Some(first), Some(last)) = (sorted.first(), sorted.last()) else { return f64::INFINITY };
    let noise = FLOAT_NOISE * first.abs().max(last.abs());
    let gaps: Vec<f64> = sorted.windows(2).map(|pair| pair[1] - pair[0]).filter(|gap| *gap > noise).collect();
    if gaps.is_empty() {
        return last_decimal(*first);
    }
    let distinct = gaps.len() + 1;
    if 2 * distinct <= sorted.len() {
        return gaps.iter().copied().fold(f64::INFINITY, f64::min);
    }
    common_divisor(&gaps, noise)
}

/// The largest number of which all `gaps` are multiples; 0 where it would be noise.
fn common_divisor(gaps: &[f64], noise: f64) -> f64 {
    let mut divisor = 0.0_f64;
    for gap in gaps {
        let (mut larger, mut smaller) = (gap.max(divisor), gap.min(divisor));
        while smaller > noise {
            let remainder = (larger - smaller * (larger / smaller).round()).abs();
            (larger, smaller) = (smaller, remainder);
        }
        divisor = larger;
        if divisor <= 4.0 * noise {
            return 0.0;
        }
    }
    divisor
}

/// The place of the last decimal of the shortest text that means `value`: 1 for 5, 0.01 for 0.25.
fn last_decimal(value: f64) -> f64 {
    let text = value.to_string();
    let decimals = text.split_once('.').map_or(0, |(_, fraction)| fraction.len());
    10_f64.powi(-i32::try_from(decimals).unwrap_or(i32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn near(have: f64, want: f64) {
        assert!((have - want).abs() <= 1e-9 * want.abs().max(1e-12), "{have} instead of {want}");
    }

    #[test]
    fn decimals_with_few_digits_have_the_step_of_their_last() {
        near(step(&[12.31, 12.42, 12.44, 12.37, 12.50, 12.29]), 0.01);
        // Tenths that are all multiples of 0.3.
        near(step(&[0.3, 0.6, 0.9, 1.5]), 0.3);
        near(step(&[0.1 + 0.2, 0.3, 0.6, 0.4, 0.5]), 0.1);
    }

    #[test]
    fn integers_have_their_common_divisor() {
        near(step(&[97.0, 107.0, 117.0, 137.0, 127.0]), 10.0);
        near(step(&[10_240.0, 13_312.0, 11_264.0, 20_480.0]), 1_024.0);
        near(step(&[20_011.0, 20_017.0, 19_985.0, 20_104.0, 19_998.0]), 1.0);
    }

    #[test]
    fn ties_show_steps_without_a_common_divisor() {
        // Rates of a clock with steps of a tenth: 1/0.9, 1/1.0, 1/1.1.
        let rates = [1.0 / 0.9, 1.0, 1.0, 1.0 / 1.1, 1.0, 1.0 / 1.1, 1.0, 1.0 / 0.9];
        near(step(&rates), 1.0 - 1.0 / 1.1);
        near(step(&[5.0, 5.0, 5.0, 6.0]), 1.0);
        // Two arms, each with one value.
        near(step(&[100.0, 100.0, 100.0, 110.0, 110.0, 110.0]), 10.0);
    }

    #[test]
    fn float_noise_is_no_step() {
        let roots: Vec<f64> = (1..40).map(|i| 1e7 * f64::from(100 + i).sqrt()).collect();
        let found = step(&roots);
        assert!(found < 1e-5 * roots[0], "{found}");
        near(step(&[0.3, 0.1 + 0.2, 0.3, 0.3]), 0.1);
    }

    #[test]
    fn one_value_shows_its_last_decimal_only() {
        assert_eq!((step(&[5.0; 8]), step(&[100_000.0; 3])), (1.0, 1.0));
        near(step(&[0.25; 4]), 0.01);
        assert!(step(&[1.0 / 3.0; 4]) < 1e-15);
        assert_eq!(step(&[]), f64::INFINITY);
    }

    proptest! {
        #[test]
        fn every_gap_is_a_multiple(counts in prop::collection::vec(900_i32..1200, 8..60), unit in 1e-6_f64..1e6) {
            let values: Vec<f64> = counts.iter().map(|count| f64::from(*count) * unit).collect();
            let distinct: std::collections::BTreeSet<i32> = counts.iter().copied().collect();
            let found = step(&values) / unit;
            prop_assert!(found > 0.99 || distinct.len() == 1, "{}", found);
            if 2 * distinct.len() > counts.len() {
                let least = *distinct.first().unwrap();
                for count in &distinct {
                    let multiple = f64::from(count - least) / found;
                    prop_assert!((multiple - multiple.round()).abs() < 1e-6, "{} {}", count, found);
                }
            }
        }
    }
}
