//! Effects of factors in made-up runs: what is claimed, what depends on what, and how often both are wrong.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::super::made_up::{Made, run_of};
use super::super::{Analysis, Options, Verdict, analyse};
use super::{Effect, Effects, NoEffects, contrasts};
use crate::record::{Cell, Factor, Run, Status, StopRule, Trial};

/// A run of crossed factors of so many levels, the first one compared. A trial's logarithm is what `log` says of its levels, with noise.
fn run(levels: &[u32], rounds: u32, stop: StopRule, cv: f64, seed: u64, log: impl Fn(&[u32]) -> f64) -> Run {
    let mut run = run_of(&Made { stop, ..Made::default() }, rounds);
    let labels = |count: &u32| (0..*count).map(|level| level.to_string()).collect::<Vec<_>>();
    let names = ["direct", "bs", "sync", "fs"];
    run.design.factors =
        names.iter().zip(levels).map(|(name, count)| Factor::new(*name, labels(count))).collect();
    run.cells = vec![Cell { levels: Vec::new() }];
    for count in levels {
        let longer = |cell: &Cell| {
            (0..*count)
                .map(|level| Cell { levels: [&cell.levels[..], &[level]].concat() })
                .collect::<Vec<_>>()
        };
        run.cells = run.cells.iter().flat_map(longer).collect();
    }
    run.metrics.truncate(1);
    let pattern = run.trials[0].clone();
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut noise = || cv * ((0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0);
    let cells = run.cells.len() as u32;
    run.trials.clear();
    for round in 0..rounds {
        for position in 0..cells {
            let cell = if round % 2 == 0 { position } else { cells - 1 - position };
            let value = 1e8 * (log(&run.cells[cell as usize].levels) + noise()).exp();
            run.trials.push(Trial { cell, round, position, values: vec![(0, value)], ..pattern.clone() });
        }
    }
    run
}

fn once(rounds: u32) -> StopRule {
    StopRule { rounds: Some(rounds), ..StopRule::default() }
}

fn only(run: &Run) -> Effects {
    let mut found = analyse(run, &Options::default()).effects;
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

fn named<'a>(effects: &'a Effects, names: &[&str]) -> &'a Effect {
    let is_it =
        |effect: &&Effect| effect.of.iter().map(|change| change.factor.as_str()).eq(names.iter().copied());
    effects.effects.iter().find(is_it).unwrap()
}

/// direct costs 30 % at the first block size and gains 20 % at the second; sync costs 10 % everywhere.
fn crossing(levels: &[u32]) -> f64 {
    let direct = if levels[1] == 0 { 0.7_f64.ln() } else { 1.2_f64.ln() };
    f64::from(levels[0]) * direct + f64::from(levels[1]) * 0.5 + f64::from(levels[2]) * 0.9_f64.ln()
}

#[test]
fn an_interaction_takes_the_main_effects_away() {
    for stop in [once(10), StopRule { max_rounds: 10, ..StopRule::default() }] {
        let found = only(&run(&[2, 2, 2], 10, stop, 0.01, 1, crossing));
        assert_eq!((found.family, found.effects.len(), found.n), (6, 6, 10));
        let both = named(&found, &["direct", "bs"]);
        assert_eq!(both.verdict, Verdict::Faster { beyond_delta: true });
        let interval = both.effect.unwrap();
        assert!((both.change - (1.2 / 0.7 - 1.0)).abs() < 0.02 && interval.low > 0.6, "{both:?}");
        let within: Vec<f64> = both.within.iter().map(|within| within.effect.estimate).collect();
        assert!((within[0] + 0.3).abs() < 0.01 && (within[1] - 0.2).abs() < 0.015, "{within:?}");
        assert_eq!(both.within[1].level, "1");
        assert_eq!(named(&found, &["direct"]).depends_on, ["bs"]);
        assert_eq!(named(&found, &["bs"]).depends_on, ["direct"]);
        let sync = named(&found, &["sync"]);
        assert!(
            sync.depends_on.is_empty() && sync.verdict == Verdict::Slower { beyond_delta: true },
            "{sync:?}"
        );
        assert!((sync.change + 0.1).abs() < 0.005);
    }
}

