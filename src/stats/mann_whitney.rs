//! Mann–Whitney's U: exact and tie-aware.
//!
//! Enters: two samples. Leaves: U and its two-sided p. The permutation distribution of U is built group of ties
//! by group of ties: among the t values of a group, c belong to the first sample in C(t, c) ways, and each of
//! them is above all values of the second sample seen before and level with t − c. Without ties this is the
//! classical distribution. Where that would take longer than about 0.1 s the normal approximation with tie and
//! continuity correction is used and [`Precision::Normal`] says so.
//! Sources: Mann & Whitney (1947), Ann. Math. Stat. 18:50; Klotz (1966), Technometrics 8:327 (ties);
//! Hollander, Wolfe & Chicken (2014) §4.1. Two-sided p is twice the smaller tail, as in benchstat and R.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::{Precision, normal};

/// Most additions the exact distribution may take.
const EXACT_WORK: f64 = 6e7;

/// Result of the test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MannWhitney {
    /// Pairs (x, y) with x > y, ties counting one half.
    pub u: f64,
    /// Two-sided p.
    pub p: f64,
    /// Exact or approximated.
    pub precision: Precision,
}

/// Compares two samples of finite values. `None` when one is empty or holds something that is not finite.
#[must_use]
pub fn test(x: &[f64], y: &[f64]) -> Option<MannWhitney> {
    if x.is_empty() || y.is_empty() || x.iter().chain(y).any(|v| !v.is_finite()) {
        return None;
    }
    let groups = tie_groups(x, y);
    let (twice_u, tie_term) = twice_u(&groups);
    let all = 2 * (x.len() * y.len()) as u64;
    let smaller = twice_u.min(all - twice_u);
    let u = twice_u as f64 / 2.0;
    if work(x.len(), y.len(), smaller as f64 / 2.0) > EXACT_WORK {
        let p = approximate(x.len(), y.len(), smaller as f64 / 2.0, tie_term);
        return Some(MannWhitney { u, p, precision: Precision::Normal });
    }
    let mut sizes: Vec<usize> = groups.iter().map(|(in_x, in_y)| in_x + in_y).collect();
    // The distribution is that of the smaller sample's U. With ties it is not symmetric: an upper tail is the lower
    // tail of the values in reverse.
    let x_is_drawn = x.len() <= y.len();
    if x_is_drawn != (twice_u == smaller) {
        sizes.reverse();
    }
    let masses = lower_masses(x.len().min(y.len()), &sizes, smaller as usize);
    let (at_most, exactly) = (masses.iter().sum::<f64>(), masses.last().copied().unwrap_or(0.0));
    let tail = at_most.min(1.0 - at_most + exactly);
    Some(MannWhitney { u, p: (2.0 * tail).min(1.0), precision: Precision::Exact })
}

/// The largest c with P(U ≤ c) ≤ `alpha`/2 for samples of `n` and `m` untied values, and how it was found;
/// `None` when not even U = 0 is rare enough.
#[must_use]
pub fn critical(n: usize, m: usize, alpha: f64) -> (Option<u64>, Precision) {
    let half = (n * m) as f64 / 2.0;
    if work(n, m, half) > EXACT_WORK {
        let sd = ((n * m) as f64 * (n + m + 1) as f64 / 12.0).sqrt();
        let c = (half - 0.5 - normal::upper_quantile(alpha / 2.0) * sd).floor();
        return ((c >= 0.0).then_some(c as u64), Precision::Normal);
    }
    let mut sum = 0.0;
    let masses = untied(n.min(m), n.max(m));
    let rare = masses.iter().take_while(|p| {
        sum += **p;
        sum <= alpha / 2.0
    });
    (rare.count().checked_sub(1).map(|c| c as u64), Precision::Exact)
}

/// (values of x, values of y) at each distinct value, ascending.
fn tie_groups(x: &[f64], y: &[f64]) -> Vec<(usize, usize)> {
    let mut all: Vec<(f64, bool)> =
        x.iter().map(|v| (*v, true)).chain(y.iter().map(|v| (*v, false))).collect();
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut groups: Vec<(usize, usize)> = Vec::new();
    let mut last = f64::NAN;
    for (value, in_x) in all {
        if value != last {
            groups.push((0, 0));
            last = value;
        }
        if let Some(group) = groups.last_mut() {
            if in_x { group.0 += 1 } else { group.1 += 1 }
        }
    }
    groups
}

