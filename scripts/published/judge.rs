//! A claim judged: the ratio of two figures within rounds, and whether all of its interval bears the claim out.
//!
//! Enters: a claim and the runs. Leaves: a verdict with the figures it is made of. It must not know how a page looks.

use std::collections::BTreeMap;

use assay::record::Run;
use assay::stats::rounds_needed::claim_factor;
use assay::stats::walsh::Walsh;
use assay::stats::{descriptive, signed_rank, student_t};

use crate::claims::{Claim, Place, Quotient};
use crate::study::{Found, mean, published_table, records, values};

const ALPHA: f64 = 0.05;
/// More rounds than so many are told as "more than".
const MANY_ROUNDS: f64 = 1000.0;

/// Where a ratio lies if the claim is true.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Holds {
    /// Above this.
    Above(f64),
    /// Below this.
    Below(f64),
    /// Between these.
    Between(f64, f64),
}

impl Holds {
    /// `above 1`, `below 0.8`, `0.8 to 1.25`.
    pub(crate) fn parse(text: &str) -> Option<Holds> {
        if let Some((low, high)) = text.split_once(" to ") {
            return Some(Holds::Between(low.parse().ok()?, high.parse().ok()?));
        }
        let (side, bound) = text.split_once(' ')?;
        let bound = bound.parse().ok()?;
        match side {
            "above" => Some(Holds::Above(bound)),
            "below" => Some(Holds::Below(bound)),
            _ => None,
        }
    }

    pub(crate) fn at(self, value: f64) -> bool {
        match self {
            Holds::Above(bound) => value > bound,
            Holds::Below(bound) => value < bound,
            Holds::Between(low, high) => (low..=high).contains(&value),
        }
    }

    /// Some(true): it holds in the whole interval, Some(false): nowhere in it.
    fn in_all(self, (low, high): (f64, f64)) -> Option<bool> {
        let nowhere = match self {
            Holds::Above(bound) => high <= bound,
            Holds::Below(bound) => low >= bound,
            Holds::Between(least, most) => high < least || low > most,
        };
        match () {
            () if self.at(low) && self.at(high) => Some(true),
            () if nowhere => Some(false),
            () => None,
        }
    }

    /// How far a logarithm is from where the answer changes.
    fn distance(self, log: f64) -> f64 {
        match self {
            Holds::Above(bound) | Holds::Below(bound) => (log - bound.ln()).abs(),
            Holds::Between(low, high) => (log - low.ln()).abs().min((log - high.ln()).abs()),
        }
    }
}

/// A ratio and how far it may be off.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ratio {
    pub(crate) value: f64,
    pub(crate) interval: Option<(f64, f64)>,
    /// Pairs it is of, one a round.
    pub(crate) rounds: usize,
    /// Standard deviation of the logarithms of the pairs' ratios.
    spread: f64,
}

impl Ratio {
    /// Of pairs, one a round: the numerator and the denominator, both above 0.
    pub(crate) fn of(pairs: &[(f64, f64)]) -> Option<Ratio> {
        let logs: Vec<f64> = pairs.iter().map(|(over, under)| (over / under).ln()).collect();
        let walsh = Walsh::new(&logs).filter(|_| logs.iter().all(|log| log.is_finite()))?;
        let ranks = signed_rank::critical(logs.len(), ALPHA).and_then(|k| walsh.interval(k));
        // Fewer than six pairs have no rank interval at 95 %.
        let interval = match (ranks, logs.len()) {
            (Some(ranks), _) => Some((ranks.low.exp(), ranks.high.exp())),
            (None, 4..) => {
                student_t::paired(&logs, ALPHA).map(|t| (t.interval.low.exp(), t.interval.high.exp()))
            }
            (None, _) => None,
        };
        let spread = descriptive::stddev(&logs);
        Some(Ratio { value: walsh.hodges_lehmann().exp(), interval, rounds: pairs.len(), spread })
    }

    /// Rounds that would probably decide; `None`: more than anybody runs.
    fn rounds_to_decide(&self, holds: Holds) -> Option<u32> {
        let needed = claim_factor(ALPHA) * (self.spread / holds.distance(self.value.ln())).powi(2);
        // Beyond those that were not enough, and no fewer than an interval takes.
        let needed = needed.ceil().max(self.rounds as f64 + 1.0).max(6.0);
        (needed <= MANY_ROUNDS).then_some(needed as u32)
    }
}

/// What came of a claim.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Verdict {
    /// It holds in the whole interval.
    Reproduced(Ratio),
    /// It holds nowhere in it.
    Contrary(Ratio),
    /// Neither, and the rounds that would probably decide.
    Undecided(Ratio, Option<u32>),
    /// The run has not both figures.
    LeftOut,
    /// Nothing here answers it.
    NotThere,
}

impl Verdict {
    pub(crate) fn ratio(&self) -> Option<&Ratio> {
        match self {
            Verdict::Reproduced(ratio) | Verdict::Contrary(ratio) | Verdict::Undecided(ratio, _) => {
                Some(ratio)
            }
            Verdict::LeftOut | Verdict::NotThere => None,
        }
    }
}

