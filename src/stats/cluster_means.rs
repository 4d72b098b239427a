//! Means of clusters of one arm against those of another: Mann–Whitney's U where it can resolve the level, Welch's t below.
//!
//! Enters: one value a cluster of each arm, the level, and how many comparisons share it. Leaves: p, estimate, interval, and which
//! test it was. It must not know what a cluster is.
//! Sources: those of [`super::mann_whitney`], [`super::shift`] and [`super::student_t`]; Donner & Klar, *Design and Analysis of Cluster
//! Randomization Trials* (2000) §7 on judging clusters by their means.

use super::shift::Shift;
use super::{Estimate, Precision, mann_whitney, student_t};

/// The smallest p of U must be this many times below the level that decides, or t is used.
const RESOLUTION: f64 = 4.0;
/// Where one arm has this many times the clusters of the other, t trusts the few too much: U serves as soon as it can claim at all.
const UNEQUAL: f64 = 1.5;

/// What two lists of cluster means show.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Judged {
    /// Judged by rank, not by t.
    pub by_rank: bool,
    /// Two-sided p.
    pub p: f64,
    /// The side that p is of: above 0 where y is larger.
    pub lean: f64,
    /// Hodges–Lehmann shift, y − x.
    pub shift: f64,
    /// The interval of the shift, where there is one.
    pub interval: Option<Estimate>,
    /// Whether p and interval are exact.
    pub precision: Precision,
}

/// Whether n against m clusters are judged by rank where `comparisons` share `level`. The smallest p of U is
/// 2/C(n + m, n).
#[must_use]
pub fn by_rank(n: usize, m: usize, level: f64, comparisons: usize) -> bool {
    let (few, many) = (n.min(m), n.max(m));
    let mut smallest = 2.0;
    for i in 1..=few {
        smallest *= i as f64 / (many + i) as f64;
    }
    let margin = if many as f64 >= UNEQUAL * few as f64 { 1.0 } else { RESOLUTION };
    margin * smallest <= level / comparisons.max(1) as f64
}

