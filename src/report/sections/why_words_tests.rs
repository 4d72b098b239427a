//! Tests of the lines that say why two arms differ.

use super::why_latency;
use super::why_words::{Room, brief, caption, causes, lines_of, unwatched_words};
use crate::analyse::{
    Asleep, Budget, BudgetLine, BudgetPart, Cause, Evidence, Grade, Interval, LatencyPart, OfRequests,
    Operation, RequestStage, RowKey, Standing, Unsure, Watching, What, Why,
};
use crate::record::Direction;
use crate::report::words::{NBSP, Names};
use crate::units::Unit;

fn names() -> Names<'static> {
    Names::of_factor("direct")
}

fn cause(grade: Grade, what: What, ns: Option<f64>) -> Cause {
    let known = |estimate: f64| Interval { estimate, low: estimate - 1.0, high: estimate + 1.0 };
    let time = ns.map(|ns| BudgetLine { baseline_ns: 0.0, candidate_ns: ns, difference_ns: known(ns) });
    let share = ns.map(|ns| ns / 10_000.0).filter(|_| grade == Grade::AccountsFor);
    Cause {
        rule: "rule",
        grade,
        what,
        part: None,
        time,
        of_all_jobs: false,
        share,
        distorted: false,
        renamed: false,
        evidence: Vec::new(),
    }
}

fn explained(causes: Vec<Cause>) -> Why {
    Why {
        judged: None,
        row: RowKey { levels: Vec::new(), job: String::new() },
        metric: "write.bw".to_owned(),
        baseline: "0".to_owned(),
        candidate: "1".to_owned(),
        standing: Standing::Differs,
        is_better: false,
        budget: None,
        uncounted: false,
        of_mean: false,
        latency: Vec::new(),
        requests: OfRequests::default(),
        slowest: None,
        watching: None,
        causes,
        unnamed_ns: 0.0,
        unsure: Vec::new(),
        smaller: Vec::new(),
        storage: None,
        perhaps_served: false,
        woken: None,
        unexplained_ns: None,
    }
}

/// Where the time of an operation is as long with the baseline, and so much more with the candidate.
fn budget(baseline_ns: f64, ns: f64) -> Budget {
    let difference_ns = Interval { estimate: ns, low: ns - 1.0, high: ns + 1.0 };
    Budget {
        row: RowKey { levels: Vec::new(), job: String::new() },
        baseline: "0".to_owned(),
        candidate: "1".to_owned(),
        operation: Operation::Counted,
        rate: None,
        rounds: 8,
        total: BudgetLine { baseline_ns, candidate_ns: baseline_ns + ns, difference_ns },
        parts: Vec::new(),
        unexplained_ns: Interval { estimate: 0.0, low: 0.0, high: 0.0 },
        asleep: Asleep { with_waiting_to_run: false, with_waiting_for_storage: true, with_pauses: false },
        least_ns: 0.02 * baseline_ns,
        in_flight: None,
        bytes: None,
    }
}

fn room(causes: usize) -> Room {
    Room { causes, lines: 11, watching: true, sleep: false, hint: true }
}

fn told(why: &Why, most: usize) -> Vec<String> {
    let (lines, _) = causes(why, None, &names(), room(most));
    lines.into_iter().map(|line| line.replace(NBSP, " ")).collect()
}

fn asleep() -> What {
    let with = Asleep { with_waiting_to_run: false, with_waiting_for_storage: true, with_pauses: false };
    What::Asleep { rest: false, with }
}

#[test]
fn a_cause_has_its_time_its_share_and_the_word_of_its_grade() {
    let served = What::PageCache { arm: "0".to_owned(), direction: Direction::Write };
    let shown = Evidence {
        metric: "dev.write_bytes for each byte asked".to_owned(),
        unit: Unit::Count,
        baseline: 0.0,
        candidate: 1.0,
        difference: None,
    };
    let lock = What::Lock { kind: "rwsem_W".to_owned(), caller: "f".to_owned(), spins: false };
    let why = explained(vec![
        cause(Grade::AccountsFor, asleep(), Some(9600.0)),
        cause(Grade::AccountsFor, What::KernelTime { rest: false }, Some(-300.0)),
        Cause { distorted: true, ..cause(Grade::GoesWith, lock, Some(5000.0)) },
        Cause { evidence: vec![shown], ..cause(Grade::GoesWith, served, None) },
        cause(Grade::May, What::SlowerProcessor, None),
    ]);
    assert_eq!(
        told(&why, usize::MAX),
        [
            "+9.60 µs (96 %): asleep (storage, locks, others)",
            "−300 ns (−3 %): kernel CPU",
            "goes with: the page cache serves the writes of direct=0 (dev.write_bytes for each byte asked 0 → 1.00)",
            "goes with: waits for rwsem:W at f, +5.00 µs an operation, distorted",
            "may be: a slower processor, by its clock: user and kernel CPU grew alike",
        ]
    );
}

