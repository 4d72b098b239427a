//! The printed interval and the word beside it say the same, for metrics that decide and for all others.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::made_up::{Made, run_of};
use super::*;
use crate::record::{Metric, StopRule};

/// A made-up run with forty more metrics, of which most are noise.
fn run(seed: u64, rounds: u32, fixed: bool, paired: bool) -> Run {
    let stop = StopRule { rounds: fixed.then_some(rounds), ..StopRule::default() };
    let mut run = run_of(&Made { effect: 0.02, cv: 0.02, seed, stop, paired, ..Made::default() }, rounds);
    let mut rng = ChaCha8Rng::seed_from_u64(seed + 1000);
    for n in 0..40_u32 {
        let metric = Metric { name: format!("noise.{n}"), ..run.metrics[1].clone() };
        run.metrics.push(metric);
        for trial in &mut run.trials {
            let moved = if n % 8 == 0 { 0.05 * f64::from(trial.cell) } else { 0.0 };
            trial.values.push((4 + n, 1000.0 * (moved + 0.02 * rng.random::<f64>()).exp()));
        }
    }
    run
}

#[test]
fn an_interval_excludes_zero_where_a_difference_is_claimed() {
    let mut unclear = 0;
    for seed in 0..6 {
        for (fixed, paired) in [(true, true), (false, true), (true, false)] {
            for rounds in [4, 5, 6, 8, 10, 14] {
                let options = Options { all_metrics: true, ..Options::default() };
                for found in analyse(&run(seed, rounds, fixed, paired), &options).comparisons {
                    let Some(effect) = found.effect else { continue };
                    let claimed = found.is_better().is_some();
                    let excluded = effect.low > 0.0 || effect.high < 0.0;
                    assert_eq!(claimed, excluded, "{} {:?} {effect:?}", found.metric.name, found.verdict);
                    unclear += usize::from(!claimed && found.role == Role::Exploratory);
                }
            }
        }
    }
    assert!(unclear > 500, "{unclear}");
}

#[test]
fn few_repeats_of_many_rows_have_no_interval_that_contradicts() {
    // Four repeats an arm that do not overlap: p is 0.029, and with two rows no interval holds together.
    let stop = StopRule { rounds: None, ..StopRule::default() };
    let mut run = run_of(&Made { effect: 0.5, stop, paired: false, ..Made::default() }, 4);
    run.metrics.truncate(1);
    run.metrics[0].job = "a".to_owned();
    let other = Metric { job: "b".to_owned(), ..run.metrics[0].clone() };
    run.metrics.push(other);
    for trial in &mut run.trials {
        let value = trial.values[0].1;
        trial.values = vec![(0, value), (1, value * (1.0 + 0.01 * f64::from(trial.round)))];
    }
    let comparisons = analyse(&run, &Options { alone: true, ..Options::default() }).comparisons;
    assert_eq!(comparisons.len(), 2);
    for found in comparisons {
        assert!(matches!(found.verdict, Verdict::Undecided { .. }), "{found:?}");
        assert_eq!(found.effect, None, "it was [+44, +56] beside \"undecided\"");
        assert!(found.alone.unwrap().low > 0.0, "alone it is clear");
        assert!(found.caveats.contains(&Caveat::NoIntervalTogether));
    }
}
