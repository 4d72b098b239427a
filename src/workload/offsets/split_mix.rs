//! Random numbers: small, fast, the same for the same seed everywhere.
//!
//! Enters: a seed. Leaves: numbers. It must not know what they decide.

/// SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, OOPSLA 2014).
#[derive(Clone, Debug)]
pub struct SplitMix(u64);

impl SplitMix {
    /// A stream of its own for each seed.
    #[must_use]
    #[inline]
    pub fn new(seed: u64) -> SplitMix {
        SplitMix(seed)
    }

    /// 64 random bits.
    #[inline]
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number from 0 to below 1.
    #[inline]
    pub(super) fn unit(&mut self) -> f64 {
        (self.draw() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
    }

    /// A number below `bound`, by Lemire's multiplication; the bias is below 2^-32 for any region there is.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.draw()) * u128::from(bound)) >> 64) as u64
    }
}
