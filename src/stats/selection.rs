//! The k-th smallest of a multiset too large to make: of all Walsh averages, of all differences of two samples.
//!
//! Enters: how many members are at most v, and the members between two values. Leaves: the exact k-th. Bisection
//! on the value narrows the bracket until few members are left in it; those are made and selected from. Ties that
//! never thin out are followed down to neighbouring doubles.
//! Source: the counting idea of Johnson & Mizoguchi (1978), SIAM J. Comput. 7:147.

/// What selection must know of a multiset.
pub(super) trait Countable {
    /// How many members are at most `value`.
    fn count_at_most(&self, value: f64) -> u64;

    /// All members in (`above`, `at_most`].
    fn between(&self, above: f64, at_most: f64) -> Vec<f64>;

    /// A number of members that is cheap to make.
    fn few(&self) -> u64;
}

/// The `rank`-th smallest member (from 1), which must lie in [`low`, `high`].
pub(super) fn nth(members: &impl Countable, low: f64, high: f64, rank: u64) -> f64 {
    // Just below `low` nothing is counted, so that (above, at_most] holds the member from the start.
    let (mut above, mut at_most) = (low.next_down(), high);
    let (mut count_above, mut count_at_most) = (0, u64::MAX);
    for _ in 0..64 {
        if count_at_most - count_above <= members.few() {
            let mut left = members.between(above, at_most);
            let place = ((rank - count_above - 1) as usize).min(left.len().saturating_sub(1));
            return *left.select_nth_unstable_by(place, f64::total_cmp).1;
        }
        let middle = above + 0.5 * (at_most - above);
        if !(middle > above && middle < at_most) {
            break;
        }
        let count = members.count_at_most(middle);
        if count >= rank {
            (at_most, count_at_most) = (middle, count);
        } else {
            (above, count_above) = (middle, count);
        }
    }
    smallest_reaching(members, above, at_most, rank)
}

/// The smallest double in (`above`, `at_most`] with `count_at_most ≥ rank`.
fn smallest_reaching(members: &impl Countable, above: f64, at_most: f64, rank: u64) -> f64 {
    let (mut below, mut reached) = (ordered_bits(above) + 1, ordered_bits(at_most));
    while below < reached {
        let middle = below + (reached - below) / 2;
        if members.count_at_most(from_ordered_bits(middle)) >= rank {
            reached = middle;
        } else {
            below = middle + 1;
        }
    }
    from_ordered_bits(reached)
}

/// Maps a finite double to an integer so that the order is kept (IEEE 754 totalOrder).
fn ordered_bits(value: f64) -> u64 {
    let bits = value.to_bits();
    if bits >> 63 == 0 { bits | (1 << 63) } else { !bits }
}

/// The inverse of [`ordered_bits`].
fn from_ordered_bits(bits: u64) -> f64 {
    f64::from_bits(if bits >> 63 == 1 { bits & !(1 << 63) } else { !bits })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A multiset made whole, with a chosen idea of "few".
    struct Made(Vec<f64>, u64);

    impl Countable for Made {
        fn count_at_most(&self, value: f64) -> u64 {
            self.0.iter().filter(|member| **member <= value).count() as u64
        }

        fn between(&self, above: f64, at_most: f64) -> Vec<f64> {
            self.0.iter().copied().filter(|member| *member > above && *member <= at_most).collect()
        }

        fn few(&self) -> u64 {
            self.1
        }
    }

    #[test]
    fn bits_keep_the_order() {
        let values = [-f64::MAX, -1.5, -1e-300, -0.0, 0.0, 1e-300, 2.0, f64::MAX];
        for pair in values.windows(2) {
            assert!(ordered_bits(pair[0]) < ordered_bits(pair[1]), "{pair:?}");
            assert_eq!(from_ordered_bits(ordered_bits(pair[0])).to_bits(), pair[0].to_bits());
        }
    }

    #[test]
    fn every_rank_is_found_with_ties_and_over_all_magnitudes() {
        let mut values =
            vec![-1e9, -3.0, -3.0, -3.0, -1e-12, 0.0, 0.0, 1e-300, 0.25, 7.0, 7.0, 7.0, 7.0, 1e12];
        for few in [0, 1, 3, 100] {
            let members = Made(values.clone(), few);
            values.sort_by(f64::total_cmp);
            for (at, value) in values.iter().enumerate() {
                let found = nth(&members, values[0], values[values.len() - 1], at as u64 + 1);
                assert_eq!(found, *value, "rank {}, few {few}", at + 1);
            }
        }
    }
}
