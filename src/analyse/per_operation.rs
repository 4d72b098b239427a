//! What counts work, for each operation or byte of the load.
//!
//! Enters: a run's metrics and the values of a trial. Leaves: further metrics, `usr_cpu_per_op` or `dev.write_bytes_per_byte`, with
//! their values. It must not know what is compared. A form that was recorded is not made again. fsync and its like are no operations.

use std::collections::HashMap;

use super::watched_places;
use crate::record::{Metric, Run};
use crate::units::Unit;

/// Counted for each operation of any direction.
const OF_ALL: [&str; 6] = ["usr_cpu", "sys_cpu", "ctx", "ctx.voluntary", "ctx.involuntary", "dev.flushes"];
/// Counted for what the load itself did in the same direction: the metric, the end of its form's name, and the load's metric.
const OF_DIRECTION: [(&str, &str, &str); 4] = [
    ("dev.read_ios", "_per_op", "read.total_ios"),
    ("dev.write_ios", "_per_op", "write.total_ios"),
    ("dev.read_bytes", "_per_byte", "read.io_bytes"),
    ("dev.write_bytes", "_per_byte", "write.io_bytes"),
];
/// What observers count whose names are fixed, for each operation of any direction; of places (`watched_places.rs`) all but the longest.
const WATCHED: [&str; 18] = [
    "locks.wait_time",
    "locks.waits",
    "cpu.user_time",
    "cpu.kernel_time",
    "waits.sleep_time",
    "waits.storage_time",
    "waits.wakeup_time",
    "waits.sleeps",
    "blocks.read_bios",
    "blocks.write_bios",
    "blocks.read_requests",
    "blocks.write_requests",
    "blocks.merges",
    "blocks.flushes",
    "blocks.flush_time",
    "blocks.fua_writes",
    "blocks.metadata_bytes",
    "blocks.journal_bytes",
];
/// The same of what a filesystem does and of tracepoints that are counted, where a name follows: `fs.time.commit`.
const WATCHED_BY_NAME: [&str; 3] = ["fs.time", "fs.count", "events"];
const OPERATIONS: [&str; 3] = ["read.total_ios", "write.total_ios", "trim.total_ios"];

/// A metric made of others.
pub(super) struct Form {
    pub metric: Metric,
    /// What is counted.
    counted: u32,
    /// What it is divided by the sum of.
    amounts: Vec<u32>,
}

impl Form {
    /// Its value in a trial with these values; `None` where something is missing or nothing was done.
    pub(super) fn value(&self, values: &HashMap<u32, f64>) -> Option<f64> {
        let counted = values.get(&self.counted)?;
        let amount: f64 = self.amounts.iter().filter_map(|metric| values.get(metric)).sum();
        (amount > 0.0).then(|| counted / amount)
    }
}

/// The names a metric may have in a form of its own.
pub(super) fn names_of_forms(metric: &str) -> [String; 2] {
    ["_per_op", "_per_byte"].map(|end| name_of_form(metric, end))
}

/// `fs.time` and `commit` of `fs.time.commit`.
fn by_name(metric: &str) -> Option<(&str, &str)> {
    let of = |what: &'static str| Some((what, metric.strip_prefix(what)?.strip_prefix('.')?));
    WATCHED_BY_NAME.into_iter().find_map(of)
}

/// `usr_cpu_per_op`; of a place `locks.at_per_op.mutex.f`, so that `locks.at_per_op` means all of them.
fn name_of_form(metric: &str, end: &str) -> String {
    match watched_places::parts(metric).or_else(|| by_name(metric)) {
        Some((what, place)) => format!("{what}{end}.{place}"),
        None => format!("{metric}{end}"),
    }
}

fn is_watched(metric: &str) -> bool {
    let of_place = watched_places::parts(metric).is_some_and(|(what, _)| !what.ends_with(".longest_at"));
    of_place || by_name(metric).is_some() || WATCHED.contains(&metric)
}

/// What a run measured, and the forms that can be made of it.
#[must_use]
pub fn metrics_of(run: &Run) -> Vec<Metric> {
    run.metrics.iter().cloned().chain(forms(run).into_iter().map(|form| form.metric)).collect()
}

/// The forms of a run's metrics, for the whole trial and for each job.
pub(super) fn forms(run: &Run) -> Vec<Form> {
    run.metrics.iter().enumerate().filter_map(|(at, metric)| form(run, at as u32, metric)).collect()
}

