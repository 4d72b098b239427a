//! Where the next I/O of a file goes: pure generators, seeded, a few nanoseconds each.
//!
//! Enters: a job's pattern and block sizes, a region, a seed. Leaves: offsets and lengths. Nothing here knows files or
//! time. What is covered agrees with fio: sequential to the end of the region; random with a map every block exactly
//! once (with many sizes a block is cut at a neighbour already hit); random without a map anywhere.

use super::job::{Access, BlockRange, Job, Mix, SeedRule};

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

/// A pseudorandom order of 0..count in constant memory: a Feistel network over a rectangle of rows and columns that
/// holds just `count`, walked on until it falls into the range (Black & Rogaway, Ciphers with Arbitrary Finite
/// Domains, CT-RSA 2002). A rectangle is never more than a row too large, so that the walk is almost always one step.
#[derive(Clone, Debug)]
struct Permutation {
    count: u64,
    rows: u64,
    columns: u64,
    keys: [u64; 4],
    /// Cell and number of the next value.
    row: u64,
    column: u64,
    taken: u64,
}

impl Permutation {
    fn new(count: u64, random: &mut SplitMix) -> Permutation {
        let root = count.isqrt();
        let rows = (root + u64::from(root * root < count)).max(1);
        let keys = [random.draw(), random.draw(), random.draw(), random.draw()];
        Permutation { count, rows, columns: count.div_ceil(rows).max(1), keys, row: 0, column: 0, taken: 0 }
    }

    /// The next value; every one below `count` comes once.
    #[inline]
    fn draw(&mut self) -> Option<u64> {
        if self.taken >= self.count {
            return None;
        }
        self.taken += 1;
        let (mut row, mut column) = (self.row, self.column);
        self.column += 1;
        if self.column == self.columns {
            self.column = 0;
            self.row += 1;
        }
        loop {
            for keys in self.keys.chunks_exact(2) {
                row = added(row, column ^ keys[0], self.rows);
                column = added(column, row ^ keys[1], self.columns);
            }
            let value = row * self.columns + column;
            if value < self.count {
                return Some(value);
            }
        }
    }
}

