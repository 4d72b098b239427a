//! Where the next I/O of a file goes: pure generators, seeded, a few nanoseconds each.
//!
//! Enters: a job's pattern, placement and block sizes, a region, a seed. Leaves: offsets and lengths. Nothing here knows
//! files or time. What is covered agrees with fio: sequential to the end of the region; random with a map every block
//! exactly once (with many sizes a block is cut at a neighbour already hit); random without a map anywhere, or by a
//! distribution.

mod direction;
mod file_choice;
mod hit_map;
mod normal;
mod pareto;
mod permutation;
mod sizes;
mod skew;
mod split_mix;
mod zipf;
mod zoned;

pub use direction::{DataDirection, DirectionChoice};
pub use file_choice::FileChoice;
pub use split_mix::SplitMix;

use super::job::{Access, Job, SeedRule};
use super::placement::Distribution;
use super::values::greatest_common_divisor;
use hit_map::HitMap;
use permutation::Permutation;
use sizes::Sizes;
use skew::Skew;
use zoned::Zones;

/// How offsets follow each other.
#[derive(Clone, Debug)]
enum Order {
    /// The next offset in the region, one a direction.
    Sequential([u64; 3]),
    /// Every block once: blocks of one size, in the order of a permutation.
    Once(Permutation),
    /// Blocks of many sizes: the map says which granules were hit.
    Mapped(HitMap),
    /// Anywhere.
    Anywhere,
    /// Some granules more often than others.
    Skewed(Box<Skew>),
    /// Some zones more often than others.
    Zoned(Box<Zones>),
}

/// `percentage_random`: between random I/Os others follow the one before them.
#[derive(Clone, Debug)]
struct PartlyRandom {
    percent: [u8; 3],
    /// Where the last I/O of each direction ended, from the start of the region.
    ends: [u64; 3],
    /// At the end of the region begins again at its start, as fio's time based jobs of one file do; else the next is
    /// random.
    wraps: bool,
}

/// Offsets of one file of one instance.
#[derive(Clone, Debug)]
pub struct Offsets {
    start: u64,
    length: u64,
    granule: u64,
    granules: u64,
    sizes: Sizes,
    order: Order,
    partly: Option<Box<PartlyRandom>>,
    random: SplitMix,
    seed: u64,
    /// Every pass is like the first: `randrepeat`, unless the passes only fill a time.
    replays: bool,
}

impl Offsets {
    /// Offsets in the `length` bytes of a file from `start` on, for the pattern of `job`.
    #[must_use]
    pub fn new(job: &Job, start: u64, length: u64, seed: u64) -> Offsets {
        let mut offsets = Offsets {
            start,
            length,
            granule: granule(job),
            granules: length / granule(job),
            sizes: Sizes::new(job),
            order: Order::Anywhere,
            partly: PartlyRandom::new(job),
            random: SplitMix::new(seed),
            seed,
            replays: matches!(job.seed, SeedRule::Repeat(_)) && !job.time_based,
        };
        offsets.order = offsets.order_of(job);
        offsets
    }

    fn order_of(&mut self, job: &Job) -> Order {
        let (length, blocks) = (self.length, self.sizes.blocks);
        let random = &mut self.random;
        if job.pattern.access == Access::Sequential {
            return Order::Sequential([0; 3]);
        }
        match &job.distribution {
            Distribution::Uniform if !job.random_map => Order::Anywhere,
            Distribution::Uniform if job.max_block() == job.min_block() => {
                Order::Once(Permutation::new(self.granules, random))
            }
            Distribution::Uniform => Order::Mapped(HitMap::new(self.granules)),
            Distribution::Zoned(zones) => Order::Zoned(Box::new(Zones::new(zones, blocks, length))),
            skewed => Skew::scattered(skewed, self.granules, self.seed)
                .map_or(Order::Anywhere, |skew| Order::Skewed(Box::new(skew))),
        }
    }

    /// Begins the region again: from its start, or in random order. With `randrepeat` that order is the same as
    /// before, as between fio's loops; in a `time_based` job it is a new one, as in fio.
    pub fn restart(&mut self) {
        if self.replays {
            self.random = SplitMix::new(self.seed);
        }
        if let Some(partly) = &mut self.partly {
            partly.ends = [0; 3];
        }
        let random = &mut self.random;
        match &mut self.order {
            Order::Sequential(positions) => *positions = [0; 3],
            // What is popular stays so.
            Order::Anywhere | Order::Skewed(_) | Order::Zoned(_) => {}
            Order::Once(order) => *order = Permutation::new(self.granules, random),
            Order::Mapped(hit) => hit.clear(),
        }
    }

