//! The boundary held to what it promises, by simulation and known answers.

use std::f64::consts::{PI, TAU};

use rand::{RngExt, SeedableRng};

use super::*;

/// Two Monte Carlo runs may each be one off where k is small; where k is in the hundreds one step of k moves
/// P by little more than the error of either, and the shipped figures themselves jump by 2 (… 473 494 513 …).
fn tolerance(k: u64) -> u64 {
    if k < 200 { 1 } else { 3 }
}

#[test]
fn the_constants_come_out_of_monte_carlo() {
    for (max_rounds, first) in [(15, 7), (20, 7), (30, 8), (60, 8)] {
        let shipped = published_table(max_rounds, 0.05, FIRST_EXACT_LOOK).unwrap();
        assert_eq!((shipped[0].0, shipped[shipped.len() - 1].0), (first, max_rounds));
        let recomputed = sequential_boundary::compute(max_rounds, FIRST_EXACT_LOOK, 0.05);
        assert_eq!(shipped.len(), recomputed.len(), "N_max {max_rounds}");
        for ((n, k), (m, again)) in shipped.into_iter().zip(recomputed) {
            assert_eq!(n, m);
            assert!(k.abs_diff(again) <= tolerance(k), "N_max {max_rounds}, n {n}: {k}, recomputed {again}");
        }
    }
}

/// Share of simulated runs that one of the rank looks stops, under differences symmetric about 0.
fn stopped_share(looks: &[(usize, u64)], runs: u32) -> f64 {
    let max_rounds = looks[looks.len() - 1].0;
    let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(11);
    let mut stopped = 0;
    for _ in 0..runs {
        let d: Vec<f32> = (0..max_rounds).map(|_| rng.random::<f32>() - 0.5).collect();
        let mut w_minus = 0_u64;
        stopped += u32::from((1..=max_rounds).any(|n| {
            let newest = d[n - 1];
            w_minus += d[..n].iter().map(|earlier| u64::from(earlier + newest < 0.0)).sum::<u64>();
            let w_plus = (n * (n + 1) / 2) as u64 - w_minus;
            looks.iter().any(|(at, k)| *at == n && w_minus.min(w_plus) <= *k)
        }));
    }
    f64::from(stopped) / f64::from(runs)
}

#[test]
fn the_shipped_rank_looks_spend_at_most_their_share() {
    for max_rounds in [15, 20, 30] {
        let share = stopped_share(&published_table(max_rounds, 0.05, FIRST_EXACT_LOOK).unwrap(), 40_000);
        assert!((0.040..0.0465).contains(&share), "N_max {max_rounds}: {share}");
    }
}

#[test]
fn rank_looks_after_t_looks_spend_all_of_their_share() {
    // 0.028 to 0.041 was spent where the table began at n = 7 and that look was dropped (200: a union bound).
    for (max_rounds, runs) in [(8, 20_000), (15, 20_000), (20, 20_000), (25, 20_000), (200, 4_000)] {
        let boundary = Boundary::new(max_rounds, 0.05, false);
        assert!(boundary.rank_looks()[0].0 >= 8, "{:?}", boundary.rank_looks());
        let share = stopped_share(boundary.rank_looks(), runs);
        // One step of k is 0.8 points at n = 8; the standard error of 4,000 runs is 0.3 points.
        let most = if runs < 20_000 { 0.053 } else { 0.0475 };
        let least = if max_rounds == 8 { 0.036 } else { 0.0405 };
        assert!((least..most).contains(&share), "N_max {max_rounds}: {share}");
    }
}

fn normal(rng: &mut rand_chacha::ChaCha8Rng) -> f64 {
    (-2.0 * (1.0 - rng.random::<f64>()).ln()).sqrt() * (TAU * rng.random::<f64>()).cos()
}

fn of(differences: &[f64]) -> Crossover {
    Crossover::of_unknown_order(differences)
}

/// Whether any look excludes no effect.
fn excludes_none(boundary: &Boundary, differences: &[f64]) -> bool {
    boundary.look(&of(differences)).is_some_and(|look| look.interval.excludes(0.0))
}

/// Percent of runs of 30 rounds in which any look excludes the true 0.
fn ever_wrong(runs: u32, rank_only: bool, draw: impl Fn(&mut rand_chacha::ChaCha8Rng, usize) -> f64) -> f64 {
    let boundary = Boundary::new(30, 0.05, rank_only);
    let wrong = |seed: &u32| {
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(u64::from(*seed));
        let d: Vec<f64> = (0..30).map(|round| draw(&mut rng, round)).collect();
        excludes_none(&boundary, &d)
    };
    100.0 * (0..runs).filter(wrong).count() as f64 / f64::from(runs)
}

