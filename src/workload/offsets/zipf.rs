//! Ranks whose popularity falls with a power of their number: `random_distribution=zipf:THETA`.
//!
//! Enters: how many ranks there are, theta. Leaves: ranks, 0 the most popular, by the approximation fio uses, too: Gray
//! et al., Quickly Generating Billion-Record Synthetic Databases, SIGMOD 1994, section 3.2. It must not know where a
//! rank lies.

use super::SplitMix;

/// fio sums no more terms of the zeta function than these; the ranks behind them count as if it were all.
const MOST_TERMS: u64 = 10_000_000;
/// Terms added one by one before the rest is estimated.
const EXACT_TERMS: u64 = 1000;

/// Zipf's law over a number of ranks.
#[derive(Clone, Debug)]
pub(super) struct Zipf {
    ranks: f64,
    /// Sum of n^-theta over all ranks.
    zeta: f64,
    /// The same over the first two: below it the rank is known.
    zeta2: f64,
    eta: f64,
    alpha: f64,
}

impl Zipf {
    pub(super) fn new(count: u64, theta: f64) -> Zipf {
        let ranks = count.max(1) as f64;
        let zeta = zeta(count.clamp(1, MOST_TERMS), theta);
        let zeta2 = 1.0 + 0.5_f64.powf(theta);
        let eta = (1.0 - (2.0 / ranks).powf(1.0 - theta)) / (1.0 - zeta2 / zeta);
        Zipf { ranks, zeta, zeta2, eta, alpha: 1.0 / (1.0 - theta) }
    }

    /// A rank below the count.
    #[inline]
    pub(super) fn draw(&self, random: &mut SplitMix) -> u64 {
        let uniform = random.unit();
        let scaled = uniform * self.zeta;
        if scaled < 1.0 {
            0
        } else if scaled < self.zeta2 {
            1
        } else {
            (self.ranks * (self.eta * uniform - self.eta + 1.0).powf(self.alpha)) as u64
        }
    }
}

/// The sum of n^-theta for n from 1 to `terms`: the first ones exactly, the others by Euler and Maclaurin (DLMF 2.10.1) up
/// to the third derivative, whose next term is below 1e-15 of the sum.
fn zeta(terms: u64, theta: f64) -> f64 {
    let power = |n: f64| n.powf(-theta);
    let exact: f64 = (1..=terms.min(EXACT_TERMS)).map(|n| power(n as f64)).sum();
    if terms <= EXACT_TERMS {
        return exact;
    }
    let (first, last) = (EXACT_TERMS as f64, terms as f64);
    let slope = 1.0 - theta;
    let integral = first.powf(slope) * (slope * (last / first).ln()).exp_m1() / slope;
    let derivative = |n: f64| -theta * power(n) / n;
    let third = |n: f64| -theta * (theta + 1.0) * (theta + 2.0) * power(n) / (n * n * n);
    let corrections = (power(last) - power(first)) / 2.0 + (derivative(last) - derivative(first)) / 12.0
        - (third(last) - third(first)) / 720.0;
    exact + integral + corrections
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_what_adding_up_gives() {
        for theta in [0.3, 0.99, 1.1, 2.5] {
            for terms in [1_u64, 1000, 1001, 200_000] {
                let sum: f64 = (1..=terms).rev().map(|n| (n as f64).powf(-theta)).sum();
                assert!((zeta(terms, theta) / sum - 1.0).abs() < 1e-11, "{theta} {terms}");
            }
        }
    }

    #[test]
    fn the_first_ranks_have_their_shares() {
        let zipf = Zipf::new(10_240, 1.2);
        let mut random = SplitMix::new(1);
        let mut hits = [0_u32; 3];
        for _ in 0..100_000 {
            let rank = zipf.draw(&mut random);
            assert!(rank < 10_240);
            if let Some(count) = hits.get_mut(rank as usize) {
                *count += 1;
            }
        }
        // 1/zeta and 2^-1.2/zeta of all; fio 3.33 had 21458 and 9232 of 102400.
        for (hits, fio) in [(hits[0], 20_955.0), (hits[1], 9_016.0)] {
            assert!((f64::from(hits) - fio).abs() < 400.0, "{hits} {fio}");
        }
    }
}
