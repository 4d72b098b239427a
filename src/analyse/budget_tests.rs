//! Tests of where the time of an operation went.

use super::budget::{Budget, BudgetPart, Operation};
use super::made_up::{Made, run_of};
use super::{Options, analyse};
use crate::record::{Metric, Run};
use crate::units::{Better, Unit};

/// What a worker was counted for in one second of 100,000 operations; the operations of a trial are as many times more as `work` says.
#[derive(Clone, Copy)]
struct Second {
    user: f64,
    kernel: f64,
    run_wait: Option<f64>,
    storage: Option<f64>,
    work: f64,
}

const BASE: Second = Second { user: 0.1, kernel: 0.3, run_wait: Some(0.05), storage: Some(0.5), work: 1.0 };

/// A run of 10 rounds whose workers lived for a second in each trial of the baseline, and for as long as `wall` with the candidate.
fn run_with(base: Second, candidate: Second, wall: f64) -> Run {
    let mut run = run_of(&Made::default(), 10);
    let seconds = |name: &str| Metric::new("", name, Unit::Seconds, Better::Lower);
    let names =
        ["workers.wall", "usr_cpu", "sys_cpu", "workers.run_wait", "workers.storage_wait"].map(seconds);
    run.metrics.extend(names);
    for trial in &mut run.trials {
        let (of, wall) = if trial.cell == 0 { (base, 1.0) } else { (candidate, wall) };
        // Each round is a little longer than the one before, in both arms and all parts alike.
        let noise = 1.0 + 0.001 * f64::from(trial.round);
        trial.values[2].1 = 100_000.0 * of.work;
        let mut add = |metric: u32, value: f64| trial.values.push((metric, value * of.work * noise));
        add(4, wall);
        add(5, of.user);
        add(6, of.kernel);
        of.run_wait.into_iter().for_each(|value| add(7, value));
        of.storage.into_iter().for_each(|value| add(8, value));
    }
    run
}

fn only(run: &Run) -> Budget {
    let mut found = analyse(run, &Options::default()).budgets;
    assert_eq!(found.len(), 1);
    found.remove(0)
}

fn part(budget: &Budget, part: BudgetPart) -> Option<(f64, f64, f64)> {
    let (_, line) = budget.parts.iter().find(|(known, _)| *known == part)?;
    Some((line.baseline_ns.round(), line.candidate_ns.round(), line.difference_ns.estimate))
}

#[test]
fn the_parts_add_up_to_the_difference() {
    let slower = Second { kernel: 0.5, storage: Some(1.1), ..BASE };
    let budget = only(&run_with(BASE, slower, 1.8));
    assert_eq!((budget.operation, budget.rounds), (Operation::Counted, 10));
    let near = |got: f64, want: f64| (got - want).abs() < 0.01 * want.abs() + 1e-6;
    assert!(near(budget.total.difference_ns.estimate, 8000.0), "{budget:?}");
    assert!(near(part(&budget, BudgetPart::Kernel).unwrap().2, 2000.0), "{budget:?}");
    assert!(near(part(&budget, BudgetPart::WaitingForStorage).unwrap().2, 6000.0), "{budget:?}");
    assert!(part(&budget, BudgetPart::User).unwrap().2.abs() < 1e-6, "{budget:?}");
    assert_eq!(budget.parts[0].0, BudgetPart::WaitingForStorage, "the largest comes first");
    assert!(budget.unexplained_ns.estimate.abs() < 1.0, "{budget:?}");
    let interval = budget.total.difference_ns;
    assert!(interval.low <= interval.estimate && interval.estimate <= interval.high);
    // δ of 2 % of 10 µs.
    assert!(near(budget.least_ns, 200.0), "{budget:?}");
    assert_eq!(budget.in_flight, None);
}

#[test]
fn twice_the_work_in_twice_the_time_is_no_difference() {
    let budget = only(&run_with(BASE, Second { work: 2.0, ..BASE }, 1.0));
    assert!(budget.total.difference_ns.estimate.abs() < 1e-6, "{budget:?}");
    assert!(budget.parts.iter().all(|(_, line)| line.difference_ns.estimate.abs() < budget.least_ns));
}

#[test]
fn few_rounds_of_slow_operations_are_judged_by_t() {
    // 10 ms an operation: differences of a million ns are none of a failed trial.
    let mut run = run_with(Second { work: 1.0, ..BASE }, Second { kernel: 0.5, ..BASE }, 1.2);
    run.trials.retain(|trial| trial.round < 5);
    run.trials.iter_mut().for_each(|trial| trial.values[2].1 = 100.0);
    let budget = only(&run);
    let total = budget.total.difference_ns;
    assert!((total.estimate - 2e6).abs() < 2e4 && total.low > 1.9e6 && total.high < 2.1e6, "{budget:?}");
}

#[test]
fn what_nobody_counts_is_part_of_the_sleep() {
    let without = Second { run_wait: None, storage: None, ..BASE };
    let budget = only(&run_with(without, Second { kernel: 0.4, ..without }, 1.2));
    assert!(budget.asleep.with_waiting_for_storage && budget.asleep.with_waiting_to_run);
    let parts: Vec<BudgetPart> = budget.parts.iter().map(|(part, _)| *part).collect();
    assert_eq!(parts.len(), 3, "{parts:?}");
    // 1 s − 0.4 s, of 100,000 operations in a median round.
    assert_eq!(part(&budget, BudgetPart::Asleep).unwrap().0, (6000.0_f64 * 1.0045).round());
    // One arm with a count and one without is as if neither had it.
    let budget = only(&run_with(BASE, Second { storage: None, ..BASE }, 1.0));
    assert!(budget.asleep.with_waiting_for_storage && !budget.asleep.with_waiting_to_run);
}

