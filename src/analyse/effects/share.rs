//! What each factor has of the change from all first to all last levels.
//!
//! Enters: a response. Leaves: [`Shares`], of mean logarithms, so that the parts multiply to the whole exactly. They describe and claim
//! nothing: their intervals are Student's at 1 − α each.

use super::super::comparison::Interval;
use super::super::draft::Setting;
use super::super::summary::as_ratio;
use super::contrasts::no_interval;
use super::found::Shares;
use super::response::{Crossed, Response};
use crate::stats::descriptive::mean;
use crate::stats::sequential::FEWEST_ROUNDS;
use crate::stats::{shapley, student_t};

/// The shares.
pub(super) fn shares(setting: &Setting, crossed: &Crossed, response: &Response) -> Option<Shares> {
    let levels = crossed.levels();
    let high = |set: usize| -> Vec<usize> {
        levels
            .iter()
            .enumerate()
            .map(|(factor, count)| if set >> factor & 1 == 1 { count - 1 } else { 0 })
            .collect()
    };
    let corners: Vec<usize> = (0..1_usize << levels.len()).map(|set| response.place(&high(set))).collect();
    let rounds = response.rounds();
    let values = |round: &Vec<f64>| corners.iter().map(|cell| round[*cell]).collect::<Vec<f64>>();
    let by_round: Vec<Vec<f64>> = rounds.iter().map(|round| shapley::shares(&values(round))).collect();
    let of = |values: &[f64]| interval(values, setting.stop.alpha);
    let part = |factor: usize| of(&by_round.iter().map(|shares| shares[factor]).collect::<Vec<f64>>());
    let whole: Vec<f64> = by_round.iter().map(|shares| shares.iter().sum()).collect();
    (!rounds.is_empty()).then(|| Shares {
        of: levels.iter().enumerate().map(|(factor, count)| crossed.change((factor, count - 1))).collect(),
        whole: of(&whole),
        parts: (0..levels.len()).map(part).collect(),
    })
}

fn interval(values: &[f64], alpha: f64) -> Interval {
    let test = if values.len() < FEWEST_ROUNDS { None } else { student_t::paired(values, alpha) };
    as_ratio(test.map_or_else(|| no_interval(mean(values)), |test| test.interval))
}
