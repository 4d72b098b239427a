//! What lies in the blocks that are written: random bytes, and how much of them is redundant.
//!
//! Enters: a job's buffer options and a seed. Leaves: filled buffers. It must not know slots, offsets of files or how
//! the bytes reach them. What is random here must only not compress and not repeat; it proves nothing.

use crate::workload::{BufferFill, Job, Redundancy, SplitMix};

/// Bytes of which a few are changed where buffers are scrambled.
const SECTOR: usize = 512;
const CACHE_LINE: usize = 64;
/// Seconds since the machine was started, as fio's clock might read them.
const SECONDS: u64 = 100_000;

/// How buffers are filled before the first write, and again before each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ContentRule {
    /// Before each write; at the start all but [`BufferFill::Zero`] are filled in full.
    pub(super) fill: BufferFill,
    /// Shares in what is filled.
    redundancy: Redundancy,
    /// Bytes of a chunk of its own share that compresses.
    chunk: usize,
}

impl ContentRule {
    /// fio's rules: shares take the place of scrambling and of zeroes; only deduplication fills anew for every write
    /// by itself, so that with `buffer_compress_percentage` alone the first content of each buffer is used again.
    pub(super) fn of(job: &Job) -> ContentRule {
        let Redundancy { compress_percent, compress_chunk, dedupe_percent } = job.redundancy;
        let fill = match job.buffers {
            _ if dedupe_percent > 0 => BufferFill::Refill,
            BufferFill::Refill => BufferFill::Refill,
            _ if compress_percent > 0 => BufferFill::Fixed,
            other => other,
        };
        let block = job.block_sizes.write.min;
        let chunk = if compress_chunk == 0 { block } else { block.min(u64::from(compress_chunk)) };
        ContentRule { fill, redundancy: job.redundancy, chunk: chunk.max(1) as usize }
    }

    /// Without shares.
    #[cfg(test)]
    pub(super) fn plain(fill: BufferFill) -> ContentRule {
        ContentRule { fill, redundancy: Redundancy::default(), chunk: 4096 }
    }
}

/// Makes content by a rule.
pub(super) struct Content {
    rule: ContentRule,
    /// Which of all contents comes next.
    number: u64,
    /// Decides which blocks are copies.
    dice: u64,
}

impl Content {
    /// A stream of its own for each seed.
    pub(super) fn new(rule: ContentRule, seed: u64) -> Content {
        Content { rule, number: mixed(seed), dice: mixed(!seed) }
    }

    /// Fills a buffer for the first time.
    pub(super) fn begin(&mut self, buffer: &mut [u8]) {
        match self.rule.fill {
            BufferFill::Zero => buffer.fill(0),
            _ => self.refill(buffer),
        }
    }

    /// Whether [`Content::again`] has anything to do.
    #[inline]
    pub(super) fn changes(&self) -> bool {
        matches!(self.rule.fill, BufferFill::Scrambled | BufferFill::Refill)
    }

    /// Makes a buffer ready to be written at `offset`.
    #[inline]
    pub(super) fn again(&mut self, buffer: &mut [u8], offset: u64) {
        match self.rule.fill {
            BufferFill::Zero | BufferFill::Fixed => {}
            BufferFill::Scrambled => {
                self.number = self.number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                scramble(buffer, offset, self.number);
            }
            BufferFill::Refill => self.refill(buffer),
        }
    }

    /// New content, or a copy of what the next new one will be: so a share of all blocks are copies, as in fio.
    fn refill(&mut self, buffer: &mut [u8]) {
        let seed = mixed(self.number);
        if !self.is_copy() {
            self.number = self.number.wrapping_add(1);
        }
        let compress = self.rule.redundancy.compress_percent;
        if compress == 0 {
            return fill_random(buffer, seed);
        }
        for (number, chunk) in buffer.chunks_mut(self.rule.chunk).enumerate() {
            let random = chunk.len() * usize::from(100 - compress.min(100)) / 100;
            let (random, zeroes) = chunk.split_at_mut(random);
            fill_random(random, seed ^ mixed(number as u64));
            zeroes.fill(0);
        }
    }

