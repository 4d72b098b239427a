//! What a number is: a metric's name, unit and good direction.

use serde::{Deserialize, Serialize};

use crate::units::{Better, Unit};

named! {
    /// Direction of I/O.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Direction {
        /// Reads.
        Read = "read",
        /// Writes.
        Write = "write",
        /// Discards.
        Trim = "trim",
    }
}

/// Definition of a metric. Names are fio's: `write.bw`, `read.clat_ns.p99`, `usr_cpu`, `runtime`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Metric {
    /// The job or group it belongs to; empty for the whole trial.
    pub job: String,
    /// Its name.
    pub name: String,
    /// Base unit of its values.
    pub unit: Unit,
    /// The good direction.
    pub better: Better,
}

impl Metric {
    /// What a value is; the job is empty for the whole trial.
    #[must_use]
    pub fn new(job: impl Into<String>, name: impl Into<String>, unit: Unit, better: Better) -> Metric {
        Metric { job: job.into(), name: name.into(), unit, better }
    }

    /// Whether the kernel, an engine or Go's runtime counts it one by one: such a value is exact, with no rounding in it.
    #[must_use]
    pub fn is_exact_count(&self) -> bool {
        // Go cuts allocs/op off to a whole number: code that allocates as often each time, which it is read for, loses nothing.
        const HEADS: [&str; 8] =
            ["dev.", "events.", "events_per_op.", "extents.", "ctx", "majf", "minf", "allocs/op"];
        const TAILS: [&str; 2] = ["total_ios", "io_bytes"];
        let forms = ["_per_op", "_per_byte"].into_iter().find_map(|form| self.name.strip_suffix(form));
        let name = forms.unwrap_or(&self.name);
        let named =
            HEADS.iter().any(|head| name.starts_with(head)) || TAILS.iter().any(|tail| name.ends_with(tail));
        named && matches!(self.unit, Unit::Count | Unit::Bytes | Unit::Other(_))
    }
}

/// One measured value with its definition, as an agent or an importer delivers it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// What was measured.
    pub metric: Metric,
    /// The value in the metric's base unit.
    pub value: f64,
}

impl Sample {
    /// A value with its definition; the good direction is the unit's usual one, and up for work that was done.
    #[must_use]
    pub fn new(job: &str, name: &str, unit: Unit, value: f64) -> Sample {
        // Of counts less is usually better: work that was done is not.
        let is_work = name.ends_with(".total_ios") || name.ends_with(".io_bytes");
        let better = if is_work { Better::Higher } else { unit.usual_better() };
        Sample { metric: Metric::new(job, name, unit, better), value }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_work_is_better_whoever_counts_it() {
        let better = |name: &str| Sample::new("", name, Unit::Count, 1.0).metric.better;
        assert_eq!((better("read.total_ios"), better("write.io_bytes")), (Better::Higher, Better::Higher));
        assert_eq!(better("ctx"), Better::Lower);
    }

    #[test]
    fn counts_are_exact_and_times_and_what_others_name_are_not() {
        let exact = |name: &str, unit: Unit| Sample::new("", name, unit, 1.0).metric.is_exact_count();
        assert!(exact("write.total_ios", Unit::Count) && exact("dev.flushes_per_op", Unit::Count));
        assert!(exact("dev.write_bytes", Unit::Bytes) && exact("extents.file", Unit::Count));
        assert!(!exact("dev.busy", Unit::Seconds) && !exact("write.bw", Unit::BytesPerSecond));
        assert!(exact("events_per_op.block.block_plug", Unit::Count) && !exact("events", Unit::Count));
        assert!(!exact("hook.tps", Unit::Count) && !exact("usr_cpu_per_op", Unit::Seconds));
        assert!(exact("allocs/op", Unit::Count) && !exact("B/op", Unit::Bytes));
    }
}