#[test]
fn parts_that_cancel_each_other_have_no_shares() {
    let why = explained(vec![
        cause(Grade::AccountsFor, asleep(), Some(-24_000.0)),
        cause(Grade::AccountsFor, What::UserTime { rest: false }, Some(22_000.0)),
    ]);
    assert_eq!(told(&why, 2)[1], "+22.0 µs: user CPU");
    assert!(!brief(&why, None, &names()).contains('%'));
}

#[test]
fn parts_of_the_sum_come_first_the_hidden_ones_summed() {
    let time = |ns: f64| cause(Grade::AccountsFor, What::UserTime { rest: false }, Some(ns));
    let mut all: Vec<Cause> = [26_990.0, 21_410.0, 13_330.0, -2510.0].map(time).to_vec();
    all.push(cause(Grade::GoesWith, What::MoreFlushes, None));
    all.push(cause(Grade::GoesWith, What::QueueDepth, None));
    let known = |estimate: f64| Interval { estimate, low: estimate, high: estimate };
    let why = Why { unexplained_ns: Some(known(-640.0)), ..explained(all) };
    let budget = budget(40_000.0, 58_580.0);
    let (lines, hidden) = causes(&why, Some(&budget), &names(), room(2));
    let lines: Vec<String> = lines.into_iter().map(|line| line.replace(NBSP, " ")).collect();
    assert!(lines[0].starts_with("+27.0 µs") && lines[1].starts_with("+21.4 µs"), "{lines:?}");
    assert_eq!(
        lines[2..],
        ["2 more causes: +10.8 µs (--verbose); unexplained: −0.6 µs", "goes with: more flushes"]
    );
    assert_eq!(hidden, 3);
}

#[test]
fn what_answers_the_question_comes_first() {
    let device = What::SlowerDevice { direction: Direction::Read };
    let why = explained(vec![
        cause(Grade::AccountsFor, asleep(), Some(9600.0)),
        cause(Grade::GoesWith, What::MoreFlushes, None),
        cause(Grade::GoesWith, device, None),
    ]);
    let first = "goes with: the same read requests take longer: it is the device, not the software";
    assert_eq!(told(&why, 3)[0], first);
    assert_eq!(told(&why, 3).len(), 3);
}

#[test]
fn a_cause_whose_figures_read_the_same_is_not_told() {
    let shown = Evidence {
        metric: "dev.flushes an operation".to_owned(),
        unit: Unit::Count,
        baseline: 0.00001,
        candidate: 0.00002,
        difference: None,
    };
    let why =
        explained(vec![Cause { evidence: vec![shown], ..cause(Grade::GoesWith, What::MoreFlushes, None) }]);
    assert_eq!(told(&why, 3), ["no part of it differs so that it could be named"]);
}

#[test]
fn the_head_line_has_both_medians_and_the_difference() {
    let why = explained(Vec::new());
    let mut budget = budget(843_000.0, -92_000.0);
    budget.total.candidate_ns = 625_000.0;
    let said = caption(&why, Some(&budget), &names()).replace(NBSP, " ");
    let expected = "why: direct=0 → direct=1: workers' time an operation 843 µs → 625 µs (typical difference in a round −92 µs)";
    assert_eq!(said, format!("{expected} although it is slower"));
    let why = Why { is_better: true, ..why };
    assert_eq!(caption(&why, Some(&budget), &names()).replace(NBSP, " "), expected);
    budget.total.candidate_ns = 750_000.0;
    let said = caption(&why, Some(&budget), &names()).replace(NBSP, " ");
    assert!(said.ends_with("workers' time an operation 843 µs → 750 µs, −92 µs"), "{said}");
}

