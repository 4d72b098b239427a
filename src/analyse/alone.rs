//! The interval of each row as if it were the only one that decides.
//!
//! Enters: the cases that share α. Leaves: in each deciding comparison the interval it would have with all of α. It must not touch
//! verdicts: those intervals do not hold together, so that no claim may rest on them.

use super::comparison::{Comparison, Role};
use super::draft::{Case, Draft, Setting};
use super::verdict;

/// Fills in [`Comparison::alone`] where several comparisons share α; `draft` compares one case. Comparisons are in the order of
/// their cases.
pub(super) fn fill(
    comparisons: &mut [Comparison],
    cases: &[Case],
    setting: &Setting,
    draft: impl Fn(&Setting, &Case) -> Draft,
) {
    if setting.family < 2 {
        return;
    }
    let setting = Setting { family: 1, ..*setting };
    let deciding =
        comparisons.iter_mut().zip(cases).filter(|(comparison, _)| comparison.role == Role::Primary);
    for (comparison, case) in deciding {
        let judged = verdict::judge(vec![draft(&setting, case)], &setting.stop);
        comparison.alone = judged.into_iter().next().and_then(|one| one.effect);
    }
}

#[cfg(test)]
mod tests {
    use super::super::made_up::{Made, run_of};
    use super::super::{Interval, Options, analyse};
    use super::*;
    use crate::record::{Run, StopRule};

    /// A run whose metrics are those of a job `a`, with a job `b` that decides beside it where `jobs` is 2.
    fn run(jobs: usize, stop: StopRule) -> Run {
        let mut run = run_of(&Made { stop, ..Made::default() }, 12);
        run.metrics.iter_mut().for_each(|metric| "a".clone_into(&mut metric.job));
        if jobs > 1 {
            let other = crate::record::Metric { job: "b".to_owned(), ..run.metrics[0].clone() };
            run.metrics.push(other);
            for trial in &mut run.trials {
                let value = trial.values[0].1;
                trial.values.push((4, value * (1.0 + 0.01 * f64::from((trial.round * 7 + trial.cell) % 5))));
            }
        }
        run
    }

    /// (effect, alone) of the first comparison that decides.
    fn first(run: &Run) -> (Interval, Option<Interval>) {
        let analysis = analyse(run, &Options { alone: true, ..Options::default() });
        let found = analysis.comparisons.into_iter().find(|c| c.role == Role::Primary).unwrap();
        (found.effect.unwrap(), found.alone)
    }

    #[test]
    fn alone_is_the_interval_of_a_run_with_one_row() {
        for stop in [StopRule::default(), StopRule { rounds: Some(12), ..StopRule::default() }] {
            let (by_itself, none) = first(&run(1, stop));
            let (together, alone) = first(&run(2, stop));
            assert_eq!(none, None, "one comparison has one interval");
            assert_eq!(alone, Some(by_itself));
            assert!(together.high - together.low > by_itself.high - by_itself.low);
        }
    }
}
