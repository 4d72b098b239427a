//! The sequential look: estimate, interval and stopping as one object, for paired differences D_1, D_2, …
//!
//! Enters: the differences so far and a [`Boundary`]. Leaves: the intersection of the intervals of all looks so far; it may be
//! asked after every round without losing its error rate, and a claim that it made is kept: all these intervals hold the truth
//! together, so that their intersection does (Robbins 1970, Ann. Math. Stat. 41:1397). The probability that any look of a run excludes the truth is
//! at most α for symmetric D, by the union bound over two parts of α = 0.05 (another α scales both):
//!
//! - The rank looks (n ≥ 8) spend 0.044·ln(1 + (e − 1)·n/N_max), Pocock-like spending (Lan & DeMets 1983,
//!   Biometrika 70:659). How their boundary k_n is found: [`super::sequential_boundary`].
//! - The t looks, at every n ≥ 4 before the first rank look, spend 0.006 in equal shares: 0.0015 at each of
//!   n = 4…7, less where small α lets the rank looks begin later. With a small α the first of them comes later: of a trial with
//!   two modes n differences are all the same, and their t infinite, with probability 2·4^(−n).
//!
//! Where N_max is so small that a rank look could hardly claim anything, there are t looks only. Then those before
//! N_max spend as much as above, and the last one spends all that is left: strict interim looks and nearly the
//! whole α at the end (Haybittle 1971, Br. J. Radiol. 44:793; Peto et al. 1976, Br. J. Cancer 34:585), with the
//! interim looks paid for in full (Bonferroni).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::crossover::Crossover;
use super::descriptive::{mean, stddev};
use super::walsh::Walsh;
use super::{Estimate, sequential_boundary, student_t};

/// Fewest rounds that are ever judged.
pub const FEWEST_ROUNDS: usize = 4;
/// Two-sided α that all t looks before the last round spend of a family-wise 0.05.
const T_SHARE: f64 = 0.006;
/// Of α, what the first t look may lose to n equal differences of a trial with two modes.
const EQUAL_SHARE: f64 = 0.2;
/// The t looks spend no more than this part of [`T_SHARE`] each, however few they are.
const FEWEST_T_SHARES: usize = 4;
/// The first rank look where t looks come before it.
const FIRST_RANK_LOOK: usize = 8;
/// The first look of `--exact`.
const FIRST_EXACT_LOOK: usize = 7;
/// At N_max the signed-rank test's smallest p must be this many times below what the rank looks may spend.
const RESOLUTION: f64 = 4.0;
/// The family-wise α the tables are made for.
const TABLE_ALPHA: f64 = 0.05;

/// k_n for N_max = 15, n = 7…: for rank looks only.
const K_15: [u16; 9] = [0, 1, 3, 4, 5, 7, 10, 13, 16];
/// k_n for N_max = 20, n = 7…: for rank looks only.
const K_20: [u16; 14] = [0, 1, 2, 3, 4, 6, 9, 12, 15, 19, 22, 27, 32, 36];
/// k_n for N_max = 30, n = 8…
const K_30: [u16; 23] =
    [1, 1, 3, 4, 6, 8, 11, 14, 18, 21, 25, 30, 35, 40, 46, 52, 58, 65, 73, 80, 88, 97, 106];
/// k_n for N_max = 60, n = 8…
const K_60: [u16; 53] = [
    0, 0, 2, 2, 4, 7, 9, 11, 15, 18, 22, 26, 31, 36, 42, 47, 53, 60, 67, 74, 82, 91, 99, 108, 119, 129, 139,
    150, 161, 172, 185, 196, 210, 223, 236, 249, 265, 280, 295, 311, 327, 343, 362, 378, 397, 416, 435, 455,
    473, 494, 513, 534, 556,
];

/// What a look was made with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LookKind {
    /// mean ± t·s/√n.
    StudentT,
    /// Walsh averages with k_n.
    SignedRank,
}

/// The interval of one look.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Look {
    /// Differences it used: all of them, or those up to the latest n at which a look is allowed.
    pub n: usize,
    /// How.
    pub kind: LookKind,
    /// Estimate and interval on the scale of D.
    pub interval: Estimate,
}

