//! MSER-5: where the warm-up of one trial ends.
//!
//! Enters: a series of equally spaced values (1 s throughput). Leaves: how many of them to leave out, or a
//! refusal when more than half would go. Batches of five are averaged; the cut d minimises
//! Σ_{i>d}(z_i − mean_d)²/(n − d)², the squared standard error of what remains.
//! Level white noise is refused in up to 12 % of short series (60 to 120 values), in 2 % of 300: one refusal alone says
//! little.
//! Sources: White (1997), Simulation 69:323; White, Cobb & Spratt (2000), WSC.

const BATCH: usize = 5;

/// Why no cut is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Fewer than two batches of five.
    TooShort,
    /// The best cut lies in the second half: the series never settled.
    NeverSettled,
}

/// Values to leave out at the start.
///
/// # Errors
/// [`Refusal`] when the series is too short or never settles.
pub fn warm_up(series: &[f64]) -> Result<usize, Refusal> {
    let batches: Vec<f64> =
        series.chunks_exact(BATCH).map(|batch| batch.iter().sum::<f64>() / BATCH as f64).collect();
    if batches.len() < 2 {
        return Err(Refusal::TooShort);
    }
    let (mut best, mut best_cut) = (f64::INFINITY, 0);
    let (mut sum, mut squares, mut kept) = (0.0, 0.0, 0.0);
    // From the end, relative to the last value so that squares lose no digits. A handful of batches look settled
    // by chance, so the last five are not candidates (White & Robinson 2010).
    let origin = batches[batches.len() - 1];
    for (cut, value) in batches.iter().enumerate().rev() {
        let centred = value - origin;
        sum += centred;
        squares += centred * centred;
        kept += 1.0;
        if kept < 5.0 && batches.len() >= 10 {
            continue;
        }
        let error = (squares - sum * sum / kept).max(0.0) / (kept * kept);
        if error <= best {
            (best, best_cut) = (error, cut);
        }
    }
    if 2 * best_cut > batches.len() { Err(Refusal::NeverSettled) } else { Ok(best_cut * BATCH) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wobble(i: usize) -> f64 {
        ((i * 7919) % 101) as f64 / 101.0
    }

    #[test]
    fn a_slow_start_is_cut() {
        let series: Vec<f64> =
            (0..100).map(|i| if i < 20 { 10.0 + i as f64 } else { 100.0 } + wobble(i)).collect();
        let cut = warm_up(&series).unwrap();
        assert!((20..=50).contains(&cut), "{cut}");
    }

    #[test]
    fn a_level_series_loses_little_and_a_late_step_is_refused() {
        let level: Vec<f64> = (0..100).map(|i| 100.0 + wobble(i)).collect();
        assert!(warm_up(&level).unwrap() <= 50);
        assert_eq!(warm_up(&[7.0; 60]), Ok(0));
        let late: Vec<f64> = (0..100).map(|i| if i < 70 { i as f64 } else { 500.0 } + wobble(i)).collect();
        assert_eq!(warm_up(&late), Err(Refusal::NeverSettled));
        assert_eq!(warm_up(&[1.0; 9]), Err(Refusal::TooShort));
    }

    #[test]
    fn level_noise_is_seldom_refused() {
        use rand::{RngExt, SeedableRng};
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(4);
        for n in [60, 120, 300, 600] {
            let mut refused = 0;
            for _ in 0..500 {
                let level: Vec<f64> = (0..n).map(|_| 100.0 + rng.random::<f64>()).collect();
                refused += u32::from(warm_up(&level).is_err());
            }
            assert!(refused < 80, "{n}: {refused} of 500");
        }
    }
}
