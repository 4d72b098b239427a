//! Tests of what is explained, whatever the rules.

use super::super::budget::{BudgetPart, Operation};
use super::super::{Options, Verdict, analyse};
use super::cause::{Cause, Grade, What};
use super::made_pair::{add, explained, ns, run_with};
use super::source::Source;
use super::*;
use crate::record::{Cell, Explains, Factor, HostFacts, Metric, Note, NoteKind, Trial};
use crate::units::{Better, Unit};

/// The two arms of `run_with`, unwatched and watched: cells are (watched, arm), and watching costs as many times the time.
fn watched_run(price: f64) -> Run {
    let mut run = run_with(&[]);
    run.id = Some(9);
    run.design.factors.insert(0, Factor::new("watched", vec!["no".to_owned(), "yes".to_owned()]));
    run.design.compare = 1;
    let factor = "watched".to_owned();
    run.design.explains =
        Some(Explains { run: 1, started_unix_ns: 0, seed: 1, factor, observers: Vec::new() });
    run.cells = [[0, 0], [0, 1], [1, 0], [1, 1]].map(|levels| Cell { levels: levels.to_vec() }).to_vec();
    let twins = run.trials.clone();
    run.trials.extend(twins.into_iter().map(|mut trial| {
        (trial.cell, trial.position) = (trial.cell + 2, trial.position + 2);
        trial.values[0].1 /= price;
        trial
    }));
    let is_watched = |cell: u32| cell > 1;
    add(&mut run, "workers.wall", |cell| [1.0, 2.0, price, 2.0 * price][cell as usize]);
    add(&mut run, "locks.lost", |_| 0.0);
    add(&mut run, "locks.at.rwsem_W.f", |cell| if cell == 3 { 0.8 } else { 0.0 });
    let metric = |name: &str| run.metrics.iter().position(|metric| metric.name == name).unwrap() as u32;
    let seen = ["locks.lost", "locks.at.rwsem_W.f"].map(metric);
    for trial in run.trials.iter_mut().filter(|trial| !is_watched(trial.cell)) {
        trial.values.retain(|(metric, _)| !seen.contains(metric));
    }
    run
}

/// The same with a second watched level, which costs five times the time and counts the device's flushes.
fn watched_twice() -> Run {
    let mut run = watched_run(1.0);
    run.design.factors[0].levels = ["no", "locks", "blocks"].map(str::to_owned).to_vec();
    run.cells.extend([[2, 0], [2, 1]].map(|levels| Cell { levels: levels.to_vec() }));
    let unwatched: Vec<Trial> = run.trials.iter().filter(|trial| trial.cell < 2).cloned().collect();
    run.trials.extend(unwatched.into_iter().map(|mut trial| {
        (trial.cell, trial.position) = (trial.cell + 4, trial.position + 4);
        trial.values.iter_mut().for_each(|(_, value)| *value /= 5.0);
        trial
    }));
    add(&mut run, "blocks.flushes", |cell| [0.0, 0.0, 0.0, 0.0, 0.0, 1e5][cell as usize]);
    add(&mut run, "blocks.write.q2c.mean", |_| 1e-4);
    let is_of_blocks: Vec<bool> =
        run.metrics.iter().map(|metric| metric.name.starts_with("blocks.")).collect();
    for trial in run.trials.iter_mut().filter(|trial| trial.cell < 4) {
        trial.values.retain(|(metric, _)| !is_of_blocks[*metric as usize]);
    }
    run
}

/// A program that runs for a second and with the candidate does half as much, by its rate.
fn timed(primary: &str) -> Run {
    let mut run = run_with(&[
        ("workers.wall", 1.0, 1.0),
        ("runtime", 1.0, 1.0),
        ("usr_cpu", 0.4, 0.2),
        ("sys_cpu", 0.4, 0.2),
        ("dev.flushes", 50_000.0, 50_000.0),
    ]);
    run.metrics[2].name = "something".to_owned();
    run.design.primary = Some(primary.to_owned());
    run
}

