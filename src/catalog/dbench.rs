//! dbench: its settings, and its output as outcomes: throughput, and count, average and maximum latency of each operation
//! and of all.
//!
//! Enters: the text dbench printed, once or several times one after another. Leaves: one [`ToolTrial`] a run. It must
//! not know who ran dbench.
//!
//! Meanings: dbench 4.00 (README; util.c and dbench.c print them). MB are 10⁶ bytes; latencies are milliseconds to
//! three digits, so an average below 0.5 µs is printed, and kept, as 0. `max_latency` is the longest of any operation
//! after the warm-up; the table counts the warm-up, too.

use super::engine_descriptor::{EngineDescriptor, Output, SectionMetric, Settings, tool};
use super::program::Program;
use super::setting::{Setting, Value, number, said};
use super::tool_output::{ToolOutputError, ToolTrial, amount, count, sample};
use crate::record::{Note, Outcome, Series, Unit};

/// The row of the table.
pub(super) const DBENCH: EngineDescriptor = tool(
    Program { name: "dbench", package: "dbench" },
    Settings { known: SETTINGS, together: |_| None, file: None, lasts_s: time_s, takes },
    Output { format: "dbench output", is_line, read: outcomes_from_dbench, metrics },
);

const SETTINGS: &[Setting] = &[
    Setting::new("clients", Value::Whole(1, 100_000)),
    // One second counts nothing: dbench's first report comes after it.
    Setting::new("time", Value::Seconds(2, 1_000_000)),
    Setting::new("loadfile", Value::File),
    Setting::new("sync", Value::Truth),
    Setting::new("sync_dir", Value::Truth),
    Setting::new("fsync", Value::Truth),
    Setting::new("xattr", Value::Truth),
    Setting::new("rate", Value::Number),
    Setting::new("clients_per_process", Value::Whole(1, 100_000)),
];

/// The time limit, ten seconds unless said otherwise, as the engine has it; before it a fifth of it to warm up, in whole seconds
/// (dbench.c), and behind it the removal of the files.
fn time_s(settings: &[(String, String)]) -> Option<f64> {
    const CLEANUP_S: f64 = 0.4;
    let limit_s: f64 = said(settings, "time").and_then(|value| value.parse().ok()).unwrap_or(10.0);
    Some(limit_s + (limit_s / 5.0).floor() + CLEANUP_S)
}

/// What a client's files take at least, all the time, with the load file of the package (20.3 MiB, by du).
const CLIENT_BYTES: u64 = 20 << 20;

/// Bytes of all clients; of another load file nobody knows.
fn takes(settings: &[(String, String)]) -> Option<u64> {
    if said(settings, "loadfile").is_some() {
        return None;
    }
    let clients = number(settings, "clients", 1)?.saturating_mul(number(settings, "clients_per_process", 1)?);
    Some(clients.saturating_mul(CLIENT_BYTES))
}

/// Throughput and latencies; each operation that the load file names has its own.
fn metrics(_: &[(String, String)]) -> Vec<SectionMetric> {
    ["bw", "lat_ns.mean", "lat_ns.max", "operations", "*.count", "*.lat_ns.mean", "*.lat_ns.max"]
        .map(|name| ("", name.to_owned()))
        .to_vec()
}

/// Nanoseconds a millisecond.
const MS: f64 = 1e6;

/// Whether a line is one that only dbench prints.
fn is_line(line: &str) -> bool {
    line.starts_with("dbench version ") || (line.starts_with("Throughput ") && line.contains(" MB/sec"))
}

/// Reads every run in what dbench printed.
///
/// # Errors
/// No result at all, a run that ended before its result, one too short to count anything, or a number that is none.
pub fn outcomes_from_dbench(text: &str) -> Result<Vec<ToolTrial>, ToolOutputError> {
    let mut trials = Vec::new();
    let mut reading = Reading::default();
    for (at, line) in text.lines().enumerate() {
        if line.starts_with("dbench version ") && reading.begun {
            return Err(reading.unfinished());
        }
        if let Some(trial) = reading.line(line.trim(), at + 1)? {
            trials.push(trial);
            reading = Reading::default();
        }
    }
    if reading.begun || trials.is_empty() {
        return Err(reading.unfinished());
    }
    Ok(trials)
}

/// One row of the table.
struct Operation {
    name: String,
    count: f64,
    mean_ns: f64,
    max_ns: f64,
}

/// What one run has printed so far.
#[derive(Default)]
struct Reading {
    begun: bool,
    version: String,
    operations: Vec<Operation>,
    in_table: bool,
    /// Tables of single clients follow.
    per_client: bool,
    longest_ns: Vec<f64>,
    notes: Vec<Note>,
    trouble: Option<String>,
}

