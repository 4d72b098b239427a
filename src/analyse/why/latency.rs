//! What a judged latency is made of, where the pace of a job sets the time between its operations.
//!
//! Enters: a pair. Leaves: times in both arms, with their differences over rounds. Nothing is left of a job without a pace, of which the
//! budget says it all, or of a metric that is no latency. It must not know how a part is worded.

use super::super::budget::BudgetLine;
use super::super::comparison::Interval;
use super::cause::LatencyPart;
use super::pair::Pair;
use crate::record::Unit;

/// A rest below this share of the latency is the clock's.
const LEAST_REST: f64 = 0.01;

/// The parts of the latency that decides, with their times in ns.
pub(super) fn latency(pair: &Pair<'_>) -> Vec<(LatencyPart, BudgetLine)> {
    if !pair.budget.is_some_and(|budget| budget.asleep.with_pauses) {
        return Vec::new();
    }
    let Some((direction, kind, statistic)) = named(&pair.metric) else { return Vec::new() };
    let of = |metric: &str| time(pair, metric);
    let whole = kind == "lat_ns";
    let service = of(&format!("{direction}.clat_ns.{statistic}")).filter(|_| whole);
    let before = service.filter(|_| statistic == "mean").and_then(|service| {
        let latency = of(&pair.metric)?;
        let rest = latency.minus(&service);
        let share = |rest: f64, latency: f64| rest.abs() / latency;
        let largest =
            share(rest.baseline_ns, latency.baseline_ns).max(share(rest.candidate_ns, latency.candidate_ns));
        (largest >= LEAST_REST).then_some(rest)
    });
    let sync = of(&format!("sync.lat_ns.{statistic}")).filter(|_| direction == "write");
    let parts =
        [(LatencyPart::Service, service), (LatencyPart::BeforeIssue, before), (LatencyPart::Sync, sync)];
    parts.into_iter().filter_map(|(part, time)| Some((part, time?))).collect()
}

/// Direction, kind and statistic of `write.lat_ns.p99`.
fn named(metric: &str) -> Option<(&str, &str, &str)> {
    let (direction, rest) = metric.split_once('.')?;
    let (kind, statistic) = rest.split_once('.')?;
    (matches!(direction, "read" | "write") && matches!(kind, "lat_ns" | "clat_ns"))
        .then_some((direction, kind, statistic))
}

fn time(pair: &Pair<'_>, metric: &str) -> Option<BudgetLine> {
    let found = pair.own.plain(metric, Unit::Nanoseconds)?;
    let Interval { estimate, low, high } = found.difference?;
    Some(BudgetLine {
        baseline_ns: found.baseline,
        candidate_ns: found.candidate,
        difference_ns: Interval { estimate, low, high },
    })
}

#[cfg(test)]
mod tests {
    use super::super::made_pair::{explained, run_with};
    use super::*;

    /// What is found of a job with or without a pace whose service takes 200 µs longer.
    fn found(paced: bool, primary: &str) -> Vec<(LatencyPart, i64)> {
        let mut run = run_with(&[
            ("write.lat_ns.mean", 90_000.0, 250_000.0),
            ("write.lat_ns.p95", 100_000.0, 400_000.0),
            ("write.clat_ns.mean", 20_000.0, 220_000.0),
            ("write.clat_ns.p95", 30_000.0, 390_000.0),
            ("sync.lat_ns.mean", 480_000.0, 470_000.0),
            ("write.total_ios", 100_000.0, 100_000.0),
        ]);
        run.design.primary = Some(primary.to_owned());
        run.design.paced = if paced { vec!["w".to_owned()] } else { Vec::new() };
        let why = explained(&run);
        why.latency.iter().map(|(part, time)| (*part, time.difference_ns.estimate.round() as i64)).collect()
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
    }
}
