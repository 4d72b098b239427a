//! fs_mark: its settings, and its output as outcomes: files a second, and the time of each system call where it was run with `-v`.
//!
//! Enters: the text fs_mark printed, once or several times one after another. Leaves: one [`ToolTrial`] a run: its loops
//! (`-L`) are one trial, since each finds the filesystem as the one before has left it. It must not know who ran it.
//!
//! Meanings: fs_mark 3.3, README. All times are microseconds; a call that is not made is printed, and left out here, as
//! three zeros. `Files/sec` counts the time of the calls and of the program itself, unlinking left out.

use super::engine_descriptor::{EngineDescriptor, Output, SectionMetric, Settings, tool};
use super::program::Program;
use super::setting::{Setting, Value, number, said};
use super::tool_output::{ToolOutputError, ToolTrial, amount, sample};
use crate::record::{Outcome, Unit};

/// The row of the table.
pub(super) const FS_MARK: EngineDescriptor = tool(
    Program { name: "fs_mark", package: "fsmark" },
    Settings { known: SETTINGS, together, file: None, lasts_s: |_| None, takes },
    Output { format: "fs_mark output", is_line, read: outcomes_from_fs_mark, metrics },
);

// The limits are those of fs_mark.h (MAX_FILES, MAX_THREADS, MAX_IO_BUFFER_SIZE) and of its ints.
const SETTINGS: &[Setting] = &[
    Setting::new("files", Value::Whole(1, 1_000_000)),
    Setting::new("size", Value::Size(0, i32::MAX as u64)),
    Setting::new("threads", Value::Whole(1, 64)),
    Setting::new("directory_per_thread", Value::Truth),
    Setting::new("loops", Value::Whole(1, 1_000_000)),
    Setting::new("sync", Value::Whole(0, 6)),
    Setting::new("subdirectories", Value::Whole(2, 1_000_000)),
    Setting::new("per_directory", Value::Whole(1, 1_000_000)),
    Setting::new("write_size", Value::Size(1, 1 << 20)),
    Setting::new("name_length", Value::Whole(1, 255)),
    Setting::new("random_name", Value::Whole(0, 255)),
    Setting::new("keep", Value::Truth),
    Setting::new("phases", Value::Own(phases)),
    Setting::new("phase_sync", Value::Truth),
    // XATTR_SIZE_MAX of linux/limits.h.
    Setting::new("xattr_size", Value::Size(1, 65_536)),
];
/// What can be done to the files, in the order in which it makes sense.
const PHASES: [&str; 4] = ["create", "xattr", "chown", "unlink"];

/// Phases divided by commas, in their order; files that are not there cannot be changed.
fn phases(text: &str) -> Result<String, String> {
    let words: Vec<&str> =
        text.split([',', '+', '\n']).map(str::trim).filter(|word| !word.is_empty()).collect();
    let places: Option<Vec<usize>> =
        words.iter().map(|word| PHASES.iter().position(|phase| phase == word)).collect();
    match places {
        Some(places) if places.first() == Some(&0) && places.is_sorted_by(|a, b| a < b) => {
            Ok(words.join(","))
        }
        _ => Err(format!(
            "'{}' is not create, then any of xattr, chown and unlink in this order, divided by commas",
            words.join(",")
        )),
    }
}

fn together(has: &dyn Fn(&str) -> bool) -> Option<&'static str> {
    if has("phases") && has("keep") {
        Some("fs_mark.keep: phases decide what becomes of the files; take keep out")
    } else if has("phase_sync") && !has("phases") {
        Some("fs_mark.phase_sync: there are no phases; add phases = \"create,chown,unlink\"")
    } else if has("xattr_size") && !has("phases") {
        Some("fs_mark.xattr_size: there are no phases; add phases = \"create,xattr\"")
    } else if has("per_directory") && !has("subdirectories") {
        Some("fs_mark.per_directory: there are no subdirectories; add e.g. subdirectories = 10")
    } else {
        None
    }
}

/// Bytes of the files that are there at once: those of all loops, as with `-L` fs_mark removes none.
fn takes(settings: &[(String, String)]) -> Option<u64> {
    let loops = number(settings, "loops", 1)?;
    let files = number(settings, "files", 1000)?.saturating_mul(number(settings, "threads", 1)?);
    Some(files.saturating_mul(loops).saturating_mul(number(settings, "size", 51_200)?))
}