/// 2U and Σ(t³ − t) over tie groups.
fn twice_u(groups: &[(usize, usize)]) -> (u64, f64) {
    let (mut twice, mut tie_term, mut y_below) = (0_u64, 0.0, 0_usize);
    for (in_x, in_y) in groups {
        twice += (in_x * (2 * y_below + in_y)) as u64;
        y_below += in_y;
        let t = (in_x + in_y) as f64;
        tie_term += t * t * t - t;
    }
    (twice, tie_term)
}

fn work(n: usize, m: usize, up_to: f64) -> f64 {
    (n + m) as f64 * n.min(m) as f64 * (up_to + 1.0)
}

fn approximate(n: usize, m: usize, smaller: f64, tie_term: f64) -> f64 {
    let (pairs, all) = ((n * m) as f64, (n + m) as f64);
    let variance = pairs / 12.0 * (all + 1.0 - tie_term / (all * (all - 1.0)));
    if variance <= 0.0 {
        return 1.0;
    }
    let z = (pairs / 2.0 - smaller - 0.5) / variance.sqrt();
    (2.0 * normal::upper_tail(z)).min(1.0)
}

/// Probability of 2U = 0, 1, … `up_to` when `n` of the values are drawn at random, given the tie groups' sizes.
fn lower_masses(n: usize, sizes: &[usize], up_to: usize) -> Vec<f64> {
    let width = up_to + 1;
    // ways[i][s]: ways to have drawn i values with 2U = s from the groups so far.
    let mut ways = vec![0.0_f64; (n + 1) * width];
    ways[0] = 1.0;
    let mut before = 0_usize;
    for &size in sizes {
        for drawn in (0..=n.min(before + size)).rev() {
            let (earlier, rest) = ways.split_at_mut(drawn * width);
            let target = &mut rest[..width];
            let mut choose = 1.0;
            for c in 1..=size.min(drawn) {
                choose *= (size - c + 1) as f64 / c as f64;
                let from = drawn - c;
                if from > before {
                    continue;
                }
                // 2·c·(others below) + c·(others level).
                let shift = c * (2 * (before - from) + size - c);
                if shift < width {
                    let source = &earlier[from * width..][..width - shift];
                    for (to, add) in target[shift..].iter_mut().zip(source) {
                        *to += choose * add;
                    }
                }
            }
        }
        before += size;
    }
    let mut all_ways = 1.0;
    for i in 0..n {
        all_ways *= (before - i) as f64 / (i + 1) as f64;
    }
    ways[n * width..].iter().map(|w| w / all_ways).collect()
}