    /// Begins the region again for one direction, whose turn the others do not share where they have places of their own.
    pub fn wrap(&mut self, direction: DataDirection) {
        match &mut self.order {
            Order::Sequential(positions) => positions[direction as usize] = 0,
            _ => self.restart(),
        }
    }

    /// Offset and length of the next I/O; `None` when the region is done for this direction.
    #[inline]
    pub fn draw(&mut self, direction: DataDirection) -> Option<(u64, u64)> {
        if self.partly.is_some() { self.draw_partly(direction) } else { self.draw_ordered(direction) }
    }

    #[inline]
    fn draw_ordered(&mut self, direction: DataDirection) -> Option<(u64, u64)> {
        let random = &mut self.random;
        let side = direction as usize;
        let smallest = self.sizes.blocks[side].min;
        let (at, length) = match &mut self.order {
            Order::Sequential(positions) => {
                let at = positions[side];
                let length = self.sizes.draw(side, self.length - at, random)?;
                positions[side] += length;
                (at, length)
            }
            Order::Once(order) => (order.draw()? * self.granule, smallest),
            Order::Mapped(hit) => {
                let least = smallest / self.granule;
                let first = free_block(hit, least, random.below(self.granules / least))?;
                let at = first * self.granule;
                let wanted = self.sizes.draw(side, self.length - at, random)?;
                // Cut where it meets a neighbour already hit, to a multiple of the smallest, as in fio.
                let free = hit.free_run(first, wanted.div_ceil(self.granule));
                let length = wanted.min((free - free % least) * self.granule);
                hit.claim(first, length.div_ceil(self.granule));
                (at, length)
            }
            Order::Anywhere => {
                let at = random.below(starts(self.length, smallest)?) * smallest;
                (at, self.sizes.draw(side, self.length - at, random)?)
            }
            Order::Skewed(skew) => {
                let last = starts(self.length, smallest)? - 1;
                let at = (skew.draw() * self.granule / smallest).min(last) * smallest;
                (at, self.sizes.draw(side, self.length - at, random)?)
            }
            Order::Zoned(zones) => {
                let at = zones.draw(side, random)? * smallest;
                (at, self.sizes.draw(side, self.length - at, random)?)
            }
        };
        Some((self.start + at, length))
    }

    /// As fio: what is not random goes on where the last I/O ended, and leaves no mark on the map.
    fn draw_partly(&mut self, direction: DataDirection) -> Option<(u64, u64)> {
        let side = direction as usize;
        if let Some(partly) = &mut self.partly
            && self.random.below(100) >= u64::from(partly.percent[side])
        {
            let end = &mut partly.ends[side];
            if partly.wraps && self.length - *end < self.sizes.blocks[side].min {
                *end = 0;
            }
            let at = *end;
            if let Some(length) = self.sizes.draw(side, self.length - at, &mut self.random) {
                *end += length;
                return Some((self.start + at, length));
            }
        }
        let (offset, length) = self.draw_ordered(direction)?;
        if let Some(partly) = &mut self.partly {
            partly.ends[side] = offset - self.start + length;
        }
        Some((offset, length))
    }

    /// Appends up to `most` offsets of I/Os of a job whose blocks all have one size, until the region is done.
    pub fn fill(&mut self, direction: DataDirection, most: usize, into: &mut Vec<u64>) {
        let (start, granule) = (self.start, self.granule);
        match &mut self.order {
            Order::Once(order) if self.partly.is_none() => {
                order.fill(most, into, |block| start + block * granule);
            }
            _ => {
                into.extend(std::iter::from_fn(|| self.draw(direction)).take(most).map(|(offset, _)| offset));
            }
        }
    }
}

impl PartlyRandom {
    fn new(job: &Job) -> Option<Box<PartlyRandom>> {
        let percent = job.percentage_random;
        let partly = job.pattern.access == Access::Random && percent.iter().any(|percent| *percent < 100);
        let wraps = job.time_based && job.nrfiles == 1;
        partly.then(|| Box::new(PartlyRandom { percent, ends: [0; 3], wraps }))
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

/// How many starts there are at which the smallest block still fits.
#[inline]
fn starts(length: u64, smallest: u64) -> Option<u64> {
    Some(length.checked_sub(smallest)? / smallest.max(1) + 1)
}

/// The first granule of a block of `least` granules, none of them hit: the block of this number or, as in fio, the next
/// that is free, which after the end of the region is looked for from its start.
fn free_block(hit: &HitMap, least: u64, block: u64) -> Option<u64> {
    let from = |mut at: u64| loop {
        at = hit.next_free(at)?.next_multiple_of(least);
        if hit.free_run(at, least) == least {
            return Some(at);
        }
        at += 1;
    };
    from(block * least).or_else(|| from(0))
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod placement_tests;
