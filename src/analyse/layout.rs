//! Which cells make the arms and rows of an analysis, and which metric decides each row.
//!
//! Enters: a run's design, options, the table. Leaves: a [`Layout`]. No numbers are judged here.

use std::collections::BTreeSet;

use super::comparison::RowKey;
use super::options::Options;
use super::table::Table;
use crate::record::{Run, Status, Trial, deciding_metrics, other_direction};

/// One row: the same job under the same levels of everything that is not compared.
pub(super) struct Row {
    pub key: RowKey,
    /// The cell of each arm, in the order of [`Layout::arms`].
    pub cells: Vec<Option<u32>>,
    /// Indices of the row's metrics, in definition order.
    pub metrics: Vec<u32>,
    /// Those that decide, in the order in which they were asked for.
    pub primaries: Vec<u32>,
}

impl Row {
    /// The metric that speaks for the row where one must: the first that decides.
    pub(super) fn primary(&self) -> Option<u32> {
        self.primaries.first().copied()
    }

    /// The bandwidth that stands for the row, whatever decides it: of writes, of reads, or of both together.
    pub(super) fn bandwidth(&self, table: &Table) -> Option<u32> {
        bandwidth(table, self)
    }
}

/// Arms and rows.
pub(super) struct Layout {
    /// Name of the compared factor.
    pub factor: String,
    /// Labels, the baseline first.
    pub arms: Vec<String>,
    pub rows: Vec<Row>,
    /// The smallest difference that matters in each metric, as a ratio minus 1.
    pub deltas: Vec<f64>,
    /// Cells whose every trial was skipped, because what they ask for cannot be had.
    pub skipped: BTreeSet<u32>,
}

impl Layout {
    pub(super) fn new(run: &Run, options: &Options, table: &Table) -> Layout {
        let compare = options.compared(run);
        let factor = &run.design.factors[compare];
        let baseline =
            options.baseline.as_ref().and_then(|label| factor.levels.iter().position(|l| l == label));
        let mut levels: Vec<usize> = (0..factor.levels.len()).collect();
        // The baseline comes first, the others keep their order.
        levels.sort_by_key(|level| Some(*level) != baseline);
        let mut rows = Vec::new();
        let jobs = jobs(run);
        for (key, cells) in combinations(run, compare, &levels) {
            let start = rows.len();
            for job in &jobs {
                let metrics: Vec<u32> = (0..table.metrics().len() as u32)
                    .filter(|m| table.metrics()[*m as usize].job == *job && has_values(table, &cells, *m))
                    .collect();
                if !metrics.is_empty() {
                    let key = RowKey { levels: key.clone(), job: job.clone() };
                    rows.push(Row { key, cells: cells.clone(), metrics, primaries: Vec::new() });
                }
            }
            if rows.len() == start && !run.cells.is_empty() {
                // Nothing was measured here; the row is kept so that a report can say so.
                let key = RowKey { levels: key, job: String::new() };
                rows.push(Row { key, cells, metrics: Vec::new(), primaries: Vec::new() });
            }
            choose_primaries(run, options, table, &mut rows[start..]);
        }
        let arms = levels.iter().map(|level| factor.levels[*level].clone()).collect();
        let deltas = options.deltas(run, table.metrics());
        Layout { factor: factor.name.clone(), arms, rows, deltas, skipped: skipped(run) }
    }

    /// The candidates a row has a cell for. A row of an imported table may lack some; one without any keeps them
    /// all, so that a report can say what is missing.
    pub(super) fn candidates(&self, row: &Row) -> Vec<usize> {
        let all = 1..self.arms.len();
        let there: Vec<usize> = all.clone().filter(|arm| row.cells[*arm].is_some()).collect();
        if there.is_empty() { all.collect() } else { there }
    }

    /// The arm of a cell; `None`: none of those compared.
    pub(super) fn arm_of(&self, cell: u32) -> Option<usize> {
        self.rows.iter().find_map(|row| row.cells.iter().position(|known| *known == Some(cell)))
    }
}

/// The metric that decides a run's first row that has one, among those that its trials have reported.
pub(super) fn deciding_metric(run: &Run) -> Option<u32> {
    let table = Table::new(run);
    let layout = Layout::new(run, &Options::default(), &table);
    layout.rows.iter().find_map(Row::primary).filter(|metric| (*metric as usize) < run.metrics.len())
}

