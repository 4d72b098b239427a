//! Blocks that are not hit alike: a rank, and where in the region it lies.
//!
//! Enters: a distribution, how many blocks there are, a seed. Leaves: blocks. It must not know bytes.

use super::SplitMix;
use super::normal::Normal;
use super::pareto::Pareto;
use super::zipf::Zipf;
use crate::workload::placement::Distribution;

/// What fio multiplies a rank with to scatter the ranks over the region: 2^64 divided by the golden ratio, negated (Knuth,
/// The Art of Computer Programming 3, section 6.4). Modulo a number of blocks that is no power of two some ranks share
/// a block and some blocks are never hit, in fio as here.
const SCATTER: u64 = 0x61c8_8646_80b5_83eb;
/// Sets this stream apart from the others of the same seed.
const STREAM: u64 = 0x6a09_e667_f3bc_c909;

#[derive(Clone, Debug)]
enum Ranks {
    Zipf(Zipf),
    Pareto(Pareto),
    Normal(Normal),
}

/// Blocks below a count, some more popular than others.
#[derive(Clone, Debug)]
pub(super) struct Skew {
    ranks: Ranks,
    count: u64,
    /// Where the first rank lies.
    shift: u64,
    /// 1: ranks lie side by side.
    scatter: u64,
    random: SplitMix,
}

impl Skew {
    /// Ranks scattered over the region; `None` for distributions that have no ranks.
    pub(super) fn scattered(distribution: &Distribution, count: u64, seed: u64) -> Option<Skew> {
        Skew::new(distribution, count, seed, SCATTER)
    }

    /// Ranks side by side.
    pub(super) fn side_by_side(distribution: &Distribution, count: u64, seed: u64) -> Option<Skew> {
        Skew::new(distribution, count, seed, 1)
    }

    fn new(distribution: &Distribution, count: u64, seed: u64, scatter: u64) -> Option<Skew> {
        let mut random = SplitMix::new(seed ^ STREAM);
        let count = count.max(1);
        // Anywhere, or at the center if one is given; a bell has its center in the middle anyway.
        let anywhere = random.below(count);
        let at = |center: f64| (count as f64 * center) as u64 % count;
        let (ranks, shift) = match *distribution {
            Distribution::Zipf { theta, center } => {
                (Ranks::Zipf(Zipf::new(count, theta)), center.map_or(anywhere, at))
            }
            Distribution::Pareto { h, center } => {
                (Ranks::Pareto(Pareto::new(count, h)), center.map_or(anywhere, at))
            }
            Distribution::Normal { deviation_percent, center } => (
                Ranks::Normal(Normal::new(count, deviation_percent)),
                center.map_or(0, |center| at((center - 0.5).rem_euclid(1.0))),
            ),
            Distribution::Uniform | Distribution::Zoned(_) => return None,
        };
        Some(Skew { ranks, count, shift, scatter, random })
    }

    /// A block below the count.
    #[inline]
    pub(super) fn draw(&mut self) -> u64 {
        let rank = match &self.ranks {
            Ranks::Zipf(zipf) => zipf.draw(&mut self.random),
            Ranks::Pareto(pareto) => pareto.draw(&mut self.random),
            Ranks::Normal(normal) => normal.draw(&mut self.random),
        };
        rank.wrapping_mul(self.scatter).wrapping_add(self.shift) % self.count
    }
}
