//! Rankings of runs and of claims that were made up: ties, what follows from claims, and how often they are wrong.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::made_up::{Made, run_of};
use super::ranking::rankings;
use super::*;
use crate::record::{Cell, Factor, StopRule, Trial};

/// A run whose arms differ by these effects on the log scale, with noise of 1 %.
fn run(effects: &[f64], rounds: u32, stop: StopRule, seed: u64) -> Run {
    let mut run = run_of(&Made { stop, ..Made::default() }, rounds);
    let arms = effects.len() as u32;
    let levels = (0..arms).map(|arm| char::from(b'a' + arm as u8).to_string()).collect();
    run.design.factors = vec![Factor::new("scheduler", levels)];
    run.cells = (0..arms).map(|level| Cell { levels: vec![level] }).collect();
    run.metrics.truncate(1);
    let pattern = run.trials[0].clone();
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut noise = || 0.01 * ((0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0);
    run.trials.clear();
    for round in 0..rounds {
        for position in 0..arms {
            let cell = (position + round) % arms;
            let value = 1e8 * (effects[cell as usize] + noise()).exp();
            run.trials.push(Trial { cell, round, position, values: vec![(0, value)], ..pattern.clone() });
        }
    }
    run
}

fn once(rounds: u32) -> StopRule {
    StopRule { rounds: Some(rounds), ..StopRule::default() }
}

fn every_pair() -> Options {
    Options { all_pairs: true, ..Options::default() }
}

/// (place, arm, not told apart from) of the only row.
fn places(ranking: &[Ranking]) -> Vec<(u32, String, String)> {
    assert_eq!(ranking.len(), 1, "{ranking:?}");
    let place = |p: &Place| (p.place, p.arm.clone(), p.not_told_apart_from.concat());
    ranking[0].places.iter().map(place).collect()
}

fn told(expected: &[(u32, &str, &str)]) -> Vec<(u32, String, String)> {
    expected.iter().map(|(place, arm, open)| (*place, (*arm).to_owned(), (*open).to_owned())).collect()
}

/// The ranking of three arms whose pairs were judged so: 1 or 2 claims that the second arm is better, 2 by more than δ, −1 or −2
/// that it is worse, 9 that they do not differ.
fn of_claims(claims: &[(&str, &str, i32)]) -> Vec<Ranking> {
    let mut comparisons = analyse(&run(&[0.0, 0.0, 0.0], 8, once(8), 1), &every_pair()).comparisons;
    for comparison in &mut comparisons {
        let names = (comparison.baseline.arm.as_str(), comparison.candidate.arm.as_str());
        let claim = claims.iter().find(|(base, cand, _)| (*base, *cand) == names).unwrap().2;
        comparison.verdict = match claim {
            1 | 2 => Verdict::Faster { beyond_delta: claim == 2 },
            -1 | -2 => Verdict::Slower { beyond_delta: claim == -2 },
            9 => Verdict::NoDifference { real_but_below_delta: false },
            _ => Verdict::Undecided { rounds_to_claim: None, rounds_for_no_difference: None },
        };
    }
    rankings(&comparisons, &["a", "b", "c"].map(str::to_owned), true)
}

#[test]
fn arms_that_nothing_tells_apart_share_a_place() {
    let ranking = analyse(&run(&[-0.2, 0.0, 0.0], 12, once(12), 3), &every_pair()).rankings;
    assert_eq!(places(&ranking), told(&[(1, "b", "c"), (1, "c", "b"), (3, "a", "")]));
    assert!(ranking[0].all_pairs && ranking[0].unjudged.is_empty());
}

#[test]
fn not_told_apart_is_not_transitive() {
    // c is proven better than a; b is told apart from neither.
    let ranking = of_claims(&[("a", "b", 0), ("b", "c", 0), ("a", "c", 1)]);
    assert_eq!(places(&ranking), told(&[(1, "b", "ac"), (1, "c", "b"), (2, "a", "b")]));
}

#[test]
fn what_follows_from_two_claims_is_proven() {
    let ranking = of_claims(&[("a", "b", 1), ("b", "c", 1), ("a", "c", 0)]);
    assert_eq!(places(&ranking), told(&[(1, "c", ""), (2, "b", ""), (3, "a", "")]));
}

#[test]
fn no_difference_and_more_than_delta_add_up() {
    // c is better than a by more than δ, b is within δ of a.
    let of = |c: i32| places(&of_claims(&[("a", "b", 9), ("b", "c", 0), ("a", "c", c)]));
    assert_eq!(of(2), told(&[(1, "c", ""), (2, "a", "b"), (2, "b", "a")]));
    assert_eq!(of(1), told(&[(1, "b", "ac"), (1, "c", "b"), (2, "a", "b")]), "it may be less than δ");
    assert_eq!(of(-2), told(&[(1, "a", "b"), (1, "b", "a"), (3, "c", "")]));
    // Two differences below δ may be more than δ together.
    let twice = of_claims(&[("a", "b", 9), ("b", "c", 9), ("a", "c", 0)]);
    assert_eq!(places(&twice), told(&[(1, "a", "bc"), (1, "b", "ac"), (1, "c", "ab")]));
}

#[test]
fn claims_in_a_circle_prove_no_order() {
    let ranking = of_claims(&[("a", "b", 1), ("b", "c", 1), ("a", "c", -1)]);
    assert_eq!(places(&ranking), told(&[(1, "a", "bc"), (1, "b", "ac"), (1, "c", "ab")]));
}

#[test]
fn without_all_pairs_the_baseline_divides() {
    let effects = run(&[0.0, 0.2, 0.3, -0.2], 12, once(12), 3);
    let analysis = analyse(&effects, &Options::default());
    assert_eq!(analysis.comparisons.len(), 3);
    let against_a = told(&[(1, "c", "b"), (1, "b", "c"), (3, "a", ""), (4, "d", "")]);
    assert_eq!(
        places(&analysis.rankings),
        against_a,
        "b and c were not compared with each other: c is the better by its estimate"
    );
    let analysis = analyse(&effects, &every_pair());
    let of_all = told(&[(1, "c", ""), (2, "b", ""), (3, "a", ""), (4, "d", "")]);
    assert_eq!(places(&analysis.rankings), of_all);
    let pairs: Vec<String> =
        analysis.comparisons.iter().map(|c| c.baseline.arm.clone() + &c.candidate.arm).collect();
    assert_eq!(pairs, ["ab", "ac", "ad", "bc", "bd", "cd"]);
    assert!(analysis.caveats.contains(&Caveat::Family { m: 6 }), "all pairs share α");
}

#[test]
fn arms_without_values_have_no_place() {
    let mut run = run(&[0.0, 0.2, 0.0, 0.0], 8, once(8), 2);
    run.trials.iter_mut().filter(|trial| trial.cell == 3).for_each(|trial| trial.values.clear());
    let rankings = analyse(&run, &every_pair()).rankings;
    assert_eq!(rankings[0].unjudged, ["d"]);
    assert_eq!(rankings[0].places.len(), 3);
    run.trials.iter_mut().filter(|trial| trial.cell == 2).for_each(|trial| trial.values.clear());
    assert_eq!(analyse(&run, &every_pair()).rankings, [], "two arms have a verdict, no ranking");
}

#[test]
fn no_ranking_before_the_last_round() {
    let mut run = run(&[0.0, 0.2, 0.4], 8, once(20), 2);
    assert_eq!(analyse(&run, &every_pair()).rankings, []);
    run.design.stop = StopRule::default();
    assert_eq!(analyse(&run, &every_pair()).rankings.len(), 1);
}

#[test]
fn equal_arms_get_two_places_in_5_percent_of_runs() {
    let runs = 400;
    for stop in [once(8), StopRule { max_rounds: 12, ..StopRule::default() }] {
        let rounds = stop.rounds.unwrap_or(12);
        let wrong = (0..runs).filter(|seed| {
            let found = analyse(&run(&[0.0; 4], rounds, stop, *seed), &every_pair()).rankings;
            found[0].places.iter().any(|place| place.place > 1)
        });
        let wrong = wrong.count();
        // 5 % and three standard errors of 400 runs.
        assert!(wrong as f64 <= 0.083 * runs as f64, "{wrong} of {runs}");
    }
}
