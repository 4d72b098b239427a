//! The whole layer on made-up runs.

use proptest::prelude::*;
use rustix::time::{ClockId, clock_gettime};

use super::made_up::{Made, run_of};
use super::*;
use crate::record::{FailureKind, Metric, Run, Series, StopRule, Trial, Unit};
use crate::units::Better;

fn primary(run: &Run) -> Comparison {
    let analysis = analyse(run, &Options::default());
    analysis.comparisons.into_iter().find(|c| c.role == Role::Primary).unwrap()
}

fn fixed(rounds: u32) -> StopRule {
    StopRule { rounds: Some(rounds), ..StopRule::default() }
}

/// A gate of "slower by more than delta" is not answered by the first proof of any difference.
#[test]
fn who_asks_for_more_than_delta_looks_on() {
    let decided_for = |beyond_delta: Beyond, effect: f64, seed: u64| {
        let run = run_of(&Made { effect, cv: 0.03, seed, ..Made::default() }, 5);
        let open = Options { beyond_delta, ..Options::default() };
        (primary(&run).verdict.clone(), decided(&run, &open))
    };
    let below = |effect: f64| {
        let may_be_below = |seed: &u64| {
            let (verdict, _) = decided_for(Beyond::Nothing, effect, *seed);
            matches!(
                verdict,
                Verdict::Slower { beyond_delta: false } | Verdict::Faster { beyond_delta: false }
            )
        };
        (0..200).find(may_be_below).unwrap()
    };
    for (effect, worse_is_open) in [(-0.08, true), (0.08, false)] {
        let seed = below(effect);
        let decided = |beyond| decided_for(beyond, effect, seed).1;
        assert!(decided(Beyond::Nothing) && !decided(Beyond::Either), "{effect}");
        assert_eq!(!decided(Beyond::Worse), worse_is_open, "{effect}");
    }
}

#[test]
fn a_clear_gain_is_claimed_at_the_first_look() {
    let run = run_of(&Made::default(), 4);
    let found = primary(&run);
    assert_eq!(
        (&found.verdict, found.method, found.n),
        (&Verdict::Faster { beyond_delta: false }, Method::SequentialT, 4)
    );
    let effect = found.effect.unwrap();
    assert!((effect.estimate - 0.1).abs() < 0.02 && effect.low > 0.0, "{effect:?}");
    assert!(found.caveats.contains(&Caveat::StoppedEarly));
    assert!(decided(&run, &Options::default()));
}

#[test]
fn lower_is_better_turns_the_words_and_not_the_numbers() {
    let run = run_of(&Made { stop: fixed(10), ..Made::default() }, 10);
    let analysis =
        analyse(&run, &Options { primary: Some("write.clat_ns.p99".to_owned()), ..Options::default() });
    let found = &analysis.comparisons[0];
    assert_eq!(
        (found.verdict.clone(), found.method),
        (Verdict::Faster { beyond_delta: true }, Method::FixedSignedRank)
    );
    assert!((found.effect.unwrap().estimate - (1.0 / 1.1 - 1.0)).abs() < 0.015, "{:?}", found.effect);
}

#[test]
fn three_rounds_are_a_change_only() {
    let run = run_of(&Made::default(), 3);
    let found = primary(&run);
    assert_eq!(
        (found.verdict, found.method, found.effect),
        (Verdict::TooFew { n: 3 }, Method::ChangeOnly, None)
    );
    assert!((found.mean_change.estimate - 0.1).abs() < 0.05);
    assert!(!decided(&run, &Options::default()));
}

#[test]
fn noise_ends_undecided_with_the_rounds_it_would_take() {
    let run = run_of(&Made { effect: 0.0, cv: 0.1, seed: 3, ..Made::default() }, 30);
    let found = primary(&run);
    let Verdict::Undecided { rounds_to_claim, rounds_for_no_difference } = found.verdict else {
        panic!("{:?}", found.verdict)
    };
    assert!(rounds_to_claim.is_none_or(|n| n > 30) && rounds_for_no_difference.is_none_or(|n| n > 300));
    assert!(decided(&run, &Options::default()), "N_max is reached");
    assert!(!decided(
        &run_of(&Made { effect: 0.0, cv: 0.1, seed: 3, ..Made::default() }, 29),
        &Options::default()
    ));
}

