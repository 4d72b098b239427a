//! The answers of R, scipy, ministat, benchstat and an enumeration for the 30 data sets of tests/data/oracles, against
//! assay's own. The programs that made the files are beside them; none of those tools is needed here.
//!
//! Conventions that differ, and what is compared in their place:
//! - Zeros and ties among paired differences. assay counts them against a claim and takes the distribution without ties
//!   (`signed_rank_p`; the enumeration does the same by other code). coin takes the distribution given the ties, with
//!   Pratt's zeros (`signed_rank_p_given_ties`): assay's p may be larger, never smaller.
//! - Ties in two samples: twice the smaller tail of the exact permutation distribution, as benchstat. coin's two-sided
//!   p adds what is as far from the mean on the other side; make.R takes its two tails.
//! - Intervals with ties: order statistics at R's `qsignrank` and `qwilcox`. R's `wilcox.test` itself would take the
//!   normal approximation. Where n is too small for 95 % R prints a narrower one; assay has none (`NA`).
//! - Kendall's p with ties: R's with continuity correction. scipy leaves the correction out.
//! - benchstat takes the normal approximation where values are tied and an arm has more than 25 (within 0.002), and the
//!   lower tail where the upper one was seen, which with ties and arms of unequal length is another number (.172 for
//!   .199 of 5 against 9; within 0.03).
//! - ministat takes the upper of two middle values as the median, and pools the variances (Student's t, where assay
//!   takes Welch's); its quantiles of t come from a table with three decimals.

use std::collections::BTreeMap;

use assay::stats::descriptive::{mean, median, stddev, variance};
use assay::stats::shift::Shift;
use assay::stats::walsh::Walsh;
use assay::stats::{
    benjamini_hochberg, binomial, holm, mann_kendall, mann_whitney, signed_rank, student_t, theil_sen,
};

const ALPHA: f64 = 0.05;

/// Both arms of every set, in the order of the file.
struct Data {
    names: Vec<String>,
    arms: BTreeMap<String, [Vec<f64>; 2]>,
    /// Mann–Whitney p of the sets that have two values or more: the family of Holm and Benjamini–Hochberg. R has no p
    /// for the set of one value.
    family: Vec<(String, f64)>,
}

/// (set, quantity, value as written).
fn rows(file: &str) -> Vec<[String; 3]> {
    let path = format!("{}/tests/data/oracles/{file}", env!("CARGO_MANIFEST_DIR"));
    let mut reader = csv::Reader::from_path(path).unwrap();
    reader.records().map(|row| std::array::from_fn(|at| row.as_ref().unwrap()[at].to_owned())).collect()
}

fn data() -> Data {
    let mut data = Data { names: Vec::new(), arms: BTreeMap::new(), family: Vec::new() };
    for [set, arm, value] in rows("data.csv") {
        if !data.arms.contains_key(&set) {
            data.names.push(set.clone());
        }
        data.arms.entry(set).or_default()[usize::from(arm == "b")].push(value.parse().unwrap());
    }
    for name in &data.names {
        let [a, b] = &data.arms[name];
        if a.iter().chain(b).any(|v| *v != a[0]) {
            data.family.push((name.clone(), mann_whitney::test(a, b).unwrap().p));
        }
    }
    data
}

/// assay's answer; `None` where it has none, as for an interval that n is too small for.
fn answer(data: &Data, set: &str, quantity: &str) -> Option<f64> {
    if set == "binomial" {
        let of: Vec<f64> = quantity.split(' ').map(|v| v.parse().unwrap()).collect();
        return Some(binomial::at_least(of[0] as u32, of[1] as u32, of[2]));
    }
    let [a, b] = &data.arms[set];
    let (family, method) = (quantity.split('_').next().unwrap(), quantity);
    match family {
        "mann" if method.starts_with("mann_whitney") => two_samples(a, b, method),
        "shift" => two_samples(a, b, method),
        "welch" | "student" => by_t(a, b, method),
        "holm" => Some(adjusted(data, set, holm::adjust)),
        "bh" => Some(adjusted(data, set, benjamini_hochberg::adjust)),
        "mean" | "median" | "upper" | "stddev" => described(a, b, method),
        _ => {
            let d: Vec<f64> = b.iter().zip(a).map(|(b, a)| b - a).collect();
            assert_eq!(a.len(), b.len(), "{set} is not paired");
            paired(&d, method)
        }
    }
}

fn two_samples(a: &[f64], b: &[f64], quantity: &str) -> Option<f64> {
    let (test, shift) = (mann_whitney::test(a, b).unwrap(), Shift::new(a, b).unwrap());
    match quantity {
        "mann_whitney_u" => Some(test.u),
        "mann_whitney_p" => Some(test.p),
        "shift" => Some(shift.hodges_lehmann()),
        "shift_low" => shift.interval(ALPHA).map(|(interval, _)| interval.low),
        "shift_high" => shift.interval(ALPHA).map(|(interval, _)| interval.high),
        _ => panic!("no such quantity: {quantity}"),
    }
}