fn form(run: &Run, counted: u32, metric: &Metric) -> Option<Form> {
    let own = OF_DIRECTION.iter().find(|(name, ..)| *name == metric.name);
    let (end, of): (&str, &[&str]) = match own {
        Some((_, end, of)) => (end, std::slice::from_ref(of)),
        None if OF_ALL.contains(&metric.name.as_str()) || is_watched(&metric.name) => {
            ("_per_op", &OPERATIONS)
        }
        None => return None,
    };
    let name = name_of_form(&metric.name, end);
    if run.metrics.iter().any(|known| known.job == metric.job && known.name == name) {
        return None;
    }
    let of_job = |job: Option<&str>| {
        let fits =
            |known: &Metric| of.contains(&known.name.as_str()) && job.is_none_or(|job| known.job == job);
        let metrics = (0_u32..).zip(&run.metrics);
        metrics.filter(|(_, known)| fits(known)).map(|(at, _)| at).collect::<Vec<u32>>()
    };
    // The whole trial did what its jobs did, where it has no sum of its own.
    let own = of_job(Some(&metric.job));
    let amounts = if own.is_empty() && metric.job.is_empty() { of_job(None) } else { own };
    // Bytes for a byte are a plain number.
    let unit = if end == "_per_byte" { Unit::Count } else { metric.unit.clone() };
    let metric = Metric { name, unit, ..metric.clone() };
    (!amounts.is_empty()).then_some(Form { metric, counted, amounts })
}

#[cfg(test)]
mod tests {
    use super::super::made_up::{Made, run_of};
    use super::*;
    use crate::units::Better;

    /// (job, name, value) of all forms of a trial with these values.
    fn made(values: &[(&str, &str, f64)]) -> Vec<(String, String, f64)> {
        let mut run = run_of(&Made::default(), 4);
        run.metrics = values
            .iter()
            .map(|(job, name, _)| Metric {
                job: (*job).to_owned(),
                name: (*name).to_owned(),
                unit: Unit::Count,
                better: Better::Lower,
            })
            .collect();
        let values: HashMap<u32, f64> = (0_u32..).zip(values.iter().map(|(.., value)| *value)).collect();
        let of =
            |form: &Form| Some((form.metric.job.clone(), form.metric.name.clone(), form.value(&values)?));
        forms(&run).iter().filter_map(of).collect()
    }

    fn told(job: &str, name: &str, value: f64) -> (String, String, f64) {
        (job.to_owned(), name.to_owned(), value)
    }

    #[test]
    fn the_whole_trial_counts_the_operations_of_its_jobs() {
        let ios = [("a", "write.total_ios", 8.0), ("b", "read.total_ios", 2.0)];
        assert_eq!(made(&[("", "usr_cpu", 5.0), ios[0], ios[1]]), [told("", "usr_cpu_per_op", 0.5)]);
        assert_eq!(made(&[("a", "usr_cpu", 4.0), ios[0], ios[1]]), [told("a", "usr_cpu_per_op", 0.5)]);
        let own = ("", "write.total_ios", 10.0);
        assert_eq!(made(&[("", "ctx", 5.0), ios[0], own]), [told("", "ctx_per_op", 0.5)]);
    }

    #[test]
    fn bytes_of_the_device_are_for_the_bytes_of_their_direction() {
        let bytes = [("a", "write.io_bytes", 4096.0), ("a", "read.io_bytes", 1.0)];
        let written = ("", "dev.write_bytes", 8192.0);
        assert_eq!(made(&[written, bytes[0], bytes[1]]), [told("", "dev.write_bytes_per_byte", 2.0)]);
        assert_eq!(made(&[written, bytes[1]]), [], "the load wrote nothing");
    }

    #[test]
    fn what_a_filesystem_did_has_a_form_below_one_name() {
        let ios = ("", "write.total_ios", 10.0);
        let values = [
            ("", "fs.time.commit", 5.0),
            ("", "fs.longest.commit", 2.0),
            ("", "fs.count.jbd2_end_commit", 20.0),
            ios,
        ];
        assert_eq!(
            made(&values),
            [told("", "fs.time_per_op.commit", 0.5), told("", "fs.count_per_op.jbd2_end_commit", 2.0)]
        );
        assert_eq!(made(&[("", "blocks.flushes", 5.0), ios]), [told("", "blocks.flushes_per_op", 0.5)]);
    }

    #[test]
    fn what_was_watched_at_a_place_has_a_form_below_one_name() {
        let ios = ("", "write.total_ios", 10.0);
        let values = [
            ("", "locks.at.mutex.f", 5.0),
            ("", "locks.longest_at.mutex.f", 2.0),
            ("", "locks.waits", 20.0),
            ios,
        ];
        assert_eq!(
            made(&values),
            [told("", "locks.at_per_op.mutex.f", 0.5), told("", "locks.waits_per_op", 2.0)]
        );
    }

    #[test]
    fn what_was_recorded_is_not_made_again() {
        let flushes = [("", "dev.flushes", 3.0), ("", "dev.flushes_per_op", 1.0)];
        assert_eq!(made(&[flushes[0], flushes[1], ("", "write.total_ios", 6.0)]), []);
        assert_eq!(made(&[flushes[0], ("", "write.total_ios", 0.0)]), [], "nothing was done");
    }
}