/// P(U = u) for u = 0 … ⌊nm/2⌋ without ties, n ≤ m, cached for a process.
fn untied(n: usize, m: usize) -> Arc<Vec<f64>> {
    type Known = BTreeMap<(usize, usize), Arc<Vec<f64>>>;
    static CACHE: Mutex<Known> = Mutex::new(BTreeMap::new());
    let mut cache = CACHE.lock().unwrap_or_else(PoisonError::into_inner);
    let entry = cache.entry((n, m)).or_insert_with(|| {
        let masses = lower_masses(n, &vec![1; n + m], n * m);
        Arc::new(masses.into_iter().step_by(2).collect())
    });
    Arc::clone(entry)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// ns/op of one benchmark in benchstat's own test data.
    fn benchstat(text: &str, benchmark: &str) -> Vec<f64> {
        let of = |line: &str| -> Option<f64> {
            let mut fields = line.split_whitespace();
            fields.next().filter(|name| *name == benchmark)?;
            fields.nth(1)?.parse().ok()
        };
        text.lines().filter_map(of).collect()
    }

    const OLD: &str = include_str!("../../tests/data/benchstat/old.txt");
    const NEW: &str = include_str!("../../tests/data/benchstat/new.txt");
    const CRC_OLD: &str = include_str!("../../tests/data/benchstat/crc-old.txt");
    const CRC_NEW: &str = include_str!("../../tests/data/benchstat/crc-new.txt");

    #[test]
    fn benchstat_json_and_gob() {
        let of = |text, name| benchstat(text, name);
        let (old, new) =
            (of(OLD, "BenchmarkEncode/format=json-48"), of(NEW, "BenchmarkEncode/format=json-48"));
        assert_eq!((old.len(), new.len()), (10, 10));
        let change = crate::stats::descriptive::median(&new) / crate::stats::descriptive::median(&old) - 1.0;
        assert!((change + 0.1720).abs() < 5e-5, "{change}");
        let json = test(&old, &new).unwrap();
        assert!((json.p - 1.1e-5).abs() < 5e-7 && json.precision == Precision::Exact, "{json:?}");
        let gob = test(&of(OLD, "BenchmarkEncode/format=gob-48"), &of(NEW, "BenchmarkEncode/format=gob-48"))
            .unwrap();
        assert!((gob.p - 0.446_102).abs() < 5e-7, "{gob:?}");
    }

    #[test]
    fn benchstat_crc_rows() {
        for ((size, align), p) in
            [(15, 0), (15, 1), (40, 0), (40, 1)].into_iter().zip([0.008, 0.539, 0.006, 0.003])
        {
            let name = format!("BenchmarkCRC32/poly=IEEE/size={size}/align={align}-8");
            let result = test(&benchstat(CRC_OLD, &name), &benchstat(CRC_NEW, &name)).unwrap();
            assert!((result.p - p).abs() <= 5e-4, "{name}: {result:?}");
        }
    }

    #[test]
    fn small_samples_by_hand() {
        // 4 against 4 without overlap: 2/C(8,4).
        let apart = test(&[1.0, 2.0, 3.0, 4.0], &[5.0, 6.0, 7.0, 8.0]).unwrap();
        assert!((apart.p - 2.0 / 70.0).abs() < 1e-15 && apart.u == 0.0);
        // One tie across samples: x = {1, 2}, y = {2, 3}: U = 0.5; of the 6 choices two have 2U ≤ 1.
        let tied = test(&[1.0, 2.0], &[2.0, 3.0]).unwrap();
        assert_eq!(tied.u, 0.5);
        assert!((tied.p - 2.0 / 3.0).abs() < 1e-15, "{tied:?}");
        assert_eq!(test(&[3.0; 4], &[3.0; 5]).unwrap().p, 1.0);
        // x = {1}, y = {2, 2, 3}: of the 4 choices one has U = 0. Its mirror image: x = {3}, y = {1, 2, 2}.
        assert!((test(&[1.0], &[2.0, 2.0, 3.0]).unwrap().p - 0.5).abs() < 1e-15);
        assert!((test(&[3.0], &[1.0, 2.0, 2.0]).unwrap().p - 0.5).abs() < 1e-15);
        // x = {1}, y = {1, 2, 3}: the tie on one side only; P(2U ≤ 1) = 2/4. With x = {3} P(U ≥ 3) = 1/4.
        assert_eq!(test(&[1.0], &[1.0, 2.0, 3.0]).unwrap().p, 1.0);
        for (x, y) in [(&[3.0][..], &[1.0, 1.0, 2.0][..]), (&[1.0, 1.0, 2.0], &[3.0])] {
            assert!((test(x, y).unwrap().p - 0.5).abs() < 1e-15, "the tail of the side that was seen");
        }
        assert!(test(&[], &[1.0]).is_none());
    }

    #[test]
    fn critical_values_are_the_published_ones() {
        // Two-sided 5 % critical values of U (Milton 1964).
        for ((n, m), c) in [((4, 4), 0), ((5, 5), 2), ((6, 8), 8), ((10, 10), 23), ((20, 20), 127)] {
            assert_eq!(critical(n, m, 0.05), (Some(c), Precision::Exact), "{n} {m}");
        }
        assert_eq!(critical(3, 3, 0.05).0, None);
    }

    #[test]
    fn approximation_is_flagged_and_close() {
        let x: Vec<f64> = (0..60).map(|i| f64::from((i * 37) % 101)).collect();
        let y: Vec<f64> = (0..60).map(|i| f64::from((i * 53) % 97) + 9.0).collect();
        let exact = test(&x, &y).unwrap();
        assert_eq!(exact.precision, Precision::Exact);
        let (_, tie_term) = twice_u(&tie_groups(&x, &y));
        let close = approximate(60, 60, exact.u.min(3600.0 - exact.u), tie_term);
        assert!((exact.p - close).abs() < 0.003, "{} {close}", exact.p);
        let many: Vec<f64> = (0..5_000).map(f64::from).collect();
        assert_eq!(test(&many, &many).unwrap().precision, Precision::Normal);
    }
}
