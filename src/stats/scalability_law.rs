//! The Universal Scalability Law X(N) = γN/(1 + α(N − 1) + βN(N − 1)): throughput at N workers.
//!
//! Enters: levels N and the throughput at each. Leaves: γ (throughput of one worker that has nobody beside it), α (the serial share:
//! what only one does at a time) and β (crosstalk: what each pays for each other one), by least squares with α, β ≥ 0. It must not
//! know units, arms or refusals.
//!
//! The squares are those of the throughput itself, not of N/X: the slow levels, where one worker's noise would be blown up, do not
//! outweigh the others. Method: Gauss and Newton's steps with Levenberg and Marquardt's damping (Marquardt 1963, J. Soc. Indust. Appl. Math.
//! 11:431) from the line that N/X makes of N − 1 and N(N − 1). Where the minimum has a negative α or β it lies on an edge: each edge
//! is fitted with one parameter fewer, then the corner, and the best that is allowed is taken. Three parameters and two bounds need no
//! crate for that.
//!
//! What two laws differ in is told by the jackknife (Tukey 1958, Ann. Math. Stat. 29:614): the ends of a bootstrap of few rounds are its
//! outermost samples.
//!
//! Source: Gunther, *Guerrilla Capacity Planning* (2007) §5 (there α is σ, β is κ); Gunther (2008), arXiv:0808.1431.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::descriptive::{mean, quantile_of_sorted};
use super::{Estimate, normal, student_t};

/// Fewer points say nothing of three parameters.
const FEWEST_POINTS: usize = 3;
/// Steps after which the fit is taken as it is.
const MOST_STEPS: usize = 200;
/// A step that makes the squares smaller by less than this part of them is the last.
const SMALL: f64 = 1e-13;

/// The three parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Law {
    /// Throughput at N = 1, in the unit of the throughput.
    pub gamma: f64,
    /// Serial share.
    pub alpha: f64,
    /// Crosstalk.
    pub beta: f64,
}

impl Law {
    /// Throughput at `n` workers.
    #[must_use]
    pub fn at(&self, n: f64) -> f64 {
        self.gamma * n / self.slowing(n)
    }

    fn slowing(&self, n: f64) -> f64 {
        1.0 + self.alpha * (n - 1.0) + self.beta * n * (n - 1.0)
    }

    /// The number of workers at which throughput is highest, √((1 − α)/β), at least 1; infinite without crosstalk.
    #[must_use]
    pub fn peak(&self) -> f64 {
        if self.alpha >= 1.0 { 1.0 } else { ((1.0 - self.alpha) / self.beta).sqrt().max(1.0) }
    }

    /// What the serial share alone would allow, γ/α; infinite without it.
    #[must_use]
    pub fn ceiling(&self) -> f64 {
        self.gamma / self.alpha
    }

    /// Root of the mean squared residual, relative to the mean throughput.
    #[must_use]
    pub fn residual(&self, points: &[(f64, f64)]) -> f64 {
        let throughput: Vec<f64> = points.iter().map(|(_, x)| *x).collect();
        (self.squares(points) / points.len() as f64).sqrt() / mean(&throughput)
    }

    fn squares(&self, points: &[(f64, f64)]) -> f64 {
        points.iter().map(|(n, x)| (x - self.at(*n)).powi(2)).sum()
    }

    fn parameters(self) -> [f64; 3] {
        [self.gamma, self.alpha, self.beta]
    }

    fn of([gamma, alpha, beta]: [f64; 3]) -> Law {
        Law { gamma, alpha, beta }
    }

    fn is_allowed(&self) -> bool {
        self.alpha >= 0.0 && self.beta >= 0.0
    }
}

/// Least squares of (N, throughput). `None` for fewer than three different N, N below 1, or throughput that is not above 0.
#[must_use]
pub fn fit(points: &[(f64, f64)]) -> Option<Law> {
    let valid = |(n, x): &(f64, f64)| *n >= 1.0 && n.is_finite() && *x > 0.0 && x.is_finite();
    let mut levels: Vec<f64> = points.iter().map(|(n, _)| *n).collect();
    levels.sort_by(f64::total_cmp);
    levels.dedup();
    if levels.len() < FEWEST_POINTS || !points.iter().all(valid) {
        return None;
    }
    // The unit of the throughput shall not matter.
    let unit = points.iter().map(|(_, x)| *x).fold(0.0, f64::max);
    let scaled: Vec<(f64, f64)> = points.iter().map(|(n, x)| (*n, x / unit)).collect();
    let law = fit_scaled(&scaled);
    Some(Law { gamma: law.gamma * unit, ..law })
}

