//! What watching costs: each watched cell against the same cell unwatched.
//!
//! Enters: a run that explains another one. Leaves: a [`WatchingPrice`] for each metric that decides in each of the explained run's
//! cells (where that counts work, or is there in watched trials only, for the bandwidth or the run time), and what observers lost. It must
//! not know what was watched.
//!
//! Watched and unwatched trials of a cell run in the same rounds in random order, so that the price is a paired difference as any other
//! (METHODOLOGY). Each interval holds 95 % by itself: nothing is claimed of the explained run by it.

use serde::{Deserialize, Serialize};

use super::analysis::Analysis;
use super::comparison::{Comparison, Interval, Role, RowKey};
use super::layout::{Layout, Row};
use super::options::Options;
use super::paired::{Once, one_look};
use super::scale::Scale;
use super::table::{Table, pairs};
use crate::record::{Explains, Metric, Run};
use crate::stats::crossover::Crossover;
use crate::stats::sequential::FEWEST_ROUNDS;
use crate::units::Better;

/// How the names of the counts end that observers report of events that they lost.
const LOST: &str = ".lost";
/// What an interval leaves out; each holds by itself.
const OUTSIDE: f64 = 0.05;
/// Times of a run that watching surely made slower, or faster, by more are those of another run; a price less sure than this is not known.
const DISTORTS: f64 = 0.05;

/// Where the unwatched trials of the run that watches differ by more than this share from the explained run, the machine is another one.
pub const MOVED: f64 = 0.25;

/// What watching cost in one cell of the explained run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WatchingPrice {
    /// The cell, as levels of all factors of the explained run, and the job.
    pub row: RowKey,
    /// The level of the factor that says what watches; empty where there is one beside the unwatched.
    pub by: String,
    /// What decides there, or what stands for it.
    pub metric: Metric,
    /// Rounds in which both trials count.
    pub rounds: usize,
    /// How much worse the metric is when watched, as a ratio − 1 of the unwatched trial's: +0.02 is 2 % less throughput, or 2 % more
    /// time.
    pub estimate: f64,
    /// Its interval.
    pub interval: Interval,
    /// All of the interval is beyond 5 %: times are those of a slower run, or of a faster one; counts hold.
    pub is_distorted: bool,
}

impl WatchingPrice {
    /// Whether it says anything: an interval that holds 0 and is wider than 5 % does not.
    #[must_use]
    pub fn is_known(&self) -> bool {
        let Interval { low, high, .. } = self.interval;
        low > 0.0 || high < 0.0 || high - low <= DISTORTS
    }
}

/// The prices of a watched run by level, the highest first; a cell with fewer than 4 pairs, or whose values have no ratio, has none.
#[must_use]
pub fn watching_prices(watched: &Run) -> Vec<WatchingPrice> {
    let named =
        |explains: &&Explains| watched.design.factors.iter().any(|factor| factor.name == explains.factor);
    let Some(explains) = watched.design.explains.as_ref().filter(named) else { return Vec::new() };
    let options = Options { compare: Some(explains.factor.clone()), ..Options::default() };
    let table = Table::new(watched);
    let layout = Layout::new(watched, &options, &table);
    let several = layout.arms.len() > 2;
    let of_level = |at: usize| {
        let by = if several { layout.arms[at].as_str() } else { "" };
        let mut prices: Vec<WatchingPrice> =
            layout.rows.iter().flat_map(|row| prices_of_row(&table, row, (at, by))).collect();
        prices.sort_by(|a, b| b.estimate.total_cmp(&a.estimate));
        prices
    };
    // Times that explain are those of the first level.
    (1..layout.arms.len()).flat_map(of_level).collect()
}

/// The pairs of `analysis` as the unwatched trials of the run that watched its cells show them: what decided, measured again. `again` are
/// the comparisons of that run, by the same factor.
#[must_use]
pub fn measured_again(analysis: &Analysis, watched: &Run, again: Vec<Comparison>) -> Vec<Comparison> {
    let Some(explains) = &watched.design.explains else { return Vec::new() };
    // The first level of its own factor is the unwatched one.
    let unwatched = watched.design.factors.iter().find(|factor| factor.name == explains.factor);
    let Some(level) = unwatched.and_then(|factor| factor.levels.first()) else { return Vec::new() };
    let own = |factor: &str| factor == explains.factor;
    let same = |deciding: &Comparison, again: &Comparison| {
        let others = again.row.levels.iter().filter(|(factor, _)| !own(factor));
        let is_unwatched = again.row.levels.iter().any(|(factor, found)| own(factor) && found == level);
        // Its other factors are those of the run.
        let fits = others.clone().all(|pair| deciding.row.levels.contains(pair));
        let arms = [(&deciding.baseline, &again.baseline), (&deciding.candidate, &again.candidate)];
        let metric = deciding.metric.name == again.metric.name && deciding.row.job == again.row.job;
        is_unwatched && fits && metric && arms.iter().all(|(one, other)| one.arm == other.arm)
    };
    let deciding = analysis.comparisons.iter().filter(|found| found.role == Role::Primary);
    let deciding: Vec<&Comparison> = deciding.collect();
    let of_one = again.into_iter().filter(|found| found.role == Role::Primary && found.effect.is_some());
    of_one.filter(|again| deciding.iter().any(|deciding| same(deciding, again))).collect()
}