impl Reading {
    fn unfinished(&self) -> ToolOutputError {
        let why = self.trouble.as_ref().map(|words| format!(": {words}")).unwrap_or_default();
        ToolOutputError::whole(format!("dbench ended without its result, a line 'Throughput … MB/sec'{why}"))
    }

    fn line(&mut self, line: &str, at: usize) -> Result<Option<ToolTrial>, ToolOutputError> {
        if let Some(rest) = line.strip_prefix("dbench version ") {
            self.begun = true;
            rest.split_whitespace().next().unwrap_or_default().clone_into(&mut self.version);
        } else if let Some(rest) = line.strip_prefix("Throughput ") {
            return self.result(rest, at).map(Some);
        } else if line.starts_with("Per client results") {
            self.per_client = true;
        } else if line.starts_with("Operation ") && line.ends_with("MaxLat") {
            self.in_table = !self.per_client;
        } else if line.is_empty() {
            self.in_table &= self.operations.is_empty();
        } else if self.in_table && !line.starts_with("---") {
            self.operations.push(operation(line, at)?);
        } else if line.contains(" execute ") {
            let ms = line.split_once(" latency ").and_then(|(_, rest)| rest.split_whitespace().next());
            self.longest_ns.extend(ms.and_then(amount).map(|ms| ms * MS));
        } else if line.contains("failed") || line.contains("ERROR") || line.contains("error") {
            if line.contains("semaphore") {
                self.notes.push(format!("dbench says: {line}; its clients did not start together").into());
            } else {
                self.trouble.get_or_insert_with(|| line.to_owned());
            }
        }
        Ok(None)
    }

    /// `691.927 MB/sec (sync open)  1 clients  1 procs  max_latency=10.743 ms`; older ones say only procs.
    fn result(&mut self, rest: &str, at: usize) -> Result<ToolTrial, ToolOutputError> {
        let words: Vec<&str> = rest.split_whitespace().collect();
        let before = |name: &str| {
            let end = words.iter().position(|word| *word == name)?;
            words.get(end.checked_sub(1)?).copied()
        };
        let mb = words.first().and_then(|word| amount(word));
        let mb = mb.ok_or_else(|| ToolOutputError::at(at, "the throughput is not a number"))?;
        if mb == 0.0 {
            return Err(ToolOutputError::at(
                at,
                "dbench counted nothing: less than 2 s of its time were left when all clients had begun",
            ));
        }
        let clients = before("clients").or_else(|| before("procs")).filter(|n| n.parse::<u64>().is_ok());
        let mut settings: Vec<(String, String)> =
            clients.map(|n| ("clients".to_owned(), n.to_owned())).into_iter().collect();
        for (words, name) in [("(sync open)", "sync"), ("(sync dirs)", "sync_dir")] {
            if rest.contains(words) {
                settings.push((name.to_owned(), "1".to_owned()));
            }
        }
        let mut samples = vec![sample("bw", Unit::BytesPerSecond, mb * 1e6)];
        let all: f64 = self.operations.iter().map(|op| op.count).sum();
        if all > 0.0 {
            let total_ns: f64 = self.operations.iter().map(|op| op.count * op.mean_ns).sum();
            samples.push(sample("lat_ns.mean", Unit::Nanoseconds, total_ns / all));
            samples.push(count("operations", Unit::Count, all));
        }
        if let Some((_, longest)) = rest.split_once("max_latency=") {
            let ms = longest.split_whitespace().next().and_then(amount);
            let ms = ms.ok_or_else(|| ToolOutputError::at(at, "max_latency is not a number"))?;
            samples.push(sample("lat_ns.max", Unit::Nanoseconds, ms * MS));
        }
        for op in &self.operations {
            samples.push(count(&format!("{}.count", op.name), Unit::Count, op.count));
            samples.push(sample(&format!("{}.lat_ns.mean", op.name), Unit::Nanoseconds, op.mean_ns));
            samples.push(sample(&format!("{}.lat_ns.max", op.name), Unit::Nanoseconds, op.max_ns));
        }
        let values = std::mem::take(&mut self.longest_ns);
        let longest = Series { job: String::new(), name: "lat_ns.max".to_owned(), interval_s: 1.0, values };
        let series = if longest.values.is_empty() { Vec::new() } else { vec![longest] };
        let notes = std::mem::take(&mut self.notes);
        let outcome = Outcome { samples, series, notes, ..Outcome::default() };
        Ok(ToolTrial { version: std::mem::take(&mut self.version), settings, outcome })
    }
}

