//! What the slowest calls waited for, where a quantile or the longest decides: the budget, a sum of means, does not tell it.
//!
//! Enters: a pair. Leaves: the kind of call that the metric is about, the time of its slowest hundredth in both arms, and the parts of that
//! which differ most. Nothing is left where nobody watched calls. It must not know how a part is worded.

use super::super::budget::BudgetLine;
use super::cause::{SlowPart, Slowest};
use super::latency::{is_of_the_tail, time};
use super::pair::Pair;
use crate::record::Unit;

/// Metrics of observers (`--observe calls`).
const COUNT: &str = "calls.count.";
const SLOW: &str = "calls.slow.";
const SLOW_AT: &str = "calls.slow_at.";
const SLOW_READY: &str = "calls.slow_ready.";
const SLOW_CPU: &str = "calls.slow_cpu.";
/// Parts that are named, each with at least this share of the whole difference.
const MOST: usize = 4;
const LEAST_SHARE: f64 = 0.05;

/// Kinds of calls that a metric may be about, by its first word.
fn kinds(metric: &str) -> &'static [&'static str] {
    match metric.split('.').next().unwrap_or_default() {
        "sync" => &["fsync", "fdatasync", "sync_file_range"],
        "durable" => &["fsync", "fdatasync", "write"],
        "write" => &["write"],
        "read" => &["read"],
        // What a program reports may be of any.
        _ => &["fsync", "fdatasync", "sync_file_range", "write", "read"],
    }
}

/// Of the metric that decides, where calls were watched.
pub(super) fn slowest(pair: &Pair<'_>) -> Option<Slowest> {
    let source = &pair.watched.as_ref().filter(|_| is_of_the_tail(&pair.metric))?.source;
    // That with most of its time in slow calls, where there are several.
    let weight = |kind: &&str| {
        let [slow, count] = [(SLOW, Unit::Seconds), (COUNT, Unit::Count)]
            .map(|(begins, unit)| source.plain(&format!("{begins}{kind}"), unit));
        slow.zip(count).map_or(0.0, |(slow, count)| {
            slow.candidate.max(slow.baseline) * count.candidate.max(count.baseline)
        })
    };
    let kind = kinds(&pair.metric).iter().copied().max_by(|a, b| weight(a).total_cmp(&weight(b)))?;
    let name = format!("{SLOW}{kind}");
    let whole = time(source, &name, Unit::Seconds)?;
    let places = source.below(&format!("{SLOW_AT}{kind}."));
    let at = places.into_iter().map(|place| (format!("{SLOW_AT}{kind}.{place}"), SlowPart::At(place)));
    let others = [
        (format!("{SLOW_READY}{kind}"), SlowPart::Ready),
        (format!("{SLOW_CPU}{kind}"), SlowPart::Processor),
    ];
    let least = LEAST_SHARE * whole.difference_ns.estimate.abs();
    let mut parts: Vec<(SlowPart, BudgetLine)> = at
        .chain(others)
        .filter_map(|(metric, part)| Some((part, time(source, &metric, Unit::Seconds)?)))
        .filter(|(_, time)| time.difference_ns.estimate.abs() >= least)
        .collect();
    parts.sort_by(|(_, a), (_, b)| b.difference_ns.estimate.abs().total_cmp(&a.difference_ns.estimate.abs()));
    parts.truncate(MOST);
    Some(Slowest { call: kind.to_owned(), whole, parts, of_all_jobs: source.is_of_all_jobs(&[&name]) })
}

#[cfg(test)]
mod tests {
    use super::super::made_pair::{explained, run_with};
    use super::*;

    const WATCHED: [(&str, f64, f64); 8] = [
        ("calls.lost", 0.0, 0.0),
        ("calls.count.fdatasync", 2000.0, 2000.0),
        ("calls.slow.fdatasync", 1e-3, 9e-3),
        ("calls.slow_at.fdatasync.jbd2_log_wait_commit", 0.8e-3, 8.5e-3),
        ("calls.slow_ready.fdatasync", 0.1e-3, 0.4e-3),
        ("calls.slow_cpu.fdatasync", 0.1e-3, 0.1e-3),
        ("calls.count.write", 2000.0, 2000.0),
        ("calls.slow.write", 1e-5, 1e-5),
    ];

    fn found(primary: &str) -> Option<Slowest> {
        let mut metrics = vec![(primary, 400_000.0, 900_000.0)];
        metrics.extend(WATCHED);
        let mut run = run_with(&metrics);
        run.design.primary = Some(primary.to_owned());
        explained(&run).slowest
    }

    #[test]
    fn a_quantile_of_syncs_is_split_by_what_the_slowest_waited_for() {
        let slowest = found("sync.lat_ns.p99").unwrap();
        assert_eq!(slowest.call, "fdatasync");
        assert!((slowest.whole.difference_ns.estimate - 8e6).abs() < 1e5, "{slowest:?}");
        let names: Vec<&SlowPart> = slowest.parts.iter().map(|(part, _)| part).collect();
        assert_eq!(
            names,
            [&SlowPart::At("jbd2_log_wait_commit".to_owned())],
            "the others are less than a twentieth"
        );
    }

    #[test]
    fn a_metric_chooses_its_calls_and_a_mean_none() {
        assert_eq!(found("write.clat_ns.p99").unwrap().call, "write");
        assert_eq!(found("lat_p99").unwrap().call, "fdatasync", "a program's may be of any");
        assert_eq!(found("read.clat_ns.p99"), None);
        assert_eq!(found("sync.lat_ns.mean"), None);
    }
}
