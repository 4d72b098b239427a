//! Which metric goes into which of fio's nine columns, and in which unit.

use std::collections::{HashMap, HashSet};

use crate::analyse::{Analysis, ArmSummary, RowKey};
use crate::record::Metric;
use crate::units::Unit;

/// The columns of the published study, in its order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Column {
    ReadBw,
    ReadIops,
    ReadMsec,
    WriteBw,
    WriteIops,
    WriteMsec,
    Usr,
    Sys,
    Csw,
}

impl Column {
    pub(super) const ALL: [Column; 9] = [
        Column::ReadBw,
        Column::ReadIops,
        Column::ReadMsec,
        Column::WriteBw,
        Column::WriteIops,
        Column::WriteMsec,
        Column::Usr,
        Column::Sys,
        Column::Csw,
    ];

    /// Its head.
    pub(super) fn head(self) -> &'static str {
        match self {
            Column::ReadBw | Column::WriteBw => "KB/s",
            Column::ReadIops | Column::WriteIops => "IOPS",
            Column::ReadMsec | Column::WriteMsec => "msec",
            Column::Usr => "usr",
            Column::Sys => "sys",
            Column::Csw => "csw",
        }
    }

    /// Integer columns: bandwidth, IOPS and time.
    pub(super) fn is_integer(self) -> bool {
        !matches!(self, Column::Usr | Column::Sys | Column::Csw)
    }

    /// The three columns of its direction.
    pub(super) fn of_direction(self) -> Option<std::ops::Range<usize>> {
        match self {
            Column::ReadBw | Column::ReadIops | Column::ReadMsec => Some(0..3),
            Column::WriteBw | Column::WriteIops | Column::WriteMsec => Some(3..6),
            Column::Usr | Column::Sys | Column::Csw => None,
        }
    }

    /// The column of a metric, by fio's own names, assay's and those of published tables.
    fn of(metric: &Metric) -> Option<Column> {
        let name: String = metric
            .name
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' })
            .collect();
        let split = name.split_once('_').filter(|(side, _)| matches!(*side, "read" | "write"));
        if let Some((side, what)) = split {
            let (bw, iops, msec) = match side {
                "read" => (Column::ReadBw, Column::ReadIops, Column::ReadMsec),
                _ => (Column::WriteBw, Column::WriteIops, Column::WriteMsec),
            };
            // A bare name of an unknown unit is in no column of that unit.
            let is_known = !matches!(metric.unit, Unit::Count | Unit::Other(_));
            return match what {
                "bw" | "runtime" if !is_known => None,
                "bw" | "kb_s" | "kib_s" | "kbs" | "bw_kb_s" | "bw_kib_s" => Some(bw),
                "iops" => Some(iops),
                "msec" | "runtime" | "runtime_ms" | "runtime_msec" => Some(msec),
                _ => None,
            };
        }
        match name.as_str() {
            "usr" | "usr_pct" | "usr_cpu" | "usr_cpu_pct" | "cpu_usr" => Some(Column::Usr),
            "sys" | "sys_pct" | "sys_cpu" | "sys_cpu_pct" | "cpu_sys" => Some(Column::Sys),
            "csw" | "ctx" | "ctx_voluntary" | "ctx_involuntary" | "ctxsw" => Some(Column::Csw),
            _ => None,
        }
    }

    /// What takes the metric's base unit to the column's.
    fn factor(self, unit: &Unit) -> f64 {
        match unit {
            Unit::BytesPerSecond => 1.0 / 1024.0,
            Unit::Nanoseconds if self.is_integer() => 1e-6,
            Unit::Seconds if self.is_integer() => 1e3,
            _ => 1.0,
        }
    }
}

/// Mean and standard deviation in the column's unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Average {
    pub(super) mean: f64,
    pub(super) stddev: f64,
    /// Trials it is of.
    pub(super) n: usize,
}

/// The averages of one row in one arm.
pub(super) type Nine = [Option<Average>; 9];