/// When a run may look and how wide its intervals are then.
#[derive(Clone, Debug, PartialEq)]
pub struct Boundary {
    /// (n, upper t quantile) of the t looks, one after the other up to the first rank look; empty for rank looks only.
    t_looks: Vec<(usize, f64)>,
    /// (n, k_n) of the rank looks, ascending.
    rank_looks: Vec<(usize, u64)>,
}

impl Boundary {
    /// The boundary for at most `max_rounds` rounds at family-wise `alpha`, cached for the process.
    /// `rank_only` (`--exact`) drops the t looks. N_max 30 and 60 at α = 0.05 are constants, as are 15 and 20 for
    /// rank looks only; others are computed in well under a second.
    #[must_use]
    pub fn new(max_rounds: usize, alpha: f64, rank_only: bool) -> Arc<Boundary> {
        type Key = (usize, u64, bool);
        static CACHE: Mutex<BTreeMap<Key, Arc<Boundary>>> = Mutex::new(BTreeMap::new());
        let key = (max_rounds, alpha.to_bits(), rank_only);
        let mut cache = CACHE.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(
            cache.entry(key).or_insert_with(|| Arc::new(Boundary::build(max_rounds, alpha, rank_only))),
        )
    }

    fn build(max_rounds: usize, alpha: f64, rank_only: bool) -> Boundary {
        let first = if rank_only { FIRST_EXACT_LOOK.min(max_rounds) } else { FIRST_RANK_LOOK };
        if !rank_only && !ranks_resolve(max_rounds, alpha) {
            return Boundary { t_looks: t_looks_only(max_rounds, alpha), rank_looks: Vec::new() };
        }
        let rank_looks = published_table(max_rounds, alpha, first)
            .unwrap_or_else(|| sequential_boundary::compute(max_rounds, first, alpha));
        let t_looks = match rank_looks.first() {
            Some((begin, _)) if !rank_only => {
                let first = first_t_look(alpha).min(*begin);
                let looks = begin - first;
                t_looks(first, &vec![t_share(looks, alpha); looks])
            }
            _ => Vec::new(),
        };
        Boundary { t_looks, rank_looks }
    }

    /// What all looks that the rounds allow say together; `None` when there are too few of them. At an n without a look of its
    /// own that of the last n that had one stands.
    #[must_use]
    pub fn look(&self, rounds: &Crossover) -> Option<Look> {
        self.look_with(rounds, usize::MAX)
    }

    /// The same where t looks may use the first `t_rounds` rounds only.
    #[must_use]
    pub fn look_with(&self, rounds: &Crossover, t_rounds: usize) -> Option<Look> {
        let t_looks = self
            .t_looks
            .iter()
            .take_while(|(n, _)| *n <= t_rounds)
            .map(|(n, quantile)| (*n, t_look(rounds, *n, *quantile)));
        let rank_looks = self.rank_looks.iter().map(|(n, k)| {
            let look = |interval| Look { n: *n, kind: LookKind::SignedRank, interval };
            (*n, (*n <= rounds.len()).then(|| rounds.first(*n).interval(*k).map(look)).flatten())
        });
        let taken = t_looks.chain(rank_looks).take_while(|(n, _)| *n <= rounds.len());
        taken.filter_map(|(_, look)| look).reduce(Look::narrowed)
    }

    /// The look at `n` rounds alone, whatever earlier ones said; `None` where none is allowed at that `n`, or there are fewer rounds.
    #[must_use]
    pub(super) fn look_at(&self, rounds: &Crossover, n: usize) -> Option<Look> {
        if n > rounds.len() {
            return None;
        }
        if let Some((_, quantile)) = self.t_looks.iter().find(|(at, _)| *at == n) {
            return t_look(rounds, n, *quantile);
        }
        let (_, k) = self.rank_looks.iter().find(|(at, _)| *at == n)?;
        let interval = rounds.first(n).interval(*k)?;
        Some(Look { n, kind: LookKind::SignedRank, interval })
    }