fn skipped(run: &Run) -> BTreeSet<u32> {
    let is_skipped = |trial: &&Trial| matches!(trial.status, Status::Skipped { .. });
    let (skipped, tried): (Vec<&Trial>, Vec<&Trial>) = run.trials.iter().partition(is_skipped);
    let tried: BTreeSet<u32> = tried.into_iter().map(|trial| trial.cell).collect();
    skipped.into_iter().map(|trial| trial.cell).filter(|cell| !tried.contains(cell)).collect()
}

/// Jobs in the order of their first metric.
fn jobs(run: &Run) -> Vec<String> {
    let mut jobs: Vec<String> = Vec::new();
    for metric in &run.metrics {
        if !jobs.contains(&metric.job) {
            jobs.push(metric.job.clone());
        }
    }
    jobs
}

type Combination = (Vec<(String, String)>, Vec<Option<u32>>);

/// Combinations of the levels that are not compared, in the order of the cells, with each arm's cell.
fn combinations(run: &Run, compare: usize, arms: &[usize]) -> Vec<Combination> {
    let mut found: Vec<(Vec<u32>, Vec<Option<u32>>)> = Vec::new();
    for (cell, levels) in run.cells.iter().enumerate() {
        let mut rest = levels.levels.clone();
        let own = rest.remove(compare) as usize;
        let at = found.iter().position(|(known, _)| *known == rest).unwrap_or_else(|| {
            found.push((rest, vec![None; arms.len()]));
            found.len() - 1
        });
        if let Some(arm) = arms.iter().position(|level| *level == own) {
            found[at].1[arm] = Some(cell as u32);
        }
    }
    let others: Vec<_> = run.design.factors.iter().enumerate().filter(|(at, _)| *at != compare).collect();
    let named = |rest: &[u32]| {
        let label = |(level, (_, factor)): (&u32, &(usize, &crate::record::Factor))| {
            (factor.name.clone(), factor.levels[*level as usize].clone())
        };
        rest.iter().zip(&others).map(label).collect()
    };
    found.into_iter().map(|(rest, cells)| (named(&rest), cells)).collect()
}

fn has_values(table: &Table, cells: &[Option<u32>], metric: u32) -> bool {
    cells.iter().flatten().any(|cell| !table.column(*cell, metric).is_empty())
}

/// Sets each row's primary metrics: those wished or designed, in rows of the other direction their counterparts
/// (`read.bw` for `write.bw`); where no row has one, the bandwidth; where no row has that, the first metric with a value
/// that is not 0.
/// Among rows of the same levels, those of named jobs decide; the row of the whole trial only when no job can, or by a
/// metric that was asked for and that no job has.
fn choose_primaries(run: &Run, options: &Options, table: &Table, rows: &mut [Row]) {
    let asked = options.primary.as_deref().or(run.design.primary.as_deref());
    let is_metric = |name: &str| table.metrics().iter().any(|metric| metric.name == name);
    let wishes = asked.map(|text| deciding_metrics(text, is_metric)).unwrap_or_default();
    let is_asked = options.primary.is_some() || run.design.asked;
    let alone = is_asked || wishes.iter().any(|(section, _)| section.is_none());
    let wished = wished_in(table, &wishes, rows);
    let any_job = rows.iter().any(|row| !row.key.job.is_empty());
    // A read column is 0 in the row of a job that only writes: the first metric that measured something decides.
    let measured = |row: &Row| {
        let moved = |cell: &u32, metric| table.column(*cell, metric).iter().any(|point| point.value != 0.0);
        let all = row.metrics.iter().copied();
        all.clone().find(|m| row.cells.iter().flatten().any(|cell| moved(cell, *m))).or(all.clone().next())
    };
    let first = |row: &Row| measured(row).filter(|_| !(row.key.job.is_empty() && any_job));
    let nothing_fits = wished.iter().all(Vec::is_empty);
    // What nobody asked for, as the latency of a section with a rate, leaves the other sections as they are.
    let mut usual: Vec<Option<u32>> = match nothing_fits || !alone {
        true => rows.iter().map(|row| bandwidth(table, row)).collect(),
        false => vec![None; rows.len()],
    };
    if nothing_fits && usual.iter().all(Option::is_none) {
        usual = rows.iter().map(first).collect();
    }
    let chosen: Vec<(bool, Vec<u32>)> = wished
        .into_iter()
        .zip(usual)
        .map(|(wished, usual)| {
            (!wished.is_empty(), if wished.is_empty() { Vec::from_iter(usual) } else { wished })
        })
        .collect();
    let jobs_decide =
        rows.iter().zip(&chosen).any(|(row, (_, metrics))| !metrics.is_empty() && !row.key.job.is_empty());
    for (row, (asked_for, metrics)) in rows.iter_mut().zip(chosen) {
        let speaks = !row.key.job.is_empty() || !jobs_decide || asked_for;
        row.primaries = if speaks { metrics } else { Vec::new() };
    }
}

