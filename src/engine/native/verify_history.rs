//! Which blocks an instance wrote last: what its read-back reads, and what it must find there.
//!
//! Enters: writes as they are issued and completed, reads as they end. Leaves: the blocks to read back, each with what
//! is expected of it. It must not know what is in a block.
//!
//! fio's order: where no block is written twice (a random map), blocks are read back as they were written; else sorted
//! by file and offset, and a newer write removes every older one that it overlaps.

use std::collections::{BTreeMap, VecDeque};

/// Where a transfer is: file and offset.
type Place = (usize, u64);

/// One written block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Written {
    pub(super) file: usize,
    pub(super) offset: u64,
    pub(super) length: u32,
    /// Of the write, in the order of issue.
    pub(super) number: u64,
    /// False where another write of the same bytes was in flight at the same time: nobody knows which came last.
    certain: bool,
}

/// What a completed read-back must have found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expected {
    /// The block of this write.
    Write(u64),
    /// Anything: it was being written at the same time.
    Anything,
}

enum Order {
    AsWritten(VecDeque<Written>),
    Sorted(BTreeMap<Place, Written>),
}

/// The blocks written and not yet read back.
pub(super) struct History {
    order: Order,
    /// Writes in flight: length and how many.
    writing: BTreeMap<Place, (u32, u32)>,
    /// Read-backs in flight.
    reading: BTreeMap<Place, (u32, Expected)>,
    longest: u64,
}

impl History {
    /// `once`: no block is written twice in a pass.
    pub(super) fn new(once: bool) -> History {
        let order = if once { Order::AsWritten(VecDeque::new()) } else { Order::Sorted(BTreeMap::new()) };
        History { order, writing: BTreeMap::new(), reading: BTreeMap::new(), longest: 0 }
    }

    /// Blocks to be read back.
    pub(super) fn len(&self) -> usize {
        match &self.order {
            Order::AsWritten(list) => list.len(),
            Order::Sorted(tree) => tree.len(),
        }
    }

    /// Notes a write that is about to be issued.
    pub(super) fn issue(&mut self, file: usize, offset: u64, length: u32, number: u64) {
        self.longest = self.longest.max(u64::from(length));
        let (from, end) = (self.earliest(offset), offset + u64::from(length));
        let overlaps = |at: u64, long: u32| at + u64::from(long) > offset;
        let certain =
            !self.writing.range((file, from)..(file, end)).any(|((_, at), (long, _))| overlaps(*at, *long));
        for ((_, at), (long, expected)) in self.reading.range_mut((file, from)..(file, end)) {
            if overlaps(*at, *long) {
                *expected = Expected::Anything;
            }
        }
        let written = Written { file, offset, length, number, certain };
        match &mut self.order {
            Order::AsWritten(list) => list.push_back(written),
            Order::Sorted(tree) => {
                let old: Vec<Place> = tree
                    .range((file, from)..(file, end))
                    .filter(|((_, at), old)| overlaps(*at, old.length))
                    .map(|(place, _)| *place)
                    .collect();
                for place in old {
                    tree.remove(&place);
                }
                tree.insert((file, offset), written);
            }
        }
        let entry = self.writing.entry((file, offset)).or_insert((0, 0));
        *entry = (entry.0.max(length), entry.1 + 1);
    }

    /// A write has ended.
    pub(super) fn complete(&mut self, file: usize, offset: u64) {
        if let Some((_, count)) = self.writing.get_mut(&(file, offset)) {
            *count -= 1;
            if *count == 0 {
                self.writing.remove(&(file, offset));
            }
        }
    }