/// Judges y against x at two-sided `level`, which `comparisons` share; the interval leaves out `outside`. `None` where an arm has fewer than two clusters or a value is not finite.
#[must_use]
pub fn judge(x: &[f64], y: &[f64], outside: f64, level: f64, comparisons: usize) -> Option<Judged> {
    let walsh = Shift::new(x, y)?;
    let shift = walsh.hodges_lehmann();
    if by_rank(x.len(), y.len(), level, comparisons) {
        let test = mann_whitney::test(x, y)?;
        let interval = walsh.interval(outside);
        let normal = test.precision == Precision::Normal
            || interval.is_some_and(|(_, precision)| precision == Precision::Normal);
        let precision = if normal { Precision::Normal } else { Precision::Exact };
        let interval = interval.map(|(interval, _)| interval);
        let lean = 0.5 * (x.len() * y.len()) as f64 - test.u;
        return Some(Judged { by_rank: true, p: test.p, lean, shift, interval, precision });
    }
    let test = student_t::welch(x, y, outside)?;
    // The interval is around the difference of means; the estimate is Hodges and Lehmann's at any number of clusters.
    let shift = shift.clamp(test.interval.low, test.interval.high);
    let interval = Some(Estimate { estimate: shift, ..test.interval });
    let lean = test.interval.estimate;
    Some(Judged { by_rank: false, p: test.p, lean, shift, interval, precision: Precision::Exact })
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    #[test]
    fn ranks_decide_where_they_resolve_the_level() {
        // 4 · 2/C(2n, n) ≤ 0.05/m, worked out by hand: the first n against n for m = 1, 2, 6, 12.
        for (comparisons, first) in [(1, 5), (2, 6), (6, 7), (12, 7)] {
            assert!(by_rank(first, first, 0.05, comparisons), "m {comparisons}");
            assert!(!by_rank(first - 1, first - 1, 0.05, comparisons), "m {comparisons}");
        }
        // 2/C(12, 4) = .00404 and 2/C(10, 4) = .0095, unequal: no margin.
        assert!(by_rank(4, 8, 0.05, 12) && by_rank(8, 4, 0.05, 12) && !by_rank(4, 8, 0.05, 13));
        assert!(by_rank(4, 6, 0.05, 5) && !by_rank(4, 6, 0.05, 6));
        assert!(by_rank(5_000, 5_000, 1e-6, 1_000));
    }

    #[test]
    fn welch_and_u_are_what_their_own_files_say() {
        let x = [1.0, 2.0, 3.0, 4.0];
        let y = [11.0, 12.5, 13.0, 14.0];
        let few = judge(&x, &y, 0.05, 0.05, 1).unwrap();
        let welch = student_t::welch(&x, &y, 0.05).unwrap();
        assert_eq!((few.by_rank, few.p), (false, welch.p));
        let more = judge(&[1.0, 2.0, 3.0, 4.0, 5.0], &[11.0, 12.5, 13.0, 14.0, 15.0], 0.05, 0.05, 1).unwrap();
        assert!(more.by_rank && (more.p - 2.0 / 252.0).abs() < 1e-12, "{more:?}");
        assert!(more.interval.unwrap().low > 0.0 && judge(&[1.0], &y, 0.05, 0.05, 1).is_none());
    }

    #[derive(Clone, Copy, Debug)]
    enum Shape {
        Normal,
        /// Two states of a boot, as a memory layout gives.
        TwoModes,
        Skewed,
    }

    fn normal(rng: &mut ChaCha8Rng) -> f64 {
        (-2.0 * (1.0 - rng.random::<f64>()).ln()).sqrt() * (std::f64::consts::TAU * rng.random::<f64>()).cos()
    }

    /// Means of clusters of six repeats: sd 2 % between, 1 % within.
    fn means(rng: &mut ChaCha8Rng, shape: Shape, clusters: usize, effect: f64) -> Vec<f64> {
        let one = |rng: &mut ChaCha8Rng| {
            let between = match shape {
                Shape::Normal => normal(rng),
                Shape::TwoModes => (if rng.random::<bool>() { 1.0 } else { -1.0 }) + 0.2 * normal(rng),
                Shape::Skewed => -(1.0 - rng.random::<f64>()).ln() - 1.0,
            };
            effect + 0.02 * between + 0.01 * normal(rng) / 6_f64.sqrt()
        };
        (0..clusters).map(|_| one(rng)).collect()
    }

    /// Simulates (clusters of both arms) × (rows) and prints false claims and right claims at 5 %; `share` is how rows share α:
    /// one row's claims at α/rows, times the rows.
    fn simulate(shape: Shape, most_false: &[(usize, f64)], replicates: u32) {
        let sizes = [(4, 4), (5, 5), (6, 6), (8, 8), (4, 8), (5, 10)];
        println!("{shape:?}: false/right claims %, boots of both arms {sizes:?}");
        for (rows, most) in most_false {
            let level = 0.05 / *rows as f64;
            let mut line = format!("{rows:3} rows");
            for (a, b) in sizes {
                let mut rng = ChaCha8Rng::seed_from_u64(9);
                let (mut wrong, mut right) = (0, 0);
                for _ in 0..replicates {
                    let x = means(&mut rng, shape, a, 0.0);
                    let y = means(&mut rng, shape, b, 0.0);
                    // Which test it is follows from α and all rows; p is held against the strictest step of Holm's procedure.
                    let claims =
                        |y: &[f64]| judge(&x, y, 0.05, 0.05, *rows).is_some_and(|found| found.p <= level);
                    wrong += u32::from(claims(&y));
                    let shifted: Vec<f64> = y.iter().map(|value| value + 1.05_f64.ln()).collect();
                    right += u32::from(claims(&shifted));
                }
                let percent = |n: u32| 100.0 * f64::from(n) / f64::from(replicates);
                let family = percent(wrong) * *rows as f64;
                let error = 100.0 * *rows as f64 * (level / f64::from(replicates)).sqrt();
                line.push_str(&format!("  {family:.1}/{:.0}", percent(right)));
                assert!(family <= most + 3.0 * error, "{shape:?} {rows} rows {a} against {b}: {family}");
            }
            println!("{line}");
        }
    }

    #[test]
    fn clusters_claim_falsely_as_seldom_as_promised() {
        simulate(Shape::Normal, &[(1, 5.0), (2, 5.0), (6, 5.0), (12, 5.0)], 3_000);
    }

    #[test]
    fn skewed_clusters_claim_falsely_as_seldom_as_promised() {
        simulate(Shape::Skewed, &[(1, 5.0), (2, 5.0), (6, 5.0), (12, 5.0)], 3_000);
    }

    #[test]
    fn clusters_of_two_modes_claim_falsely_a_little_more_often() {
        // Four of one mode by chance look like certainty to t: with many rows and four boots more than α.
        simulate(Shape::TwoModes, &[(1, 5.0), (2, 5.0), (6, 6.0), (12, 12.0)], 3_000);
    }
}
