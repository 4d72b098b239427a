//! Benjamini–Hochberg's step-up adjustment: the share of false claims among many exploratory ones.
//!
//! Enters: p values. Leaves: adjusted p values in the same order; a discovery at q is `adjusted ≤ q`.
//! Source: Benjamini & Hochberg (1995), J. R. Stat. Soc. B 57:289.

/// Adjusted p: the running minimum, from the largest p down, of m/rank·p, at most 1.
#[must_use]
pub fn adjust(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|a, b| p[*b].total_cmp(&p[*a]));
    let mut adjusted = vec![0.0; p.len()];
    let mut least = 1.0_f64;
    for (from_top, at) in order.into_iter().enumerate() {
        least = least.min(p.len() as f64 / (p.len() - from_top) as f64 * p[at]);
        adjusted[at] = least;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r_s_p_adjust() {
        // p.adjust(c(.01, .04, .03, .005), "BH") in R.
        let adjusted = adjust(&[0.01, 0.04, 0.03, 0.005]);
        for (have, want) in adjusted.iter().zip([0.02, 0.04, 0.04, 0.02]) {
            assert!((have - want).abs() < 1e-12, "{adjusted:?}");
        }
        assert!(adjust(&[]).is_empty());
    }
}
