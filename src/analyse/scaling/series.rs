//! Which cells make the curves: one factor counts workers, the others stay.
//!
//! Enters: design, layout and table. Leaves: groups of series of columns, one column a level. No law is fitted here.

use super::super::draft::Setting;
use super::super::layout::Row;
use super::super::table::Point;
use crate::record::{Better, Factor, Metric, Unit};

/// Keys that count workers, each of which needs a processor.
const WORKERS: [&str; 7] = ["numjobs", "threads", "clients", "jobs", "nproc", "processes", "workers"];
/// Keys that count I/Os in flight, which need none.
const IN_FLIGHT: [&str; 1] = ["iodepth"];
/// With fewer levels there is no curve to speak of.
const FEWEST_LEVELS: usize = 3;

/// Curves that are shown together.
pub(super) struct Group<'a> {
    pub factor: String,
    pub row: Vec<(String, String)>,
    pub job: String,
    pub processors: Option<u32>,
    pub series: Vec<Series<'a>>,
}

/// The columns of one curve.
pub(super) struct Series<'a> {
    pub of: Vec<(String, String)>,
    /// The throughput, or the metric that decides where there is none.
    pub metric: Metric,
    pub is_throughput: bool,
    /// (level, its values by round), by ascending level.
    pub columns: Vec<(u32, &'a [Point])>,
}

/// More rows make more curves than anybody reads.
const MOST_ROWS: usize = 300;

/// All groups.
pub(super) fn groups<'a>(setting: &Setting<'a>) -> Vec<Group<'a>> {
    if setting.layout.rows.len() > MOST_ROWS {
        return Vec::new();
    }
    let factors = setting.run.design.factors.iter().enumerate();
    let counts = factors.filter_map(|(place, factor)| Some((place, factor, levels(factor)?)));
    counts.flat_map(|(place, factor, levels)| of_factor(setting, place, factor, &levels)).collect()
}

/// The numbers of a factor that counts workers.
fn levels(factor: &Factor) -> Option<Vec<u32>> {
    if !counts(factor, &WORKERS) && !counts(factor, &IN_FLIGHT) || factor.levels.len() < FEWEST_LEVELS {
        return None;
    }
    let number = |label: &String| label.trim().parse::<u32>().ok().filter(|n| *n > 0);
    let levels: Option<Vec<u32>> = factor.levels.iter().map(number).collect();
    levels.filter(|levels| levels.iter().collect::<std::collections::BTreeSet<_>>().len() == levels.len())
}

/// Whether a factor's name, or a key that its levels set, is one of these; `fs_mark.threads` ends with one.
fn counts(factor: &Factor, keys: &[&str]) -> bool {
    let is_one = |name: &String| keys.contains(&name.rsplit('.').next().unwrap_or(name));
    is_one(&factor.name) || factor.sets.iter().any(is_one)
}

/// The groups of one factor: a row of all other factors but the compared one each, or where it is the compared one, a job each.
fn of_factor<'a>(setting: &Setting<'a>, place: usize, factor: &Factor, levels: &[u32]) -> Vec<Group<'a>> {
    let is_compared = factor.name == setting.layout.factor;
    let compared = &setting.layout.factor;
    let several = |name: &String| {
        setting.run.design.factors.iter().any(|other| other.name == *name && other.levels.len() > 1)
    };
    let mut groups: Vec<Group> = Vec::new();
    for row in setting.layout.rows.iter().filter(|row| !row.primaries.is_empty()) {
        let others: Vec<(String, String)> = row
            .key
            .levels
            .iter()
            .filter(|(name, _)| *name != factor.name && several(name))
            .cloned()
            .collect();
        for (arm, cell) in row.cells.iter().enumerate() {
            let Some(cell) = *cell else { continue };
            let level = levels[setting.run.cells[cell as usize].levels[place] as usize];
            let own_arm = (compared.clone(), setting.layout.arms[arm].clone());
            let (same, of) = match is_compared {
                true => (Vec::new(), others.clone()),
                false => (others.clone(), vec![own_arm]),
            };
            let known = groups.iter().position(|group| group.row == same && group.job == row.key.job);
            let group = known.unwrap_or_else(|| {
                let (factor, job) = (factor.name.clone(), row.key.job.clone());
                groups.push(Group { factor, row: same, job, processors: None, series: Vec::new() });
                groups.len() - 1
            });
            add(setting, &mut groups[group], row, (of, level, cell));
        }
    }
    groups.retain(|group| !group.series.is_empty());
    for group in &mut groups {
        group.processors = if counts(factor, &WORKERS) { processors(setting) } else { None };
        group.series.iter_mut().for_each(|series| series.columns.sort_by_key(|(level, _)| *level));
        group.series.sort_by_key(|series| order(setting, &series.of));
    }
    groups
}

/// A column joins its series; without values it has none.
fn add<'a>(
    setting: &Setting<'a>,
    group: &mut Group<'a>,
    row: &Row,
    (of, level, cell): (Vec<(String, String)>, u32, u32),
) {
    let Some((metric, is_throughput)) = throughput(setting, row) else { return };
    let definition = &setting.table.metrics()[metric as usize];
    let column = setting.table.column(cell, metric);
    if column.is_empty() {
        return;
    }
    match group.series.iter_mut().find(|series| series.of == of && series.metric == *definition) {
        Some(series) => series.columns.push((level, column)),
        None => {
            let (metric, columns) = (definition.clone(), vec![(level, column)]);
            group.series.push(Series { of, metric, is_throughput, columns });
        }
    }
}

/// The metric that decides a row if it is a throughput, else the row's bandwidth; else the one that decides, which is none.
fn throughput(setting: &Setting, row: &Row) -> Option<(u32, bool)> {
    let is_rate = |metric: &u32| {
        let metric = &setting.table.metrics()[*metric as usize];
        let rate = match &metric.unit {
            Unit::BytesPerSecond | Unit::PerSecond => true,
            Unit::Other(name) => name.ends_with("/s"),
            _ => false,
        };
        rate && metric.better == Better::Higher
    };
    let deciding = row.primaries.iter().copied().find(is_rate);
    let instead = || row.bandwidth(setting.table).filter(is_rate);
    let rate = deciding.or_else(instead).map(|metric| (metric, true));
    rate.or_else(|| Some((row.primary()?, false)))
}

/// The arms' order, so that the baseline's curve is the first.
fn order(setting: &Setting, of: &[(String, String)]) -> usize {
    let arm = of.iter().find(|(name, _)| *name == setting.layout.factor);
    arm.and_then(|(_, label)| setting.layout.arms.iter().position(|arm| arm == label)).unwrap_or(0)
}

/// The fewest processors that any trial of the run had.
fn processors(setting: &Setting) -> Option<u32> {
    let trials = setting.table.latest().iter().filter_map(|trial| trial.facts);
    let mut places: Vec<u32> = trials.collect();
    places.sort_unstable();
    places.dedup();
    let count = |place: &u32| setting.run.facts.get(*place as usize)?.get("cpu.count")?.parse::<u32>().ok();
    places.iter().filter_map(count).min()
}
