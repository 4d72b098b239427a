//! What a storage benchmark's trials look like in time order, on the log scale: ten kinds of noise, two that depend on the arm
//! that ran before, and one that has several at once.
//!
//! Enters: a kind, a spread, a seed. Leaves: the noise of one trial after the other. It must not know effects or verdicts.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

named! {
    /// A kind of noise. All but [`Kind::Full`] have N(0, CV) beneath, unless they say otherwise.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(super) enum Kind {
        /// N(0, CV).
        Normal = "normal",
        /// Skewed: twice CV times a lognormal of σ 0.8, less 1.
        Lognormal = "lognormal",
        /// Two modes 4·CV apart, each in half of the trials, with 0.3·CV around them.
        Bimodal = "bimodal",
        /// AR(1) of ρ 0.8 and stationary standard deviation CV, and nothing beneath.
        Autocorrelated = "AR(1) 0.8",
        /// A linear trend U(−9, 9)·CV per 20 trials.
        Drift = "drift",
        /// 5·CV more from a random trial among the first 60 on.
        Step = "step",
        /// The first judged trial of each round is 3 % slower.
        FirstOfRound = "first of round +3 %",
        /// Every third trial is 5 % slower.
        EveryThird = "every third +5 %",
        /// Two trials 5 % slower, two not, and so on.
        TwoAndTwo = "two slow, two fast",
        /// A trial after one of B is 5 % slower.
        AfterB5 = "after B +5 %",
        /// A trial after one of B is 10 % slower.
        AfterB10 = "after B +10 %",
        /// In 5 % of the trials a stall of U(0.1, 0.5).
        Stalls = "stalls",
        /// AR(1) drift of ρ 0.95 and CV, a trend U(−3, 3)·CV per 20 trials and stalls, all at once.
        Full = "all of the table above",
    }
}

const RHO: f64 = 0.95;
/// Added to the seed of a run for its noise, whose random numbers are none of those that draw its order.
pub(super) const OTHER_SEEDS: u64 = 1_000_000;
const STALL_CHANCE: f64 = 0.05;

/// The noise of successive trials.
pub(super) struct Noise {
    kind: Kind,
    rng: ChaCha8Rng,
    cv: f64,
    /// State of the AR(1) part, in units of its standard deviation.
    drift: f64,
    trend_per_trial: f64,
    step_at: u32,
    /// Where in its period a periodic kind begins.
    phase: u32,
    trials: u32,
    previous_was_b: bool,
}

impl Noise {
    pub(super) fn new(kind: Kind, cv: f64, seed: u64) -> Noise {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let steepest = if kind == Kind::Drift { 9.0 } else { 3.0 };
        let trend_per_trial = rng.random_range(-steepest..steepest) * cv / 20.0;
        let drift = normal(&mut rng);
        let (step_at, phase) = (rng.random_range(0..60), rng.random_range(0..12));
        Noise { kind, rng, cv, drift, trend_per_trial, step_at, phase, trials: 0, previous_was_b: false }
    }

    /// The next trial, of arm A or B; `first`: the first of its round that is judged.
    pub(super) fn next_trial(&mut self, is_b: bool, first: bool) -> f64 {
        let at = self.trials;
        self.trials += 1;
        let after_b = std::mem::replace(&mut self.previous_was_b, is_b);
        let z = normal(&mut self.rng);
        let beneath = self.cv * z;
        let when = |so: bool, much: f64| if so { much } else { 0.0 };
        match self.kind {
            Kind::Normal => beneath,
            Kind::Lognormal => 2.0 * self.cv * ((0.8 * z).exp() - 1.0),
            Kind::Bimodal => 0.3 * beneath + when(self.rng.random(), 4.0 * self.cv),
            Kind::Autocorrelated => {
                self.drift = 0.8 * self.drift + 0.6 * z;
                self.cv * self.drift
            }
            Kind::Drift => beneath + self.trend_per_trial * f64::from(at),
            Kind::Step => beneath + when(at >= self.step_at, 5.0 * self.cv),
            Kind::FirstOfRound => beneath + when(first, 0.03),
            Kind::EveryThird => beneath + when((at + self.phase).is_multiple_of(3), 0.05),
            Kind::TwoAndTwo => beneath + when((at + self.phase) % 4 < 2, 0.05),
            Kind::AfterB5 => beneath + when(after_b, 0.05),
            Kind::AfterB10 => beneath + when(after_b, 0.10),
            Kind::Stalls => beneath + self.stall(),
            Kind::Full => {
                self.drift = RHO * self.drift + (1.0 - RHO * RHO).sqrt() * normal(&mut self.rng);
                beneath + self.cv * self.drift + self.trend_per_trial * f64::from(at) + self.stall()
            }
        }
    }

    fn stall(&mut self) -> f64 {
        if self.rng.random::<f64>() < STALL_CHANCE { self.rng.random_range(0.1..0.5) } else { 0.0 }
    }
}

/// Box & Muller (1958).
pub(super) fn normal(rng: &mut ChaCha8Rng) -> f64 {
    let radius = (-2.0 * (1.0 - rng.random::<f64>()).ln()).sqrt();
    radius * (std::f64::consts::TAU * rng.random::<f64>()).cos()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::descriptive::{mean, stddev};

    #[test]
    fn the_full_noise_has_the_stated_spread() {
        // A trial 10 into a run: N, AR(1), the trend (uniform: 3·CV/20·10/√3) and stalls.
        let cv = 0.1;
        let values: Vec<f64> = (0..20_000)
            .map(|seed| {
                let mut noise = Noise::new(Kind::Full, cv, seed);
                (0..11).map(|_| noise.next_trial(false, false)).last().unwrap()
            })
            .collect();
        let stall_variance = 0.05 * (0.3 * 0.3 + 0.4 * 0.4 / 12.0) - (0.05 * 0.3_f64).powi(2);
        let trend = 3.0 * cv / 20.0 * 10.0 / 3_f64.sqrt();
        let expected = (2.0 * cv * cv + trend * trend + stall_variance).sqrt();
        assert!((stddev(&values) / expected - 1.0).abs() < 0.03, "{} {expected}", stddev(&values));
        assert!((mean(&values) - 0.015).abs() < 0.004);
    }

    #[test]
    fn what_depends_on_place_or_arm_does() {
        let of = |kind, arms: &[bool]| {
            let mut noise = Noise::new(kind, 0.0, 5);
            arms.iter()
                .enumerate()
                .map(|(at, is_b)| noise.next_trial(*is_b, at % 2 == 0))
                .collect::<Vec<f64>>()
        };
        assert_eq!(of(Kind::AfterB10, &[false, true, true, false, false]), [0.0, 0.0, 0.10, 0.10, 0.0]);
        assert_eq!(of(Kind::FirstOfRound, &[false; 4]), [0.03, 0.0, 0.03, 0.0]);
        let slow = |kind, n: usize| of(kind, &vec![false; n]).iter().filter(|noise| **noise > 0.0).count();
        assert_eq!(
            (slow(Kind::EveryThird, 30), slow(Kind::TwoAndTwo, 40), slow(Kind::Normal, 9)),
            (10, 20, 0)
        );
    }
}