/// The metrics of each row that were asked for: of its own section, else those of every section. What a named job has, the row of
/// the whole trial leaves to it.
fn wished_in(table: &Table, wishes: &[(Option<&str>, &str)], rows: &[Row]) -> Vec<Vec<u32>> {
    let named = |row: &Row, name: &str| {
        row.metrics.iter().copied().find(|m| table.metrics()[*m as usize].name == name)
    };
    let has = |row: &Row, name: &str| named(row, name).or_else(|| named(row, &other_direction(name)?));
    let a_job_has = |name: &str| rows.iter().any(|row| !row.key.job.is_empty() && has(row, name).is_some());
    let wished = |row: &Row| {
        let is_own = |section: &Option<&str>| *section == Some(row.key.job.as_str());
        let own = wishes.iter().any(|(section, _)| is_own(section));
        let mut metrics = Vec::new();
        for (section, name) in wishes {
            let meant = if own { is_own(section) } else { section.is_none() };
            if !meant || row.key.job.is_empty() && a_job_has(name) {
                continue;
            }
            metrics.extend(has(row, name).filter(|metric| !metrics.contains(metric)));
        }
        metrics
    };
    rows.iter().map(wished).collect()
}

/// The bandwidth that stands for a row: of writes, of reads, or of both together; of these, where not all arms have it, one that more of
/// them have.
fn bandwidth(table: &Table, row: &Row) -> Option<u32> {
    // How many cells moved something.
    let reach = |metric: u32| {
        let moves = |cell: &&u32| table.column(**cell, metric).iter().any(|point| point.value > 0.0);
        row.cells.iter().flatten().filter(moves).count()
    };
    let moving = |name: &str| {
        let named = |m: &u32| table.metrics()[*m as usize].name == name && reach(*m) > 0;
        row.metrics.iter().copied().find(named)
    };
    let (write, read, both) = (moving("write.bw"), moving("read.bw"), moving("bw"));
    let usual = match (write, read) {
        (Some(write), Some(_)) => both.or(Some(write)),
        (write, read) => write.or(read).or(both),
    };
    let wider = |best: u32, other: u32| if reach(other) > reach(best) { other } else { best };
    usual.into_iter().chain([write, read, both].into_iter().flatten()).reduce(wider)
}

#[cfg(test)]
mod tests {
    use super::super::made_up::{Made, run_of};
    use super::*;
    use crate::record::{Cell, Factor, Metric};
    use crate::units::{Better, Unit};

    fn metric(job: &str, name: &str) -> Metric {
        Metric::new(job, name, Unit::Count, Better::Higher)
    }

    /// A run whose every trial has value 1 for each of `metrics`.
    fn with_metrics(metrics: Vec<Metric>) -> Run {
        let mut run = run_of(&Made::default(), 4);
        run.design.primary = None;
        let values: Vec<(u32, f64)> = (0..metrics.len() as u32).map(|at| (at, 1.0)).collect();
        run.metrics = metrics;
        run.trials.iter_mut().for_each(|trial| trial.values.clone_from(&values));
        run
    }

    fn primaries(run: &Run, options: &Options) -> Vec<(String, Option<String>)> {
        let table = Table::new(run);
        let layout = Layout::new(run, options, &table);
        let name = |row: &Row| row.primary().map(|m| run.metrics[m as usize].name.clone());
        layout.rows.iter().map(|row| (row.key.job.clone(), name(row))).collect()
    }

    #[test]
    fn bandwidth_decides_by_the_kind_of_load() {
        let of = |names: &[&str]| {
            let run = with_metrics(names.iter().map(|name| metric("", name)).collect());
            primaries(&run, &Options::default()).remove(0).1.unwrap()
        };
        assert_eq!(of(&["runtime", "write.bw", "write.iops"]), "write.bw");
        assert_eq!(of(&["runtime", "read.bw"]), "read.bw");
        assert_eq!(of(&["read.bw", "write.bw", "bw"]), "bw");
        assert_eq!(of(&["kb_s", "other"]), "kb_s");
    }