#[test]
fn of_trials_that_last_as_long_each_operation_is_explained() {
    let why = explained(&timed("write.iops"));
    let of = |rule: &str| why.causes.iter().find(|cause| cause.rule == rule);
    assert!(!why.uncounted && why.budget.is_some());
    assert!(of("processor_time").is_none(), "as much of a processor for each: {why:?}");
    assert!((of("storage_wait").unwrap().share.unwrap() - 1.0).abs() < 0.1, "{why:?}");
    let flushes = &of("more_flushes").unwrap().evidence[0];
    assert!((flushes.candidate / flushes.baseline - 2.0).abs() < 0.1, "{flushes:?}");
}

#[test]
fn of_trials_that_last_as_long_without_a_rate_no_time_is_told() {
    let mut run = timed("write.bw");
    add(&mut run, "locks.lost", |_| 0.0);
    add(&mut run, "locks.at.rwsem_W.f", |cell| if cell == 1 { 0.8 } else { 0.0 });
    let why = explained(&run);
    assert!(why.uncounted && why.budget.is_none() && why.unexplained_ns.is_none());
    assert!(why.causes.iter().all(|cause| cause.time.is_none()), "{why:?}");
}

#[test]
fn a_place_that_one_kernel_has_only_goes_with_the_difference() {
    let of = |releases: [&str; 2], baseline: f64| {
        let mut run = run_with(&[("locks.lost", 0.0, 0.0), ("locks.at.rwsem_W.f", baseline, 0.8)]);
        run.facts = releases
            .iter()
            .map(|release| {
                let mut facts = HostFacts::default();
                facts.set("kernel.release", *release);
                facts
            })
            .collect();
        run.trials.iter_mut().for_each(|trial| trial.facts = Some(trial.cell));
        let why = explained(&run);
        let lock = why.causes.iter().find(|cause| cause.rule == "lock_wait").unwrap();
        (lock.grade, lock.renamed, why.causes.iter().any(|cause| cause.rule == "storage_wait"))
    };
    // Then the sleep is told as a whole.
    assert_eq!(of(["5.10.0", "6.12.0"], 0.0), (Grade::GoesWith, true, true));
    assert_eq!(of(["5.10.0", "6.12.0"], 0.1), (Grade::AccountsFor, false, true), "both have it");
    assert_eq!(of(["6.12.0", "6.12.0"], 0.0), (Grade::AccountsFor, false, false));
}

#[test]
fn what_is_dear_to_watch_does_not_distort_what_others_saw() {
    let run = run_with(&[]);
    let (analysis, watched) = (analyse(&run, &Options::default()), watched_twice());
    let why = why(&run, &analysis, Some(&watched)).remove(0);
    let requests = request_times(&run, &analysis, Some(&watched));
    assert!(requests.len() == 1 && requests[0].distorted, "their times are of dear trials: {requests:?}");
    let watching = why.watching.clone().unwrap();
    assert!(!watching.distorted && watching.price.is_some_and(|price| price.abs() < 0.01), "{watching:?}");
    let lock = why.causes.iter().find(|cause| cause.rule == "lock_wait").unwrap();
    assert_eq!((lock.grade, ns(lock) / 100), (Grade::AccountsFor, 80), "{lock:?}");
    let flushes = why.causes.iter().find(|cause| cause.rule == "more_flushes").unwrap();
    let each = &flushes.evidence[0];
    assert_eq!(
        (each.baseline, each.candidate.round()),
        (0.0, 5.0),
        "by the operations of the same trial: {each:?}"
    );
}

