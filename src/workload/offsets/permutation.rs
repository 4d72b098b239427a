//! Every block once, in a random order.
//!
//! Enters: a count and random numbers. Leaves: each number below the count once. It must not know bytes.

use super::SplitMix;

/// With three, parities of neighbours in time are visibly related (tried on 2^14 to 2^20 blocks, 30 seeds); with four, no
/// more than chance has it.
const ROUNDS: usize = 4;

/// A pseudorandom order of 0..count in constant memory: a bijection of the next power of two, made of multiplications
/// by odd numbers and xor-shifts (each is invertible modulo 2^bits), walked on until it falls below the count (Black &
/// Rogaway, Ciphers with Arbitrary Finite Domains, CT-RSA 2002): never more than two steps a value on average. A value
/// depends on its number alone, so that a processor works on several at once.
#[derive(Clone, Debug)]
pub(super) struct Permutation {
    count: u64,
    mask: u64,
    shift: u32,
    first: u64,
    factors: [u64; ROUNDS],
    taken: u64,
}

impl Permutation {
    pub(super) fn new(count: u64, random: &mut SplitMix) -> Permutation {
        let bits = count.next_power_of_two().trailing_zeros().max(1);
        Permutation {
            count,
            mask: u64::MAX >> (64 - bits),
            // Half the width takes the upper bits, which a multiplication has mixed well, to the lower ones.
            shift: bits.div_ceil(2),
            first: random.draw(),
            factors: std::array::from_fn(|_| random.draw() | 1),
            taken: 0,
        }
    }

    /// The next value; every one below `count` comes once.
    #[inline]
    pub(super) fn draw(&mut self) -> Option<u64> {
        if self.taken >= self.count {
            return None;
        }
        self.taken += 1;
        Some(self.value(self.taken - 1))
    }

    /// Appends what `of` makes of the next values, up to `most` of them.
    #[inline]
    pub(super) fn fill(&mut self, most: usize, into: &mut Vec<u64>, of: impl Fn(u64) -> u64) {
        let first = self.taken;
        let end = self.count.min(first.saturating_add(most as u64));
        self.taken = end;
        into.extend((first..end).map(|number| of(self.value(number))));
    }

    /// The value of a number.
    #[inline]
    fn value(&self, number: u64) -> u64 {
        let mut value = self.mixed(number);
        while value >= self.count {
            value = self.mixed(value);
        }
        value
    }

    #[inline]
    fn mixed(&self, value: u64) -> u64 {
        let mut mixed = value.wrapping_add(self.first);
        for factor in self.factors {
            mixed = mixed.wrapping_mul(factor) & self.mask;
            mixed ^= mixed >> self.shift;
        }
        mixed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(count: u64, seed: u64) -> Vec<u64> {
        let mut order = Permutation::new(count, &mut SplitMix::new(seed));
        std::iter::from_fn(|| order.draw()).collect()
    }

    #[test]
    fn every_number_comes_once() {
        for count in (0..70).chain([127, 128, 129, 1000, 4095, 4096, 4097, 100_003]) {
            let mut values = all(count, count);
            values.sort_unstable();
            assert_eq!(values, (0..count).collect::<Vec<_>>());
        }
    }

    #[test]
    fn neighbours_in_time_are_strangers_in_place() {
        for (count, seed) in [(16_384_u64, 1), (16_384, 2), (10_007, 3), (1 << 18, 4)] {
            let values = all(count, seed);
            let n = (values.len() - 1) as f64;
            // Two independent draws are a third of the range apart; 4 standard errors of sqrt(1/18) each.
            let apart = values.windows(2).map(|pair| pair[0].abs_diff(pair[1]) as f64).sum::<f64>() / n;
            let expected = count as f64 / 3.0;
            assert!((apart / expected - 1.0).abs() < 4.0 * 0.71 / n.sqrt(), "{count} {seed}: {apart}");
            // A block's parity says nothing about the next one's; nor does the half it lies in.
            let same = |of: fn(u64, u64) -> bool| {
                values.windows(2).filter(|pair| of(pair[0], count) == of(pair[1], count)).count() as f64 / n
            };
            assert!((same(|value, _| value % 2 == 0) - 0.5).abs() < 2.0 / n.sqrt(), "{count} {seed}");
            assert!((same(|value, count| value < count / 2) - 0.5).abs() < 2.0 / n.sqrt(), "{count} {seed}");
        }
        assert_ne!(all(64, 1), all(64, 2));
    }
}
