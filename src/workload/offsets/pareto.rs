//! Ranks by Pareto's rule: `random_distribution=pareto:H`.
//!
//! Enters: how many ranks there are, h. Leaves: ranks, 0 the most popular. It must not know where a rank lies.

use super::SplitMix;

/// A share of `h` of the ranks has a share of 1 − `h` of the hits, and so again within those: the rank at the quantile u
/// is u^(ln h / ln(1−h)) of all (Knuth, The Art of Computer Programming 3, section 6.1, the 80-20 rule).
#[derive(Clone, Debug)]
pub(super) struct Pareto {
    last: f64,
    power: f64,
}

impl Pareto {
    pub(super) fn new(count: u64, h: f64) -> Pareto {
        Pareto { last: count.saturating_sub(1) as f64, power: h.ln() / (1.0 - h).ln() }
    }

    /// A rank below the count.
    #[inline]
    pub(super) fn draw(&self, random: &mut SplitMix) -> u64 {
        (self.last * random.unit().powf(self.power)) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eighty_percent_hit_twenty() {
        let pareto = Pareto::new(10_000, 0.2);
        let mut random = SplitMix::new(3);
        let low = (0..100_000).filter(|_| pareto.draw(&mut random) < 2_000).count();
        assert!(low.abs_diff(80_000) < 600, "{low}");
        assert_eq!(Pareto::new(1, 0.2).draw(&mut random), 0);
    }
}
