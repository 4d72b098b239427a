//! Student's t: quantiles, and the one-sample (paired), Welch intervals and tests.
//!
//! Enters: differences, or two samples. Leaves: estimate, interval, t, df, p.
//! Sources: Student (1908), Biometrika 6:1; Welch (1947), Biometrika 34:28. The distribution is statrs'
//! incomplete beta function; its inverse is polished by Newton steps because it is good to 9 digits only.

use statrs::function::beta::{beta_reg, ln_beta};

use super::Estimate;
use super::descriptive::{mean, variance};

/// A t test with its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TTest {
    /// Mean (or difference of means) with its interval.
    pub interval: Estimate,
    /// The statistic.
    pub t: f64,
    /// Degrees of freedom.
    pub df: f64,
    /// Two-sided p.
    pub p: f64,
}

/// P(|T| > t) with `df` degrees of freedom; 1 where t is not a number, as it is where nothing differs and nothing varies.
#[must_use]
pub fn two_sided(t: f64, df: f64) -> f64 {
    if t.is_nan() {
        return 1.0;
    }
    if t.is_infinite() {
        return 0.0;
    }
    beta_reg(df / 2.0, 0.5, df / (df + t * t))
}

/// The t with P(T > t) = `tail`, 0 < tail < ½.
#[must_use]
pub fn upper_quantile(tail: f64, df: f64) -> f64 {
    // Bracketed bisection to start (log scale: heavy tails), then Newton on the upper tail.
    let (mut low, mut high) = (0.0_f64, 1.0_f64);
    while two_sided(high, df) > 2.0 * tail && high < 1e300 {
        low = high;
        high *= 2.0;
    }
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if two_sided(middle, df) > 2.0 * tail {
            low = middle;
        } else {
            high = middle;
        }
    }
    let t = f64::midpoint(low, high);
    let log_density = -0.5 * df.ln() - ln_beta(df / 2.0, 0.5) - 0.5 * (df + 1.0) * (t * t / df).ln_1p();
    t + (0.5 * two_sided(t, df) - tail) / log_density.exp()
}

/// One-sample t of differences against 0 at two-sided `alpha`. `None` for fewer than two values.
#[must_use]
pub fn paired(differences: &[f64], alpha: f64) -> Option<TTest> {
    let n = differences.len();
    if n < 2 {
        return None;
    }
    let df = n as f64 - 1.0;
    let error = (variance(differences) / n as f64).sqrt();
    Some(test(mean(differences), error, df, alpha))
}

/// Welch's test of mean(y) − mean(x) at two-sided `alpha`. `None` when a sample has fewer than two values.
#[must_use]
pub fn welch(x: &[f64], y: &[f64], alpha: f64) -> Option<TTest> {
    if x.len() < 2 || y.len() < 2 {
        return None;
    }
    let (vx, vy) = (variance(x) / x.len() as f64, variance(y) / y.len() as f64);
    let spread = vx * vx / (x.len() as f64 - 1.0) + vy * vy / (y.len() as f64 - 1.0);
    // Two constant samples: the ratio is 0/0; any df gives the same (empty) interval.
    let df = if spread > 0.0 { (vx + vy) * (vx + vy) / spread } else { (x.len() + y.len()) as f64 - 2.0 };
    Some(test(mean(y) - mean(x), (vx + vy).sqrt(), df, alpha))
}

/// Student's test of mean(y) − mean(x) at two-sided `alpha`, of samples that vary alike. `None` when they have fewer than three values in all, or
/// one has none.
#[must_use]
pub fn pooled(x: &[f64], y: &[f64], alpha: f64) -> Option<TTest> {
    let (n, m) = (x.len() as f64, y.len() as f64);
    let df = n + m - 2.0;
    if x.is_empty() || y.is_empty() || df < 1.0 {
        return None;
    }
    let squares = |sample: &[f64]| {
        let mean = mean(sample);
        sample.iter().map(|value| (value - mean).powi(2)).sum::<f64>()
    };
    let error = ((squares(x) + squares(y)) / df * (1.0 / n + 1.0 / m)).sqrt();
    Some(test(mean(y) - mean(x), error, df, alpha))
}

