//! Where the next I/O of a file goes: pure generators, seeded, a few nanoseconds each.
//!
//! Enters: a job's pattern and block sizes, a region, a seed. Leaves: offsets and lengths. Nothing here knows files or
//! time. What is covered agrees with fio: sequential to the end of the region; random with a map every block exactly
//! once (with many sizes a block is cut at a neighbour already hit); random without a map anywhere.

mod direction;
mod hit_map;
mod permutation;
mod split_mix;

pub use direction::{DataDirection, DirectionChoice};
pub use split_mix::SplitMix;

use super::job::{Access, BlockRange, Job, SeedRule};
use super::values::greatest_common_divisor;
use hit_map::HitMap;
use permutation::Permutation;

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

    /// Appends up to `most` offsets of I/Os of a job whose blocks all have one size, until the region is done.
    pub fn fill(&mut self, direction: DataDirection, most: usize, into: &mut Vec<u64>) {
        let (start, granule) = (self.start, self.granule);
        match &mut self.order {
            Order::Once(order) => {
                into.extend(
                    std::iter::from_fn(|| order.draw()).take(most).map(|block| start + block * granule),
                );
            }
            _ => {
                into.extend(std::iter::from_fn(|| self.draw(direction)).take(most).map(|(offset, _)| offset))
            }
        }
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

#[cfg(test)]
mod tests;