#[test]
fn false_claims_over_all_looks_stay_near_five_percent() {
    // METHODOLOGY gives 4.7, 4.4, 5.6, 12.5 and 1.7; the standard error is 0.6 (1.0 for ±c).
    let at_normal = ever_wrong(1_200, false, |rng, _| normal(rng));
    assert!((3.0..6.5).contains(&at_normal), "normal: {at_normal}");
    let at_cauchy = ever_wrong(1_200, false, |rng, _| (PI * (rng.random::<f64>() - 0.5)).tan());
    assert!((2.5..6.3).contains(&at_cauchy), "Cauchy: {at_cauchy}");
    let growing = ever_wrong(1_200, false, |rng, round| normal(rng) * (1.0 + 9.0 * round as f64 / 29.0));
    assert!((3.5..7.7).contains(&growing), "growing: {growing}");
    let two_points = |rng: &mut rand_chacha::ChaCha8Rng, _: usize| if rng.random() { 1.0 } else { -1.0 };
    let (with_t, rank_only) = (ever_wrong(1_200, false, two_points), ever_wrong(1_200, true, two_points));
    assert!((9.5..15.5).contains(&with_t), "±c with t looks: {with_t}");
    assert!((0.5..3.0).contains(&rank_only), "±c by rank only: {rank_only}");
}

#[test]
fn looks_go_from_t_to_ranks() {
    let d: Vec<f64> = (0..30).map(|i| 0.05 + 0.001 * f64::from((i * 7) % 11)).collect();
    let boundary = Boundary::new(30, 0.05, false);
    assert_eq!(boundary.look(&of(&d[..3])), None);
    let at_four = boundary.look(&of(&d[..4])).unwrap();
    assert_eq!((at_four.n, at_four.kind), (4, LookKind::StudentT));
    let half = 11.265_006_624_1 * stddev(&d[..4]) / 2.0;
    assert!((at_four.interval.high - mean(&d[..4]) - half).abs() < 1e-12);
    assert_eq!(boundary.look(&of(&d[..7])).unwrap().kind, LookKind::StudentT);
    let at_eight = boundary.look(&of(&d[..8])).unwrap();
    assert_eq!((at_eight.n, at_eight.kind), (8, LookKind::SignedRank));
    // What the looks before it have excluded stays excluded.
    let alone = Walsh::new(&d[..8]).unwrap().interval(1).unwrap();
    let before = boundary.look(&of(&d[..7])).unwrap().interval;
    assert_eq!(at_eight.interval.low, alone.low.max(before.low));
    assert_eq!(at_eight.interval.high, alone.high.min(before.high));
}

#[test]
fn a_claim_once_made_is_kept() {
    // Eight rounds in which B is slower, then as many in which it is faster.
    let d: Vec<f64> = (0..16).map(|i| if i < 8 { 0.05 } else { -0.05 } + 0.001 * f64::from(i % 5)).collect();
    let boundary = Boundary::new(30, 0.05, false);
    let claimed = boundary.look(&of(&d[..8])).unwrap().interval;
    assert!(claimed.low > 0.0);
    let later = boundary.look(&of(&d)).unwrap();
    assert!(
        later.n == 16 && later.interval.low >= claimed.low && later.interval.high <= claimed.high,
        "{later:?}"
    );
    assert!((later.interval.low..=later.interval.high).contains(&later.interval.estimate));
}

#[test]
fn rank_only_waits_for_seven() {
    let d = [0.1; 20];
    let boundary = Boundary::new(20, 0.05, true);
    assert_eq!(boundary.look(&of(&d[..6])), None);
    assert_eq!(boundary.look(&of(&d[..7])).unwrap().kind, LookKind::SignedRank);
    assert_eq!(Boundary::new(30, 0.05, true).rank_looks()[0], (8, 1));
}

#[test]
fn a_split_alpha_needs_more_rounds_for_a_rank_claim() {
    // n ≥ 1 + log2(m/α): ten rows at α = 0.05 cannot claim by rank before n = 9.
    let boundary = Boundary::new(30, 0.005, false);
    assert!(boundary.rank_looks()[0].0 >= 9, "{:?}", boundary.rank_looks());
    assert_eq!(boundary.look(&of(&[0.5; 8])).unwrap().kind, LookKind::StudentT, "t looks go on until then");
}

#[test]
fn thousands_of_rounds_have_a_boundary_too() {
    let boundary = Boundary::new(50_000, 0.05, false);
    let (n, k) = boundary.rank_looks()[boundary.rank_looks().len() - 1];
    assert_eq!(n, 50_000);
    let p = crate::stats::signed_rank::two_sided(n, k);
    assert!((0.003..0.05).contains(&p), "{p}");
}