/// What the tables are made of.
#[derive(Default)]
pub(super) struct Averages<'a> {
    /// Rows in the design's order.
    pub(super) rows: Vec<&'a RowKey>,
    /// By row and arm.
    pub(super) cells: HashMap<(&'a RowKey, &'a str), Nine>,
    /// CPU columns were derived from seconds of CPU and run time.
    pub(super) cpu_derived: bool,
    /// That run time is the sum over the processes of a job, as fio's is.
    pub(super) of_all_processes: bool,
    /// A bandwidth is in units of 1024 bytes.
    pub(super) in_kib: bool,
}

/// Values of one metric in arms of one row.
struct Measured<'a> {
    row: &'a RowKey,
    metric: &'a Metric,
    arms: Vec<&'a ArmSummary>,
}

/// What was compared, and what was not because it never changed.
fn measured(analysis: &Analysis) -> impl Iterator<Item = Measured<'_>> {
    let compared = analysis.comparisons.iter();
    let compared =
        compared.map(|c| Measured { row: &c.row, metric: &c.metric, arms: vec![&c.baseline, &c.candidate] });
    let steady = analysis.steady.iter();
    compared.chain(steady.map(|s| Measured { row: &s.row, metric: &s.metric, arms: s.arms.iter().collect() }))
}

/// Collects the averages, or nothing when the metrics are not fio's: bandwidth and IOPS of a direction.
pub(super) fn averages(analysis: &Analysis) -> Option<Averages<'_>> {
    // One arm alone: its steady figures without the others would be no table.
    if analysis.comparisons.is_empty() {
        return None;
    }
    let seconds = seconds_of(analysis, "runtime");
    let all_seconds = seconds_of(analysis, "job_runtime");
    let totals: HashSet<(&RowKey, &str)> = measured(analysis)
        .filter(|of| of.metric.name == "ctx")
        .flat_map(|of| of.arms.into_iter().map(move |arm| (of.row, arm.arm.as_str())))
        .collect();
    let mut found = Averages::default();
    let mut columns: Vec<Column> = Vec::new();
    let mut rows: HashSet<&RowKey> = HashSet::new();
    let mut summed: HashSet<(&RowKey, &str, &str)> = HashSet::new();
    for Measured { row, metric, arms } in measured(analysis) {
        // Before its columns are looked for: steady figures come last, and their rows would, too.
        if rows.insert(row) {
            found.rows.push(row);
        }
        let Some(column) = Column::of(metric) else { continue };
        columns.push(column);
        found.in_kib |= metric.unit == Unit::BytesPerSecond;
        for summary in arms {
            let arm = summary.arm.as_str();
            let key = (row, arm);
            // The baseline comes with every candidate; context switches may come in two parts to be added, or
            // with their sum besides.
            let part = metric.name.starts_with("ctx.") && totals.contains(&key);
            if part || !summed.insert((row, arm, &metric.name)) {
                continue;
            }
            let cpu = matches!(column, Column::Usr | Column::Sys) && metric.unit == Unit::Seconds;
            let all = all_seconds.get(&key);
            let average = match all.or_else(|| seconds.get(&key)) {
                Some(runtime) if cpu => {
                    found.cpu_derived = true;
                    found.of_all_processes |= all.is_some();
                    share_of(summary, runtime)
                }
                _ if cpu => continue,
                _ => scaled(summary, column.factor(&metric.unit)),
            };
            let slot = &mut found.cells.entry(key).or_insert([None; 9])[column as usize];
            *slot = Some(match slot.take() {
                Some(other) => Average {
                    mean: other.mean + average.mean,
                    // The parts are counts of the same trials: their deviations add at most.
                    stddev: other.stddev + average.stddev,
                    n: other.n.min(average.n),
                },
                None => average,
            });
        }
    }
    fill_run_times(&mut found, &seconds);
    // What was counted for a whole trial beside its jobs (context switches) is no row of fio's table.
    let moved = |row: &RowKey| {
        found.cells.iter().any(|((of, _), nine)| *of == row && nine[..6].iter().any(Option::is_some))
    };
    let rows = found.rows.iter().copied().filter(|row| moved(row)).collect();
    found.rows = rows;
    let has = |pair: [Column; 2]| pair.iter().all(|column| columns.contains(column));
    let fio = has([Column::ReadBw, Column::ReadIops]) || has([Column::WriteBw, Column::WriteIops]);
    fio.then_some(found)
}

