//! What a metric's raw number is measured in, and which direction is good.

use serde::{Deserialize, Serialize};

/// Which direction of a metric is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// More is better: bandwidth, IOPS.
    Higher,
    /// Less is better: latency, run time, CPU.
    Lower,
}

impl Better {
    /// `higher` or `lower`, as people write it, too.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Better::Higher => "higher",
            Better::Lower => "lower",
        }
    }

    /// The good direction that a metric's name tells, by its last word: `tps`, `read_throughput`, `p99_latency`.
    #[must_use]
    pub fn implied(name: &str) -> Option<Better> {
        const RATES: [&str; 8] = ["throughput", "bandwidth", "bw", "tps", "qps", "rps", "iops", "ops"];
        const COSTS: [&str; 10] =
            ["latency", "lat", "time", "runtime", "duration", "elapsed", "seconds", "ns", "us", "ms"];
        let lower = name.to_lowercase();
        let mut words = lower.rsplit(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        let last = words.next()?;
        if words.next() == Some("per") && ["s", "sec", "second", "ms", "us", "min"].contains(&last) {
            return Some(Better::Higher);
        }
        let of = |words: &[&str], better: Better| words.contains(&last).then_some(better);
        of(&RATES, Better::Higher).or_else(|| of(&COSTS, Better::Lower))
    }

    /// What [`Better::word`] says.
    #[must_use]
    pub fn parse(word: &str) -> Option<Better> {
        [Better::Higher, Better::Lower].into_iter().find(|better| better.word() == word)
    }
}

/// The base unit of a metric's raw value. Values are always stored in the base unit.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Bytes per second.
    BytesPerSecond,
    /// Events (I/Os, files, operations) per second.
    PerSecond,
    /// Nanoseconds.
    Nanoseconds,
    /// Seconds.
    Seconds,
    /// Bytes.
    Bytes,
    /// A plain count.
    Count,
    /// Percent (0–100), used only for imported percentages; assay itself stores seconds.
    Percent,
    /// Anything else, with the name it came with.
    Other(String),
}

impl Unit {
    /// The symbol of the base unit, e.g. `B/s`.
    #[must_use]
    pub fn symbol(&self) -> &str {
        match self {
            Unit::BytesPerSecond => "B/s",
            Unit::PerSecond => "/s",
            Unit::Nanoseconds => "ns",
            Unit::Seconds => "s",
            Unit::Bytes => "B",
            Unit::Count => "",
            Unit::Percent => "%",
            Unit::Other(name) => name,
        }
    }

    /// Reads a unit as people write it (`KB/s`, `ns`, `MiB/s`, `ops/s`, `ops/sec`, `s`), with the factor that takes a
    /// value in it to the base unit. Unknown names become [`Unit::Other`] with factor 1.
    #[must_use]
    pub fn parse(text: &str) -> (Unit, f64) {
        let known = |unit: Unit, factor: f64| (unit, factor);
        let second = text.strip_suffix("/sec").or_else(|| text.strip_suffix("/second"));
        let known_by = second.map_or_else(|| text.to_owned(), |amount| format!("{amount}/s"));
        match known_by.as_str() {
            "B/s" | "bytes/s" => known(Unit::BytesPerSecond, 1.0),
            // fio 2 writes KB/s for 1024 bytes, and fio 3 kB/s for 1000.
            "KB/s" | "KiB/s" | "kb/s" | "K/s" => known(Unit::BytesPerSecond, 1024.0),
            "kB/s" => known(Unit::BytesPerSecond, 1e3),
            "MB/s" => known(Unit::BytesPerSecond, 1e6),
            "MiB/s" | "M/s" => known(Unit::BytesPerSecond, 1_048_576.0),
            "GB/s" => known(Unit::BytesPerSecond, 1e9),
            "GiB/s" => known(Unit::BytesPerSecond, 1_073_741_824.0),
            "/s" | "ops/s" | "op/s" | "iops" | "IOPS" | "files/s" | "tps" => known(Unit::PerSecond, 1.0),
            "ns" | "ns/op" | "nsec" => known(Unit::Nanoseconds, 1.0),
            "us" | "µs" | "usec" => known(Unit::Nanoseconds, 1e3),
            "ms" | "msec" => known(Unit::Nanoseconds, 1e6),
            "s" | "sec" | "seconds" => known(Unit::Seconds, 1.0),
            "min" => known(Unit::Seconds, 60.0),
            "B" | "bytes" => known(Unit::Bytes, 1.0),
            "KiB" | "K" => known(Unit::Bytes, 1024.0),
            "MiB" | "M" => known(Unit::Bytes, 1_048_576.0),
            "GiB" | "G" => known(Unit::Bytes, 1_073_741_824.0),
            "" | "count" => known(Unit::Count, 1.0),
            "%" | "pct" => known(Unit::Percent, 1.0),
            _ => known(Unit::Other(text.to_owned()), 1.0),
        }
    }

    /// The usual good direction of the unit: rates up, times and sizes down.
    #[must_use]
    pub fn usual_better(&self) -> Better {
        match self {
            Unit::BytesPerSecond | Unit::PerSecond => Better::Higher,
            Unit::Other(name) if ["/s", "/sec", "/second"].iter().any(|end| name.ends_with(end)) => {
                Better::Higher
            }
            _ => Better::Lower,
        }
    }
}
