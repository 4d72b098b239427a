//! Holm's step-down adjustment: family-wise error over several comparisons.
//!
//! Enters: p values. Leaves: adjusted p values in the same order; a claim at α is `adjusted ≤ α`.
//! Source: Holm (1979), Scand. J. Stat. 6:65.

/// Adjusted p: the running maximum of (m − rank)·p over ascending p, at most 1.
#[must_use]
pub fn adjust(p: &[f64]) -> Vec<f64> {
    stepped(p, |rank| (p.len() - rank) as f64)
}

/// Holm's procedure where each of m comparisons may also claim that there is no difference, from an interval that leaves out
/// α/m. Then α is for both kinds of false claim together. With u differences still open, a step has α(m + u)/(2mu), so that
/// m − rank becomes the harmonic mean of m and u.
///
/// Why: let z of the rows have no difference, and e one of δ or more, z + e ≤ m. A false difference is among z p values below
/// the step at which z are open, chance at most α(m + z)/(2m); a false "no difference" needs one end of an interval
/// to be wrong, chance at most e·α/(2m). Together at most α.
#[must_use]
pub fn adjust_beside_equivalence(p: &[f64]) -> Vec<f64> {
    let m = p.len() as f64;
    stepped(p, |rank| 2.0 * m * (m - rank as f64) / (2.0 * m - rank as f64))
}

/// The running maximum of factor(rank)·p over ascending p, at most 1.
fn stepped(p: &[f64], factor: impl Fn(usize) -> f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|a, b| p[*a].total_cmp(&p[*b]));
    let mut adjusted = vec![0.0; p.len()];
    let mut worst = 0.0_f64;
    for (rank, at) in order.into_iter().enumerate() {
        worst = worst.max(factor(rank) * p[at]).min(1.0);
        adjusted[at] = worst;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn with_equivalence_the_last_step_has_half() {
        let adjusted = adjust_beside_equivalence(&[0.01, 0.04]);
        assert!((adjusted[0] - 0.02).abs() < 1e-12, "the first step is Bonferroni's");
        assert!((adjusted[1] - 0.04 * 4.0 / 3.0).abs() < 1e-12, "of two the last has 3/4 of α: {adjusted:?}");
        assert_eq!(adjust_beside_equivalence(&[0.03]), [0.03], "one comparison has all of α");
    }

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
