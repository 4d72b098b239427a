//! Trials that failed: how many of each arm, and what they leave of a claim.
//!
//! Enters: the rounds in which each arm was tried and failed, a claim made without them. Leaves: [`FailureCounts`], whether the claim
//! stands, and differences in which a failure is worse than any value. An arm that fails when it is slow loses its slow values: what
//! is left of it, and what a retry puts in their place, is too fast.

use std::collections::BTreeMap;

use super::comparison::{FailureCounts, Verdict};
use super::draft::{Case, Setting};
use crate::record::{FailureRule, StopRule};
use crate::stats::{fisher_exact, mcnemar};
use crate::units::Better;

/// Beyond any place on the scale, and beyond twice any difference, so that an average with one stays extreme. |ln| of a double is
/// below 745, and e^(this / 2) is infinite; on the raw scale no value is above 1 (`scale.rs`).
const BEYOND: f64 = 1e4;

/// Share of α at which a claim must stand with failures as the worst values. With all of α, up to 5 of 600 simulated runs (30 rounds,
/// fails in the slowest 10 %, no other difference) had failures and called that arm faster.
pub(super) const SHARE_OF_ALPHA: f64 = 0.1;

/// The place of a failed trial on the scale where failures rank as the worst.
pub(super) fn worst_log(better: Better) -> f64 {
    match better {
        Better::Higher => -BEYOND,
        Better::Lower => BEYOND,
    }
}

/// Whether a difference comes from a failed trial.
pub(super) fn is_beyond(difference: f64) -> bool {
    difference.abs() >= BEYOND
}

impl FailureCounts {
    /// Whether one arm failed more often than the other.
    #[must_use]
    pub fn are_unequal(&self) -> bool {
        self.more_of_candidate() != 0
    }

    /// Above 0: the candidate failed more often; below 0: the baseline did.
    fn more_of_candidate(&self) -> i128 {
        let share = |failed: u32, others: u32| i128::from(failed) * i128::from(others);
        share(self.candidate_failed, self.baseline_trials)
            - share(self.baseline_failed, self.candidate_trials)
    }
}

/// What stands of a verdict made without the failed trials although the failures are unequal; `None`: nothing. The test must see no
/// difference between them. Then a claim against the arm that failed more stands, and of any other what is also true with failures
/// as worst values.
pub(super) fn what_stands(
    counts: &FailureCounts,
    alpha: f64,
    claim: Verdict,
    with_worst: impl FnOnce() -> Option<Verdict>,
) -> Option<Verdict> {
    if counts.p.is_none_or(|p| p <= alpha) {
        return None;
    }
    match claim {
        Verdict::Faster { .. } if counts.more_of_candidate() < 0 => Some(claim),
        Verdict::Slower { .. } if counts.more_of_candidate() > 0 => Some(claim),
        Verdict::Faster { .. } | Verdict::Slower { .. } | Verdict::NoDifference { .. } => {
            the_weaker(&claim, &with_worst()?)
        }
        _ => Some(claim),
    }
}

/// What two claims have in common; `None` where they contradict each other.
fn the_weaker(one: &Verdict, other: &Verdict) -> Option<Verdict> {
    use Verdict::{Faster, NoDifference, Slower};
    match (one, other) {
        (Faster { beyond_delta: a }, Faster { beyond_delta: b }) => Some(Faster { beyond_delta: *a && *b }),
        (Slower { beyond_delta: a }, Slower { beyond_delta: b }) => Some(Slower { beyond_delta: *a && *b }),
        (NoDifference { real_but_below_delta: a }, NoDifference { real_but_below_delta: b }) => {
            Some(NoDifference { real_but_below_delta: *a && *b })
        }
        _ => None,
    }
}