/// `NTCreateX       5252     0.013    15.624`.
fn operation(line: &str, at: usize) -> Result<Operation, ToolOutputError> {
    let wrong = || {
        let start: String = line.chars().take(40).collect();
        ToolOutputError::at(
            at,
            format!("'{start}' is not an operation with count, average and longest latency"),
        )
    };
    let words: Vec<&str> = line.split_whitespace().collect();
    let [name, count, mean, max] = words.as_slice() else { return Err(wrong()) };
    let numbers = (count.parse::<u64>().ok(), amount(mean), amount(max));
    let (Some(count), Some(mean), Some(max)) = numbers else { return Err(wrong()) };
    Ok(Operation { name: (*name).to_owned(), count: count as f64, mean_ns: mean * MS, max_ns: max * MS })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &str) -> String {
        let path = format!("{}/tests/data/dbench/{name}", env!("CARGO_MANIFEST_DIR"));
        std::fs::read_to_string(path).unwrap()
    }

    fn value(trial: &ToolTrial, name: &str) -> f64 {
        trial.outcome.samples.iter().find(|s| s.metric.name == name).unwrap().value
    }

    #[test]
    fn all_numbers_are_read_and_latencies_are_nanoseconds() {
        let trials = outcomes_from_dbench(&read("sync-2.txt")).unwrap();
        let [trial] = trials.as_slice() else { panic!("{trials:?}") };
        assert_eq!(trial.version, "4.00");
        assert_eq!(
            trial.settings,
            [("clients", "2"), ("sync", "1")].map(|(a, b)| (a.to_owned(), b.to_owned()))
        );
        assert_eq!(trial.outcome.samples[0].metric.name, "bw");
        assert_eq!(value(trial, "bw"), 115.719e6);
        assert!((value(trial, "lat_ns.max") - 17.439e6).abs() < 1.0);
        assert_eq!(value(trial, "WriteX.count"), 4948.0);
        assert!((value(trial, "WriteX.lat_ns.mean") - 916e3).abs() < 1.0);
        assert!((value(trial, "WriteX.lat_ns.max") - 32.245e6).abs() < 1.0);
        // By hand from the table: Σ count × average ÷ Σ count = 5936.172 ms ÷ 49380.
        assert!((value(trial, "lat_ns.mean") - 5_936.172e6 / 49_380.0).abs() < 1.0);
        assert_eq!(value(trial, "operations"), 49_380.0);
        let series = &trial.outcome.series[0];
        assert_eq!((series.values.len(), series.interval_s), (2, 1.0));
        assert!((series.values[1] - 15.815e6).abs() < 1.0);
    }

    #[test]
    fn clients_take_what_the_usual_load_file_makes_them_write() {
        let of = |settings: &[(&str, &str)]| {
            let settings: Vec<(String, String)> =
                settings.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
            takes(&settings).map(|bytes| bytes >> 20)
        };
        assert_eq!(of(&[]), Some(20));
        assert_eq!(of(&[("clients", "16"), ("clients_per_process", "2")]), Some(640));
        assert_eq!(of(&[("clients", "16"), ("loadfile", "/mine.txt")]), None);
    }

    #[test]
    fn tables_of_single_clients_are_not_those_of_all() {
        let trial = outcomes_from_dbench(&read("per-client.txt")).unwrap().remove(0);
        assert_eq!(value(&trial, "NTCreateX.count"), 49_530.0);
        assert_eq!(trial.outcome.samples.iter().filter(|s| s.metric.name == "Flush.count").count(), 1);
    }

    #[test]
    fn runs_one_after_another_are_trials() {
        let text = format!("{}{}", read("clients-1.txt"), read("clients-4.txt"));
        let trials = outcomes_from_dbench(&text).unwrap();
        let clients: Vec<&str> = trials.iter().map(|trial| trial.settings[0].1.as_str()).collect();
        assert_eq!(clients, ["1", "4"]);
    }

    #[test]
    fn what_is_no_result_is_said() {
        for (text, words) in [
            (read("no-space.txt"), "without its result"),
            (read("no-space.txt"), "No space left on device"),
            (read("too-short.txt"), "less than 2 s"),
            (String::new(), "without its result"),
            (format!("{}{}", read("no-space.txt"), read("clients-1.txt")), "without its result"),
            ("Throughput nan MB/sec 1 procs".to_owned(), "not a number"),
            (read("clients-1.txt").replace(" Flush ", " Flush x"), "is not an operation"),
        ] {
            let error = outcomes_from_dbench(&text).unwrap_err();
            assert!(error.message.contains(words), "{error}");
        }
        let old = outcomes_from_dbench("Throughput 40.6701 MB/sec 144 procs\n").unwrap();
        assert_eq!(old[0].settings[0].1, "144");
    }
}
