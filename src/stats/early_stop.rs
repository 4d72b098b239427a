//! The estimate of a sequential run that stopped early with a claim, corrected for the stop.
//!
//! Enters: the Hodges–Lehmann estimate and the differences it comes from. Leaves: the estimate less the bias that
//! runs with this effect and noise have when they claim early: Whitehead's bias-adjusted estimate (1986, Biometrika
//! 73:573) in one step, θ̃ = θ̂ − 0.6·b(θ̂). b depends on θ/s alone, s the spread of D without stalls, and was fitted to a
//! simulation of the boundary of N_max = 30 and one row:
//!
//! | θ/s | 0.14 | 0.34 | 0.69 | 1.15 | 1.4 | 2.3 | 6.9 |
//! |---|---|---|---|---|---|---|---|
//! | b/s | 0.64 | 0.47 | 0.25 | 0.15 | 0.13 | 0.09 | 0.09 |
//!
//! Six tenths of it, so that longer runs and more rows, whose estimates are less biased, are not turned to the other side
//! by more than they were off. It cannot know more than the run does: where few runs claim and only the lucky ones
//! do, most of the bias stays. It is an estimate beside the plain one; interval and verdict are not touched by it.

use super::descriptive::median;

/// 0.6·b/s = FLOOR + RISE·exp(−DECAY·θ/s).
const FLOOR: f64 = 0.054;
const RISE: f64 = 0.372;
const DECAY: f64 = 1.9;
/// Standard deviations a median absolute deviation of normal noise.
const NORMAL: f64 = 1.4826;

/// The corrected estimate; never beyond 0 from `estimate`.
#[must_use]
pub fn corrected(estimate: f64, differences: &[f64]) -> f64 {
    let deviations: Vec<f64> = differences.iter().map(|d| (d - estimate).abs()).collect();
    let spread = NORMAL * median(&deviations);
    if spread.is_nan() || spread <= 0.0 {
        return estimate;
    }
    let bias = spread * (FLOOR + RISE * (-DECAY * estimate.abs() / spread).exp());
    (estimate.abs() - bias).max(0.0).copysign(estimate)
}

#[cfg(test)]
mod tests {
    use super::super::crossover::Crossover;
    use super::super::sequential::Boundary;
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    const RUNS: usize = 150;
    /// (effect, CV).
    const CASES: [(f64, f64); 6] =
        [(0.02, 0.01), (0.1, 0.01), (0.02, 0.03), (0.05, 0.03), (0.05, 0.1), (0.1, 0.1)];

    /// Mean bias of plain and corrected estimates over runs that claim before `most` rounds, as ratios; `None` for
    /// few claims. Noise: two trials of `cv` each, a stall of U(0.1, 0.5) in 5 % of them.
    fn biases(effect: f64, cv: f64, most: usize, rows: f64) -> Option<(f64, f64)> {
        let mut rng = ChaCha8Rng::seed_from_u64(17);
        let boundary = Boundary::new(most, 0.05 / rows, false);
        let mut trial = || {
            let normal = (0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0;
            let stalled = rng.random::<f64>() < 0.05;
            cv * normal + if stalled { rng.random_range(0.1..0.5) } else { 0.0 }
        };
        let delta = 1.02_f64.ln();
        let (mut plain, mut corrected_sum, mut claims) = (0.0, 0.0, 0);
        for _ in 0..RUNS {
            let mut differences = Vec::new();
            while differences.len() < most - 1 {
                differences.push(effect.ln_1p() + trial() - trial());
                let Some(look) = boundary.look(&Crossover::of_unknown_order(&differences)) else { continue };
                let interval = look.interval;
                if interval.within(delta) || interval.high < 0.0 {
                    break;
                }
                if interval.low > 0.0 {
                    claims += 1;
                    plain += interval.estimate.exp_m1() - effect;
                    corrected_sum += corrected(interval.estimate, &differences[..look.n]).exp_m1() - effect;
                    break;
                }
            }
        }
        (claims >= 15).then(|| (plain / f64::from(claims), corrected_sum / f64::from(claims)))
    }

    fn is_less_biased(most: usize, rows: f64, cases: &[(f64, f64)]) {
        for &(effect, cv) in cases {
            let Some((plain, corrected)) = biases(effect, cv, most, rows) else { continue };
            println!(
                "N_max {most}, {rows} rows, effect {effect}, CV {cv}: bias {:.2}, corrected {:.2} points",
                100.0 * plain,
                100.0 * corrected
            );
            assert!(corrected.abs() < plain.abs(), "{most} {rows} {effect} {cv}: {plain} {corrected}");
        }
    }

    #[test]
    fn corrected_estimates_are_less_biased() {
        is_less_biased(30, 1.0, &CASES);
    }

    #[test]
    fn corrected_estimates_are_less_biased_in_long_runs() {
        // Long runs take long to simulate.
        is_less_biased(60, 1.0, &CASES[3..5]);
    }

    #[test]
    fn corrected_estimates_are_less_biased_with_more_rows() {
        is_less_biased(30, 4.0, &CASES);
    }

    #[test]
    fn by_hand() {
        // Deviations from 1: 0.1 twice and 0.2 twice, their median 0.15.
        let found = corrected(1.0, &[0.9, 1.1, 0.8, 1.2]);
        let spread: f64 = 1.4826 * 0.15;
        let expected = 1.0 - spread * (0.054 + 0.372 * (-1.9 / spread).exp());
        assert!((found - expected).abs() < 1e-12);
        assert_eq!(corrected(-1.0, &[-0.9, -1.1, -0.8, -1.2]), -found);
        assert_eq!(corrected(0.5, &[0.5; 4]), 0.5);
        assert_eq!(corrected(0.001, &[-0.5, 0.5, 0.4, -0.4]), 0.0);
    }
}