#[test]
fn exploratory_metrics_wait_for_benjamini_hochberg() {
    let analysis = analyse(&run_of(&Made { stop: fixed(10), ..Made::default() }, 10), &Options::default());
    let names: Vec<&str> = analysis.comparisons.iter().map(|c| c.metric.name.as_str()).collect();
    assert_eq!(names, ["write.bw", "write.iops", "write.clat_ns.p99"], "the constant count is left out");
    assert_eq!(analysis.steady.iter().map(|steady| steady.arms.len()).collect::<Vec<_>>(), [2], "but known");
    for exploratory in &analysis.comparisons[1..] {
        assert_eq!(
            (exploratory.role, &exploratory.verdict),
            (Role::Exploratory, &Verdict::Faster { beyond_delta: true })
        );
        assert!(exploratory.p_adjusted.unwrap() >= exploratory.p.unwrap());
    }
    let all = analyse(&run_of(&Made::default(), 10), &Options { all_metrics: true, ..Options::default() });
    assert!(all.comparisons.len() == 4 && all.steady.is_empty());
    let one = Options { metrics: vec!["write.clat_ns".to_owned()], ..Options::default() };
    assert_eq!(analyse(&run_of(&Made::default(), 10), &one).comparisons.len(), 2);
}

#[test]
fn exploratory_metrics_share_the_choice_of_the_test() {
    // Two exploratory metrics beside one primary: ranks from n = 9 on for them, from n = 8 on for it.
    for (rounds, expected) in [
        (7, [Method::FixedT; 3]),
        (8, [Method::FixedSignedRank, Method::FixedT, Method::FixedT]),
        (9, [Method::FixedSignedRank; 3]),
    ] {
        let run = run_of(&Made { stop: fixed(rounds), ..Made::default() }, rounds);
        let analysis = analyse(&run, &Options::default());
        let methods: Vec<Method> = analysis.comparisons.iter().map(|c| c.method).collect();
        assert_eq!(methods, expected, "{rounds} rounds");
    }
}

#[test]
fn six_rounds_claim_what_five_rounds_claim() {
    for rounds in 4..=12 {
        let mut run = run_of(&Made { effect: 0.5, cv: 0.02, stop: fixed(rounds), ..Made::default() }, rounds);
        let metrics = run.metrics.len() as u32;
        for job in 1..12 {
            for at in 0..metrics as usize {
                let metric = run.metrics[at].clone();
                run.metrics.push(Metric { job: format!("job{job}"), ..metric });
            }
        }
        for trial in &mut run.trials {
            let first = trial.values.clone();
            let copy = |job: u32| first.iter().map(move |(metric, value)| (metric + job * metrics, *value));
            trial.values = (0..12).flat_map(copy).collect();
        }
        run.metrics[..metrics as usize].iter_mut().for_each(|metric| metric.job = "job0".to_owned());
        let comparisons = analyse(&run, &Options::default()).comparisons;
        let primary = comparisons.iter().filter(|c| c.role == Role::Primary);
        let faster = primary.filter(|c| matches!(c.verdict, Verdict::Faster { .. })).count();
        assert_eq!(faster, 12, "{rounds} rounds");
    }
}

#[test]
fn a_difference_below_delta_is_not_called_one_beyond_it() {
    let (mut any, mut beyond) = (0, 0);
    let options = Options { metrics: vec!["write.bw".to_owned()], ..Options::default() };
    for seed in 0..200 {
        // A true 1 % at δ = 2 %, and noise in which 30 rounds mostly see it.
        let made = Made { effect: -0.01, cv: 0.015, stop: fixed(30), seed, ..Made::default() };
        let found = analyse(&run_of(&made, 30), &options).comparisons.remove(0);
        any += u32::from(found.is_better() == Some(false));
        beyond += u32::from(found.verdict == Verdict::Slower { beyond_delta: true });
        assert_eq!(found.is_better().is_some(), found.effect.is_some_and(|e| e.low > 0.0 || e.high < 0.0));
    }
    println!("of 200 runs {any} slower, {beyond} by more than δ");
    assert!(any >= 100 && beyond <= 5, "{any} {beyond}");
}

