//! What a judged latency is made of, where the budget does not tell it: the pace of a job sets the time between its operations, or a quantile
//! or the longest decides, of which the budget, a sum of means, knows nothing.
//!
//! Enters: a pair. Leaves: times in both arms, with their differences over rounds. Nothing is left of a metric that is no latency. It must
//! not know how a part is worded.

use super::super::budget::BudgetLine;
use super::super::comparison::Interval;
use super::cause::{LatencyPart, OfRequests, RequestStage};
use super::pair::Pair;
use super::source::Source;
use crate::record::Unit;

/// A rest below this share of the latency is the clock's.
const LEAST_REST: f64 = 0.01;

/// Stages of requests whose quantiles stand beside that of a latency.
const STAGES: [RequestStage; 2] = [RequestStage::Issued, RequestStage::Device];

/// Whether a metric is no mean of operations, but a quantile or the longest: `read.clat_ns.p99`, `lat_p99`, `write.lat_ns.max`.
pub(super) fn is_of_the_tail(metric: &str) -> bool {
    let mut words = metric.split(|c: char| !c.is_ascii_alphanumeric()).peekable();
    let is_quantile = |word: &str| {
        word.strip_prefix('p')
            .is_some_and(|of| !of.is_empty() && of.bytes().all(|byte| byte.is_ascii_digit()))
    };
    while let Some(word) = words.next() {
        if is_quantile(word) || matches!(word, "max" | "longest") && words.peek().is_none() {
            return true;
        }
    }
    false
}

/// The parts of the latency that decides, with their times in ns.
pub(super) fn latency(pair: &Pair<'_>) -> Vec<(LatencyPart, BudgetLine)> {
    let of_requests = if is_of_the_tail(&pair.metric) { of_requests(pair) } else { Vec::new() };
    of_requests.into_iter().chain(of_a_pace(pair)).collect()
}

/// The 99th percentile of stages of the requests of its direction, where the block layer was watched.
fn of_requests(pair: &Pair<'_>) -> Vec<(LatencyPart, BudgetLine)> {
    let direction = named(&pair.metric).map(|(direction, ..)| direction);
    let Some((direction, watched)) = direction.zip(pair.watched.as_ref()) else { return Vec::new() };
    let of = |stage: RequestStage| {
        let metric = p99(direction, stage);
        Some((LatencyPart::Requests(stage), time(&watched.source, &metric, Unit::Seconds)?))
    };
    STAGES.into_iter().filter_map(of).collect()
}

/// What else is true of these.
pub(super) fn requests(pair: &Pair<'_>) -> OfRequests {
    let Some(((direction, ..), watched)) = named(&pair.metric).zip(pair.watched.as_ref()) else {
        return OfRequests::default();
    };
    let is_of_all_jobs = |stage: &RequestStage| watched.source.is_of_all_jobs(&[&p99(direction, *stage)]);
    let of_all_jobs = STAGES.iter().any(is_of_all_jobs);
    match of_requests(pair).is_empty() || !is_of_the_tail(&pair.metric) {
        true => OfRequests::default(),
        false => OfRequests { distorted: watched.requests_distorted, of_all_jobs },
    }
}

fn p99(direction: &str, stage: RequestStage) -> String {
    format!("blocks.{direction}.{}.p99", stage.name())
}

/// The latency that decides, where a pace sets the time between operations in both arms: a pause is not all of it, and a rate may not be
/// kept, and then the sum has the difference.
pub(super) fn judged(pair: &Pair<'_>) -> Option<BudgetLine> {
    let Interval { estimate, low, high } = pair.budget?.total.difference_ns;
    let is_fixed = (low <= 0.0 && high >= 0.0) || estimate.abs() < pair.budget?.least_ns;
    of_a_section_with_a_pace(pair).filter(|_| is_fixed)
}

/// The latency that decides, where its section has a pace.
fn of_a_section_with_a_pace(pair: &Pair<'_>) -> Option<BudgetLine> {
    let paced = pair.budget.is_some_and(|budget| budget.asleep.with_pauses);
    let is_latency = |metric: &str| {
        named(metric).is_some() || ["sync.lat_ns.", "durable.lat_ns."].iter().any(|of| metric.starts_with(of))
    };
    (paced && is_latency(&pair.metric)).then(|| time(&pair.own, &pair.metric, Unit::Nanoseconds))?
}