fn fit_scaled(points: &[(f64, f64)]) -> Law {
    let start = line(points).unwrap_or(Law { gamma: points[0].1 / points[0].0, alpha: 0.05, beta: 1e-3 });
    let inside = descend(points, start, [true, true, true]);
    if inside.is_allowed() {
        return inside;
    }
    let edges = [
        descend(points, Law { alpha: 0.0, ..start }, [true, false, true]),
        descend(points, Law { beta: 0.0, ..start }, [true, true, false]),
        descend(points, Law { alpha: 0.0, beta: 0.0, ..start }, [true, false, false]),
    ];
    let best = edges.into_iter().filter(Law::is_allowed);
    best.min_by(|a, b| a.squares(points).total_cmp(&b.squares(points))).unwrap_or(start)
}

/// The law of the line N/X = a + b(N − 1) + cN(N − 1), weighted as the residuals of X are; α and β no less than 0.
fn line(points: &[(f64, f64)]) -> Option<Law> {
    let (mut matrix, mut right) = ([[0.0; 3]; 3], [0.0; 3]);
    for (n, x) in points {
        let (row, weight) = ([1.0, n - 1.0, n * (n - 1.0)], x.powi(4) / (n * n));
        for i in 0..3 {
            right[i] += weight * row[i] * n / x;
            for j in 0..3 {
                matrix[i][j] += weight * row[i] * row[j];
            }
        }
    }
    let [a, b, c] = solve(matrix, right, 0.0)?;
    (a > 0.0).then(|| Law { gamma: 1.0 / a, alpha: (b / a).max(0.0), beta: (c / a).max(0.0) })
}

/// The nearest minimum, of the free parameters alone.
fn descend(points: &[(f64, f64)], start: Law, free: [bool; 3]) -> Law {
    let (mut law, mut squares, mut damping) = (start, start.squares(points), 1e-3);
    for _ in 0..MOST_STEPS {
        let (matrix, right) = normal_equations(points, law, free);
        let Some(step) = solve(matrix, right, damping) else { break };
        let mut parameters = law.parameters();
        parameters.iter_mut().zip(step).for_each(|(parameter, step)| *parameter += step);
        let next = Law::of(parameters);
        let possible = next.gamma > 0.0 && points.iter().all(|(n, _)| next.slowing(*n) > 0.0);
        let next_squares = next.squares(points);
        if possible && next_squares <= squares {
            let gain = squares - next_squares;
            (law, squares, damping) = (next, next_squares, (damping * 0.1).max(1e-12));
            if gain <= SMALL * squares || squares == 0.0 {
                break;
            }
        } else {
            damping *= 10.0;
            if damping > 1e12 {
                break;
            }
        }
    }
    law
}

/// JᵀJ and Jᵀr; a parameter that is not free gets no step.
fn normal_equations(points: &[(f64, f64)], law: Law, free: [bool; 3]) -> ([[f64; 3]; 3], [f64; 3]) {
    let (mut matrix, mut right) = ([[0.0; 3]; 3], [0.0; 3]);
    for (n, x) in points {
        let slowing = law.slowing(*n);
        let by_slowing = -law.gamma * n / (slowing * slowing);
        let slope = [n / slowing, by_slowing * (n - 1.0), by_slowing * n * (n - 1.0)];
        let residual = x - law.at(*n);
        for i in (0..3).filter(|i| free[*i]) {
            right[i] += slope[i] * residual;
            for j in (0..3).filter(|j| free[*j]) {
                matrix[i][j] += slope[i] * slope[j];
            }
        }
    }
    for i in (0..3).filter(|i| !free[*i]) {
        matrix[i][i] = 1.0;
    }
    (matrix, right)
}

