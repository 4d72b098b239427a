//! A table by first sector, of which several entries may have the same.
//!
//! Enters: values with their sectors. Leaves: the same in their order. Looking one up takes the same time however many there are; the
//! multiplier of the hash is random, so that no trace can make all its sectors fall together.

use std::collections::HashMap;
use std::collections::hash_map::Entry as Slot;
use std::hash::{BuildHasher, Hasher, RandomState};

/// No entry.
const END: u32 = u32::MAX;

/// Multiplies the sector by a random odd number.
#[derive(Clone, Debug)]
pub(super) struct Multiply(u64);

impl Default for Multiply {
    fn default() -> Multiply {
        Multiply(RandomState::new().hash_one(0) | 1)
    }
}

pub(super) struct Product {
    factor: u64,
    value: u64,
}

impl BuildHasher for Multiply {
    type Hasher = Product;

    fn build_hasher(&self) -> Product {
        Product { factor: self.0, value: 0 }
    }
}

impl Hasher for Product {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(u64::from(number));
    }

    fn write_u64(&mut self, number: u64) {
        self.value = (self.value ^ number).wrapping_mul(self.factor);
    }

    fn finish(&self) -> u64 {
        // The low bits of a product depend on the low bits alone, which sectors have alike.
        self.value ^ self.value >> 32
    }
}

struct Entry<T> {
    value: T,
    next: u32,
}

/// A table by sector.
pub(super) struct SectorTable<T> {
    /// The places of the first and the last of each sector.
    ends: HashMap<u64, (u32, u32), Multiply>,
    entries: Vec<Option<Entry<T>>>,
    free: Vec<u32>,
}

impl<T> Default for SectorTable<T> {
    fn default() -> SectorTable<T> {
        SectorTable { ends: HashMap::default(), entries: Vec::new(), free: Vec::new() }
    }
}

impl<T> SectorTable<T> {
    /// Adds a value behind those with the same sector. Places are below 2³² because callers limit the number.
    pub(super) fn insert(&mut self, sector: u64, value: T) {
        let place = self.place(Entry { value, next: END });
        let ends = self.ends.entry(sector).or_insert((place, place));
        let last = std::mem::replace(&mut ends.1, place);
        if let Some(Some(entry)) = self.entries.get_mut(last as usize).filter(|_| last != place) {
            entry.next = place;
        }
    }

    /// Adds a value in front of those with the same sector.
    pub(super) fn insert_in_front(&mut self, sector: u64, value: T) {
        let (next, last) = self.ends.get(&sector).copied().unwrap_or((END, END));
        let place = self.place(Entry { value, next });
        self.ends.insert(sector, (place, if next == END { place } else { last }));
    }

    fn place(&mut self, entry: Entry<T>) -> u32 {
        if let Some(place) = self.free.pop() {
            self.entries[place as usize] = Some(entry);
            return place;
        }
        self.entries.push(Some(entry));
        u32::try_from(self.entries.len() - 1).unwrap_or(END)
    }

    /// The values at this sector.
    pub(super) fn at(&self, sector: u64) -> impl Iterator<Item = &T> {
        let first = self.ends.get(&sector).map(|(first, _)| *first);
        let entry = |place: u32| self.entries.get(place as usize)?.as_ref();
        std::iter::successors(first.and_then(entry), move |before| entry(before.next))
            .map(|entry| &entry.value)
    }

    /// Takes the first value at this sector that fits.
    pub(super) fn take(&mut self, sector: u64, fits: impl Fn(&T) -> bool) -> Option<T> {
        let Slot::Occupied(mut ends) = self.ends.entry(sector) else { return None };
        let (first, last) = *ends.get();
        let (mut before, mut place) = (END, first);
        loop {
            let entry = self.entries.get(place as usize)?.as_ref()?;
            if fits(&entry.value) {
                break;
            }
            before = place;
            place = entry.next;
        }
        let entry = self.entries[place as usize].take()?;
        self.free.push(place);
        if let Some(Some(earlier)) = self.entries.get_mut(before as usize) {
            earlier.next = entry.next;
        }
        let first = if before == END { entry.next } else { first };
        if first == END {
            ends.remove();
        } else {
            ends.insert((first, if entry.next == END { before } else { last }));
        }
        Some(entry.value)
    }

    /// All values; for what is rare.
    pub(super) fn values(&self) -> impl Iterator<Item = &T> {
        self.entries.iter().flatten().map(|entry| &entry.value)
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    pub(super) fn clear(&mut self) {
        self.ends.clear();
        self.entries.clear();
        self.free.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_one_sector_leave_in_their_order() {
        let mut table = SectorTable::default();
        for value in 0..10 {
            table.insert(value % 3 * 8, value);
        }
        assert_eq!(table.take(8, |_| true), Some(1));
        assert_eq!(table.take(8, |value| *value > 4), Some(7));
        assert_eq!(table.take(8, |_| true), Some(4));
        assert_eq!((table.take(8, |_| true), table.take(1, |_| true)), (None, None));
        table.insert(8, 11);
        assert_eq!((table.len(), table.values().filter(|value| **value > 8).count()), (8, 2));
        assert_eq!(table.take(8, |_| true), Some(11));
        table.insert(8, 12);
        table.insert_in_front(8, 13);
        table.insert_in_front(9, 14);
        let at = |table: &SectorTable<u64>, sector: u64| table.at(sector).copied().collect::<Vec<u64>>();
        assert_eq!((at(&table, 8), at(&table, 9), at(&table, 10)), (vec![13, 12], vec![14], vec![]));
        // The last leaves, and another comes behind the new last.
        assert_eq!(table.take(8, |value| *value == 12), Some(12));
        table.insert(8, 12);
        assert_eq!(at(&table, 8), [13, 12]);
        assert_eq!((table.take(8, |_| true), table.take(8, |_| true)), (Some(13), Some(12)));
        table.clear();
        assert_eq!((table.len(), table.take(0, |_| true)), (0, None));
    }
}