/// Judges a claim by the runs of its study.
///
/// # Errors
/// The claim is not written as it must be.
pub(crate) fn judge(claim: &Claim, runs: &[&Run]) -> Found<Verdict> {
    let Some(here) = &claim.here else { return Ok(Verdict::NotThere) };
    let holds =
        Holds::parse(&claim.holds).ok_or_else(|| format!("'{}' is no place of a ratio", claim.holds))?;
    let over = figures(runs, here.over())?;
    let pairs: Vec<(f64, f64)> = match here.under() {
        None => over.into_values().map(|value| (value, 1.0)).collect(),
        Some(under) => {
            let under = figures(runs, under)?;
            over.into_iter().filter_map(|(round, value)| Some((value, *under.get(&round)?))).collect()
        }
    };
    let Some(ratio) = Ratio::of(&pairs) else { return Ok(Verdict::LeftOut) };
    Ok(match ratio.interval.and_then(|interval| holds.in_all(interval)) {
        Some(true) => Verdict::Reproduced(ratio),
        Some(false) => Verdict::Contrary(ratio),
        None => Verdict::Undecided(ratio, ratio.rounds_to_decide(holds)),
    })
}

/// The values at a place of the runs, by round; none where the run has no such cell.
fn figures(runs: &[&Run], mut place: Place) -> Found<BTreeMap<u32, f64>> {
    let named = place.remove("run");
    let job = place.remove("job").unwrap_or_default();
    let metric = place.remove("metric").ok_or("a figure of a run is of a metric")?;
    let run = runs.iter().find(|run| named.as_ref().is_none_or(|name| run.name == *name));
    let run = run.ok_or_else(|| format!("the study has no run {}", named.unwrap_or_default()))?;
    let levels: Vec<(&str, &str)> =
        place.iter().map(|(name, label)| (name.as_str(), label.as_str())).collect();
    Ok(values(run, &levels, &job, &metric))
}

/// The published ratio, or the one figure.
///
/// # Errors
/// No such table or column.
pub(crate) fn published(quotient: &Quotient) -> Found<f64> {
    let table = published_table(&quotient.file).ok_or_else(|| format!("no table {}", quotient.file))?;
    let all = records(table);
    let figure = |mut place: Place| -> Found<f64> {
        let column = place.remove("column").ok_or("a published figure is of a column")?;
        let wanted: Vec<(&str, &str)> =
            place.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        Ok(mean(&all, &wanted, &column))
    };
    let over = figure(quotient.over())?;
    Ok(quotient.under().map(figure).transpose()?.map_or(over, |under| over / under))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs() -> [Vec<(f64, f64)>; 3] {
        let twice: Vec<(f64, f64)> = (0..8).map(|n| (2.0 + f64::from(n) / 100.0, 1.0)).collect();
        let half: Vec<(f64, f64)> = twice.iter().map(|(over, under)| (*under, *over)).collect();
        let both: Vec<(f64, f64)> = twice[..4].iter().chain(&half[..4]).copied().collect();
        [twice, half, both]
    }

    fn in_all(text: &str, pairs: &[(f64, f64)]) -> Option<bool> {
        Holds::parse(text).unwrap().in_all(Ratio::of(pairs).unwrap().interval.unwrap())
    }

    #[test]
    fn a_claim_holds_with_its_whole_interval_only() {
        let [twice, half, both] = pairs();
        assert_eq!(in_all("above 1", &twice), Some(true));
        assert_eq!(in_all("below 1", &twice), Some(false));
        assert_eq!(in_all("0.9 to 1.1", &half), Some(false));
        assert_eq!(in_all("above 1", &both), None);
        assert!(Ratio::of(&twice[..3]).unwrap().interval.is_none(), "three rounds have none");
        assert!(Ratio::of(&[(0.0, 1.0); 8]).is_none(), "0 has no ratio");
        assert_eq!(Holds::parse("about 1"), None);
    }

    #[test]
    fn rounds_grow_with_the_scatter_and_end_somewhere() {
        let scattered = |wide: f64| {
            let logs: [f64; 8] = [-1.5, -1.0, -0.5, 0.0, 0.2, 0.5, 1.0, 1.7];
            Ratio::of(&logs.map(|log| ((0.1 + wide * log).exp(), 1.0))).unwrap()
        };
        let rounds = |wide: f64| scattered(wide).rounds_to_decide(Holds::Above(1.0));
        assert_eq!(rounds(0.01), Some(9), "at least one more than there were");
        assert!(rounds(0.2) < rounds(0.4) && rounds(0.2) > Some(20), "{:?} {:?}", rounds(0.2), rounds(0.4));
        assert_eq!(rounds(5.0), None);
        // 14 (s/θ)² with s 0.1 and θ 0.1 (stats/rounds_needed.rs).
        let ratio = Ratio { value: 0.1_f64.exp(), interval: None, rounds: 4, spread: 0.1 };
        assert_eq!(ratio.rounds_to_decide(Holds::Above(1.0)), Some(14));
    }
}