/// Solves a symmetric system after scaling its diagonal to 1, with `damping` added to that; `None` where it has no one solution.
fn solve(mut matrix: [[f64; 3]; 3], mut right: [f64; 3], damping: f64) -> Option<[f64; 3]> {
    let scale: [f64; 3] = std::array::from_fn(|i| matrix[i][i].sqrt());
    if scale.iter().any(|s| !s.is_finite() || *s <= 0.0) {
        return None;
    }
    for i in 0..3 {
        right[i] /= scale[i];
        for j in 0..3 {
            matrix[i][j] /= scale[i] * scale[j];
        }
        matrix[i][i] += damping;
    }
    // Gauss' elimination with the largest pivot of each column.
    for column in 0..3 {
        let pivot =
            (column..3).max_by(|a, b| matrix[*a][column].abs().total_cmp(&matrix[*b][column].abs()))?;
        if matrix[pivot][column].abs() < 1e-14 {
            return None;
        }
        matrix.swap(column, pivot);
        right.swap(column, pivot);
        for row in column + 1..3 {
            let factor = matrix[row][column] / matrix[column][column];
            let above = matrix[column];
            matrix[row].iter_mut().zip(above).for_each(|(value, above)| *value -= factor * above);
            right[row] -= factor * right[column];
        }
    }
    let mut found = [0.0; 3];
    for row in (0..3).rev() {
        let known: f64 = (row + 1..3).map(|column| matrix[row][column] * found[column]).sum();
        found[row] = (right[row] - known) / matrix[row][row];
    }
    Some(std::array::from_fn(|i| found[i] / scale[i]))
}

/// The laws of `replicates` samples drawn with replacement. `values[level]` are the throughputs at `levels[level]`. `together`: value i of each
/// level is of round i, and rounds are drawn, the same ones for every call with as many rounds; otherwise each level's values are drawn
/// on their own. Samples without a fit are left out.
#[must_use]
pub fn bootstrap(levels: &[f64], values: &[Vec<f64>], together: bool, replicates: usize) -> Vec<Option<Law>> {
    let mut rng = ChaCha8Rng::seed_from_u64(SEED);
    let mut any = |of: usize| (rng.random::<f64>() * of as f64) as usize;
    (0..replicates)
        .map(|_| {
            let rounds = values.first().map_or(0, Vec::len);
            let drawn: Vec<usize> =
                if together { (0..rounds).map(|_| any(rounds)).collect() } else { Vec::new() };
            let point = |(n, values): (&f64, &Vec<f64>)| {
                let sum: f64 = match together {
                    true => drawn.iter().filter_map(|round| values.get(*round)).sum(),
                    false => (0..values.len()).map(|_| values[any(values.len())]).sum(),
                };
                (*n, sum / values.len() as f64)
            };
            let points: Vec<(f64, f64)> = levels.iter().zip(values).map(point).collect();
            fit(&points)
        })
        .collect()
}

/// The jackknife's pseudo-values of ln γ, α and β: nθ − (n − 1)θ₋ᵢ, where θ₋ᵢ is of all values but the i-th of each level. `None`: a
/// sample has no fit. As many as the level with the fewest has values.
#[must_use]
pub fn pseudo_values(law: &Law, levels: &[f64], values: &[Vec<f64>]) -> Option<[Vec<f64>; 3]> {
    let n = values.iter().map(Vec::len).min().filter(|n| *n >= 2)?;
    let of = |law: &Law| [law.gamma.ln(), law.alpha, law.beta];
    let all = of(law);
    let mut pseudo: [Vec<f64>; 3] = Default::default();
    for left_out in 0..n {
        let without =
            |values: &Vec<f64>| (values.iter().sum::<f64>() - values[left_out]) / (values.len() - 1) as f64;
        let points: Vec<(f64, f64)> = levels.iter().copied().zip(values.iter().map(without)).collect();
        let without = of(&fit(&points)?);
        for at in 0..3 {
            pseudo[at].push(n as f64 * all[at] - (n - 1) as f64 * without[at]);
        }
    }
    Some(pseudo)
}

/// The seed of all bootstraps: one run has one answer.
const SEED: u64 = 0x5ca1_ab1e;