    /// The next block to be read back; `None` when there is none, or it is still being written.
    pub(super) fn take(&mut self) -> Option<Written> {
        let next = match &self.order {
            Order::AsWritten(list) => *list.front()?,
            Order::Sorted(tree) => *tree.first_key_value()?.1,
        };
        let (from, end) = (self.earliest(next.offset), next.offset + u64::from(next.length));
        let busy = self
            .writing
            .range((next.file, from)..(next.file, end))
            .any(|((_, at), (long, _))| at + u64::from(*long) > next.offset);
        if busy {
            return None;
        }
        match &mut self.order {
            Order::AsWritten(list) => drop(list.pop_front()),
            Order::Sorted(tree) => drop(tree.pop_first()),
        }
        let expected = if next.certain { Expected::Write(next.number) } else { Expected::Anything };
        self.reading.insert((next.file, next.offset), (next.length, expected));
        Some(next)
    }

    /// What a read that has ended must have found; `None` when it was no read-back.
    pub(super) fn arrived(&mut self, file: usize, offset: u64) -> Option<Expected> {
        self.reading.remove(&(file, offset)).map(|(_, expected)| expected)
    }

    /// Forgets everything: the next pass begins.
    pub(super) fn clear(&mut self) {
        match &mut self.order {
            Order::AsWritten(list) => list.clear(),
            Order::Sorted(tree) => tree.clear(),
        }
        self.writing.clear();
        self.reading.clear();
    }

    /// Where a block that reaches `offset` can begin at the earliest.
    fn earliest(&self, offset: u64) -> u64 {
        offset.saturating_sub(self.longest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(history: &mut History) -> Vec<(usize, u64, u32, u64)> {
        std::iter::from_fn(|| history.take())
            .map(|block| (block.file, block.offset, block.length, block.number))
            .collect()
    }

    fn write(history: &mut History, file: usize, offset: u64, length: u32, number: u64) {
        history.issue(file, offset, length, number);
        history.complete(file, offset);
    }

    #[test]
    fn with_a_map_blocks_come_as_they_were_written() {
        let mut history = History::new(true);
        for (number, offset) in [8, 0, 4].into_iter().enumerate() {
            write(&mut history, 0, offset, 4, number as u64);
        }
        assert_eq!(history.len(), 3);
        assert_eq!(places(&mut history), [(0, 8, 4, 0), (0, 0, 4, 1), (0, 4, 4, 2)]);
    }

    #[test]
    fn without_one_they_are_sorted_and_the_newest_wins() {
        let mut history = History::new(false);
        write(&mut history, 1, 0, 4, 0);
        write(&mut history, 0, 8, 4, 1);
        write(&mut history, 0, 0, 4, 2);
        write(&mut history, 0, 8, 4, 3);
        // Overlaps the end of the one at 0 only.
        write(&mut history, 0, 2, 6, 4);
        assert_eq!(places(&mut history), [(0, 2, 6, 4), (0, 8, 4, 3), (1, 0, 4, 0)]);
        assert_eq!(history.len(), 0);
    }

    #[test]
    fn what_is_in_flight_waits_and_two_at_once_prove_nothing() {
        let mut history = History::new(false);
        history.issue(0, 0, 4, 0);
        assert_eq!(history.take(), None);
        history.issue(0, 2, 4, 1);
        history.complete(0, 2);
        assert_eq!(history.take(), None, "the first still writes into it");
        history.complete(0, 0);
        assert_eq!(history.take().map(|block| block.number), Some(1));
        assert_eq!(history.arrived(0, 2), Some(Expected::Anything));
        assert_eq!(history.arrived(0, 2), None);

        write(&mut history, 0, 0, 4, 2);
        assert_eq!(history.take().map(|block| block.number), Some(2));
        assert_eq!(history.arrived(0, 0), Some(Expected::Write(2)));
    }

    #[test]
    fn a_block_written_while_it_is_read_back_may_hold_either() {
        let mut history = History::new(false);
        write(&mut history, 0, 0, 4, 0);
        assert!(history.take().is_some());
        history.issue(0, 0, 4, 1);
        assert_eq!(history.arrived(0, 0), Some(Expected::Anything));
        history.complete(0, 0);
        assert!(history.take().is_some());
        assert_eq!(history.arrived(0, 0), Some(Expected::Write(1)));
        history.clear();
        assert_eq!(history.len(), 0);
    }
}
