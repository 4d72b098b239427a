//! The normal distribution, and the order-preserving view of doubles that value bisection needs.
//!
//! Enters: a z score or a probability. Leaves: the other one. The distribution functions are statrs'.

use statrs::function::erf::{erfc, erfc_inv};

/// P(Z > z).
#[must_use]
pub fn upper_tail(z: f64) -> f64 {
    0.5 * erfc(z / std::f64::consts::SQRT_2)
}

/// The z with P(Z > z) = `tail`, 0 < tail < 1.
#[must_use]
pub fn upper_quantile(tail: f64) -> f64 {
    std::f64::consts::SQRT_2 * erfc_inv(2.0 * tail)
}

/// Maps a finite double to an integer so that the order is kept (IEEE 754 totalOrder): bisection over these
/// integers reaches the exact double in at most 64 steps, whatever the magnitudes.
pub(super) fn ordered_bits(value: f64) -> u64 {
    let bits = value.to_bits();
    if bits >> 63 == 0 { bits | (1 << 63) } else { !bits }
}

/// The inverse of [`ordered_bits`].
pub(super) fn from_ordered_bits(bits: u64) -> f64 {
    f64::from_bits(if bits >> 63 == 1 { bits & !(1 << 63) } else { !bits })
}

/// The smallest double v in [`low`, `high`] with `count(v) ≥ rank`, for a `count` that never falls.
/// `count(high) ≥ rank` must hold.
pub(super) fn bisect(low: f64, high: f64, rank: u64, count: impl Fn(f64) -> u64) -> f64 {
    let (mut below, mut reached) = (ordered_bits(low), ordered_bits(high));
    while below < reached {
        let middle = below + (reached - below) / 2;
        if count(from_ordered_bits(middle)) >= rank {
            reached = middle;
        } else {
            below = middle + 1;
        }
    }
    from_ordered_bits(reached)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_agree() {
        assert!((upper_quantile(0.025) - 1.959_963_984_540_054).abs() < 1e-9);
        assert!((upper_tail(1.959_963_984_540_054) - 0.025).abs() < 1e-9);
        assert!((upper_tail(-1.0) - 0.841_344_746_068_543).abs() < 1e-9);
    }

    #[test]
    fn bits_keep_the_order() {
        let values = [-f64::MAX, -1.5, -1e-300, -0.0, 0.0, 1e-300, 2.0, f64::MAX];
        for pair in values.windows(2) {
            assert!(ordered_bits(pair[0]) < ordered_bits(pair[1]), "{pair:?}");
            assert_eq!(from_ordered_bits(ordered_bits(pair[0])).to_bits(), pair[0].to_bits());
        }
    }
}
