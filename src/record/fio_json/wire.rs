//! The fields of fio's JSON that are read, as fio writes them. Everything else in it is ignored, and what is
//! missing is 0 or nothing.
//!
//! fio 2.x is read too: there bandwidth is KiB/s without `bw_bytes`, `io_bytes` counts KiB, and `slat clat lat` are µs.

use std::{fmt, iter};

use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::Direction;

/// fio tells its age in whole seconds, and old ones the time, too.
const MOST_ROUNDING_S: f64 = 1.0;

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Document {
    #[serde(rename = "fio version")]
    pub(super) version: String,
    timestamp: f64,
    timestamp_ms: f64,
    #[serde(rename = "global options")]
    global_options: Options,
    pub(super) jobs: Vec<Job>,
    pub(super) client_stats: Vec<Job>,
}

impl Document {
    pub(super) fn has_jobs(&self) -> bool {
        !self.jobs.is_empty() || !self.client_stats.is_empty()
    }

    fn all(&self) -> impl Iterator<Item = &Job> {
        self.jobs.iter().chain(&self.client_stats)
    }

    pub(super) fn elapsed_s(&self) -> f64 {
        self.all().map(|job| job.elapsed).fold(0.0, f64::max)
    }

    /// (job, option, value), the global ones first; of several jobs with one name only the first one's.
    pub(super) fn options(&self) -> Vec<(String, String, String)> {
        let mut all: Vec<(String, String, String)> = Vec::new();
        let mut seen: Vec<&str> = Vec::new();
        for (job, options) in iter::once(("", &self.global_options))
            .chain(self.all().map(|job| (job.jobname.as_str(), &job.job_options)))
        {
            if !seen.contains(&job) {
                seen.push(job);
                all.extend(options.0.iter().map(|(key, value)| (job.to_owned(), key.clone(), value.clone())));
            }
        }
        all
    }

    fn reported_s(&self) -> f64 {
        if self.timestamp_ms > 0.0 { self.timestamp_ms / 1e3 } else { self.timestamp }
    }

    /// `job_start` (fio ≥ 3.36) of the earliest job, else the time of the report less fio's elapsed seconds.
    pub(super) fn started_unix_ns(&self) -> u64 {
        let first =
            self.all().filter_map(|job| job.job_start).filter(|ms| *ms > 0.0).fold(f64::INFINITY, f64::min);
        let seconds = if first.is_finite() { first / 1e3 } else { self.reported_s() - self.elapsed_s() };
        if self.reported_s() > 0.0 && seconds > 0.0 { (seconds * 1e3) as u64 * 1_000_000 } else { 0 }
    }

    fn longest_runtime_s(&self) -> f64 {
        let sides = self.all().flat_map(|job| [&job.read, &job.write, &job.trim]).flatten();
        sides.map(|side| side.runtime).fold(0.0, f64::max) / 1e3
    }

    /// Whether `later` is a further `--status-interval` report of the same fio: it began at the same time with the same jobs and
    /// options, had been running for longer than the time between the two reports, and none of its counts is smaller.
    pub(super) fn is_earlier_snapshot_of(&self, later: &Document) -> bool {
        let between_s = later.reported_s() - self.reported_s();
        let is_same = self.reported_s() > 0.0
            && between_s >= 0.0
            && self.global_options == later.global_options
            && self.all().count() == later.all().count()
            && self.all().zip(later.all()).all(|(a, b)| a.is_same_as(b))
            && self.begins_with(later);
        let fell = self.all().zip(later.all()).any(|(a, b)| !a.not_beyond(b));
        // Jobs that wait for each other are shorter than their fio.
        let ran_s = later.longest_runtime_s().max(later.elapsed_s() - MOST_ROUNDING_S);
        let goes_on = !fell && between_s < ran_s;
        // The end of a ramp takes the counts back to 0.
        let ramp_ended = fell
            && self.has_a_ramp()
            && self.elapsed_s() < later.elapsed_s()
            && between_s < later.elapsed_s();
        is_same && (goes_on || ramp_ended)
    }

    /// Whether both began at the same time, as far as they say.
    fn begins_with(&self, other: &Document) -> bool {
        let begun_s = |document: &Document| document.reported_s() - document.elapsed_s();
        let in_seconds = self.timestamp_ms == 0.0 || other.timestamp_ms == 0.0;
        let rounding_s = if in_seconds { 2.0 * MOST_ROUNDING_S } else { 1.1 * MOST_ROUNDING_S };
        let is_known = self.elapsed_s() > 0.0 && other.elapsed_s() > 0.0;
        !is_known || (begun_s(self) - begun_s(other)).abs() < rounding_s
    }

