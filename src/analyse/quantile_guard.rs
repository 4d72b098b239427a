//! Refuses quantiles that a trial had too few operations for: below 10/(1 − q) a quantile is one or two
//! operations' luck.
//!
//! Enters: a metric's name and the trials behind it. Leaves: a caveat, when it is refused.

use super::comparison::Caveat;
use super::draft::{Case, Setting};
use crate::record::{LatencyHistogram, Trial, operations_for, quantile_of};

/// The caveat when the smallest trial of either arm had too few operations. Where no count is known, nothing is
/// refused.
pub(super) fn refusal(setting: &Setting, case: &Case) -> Option<Caveat> {
    let metric = &setting.table.metrics()[case.metric as usize];
    let needed = operations_for(quantile_of(&metric.name)?);
    let had = counted_operations(setting, case).or_else(|| histogram_operations(setting, case))?;
    (had < needed).then(|| Caveat::QuantileRefused { metric: metric.name.clone(), needed, had })
}

/// The metric that counts what a quantile is of: `write.total_ios`, or of the block layer's `blocks.write.d2c.p99` the requests, and
/// the bios where a stage begins before there is a request.
fn count_of(quantile: &str) -> Option<String> {
    match quantile.strip_prefix("blocks.") {
        Some(of_device) => {
            let (direction, stage) = of_device.split_once('.')?;
            let what = if stage.starts_with('q') { "bios" } else { "requests" };
            Some(format!("blocks.{direction}_{what}"))
        }
        None => Some(format!("{}.total_ios", quantile.split('.').next()?)),
    }
}

/// The smallest count of that in both arms.
fn counted_operations(setting: &Setting, case: &Case) -> Option<u64> {
    let metric = &setting.table.metrics()[case.metric as usize];
    let name = count_of(&metric.name)?;
    let of = |m: &u32| setting.table.metrics()[*m as usize].name == name;
    let count = case.row.metrics.iter().copied().find(of)?;
    let cells = case.cells();
    let values = cells.into_iter().flatten().flat_map(|cell| setting.table.column(cell, count));
    values.map(|point| point.value as u64).min()
}

/// The smallest count of the histograms the quantile came from.
fn histogram_operations(setting: &Setting, case: &Case) -> Option<u64> {
    let metric = &setting.table.metrics()[case.metric as usize];
    let (source, _) = metric.name.rsplit_once(".p")?;
    // `write.clat_ns.p99` without its quantile; `.p99.9` has one dot more.
    let source = source.split(".p").next()?;
    let cells = case.cells();
    let count = |trial: &&Trial| {
        let is_its = |h: &&LatencyHistogram| h.job == metric.job && h.kind.metric(h.direction) == source;
        let own = trial.histograms.iter().find(is_its)?;
        own.unpack().ok().map(|histogram| histogram.len())
    };
    let trials = setting.table.latest().iter().filter(|t| t.counts() && cells.contains(&Some(t.cell)));
    trials.filter_map(count).min()
}

#[cfg(test)]
mod tests {
    use super::super::made_up::{Made, run_of};
    use super::super::{Options, analyse};
    use super::*;
    use crate::record::{Direction, LatencyKind};

    #[test]
    fn what_has_no_count_is_counted_by_its_own_histogram() {
        let mut run = run_of(&Made::default(), 8);
        run.metrics[0].name = "durable.lat_ns.p99".to_owned();
        run.design.primary = Some("durable.lat_ns.p99".to_owned());
        for trial in &mut run.trials {
            for (kind, operations) in [(LatencyKind::Durable, 50), (LatencyKind::Lat, 5_000)] {
                let mut histogram = LatencyHistogram::empty();
                histogram.record_n(1_000, operations).unwrap();
                trial.histograms.push(LatencyHistogram::pack("", Direction::Write, kind, &histogram));
            }
        }
        let refused =
            Caveat::QuantileRefused { metric: "durable.lat_ns.p99".to_owned(), needed: 1_000, had: 50 };
        assert!(analyse(&run, &Options::default()).comparisons[0].caveats.contains(&refused));
    }

    #[test]
    fn a_quantile_has_the_count_it_is_of() {
        for (quantile, count) in [
            ("write.clat_ns.p99.9", "write.total_ios"),
            ("sync.lat_ns.p99", "sync.total_ios"),
            ("blocks.write.d2c.p99", "blocks.write_requests"),
            ("blocks.read.i2d.p99", "blocks.read_requests"),
            ("blocks.write.q2c.p99", "blocks.write_bios"),
        ] {
            assert_eq!(count_of(quantile).as_deref(), Some(count), "{quantile}");
        }
    }
}
