//! k_n for any N_max and α: how far the smaller rank sum may go at each look.
//!
//! Enters: N_max, the first look, α. Leaves: (n, k_n). k_n is the largest integer with
//! P0(not stopped before, min(W+, W−) ≤ k) ≤ f(n) − spent, f(n) = 0.044·(α/0.05)·ln(1 + (e − 1)·n/N_max).
//!
//! Up to [`MONTE_CARLO_LIMIT`] rounds: Monte Carlo with a fixed seed. Under symmetric continuous D the process
//! W+_n = #{i ≤ j ≤ n: D_i + D_j > 0} is free of D's distribution, so uniform magnitudes serve. Small α needs
//! rare paths: signs are drawn from a mixture of tilted laws and weighted back (importance sampling with the
//! balance heuristic, Veach & Guibas 1995), which holds the error near 1 % for α from 0.05 down to 1e−5.
//! Above: [`super::sequential_grid`].

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::{sequential_grid, signed_rank};

/// Largest N_max whose boundary is simulated.
pub const MONTE_CARLO_LIMIT: usize = 120;

/// α the rank looks spend of a family-wise 0.05.
const RANK_SHARE: f64 = 0.044;
const PATHS: usize = 50_000;
const SEED: u64 = 0x5eed_a55a;
/// Strengths of the tilt towards positive D; 0 is the null itself and bounds the weights by their number.
const TILTS: [f32; 4] = [0.0, 1.5, 3.0, 6.0];

/// Cumulative α spent by the rank looks up to n.
fn spending(n: usize, max_rounds: usize, alpha: f64) -> f64 {
    let share = n as f64 / max_rounds as f64;
    RANK_SHARE * alpha / 0.05 * (1.0 + (std::f64::consts::E - 1.0) * share).ln()
}

/// Cumulative α spent by the rank looks up to N_max.
#[must_use]
pub fn spent_at_the_end(alpha: f64) -> f64 {
    spending(1, 1, alpha)
}

/// (n, k_n) of every n from `first_look` to `max_rounds` at which a rank look can stop at all.
#[must_use]
pub fn compute(max_rounds: usize, first_look: usize, alpha: f64) -> Vec<(usize, u64)> {
    if max_rounds <= MONTE_CARLO_LIMIT {
        Paths::draw(max_rounds).spend(first_look, alpha)
    } else {
        sequential_grid::boundary(max_rounds, first_look, |n| spending(n, max_rounds, alpha))
    }
}

/// Simulated sign–rank paths with the logarithm-free likelihood of each tilt.
struct Paths {
    rounds: usize,
    /// D of path p at round i: `d[p * rounds + i]`.
    d: Vec<f32>,
}

impl Paths {
    fn draw(rounds: usize) -> Paths {
        let mut rng = ChaCha8Rng::seed_from_u64(SEED ^ rounds as u64);
        let mut d = Vec::with_capacity(PATHS * rounds);
        for path in 0..PATHS {
            let tilt = TILTS[path % TILTS.len()];
            for _ in 0..rounds {
                let magnitude: f32 = rng.random();
                let positive = rng.random::<f32>() < positive_chance(tilt, magnitude);
                d.push(if positive { magnitude } else { -magnitude });
            }
        }
        Paths { rounds, d }
    }

    /// Goes through the rounds, stopping paths as the boundary grows.
    fn spend(&self, first_look: usize, alpha: f64) -> Vec<(usize, u64)> {
        let mut alive: Vec<Path> = (0..PATHS).map(Path::new).collect();
        let (mut looks, mut spent) = (Vec::new(), 0.0);
        for n in 1..=self.rounds {
            for path in &mut alive {
                path.advance(&self.d[path.index * self.rounds..][..n]);
            }
            if n < first_look {
                continue;
            }
            let available = spending(n, self.rounds, alpha) - spent;
            // Nothing can have stopped before the first possible look: there the exact distribution serves.
            let found = if looks.is_empty() {
                signed_rank::critical(n, available).map(|k| (k, signed_rank::two_sided(n, k)))
            } else {
                largest_affordable(&alive, n, available)
            };
            let Some((k, cost)) = found else { continue };
            spent += cost;
            looks.push((n, k));
            let total = (n * (n + 1) / 2) as u64;
            alive.retain(|path| path.w_minus > k && total - path.w_minus > k);
        }
        looks
    }
}

