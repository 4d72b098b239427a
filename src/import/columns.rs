//! `--arm`, `--row`, `--value` and `--arm-columns` as written → what each column is.

use crate::record::Metric;
use crate::units::{Better, Unit};

use super::clusters::Clusters;
use super::error::Problem;

/// Which columns of a table are what.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Columns {
    /// The column that names the arm (long form).
    pub arm: Option<String>,
    /// The columns that make the rows.
    pub rows: Vec<String>,
    /// The columns with results (long form).
    pub values: Vec<ValueColumn>,
    /// Groups of columns, one an arm; each group is a metric (wide form).
    pub arm_columns: Vec<Vec<ValueColumn>>,
    /// What makes the clusters.
    pub clusters: Clusters,
}

/// A column with results.
#[derive(Clone, Debug, PartialEq)]
pub struct ValueColumn {
    /// The header's name of it.
    pub column: String,
    /// Unit of the values that are stored.
    pub unit: Unit,
    /// Takes a printed value to that unit.
    pub factor: f64,
    /// The good direction.
    pub better: Better,
    said: bool,
    /// The direction was written.
    written: Option<Better>,
    /// The unit was written.
    unit_said: bool,
}

/// Suffixes of column names: (suffix, unit as shown, good direction). The numbers keep the scale they were published in.
const SUFFIXES: [(&str, &str, Better); 35] = [
    ("kb_s", "KB/s", Better::Higher),
    ("mb_s", "MB/s", Better::Higher),
    ("gb_s", "GB/s", Better::Higher),
    ("kib_s", "KiB/s", Better::Higher),
    ("mib_s", "MiB/s", Better::Higher),
    ("gib_s", "GiB/s", Better::Higher),
    ("b_s", "B/s", Better::Higher),
    ("ops_s", "ops/s", Better::Higher),
    ("per_s", "/s", Better::Higher),
    ("iops", "IOPS", Better::Higher),
    ("tps", "/s", Better::Higher),
    ("qps", "/s", Better::Higher),
    ("rps", "/s", Better::Higher),
    ("kbps", "kbps", Better::Higher),
    ("mbps", "Mbps", Better::Higher),
    ("gbps", "Gbps", Better::Higher),
    ("bw", "", Better::Higher),
    ("throughput", "", Better::Higher),
    ("ns", "ns", Better::Lower),
    ("nsec", "ns", Better::Lower),
    ("us", "µs", Better::Lower),
    ("usec", "µs", Better::Lower),
    ("ms", "ms", Better::Lower),
    ("msec", "ms", Better::Lower),
    ("s", "s", Better::Lower),
    ("sec", "s", Better::Lower),
    ("secs", "s", Better::Lower),
    ("seconds", "s", Better::Lower),
    ("pct", "%", Better::Lower),
    ("percent", "%", Better::Lower),
    ("bytes", "B", Better::Lower),
    ("csw", "", Better::Lower),
    ("ctx", "", Better::Lower),
    ("latency", "", Better::Lower),
    ("time", "", Better::Lower),
];
/// Words that say what is better wherever they stand: fio's `bw_mean` and `iops_mean`, `tput`, `latency_p99`.
const HIGHER: [&str; 10] =
    ["iops", "bw", "bandwidth", "throughput", "tput", "tps", "qps", "rps", "speed", "mbps"];
