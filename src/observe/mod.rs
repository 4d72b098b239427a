//! What is watched while a trial runs: one file an observer.
//!
//! Enters: the path that will be written. Leaves: samples, e.g. `dev.flushes`, histograms and series, or the reason why there are none. An
//! observer reads counters before and after, or events meanwhile (`perf/`); it must not touch the device, nor know the engine. Those that
//! are asked for by name come behind the standard ones. They may look at files when the trial has ended, and may cost time while it runs.
//! One that cannot watch says why and what helps, and the trial counts all the same.

mod blocks;
mod calls;
mod cpu;
mod device_counters;
mod events;
mod extents;
mod fs;
mod journal_place;
mod locks;
mod per_operation;
mod perf;
mod rusage;
mod server;
mod sleep_place;
mod subject;
mod unseen;
mod usage;
mod waited;
mod waits;
mod wakers;

use std::path::{Path, PathBuf};

pub use blocks::BlocksObserver;
pub use calls::CallsObserver;
pub use cpu::CpuObserver;
pub use device_counters::{DeviceObserver, device_stat};
pub use events::{EventsObserver, Uncountable, uncountable};
pub use extents::ExtentsObserver;
pub use fs::FsObserver;
pub use locks::LocksObserver;
pub use per_operation::add_flushes_per_operation;
pub use rusage::RusageObserver;
pub use server::{ServerObserver, call_workers_clients};
pub use unseen::Unseen;
pub use waits::WaitsObserver;

use perf::Whose;

use crate::catalog::server_of;
use crate::record::{KeptFile, Note, Outcome, Sample};

/// The observer `blocks` whose events are kept as files, as an agent is asked for it.
pub const KEEPS_TRACES: &str = "blocks+trace";

/// It only reads where files lie.
const NEEDS_NO_RIGHT: &str = "extents";
/// They need the device or the filesystem of a trial, and tracepoints.
const OF_A_DEVICE: [&str; 2] = ["blocks", "fs"];
/// It needs tracepoints and nothing else.
const SAME_RIGHTS: &str = "waits";

/// Something watched from before a trial's I/O until after it.
pub trait Observer {
    /// Takes the counters before the trial.
    fn start(&mut self);

    /// The trial is over: what comes from now on is not counted. Others stop first, which takes time.
    fn end(&mut self) {}

    /// Takes them again; the samples are the differences. Called once, after [`Observer::start`].
    ///
    /// # Errors
    /// Why it saw nothing, which becomes a note for the reader; the trial counts all the same.
    fn stop(&mut self) -> Result<Outcome, Unseen>;

    /// Further samples that take files or time to make. Asked for once, when all observers of the trial have stopped, so that none sees it.
    fn afterwards(&mut self) -> Vec<Sample> {
        Vec::new()
    }

    /// Files that are kept with the trial. Asked for once, after [`Observer::afterwards`].
    fn files(&mut self) -> Vec<KeptFile> {
        Vec::new()
    }
}

/// The observers of every trial on `path`: the device's counters, and resource use of the process and its children, unless a server does
/// their work.
#[must_use]
pub fn standard(path: &Path, has_server: bool) -> Vec<Box<dyn Observer>> {
    let mut all: Vec<Box<dyn Observer>> = Vec::new();
    if !has_server {
        all.push(Box::new(RusageObserver::default()));
    }
    all.push(Box::new(DeviceObserver::under(path)));
    all
}

/// What an observer that is asked for by name is told of the trial.
#[derive(Clone, Debug, Default)]
pub struct Place {
    /// Where the files lie that the job does not place itself.
    pub directory: PathBuf,
    /// Files that are written elsewhere.
    pub elsewhere: Vec<PathBuf>,
    /// What the device counters are of: a directory, or the device itself.
    pub watched: PathBuf,
    /// Whether the load is a user's program: samples of it have its stack.
    pub is_program: bool,
    /// Processes that run already and do the work: they are watched instead of what the trial starts.
    pub server: Option<Vec<i32>>,
}

/// The observer of this name (those an experiment may ask for); `None`: there is none.
#[must_use]
pub fn named(name: &str, place: &Place) -> Option<Box<dyn Observer>> {
    let server = place.server.as_deref();
    if let (Some(server), Some(_)) = (server, server_of(name)) {
        return Some(Box::new(ServerObserver::prepared(name, server)));
    }
    let whose = Whose::of(server);
    match name {
        "extents" => Some(Box::new(ExtentsObserver::of(&place.directory, place.elsewhere.clone()))),
        "cpu" => Some(Box::new(CpuObserver::prepared(whose, place.is_program))),
        "locks" => Some(Box::new(LocksObserver::prepared(whose))),
        "waits" => Some(Box::new(WaitsObserver::prepared(whose))),
        "calls" => Some(Box::new(CallsObserver::prepared(whose))),
        "blocks" => Some(Box::new(BlocksObserver::prepared(place, false))),
        KEEPS_TRACES => Some(Box::new(BlocksObserver::prepared(place, true))),
        "fs" => Some(Box::new(FsObserver::prepared(place))),
        _ => EventsObserver::prepared(name).map(|counting| Box::new(counting) as Box<dyn Observer>),
    }
}