/// What an observer lost of the events that it should have read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WatchingLoss {
    /// Its name.
    pub observer: String,
    /// Watched trials in which it lost some.
    pub trials: usize,
    /// Of how many.
    pub of: usize,
    /// The most in one trial.
    pub most: u64,
}

/// What was lost in the trials of a run, by observer.
#[must_use]
pub fn watching_losses(watched: &Run) -> Vec<WatchingLoss> {
    let table = Table::new(watched);
    let of_observer = |(metric, at): (&Metric, u32)| {
        let observer = metric.name.strip_suffix(LOST).filter(|_| metric.job.is_empty())?;
        let counts: Vec<f64> = (0..watched.cells.len() as u32)
            .flat_map(|cell| table.column(cell, at).iter().map(|point| point.value))
            .collect();
        let lost = counts.iter().copied().filter(|count| *count > 0.0);
        let (trials, most) = (lost.clone().count(), lost.fold(0.0, f64::max) as u64);
        (trials > 0).then(|| WatchingLoss { observer: observer.to_owned(), trials, of: counts.len(), most })
    };
    table.metrics().iter().zip(0..).filter_map(of_observer).collect()
}

/// The prices in one cell. A count of work does not show what watching costs, and what observers report has no unwatched twin.
fn prices_of_row(table: &Table, row: &Row, by: (usize, &str)) -> Vec<WatchingPrice> {
    let of = |metric: u32| &table.metrics()[metric as usize];
    let deciding = row.primaries.iter().copied().filter(|metric| !of(*metric).is_exact_count());
    let prices: Vec<WatchingPrice> = deciding.filter_map(|metric| price(table, row, by, metric)).collect();
    if !prices.is_empty() || row.primaries.is_empty() {
        return prices;
    }
    let runtime = row.metrics.iter().copied().find(|metric| of(*metric).name == "runtime");
    let others = [row.bandwidth(table), runtime].into_iter().flatten();
    others.filter_map(|metric| price(table, row, by, metric)).take(1).collect()
}

/// The price of one metric in one cell, watched by this level.
fn price(table: &Table, row: &Row, (at, by): (usize, &str), metric: u32) -> Option<WatchingPrice> {
    let (unwatched, watched) = ((*row.cells.first()?)?, (*row.cells.get(at)?)?);
    let pairs = pairs(table.column(unwatched, metric), table.column(watched, metric));
    let scale = Scale::of_pairs(&pairs);
    if pairs.len() < FEWEST_ROUNDS || scale != Scale::Log {
        return None;
    }
    let second: Vec<bool> = pairs.iter().map(|(base, cand)| cand.position > base.position).collect();
    let rounds = Crossover::new(&scale.differences(&pairs), &second);
    let change = scale.share(
        one_look(&rounds, Once { level: OUTSIDE, comparisons: 1, outside: OUTSIDE, exact: false })?
            .interval?,
    )?;
    let metric = table.metrics()[metric as usize].clone();
    let interval = match metric.better {
        Better::Lower => change,
        Better::Higher => Interval { estimate: -change.estimate, low: -change.high, high: -change.low },
    };
    Some(WatchingPrice {
        row: RowKey { levels: row.key.levels.clone(), job: row.key.job.clone() },
        by: by.to_owned(),
        metric,
        rounds: pairs.len(),
        estimate: interval.estimate,
        interval,
        // What watches also wakes processors: a run that is faster by it is another one, too.
        is_distorted: interval.low > DISTORTS || interval.high < -DISTORTS,
    })
}

#[cfg(test)]
mod tests {
    use super::super::made_up::{Made, run_of};
    use super::*;
    use crate::record::{Cell, Factor};
    use crate::units::Unit;

    /// The made-up run, whose two cells are one cell of another run: unwatched, and watched at this effect on `write.bw`.
    fn watched(effect: f64, rounds: u32) -> Run {
        let mut run = run_of(&Made { effect, cv: 0.003, ..Made::default() }, rounds);
        run.design.factors = vec![
            Factor::new("direct", vec!["0".to_owned()]),
            Factor::new("watched", vec!["no".to_owned(), "yes".to_owned()]),
        ];
        run.cells = vec![Cell { levels: vec![0, 0] }, Cell { levels: vec![0, 1] }];
        let factor = "watched".to_owned();
        run.design.explains =
            Some(Explains { run: 3, started_unix_ns: 5, seed: 7, factor, observers: Vec::new() });
        run
    }

