//! Paired differences of rounds that were run in two orders: AB, where the candidate came second, or BA.
//!
//! Enters: D of each round and whether the candidate came second in it. Leaves: signed-rank intervals and p for θ, the centre of D,
//! with the effect of the position taken out where it shows. It must not know looks, levels that share α, or verdicts.
//!
//! With x = ±1 for the order of a round, D = θ + βx + noise, β being what running second does. Each order was drawn by a fair
//! coin. So, if θ is θ₀, F = x(D − θ₀), the second trial of each round less the first with the arms' names taken off, does not
//! depend on the coins, and neither does its mean, nor whether its mean shows: the signs of x(F − mean F) are fair coins
//! whatever β and whatever the noise, and the signed-rank test of D − θ₀ − x·mean F is exact. Its interval has a closed form: with
//! x̄ and m the means of x and xD, D − θ₀ − x·mean F = (D − xm) − θ₀(1 − x·x̄), so that the sign of the sum of two of them
//! turns at a weighted Walsh average. Taking out a mean that is only noise costs power; so it is done only at those ends
//! of the interval at which a signed-rank test of F shows a position effect.
//! Source: the randomization is Fisher's, *The Design of Experiments* (1935) §21; Rosenbaum (2002), Statist. Sci. 17:286, on
//! exact tests of adjusted values; Hills & Armitage (1979), Br. J. Clin. Pharmacol. 8:7, on the two-period crossover.

use super::walsh::{Walsh, signed_rank_p_of};
use super::{Estimate, signed_rank};

/// p below which a position effect shows.
const SHOWS: f64 = 0.05;
/// With fewer rounds a position effect is not told from noise.
const FEWEST: usize = 6;
/// With more rounds the weighted averages are not made one by one: the effect that shows is taken out of each D beforehand.
const MOST_WEIGHTED: usize = 200;

/// D of each round, and the order it was run in.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Crossover {
    differences: Vec<f64>,
    /// +1: the candidate came second; −1: first. All 0: not known.
    order: Vec<f64>,
}

impl Crossover {
    /// Differences and whether the candidate came second; rounds are as many as the shorter of both.
    #[must_use]
    pub fn new(differences: &[f64], second: &[bool]) -> Crossover {
        let order = second.iter().map(|second| if *second { 1.0 } else { -1.0 });
        Crossover { order: order.take(differences.len()).collect(), differences: differences.to_vec() }
    }

    /// Differences whose order is unknown: nothing is taken out of them.
    #[must_use]
    pub fn of_unknown_order(differences: &[f64]) -> Crossover {
        Crossover { differences: differences.to_vec(), order: vec![0.0; differences.len()] }
    }

    /// Its first `n` rounds.
    #[must_use]
    pub fn first(&self, n: usize) -> Crossover {
        let n = n.min(self.len());
        Crossover { differences: self.differences[..n].to_vec(), order: self.order[..n].to_vec() }
    }

    /// Rounds.
    #[must_use]
    pub fn len(&self) -> usize {
        self.differences.len().min(self.order.len())
    }

    /// Whether there is no round.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// D of each round.
    #[must_use]
    pub fn differences(&self) -> &[f64] {
        &self.differences
    }

    /// The interval that leaves out the θ₀ at which min(W+, W−) ≤ `k`, around the Hodges–Lehmann estimate; `None` where k is too
    /// large for so few rounds, or nothing is finite.
    #[must_use]
    pub fn interval(&self, k: u64) -> Option<Estimate> {
        if self.len() > MOST_WEIGHTED {
            return self.cleared_beforehand()?.interval(k);
        }
        let plain = Walsh::new(&self.differences)?.interval(k)?;
        let (low, high) = (self.position_shows(plain.low), self.position_shows(plain.high));
        if !low && !high {
            return Some(plain);
        }
        let Some(cleared) = self.cleared(k) else { return Some(plain) };
        let low = if low { cleared.low } else { plain.low };
        let high = if high { cleared.high } else { plain.high };
        let mixed = Estimate { estimate: cleared.estimate.clamp(low.min(high), high.max(low)), low, high };
        Some(if low < high { mixed } else { plain })
    }

    /// Two-sided p of θ = 0, with zeros and ties counted against a claim. Beside an end of the interval at which a position effect just
    /// shows, the two may part; who prints both makes the interval follow.
    #[must_use]
    pub fn p(&self) -> Option<f64> {
        if self.is_empty() {
            return None;
        }
        if self.len() > MOST_WEIGHTED {
            return self.cleared_beforehand().map(|walsh| walsh.signed_rank_p());
        }
        let Some(averages) = self.position_shows(0.0).then(|| self.weighted_averages()).flatten() else {
            return Some(signed_rank_p_of(&self.differences));
        };
        let not_positive = averages.iter().filter(|average| **average <= 0.0).count();
        let not_negative = averages.iter().filter(|average| **average >= 0.0).count();
        Some(signed_rank::two_sided(self.len(), not_positive.min(not_negative) as u64))
    }