#[test]
fn causes_small_changes_and_the_unexplained_add_up() {
    let run = run_with(&[
        ("usr_cpu", 0.1, 0.11),
        ("workers.run_wait", 0.05, 0.15),
        ("cpu.samples", 400.0, 600.0),
        ("cpu.at.copy", 0.1, 0.15),
        ("locks.lost", 0.0, 0.0),
        ("locks.at.rwsem_W.f", 0.0, 0.2),
        ("dev.flushes_per_op", 0.0, 1.0),
    ]);
    let analysis = analyse(&run, &Options::default());
    let why = explained(&run);
    assert_eq!((why.standing, why.budget, why.metric.as_str()), (Standing::Differs, Some(0), "write.bw"));
    let accounts = why.causes.iter().filter(|cause| cause.grade == Grade::AccountsFor);
    let named: f64 = accounts.clone().filter_map(Cause::estimate_ns).sum();
    let whole = analysis.budgets[0].total.difference_ns.estimate;
    let left = why.unexplained_ns.unwrap().estimate + why.unnamed_ns;
    assert!((named + left - whole).abs() < 1e-6 * whole, "{named} + {left} is not {whole}");
    // User time grew by 100 ns, less than δ of 10 µs.
    assert!((why.unnamed_ns - 100.0).abs() < 5.0, "{why:?}");
    let rules: Vec<&str> = why.causes.iter().map(|cause| cause.rule).collect();
    assert_eq!(rules[..5], ["storage_wait", "lock_wait", "processor_time", "waiting_to_run", "copying"]);
    assert_eq!((rules.len(), rules[5]), (6, "more_flushes"), "what has no time stands last");
    assert!(accounts.clone().zip(accounts.skip(1)).all(|(a, b)| a.size_ns() >= b.size_ns()));
}

#[test]
fn a_trifle_of_the_difference_is_no_cause() {
    // 20 s more of sleep; 0.3 s of processor time are above δ of the baseline, and 1.5 % of the difference.
    let why = explained(&run_with(&[("workers.wall", 1.0, 21.5), ("sys_cpu", 0.3, 0.6)]));
    let rules: Vec<&str> = why.causes.iter().map(|cause| cause.rule).collect();
    assert_eq!(rules, ["storage_wait"], "{why:?}");
    assert!((why.unnamed_ns - 3000.0).abs() < 60.0 && why.unsure.is_empty(), "{why:?}");
}

#[test]
fn a_large_part_that_is_not_sure_is_named_with_its_interval() {
    let mut run = run_with(&[("workers.run_wait", 0.05, 0.05)]);
    let metric = run.metrics.iter().position(|metric| metric.name == "workers.run_wait").unwrap() as u32;
    // In half of the rounds the candidate does not wait, in the others much.
    for trial in run.trials.iter_mut().filter(|trial| trial.cell == 1) {
        let value = [0.0, 0.0, 0.9, 0.9, 0.0, 0.0, 0.9, 0.9][trial.round as usize];
        trial.values.iter_mut().filter(|(known, _)| *known == metric).for_each(|(_, v)| *v = value);
    }
    let why = explained(&run);
    assert!(why.causes.iter().all(|cause| cause.rule != "waiting_to_run"), "{why:?}");
    let unsure = why.unsure.iter().find(|unsure| unsure.part == BudgetPart::WaitingToRun).unwrap();
    let of = unsure.difference_ns;
    assert!(of.low < 0.0 && of.high > 0.0 && of.estimate.abs() > 1000.0 && !unsure.rest, "{why:?}");
}

#[test]
fn without_operations_times_are_those_of_a_trial() {
    let mut run = run_with(&[("locks.lost", 0.0, 0.0), ("locks.at.rwsem_W.f", 0.0, 0.8)]);
    run.metrics[2].name = "something".to_owned();
    let why = explained(&run);
    let first = &why.causes[0];
    assert_eq!((first.rule, first.grade), ("lock_wait", Grade::AccountsFor), "{why:?}");
    assert!((first.size_ns() - 8e8).abs() < 6e6, "{first:?}");
    assert_eq!(first.evidence[0].metric, "locks.at.rwsem_W.f a trial");
}

/// A job `a` beside a job `b` that does as much again `times` over; what observers see is of both.
fn beside_another(times: f64, at: &[(&str, f64, f64)]) -> Run {
    let mut run = run_with(at);
    let is_watched = |name: &str| name.starts_with("waits.");
    run.metrics
        .iter_mut()
        .filter(|metric| !is_watched(&metric.name))
        .for_each(|metric| metric.job = "a".to_owned());
    let metric = |name: &str, unit: Unit| Metric::new("b", name, unit, Better::Higher);
    let done = run.metric_index(&metric("write.total_ios", Unit::Count));
    run.trials.iter_mut().for_each(|trial| trial.values.push((done, 100_000.0 * times)));
    run
}