#[test]
fn quantiles_need_operations() {
    let mut run = run_of(&Made::default(), 10);
    for trial in &mut run.trials {
        trial.values[2].1 = 999.0;
    }
    let analysis = analyse(&run, &Options::default());
    let refused = analysis.comparisons.iter().find(|c| c.metric.name == "write.clat_ns.p99").unwrap();
    assert!(matches!(refused.verdict, Verdict::NotMeasured(_)) && refused.effect.is_none());
    let expected =
        Caveat::QuantileRefused { metric: "write.clat_ns.p99".to_owned(), needed: 1_000, had: 999 };
    assert_eq!(refused.caveats, [expected]);
}

#[test]
fn unpaired_results_go_through_mann_whitney() {
    let made = Made { paired: false, ..Made::default() };
    let analysis = analyse(&run_of(&made, 6), &Options::default());
    let found = &analysis.comparisons[0];
    assert_eq!(
        (&found.verdict, found.method, found.n),
        (&Verdict::Faster { beyond_delta: true }, Method::MannWhitney, 6)
    );
    assert!((found.p.unwrap() - 2.0 / 924.0).abs() < 1e-12);
    assert_eq!(analysis.caveats, [Caveat::Interleaved]);
    assert_eq!(primary(&run_of(&made, 3)).verdict, Verdict::TooFew { n: 3 });
}

#[test]
fn trials_that_never_settle_are_told() {
    let mut run = run_of(&Made::default(), 6);
    for (at, trial) in run.trials.iter_mut().enumerate() {
        let climbing =
            |second: u32| f64::from(second.min(75)) + f64::from((second * 7919 + at as u32) % 101) / 101.0;
        let values = (0..100).map(climbing).collect();
        trial.series =
            vec![Series { job: String::new(), name: "write.bw".to_owned(), interval_s: 1.0, values }];
    }
    assert!(primary(&run).caveats.contains(&Caveat::NeverSettled { trials: 12, of: 12 }));
    run.trials.iter_mut().for_each(|trial| trial.series[0].values = vec![5.0; 100]);
    assert!(!primary(&run).caveats.iter().any(|caveat| matches!(caveat, Caveat::NeverSettled { .. })));
}

#[test]
fn zeros_are_judged_as_differences() {
    let mut run = run_of(&Made::default(), 10);
    run.trials[3].values[0].1 = 0.0;
    let found = primary(&run);
    assert!(
        found.caveats.contains(&Caveat::NotPositive) && found.difference.is_some(),
        "{:?}",
        found.caveats
    );
    assert!(!found.caveats.iter().any(|c| matches!(c, Caveat::MeanDisagrees { .. })));
}

#[test]
fn failed_and_thrown_out_rounds_are_told() {
    let mut run = run_of(&Made::default(), 10);
    run.trials[2].excluded = Some("steal above 5 %".to_owned());
    run.trials[3].excluded = Some("steal above 5 %".to_owned());
    run.trials[8].status = Status::failed(FailureKind::Passing, "");
    let analysis = analyse(&run, &Options::default());
    assert_eq!(
        analysis.caveats,
        [
            Caveat::ExcludedRounds { count: 1, rule: "steal above 5 %".to_owned() },
            Caveat::FailedTrials { count: 1 }
        ]
    );
    assert_eq!(analysis.comparisons[0].n, 8);
}

#[test]
fn an_arm_without_values_is_named() {
    let mut run = run_of(&Made::default(), 6);
    run.trials.retain(|trial| trial.cell == 0);
    assert_eq!(primary(&run).verdict, Verdict::NotMeasured("arm '1' has no value".to_owned()));
    assert!(analyse(&Run { trials: Vec::new(), ..run }, &Options::default()).comparisons.is_empty());
}

#[test]
fn a_table_with_holes_compares_what_is_there() {
    let mut run = run_of(&Made { paired: false, ..Made::default() }, 6);
    run.design.factors[0].levels.push("2".to_owned());
    let compared = |run: &Run| {
        let analysis = analyse(run, &Options::default());
        let primary = analysis.comparisons.into_iter().filter(|c| c.role == Role::Primary);
        primary.map(|c| (c.candidate.arm, c.verdict)).collect::<Vec<_>>()
    };
    assert_eq!(
        compared(&run),
        [("1".to_owned(), Verdict::Faster { beyond_delta: true })],
        "nobody measured arm 2 in this row"
    );
    run.cells[1].levels = vec![0];
    run.cells.truncate(1);
    run.trials.retain(|trial| trial.cell == 0);
    assert_eq!(compared(&run).len(), 2, "a row with its baseline only is told");
}

