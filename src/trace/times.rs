//! How long each stage took, by class: histograms at three digits, with exact sums and ends.
//!
//! Enters: a class, a stage, nanoseconds. Leaves: quantiles, and counts by powers of two. Stages are those of blktrace's btt,
//! with one difference: a sequence of flushes around a write belongs to the write, so that Q2C of such a write ends with the sequence.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use serde::Serialize;

use super::class::Class;

/// A stage of an I/O's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Stage {
    /// From the bio's queueing until its request was inserted; of bios whose request was inserted at all.
    Q2i,
    /// From the bio's queueing until its request went to the driver.
    Q2d,
    /// From a request's insertion until it went to the driver.
    I2d,
    /// From there until the driver had completed it.
    D2c,
    /// From the bio's queueing until its end.
    Q2c,
}

impl Stage {
    /// All, in the order of an I/O's life.
    pub const ALL: [Stage; 5] = [Stage::Q2i, Stage::Q2d, Stage::I2d, Stage::D2c, Stage::Q2c];
}

/// What is said of one stage of one class, in nanoseconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Quantiles {
    /// How many.
    pub count: u64,
    /// The sum, exact.
    pub sum_ns: u64,
    /// The smallest, exact.
    pub min_ns: u64,
    /// The mean, exact.
    pub mean_ns: f64,
    /// The median, at three digits.
    pub p50_ns: u64,
    /// The 90th percentile.
    pub p90_ns: u64,
    /// The 99th percentile.
    pub p99_ns: u64,
    /// The 99.9th percentile.
    pub p999_ns: u64,
    /// The largest, exact.
    pub max_ns: u64,
    /// How many took how long, by powers of two, from the first range that has any to the last. 0 ns counts as 1 ns.
    pub octaves: Octaves,
}

/// Counts by powers of two.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Octaves {
    /// Where the first begins.
    pub from_ns: u64,
    /// Of the first and those behind it, each twice as wide as the one before.
    pub counts: Vec<u64>,
}

impl Octaves {
    fn of(histogram: &Histogram<u32>) -> Octaves {
        let mut counts = [0; 64];
        for value in histogram.iter_recorded() {
            counts[value.value_iterated_to().max(1).ilog2() as usize] += value.count_since_last_iteration();
        }
        let first = counts.iter().position(|count| *count > 0).unwrap_or(0);
        let end = counts.iter().rposition(|count| *count > 0).map_or(0, |last| last + 1);
        Octaves { from_ns: 1 << first, counts: counts[first.min(end)..end].to_vec() }
    }

    /// How many took that long or longer but not twice as long; `from_ns` is a power of two.
    #[must_use]
    pub fn at(&self, from_ns: u64) -> u64 {
        let place = from_ns.ilog2().checked_sub(self.from_ns.ilog2());
        place.and_then(|place| self.counts.get(place as usize)).copied().unwrap_or(0)
    }
}

/// One stage of one class while the trace is read.
struct Times {
    histogram: Histogram<u32>,
    sum_ns: u64,
    min_ns: u64,
    max_ns: u64,
}

/// All stages of all classes.
#[derive(Default)]
pub(super) struct AllTimes {
    /// By class and stage, made when first needed.
    kept: [[Option<Box<Times>>; Stage::ALL.len()]; Class::ALL.len()],
}

impl AllTimes {
    pub(super) fn record(&mut self, class: Class, stage: Stage, nanoseconds: u64) {
        let kept = &mut self.kept[class as usize][stage as usize];
        if kept.is_none() {
            // Three digits always make a histogram; without one nothing would be counted at all.
            let Ok(histogram) = Histogram::new(3) else { return };
            *kept = Some(Box::new(Times { histogram, sum_ns: 0, min_ns: u64::MAX, max_ns: 0 }));
        }
        if let Some(times) = kept {
            // It grows as needed; beyond what it can hold the largest place counts.
            if times.histogram.record(nanoseconds).is_err() {
                times.histogram.saturating_record(nanoseconds);
            }
            times.sum_ns = times.sum_ns.saturating_add(nanoseconds);
            times.min_ns = times.min_ns.min(nanoseconds);
            times.max_ns = times.max_ns.max(nanoseconds);
        }
    }

