//! Where the next I/O of a file goes: pure generators, seeded, a few nanoseconds each.
//!
//! Enters: a job's pattern and block sizes, a region, a seed. Leaves: offsets and lengths. Nothing here knows files or
//! time. What is covered agrees with fio: sequential to the end of the region; random with a map every block exactly
//! once (a block that no longer fits whole is trimmed at a neighbour already hit); random without a map anywhere.

use super::job::{Access, BlockRange, Job, Mix};

/// fio's `ddir`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DataDirection {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Discards.
    Trim,
}

/// SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, OOPSLA 2014).
#[derive(Clone, Debug)]
pub struct SplitMix(u64);

impl SplitMix {
    /// A stream of its own for each seed.
    #[must_use]
    pub fn new(seed: u64) -> SplitMix {
        SplitMix(seed)
    }

    /// 64 random bits.
    #[inline]
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A number below `bound`, by Lemire's multiplication; the bias is below 2^-32 for any region there is.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.draw()) * u128::from(bound)) >> 64) as u64
    }
}

#[inline]
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Which direction the next I/O has.
#[derive(Clone, Debug)]
pub struct DirectionChoice {
    mix: Mix,
    random: SplitMix,
}

impl DirectionChoice {
    /// For a job's mix.
    #[must_use]
    pub fn new(mix: Mix, seed: u64) -> DirectionChoice {
        DirectionChoice { mix, random: SplitMix::new(seed) }
    }

    /// A draw for each I/O of a mixed job, as in fio: shares are met on average.
    #[inline]
    pub fn draw(&mut self) -> DataDirection {
        match self.mix {
            Mix::Read => DataDirection::Read,
            Mix::Write => DataDirection::Write,
            Mix::Trim => DataDirection::Trim,
            Mix::ReadWrite { read_percent } if self.random.below(100) < u64::from(read_percent) => {
                DataDirection::Read
            }
            Mix::ReadWrite { .. } => DataDirection::Write,
        }
    }
}

/// A pseudorandom order of 0..count in constant memory: a Feistel network over the next power of two, walked until it
/// falls into the range (Black & Rogaway, Ciphers with Arbitrary Finite Domains, CT-RSA 2002).
#[derive(Clone, Debug)]
struct Permutation {
    count: u64,
    low_bits: u32,
    high_bits: u32,
    keys: [u64; 4],
}

impl Permutation {
    fn new(count: u64, random: &mut SplitMix) -> Permutation {
        let bits = (64 - count.saturating_sub(1).leading_zeros()).max(2);
        let keys = [random.draw(), random.draw(), random.draw(), random.draw()];
        Permutation { count, low_bits: bits / 2, high_bits: bits - bits / 2, keys }
    }

    #[inline]
    fn at(&self, index: u64) -> u64 {
        let mut value = index;
        loop {
            value = self.once(value);
            if value < self.count {
                return value;
            }
        }
    }

    #[inline]
    fn once(&self, value: u64) -> u64 {
        let (low_mask, high_mask) = ((1_u64 << self.low_bits) - 1, (1_u64 << self.high_bits) - 1);
        let (mut low, mut high) = (value & low_mask, value >> self.low_bits);
        for keys in self.keys.chunks_exact(2) {
            low ^= round(high, keys[0]) & low_mask;
            high ^= round(low, keys[1]) & high_mask;
        }
        (high << self.low_bits) | low
    }
}

