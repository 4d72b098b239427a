//! The values that effects are made of: the logarithm of one metric in every cell of a full factorial, by round.
//!
//! Enters: design, layout and table. Leaves: the crossed factors, and a [`Response`] for each job and metric that decides, or why there
//! is none. Nothing is judged here.

use std::collections::{BTreeSet, HashMap};

use super::super::comparison::{Comparison, Role, Verdict};
use super::super::draft::{Case, Setting};
use super::super::layout::Row;
use super::super::scale::Scale;
use super::super::steps::Steps;
use super::super::table::Point;
use super::found::{Change, NoEffects};
use crate::record::{Cell, FailureRule, Metric};
use crate::stats::descriptive::mean;
use crate::stats::factorial::{self, At};

/// A factor of at least two levels.
pub(super) struct Factor {
    pub name: String,
    /// Labels; the first is the baseline of a compared factor.
    pub labels: Vec<String>,
    /// Its place in the design, and that of each level.
    place: usize,
    levels: Vec<u32>,
}

/// The crossed factors of a run.
pub(super) struct Crossed {
    pub factors: Vec<Factor>,
}

impl Crossed {
    /// The compared factor, then the others in the design's order.
    pub(super) fn of(setting: &Setting) -> Crossed {
        let (design, layout) = (&setting.run.design, setting.layout);
        let factor = |(place, factor): (usize, &crate::record::Factor)| {
            let is_compared = factor.name == layout.factor;
            let labels = if is_compared { layout.arms.clone() } else { factor.levels.clone() };
            let level =
                |label: &String| factor.levels.iter().position(|known| known == label).unwrap_or(0) as u32;
            let levels = labels.iter().map(level).collect();
            Factor { name: factor.name.clone(), labels, place, levels }
        };
        let mut factors: Vec<Factor> =
            design.factors.iter().enumerate().map(factor).filter(|factor| factor.labels.len() > 1).collect();
        factors.sort_by_key(|factor| factor.name != layout.factor);
        Crossed { factors }
    }

    /// How many levels each factor has.
    pub(super) fn levels(&self) -> Vec<usize> {
        self.factors.iter().map(|factor| factor.labels.len()).collect()
    }

    /// A factor's change from its first level.
    pub(super) fn change(&self, (factor, level): At) -> Change {
        let factor = &self.factors[factor];
        Change {
            factor: factor.name.clone(),
            from: factor.labels[0].clone(),
            to: factor.labels[level].clone(),
        }
    }

    /// The run's cells in standard order; as an error how many combinations were planned, and of how many, where some were not.
    fn cells(&self, setting: &Setting) -> Result<Vec<u32>, NoEffects> {
        let (levels, cells) = (self.levels(), &setting.run.cells);
        let of = levels.iter().fold(1_usize, |product, count| product.saturating_mul(*count));
        if of > cells.len() {
            return Err(NoEffects::Incomplete { measured: cells.len(), of });
        }
        let own =
            |cell: &Cell| self.factors.iter().map(|factor| cell.levels[factor.place]).collect::<Vec<u32>>();
        let known: HashMap<Vec<u32>, u32> = cells.iter().map(own).zip(0..).collect();
        let cell = |combination: usize| {
            let levels = factorial::levels_of(combination, &levels);
            let wanted: Vec<u32> =
                self.factors.iter().zip(levels).map(|(factor, level)| factor.levels[level]).collect();
            known.get(&wanted).copied()
        };
        let found: Option<Vec<u32>> = (0..of).map(cell).collect();
        found.ok_or(NoEffects::Incomplete { measured: known.len(), of })
    }
}

/// One metric in every cell.
pub(super) struct Response<'a> {
    /// A row it decides, and the metric there.
    pub row: &'a Row,
    pub metric: u32,
    /// The step of the values.
    pub steps: Steps,
    levels: Vec<usize>,
    /// ln(value), by round and then by cell in standard order; empty in unpaired results.
    rounds: Vec<Vec<f64>>,
    /// ln(value), by cell and then by repeat; empty in paired runs.
    samples: Vec<Vec<f64>>,
}

