//! Main effects and interactions through the engine that judges comparisons.
//!
//! Enters: responses. Leaves: a judged [`Comparison`] for each term, of which interval, p and verdict are those of the contrast. All of
//! them share α. The arms' figures in it are those of the first row and mean nothing here.

use super::super::comparison::{Comparison, Method, Role};
use super::super::draft::{Draft, Setting};
use super::super::scale::Scale;
use super::super::verdict;
use super::super::{paired, summary};
use super::found::Within;
use super::response::{Crossed, Response};
use crate::stats::crossover::Crossover;
use crate::stats::factorial::At;
use crate::stats::sequential::FEWEST_ROUNDS;
use crate::stats::{descriptive, student_t};

/// The factors of an effect, each with the level that is compared with its first.
pub(super) type Term = Vec<At>;

/// How many terms factors of so many levels have.
pub(super) fn count(levels: &[usize]) -> usize {
    let changes = |levels: &[usize]| levels.iter().map(|count| count - 1).sum::<usize>();
    let with_later = |(at, count): (usize, &usize)| (count - 1).saturating_mul(changes(&levels[at + 1..]));
    levels.iter().enumerate().map(with_later).fold(changes(levels), usize::saturating_add)
}

/// Main effects of all factors, then all interactions of two: every level against the first.
pub(super) fn terms(levels: &[usize]) -> Vec<Term> {
    let changes: Vec<At> =
        (0..levels.len()).flat_map(|factor| (1..levels[factor]).map(move |l| (factor, l))).collect();
    let mut terms: Vec<Term> = changes.iter().map(|change| vec![*change]).collect();
    for (at, first) in changes.iter().enumerate() {
        let later = changes[at + 1..].iter().filter(|second| second.0 != first.0);
        terms.extend(later.map(|second| vec![*first, *second]));
    }
    terms
}

/// Every term of every response, judged as one family; in the order of the responses, then of the terms.
pub(super) fn judge(setting: &Setting, responses: &[&Response], terms: &[Term]) -> Vec<Comparison> {
    let setting = Setting { family: responses.len() * terms.len(), ..*setting };
    let of_response = |response: &&Response| {
        terms.iter().map(|term| draft(&setting, response, term, &[])).collect::<Vec<Draft>>()
    };
    verdict::judge(responses.iter().flat_map(of_response).collect(), &setting.stop)
}

/// Of an interaction the effect of the first factor at both levels of the second, each as if it were judged alone; where rounds are too few
/// for an interval, the estimate alone.
pub(super) fn within(setting: &Setting, crossed: &Crossed, response: &Response, term: &Term) -> Vec<Within> {
    let [first, second] = term.as_slice() else { return Vec::new() };
    let setting = Setting { family: 1, ..*setting };
    let at = |level: usize| {
        let held = [(second.0, level)];
        let judged = verdict::judge(vec![draft(&setting, response, &[*first], &held)], &setting.stop);
        let effect = judged.into_iter().next().and_then(|one| one.effect);
        let mean = response.mean(&[*first], &held);
        let effect = effect.unwrap_or_else(|| summary::as_ratio(no_interval(mean)));
        Within { level: crossed.factors[second.0].labels[level].clone(), effect }
    };
    vec![at(0), at(second.1)]
}

/// An estimate without an interval.
pub(super) fn no_interval(estimate: f64) -> crate::stats::Estimate {
    crate::stats::Estimate { estimate, low: f64::NAN, high: f64::NAN }
}

/// A contrast before its verdict.
fn draft(setting: &Setting, response: &Response, changes: &[At], held: &[At]) -> Draft {
    let weights = response.weights(changes, held);
    let mut draft = setting.start(&response.case());
    draft.comparison.n = response.n();
    draft.tried = response.n();
    let delta = draft.comparison.delta;
    // The error of rounding is one step for a difference, two for a difference of two.
    let steps = if changes.len() > 1 { response.steps.doubled(delta) } else { response.steps };
    draft.set_scale(Scale::Log, steps);
    if response.n() < FEWEST_ROUNDS {
        return draft.too_few(response.n());
    }
    if !response.samples().is_empty() {
        return unpaired(draft, setting, &weights, response.samples());
    }
    let differences = response.by_round(&weights);
    draft.spread = descriptive::stddev(&differences);
    let rounds = Crossover::of_unknown_order(&differences);
    if setting.stop.rounds.is_none() {
        paired::look(&mut draft, setting, &rounds);
    } else {
        let once = paired::Once {
            level: setting.stop.alpha,
            comparisons: setting.family,
            outside: setting.outside(Role::Primary),
            exact: setting.stop.exact,
        };
        paired::look_once(&mut draft, &rounds, once);
    }
    draft
}

/// Cells whose repeats do not belong together: Welch's t of the weighted means.
fn unpaired(mut draft: Draft, setting: &Setting, weights: &[f64], samples: &[Vec<f64>]) -> Draft {
    draft.comparison.method = Method::ContrastWelch;
    let n = draft.comparison.n as f64;
    if let Some(test) = student_t::contrast(weights, samples, setting.outside(Role::Primary)) {
        draft.comparison.p = Some(test.p);
        draft.theta = test.interval.estimate;
        draft.spread = (test.interval.estimate / test.t).abs() * n.sqrt();
        draft.set_effect(test.interval);
    }
    draft
}