#[test]
fn what_is_seen_of_the_whole_trial_is_for_each_operation_of_all_jobs() {
    let at = [("waits.lost", 0.0, 0.0), ("waits.at.jbd2_log_wait_commit", 0.2, 0.9)];
    let why = explained(&beside_another(3.0, &at));
    let cause = why.causes.iter().find(|cause| cause.rule == "commit_wait").expect("the commit");
    assert_eq!((cause.grade, cause.of_all_jobs), (Grade::GoesWith, true), "{cause:?}");
    assert!((ns(cause) - 1750).abs() < 20, "0.7 s over 400,000 operations: {cause:?}");
    assert_eq!(cause.evidence[0].metric, "waits.at.jbd2_log_wait_commit an operation of all jobs");
    // An operation of the job takes 20 µs at most: 35 µs more are those of another job.
    let at = [at[0], ("waits.at.jbd2_log_wait_commit", 0.2, 14.2)];
    let why = explained(&beside_another(3.0, &at));
    assert!(why.causes.iter().all(|cause| cause.rule != "commit_wait"), "{why:?}");
}

#[test]
fn where_nothing_differs_nothing_is_explained() {
    let mut same = run_with(&[("locks.lost", 0.0, 0.0), ("locks.at.mutex.f", 0.0, 0.5)]);
    for trial in &mut same.trials {
        trial.values[0].1 = 1e8 * (1.0 + 0.0001 * f64::from(trial.round));
    }
    let why = explained(&same);
    assert_eq!((why.standing, why.causes.len(), why.unexplained_ns), (Standing::NothingDiffers, 0, None));
    let mut aa = run_with(&[("sys_cpu", 0.3, 0.9)]);
    aa.aa = true;
    let why = explained(&aa);
    assert_eq!((why.standing, why.causes.len()), (Standing::NothingDiffers, 0), "an arm against itself");
}

#[test]
fn what_is_not_decided_is_not_explained_yet() {
    let run = run_with(&[]);
    let mut analysis = analyse(&run, &Options::default());
    let mut standing = |verdict: Verdict| {
        analysis.comparisons[0].verdict = verdict;
        let why = &why(&run, &analysis, None)[0];
        assert!(why.causes.is_empty() && why.watching.is_none());
        why.standing
    };
    let undecided = Verdict::Undecided { rounds_to_claim: None, rounds_for_no_difference: None };
    assert_eq!(standing(undecided), Standing::NotDecided);
    assert_eq!(standing(Verdict::SoFar { rounds: 8, of: 10 }), Standing::NotDecided);
    assert_eq!(standing(Verdict::TooFew { n: 3 }), Standing::NotJudged);
    assert_eq!(standing(Verdict::NotComparable), Standing::NotJudged);
    assert_eq!(standing(Verdict::NoDifference { real_but_below_delta: true }), Standing::NothingDiffers);
}

#[test]
fn results_that_were_not_measured_in_rounds_have_no_why() {
    let mut run = run_with(&[]);
    run.design.paired = false;
    assert_eq!(why(&run, &analyse(&run, &Options::default()), None), []);
}

#[test]
fn a_run_that_watched_the_same_cells_names_the_places() {
    let (run, watched) = (run_with(&[]), watched_run(1.02));
    let analysis = analyse(&run, &Options::default());
    let why = &why(&run, &analysis, Some(&watched))[0];
    let watching = why.watching.as_ref().unwrap();
    assert_eq!((watching.rounds, watching.run, watching.distorted), (8, Some(9), false));
    // 2 % more time is 1 − 1/1.02 less bandwidth, which decides.
    assert!(watching.price.is_some_and(|price| (price - 0.0196).abs() < 0.0005), "{watching:?}");
    let first = &why.causes[0];
    assert_eq!((first.rule, first.grade, first.distorted), ("lock_wait", Grade::AccountsFor, false));
    assert!((ns(first) - 8000).abs() < 60, "{first:?}");
}