#[test]
fn shares_multiply_to_the_whole_change() {
    let shares = only(&run(&[2, 2, 2], 10, once(10), 0.01, 2, crossing)).shares.unwrap();
    let parts: f64 = shares.parts.iter().map(|part| 1.0 + part.estimate).product();
    assert!((parts - (1.0 + shares.whole.estimate)).abs() < 1e-9);
    let whole = 0.5_f64.exp() * 1.2 * 0.9 - 1.0;
    assert!(shares.whole.low < whole && whole < shares.whole.high, "{shares:?}");
    assert_eq!((shares.of[1].factor.as_str(), shares.of[1].to.as_str()), ("bs", "1"));
    let direct = f64::midpoint(0.7_f64.ln(), 1.2_f64.ln()).exp() - 1.0;
    assert!((shares.parts[0].estimate - direct).abs() < 0.01, "half of the interaction is direct's");
}

#[test]
fn every_level_is_compared_with_the_first() {
    let found = only(&run(&[3, 2], 12, once(12), 0.003, 3, |levels| 0.1 * f64::from(levels[0])));
    let of: Vec<String> = found
        .effects
        .iter()
        .map(|effect| effect.of.iter().map(|c| format!("{}{}", c.factor, c.to)).collect::<Vec<_>>().join("+"))
        .collect();
    assert_eq!(of, ["direct1", "direct2", "bs1", "direct1+bs1", "direct2+bs1"]);
    assert!((found.effects[1].change - 0.2_f64.exp_m1()).abs() < 0.01, "{:?}", found.effects[1]);
    let none = &found.effects[3];
    assert!(matches!(none.verdict, Verdict::NoDifference { .. }), "{none:?}");
}

#[test]
fn terms_are_counted_before_they_are_made() {
    for levels in [&[2, 2, 2][..], &[3, 2], &[4, 3, 2, 5], &[2]] {
        assert_eq!(contrasts::count(levels), contrasts::terms(levels).len(), "{levels:?}");
    }
    assert_eq!(contrasts::count(&[1_000_000, 2]), 1_999_999);
}

#[test]
fn another_baseline_turns_the_effects() {
    let made = run(&[2, 2], 8, once(8), 0.005, 4, |levels| 0.1 * f64::from(levels[0]));
    let options = Options { baseline: Some("1".to_owned()), ..Options::default() };
    let found = analyse(&made, &options).effects.remove(0);
    assert_eq!((found.effects[0].of[0].from.as_str(), found.effects[0].of[0].to.as_str()), ("1", "0"));
    assert!((found.effects[0].change - (-0.1_f64).exp_m1()).abs() < 0.01);
    let by_bs = Options { compare: Some("bs".to_owned()), ..Options::default() };
    let found = analyse(&made, &by_bs).effects.remove(0);
    assert_eq!(found.factors, ["bs", "direct"], "the compared one comes first");
}

#[test]
fn equal_cells_claim_an_effect_in_5_percent_of_runs() {
    let runs = 300;
    for stop in [once(8), StopRule { max_rounds: 12, ..StopRule::default() }] {
        let rounds = stop.rounds.unwrap_or(12);
        let wrong = |seed: &u64| {
            let found = only(&run(&[2, 2, 2], rounds, stop, 0.02, *seed, |_| 0.0));
            found.effects.iter().any(Effect::is_claimed)
        };
        let wrong = (0..runs).filter(wrong).count();
        println!("{wrong} of {runs} runs claim an effect");
        // 5 % and three standard errors of 300 runs.
        assert!(wrong as f64 <= 0.088 * runs as f64, "{wrong} of {runs}");
    }
}

fn refused(run: &Run) -> Option<NoEffects> {
    only(run).refused
}