#[test]
fn a_section_with_a_pace_sleeps_for_its_own_pauses_too() {
    let mut run = run_with(BASE, BASE, 1.0);
    assert!(!only(&run).asleep.with_pauses);
    run.design.paced = vec!["w".to_owned()];
    assert!(only(&run).asleep.with_pauses, "the only section has no name in a row");
}

#[test]
fn more_processor_time_than_the_workers_lived_is_unexplained() {
    let helped = Second { kernel: 0.9, ..BASE };
    let budget = only(&run_with(BASE, helped, 1.0));
    assert_eq!(part(&budget, BudgetPart::Asleep).unwrap().1, 0.0);
    // 0.9 + 0.1 + 0.05 + 0.5 s of a worker that lived for 1 s.
    assert!((budget.unexplained_ns.estimate + 5500.0).abs() < 60.0, "{budget:?}");
}

#[test]
fn of_a_few_ticks_user_and_kernel_time_are_not_told_apart() {
    let short = Second { user: 0.02, kernel: 0.04, ..BASE };
    let budget = only(&run_with(short, Second { user: 0.05, kernel: 0.2, ..BASE }, 1.0));
    let parts = [BudgetPart::User, BudgetPart::Kernel].map(|kind| part(&budget, kind));
    assert_eq!(parts, [None, None]);
    assert!((part(&budget, BudgetPart::Processor).unwrap().2 - 1900.0).abs() < 20.0, "{budget:?}");
    assert!(part(&only(&run_with(BASE, BASE, 1.0)), BudgetPart::Processor).is_none());
}

#[test]
fn with_more_in_flight_the_latency_stands_beside_it() {
    let mut run = run_with(BASE, BASE, 1.0);
    run.metrics[3].name = "write.clat_ns.mean".to_owned();
    for trial in &mut run.trials {
        trial.values[3].1 = if trial.cell == 0 { 40_000.0 } else { 80_000.0 };
    }
    let in_flight = only(&run).in_flight.unwrap();
    assert!((in_flight.baseline - 4.0).abs() < 0.05 && (in_flight.candidate - 8.0).abs() < 0.1);
    assert!((in_flight.latency.difference_ns.estimate - 40_000.0).abs() < 1.0, "{in_flight:?}");
    run.trials.iter_mut().for_each(|trial| trial.values[3].1 = 9_000.0);
    assert_eq!(only(&run).in_flight, None);
}

#[test]
fn without_operations_it_is_the_time_of_a_trial() {
    let mut run = run_with(BASE, BASE, 1.2);
    run.metrics[2].name = "something".to_owned();
    let budget = only(&run);
    assert_eq!((budget.operation, budget.rate), (Operation::Trial, None));
    assert!((budget.total.baseline_ns - 1e9).abs() < 1e7);
}

/// A program that runs for a second in both arms, and with the candidate does twice as much, by a rate that it prints.
fn timed(primary: &str) -> Run {
    let twice = Second { user: 0.2, kernel: 0.6, ..BASE };
    let mut run = run_with(BASE, twice, 1.0);
    run.design.primary = Some(primary.to_owned());
    run.metrics[2].name = "runtime".to_owned();
    for trial in &mut run.trials {
        let noise = 1.0 + 0.001 * f64::from(trial.round);
        trial.values[1].1 = 50_000.0 * f64::from(trial.cell + 1) / noise;
        trial.values[2].1 = 1.0 * noise;
    }
    run
}

#[test]
fn trials_that_last_as_long_are_counted_by_their_rate() {
    let budget = only(&timed("write.iops"));
    assert_eq!((budget.operation, budget.rate.as_deref()), (Operation::Counted, Some("write.iops")));
    // Each of 50,000 and of 100,000 operations took as much of a processor; the sleep of each is half as long or less.
    assert!((part(&budget, BudgetPart::User).unwrap().2).abs() < 10.0, "{budget:?}");
    assert!((budget.total.difference_ns.estimate + 10_000.0).abs() < 100.0, "{budget:?}");
}

#[test]
fn trials_that_last_as_long_and_have_no_rate_say_nothing_of_operations() {
    assert_eq!(only(&timed("write.bw")).operation, Operation::Unknown, "of bytes");
    let mut counted = timed("write.iops");
    counted.metrics[0].name = "operations".to_owned();
    assert_eq!((only(&counted).operation, only(&counted).rate), (Operation::Counted, None));
    let mut named = timed("write.iops");
    named.metrics[1] = Metric { name: "tps".to_owned(), unit: Unit::Count, ..named.metrics[1].clone() };
    named.design.primary = Some("tps".to_owned());
    assert_eq!(only(&named).rate.as_deref(), Some("tps"));
}

#[test]
fn a_run_without_counts_or_with_too_few_rounds_has_none() {
    let none = |run: &Run| assert_eq!(analyse(run, &Options::default()).budgets, []);
    none(&run_of(&Made::default(), 10));
    none(&run_of(&Made { paired: false, ..Made::default() }, 10));
    let mut short = run_with(BASE, BASE, 1.0);
    short.trials.retain(|trial| trial.round < 3);
    none(&short);
}

#[test]
fn counts_of_workers_are_no_rows_unless_they_are_asked_for() {
    let run = run_with(BASE, Second { run_wait: Some(0.07), ..BASE }, 1.1);
    let rows = |options: &Options| {
        let all = analyse(&run, options).comparisons;
        all.iter().filter(|c| c.metric.name.starts_with("workers.")).count()
    };
    assert_eq!(rows(&Options::default()), 0);
    assert_eq!(rows(&Options { metrics: vec!["workers".to_owned()], ..Options::default() }), 3);
    assert_eq!(rows(&Options { all_metrics: true, ..Options::default() }), 3);
}