fn by_t(a: &[f64], b: &[f64], quantity: &str) -> Option<f64> {
    let welch = student_t::welch(a, b, ALPHA).unwrap();
    let (n, m) = (a.len() as f64, b.len() as f64);
    let pooled = ((n - 1.0) * variance(a) + (m - 1.0) * variance(b)) / (n + m - 2.0);
    let half = student_t::upper_quantile(ALPHA / 2.0, n + m - 2.0) * (pooled * (1.0 / n + 1.0 / m)).sqrt();
    match quantity {
        "welch_t" => Some(welch.t),
        "welch_df" => Some(welch.df),
        "welch_p" => Some(welch.p),
        "welch_low" => Some(welch.interval.low),
        "welch_high" => Some(welch.interval.high),
        "student_difference" => Some(welch.interval.estimate).filter(|d| d.abs() > half),
        "student_half_width" => Some(half),
        _ => panic!("no such quantity: {quantity}"),
    }
}

fn described(a: &[f64], b: &[f64], quantity: &str) -> Option<f64> {
    let upper_median = |values: &[f64]| {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        sorted[sorted.len() / 2]
    };
    let (what, arm) = quantity.rsplit_once('_').unwrap();
    let values = if arm == "a" { a } else { b };
    match what {
        "mean" => Some(mean(values)),
        "median" => Some(median(values)),
        "upper_median" => Some(upper_median(values)),
        "stddev" => Some(stddev(values)),
        "median_change" => Some(100.0 * (median(b) / median(a) - 1.0)),
        _ => panic!("no such quantity: {quantity}"),
    }
}

fn paired(d: &[f64], quantity: &str) -> Option<f64> {
    let walsh = Walsh::new(d).unwrap();
    let interval = signed_rank::critical(d.len(), ALPHA).and_then(|k| walsh.interval(k));
    let t = student_t::paired(d, ALPHA).unwrap();
    match quantity {
        "signed_rank_p" | "signed_rank_p_given_ties" => Some(walsh.signed_rank_p()),
        "walsh" => Some(walsh.hodges_lehmann()),
        "walsh_low" => interval.map(|i| i.low),
        "walsh_high" => interval.map(|i| i.high),
        "paired_t" => Some(t.t),
        "paired_p" => Some(t.p),
        "paired_low" => Some(t.interval.low),
        "paired_high" => Some(t.interval.high),
        "mann_kendall_s" => Some(mann_kendall::test(d).unwrap().s as f64),
        "mann_kendall_p" => Some(mann_kendall::test(d).unwrap().p),
        "theil_sen" => theil_sen::slope(d),
        _ => panic!("no such quantity: {quantity}"),
    }
}

fn adjusted(data: &Data, set: &str, adjust: fn(&[f64]) -> Vec<f64>) -> f64 {
    let p: Vec<f64> = data.family.iter().map(|(_, p)| *p).collect();
    adjust(&p)[data.family.iter().position(|(name, _)| name == set).unwrap()]
}

/// How far assay may be from a value as written: a part of it, or the last digit of a tool that rounds.
fn tolerance(file: &str, [a, b]: &[Vec<f64>; 2], quantity: &str, value: f64) -> f64 {
    match (file, quantity) {
        // %.8g, %g, and quantiles of t from 1.645 on with three decimals.
        ("ministat.csv", "student_half_width") => value * 0.0005 / 1.645,
        ("ministat.csv", "student_difference") => value.abs() * 1e-5,
        ("ministat.csv", _) => value.abs() * 1e-7,
        ("benchstat.csv", "mann_whitney_p") if a.len().max(b.len()) > 25 && tied(a, b) => 0.002,
        ("benchstat.csv", "mann_whitney_p") if a.len() != b.len() && tied(a, b) => 0.03,
        ("benchstat.csv", "mann_whitney_p") => 0.000_501,
        ("benchstat.csv", "median_change_percent") => 0.005_01,
        _ => value.abs() * 1e-6 + 1e-12,
    }
}

fn tied(a: &[f64], b: &[f64]) -> bool {
    let mut all = [a, b].concat();
    all.sort_by(f64::total_cmp);
    all.windows(2).any(|two| two[0] == two[1])
}

/// Compares every row of `file`; returns how many there were.
fn agree(file: &str) -> usize {
    let (data, rows) = (data(), rows(file));
    let mut different = Vec::new();
    for [set, quantity, written] in &rows {
        let own = answer(&data, set, quantity);
        let good = match (own, written.parse::<f64>()) {
            (own, Err(_)) => own.is_none(),
            (Some(own), Ok(p)) if quantity == "signed_rank_p_given_ties" => own >= p - 1e-12,
            (Some(own), Ok(value)) => {
                let none = [Vec::new(), Vec::new()];
                let arms = data.arms.get(set).unwrap_or(&none);
                (own - value).abs() <= tolerance(file, arms, quantity, value)
            }
            (None, Ok(_)) => false,
        };
        if !good {
            different.push(format!("{set} {quantity}: {written}, assay {own:?}"));
        }
    }
    assert!(different.is_empty(), "{file}:\n{}", different.join("\n"));
    rows.len()
}

#[test]
fn thirty_sets_are_compared() {
    let data = data();
    assert_eq!(data.names.len(), 30);
    assert_eq!(data.names.iter().filter(|name| name.starts_with("paired")).count(), 18);
}

#[test]
fn r_agrees() {
    assert_eq!(agree("r.csv"), 608);
}

#[test]
fn scipy_agrees() {
    assert_eq!(agree("scipy.csv"), 213);
}

#[test]
fn an_enumeration_agrees() {
    assert_eq!(agree("enumeration.csv"), 33);
}

#[test]
fn ministat_agrees() {
    assert_eq!(agree("ministat.csv"), 216);
}

#[test]
fn benchstat_agrees() {
    assert_eq!(agree("benchstat.csv"), 97);
}
