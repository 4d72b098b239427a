//! Which parts of a region were hit: one bit a granule.
//!
//! Enters: what was claimed. Leaves: how much is free from a place on. It must not know bytes.

/// One bit a granule.
#[derive(Clone, Debug)]
pub(super) struct HitMap {
    words: Vec<u64>,
    granules: u64,
}

impl HitMap {
    pub(super) fn new(granules: u64) -> HitMap {
        HitMap { words: vec![0; granules.div_ceil(64) as usize], granules }
    }

    pub(super) fn clear(&mut self) {
        self.words.fill(0);
    }

    /// Granules not hit from `first` on, at most `most`.
    pub(super) fn free_run(&self, first: u64, most: u64) -> u64 {
        let end = self.granules.min(first.saturating_add(most));
        let mut at = first;
        while at < end {
            let ahead = self.words[(at / 64) as usize] >> (at % 64);
            if ahead != 0 {
                return (at + u64::from(ahead.trailing_zeros())).min(end) - first;
            }
            at += 64 - at % 64;
        }
        end.max(first) - first
    }

    pub(super) fn claim(&mut self, first: u64, count: u64) {
        for granule in first..first + count {
            self.words[(granule / 64) as usize] |= 1 << (granule % 64);
        }
    }
}
