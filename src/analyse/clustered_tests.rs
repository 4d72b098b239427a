//! Clusters as the whole layer judges them.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::made_up::{Made, run_of};
use super::*;
use crate::record::{HostFacts, Run};

/// What a trial of made-up clusters is.
#[derive(Clone, Copy)]
struct Boots {
    /// Clusters of the baseline and of the candidate.
    clusters: [u32; 2],
    repeats: u32,
    /// Both arms in each cluster.
    shared: bool,
    between: f64,
    within: f64,
    effect: f64,
    seed: u64,
}

const FIVE: Boots =
    Boots { clusters: [5, 5], repeats: 6, shared: false, between: 0.02, within: 0.01, effect: 0.0, seed: 1 };

fn clustered(made: Boots) -> Run {
    let mut run = run_of(&Made { paired: false, ..Made::default() }, 1);
    let mut rng = ChaCha8Rng::seed_from_u64(made.seed);
    let mut noise = |sd: f64| sd * ((0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0);
    let most = made.clusters[0].max(made.clusters[1]);
    let boots: Vec<f64> = (0..2 * most).map(|_| noise(made.between)).collect();
    let template = run.trials[0].clone();
    run.trials.clear();
    run.facts = vec![HostFacts::default()];
    for arm in 0..2_u32 {
        for boot in 0..made.clusters[arm as usize] {
            let name = if made.shared { boot } else { arm * most + boot };
            let mut facts = HostFacts::default();
            facts.set_cluster("boot", &name.to_string());
            let facts = Some(run.facts_index(&facts));
            for repeat in 0..made.repeats {
                let log = boots[name as usize] + noise(made.within) + f64::from(arm) * made.effect.ln_1p();
                let values = vec![(0, 1e8 * log.exp())];
                let round = boot * made.repeats + repeat;
                run.trials.push(crate::record::Trial {
                    cell: arm,
                    round,
                    position: 0,
                    facts,
                    values,
                    ..template.clone()
                });
            }
        }
    }
    run
}

fn first(run: &Run) -> Comparison {
    analyse(run, &Options::default()).comparisons.remove(0)
}

fn spreads(found: &Comparison) -> (f64, f64, Option<f64>, f64) {
    let of = |caveat: &Caveat| match caveat {
        Caveat::ClusterVariance { between, within, cancelled, share, .. } => {
            Some((*between, *within, *cancelled, *share))
        }
        _ => None,
    };
    found.caveats.iter().find_map(of).unwrap()
}

#[test]
fn clusters_within_arms_are_judged_by_their_means() {
    for (clusters, method) in [
        ([4, 4], Method::ClusterWelch),
        ([5, 5], Method::ClusterMannWhitney),
        ([4, 8], Method::ClusterMannWhitney),
    ] {
        let found = first(&clustered(Boots { clusters, effect: 0.3, ..FIVE }));
        assert_eq!(
            (found.method, found.n, &found.verdict),
            (method, clusters[0].min(clusters[1]) as usize, &Verdict::Faster { beyond_delta: true })
        );
        assert_eq!(found.baseline.n, 6 * clusters[0] as usize, "the arm's figures are those of its trials");
    }
}

#[test]
fn clusters_with_both_arms_are_pairs() {
    for (boots, method) in [(5, Method::ClusterT), (8, Method::ClusterSignedRank)] {
        let found = first(&clustered(Boots {
            clusters: [boots; 2],
            shared: true,
            effect: 0.03,
            between: 0.2,
            ..FIVE
        }));
        assert_eq!(
            (found.method, found.n, &found.verdict),
            (method, boots as usize, &Verdict::Faster { beyond_delta: true })
        );
        let (between, within, cancelled, _) = spreads(&found);
        assert!(cancelled.unwrap() > 0.05 && between < 0.02 && within < 0.02, "{found:?}");
    }
}

#[test]
fn failures_have_no_place_in_the_mean_of_a_cluster() {
    let mut run = clustered(Boots { clusters: [6, 6], effect: 0.3, ..FIVE });
    // The arm that would be called faster failed twice, and not often enough for a test to see it.
    for trial in run.trials.iter_mut().filter(|trial| trial.cell == 1).take(2) {
        let [reason, command, output] = ["exit status: 1", "", ""].map(str::to_owned);
        trial.status = Status::Failed { kind: crate::record::FailureKind::Passing, reason, command, output };
        trial.values.clear();
    }
    let found = first(&run);
    assert!(found.failures.is_some_and(|counts| counts.p.unwrap() > 0.05), "{found:?}");
    assert_eq!((found.verdict, found.effect), (Verdict::NotComparable, None));
    let worst = Options { failures: Some(FailureRule::Worst), ..Options::default() };
    let found = analyse(&run, &worst).comparisons.remove(0);
    assert_eq!(found.verdict, Verdict::NotComparable);
    assert!(!found.caveats.contains(&Caveat::FailuresAsWorst), "{:?}", found.caveats);
}

#[test]
fn too_few_clusters_are_a_change_only() {
    for (clusters, shared, n) in [([3, 8], false, 3), ([3, 3], true, 3), ([1, 1], false, 1)] {
        let found = first(&clustered(Boots { clusters, shared, repeats: 20, effect: 0.5, ..FIVE }));
        assert_eq!((found.verdict.clone(), found.method), (Verdict::TooFew { n }, Method::ChangeOnly));
        assert!(found.effect.is_none() && found.mean_change.estimate > 0.4);
    }
}

#[test]
fn clusters_with_one_arm_are_left_out_where_most_have_both() {
    let found = first(&clustered(Boots { clusters: [6, 5], shared: true, ..FIVE }));
    assert_eq!((found.method, found.n), (Method::ClusterT, 5));
    let found = first(&clustered(Boots { clusters: [11, 5], shared: true, ..FIVE }));
    assert_eq!((found.method, found.n), (Method::ClusterMannWhitney, 5), "six have one arm");
}

#[test]
fn variances_are_those_that_were_made() {
    let found = first(&clustered(Boots { clusters: [200, 200], ..FIVE }));
    let (between, within, cancelled, share) = spreads(&found);
    assert!((between - 0.02).abs() < 0.003 && (within - 0.01).abs() < 0.001, "{between} {within}");
    // 0.02² / (0.02² + 0.01²/6) = 0.96.
    assert!((share - 0.96).abs() < 0.02 && cancelled.is_none(), "{share}");
    let found = first(&clustered(Boots { clusters: [200, 200], shared: true, ..FIVE }));
    let (between, _, cancelled, _) = spreads(&found);
    assert!(between < 0.004 && (cancelled.unwrap() - 0.02).abs() < 0.003, "{between} {cancelled:?}");
}

#[test]
fn a_boot_a_repeat_is_judged_as_trials_are() {
    let clustered = clustered(Boots { clusters: [8, 8], repeats: 1, effect: 0.05, ..FIVE });
    let mut alone = clustered.clone();
    alone.facts.iter_mut().for_each(HostFacts::drop_cluster);
    let (by_boot, by_trial) = (first(&clustered), first(&alone));
    assert_eq!((by_boot.method, by_trial.method), (Method::ClusterMannWhitney, Method::MannWhitney));
    assert_eq!((by_boot.p, by_boot.effect), (by_trial.p, by_trial.effect));
    assert!(!by_boot.caveats.iter().any(|caveat| matches!(caveat, Caveat::ClusterVariance { .. })));
}

#[test]
fn trials_without_a_cluster_are_one() {
    let mut run = clustered(Boots { clusters: [5, 5], ..FIVE });
    run.trials.iter_mut().filter(|trial| trial.round < 12).for_each(|trial| trial.facts = None);
    // Two boots of each arm have no name: together they are one that holds both arms.
    let found = first(&run);
    let caveat = found.caveats.iter().find(|caveat| matches!(caveat, Caveat::Clustered { .. }));
    let Some(Caveat::Clustered { baseline, candidate, both, .. }) = caveat else { panic!("{found:?}") };
    assert_eq!((*baseline, *candidate, *both), (4, 4, 1));
}

#[test]
fn own_runs_have_rounds_and_no_clusters() {
    let mut run = run_of(&Made::default(), 4);
    run.facts[0].set_cluster("boot", "1");
    assert_eq!(first(&run).method, Method::SequentialT);
}
