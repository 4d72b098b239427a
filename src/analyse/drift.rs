//! Order, drift and memory in a paired comparison: things that do not move the verdict but must be told.
//!
//! Enters: the pairs of a primary comparison and their log ratios. Leaves: caveats.

use super::comparison::Caveat;
use super::table::Point;
use crate::stats::{autocorrelation, mann_kendall, order_effect, theil_sen};

/// p below which a trend is told.
const NOTABLE: f64 = 0.05;

pub(super) fn caveats(pairs: &[(Point, Point)], differences: &[f64]) -> Vec<Caveat> {
    let mut found = Vec::new();
    found.extend(order(pairs, differences));
    let baseline: Vec<f64> = pairs.iter().map(|(base, _)| base.value.ln()).collect();
    if let Some((slope_per_round, p)) = trend(&baseline) {
        found.push(Caveat::BaselineDrift { slope_per_round, p });
    }
    if let Some((slope_per_round, p)) = trend(differences) {
        found.push(Caveat::EffectDrift { slope_per_round, p });
    }
    found.extend(memory(differences));
    found
}

/// Successive differences that are correlated.
pub(super) fn memory(differences: &[f64]) -> Option<Caveat> {
    let r1 = autocorrelation::lag1(differences)?;
    autocorrelation::is_notable(r1, differences.len()).then_some(Caveat::Autocorrelated { r1 })
}

/// The estimated effect of running later; always told where both orders were used.
fn order(pairs: &[(Point, Point)], differences: &[f64]) -> Option<Caveat> {
    let of = |after: bool| -> Vec<f64> {
        let chosen = pairs
            .iter()
            .zip(differences)
            .filter(|((base, cand), _)| (cand.position > base.position) == after);
        chosen.map(|(_, d)| *d).collect()
    };
    let found = order_effect::estimate(&of(true), &of(false))?;
    Some(Caveat::OrderEffect { effect: found.effect.exp_m1(), p: found.p })
}

/// Theil–Sen slope as ratio − 1 a round where Mann–Kendall sees a trend.
fn trend(logs: &[f64]) -> Option<(f64, f64)> {
    let p = mann_kendall::test(logs)?.p;
    if p >= NOTABLE {
        return None;
    }
    Some((theil_sen::slope(logs)?.exp_m1(), p))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(rounds: u32, log_base: impl Fn(u32) -> f64, d: impl Fn(u32) -> f64) -> Vec<(Point, Point)> {
        let point = |round: u32, position: u32, log: f64| Point {
            round,
            position,
            started_unix_ns: 0,
            value: log.exp(),
        };
        let pair = |round: u32| {
            (
                point(round, round % 2, log_base(round)),
                point(round, 1 - round % 2, log_base(round) + d(round)),
            )
        };
        (0..rounds).map(pair).collect()
    }

    fn of(pairs: &[(Point, Point)]) -> Vec<Caveat> {
        caveats(pairs, &super::super::paired::log_ratios(pairs).unwrap())
    }

    fn wobble(round: u32) -> f64 {
        f64::from((round * 7 + 3) % 11) * 0.001
    }

    #[test]
    fn a_drifting_baseline_is_a_note_and_leaves_d_alone() {
        let found = of(&pairs(24, |round| 5.0 + 0.01 * f64::from(round), wobble));
        let drift = found.iter().find_map(|caveat| match caveat {
            Caveat::BaselineDrift { slope_per_round, p } => Some((*slope_per_round, *p)),
            _ => None,
        });
        let (slope, p) = drift.unwrap();
        assert!((slope - 0.01_f64.exp_m1()).abs() < 1e-6 && p < 1e-6);
        assert!(!found.iter().any(|caveat| matches!(caveat, Caveat::EffectDrift { .. })));
    }

    #[test]
    fn a_drifting_difference_and_the_order_effect_are_seen() {
        let found = of(&pairs(24, |_| 5.0, |round| 0.01 * f64::from(round) + wobble(round)));
        assert!(found.iter().any(
            |caveat| matches!(caveat, Caveat::EffectDrift { slope_per_round, .. } if *slope_per_round > 0.008)
        ));
        assert!(found.iter().any(|caveat| matches!(caveat, Caveat::Autocorrelated { r1 } if *r1 > 0.5)));
        // The candidate runs second in even rounds here.
        let found =
            of(&pairs(20, |_| 5.0, |round| if round % 2 == 0 { 0.05 } else { -0.05 } + wobble(round)));
        let effect = found.iter().find_map(|caveat| match caveat {
            Caveat::OrderEffect { effect, p } if *p < 0.01 => Some(*effect),
            _ => None,
        });
        assert!((effect.unwrap() - 0.05).abs() < 0.005, "{effect:?}");
    }
}
