//! A table by first sector, of which several entries may have the same.
//!
//! Enters: values with their sectors. Leaves: the same in their order. Looking one up takes the same time however many there are; the
//! multiplier of the hash is random, so that no trace can make all its sectors fall together.

use std::collections::HashMap;
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
    first: HashMap<u64, u32, Multiply>,
    entries: Vec<Option<Entry<T>>>,
    free: Vec<u32>,
}

impl<T> Default for SectorTable<T> {
    fn default() -> SectorTable<T> {
        SectorTable { first: HashMap::default(), entries: Vec::new(), free: Vec::new() }
    }
}

impl<T> SectorTable<T> {
    /// Adds a value behind those with the same sector. Places are below 2³² because callers limit the number.
    pub(super) fn insert(&mut self, sector: u64, value: T) {
        let place = self.place(Entry { value, next: END });
        let Some(first) = self.first.get(&sector) else {
            self.first.insert(sector, place);
            return;
        };
        let mut last = *first;
        while let Some(entry) = self.entries.get_mut(last as usize).and_then(Option::as_mut) {
            if entry.next == END {
                entry.next = place;
                break;
            }
            last = entry.next;
        }
    }

    /// Adds a value in front of those with the same sector.
    pub(super) fn insert_in_front(&mut self, sector: u64, value: T) {
        let next = self.first.get(&sector).copied().unwrap_or(END);
        let place = self.place(Entry { value, next });
        self.first.insert(sector, place);
    }

    fn place(&mut self, entry: Entry<T>) -> u32 {
        if let Some(place) = self.free.pop() {
            self.entries[place as usize] = Some(entry);
            return place;
        }
        self.entries.push(Some(entry));
        u32::try_from(self.entries.len() - 1).unwrap_or(END)
    }

    /// The first value at this sector.
    pub(super) fn first(&self, sector: u64) -> Option<&T> {
        let place = *self.first.get(&sector)?;
        self.entries.get(place as usize)?.as_ref().map(|entry| &entry.value)
    }

    /// Takes the first value at this sector that fits.
    pub(super) fn take(&mut self, sector: u64, fits: impl Fn(&T) -> bool) -> Option<T> {
        let (mut before, mut place) = (END, *self.first.get(&sector)?);
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
        } else if entry.next == END {
            self.first.remove(&sector);
        } else {
            self.first.insert(sector, entry.next);
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
        self.first.clear();
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
        assert_eq!((table.first(8), table.first(9), table.first(10)), (Some(&13), Some(&14), None));
        assert_eq!((table.take(8, |_| true), table.take(8, |_| true)), (Some(13), Some(12)));
        table.clear();
        assert_eq!((table.len(), table.take(0, |_| true)), (0, None));
    }
}