/// Files a second and the times of its calls; each phase is a section.
fn metrics(settings: &[(String, String)]) -> Vec<SectionMetric> {
    let own = ["files_per_s", "*.lat_ns.mean", "*.lat_ns.min", "*.lat_ns.max", "app_overhead_ns", "files"];
    let mut names: Vec<(&str, String)> = own.map(|name| ("", name.to_owned())).to_vec();
    let phases = said(settings, "phases").unwrap_or_default();
    for phase in PHASES.into_iter().filter(|phase| phases.split(',').any(|word| word == *phase)) {
        let of_phase = [
            "runtime", "iops", "total_ios", "lat_ns.mean", "lat_ns.min", "lat_ns.max", "dev.write_ios",
            "dev.write_bytes", "dev.flushes", "dev.flushes_per_op",
        ];
        // The calls of the first are fs_mark's own, which times them by itself.
        let timed = |name: &&str| phase != PHASES[0] || !name.starts_with("lat_ns");
        names.extend(of_phase.into_iter().filter(timed).map(|name| (phase, name.to_owned())));
    }
    names
}

/// Nanoseconds a microsecond.
const US: f64 = 1e3;

/// Whether a line is one that only fs_mark prints.
fn is_line(line: &str) -> bool {
    line.starts_with("FSUse%") && line.contains("Files/sec")
}

/// Reads every run in what fs_mark printed.
///
/// # Errors
/// No loop finished, a row that does not fit its header, or a rate that is none.
pub fn outcomes_from_fs_mark(text: &str) -> Result<Vec<ToolTrial>, ToolOutputError> {
    let mut trials = Vec::new();
    let mut reading: Option<Reading> = None;
    let mut comments = Comments::default();
    for (at, line) in text.lines().enumerate().map(|(at, line)| (at + 1, line.trim())) {
        if let Some(comment) = line.strip_prefix('#') {
            if let Some(done) = reading.take() {
                trials.push(done.trial()?);
                comments = Comments::default();
            }
            comments.line(comment.trim());
        } else if is_line(line) {
            if let Some(done) = reading.take() {
                trials.push(done.trial()?);
            }
            reading = Some(Reading::new(line, std::mem::take(&mut comments)));
        } else if let Some(reading) = reading.as_mut().filter(|_| !line.is_empty()) {
            reading.line(line, at)?;
        }
    }
    match reading {
        Some(last) => trials.push(last.trial()?),
        None if trials.is_empty() => {
            return Err(ToolOutputError::whole(
                "there is no table of fs_mark in it: no line starts with FSUse%",
            ));
        }
        None => {}
    }
    Ok(trials)
}

/// What stands above the table.
#[derive(Default)]
struct Comments {
    version: String,
    settings: Vec<(String, String)>,
}

impl Comments {
    fn line(&mut self, text: &str) {
        // "Version 3.3, 2 thread(s) starting at …"
        if let Some((version, rest)) = text.strip_prefix("Version ").and_then(|rest| rest.split_once(',')) {
            version.trim_start_matches("Version ").clone_into(&mut self.version);
            let threads = rest.split_whitespace().next().filter(|n| n.parse::<u64>().is_ok());
            self.settings.extend(threads.map(|n| ("threads".to_owned(), n.to_owned())));
        }
        // "Files info: size 4096 bytes, written with …"
        if let Some(rest) = text.strip_prefix("Files info: size ") {
            let size = rest.split_whitespace().next().filter(|n| n.parse::<u64>().is_ok());
            self.settings.extend(size.map(|n| ("size".to_owned(), n.to_owned())));
        }
        // "Sync method: INBAND FSYNC: fsync() per file in write loop."
        if let Some(rest) = text.strip_prefix("Sync method: ") {
            let method = rest.split(':').next().unwrap_or_default().trim().to_lowercase();
            self.settings.push(("sync".to_owned(), method));
        }
    }
}