/// Tries an observer where nothing happens: what it has to say, or why it cannot watch here. It is started and stopped, and nothing stays.
/// What a trial's device and filesystem offer is known only when they are there: of those that need them the rights are tried alone.
///
/// # Errors
/// The reason, with what helps.
pub fn tried(name: &str) -> Result<Vec<Note>, Unseen> {
    // Which processes are a server's, each trial finds out.
    if name == NEEDS_NO_RIGHT || server_of(name).is_some() {
        return Ok(Vec::new());
    }
    let instead = OF_A_DEVICE.contains(&name).then_some(SAME_RIGHTS);
    let observer = named(instead.unwrap_or(name), &Place::default());
    let mut observer = observer.ok_or_else(|| Unseen::new(name, "there is no such observer"))?;
    observer.start();
    match (observer.stop(), instead) {
        (Ok(seen), None) => Ok(seen.notes),
        (Ok(_), Some(_)) => Ok(Vec::new()),
        (Err(reason), None) => Err(reason),
        (Err(reason), Some(_)) => Err(Unseen::new(format!("{name}: not watched"), reason.why)),
    }
}

/// Stops the observers and adds what they saw to the outcome. A value that the engine itself delivered under the same
/// name stays: it knows better which process did the work.
pub fn stop_all(observers: &mut [Box<dyn Observer>], outcome: &mut Outcome) {
    observers.iter_mut().for_each(|observer| observer.end());
    for observer in observers.iter_mut() {
        match observer.stop() {
            Ok(seen) => add(seen, outcome),
            Err(reason) => outcome.notes.push(reason.to_string().into()),
        }
    }
    outcome.samples.extend(observers.iter_mut().flat_map(|observer| observer.afterwards()));
    outcome.notes.extend(cpu::unsampled_note(&outcome.samples));
}

fn add(seen: Outcome, outcome: &mut Outcome) {
    let name = |sample: &Sample| (sample.metric.job.clone(), sample.metric.name.clone());
    add_missing(seen.samples, &mut outcome.samples, name);
    add_missing(seen.histograms, &mut outcome.histograms, |histogram| {
        (histogram.job.clone(), histogram.direction, histogram.kind)
    });
    add_missing(seen.series, &mut outcome.series, |series| (series.job.clone(), series.name.clone()));
    outcome.notes.extend(seen.notes);
}

fn add_missing<T, N: PartialEq>(seen: Vec<T>, known: &mut Vec<T>, name: impl Fn(&T) -> N) {
    for value in seen {
        if !known.iter().any(|known| name(known) == name(&value)) {
            known.push(value);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::record::{Direction, LatencyHistogram, LatencyKind, Series, Unit};

    struct Fixed(Result<Outcome, Unseen>);

    impl Observer for Fixed {
        fn start(&mut self) {}

        fn stop(&mut self) -> Result<Outcome, Unseen> {
            self.0.clone()
        }
    }

    #[test]
    fn what_needs_no_right_is_not_tried() {
        assert_eq!(tried("extents"), Ok(Vec::new()));
        assert_eq!(tried("nobody").unwrap_err().to_string(), "nobody: there is no such observer");
    }

    #[test]
    fn all_that_was_seen_is_added_and_a_reason_is_a_note() {
        let seen = |hdr: u8, value: f64| {
            let (job, name) = (String::new(), "fill".to_owned());
            let (direction, kind) = (Direction::Read, LatencyKind::Lat);
            Outcome {
                histograms: vec![LatencyHistogram { job: job.clone(), direction, kind, hdr: vec![hdr] }],
                series: vec![Series { job, name, interval_s: 1.0, values: vec![value] }],
                ..Outcome::default()
            }
        };
        let fixed: [Result<Outcome, Unseen>; 3] =
            [Err(Unseen::new("no counters", "gone")), Ok(seen(2, 2.0)), Ok(Outcome::default())];
        let mut observers: Vec<Box<dyn Observer>> =
            fixed.into_iter().map(|seen| Box::new(Fixed(seen)) as Box<dyn Observer>).collect();
        let mut outcome = Outcome::default();
        stop_all(&mut observers, &mut outcome);
        let expected = Outcome { notes: vec!["no counters: gone".into()], ..seen(2, 2.0) };
        assert_eq!(outcome, expected);
        let mut engines = seen(1, 1.0);
        stop_all(&mut observers[1..], &mut engines);
        assert_eq!(engines, seen(1, 1.0), "the engine's stay");
    }

    #[test]
    fn a_synced_write_is_seen_and_the_engines_values_stay() {
        let directory = tempfile::tempdir().unwrap();
        let mut observers = standard(directory.path(), false);
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
                outcome.notes.iter().any(|note| note.text.contains("no block device")),
                "{:?}",
                outcome.notes
            ),
        }
    }
}