/// The parts of one whose job has a pace.
fn of_a_pace(pair: &Pair<'_>) -> Vec<(LatencyPart, BudgetLine)> {
    let Some(judged) = of_a_section_with_a_pace(pair) else { return Vec::new() };
    let of = |metric: &str| time(&pair.own, metric, Unit::Nanoseconds);
    let durable = pair.metric.strip_prefix("durable.lat_ns.");
    let Some((direction, kind, statistic)) =
        named(&pair.metric).or(durable.map(|statistic| ("write", "lat_ns", statistic)))
    else {
        return Vec::new();
    };
    let service = of(&format!("{direction}.clat_ns.{statistic}")).filter(|_| kind == "lat_ns");
    // Only means add up.
    let is_mean = statistic == "mean";
    let latency = match durable {
        Some(_) => of(&format!("write.lat_ns.{statistic}")).or(service),
        None => Some(judged),
    };
    let rest = |of: Option<BudgetLine>, without: Option<BudgetLine>| {
        let rest = of?.minus(&without?);
        let share = |rest: f64, judged: f64| rest.abs() / judged;
        let largest =
            share(rest.baseline_ns, judged.baseline_ns).max(share(rest.candidate_ns, judged.candidate_ns));
        (is_mean && largest >= LEAST_REST).then_some(rest)
    };
    // Of the mean until a write is durable the rest is its sync.
    let is_apart = direction == "write" && !(is_mean && durable.is_some());
    let sync = of(&format!("sync.lat_ns.{statistic}")).filter(|_| is_apart);
    let parts = [
        (LatencyPart::Service, service),
        (LatencyPart::BeforeIssue, rest(latency, service)),
        (LatencyPart::UntilDurable, durable.and_then(|_| rest(Some(judged), latency))),
        (LatencyPart::Sync, sync),
    ];
    parts.into_iter().filter_map(|(part, time)| Some((part, time?))).collect()
}

/// Direction, kind and statistic of `write.lat_ns.p99`.
fn named(metric: &str) -> Option<(&str, &str, &str)> {
    let (direction, rest) = metric.split_once('.')?;
    let (kind, statistic) = rest.split_once('.')?;
    (matches!(direction, "read" | "write" | "trim") && matches!(kind, "lat_ns" | "clat_ns"))
        .then_some((direction, kind, statistic))
}

/// A metric of this unit as a time in both arms.
pub(super) fn time(source: &Source<'_>, metric: &str, unit: Unit) -> Option<BudgetLine> {
    let ns = if unit == Unit::Seconds { 1e9 } else { 1.0 };
    let found = source.plain(metric, unit)?;
    let Interval { estimate, low, high } = found.difference?;
    Some(BudgetLine {
        baseline_ns: ns * found.baseline,
        candidate_ns: ns * found.candidate,
        difference_ns: Interval { estimate: ns * estimate, low: ns * low, high: ns * high },
    })
}

#[cfg(test)]
mod tests {
    use super::super::cause::Grade;
    use super::super::made_pair::{explained, run_with};
    use super::*;
    use crate::record::{Metric, Note, NoteKind};

    /// What is found of a job with or without a pace whose service takes 200 µs longer.
    fn found(paced: bool, primary: &str) -> Vec<(LatencyPart, i64)> {
        let mut run = run_with(&[
            ("write.lat_ns.mean", 90_000.0, 250_000.0),
            ("write.lat_ns.p95", 100_000.0, 400_000.0),
            ("write.clat_ns.mean", 20_000.0, 220_000.0),
            ("write.clat_ns.p95", 30_000.0, 390_000.0),
            ("sync.lat_ns.mean", 480_000.0, 470_000.0),
            ("durable.lat_ns.mean", 571_000.0, 721_000.0),
            ("durable.lat_ns.p95", 700_000.0, 900_000.0),
            ("write.total_ios", 100_000.0, 100_000.0),
        ]);
        run.design.primary = Some(primary.to_owned());
        run.design.paced = if paced { vec!["w".to_owned()] } else { Vec::new() };
        let why = explained(&run);
        why.latency.iter().map(|(part, time)| (*part, time.difference_ns.estimate.round() as i64)).collect()
    }

    #[test]
    fn quantiles_and_the_longest_are_no_means() {
        for metric in
            ["read.clat_ns.p99", "write.lat_ns.p99.9", "sync.lat_ns.max", "lat_p95", "p50", "waits.longest"]
        {
            assert!(is_of_the_tail(metric), "{metric}");
        }
        for metric in ["write.bw", "write.clat_ns.mean", "max_rss", "pgbench.tps", "runtime"] {
            assert!(!is_of_the_tail(metric), "{metric}");
        }
    }

