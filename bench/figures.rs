//! Figures of the trials of a run: of one level, and the ratio of two.
//!
//! Enters: a stored run. Leaves: numbers. It must not know what was promised of them.

use std::collections::BTreeMap;

use assay::record::{Run, Trial};
use assay::stats::Estimate;
use assay::stats::ratio_of_means;
use assay::stats::signed_rank;
use assay::stats::walsh::Walsh;

use crate::promise::Ratio;

/// A figure of one trial, if the trial has it.
pub(crate) type Figure = fn(&Run, &Trial) -> Option<f64>;

/// The figure of one level in each round.
pub(crate) type ByRound = BTreeMap<u32, f64>;

/// The figure of every trial of a level that counts.
pub(crate) fn of_level(run: &Run, level: &str, figure: Figure) -> ByRound {
    let compared = run.design.compare;
    let is_level = |trial: &&Trial| {
        let number = run.cells.get(trial.cell as usize).map(|cell| cell.levels[compared] as usize);
        number.is_some_and(|number| run.design.factors[compared].levels[number] == level)
    };
    let counted = run.trials.iter().filter(|trial| trial.counts()).filter(is_level);
    counted.filter_map(|trial| Some((trial.round, figure(run, trial)?))).collect()
}

/// I/Os a second.
pub(crate) fn iops(run: &Run, trial: &Trial) -> Option<f64> {
    value(run, trial, "read.iops").or_else(|| value(run, trial, "write.iops"))
}

/// Nanoseconds of user time an I/O.
pub(crate) fn user_ns(run: &Run, trial: &Trial) -> Option<f64> {
    let ios = value(run, trial, "read.total_ios").or_else(|| value(run, trial, "write.total_ios"))?;
    Some(value(run, trial, "usr_cpu")? * 1e9 / ios)
}

/// Milliseconds of the whole trial.
pub(crate) fn elapsed_ms(_run: &Run, trial: &Trial) -> Option<f64> {
    Some(trial.elapsed_s * 1e3)
}

fn value(run: &Run, trial: &Trial, name: &str) -> Option<f64> {
    let index = run.metrics.iter().position(|metric| metric.name == name)?;
    trial.value(index as u32)
}

/// The median of the ratios within rounds (Hodges–Lehmann, on logarithms) with its signed-rank interval at 95 %; `None`: no
/// round has both.
pub(crate) fn within_rounds(level: &ByRound, over: &ByRound) -> Option<Ratio> {
    let logs: Vec<f64> =
        level.iter().filter_map(|(round, value)| Some((value / over.get(round)?).ln())).collect();
    let walsh = Walsh::new(&logs)?;
    let interval = signed_rank::critical(logs.len(), 0.05).and_then(|k| walsh.interval(k));
    let back = |e: Estimate| Estimate { estimate: e.estimate.exp(), low: e.low.exp(), high: e.high.exp() };
    Some(Ratio { value: walsh.hodges_lehmann().exp(), interval: interval.map(back), rounds: logs.len() })
}

/// The ratio of the means over the rounds that have both, with its interval. The kernel counts user time by ticks: that of one trial is a
/// draw of few, so that ratios within rounds would say little.
pub(crate) fn of_means(level: &ByRound, over: &ByRound) -> Ratio {
    let both = level.iter().filter_map(|(round, value)| Some((*over.get(round)?, *value)));
    let (over, level): (Vec<f64>, Vec<f64>) = both.unzip();
    let found = ratio_of_means::paired(&over, &level);
    let interval = found.low.is_finite().then_some(found);
    Ratio { value: found.estimate, interval, rounds: level.len() }
}

/// The mean of all rounds.
pub(crate) fn mean(figures: &ByRound) -> f64 {
    figures.values().sum::<f64>() / figures.len() as f64
}

/// The median of all rounds; not a number where there is none.
pub(crate) fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => values[n / 2],
        n => (values[n / 2 - 1] + values[n / 2]) / 2.0,
    }
}
