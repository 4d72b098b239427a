//! Every block once, in a random order.
//!
//! Enters: a count and random numbers. Leaves: each number below the count once. It must not know bytes.

use super::SplitMix;

/// A pseudorandom order of 0..count in constant memory: a Feistel network over a rectangle of rows and columns that
/// holds just `count`, walked on until it falls into the range (Black & Rogaway, Ciphers with Arbitrary Finite
/// Domains, CT-RSA 2002). A rectangle is never more than a row too large, so that the walk is almost always one step.
#[derive(Clone, Debug)]
pub(super) struct Permutation {
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
    pub(super) fn new(count: u64, random: &mut SplitMix) -> Permutation {
        let root = count.isqrt();
        let rows = (root + u64::from(root * root < count)).max(1);
        let keys = [random.draw(), random.draw(), random.draw(), random.draw()];
        Permutation { count, rows, columns: count.div_ceil(rows).max(1), keys, row: 0, column: 0, taken: 0 }
    }

    /// The next value; every one below `count` comes once.
    #[inline]
    pub(super) fn draw(&mut self) -> Option<u64> {
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
