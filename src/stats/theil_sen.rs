//! Theil–Sen: the median of the slopes between all pairs of points, a trend that outliers do not bend.
//!
//! Enters: values at 0, 1, 2, … Leaves: slope a step. Above `ALL_PAIRS_LIMIT` values the series is first
//! condensed into that many blocks of successive values, each by its median: pairs grow with n².
//! Sources: Theil (1950), Proc. K. Ned. Akad. Wet. 53:386; Sen (1968), J. Am. Stat. Assoc. 63:1379.

use super::descriptive::median;

const ALL_PAIRS_LIMIT: usize = 500;

/// Median slope a step; `None` for fewer than two values.
#[must_use]
pub fn slope(values: &[f64]) -> Option<f64> {
    if values.len() < 2 {
        return None;
    }
    let size = values.len().div_ceil(ALL_PAIRS_LIMIT);
    let points: Vec<(f64, f64)> = values
        .chunks(size)
        .enumerate()
        .map(|(at, block)| ((at * size) as f64 + (block.len() as f64 - 1.0) / 2.0, median(block)))
        .collect();
    let mut slopes = Vec::with_capacity(points.len() * points.len() / 2);
    for (i, (x, y)) in points.iter().enumerate() {
        slopes.extend(points[i + 1..].iter().map(|(later_x, later_y)| (later_y - y) / (later_x - x)));
    }
    Some(median(&slopes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outliers_do_not_bend_it() {
        let mut values: Vec<f64> = (0..21).map(|i| 3.0 + 0.5 * f64::from(i)).collect();
        values[4] = 900.0;
        values[17] = -900.0;
        assert_eq!(slope(&values), Some(0.5));
        assert_eq!(slope(&[1.0]), None);
    }

    #[test]
    fn long_series_are_condensed() {
        let values: Vec<f64> = (0..50_001).map(|i| 2.0 - 0.25 * f64::from(i)).collect();
        assert!((slope(&values).unwrap() + 0.25).abs() < 1e-12);
    }
}
