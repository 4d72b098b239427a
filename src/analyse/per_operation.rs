//! What counts work, for each operation or byte of the load.
//!
//! Enters: a run's metrics and the values of a trial. Leaves: further metrics, `usr_cpu_per_op` or `dev.write_bytes_per_byte`, with
//! their values. It must not know what is compared. A form that was recorded is not made again. fsync and its like are no operations. Where
//! any trial has a ramp, what the device and observers count has no form: operations of the ramp are not counted.

use std::collections::HashMap;

use super::watched_places;
use crate::record::{self, Listed, Metric, NoteKind, OF_ANY, Run, Trial, forms_of, includes_a_ramp};
use crate::units::Unit;

/// What observers count of a filesystem, and of tracepoints, where a name follows: `fs.time.commit`. They are counted for each operation.
const WATCHED_BY_NAME: [&str; 3] = ["fs.time", "fs.count", "events"];
/// Operations had different sizes where their means differ by more than this share.
const SIZES_DIFFER: f64 = 0.1;

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

/// Of what observers name themselves all but the longest, and what is of each call already, is counted for each operation.
fn is_watched_by_name(metric: &str) -> bool {
    let is_counted = |what: &str| !what.ends_with(".longest_at") && what != "calls.slow_at";
    let of_place = watched_places::parts(metric).is_some_and(|(what, _)| is_counted(what));
    of_place || by_name(metric).is_some()
}

/// What a run measured, and the forms that can be made of it.
#[must_use]
pub fn metrics_of(run: &Run) -> Vec<Metric> {
    let forms = all_forms(run).into_iter().map(|(_, form)| form.metric);
    run.metrics.iter().cloned().chain(forms).collect()
}

/// The forms of a run's metrics that say something of their own, and those that the run or one of `wishes` names.
pub(super) fn forms(run: &Run, wishes: &[&str]) -> Vec<Form> {
    let design = &run.design;
    let of_run = design.primary.iter().chain(&design.show).map(String::as_str);
    let asked: Vec<&str> = of_run.chain(wishes.iter().copied()).collect();
    let sizes_differ = sizes_differ(run);
    let is_wanted = |(listed, form): &(Listed, Form)| {
        let of_its_own = match listed {
            Listed::Always => true,
            Listed::WhereSizesDiffer => sizes_differ,
            Listed::OnRequest => false,
        };
        of_its_own || asked.iter().any(|wish| wish.contains(&form.metric.name))
    };
    all_forms(run).into_iter().filter(is_wanted).map(|(_, form)| form).collect()
}

/// All forms of a run's metrics, for the whole trial and for each job.
fn all_forms(run: &Run) -> Vec<(Listed, Form)> {
    let mut all = Vec::new();
    let has_ramp = |trial: &Trial| trial.notes.iter().any(|note| note.kind == NoteKind::Ramp);
    let with_ramp = run.trials.iter().any(has_ramp);
    for (at, metric) in (0_u32..).zip(&run.metrics) {
        if with_ramp && includes_a_ramp(&metric.name) {
            continue;
        }
        let own: &[record::Form] =
            if is_watched_by_name(&metric.name) { &OF_ANY } else { forms_of(&metric.name) };
        all.extend(own.iter().filter_map(|of| Some((of.listed, form(run, (at, metric), of)?))));
    }
    all
}

/// Whether operations of some trials moved more bytes each than those of others.
fn sizes_differ(run: &Run) -> bool {
    let ends_with = |end: &str| -> Vec<u32> {
        let is_amount = |name: &str| {
            name.strip_suffix(end).is_some_and(|head| ["read.", "write.", "trim."].contains(&head))
        };
        (0_u32..).zip(&run.metrics).filter(|(_, metric)| is_amount(&metric.name)).map(|(at, _)| at).collect()
    };
    let (operations, bytes) = (ends_with("total_ios"), ends_with("io_bytes"));
    let (mut least, mut most) = (f64::INFINITY, 0.0_f64);
    for trial in &run.trials {
        let sum = |of: &[u32]| -> f64 {
            trial.values.iter().filter(|(metric, _)| of.contains(metric)).map(|(_, value)| value).sum()
        };
        let size = sum(&bytes) / sum(&operations);
        if size.is_finite() && size > 0.0 {
            (least, most) = (least.min(size), most.max(size));
        }
    }
    most > least * (1.0 + SIZES_DIFFER)
}

fn form(run: &Run, (counted, metric): (u32, &Metric), form: &record::Form) -> Option<Form> {
    let (end, of) = (form.end, form.amounts);
    // Beside I/Os of a job these are names of somebody's own.
    if form.is_of_the_engine() && run.metrics.iter().any(|known| known.name.ends_with(".total_ios")) {
        return None;
    }
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
    let unit =
        if end == "_per_byte" && metric.unit == Unit::Bytes { Unit::Count } else { metric.unit.clone() };
    let metric = Metric { name, unit, ..metric.clone() };
    (!amounts.is_empty()).then_some(Form { metric, counted, amounts })
}

#[cfg(test)]
mod tests {
    use super::super::made_up::{Made, run_of};
    use super::*;
    use crate::record::Note;
    use crate::units::Better;

