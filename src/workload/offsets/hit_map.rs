//! Which parts of a region were hit: one bit a granule, and a bit for each word that is full, and so on upwards.
//!
//! Enters: what was claimed. Leaves: what is free from a place on, in a few steps however much is hit. It must not know
//! bytes.

const BITS: u64 = u64::BITS as u64;

/// Granules that were hit.
#[derive(Clone, Debug)]
pub(super) struct HitMap {
    /// The first level has a bit a granule; a bit of each further one says that a word of the level below is full. Bits
    /// behind the last granule are set.
    levels: Vec<Vec<u64>>,
    granules: u64,
}

impl HitMap {
    pub(super) fn new(granules: u64) -> HitMap {
        let mut levels = Vec::new();
        let mut bits = granules;
        loop {
            let mut words = vec![0; bits.div_ceil(BITS) as usize];
            if let Some(last) = words.last_mut().filter(|_| !bits.is_multiple_of(BITS)) {
                *last = u64::MAX << (bits % BITS);
            }
            bits = words.len() as u64;
            levels.push(words);
            if bits <= 1 {
                return HitMap { levels, granules };
            }
        }
    }

    pub(super) fn clear(&mut self) {
        *self = HitMap::new(self.granules);
    }

    /// Granules not hit from `first` on, at most `most`.
    pub(super) fn free_run(&self, first: u64, most: u64) -> u64 {
        let end = self.granules.min(first.saturating_add(most));
        let mut at = first;
        while at < end {
            let ahead = self.levels[0][(at / BITS) as usize] >> (at % BITS);
            if ahead != 0 {
                return (at + u64::from(ahead.trailing_zeros())).min(end) - first;
            }
            at += BITS - at % BITS;
        }
        end.max(first) - first
    }

    /// The first granule at or behind `first` that was not hit.
    pub(super) fn next_free(&self, first: u64) -> Option<u64> {
        let (mut level, mut at) = (0, first);
        // Upwards until a word has a free bit behind the place, then down along the first free bits.
        loop {
            let word = self.levels.get(level)?.get((at / BITS) as usize)?;
            let free = !word & (u64::MAX << (at % BITS));
            if free != 0 {
                at = at / BITS * BITS + u64::from(free.trailing_zeros());
                break;
            }
            at = at / BITS + 1;
            level += 1;
        }
        while level > 0 {
            level -= 1;
            at = at * BITS + u64::from((!self.levels[level][at as usize]).trailing_zeros());
        }
        Some(at)
    }

    pub(super) fn claim(&mut self, first: u64, count: u64) {
        for granule in first..first + count {
            let mut at = granule;
            for words in &mut self.levels {
                let word = &mut words[(at / BITS) as usize];
                *word |= 1 << (at % BITS);
                if *word != u64::MAX {
                    break;
                }
                at /= BITS;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::SplitMix;

    #[test]
    fn the_next_free_granule_is_found_in_any_map() {
        for granules in [1_u64, 63, 64, 65, 4096, 4097, 300_000] {
            let mut map = HitMap::new(granules);
            let mut plain = vec![false; granules as usize];
            let mut random = SplitMix::new(granules);
            for step in 0..2000 {
                let first = random.below(granules);
                let expected = (first..granules).find(|at| !plain[*at as usize]);
                assert_eq!(map.next_free(first), expected, "{granules} {first}");
                let run = (first..granules.min(first + 100)).take_while(|at| !plain[*at as usize]).count();
                assert_eq!(map.free_run(first, 100), run as u64);
                let claimed =
                    if step < 1000 { random.below(granules / 100 + 2) } else { 1 }.min(granules - first);
                map.claim(first, claimed);
                plain[first as usize..(first + claimed) as usize].fill(true);
            }
        }
        let mut map = HitMap::new(5000);
        map.claim(0, 5000);
        assert_eq!((map.next_free(0), map.next_free(4999), map.next_free(5000)), (None, None, None));
        map.clear();
        assert_eq!((map.next_free(4999), map.next_free(5000)), (Some(4999), None));
        assert_eq!(HitMap::new(0).next_free(0), None);
    }
}
