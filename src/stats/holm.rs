//! Holm's step-down adjustment: family-wise error over several comparisons.
//!
//! Enters: p values. Leaves: adjusted p values in the same order; a claim at α is `adjusted ≤ α`.
//! Source: Holm (1979), Scand. J. Stat. 6:65.

/// Adjusted p: the running maximum of (m − rank)·p over ascending p, at most 1.
#[must_use]
pub fn adjust(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|a, b| p[*a].total_cmp(&p[*b]));
    let mut adjusted = vec![0.0; p.len()];
    let mut worst = 0.0_f64;
    for (rank, at) in order.into_iter().enumerate() {
        worst = worst.max((p.len() - rank) as f64 * p[at]).min(1.0);
        adjusted[at] = worst;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r_s_p_adjust() {
        // p.adjust(c(.01, .04, .03, .005), "holm") in R.
        let adjusted = adjust(&[0.01, 0.04, 0.03, 0.005]);
        for (have, want) in adjusted.iter().zip([0.03, 0.06, 0.06, 0.02]) {
            assert!((have - want).abs() < 1e-12, "{adjusted:?}");
        }
        assert_eq!(adjust(&[0.7, 0.9]), [1.0, 1.0]);
        assert!(adjust(&[]).is_empty());
    }
}