    /// (job, name, value) of all forms of a trial with these values.
    fn made(values: &[(&str, &str, f64)]) -> Vec<(String, String, f64)> {
        let mut run = run_of(&Made::default(), 4);
        run.metrics = values
            .iter()
            .map(|(job, name, _)| Metric::new(*job, *name, Unit::Count, Better::Lower))
            .collect();
        let values: HashMap<u32, f64> = (0_u32..).zip(values.iter().map(|(.., value)| *value)).collect();
        let of =
            |form: &Form| Some((form.metric.job.clone(), form.metric.name.clone(), form.value(&values)?));
        forms(&run, &[]).iter().filter_map(of).collect()
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
    fn what_an_engine_counts_itself_are_operations() {
        let cpu = ("", "usr_cpu", 5.0);
        assert_eq!(made(&[cpu, ("", "operations", 10.0)]), [told("", "usr_cpu_per_op", 0.5)]);
        let written = [("", "dev.write_ios", 30.0), ("", "dev.write_bytes", 300.0)];
        assert_eq!(
            made(&[written[0], written[1], ("", "files", 10.0)]),
            [told("", "dev.write_ios_per_op", 3.0), told("", "dev.write_bytes_per_op", 30.0)]
        );
        let ios = ("", "write.total_ios", 5.0);
        assert_eq!(
            made(&[cpu, ("", "files", 10.0), ios]),
            [told("", "usr_cpu_per_op", 1.0)],
            "a hook's own files"
        );
    }

    #[test]
    fn bytes_of_the_device_are_for_the_bytes_of_their_direction() {
        let bytes = [("a", "write.io_bytes", 4096.0), ("a", "read.io_bytes", 1.0)];
        let written = ("", "dev.write_bytes", 8192.0);
        assert_eq!(made(&[written, bytes[0], bytes[1]]), [told("", "dev.write_bytes_per_byte", 2.0)]);
        assert_eq!(made(&[written, bytes[1]]), [], "the load wrote nothing");
    }

    #[test]
    fn cpu_time_is_for_each_byte_where_operations_differ_in_size() {
        let of = |bytes: [f64; 2]| {
            let mut run = run_of(&Made::default(), 4);
            run.metrics = ["sys_cpu", "write.total_ios", "write.io_bytes"]
                .map(|name| {
                    let unit = if name == "sys_cpu" { Unit::Seconds } else { Unit::Count };
                    Metric::new("", name, unit, Better::Lower)
                })
                .to_vec();
            for trial in &mut run.trials {
                trial.values = vec![(0, 2.0), (1, 100.0), (2, bytes[trial.cell as usize])];
            }
            run
        };
        let names = |run: &Run| forms(run, &[]).into_iter().map(|form| form.metric.name).collect::<Vec<_>>();
        let mut alike = of([4096.0, 4096.0]);
        assert_eq!(names(&alike), ["sys_cpu_per_op"]);
        let differ = of([4096.0, 8192.0]);
        assert_eq!(names(&differ), ["sys_cpu_per_op", "sys_cpu_per_byte"]);
        let per_byte = &forms(&differ, &[])[1];
        let values: HashMap<u32, f64> = differ.trials[0].values.iter().copied().collect();
        assert_eq!((per_byte.value(&values), &per_byte.metric.unit), (Some(2.0 / 4096.0), &Unit::Seconds));
        // Whoever asks for it has it.
        alike.design.primary = Some("sys_cpu_per_byte".to_owned());
        assert_eq!(names(&alike), ["sys_cpu_per_op", "sys_cpu_per_byte"]);
        alike.design.primary = None;
        assert_eq!(forms(&alike, &["write.bw,sys_cpu_per_byte"]).len(), 2, "also when it judges anew");
    }

    #[test]
    fn bytes_of_the_device_for_each_operation_are_there_on_request() {
        let mut run = run_of(&Made::default(), 4);
        run.metrics = ["dev.write_bytes", "write.total_ios", "write.io_bytes"]
            .map(|name| Metric::new("", name, Unit::Bytes, Better::Lower))
            .to_vec();
        let names = |wishes: &[&str]| -> Vec<String> {
            forms(&run, wishes).into_iter().map(|form| form.metric.name).collect()
        };
        assert_eq!(names(&[]), ["dev.write_bytes_per_byte"]);
        assert_eq!(
            names(&["dev.write_bytes_per_op"]),
            ["dev.write_bytes_per_byte", "dev.write_bytes_per_op"]
        );
        let per_op = forms(&run, &["dev.write_bytes_per_op"]).pop().unwrap();
        let values = HashMap::from([(0, 8192.0), (1, 2.0), (2, 4096.0)]);
        assert_eq!((per_op.value(&values), &per_op.metric.unit), (Some(4096.0), &Unit::Bytes));
        assert!(metrics_of(&run).iter().any(|metric| metric.name == "dev.write_bytes_per_op"));
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
    fn what_includes_a_ramp_has_no_form() {
        let mut run = run_of(&Made::default(), 4);
        run.metrics = ["usr_cpu", "dev.write_bytes", "locks.waits", "write.total_ios", "write.io_bytes"]
            .map(|name| Metric::new("", name, Unit::Count, Better::Lower))
            .to_vec();
        assert_eq!(forms(&run, &[]).len(), 3);
        run.trials[0].notes.push(Note { text: "ramp_time".to_owned(), kind: NoteKind::Ramp });
        let names: Vec<String> = forms(&run, &[]).into_iter().map(|form| form.metric.name).collect();
        assert_eq!(names, ["usr_cpu_per_op"]);
    }

    #[test]
    fn what_was_recorded_is_not_made_again() {
        let flushes = [("", "dev.flushes", 3.0), ("", "dev.flushes_per_op", 1.0)];
        assert_eq!(made(&[flushes[0], flushes[1], ("", "write.total_ios", 6.0)]), []);
        assert_eq!(made(&[flushes[0], ("", "write.total_ios", 0.0)]), [], "nothing was done");
    }
}