    fn has_a_ramp(&self) -> bool {
        self.options().iter().any(|(_, option, _)| option == "ramp_time")
    }
}

#[derive(Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Job {
    pub(super) jobname: String,
    pub(super) groupid: i64,
    pub(super) error: i64,
    /// I/Os that failed where `continue_on_error` goes on.
    pub(super) total_err: f64,
    pub(super) first_error: i64,
    elapsed: f64,
    pub(super) hostname: String,
    job_start: Option<f64>,
    #[serde(rename = "job options")]
    job_options: Options,
    pub(super) read: Option<Side>,
    pub(super) write: Option<Side>,
    pub(super) trim: Option<Side>,
    /// The sum of the three, in their place: `unified_rw_reporting=1`.
    pub(super) mixed: Option<Side>,
    pub(super) sync: Option<Sync>,
    pub(super) job_runtime: Option<f64>,
    pub(super) usr_cpu: Option<f64>,
    pub(super) sys_cpu: Option<f64>,
    pub(super) ctx: Option<f64>,
    pub(super) majf: Option<f64>,
    pub(super) minf: Option<f64>,
    /// Also there, as `iodepth`, where no `latency_target` was asked.
    latency_depth: Option<f64>,
    latency_target: Option<f64>,
    /// Set while merging: fio's sum over all clients, which is the whole trial and no job.
    #[serde(skip)]
    pub(super) all_clients: bool,
    /// Set while merging: how many others are in it by now.
    #[serde(skip)]
    pub(super) merged: f64,
}

impl Job {
    pub(super) fn side(&self, direction: Direction) -> Option<&Side> {
        match direction {
            Direction::Read => self.read.as_ref(),
            Direction::Write => self.write.as_ref(),
            Direction::Trim => self.trim.as_ref(),
        }
    }

    /// What its own options say.
    pub(super) fn told(&self, key: &str) -> Option<&str> {
        self.job_options.0.iter().find(|(known, _)| known == key).map(|(_, value)| value.as_str())
    }

    /// Whether it ended well and did no I/O in any direction, and no sync.
    pub(super) fn did_nothing(&self) -> bool {
        let sides = [&self.read, &self.write, &self.trim, &self.mixed];
        let syncs = self.sync.as_ref().map_or(0.0, Sync::number);
        self.error == 0 && syncs == 0.0 && !sides.into_iter().flatten().any(Side::did_io)
    }

    /// The depth that its `latency_target` came to.
    pub(super) fn depth_found(&self) -> Option<f64> {
        self.latency_depth.filter(|_| self.latency_target.is_some_and(|target| target > 0.0))
    }

    pub(super) fn sample_name(&self) -> &str {
        if self.all_clients { "" } else { &self.jobname }
    }

    fn is_same_as(&self, other: &Job) -> bool {
        self.jobname == other.jobname && self.job_options == other.job_options
    }

    fn not_beyond(&self, later: &Job) -> bool {
        Direction::ALL.into_iter().all(|direction| {
            let bytes = |job: &Job| job.side(direction).map_or(0.0, Side::io_bytes);
            bytes(self) <= bytes(later)
        })
    }
}

#[derive(Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Side {
    pub(super) io_bytes: f64,
    pub(super) io_kbytes: Option<f64>,
    pub(super) bw_bytes: Option<f64>,
    pub(super) bw: f64,
    pub(super) iops: f64,
    pub(super) runtime: f64,
    pub(super) total_ios: f64,
    pub(super) short_ios: f64,
    pub(super) drop_ios: f64,
    pub(super) slat_ns: Option<Latency>,
    pub(super) clat_ns: Option<Latency>,
    pub(super) lat_ns: Option<Latency>,
    #[serde(rename = "slat")]
    slat_us: Option<Latency>,
    #[serde(rename = "clat")]
    clat_us: Option<Latency>,
    #[serde(rename = "lat")]
    lat_us: Option<Latency>,
}

impl Side {
    pub(super) fn did_io(&self) -> bool {
        self.io_bytes != 0.0 || self.total_ios != 0.0 || self.iops != 0.0 || self.bw != 0.0
    }

    fn is_fio_2(&self) -> bool {
        self.bw_bytes.is_none() && self.io_kbytes.is_none()
    }

    pub(super) fn io_bytes(&self) -> f64 {
        if self.is_fio_2() { self.io_bytes * 1024.0 } else { self.io_bytes }
    }

    pub(super) fn bw_bytes(&self) -> f64 {
        self.bw_bytes.unwrap_or(self.bw * 1024.0)
    }