#[test]
fn no_cause_is_claimed_of_a_time_that_moves_against_the_verdict() {
    let waiting = cause(Grade::AccountsFor, What::WaitingToRun, Some(9300.0));
    let known = Interval { estimate: 900.0, low: 800.0, high: 1000.0 };
    let why = Why { unexplained_ns: Some(known), ..explained(vec![waiting]) };
    let said = |why: &Why, ns: f64| brief(why, Some(&budget(2000.0, ns)), &names()).replace(NBSP, " ");
    assert_eq!(
        said(&why, 10_000.0),
        "direct=1: time an operation +10.00 µs: 93 % waiting to run (for a processor); unexplained +0.90 µs"
    );
    let faster = Why { is_better: true, ..why };
    assert_eq!(said(&faster, 10_000.0), "direct=1: time an operation +10.00 µs although it is faster");
    let larger = Budget { bytes: Some([4096.0, 65536.0]), ..budget(2000.0, 10_000.0) };
    assert_eq!(
        brief(&faster, Some(&larger), &names()).replace(NBSP, " "),
        "direct=1: time an operation +10.00 µs although it is faster; an operation is 16 times as large: a MiB takes \
         512 µs → 192 µs"
    );
}

#[test]
fn what_is_small_is_named_behind_the_rest_that_it_is_in() {
    let copying = cause(Grade::AccountsFor, What::Copying, Some(-380.0));
    let known = Interval { estimate: 160.0, low: 160.0, high: 160.0 };
    let mut why = Why { smaller: vec![copying], unexplained_ns: Some(known), ..explained(Vec::new()) };
    let said = |why: &Why| {
        let (lines, _) = causes(why, Some(&budget(4250.0, 171_000.0)), &names(), room(3));
        lines.join("\n").replace(NBSP, " ")
    };
    assert!(said(&why).ends_with("; of the rest, small: kernel CPU in copying −0.38 µs"), "{}", said(&why));
    // What is no part of the sum is not of its rest.
    why.smaller[0].grade = Grade::GoesWith;
    assert!(said(&why).ends_with("; seen beside the sum: kernel CPU in copying −0.38 µs"), "{}", said(&why));
    why.smaller[0].distorted = true;
    assert!(
        said(&why).ends_with("; distorted by watching: kernel CPU in copying −0.38 µs"),
        "{}",
        said(&why)
    );
}

#[test]
fn a_large_part_that_is_not_sure_has_its_interval() {
    let difference_ns = Interval { estimate: 148_900.0, low: -3000.0, high: 300_000.0 };
    let unsure = Unsure { part: BudgetPart::WaitingToRun, rest: false, difference_ns };
    let known = Interval { estimate: 0.0, low: 0.0, high: 0.0 };
    let why = Why {
        unnamed_ns: 149_000.0,
        unsure: vec![unsure],
        unexplained_ns: Some(known),
        ..explained(Vec::new())
    };
    let (lines, _) = causes(&why, Some(&budget(500_000.0, 254_000.0)), &names(), room(3));
    let lines: Vec<String> = lines.into_iter().map(|line| line.replace(NBSP, " ")).collect();
    assert_eq!(lines, ["+149 µs: waiting to run, not sure: [−3 µs, +300 µs]", "unexplained: 0 µs"]);
}

#[test]
fn a_pair_never_takes_more_lines_than_it_has() {
    let long = || What::Sleep { at: "a_function_whose_name_goes_on_and_on_".repeat(3) };
    let why = explained((0..30).map(|_| cause(Grade::AccountsFor, long(), Some(500.0))).collect());
    let (lines, hidden) = causes(&why, None, &names(), room(usize::MAX));
    assert!(lines.iter().map(|line| lines_of(line)).sum::<usize>() <= 11 && hidden == 31 - lines.len());
}

