//! The ratio of means with its percentile bootstrap interval.
//!
//! Enters: two arms' values (paired by round, or not), a seed. Leaves: ratio of means and its 95 % interval.
//! Rounds are resampled whole. Above `BLOCKS`·2 rounds, runs of successive rounds are resampled as blocks: the
//! cost stays fixed and slow drift is not mistaken for noise (Künsch 1989, Ann. Stat. 17:1217).
//! Source: Efron & Tibshirani (1993), *An Introduction to the Bootstrap*, §13.3.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::Estimate;
use super::descriptive::{mean, quantile_of_sorted};

const RESAMPLES: usize = 1_000;
/// Most units resampled.
const BLOCKS: usize = 500;

/// mean(candidate)/mean(baseline) when entry i of both is round i. The slices must be equally long.
/// The interval's ends are NaN for fewer than 4 rounds or when the baseline's mean is not positive.
#[must_use]
pub fn ratio_of_means_paired(baseline: &[f64], candidate: &[f64], seed: u64) -> Estimate {
    let estimate = mean(candidate) / mean(baseline);
    if baseline.len() < 4 || baseline.len() != candidate.len() {
        return Estimate { estimate, low: f64::NAN, high: f64::NAN };
    }
    let (base, cand) = (block_sums(baseline), block_sums(candidate));
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    percentiles(estimate, || {
        let (mut below, mut above) = (0.0, 0.0);
        for _ in 0..base.len() {
            let pick = rng.random_range(0..base.len() as u32) as usize;
            below += base[pick].0;
            above += cand[pick].0;
        }
        above / below
    })
}

/// mean(candidate)/mean(baseline) of two independent samples; each is resampled by itself.
#[must_use]
pub fn ratio_of_means_unpaired(baseline: &[f64], candidate: &[f64], seed: u64) -> Estimate {
    let estimate = mean(candidate) / mean(baseline);
    if baseline.len() < 4 || candidate.len() < 4 {
        return Estimate { estimate, low: f64::NAN, high: f64::NAN };
    }
    let (base, cand) = (block_sums(baseline), block_sums(candidate));
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut resampled_mean = |blocks: &[(f64, f64)]| {
        let (mut sum, mut n) = (0.0, 0.0);
        for _ in 0..blocks.len() {
            let (block, size) = blocks[rng.random_range(0..blocks.len() as u32) as usize];
            sum += block;
            n += size;
        }
        sum / n
    };
    percentiles(estimate, || resampled_mean(&cand) / resampled_mean(&base))
}

/// (sum, size) of successive blocks; single values as long as there are few.
fn block_sums(values: &[f64]) -> Vec<(f64, f64)> {
    let size = if values.len() > 2 * BLOCKS { values.len().div_ceil(BLOCKS) } else { 1 };
    values.chunks(size).map(|block| (block.iter().sum(), block.len() as f64)).collect()
}

fn percentiles(estimate: f64, mut resample: impl FnMut() -> f64) -> Estimate {
    let mut ratios: Vec<f64> = (0..RESAMPLES).map(|_| resample()).filter(|ratio| ratio.is_finite()).collect();
    ratios.sort_by(f64::total_cmp);
    // The percentile interval of a skewed sample may miss the estimate; it is stretched to hold it.
    let low = quantile_of_sorted(&ratios, 0.025).min(estimate);
    let high = quantile_of_sorted(&ratios, 0.975).max(estimate);
    Estimate { estimate, low, high }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn same_seed_same_interval_and_near_the_delta_method() {
        let base: Vec<f64> = (0..40).map(|i| 100.0 + f64::from((i * 17) % 13)).collect();
        let cand: Vec<f64> = (0..40).map(|i| 110.0 + f64::from((i * 29) % 11)).collect();
        let a = ratio_of_means_unpaired(&base, &cand, 7);
        assert_eq!(a, ratio_of_means_unpaired(&base, &cand, 7));
        let relative =
            |v: &[f64]| super::super::descriptive::variance(v) / (v.len() as f64 * mean(v) * mean(v));
        let half = 1.96 * a.estimate * (relative(&base) + relative(&cand)).sqrt();
        assert!((a.high - a.estimate - half).abs() < 0.25 * half, "{a:?} {half}");
    }

    #[test]
    fn pairing_cancels_what_both_share() {
        let base: Vec<f64> = (0..20).map(|i| 100.0 + 40.0 * f64::from((i * 7) % 5)).collect();
        let cand: Vec<f64> = base.iter().map(|v| v * 1.1).collect();
        let paired = ratio_of_means_paired(&base, &cand, 1);
        assert!((paired.low - 1.1).abs() < 1e-9 && (paired.high - 1.1).abs() < 1e-9, "{paired:?}");
        let unpaired = ratio_of_means_unpaired(&base, &cand, 1);
        assert!(unpaired.low < 1.0 && unpaired.high > 1.2, "{unpaired:?}");
    }

    #[test]
    fn blocks_keep_the_width() {
        let base: Vec<f64> =
            (0..20_000_u32).map(|i| 100.0 + f64::from(i.wrapping_mul(2_654_435_761) >> 27)).collect();
        let paired = ratio_of_means_paired(&base, &base.iter().rev().copied().collect::<Vec<_>>(), 3);
        let sd = super::super::descriptive::stddev(&base) / mean(&base);
        let half = 1.96 * sd * (2.0_f64 / 20_000.0).sqrt();
        assert!((paired.high - paired.low) / 2.0 < 2.0 * half, "{paired:?} {half}");
        assert!(ratio_of_means_paired(&[1.0; 3], &[2.0; 3], 1).low.is_nan());
    }
}
