//! fio's JSON output (`--output-format=json` and `json+`) as outcomes, for the fio engine and for imports alike.
//!
//! Enters: the text fio printed, with whatever it printed before, between or after its JSON documents. Leaves: one
//! [`FioTrial`] a document, with assay's metric names and base units. It must not know who ran fio or why.
//!
//! Field meanings: fio `HOWTO`, "JSON output" and "JSON+ output", and `stat.c` (`show_thread_status_json`,
//! `add_ddir_status_json`) of fio 3.33.

mod asked;
mod latency;
mod merge;
mod wire;

use super::{Direction, FailureKind, LatencyHistogram, LatencyKind, Outcome, Sample};
use crate::units::{Better, Unit};
use asked::Asked;
use latency::{pack_bins, quantiles};
use merge::{merge_amounts, merged_jobs};
use wire::{Document, Job, Latency, Side};

/// One fio invocation.
#[derive(Clone, Debug, PartialEq)]
pub struct FioTrial {
    /// fio's version as it says it, e.g. `fio-3.33`; empty when it does not.
    pub version: String,
    /// When it started, nanoseconds since the Unix epoch; 0 when unknown.
    pub started_unix_ns: u64,
    /// Seconds from fio's start to its report (fio counts whole seconds).
    pub elapsed_s: f64,
    /// The jobs that ended with an error, in one sentence; their values do not count.
    pub error: Option<String>,
    /// Whether that error would come again; of several jobs' the worst.
    pub failure_kind: FailureKind,
    /// Names of the jobs (or groups) in fio's order.
    pub jobs: Vec<String>,
    /// The options it was given, as (job, option, value); job is empty for `[global]`. Flags have an empty value.
    pub options: Vec<(String, String, String)>,
    /// Its values and histograms; each sample's `job` is the job's or group's name.
    pub outcome: Outcome,
}

impl FioTrial {
    /// Removes the name of the only job, so that its values belong to the whole trial. With several jobs nothing changes.
    pub fn drop_single_job_name(&mut self) {
        if let [only] = self.jobs.as_slice() {
            for sample in &mut self.outcome.samples {
                if sample.metric.job == *only {
                    sample.metric.job.clear();
                }
            }
            for histogram in &mut self.outcome.histograms {
                if histogram.job == *only {
                    histogram.job.clear();
                }
            }
        }
    }
}

/// Why a text is not fio's JSON. Lines count from 1 in the whole text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FioJsonError {
    /// No `{` anywhere.
    #[error("there is no JSON in it: no '{{' was found")]
    NoDocument,
    /// It ends in the middle of a document.
    #[error(
        "the JSON ends too early, at line {line}: fio was stopped before it had written everything, or the file was cut"
    )]
    Truncated {
        /// Where it ends.
        line: usize,
    },
    /// `nan` or `inf` where a number should be.
    #[error("line {line}: '{text}' where a number should be")]
    NotANumber {
        /// Where.
        line: usize,
        /// What is there.
        text: String,
    },
    /// Not JSON, or a field of the wrong kind.
    #[error("line {line}: {message}")]
    Syntax {
        /// Where.
        line: usize,
        /// What the reader says.
        message: String,
    },
    /// JSON, but neither `jobs` nor `client_stats` with anything in it.
    #[error("the JSON at line {line} is not fio's: it has no 'jobs' and no 'client_stats'")]
    NoJobs {
        /// Where the document starts.
        line: usize,
    },
    /// A negative count, rate or time.
    #[error("job '{job}': {field} is {value}, which cannot be negative")]
    Negative {
        /// The job.
        job: String,
        /// The field, e.g. `write.iops`.
        field: String,
        /// Its value as text.
        value: String,
    },
}

impl FioJsonError {
    /// What would help.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            FioJsonError::Truncated { .. } => "run that fio again, or leave the file out",
            FioJsonError::NotANumber { .. } => {
                "fio divided by zero: the job did no I/O; give it a longer runtime or a larger size"
            }
            FioJsonError::NoDocument | FioJsonError::NoJobs { .. } | FioJsonError::Syntax { .. } => {
                "write it with fio --output-format=json (or json+) --output=FILE"
            }
            FioJsonError::Negative { .. } => {
                "the file was changed by hand, or written by a damaged fio; leave it out"
            }
        }
    }
}