#[test]
fn watched_trials_are_told_of_where_no_price_is() {
    let watching = Watching { rounds: 4, run: None, price: None, distorted: false };
    let why = Why { watching: Some(watching), ..explained(Vec::new()) };
    assert_eq!(told(&why, 3)[1], "watched in 4 rounds; what that cost is not known");
    let watching = Watching { rounds: 3, run: Some(2), price: None, distorted: false };
    let few = Why { watching: Some(watching), ..explained(Vec::new()) };
    assert_eq!(told(&few, 3)[1], "watched in 3 rounds, 4 are needed: nothing that was seen is told");
    let (lines, _) = causes(&why, None, &names(), Room { watching: false, ..room(3) });
    assert_eq!(lines, ["no part of it differs so that it could be named"]);
}

#[test]
fn what_of_the_sleep_was_for_storage_stands_behind_the_rest() {
    let storage = Evidence {
        metric: "waits.storage_time an operation".to_owned(),
        unit: Unit::Seconds,
        baseline: 2e-6,
        candidate: 7e-6,
        difference: None,
    };
    let sleep = cause(Grade::AccountsFor, asleep(), Some(8000.0));
    let watching = |distorted| Some(Watching { rounds: 4, run: Some(2), price: None, distorted });
    let why = |distorted| Why {
        storage: Some(storage.clone()),
        watching: watching(distorted),
        ..explained(vec![sleep.clone()])
    };
    let budget = budget(10_000.0, 8000.0);
    let said = |hint: bool, distorted| {
        let room = Room { sleep: !hint, hint, watching: false, ..room(9) };
        causes(&why(distorted), Some(&budget), &names(), room).0
    };
    let last = said(false, false).pop().unwrap().replace(NBSP, " ");
    assert_eq!(last, "of the sleep, waiting for storage (watched): 2.00 µs → 7.00 µs");
    let moved = Interval { estimate: 6000.0, low: 5900.0, high: 6100.0 };
    let woken = BudgetLine { baseline_ns: 0.0, candidate_ns: 6000.0, difference_ns: moved };
    let with_both = Why { woken: Some(woken), ..why(false) };
    let room_of_both = Room { sleep: true, hint: false, watching: false, ..room(9) };
    let (told, _) = causes(&with_both, Some(&budget), &names(), room_of_both);
    let [.., woken, _] = told.as_slice() else { panic!("{told:?}") };
    assert_eq!(
        woken.replace(NBSP, " "),
        "woken threads waited +6.0 µs for a processor (watched): part of the sleep here, not of waiting to run"
    );
    assert!(said(false, true).pop().unwrap().ends_with(", distorted"));
    let full = Room { sleep: true, hint: false, watching: false, causes: 9, lines: 1 };
    let lines = causes(&why(false), Some(&budget), &names(), full).0;
    assert!(lines.len() == 1 && lines.iter().all(|line| !line.contains("(watched)")), "no room: {lines:?}");
    assert!(said(true, false).iter().all(|line| !line.contains("(watched)")), "not on the first screen");
}

#[test]
fn what_was_not_counted_is_said_with_what_helps() {
    let why = Why { uncounted: true, ..explained(Vec::new()) };
    assert!(super::why_choice::is_told(&why));
    let (lines, _) = causes(&why, None, &names(), room(3));
    assert!(lines.len() == 1 && lines[0].ends_with("--metric 'operations=…([0-9]+)'"), "{lines:?}");
    assert_eq!(brief(&why, None, &names()), "direct=1: nothing counts operations");
}

#[test]
fn of_a_quantile_the_mean_is_told_as_such() {
    let waits = cause(Grade::GoesWith, What::Flush { at: "f".to_owned() }, Some(9000.0));
    let difference_ns = Interval { estimate: 2e6, low: 1.9e6, high: 2.1e6 };
    let device = BudgetLine { baseline_ns: 1e6, candidate_ns: 3e6, difference_ns };
    let why = Why {
        metric: "write.lat_ns.p99".to_owned(),
        of_mean: true,
        latency: vec![(LatencyPart::Requests(RequestStage::Device), device)],
        ..explained(vec![waits])
    };
    let budget = budget(843_000.0, 10_000.0);
    let plain = |text: String| text.replace(NBSP, " ");
    assert!(
        plain(caption(&why, Some(&budget), &names()))
            .ends_with("843 µs → 853 µs, +10 µs (of the mean operation; p99 is not split)")
    );
    let brief = plain(brief(&why, Some(&budget), &names()));
    let expected = "direct=1: time an operation +10 µs (of the mean operation; p99 is not split): goes with waits for a flush at f";
    assert_eq!(brief, expected);
    assert_eq!(told(&why, 3), ["goes with: waits for a flush at f, +9.00 µs an operation"]);
    let lines: Vec<String> = why_latency::lines(&why).into_iter().map(plain).collect();
    assert_eq!(
        lines,
        [
            "beside it, p99 of write requests at the device (D2C): 1.00 ms → 3.00 ms, +2.00 ms [+1.90 ms, +2.10 ms]"
        ]
    );
    let why = Why { requests: OfRequests { distorted: true, of_all_jobs: true }, ..why };
    assert!(why_latency::lines(&why)[0].starts_with(
        "beside it, p99 of write requests at the device (D2C), of all jobs (distorted by watching): "
    ));
    assert!(super::why_choice::is_told(&Why { causes: Vec::new(), ..why }));
}