/// Normal differences of a 5 % effect (or none) at a CV of 2 %.
fn differences(seed: u64, effect: f64, rounds: usize) -> Vec<f64> {
    let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(seed);
    (0..rounds).map(|_| effect.ln_1p() + 0.02 * std::f64::consts::SQRT_2 * normal(&mut rng)).collect()
}

/// Percent of runs of at most `rounds` rounds in which any look excludes 0.
fn ever_claimed(boundary: &Boundary, rounds: usize, effect: f64, runs: u64) -> f64 {
    let claimed = |seed: &u64| excludes_none(boundary, &differences(*seed, effect, rounds));
    100.0 * (0..runs).filter(claimed).count() as f64 / runs as f64
}

#[test]
fn few_rounds_at_most_use_all_of_alpha() {
    for rounds in 4..=7 {
        let boundary = Boundary::new(rounds, 0.05, false);
        assert!(boundary.rank_looks().is_empty());
        let wrong = ever_claimed(&boundary, rounds, 0.0, 4_000);
        // 1.2 at 7 rounds when each look had 0.0015; the standard error is 0.35.
        assert!((3.7..6.0).contains(&wrong), "N_max {rounds}: {wrong}");
        let looks_once = |d: &[f64]| student_t::paired(d, 0.05).unwrap().interval.excludes(0.0);
        let once = (0..1_000).filter(|seed| looks_once(&differences(*seed, 0.05, rounds))).count() as f64;
        let found = ever_claimed(&boundary, rounds, 0.05, 1_000);
        assert!(found > once / 10.0 - 3.0, "N_max {rounds}: {found} %, one look {} %", once / 10.0);
    }
}

#[test]
fn t_looks_last_until_ranks_resolve_the_level() {
    // The published levels of n = 4…7 stay as long as a rank look follows at n = 8.
    let quantiles = [11.265_006_624_1, 7.741_169_133_0, 6.283_582_256_5, 5.510_588_092_3];
    for (max_rounds, same) in [(7, 3), (8, 4), (15, 4), (30, 4)] {
        let looks = &Boundary::new(max_rounds, 0.05, false).t_looks;
        assert_eq!(looks.iter().map(|(n, _)| *n).collect::<Vec<_>>(), [4, 5, 6, 7], "N_max {max_rounds}");
        let near = |((_, have), want): (&(usize, f64), &f64)| (have - want).abs() < 1e-9;
        assert!(looks[..same].iter().zip(&quantiles).all(near), "N_max {max_rounds}");
    }
    // The last of at most 7 rounds: 0.05 − 3·0.0015, nearly all of α
    assert!((student_t::two_sided(Boundary::new(7, 0.05, false).t_looks[3].1, 6.0) - 0.0455).abs() < 1e-12);
    // 24 rows: with 10 rounds ranks can never reach α/24, with 30 they can from n = 12 on.
    let short = Boundary::new(10, 0.05 / 24.0, false);
    assert_eq!((short.t_looks[0].0, short.t_looks.len(), short.rank_looks().len()), (7, 4, 0));
    let long = Boundary::new(30, 0.05 / 24.0, false);
    assert_eq!(long.t_looks.last().unwrap().0 + 1, long.rank_looks()[0].0);
}

#[test]
fn equal_differences_of_two_modes_claim_little() {
    // 2·4^(−n) ≤ 0.2·α/m, worked out by hand for m = 1, 2, 6, 12, 24.
    for (rows, first) in [(1.0, 4), (2.0, 5), (6.0, 6), (12.0, 6), (24.0, 7)] {
        assert_eq!(first_t_look(0.05 / rows), first, "{rows} rows");
    }
    assert_eq!(Boundary::new(4, 0.05 / 24.0, false).t_looks.len(), 1, "four rounds at most have one look");
}

#[test]
fn one_more_round_at_most_finds_no_less() {
    // With a sixth of α ranks take over at 11 rounds, which costs some power there.
    for (alpha, last) in [(0.05, 14), (0.05 / 6.0, 10)] {
        let found = |rounds| ever_claimed(&Boundary::new(rounds, alpha, false), rounds, 0.05, 1_000);
        let shares: Vec<f64> = (4..=last).map(found).collect();
        assert!(shares.windows(2).all(|pair| pair[1] > pair[0] - 2.0), "α {alpha}: {shares:?}");
    }
}

#[test]
fn exact_runs_of_six_rounds_have_their_look() {
    assert_eq!(Boundary::new(6, 0.05, true).rank_looks(), [(6, 0)]);
    assert!(Boundary::new(5, 0.05, true).rank_looks().is_empty(), "2^(1-5) is above 0.05");
}