impl<'a> Response<'a> {
    /// Rounds, or repeats of the smallest cell.
    pub(super) fn n(&self) -> usize {
        self.samples.iter().map(Vec::len).min().unwrap_or(self.rounds.len())
    }

    /// What drafts are made for: metric and role are what counts, and there may be one arm only.
    pub(super) fn case(&self) -> Case<'a> {
        Case::deciding(self.row, self.metric, (0, 0))
    }

    /// The weights of a contrast.
    pub(super) fn weights(&self, changes: &[At], held: &[At]) -> Vec<f64> {
        factorial::weights(&self.levels, changes, held)
    }

    /// The contrast of each round.
    pub(super) fn by_round(&self, weights: &[f64]) -> Vec<f64> {
        self.rounds.iter().map(|values| factorial::contrast(weights, values)).collect()
    }

    /// Values of all cells by round, in standard order; of unpaired results their means, as if they were one round.
    pub(super) fn rounds(&self) -> Vec<Vec<f64>> {
        match self.samples.is_empty() {
            true => self.rounds.clone(),
            false => vec![self.samples.iter().map(|values| mean(values)).collect()],
        }
    }

    /// The repeats of each cell, of unpaired results.
    pub(super) fn samples(&self) -> &[Vec<f64>] {
        &self.samples
    }

    /// The contrast of the means.
    pub(super) fn mean(&self, changes: &[At], held: &[At]) -> f64 {
        let weights = self.weights(changes, held);
        let values: Vec<f64> =
            self.rounds().iter().map(|values| factorial::contrast(&weights, values)).collect();
        mean(&values)
    }

    /// A cell's place in standard order, of the level of each factor.
    pub(super) fn place(&self, levels: &[usize]) -> usize {
        levels.iter().zip(&self.levels).rev().fold(0, |place, (level, count)| place * count + level)
    }
}

/// One response for each job and each of its metrics that decide, or for all the same reason why there is none.
pub(super) fn all<'a>(
    setting: &Setting<'a>,
    crossed: &Crossed,
    comparisons: &[Comparison],
    refused: Option<NoEffects>,
) -> Vec<(Metric, Result<Response<'a>, NoEffects>)> {
    let cells = refused.map_or_else(|| crossed.cells(setting), Err);
    let mut jobs: Vec<&str> = Vec::new();
    for row in setting.layout.rows.iter().filter(|row| !row.primaries.is_empty()) {
        if !jobs.contains(&row.key.job.as_str()) {
            jobs.push(&row.key.job);
        }
    }
    let mut found = Vec::new();
    for job in jobs {
        let rows: Vec<&Row> = setting.layout.rows.iter().filter(|row| row.key.job == job).collect();
        let most = rows.iter().map(|row| row.primaries.len()).max().unwrap_or(0);
        for number in 0..most {
            let deciding =
                |row: &&Row| row.primaries.get(number).map(|at| &setting.table.metrics()[*at as usize]);
            let mut metrics: Vec<&Metric> = Vec::new();
            for metric in rows.iter().filter_map(deciding) {
                if !metrics.contains(&metric) {
                    metrics.push(metric);
                }
            }
            let names: Vec<&str> = metrics.iter().map(|metric| metric.name.as_str()).collect();
            let metric = Metric { name: names.join(" or "), ..metrics[0].clone() };
            let alike =
                metrics.iter().all(|other| (&other.unit, other.better) == (&metric.unit, metric.better));
            let response = match &cells {
                Err(reason) => Err(reason.clone()),
                Ok(cells) if alike => response(setting, crossed, cells, &rows, number, comparisons),
                Ok(_) => Err(NoEffects::DifferentMetrics),
            };
            found.push((metric, response));
        }
    }
    found
}