    fn is_copy(&mut self) -> bool {
        let share = u64::from(self.rule.redundancy.dedupe_percent);
        if share == 0 {
            return false;
        }
        self.dice = self.dice.wrapping_add(1);
        mixed(self.dice) % 100 < share
    }
}

/// fio's `scramble_buffers`: a few changed words a sector defeat deduplication at little cost. The place of a sector goes to the start of
/// one of its cache lines, another one in each write, the time of the write to the end of the first. Where the words lie and how many zeroes they
/// have decides how long something that compresses looks at them, so both are as in fio; the time is drawn, as no clock is read for it.
#[inline]
fn scramble(buffer: &mut [u8], offset: u64, drawn: u64) {
    const NANOSECONDS: u64 = (1 << 30) - 1;
    let nanoseconds = (drawn >> 32) & NANOSECONDS;
    let line = CACHE_LINE * ((nanoseconds ^ offset) & 7) as usize;
    let mut time = [0; 16];
    time[..8].copy_from_slice(&SECONDS.to_le_bytes());
    time[8..].copy_from_slice(&nanoseconds.to_le_bytes());
    let mut place = offset;
    for sector in buffer.as_chunks_mut::<SECTOR>().0 {
        sector[line..line + 8].copy_from_slice(&place.to_le_bytes());
        sector[CACHE_LINE - 16..CACHE_LINE].copy_from_slice(&time);
        place = place.wrapping_add(SECTOR as u64);
    }
}

/// Random bytes, the same for the same seed and length: eight Weyl sequences, each folded over once. Additions and
/// shifts only, which compilers turn into wide stores.
pub(super) fn fill_random(buffer: &mut [u8], seed: u64) {
    const LANES: usize = 8;
    /// 2^64 / φ, odd.
    const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut lanes = [0_u64; LANES];
    let mut steps = [0_u64; LANES];
    for (number, (lane, step)) in lanes.iter_mut().zip(&mut steps).enumerate() {
        *lane = mixed(seed.wrapping_add(number as u64));
        *step = STEP.wrapping_mul(2 * number as u64 + 1) ^ (seed & !1);
    }
    let mut wide = buffer.chunks_exact_mut(8 * LANES);
    for words in &mut wide {
        for number in 0..LANES {
            lanes[number] = lanes[number].wrapping_add(steps[number]);
            let word = lanes[number] ^ (lanes[number] >> 29);
            words[8 * number..8 * number + 8].copy_from_slice(&word.to_le_bytes());
        }
    }
    for (number, word) in wide.into_remainder().chunks_mut(8).enumerate() {
        let last = mixed(lanes[number % LANES]).to_le_bytes();
        word.copy_from_slice(&last[..word.len()]);
    }
}