#[test]
fn several_rows_share_alpha() {
    let mut run = run_of(&Made { effect: 0.03, ..Made::default() }, 10);
    let twice = |trial: &Trial| {
        let mut values = trial.values.clone();
        values.extend(trial.values.iter().map(|(metric, value)| (metric + 4, *value)));
        values
    };
    for trial in &mut run.trials {
        trial.values = twice(trial);
    }
    let jobs = run.metrics.clone().into_iter().map(|m| Metric { job: "second".to_owned(), ..m });
    let jobs: Vec<_> = jobs.collect();
    run.metrics.iter_mut().for_each(|metric| metric.job = "first".to_owned());
    run.metrics.extend(jobs);
    let analysis = analyse(&run, &Options::default());
    assert_eq!(analysis.caveats, [Caveat::Family { m: 2 }]);
    let alone = primary(&run_of(&Made { effect: 0.03, ..Made::default() }, 10)).effect.unwrap();
    let shared = analysis.comparisons[0].effect.unwrap();
    assert!(shared.low <= alone.low && shared.high >= alone.high && shared != alone, "{shared:?} {alone:?}");
    // Judged once: Holm.
    run.design.stop = fixed(10);
    let analysis = analyse(&run, &Options::default());
    let found = &analysis.comparisons[0];
    assert!((found.p_adjusted.unwrap() - 2.0 * found.p.unwrap()).abs() < 1e-12);
}

#[test]
fn noise_floor_of_an_aa_run() {
    let mut run = run_of(&Made { effect: 0.0, cv: 0.02, stop: fixed(10), ..Made::default() }, 10);
    run.aa = true;
    let floor = noise_floor(&run, &Options::default()).unwrap();
    assert!((0.01..0.06).contains(&floor.s_d), "{floor:?}");
    assert!((floor.smallest_effect - (3.8 * floor.s_d / 30_f64.sqrt()).exp_m1()).abs() < 1e-12);
    assert!(floor.half_width > 0.0 && floor.half_width < 0.06);
    let others: Vec<Run> = (0..20)
        .map(|seed| {
            let made = Made { effect: 0.0, cv: 0.02, stop: fixed(10), seed, ..Made::default() };
            Run { aa: true, ..run_of(&made, 10) }
        })
        .collect();
    // Ten rounds say s_D within a factor of two; twenty runs of them within an eighth.
    assert!(floor.s_d_high / floor.s_d_low > 2.0 && floor.pooled_runs == 1, "{floor:?}");
    let pooled = pooled_noise_floor(&others, &Options::default()).unwrap();
    assert_eq!((pooled.pooled_runs, pooled.metric.name.as_str()), (20, "write.bw"));
    assert!(pooled.s_d_high / pooled.s_d_low < 1.25, "{pooled:?}");
    let truth = 0.02 * 2.0_f64.sqrt();
    assert!(pooled.s_d_low < truth && truth < pooled.s_d_high, "{pooled:?}");
    let claims = aa_claims(&others);
    assert_eq!(claims.runs, 20);
    assert!(claims.claims <= 3 && claims.p > 0.05, "{claims:?}");
    assert_eq!(aa_claims([&run_of(&Made::default(), 4)]).runs, 0);
}

