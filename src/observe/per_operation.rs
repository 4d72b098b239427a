//! `dev.flushes_per_op`: the flushes of the device for each operation of the workload; `dev.flushes_per_sync`: for each fsync of it.
//!
//! Enters: the outcome of a trial with everything that was counted in it, of an engine that counts operations. Leaves: these samples.
//! What an operation is, the names of the samples say: `operations` where the engine counts them itself (dbench), else `files` (of those it
//! made), else all `read.total_ios`, `write.total_ios` and `trim.total_ios`; phases' `total_ios` before any of these. fsync and its like
//! are no operations: they are what makes flushes. They are `sync.total_ios`, or the `Flush` of dbench's clients. A trial with a ramp has none of
//! these samples: its flushes are also those of the ramp, and its operations are not.

use crate::record::{NoteKind, Outcome, Sample, Unit};

/// Adds the samples; nothing where flushes or operations were not counted, or a note says that there was a ramp. Not to be asked of an engine whose samples have
/// names that a person chose.
pub fn add_flushes_per_operation(outcome: &mut Outcome) {
    if outcome.notes.iter().any(|note| note.kind == NoteKind::Ramp) {
        return;
    }
    let samples = &outcome.samples;
    let sum = |names: &[&str]| {
        let of = |sample: &&Sample| names.contains(&sample.metric.name.as_str());
        let found: Vec<f64> = samples.iter().filter(of).map(|sample| sample.value).collect();
        (!found.is_empty()).then(|| found.iter().sum::<f64>())
    };
    let operations = sum(&["total_ios"])
        .or_else(|| sum(&["operations"]))
        .or_else(|| sum(&["files"]))
        .or_else(|| sum(&["read.total_ios", "write.total_ios", "trim.total_ios"]));
    let of_all = |sample: &&Sample| sample.metric.job.is_empty() && sample.metric.name == "dev.flushes";
    let flushes = samples.iter().find(of_all).map(|sample| sample.value);
    let syncs = sum(&["sync.total_ios"]).or_else(|| sum(&["Flush.count"]));
    let Some(flushes) = flushes else { return };
    for (name, amount) in [("dev.flushes_per_op", operations), ("dev.flushes_per_sync", syncs)] {
        let each = amount.filter(|amount| *amount > 0.0).map(|amount| flushes / amount);
        outcome.samples.extend(each.map(|each| Sample::new("", name, Unit::Count, each)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Note;

    fn with(samples: &[(&str, &str, f64)]) -> [Option<f64>; 2] {
        let of = |(job, name, value): &(&str, &str, f64)| Sample::new(job, name, Unit::Count, *value);
        let mut outcome = Outcome { samples: samples.iter().map(of).collect(), ..Outcome::default() };
        add_flushes_per_operation(&mut outcome);
        ["dev.flushes_per_op", "dev.flushes_per_sync"].map(|name| {
            let found = outcome.samples.iter().find(|sample| sample.metric.name == name)?;
            assert_eq!((found.metric.job.as_str(), &found.metric.unit), ("", &Unit::Count));
            Some(found.value)
        })
    }

    #[test]
    fn operations_are_what_the_engine_counts() {
        let flushes = ("", "dev.flushes", 30.0);
        let ios = [("a", "write.total_ios", 8.0), ("b", "read.total_ios", 2.0), ("a", "sync.total_ios", 5.0)];
        assert_eq!(with(&[flushes, ios[0], ios[1], ios[2]]), [Some(3.0), Some(6.0)]);
        assert_eq!(with(&[("", "operations", 60.0), flushes]), [Some(0.5), None]);
        assert_eq!(
            with(&[("", "operations", 60.0), ("", "Flush.count", 10.0), flushes]),
            [Some(0.5), Some(3.0)]
        );
        assert_eq!(with(&[("", "files", 15.0), flushes]), [Some(2.0), None]);
        let phases = [("create", "total_ios", 10.0), ("unlink", "total_ios", 5.0)];
        assert_eq!(with(&[("", "files", 10.0), phases[0], phases[1], flushes]), [Some(2.0), None]);
    }

    #[test]
    fn flushes_of_a_ramp_are_for_no_operation() {
        let of = |name: &str, value: f64| Sample::new("", name, Unit::Count, value);
        let samples = vec![of("dev.flushes", 30.0), of("operations", 60.0)];
        let notes = vec![Note { text: "ramp_time".to_owned(), kind: NoteKind::Ramp }];
        let mut outcome = Outcome { samples, notes, ..Outcome::default() };
        add_flushes_per_operation(&mut outcome);
        assert_eq!(outcome.samples.len(), 2);
    }

    #[test]
    fn without_operations_or_flushes_there_is_none() {
        assert_eq!(with(&[("", "dev.flushes", 3.0)]), [None, None]);
        assert_eq!(with(&[("", "dev.flushes", 3.0), ("", "operations", 0.0)]), [None, None]);
        assert_eq!(with(&[("create", "dev.flushes", 3.0), ("", "operations", 2.0)]), [None, None]);
        assert_eq!(with(&[("", "operations", 2.0)]), [None, None]);
    }
}