#[test]
fn the_latency_of_a_paced_job_has_lines_of_its_own() {
    let of = |baseline_ns: f64, ns: f64| BudgetLine {
        baseline_ns,
        candidate_ns: baseline_ns + ns,
        difference_ns: Interval { estimate: ns, low: ns - 5_000.0, high: ns + 5_000.0 },
    };
    let latency =
        vec![(LatencyPart::Service, of(15_000.0, 222_000.0)), (LatencyPart::Sync, of(475_000.0, -4_000.0))];
    let why = Why { metric: "write.lat_ns.mean".to_owned(), latency, ..explained(Vec::new()) };
    let plain = |text: String| text.replace(NBSP, " ");
    let lines: Vec<String> = why_latency::lines(&why).into_iter().map(plain).collect();
    assert_eq!(
        lines,
        [
            "of write.lat_ns.mean, service (clat_ns.mean): 15.0 µs → 237.0 µs, +222.0 µs [+217.0 µs, +227.0 µs]",
            "beside it, a sync (sync.lat_ns.mean): 475 µs → 471 µs, −4 µs, not sure: [−9 µs, +1 µs]",
        ]
    );
    let budget = budget(5_000_000.0, 0.0);
    assert!(plain(brief(&why, Some(&budget), &names())).starts_with("direct=1: service +222.0 µs: "));
    let latency = vec![
        (LatencyPart::Service, of(15_000.0, 2_000.0)),
        (LatencyPart::UntilDurable, of(475_000.0, -470_000.0)),
    ];
    let judged = Some(of(490_000.0, -468_000.0));
    let why = Why { metric: "durable.lat_ns.mean".to_owned(), judged, latency, ..why };
    assert_eq!(
        plain(caption(&why, Some(&budget), &names())),
        "why: direct=0 → direct=1: durable.lat_ns.mean 490.0 µs → 22.0 µs (−468.0 µs); the job's pace sets the time between operations, which is not split"
    );
    let lines: Vec<String> = why_latency::lines(&why).into_iter().map(plain).collect();
    assert_eq!(
        lines,
        [
            "of durable.lat_ns.mean, service (write.clat_ns.mean): 15.0 µs → 17.0 µs, +2.0 µs, not sure: [−3.0 µs, +7.0 µs]",
            "of durable.lat_ns.mean, until the sync behind it had ended: 475.00 µs → 5.00 µs, −470.00 µs [−475.00 µs, −465.00 µs]",
        ]
    );
    assert!(
        plain(brief(&why, Some(&budget), &names())).starts_with("direct=1: durable.lat_ns.mean −468.0 µs: ")
    );
}

#[test]
fn a_run_that_was_to_be_explained_says_why_it_was_not_watched() {
    let (mut run, _) = crate::report::section_tests::made_up();
    let why = |standing| vec![Why { standing, ..explained(Vec::new()) }];
    assert_eq!(unwatched_words(&run, &why(Standing::NotDecided)), None, "nobody asked");
    run.command_line = ["assay", "run", "--explain"].map(str::to_owned).to_vec();
    assert_eq!(
        unwatched_words(&run, &why(Standing::NotDecided)).as_deref(),
        Some(
            "nothing was watched, because no arm is shown to differ: `assay explain 7 --only waits,blocks` watches it all the same"
        )
    );
    assert_eq!(unwatched_words(&run, &why(Standing::Differs)), None);
}