#[inline]
fn round(half: u64, key: u64) -> u64 {
    let product = (half ^ key).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (product ^ (product >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93) >> 32
}

/// How offsets follow each other.
#[derive(Clone, Debug)]
enum Order {
    /// The next offset in the region, one a direction.
    Sequential([u64; 3]),
    /// Every block once: blocks of one size, in the order of a permutation.
    Once { order: Permutation, next: u64 },
    /// Every granule once with blocks of many sizes: the map says which were hit.
    Mapped { order: Permutation, next: u64, hit: Vec<u64> },
    /// Anywhere.
    Anywhere,
}

/// Offsets of one file of one instance.
#[derive(Clone, Debug)]
pub struct Offsets {
    start: u64,
    length: u64,
    granule: u64,
    granules: u64,
    blocks: [BlockRange; 3],
    order: Order,
    random: SplitMix,
}

impl Offsets {
    /// Offsets in the `length` bytes of a file from `start` on, for the pattern of `job`.
    #[must_use]
    pub fn new(job: &Job, start: u64, length: u64, seed: u64) -> Offsets {
        let granule = job.min_block().max(1);
        let sizes = job.block_sizes;
        let mut offsets = Offsets {
            start,
            length,
            granule,
            granules: length / granule,
            blocks: [sizes.read, sizes.write, sizes.trim],
            order: Order::Anywhere,
            random: SplitMix::new(seed),
        };
        offsets.order = match (job.pattern.access, job.random_map) {
            (Access::Sequential, _) => Order::Sequential([0; 3]),
            (Access::Random, false) => Order::Anywhere,
            (Access::Random, true) => {
                let order = Permutation::new(offsets.granules, &mut offsets.random);
                if job.max_block() == job.min_block() {
                    Order::Once { order, next: 0 }
                } else {
                    Order::Mapped { order, next: 0, hit: vec![0; offsets.granules.div_ceil(64) as usize] }
                }
            }
        };
        offsets
    }

    /// Begins the region again: from its start, or in a new random order.
    pub fn restart(&mut self) {
        match &mut self.order {
            Order::Sequential(positions) => *positions = [0; 3],
            Order::Anywhere => {}
            Order::Once { order, next } => {
                *order = Permutation::new(self.granules, &mut self.random);
                *next = 0;
            }
            Order::Mapped { order, next, hit } => {
                *order = Permutation::new(self.granules, &mut self.random);
                *next = 0;
                hit.fill(0);
            }
        }
    }

    /// Offset and length of the next I/O; `None` when the region is done.
    #[inline]
    pub fn draw(&mut self, direction: DataDirection) -> Option<(u64, u64)> {
        let wanted = self.block(direction);
        let smallest = self.blocks[direction as usize].min;
        let (at, length) = match &mut self.order {
            Order::Sequential(positions) => {
                let position = &mut positions[direction as usize];
                let length = fitting(wanted, smallest, self.length - *position)?;
                let at = *position;
                *position += length;
                (at, length)
            }
            Order::Once { order, next } => {
                if *next >= self.granules {
                    return None;
                }
                let at = order.at(*next) * self.granule;
                *next += 1;
                (at, wanted)
            }
            Order::Mapped { order, next, hit } => {
                let first = free_granule(order, next, hit, self.granules)?;
                let most = wanted.div_ceil(self.granule).min(self.granules - first);
                let count = claim(hit, first, most);
                (first * self.granule, (count * self.granule).min(wanted))
            }
            Order::Anywhere => {
                if self.granules == 0 {
                    return None;
                }
                // Only starts at which the smallest block still fits.
                let last = self.length.checked_sub(smallest)? / self.granule;
                let at = self.random.below(last + 1) * self.granule;
                (at, fitting(wanted, smallest, self.length - at)?)
            }
        };
        Some((self.start + at, length))
    }

    /// A block size: fixed, or any multiple of the smallest in the range.
    #[inline]
    fn block(&mut self, direction: DataDirection) -> u64 {
        let BlockRange { min, max } = self.blocks[direction as usize];
        if min == max {
            return min;
        }
        min * (1 + self.random.below(max / min))
    }
}

/// The wanted length cut down to what is left, in steps of the smallest; `None` when not even that fits.
#[inline]
fn fitting(wanted: u64, smallest: u64, left: u64) -> Option<u64> {
    if wanted <= left {
        return Some(wanted);
    }
    let cut = left - left % smallest.max(1);
    (cut > 0).then_some(cut)
}

fn free_granule(order: &Permutation, next: &mut u64, hit: &[u64], granules: u64) -> Option<u64> {
    while *next < granules {
        let granule = order.at(*next);
        *next += 1;
        if hit[(granule / 64) as usize] >> (granule % 64) & 1 == 0 {
            return Some(granule);
        }
    }
    None
}

/// Marks up to `most` granules from `first` on, stopping at one already hit; returns how many.
fn claim(hit: &mut [u64], first: u64, most: u64) -> u64 {
    for granule in first..first + most {
        let (word, bit) = ((granule / 64) as usize, 1 << (granule % 64));
        if hit[word] & bit != 0 {
            return granule - first;
        }
        hit[word] |= bit;
    }
    most
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{JobFile, Workload};

    fn job(text: &str) -> Job {
        let file = JobFile::parse(text, "test", std::path::Path::new(".")).unwrap();
        Workload::resolve(&file).unwrap().jobs.remove(0)
    }

    fn all(offsets: &mut Offsets, direction: DataDirection) -> Vec<(u64, u64)> {
        std::iter::from_fn(|| offsets.draw(direction)).collect()
    }

    #[test]
    fn sequential_ends_where_no_whole_block_fits() {
        let job = job("[j]\nrw=write\nbs=4k\nsize=42k\n");
        let mut offsets = Offsets::new(&job, 8192, 42 << 10, 1);
        let hits = all(&mut offsets, DataDirection::Write);
        assert_eq!(hits.len(), 10);
        assert_eq!(hits[9], (8192 + 9 * 4096, 4096));
        offsets.restart();
        assert_eq!(offsets.draw(DataDirection::Write), Some((8192, 4096)));
    }

    #[test]
    fn random_with_a_map_hits_every_block_once() {
        let job = job("[j]\nrw=randwrite\nbs=4k\nsize=4m\n");
        for blocks in [1_u64, 2, 3, 100, 1000, 1024, 1025] {
            let mut offsets = Offsets::new(&job, 4096, blocks * 4096, blocks);
            let mut hits = all(&mut offsets, DataDirection::Write);
            if blocks >= 100 {
                assert!(hits.windows(2).any(|w| w[0].0 > w[1].0), "random, not ascending");
            }
            hits.sort_unstable();
            let expected: Vec<_> = (0..blocks).map(|b| (4096 + b * 4096, 4096)).collect();
            assert_eq!(hits, expected, "{blocks} blocks");
        }
    }

    #[test]
    fn each_pass_has_an_order_of_its_own_and_each_seed_too() {
        let job = job("[j]\nrw=randread\nbs=4k\nsize=4m\n");
        let mut offsets = Offsets::new(&job, 0, 4 << 20, 7);
        let first = all(&mut offsets, DataDirection::Read);
        offsets.restart();
        let second = all(&mut offsets, DataDirection::Read);
        assert_ne!(first, second);
        assert_eq!(first, all(&mut Offsets::new(&job, 0, 4 << 20, 7), DataDirection::Read));
        assert_ne!(first, all(&mut Offsets::new(&job, 0, 4 << 20, 8), DataDirection::Read));
    }

    #[test]
    fn a_range_of_sizes_covers_every_granule_once() {
        let job = job("[j]\nrw=randwrite\nbsrange=1k-8k\nsize=400k\n");
        let mut offsets = Offsets::new(&job, 0, 400 << 10, 3);
        let mut hit = vec![0; 400];
        for (at, length) in all(&mut offsets, DataDirection::Write) {
            assert!((1024..=8192).contains(&length) && length % 1024 == 0);
            (at / 1024..(at + length) / 1024).for_each(|granule| hit[granule as usize] += 1);
        }
        assert!(hit.iter().all(|count| *count == 1));
    }

    #[test]
    fn without_a_map_it_stays_inside_and_repeats() {
        let job = job("[j]\nrw=randread\nbs=4k\nsize=64k\nnorandommap\n");
        let mut offsets = Offsets::new(&job, 4096, 64 << 10, 3);
        let hits: Vec<_> = (0..1000).filter_map(|_| offsets.draw(DataDirection::Read)).collect();
        assert_eq!(hits.len(), 1000);
        assert!(hits.iter().all(|(at, length)| *at >= 4096 && at + length <= 4096 + (64 << 10)));
        let mut counts = [0; 16];
        hits.iter().for_each(|(at, _)| counts[((at - 4096) / 4096) as usize] += 1);
        // 62.5 expected each; six standard deviations.
        assert!(counts.iter().all(|count| (16..=110).contains(count)), "{counts:?}");
    }

    #[test]
    fn shares_of_a_mix_are_met() {
        let mut choice = DirectionChoice::new(Mix::ReadWrite { read_percent: 70 }, 5);
        let reads = (0..10_000).filter(|_| choice.draw() == DataDirection::Read).count();
        assert!((6800..=7200).contains(&reads), "{reads}");
    }
}