#[test]
fn what_is_listed_changes_no_verdict() {
    let mut run = run_of(&Made { effect: 0.02, cv: 0.03, stop: fixed(12), ..Made::default() }, 12);
    for (index, name) in ["usr_cpu", "sys_cpu", "ctx", "majf", "workers.wall"].into_iter().enumerate() {
        let metric = Metric::new("", name, Unit::Count, Better::Lower);
        let at = run.metric_index(&metric);
        for trial in &mut run.trials {
            let noise = f64::from((trial.round * 7 + trial.cell * 3 + index as u32 * 5) % 11) / 100.0;
            let effect = if trial.cell == 1 { 0.01 * index as f64 } else { 0.0 };
            let value = if name == "majf" { 3.0 } else { 1000.0 * (1.0 + noise + effect) };
            trial.values.push((at, value));
        }
    }
    let told = |options: &Options| -> Vec<(String, Verdict, Option<Interval>, Option<f64>)> {
        let of = analyse(&run, options).comparisons.into_iter().filter(|c| c.metric.name == "ctx");
        of.map(|c| (c.metric.name, c.verdict, c.effect, c.p_adjusted)).collect()
    };
    let usual = told(&Options::default());
    assert_eq!(usual.len(), 1);
    assert_eq!(told(&Options { all_metrics: true, ..Options::default() }), usual);
    assert_eq!(told(&Options { metrics: vec!["ctx".to_owned()], ..Options::default() }), usual);
    let named = analyse(&run, &Options { metrics: vec!["ctx".to_owned()], ..Options::default() });
    assert!(named.comparisons.iter().all(|c| c.role == Role::Primary || c.metric.name == "ctx"));
}

#[test]
fn the_mean_may_tell_another_story() {
    // 4 of 20 candidate trials stall: the typical trial does not change, the mean does.
    let mut run = run_of(&Made { effect: 0.0, cv: 0.002, stop: fixed(20), ..Made::default() }, 20);
    for trial in run.trials.iter_mut().filter(|t| t.cell == 1 && t.round % 5 == 0) {
        trial.values[0].1 *= 0.4;
    }
    let found = primary(&run);
    assert!(found.caveats.iter().any(|c| matches!(c, Caveat::MeanDisagrees { mean, .. } if *mean < -0.1)));
    assert_eq!((found.baseline.stall_rate, found.candidate.stall_rate), (0.0, 0.2));
}

#[test]
fn a_mean_that_ends_the_same_way_is_no_other_story() {
    // 4 of 20 candidate trials stall, and the others are fourteen times as fast.
    let mut run = run_of(&Made { effect: 13.0, cv: 0.002, stop: fixed(20), ..Made::default() }, 20);
    for trial in run.trials.iter_mut().filter(|t| t.cell == 1 && t.round % 5 == 0) {
        trial.values[0].1 *= 0.4;
    }
    let found = primary(&run);
    assert!((found.mean_change.estimate - 11.3).abs() < 0.2, "{:?}", found.mean_change);
    assert!(!found.caveats.iter().any(|c| matches!(c, Caveat::MeanDisagrees { .. })), "{:?}", found.caveats);
}

#[test]
fn an_arm_that_is_twice_as_slow_in_every_trial_is_one_story() {
    let run = run_of(&Made { effect: -0.5, cv: 0.02, stop: fixed(20), ..Made::default() }, 20);
    let found = primary(&run);
    assert_eq!((found.baseline.stall_rate, found.candidate.stall_rate), (0.0, 0.0));
    assert!(!found.caveats.iter().any(|c| matches!(c, Caveat::MeanDisagrees { .. })), "{:?}", found.caveats);
}

#[test]
fn the_medians_may_differ_the_other_way_than_the_pairs() {
    // The machine slows down from round to round, and the candidate has a few very bad rounds at its fast end.
    let mut run = run_of(&Made { effect: 0.0, cv: 0.002, stop: fixed(21), ..Made::default() }, 21);
    for trial in &mut run.trials {
        let round = f64::from(trial.round);
        let candidate = match trial.round {
            0..=5 => 0.5,
            _ => 1.1,
        };
        trial.values[0].1 = 1000.0 * (-0.05 * round).exp() * if trial.cell == 1 { candidate } else { 1.0 };
    }
    let found = primary(&run);
    let medians = found.candidate.median / found.baseline.median - 1.0;
    let told = found.caveats.iter().find_map(|c| match c {
        Caveat::MediansDisagree { medians } => Some(*medians),
        _ => None,
    });
    assert!(found.effect.unwrap().estimate > 0.02 && medians < -0.02, "{found:?}");
    assert_eq!(told, Some(medians));
}