#[test]
fn times_of_a_distorted_run_are_no_parts_of_the_sum() {
    let (run, watched) = (run_with(&[]), watched_run(1.2));
    let analysis = analyse(&run, &Options::default());
    let why = &why(&run, &analysis, Some(&watched))[0];
    assert!(why.watching.as_ref().is_some_and(|watching| watching.distorted));
    let lock = why.causes.iter().find(|cause| cause.rule == "lock_wait").unwrap();
    assert_eq!((lock.grade, lock.part, lock.share, lock.distorted), (Grade::GoesWith, None, None, true));
    assert_eq!(why.causes[0].rule, "storage_wait", "the sleep itself was measured unwatched: {why:?}");
}

#[test]
fn times_are_no_parts_of_the_sum_where_watching_distorts() {
    let mut run = run_with(&[]);
    add(&mut run, "locks.lost", |_| 0.0);
    add(&mut run, "locks.at.rwsem_W.f", |cell| 0.8 * f64::from(cell));
    let distorted = |run: &Run| {
        let why = &why(run, &analyse(run, &Options::default()), None)[0];
        let lock = why.causes.iter().find(|cause| cause.rule == "lock_wait").unwrap();
        (why.watching.as_ref().unwrap().distorted, lock.grade)
    };
    assert_eq!(distorted(&run), (false, Grade::AccountsFor));
    for trial in &mut run.trials {
        trial.notes.push(Note { text: "too slow".to_owned(), kind: NoteKind::Distorting });
    }
    assert_eq!(distorted(&run), (true, Grade::GoesWith));
}

#[test]
fn a_copy_that_distorted_trials_saw_shrink_is_no_cause() {
    let mut run = run_with(&[("cpu.samples", 400.0, 600.0), ("cpu.at.copy", 0.25, 0.05)]);
    let copying = |why: &Why| {
        let is_copying = |cause: &&Cause| cause.what == What::Copying;
        let told = why.causes.iter().find(is_copying).map(|cause| cause.grade);
        (told, why.smaller.iter().find(is_copying).map(|cause| (ns(cause) / 100, cause.distorted)))
    };
    assert_eq!(copying(&explained(&run)), (Some(Grade::AccountsFor), None));
    for trial in &mut run.trials {
        trial.notes.push(Note { text: "too slow".to_owned(), kind: NoteKind::Distorting });
    }
    assert_eq!(copying(&explained(&run)), (None, Some((-20, true))), "it goes against the difference");
}

#[test]
fn what_others_did_beside_the_work_is_no_part_of_the_sum() {
    for kind in [NoteKind::WorkerThreads, NoteKind::Ramp] {
        let mut run = run_with(&[("locks.lost", 0.0, 0.0), ("locks.at.rwsem_W.f", 0.0, 0.8)]);
        for trial in run.trials.iter_mut().filter(|trial| trial.cell == 1) {
            trial.notes.push(Note { text: "more than the operations".to_owned(), kind });
        }
        let why = explained(&run);
        let lock = why.causes.iter().find(|cause| cause.rule == "lock_wait").unwrap();
        assert_eq!((lock.grade, lock.part), (Grade::GoesWith, None), "{kind:?}");
    }
}

