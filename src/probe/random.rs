//! Numbers without a pattern, for places in a file and for contents that do not compress.
//!
//! Enters: a seed. Leaves: numbers. Source: SplitMix64, Steele, Lea & Flood 2014, "Fast splittable pseudorandom number generators".

/// The generator.
pub(super) struct Random(pub(super) u64);

impl Random {
    /// The next number.
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`, which is above 0. Its tiny bias does not matter for places in a file.
    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// Fills `bytes`.
    pub(super) fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            let word = self.next().to_ne_bytes();
            chunk.copy_from_slice(&word[..chunk.len()]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_sequence_comes_out() {
        // First outputs for the seed 1234567: the reference implementation of Vigna, https://prng.di.unimi.it/splitmix64.c.
        let mut random = Random(1_234_567);
        let first: Vec<u64> = (0..3).map(|_| random.next()).collect();
        assert_eq!(first, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
        let mut bytes = [0; 20];
        random.fill(&mut bytes);
        assert!(bytes.iter().any(|byte| *byte != 0) && (0..100).all(|_| random.below(7) < 7));
    }
}