    pub(super) fn summary(&self) -> BTreeMap<Class, BTreeMap<Stage, Quantiles>> {
        let mut all: BTreeMap<Class, BTreeMap<Stage, Quantiles>> = BTreeMap::new();
        for class in Class::ALL {
            for stage in Stage::ALL {
                if let Some(times) = &self.kept[class as usize][stage as usize] {
                    all.entry(class).or_default().insert(stage, times.quantiles());
                }
            }
        }
        all
    }
}

impl AllTimes {
    /// The stages of some classes taken together.
    pub(super) fn of(&self, classes: &[Class]) -> BTreeMap<Stage, Quantiles> {
        let of_stage = |stage: &Stage| {
            let kept =
                classes.iter().filter_map(|class| self.kept[*class as usize][*stage as usize].as_deref());
            let together = kept
                .map(|times| Times { histogram: times.histogram.clone(), ..*times })
                .reduce(|all, other| all.with(&other))?;
            Some((*stage, together.quantiles()))
        };
        Stage::ALL.iter().filter_map(of_stage).collect()
    }
}

impl Times {
    fn with(mut self, other: &Times) -> Times {
        // Both grow as needed: there is room for whatever the other holds.
        let _ = self.histogram.add(&other.histogram);
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
        self
    }

    fn quantiles(&self) -> Quantiles {
        let at = |quantile: f64| self.histogram.value_at_quantile(quantile).clamp(self.min_ns, self.max_ns);
        let count = self.histogram.len();
        Quantiles {
            count,
            sum_ns: self.sum_ns,
            min_ns: self.min_ns,
            mean_ns: self.sum_ns as f64 / count as f64,
            p50_ns: at(0.5),
            p90_ns: at(0.9),
            p99_ns: at(0.99),
            p999_ns: at(0.999),
            max_ns: self.max_ns,
            octaves: Octaves::of(&self.histogram),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_and_sums_are_exact_and_quantiles_near() {
        let mut all = AllTimes::default();
        for value in 1..=1000 {
            all.record(Class::Read, Stage::D2c, value * 1_001);
        }
        all.record(Class::Write, Stage::Q2c, 0);
        all.record(Class::Write, Stage::Q2c, u64::MAX);
        let summary = all.summary();
        let reads = &summary[&Class::Read][&Stage::D2c];
        assert_eq!((reads.count, reads.min_ns, reads.max_ns), (1000, 1_001, 1_001_000));
        assert_eq!(reads.sum_ns, 1_001 * 500_500);
        assert!((reads.p50_ns as f64 / 500_500.0 - 1.0).abs() < 0.002);
        let octaves = &reads.octaves;
        assert_eq!((octaves.from_ns, octaves.counts.iter().sum::<u64>()), (512, 1000));
        // 1.001 µs is of 512 … 1,023 ns; 2.048 µs and more, up to 4.095: the values 3 … 4.
        assert_eq!((octaves.at(512), octaves.at(1 << 10), octaves.at(1 << 11)), (1, 1, 2));
        assert_eq!((octaves.at(256), octaves.at(1 << 20)), (0, 0), "outside of them are none");
        assert_eq!(summary[&Class::Write][&Stage::Q2c].max_ns, u64::MAX);
        assert_eq!(summary[&Class::Write][&Stage::Q2c].octaves.at(1), 1, "no time at all");
        assert_eq!(summary.len(), 2);
    }

    #[test]
    fn classes_are_taken_together() {
        let mut all = AllTimes::default();
        for (class, value) in
            [(Class::Write, 10), (Class::WriteSync, 1_000), (Class::WriteMeta, 40), (Class::Read, 7)]
        {
            all.record(class, Stage::D2c, value);
        }
        let writes = all.of(&[Class::Write, Class::WriteSync, Class::WriteMeta]);
        let served = &writes[&Stage::D2c];
        assert_eq!((served.count, served.sum_ns, served.min_ns, served.max_ns), (3, 1_050, 10, 1_000));
        assert_eq!((served.p50_ns, writes.len()), (40, 1));
        assert!(all.of(&[Class::Discard]).is_empty());
    }
}
