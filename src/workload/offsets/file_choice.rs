//! Which file the next I/O goes to: `file_service_type`.
//!
//! Enters: the order asked for, how many files there are, a seed. Leaves: numbers of files. It must not know files.

use super::SplitMix;
use super::skew::Skew;
use crate::workload::placement::{Distribution, FileOrder, FileService};

/// Places a file has in a skewed order, as a power of two (fio's FIO_FSERVICE_SHIFT).
const PLACES_SHIFT: u32 = 10;
/// Random tries for a file that is not done before those that are left are counted.
const TRIES: u32 = 64;

#[derive(Clone, Debug)]
enum Order {
    /// One after the other, so many I/Os each; with `u32::MAX` to its end.
    InTurn,
    Random,
    Skewed(Skew),
}

/// Chooses among the files of one instance.
#[derive(Clone, Debug)]
pub struct FileChoice {
    order: Order,
    count: usize,
    /// I/Os each time, and how many of them the current file has left.
    ios_a_turn: u32,
    left: u32,
    current: usize,
    /// The next in turn.
    next: usize,
    random: SplitMix,
}

impl FileChoice {
    /// A choice among `count` files; `None` where one after the other has one I/O, or where there is no choice.
    #[must_use]
    pub fn new(service: FileService, count: usize, seed: u64) -> Option<FileChoice> {
        let skewed = |distribution: Distribution| {
            Skew::side_by_side(&distribution, (count as u64) << PLACES_SHIFT, seed).map(Order::Skewed)
        };
        let center = None;
        let order = match service.order {
            FileOrder::RoundRobin if service.ios_a_turn == 1 => return None,
            FileOrder::RoundRobin | FileOrder::Sequential => Order::InTurn,
            FileOrder::Random => Order::Random,
            FileOrder::Zipf(theta) => skewed(Distribution::Zipf { theta, center })?,
            FileOrder::Pareto(h) => skewed(Distribution::Pareto { h, center })?,
            FileOrder::Normal(deviation_percent) => {
                skewed(Distribution::Normal { deviation_percent, center })?
            }
        };
        let ios_a_turn =
            if service.order == FileOrder::Sequential { u32::MAX } else { service.ios_a_turn.max(1) };
        let random = SplitMix::new(seed);
        (count > 1).then_some(FileChoice { order, count, ios_a_turn, left: 0, current: 0, next: 0, random })
    }

    /// Whether a file begins again by itself when it is done, so that its share of the I/Os stays what it is.
    #[must_use]
    pub fn is_skewed(&self) -> bool {
        matches!(self.order, Order::Skewed(_))
    }

    /// The file of the next I/O, one of those that are `open`; `None`: none is.
    pub fn draw(&mut self, open: impl Fn(usize) -> bool) -> Option<usize> {
        if self.left > 0 && open(self.current) {
            if self.ios_a_turn < u32::MAX {
                self.left -= 1;
            }
            return Some(self.current);
        }
        self.current = match &mut self.order {
            Order::InTurn => {
                let count = self.count;
                let at = (self.next..self.next + count).map(|at| at % count).find(|at| open(*at))?;
                self.next = (at + 1) % count;
                at
            }
            Order::Random => {
                let (count, random) = (self.count as u64, &mut self.random);
                let tried = (0..TRIES).map(|_| random.below(count) as usize).find(|at| open(*at));
                tried.or_else(|| any_open(self.count, &mut self.random, open))?
            }
            Order::Skewed(skew) => {
                let tried = (0..TRIES).map(|_| (skew.draw() >> PLACES_SHIFT) as usize).find(|at| open(*at));
                tried.or_else(|| any_open(self.count, &mut self.random, open))?
            }
        };
        self.left = self.ios_a_turn - 1;
        Some(self.current)
    }
}

fn any_open(count: usize, random: &mut SplitMix, open: impl Fn(usize) -> bool) -> Option<usize> {
    let left = (0..count).filter(|at| open(*at)).count() as u64;
    (left > 0).then(|| random.below(left) as usize).and_then(|nth| (0..count).filter(|at| open(*at)).nth(nth))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choice(order: FileOrder, ios_a_turn: u32) -> FileChoice {
        FileChoice::new(FileService { order, ios_a_turn }, 4, 7).unwrap()
    }

    #[test]
    fn in_turn() {
        let mut turns = choice(FileOrder::RoundRobin, 2);
        let drawn: Vec<_> = (0..9).filter_map(|_| turns.draw(|at| at != 2)).collect();
        assert_eq!(drawn, [0, 0, 1, 1, 3, 3, 0, 0, 1]);
        let mut whole = choice(FileOrder::Sequential, 1);
        assert_eq!((0..5).map(|_| whole.draw(|_| true).unwrap()).collect::<Vec<_>>(), [0; 5]);
        assert_eq!(whole.draw(|at| at > 0), Some(1));
        assert_eq!(whole.draw(|at| at > 0), Some(1));
        assert_eq!(whole.draw(|_| false), None);
        assert!(FileChoice::new(FileService::default(), 4, 7).is_none());
        assert!(FileChoice::new(FileService { order: FileOrder::Random, ios_a_turn: 1 }, 1, 7).is_none());
    }

    #[test]
    fn at_random() {
        let mut random = choice(FileOrder::Random, 1);
        let mut hits = [0_u32; 4];
        for _ in 0..40_000 {
            hits[random.draw(|at| at != 1).unwrap()] += 1;
        }
        assert_eq!(hits[1], 0);
        assert!([hits[0], hits[2], hits[3]].iter().all(|count| count.abs_diff(13_333) < 400), "{hits:?}");
        assert_eq!(random.draw(|_| false), None);
    }

    #[test]
    fn skewed() {
        for (order, least) in [(FileOrder::Zipf(1.2), 0.7), (FileOrder::Pareto(0.2), 0.5)] {
            let mut skewed = choice(order, 1);
            let mut hits = [0_u32; 4];
            (0..10_000).for_each(|_| hits[skewed.draw(|_| true).unwrap()] += 1);
            let most = hits.iter().max().copied().unwrap_or(0);
            assert!(f64::from(most) / 10_000.0 > least, "{order:?} {hits:?}");
        }
        let mut bell = choice(FileOrder::Normal(0.0), 1);
        let mut hits = [0_u32; 4];
        (0..10_000).for_each(|_| hits[bell.draw(|_| true).unwrap()] += 1);
        // The middle two share nearly all: a bell as wide as a twelfth of four files.
        assert!(hits[1] > 4700 && hits[2] > 4700 && hits[0] + hits[3] < 100, "{hits:?}");
    }
}