struct Path {
    index: usize,
    w_minus: u64,
    /// Likelihood under each tilt relative to the null.
    likelihood: [f64; TILTS.len()],
}

impl Path {
    fn new(index: usize) -> Path {
        Path { index, w_minus: 0, likelihood: [1.0; TILTS.len()] }
    }

    /// Takes in the last of `d`.
    fn advance(&mut self, d: &[f32]) {
        let Some(newest) = d.last() else { return };
        // W− = #{i ≤ j: D_i + D_j < 0}, the new one's own pair included.
        let joined: u32 = d.iter().map(|earlier| u32::from(earlier + newest < 0.0)).sum();
        self.w_minus += u64::from(joined);
        for (likelihood, tilt) in self.likelihood.iter_mut().zip(TILTS) {
            let chance = positive_chance(tilt, newest.abs());
            *likelihood *= 2.0 * f64::from(if *newest > 0.0 { chance } else { 1.0 - chance });
        }
    }

    /// Weight that takes the mixture back to the null.
    fn weight(&self) -> f64 {
        TILTS.len() as f64 / self.likelihood.iter().sum::<f64>()
    }
}

fn positive_chance(tilt: f32, magnitude: f32) -> f32 {
    1.0 / (1.0 + (-tilt * magnitude).exp())
}

/// The largest k, and its cost, with 2·P0(alive, W− ≤ k) ≤ `available` (symmetry gives the factor 2).
fn largest_affordable(alive: &[Path], n: usize, available: f64) -> Option<(u64, f64)> {
    let mut mass = vec![0.0_f64; n * (n + 1) / 4 + 1];
    for path in alive {
        if let Some(bin) = mass.get_mut(path.w_minus as usize) {
            *bin += path.weight() / PATHS as f64;
        }
    }
    let (mut found, mut cost) = (None, 0.0);
    for (k, p) in mass.into_iter().enumerate() {
        cost += 2.0 * p;
        if cost > available {
            break;
        }
        found = Some((k as u64, cost));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_take_the_tilt_back() {
        // P(all of the first 8 on one side, or only the smallest not) = 4/256, whatever the sampling law.
        let paths = Paths::draw(8);
        let mut alive: Vec<Path> = (0..PATHS).map(Path::new).collect();
        for path in &mut alive {
            (1..=8).for_each(|n| path.advance(&paths.d[path.index * 8..][..n]));
        }
        let (_, cost) = largest_affordable(&alive, 8, 0.02).unwrap();
        assert!((cost - 4.0 / 256.0).abs() < 4e-4, "{cost}");
    }

    #[test]
    fn small_alpha_spends_what_it_may() {
        // Without stopping in between, the last look of a boundary cannot be rarer than its own share allows.
        let looks = compute(30, 7, 0.0005);
        assert!(looks[0].0 >= 13, "2^(1-n) must come under the spending: {looks:?}");
        let (n, k) = looks[looks.len() - 1];
        let single = signed_rank::two_sided(n, k);
        assert!(n == 30 && (2e-5..4.4e-4).contains(&single), "{single}");
        assert!(looks.windows(2).all(|pair| pair[0].1 <= pair[1].1), "{looks:?}");
    }

    #[test]
    fn the_grid_ends_at_the_last_round() {
        let looks = compute(1_000, 7, 0.05);
        assert_eq!(looks[looks.len() - 1].0, 1_000);
        // The looks overlap, so that their levels add up to more than they spend together.
        let levels: f64 = looks.iter().map(|(n, k)| signed_rank::two_sided(*n, *k)).sum();
        assert!((0.06..0.12).contains(&levels), "{levels}");
    }
}