const LOWER: [&str; 7] = ["lat", "clat", "slat", "latency", "time", "duration", "elapsed"];
/// How much something varies, or fails, is not better where it is more.
const NEITHER: [&str; 19] = [
    "stddev", "stdev", "std", "dev", "sd", "cv", "err", "error", "errors", "failed", "dropped", "drop",
    "drops", "loss", "lost", "miss", "misses", "retries", "rate",
];
/// What is counted a second by columns called `mb_sec` and `files_s`.
const AMOUNTS: [&str; 28] = [
    "kb", "mb", "gb", "kib", "mib", "gib", "bytes", "kbytes", "mbytes", "gbytes", "bit", "bits", "kbit",
    "mbit", "gbit", "ops", "ios", "iops", "req", "reqs", "requests", "files", "transactions", "rows",
    "pages", "msgs", "events", "queries",
];
/// How [`SUFFIXES`] spell an amount a second; of other amounts it is `per_s`.
const A_SECOND: [(&str, &str); 16] = [
    ("b", "b_s"),
    ("bytes", "b_s"),
    ("kb", "kb_s"),
    ("kbytes", "kb_s"),
    ("mb", "mb_s"),
    ("mbytes", "mb_s"),
    ("gb", "gb_s"),
    ("gbytes", "gb_s"),
    ("kib", "kib_s"),
    ("mib", "mib_s"),
    ("gib", "gib_s"),
    ("ops", "ops_s"),
    ("kbit", "kbps"),
    ("mbit", "mbps"),
    ("gbit", "gbps"),
    ("per", "per_s"),
];
/// As often counted a second as timed in seconds.
const AMBIGUOUS: [&str; 5] = ["b", "io", "tx", "trans", "rate"];
/// Endings of times and of rates alike: the word before them tells.
const BARE_SECONDS: [&str; 2] = ["s", "sec"];
/// Endings that say a unit and not what is better: hits and misses are bytes and per cent.
const NEUTRAL: [&str; 3] = ["bytes", "pct", "percent"];
/// What is spent, besides [`LOWER`].
const SPENT: [&str; 17] = [
    "runtime", "walltime", "wall", "real", "cpu", "usr", "user", "sys", "system", "wait", "waited", "delay",
    "cost", "mem", "memory", "rss", "seconds",
];
/// Words that say which of many values it is.
const OF_MANY: [&str; 10] =
    ["avg", "average", "mean", "median", "min", "max", "total", "sum", "worst", "best"];

/// A column's name as [`SUFFIXES`] are written: `Throughput (MB/s)` and `throughput_mb_per_sec` are `throughput_mb_s`.
fn plain(name: &str) -> String {
    let spelt = name.to_lowercase().replace('/', " per ").replace('%', " pct ");
    let words: Vec<&str> =
        spelt.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let of = |before: &[&str], amount: &str| {
        let known = A_SECOND.iter().find(|(spelt, _)| *spelt == amount);
        let last = known.map_or_else(|| format!("{amount}_per_s"), |(_, rate)| (*rate).to_owned());
        before.iter().copied().chain([last.as_str()]).collect::<Vec<&str>>().join("_")
    };
    match words.as_slice() {
        [before @ .., amount, "per", "s" | "sec" | "second"] => of(before, amount),
        [before @ .., amount, "s" | "sec" | "second"] if *amount == "per" || AMOUNTS.contains(amount) => {
            of(before, amount)
        }
        _ => words.join("_"),
    }
}

/// Whether a number of seconds behind these words is a time: `runtime_s`, `latency_p99_s`, `mount_s`, `s`; not of `bw_s`, nor of what may
/// be counted: `things_s`.
fn takes_time(before: &str) -> bool {
    let is_quantile = |word: &str| word.strip_prefix('p').is_some_and(|rest| rest.parse::<u32>().is_ok());
    let mut words = before.split('_').filter(|word| !word.is_empty());
    let last = words.rfind(|word| !OF_MANY.contains(word) && !is_quantile(word));
    let is_plural = |word: &str| word.ends_with('s') && !word.ends_with("ss");
    let is_counted = |word: &str| {
        HIGHER.contains(&word) || AMOUNTS.contains(&word) || AMBIGUOUS.contains(&word) || is_plural(word)
    };
    last.is_none_or(|word| LOWER.contains(&word) || SPENT.contains(&word) || !is_counted(word))
}