#[test]
fn what_has_no_effects_says_why() {
    let good = run(&[2, 2], 8, once(8), 0.01, 5, |_| 0.0);
    // A fixed number of rounds would wait for them.
    let mut missing = run(&[2, 2], 8, StopRule::default(), 0.01, 5, |_| 0.0);
    missing.trials.retain(|trial| trial.cell != 3);
    assert_eq!(refused(&missing), Some(NoEffects::Incomplete { measured: 3, of: 4 }));
    let mut zero = good.clone();
    zero.trials[0].values[0].1 = 0.0;
    assert_eq!(refused(&zero), Some(NoEffects::NotPositive));
    assert_eq!(
        refused(&run(&[15, 15], 8, once(8), 0.01, 5, |_| 0.0)),
        Some(NoEffects::TooMany { effects: 224 })
    );
    let none = |run: &Run| analyse(run, &Options::default()).effects.is_empty();
    assert!(none(&run(&[2], 8, once(8), 0.01, 5, |_| 0.0)), "one factor");
    assert!(none(&run(&[2, 1], 8, once(8), 0.01, 5, |_| 0.0)), "a factor of one level is none");
    assert!(none(&run(&[2, 2], 8, once(20), 0.01, 5, |_| 0.0)), "rounds are missing");
    assert!(none(&Run { aa: true, ..good }), "A/A");
}

#[test]
fn rounds_that_a_cell_lacks_do_not_count() {
    let mut made = run(&[2, 2], 10, StopRule::default(), 0.01, 6, |_| 0.0);
    for trial in made.trials.iter_mut().filter(|trial| (trial.round, trial.cell) == (4, 2)) {
        trial.status = Status::Skipped { reason: "not today".to_owned() };
    }
    assert_eq!(only(&made).n, 9);
    made.trials.retain(|trial| trial.round < 3);
    let found = only(&made);
    assert!(
        found
            .effects
            .iter()
            .all(|effect| effect.verdict == Verdict::TooFew { n: 3 } && effect.effect.is_none())
    );
    assert!(found.effects.iter().all(|effect| effect.change.is_finite()));
}

#[test]
fn results_without_rounds_have_welch_s_intervals() {
    let mut made = run(&[2, 2, 2], 10, once(10), 0.01, 7, crossing);
    (made.design.paired, made.design.stop) = (false, StopRule::default());
    made.source = crate::record::Source::Imported("made up".to_owned());
    let found = only(&made);
    let both = named(&found, &["direct", "bs"]);
    assert!(both.p_adjusted.unwrap() < 1e-6 && both.effect.unwrap().low > 0.6, "{both:?}");
    assert_eq!(both.verdict, Verdict::Faster { beyond_delta: true });
    assert!(found.shares.unwrap().whole.low.is_nan(), "one mean a cell has no interval");
}

#[test]
fn each_metric_that_decides_has_effects_in_one_family() {
    let mut made = run(&[2, 2], 8, once(8), 0.01, 8, |levels| 0.1 * f64::from(levels[0]));
    made.metrics.push(crate::record::Metric { name: "write.iops".to_owned(), ..made.metrics[0].clone() });
    made.trials.iter_mut().for_each(|trial| trial.values.push((1, trial.values[0].1 / 4096.0)));
    made.design.primary = Some("write.bw,write.iops".to_owned());
    let Analysis { effects, .. } = analyse(&made, &Options::default());
    assert_eq!(
        effects.iter().map(|e| (e.metric.name.as_str(), e.family)).collect::<Vec<_>>(),
        [("write.bw", 6), ("write.iops", 6)]
    );
    assert!((effects[0].effects[0].change - effects[1].effects[0].change).abs() < 1e-9);
}

#[test]
fn steps_forbid_to_say_that_factors_are_independent() {
    let mut made = run(&[2, 2], 8, once(8), 0.001, 9, |_| 0.0);
    made.trials.iter_mut().for_each(|trial| trial.values[0].1 = (trial.values[0].1 / 1e7).round());
    let found = only(&made);
    assert!(
        found.effects.iter().all(|effect| matches!(effect.verdict, Verdict::Undecided { .. })),
        "{found:?}"
    );
}
