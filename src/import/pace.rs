//! What decides for jobs of fio that had a pace: their bandwidth is the pace, whatever the storage does, and how long an I/O takes is
//! what differs. The same rule as for jobs that assay runs (`plan/deciding.rs`), from the options that fio's JSON keeps.
//!
//! Enters: the observations of all files. Leaves: names of metrics, as `--primary` takes them, or nothing.

use std::collections::BTreeSet;

use super::fio::OPTION;
use super::observation::Batch;
use crate::record::HostFacts;

/// Options that set a pace where they are not 0.
const PACE: [&str; 3] = ["rate", "rate_iops", "thinktime"];

/// A mean latency for each job with a pace; without the job's name where it holds for all.
pub(super) fn primary(batch: &Batch) -> Option<String> {
    let named: BTreeSet<&str> = batch.metrics.iter().map(|metric| metric.job.as_str()).collect();
    let jobs: Vec<&str> = match named.iter().any(|job| !job.is_empty()) {
        // What has no name beside jobs that have one is the sum of all.
        true => named.into_iter().filter(|job| !job.is_empty()).collect(),
        false => vec![""],
    };
    let found: Vec<(&str, Option<&'static str>)> =
        jobs.iter().map(|job| (*job, latency(batch, job))).collect();
    let first = found.first()?.1;
    if first.is_some() && found.iter().all(|(_, metric)| *metric == first) {
        return first.map(str::to_owned);
    }
    // A comma would end the name.
    let fits = found.into_iter().filter(|(job, _)| !job.contains(','));
    let wishes: Vec<String> = fits.filter_map(|(job, metric)| Some(format!("{job}:{}", metric?))).collect();
    (!wishes.is_empty()).then(|| wishes.join(","))
}

/// The latency of a job that had a pace in every file.
fn latency(batch: &Batch, job: &str) -> Option<&'static str> {
    let is_paced = |facts: &HostFacts| {
        PACE.iter().any(|option| {
            let own = facts.get(&format!("{OPTION}{option}[{job}]"));
            own.or_else(|| facts.get(&format!("{OPTION}{option}"))).is_some_and(|value| !is_zero(value))
        })
    };
    if batch.facts.is_empty() || !batch.facts.iter().all(is_paced) {
        return None;
    }
    let has = |name: &&str| batch.metrics.iter().any(|metric| metric.job == job && metric.name == **name);
    ["write.clat_ns.mean", "read.clat_ns.mean"].into_iter().find(has)
}

/// `0`, `0,0`: no limit.
fn is_zero(value: &str) -> bool {
    value
        .split(',')
        .all(|part| part.trim().trim_end_matches(|letter: char| letter.is_ascii_alphabetic()) == "0")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Metric;
    use crate::units::{Better, Unit};

    fn batch(metrics: &[(&str, &str)], facts: &[&[(&str, &str)]]) -> Batch {
        let mut batch = Batch::default();
        for (job, name) in metrics {
            let (job, name) = ((*job).to_owned(), (*name).to_owned());
            batch.metric(&Metric { job, name, unit: Unit::Nanoseconds, better: Better::Lower });
        }
        for options in facts {
            let mut of_file = HostFacts::default();
            options.iter().for_each(|(name, value)| of_file.set(*name, *value));
            batch.facts(of_file);
        }
        batch
    }

    #[test]
    fn a_job_with_a_pace_is_judged_by_its_latency() {
        let one = [("", "write.bw"), ("", "write.clat_ns.mean")];
        let decides = |facts: &[&[(&str, &str)]]| primary(&batch(&one, facts));
        assert_eq!(decides(&[&[("fio.rate_iops", "500")]]).as_deref(), Some("write.clat_ns.mean"));
        assert_eq!(decides(&[&[("fio.rate", "0,0"), ("fio.thinktime", "0")]]), None);
        assert_eq!(
            decides(&[&[("fio.rate", "1m"), ("fio.bs", "4k")], &[("fio.bs", "4k")]]),
            None,
            "not in all"
        );
        assert_eq!(decides(&[]), None);
        assert_eq!(primary(&batch(&[("", "read.bw")], &[&[("fio.rate", "1m")]])), None, "nobody measured it");
    }

    #[test]
    fn of_several_jobs_each_is_judged_by_its_own() {
        let two = [
            ("", "write.bw"),
            ("wal", "write.clat_ns.mean"),
            ("scan", "read.bw"),
            ("scan", "read.clat_ns.mean"),
        ];
        let decides = |facts: &[(&str, &str)]| primary(&batch(&two, &[facts]));
        assert_eq!(decides(&[("fio.rate[wal]", "4m")]).as_deref(), Some("wal:write.clat_ns.mean"));
        let all = decides(&[("fio.rate", "4m")]);
        assert_eq!(all.as_deref(), Some("scan:read.clat_ns.mean,wal:write.clat_ns.mean"));
        assert_eq!(
            decides(&[("fio.rate", "4m"), ("fio.rate[wal]", "0")]).as_deref(),
            Some("scan:read.clat_ns.mean")
        );
    }
}
