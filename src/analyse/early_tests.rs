//! Looks at runs with a fixed number of rounds before the last of them.

use super::made_up::{Made, run_of};
use super::*;
use crate::record::{FailureKind, RunState, StopRule, Trial};

fn fixed(rounds: u32) -> Made {
    Made { stop: StopRule { rounds: Some(rounds), ..StopRule::default() }, ..Made::default() }
}

fn verdicts(run: &Run) -> Vec<Verdict> {
    let options = Options { all_metrics: true, ..Options::default() };
    analyse(run, &options).comparisons.into_iter().map(|c| c.verdict).collect()
}

fn exclude(run: &mut Run, rounds: std::ops::Range<u32>) {
    for trial in run.trials.iter_mut().filter(|trial| rounds.contains(&trial.round)) {
        trial.excluded = Some("steal".to_owned());
    }
}

#[test]
fn before_the_last_round_no_metric_has_a_verdict_or_a_p() {
    for n in 1..10 {
        let run = run_of(&Made { effect: 0.5, ..fixed(10) }, n);
        let analysis = analyse(&run, &Options { all_metrics: true, ..Options::default() });
        assert_eq!(analysis.comparisons.len(), 4);
        for found in &analysis.comparisons {
            assert_eq!(found.verdict, Verdict::SoFar { rounds: n, of: 10 }, "{}", found.metric.name);
            assert_eq!((found.p, found.p_adjusted), (None, None));
            assert!(!found.caveats.iter().any(|c| matches!(c, Caveat::TooFewRepeats { .. })));
            // The figures are there all the same.
            assert_eq!(found.effect.is_some(), n >= 4);
            assert!(found.mean_change.estimate.is_finite());
        }
        assert!(!decided(&run, &Options::default()));
    }
    let whole = run_of(&Made { effect: 0.5, ..fixed(10) }, 10);
    assert_eq!((verdicts(&whole)[0].clone(), whole.so_far()), (Verdict::Faster { beyond_delta: true }, None));
    assert!(decided(&whole, &Options::default()));
}

#[test]
fn whoever_looks_each_round_and_stops_claims_no_more() {
    let runs = 60;
    let claims = |n| {
        let made = |seed| Made { effect: 0.0, cv: 0.05, seed, ..fixed(30) };
        let claimed = |v: &Verdict| {
            matches!(
                v,
                Verdict::Faster { beyond_delta: true }
                    | Verdict::Slower { beyond_delta: true }
                    | Verdict::NoDifference { .. }
            )
        };
        (0..runs).filter(|seed| claimed(&verdicts(&run_of(&made(*seed), n))[0])).count()
    };
    assert_eq!([5, 17, 29].map(claims), [0; 3], "it was 23.4 % over all looks of 30 rounds");
    // 5 % are promised, and no difference beyond 2 % is not shown at this noise.
    assert!(claims(30) <= runs as usize / 10);
}

#[test]
fn a_sequential_run_has_its_verdict_at_any_look() {
    let mut run = run_of(&Made::default(), 5);
    run.state = RunState::Interrupted;
    assert_eq!((verdicts(&run)[0].clone(), run.so_far()), (Verdict::Faster { beyond_delta: true }, None));
}

#[test]
fn a_round_counts_when_its_last_trial_has_ended() {
    let mut run = run_of(&fixed(6), 6);
    run.trials.pop();
    assert_eq!(verdicts(&run)[0], Verdict::SoFar { rounds: 5, of: 6 });
    let mut tried_again = run_of(&fixed(6), 6);
    let failed = |kind| Status::failed(kind, "");
    let last = tried_again.trials.last_mut().unwrap();
    last.status = failed(FailureKind::Passing);
    assert_eq!(verdicts(&tried_again)[0], Verdict::SoFar { rounds: 5, of: 6 });
    // The second attempt is the last: the round is over, with no difference.
    tried_again.trials.last_mut().unwrap().attempt = 1;
    assert_eq!(
        (verdicts(&tried_again)[0].clone(), primary_n(&tried_again)),
        (Verdict::Faster { beyond_delta: true }, 5)
    );
}

fn primary_n(run: &Run) -> usize {
    analyse(run, &Options::default()).comparisons[0].n
}

#[test]
fn rounds_thrown_out_are_not_there_until_nobody_makes_up() {
    let mut run = run_of(&fixed(6), 6);
    exclude(&mut run, 2..3);
    assert_eq!(verdicts(&run)[0], Verdict::SoFar { rounds: 5, of: 6 });
    let mut made_up_for = run_of(&fixed(6), 7);
    exclude(&mut made_up_for, 2..3);
    assert_eq!(
        (verdicts(&made_up_for)[0].clone(), primary_n(&made_up_for)),
        (Verdict::Faster { beyond_delta: true }, 6)
    );
    let mut nearly = run_of(&fixed(6), 11);
    exclude(&mut nearly, 0..6);
    assert_eq!(verdicts(&nearly)[0], Verdict::SoFar { rounds: 5, of: 6 });
    // Twice as many as were asked for is where a run ends.
    let mut over = run_of(&fixed(6), 12);
    exclude(&mut over, 0..7);
    assert_eq!((verdicts(&over)[0].clone(), primary_n(&over)), (Verdict::Faster { beyond_delta: true }, 5));
}

#[test]
fn what_resume_would_try_again_waits_for_its_verdict() {
    let mut run = run_of(&fixed(6), 6);
    let at = run.trials.iter().position(|t| t.round == 4 && t.cell == 1).unwrap();
    let good = run.trials[at].clone();
    run.trials[at].status = Status::failed(FailureKind::Lasting, "no space");
    run.trials.retain(|t| t.cell == 0 || t.round <= 4);
    assert_eq!(verdicts(&run)[0], Verdict::SoFar { rounds: 4, of: 6 });
    // Mended, and gone on with.
    let whole = run_of(&fixed(6), 6);
    run.trials.push(Trial { attempt: 1, ..good });
    run.trials.extend(whole.trials.into_iter().filter(|t| t.cell == 1 && t.round > 4));
    assert_eq!(run.so_far(), None);
    assert_eq!(verdicts(&run)[0], Verdict::Faster { beyond_delta: true }, "its cause was no arm's");
}

#[test]
fn an_unfinished_aa_run_is_no_noise_floor_and_not_counted() {
    let run = |rounds| {
        let mut run = run_of(&fixed(10), rounds);
        run.aa = true;
        run
    };
    assert_eq!(noise_floor(&run(9), &Options::default()), None);
    assert!(noise_floor(&run(10), &Options::default()).is_some());
    let counted = aa_claims([&run(9), &run(10)]);
    assert_eq!((counted.runs, counted.claims), (1, 1));
}