/// The percentile interval of bootstrap replicates of a statistic of `n` rounds that leaves out `alpha`, widened for few rounds: its ends
/// are the quantiles Φ(∓√(n/(n − 1))·t), t being Student's with n − 1 degrees of freedom (Hesterberg 2015, Am. Stat. 69:371, expanded
/// percentile). Infinite values are allowed.
#[must_use]
pub fn percentiles(estimate: f64, replicates: &[f64], n: usize, alpha: f64) -> Estimate {
    let mut sorted = replicates.to_vec();
    sorted.sort_by(f64::total_cmp);
    let df = n.max(2) as f64 - 1.0;
    let tail = normal::upper_tail(((df + 1.0) / df).sqrt() * student_t::upper_quantile(0.5 * alpha, df));
    // Between a number and infinity there is nothing to interpolate.
    let quantile = |q: f64| match quantile_of_sorted(&sorted, q) {
        between if between.is_nan() => sorted.last().copied().unwrap_or(f64::NAN),
        found => found,
    };
    let (low, high) = (quantile(tail), quantile(1.0 - tail));
    Estimate { estimate, low: low.min(estimate), high: high.max(estimate) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SPEC SDM 91 on a SPARCcenter 2000 (Gunther 2007): load, throughput.
    const SPEC_SDM91: [(f64, f64); 7] = [
        (1.0, 64.9),
        (18.0, 995.9),
        (36.0, 1652.4),
        (72.0, 1853.2),
        (108.0, 1828.9),
        (144.0, 1775.0),
        (216.0, 1702.2),
    ];
    /// The ray tracer of the BRL-CAD benchmark on an SGI Origin 2000 (Gunther 2007): processors, throughput.
    const RAY_TRACER: [(f64, f64); 11] = [
        (1.0, 20.0),
        (4.0, 78.0),
        (8.0, 130.0),
        (12.0, 170.0),
        (16.0, 190.0),
        (20.0, 200.0),
        (24.0, 210.0),
        (28.0, 230.0),
        (32.0, 260.0),
        (48.0, 280.0),
        (64.0, 310.0),
    ];
    /// The test data of R's package usl.
    const USL: [(f64, f64); 6] =
        [(1.0, 1.0), (2.0, 1.8868), (4.0, 3.0769), (6.0, 3.5294), (8.0, 3.5398), (10.0, 3.3557)];

    fn is_near(law: Law, gamma: f64, alpha: f64, beta: f64, tolerance: [f64; 3]) {
        let off = [law.gamma - gamma, law.alpha - alpha, law.beta - beta];
        assert!(off.iter().zip(tolerance).all(|(off, most)| off.abs() <= most), "{law:?}");
    }

    #[test]
    fn spec_sdm91_as_r_s_package_fits_it() {
        let law = fit(&SPEC_SDM91).unwrap();
        is_near(law, 89.99523, 0.0277285, 0.0001044, [5e-5, 5e-7, 5e-8]);
        assert!((law.peak() - 96.52).abs() < 0.01, "{}", law.peak());
        assert!((0.03..0.06).contains(&law.residual(&SPEC_SDM91)), "{}", law.residual(&SPEC_SDM91));
        let fitted: Vec<f64> = SPEC_SDM91.iter().map(|(n, _)| law.at(*n).round()).collect();
        assert_eq!(fitted, [90.0, 1078.0, 1541.0, 1850.0, 1879.0, 1822.0, 1646.0], "fitted() of the package");
    }

    #[test]
    fn the_ray_tracer_s_first_six_levels_and_all() {
        is_near(fit(&RAY_TRACER[..6]).unwrap(), 20.85605, 0.02444, 0.00163, [5e-5, 5e-6, 5e-6]);
        let all = fit(&RAY_TRACER).unwrap();
        is_near(all, 21.848_84, 0.057_771, 0.0, [5e-5, 5e-6, 0.0]);
        assert!(all.peak().is_infinite() && (all.ceiling() - all.gamma / all.alpha).abs() < 1e-12);
    }

    #[test]
    fn the_test_of_r_s_package() {
        is_near(fit(&USL).unwrap(), 1.0, 0.02, 0.02, [1e-3, 1e-3, 1e-3]);
    }

    #[test]
    fn the_unit_does_not_matter_and_exact_points_are_found() {
        for (alpha, beta) in [(0.0, 0.0), (0.1, 0.0), (0.0, 0.003), (0.3, 0.0001), (1.5, 0.0)] {
            let law = Law { gamma: 3.2e9, alpha, beta };
            let points = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0].map(|n| (n, law.at(n)));
            is_near(fit(&points).unwrap(), 3.2e9, alpha, beta, [3e3, 1e-6, 1e-7]);
        }
    }

    #[test]
    fn more_than_linear_stops_at_the_corner() {
        let law = fit(&[(1.0, 1.0), (2.0, 2.2), (4.0, 4.9), (8.0, 11.0)]).unwrap();
        assert_eq!((law.alpha, law.beta), (0.0, 0.0));
        assert!(law.peak().is_infinite() && law.ceiling().is_infinite());
    }

    #[test]
    fn what_is_no_throughput_has_no_fit() {
        assert!(fit(&[(1.0, 1.0), (2.0, 2.0)]).is_none());
        assert!(fit(&[(1.0, 1.0), (2.0, 2.0), (2.0, 2.1)]).is_none(), "two levels");
        assert!(fit(&[(1.0, 1.0), (2.0, 0.0), (4.0, 3.0)]).is_none());
        assert!(fit(&[(0.0, 1.0), (2.0, 1.0), (4.0, 3.0)]).is_none());
        assert!(fit(&[(1.0, f64::NAN), (2.0, 1.0), (4.0, 3.0)]).is_none());
    }

    #[test]
    fn a_workload_that_only_slows_down_peaks_at_one() {
        assert_eq!(Law { gamma: 1.0, alpha: 1.2, beta: 0.1 }.peak(), 1.0);
        assert_eq!(Law { gamma: 1.0, alpha: 0.2, beta: 4.0 }.peak(), 1.0);
    }

    #[test]
    fn bootstrap_intervals_hold_the_law() {
        let law = Law { gamma: 100.0, alpha: 0.05, beta: 0.002 };
        let levels = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0];
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        let mut noise = || (0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0;
        let (mut held, runs, rounds) = ([0; 3], 100, 8);
        for _ in 0..runs {
            let values: Vec<Vec<f64>> = levels
                .iter()
                .map(|n| (0..rounds).map(|_| law.at(*n) * (0.02 * noise()).exp()).collect())
                .collect();
            let means: Vec<(f64, f64)> =
                levels.iter().zip(&values).map(|(n, values)| (*n, mean(values))).collect();
            let found = fit(&means).unwrap();
            let replicates: Vec<Law> = bootstrap(&levels, &values, true, 200).into_iter().flatten().collect();
            let of = |law: &Law| law.parameters();
            for (at, held) in held.iter_mut().enumerate() {
                let drawn: Vec<f64> = replicates.iter().map(|law| of(law)[at]).collect();
                let interval = percentiles(of(&found)[at], &drawn, rounds, 0.05);
                *held += u32::from(!interval.excludes(of(&law)[at]));
            }
        }
        println!("of {runs} intervals of γ, α, β at 8 rounds, {held:?} hold the truth");
        assert!(held.iter().all(|held| *held >= 88), "{held:?}");
    }

    #[test]
    fn the_same_rounds_are_drawn_for_two_arms() {
        let levels = [1.0, 2.0, 4.0, 8.0];
        let arm = |factor: f64| -> Vec<Vec<f64>> {
            let values = |n: &f64| (0..5).map(|round| factor * (n + f64::from(round))).collect();
            levels.iter().map(values).collect()
        };
        let (one, ten) = (bootstrap(&levels, &arm(1.0), true, 20), bootstrap(&levels, &arm(10.0), true, 20));
        for (one, ten) in one.iter().zip(&ten) {
            let (one, ten) = (one.unwrap(), ten.unwrap());
            assert!((ten.gamma / one.gamma - 10.0).abs() < 1e-6 && (ten.alpha - one.alpha).abs() < 1e-6);
        }
        let one = bootstrap(&levels, &arm(1.0), true, 20);
        assert_ne!(one, bootstrap(&levels, &arm(1.0), false, 20));
    }
}