/// What a column holds.
#[derive(Clone, PartialEq)]
enum Column {
    Files,
    Rate,
    Overhead,
    Min(&'static str),
    Mean(&'static str),
    Max(&'static str),
    Other,
}

/// A system call's times over all loops.
struct Call {
    name: &'static str,
    min_ns: f64,
    max_ns: f64,
    /// Mean × files.
    total_ns: f64,
}

struct Reading {
    comments: Comments,
    columns: Vec<Column>,
    files: f64,
    seconds: f64,
    overhead_ns: Option<f64>,
    calls: Vec<Call>,
    first_words: String,
}

fn call_name(header: &str) -> Option<&'static str> {
    Some(match header {
        "CREAT" => "creat",
        "WRITE" => "write",
        "FSYNC" => "fsync",
        "SYNC" => "sync",
        "CLOSE" => "close",
        "UNLINK" => "unlink",
        _ => return None,
    })
}

impl Reading {
    fn new(header: &str, comments: Comments) -> Reading {
        let mut columns = Vec::new();
        let mut words = header.split_whitespace().peekable();
        while let Some(word) = words.next() {
            match word {
                "Count" => columns.push(Column::Files),
                "Files/sec" => columns.push(Column::Rate),
                "App" if words.next_if_eq(&"Overhead").is_some() => columns.push(Column::Overhead),
                _ if words.next_if_eq(&"(Min/Avg/Max)").is_some() => {
                    columns.extend(call_name(word).map_or_else(
                        || vec![Column::Other; 3],
                        |name| vec![Column::Min(name), Column::Mean(name), Column::Max(name)],
                    ));
                }
                _ => columns.push(Column::Other),
            }
        }
        let (files, seconds, calls) = (0.0, 0.0, Vec::new());
        Reading { comments, columns, files, seconds, overhead_ns: None, calls, first_words: String::new() }
    }

    fn line(&mut self, line: &str, at: usize) -> Result<(), ToolOutputError> {
        let words: Vec<&str> = line.split_whitespace().collect();
        if words.first().is_none_or(|word| amount(word).is_none()) {
            if self.first_words.is_empty() {
                line.clone_into(&mut self.first_words);
            }
            return Ok(());
        }
        if words.len() != self.columns.len() {
            let message = format!("this row has {} numbers, its header {}", words.len(), self.columns.len());
            return Err(ToolOutputError::at(at, message));
        }
        let numbers: Vec<f64> = words.iter().map_while(|word| amount(word)).collect();
        if numbers.len() != words.len() {
            return Err(ToolOutputError::at(at, "something in this row is not a number"));
        }
        let of = |column: &Column| {
            self.columns.iter().zip(&numbers).find(|(known, _)| *known == column).map(|(_, number)| *number)
        };
        let rate = of(&Column::Rate).filter(|rate| *rate > 0.0);
        let rate = rate.ok_or_else(|| ToolOutputError::at(at, "the files a second are no rate"))?;
        // The count goes on from loop to loop.
        let count = of(&Column::Files).unwrap_or(0.0);
        let files = if count > self.files { count - self.files } else { count };
        if files <= 0.0 {
            return Err(ToolOutputError::at(at, "no file was written"));
        }
        let overhead = of(&Column::Overhead);
        self.files += files;
        self.seconds += files / rate;
        if let Some(us) = overhead {
            *self.overhead_ns.get_or_insert(0.0) += us * US;
        }
        let columns = self.columns.clone();
        for (column, us) in columns.iter().zip(&numbers) {
            self.time(column, us * US, files);
        }
        Ok(())
    }

    fn time(&mut self, column: &Column, ns: f64, files: f64) {
        let (Column::Min(name) | Column::Mean(name) | Column::Max(name)) = column else { return };
        let at = self.calls.iter().position(|call| call.name == *name).unwrap_or_else(|| {
            self.calls.push(Call { name, min_ns: f64::INFINITY, max_ns: 0.0, total_ns: 0.0 });
            self.calls.len() - 1
        });
        let call = &mut self.calls[at];
        match column {
            Column::Min(_) => call.min_ns = call.min_ns.min(ns),
            Column::Mean(_) => call.total_ns += ns * files,
            _ => call.max_ns = call.max_ns.max(ns),
        }
    }

    fn trial(self) -> Result<ToolTrial, ToolOutputError> {
        if self.files <= 0.0 || self.seconds <= 0.0 {
            let why =
                if self.first_words.is_empty() { String::new() } else { format!(": {}", self.first_words) };
            return Err(ToolOutputError::whole(format!("fs_mark ended before its first loop was done{why}")));
        }
        let mut samples = vec![sample("files_per_s", Unit::PerSecond, self.files / self.seconds)];
        for call in self.calls.iter().filter(|call| call.max_ns > 0.0) {
            let of =
                |what: &str, ns: f64| sample(&format!("{}.lat_ns.{what}", call.name), Unit::Nanoseconds, ns);
            samples.push(of("mean", call.total_ns / self.files));
            samples.push(of("min", call.min_ns));
            samples.push(of("max", call.max_ns));
        }
        samples.extend(self.overhead_ns.map(|ns| sample("app_overhead_ns", Unit::Nanoseconds, ns)));
        samples.push(super::tool_output::count("files", Unit::Count, self.files));
        let outcome = Outcome { samples, ..Outcome::default() };
        Ok(ToolTrial { version: self.comments.version, settings: self.comments.settings, outcome })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_all_loops_are_there_at_once() {
        let of = |settings: &[(&str, &str)]| {
            let settings: Vec<(String, String)> =
                settings.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
            takes(&settings)
        };
        assert_eq!(of(&[]), Some(51_200_000));
        let many = [("files", "10"), ("threads", "4"), ("size", "4096"), ("loops", "5")];
        assert_eq!(of(&many), Some(5 * 163_840));
    }

    #[test]
    fn phases_are_named_in_the_order_they_run() {
        for (text, read) in
            [("create, chown ,unlink", "create,chown,unlink"), ("create\nunlink", "create,unlink")]
        {
            assert_eq!(phases(text).as_deref(), Ok(read));
        }
        for (text, words) in [
            ("chown,unlink", "'chown,unlink' is not create, then"),
            ("create,unlink,chown", "is not create, then"),
            ("create,stat", "is not create, then"),
        ] {
            let message = phases(text).unwrap_err();
            assert!(message.contains(words), "{message}");
        }
    }

    #[test]
    fn settings_that_need_another_say_so() {
        for (set, words) in [
            (&["phase_sync"][..], "there are no phases"),
            (&["per_directory"], "there are no subdirectories"),
            (&["phases", "keep"], "take keep out"),
        ] {
            assert!(together(&|key| set.contains(&key)).unwrap().contains(words), "{set:?}");
        }
        assert_eq!(together(&|key| ["phases", "phase_sync"].contains(&key)), None);
    }

    fn read(name: &str) -> String {
        let path = format!("{}/tests/data/fs_mark/{name}", env!("CARGO_MANIFEST_DIR"));
        std::fs::read_to_string(path).unwrap()
    }

    fn value(trial: &ToolTrial, name: &str) -> f64 {
        trial.outcome.samples.iter().find(|s| s.metric.name == name).unwrap().value
    }

    #[test]
    fn every_call_that_is_made_has_its_times() {
        let trial = outcomes_from_fs_mark(&read("verbose-threads-2.txt")).unwrap().remove(0);
        assert_eq!(trial.version, "3.3");
        let settings = [("threads", "2"), ("sync", "inband fsync"), ("size", "16384")];
        assert_eq!(trial.settings, settings.map(|(a, b)| (a.to_owned(), b.to_owned())));
        assert!((value(&trial, "files_per_s") - 4734.4).abs() < 1e-6);
        assert_eq!(value(&trial, "files"), 200.0);
        assert_eq!(value(&trial, "app_overhead_ns"), 1_061_000.0);
        let fsync = ["min", "mean", "max"].map(|what| value(&trial, &format!("fsync.lat_ns.{what}")));
        assert_eq!(fsync, [211e3, 394e3, 3_432e3]);
        assert_eq!(value(&trial, "unlink.lat_ns.max"), 340e3);
        assert!(trial.outcome.samples.iter().all(|s| !s.metric.name.starts_with("sync.")));
        assert_eq!(trial.outcome.samples[0].metric.name, "files_per_s");
    }

    #[test]
    fn loops_are_one_trial_whose_rate_is_all_files_over_all_time() {
        let table = "FSUse% Count Size Files/sec\n 3 100 4096 100.0\n 3 200 4096 50.0\n";
        let trial = outcomes_from_fs_mark(table).unwrap().remove(0);
        // 100 files in 1 s and 100 in 2 s.
        assert!((value(&trial, "files_per_s") - 200.0 / 3.0).abs() < 1e-9);
        let three = outcomes_from_fs_mark(&read("loops.txt")).unwrap();
        assert_eq!((three.len(), value(&three[0], "files")), (1, 600.0));
        let twice = format!("{}{}", read("loops.txt"), read("verbose-no-sync.txt"));
        let trials = outcomes_from_fs_mark(&twice).unwrap();
        assert_eq!(trials.len(), 2);
        assert!(trials[1].settings.contains(&("sync".to_owned(), "no sync".to_owned())));
    }

    #[test]
    fn what_is_no_result_is_said() {
        for (text, words) in [
            (read("no-space.txt"), "Insufficient free space"),
            (String::new(), "no table"),
            ("FSUse% Count Size Files/sec\n 3 100 4096\n".to_owned(), "has 3 numbers, its header 4"),
            ("FSUse% Count Size Files/sec\n 3 100 4096 inf\n".to_owned(), "not a number"),
            ("FSUse% Count Size Files/sec\n 3 100 4096 0.0\n".to_owned(), "no rate"),
            ("FSUse% Count Size Files/sec\n 3 0 4096 5\n".to_owned(), "no file"),
        ] {
            let error = outcomes_from_fs_mark(&text).unwrap_err();
            assert!(error.message.contains(words), "{error}");
        }
    }
}
