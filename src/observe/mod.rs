//! What is watched while a trial runs: one file an observer.
//!
//! Enters: the path that will be written. Leaves: samples named as in design, e.g. `dev.flushes`. An observer reads
//! counters before and after; it must not touch the device, nor know the engine. Those that are asked for by name come behind
//! the standard ones and may look at files when the trial has ended.

mod device_counters;
mod extents;
mod per_operation;
mod rusage;

use std::path::{Path, PathBuf};

pub use device_counters::{DeviceObserver, device_stat};
pub use extents::ExtentsObserver;
pub use per_operation::add_flushes_per_operation;
pub use rusage::RusageObserver;

use crate::record::{Outcome, Sample};

/// Something watched from before a trial's I/O until after it.
pub trait Observer {
    /// Takes the counters before the trial.
    fn start(&mut self);

    /// Takes them again; the samples are the differences. Called once, after [`Observer::start`].
    fn stop(&mut self) -> Vec<Sample>;

    /// What a reader must know, e.g. why there are no samples.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }
}

/// The observers of every trial on `path`: resource use of the process and its children, and the device's counters.
#[must_use]
pub fn standard(path: &Path) -> Vec<Box<dyn Observer>> {
    vec![Box::new(RusageObserver::default()), Box::new(DeviceObserver::under(path))]
}

/// What an observer that is asked for by name is told of the trial.
#[derive(Clone, Debug, Default)]
pub struct Place {
    /// Where the files lie that the job does not place itself.
    pub directory: PathBuf,
    /// Files that are written elsewhere.
    pub elsewhere: Vec<PathBuf>,
}

/// The observer of this name (those an experiment may ask for); `None`: there is none.
#[must_use]
pub fn named(name: &str, place: &Place) -> Option<Box<dyn Observer>> {
    match name {
        "extents" => Some(Box::new(ExtentsObserver::of(&place.directory, place.elsewhere.clone()))),
        _ => None,
    }
}

/// Stops the observers and adds what they saw to the outcome. A value that the engine itself delivered under the same
/// name stays: it knows better which process did the work.
pub fn stop_all(observers: &mut [Box<dyn Observer>], outcome: &mut Outcome) {
    for observer in observers {
        for sample in observer.stop() {
            let same = |known: &Sample| {
                known.metric.job == sample.metric.job && known.metric.name == sample.metric.name
            };
            if !outcome.samples.iter().any(same) {
                outcome.samples.push(sample);
            }
        }
        outcome.notes.extend(observer.notes());
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::record::Unit;

    #[test]
    fn a_synced_write_is_seen_and_the_engines_values_stay() {
        let directory = tempfile::tempdir().unwrap();
        let mut observers = standard(directory.path());
        observers.iter_mut().for_each(|observer| observer.start());
        let mut file = std::fs::File::create(directory.path().join("f")).unwrap();
        file.write_all(&vec![7; 1 << 20]).unwrap();
        file.sync_all().unwrap();
        let mut outcome = Outcome::default();
        outcome.samples.push(Sample::new("", "usr_cpu", Unit::Seconds, 42.0));
        stop_all(&mut observers, &mut outcome);
        let value = |name: &str| outcome.samples.iter().find(|s| s.metric.name == name).map(|s| s.value);
        assert_eq!(value("usr_cpu"), Some(42.0));
        assert!(value("sys_cpu").is_some_and(|s| s >= 0.0));
        match value("dev.write_bytes") {
            Some(bytes) => assert!(bytes >= 1_048_576.0, "{bytes}"),
            None => assert!(
                outcome.notes.iter().any(|note| note.contains("no block device")),
                "{:?}",
                outcome.notes
            ),
        }
    }
}