    #[test]
    fn the_price_is_what_the_watched_twin_is_worse() {
        let prices = watching_prices(&watched(-0.02, 8));
        assert_eq!(prices.len(), 1);
        let price = &prices[0];
        assert!((price.estimate - 0.02).abs() < 0.006 && !price.is_distorted, "{price:?}");
        assert!(price.interval.low < 0.02 && price.interval.high > 0.014, "{price:?}");
        assert_eq!((price.metric.name.as_str(), price.rounds), ("write.bw", 8));
        assert_eq!(price.row.levels, [("direct".to_owned(), "0".to_owned())]);
    }

    #[test]
    fn events_that_were_lost_are_counted_by_observer() {
        let mut run = watched(-0.02, 4);
        assert_eq!(watching_losses(&run), []);
        let of = |name: &str| Metric::new("", name, Unit::Count, Better::Lower);
        let first = run.metrics.len() as u32;
        run.metrics.extend([of("locks.lost"), of("cpu.lost")]);
        let watched = run.trials.iter_mut().filter(|trial| trial.cell == 1);
        for (trial, lost) in watched.zip([0.0, 7.0, 0.0, 3.0]) {
            trial.values.extend([(first, lost), (first + 1, 0.0)]);
        }
        let expected = WatchingLoss { observer: "locks".to_owned(), trials: 2, of: 4, most: 7 };
        assert_eq!(watching_losses(&run), [expected]);
    }

    #[test]
    fn more_time_is_a_price_as_less_throughput_is() {
        let mut run = watched(-0.10, 6);
        let throughput = watching_prices(&run).remove(0);
        run.design.primary = Some("write.clat_ns.p99".to_owned());
        let time = watching_prices(&run).remove(0);
        // Of a tenth less throughput each operation takes a ninth more time.
        assert!((throughput.estimate - 0.10).abs() < 0.01 && throughput.is_distorted, "{throughput:?}");
        assert!((time.estimate - 1.0 / 9.0).abs() < 0.012 && time.is_distorted, "{time:?}");
    }

    #[test]
    fn a_price_that_is_noise_is_not_known_and_distorts_nothing() {
        let price = |low: f64, high: f64| {
            let mut price = watching_prices(&watched(-0.02, 8)).remove(0);
            price.interval = Interval { estimate: f64::midpoint(low, high), low, high };
            price
        };
        assert!(!price(-8.0, 0.8).is_known() && !price(-0.03, 0.04).is_known());
        assert!(price(-0.01, 0.02).is_known() && price(0.01, 0.5).is_known());
        let mut noisy = watched(-0.3, 6);
        for trial in
            noisy.trials.iter_mut().filter(|trial| trial.cell == 1 && [0, 1, 4].contains(&trial.round))
        {
            trial.values[0].1 *= 9.0;
        }
        let noisy = watching_prices(&noisy).remove(0);
        assert!(!noisy.is_known() && !noisy.is_distorted, "{noisy:?}");
        let faster = watching_prices(&watched(0.5, 8)).remove(0);
        assert!(faster.interval.high < -0.05 && faster.is_distorted, "{faster:?}");
    }

    #[test]
    fn bandwidth_stands_for_what_shows_no_price() {
        let mut run = watched(-0.10, 6);
        for (name, unit) in [("dev.flushes", Unit::Count), ("locks.wait_time", Unit::Seconds)] {
            (run.metrics[3].name, run.metrics[3].unit) = (name.to_owned(), unit);
            run.design.primary = Some(name.to_owned());
            if name == "locks.wait_time" {
                let unwatched = run.trials.iter_mut().filter(|trial| trial.cell == 0);
                unwatched.for_each(|trial| trial.values.truncate(3));
            }
            let prices = watching_prices(&run);
            let [price] = prices.as_slice() else { panic!("{name}: {prices:?}") };
            assert_eq!((price.metric.name.as_str(), price.is_distorted), ("write.bw", true), "{name}");
        }
    }

    #[test]
    fn what_nobody_can_know_has_no_price() {
        assert_eq!(watching_prices(&watched(-0.02, 3)), [], "three rounds");
        let mut plain = watched(-0.02, 8);
        plain.design.explains = None;
        assert_eq!(watching_prices(&plain), [], "it explains no run");
        let mut one = watched(-0.02, 8);
        one.trials.retain(|trial| trial.cell == 0);
        assert_eq!(watching_prices(&one), [], "nothing was watched");
        let mut forged = watched(-0.02, 8);
        forged.design.explains.as_mut().unwrap().factor = "direct".to_owned();
        assert_eq!(watching_prices(&forged), [], "a factor with one level");
    }
}
