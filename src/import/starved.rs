//! A direction that some trials of a fio job have and others do not, where no option says which it was to have (old versions, replayed
//! logs): it was starved, and what it did is 0. Where the options say it, the reader of fio's JSON has done so.
//!
//! Enters: observations of all files. Leaves: the same with values of 0, and the sums of such a job where others have them.

use std::collections::{BTreeMap, BTreeSet};

use super::fio::OPTION;
use super::observation::{Batch, Observation};
use crate::record::{Direction, HostFacts, Metric, Status};

/// What a direction that did nothing has values of.
const ZEROS: [&str; 3] = ["bw", "iops", "total_ios"];
/// What a job with several directions has sums of.
const SUMS: [&str; 2] = ["bw", "iops"];

/// Fills in what is missing.
pub(super) fn fill(batch: &mut Batch) {
    let mut of_jobs: BTreeMap<String, BTreeSet<u32>> = BTreeMap::new();
    let with_facts = |facts: &[HostFacts], one: &Observation| {
        let facts = one.facts.and_then(|at| facts.get(at as usize));
        facts.is_some_and(is_unsaid)
            && !one.rows.iter().any(|(row, _)| says(row))
            && matches!(one.status, Status::Done)
    };
    for one in batch.observations.iter().filter(|one| with_facts(&batch.facts, one)) {
        let mut jobs: BTreeMap<&str, BTreeSet<u32>> = BTreeMap::new();
        for (metric, _) in &one.values {
            jobs.entry(&batch.metrics[*metric as usize].job).or_default().insert(*metric);
        }
        // Files of reads and files of writes may have jobs of the same name.
        for (job, metrics) in jobs.into_iter().filter(|(_, metrics)| is_mixed(metrics, &batch.metrics)) {
            of_jobs.entry(job.to_owned()).or_default().extend(metrics);
        }
    }
    for one in batch.observations.iter_mut().filter(|one| with_facts(&batch.facts, one)) {
        for metrics in of_jobs.values() {
            let has = |metric: &u32| one.values.iter().any(|(known, _)| known == metric);
            if !metrics.iter().any(has) {
                continue;
            }
            let missing: Vec<u32> = metrics.iter().copied().filter(|metric| !has(metric)).collect();
            let added = missing.into_iter().filter_map(|metric| {
                let name = batch.metrics[metric as usize].name.as_str();
                match name.split_once('.') {
                    Some((direction, rest)) if is_direction(direction) && ZEROS.contains(&rest) => {
                        Some((metric, 0.0))
                    }
                    None if SUMS.contains(&name) => {
                        Some((metric, sum(one, metrics, name, batch.metrics.as_slice())))
                    }
                    _ => None,
                }
            });
            let added: Vec<(u32, f64)> = added.collect();
            one.values.extend(added);
        }
    }
}

/// Whether these are facts of fio that do not say which directions it was to have.
fn is_unsaid(facts: &HostFacts) -> bool {
    facts.get("fio.version").is_some()
        && !facts.names().filter_map(|name| name.strip_prefix(OPTION)).any(says)
}

/// Whether an option, maybe of a section, says which directions there are.
fn says(option: &str) -> bool {
    matches!(option.split('[').next(), Some("rw" | "readwrite"))
}

fn is_mixed(of_job: &BTreeSet<u32>, metrics: &[Metric]) -> bool {
    let direction =
        |metric: &u32| metrics[*metric as usize].name.split_once('.').map(|(direction, _)| direction);
    let all: BTreeSet<&str> = of_job.iter().filter_map(direction).filter(|name| is_direction(name)).collect();
    all.len() > 1
}

fn is_direction(name: &str) -> bool {
    Direction::ALL.iter().any(|direction| direction.name() == name)
}

/// What the directions of a job that did something come to.
fn sum(one: &Observation, of_job: &BTreeSet<u32>, name: &str, metrics: &[Metric]) -> f64 {
    let is_part = |metric: &u32| {
        let part = metrics[*metric as usize].name.split_once('.');
        of_job.contains(metric)
            && part.is_some_and(|(direction, rest)| is_direction(direction) && rest == name)
    };
    one.values.iter().filter(|(metric, _)| is_part(metric)).map(|(_, value)| value).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::{Better, Unit};

    fn filled(option: Option<&str>, mixed: bool) -> Vec<(String, f64)> {
        let mut batch = Batch::default();
        let metric = |name: &str| Metric::new("j", name, Unit::PerSecond, Better::Higher);
        let all = ["read.iops", "read.clat_ns.mean", "write.iops", "write.clat_ns.mean", "iops"];
        for names in [if mixed { &all[..] } else { &all[2..4] }, &all[..2]] {
            let mut facts = HostFacts::default();
            facts.set("fio.version", "fio-2.1");
            option.iter().for_each(|name| facts.set(*name, "randrw"));
            let mut one = Observation::new(0);
            one.facts = Some(batch.facts(facts));
            one.values = names.iter().map(|name| (batch.metric(&metric(name)), 5.0)).collect();
            batch.observe(one).unwrap();
        }
        fill(&mut batch);
        let of = |(metric, value): &(u32, f64)| (batch.metrics[*metric as usize].name.clone(), *value);
        batch.observations[1].values.iter().skip(2).map(of).collect()
    }

    #[test]
    fn a_direction_that_other_trials_have_is_zero() {
        assert_eq!(filled(None, true), [("write.iops".to_owned(), 0.0), ("iops".to_owned(), 5.0)]);
        assert_eq!(filled(None, false), [], "files of reads beside files of writes");
        // What the options say is no business of this.
        assert_eq!(
            (filled(Some("fio.rw"), true), filled(Some("fio.readwrite[j]"), true)),
            (Vec::new(), Vec::new())
        );
    }
}
