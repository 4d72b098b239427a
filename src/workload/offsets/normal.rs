//! Places under a bell: `random_distribution=normal:DEVIATION`.
//!
//! Enters: how many places there are, a deviation in percent of them. Leaves: places, the middle the most popular, as
//! fio makes them: the mean of twelve uniform draws, moved by a uniform one as wide as the deviation. It must not know
//! where a place lies.

use super::SplitMix;

/// Uniform draws a mean is made of, two from each random number.
const DRAWS: u64 = 12;

/// A bell over a number of places.
#[derive(Clone, Debug)]
pub(super) struct Normal {
    count: u64,
    width: u64,
}

impl Normal {
    pub(super) fn new(count: u64, deviation_percent: f64) -> Normal {
        let width = (count as f64 * deviation_percent / 100.0).ceil() as u64;
        Normal { count: count.max(1), width: width.min(count / 2) }
    }

    /// A place below the count.
    #[inline]
    pub(super) fn draw(&self, random: &mut SplitMix) -> u64 {
        let bound = u128::from(self.count) + 1;
        let mut sum = 0;
        for _ in 0..DRAWS / 2 {
            let bits = random.draw();
            sum += ((u128::from(bits >> 32) * bound) >> 32) + ((u128::from(bits as u32) * bound) >> 32);
        }
        let place = (sum as u64).div_ceil(DRAWS).min(self.count - 1);
        if self.width == 0 {
            return place;
        }
        let mut moved = random.below(self.width) as i64 - (self.width / 2) as i64;
        // Halved until it stays inside, as in fio.
        while place.checked_add_signed(moved).is_none_or(|place| place >= self.count) {
            moved /= 2;
        }
        place.wrapping_add_signed(moved)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moments(normal: &Normal) -> (f64, f64) {
        let mut random = SplitMix::new(9);
        let places: Vec<f64> = (0..100_000).map(|_| normal.draw(&mut random) as f64).collect();
        let mean = places.iter().sum::<f64>() / places.len() as f64;
        let square = places.iter().map(|place| (place - mean).powi(2)).sum::<f64>() / places.len() as f64;
        (mean, square.sqrt())
    }

    #[test]
    fn the_bell_is_as_wide_as_fios() {
        // A mean of twelve uniform draws over n has a deviation of n/12, the uniform one of w/sqrt(12) is added.
        for (percent, deviation) in [(0.0, 833.3), (5.0, 845.7), (20.0, 1013.8)] {
            let (mean, found) = moments(&Normal::new(10_000, percent));
            assert!((mean - 5000.0).abs() < 15.0, "{mean}");
            assert!((found / deviation - 1.0).abs() < 0.02, "{percent}: {found}");
        }
        let few = Normal::new(1, 50.0);
        assert_eq!(few.draw(&mut SplitMix::new(1)), 0);
    }
}