/// `value` moved on by a hash of `key`, modulo `bound` (below 2^32: a file has at most 2^64 blocks).
#[inline]
fn added(value: u64, key: u64, bound: u64) -> u64 {
    let product = key.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let hash = (product ^ (product >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93) >> 32;
    let moved = value + ((hash * bound) >> 32);
    if moved >= bound { moved - bound } else { moved }
}

/// How offsets follow each other.
#[derive(Clone, Debug)]
enum Order {
    /// The next offset in the region, one a direction.
    Sequential([u64; 3]),
    /// Every block once: blocks of one size, in the order of a permutation.
    Once(Permutation),
    /// Blocks of many sizes: the map says which granules were hit. Each direction walks over the blocks of its own
    /// smallest size.
    Mapped { orders: [Permutation; 3], hit: HitMap },
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
    seed: u64,
    /// Every pass is like the first: `randrepeat`, unless the passes only fill a time.
    replays: bool,
}

impl Offsets {
    /// Offsets in the `length` bytes of a file from `start` on, for the pattern of `job`.
    #[must_use]
    pub fn new(job: &Job, start: u64, length: u64, seed: u64) -> Offsets {
        let sizes = job.block_sizes;
        let blocks = [sizes.read, sizes.write, sizes.trim];
        let mut offsets = Offsets {
            start,
            length,
            granule: 1,
            granules: 0,
            blocks,
            order: Order::Anywhere,
            random: SplitMix::new(seed),
            seed,
            replays: matches!(job.seed, SeedRule::Repeat(_)) && !job.time_based,
        };
        offsets.granule = granule(job);
        offsets.granules = length / offsets.granule;
        offsets.order = match (job.pattern.access, job.random_map) {
            (Access::Sequential, _) => Order::Sequential([0; 3]),
            (Access::Random, false) => Order::Anywhere,
            (Access::Random, true) if job.max_block() == job.min_block() => {
                Order::Once(Permutation::new(offsets.granules, &mut offsets.random))
            }
            (Access::Random, true) => Order::Mapped {
                orders: blocks.map(|block| Permutation::new(length / block.min.max(1), &mut offsets.random)),
                hit: HitMap::new(offsets.granules),
            },
        };
        offsets
    }

    /// Begins the region again: from its start, or in random order. With `randrepeat` that order is the same as
    /// before, as between fio's loops; in a `time_based` job it is a new one, as in fio.
    pub fn restart(&mut self) {
        if self.replays {
            self.random = SplitMix::new(self.seed);
        }
        let random = &mut self.random;
        let length = self.length;
        match &mut self.order {
            Order::Sequential(positions) => *positions = [0; 3],
            Order::Anywhere => {}
            Order::Once(order) => *order = Permutation::new(self.granules, random),
            Order::Mapped { orders, hit } => {
                *orders = self.blocks.map(|block| Permutation::new(length / block.min.max(1), random));
                hit.clear();
            }
        }
    }

    /// Offset and length of the next I/O; `None` when the region is done for this direction.
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
            Order::Once(order) => (order.draw()? * self.granule, wanted),
            Order::Mapped { orders, hit } => {
                let least = smallest / self.granule;
                let first = free_block(&mut orders[direction as usize], hit, least)? * least;
                // Cut where it meets a neighbour already hit, to a multiple of the smallest, as in fio.
                let free = hit.free_run(first, wanted.div_ceil(self.granule));
                let length = wanted.min((free - free % least) * self.granule);
                hit.claim(first, length.div_ceil(self.granule));
                (first * self.granule, length)
            }
            Order::Anywhere => {
                // Only starts at which the smallest block still fits.
                let starts = self.length.checked_sub(smallest)? / smallest.max(1) + 1;
                let at = self.random.below(starts) * smallest;
                (at, fitting(wanted, smallest, self.length - at)?)
            }
        };
        Some((self.start + at, length))
    }

    /// A block size: fixed, or drawn as fio's `get_next_buflen` draws it: `min + max·u` rounded down to a multiple of
    /// the smallest, and at most the largest.
    #[inline]
    fn block(&mut self, direction: DataDirection) -> u64 {
        let BlockRange { min, max } = self.blocks[direction as usize];
        if min == max {
            return min;
        }
        let drawn = min + self.random.below(max);
        (drawn - drawn % min).min(max)
    }
}

/// The size that all block sizes in use are multiples of.
fn granule(job: &Job) -> u64 {
    let (mix, sizes) = (job.pattern.mix, job.block_sizes);
    [(mix.reads(), sizes.read), (mix.writes(), sizes.write), (mix.trims(), sizes.trim)]
        .into_iter()
        .filter(|(used, _)| *used)
        .fold(0, |divisor, (_, block)| greatest_common_divisor(divisor, block.min))
        .max(1)
}

fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
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

/// The next block of `least` granules, none of them hit.
fn free_block(order: &mut Permutation, hit: &HitMap, least: u64) -> Option<u64> {
    loop {
        let block = order.draw()?;
        if hit.free_run(block * least, least) == least {
            return Some(block);
        }
    }
}

/// One bit a granule.
#[derive(Clone, Debug)]
struct HitMap {
    words: Vec<u64>,
    granules: u64,
}

impl HitMap {
    fn new(granules: u64) -> HitMap {
        HitMap { words: vec![0; granules.div_ceil(64) as usize], granules }
    }

    fn clear(&mut self) {
        self.words.fill(0);
    }

    /// Granules not hit from `first` on, at most `most`.
    fn free_run(&self, first: u64, most: u64) -> u64 {
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

    fn claim(&mut self, first: u64, count: u64) {
        for granule in first..first + count {
            self.words[(granule / 64) as usize] |= 1 << (granule % 64);
        }
    }
}

#[cfg(test)]
#[path = "offsets_tests.rs"]
mod tests;
