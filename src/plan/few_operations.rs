//! Quantiles that no trial can have the operations for: known beforehand, where a job's sizes, or its rate and runtime, say how many there are at most.
//!
//! Enters: a plan. Leaves: the metric, what it needs and what there is; none where it may be judged. What only the run tells (the size of a
//! device, how far a time limit comes) is no reason to refuse.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use super::Plan;
use super::cell_spec::CellSpec;
use crate::workload::{Job, RateLimit, deciding_metrics, operations_for, other_direction, quantile_of};

/// A rate is its average, so that a trial may have somewhat more.
const PACE_HOLDS: f64 = 1.1;

/// A deciding quantile that would be refused in every comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TooFewOperations {
    /// The quantile.
    pub metric: String,
    /// Operations that a trial must have.
    pub needed: u64,
    /// Operations that a trial has at most.
    pub most: u64,
}

impl Plan {
    /// The first deciding quantile that no comparison of the run can judge.
    #[must_use]
    pub fn too_few_operations(&self) -> Option<TooFewOperations> {
        let primary = self.primary.as_deref()?;
        deciding_metrics(primary, |_| false).into_iter().find_map(|(section, metric)| {
            let needed = operations_for(quantile_of(metric)?);
            let most = |cell: &CellSpec| most_in(cell, section, metric);
            // A comparison has as many as the smaller of its two cells.
            let pairs = self.neighbours().map(|(_, _, [one, other])| Some(most(one)?.min(most(other)?)));
            let single = self.cells.iter().take(usize::from(self.cells.len() == 1)).map(most);
            let most = pairs.chain(single).collect::<Option<Vec<u64>>>()?.into_iter().max()?;
            (most < needed).then(|| TooFewOperations { metric: metric.to_owned(), needed, most })
        })
    }
}

/// Operations that the section which has most of them does at most in a trial of the cell; `None`: only the run tells.
fn most_in(cell: &CellSpec, section: Option<&str>, metric: &str) -> Option<u64> {
    let workload = cell.workload.as_ref()?;
    let instances = workload.instances(Path::new("/"));
    let mut by_section: BTreeMap<&str, u64> = BTreeMap::new();
    for (at, instance) in instances.iter().enumerate() {
        let job = &workload.jobs[instance.job];
        let name = workload.section_of(&instances, at);
        if section.is_some_and(|section| section != name) {
            continue;
        }
        let most = by_section.entry(name).or_default();
        *most = most.saturating_add(most_of(job, instance.io_size, metric)?);
    }
    by_section.into_values().max()
}

/// Operations of one instance that the metric is about.
fn most_of(job: &Job, io_size: Option<u64>, metric: &str) -> Option<u64> {
    let (mix, sizes) = (job.pattern.mix, job.block_sizes);
    let reads = mix.reads() || mix.writes() && job.verify.is_some();
    let known = [
        ("read", reads, sizes.read),
        ("write", mix.writes(), sizes.write),
        ("trim", mix.trims(), sizes.trim),
    ];
    let bytes = io_size.filter(|_| !job.time_based).and_then(|size| size.checked_mul(u64::from(job.loops)));
    let used = known.iter().zip(job.rate.limits).filter(|((_, used, _), _)| *used);
    let most_of: Vec<(&str, Option<u64>)> = used
        .map(|((name, _, range), limit)| {
            let smallest = range.min.max(1);
            let by_size = bytes.map(|bytes| bytes.div_ceil(smallest));
            // What verify reads back went at no rate.
            let limit = limit.filter(|_| *name != "read" || mix.reads());
            let by_pace = limit.zip(job.runtime).map(|(limit, runtime)| in_time(limit, runtime, smallest));
            (*name, by_size.into_iter().chain(by_pace).min())
        })
        .collect();
    let most = |direction: &str| most_of.iter().find(|(name, _)| *name == direction).map(|(_, most)| *most);
    match metric.split('.').next()? {
        "sync" => {
            let writes = most("write").unwrap_or(Some(0))?;
            let each = |after: u32| if after == 0 { 0 } else { writes / u64::from(after) };
            let at_the_end = u64::from(job.end_fsync) * u64::from(job.nrfiles) * u64::from(job.loops);
            Some(each(job.fsync) + each(job.fdatasync) + at_the_end)
        }
        "durable" => most("write").or_else(|| most("read")).unwrap_or(Some(0)),
        direction @ ("read" | "write" | "trim") => {
            let other = other_direction(metric);
            let other = || most(other.as_deref()?.split('.').next()?);
            most(direction).or_else(other).unwrap_or(Some(0))
        }
        // A hook's own quantile, say.
        _ => None,
    }
}

/// Operations that a rate allows in a time, and a tenth more: a rate holds on average.
fn in_time(limit: RateLimit, runtime: Duration, smallest: u64) -> u64 {
    let each_second = match limit {
        RateLimit::IosPerSecond(ios) => ios as f64,
        RateLimit::BytesPerSecond(bytes) => bytes as f64 / smallest as f64,
    };
    (each_second * runtime.as_secs_f64() * PACE_HOLDS).ceil() as u64
}