    /// The round of the first look.
    #[must_use]
    pub fn first_look(&self) -> Option<usize> {
        let first = self.t_looks.first().map(|(n, _)| *n);
        first.or(self.rank_looks.first().map(|(n, _)| *n))
    }

    /// (n, k_n) of the rank looks.
    #[must_use]
    pub fn rank_looks(&self) -> &[(usize, u64)] {
        &self.rank_looks
    }
}

impl Look {
    /// This look and an earlier one together. Where they exclude each other, which one of twenty runs may do, the claim that was made
    /// first stands.
    pub(super) fn narrowed(self, later: Look) -> Look {
        let (before, after) = (self.interval, later.interval);
        let (low, high) = (before.low.max(after.low), before.high.min(after.high));
        let (low, high) = if low <= high { (low, high) } else { (before.low, before.high) };
        Look { interval: Estimate { estimate: after.estimate.clamp(low, high), low, high }, ..later }
    }
}

/// The look at `n` rounds by Student's t; its interval is around the mean, the estimate is Hodges and Lehmann's at every n.
fn t_look(rounds: &Crossover, n: usize, quantile: f64) -> Option<Look> {
    let used = rounds.differences().get(..n)?;
    let half = quantile * stddev(used) / (n as f64).sqrt();
    let (centre, estimate) = (mean(used), Walsh::new(used)?.hodges_lehmann());
    let interval = Estimate { estimate, low: centre - half, high: centre + half };
    Some(Look { n, kind: LookKind::StudentT, interval })
}

/// Whether rank looks of at most `max_rounds` rounds can tell levels apart that are well below their share of α.
fn ranks_resolve(max_rounds: usize, alpha: f64) -> bool {
    let smallest_p = 0.5_f64.powf(max_rounds as f64 - 1.0);
    max_rounds >= FIRST_RANK_LOOK && smallest_p <= sequential_boundary::spent_at_the_end(alpha) / RESOLUTION
}

/// Two-sided α of one of `looks` t looks that are not the last look of all.
fn t_share(looks: usize, alpha: f64) -> f64 {
    T_SHARE * alpha / TABLE_ALPHA / looks.max(FEWEST_T_SHARES) as f64
}

/// The first t look that may be taken.
fn first_t_look(alpha: f64) -> usize {
    let equal = |n: &usize| 2.0 * 0.25_f64.powi(*n as i32) <= EQUAL_SHARE * alpha;
    (FEWEST_ROUNDS..).find(equal).unwrap_or(FEWEST_ROUNDS)
}

/// Looks at n = `first`, `first` + 1, … that spend `shares` of α, with their upper t quantiles.
fn t_looks(first: usize, shares: &[f64]) -> Vec<(usize, f64)> {
    let quantile = |(n, share): (usize, &f64)| (n, student_t::upper_quantile(0.5 * share, n as f64 - 1.0));
    (first..).zip(shares).map(quantile).collect()
}

/// The t looks where no rank look follows: the one at `max_rounds` spends what the others leave of α.
fn t_looks_only(max_rounds: usize, alpha: f64) -> Vec<(usize, f64)> {
    let last = max_rounds.max(FEWEST_ROUNDS);
    let first = first_t_look(alpha).min(last);
    let early = last - first;
    let share = t_share(early, alpha);
    let mut shares = vec![share; early];
    shares.push(alpha - early as f64 * share);
    t_looks(first, &shares)
}

/// The table of N_max whose first look is `first` or later; with a later first look it is computed.
fn published_table(max_rounds: usize, alpha: f64, first: usize) -> Option<Vec<(usize, u64)>> {
    if (alpha - TABLE_ALPHA).abs() > 1e-12 {
        return None;
    }
    let table: &[u16] = match max_rounds {
        15 => &K_15,
        20 => &K_20,
        30 => &K_30,
        60 => &K_60,
        _ => return None,
    };
    let begin = max_rounds + 1 - table.len();
    (begin >= first).then(|| table.iter().enumerate().map(|(i, k)| (begin + i, u64::from(*k))).collect())
}

#[cfg(test)]
mod tests;