#[test]
fn what_includes_a_ramp_is_divided_by_no_operations() {
    let mut run = run_with(&[
        ("write.io_bytes", 4e8, 4e8),
        ("dev.write_bytes", 4e8, 8e8),
        ("dev.write_ios", 1e5, 4e5),
        ("dev.flushes_per_op", 0.0, 1.0),
        ("dev.flushes", 0.0, 100.0),
        ("dev.write_time", 0.5, 1.2),
    ]);
    let of_device = ["device_bytes", "more_flushes"];
    let rules = |run: &Run| {
        let causes = explained(run).causes;
        let found = |rule: &&&str| causes.iter().any(|cause| cause.rule == **rule);
        let shown = causes.iter().flat_map(|cause| &cause.evidence);
        let of_requests = shown.filter(|shown| shown.metric.starts_with("time of the device")).count();
        let smaller = causes.iter().any(|cause| cause.rule == "smaller_requests");
        (of_device.iter().filter(found).count(), of_requests, smaller)
    };
    assert_eq!(rules(&run), (2, 1, true));
    for trial in run.trials.iter_mut().filter(|trial| trial.cell == 0) {
        trial.notes.push(Note { text: "ramp_time".to_owned(), kind: NoteKind::Ramp });
    }
    assert_eq!(rules(&run), (0, 0, true), "the size of a request needs no operations");
}

#[test]
fn what_a_trial_did_is_divided_by_what_all_its_jobs_asked() {
    let mut run = run_with(&[("dev.write_bytes", 10.1, 10.04)]);
    for (job, bytes) in [("a", [0.1, 0.04]), ("b", [10.0, 10.0])] {
        let metric = Metric::new(job, "write.io_bytes", Unit::Bytes, Better::Higher);
        let at = run.metric_index(&metric);
        run.trials.iter_mut().for_each(|trial| trial.values.push((at, bytes[trial.cell as usize])));
    }
    let table = Table::new(&run);
    let source = Source {
        table: &table,
        cells: [0, 1],
        beside: None,
        job: "a",
        operation: Operation::Counted,
        rate: None,
        ramp: false,
    };
    let ratio =
        source.ratio(&["dev.write_bytes"], &["write.io_bytes"], "amplification", Unit::Count).unwrap();
    assert!((ratio.baseline - 1.0).abs() < 0.01 && (ratio.candidate - 1.0).abs() < 0.01, "{ratio:?}");
}

#[test]
fn waits_that_were_forgotten_are_no_small_share_of_the_sum() {
    let of = |forgotten: f64| {
        let lost =
            [("waits.lost", 0.0, 1.0), ("waits.sleeps", 1e5, 1e5), ("waits.lost_time", 0.0, forgotten)];
        let seen = [("waits.sleep_time", 0.1, 0.8), ("waits.at.__iomap_dio_rw", 0.1, 0.8)];
        let why = explained(&run_with(&[&lost[..], &seen].concat()));
        why.causes.iter().find(|cause| cause.rule == "sleep_place").unwrap().grade
    };
    assert_eq!((of(0.004), of(0.2)), (Grade::AccountsFor, Grade::GoesWith), "one event was lost");
}

#[test]
fn what_another_machine_watched_is_no_part_of_the_sum() {
    let run = run_with(&[]);
    let analysis = analyse(&run, &Options::default());
    let of = |walls: [f64; 2]| {
        let mut watched = watched_run(1.0);
        add(&mut watched, "workers.wall", |cell| walls[cell as usize % 2]);
        let why = why(&run, &analysis, Some(&watched)).remove(0);
        let lock = why.causes.iter().find(|cause| cause.rule == "lock_wait").unwrap();
        (lock.grade, lock.part.is_some(), why.causes.iter().any(|cause| cause.rule == "storage_wait"))
    };
    assert_eq!(of([1.1, 2.2]), (Grade::AccountsFor, true, false));
    assert_eq!(of([1.5, 2.5]), (Grade::GoesWith, false, true), "slower");
    assert_eq!(of([1.0, 1.5]), (Grade::GoesWith, false, true), "half of the difference is left");
}

#[test]
fn a_watched_run_of_other_cells_is_left_alone() {
    let (run, mut watched) = (run_with(&[]), watched_run(1.0));
    watched.design.factors[1].levels[1] = "2".to_owned();
    let analysis = analyse(&run, &Options::default());
    let why = &why(&run, &analysis, Some(&watched))[0];
    assert_eq!(why.watching, None);
    assert!(why.causes.iter().all(|cause| cause.rule != "lock_wait"), "{why:?}");
}