    #[test]
    fn causes_of_the_mean_only_go_with_a_quantile() {
        let mut run = run_with(&[
            ("write.clat_ns.p99", 100_000.0, 400_000.0),
            ("blocks.lost", 0.0, 0.0),
            ("blocks.write.d2c.p99", 80e-6, 350e-6),
            ("locks.lost", 0.0, 0.0),
            ("locks.at.rwsem_W.f", 0.0, 0.7),
        ]);
        run.design.primary = Some("write.clat_ns.p99".to_owned());
        let why = explained(&run);
        assert!(why.of_mean && why.unexplained_ns.is_none() && why.unsure.is_empty());
        assert!(why.causes.iter().any(|cause| cause.rule == "lock_wait"), "{why:?}");
        assert!(why.causes.iter().all(|cause| cause.grade != Grade::AccountsFor && cause.share.is_none()));
        let [(LatencyPart::Requests(RequestStage::Device), time)] = why.latency.as_slice() else {
            panic!("{why:?}")
        };
        assert!((time.difference_ns.estimate - 270_000.0).abs() < 3_000.0, "{time:?}");
    }

    #[test]
    fn of_requests_it_is_said_whose_they_are_and_whether_they_are_distorted() {
        let mut run = run_with(&[
            ("write.clat_ns.p99", 100_000.0, 400_000.0),
            ("blocks.lost", 0.0, 0.0),
            ("blocks.write.d2c.p99", 80e-6, 350e-6),
        ]);
        run.design.primary = Some("write.clat_ns.p99".to_owned());
        assert_eq!(explained(&run).requests, OfRequests::default());
        for trial in &mut run.trials {
            trial.notes.push(Note { text: "too slow".to_owned(), kind: NoteKind::Distorting });
        }
        let distorted = OfRequests { distorted: true, of_all_jobs: false };
        assert_eq!(explained(&run).requests, distorted);
        let of_job = |metric: &&mut Metric| !metric.name.starts_with("blocks.");
        run.metrics.iter_mut().filter(of_job).for_each(|metric| metric.job = "a".to_owned());
        assert_eq!(explained(&run).requests, OfRequests { of_all_jobs: true, ..distorted });
        run.design.primary = Some("write.bw".to_owned());
        assert_eq!(explained(&run).requests, OfRequests::default(), "no request is told of");
    }

    #[test]
    fn a_mean_is_service_and_what_was_before_its_issue() {
        let near = |found: &[(LatencyPart, i64)], expected: &[(LatencyPart, i64)]| {
            assert_eq!(found.len(), expected.len(), "{found:?}");
            for ((part, ns), (wanted, about)) in found.iter().zip(expected) {
                assert!(part == wanted && (ns - about).abs() < 2_000, "{found:?}");
            }
        };
        let mean = [
            (LatencyPart::Service, 200_000),
            (LatencyPart::BeforeIssue, -40_000),
            (LatencyPart::Sync, -10_000),
        ];
        near(&found(true, "write.lat_ns.mean"), &mean);
        near(&found(true, "write.lat_ns.p95"), &[(LatencyPart::Service, 360_000)]);
        near(&found(true, "write.clat_ns.mean"), &[(LatencyPart::Sync, -10_000)]);
        near(&found(false, "write.lat_ns.mean"), &[]);
        let durable = [mean[0], mean[1], (LatencyPart::UntilDurable, -10_000)];
        near(&found(true, "durable.lat_ns.mean"), &durable);
        near(&found(true, "durable.lat_ns.p95"), &[(LatencyPart::Service, 360_000)]);
        near(&found(true, "sync.lat_ns.mean"), &[]);
    }

    #[test]
    fn where_a_pace_sets_the_time_causes_only_go_with_the_latency() {
        let run = |paced: bool, walls: [f64; 2]| {
            let mut run = run_with(&[
                ("durable.lat_ns.mean", 500_000.0, 900_000.0),
                ("write.total_ios", 100_000.0, 100_000.0),
                ("workers.wall", walls[0], walls[1]),
            ]);
            run.design.primary = Some("durable.lat_ns.mean".to_owned());
            run.design.paced = if paced { vec!["w".to_owned()] } else { Vec::new() };
            explained(&run)
        };
        let why = run(true, [2.0, 2.0]);
        assert!((why.judged.unwrap().difference_ns.estimate - 400_000.0).abs() < 8_000.0, "{why:?}");
        assert!(!why.causes.is_empty(), "{why:?}");
        assert!(why.causes.iter().all(|cause| cause.grade != Grade::AccountsFor && cause.share.is_none()));
        assert!(why.unexplained_ns.is_none() && why.unsure.is_empty());
        assert!(run(false, [2.0, 2.0]).judged.is_none());
        let not_kept = run(true, [1.0, 2.0]);
        assert!(not_kept.judged.is_none() && not_kept.unexplained_ns.is_some(), "{not_kept:?}");
    }
}