/// Welch's test of Σ weight·mean over independent samples at two-sided `alpha`, with Satterthwaite's degrees of freedom (1946, Biometrics
/// Bull. 2:110). `None` when a sample with a weight has fewer than two values, or none has a weight.
#[must_use]
pub fn contrast(weights: &[f64], samples: &[Vec<f64>], alpha: f64) -> Option<TTest> {
    let used: Vec<(f64, &Vec<f64>)> =
        weights.iter().copied().zip(samples).filter(|(weight, _)| *weight != 0.0).collect();
    if used.is_empty() || used.iter().any(|(_, sample)| sample.len() < 2) {
        return None;
    }
    let free = |sample: &[f64]| sample.len() as f64 - 1.0;
    let parts: Vec<f64> = used
        .iter()
        .map(|(weight, sample)| weight * weight * variance(sample) / sample.len() as f64)
        .collect();
    let whole: f64 = parts.iter().sum();
    let spread: f64 = parts.iter().zip(&used).map(|(part, (_, sample))| part * part / free(sample)).sum();
    let all: f64 = used.iter().map(|(_, sample)| free(sample)).sum();
    let df = if spread > 0.0 { whole * whole / spread } else { all };
    let estimate = used.iter().map(|(weight, sample)| weight * mean(sample)).sum();
    Some(test(estimate, whole.sqrt(), df, alpha))
}

fn test(estimate: f64, error: f64, df: f64, alpha: f64) -> TTest {
    let half = if error > 0.0 { upper_quantile(alpha / 2.0, df) * error } else { 0.0 };
    let t = if error > 0.0 {
        estimate / error
    } else if estimate == 0.0 {
        0.0
    } else {
        f64::INFINITY.copysign(estimate)
    };
    let interval = Estimate { estimate, low: estimate - half, high: estimate + half };
    TTest { interval, t, df, p: two_sided(t.abs(), df) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Student's sleep data: extra hours of sleep under two drugs, ten patients.
    const DRUG_1: [f64; 10] = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0];
    const DRUG_2: [f64; 10] = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4];

    #[test]
    fn quantiles_of_the_sequential_looks() {
        let known =
            [(3.0, 11.265_006_624_1), (4.0, 7.741_169_133_0), (5.0, 6.283_582_256_5), (6.0, 5.510_588_092_3)];
        for (df, t) in known {
            assert!(
                (upper_quantile(0.00075, df) - t).abs() < 1e-9,
                "df {df}: {}",
                upper_quantile(0.00075, df)
            );
        }
    }

    #[test]
    fn sleep_data_paired() {
        let differences: Vec<f64> = DRUG_1.iter().zip(DRUG_2).map(|(a, b)| b - a).collect();
        let test = paired(&differences, 0.05).unwrap();
        assert!((test.t - 4.062_127_683_382).abs() < 1e-11, "{}", test.t);
        assert!((test.p - 0.002_832_890_197).abs() < 1e-11, "{}", test.p);
        assert!((test.interval.low - 0.700_114_236_7).abs() < 1e-9, "{:?}", test.interval);
        assert!((test.interval.high - 2.459_885_763_3).abs() < 1e-9, "{:?}", test.interval);
    }

    #[test]
    fn sleep_data_welch() {
        let test = welch(&DRUG_1, &DRUG_2, 0.05).unwrap();
        assert!((test.t - 1.860_813_467_5).abs() < 1e-9, "{}", test.t);
        assert!((test.p - 0.079_394_140_2).abs() < 1e-9, "{}", test.p);
    }

    #[test]
    fn a_contrast_of_two_samples_is_welch_s_test() {
        let samples = [DRUG_1.to_vec(), DRUG_2.to_vec(), vec![7.0]];
        let (welch, of_two) =
            (welch(&DRUG_1, &DRUG_2, 0.05).unwrap(), contrast(&[-1.0, 1.0, 0.0], &samples, 0.05).unwrap());
        assert!((welch.p - of_two.p).abs() < 1e-14 && (welch.df - of_two.df).abs() < 1e-12, "{of_two:?}");
        assert!((welch.interval.low - of_two.interval.low).abs() < 1e-12);
        assert!(contrast(&[-1.0, 0.5, 0.5], &samples, 0.05).is_none(), "one value has no spread");
        assert!(contrast(&[0.0; 3], &samples, 0.05).is_none());
    }

    #[test]
    fn constant_differences_have_an_empty_interval() {
        let test = paired(&[2.0, 2.0, 2.0, 2.0], 0.05).unwrap();
        assert_eq!((test.interval.low, test.interval.high, test.p), (2.0, 2.0, 0.0));
        assert_eq!(paired(&[0.0, 0.0, 0.0], 0.05).unwrap().p, 1.0);
        assert!(paired(&[1.0], 0.05).is_none() && welch(&[1.0], &[1.0, 2.0], 0.05).is_none());
    }
}