/// What is better by a word of a plain name, where its words agree.
fn better_by_word(plain: &str) -> Option<Better> {
    let has = |words: &[&str]| plain.split('_').any(|word| words.contains(&word));
    match (has(&HIGHER), has(&LOWER), has(&NEITHER)) {
        (true, false, false) => Some(Better::Higher),
        (false, true, false) => Some(Better::Lower),
        _ => None,
    }
}

impl ValueColumn {
    /// Reads `COL[:unit][:higher|lower]`.
    ///
    /// # Errors
    /// A clause that says what would be right.
    pub fn parse_spec(spec: &str) -> Result<ValueColumn, Problem> {
        let bad = |what: String| Err(Problem::BadColumns(what));
        let mut parts: Vec<&str> = spec.split(':').map(str::trim).collect();
        let better = match parts.last() {
            Some(&"higher") if parts.len() > 1 => Some(Better::Higher),
            Some(&"lower") if parts.len() > 1 => Some(Better::Lower),
            _ => None,
        };
        if better.is_some() {
            parts.pop();
        }
        let mut column = match parts.as_slice() {
            [name] | [name, _] if name.is_empty() => return bad(format!("'{spec}' names no column")),
            [name] => ValueColumn::guessed(name),
            [name, unit] => {
                if unit.is_empty() {
                    return bad(format!("'{spec}' has an empty unit"));
                }
                let nearest =
                    ["higher", "lower"].into_iter().find(|word| strsim::damerau_levenshtein(unit, word) <= 2);
                if let Some(word) = nearest {
                    return bad(format!(
                        "'{unit}' in '{spec}' is neither 'higher' nor 'lower': did you mean '{word}'?"
                    ));
                }
                let (unit, factor) = Unit::parse(unit);
                let is_known =
                    !matches!(unit, Unit::Other(_) | Unit::Count) || unit.usual_better() == Better::Higher;
                let guessed = ValueColumn::guessed(name);
                let (better, said) =
                    if is_known { (unit.usual_better(), true) } else { (guessed.better, guessed.said) };
                ValueColumn {
                    column: (*name).to_owned(),
                    unit,
                    factor,
                    better,
                    said,
                    written: None,
                    unit_said: true,
                }
            }
            _ => return bad(format!("'{spec}' has too many ':'")),
        };
        if let Some(better) = better {
            column.better = better;
            column.said = true;
            column.written = Some(better);
        }
        Ok(column)
    }

    /// A column of which nothing is said but its name.
    #[must_use]
    pub fn guessed(name: &str) -> ValueColumn {
        let plain = plain(name);
        let fits = |suffix: &str| {
            plain.strip_suffix(suffix).is_some_and(|rest| rest.is_empty() || rest.ends_with('_'))
        };
        let longest =
            SUFFIXES.iter().filter(|(suffix, ..)| fits(suffix)).max_by_key(|(suffix, ..)| suffix.len());
        let before = |suffix: &str| plain.strip_suffix(suffix).unwrap_or_default();
        // `files_s` may be seconds and a rate.
        let longest =
            longest.filter(|(suffix, ..)| !BARE_SECONDS.contains(suffix) || takes_time(before(suffix)));
        let has = |words: &[&str]| plain.split('_').any(|word| words.contains(&word));
        let (unit, by_suffix) = match longest {
            Some((suffix, unit, _)) if NEUTRAL.contains(suffix) => {
                (*unit, has(&SPENT).then_some(Better::Lower))
            }
            Some((_, unit, better)) => (*unit, Some(*better)),
            None => ("", None),
        };
        // More failures a second are hardly better.
        let is_doubtful =
            by_suffix == Some(Better::Higher) && NEITHER.iter().any(|word| *word != "rate" && has(&[*word]));
        let (better, said) = match (by_suffix, better_by_word(&plain)) {
            (Some(suffix), Some(word)) => (suffix, suffix == word),
            (Some(suffix), None) => (suffix, !is_doubtful),
            (None, Some(word)) => (word, true),
            (None, None) => (Better::Lower, false),
        };
        let unit = if unit.is_empty() { Unit::Count } else { Unit::Other(unit.to_owned()) };
        ValueColumn {
            column: name.to_owned(),
            unit,
            factor: 1.0,
            better,
            said,
            written: None,
            unit_said: false,
        }
    }