    #[test]
    fn jobs_decide_before_the_whole_trial() {
        let metrics =
            vec![metric("", "usr_cpu"), metric("w", "write.bw"), metric("r", "read.bw"), metric("", "bw")];
        let run = with_metrics(metrics);
        let some = |name: &str| Some(name.to_owned());
        let expected =
            [(String::new(), None), ("w".to_owned(), some("write.bw")), ("r".to_owned(), some("read.bw"))];
        assert_eq!(primaries(&run, &Options::default()), expected);
        let options = Options { primary: some("usr_cpu"), ..Options::default() };
        assert_eq!(primaries(&run, &options)[0].1, some("usr_cpu"));
        assert_eq!(primaries(&run, &options)[1].1, None);
    }

    #[test]
    fn a_section_may_have_a_deciding_metric_of_its_own() {
        let metrics = ["write.bw", "write.lat_ns.p99", "usr_cpu"];
        let of = |job: &str| metrics.iter().map(|name| metric(job, name)).collect::<Vec<_>>();
        let mut run = with_metrics([of("wal"), of("checkpoint")].concat());
        let decide = |run: &Run, primary: Option<&str>| {
            let options = Options { primary: primary.map(str::to_owned), ..Options::default() };
            primaries(run, &options).into_iter().map(|(_, name)| name.unwrap_or_default()).collect::<Vec<_>>()
        };
        assert_eq!(decide(&run, Some("wal:write.lat_ns.p99")), ["write.lat_ns.p99", ""], "it alone");
        assert_eq!(
            decide(&run, Some("checkpoint:usr_cpu,write.lat_ns.p99")),
            ["write.lat_ns.p99", "usr_cpu"]
        );
        run.design.primary = Some("wal:usr_cpu,checkpoint:write.lat_ns.p99".to_owned());
        assert_eq!(decide(&run, None), ["usr_cpu", "write.lat_ns.p99"]);
        assert_eq!(decide(&run, Some("checkpoint:write.bw")), ["", "write.bw"]);
        run.design.primary = Some("wal:usr_cpu".to_owned());
        assert_eq!(decide(&run, None), ["usr_cpu", "write.bw"], "chosen for its rate, as nobody asked");
        run.design.asked = true;
        assert_eq!(decide(&run, None), ["usr_cpu", ""]);
    }

    #[test]
    fn several_metrics_may_decide_a_row_also_of_the_whole_trial() {
        let of = |job: &str, names: &[&str]| names.iter().map(|name| metric(job, name)).collect::<Vec<_>>();
        let run = with_metrics([of("", &["bw", "dev.flushes"]), of("w", &["write.bw", "usr_cpu"])].concat());
        let decide = |primary: &str| {
            let options = Options { primary: Some(primary.to_owned()), ..Options::default() };
            let layout = Layout::new(&run, &options, &Table::new(&run));
            let name = |metric: &u32| run.metrics[*metric as usize].name.clone();
            let rows = layout.rows.iter();
            let rows: Vec<String> =
                rows.map(|row| row.primaries.iter().map(name).collect::<Vec<_>>().join("+")).collect();
            (rows.join(" | "), layout.family(false))
        };
        assert_eq!(decide("write.bw,dev.flushes"), ("dev.flushes | write.bw".to_owned(), 2));
        assert_eq!(decide("usr_cpu,write.bw,usr_cpu"), (" | usr_cpu+write.bw".to_owned(), 2));
        assert_eq!(decide("w:usr_cpu"), (" | usr_cpu".to_owned(), 1));
        assert_eq!(decide("dev.flushes"), ("dev.flushes | ".to_owned(), 1));
    }

    #[test]
    fn rows_are_the_other_factors_and_the_baseline_comes_first() {
        let mut run = run_of(&Made::default(), 4);
        run.design.factors.push(Factor::new("bs", vec!["4k".to_owned(), "1m".to_owned()]));
        run.cells = [[0, 0], [1, 0], [0, 1], [1, 1]].map(|levels| Cell { levels: levels.to_vec() }).to_vec();
        run.trials.iter_mut().for_each(|trial| trial.cell += 2 * (trial.round % 2));
        let table = Table::new(&run);
        let options = Options { baseline: Some("1".to_owned()), ..Options::default() };
        let layout = Layout::new(&run, &options, &table);
        assert_eq!(layout.arms, ["1", "0"]);
        assert_eq!(
            layout.rows.iter().map(|row| row.cells.clone()).collect::<Vec<_>>(),
            [[Some(1), Some(0)], [Some(3), Some(2)]]
        );
        assert_eq!(layout.rows[1].key.levels, [("bs".to_owned(), "1m".to_owned())]);
        assert_eq!(layout.family(false), 2);
    }
}