    /// Whether, if θ is `theta`, running second makes a difference.
    #[must_use]
    pub fn position_shows(&self, theta: f64) -> bool {
        if self.len() < FEWEST || self.order.contains(&0.0) {
            return false;
        }
        let rounds = self.order.iter().zip(&self.differences);
        let effects: Vec<f64> = rounds.map(|(x, d)| x * (d - theta)).collect();
        signed_rank_p_of(&effects) <= SHOWS
    }

    /// The interval with the mean effect of the position taken out; `None` where all rounds had one order.
    fn cleared(&self, k: u64) -> Option<Estimate> {
        let averages = self.weighted_averages()?;
        let (last, k) = (averages.len() - 1, k as usize);
        let estimate = f64::midpoint(averages[last / 2], averages[last.div_ceil(2)]);
        (2 * k < last).then(|| Estimate { estimate, low: averages[k], high: averages[last - k] })
    }

    /// The weighted Walsh averages, ascending; `None` where all rounds had one order.
    fn weighted_averages(&self) -> Option<Vec<f64>> {
        let n = self.len() as f64;
        let rounds = || self.order.iter().zip(&self.differences);
        let mean_order = self.order.iter().sum::<f64>() / n;
        let mean_effect = rounds().map(|(x, d)| x * d).sum::<f64>() / n;
        if mean_order.abs() == 1.0 {
            return None;
        }
        let weighted: Vec<(f64, f64)> =
            rounds().map(|(x, d)| (d - x * mean_effect, 1.0 - x * mean_order)).collect();
        let mut averages = Vec::with_capacity(weighted.len() * (weighted.len() + 1) / 2);
        for (i, (a, c)) in weighted.iter().enumerate() {
            averages.extend(weighted[i..].iter().map(|(other, weight)| (a + other) / (c + weight)));
        }
        averages.sort_unstable_by(f64::total_cmp);
        Some(averages)
    }