    pub(super) fn slat(&self) -> Option<Latency> {
        in_ns(self.slat_ns.as_ref(), self.slat_us.as_ref())
    }

    pub(super) fn clat(&self) -> Option<Latency> {
        in_ns(self.clat_ns.as_ref(), self.clat_us.as_ref())
    }

    pub(super) fn lat(&self) -> Option<Latency> {
        in_ns(self.lat_ns.as_ref(), self.lat_us.as_ref())
    }

    /// fio 2.x times become nanoseconds, so that sides can be merged whatever wrote them.
    pub(super) fn normalise(&mut self) {
        let (io_bytes, bw_bytes) = (self.io_bytes(), self.bw_bytes());
        (self.slat_ns, self.clat_ns, self.lat_ns) = (self.slat(), self.clat(), self.lat());
        (self.slat_us, self.clat_us, self.lat_us) = (None, None, None);
        (self.io_bytes, self.bw_bytes) = (io_bytes, Some(bw_bytes));
    }
}

fn in_ns(ns: Option<&Latency>, us: Option<&Latency>) -> Option<Latency> {
    ns.cloned().or_else(|| us.map(Latency::from_microseconds))
}

#[derive(Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Sync {
    pub(super) total_ios: f64,
    pub(super) lat_ns: Option<Latency>,
}

impl Sync {
    /// How many there were: fio 3.28 counts them only where it measured them.
    pub(super) fn number(&self) -> f64 {
        self.total_ios.max(self.lat_ns.as_ref().and_then(|latency| latency.n).unwrap_or(0.0))
    }
}

#[derive(Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Latency {
    pub(super) max: f64,
    pub(super) mean: f64,
    #[serde(rename = "N")]
    pub(super) n: Option<f64>,
    pub(super) percentile: Percentiles,
    pub(super) bins: Bins,
}

impl Latency {
    fn from_microseconds(us: &Latency) -> Latency {
        let percentile = us.percentile.0.iter().map(|(percent, value)| (*percent, value * 1e3)).collect();
        // fio 2.x's bins are indices into a table of another version: left out.
        Latency {
            max: us.max * 1e3,
            mean: us.mean * 1e3,
            n: us.n,
            percentile: Percentiles(percentile),
            bins: Bins::default(),
        }
    }
}

/// fio's options as it echoes them: strings; a flag without a value is an empty string or null.
#[derive(Clone, Default, PartialEq)]
pub(super) struct Options(pub(super) Vec<(String, String)>);

impl<'de> Deserialize<'de> for Options {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let object = serde_json::Map::<String, serde_json::Value>::deserialize(deserializer)?;
        let text = |value: serde_json::Value| match value {
            serde_json::Value::String(text) => text,
            serde_json::Value::Null => String::new(),
            other => other.to_string(),
        };
        Ok(Options(object.into_iter().map(|(key, value)| (key, text(value))).collect()))
    }
}

/// (percent, value), as many as the job's `percentile_list` asked for.
#[derive(Clone, Default)]
pub(super) struct Percentiles(pub(super) Vec<(f64, f64)>);

/// (the bin's middle in ns, operations), ascending.
#[derive(Clone, Default)]
pub(super) struct Bins(pub(super) Vec<(u64, u64)>);

impl<'de> Deserialize<'de> for Percentiles {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let percent = |key: &str| key.parse().ok().filter(|percent| *percent > 0.0 && *percent <= 100.0);
        deserializer
            .deserialize_map(Entries { what: "percentiles", key: percent, found: Vec::new() })
            .map(Percentiles)
    }
}

impl<'de> Deserialize<'de> for Bins {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let bins = Entries { what: "latency bins", key: |key| key.parse().ok(), found: Vec::new() };
        let mut bins: Vec<(u64, u64)> = deserializer.deserialize_map(bins)?;
        bins.sort_unstable();
        Ok(Bins(bins))
    }
}

/// Reads those entries of an object whose keys are what is looked for.
struct Entries<K, V> {
    what: &'static str,
    key: fn(&str) -> Option<K>,
    found: Vec<(K, V)>,
}

impl<'de, K, V: Deserialize<'de>> Visitor<'de> for Entries<K, V> {
    type Value = Vec<(K, V)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an object of {}", self.what)
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<Vec<(K, V)>, A::Error> {
        while let Some(key) = map.next_key::<&str>()? {
            match (self.key)(key) {
                Some(key) => self.found.push((key, map.next_value()?)),
                None => _ = map.next_value::<IgnoredAny>()?,
            }
        }
        Ok(self.found)
    }
}
