//! The normal distribution.
//!
//! Enters: a z score or a probability. Leaves: the other one. The error function is statrs'.

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_agree() {
        assert!((upper_quantile(0.025) - 1.959_963_984_540_054).abs() < 1e-9);
        assert!((upper_tail(1.959_963_984_540_054) - 0.025).abs() < 1e-9);
        assert!((upper_tail(-1.0) - 0.841_344_746_068_543).abs() < 1e-9);
    }
}