    /// The differences of many rounds, with the position effect at the Hodges–Lehmann estimate taken out where it shows.
    fn cleared_beforehand(&self) -> Option<Walsh> {
        let plain = Walsh::new(&self.differences)?;
        let theta = plain.hodges_lehmann();
        if !self.position_shows(theta) {
            return Some(plain);
        }
        let rounds = || self.order.iter().zip(&self.differences);
        let effect = rounds().map(|(x, d)| x * (d - theta)).sum::<f64>() / self.len() as f64;
        Walsh::new(&rounds().map(|(x, d)| d - x * effect).collect::<Vec<_>>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Alternating and not: 12 rounds with D = 0.01 + 0.05·x + noise that is written down.
    const NOISE: [f64; 12] =
        [0.004, -0.003, 0.001, 0.006, -0.005, -0.002, 0.003, -0.001, 0.002, -0.006, 0.005, -0.004];
    const SECOND: [bool; 12] = [true, false, false, true, true, false, true, false, true, true, false, false];

    fn rounds(theta: f64, beta: f64) -> Crossover {
        let at = |(noise, second): (&f64, &bool)| theta + if *second { beta } else { -beta } + noise;
        let differences: Vec<f64> = NOISE.iter().zip(&SECOND).map(at).collect();
        Crossover::new(&differences, &SECOND)
    }

    #[test]
    fn an_effect_of_the_position_does_not_widen_the_interval() {
        let k = signed_rank::critical(12, 0.05).unwrap();
        let (without, with) =
            (rounds(0.01, 0.0).interval(k).unwrap(), rounds(0.01, 0.05).interval(k).unwrap());
        assert!(with.high - with.low < 1.3 * (without.high - without.low), "{with:?} {without:?}");
        assert!((with.estimate - 0.01).abs() < 0.002 && with.excludes(0.0), "{with:?}");
        let unknown = Crossover::of_unknown_order(rounds(0.01, 0.05).differences()).interval(k).unwrap();
        assert!(unknown.high - unknown.low > 0.05, "{unknown:?}");
    }

    #[test]
    fn without_such_an_effect_it_is_the_signed_rank_interval() {
        let plain = rounds(0.01, 0.0);
        let walsh = Walsh::new(plain.differences()).unwrap();
        for k in [0, 5, 13] {
            assert_eq!(plain.interval(k), walsh.interval(k));
        }
        assert_eq!(plain.p(), Some(walsh.signed_rank_p()));
    }

    #[test]
    fn many_rounds_are_cleared_and_judged_in_one_piece() {
        let at = |round: usize| NOISE[round % 12] + 1e-6 * round as f64;
        let second: Vec<bool> = (0..240).map(|round| SECOND[(round + round / 12) % 12]).collect();
        let with = |beta: f64| {
            let d = |round: usize| 0.001 + if second[round] { beta } else { -beta } + at(round);
            Crossover::new(&(0..240).map(d).collect::<Vec<_>>(), &second)
        };
        let k = signed_rank::critical(240, 0.05).unwrap();
        let (without, with) = (with(0.0), with(0.05));
        let (a, b) = (without.interval(k).unwrap(), with.interval(k).unwrap());
        assert!(b.high - b.low < 1.1 * (a.high - a.low), "{a:?} {b:?}");
        assert!((a.estimate - b.estimate).abs() < 2e-4, "{a:?} {b:?}");
        for rounds in [without, with] {
            assert_eq!(rounds.p().unwrap() <= 0.05, rounds.interval(k).unwrap().excludes(0.0));
        }
    }

    #[test]
    fn one_order_only_tells_nothing_about_the_position() {
        let all = Crossover::new(&[0.1, 0.2, 0.15, 0.12, 0.18, 0.11, 0.13, 0.16], &[true; 8]);
        assert_eq!(all.interval(1), Walsh::new(all.differences()).unwrap().interval(1));
        assert!(Crossover::new(&[], &[]).p().is_none() && Crossover::default().is_empty());
    }

    #[test]
    fn the_test_is_exact_whatever_the_noise() {
        // All 2^10 coins over one fixed noise, of which every second trial of a round is 3 slower: the share of rejections
        // at k = 8, whose p is 0.048828, is at most that.
        let fixed = [3.137, 2.409, 3.671, 2.923, 3.352, 2.207, 3.889, 2.748, 3.496, 2.561];
        let of = |coins: u32| {
            let second: Vec<bool> = (0..10).map(|round| coins >> round & 1 == 1).collect();
            let turned = fixed.iter().zip(&second).map(|(f, second)| if *second { *f } else { -f });
            Crossover::new(&turned.collect::<Vec<_>>(), &second)
        };
        let share = |rejected: &dyn Fn(&Crossover) -> bool| {
            (0..1024).filter(|coins| rejected(&of(*coins))).count() as f64 / 1024.0
        };
        let by_p = share(&|rounds| rounds.p().unwrap() <= 0.05);
        // Two of the 1,024 have one order only, of which nothing can be taken out.
        assert!(by_p <= 52.0 / 1024.0 && by_p > 0.02, "{by_p}");
        let by_interval = share(&|rounds| rounds.interval(8).unwrap().excludes(0.0));
        assert!(by_interval <= by_p && by_interval > 0.02, "{by_interval} {by_p}");
    }

    proptest! {
        #[test]
        fn the_estimate_lies_in_the_interval_and_p_is_one(values in prop::collection::vec((-6_i32..9, any::<bool>()), 7..24)) {
            let differences: Vec<f64> = values.iter().map(|(d, _)| f64::from(*d)).collect();
            let second: Vec<bool> = values.iter().map(|(_, second)| *second).collect();
            let all = Crossover::new(&differences, &second);
            let interval = all.interval(signed_rank::critical(values.len(), 0.05).unwrap()).unwrap();
            prop_assert!(interval.low <= interval.estimate && interval.estimate <= interval.high);
            prop_assert!((0.0..=1.0).contains(&all.p().unwrap()));
        }

        #[test]
        fn exchanging_the_arms_mirrors_it(values in prop::collection::vec((-1.0_f64..1.0, any::<bool>()), 7..24), k in 0_u64..4) {
            let differences: Vec<f64> = values.iter().map(|(d, _)| *d).collect();
            let mirrored: Vec<f64> = differences.iter().map(|d| -d).collect();
            let second: Vec<bool> = values.iter().map(|(_, second)| *second).collect();
            let first: Vec<bool> = second.iter().map(|second| !second).collect();
            let (a, b) = (Crossover::new(&differences, &second).interval(k), Crossover::new(&mirrored, &first).interval(k));
            let (a, b) = (a.unwrap(), b.unwrap());
            prop_assert!((a.low + b.high).abs() < 1e-12 && (a.high + b.low).abs() < 1e-12);
        }
    }
}