/// Reads every JSON document in what fio printed. Text before, between and after them is skipped. Snapshots of one
/// running fio (`--status-interval`) are cumulative: only the last of them is a trial.
///
/// # Errors
/// [`FioJsonError`] for the first thing that is not as fio writes it.
pub fn outcome_from_fio_json(text: &str) -> Result<Vec<FioTrial>, FioJsonError> {
    let mut documents: Vec<Document> = Vec::new();
    let mut snapshots = 0;
    let mut at = document_start(text, 0).ok_or(FioJsonError::NoDocument)?;
    loop {
        let (document, end) = read_document(text, at)?;
        match documents.last_mut() {
            Some(previous) if previous.is_earlier_snapshot_of(&document) => {
                *previous = document;
                snapshots += 1;
            }
            _ => documents.push(document),
        }
        match document_start(text, end) {
            Some(next) => at = next,
            None => break,
        }
    }
    let mut trials = documents.into_iter().map(trial).collect::<Result<Vec<_>, _>>()?;
    if snapshots > 0
        && let Some(last) = trials.last_mut()
    {
        let told =
            format!("{snapshots} earlier status reports of the same fio were left out: they are cumulative");
        last.outcome.notes.push(told.into());
    }
    Ok(trials)
}

/// The next `{` that opens a line, stands right behind the document before, or opens what fio begins with; for the first document any `{`
/// will do.
fn document_start(text: &str, from: usize) -> Option<usize> {
    let rest = &text[from..];
    let behind = rest.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, ',' | '[' | ']'));
    if behind.starts_with('{') {
        return Some(text.len() - behind.len());
    }
    let opens_line = line_start(rest);
    let opens_fio = rest[..opens_line.unwrap_or(rest.len())]
        .match_indices('{')
        .map(|(at, _)| at)
        .find(|at| rest[at + 1..].trim_start().starts_with("\"fio version\""));
    let any = || if from == 0 { rest.find('{') } else { None };
    opens_fio.or(opens_line).or_else(any).map(|at| from + at)
}

/// The first `{` that opens a line.
fn line_start(rest: &str) -> Option<usize> {
    let mut offset = 0;
    for line in rest.split_inclusive('\n') {
        if line.trim_start().starts_with('{') {
            return Some(offset + (line.len() - line.trim_start().len()));
        }
        offset += line.len();
    }
    None
}

fn read_document(text: &str, at: usize) -> Result<(Document, usize), FioJsonError> {
    let lines_before = text.as_bytes()[..at].iter().filter(|byte| **byte == b'\n').count();
    let mut stream = serde_json::Deserializer::from_str(&text[at..]).into_iter::<Document>();
    let no_jobs = FioJsonError::NoJobs { line: lines_before + 1 };
    match stream.next() {
        Some(Ok(document)) if document.has_jobs() => Ok((document, at + stream.byte_offset())),
        Some(Ok(_)) | None => Err(no_jobs),
        Some(Err(error)) => {
            let line = lines_before + error.line();
            if error.is_eof() {
                return Err(FioJsonError::Truncated { line });
            }
            if let Some(word) = word_at(text, line, error.column()) {
                return Err(FioJsonError::NotANumber { line, text: word });
            }
            let message = error.to_string();
            let message = message.split(" at line ").next().unwrap_or_default().to_owned();
            Err(FioJsonError::Syntax { line, message })
        }
    }
}

/// `nan`, `-nan`, `inf` at or just before a column of a line: what C's printf leaves where a number should be.
fn word_at(text: &str, line: usize, column: usize) -> Option<String> {
    let line = text.lines().nth(line.checked_sub(1)?)?;
    let from = line.char_indices().map(|(at, _)| at).take_while(|at| *at + 3 <= column).last().unwrap_or(0);
    let word: String = line[from..]
        .trim_start_matches([' ', ':', '"'])
        .chars()
        .take_while(|c| c.is_ascii_alphabetic() || *c == '-')
        .collect();
    let bare = word.trim_start_matches('-').to_ascii_lowercase();
    (bare == "nan" || bare == "inf" || bare == "infinity").then_some(word)
}