/// The values of the `number`-th metric that decides in each of a job's rows.
fn response<'a>(
    setting: &Setting<'a>,
    crossed: &Crossed,
    cells: &[u32],
    rows: &[&'a Row],
    number: usize,
    comparisons: &[Comparison],
) -> Result<Response<'a>, NoEffects> {
    if setting.clusters.is_some() {
        return Err(NoEffects::Clusters);
    }
    let row_of: HashMap<u32, &Row> =
        rows.iter().flat_map(|row| row.cells.iter().flatten().map(|cell| (*cell, *row))).collect();
    let column = |cell: &u32| {
        let (cell, row) = (*cell, row_of.get(cell)?);
        let points = setting.table.column(cell, *row.primaries.get(number)?);
        (!points.is_empty()).then_some((cell, points))
    };
    let columns: Vec<(u32, &[Point])> = cells.iter().filter_map(column).collect();
    if columns.len() < cells.len() {
        return Err(NoEffects::Incomplete { measured: columns.len(), of: cells.len() });
    }
    if columns.iter().any(|(_, points)| points.iter().any(|point| point.value <= 0.0)) {
        return Err(NoEffects::NotPositive);
    }
    let rows_and_metrics = rows.iter().filter_map(|row| Some((*row, *row.primaries.get(number)?)));
    let own = |c: &&Comparison| {
        let mut known = rows_and_metrics.clone();
        c.role == Role::Primary
            && known
                .any(|(row, metric)| c.row == row.key && c.metric == setting.table.metrics()[metric as usize])
    };
    let own: Vec<&Comparison> = comparisons.iter().filter(own).collect();
    if own.iter().any(|c| c.verdict == Verdict::NotComparable) {
        return Err(NoEffects::UnequalFailures);
    }
    let failures = own.iter().filter_map(|c| c.failures);
    if setting.rule == FailureRule::Worst && failures.clone().next().is_some() {
        return Err(NoEffects::FailuresAsWorst);
    }
    let failed: BTreeSet<u32> = match failures.clone().any(|counts| counts.are_unequal()) {
        true => columns.iter().flat_map(|(cell, _)| setting.table.failed_rounds(*cell)).copied().collect(),
        false => BTreeSet::new(),
    };
    let (rounds, samples) = match setting.run.design.paired {
        true => (by_round(&columns, &failed), Vec::new()),
        false => (Vec::new(), columns.iter().map(|(_, points)| logarithms(points)).collect()),
    };
    if rounds.is_empty() && samples.is_empty() {
        return Err(NoEffects::NoCommonRound);
    }
    let (row, metric) = rows_and_metrics.clone().next().ok_or(NoEffects::NoCommonRound)?;
    // What is counted one by one is exact.
    let Metric { unit, .. } = &setting.table.metrics()[metric as usize];
    let exact = setting.table.metrics()[metric as usize].is_exact_count();
    let of_columns = columns.iter().map(|(cell, points)| {
        let tick = setting.tick_share(metric, [Some(*cell); 2]);
        Steps::on(Scale::Log, unit, [points, points], tick, setting.layout.deltas[metric as usize])
    });
    let steps = if exact { Steps::default() } else { of_columns.fold(Steps::default(), Steps::larger) };
    Ok(Response { row, metric, steps, levels: crossed.levels(), rounds, samples })
}

fn logarithms(points: &[Point]) -> Vec<f64> {
    points.iter().map(|point| point.value.ln()).collect()
}

/// ln(value) of all columns in each round that all of them have.
fn by_round(columns: &[(u32, &[Point])], left_out: &BTreeSet<u32>) -> Vec<Vec<f64>> {
    let Some(((_, first), _)) = columns.split_first() else { return Vec::new() };
    let value = |points: &[Point], round: u32| {
        points.binary_search_by_key(&round, |point| point.round).ok().map(|at| points[at].value.ln())
    };
    let rounds = first.iter().map(|point| point.round).filter(|round| !left_out.contains(round));
    rounds.filter_map(|round| columns.iter().map(|(_, points)| value(points, round)).collect()).collect()
}
