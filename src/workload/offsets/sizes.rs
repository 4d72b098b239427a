//! How large the next block is: fixed, from a range, or by share.
//!
//! Enters: the sizes of a job. Leaves: lengths that fit. It must not know offsets.

use super::SplitMix;
use crate::workload::job::{BlockRange, Job};
use crate::workload::placement::BlockShare;

/// The size that each percent of the I/Os has, ascending by share.
type Table = [u64; 100];

/// Sizes of each direction.
#[derive(Clone, Debug)]
pub(super) struct Sizes {
    pub(super) blocks: [BlockRange; 3],
    /// `bssplit`; not set for a direction, or at all, without one.
    splits: Option<Box<[Option<Table>; 3]>>,
}

impl Sizes {
    pub(super) fn new(job: &Job) -> Sizes {
        let sizes = job.block_sizes;
        let split = job.block_split.iter().any(|shares| !shares.is_empty());
        let splits = split.then(|| {
            let [read, write, trim] = &job.block_split;
            Box::new([table(read), table(write), table(trim)])
        });
        Sizes { blocks: [sizes.read, sizes.write, sizes.trim], splits }
    }

    /// A size of at most `left` bytes; `None` when there is none. A range is drawn from as by fio's `get_next_buflen`:
    /// `min + max·u` rounded down to a multiple of the smallest, and at most the largest.
    #[inline]
    pub(super) fn draw(&self, direction: usize, left: u64, random: &mut SplitMix) -> Option<u64> {
        let BlockRange { min, max } = self.blocks[direction];
        if min == max {
            return (min <= left).then_some(min);
        }
        if let Some(table) = self.splits.as_ref().and_then(|splits| splits[direction].as_ref()) {
            return share(table, left, random);
        }
        let drawn = min + random.below(max);
        fitting((drawn - drawn % min).min(max), min, left)
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

/// A size by its share; one that does not fit gives way to one with a larger share, and if that does not help the dice
/// are thrown again, as in fio.
#[inline]
fn share(table: &Table, left: u64, random: &mut SplitMix) -> Option<u64> {
    let wanted = table[random.below(100) as usize];
    if wanted <= left {
        return Some(wanted);
    }
    if table.iter().all(|size| *size > left) {
        return None;
    }
    loop {
        let from = random.below(100) as usize;
        if let Some(size) = table[from..].iter().find(|size| **size <= left) {
            return Some(*size);
        }
    }
}

fn table(shares: &[BlockShare]) -> Option<Table> {
    let last = shares.last()?;
    let mut table = [last.bytes; 100];
    let mut from = 0;
    for share in shares {
        let to = (from + usize::from(share.percent)).min(100);
        table[from..to].fill(share.bytes);
        from = to;
    }
    Some(table)
}