fn trial(document: Document) -> Result<FioTrial, FioJsonError> {
    let elapsed_s = document.elapsed_s();
    let started_unix_ns = document.started_unix_ns();
    let version = document.version.clone();
    let options = document.options();
    let mut outcome = Outcome::default();
    let jobs = merged_jobs(document, &mut outcome.notes);
    let mut names = Vec::new();
    let (mut failed, mut failure_kind) = (Vec::new(), FailureKind::Passing);
    for job in &jobs {
        if job.error != 0 {
            let kind = i32::try_from(job.error).map_or(FailureKind::Passing, FailureKind::of_errno);
            failure_kind = failure_kind.max(kind);
            failed.push(format!("job '{}' ended with error {}", job.jobname, errno_name(job.error)));
        }
        if !job.all_clients {
            names.push(job.jobname.clone());
        }
        let asked = Asked::of(job, &options);
        note_failed_ios(job, &mut outcome);
        // fio ends with 0 all the same: a device that hung for the whole of a time-based run is no trial without values.
        let may_do_nothing = job.all_clients || asked.does_no_io() || asked.ends_with_others();
        if job.did_nothing() && !may_do_nothing {
            failed.push(format!("job '{}' did no I/O", job.jobname));
            continue;
        }
        job_samples(job, &asked, &mut outcome)?;
    }
    let error = (!failed.is_empty()).then(|| failed.join(", "));
    Ok(FioTrial { version, started_unix_ns, elapsed_s, error, failure_kind, jobs: names, options, outcome })
}

fn errno_name(errno: i64) -> String {
    match i32::try_from(errno) {
        Ok(number) => format!(
            "{number} ({})",
            std::io::Error::from_raw_os_error(number).to_string().split(" (os").next().unwrap_or("")
        ),
        Err(_) => errno.to_string(),
    }
}

/// A sample of the job, refused when it is below zero.
fn push(outcome: &mut Outcome, job: &Job, name: &str, unit: Unit, value: f64) -> Result<(), FioJsonError> {
    if value < 0.0 {
        return Err(FioJsonError::Negative {
            job: job.jobname.clone(),
            field: name.to_owned(),
            value: value.to_string(),
        });
    }
    let mut sample = Sample::new(job.sample_name(), name, unit, value);
    if name == "latency_depth" {
        sample.metric.better = Better::Higher;
    }
    outcome.samples.push(sample);
    Ok(())
}

/// `runtime` and `job_runtime` of one process may differ by so much: each is rounded.
const ROUNDING_MS: f64 = 2.0;

/// That I/Os failed and fio went on.
fn note_failed_ios(job: &Job, outcome: &mut Outcome) {
    if job.total_err > 0.0 {
        let told = format!(
            "job '{}': {} I/Os failed, the first with error {}, and fio went on (continue_on_error)",
            job.jobname,
            job.total_err,
            errno_name(job.first_error)
        );
        outcome.notes.push(told.into());
    }
}

/// The samples of each direction. Returns how many there are, and all of them in one.
fn direction_samples(
    job: &Job,
    asked: &Asked<'_>,
    outcome: &mut Outcome,
) -> Result<(usize, Option<Side>), FioJsonError> {
    let mut directions = 0;
    let mut all: Option<Side> = None;
    for direction in Direction::ALL {
        let Some(side) = job.side(direction) else { continue };
        let starved =
            !asked.does_no_io() && (asked.mixes(direction) || asked.is_only(direction) && job.did_nothing());
        if !side.did_io() && (!starved || job.error != 0) {
            continue;
        }
        side_samples(job, direction, side, outcome)?;
        directions += 1;
        match &mut all {
            None => all = Some(side.clone()),
            Some(all) => merge_amounts(all, side),
        }
    }
    if let Some(mixed) = job.mixed.as_ref().filter(|side| all.is_none() && side.did_io()) {
        directions = 2;
        all = Some(mixed.clone());
        let told = format!(
            "job '{}': unified_rw_reporting sums reads and writes, and the latency of that sum is left out; unified_rw_reporting=both \
             reports each of them, too",
            job.jobname
        );
        outcome.notes.push(told.into());
    }
    Ok((directions, all))
}