/// SplitMix64's finalizer (Steele, Lea, Flood 2014): every bit of the input reaches every bit of the output.
#[inline]
pub(super) fn mixed(number: u64) -> u64 {
    SplitMix::new(number).draw()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn rule(fill: BufferFill, compress_percent: u8, dedupe_percent: u8, chunk: usize) -> ContentRule {
        let redundancy = Redundancy { compress_percent, compress_chunk: 0, dedupe_percent };
        ContentRule { fill, redundancy, chunk }
    }

    /// `count` blocks of 4 KiB as they would be written from one buffer.
    fn written(rule: ContentRule, count: u64) -> Vec<Vec<u8>> {
        let mut content = Content::new(rule, 7);
        let mut buffer = vec![0_u8; 4096];
        content.begin(&mut buffer);
        (0..count)
            .map(|number| {
                content.again(&mut buffer, number * 4096);
                buffer.clone()
            })
            .collect()
    }

    /// Bytes that occur four in a row somewhere before, with any alignment: what an LZ compressor lives on.
    fn repeated(bytes: &[u8]) -> usize {
        let mut seen = BTreeSet::new();
        bytes.windows(4).filter(|word| !seen.insert(*word)).count()
    }

    #[test]
    fn zeroes_stay_and_fixed_content_stays() {
        assert!(written(rule(BufferFill::Zero, 0, 0, 4096), 3).iter().flatten().all(|byte| *byte == 0));
        let fixed = written(rule(BufferFill::Fixed, 0, 0, 4096), 3);
        assert!(fixed[0] == fixed[2] && fixed[0].iter().any(|byte| *byte != 0));
    }

    #[test]
    fn scrambling_makes_every_sector_another_at_two_places_each() {
        let blocks = written(rule(BufferFill::Scrambled, 0, 0, 4096), 50);
        let sectors: BTreeSet<&[u8]> = blocks.iter().flat_map(|block| block.chunks(512)).collect();
        assert_eq!(sectors.len(), 50 * 8);
        let changed = blocks[0].iter().zip(&blocks[1]).filter(|(a, b)| a != b).count();
        assert!((8..=8 * (24 + 8)).contains(&changed), "{changed}");
        // As in fio: the place at the start of a cache line, the time at the end of the first.
        let place = (3 * 4096 + 512_u64).to_le_bytes();
        let sector = &blocks[3][512..1024];
        assert!(sector.chunks(64).any(|line| line[..8] == place));
        assert_eq!(sector[48..56], SECONDS.to_le_bytes());
        assert_eq!((&sector[56..60], &sector[60..64]), (&blocks[3][56..60], &[0; 4][..]));
    }

    #[test]
    fn random_bytes_do_not_compress_and_do_not_repeat() {
        for seed in [0, 1, u64::MAX] {
            let mut bytes = vec![0; 65_536 + 13];
            fill_random(&mut bytes, seed);
            // Among 2^16 random words of 32 bits one pair is expected by chance.
            assert!(repeated(&bytes) < 20, "{seed}: {}", repeated(&bytes));
            let mut counts = [0_u32; 256];
            bytes.iter().for_each(|byte| counts[usize::from(*byte)] += 1);
            // 256 expected of each; five standard deviations are 80.
            assert!(counts.iter().all(|count| (176..=336).contains(count)), "{seed}: {counts:?}");
            let mut again = vec![0; 65_536 + 13];
            fill_random(&mut again, seed);
            assert_eq!(bytes, again);
        }
        let blocks = written(rule(BufferFill::Refill, 0, 0, 4096), 16).concat();
        assert!(repeated(&blocks) < 20, "{}", repeated(&blocks));
    }

    #[test]
    fn the_share_that_compresses_is_zeroes_at_the_end_of_each_chunk() {
        let block = &written(rule(BufferFill::Refill, 30, 0, 512), 2)[1];
        for chunk in block.chunks(512) {
            assert!(chunk[358..].iter().all(|byte| *byte == 0));
            assert!(chunk[..358].iter().filter(|byte| **byte == 0).count() < 20);
        }
        let all = written(rule(BufferFill::Refill, 100, 0, 4096), 1).concat();
        assert!(all.iter().all(|byte| *byte == 0));
    }

    #[test]
    fn the_share_of_copies_is_as_asked() {
        for share in [10_u8, 50, 90] {
            let blocks = written(rule(BufferFill::Refill, 0, share, 4096), 4000);
            let distinct = blocks.iter().collect::<BTreeSet<_>>().len();
            let copies = 100.0 * (1.0 - distinct as f64 / 4000.0);
            assert!((copies - f64::from(share)).abs() < 3.0, "{share}: {copies}");
        }
        let same = written(rule(BufferFill::Refill, 0, 100, 4096), 9);
        assert!(same.windows(2).all(|pair| pair[0] == pair[1]));
    }
}
