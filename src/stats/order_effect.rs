//! What running later within the round did to a trial.
//!
//! Enters: D of the rounds where the candidate ran after the baseline, and of those where it ran before. Leaves:
//! the effect of running later on y (D = θ + e after, θ − e before, so half their Hodges–Lehmann shift) and the
//! exact Mann–Whitney p. Random order keeps e out of θ; this is only to be told.
//! Source: Hills & Armitage (1979), Br. J. Clin. Pharmacol. 8:7 (the two-period crossover).

use super::mann_whitney;
use super::shift::Shift;

/// Effect of running later, on the scale of D.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OrderEffect {
    /// e.
    pub effect: f64,
    /// Two-sided p of e = 0.
    pub p: f64,
}

/// `None` when either order has fewer than two rounds.
#[must_use]
pub fn estimate(candidate_after: &[f64], candidate_before: &[f64]) -> Option<OrderEffect> {
    if candidate_after.len() < 2 || candidate_before.len() < 2 {
        return None;
    }
    let effect = Shift::new(candidate_before, candidate_after)?.hodges_lehmann() / 2.0;
    Some(OrderEffect { effect, p: mann_whitney::test(candidate_before, candidate_after)?.p })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_the_difference_between_orders() {
        let after = [0.12, 0.11, 0.13, 0.12, 0.125];
        let before = [0.02, 0.01, 0.03, 0.02, 0.025];
        let found = estimate(&after, &before).unwrap();
        assert!((found.effect - 0.05).abs() < 1e-12 && found.p < 0.01, "{found:?}");
        assert!(estimate(&after, &before[..1]).is_none());
    }
}