    /// The same with unit and direction of another column, unless it has a unit of its own, and with this direction if one is written.
    pub(super) fn like(&self, other: &ValueColumn, written: Option<Better>) -> ValueColumn {
        let mut column = match self.unit_said {
            true => self.clone(),
            false => ValueColumn { column: self.column.clone(), ..other.clone() },
        };
        if let Some(better) = written {
            (column.better, column.said) = (better, true);
        }
        column
    }

    /// The direction that was written behind its name.
    pub(super) fn written_better(&self) -> Option<Better> {
        self.written
    }

    /// A unit was written for it.
    pub(super) fn has_unit(&self) -> bool {
        self.unit_said
    }

    /// Whether the good direction was said, or follows from the name.
    #[must_use]
    pub fn better_is_said(&self) -> bool {
        self.said
    }

    /// The metric's name: the column's.
    #[must_use]
    pub fn metric_name(&self) -> String {
        self.column.clone()
    }

    /// The metric's definition.
    #[must_use]
    pub fn metric(&self) -> Metric {
        Metric::new("", self.metric_name(), self.unit.clone(), self.better)
    }

    /// A field's number in the metric's unit.
    ///
    /// # Errors
    /// When it is not a number, not finite, or negative where the unit cannot be.
    pub fn parse(&self, field: &str) -> Result<f64, Problem> {
        let bad = |reason: &'static str| Problem::Value {
            what: self.column.clone(),
            text: field.chars().take(40).collect(),
            reason,
        };
        let value: f64 = field.parse().map_err(|_| bad("which is not a number"))?;
        if !value.is_finite() {
            return Err(bad("which is not a number that can be compared"));
        }
        let may_be_negative = match &self.unit {
            Unit::Percent | Unit::Count => true,
            Unit::Other(name) => name == "%" || !SUFFIXES.iter().any(|(_, unit, _)| unit == name),
            _ => false,
        };
        if value < 0.0 && !may_be_negative {
            return Err(bad("which cannot be negative"));
        }
        let scaled = value * self.factor;
        if scaled.is_finite() { Ok(scaled) } else { Err(bad("which is too large")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_tells_the_unit_and_the_number_keeps_its_scale() {
        for (name, unit, better) in [
            ("kb_s", "KB/s", Better::Higher),
            ("pagecache_mib_s", "MiB/s", Better::Higher),
            ("read_iops", "IOPS", Better::Higher),
            ("write_msec", "ms", Better::Lower),
            ("seconds", "s", Better::Lower),
            ("dax_runtime_s", "s", Better::Lower),
            ("usr_pct", "%", Better::Lower),
            ("ops_per_sec", "ops/s", Better::Higher),
            ("events per second", "/s", Better::Higher),
            ("req/sec", "/s", Better::Higher),
            ("Throughput (MB/s)", "MB/s", Better::Higher),
            ("mb_sec", "MB/s", Better::Higher),
            ("write.mib_per_s", "MiB/s", Better::Higher),
            ("elapsed.sec", "s", Better::Lower),
            ("lock wait sec", "s", Better::Lower),
            ("latency_p99_s", "s", Better::Lower),
            ("avg_s", "s", Better::Lower),
            ("mount_s", "s", Better::Lower),
            ("fsck_sec", "s", Better::Lower),
            ("recovery_sec", "s", Better::Lower),
            ("process_s", "s", Better::Lower),
            ("99th_s", "s", Better::Lower),
            ("io/s", "/s", Better::Higher),
            ("bw_bytes", "B", Better::Higher),
            ("throughput_bytes", "B", Better::Higher),
            ("files_s", "/s", Better::Higher),
            ("req_s", "/s", Better::Higher),
            ("iops_s", "/s", Better::Higher),
            ("bytes_sec", "B/s", Better::Higher),
            ("rw_mbytes_s", "MB/s", Better::Higher),
            ("mbit_s", "Mbps", Better::Higher),
            ("transfer_rate_mb_s", "MB/s", Better::Higher),
            ("B/s", "B/s", Better::Higher),
            ("CPU %", "%", Better::Lower),
            ("qps", "/s", Better::Higher),
        ] {
            let column = ValueColumn::guessed(name);
            assert_eq!(
                (column.unit, column.factor, column.better),
                (Unit::Other(unit.to_owned()), 1.0, better),
                "{name}"
            );
            assert!(column.said);
        }
        for (name, better) in [
            ("iops_mean", Some(Better::Higher)),
            ("read_iops_avg", Some(Better::Higher)),
            ("bw_mean", Some(Better::Higher)),
            ("tput", Some(Better::Higher)),
            ("latency_p99", Some(Better::Lower)),
            ("iops_stddev", None),
            ("failed_ops", None),
            ("drop_rate", None),
            ("iops_lost", None),
            ("time_rate", None),
            ("b_sec", None),
            ("things_s", None),
            ("io_s", None),
            ("tx_s", None),
            ("trans_s", None),
            ("rate_s", None),
            ("bw_s", Some(Better::Higher)),
        ] {
            let column = ValueColumn::guessed(name);
            assert_eq!((column.said.then_some(column.better), column.unit), (better, Unit::Count), "{name}");
        }
        // The unit is known, and nobody knows what is better.
        for (name, unit) in
            [("hit_pct", "%"), ("cached_bytes", "B"), ("latency_mb_s", "MB/s"), ("errors_per_s", "/s")]
        {
            let column = ValueColumn::guessed(name);
            assert_eq!((column.unit, column.said), (Unit::Other(unit.to_owned()), false), "{name}");
        }
        let unknown = ValueColumn::guessed("vanilla");
        assert_eq!((unknown.unit, unknown.said), (Unit::Count, false));
    }

    #[test]
    fn specs_are_read() {
        let column = ValueColumn::parse_spec("kb_s:higher").unwrap();
        assert_eq!((column.unit, column.better), (Unit::Other("KB/s".to_owned()), Better::Higher));
        let column = ValueColumn::parse_spec("t:ms").unwrap();
        assert_eq!(
            (column.unit.clone(), column.factor, column.better),
            (Unit::Nanoseconds, 1e6, Better::Lower)
        );
        assert_eq!(column.parse("2").unwrap(), 2e6);
        let column = ValueColumn::parse_spec("ops_per_sec:kops").unwrap();
        assert_eq!((column.better, column.said), (Better::Higher, true));
        assert!(!ValueColumn::parse_spec("score:points").unwrap().said);
        let column = ValueColumn::parse_spec("rate:req/sec").unwrap();
        assert_eq!((column.unit, column.better), (Unit::Other("req/sec".to_owned()), Better::Higher));
        let column = ValueColumn::parse_spec("score:points:higher").unwrap();
        assert_eq!((column.unit, column.better), (Unit::Other("points".to_owned()), Better::Higher));
        for spec in ["", ":ms", "a::higher", "a:b:c:lower", "a:higer"] {
            assert!(ValueColumn::parse_spec(spec).is_err(), "{spec}");
        }
    }

    #[test]
    fn impossible_values_are_refused() {
        let rate = ValueColumn::guessed("kb_s");
        for field in ["nan", "inf", "-5", "12x", ""] {
            assert!(rate.parse(field).is_err(), "{field}");
        }
        assert_eq!(ValueColumn::guessed("change_pct").parse("-5").unwrap(), -5.0);
    }
}