impl<'a> Setting<'a> {
    /// The same analysis with failures as the worst values and so small an α, as a claim must stand it that was made without them.
    pub(super) fn strict_with_worst(&self) -> Setting<'a> {
        let stop = StopRule { alpha: self.stop.alpha * SHARE_OF_ALPHA, ..self.stop };
        Setting { rule: FailureRule::Worst, stop, ..*self }
    }

    /// Failed trials of both arms of a case; `None`: none.
    pub(super) fn failures(&self, case: &Case) -> Option<FailureCounts> {
        let [Some(first), Some(second)] = case.cells() else { return None };
        let cells = [first, second];
        let failed = cells.map(|cell| self.table.failed_rounds(cell));
        if failed.iter().all(|rounds| rounds.is_empty()) {
            return None;
        }
        let counts =
            if self.run.design.paired { self.paired_failures(cells) } else { self.all_failures(cells) };
        (counts.baseline_failed + counts.candidate_failed > 0).then_some(counts)
    }

    fn paired_failures(&self, cells: [u32; 2]) -> FailureCounts {
        let [base, cand] = cells.map(|cell| self.table.failed_rounds(cell));
        // Only the baseline, only the candidate, both, neither.
        let mut rounds = [0_u32; 4];
        for round in self.tried_by_both(cells) {
            rounds[match (base.contains(&round), cand.contains(&round)) {
                (true, false) => 0,
                (false, true) => 1,
                (true, true) => 2,
                (false, false) => 3,
            }] += 1;
        }
        let [only_base, only_cand, both, _] = rounds;
        let trials = rounds.iter().sum();
        FailureCounts {
            baseline_failed: only_base + both,
            baseline_trials: trials,
            candidate_failed: only_cand + both,
            candidate_trials: trials,
            p: Some(mcnemar::two_sided(only_base, only_cand)),
        }
    }

    fn all_failures(&self, cells: [u32; 2]) -> FailureCounts {
        let count = |cell: u32| {
            (self.table.failed_rounds(cell).len() as u32, self.table.tried_rounds(cell).len() as u32)
        };
        let [base, cand] = cells.map(count);
        FailureCounts {
            baseline_failed: base.0,
            baseline_trials: base.1,
            candidate_failed: cand.0,
            candidate_trials: cand.1,
            p: Some(fisher_exact::two_sided(base, cand)),
        }
    }

    /// How many rounds both arms of a case were tried in, whatever came of it.
    pub(super) fn tried_together(&self, case: &Case) -> usize {
        let [Some(first), Some(second)] = case.cells() else { return 0 };
        self.tried_by_both([first, second]).count()
    }

    fn tried_by_both(&self, [first, second]: [u32; 2]) -> impl Iterator<Item = u32> {
        self.table.tried_rounds(first).intersection(self.table.tried_rounds(second)).copied()
    }

    /// D by ascending round with every failed trial as the worst: `differences` are those of `rounds`, in which nothing failed. A
    /// round in which both arms failed is a tie.
    pub(super) fn with_worst(
        &self,
        case: &Case,
        rounds: impl Iterator<Item = u32>,
        differences: &[f64],
    ) -> Vec<f64> {
        let mut all: BTreeMap<u32, f64> = rounds.zip(differences.iter().copied()).collect();
        if let [Some(first), Some(second)] = case.cells() {
            let worst = worst_log(self.table.metrics()[case.metric as usize].better);
            let (base, cand) = (self.table.failed_rounds(first), self.table.failed_rounds(second));
            for round in self.tried_by_both([first, second]) {
                match (base.contains(&round), cand.contains(&round)) {
                    (false, false) => continue,
                    (true, true) => all.insert(round, 0.0),
                    (false, true) => all.insert(round, worst),
                    (true, false) => all.insert(round, -worst),
                };
            }
        }
        all.into_values().collect()
    }
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::super::made_up::{Made, run_of};
    use super::super::{Comparison, Options, Role, analyse, decided};
    use super::*;
    use crate::record::{FailureKind, Run, Status, Trial};

    const FIXED: StopRule = StopRule { rounds: Some(30), ..SEQUENTIAL };
    const SEQUENTIAL: StopRule = StopRule {
        max_rounds: 30,
        rounds: None,
        delta: 0.02,
        alpha: 0.05,
        exact: false,
        anytime: false,
        time_budget_s: None,
    };

    fn failed(trial: &Trial, kind: FailureKind) -> Trial {
        let [reason, command, output] = ["exit status: 1", "", ""].map(str::to_owned);
        Trial {
            status: Status::Failed { kind, reason, command, output },
            values: Vec::new(),
            ..trial.clone()
        }
    }

    /// The candidate fails first in these rounds and works when it is tried again.
    fn retried(mut run: Run, cell: u32, rounds: &[u32], kind: FailureKind) -> Run {
        for round in rounds {
            let at = run.trials.iter().position(|t| t.round == *round && t.cell == cell).unwrap();
            let first = failed(&run.trials[at], kind);
            run.trials[at].attempt = 1;
            run.trials.insert(at, first);
        }
        run
    }

    /// Arms that do not differ; the candidate fails instead of being slow, in this share of its trials.
    fn fails_when_slow(seed: u64, share: f64, stop: StopRule) -> Run {
        let mut run = run_of(&Made { effect: 0.0, cv: 0.0, stop, ..Made::default() }, 30);
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        // Of a trial drawn in 0..1, the slowest at 0: 10 % between the slowest and the fastest.
        let set = |trial: &mut Trial, draw: f64| trial.values[0].1 = 1e8 * (0.1 * draw).exp();
        let mut trials = Vec::new();
        for mut trial in std::mem::take(&mut run.trials) {
            let mut draw: f64 = rng.random();
            if trial.cell == 1 && draw < share {
                trials.push(failed(&trial, FailureKind::Passing));
                (draw, trial.attempt) = (rng.random(), 1);
                if draw < share {
                    trial = failed(&trial, FailureKind::Passing);
                }
            }
            if trial.status == Status::Done {
                set(&mut trial, draw);
            }
            trials.push(trial);
        }
        Run { trials, ..run }
    }

    /// The run as it is when its rule stops it.
    fn stopped(run: &Run, options: &Options) -> Run {
        let first = |rounds: u32| {
            let trials = run.trials.iter().filter(|trial| trial.round < rounds).cloned().collect();
            Run { trials, ..run.clone() }
        };
        (4..30).map(first).find(|run| decided(run, options)).unwrap_or_else(|| run.clone())
    }

    fn primary(run: &Run, options: &Options) -> Comparison {
        analyse(run, options).comparisons.into_iter().find(|c| c.role == Role::Primary).unwrap()
    }

    fn judged(run: &Run) -> Comparison {
        primary(run, &Options::default())
    }

    #[test]
    fn an_arm_that_fails_when_slow_is_never_called_faster() {
        // Only the metric that decides.
        let options = Options { metrics: vec!["write.bw".to_owned()], ..Options::default() };
        let faster = |run: &Run| matches!(primary(run, &options).verdict, Verdict::Faster { .. });
        let (mut called, mut without_the_rule) = (0, 0);
        for (stop, runs) in [(SEQUENTIAL, 50), (FIXED, 150)] {
            for seed in 0..runs {
                let run = stopped(&fails_when_slow(seed, 0.3, stop), &options);
                called += u32::from(faster(&run));
                without_the_rule += u32::from(faster(&retries_as_first_attempts(run)));
            }
        }
        println!(
            "called faster in {called} of 200 runs, in {without_the_rule} where retries count as first attempts"
        );
        assert_eq!(called, 0);
        assert!(without_the_rule >= 20, "what the rule is there for: {without_the_rule}");
    }

    #[test]
    fn an_arm_that_seldom_fails_is_not_called_faster_either() {
        let options = Options { metrics: vec!["write.bw".to_owned()], ..Options::default() };
        for seed in 0..50 {
            // In 0.9^30 = 4 % of them nothing fails: those cannot be told from runs without failures.
            let found = primary(&fails_when_slow(seed, 0.1, FIXED), &options);
            let faster = matches!(found.verdict, Verdict::Faster { .. });
            assert!(!faster || found.failures.is_none(), "seed {seed}: {found:?}");
        }
    }

    /// Without what says that they are not: the failures are nobody's.
    fn retries_as_first_attempts(mut run: Run) -> Run {
        for trial in &mut run.trials {
            if let Status::Failed { kind, .. } = &mut trial.status {
                *kind = FailureKind::Outside;
            }
        }
        run
    }

    #[test]
    fn unequal_failures_leave_no_verdict_and_no_interval() {
        let rounds: Vec<u32> = (0..9).map(|n| 3 * n).collect();
        let run =
            retried(run_of(&Made { stop: FIXED, ..Made::default() }, 30), 1, &rounds, FailureKind::Passing);
        let found = judged(&run);
        assert_eq!((&found.verdict, found.effect, found.p), (&Verdict::NotComparable, None, None));
        let counts = found.failures.unwrap();
        assert_eq!((counts.baseline_failed, counts.baseline_trials), (0, 30));
        assert_eq!((counts.candidate_failed, counts.candidate_trials), (9, 30));
        assert!((counts.p.unwrap() - 0.003_906_25).abs() < 1e-12, "{counts:?}");
        assert_eq!(found.candidate.n, 21, "what was tried again is not in the values");
        let worst = primary(&run, &Options { failures: Some(FailureRule::Worst), ..Options::default() });
        assert_ne!(worst.verdict, Verdict::NotComparable);
        assert_eq!((worst.n, worst.effect.unwrap().low), (30, -1.0), "{:?}", worst.effect);
    }

    #[test]
    fn an_end_that_is_a_failure_is_infinite_also_where_values_have_no_ratio() {
        let mut run = run_of(&Made { stop: FIXED, ..Made::default() }, 30);
        run.trials[0].values[0].1 = 0.0;
        let run = retried(run, 1, &(0..9).map(|n| 3 * n + 1).collect::<Vec<_>>(), FailureKind::Passing);
        let worst = primary(&run, &Options { failures: Some(FailureRule::Worst), ..Options::default() });
        let difference = worst.difference.unwrap();
        assert!(difference.low == f64::NEG_INFINITY && difference.high.is_finite(), "{difference:?}");
        assert_eq!(worst.effect.unwrap().low, -1.0, "bandwidth cannot be negative");
    }

    #[test]
    fn a_lost_trial_of_the_last_rounds_is_no_early_stop() {
        let made = Made { effect: 0.3, stop: SEQUENTIAL, ..Made::default() };
        let mut run = run_of(&made, 30);
        let at = run.trials.iter().position(|trial| trial.round == 12 && trial.cell == 1).unwrap();
        run.trials[at] = failed(&run.trials[at], FailureKind::Passing);
        let told = |run: &Run| judged(run).caveats.contains(&crate::analyse::Caveat::StoppedEarly);
        assert!(!told(&run), "all its rounds were run");
        run.trials.retain(|trial| trial.round < 20);
        assert!(told(&run));
    }

    #[test]
    fn a_claim_that_failures_cannot_turn_stands() {
        let three = |cell| {
            let run = run_of(&Made { effect: 0.3, stop: FIXED, ..Made::default() }, 30);
            judged(&retried(run, cell, &[3, 9, 20], FailureKind::Passing))
        };
        assert_eq!(
            three(1).verdict,
            Verdict::Faster { beyond_delta: true },
            "three worst of 30 do not turn it"
        );
        assert_eq!(three(0).verdict, Verdict::Faster { beyond_delta: true }, "the baseline failed more");
        // Four rounds show it by Student's t, which has no value for a failure.
        let stop = SEQUENTIAL;
        let short = retried(run_of(&Made { stop, ..Made::default() }, 5), 1, &[2], FailureKind::Passing);
        assert!(!decided(&short, &Options::default()));
        assert_eq!(judged(&short).verdict, Verdict::NotComparable);
    }

    #[test]
    fn equal_failures_and_those_caused_outside_change_nothing() {
        let plain = run_of(&Made { stop: FIXED, ..Made::default() }, 30);
        let outside = retried(plain.clone(), 1, &[0, 1, 2, 3, 4, 5, 6, 7], FailureKind::Outside);
        assert_eq!(judged(&outside), judged(&plain));
        let both = retried(plain.clone(), 0, &[1, 7], FailureKind::Passing);
        let both = judged(&retried(both, 1, &[4, 7], FailureKind::Passing));
        assert_eq!(
            (&both.verdict, both.effect),
            (&Verdict::Faster { beyond_delta: true }, judged(&plain).effect)
        );
        assert_eq!(both.failures.map(|counts| (counts.baseline_failed, counts.p)), Some((2, Some(1.0))));
    }

    #[test]
    fn worst_values_are_on_the_bad_side_of_any_metric() {
        let run = run_of(&Made { effect: 0.0, stop: FIXED, ..Made::default() }, 30);
        let rounds: Vec<u32> = (0..25).collect();
        let run = retried(run, 1, &rounds, FailureKind::Passing);
        for metric in ["write.bw", "write.clat_ns.p99"] {
            let (primary_metric, failures) = (Some(metric.to_owned()), Some(FailureRule::Worst));
            let options = Options { primary: primary_metric, failures, ..Options::default() };
            assert_eq!(primary(&run, &options).verdict, Verdict::Slower { beyond_delta: true }, "{metric}");
        }
        let unpaired = Run { design: crate::record::Design { paired: false, ..run.design.clone() }, ..run };
        let options = Options { failures: Some(FailureRule::Worst), ..Options::default() };
        assert_eq!(primary(&unpaired, &options).verdict, Verdict::Slower { beyond_delta: true });
        let found = judged(&unpaired);
        assert_eq!(found.verdict, Verdict::NotComparable);
        assert!(
            (found.failures.unwrap().p.unwrap() - fisher_exact::two_sided((0, 30), (25, 30))).abs() < 1e-15
        );
    }

    #[test]
    fn a_run_stops_only_with_a_verdict_that_stands() {
        for seed in 0..60 {
            let run = fails_when_slow(seed, 0.2, SEQUENTIAL);
            for rule in [FailureRule::Compare, FailureRule::Worst] {
                let options = Options { failures: Some(rule), ..Options::default() };
                let run = stopped(&run, &options);
                let rounds = run.trials.iter().map(|trial| trial.round + 1).max();
                let open = |verdict| matches!(verdict, Verdict::Undecided { .. } | Verdict::NotComparable);
                assert!(rounds == Some(30) || !open(primary(&run, &options).verdict), "{seed} {rule:?}");
            }
        }
    }
}