fn job_samples(job: &Job, asked: &Asked<'_>, outcome: &mut Outcome) -> Result<(), FioJsonError> {
    let (directions, all) = direction_samples(job, asked, outcome)?;
    // What is read back after it was written went at no rate together with the writes.
    if let Some(all) = all.as_ref().filter(|_| directions > 1 && !asked.reads_apart()) {
        push(outcome, job, "bw", Unit::BytesPerSecond, all.bw_bytes())?;
        push(outcome, job, "iops", Unit::PerSecond, all.iops)?;
    }
    if let Some(sync) = &job.sync
        && let Some(latency) = &sync.lat_ns
        && latency.n.is_none_or(|n| n > 0.0)
    {
        let syncs = sync.number();
        push(outcome, job, "sync.total_ios", Unit::Count, syncs)?;
        latency_samples(job, "sync.lat_ns", (Direction::Write, LatencyKind::Sync), latency, outcome)?;
    }
    if directions == 0 && job.error != 0 {
        return Ok(());
    }
    let runtime_ms = all.map_or(0.0, |all| all.runtime);
    push(outcome, job, "runtime", Unit::Seconds, runtime_ms / 1e3)?;
    if let Some(all_ms) = job.job_runtime.filter(|all_ms| *all_ms > runtime_ms + ROUNDING_MS) {
        push(outcome, job, "job_runtime", Unit::Seconds, all_ms / 1e3)?;
    }
    // fio prints CPU as a percentage of the summed run time of the job's threads: back to CPU seconds.
    for (name, percent) in [("usr_cpu", job.usr_cpu), ("sys_cpu", job.sys_cpu)] {
        match (percent, job.job_runtime) {
            (Some(percent), Some(job_runtime_ms)) => {
                push(outcome, job, name, Unit::Seconds, percent / 100.0 * job_runtime_ms / 1e3)?;
            }
            (Some(percent), None) => push(outcome, job, name, Unit::Percent, percent)?,
            (None, _) => {}
        }
    }
    // The run times of its threads or processes, added up.
    if let Some(job_runtime_ms) = job.job_runtime {
        push(outcome, job, "workers.wall", Unit::Seconds, job_runtime_ms / 1e3)?;
    }
    let depth = job.depth_found();
    for (name, count) in [("ctx", job.ctx), ("majf", job.majf), ("minf", job.minf), ("latency_depth", depth)]
    {
        if let Some(count) = count {
            push(outcome, job, name, Unit::Count, count)?;
        }
    }
    Ok(())
}

fn side_samples(
    job: &Job,
    direction: Direction,
    side: &Side,
    outcome: &mut Outcome,
) -> Result<(), FioJsonError> {
    let name = direction.name();
    push(outcome, job, &format!("{name}.bw"), Unit::BytesPerSecond, side.bw_bytes())?;
    push(outcome, job, &format!("{name}.iops"), Unit::PerSecond, side.iops)?;
    push(outcome, job, &format!("{name}.total_ios"), Unit::Count, side.total_ios)?;
    push(outcome, job, &format!("{name}.io_bytes"), Unit::Bytes, side.io_bytes())?;
    // What did nothing says no time.
    if side.did_io() {
        push(outcome, job, &format!("{name}.runtime"), Unit::Seconds, side.runtime / 1e3)?;
    }
    for (kind, latency) in
        [(LatencyKind::Slat, side.slat()), (LatencyKind::Clat, side.clat()), (LatencyKind::Lat, side.lat())]
    {
        if let Some(latency) = latency {
            latency_samples(job, &format!("{name}.{}", kind.name()), (direction, kind), &latency, outcome)?;
        }
    }
    if side.short_ios > 0.0 || side.drop_ios > 0.0 {
        let Side { short_ios, drop_ios, .. } = side;
        let told = format!("job '{}': {short_ios} short and {drop_ios} dropped {name}s", job.jobname);
        outcome.notes.push(told.into());
    }
    Ok(())
}

fn latency_samples(
    job: &Job,
    name: &str,
    (direction, kind): (Direction, LatencyKind),
    latency: &Latency,
    outcome: &mut Outcome,
) -> Result<(), FioJsonError> {
    // A latency that was not taken is all zeros: slat of a synchronous engine.
    if latency.n == Some(0.0) || latency.mean == 0.0 && latency.max == 0.0 {
        return Ok(());
    }
    push(outcome, job, &format!("{name}.mean"), Unit::Nanoseconds, latency.mean)?;
    push(outcome, job, &format!("{name}.max"), Unit::Nanoseconds, latency.max)?;
    for (percent, value) in quantiles(latency) {
        push(outcome, job, &format!("{name}.p{percent}"), Unit::Nanoseconds, value)?;
    }
    if !latency.bins.0.is_empty() {
        let packed = LatencyHistogram::pack(job.sample_name(), direction, kind, &pack_bins(&latency.bins.0));
        outcome.histograms.push(packed);
    }
    Ok(())
}

#[cfg(test)]
mod nothing_tests;
#[cfg(test)]
mod snapshot_tests;
#[cfg(test)]
mod tests;