#[test]
fn the_medians_may_differ_by_more_than_the_pairs_allow() {
    // From the eleventh of 21 rounds on the machine is twice as fast: the arms' medians are of two machines.
    let mut run = run_of(&Made { effect: 0.0, cv: 0.002, stop: fixed(21), ..Made::default() }, 21);
    for trial in &mut run.trials {
        let (of_candidate, round) = (trial.cell == 1, trial.round);
        let machine = if round > 10 || (round == 10 && of_candidate) { 2.0 } else { 1.0 };
        trial.values[0].1 = (1000.0 + f64::from(round)) * machine * if of_candidate { 1.02 } else { 1.0 };
    }
    let found = primary(&run);
    let told = |c: &Caveat| matches!(c, Caveat::MediansDisagree { medians } if *medians > 0.9);
    assert!(found.effect.unwrap().high < 0.9 && found.caveats.iter().any(told), "{found:?}");
}

#[test]
fn fifty_thousand_rounds_are_judged_quickly() {
    let rounds = if cfg!(debug_assertions) { 3_000 } else { 50_000 };
    let stop = StopRule { max_rounds: rounds, ..StopRule::default() };
    for (paired, method) in [(true, Method::SequentialSignedRank), (false, Method::MannWhitney)] {
        let run = run_of(&Made { effect: 0.001, cv: 0.05, stop, paired, ..Made::default() }, rounds);
        // Processor time of this thread: others may have the processor meanwhile.
        let start = clock_gettime(ClockId::ThreadCPUTime);
        let analysis = analyse(&run, &Options { all_metrics: true, ..Options::default() });
        let elapsed = clock_gettime(ClockId::ThreadCPUTime) - start;
        let elapsed_s = elapsed.tv_sec as f64 + elapsed.tv_nsec as f64 / 1e9;
        assert_eq!((analysis.comparisons[0].method, analysis.comparisons.len()), (method, 4));
        println!("{rounds} rounds, 4 metrics, paired {paired}: {elapsed_s:.3} s");
        assert!(elapsed_s < 10.0, "{elapsed_s}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn swapped_arms_mirror_the_effect(effect in -0.2_f64..0.2, cv in 0.001_f64..0.1, rounds in 4_u32..20, seed in 0_u64..1000, one_look: bool) {
        let stop = if one_look { fixed(rounds) } else { StopRule::default() };
        let run = run_of(&Made { effect, cv, stop, seed, ..Made::default() }, rounds);
        let there = analyse(&run, &Options::default()).comparisons.remove(0);
        let back = analyse(&run, &Options { baseline: Some("1".to_owned()), ..Options::default() }).comparisons.remove(0);
        let (a, b) = (there.effect.unwrap(), back.effect.unwrap());
        prop_assert!((a.estimate.ln_1p() + b.estimate.ln_1p()).abs() < 1e-9);
        prop_assert!((a.low.ln_1p() + b.high.ln_1p()).abs() < 1e-9);
        prop_assert!(a.low <= a.estimate && a.estimate <= a.high);
        let mirrored = match there.verdict {
            Verdict::Faster { beyond_delta } => Verdict::Slower { beyond_delta },
            Verdict::Slower { beyond_delta } => Verdict::Faster { beyond_delta },
            other => other,
        };
        prop_assert_eq!(back.verdict, mirrored);
    }

    #[test]
    fn another_unit_gives_the_same_ratio(factor in 1e-6_f64..1e6, seed in 0_u64..1000) {
        let run = run_of(&Made { seed, cv: 0.05, ..Made::default() }, 12);
        let mut scaled = run.clone();
        scaled.trials.iter_mut().for_each(|trial| trial.values[0].1 *= factor);
        let (a, b) = (primary(&run), primary(&scaled));
        prop_assert!((a.effect.unwrap().low - b.effect.unwrap().low).abs() < 1e-9);
        prop_assert!((a.mean_change.high - b.mean_change.high).abs() < 1e-9);
        prop_assert_eq!(a.verdict, b.verdict);
    }

    #[test]
    fn progress_and_verdict_agree(effect in -0.05_f64..0.05, cv in 0.001_f64..0.05, rounds in 4_u32..29, seed in 0_u64..1000) {
        let run = run_of(&Made { effect, cv, seed, ..Made::default() }, rounds);
        let open = matches!(primary(&run).verdict, Verdict::Undecided { .. });
        prop_assert_eq!(decided(&run, &Options::default()), !open);
    }
}