/// A time of each row and arm.
fn seconds_of<'a>(analysis: &'a Analysis, name: &str) -> HashMap<(&'a RowKey, &'a str), &'a ArmSummary> {
    measured(analysis)
        .filter(|of| of.metric.name == name && of.metric.unit == Unit::Seconds)
        .flat_map(|of| of.arms.into_iter().map(move |arm| ((of.row, arm.arm.as_str()), arm)))
        .collect()
}

/// Whether a metric has a column: one of the nine, or the job's run time, which stands in the columns of its directions.
pub(super) fn has_column(metric: &Metric) -> bool {
    Column::of(metric).is_some() || (metric.name == "runtime" && metric.unit == Unit::Seconds)
}

fn scaled(summary: &ArmSummary, factor: f64) -> Average {
    Average { mean: summary.mean * factor, stddev: summary.stddev * factor, n: summary.n }
}

/// CPU seconds as percent of the run time: trial by trial, or of the means where trials cannot be matched.
fn share_of(cpu: &ArmSummary, runtime: &ArmSummary) -> Average {
    let same = cpu.values.len() == runtime.values.len()
        && cpu.values.iter().zip(&runtime.values).all(|(a, b)| (a.0, a.1, a.2) == (b.0, b.1, b.2));
    if !same || cpu.values.is_empty() {
        let factor = 100.0 / runtime.mean;
        return scaled(cpu, factor);
    }
    let shares: Vec<f64> =
        cpu.values.iter().zip(&runtime.values).map(|(cpu, runtime)| cpu.3 / runtime.3 * 100.0).collect();
    let n = shares.len() as f64;
    let mean = shares.iter().sum::<f64>() / n;
    let variance = shares.iter().map(|share| (share - mean).powi(2)).sum::<f64>() / (n - 1.0);
    Average { mean, stddev: variance.sqrt(), n: shares.len() }
}

/// Where a direction moved data but has no time of its own, the job's run time is its time.
fn fill_run_times(found: &mut Averages<'_>, seconds: &HashMap<(&RowKey, &str), &ArmSummary>) {
    for (key, nine) in &mut found.cells {
        let Some(runtime) = seconds.get(key) else { continue };
        for (rate, time) in [(Column::ReadBw, Column::ReadMsec), (Column::WriteBw, Column::WriteMsec)] {
            let moved = nine[rate as usize].is_some_and(|average| average.mean > 0.0);
            if moved && nine[time as usize].is_none() {
                nine[time as usize] = Some(scaled(runtime, 1e3));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Better;

    #[test]
    fn the_names_of_fio_of_assay_and_of_published_tables_are_known() {
        let of = |name: &str, unit: Unit| {
            Column::of(&Metric { job: String::new(), name: name.to_owned(), unit, better: Better::Higher })
        };
        let column = |name: &str| of(name, Unit::Count);
        assert_eq!(of("read.bw", Unit::BytesPerSecond), Some(Column::ReadBw));
        assert_eq!(column("write_bw"), None, "a table's, of which nobody says the unit");
        assert_eq!(column("read_kb_s"), Some(Column::ReadBw));
        assert_eq!(column("write_msec"), Some(Column::WriteMsec));
        assert_eq!(of("write.runtime", Unit::Seconds), Some(Column::WriteMsec));
        assert_eq!(column("usr_pct"), Some(Column::Usr));
        assert_eq!(column("ctx.voluntary"), Some(Column::Csw));
        assert_eq!(column("write.clat_ns.p99"), None);
        assert_eq!(column("runtime"), None);
    }
}
